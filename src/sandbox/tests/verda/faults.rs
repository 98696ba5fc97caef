//! What goes wrong at Verda.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Rig;
use super::{body, delete, plain, with};
use crate::sandbox::faults::When;
use crate::sandbox::{Fault, FaultKind, LeftKind, Script, VerdaFault, VerdaScript};

async fn ready() -> (Rig, String, String) {
    let rig = Rig::new().await;
    let token = rig.verda_token().await;
    let (_, public) = rig.key("id_test", "ed25519").await;
    let key = rig.verda_key(&token, &public).await;
    (rig, token, key)
}

impl Rig {
    fn verda_fault(&self, operation: &str, fault: impl Into<FaultKind>) {
        self.sandbox.verda().add_fault(Fault::on(operation, fault.into()));
    }

    fn verda_script(&self, script: impl Into<Script>) {
        self.verda_fault("create_instance", FaultKind::Script { script: script.into() });
    }
}

#[tokio::test]
async fn refused_creates() {
    let (rig, token, key) = ready().await;
    for (fault, status, code) in [
        (VerdaFault::no_capacity(), 503, "service_unavailable"),
        (VerdaFault::wrong_image(), 400, "invalid_request"),
        (VerdaFault::quota("Volume limit exceeded"), 400, "invalid_request"),
        (VerdaFault::no_funds(), 402, "insufficient_funds"),
        (VerdaFault::scope(), 403, "forbidden_action"),
    ] {
        rig.verda_fault("create_instance", fault);
        let (got, answer) = rig.ask_verda(&token, "POST", "instances", Some(plain(&key))).await;
        assert_eq!((got, &answer["code"]), (status, &json!(code)));
        assert!(rig.sandbox.alive().is_empty());
    }
    // Those that take effect all the same.
    rig.verda_fault("create_instance", VerdaFault::server_error_after());
    let untagged = with(&key, json!({"tags": null}));
    let (got, answer) = rig.ask_verda(&token, "POST", "instances", Some(untagged)).await;
    assert_eq!((got, &answer["code"], rig.sandbox.alive().len()), (500, &json!("server_error"), 1));
    rig.verda_fault("create_instance", FaultKind::AppearLater { ms: 400 });
    let url = format!("{}/v1/instances", rig.sandbox.verda().endpoint());
    let cut = rig.client.post(url).bearer_auth(&token).json(&body(&key)).send().await;
    assert!(cut.is_err() && rig.sandbox.alive().len() == 2);
    let path = "instances?tag=free";
    assert_eq!(rig.ask_verda(&token, "GET", path, None).await.1, json!([]));
    tokio::time::sleep(Duration::from_millis(420)).await;
    assert_eq!(rig.ask_verda(&token, "GET", path, None).await.1.as_array().unwrap().len(), 1);
    rig.verda_fault("create_instance", VerdaFault::TagsLost);
    let id = rig.deploy(&token, body(&key)).await;
    assert_eq!(rig.ask_verda(&token, "GET", &format!("instances/{id}"), None).await.1["tags"], json!([]));
    // As the control path reads them.
    let fault: Fault = serde_json::from_value(json!({"on": {"operation": "create_instance", "cloud": "verda"},
        "what": {"kind": "verda", "verda": "failure", "status": 503, "code": "service_unavailable", "message": "no"}})).unwrap();
    assert!(matches!(fault.what, FaultKind::Verda(VerdaFault::Failure { when: When::Before, .. })));
    let script: Script =
        serde_json::from_value(json!({"script": "verda", "verda": "evicted", "ms": 5})).unwrap();
    assert_eq!(script, VerdaScript::Evicted { ms: 5 }.into());
}

#[tokio::test]
async fn boots_that_fail() {
    let (rig, token, key) = ready().await;
    for (script, word) in [
        (VerdaScript::no_capacity(), "no_capacity"),
        (VerdaScript::installation_failed(), "installation_failed"),
        (VerdaScript::quota(), "error"),
        (VerdaScript::EndsAs { word: "offline".into(), ms: 50, error: None, hidden_volume: true }, "offline"),
    ] {
        rig.verda_script(script);
        let id = rig.deploy(&token, plain(&key)).await;
        let one = rig.becomes(&token, &id, word).await;
        assert_eq!((&one["ip"], one["os_volume_id"].is_null()), (&json!(null), word == "offline"));
        assert_eq!(rig.sandbox.alive().len(), 1, "it costs all the same");
        let journal = rig.ask_verda(&token, "GET", &format!("journal/compute/{id}"), None).await.1;
        if word == "error" {
            assert_eq!(journal[0]["error_message"], "GPU_QUOTA_EXCEEDED");
        }
        assert_eq!(
            rig.ask_verda(&token, "PUT", "instances", Some(delete(&id, &one["volume_ids"]))).await.0,
            202
        );
    }
    assert_eq!(rig.kinds(), [LeftKind::Detached, LeftKind::SshKey], "the volume that was not told of");
    rig.verda_script(VerdaScript::BootsAs { word: "validating2".into() });
    let id = rig.deploy(&token, plain(&key)).await;
    rig.becomes(&token, &id, "validating2").await;
    rig.becomes(&token, &id, "running").await;
    rig.verda_script(VerdaScript::LateAddress { ms: 300 });
    let id = rig.deploy(&token, plain(&key)).await;
    assert!(rig.becomes(&token, &id, "running").await["ip"].is_null());
    rig.verda_script(VerdaScript::Evicted { ms: 100 });
    let id = rig.deploy(&token, body(&key)).await;
    rig.becomes(&token, &id, "discontinued").await;
    rig.verda_script(Script::Disappears { ms: 50 });
    let id = rig.deploy(&token, plain(&key)).await;
    tokio::time::sleep(Duration::from_millis(80)).await;
    assert_eq!(rig.ask_verda(&token, "GET", &format!("instances/{id}"), None).await.0, 404);
    assert_eq!(rig.sandbox.alive().len(), 2);
}

#[tokio::test]
async fn deletes_that_fail() {
    let (rig, token, key) = ready().await;
    rig.verda_script(VerdaScript::RefusesDelete { times: 2 });
    let id = rig.deploy(&token, body(&key)).await;
    let one = rig.becomes(&token, &id, "running").await;
    let remove = |fault: Option<VerdaFault>| {
        if let Some(fault) = fault {
            rig.verda_fault("instance_action", fault);
        }
        rig.ask_verda(&token, "PUT", "instances", Some(delete(&id, &one["volume_ids"])))
    };
    for _ in 0..2 {
        let (status, answer) = remove(None).await;
        assert_eq!((status, &answer["message"]), (403, &json!("Can't discontinue a provisioning instance")));
    }
    assert_eq!(remove(Some(VerdaFault::provisioning())).await.0, 403);
    let failed =
        VerdaFault::ItemsFail { status: 403, error: "Can't discontinue a provisioning instance".into() };
    let (status, items) = remove(Some(failed)).await;
    assert_eq!((status, &items[0]["status"], &items[0]["statusCode"]), (207, &json!("error"), &json!(403)));
    assert_eq!(remove(Some(VerdaFault::NoEffect)).await.0, 202);
    assert_eq!(rig.sandbox.alive().len(), 1);
    assert_eq!(remove(Some(VerdaFault::VolumesTrashed)).await.0, 202);
    assert_eq!(rig.kinds(), [LeftKind::Trash, LeftKind::Trash, LeftKind::SshKey]);
    let id = rig.deploy(&token, body(&key)).await;
    let one = rig.becomes(&token, &id, "running").await;
    rig.verda_fault("instance_action", VerdaFault::VolumesStay);
    // Two at once: one of them is none of ours.
    let both = json!({"action": "delete", "id": [id, "nobody"], "volume_ids": one["volume_ids"], "delete_permanently": true});
    let (status, items) = rig.ask_verda(&token, "PUT", "instances", Some(both)).await;
    assert_eq!(
        (status, &items[0]["status"], &items[1]["error"]),
        (207, &json!("success"), &json!("Invalid instance id"))
    );
    assert_eq!(rig.kinds().iter().filter(|kind| **kind == LeftKind::Detached).count(), 2);
    let hibernate = json!({"action": "hibernate", "id": [id]});
    rig.ask_verda(&token, "PUT", "instances", Some(hibernate)).await;
    assert_eq!(rig.sandbox.rejected().len(), 1);
}

#[tokio::test]
async fn looks_and_the_network() {
    let (rig, token, _) = ready().await;
    rig.verda_fault("list_types", FaultKind::PriceFactor { factor: 2.0 });
    let types = rig.ask_verda(&token, "GET", "instance-types", None).await.1;
    assert_eq!(types[0]["price_per_hour"], "3.928");
    rig.verda_fault("list_types", VerdaFault::Euros);
    assert_eq!(rig.ask_verda(&token, "GET", "instance-types", None).await.1[0]["currency"], "eur");
    rig.verda_fault("availability_one", FaultKind::StaleOffer);
    let path = "instance-availability/1H100.80S.32V?location_code=FIN-01";
    assert_eq!(rig.ask_verda(&token, "GET", path, None).await.1, json!(false));
    assert_eq!(rig.ask_verda(&token, "GET", path, None).await.1, json!(true));
    rig.verda_fault("get_instance", FaultKind::StatusWord { word: "hibernating".into() });
    let path = format!("instances/{}", rig.sandbox.verda().foreign_instance());
    assert_eq!(rig.ask_verda(&token, "GET", &path, None).await.1["status"], "hibernating");
    rig.verda_fault("token", FaultKind::status(503));
    let exchange = json!({"grant_type": "refresh_token", "refresh_token": "x"});
    let answer = rig.send_verda("POST", "oauth2/token", None, Some(exchange)).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["code"], "service_unavailable");
    rig.sandbox.verda().unplug();
    let url = format!("{}/v1/instance-types", rig.sandbox.verda().endpoint());
    assert!(rig.client.get(&url).send().await.is_err());
    rig.sandbox.verda().plug().await.unwrap();
    assert_eq!(rig.client.get(&url).send().await.unwrap().status(), 200);
}
