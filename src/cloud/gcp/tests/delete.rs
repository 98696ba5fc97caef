//! Deleting.

use serde_json::json;

use crate::cloud::gcp::marks;
use crate::cloud::gcp::samples::*;
use crate::cloud::{Cloud, Deletion, ErrorKind};
use crate::http::canned::Reply;
use crate::model::handle::Handle;
use crate::model::machine::MachineState;

const GET: &str = "GET /zones/us-central1-a/instances/gpuprov-dev-00ff00";
const DELETE: &str = "DELETE /zones/us-central1-a/instances/gpuprov-dev-00ff00";
const GET_DISK: &str = "GET /zones/us-central1-a/disks/gpuprov-dev-00ff00";
const DELETE_DISK: &str = "DELETE /zones/us-central1-a/disks/gpuprov-dev-00ff00";
const DELETE_RULE: &str = "DELETE /global/firewalls/gpuprov-00ff00ff00ff00ff";
const GET_RULE: &str = "GET /global/firewalls/gpuprov-00ff00ff00ff00ff";
const WAIT: &str =
    "POST /zones/us-central1-a/operations/operation-1796030000000-64a1b2c3d4e5f-11112222-33334444/wait";

fn no_machine() -> Reply {
    missing("zones/us-central1-a/instances/gpuprov-dev-00ff00")
}

fn no_disk() -> Reply {
    missing("zones/us-central1-a/disks/gpuprov-dev-00ff00")
}

fn with_rule() -> Handle {
    Handle { side: vec![marks::rule(RULE, PROJECT)], ..handle() }
}

#[tokio::test]
async fn machine_then_disk_then_rule() {
    let server = server(vec![(GET, vec![good(&running()), no_machine()])]).await;
    let cloud = cloud(&server.base);
    assert_eq!(cloud.delete(&with_rule()).await.unwrap(), Deletion::Gone);
    let deletes: Vec<String> = calls(&server).into_iter().filter(|call| call.starts_with("DELETE")).collect();
    assert_eq!(deletes, [DELETE, DELETE_RULE]);
    assert!(
        server
            .lines()
            .iter()
            .filter(|line| line.starts_with("DELETE"))
            .all(|line| line.contains("requestId="))
    );
    let look = cloud.inspect(&handle()).await.unwrap();
    assert_eq!(look.state, MachineState::Gone);
    assert!(!calls(&server).last().unwrap().contains("operations"), "it is known why");
}

#[tokio::test]
async fn a_delete_on_its_way_is_not_sent_again() {
    let server = server(vec![
        (GET, vec![good(&running()), good(&changed(running(), json!({"status": "STOPPING"}))), no_machine()]),
        (WAIT, vec![good(&operation("delete", "RUNNING")), good(&operation("delete", "DONE"))]),
    ])
    .await;
    let cloud = cloud(&server.base);
    assert!(matches!(cloud.delete(&handle()).await.unwrap(), Deletion::Pending(_)));
    assert_eq!(cloud.delete(&handle()).await.unwrap(), Deletion::Gone);
    assert_eq!(calls(&server).iter().filter(|call| *call == DELETE).count(), 1);
}

#[tokio::test]
async fn a_namesake_is_never_deleted() {
    let server = server(vec![(GET, vec![good(&changed(running(), json!({"id": "99"})))])]).await;
    assert_eq!(cloud(&server.base).delete(&handle()).await.unwrap(), Deletion::Gone);
    assert!(!calls(&server).iter().any(|call| call.starts_with("DELETE")));
}

#[tokio::test]
async fn what_is_gone_is_gone() {
    let none = missing("zones/us-central1-a/instances/gpuprov-dev-00ff00");
    let server_gone = server(vec![(GET, vec![no_machine()])]).await;
    assert_eq!(cloud(&server_gone.base).delete(&handle()).await.unwrap(), Deletion::Gone);
    // Between the look and the delete.
    let server = server(vec![(GET, vec![good(&running()), no_machine()]), (DELETE, vec![none])]).await;
    assert_eq!(cloud(&server.base).delete(&handle()).await.unwrap(), Deletion::Gone);
}

#[tokio::test]
async fn a_machine_still_on_its_way_is_waited_for() {
    let server = server(vec![
        (GET, vec![no_machine(), no_machine(), good(&staging()), good(&staging()), no_machine()]),
        (WAIT, vec![good(&operation("insert", "RUNNING")), good(&operation("insert", "DONE"))]),
    ])
    .await;
    let cloud = cloud(&server.base);
    for words in ["still making it", "just made it"] {
        let Deletion::Pending(told) = cloud.delete(&handle()).await.unwrap() else { panic!("{words}") };
        assert!(told.contains(words), "{told}");
    }
    assert_eq!(cloud.delete(&handle()).await.unwrap(), Deletion::Gone);
    assert_eq!(calls(&server).iter().filter(|call| *call == DELETE).count(), 1);
}

#[tokio::test]
async fn after_a_failed_create_nothing_is_left() {
    let server = server(vec![
        (GET, vec![no_machine()]),
        (WAIT, vec![good(&exhausted()), good(&exhausted()), good(&operation("delete", "DONE"))]),
        (GET_DISK, vec![good(&disk()), no_disk()]),
    ])
    .await;
    let cloud = cloud(&server.base);
    assert!(cloud.inspect(&handle()).await.unwrap().failed.is_some());
    assert_eq!(cloud.delete(&with_rule()).await.unwrap(), Deletion::Gone);
    for call in [DELETE_DISK, DELETE_RULE] {
        assert!(calls(&server).contains(&call.to_owned()), "{call}");
    }
    let look = cloud.inspect(&handle()).await.unwrap();
    assert_eq!((look.state, look.failed.is_none()), (MachineState::Gone, true));
}

#[tokio::test]
async fn a_disk_of_another_is_left_alone_and_one_in_use_is_waited_for() {
    let other = changed(disk(), json!({"labels": {"gpuprov": "1"}}));
    let of_other = server(vec![(GET, vec![no_machine()]), (GET_DISK, vec![good(&other)])]).await;
    assert_eq!(cloud(&of_other.base).delete(&handle()).await.unwrap(), Deletion::Gone);
    assert!(!calls(&of_other).contains(&DELETE_DISK.to_owned()));
    let used = changed(disk(), json!({"users": ["https://www.googleapis.com/x"]}));
    let in_use = server(vec![(GET, vec![no_machine()]), (GET_DISK, vec![good(&used)])]).await;
    assert!(matches!(cloud(&in_use.base).delete(&handle()).await.unwrap(), Deletion::Pending(_)));

    let left = Handle { data: marks::disk_data(&known()), ..Handle::new("7240199231733014151") };
    let server = server(vec![(GET_DISK, vec![good(&disk()), good(&disk()), good(&disk()), no_disk()])]).await;
    let cloud = cloud(&server.base);
    assert!(
        matches!(cloud.delete(&left).await.unwrap(), Deletion::Pending(_)),
        "the operation alone is no proof"
    );
    assert_eq!(cloud.delete(&left).await.unwrap(), Deletion::Gone);
    assert!(calls(&server).contains(&DELETE_DISK.to_owned()));
}

#[tokio::test]
async fn a_rule_that_may_not_be_seen_was_never_made() {
    let no_right = || problem(403, "forbidden", "Required 'compute.firewalls.delete' permission for 'x'");
    for (get, gone) in [
        (no_right(), true),
        (missing("global/firewalls/gpuprov-00ff00ff00ff00ff"), true),
        (good(&rule()), false),
    ] {
        let server =
            server(vec![(GET, vec![no_machine()]), (DELETE_RULE, vec![no_right()]), (GET_RULE, vec![get])])
                .await;
        let deleted = cloud(&server.base).delete(&with_rule()).await;
        assert_eq!(deleted.is_ok_and(|deleted| deleted == Deletion::Gone), gone);
    }
}

#[tokio::test]
async fn refusals_of_a_delete() {
    let protected =
        "Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion.'";
    let held =
        server(vec![(GET, vec![good(&running())]), (DELETE, vec![problem(400, "invalid", protected)])]).await;
    let error = cloud(&held.base).delete(&handle()).await.unwrap_err();
    assert!(error.hint.unwrap().contains("--no-deletion-protection"));
    let busy = problem(400, "resourceNotReady", "The resource is not ready");
    let busy = server(vec![(GET, vec![good(&running())]), (DELETE, vec![busy])]).await;
    assert!(matches!(cloud(&busy.base).delete(&handle()).await.unwrap(), Deletion::Pending(_)));
    let failed = server(vec![
        (GET, vec![good(&running())]),
        (WAIT, vec![good(&failed(403, "PERMISSIONS_ERROR", "Required 'a.b' permission", json!([])))]),
    ])
    .await;
    let failing = cloud(&failed.base);
    for _ in 0..2 {
        assert_eq!(failing.delete(&handle()).await.unwrap_err().kind, ErrorKind::Forbidden);
    }
    assert_eq!(calls(&failed).iter().filter(|call| *call == DELETE).count(), 2, "a failed one is sent again");
}
