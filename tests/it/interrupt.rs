//! Signals at every point of a `provision` and an `rm`.

use std::time::Duration;

use gpuprov::sandbox::{Fault, FaultKind, Script, When};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Child;

use crate::support::{World, ended, until};

/// Sends a signal to the process alone, as `kill` does.
pub fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()), signal).unwrap();
}

const PROVISION: &str = "provision --gpus RTX4090 --name dev";

fn never_ready() -> FaultKind {
    FaultKind::Script { script: Script::NeverReady { word: "STARTING".to_owned() } }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_create() {
    let world = World::new().await;
    world.sandbox.add_fault(Fault::on("catalog", FaultKind::hang(When::Before)).always());
    for what in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let before = world.asked("catalog");
        let running = world.start(PROVISION);
        until("the list", || world.asked("catalog") > before).await;
        signal(&running, what);
        let ran = ended(running).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (130, ""), "{ran:?}");
    }
    world.sandbox.clear_faults();
    world.fault("catalog_one", FaultKind::hang(When::Before));
    let running = world.start(PROVISION);
    until("the second look", || world.asked("catalog_one") > 0).await;
    signal(&running, Signal::SIGINT);
    assert_eq!(ended(running).await.code, 130);
    assert_eq!(world.creates(), 0);
    assert_eq!(world.record("dev"), None);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_create_hangs_and_then_succeeds() {
    let world = World::new().await;
    for (what, fault) in [
        (Signal::SIGINT, FaultKind::Delay { ms: 2000 }),
        (Signal::SIGTERM, FaultKind::Hang { when: When::After, ms: 800 }),
        (Signal::SIGHUP, FaultKind::Hang { when: When::Before, ms: 800 }),
    ] {
        let before = world.creates();
        world.fault("create_pod", fault);
        let running = world.start(&format!("{PROVISION} --json"));
        until("the create", || world.creates() > before).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        signal(&running, what);
        let ran = ended(running).await;
        assert_eq!(ran.code, 130, "{ran:?}");
        let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(document["error"]["kind"], "interrupted");
        assert_eq!(world.creates(), before + 1);
        world.assert_empty();
        assert_eq!(world.record("dev"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn during_the_wait() {
    let world = World::new().await;
    world.sandbox.add_fault(Fault::on("create_pod", never_ready()).always());
    for what in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let before = world.asked("get_pod");
        let running = world.start(PROVISION);
        until("looks", || world.asked("get_pod") > before + 1).await;
        signal(&running, what);
        let ran = ended(running).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (130, ""), "{ran:?}");
        world.assert_empty();
        assert_eq!(world.record("dev"), None);
    }
    assert!(
        !world
            .home()
            .join(".ssh/gpuprov")
            .read_dir()
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy().ends_with(".conf") })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn during_the_roll_back() {
    let world = World::new().await;
    world.sandbox.add_fault(Fault::on("create_pod", never_ready()).always());
    world.sandbox.add_fault(Fault::on("delete_pod", FaultKind::DeleteRefused).times(3));
    let running = world.start(&format!("{PROVISION} --boot-timeout 500ms --attempts 1"));
    until("a delete", || world.asked("delete_pod") > 0).await;
    signal(&running, Signal::SIGINT);
    let ran = ended(running).await;
    assert!([5, 130].contains(&ran.code), "{ran:?}");
    world.assert_empty();
    assert_eq!(world.record("dev"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_signal_leaves_at_once_and_names_what_may_exist() {
    let world = World::new().await;
    // While the create hangs, and while the machine is being removed.
    world.fault("create_pod", FaultKind::Delay { ms: 3000 });
    for (operation, json) in [("create_pod", false), ("delete_pod", true)] {
        if operation == "delete_pod" {
            world.sandbox.add_fault(Fault::on("create_pod", never_ready()).always());
            world.sandbox.add_fault(Fault::on("delete_pod", FaultKind::DeleteRefused).always());
        }
        let before = world.asked(operation);
        let running = world.start(&format!("-q {PROVISION}{}", if json { " --json" } else { "" }));
        if operation == "delete_pod" {
            until("a machine", || world.record("dev").is_some_and(|record| record["state"] == "booting"))
                .await;
            signal(&running, Signal::SIGINT);
        }
        until("the request", || world.asked(operation) > before).await;
        if operation == "create_pod" {
            signal(&running, Signal::SIGINT);
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        let begun = std::time::Instant::now();
        signal(&running, Signal::SIGTERM);
        let ran = ended(running).await;
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        assert_eq!(ran.code, 6, "{ran:?}");
        assert!(ran.stderr.contains("dev (runpod/default"), "{}", ran.stderr);
        if json {
            let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(document["error"]["kind"], "left_running");
            let machine = &document["machines"][0];
            assert_eq!((&machine["name"], &machine["account"]), (&"dev".into(), &"runpod/default".into()));
            assert_eq!((&machine["state"], &machine["recorded"]), (&"unknown".into(), &false.into()));
            assert_eq!(machine["id"], world.record("dev").unwrap()["attempts"][0]["handle"]["id"]);
            assert_eq!(
                (&document["tried"], &document["skipped"]),
                (&"[]".parse().unwrap(), &"[]".parse().unwrap())
            );
        }
        let list = world.run("ls").await;
        assert!(list.stdout.contains("dev") && list.stderr.contains("interrupted"), "{list:?}");
        world.sandbox.clear_faults();
        world.remove("dev").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_was_ignored_stays_ignored() {
    let world = World::new().await;
    world.fault("create_pod", FaultKind::Delay { ms: 800 });
    let mut command = world.program("nohup");
    command.arg(env!("CARGO_BIN_EXE_gpuprov")).args(PROVISION.split(' '));
    let running = command.spawn().unwrap();
    until("the create", || world.creates() > 0).await;
    signal(&running, Signal::SIGHUP);
    let ran = ended(running).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_is_stopped_is_finished_by_the_next() {
    let world = World::new().await;
    world.provision("dev").await;
    world.sandbox.add_fault(Fault::on("delete_pod", FaultKind::DeleteRefused).always());
    let running = world.start("rm dev --yes");
    until("deletes", || world.asked("delete_pod") > 1).await;
    signal(&running, Signal::SIGINT);
    let ran = ended(running).await;
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(ran.stderr.contains("dev"), "{}", ran.stderr);
    let (_, list) = world.json("ls").await;
    assert_eq!(list["machines"][0]["state"], "deleting", "{list}");
    assert!(list["machines"][0]["costs_now_per_hour"].as_f64().unwrap() > 0.3, "{list}");
    world.sandbox.clear_faults();
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_stopped_by_the_first_signal() {
    let world = World::new().await;
    world.provision("dev").await;
    // `script` gives it a terminal.
    let mut command = world.program("script");
    let mark = world.home().join("pid");
    let line = format!("echo $$ > {}; exec {} rm dev", mark.display(), env!("CARGO_BIN_EXE_gpuprov"));
    command.args(["-qec", &line, "/dev/null"]).stdin(std::process::Stdio::piped());
    let running = command.spawn().unwrap();
    until("the process", || std::fs::read_to_string(&mark).is_ok_and(|pid| pid.ends_with('\n'))).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let pid: i32 = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
    let ran = ended(running).await;
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(ran.stdout.contains("remove it? [y/N]") && ran.stdout.contains("nothing was removed"), "{ran:?}");
    assert_eq!(world.sandbox.alive().len(), 1);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_signal_after_a_machine_is_ready_names_it() {
    let world = World::new().await;
    // The last look for what was lost holds the command up when the machine is ready.
    world.fault("create_pod", FaultKind::AppearLater { ms: 90_000 });
    let running = world.start(&format!("{PROVISION} --json"));
    until("a machine", || world.creates() > 1).await;
    world.sandbox.add_fault(Fault::on("list_pods", FaultKind::hang(When::Before)).always());
    until("ready", || world.record("dev").is_some_and(|record| record["state"] == "running")).await;
    signal(&running, Signal::SIGINT);
    tokio::time::sleep(Duration::from_millis(150)).await;
    signal(&running, Signal::SIGINT);
    let ran = ended(running).await;
    assert_eq!(ran.code, 6, "{ran:?}");
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = &world.record("dev").unwrap()["attempts"][0]["handle"]["id"];
    let machines = document["machines"].as_array().unwrap();
    assert!(machines.iter().any(|machine| machine["id"] == *id), "{document}");
    // The create that was given up is still to be looked for.
    assert!(machines.iter().any(|machine| machine["id"].is_null()), "{document}");
    world.sandbox.clear_faults();
    let gone = world.run("rm dev --yes").await;
    assert_eq!(gone.code, 0, "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_given_up_after_a_signal_is_not_called_gone() {
    let world = World::new().await;
    world.sandbox.add_fault(Fault::on("create_pod", FaultKind::AppearLater { ms: 90_000 }).always());
    let running = world.start(&format!("{PROVISION} --json"));
    until("the create", || world.creates() > 0).await;
    signal(&running, Signal::SIGINT);
    let ran = ended(running).await;
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &document["tried"][0]["outcome"]), (130, &"unknown".into()), "{document}");
    let words = document["error"]["message"].as_str().unwrap();
    assert!(words.contains("looked for from now on"), "{words}");
    assert_eq!(world.creates(), 1);
    world.sandbox.step(Duration::from_secs(91));
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_is_left_at_once_names_what_may_exist() {
    let world = World::new().await;
    world.provision("dev").await;
    world.fault("delete_pod", FaultKind::hang(When::Before));
    let running = world.start("rm dev --yes --json");
    until("a delete", || world.asked("delete_pod") > 0).await;
    signal(&running, Signal::SIGINT);
    tokio::time::sleep(Duration::from_millis(100)).await;
    signal(&running, Signal::SIGINT);
    let ran = ended(running).await;
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &document["removed"]), (6, &"[]".parse().unwrap()), "{document}");
    let failed = document["failed"].as_array().unwrap();
    assert_eq!((failed.len(), &failed[0]["account"]), (1, &"runpod/default".into()), "{document}");
    assert_eq!((&failed[0]["name"], &failed[0]["kind"]), (&"dev".into(), &"left_running".into()));
    world.remove("dev").await;
}
