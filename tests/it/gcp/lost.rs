//! Answers that are lost, operations that are, and keys that are not taken.

use gpuprov::sandbox::{FaultKind, GcpFault, Junk, When};
use serde_json::json;

use super::*;
use crate::support::{ended, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_makes_no_second_machine() {
    for what in [
        FaultKind::Reset { when: When::After },
        FaultKind::Reset { when: When::Before },
        FaultKind::CutBody,
        FaultKind::Garbage { body: Junk::Html },
        FaultKind::Garbage { body: Junk::Empty },
        FaultKind::status_after(503),
        FaultKind::status(503),
        FaultKind::status(429),
        GcpFault::server_error_after().into(),
    ] {
        let world = world().await;
        fault(&world, "insert_instance", what.clone());
        let (code, ran) = world.json("provision --gpus L4:1 --name dev --port 8080").await;
        assert_eq!(code, 0, "{what:?}: {ran:#}");
        assert_eq!(world.sandbox.alive().len(), 1, "{what:?}");
        assert_eq!(world.sandbox.made().len(), 1, "{what:?}");
        assert_eq!(ran["tried"].as_array().unwrap().len(), 1, "{what:?}: {ran:#}");
        remove(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_lost_leaves_the_word_to_the_machine() {
    let world = world().await;
    fault(&world, "insert_instance", GcpFault::OperationLost);
    provision(&world, "--gpus L4:1").await;
    fault(&world, "delete_instance", GcpFault::OperationLost);
    remove_unseen(&world).await;
    for what in [
        FaultKind::status(503),
        FaultKind::Reset { when: When::Before },
        FaultKind::Garbage { body: Junk::Html },
    ] {
        fault(&world, "wait_operation", what);
        provision(&world, "--gpus L4:1").await;
        remove(&world).await;
    }
    assert_eq!(world.sandbox.made().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_still_being_made_is_removed_for_good() {
    let world = world().await;
    fault(&world, "insert_instance", GcpFault::OperationSlow { ms: 1500 });
    let child = world.start("provision --gpus L4:1 --name dev");
    until("the create", || world.asked("insert_instance") == 1).await;
    let removed = world.run("rm dev --yes").await;
    assert_eq!(removed.code, 0, "{removed:?}");
    assert_eq!(ended(child).await.code, 1);
    nothing_is_left(&world);

    fault(&world, "insert_instance", GcpFault::OperationSlow { ms: 1500 });
    let mut child = world.start("provision --gpus L4:1 --name dev");
    until("the create", || world.asked("insert_instance") == 2).await;
    until("its record", || {
        world.record("dev").is_some_and(|record| record.to_string().contains("operation-"))
    })
    .await;
    child.kill().await.unwrap();
    let removed = world.run("rm dev --yes").await;
    assert_eq!(removed.code, 0, "{removed:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_the_rule_and_the_machine() {
    let world = world().await;
    fault(&world, "insert_instance", FaultKind::hang(When::Before));
    let mut child = world.start("provision --gpus L4:1 --name dev --port 8080");
    until("the create", || world.asked("insert_instance") == 1).await;
    child.kill().await.unwrap();
    let removed = world.run("rm dev --yes").await;
    assert_eq!(removed.code, 0, "{removed:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_not_taken() {
    let mut world = world().await;
    let deleted = world.sandbox.gcp().deleted_key_file();
    credentials(&mut world, &deleted);
    for command in ["offers --gpus L4:1", "provision --gpus L4:1 --name dev"] {
        let ran = world.run(command).await;
        assert_eq!(ran.code, 4, "{command}: {ran:?}");
        assert!(!format!("{ran:?}").contains("PRIVATE KEY"), "{ran:?}");
    }
    let login = json!({"type": "authorized_user", "client_id": "x", "client_secret": "S3CRET", "refresh_token": "S3CRET"});
    credentials(&mut world, &login.to_string());
    let ran = world.run("offers --gpus L4:1 --cloud gcp").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("user login") && !ran.stderr.contains("S3CRET"), "{ran:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_that_is_away_forgets_nothing() {
    let world = world().await;
    provision(&world, "--gpus L4:1").await;
    world.sandbox.gcp().unplug();
    let ran = world.run("rm dev --yes --cloud-timeout 300ms").await;
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(world.record("dev").is_some());
    world.sandbox.gcp().plug().await.unwrap();
    remove(&world).await;
}
