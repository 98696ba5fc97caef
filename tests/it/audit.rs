//! `gpuprov audit`: what was done and what it cost, from the log alone.

use std::io::Write;

use serde_json::json;

use crate::support::World;

fn actions(document: &serde_json::Value) -> Vec<(String, String)> {
    let word =
        |entry: &serde_json::Value, member: &str| entry[member].as_str().unwrap_or_default().to_owned();
    let entries = document["entries"].as_array().unwrap();
    entries.iter().map(|entry| (word(entry, "action"), word(entry, "name"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_machine_cost_can_be_added_up() {
    let mut world = World::new().await;
    let (code, empty) = world.json("audit").await;
    assert_eq!((code, &empty["entries"], &empty["totals"]), (0, &json!([]), &json!([])));
    assert!(!world.state().exists(), "reading made the state directory");

    world.config("[defaults]\nowner = \"ana\"\n");
    for name in ["dev", "train"] {
        world.provision(name).await;
    }
    assert_eq!(world.run("rm dev train --yes").await.code, 0);
    // Costs of seconds are small: a machine of an earlier month makes the sum worth reading.
    let log = world.state().join("audit.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    writeln!(
        file,
        "{}",
        json!({"version": 1, "time": "2026-01-31T10:00:00Z", "user": "bo", "host": "h", "account": "runpod/lab",
               "action": "rm", "name": "old", "claim": "0123456789abcdef", "instance_type": "NVIDIA A40", "gpu": "A40",
               "gpu_count": 2, "spot": false, "price_per_hour": 0.5, "created_at": "2026-01-31T07:00:00Z", "cost": 1.5,
               "outcome": "removed", "added_later": {"x": 1}})
    )
    .unwrap();
    writeln!(file, "{{\"time\": \"torn").unwrap();
    write!(file, "not json").unwrap();
    drop(file);

    let (code, all) = world.json("audit").await;
    assert_eq!((code, &all["error"]), (0, &serde_json::Value::Null));
    let did = actions(&all);
    for name in ["dev", "train"] {
        assert!(did.iter().filter(|(_, of)| of == name).count() >= 2, "{did:?}");
    }
    let warnings = all["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|one| one["kind"] == "unreadable" && one["message"].as_str().unwrap().starts_with("2 lines")), "{all}");
    for member in [
        "time",
        "user",
        "host",
        "account",
        "action",
        "name",
        "claim",
        "instance_type",
        "gpu",
        "gpu_count",
        "spot",
        "price_per_hour",
        "created_at",
        "cost",
        "outcome",
    ] {
        assert!(all["entries"][0].get(member).is_some(), "{member}: {all}");
    }
    // The sums are those of the entries, for each account and owner.
    let costs: f64 =
        all["entries"].as_array().unwrap().iter().filter_map(|entry| entry["cost"].as_f64()).sum();
    let totals = all["totals"].as_array().unwrap();
    let sum: f64 = totals.iter().map(|total| total["cost"].as_f64().unwrap()).sum();
    assert!((costs - sum).abs() < 1e-9 && costs > 1.5, "{all}");
    let whose: Vec<_> =
        totals.iter().map(|total| (total["account"].clone(), total["owner"].clone())).collect();
    assert_eq!(whose, [(json!("runpod/default"), json!("ana")), (json!("runpod/lab"), json!(null))]);

    let (_, late) = world.json("audit --since 1d").await;
    assert!(!actions(&late).iter().any(|(_, name)| name == "old") && !actions(&late).is_empty(), "{late}");
    assert_eq!(world.run("audit --since never").await.code, 2);

    let shown = world.run("audit").await;
    assert!(shown.stderr.contains("2 lines of the audit log"), "{shown:?}");
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert!(lines[0].starts_with("TIME") && lines.iter().any(|line| line.contains("A40:2")), "{shown:?}");
    assert!(
        shown.stdout.contains("runpod/lab: $1.5") && shown.stdout.contains("runpod/default, for ana: $"),
        "{shown:?}"
    );
    // No secret is in it.
    world.unset("RUNPOD_API_KEY");
    assert!(!std::fs::read_to_string(&log).unwrap().contains(world.sandbox.runpod_key()));
    world.assert_empty();
}
