//! Refusals that come with the operation, some seconds after the create was accepted.

use serde_json::{Value, json};

use crate::cloud::gcp::samples::*;
use crate::cloud::{Cloud, Error, ErrorKind, Limit, Look, Reached};
use crate::http::canned::Reply;
use crate::model::machine::MachineState;

const GET: &str = "GET /zones/us-central1-a/instances/gpuprov-dev-00ff00";
const WAIT: &str =
    "POST /zones/us-central1-a/operations/operation-1796030000000-64a1b2c3d4e5f-11112222-33334444/wait";

async fn look(wait: Vec<Reply>, get: Vec<Reply>) -> Look {
    let server = server(vec![(WAIT, wait), (GET, get)]).await;
    cloud(&server.base).inspect(&handle()).await.unwrap()
}

fn no_machine() -> Reply {
    missing("zones/us-central1-a/instances/gpuprov-dev-00ff00")
}

async fn late(operation: Value) -> Box<Error> {
    let look = look(vec![good(&operation)], vec![no_machine()]).await;
    let failed = look.failed.unwrap();
    assert_eq!((look.state, failed.reached), (MachineState::Gone, Reached::No));
    failed
}

#[tokio::test]
async fn nothing_left_in_the_zone_and_better_ones() {
    let error = late(exhausted()).await;
    assert_eq!(error.kind, ErrorKind::NoCapacity);
    assert_eq!(error.prefer, ["us-central1-c", "us-east1-b"]);
    assert_eq!(
        error.limit,
        Some(Limit {
            zone: Some(ZONE.to_owned()),
            instance_type: Some("g2-standard-4".to_owned()),
            spot: Some(true),
            ..Limit::default()
        })
    );
    for code in [
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        "STOCKOUT",
        "UNSUPPORTED_OPERATION",
        "RESOURCE_POOL_EXHAUSTED",
        "REGION_RESOURCE_POOL_EXHAUSTED",
        "VM_MIN_COUNT_NOT_REACHED",
        "INTERNAL_ERROR",
    ] {
        assert_eq!(late(failed(0, code, "x", json!([]))).await.kind, ErrorKind::NoCapacity, "{code}");
    }
}

#[tokio::test]
async fn quotas_say_what_else_would_fail() {
    let quota = |message: &str, details: Value| failed(403, "QUOTA_EXCEEDED", message, details);
    let all = quota(
        "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.",
        json!([{"quotaInfo": {
            "metricName": "compute.googleapis.com/gpus_all_regions", "limitName": "GPUS-ALL-REGIONS-per-project",
            "dimensions": {"global": "global"}, "limit": 0,
        }}]),
    );
    let error = late(all).await;
    assert_eq!((error.kind, error.limit), (ErrorKind::Quota, Some(Limit::default())));
    let hint = error.hint.unwrap();
    assert!(hint.contains("GPUS_ALL_REGIONS in all regions (now 0)"), "{hint}");

    let error = late(quota(
        "Quota 'PREEMPTIBLE_NVIDIA_L4_GPUS' exceeded.  Limit: 0.0 in region us-central1.",
        json!([]),
    ))
    .await;
    assert_eq!(
        error.limit,
        Some(Limit {
            region: Some("us-central1".to_owned()),
            gpu: Some("L4".to_owned()),
            spot: Some(true),
            ..Limit::default()
        })
    );
    let error = late(quota("Quota 'A2_CPUS' exceeded.  Limit: 12.0 in region us-central1.", json!([]))).await;
    let limit = error.limit.unwrap();
    assert_eq!((limit.instance_type.as_deref(), limit.gpu), (Some("g2-standard-4"), None));
    let error =
        late(quota("Quota 'SSD_TOTAL_GB' exceeded.  Limit: 500.0 in region us-central1.", json!([]))).await;
    assert_eq!(error.limit, Some(Limit { region: Some("us-central1".to_owned()), ..Limit::default() }));

    // The code decides, not the 403 (CPUS_ALL_REGIONS), and the details where the sentence is another one.
    let details = json!([{"quotaInfo": {
        "metricName": "compute.googleapis.com/nvidia_l4_gpus", "dimensions": {"region": "us-central1"}, "limit": 1,
    }}]);
    let error = late(quota("Out of quota", details)).await;
    assert_eq!((error.kind, error.limit.unwrap().region.as_deref()), (ErrorKind::Quota, Some("us-central1")));
    let error = late(failed(
        403,
        "FORBIDDEN",
        "Quota 'CPUS_ALL_REGIONS' exceeded.  Limit: 12.0 globally.",
        json!([]),
    ))
    .await;
    // A smaller machine may still fit.
    let limit = Limit { instance_type: Some("g2-standard-4".to_owned()), ..Limit::default() };
    assert_eq!((error.kind, error.limit), (ErrorKind::Quota, Some(limit)));
}

#[tokio::test]
async fn other_late_refusals() {
    let of = |status, code: &str, message: &str| failed(status, code, message, json!([]));
    let policy = "Constraint constraints/compute.vmExternalIpAccess violated for project 123.";
    let error = late(of(412, "CONDITION_NOT_MET", policy)).await;
    assert_eq!((error.kind, error.limit), (ErrorKind::Forbidden, Some(Limit::default())));
    assert!(error.hint.unwrap().contains("vmExternalIpAccess"));
    let policy =
        "Location ZONE:us-central1-a violates constraint constraints/gcp.resourceLocations on the resource x";
    let error = late(of(412, "CONDITION_NOT_MET", policy)).await;
    let limit = Limit { zone: Some("us-central1-a".to_owned()), ..Limit::default() };
    assert_eq!((error.kind, error.limit), (ErrorKind::Forbidden, Some(limit)), "other zones may be allowed");
    let error = late(of(400, "INVALID_USAGE", "x")).await;
    assert_eq!(error.kind, ErrorKind::Rejected);
    assert_eq!(error.limit.unwrap().instance_type.as_deref(), Some("g2-standard-4"));
    let error =
        late(of(403, "PERMISSIONS_ERROR", "Required 'compute.disks.create' permission for 'projects/x'"))
            .await;
    assert_eq!(error.kind, ErrorKind::Forbidden);
    assert_eq!(late(of(0, "SOMETHING_NEW", "who knows")).await.kind, ErrorKind::NoCapacity);
    let bare = changed(operation("insert", "DONE"), json!({"httpErrorStatusCode": 503}));
    assert_eq!(late(bare).await.kind, ErrorKind::NoCapacity);
}

#[tokio::test]
async fn a_machine_that_lives_though_its_operation_failed() {
    let gone = "The resource 'projects/lab-1/zones/us-central1-a/instances/gpuprov-dev-00ff00' was not found";
    let operation = failed(404, "RESOURCE_NOT_FOUND", gone, json!([]));
    let look = look(vec![good(&operation)], vec![good(&running())]).await;
    assert_eq!(look.state, MachineState::Failed, "it is there, and must be removed");
    assert_eq!(look.failed.unwrap().kind, ErrorKind::NoCapacity);
    assert!(look.ssh.is_empty());
}

#[tokio::test]
async fn an_operation_that_is_lost_leaves_the_word_to_the_machine() {
    let lost = || missing(&format!("zones/us-central1-a/operations/{OPERATION}"));
    let seen = look(vec![lost()], vec![good(&staging())]).await;
    assert_eq!((seen.state, seen.failed.is_none()), (MachineState::Creating, true));
    let unseen = look(vec![lost()], vec![no_machine()]).await;
    assert_eq!((unseen.state, unseen.failed.is_none()), (MachineState::Gone, true));
}

#[tokio::test]
async fn an_operation_is_waited_for_and_then_not_asked_again() {
    let server = server(vec![
        (WAIT, vec![good(&operation("insert", "RUNNING")), good(&operation("insert", "DONE"))]),
        (GET, vec![good(&staging()), good(&running())]),
    ])
    .await;
    let cloud = cloud(&server.base);
    let mut states = Vec::new();
    for _ in 0..3 {
        states.push(cloud.inspect(&handle()).await.unwrap().state);
    }
    assert_eq!(states, [MachineState::Creating, MachineState::Creating, MachineState::Running]);
    assert_eq!(calls(&server).iter().filter(|call| call.ends_with("/wait")).count(), 2);
}

#[tokio::test]
async fn a_machine_made_without_our_labels_is_given_up() {
    let bare = changed(staging(), json!({"labels": null}));
    let look = look(vec![good(&operation("insert", "DONE"))], vec![good(&bare)]).await;
    assert!(look.failed.unwrap().message.contains("labels"));
}
