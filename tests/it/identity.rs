//! Who the credentials are: what another key does not show is not gone.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use gpuprov::sandbox::{Fault, FaultKind};
use serde_json::{Value, json};

use crate::recovery::{DEV, audit, killed_after_the_create, record_path, row};
use crate::support::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_404_under_another_key_keeps_the_record() {
    let mut world = World::new().await;
    world.provision("dev").await;
    killed_after_the_create(&world, "lost").await;
    let (mine, other) = (OsString::from(world.sandbox.runpod_key()), world.sandbox.add_runpod_account());
    world.set("RUNPOD_API_KEY", other);
    let before = std::fs::read(record_path(&world, "dev")).unwrap();
    let list = world.json("ls").await.1;
    assert_eq!(
        (&row(&list, "dev")["state"], &row(&list, "lost")["state"]),
        (&json!("unknown"), &json!("unknown"))
    );
    assert_eq!(std::fs::read(record_path(&world, "dev")).unwrap(), before, "`ls` changed it");
    for name in ["dev", "lost"] {
        let kept = world.run(&format!("rm {name} --yes --ignore-not-found")).await;
        assert_eq!(kept.code, 6, "{kept:?}");
        assert!(kept.stderr.contains("--forget"), "{kept:?}");
        assert!(record_path(&world, name).exists());
    }
    assert_eq!(world.run("rm --all --yes").await.code, 6);
    assert_eq!(world.run(DEV).await.code, 2, "the name is taken");
    assert_eq!(world.sandbox.alive().len(), 2);
    world.set("RUNPOD_API_KEY", mine);
    assert_eq!(world.run("rm dev lost --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_is_proven_by_what_it_shows_and_by_nothing_else() {
    let mut world = World::new().await;
    for name in ["dev", "gone"] {
        world.provision(name).await;
    }
    killed_after_the_create(&world, "lost").await;
    let key = world.sandbox.runpod_key().to_owned();
    let rotated = world.sandbox.rotate_runpod_key(&key).unwrap();
    let id = world.json("ls gone").await.1["machines"][0]["id"].as_str().map(str::to_owned);
    let id = id.unwrap_or_else(|| {
        let record: Value =
            serde_json::from_slice(&std::fs::read(record_path(&world, "gone")).unwrap()).unwrap();
        record["attempts"][0]["handle"]["id"].as_str().unwrap().to_owned()
    });
    world.sandbox.remove_pod(&id);
    world.sandbox.step(Duration::from_secs(5));

    // The old key says nothing at all.
    let refused = world.run("rm gone --yes").await;
    assert_eq!(refused.code, 6, "{refused:?}");
    world.set("RUNPOD_API_KEY", rotated);
    // It may be another account's key for all that is known.
    let kept = world.run("rm gone --yes").await;
    assert_eq!(kept.code, 6, "{kept:?}");
    assert_eq!(row(&world.json("ls").await.1, "gone")["state"], "unknown");
    // These it shows, under their claims.
    for name in ["dev", "lost"] {
        let removed = world.run(&format!("rm {name} --yes")).await;
        assert_eq!(removed.code, 0, "{removed:?}");
    }
    world.assert_empty();
    let forgotten = world.run("rm gone --forget --yes").await;
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    assert!(audit(&world).iter().any(|line| line["action"] == "forget" && line["name"] == "gone"));
    assert_eq!(world.json("ls").await.1["machines"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refusal_leaves_no_machine_and_lasting_ones_end_soon() {
    let world = World::new().await;
    for (operation, code) in [("delete_pod", 401), ("delete_pod", 403), ("get_pod", 401)] {
        world.provision("dev").await;
        world.sandbox.add_fault(Fault::on(operation, FaultKind::status(code)));
        let removed = world.run("rm dev --yes").await;
        assert_eq!(removed.code, 0, "{operation} {code}: {removed:?}");
        world.assert_empty();
        world.sandbox.clear_faults();
    }
    world.provision("dev").await;
    world.sandbox.add_fault(Fault::on("delete_pod", FaultKind::status(401)).always());
    let begun = Instant::now();
    assert_eq!(world.run("rm dev --yes").await.code, 6);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    world.sandbox.clear_faults();
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}
