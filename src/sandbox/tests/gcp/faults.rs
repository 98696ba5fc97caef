//! What goes wrong.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Rig;
use super::{ZONE, body, on_demand, with};
use crate::sandbox::{
    Fault, FaultKind, GcpFault, GcpLeaves, GcpLeftKind, GcpOperationError, GcpScript, When,
};

fn fault(rig: &Rig, operation: &str, what: GcpFault) {
    rig.sandbox.gcp().add_fault(Fault::on(operation, what.into()));
}

async fn get(rig: &Rig) -> u16 {
    rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.0
}

#[tokio::test]
async fn late_errors() {
    let rig = Rig::new().await;
    fault(
        &rig,
        "insert_instance",
        GcpFault::late(GcpOperationError::exhausted_but(&["us-central1-c", "us-central1-f"])),
    );
    let (status, first) = rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await;
    assert_eq!((status, get(&rig).await), (200, 200), "it is seen for a moment");
    let ended = rig.done(&first).await;
    let error = &ended["error"]["errors"][0];
    assert_eq!(
        (&ended["httpErrorStatusCode"], &error["code"]),
        (&json!(503), &json!("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"))
    );
    let details = &error["errorDetails"][2]["errorInfo"]["metadatas"];
    assert_eq!(details["zonesAvailable"], "us-central1-c,us-central1-f");
    assert_eq!((get(&rig).await, rig.google_kinds()), (404, vec![]));
    for code in
        ["ZONE_RESOURCE_POOL_EXHAUSTED", "STOCKOUT", "RESOURCE_POOL_EXHAUSTED", "UNSUPPORTED_OPERATION"]
    {
        fault(&rig, "insert_instance", GcpFault::late(GcpOperationError::out_of(code)));
        assert_eq!(rig.insert(body("")).await["error"]["errors"][0]["code"], code);
    }
    // Errors after which something lives.
    let error = GcpOperationError::not_found().leaving(GcpLeaves::Instance);
    fault(&rig, "insert_instance", GcpFault::late(error));
    assert_eq!(rig.insert(body("")).await["httpErrorStatusCode"], 404);
    rig.turns("dev", "RUNNING").await;
    assert_eq!(rig.google_kinds(), [GcpLeftKind::Instance, GcpLeftKind::Attached]);
    let gone = rig.google("DELETE", &format!("{ZONE}/instances/dev"), None).await.1;
    rig.done(&gone).await;
    let error = GcpOperationError::exhausted().leaving(GcpLeaves::Disk);
    fault(&rig, "insert_instance", GcpFault::late(error));
    rig.insert(body("")).await;
    assert_eq!((get(&rig).await, rig.google_kinds()), (404, vec![GcpLeftKind::Detached]));
    let only =
        on_demand(&json!({"name": "two", "machineType": format!("{ZONE}/machineTypes/a3-highgpu-1g")}));
    assert_eq!(rig.insert(only).await["error"]["errors"][0]["code"], "ZONE_RESOURCE_POOL_EXHAUSTED");
    assert!(rig.sandbox.alive().is_empty());
}

#[tokio::test]
async fn operations_that_are_lost_or_slow() {
    let rig = Rig::new().await;
    fault(&rig, "insert_instance", GcpFault::OperationLost);
    let (_, first) = rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await;
    let path = format!("{ZONE}/operations/{}", first["name"].as_str().unwrap());
    assert_eq!((rig.google("GET", &path, None).await.0, get(&rig).await), (404, 200));
    fault(&rig, "delete_instance", GcpFault::OperationSlow { ms: 5000 });
    let gone = rig.google("DELETE", &format!("{ZONE}/instances/dev"), None).await.1;
    let waited = rig
        .google("POST", &format!("{ZONE}/operations/{}/wait", gone["name"].as_str().unwrap()), None)
        .await
        .1;
    assert_eq!(waited["status"], "RUNNING", "held for a while, and then answered");
    assert_eq!(get(&rig).await, 404);
    // Answers that are lost.
    rig.sandbox.add_fault(Fault::on("insert_instance", FaultKind::status_after(503)).cloud("gcp"));
    assert_eq!(rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await.0, 503);
    assert_eq!(get(&rig).await, 200);
    rig.sandbox.add_fault(Fault::on("insert_instance", FaultKind::AppearLater { ms: 300 }).cloud("gcp"));
    let token = rig.google_token();
    let url = format!(
        "{}/compute/v1/projects/{}/{ZONE}/instances",
        rig.sandbox.gcp().endpoint(),
        rig.sandbox.gcp().project()
    );
    let sent = rig.client.post(url).bearer_auth(token).json(&with(&json!({"name": "two"}))).send().await;
    assert!(sent.is_err(), "{sent:?}");
    assert_eq!(rig.google("GET", &format!("{ZONE}/instances/two"), None).await.0, 404);
    tokio::time::sleep(Duration::from_millis(320)).await;
    assert_eq!(rig.google("GET", &format!("{ZONE}/instances/two"), None).await.0, 200);
}

#[tokio::test]
async fn deletes_that_lie_or_refuse() {
    let rig = Rig::new().await;
    let path = format!("{ZONE}/instances/dev");
    rig.sandbox.gcp().add_fault(Fault::on(
        "insert_instance",
        FaultKind::Script { script: GcpScript::RefusesDelete { times: 1 }.into() },
    ));
    rig.insert(body("")).await;
    let (status, refused) = rig.google("DELETE", &path, None).await;
    assert_eq!((status, &refused["error"]["errors"][0]["reason"]), (400, &json!("resourceNotReady")));
    fault(&rig, "delete_instance", GcpFault::NoEffect);
    let gone = rig.google("DELETE", &path, None).await.1;
    assert_eq!(rig.done(&gone).await["error"], Value::Null);
    assert_eq!(get(&rig).await, 200, "nothing was done");
    fault(
        &rig,
        "delete_instance",
        GcpFault::late(GcpOperationError::plain(500, "INTERNAL_ERROR", "Internal error.")),
    );
    let gone = rig.google("DELETE", &path, None).await.1;
    assert_eq!(rig.done(&gone).await["httpErrorStatusCode"], 500);
    assert_eq!(get(&rig).await, 200);
    fault(&rig, "delete_instance", GcpFault::DiskStays);
    let gone = rig.google("DELETE", &path, None).await.1;
    let ended = rig.done(&gone).await;
    assert_eq!(ended["warnings"][0]["code"], "RESOURCE_NOT_DELETED");
    assert_eq!((get(&rig).await, rig.google_kinds()), (404, vec![GcpLeftKind::Detached]));
}

#[tokio::test]
async fn refusals_and_scripts() {
    let rig = Rig::new().await;
    for (what, status, reason) in [
        (GcpFault::no_capacity(), 503, "insufficientCapacity"),
        (GcpFault::quota("NVIDIA_L4_GPUS", 0.0, "us-central1"), 403, "quotaExceeded"),
        (GcpFault::rate_limit(), 403, "rateLimitExceeded"),
        (GcpFault::not_ready(), 400, "resourceNotReady"),
        (GcpFault::policy("compute.requireOsLogin"), 412, "conditionNotMet"),
    ] {
        fault(&rig, "insert_instance", what);
        let (found, refused) = rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await;
        assert_eq!((found, &refused["error"]["errors"][0]["reason"]), (status, &json!(reason)));
    }
    assert!(rig.sandbox.made().is_empty());
    fault(&rig, "insert_instance", GcpFault::server_error_after());
    assert_eq!(rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await.0, 503);
    assert_eq!(rig.sandbox.alive().len(), 1);
    rig.sandbox.gcp().remove_instance(&rig.sandbox.alive()[0].id);
    fault(&rig, "insert_instance", GcpFault::LabelsLost);
    rig.insert(body("")).await;
    assert!(rig.turns("dev", "RUNNING").await["labels"].is_null());
    rig.sandbox.gcp().remove_instance(&rig.sandbox.alive()[0].id);
    for (script, name) in [
        (GcpScript::EndsAs { word: "SUSPENDED".into(), ms: 50 }, "SUSPENDED"),
        (GcpScript::BootsAs { word: "REPAIRING".into() }, "REPAIRING"),
    ] {
        rig.sandbox
            .gcp()
            .add_fault(Fault::on("insert_instance", FaultKind::Script { script: script.into() }));
        rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await;
        rig.turns("dev", name).await;
        rig.sandbox.gcp().remove_instance(&rig.sandbox.alive()[0].id);
    }
    rig.sandbox.add_fault(Fault::on("list_instances", FaultKind::Reset { when: When::Before }).cloud("gcp"));
    rig.sandbox.clear_faults();
}
