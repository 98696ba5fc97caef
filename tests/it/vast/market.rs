//! Offers, creates, bids, keys, deletes.

use gpuprov::sandbox::{Fault, FaultKind, GoneForm, Throttle, VastFault, When};
use serde_json::{Value, json};

use super::{bodies, fault, made, world, world_with};
use crate::support::machines::outcomes;

#[tokio::test(flavor = "multi_thread")]
async fn the_main_life() {
    let world = world().await;
    let (code, list) = world.json("offers --gpus RTX5090:1 --limit 1").await;
    assert_eq!(code, 0, "{list}");
    let offer = &list["offers"][0];
    assert_eq!((&offer["account"], &offer["instance_type"]), (&json!("vast/default"), &json!("RTX 5090 x1")));
    assert_eq!((&offer["host"], &offer["gpu"]), (&json!("machine:37228"), &json!("RTX5090")));
    let parts = offer["price_parts"].as_object().unwrap().values().map(|part| part.as_f64().unwrap());
    assert!((parts.sum::<f64>() - offer["price_per_hour"].as_f64().unwrap()).abs() < 1e-9);
    assert!(offer["traffic_per_gb"]["in"].is_number());

    let ran = world.run("provision --gpus RTX5090:1 --name dev --env A=b").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    let body = bodies(&world, "create").remove(0);
    assert_eq!(
        (&body["cancel_unavail"], &body["disk"], &body["env"]["A"]),
        (&json!(true), &json!(50), &json!("b"))
    );
    assert!(body.get("price").is_none());

    // The direct port, not the proxy.
    let (_, listed) = world.json("ls").await;
    let machine = &listed["machines"][0];
    assert_eq!((&machine["state"], &machine["spot"]), (&json!("running"), &json!(false)));
    assert_eq!(
        machine["costs_now_per_hour"].as_f64().map(|price| (price * 1e4).round()),
        machine["price_per_hour"].as_f64().map(|price| (price * 1e4).round())
    );
    let inside = world.run("ssh dev -- echo $A").await;
    assert_eq!((inside.code, inside.stdout.as_str()), (0, "b\n"), "{inside:?}");
    let plain = crate::support::finish({
        let mut ssh = world.program("ssh");
        ssh.args(["-F", world.home().join(".ssh/config").to_str().unwrap(), "dev", "nvidia-smi"]);
        ssh
    })
    .await;
    assert!(plain.code == 0 && plain.stdout.contains("5090"), "{plain:?}");
    world.remove("dev").await;
    // One search for `offers` served the list of `provision`, which asked again for its one offer only.
    assert_eq!(world.asked("search"), 2);
    assert_eq!(world.asked("account_keys"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_documents_leave_open_the_life_is_the_same() {
    let world = world_with(|options| options.vast_guesses = gpuprov::sandbox::VastGuesses::flipped()).await;
    let ran = world.run("provision --gpus RTX5090:1 --name dev --spot").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bid_is_sent_paid_and_shown() {
    let world = world().await;
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev --spot").await;
    assert_eq!((code, outcomes(&ran)), (0, vec!["created"]), "{ran}");
    let body = bodies(&world, "create").remove(0);
    assert_eq!((&body["price"], &body["cancel_unavail"]), (&json!(0.184), &json!(true)));
    assert_eq!(ran["machines"][0]["spot"], json!(true));
    // Outbid: it is shown as that, with what its disk costs, and is not started again.
    let id = ran["machines"][0]["id"].as_str().unwrap().to_owned();
    assert!(world.sandbox.vast().outbid(&id));
    let (_, listed) = world.json("ls").await;
    let machine = &listed["machines"][0];
    assert_eq!(machine["state"], json!("preempted"), "{machine}");
    let now = machine["costs_now_per_hour"].as_f64().unwrap();
    assert!(now > 0.0 && now < 0.05, "{machine}");
    assert!(machine["message"].as_str().unwrap().contains("disk goes on costing"), "{machine}");
    assert_eq!(world.asked("set_state"), 0);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bid_that_became_an_on_demand_machine_is_given_back() {
    let world = world().await;
    let (code, ran) = world.json("provision --gpus RTX3060:1 --name dev --spot --region GE,US").await;
    assert_eq!(code, 0, "{ran}");
    // The cheapest host ignores bids, the next one is outbid after four seconds.
    assert_eq!(outcomes(&ran)[0], "differs", "{ran}");
    world.remove("dev").await;
    let gone = world
        .sandbox
        .ledger()
        .iter()
        .filter(|entry| entry.created_by_request.is_some())
        .all(|entry| !entry.alive);
    assert!(gone);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_spot_offer_where_the_bid_reaches_the_price() {
    let world = world().await;
    let (_, list) = world.json("offers --gpus RTX4070:1 --spot").await;
    let offers = list["offers"].as_array().unwrap();
    assert!(!offers.is_empty());
    assert!(
        offers.iter().all(|offer| offer["host"] != json!("machine:50010") && offer["spot"] == json!(true)),
        "{list}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_is_gone_falls_through_in_every_form() {
    for form in [GoneForm::BadRequest, GoneForm::NotFound, GoneForm::Gone, GoneForm::Ok] {
        let world = world().await;
        fault(&world, "create", VastFault::AskGone { form });
        let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev").await;
        assert_eq!((code, outcomes(&ran)), (0, vec!["refused", "created"]), "{form:?}: {ran}");
        assert_eq!(ran["tried"][0]["kind"], json!("no_capacity"), "{ran}");
        assert_eq!(made(&world), 1);
        assert_eq!(world.asked("list_instances"), 0, "a definite refusal is not searched for");
        world.remove("dev").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_with_a_contract_leaves_nothing() {
    for status in [400, 200] {
        let world = world().await;
        fault(&world, "create", VastFault::LeavesStopped { status, error: "bid_too_low".to_owned() });
        let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev --spot").await;
        assert_eq!((code, outcomes(&ran)), (0, vec!["refused", "created"]), "{ran}");
        assert_eq!((made(&world), world.sandbox.alive().len()), (2, 1));
        // It is in the log with what it cost.
        let log: Vec<_> = world.audit();
        let story: Vec<&str> = log.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
        assert_eq!(story, ["created", "refused", "created"]);
        assert!(log[1]["cost"].is_number() && log[1]["created_at"].is_string(), "{}", log[1]);
        world.remove("dev").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_with_a_contract_counts_as_an_attempt() {
    let world = world().await;
    let leaves = VastFault::LeavesStopped { status: 400, error: "bid_too_low".to_owned() };
    world.sandbox.vast().add_fault(Fault::on("create", leaves.into()).always());
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev --spot --attempts 2").await;
    assert_eq!((code, outcomes(&ran)), (3, vec!["refused", "refused"]), "{ran}");
    assert_eq!(made(&world), 2);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_not_known_yet_is_not_taken_for_gone() {
    let world = world().await;
    fault(&world, "create", VastFault::LeavesStopped { status: 400, error: "bid_too_low".to_owned() });
    // A server that is behind knows neither the delete nor the look.
    let behind = || FaultKind::Status {
        code: 404,
        when: When::Before,
        body: Some(json!({"success": false, "error": "no_such_instance", "msg": "not found"}).to_string()),
        content_type: Some("application/json".to_owned()),
        headers: Vec::new(),
    };
    fault(&world, "delete_instance", behind());
    world.sandbox.vast().add_fault(Fault::on("get_instance", behind()).times(1));
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev --spot").await;
    assert_eq!((code, outcomes(&ran)), (0, vec!["refused", "created"]), "{ran}");
    assert_eq!(world.sandbox.alive().len(), 1, "the first one stays");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_re_check_does_not_drop_the_account() {
    let world = world().await;
    let limited = VastFault::Throttled { shape: Throttle::Text, retry_after: Some(2) };
    world.sandbox.vast().add_fault(Fault::on("search", limited.into()).nth(2));
    // The client itself does not wait longer than that for one answer.
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev --cloud-timeout 1500ms").await;
    assert_eq!((code, outcomes(&ran)), (0, vec!["created"]), "{ran}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_found_in_the_list() {
    let world = world().await;
    fault(&world, "create", FaultKind::status_after(502));
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!((code, outcomes(&ran)), (0, vec!["created"]), "{ran}");
    assert_eq!((made(&world), world.asked("create")), (1, 1));
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_lies_keeps_the_record() {
    let world = world().await;
    fault(&world, "create", FaultKind::status_after(502));
    let lie = VastFault::Failure {
        error: "deprecated_endpoint".to_owned(),
        msg: "use v1".to_owned(),
        when: When::Before,
    };
    world.sandbox.vast().add_fault(Fault::on("list_instances", lie.into()).always());
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!((code, ran["error"]["kind"].as_str()), (6, Some("left_running")), "{ran}");
    let (_, listed) = world.json("ls").await;
    assert_eq!(listed["failed"][0]["account"], json!("vast/default"), "{listed}");
    world.sandbox.clear_faults();
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_and_keys_stop_the_account() {
    let world = world().await;
    let failure = |error: &str| VastFault::Failure {
        error: error.to_owned(),
        msg: "no".to_owned(),
        when: When::Before,
    };
    fault(&world, "create", failure("insufficient_credit"));
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!((code, ran["tried"][0]["kind"].as_str()), (3, Some("balance")), "{ran}");
    assert_eq!(world.asked("create"), 1);
    let mut world = world;
    world.set("VAST_API_KEY", "wrong-key-0123456789");
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!((code, ran["error"]["kind"].as_str()), (4, Some("auth")), "{ran}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_are_waited_out_on_every_call() {
    let world = world().await;
    for (operation, shape, retry_after) in [
        ("search", Throttle::Text, None),
        ("create", Throttle::Detail, None),
        ("attach_key", Throttle::Slug, Some(0)),
        ("get_instance", Throttle::Text, None),
        ("delete_instance", Throttle::Text, Some(0)),
    ] {
        fault(&world, operation, VastFault::Throttled { shape, retry_after });
    }
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!((code, outcomes(&ran)), (0, vec!["created"]), "{ran}");
    assert_eq!(made(&world), 1);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_that_did_nothing_is_not_believed() {
    let world = world().await;
    world.run("provision --gpus RTX5090:1 --name dev").await;
    fault(&world, "delete_instance", VastFault::NoEffect);
    world.remove("dev").await;
    assert!(world.asked("delete_instance") >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_that_nobody_confirms_ends_in_time() {
    let world = world().await;
    world.run("provision --gpus RTX5090:1 --name dev").await;
    world.sandbox.vast().add_fault(Fault::on("get_instance", FaultKind::status(500)).always());
    let begun = std::time::Instant::now();
    let ran = world.run("rm dev --yes --cloud-timeout 1s").await;
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    world.sandbox.clear_faults();
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_under_a_rotated_key_is_still_ours() {
    let mut world = world().await;
    let ran = world.run("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let old = world.sandbox.vast().key().to_owned();
    let fresh = world.sandbox.vast().rotate_key(&old).unwrap();
    world.set("VAST_API_KEY", fresh);
    // Removed in the web console meanwhile: the user's id proves that the list is that of the same account.
    let id = world.only().id;
    assert!(world.sandbox.vast().remove_instance(&id));
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_users_key_proves_nothing() {
    let mut world = world().await;
    let ran = world.run("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let mine = world.sandbox.vast().key().to_owned();
    world.set("VAST_API_KEY", world.sandbox.vast().add_account());
    let ran = world.run("rm dev --yes").await;
    assert_eq!(ran.code, 6, "{ran:?}");
    assert_eq!(world.sandbox.alive().len(), 1);
    world.set("VAST_API_KEY", mine);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_narrowed_again_on_this_side() {
    let world = world().await;
    let (_, list) = world.json("offers --gpus RTX3080:1").await;
    let hosts: Vec<&str> =
        list["offers"].as_array().unwrap().iter().map(|offer| offer["host"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["machine:52000"], "{list}");
    let leak = |field: &str| VastFault::LeakyFilter { field: field.to_owned() };
    for field in
        ["reliability", "verified", "external", "duration", "direct_port_count", "cuda_max_good", "gpu_name"]
    {
        let _ = std::fs::remove_dir_all(world.home().join(".cache/gpuprov"));
        fault(&world, "search", leak(field));
        let (_, leaky) = world.json("offers --gpus RTX3080:1").await;
        assert_eq!(leaky["offers"], list["offers"], "{field}");
    }
    let (_, list) = world.json("offers --gpus L40:1").await;
    assert!(
        list["offers"].as_array().unwrap().iter().all(|offer| offer["gpu_raw"] == json!("L40")),
        "{list}"
    );
    let (_, list) = world.json("offers --gpus H200:1").await;
    assert!(
        list["offers"].as_array().unwrap().iter().all(|offer| offer["gpu_raw"] != json!("GH200 SXM")),
        "{list}"
    );
    let (_, list) = world.json("offers --gpus A100:1").await;
    assert!(list["offers"].as_array().unwrap().iter().all(|offer| offer["vram_gb"] == json!(40.0)), "{list}");
    let (_, list) = world.json("offers --gpus RTX4090:1 --limit 200").await;
    assert!(list["total"].as_u64().unwrap() > 64, "{}", list["total"]);
    assert!(list["offers"].as_array().unwrap().iter().all(|offer| offer["gpu"] == json!("RTX4090")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_is_in_the_price_whatever_the_server_did() {
    let world = world().await;
    let (_, small) = world.json("offers --gpus A5000:1 --disk 10").await;
    let (_, large) = world.json("offers --gpus A5000:1 --disk 500").await;
    assert_ne!(
        small["offers"][0]["host"], large["offers"][0]["host"],
        "the dearer disk turns the order round"
    );
    let _ = std::fs::remove_dir_all(world.home().join(".cache/gpuprov"));
    fault(&world, "search", VastFault::StorageIgnored);
    let (_, ignored) = world.json("offers --gpus A5000:1 --disk 500").await;
    assert_eq!(ignored["offers"], large["offers"]);
    assert!(ignored["warnings"].to_string().contains("parts"), "{}", ignored["warnings"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_and_pins() {
    let world = world().await;
    for (words, hosts) in [
        (vec!["--zone", "Austria, AT"], 13),
        (vec!["--zone", "austria,  at"], 13),
        (vec!["--zone", "machine:54101"], 1),
        (vec!["--region", "europe", "--zone", "machine:54101"], 1),
        (vec!["--region", "asia"], 0),
    ] {
        let all = [&["offers", "--gpus", "A6000:1", "--json"][..], &words].concat();
        let ran = world.words(&all).await;
        let list: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, list["total"].as_u64()), (0, Some(hosts)), "{words:?}: {list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_vast_cannot_do_is_refused_before_any_request() {
    let world = world().await;
    for words in ["--gpus RTX5090 --port 80", "--gpus RTX5090 --k8s", "--cpu-only"] {
        let ran = world.run(&format!("provision {words} --name dev")).await;
        assert_eq!(ran.code, 2, "{words}: {ran:?}");
    }
    assert!(world.sandbox.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_and_a_kept_id() {
    let world = world().await;
    let (code, dry) =
        world.json("provision --gpus RTX5090:1 --name dev --dry-run --env A=hidden-value").await;
    assert_eq!(code, 0, "{dry}");
    assert!(dry["request"]["url"].as_str().unwrap().contains("/api/v0/asks/"), "{dry}");
    assert!(!dry.to_string().contains("hidden-value"));
    assert_eq!(world.asked("create"), 0);
    let id = dry["offers"][0]["id"].as_str().unwrap();
    let (code, ran) = world.json(&format!("provision --offer {id} --name dev")).await;
    assert_eq!(code, 0, "{ran}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_its_own_pace_no_rate_limit_is_ever_met() {
    let world = world_with(|options| options.rate_limits = true).await;
    // Without the quicker pace that the other tests set.
    world.write(".config/gpuprov/config.toml", "[wait]\ngrace = \"1s\"\n");
    let ran = world.run("provision --gpus RTX5090:1 --name dev --spot=any").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let all = world.sandbox.requests();
    let times: Vec<_> =
        all.iter().map(|one| format!("{} {} {}", one.at, one.operation, one.status)).collect();
    assert!(all.iter().all(|one| one.status != 429), "{times:#?}");
    // Another process knows nothing of the requests just made: it is refused once, and waits.
    world.remove("dev").await;
}
