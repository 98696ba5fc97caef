//! Hosts that do not keep their word, and the ways in to those that do.

use gpuprov::sandbox::{Fault, FaultKind, LoginTrouble, VastFault, VastScript};
use serde_json::json;

use super::{bodies, fault, made, messages, script, world, world_with};
use crate::support::machines::outcomes;

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_never_come_up_are_given_up_at_once() {
    for (machine, words) in [
        (54001, "OCI runtime create failed"),
        (54002, "exited"),
        (54003, "offline"),
        (54004, "unknown"),
        (54005, "stopped"),
        (54006, "manifest unknown"),
        (54007, "no space left on device"),
    ] {
        let world = world().await;
        let (code, ran) =
            world.json(&format!("provision --gpus A6000:1 --zone machine:{machine} --name dev")).await;
        assert_eq!(outcomes(&ran), ["not_ready"], "{machine}: {ran}");
        assert!(code == 3 || code == 1 || code == 5, "{machine}: {code} {ran}");
        assert!(messages(&ran).contains(words), "{machine}: {ran}");
        assert_eq!(made(&world), 1);
        world.assert_empty();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn less_disk_than_rented_is_given_back() {
    let world = world().await;
    let (_, ran) = world.json("provision --gpus A6000:1 --zone machine:54010 --name dev").await;
    assert_eq!(outcomes(&ran), ["differs"], "{ran}");
    assert!(messages(&ran).contains("8 GB of disk"), "{ran}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_gpu_than_sold_is_given_back() {
    let world = world().await;
    let (_, ran) = world.json("provision --gpus B200:1 --zone machine:53001 --name dev").await;
    assert_eq!(outcomes(&ran), ["differs"], "{ran}");
    assert!(messages(&ran).contains("H100"), "{ran}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn whichever_door_opens_is_kept() {
    // The proxy is closed; then the direct port is.
    for (machine, direct) in [(54012, true), (54011, false)] {
        let world = world().await;
        let (code, ran) =
            world.json(&format!("provision --gpus A6000:1 --zone machine:{machine} --name dev")).await;
        assert_eq!(code, 0, "{machine}: {ran}");
        let port = ran["machines"][0]["ssh"]["port"].as_u64().unwrap();
        let record = world.record("dev").unwrap();
        assert_eq!(record["ssh"]["address"]["port"].as_u64(), Some(port));
        for _ in 0..2 {
            let inside = world.run("ssh dev -- echo hello").await;
            assert_eq!((inside.code, inside.stdout.as_str()), (0, "hello\n"), "{machine}: {inside:?}");
            // A look at the machine does not turn back to the door that is closed.
            let (_, listed) = world.json("ls").await;
            assert_eq!(listed["machines"][0]["ssh"]["port"].as_u64(), Some(port), "direct: {direct}");
        }
        world.remove("dev").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_that_only_the_list_tells() {
    let world = world().await;
    world.sandbox.vast().add_fault(Fault::on("get_instance", VastFault::NoPorts.into()).always());
    script(&world, VastScript::Doors { direct: None, proxy: Some(LoginTrouble::Closed) });
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!(code, 0, "{ran}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_tells_only_its_proxy_is_reached() {
    let world = world().await;
    script(&world, VastScript::ProxyOnly);
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!(code, 0, "{ran}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_not_really_attached_is_attached_once_more() {
    // Longer than a late key takes: then the cloud is asked to let us in once more.
    let world = world_with(|options| options.attach_lag = std::time::Duration::ZERO).await;
    fault(&world, "attach_key", VastFault::NoEffect);
    let (code, ran) = world.json("provision --gpus RTX5090:1 --name dev").await;
    assert_eq!(code, 0, "{ran}");
    assert_eq!(world.asked("attach_key"), 2);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_image_that_is_wrong_stops_at_once() {
    let world = world().await;
    fault(&world, "create", FaultKind::Script { script: VastScript::pull_failed().into() });
    let (code, ran) = world.json("provision --gpus RTX5090:1 --image me/mine:1 --name dev").await;
    assert_eq!((code, outcomes(&ran)), (1, vec!["not_ready"]), "{ran}");
    assert!(ran["error"]["message"].as_str().unwrap().contains("pull access denied"), "{ran}");
    assert_eq!(made(&world), 1);
    world.assert_empty();
    assert_eq!(bodies(&world, "create")[0]["image"], json!("me/mine:1"));
}
