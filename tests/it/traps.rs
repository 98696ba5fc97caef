//! Machines that do not come up, or not as agreed.

use gpuprov::sandbox::{Fault, FaultKind, LoginTrouble, Script};
use serde_json::json;

use crate::support::World;
use crate::support::machines::outcomes;

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_the_catalogue_that_do_not_keep_their_word() {
    let slow = std::time::Duration::from_millis(900);
    let world = World::with(|options| options.boot = (slow, slow)).await;
    // A place that is listed and refused when it is named.
    let (code, made) = world.json("provision --gpus A5000 --name dev").await;
    assert_eq!(code, 0, "{made}");
    world.remove("dev").await;
    // Ends in ERROR; the next place works.
    let (code, made) = world.json("provision --gpus A6000 --name dev").await;
    assert_eq!((code, outcomes(&made)), (0, vec!["not_ready", "created"]), "{made}");
    assert!(made["tried"][0]["message"].as_str().unwrap().contains("ERROR"), "{made}");
    world.remove("dev").await;
    // Never gets a public address.
    let ran = world.run("provision --gpus RTX3070 --name dev --boot-timeout 2s").await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("no ssh address yet"), "{}", ran.stderr);
    world.assert_empty();
    // The driver is too old for the image.
    let (code, made) = world.json("provision --gpus A4500 --name dev --boot-timeout 2s").await;
    assert_eq!((code, outcomes(&made)), (0, vec!["not_ready", "created"]), "{made}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_log_says_why_a_container_does_not_start() {
    let world = World::new().await;
    let (code, made) =
        world.json("provision --gpus A4500 --name dev --max-price 0.2 --boot-timeout 20s").await;
    assert_eq!(code, 5, "{made}");
    let why = made["tried"][0]["message"].as_str().unwrap();
    assert!(why.contains("unsatisfied condition: cuda>="), "{made}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_agreed_is_removed() {
    let world = World::new().await;
    let sold = |cost_factor, gpu: Option<&str>, count| Script::SoldDifferently {
        cost_factor,
        gpu: gpu.map(str::to_owned),
        count,
    };
    for (script, word) in [
        (sold(2.0, None, None), "was agreed"),
        (sold(1.0, Some("NVIDIA GeForce RTX 3090"), None), "RTX3090"),
        (sold(1.0, None, Some(2)), "2 GPUs"),
    ] {
        world.script(script);
        let (code, made) = world.json("provision --gpus RTX4090 --name dev --keep-failed").await;
        assert_eq!((code, outcomes(&made)), (0, vec!["differs", "created"]), "{made}");
        assert!(made["tried"][0]["message"].as_str().unwrap().contains(word), "{made}");
        assert_eq!(world.sandbox.alive().len(), 1);
        world.remove("dev").await;
    }
    world.script(sold(1.005, None, None));
    let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, outcomes(&made)), (0, vec!["created"]), "{made}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_leaves_nothing() {
    let world = World::new().await;
    let warming = || FaultKind::Script { script: Script::NeverReady { word: "WARMING".to_owned() } };
    world.sandbox.add_fault(Fault::on("create_pod", warming()).always());
    let ran = world.run("provision --gpus RTX4090 --name dev --boot-timeout 1s --attempts 2").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (5, ""), "{ran:?}");
    assert!(ran.stderr.contains("WARMING"), "{}", ran.stderr);
    assert_eq!(world.made().len(), 2);
    world.assert_empty();
    assert_eq!(world.record("dev"), None);
    let removals =
        world.audit().iter().filter(|line| line["action"] == "remove" && line["cost"].is_number()).count();
    assert_eq!(removals, 2);

    let (code, kept) =
        world.json("provision --gpus RTX4090 --name dev --boot-timeout 1s --keep-failed").await;
    assert_eq!((code, kept["error"]["kind"].as_str()), (6, Some("left_running")), "{kept}");
    assert_eq!(
        (&kept["machines"][0]["name"], &kept["machines"][0]["state"]),
        (&json!("dev"), &json!("failed"))
    );
    assert_eq!(kept["machines"][0]["id"], json!(world.only().id));
    let list = world.run("ls").await;
    assert!(list.stdout.contains("dev"), "{list:?}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_machine_can_be_logged_in_to_with_its_own_key() {
    let world = World::new().await;
    let keygen =
        world.program("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "mine"]).status().await;
    assert!(keygen.unwrap().success());
    world.script(Script::NeverLogin { cause: LoginTrouble::KeyLate { ms: 3000 } });
    let kept =
        world.run("provision --gpus RTX4090 --name dev --ssh-key mine --boot-timeout 2s --keep-failed").await;
    assert_eq!(kept.code, 6, "{kept:?}");
    tokio::time::sleep(std::time::Duration::from_millis(2000)).await;
    let ran = world.run("ssh dev -- echo hello").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{ran:?}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_never_works_says_why() {
    let world = World::new().await;
    world.script(Script::NeverLogin { cause: LoginTrouble::KeyLate { ms: 1500 } });
    world.provision("dev").await;
    world.remove("dev").await;
    for (cause, words) in [
        (LoginTrouble::NoKey, ".ssh/gpuprov/id_ed25519 yet (permission denied)"),
        (LoginTrouble::Closed, "nothing listens yet"),
        (LoginTrouble::ForwardingOff, "ssh at 127.0.0.1:"),
    ] {
        world.script(Script::NeverLogin { cause });
        let ran = world.run("provision --gpus RTX4090 --name dev --attempts 1 --boot-timeout 2500ms").await;
        assert_eq!(ran.code, 5, "{ran:?}");
        let error = ran.stderr.split("error:").last().unwrap();
        assert!(error.contains(words), "{cause:?}: {}", ran.stderr);
        world.assert_empty();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_that_end_while_they_start() {
    let world = World::new().await;
    world.script(Script::GoesExited { ms: 50 });
    let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, outcomes(&made)), (0, vec!["not_ready", "created"]), "{made}");
    world.remove("dev").await;
    // Removed by somebody: it is not bought again.
    let before = world.creates();
    world.script(Script::Disappears { ms: 100 });
    let (code, made) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, made["error"]["kind"].as_str()), (1, Some("removed")), "{made}");
    assert_eq!(world.creates(), before + 1);
    world.assert_empty();
    assert_eq!(world.record("dev"), None);
    // One look that misses it is no loss.
    world.sandbox.add_fault(Fault::on("get_pod", FaultKind::status(404)).nth(2));
    world.script(Script::RuntimeSequence);
    world.provision("dev").await;
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_answers_while_it_starts_are_waited_out() {
    let slow = std::time::Duration::from_millis(1800);
    let world = World::with(|options| options.boot = (slow, slow)).await;
    world
        .sandbox
        .add_fault(Fault::on("get_pod", FaultKind::StatusWord { word: "VALIDATING2".to_owned() }).times(15));
    world.fault("get_pod", FaultKind::status(500));
    world.fault("get_pod", FaultKind::ExtraFields);
    let made = world.provision("dev").await;
    assert!(world.sandbox.faults().is_empty(), "{made:?}");
    assert!(made.stderr.contains("VALIDATING2"), "{}", made.stderr);
    world.remove("dev").await;
}
