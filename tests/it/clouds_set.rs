//! `gpuprov clouds`: connecting, listing, switching, checking and forgetting accounts, from an empty HOME.

use gpuprov::sandbox::{Fault, FaultKind};
use serde_json::{Value, json};

use crate::support::{Ran, World, finish_with};

/// A world with endpoints and no credentials at all.
async fn bare() -> World {
    let mut world = World::new().await;
    world.with_vast();
    world.with_verda();
    world.with_nebius();
    world.set("GPUPROV_GCP_ENDPOINT", world.sandbox.gcp().endpoint());
    for variable in [
        "RUNPOD_API_KEY",
        "VAST_API_KEY",
        "VERDA_CLIENT_ID",
        "VERDA_CLIENT_SECRET",
        "NEBIUS_IAM_TOKEN",
        "NEBIUS_TENANT_ID",
    ] {
        world.unset(variable);
    }
    world.config("");
    world
}

/// One account of a document, by its id.
fn account<'a>(document: &'a Value, id: &str) -> &'a Value {
    let accounts = document["accounts"].as_array().unwrap();
    accounts.iter().find(|one| one["account"] == id).unwrap_or_else(|| panic!("no {id}: {document:#}"))
}

/// Whose keys were sent since the request with this number, as `cloud account`. Requests without a key (Verda's for a token)
/// are left out.
fn asked_since(world: &World, from: usize) -> Vec<String> {
    let mut asked: Vec<String> = world
        .sandbox
        .requests()
        .split_off(from)
        .into_iter()
        .filter_map(|request| Some(format!("{} {}", request.cloud, request.account?)))
        .collect();
    asked.sort();
    asked.dedup();
    asked
}

async fn with_input(world: &World, words: &str, input: &str) -> Ran {
    finish_with(world.gpuprov(words.split_whitespace()), input.as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn from_an_empty_home_to_an_empty_home() {
    let mut world = bare().await;
    let (code, none) = world.json("clouds").await;
    assert_eq!((code, &none["accounts"], &none["error"]), (0, &json!([]), &Value::Null));
    assert!(!world.state().exists() && !world.home().join(".local").exists(), "listing made something");
    let ran = world.run("clouds set vast").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("--api-key"), "{ran:?}");

    // From variables, which are gone again afterwards.
    let lab = world.sandbox.vast().add_account();
    let secret = world.sandbox.verda().client_secret().to_owned();
    let (vast, runpod) = (world.sandbox.vast().key().to_owned(), world.sandbox.runpod_key().to_owned());
    let client_id = world.sandbox.verda().client_id().to_owned();
    let (token, tenant) =
        (world.sandbox.nebius().token().to_owned(), world.sandbox.nebius().tenant().to_owned());
    let key_file = world.home().join("key.json").display().to_string();
    world.write("key.json", &world.sandbox.gcp().key_file());
    for (words, variables) in [
        ("clouds set vast", vec![("VAST_API_KEY", &vast)]),
        ("clouds set vast --name lab-b", vec![("VAST_API_KEY", &lab)]),
        ("clouds set runpod", vec![("RUNPOD_API_KEY", &runpod)]),
        ("clouds set verda", vec![("VERDA_CLIENT_ID", &client_id), ("VERDA_CLIENT_SECRET", &secret)]),
        ("clouds set nebius", vec![("NEBIUS_TENANT_ID", &tenant), ("NEBIUS_IAM_TOKEN", &token)]),
        ("clouds set gcp", vec![("GOOGLE_APPLICATION_CREDENTIALS", &key_file)]),
    ] {
        for (name, value) in &variables {
            world.set(name, value.as_str());
        }
        let ran = world.run(words).await;
        assert_eq!(ran.code, 0, "{words}: {ran:?}");
        let (name, value) = variables.last().unwrap();
        let told = format!("{ran:?}");
        assert!(
            ran.stderr.contains(name) && (!told.contains(value.as_str()) || **value == key_file),
            "{ran:?}"
        );
        assert!(!told.contains(world.sandbox.gcp().secret()), "{ran:?}");
        assert!(ran.stderr.contains("checked"), "{ran:?}");
        variables.iter().for_each(|(name, _)| world.unset(name));
    }
    std::fs::remove_file(&key_file).unwrap();
    let before = world.requests();
    let (code, list) = world.json("clouds").await;
    assert_eq!((code, asked_since(&world, before)), (0, Vec::<String>::new()), "listing asks nobody");
    let ids: Vec<&str> =
        list["accounts"].as_array().unwrap().iter().map(|one| one["account"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        ["gcp/default", "nebius/default", "runpod/default", "vast/default", "vast/lab-b", "verda/default"]
    );
    for id in &ids {
        let one = account(&list, id);
        let flags = (one["gpu"].as_bool(), one["cpu"].as_bool(), one["used"].as_bool());
        assert_eq!(flags, (Some(true), Some(true), Some(true)), "{one}");
        assert_eq!((&one["machines"], &one["ok"], &one["problems"]), (&json!(0), &Value::Null, &json!([])));
        assert!(!one["hint"].as_str().unwrap().is_empty(), "{one}");
    }
    let shown = world.run("clouds list").await;
    assert!(shown.stdout.starts_with("ACCOUNT") && shown.stdout.contains("vast/lab-b"), "{shown:?}");
    let (code, checked) = world.json("clouds check").await;
    assert_eq!(code, 0, "{checked:#}");
    assert!(checked["accounts"].as_array().unwrap().iter().all(|one| one["ok"] == true), "{checked:#}");
    assert!(account(&checked, "vast/lab-b")["identity"].is_string(), "{checked:#}");
    assert!(account(&checked, "runpod/default")["identity"].is_null());

    // Only who is on is asked.
    let off = world.run("clouds off vast/default").await;
    assert_eq!((off.code, off.stdout.as_str()), (0, "vast/default\n"), "{off:?}");
    for words in ["clouds off runpod --gpu", "clouds off gcp --gpu", "clouds off nebius"] {
        assert_eq!(world.run(words).await.code, 0, "{words}");
    }
    let before = world.requests();
    let (code, offers) = world.json("offers --gpus RTX5090:1").await;
    let lab_label = world.sandbox.vast().account(&lab).unwrap();
    let verda_label = world.sandbox.verda().account(&client_id).unwrap();
    assert_eq!(code, 0, "{offers:#}");
    let expected = [format!("vast {lab_label}"), format!("verda {verda_label}")];
    assert_eq!(asked_since(&world, before), expected);
    let skipped: Vec<(&str, &str)> = offers["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["account"].as_str().unwrap(), one["reason"].as_str().unwrap()))
        .collect();
    let off = ["gcp/default", "nebius/default", "runpod/default", "vast/default"];
    assert_eq!(skipped, off.map(|account| (account, "switched_off")));
    for words in ["clouds on runpod", "clouds on vast", "clouds on nebius", "clouds on gcp"] {
        assert_eq!(world.run(words).await.code, 0, "{words}");
    }
    let (_, offers) = world.json("offers --gpus RTX5090:1").await;
    assert_eq!(offers["skipped"], json!([]));

    let ran = world.run("provision --gpus RTX5090:1 --cloud vast/lab-b --name dev").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(world.only().account, lab_label);
    let (_, list) = world.json("clouds").await;
    assert_eq!(account(&list, "vast/lab-b")["machines"], 1);
    let refused = world.json("clouds rm vast/lab-b").await;
    assert_eq!((refused.0, &refused.1["error"]["kind"]), (2, &json!("refused")), "{}", refused.1);
    assert!(refused.1["error"]["message"].as_str().unwrap().contains("dev"), "{}", refused.1);
    // Also where there is no record: the cloud's own list counts.
    let record = world.state().join("machines/dev.json");
    let kept = std::fs::read(&record).unwrap();
    std::fs::remove_file(&record).unwrap();
    let refused = world.run("clouds rm vast/lab-b").await;
    assert!(refused.code == 2 && refused.stderr.contains("dev"), "{refused:?}");
    std::fs::write(&record, kept).unwrap();
    world.remove("dev").await;
    for id in ids {
        let ran = world.run(&format!("clouds rm {id}")).await;
        assert_eq!((ran.code, ran.stdout), (0, format!("{id}\n")), "{}", ran.stderr);
    }
    assert_eq!(world.json("clouds").await.1["accounts"], json!([]));
    assert_eq!(world.run("offers --gpus RTX5090:1").await.code, 4);
    assert_eq!(world.run("clouds rm vast/lab-b").await.code, 4);

    // Every change is in the log, beside the machine's.
    let log = world.audit();
    let told: Vec<(&str, &str, &str)> = log
        .iter()
        .filter(|line| line["action"].as_str().unwrap().starts_with("clouds "))
        .map(|line| {
            let word = |name: &str| line[name].as_str().unwrap();
            (word("action"), word("account"), word("outcome"))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("clouds set", "vast/default", "connected"),
            ("clouds set", "vast/lab-b", "connected"),
            ("clouds set", "runpod/default", "connected"),
            ("clouds set", "verda/default", "connected"),
            ("clouds set", "nebius/default", "connected"),
            ("clouds set", "gcp/default", "connected"),
            ("clouds off", "vast/default", "gpu and cpu"),
            ("clouds off", "runpod/default", "gpu"),
            ("clouds off", "gcp/default", "gpu"),
            ("clouds off", "nebius/default", "gpu and cpu"),
            ("clouds on", "runpod/default", "gpu"),
            ("clouds on", "vast/default", "gpu and cpu"),
            ("clouds on", "nebius/default", "gpu and cpu"),
            ("clouds on", "gcp/default", "gpu"),
            ("clouds rm", "gcp/default", "removed"),
            ("clouds rm", "nebius/default", "removed"),
            ("clouds rm", "runpod/default", "removed"),
            ("clouds rm", "vast/default", "removed"),
            ("clouds rm", "vast/lab-b", "removed"),
            ("clouds rm", "verda/default", "removed"),
        ]
    );
    assert!(log.iter().any(|line| line["name"] == "dev" && line["action"] == "remove"));
    world.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_comes_from_stdin_a_flag_or_the_usual_places() {
    let mut world = bare().await;
    let key = world.sandbox.runpod_key().to_owned();
    let ran = with_input(&world, "clouds set runpod --name a --api-key -", &format!(" {key}\n")).await;
    assert!(
        ran.code == 0 && !ran.stderr.contains("warning") && ran.stderr.contains("standard input"),
        "{ran:?}"
    );
    let ran = world.args(["clouds", "set", "runpod", "--name", "b", "--api-key", &key]).await;
    assert!(ran.code == 0 && ran.stderr.contains("command line"), "{ran:?}");
    // The same key twice is one account there, and both know it.
    assert!(ran.stderr.contains("runpod/a"), "{ran:?}");
    let (id, secret) = world.sandbox.verda().add_account();
    let ran =
        with_input(&world, &format!("clouds set verda/lab --client-id {id} --client-secret -"), &secret)
            .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    world.write(".vast_api_key", world.sandbox.vast().key());
    let (code, found) = world.json("clouds set vast --name own").await;
    assert_eq!(code, 0, "{found:#}");
    assert!(account(&found, "vast/own")["identity"].is_string(), "{found:#}");
    for (words, code) in [
        ("clouds set runpod --client-id x", 2),
        ("clouds set verda --client-id x", 2),
        ("clouds set runpod --name Upper", 2),
        ("clouds set runpod/a --name b", 2),
        ("clouds set aws", 2),
        ("clouds set runpod --api-key", 2),
        ("clouds set runpod --name x --endpoint http://203.0.113.1 --api-key k", 2),
        ("clouds on vast/nobody", 4),
        ("clouds rm vast/nobody", 4),
    ] {
        let ran = world.run(words).await;
        assert_eq!(ran.code, code, "{words}: {ran:?}");
    }
    let empty = with_input(&world, "clouds set runpod --name x --api-key -", "\n").await;
    assert_eq!(empty.code, 2, "{empty:?}");
    // What comes from a variable is taken away there.
    world.set("RUNPOD_API_KEY", key);
    let refused = world.run("clouds rm runpod").await;
    assert!(refused.code == 2 && refused.stderr.contains("RUNPOD_API_KEY"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_refuses_is_not_kept() {
    let world = bare().await;
    let wrong = "wrong-K3y-0123456789";
    let ran = with_input(&world, "clouds set vast --api-key - --json", wrong).await;
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &document["error"]["kind"]), (4, &json!("auth")), "{document:#}");
    assert!(document["error"]["message"].as_str().unwrap().contains("nothing was kept"), "{document:#}");
    assert_eq!(world.json("clouds").await.1["accounts"], json!([]));
    let ran = with_input(&world, "clouds set vast --api-key - --no-check", wrong).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let (code, checked) = world.json("clouds check").await;
    let vast = account(&checked, "vast/default");
    assert_eq!(
        (code, &vast["ok"], &vast["problems"][0]["kind"]),
        (4, &json!(false), &json!("auth")),
        "{checked:#}"
    );
    assert!(vast["problems"][0]["fix"].as_str().unwrap().contains("clouds set vast"), "{checked:#}");
    // A dead key is no reason to keep the account for ever.
    assert_eq!(world.run("clouds rm vast").await.code, 0);
    // An account without money works, and says so.
    let key = world.sandbox.vast().key().to_owned();
    world.sandbox.vast().set_credit(&key, 0.0);
    assert_eq!(with_input(&world, "clouds set vast --api-key -", &key).await.code, 0);
    let (code, checked) = world.json("clouds check vast").await;
    let vast = account(&checked, "vast/default");
    assert_eq!(
        (code, &vast["ok"], &vast["problems"][0]["kind"]),
        (1, &json!(false), &json!("balance")),
        "{checked:#}"
    );
    world.sandbox.vast().set_credit(&key, 25.0);
    // Rights and quotas that are missing are named with what to do.
    world.write("key.json", &world.sandbox.gcp().key_file());
    let set = world.run("clouds set gcp --credentials key.json").await;
    assert_eq!(set.code, 0, "{set:?}");
    let project = world.sandbox.gcp().project().to_owned();
    world.sandbox.gcp().set_quota(&project, None, "GPUS_ALL_REGIONS", 0.0);
    let (code, checked) = world.json("clouds check gcp").await;
    let problem = &account(&checked, "gcp/default")["problems"][0];
    assert_eq!((code, &problem["kind"]), (1, &json!("quota")), "{checked:#}");
    assert!(problem["fix"].as_str().unwrap().contains(&project), "{checked:#}");
    world.sandbox.gcp().deny(&project, &["compute.instances.list"]);
    let (_, checked) = world.json("clouds check gcp").await;
    let problem = &account(&checked, "gcp/default")["problems"][0];
    assert_eq!(problem["kind"], "forbidden", "{checked:#}");
    assert!(problem["fix"].is_string(), "{checked:#}");
    assert_eq!(world.run("clouds rm gcp").await.code, 0);
    // A cloud that does not answer may hold machines.
    world.sandbox.add_fault(Fault::on("list_instances", FaultKind::status(503)).always());
    world.sandbox.add_fault(Fault::on("instances", FaultKind::status(503)).always());
    world.sandbox.vast().unplug();
    world.provision_nothing().await;
    let refused = world.run("clouds rm vast").await;
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(world.json("clouds").await.1["accounts"].as_array().unwrap().len(), 1);
}

impl World {
    /// Makes the installation id, without which nothing can have been made here.
    async fn provision_nothing(&self) {
        let ran = self.run("ls --all").await;
        assert!(self.state().join("installation").exists(), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_variable_beside_a_connected_account_is_told_and_not_used() {
    let mut world = bare().await;
    let lab = world.sandbox.vast().add_account();
    assert_eq!(with_input(&world, "clouds set vast --api-key -", &lab).await.code, 0);
    world.set("VAST_API_KEY", world.sandbox.vast().key().to_owned());
    let before = world.requests();
    let ran = world.run("offers --gpus RTX5090:1 --cloud vast").await;
    assert!(
        ran.code == 0 && ran.stderr.contains("VAST_API_KEY") && ran.stderr.contains("clouds set"),
        "{ran:?}"
    );
    assert_eq!(
        asked_since(&world, before),
        [format!("vast {}", world.sandbox.vast().account(&lab).unwrap())]
    );
    // The same key in both places is no news.
    world.set("VAST_API_KEY", lab);
    let ran = world.run("offers --gpus RTX5090:1 --cloud vast").await;
    assert!(!ran.stderr.contains("VAST_API_KEY"), "{ran:?}");
}
