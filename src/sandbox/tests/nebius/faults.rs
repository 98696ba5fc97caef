//! What goes wrong, and how it looks to a client.

use std::time::Duration;

use serde_json::json;

use super::super::super::nebius::probe::any;
use super::{INSTANCES, OPERATIONS, is_running};
use crate::sandbox::tests::Rig;
use crate::sandbox::{
    Fault, FaultKind, Junk, LateCause, NebiusFault, NebiusGuesses, NebiusLeftKind, NebiusScript, RetryAfter,
    When,
};

fn script(script: NebiusScript) -> Fault {
    Fault::on("create_instance", FaultKind::Script { script: script.into() })
}

#[tokio::test]
async fn a_start_fails_late_and_leaves_a_disk() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    let causes = [
        (LateCause::Capacity, Some(8), Some("NotEnoughResources")),
        (LateCause::Quota, Some(8), Some("QuotaFailure")),
        (LateCause::QuotaText, Some(8), None),
        (LateCause::Internal, Some(13), Some("InternalError")),
        (LateCause::Silent, None, None),
    ];
    for (index, (cause, code, word)) in causes.into_iter().enumerate() {
        rig.sandbox.nebius().add_fault(script(NebiusScript::LateFailure { ms: 150, cause }));
        let name = format!("dev{index}");
        let made = client.create(&name, &rig.nebius_spot(&name, "ssh-ed25519 AAAA")).await.unwrap();
        let done = client.finished(made["id"].as_str().unwrap()).await;
        assert_eq!(done["status"]["code"].as_u64(), code, "{done}");
        let detail = done.pointer("/status/details/0").map(any).unwrap_or_default();
        assert_eq!(detail["code"].as_str(), word, "{done}");
        let id = made["resource_id"].as_str().unwrap();
        let shown = client.get(id).await.unwrap();
        assert_eq!(
            (shown["status"]["state"].as_str(), shown["status"].get("reconciling")),
            (Some("STOPPED"), None)
        );
        assert_eq!(rig.sandbox.nebius().left().len(), 2);
        client.delete(id).await.unwrap();
        assert!(rig.sandbox.nebius().left().is_empty());
    }
}

#[tokio::test]
async fn quotas_are_checked_late_or_at_once() {
    for flipped in [false, true] {
        let rig = Rig::with(|options| {
            options.nebius_guesses = NebiusGuesses { quota_at_create: flipped, ..NebiusGuesses::default() };
        })
        .await;
        let mut client = rig.nebius().await;
        rig.sandbox.nebius().set_quota("nebius-1", "compute.instance.non-gpu.vcpu", "eu-north1", Some(3));
        let made = client.create("k-1", &rig.nebius_body("dev", "ssh-ed25519 AAAA")).await;
        if flipped {
            let refused = made.unwrap_err();
            assert_eq!((refused.code, refused.detail["code"].as_str()), (8, Some("QuotaFailure")));
            assert!(rig.sandbox.made().is_empty());
        } else {
            let done = client.finished(made.unwrap()["id"].as_str().unwrap()).await;
            assert_eq!(
                any(&done["status"]["details"][0])["quota_failure"]["violations"][0]["requested"],
                "4"
            );
        }
    }
}

#[tokio::test]
async fn faults_on_the_wire_have_their_grpc_form() {
    let rig = Rig::new().await;
    let client = rig.nebius().await;
    let id = rig.sandbox.nebius().foreign_instance();
    let cases: [(FaultKind, &[i32]); 16] = [
        (FaultKind::status(500), &[13]),
        (FaultKind::status(503), &[14]),
        (FaultKind::status(524), &[2]),
        (FaultKind::status(401), &[16]),
        (FaultKind::status_after(404), &[5]),
        (FaultKind::TooMany { retry_after: RetryAfter::Seconds(1) }, &[8]),
        // A page that is no gRPC at all.
        (FaultKind::TooMany { retry_after: RetryAfter::Nothing }, &[13, 14]),
        (FaultKind::Refuse { detail: "no".into() }, &[3]),
        // A stream that is reset before its headers is a "transport error" for tonic.
        (FaultKind::Hang { when: When::Before, ms: 50 }, &[2, 13]),
        (FaultKind::Reset { when: When::After }, &[2, 13]),
        (FaultKind::CutBody, &[2, 13]),
        (FaultKind::Garbage { body: Junk::Html }, &[13, 14]),
        (FaultKind::Garbage { body: Junk::Empty }, &[13]),
        (FaultKind::Garbage { body: Junk::Torn }, &[13]),
        (NebiusFault::quota("compute.instance.count").into(), &[8]),
        (NebiusFault::code(4, "deadline").into(), &[4]),
    ];
    for (what, codes) in cases {
        rig.sandbox.nebius().add_fault(Fault::on("get_instance", what.clone()));
        let failed = client.get(id).await.unwrap_err();
        assert!(codes.contains(&failed.code), "{what:?}: {failed:?}");
        // The connection goes on.
        client.get(id).await.unwrap();
    }
    rig.sandbox.nebius().add_fault(Fault::on("get_instance", NebiusFault::Disconnect.into()));
    client.get(id).await.unwrap_err();
    client.get(id).await.unwrap();
    rig.sandbox.nebius().add_fault(Fault::on("get_instance", NebiusFault::Hollow.into()));
    assert_eq!(client.get(id).await.unwrap(), json!({}));
    rig.sandbox.nebius().add_fault(Fault::on("get_instance", FaultKind::StatusWord { word: "LIMBO".into() }));
    let bytes = client.get_raw(id).await;
    assert!(bytes.unwrap_err().contains("has no value 77"));
    rig.sandbox.nebius().add_fault(Fault::on("get_instance", FaultKind::ExtraFields));
    assert!(client.get_raw(id).await.unwrap_err().contains("has no field 18001"));
    rig.sandbox.nebius().add_fault(Fault::on("get_instance", FaultKind::Garbage { body: Junk::WrongType }));
    assert!(client.get_raw(id).await.is_err());
}

#[tokio::test]
async fn an_answer_is_lost_and_the_machine_appears_later() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    rig.sandbox.nebius().add_fault(Fault::on("create_instance", FaultKind::AppearLater { ms: 300 }));
    let body = rig.nebius_body("dev", "ssh-ed25519 AAAA");
    client.create("k-1", &body).await.unwrap_err();
    assert_eq!(rig.sandbox.alive().len(), 1);
    let by_name = json!({"parent_id": body["metadata"]["parent_id"], "name": "dev"});
    let path = format!("{INSTANCES}/GetByName");
    assert_eq!(client.ask(&path, by_name.clone()).await.unwrap_err().code, 5);
    let again = client.create("k-1", &body).await.unwrap();
    assert_eq!(rig.sandbox.made().len(), 1);
    tokio::time::sleep(Duration::from_millis(350)).await;
    let found = client.ask(&path, by_name).await.unwrap();
    assert_eq!(found["metadata"]["id"], again["resource_id"]);
}

#[tokio::test]
async fn operations_get_lost_and_deletes_are_refused() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    let nebius = rig.sandbox.nebius();
    nebius.add_fault(Fault::on("create_instance", NebiusFault::OperationLost.into()));
    nebius.add_fault(script(NebiusScript::RefusesDelete { times: 1 }));
    let made = client.create("k-1", &rig.nebius_body("dev", "ssh-ed25519 AAAA")).await.unwrap();
    assert_eq!(client.operation(made["id"].as_str().unwrap()).await.unwrap_err().code, 5);
    let id = made["resource_id"].as_str().unwrap();
    let listed = client.ask(&format!("{OPERATIONS}/List"), json!({"resource_id": id})).await.unwrap();
    assert!(listed.get("operations").is_none());
    client.becomes(id, is_running).await;
    assert_eq!(client.delete(id).await.unwrap_err().code, 9);
    nebius.add_fault(Fault::on("delete_instance", NebiusFault::NoEffect.into()));
    client.delete(id).await.unwrap();
    assert_eq!(rig.sandbox.alive().len(), 1);
    nebius.add_fault(Fault::on("delete_instance", NebiusFault::DiskStays.into()));
    client.delete(id).await.unwrap();
    let kinds: Vec<NebiusLeftKind> = nebius.left().into_iter().map(|left| left.kind).collect();
    assert_eq!(kinds, [NebiusLeftKind::DetachedDisk]);
}

#[test]
fn faults_are_plain_data() {
    let text = r#"{"on":{"cloud":"nebius","operation":"create_instance"},
        "what":{"kind":"script","script":{"script":"nebius","nebius":"late_failure","ms":5,"cause":"quota"}}}"#;
    let fault: Fault = serde_json::from_str(text).unwrap();
    let cause = LateCause::Quota;
    let wanted = FaultKind::Script { script: NebiusScript::LateFailure { ms: 5, cause }.into() };
    assert_eq!(fault.what, wanted);
    let text = r#"{"on":{},"what":{"kind":"nebius","nebius":"failure","code":8,"message":"m"}}"#;
    assert!(serde_json::from_str::<Fault>(text).is_ok());
}
