//! `rm`: asking, proving, and what is not proven.

use gpuprov::sandbox::{Fault, FaultKind, InstanceSeed, RetryAfter, Script};
use serde_json::{Value, json};

use crate::support::{World, ended, until};

#[tokio::test(flavor = "multi_thread")]
async fn it_asks_and_takes_several() {
    let world = World::new().await;
    world.provision("one").await;
    world.provision("two").await;
    let ran = world.run("rm one").await;
    assert_eq!((ran.code, world.sandbox.alive().len()), (2, 2), "{ran:?}");
    assert!(ran.stderr.contains("with its disks: one (runpod/default), $0.3469/h, "), "{}", ran.stderr);
    for (answer, code, left) in [("n\\n", 2, 2), ("\\n", 2, 2), ("y\\n", 0, 1)] {
        let mut command = world.program("sh");
        let line =
            format!("printf '{answer}' | script -qec '{} rm one' /dev/null", env!("CARGO_BIN_EXE_gpuprov"));
        command.args(["-c", &line]);
        let ran = crate::support::finish(command).await;
        assert_eq!((ran.code, world.sandbox.alive().len()), (code, left), "{answer}: {ran:?}");
    }
    world.provision("three").await;
    let (code, gone) = world.json("rm two three two --yes").await;
    assert_eq!((code, gone["removed"].as_array().unwrap().len()), (0, 2), "{gone}");
    assert!(gone["removed"][0]["cost"].is_number() && gone["removed"][0]["id"].is_string());
    assert_eq!((&gone["failed"], &gone["error"]), (&json!([]), &Value::Null));
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_nobody_knows() {
    let world = World::new().await;
    let (code, gone) = world.json("rm dev --yes").await;
    assert_eq!((code, gone["failed"][0]["kind"].as_str()), (1, Some("not_found")), "{gone}");
    assert_eq!(world.run("rm dev --yes --ignore-not-found").await.code, 0);
    world.provision("one").await;
    let (code, gone) = world.json("rm dev one --yes").await;
    assert_eq!((code, gone["removed"][0]["name"].as_str()), (1, Some("one")), "{gone}");
    world.sandbox.unplug_runpod();
    let silent = world.run("rm dev --yes --ignore-not-found").await;
    assert_eq!(silent.code, 6, "{silent:?}");
    let (code, gone) = world.json("rm dev --yes").await;
    assert_eq!((code, gone["failed"][0]["kind"].as_str()), (6, Some("left_running")), "{gone}");
    world.sandbox.plug_runpod().await.unwrap();
    assert_eq!(world.run("rm --yes").await.code, 2);
    assert_eq!(world.run("rm Dev --yes").await.code, 2);
    assert_eq!(world.run("rm dev --all --yes").await.code, 2);
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_that_is_out_of_reach_keeps_the_record() {
    let world = World::new().await;
    world.provision("dev").await;
    world.sandbox.unplug_runpod();
    world.write(".config/gpuprov/config.toml", "[wait]\npoll = \"100ms\"\ngrace = \"500ms\"\n");
    let (code, gone) = world.json("rm dev --yes --cloud-timeout 500ms").await;
    assert_eq!((code, gone["failed"][0]["kind"].as_str()), (6, Some("left_running")), "{gone}");
    assert_eq!((&gone["removed"], gone["failed"][0]["name"].as_str()), (&json!([]), Some("dev")));
    assert!(world.record("dev").is_some());
    let all = world.run("rm --all --yes --cloud-timeout 500ms").await;
    assert_eq!(all.code, 6, "{all:?}");
    world.sandbox.plug_runpod().await.unwrap();
    let (_, list) = world.json("ls").await;
    assert_eq!(list["machines"][0]["state"], "running", "{list}");
    world.remove("dev").await;
    let story: Vec<_> =
        world.audit().iter().map(|line| line["outcome"].as_str().unwrap().to_owned()).collect();
    assert_eq!(story.first().map(String::as_str), Some("created"));
    assert_eq!(story.last().map(String::as_str), Some("removed"));
    assert!(story.contains(&"left".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_lost_answers_are_waited_out() {
    let world = World::new().await;
    for fault in [
        Fault::on("delete_pod", FaultKind::DeleteRefused).times(2),
        Fault::on("delete_pod", FaultKind::status(404)),
        Fault::on("delete_pod", FaultKind::status_after(500)),
        Fault::on("delete_pod", FaultKind::Reset { when: gpuprov::sandbox::When::After }),
        Fault::on("delete_pod", FaultKind::Garbage { body: gpuprov::sandbox::Junk::Html }),
    ] {
        world.provision("dev").await;
        world.sandbox.add_fault(fault);
        world.remove("dev").await;
        world.sandbox.clear_faults();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_are_refused_prove_nothing() {
    let mut world = World::new().await;
    world.provision("dev").await;
    let key = world.sandbox.runpod_key().to_owned();
    for status in [401, 403] {
        world.sandbox.add_fault(Fault::on("delete_pod", FaultKind::status(status)).always());
        let ran = world.run("rm dev --yes").await;
        assert_eq!(ran.code, 6, "{ran:?}");
        world.sandbox.clear_faults();
    }
    // Another account's key: a 404 there says nothing of the machine.
    let other = world.sandbox.add_runpod_account();
    world.set("RUNPOD_API_KEY", other);
    let ran = world.run("rm dev --yes").await;
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(ran.stderr.contains("not proven") && ran.stderr.contains("rm --forget dev"), "{}", ran.stderr);
    let (_, list) = world.json("ls").await;
    assert_eq!(
        (&list["machines"][0]["name"], &list["machines"][0]["state"]),
        (&json!("dev"), &json!("unknown"))
    );
    assert!(world.record("dev").is_some());
    assert_eq!(world.sandbox.alive().len(), 1);
    world.unset("RUNPOD_API_KEY");
    let none = world.run("rm dev --yes").await;
    assert_eq!(none.code, 6, "{none:?}");
    world.set("RUNPOD_API_KEY", key);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_that_shows_the_machine_removes_it() {
    let mut world = World::new().await;
    world.provision("dev").await;
    let key = world.sandbox.runpod_key().to_owned();
    let fresh = world.sandbox.rotate_runpod_key(&key).unwrap();
    let old = world.run("rm dev --yes").await;
    assert_eq!(old.code, 6, "{old:?}");
    world.set("RUNPOD_API_KEY", fresh);
    let (_, list) = world.json("ls").await;
    assert_eq!(list["machines"][0]["state"], "running", "{list}");
    // Once proven it stays proven, also when the removal takes two commands.
    world.sandbox.add_fault(Fault::on("delete_pod", FaultKind::DeleteRefused).always());
    let before = world.asked("delete_pod");
    let running = world.start("rm dev --yes");
    until("a delete", || world.asked("delete_pod") > before).await;
    crate::interrupt::signal(&running, nix::sys::signal::Signal::SIGINT);
    assert_eq!(ended(running).await.code, 6);
    world.sandbox.clear_faults();
    assert!(world.sandbox.remove_pod(&world.only().id));
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_is_the_last_way_out() {
    let world = World::new().await;
    world.provision("dev").await;
    let asked = world.run("rm --forget dev").await;
    assert_eq!(asked.code, 2, "{asked:?}");
    assert!(world.record("dev").is_some());
    let (code, gone) = world.json("rm --forget dev --yes").await;
    assert_eq!(code, 0, "{gone}");
    assert_eq!(world.record("dev"), None);
    assert_eq!(world.sandbox.alive().len(), 1);
    let warned = gone["warnings"][0]["message"].as_str().unwrap();
    assert!(warned.contains(&world.only().id) && warned.contains("may still cost money"), "{gone}");
    let last = world.audit().pop().unwrap();
    assert_eq!((&last["action"], &last["name"]), (&json!("forget"), &json!("dev")));
    assert_eq!(world.run("rm --forget dev --yes").await.code, 1);
    world.remove("dev").await;
}

/// `rm` of a machine that another command is creating.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_in_the_making_is_removed_by_its_maker() {
    let world = World::new().await;
    // While it boots; while the create hangs; while the startup script runs.
    let begun = world.home().join("begun");
    world.write("long.sh", &format!("touch '{}'\nsleep 30\n", begun.display()));
    for at in 0..3 {
        let creates = world.creates();
        match at {
            0 => world.script(Script::NeverReady { word: "STARTING".to_owned() }),
            1 => world.fault("create_pod", FaultKind::Delay { ms: 1500 }),
            _ => {}
        }
        let script = if at == 2 { " --startup-script long.sh" } else { "" };
        let running = world.start(&format!("provision --gpus RTX4090 --name dev --json{script}"));
        match at {
            0 => {
                until("a machine", || world.record("dev").is_some_and(|one| one["state"] == "booting")).await
            }
            1 => until("the create", || world.creates() > creates).await,
            _ => until("the script", || begun.exists()).await,
        }
        let (code, gone) = world.json("rm dev --yes").await;
        assert_eq!((code, gone["removed"][0]["name"].as_str()), (0, Some("dev")), "{gone}");
        let made = ended(running).await;
        let made: Value = serde_json::from_str(&made.stdout).unwrap();
        assert_eq!(made["error"]["kind"], "removed", "{made}");
        assert!(made["error"]["message"].as_str().unwrap().contains("removed by another command"));
        world.assert_empty();
        assert_eq!(world.record("dev"), None);
        assert!(!world.state().join("machines/dev.wanted").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_removals_of_one_machine_both_end_well() {
    let world = World::new().await;
    world.provision("dev").await;
    let (one, two) = (world.start("rm dev --yes"), world.start("rm dev --yes"));
    let codes = [ended(one).await.code, ended(two).await.code];
    // The second may come when the name is unknown already.
    assert!(codes.contains(&0) && codes.iter().all(|code| [0, 1].contains(code)), "{codes:?}");
    world.assert_empty();
    assert_eq!(world.record("dev"), None);
}

/// A fleet that the rate limits let go one by one: what waits for its turn is not silence, and a refusal is an answer.
#[tokio::test(flavor = "multi_thread")]
async fn rate_limits_do_not_end_a_removal() {
    const QUICK: &str = "rm --all --yes --cloud-timeout 1s";
    let mut world = World::with(|options| options.rate_limits = true).await;
    // No pace of ours: each cloud's own limits hold.
    world.write(".config/gpuprov/config.toml", "[wait]\ngrace = \"1s\"\n");
    world.set("GPUPROV_INSTALLATION", "team-ci");
    world.set("GPUPROV_VAST_ENDPOINT", world.sandbox.vast().endpoint());
    world.set("VAST_API_KEY", world.sandbox.vast().key().to_owned());
    let vast = world.sandbox.vast();
    for number in 0..5 {
        let (name, claim) = (format!("m{number}"), format!("00112233445566{number:02}"));
        let mark = format!("v1:team-ci:default:{name}:{claim}::");
        let seed = InstanceSeed::marked(&format!("gpuprov-{name}-001122"), &mark);
        vast.add_instance(vast.key(), &seed).unwrap();
    }
    let ran = world.run(QUICK).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    world.assert_empty();
}

/// Refusals for more than the patience with silence: they are answers.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_are_no_silence() {
    let world = World::new().await;
    world.provision("dev").await;
    let many = FaultKind::TooMany { retry_after: RetryAfter::Seconds(1) };
    world.sandbox.add_fault(Fault::on("delete_pod", many).times(5));
    let ran = world.run("rm dev --yes --cloud-timeout 500ms").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_that_comes_during_the_re_check_stops_the_create() {
    let world = World::new().await;
    world.fault("catalog_one", FaultKind::Delay { ms: 1000 });
    let running = world.start("provision --gpus RTX4090 --name dev");
    until("the second look", || world.asked("catalog_one") > 0).await;
    let gone = world.run("rm dev --yes").await;
    assert_eq!(gone.code, 0, "{gone:?}");
    let ran = ended(running).await;
    assert!(ran.code == 1 && ran.stderr.contains("removed by another command"), "{ran:?}");
    assert_eq!(world.creates(), 0);
    world.assert_empty();
}
