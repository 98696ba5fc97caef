//! `provision --queue`: waiting for an offer, being seen while it waits, and being stopped.

use std::time::{Duration, Instant};

use gpuprov::sandbox::{Fault, FaultKind};

use crate::support::{World, ended, until};

/// From now on no data centre has anything.
fn sell_out(world: &World) {
    for operation in ["catalog", "catalog_one"] {
        world.sandbox.add_fault(Fault::on(operation, FaultKind::StaleOffer).always());
    }
}

fn asked(world: &World) -> usize {
    world.sandbox.requests().iter().filter(|request| request.operation == "catalog").count()
}

fn signal(child: &tokio::process::Child, signal: nix::sys::signal::Signal) {
    let id = i32::try_from(child.id().unwrap()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), signal).unwrap();
}

/// Waits until the machine's record says that it waits.
async fn waits(world: &World, name: &str) {
    let record = world.state().join(format!("machines/{name}.json"));
    until("it waits", || {
        std::fs::read_to_string(&record).is_ok_and(|text| text.contains("waiting for an offer"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_gets_the_offer_that_comes_and_is_seen_while_it_waits() {
    let world = World::new().await;
    sell_out(&world);
    let child = world.start("provision --gpus RTX4090:1 --name dev --queue 20s --ttl 1h");
    waits(&world, "dev").await;
    let (code, list) = world.json("ls").await;
    let machine = &list["machines"][0];
    assert_eq!((code, &machine["name"], &machine["state"]), (0, &"dev".into(), &"creating".into()), "{list}");
    assert!(machine["message"].as_str().unwrap().starts_with("waiting for an offer"), "{list}");
    let second = world.run("provision --gpus RTX4090:1 --name dev").await;
    assert_eq!(second.code, 2, "{second:?}");
    world.sandbox.clear_faults();
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    assert!(ran.stderr.contains("asking again in"), "{ran:?}");
    // The end is counted from the create, and nothing says any more that it waits.
    let (_, list) = world.json("ls").await;
    let machine = &list["machines"][0];
    assert_eq!(machine["message"], serde_json::Value::Null, "{list}");
    let time = |member: &str| machine[member].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let life = time("expires_at").duration_since(time("created_at")).as_secs();
    assert!((3590..=3601).contains(&life), "{life}");
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_time_is_over_nothing_is_left() {
    let world = World::new().await;
    sell_out(&world);
    assert_eq!(world.run("provision --gpus RTX4090:1").await.code, 3);
    let one_round = asked(&world);
    let begun = Instant::now();
    // Without a name, and with nothing on offer to make one from.
    let (code, document) = world.json("provision --gpus RTX4090:1 --queue 2s").await;
    assert_eq!((code, &document["error"]["kind"]), (3, &"nothing_offered".into()), "{document}");
    assert!(begun.elapsed() >= Duration::from_secs(2) && begun.elapsed() < Duration::from_secs(12));
    // A pause of a tenth of the time at first, half as long again each time, and a last round at the very end.
    let rounds = asked(&world) / one_round - 1;
    assert!((4..=7).contains(&rounds), "{rounds}");
    assert_eq!(world.json("ls --local").await.1["machines"], serde_json::json!([]));
    assert_eq!(world.creates(), 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_for_capacity_are_waited_on_and_rejections_are_not() {
    let world = World::new().await;
    let full = "There are no longer any instances available with the requested specifications. Please refresh and try again.";
    world.sandbox.add_fault(Fault::on("create_pod", FaultKind::Refuse { detail: full.to_owned() }).always());
    let (code, document) = world.json("provision --gpus RTX4090:1 --name dev --queue 4s").await;
    assert_eq!((code, &document["error"]["kind"]), (3, &"no_capacity".into()), "{document}");
    let zones = world.json("offers --gpus RTX4090:1").await.1["total"].as_u64().unwrap() as usize;
    assert!(world.creates() > zones, "only one round: {} creates", world.creates());

    world.sandbox.clear_faults();
    let odd = FaultKind::Refuse { detail: "a sentence that nobody knows".to_owned() };
    world.sandbox.add_fault(Fault::on("create_pod", odd).always());
    let begun = Instant::now();
    let ran = world.run("provision --gpus RTX4090:1 --name dev --queue 30s").await;
    assert!(ran.code == 1 && begun.elapsed() < Duration::from_secs(15), "{ran:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_and_rm_end_the_wait() {
    let world = World::new().await;
    sell_out(&world);
    let child = world.start("provision --gpus RTX4090:1 --name dev --queue 1h");
    waits(&world, "dev").await;
    signal(&child, nix::sys::signal::Signal::SIGINT);
    let ran = ended(child).await;
    assert_eq!(ran.code, 130, "{ran:?}");
    assert_eq!(world.json("ls --local").await.1["machines"], serde_json::json!([]));

    let child = world.start("provision --gpus RTX4090:1 --name dev --queue 1h --json");
    waits(&world, "dev").await;
    let before = asked(&world);
    let removed = world.run("rm dev --yes").await;
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "dev\n"), "{removed:?}");
    let ran = ended(child).await;
    assert!(ran.code == 1 && ran.stdout.contains("\"kind\": \"removed\""), "{ran:?}");
    assert_eq!(asked(&world), before, "it asked again although it was told to stop");
    assert_eq!(world.json("ls --local").await.1["machines"], serde_json::json!([]));
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_waits_it_leaves_a_name_that_rm_frees() {
    let world = World::new().await;
    sell_out(&world);
    let child = world.start("provision --gpus RTX4090:1 --name dev --queue 1h");
    waits(&world, "dev").await;
    signal(&child, nix::sys::signal::Signal::SIGKILL);
    ended(child).await;
    let list = world.run("ls").await;
    assert!(list.stderr.contains("interrupted"), "{list:?}");
    let removed = world.run("rm dev --yes").await;
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "dev\n"), "{removed:?}");
    assert_eq!(world.json("ls --local").await.1["machines"], serde_json::json!([]));
    world.assert_empty();
}
