//! `--json`: one document, all members, the types of the contract.

use serde_json::Value;

use crate::support::{Ran, World};

/// The one document on stdout, or a panic.
fn document(ran: &Ran) -> Value {
    let document: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(document["version"], 1);
    for warning in document["warnings"].as_array().unwrap() {
        let names: Vec<&str> = warning.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["kind", "message", "account", "name"]);
        assert!(warning["kind"].is_string() && warning["message"].is_string(), "{warning}");
    }
    let error = &document["error"];
    if ran.code == 0 {
        assert!(error.is_null(), "{error}");
    } else {
        let names: Vec<&str> = error.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["kind", "message", "hint"]);
        assert!(error["kind"].is_string() && error["message"].is_string(), "{error}");
    }
    document
}

fn members<'a>(document: &'a Value, names: &[&str]) -> &'a Value {
    for name in names {
        assert!(document.get(name).is_some(), "`{name}` is missing: {document:#}");
    }
    document
}

#[tokio::test(flavor = "multi_thread")]
async fn every_offer_has_every_member_in_its_type() {
    let world = World::new().await;
    let ran = world.run("offers --gpus any,any:2 --json").await;
    let document = document(&ran);
    let names = [
        "id",
        "account",
        "cloud",
        "region",
        "country",
        "zone",
        "instance_type",
        "gpu",
        "gpu_raw",
        "gpu_count",
        "vram_gb",
        "vcpus",
        "ram_gb",
        "disk_gb",
        "spot",
        "secure",
        "price_per_hour",
        "price_parts",
        "price_estimated",
        "price_as_of",
        "traffic_per_gb",
        "continent",
        "cuda",
        "stock",
        "sandbox",
    ];
    let offers = document["offers"].as_array().unwrap();
    assert!(offers.len() > 50 && document["total"].is_u64());
    for offer in offers {
        let mut has: Vec<&str> = offer.as_object().unwrap().keys().map(String::as_str).collect();
        let mut wanted = names.to_vec();
        has.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(has, wanted);
        for text in ["id", "account", "cloud", "instance_type", "gpu", "gpu_raw", "cuda"] {
            assert!(offer[text].is_string(), "{text}: {offer:#}");
        }
        for text in ["region", "country", "zone", "continent", "price_as_of"] {
            assert!(offer[text].is_string() || offer[text].is_null(), "{text}: {offer:#}");
        }
        for number in ["vram_gb", "disk_gb", "price_per_hour"] {
            assert!(offer[number].as_f64().is_some_and(|number| number > 0.0), "{number}: {offer:#}");
        }
        for flag in ["spot", "secure", "sandbox", "price_estimated"] {
            assert!(offer[flag].is_boolean(), "{flag}: {offer:#}");
        }
        assert!(offer["gpu_count"].is_u64() && offer["sandbox"] == true);
        // What RunPod does not tell is null, not 0.
        assert!(offer["vcpus"].is_null() && offer["ram_gb"].is_null() && offer["traffic_per_gb"].is_null());
        assert!(matches!(offer["stock"].as_str(), Some("high" | "medium" | "low")), "{offer:#}");
        let price = offer["price_per_hour"].as_f64().unwrap();
        let parts: f64 =
            offer["price_parts"].as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
        assert!((parts - price).abs() < 1e-9, "{offer:#}");
        assert!(price.to_string().split('.').nth(1).is_none_or(|decimals| decimals.len() <= 6), "{price}");
    }
    assert!(offers.iter().any(|offer| offer["zone"].is_null() && offer["country"].is_null()));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failure_prints_one_document_with_all_members() {
    let mut world = World::new().await;
    let lists: [(&str, &[&str]); 5] = [
        ("offers --gpus RTX4090", &["offers", "total", "failed", "skipped"]),
        ("provision --gpus RTX4090 --name dev", &["machines", "tried", "failed", "skipped"]),
        ("provision --gpus RTX4090 --dry-run", &["dry_run", "offers", "request", "failed", "skipped"]),
        ("ls", &["machines", "left_over", "failed"]),
        ("rm dev --yes", &["removed", "failed"]),
    ];
    let check = async |world: &World, flags: &str, code: i32, kind: &str| {
        for (command, names) in lists {
            let ran = world.run(&format!("{command} {flags} --json")).await;
            let document = document(&ran);
            members(&document, names);
            assert_eq!(
                (ran.code, document["error"]["kind"].as_str()),
                (code, Some(kind)),
                "{command}: {ran:?}"
            );
            for list in ["offers", "machines", "tried", "removed"] {
                assert!(
                    document.get(list).is_none_or(|list| list.as_array().is_some_and(Vec::is_empty)),
                    "{document:#}"
                );
            }
        }
    };
    check(&world, "--config /nowhere/config.toml", 2, "usage").await;
    world.config("[defaults]\nregoin = \"EU\"\n");
    check(&world, "", 2, "usage").await;
    world.config("");
    world.set("GPUPROV_RUNPOD_ENDPOINT", "http://203.0.113.1");
    check(&world, "", 2, "refused").await;
    for (command, code) in
        [("offers --gpus RTX4090 --limit x", 2), ("provision --gpu", 2), ("offers --bogus", 2)]
    {
        let ran = world.run(&format!("{command} --json")).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "only an error of the parser prints none");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_and_its_end() {
    let world = World::new().await;
    let ran = world.run("provision --gpus RTX3090,RTX4090 --name dev --json").await;
    let made = document(&ran);
    members(&made, &["machines", "tried", "failed", "skipped"]);
    let tried = made["tried"].as_array().unwrap();
    assert!(!tried.is_empty());
    for one in tried {
        let names: Vec<&str> = one.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["offer", "account", "price_per_hour", "outcome", "kind", "message"]);
    }
    assert_eq!(
        (tried[0]["outcome"].as_str(), tried[0]["kind"].as_str()),
        (Some("refused"), Some("rejected"))
    );
    assert_eq!(tried.last().unwrap()["outcome"], "created", "{tried:#?}");
    let machine = &made["machines"][0];
    for name in [
        "name",
        "account",
        "cloud",
        "id",
        "state",
        "region",
        "country",
        "zone",
        "instance_type",
        "gpu",
        "gpu_count",
        "vram_gb",
        "vcpus",
        "ram_gb",
        "disk_gb",
        "spot",
        "price_per_hour",
        "costs_now_per_hour",
        "created_at",
        "age_seconds",
        "cost_so_far",
        "expires_at",
        "ssh",
        "gpu_check",
        "k8s",
        "message",
        "installation",
        "owner",
        "claim",
        "recorded",
        "sandbox",
    ] {
        assert!(machine.get(name).is_some(), "{name}: {machine:#}");
    }
    assert!(
        machine["age_seconds"].is_u64() && machine["ssh"]["port"].is_u64() && machine["gpu_count"].is_u64()
    );
    assert_eq!((machine["state"].as_str(), machine["gpu_check"].as_str()), (Some("running"), Some("ok")));
    // After the create the cloud tells what the catalogue did not.
    assert!(machine["vcpus"].as_f64().is_some() && machine["ram_gb"].as_f64().is_some(), "{machine:#}");
    assert!(ran.stderr.contains("placement policy"), "the cloud's words are told: {}", ran.stderr);
    let gone = world.run("rm dev --yes --json").await;
    let removed = document(&gone);
    assert_eq!(removed["removed"][0]["name"], "dev");
    world.assert_empty();
}
