//! Provisioning: names, what is on disk when, marks, keys, and going down the list.

use gpuprov::sandbox::{Fault, FaultKind, Junk, When};
use serde_json::{Value, json};

use crate::support::machines::outcomes;
use crate::support::{World, ended, until};

const CAPACITY: &str = "There are no longer any instances available with the requested specifications. Please refresh and try again.";

#[tokio::test(flavor = "multi_thread")]
async fn names_are_made_up_and_numbered() {
    let world = World::new().await;
    for name in ["rtx4090-1", "rtx4090-2"] {
        let made = world.run("provision --gpus RTX4090").await;
        assert_eq!((made.code, made.stdout.trim()), (0, name), "{made:?}");
    }
    assert_eq!(world.run("rm rtx4090-1 --yes").await.code, 0);
    let made = world.run("provision --gpus RTX4090").await;
    assert_eq!(made.stdout.trim(), "rtx4090-1", "{made:?}");
    let all = world.run("rm --all --yes").await;
    assert_eq!(all.code, 0, "{all:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_get_names_of_their_own() {
    let world = World::new().await;
    let running: Vec<_> = (0..8).map(|_| world.start("provision --gpus RTX4090")).collect();
    let mut names = Vec::new();
    for child in running {
        let ran = ended(child).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        names.push(ran.stdout.trim().to_owned());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 8, "{names:?}");
    assert_eq!(world.sandbox.alive().len(), 8);
    let all = world.run("rm --all --yes").await;
    assert_eq!((all.code, all.stdout.lines().count()), (0, 8), "{all:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_or_impossible_name_is_refused_before_anything_costs() {
    let world = World::new().await;
    world.write(".ssh/config", "Host other dev\n  HostName 203.0.113.9\n");
    world.write(".ssh/gpuprov/somebody.conf", "Host box\n  HostName 203.0.113.9\n");
    for (name, words) in [("dev", "`Host dev`"), ("box", "`Host box`")] {
        let ran = world.run(&format!("provision --gpus RTX4090 --name {name}")).await;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    let long = "a".repeat(41);
    for name in ["a", "Dev", "1dev", "dev-", "de_v", "dev.x", long.as_str()] {
        let ran = world.words(&["provision", "--gpus", "RTX4090", "--name", name]).await;
        assert_eq!(ran.code, 2, "{name}: {ran:?}");
    }
    assert_eq!(world.creates(), 0);

    world.fault("create_pod", FaultKind::Delay { ms: 1500 });
    let first = world.start("provision --gpus RTX4090 --name one");
    until("a create", || world.creates() == 1).await;
    let (code, second) = world.json("provision --gpus RTX4090 --name one").await;
    assert_eq!((code, second["error"]["kind"].as_str()), (2, Some("name_taken")), "{second}");
    assert_eq!(ended(first).await.code, 0);
    let (code, third) = world.json("provision --gpus RTX4090 --name one").await;
    assert_eq!((code, third["error"]["kind"].as_str()), (2, Some("name_taken")), "{third}");
    assert_eq!(world.creates(), 1);
    world.remove("one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_is_on_disk_before_the_create_and_the_id_before_the_first_wait() {
    let world = World::new().await;
    world.fault("create_pod", FaultKind::Delay { ms: 1000 });
    world.sandbox.add_fault(Fault::on("get_pod", FaultKind::Delay { ms: 300 }).always());
    let running = world.start("provision --gpus RTX4090 --name dev");
    until("a create", || world.creates() == 1).await;
    let record = world.record("dev").unwrap();
    let attempt = &record["attempts"][0];
    assert_eq!((record["version"].as_u64(), record["state"].as_str()), (Some(1), Some("creating")));
    assert_eq!(attempt["account"], "runpod/default");
    assert_eq!(attempt["identity"]["endpoint"], json!(world.sandbox.runpod_endpoint()));
    assert_eq!(attempt["offer"]["gpu"], "RTX4090");
    assert_eq!(attempt["handle"], Value::Null);
    let claim = attempt["claim"].as_str().unwrap().to_owned();
    until("a first look", || world.asked("get_pod") > 0).await;
    let record = world.record("dev").unwrap();
    assert_eq!(record["attempts"][0]["handle"]["id"], json!(world.only().id));
    assert!(world.only().env["GPUPROV_MARK"].contains(&claim));
    let made = ended(running).await;
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.record("dev").unwrap()["state"], "running");
    let everything = std::fs::read_to_string(world.state().join("machines/dev.json")).unwrap();
    assert!(!everything.contains(world.sandbox.runpod_key()));
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_and_keys_are_as_promised() {
    let mut world = World::new().await;
    world.set("GPUPROV_INSTALLATION", "team-ci");
    world.config("[defaults]\nowner = \"ana\"\n");
    let before = jiff::Timestamp::now().as_second();
    let made = world.run("provision --gpus RTX4090 --name dev --ttl 1h").await;
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.stderr.contains("1 other key, registered on the RunPod account"), "{}", made.stderr);
    assert!(made.stderr.contains("rm --expired"), "{}", made.stderr);
    let pod = world.only();
    let mark: Vec<&str> = pod.env["GPUPROV_MARK"].split(':').collect();
    let [version, installation, account, name, claim, expires, owner] = mark[..] else { panic!("{mark:?}") };
    assert_eq!((version, installation, account, name, owner), ("v1", "team-ci", "default", "dev", "ana"));
    assert!(claim.len() == 16 && claim.bytes().all(|b| b.is_ascii_hexdigit()));
    let end: i64 = expires.parse().unwrap();
    assert!((before + 3600..before + 3700).contains(&end), "{expires}");
    assert_eq!(pod.name, format!("gpuprov-dev-{}", &claim[..6]));
    let ours = std::fs::read_to_string(world.home().join(".ssh/gpuprov/id_ed25519.pub")).unwrap();
    let keys: Vec<&str> = pod.env["PUBLIC_KEY"].lines().collect();
    assert_eq!((keys.len(), keys[0]), (2, ours.trim()));
    assert_eq!(pod.env.len(), 2);
    let (_, list) = world.json("ls").await;
    let machine = &list["machines"][0];
    assert_eq!((&machine["owner"], &machine["installation"]), (&json!("ana"), &json!("team-ci")));
    assert!(machine["expires_at"].is_string() && machine["claim"] == claim, "{machine}");
    world.remove("dev").await;
    let audit = world.audit();
    let story: Vec<_> =
        audit.iter().map(|line| (&line["action"], &line["outcome"], &line["owner"])).collect();
    assert_eq!(
        story,
        [
            (&json!("create"), &json!("created"), &json!("ana")),
            (&json!("remove"), &json!("removed"), &json!("ana")),
        ]
    );
    assert!(audit[1]["cost"].is_number() && audit[1]["created_at"].is_string(), "{audit:?}");
    assert!(audit[0]["price_per_hour"].is_number() && audit[0]["gpu_count"] == 1, "{audit:?}");

    world.config("[runpod]\naccount_keys = false\n");
    let asked = world.asked("ssh_keys");
    world.provision("dev").await;
    assert_eq!(world.only().env["PUBLIC_KEY"], ours.trim());
    assert_eq!(world.asked("ssh_keys"), asked);
    assert!(world.sandbox.requests().iter().all(|request| request.method != "PUT"));
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_machine_is_kept() {
    let world = World::new().await;
    assert_eq!(world.run("provision --gpus RTX4090 --name dev --ttl 1s").await.code, 0);
    assert_eq!(world.run("provision --gpus RTX4090 --name other").await.code, 0);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let ran = world.run("rm --expired --yes").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    world.remove("other").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gone_offer_and_a_full_one_lead_to_the_next() {
    let world = World::new().await;
    world.fault("catalog_one", FaultKind::StaleOffer);
    world.fault("create_pod", FaultKind::Refuse { detail: CAPACITY.to_owned() });
    let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, outcomes(&made)), (0, vec!["gone", "refused", "created"]), "{made}");
    for (at, kind) in ["no_capacity", "no_capacity", "note"].into_iter().enumerate() {
        assert_eq!(made["tried"][at]["kind"], kind);
    }
    assert!(made["tried"][1]["message"].as_str().unwrap().contains("no longer any instances"));
    assert_eq!(made["error"], Value::Null);
    assert_eq!(made["machines"][0]["state"], "running");
    assert_eq!(world.creates(), 2);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_of_the_price_is_put_back_in_order_once() {
    let world = World::new().await;
    world.fault("catalog_one", FaultKind::PriceFactor { factor: 1.5 });
    let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, outcomes(&made)), (0, vec!["created"]), "{made}");
    assert!((made["machines"][0]["price_per_hour"].as_f64().unwrap() - 0.3468).abs() < 0.001, "{made}");
    world.remove("dev").await;

    world.sandbox.add_fault(Fault::on("catalog_one", FaultKind::PriceFactor { factor: 1.5 }).always());
    let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!(code, 0, "{made}");
    assert!((made["machines"][0]["price_per_hour"].as_f64().unwrap() - 0.5168).abs() < 0.001, "{made}");
    world.remove("dev").await;

    let before = world.creates();
    let (code, made) = world.json("provision --gpus RTX4090 --name dev --max-price 0.4").await;
    assert_eq!((code, made["error"]["kind"].as_str()), (3, Some("too_dear")), "{made}");
    assert!(outcomes(&made).iter().all(|outcome| *outcome == "dearer"), "{made}");
    world.sandbox.clear_faults();
    let (_, offers) = world.json("offers --gpus RTX4090").await;
    let id = offers["offers"][0]["id"].as_str().unwrap().to_owned();
    world.sandbox.add_fault(Fault::on("catalog_one", FaultKind::PriceFactor { factor: 1.5 }).always());
    let dearer = world.words(&["provision", "--offer", &id, "--name", "dev"]).await;
    assert_eq!(dearer.code, 3, "{dearer:?}");
    assert_eq!(world.creates(), before);
    let allowed = world.words(&["provision", "--offer", &id, "--name", "dev", "--max-price", "1"]).await;
    assert_eq!(allowed.code, 0, "{allowed:?}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_that_nobody_knows_is_told_at_the_end() {
    let world = World::new().await;
    let ran = world.run("provision --gpus RTX3090 --name dev").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(world.creates(), 2);
    let told = ran.stderr.rfind("placement policy 7f3a").unwrap();
    assert!(told > ran.stderr.rfind("paid by").unwrap(), "{}", ran.stderr);
    world.remove("dev").await;
    let (code, all) = world.json("provision --gpus RTX3090 --name dev --max-price 0.3").await;
    assert_eq!((code, all["error"]["kind"].as_str()), (1, Some("rejected")), "{all}");
    assert!(all["tried"][0]["message"].as_str().unwrap().contains("placement policy 7f3a"));
    assert!(all["error"]["message"].as_str().unwrap().contains("placement policy 7f3a"));
    world.assert_empty();
    assert_eq!(world.record("dev"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_their_codes_and_are_not_repeated_in_vain() {
    let world = World::new().await;
    for (status, code, kind) in [(402, 3, "balance"), (403, 4, "forbidden"), (401, 4, "auth")] {
        let before = world.creates();
        world.sandbox.add_fault(Fault::on("create_pod", FaultKind::status(status)).always());
        let (exit, made) = world.json("provision --gpus RTX4090 --secure --name dev").await;
        assert_eq!((exit, made["error"]["kind"].as_str()), (code, Some(kind)), "{made}");
        assert_eq!(world.creates(), before + 1, "{made}");
        world.sandbox.clear_faults();
    }
    let before = world.creates();
    let image = world.run("provision --gpus RTX4090 --name dev --image me/does-not-exist:1").await;
    assert_eq!((image.code, world.creates()), (1, before + 1), "{image:?}");
    assert!(image.stderr.contains("me/does-not-exist:1"), "{}", image.stderr);
    world.assert_empty();
    assert_eq!(world.record("dev"), None);
}

/// The create took effect, and its answer says nothing or something else.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_without_an_answer_is_adopted_and_never_repeated() {
    let faults = [
        FaultKind::status_after(502),
        FaultKind::status_after(500),
        FaultKind::Reset { when: When::After },
        FaultKind::Hang { when: When::After, ms: 500 },
        FaultKind::CutBody,
        FaultKind::Garbage { body: Junk::Html },
        FaultKind::Garbage { body: Junk::WrongType },
        FaultKind::Garbage { body: Junk::Torn },
        FaultKind::AppearLater { ms: 400 },
    ];
    let world = World::new().await;
    for fault in faults {
        let before = world.made().len();
        world.fault("create_pod", fault.clone());
        let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
        assert_eq!((code, outcomes(&made)), (0, vec!["created"]), "{fault:?}: {made}");
        assert_eq!(world.made().len(), before + 1, "{fault:?}");
        assert_eq!(made["machines"][0]["id"], json!(world.only().id));
        world.remove("dev").await;
    }
}

/// The create may have taken effect and did not: the next offer is tried only after the grace.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_had_no_effect_is_given_up_for_the_next() {
    let world = World::new().await;
    world.fault("create_pod", FaultKind::status(503));
    world.fault("create_pod", FaultKind::Reset { when: When::Before });
    let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, outcomes(&made)), (0, vec!["unknown", "unknown", "created"]), "{made}");
    assert_eq!(world.made().len(), 1);
    world.remove("dev").await;

    world.sandbox.add_fault(Fault::on("create_pod", FaultKind::status(503)).always());
    let before = world.creates();
    let (code, made) = world.json("provision --gpus RTX4090 --name dev --attempts 2").await;
    assert_eq!((code, made["error"]["kind"].as_str()), (1, Some("unavailable")), "{made}");
    assert_eq!(world.creates(), before + 2);
    world.assert_empty();
    assert_eq!(world.record("dev"), None);
}

/// A machine that turns up after its create was given up.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_machine_is_shown_and_removed() {
    let world = World::new().await;
    world.fault("create_pod", FaultKind::AppearLater { ms: 4500 });
    let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, outcomes(&made)), (0, vec!["unknown", "created"]), "{made}");
    assert_eq!(world.sandbox.alive().len(), 2);
    let mut shown = Value::Null;
    for _ in 0..50 {
        shown = world.json("ls").await.1;
        if shown["machines"].as_array().unwrap().len() == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let late = shown["machines"].as_array().unwrap().iter().find(|one| one["recorded"] == false).unwrap();
    assert!(late["message"].as_str().unwrap().contains("turned up"), "{late}");
    let ran = world.run("rm dev --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_cloud_stays_silent_is_kept() {
    let world = World::new().await;
    world.fault("create_pod", FaultKind::Reset { when: When::After });
    world.sandbox.add_fault(Fault::on("list_pods", FaultKind::status(503)).always());
    let (code, made) = world.json("provision --gpus RTX4090 --name dev --cloud-timeout 1s").await;
    assert_eq!((code, made["error"]["kind"].as_str()), (6, Some("left_running")), "{made}");
    assert_eq!(made["machines"][0]["name"], "dev");
    assert_eq!(world.record("dev").unwrap()["state"], "unknown");
    assert!(made["error"]["message"].as_str().unwrap().contains("dev"), "{made}");
    world.sandbox.clear_faults();
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_waits_for_an_offer_with_and_without_a_name() {
    let world = World::new().await;
    world.run("offers --gpus RTX4090").await;
    let round = u32::try_from(world.asked("catalog")).unwrap();
    for (name, words) in [("rtx4090-1", ""), ("dev", " --name dev")] {
        world.sandbox.add_fault(Fault::on("catalog", FaultKind::StaleOffer).times(round));
        let made = world.run(&format!("provision --gpus RTX4090 --queue 1s{words}")).await;
        assert_eq!((made.code, made.stdout.trim()), (0, name), "{made:?}");
        assert!(made.stderr.contains("asking again"), "{}", made.stderr);
    }
    // Nothing until the end, and stopped before it.
    let (code, none) = world.json("provision --gpus B200 --queue 300ms").await;
    assert_eq!((code, none["error"]["kind"].as_str()), (3, Some("nothing_offered")), "{none}");
    let before = world.asked("catalog");
    let waiting = world.start("provision --gpus B200 --queue 1h");
    until("a list", || world.asked("catalog") >= before + 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    crate::interrupt::signal(&waiting, nix::sys::signal::Signal::SIGTERM);
    assert_eq!(ended(waiting).await.code, 130);
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_one_name_at_once_make_one_machine() {
    let world = World::new().await;
    let words = "provision --gpus RTX4090 --name dev";
    let (one, two) = (world.start(words), world.start(words));
    let mut codes = [ended(one).await.code, ended(two).await.code];
    codes.sort_unstable();
    assert_eq!((codes, world.made().len()), ([0, 2], 1));
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_on_the_create_is_waited_out() {
    let world = World::new().await;
    world.fault("create_pod", FaultKind::TooMany { retry_after: gpuprov::sandbox::RetryAfter::Seconds(1) });
    let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, outcomes(&made).last()), (0, Some(&"created")), "{made}");
    assert_eq!(world.made().len(), 1);
    world.remove("dev").await;
}
