//! What goes wrong on purpose, and what is left then.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{FIVE, PLAIN, Rig, body, direct, login, proxy, with};
use crate::sandbox::{
    Fault, FaultKind, GoneForm, LoginTrouble, Script, Throttle, VastFault, VastScript, When,
};

#[tokio::test]
async fn an_ask_is_gone() {
    let rig = Rig::new().await;
    let forms = [
        (GoneForm::BadRequest, 400, "invalid_args"),
        (GoneForm::NotFound, 404, "invalid_args"),
        (GoneForm::Gone, 410, "no_such_ask"),
        (GoneForm::Ok, 200, "no_such_ask"),
    ];
    for ((form, status, error), ask) in forms.into_iter().zip(20_401_000..) {
        let ask = 20_401_000 + (ask - 20_401_000) * 10;
        rig.sandbox.vast().add_fault(Fault::on("create", VastFault::AskGone { form }.into()));
        let (code, answer) = rig.ask_vast("PUT", &format!("asks/{ask}/"), Some(body())).await;
        assert_eq!(
            (code, answer["success"].as_bool(), answer["error"].as_str()),
            (status, Some(false), Some(error))
        );
        let query = json!({"ask_contract_id": {"eq": ask}, "rentable": {"eq": true}});
        assert!(rig.search(query).await.is_empty(), "nobody sees it any more");
    }
    assert!(rig.sandbox.alive().is_empty() && rig.sandbox.rejected().is_empty());
}

#[tokio::test]
async fn something_is_left() {
    let rig = Rig::new().await;
    let left = VastFault::LeavesStopped { status: 200, error: "resources_unavailable".into() };
    rig.sandbox.vast().add_fault(Fault::on("create", left.into()));
    let (status, answer) = rig.ask_vast("PUT", &format!("asks/{PLAIN}/"), Some(body())).await;
    assert_eq!((status, answer["success"].as_bool()), (200, Some(false)));
    let id = answer["new_contract"].as_u64().unwrap();
    assert_eq!(
        (rig.instance(id).await["cur_state"].as_str(), rig.sandbox.alive().len()),
        (Some("stopped"), 1)
    );
    let (status, answer) =
        rig.ask_vast("PUT", &format!("asks/{FIVE}/"), Some(with(json!({"price": 0.15})))).await;
    assert_eq!((status, answer["success"].as_bool()), (400, Some(false)));
    let other = answer["new_contract"].as_u64().unwrap();
    assert_eq!(rig.sandbox.alive().len(), 2, "a bid below the least");
    for id in [id, other] {
        assert_eq!(rig.ask_vast("DELETE", &format!("instances/{id}/"), Some(json!({}))).await.0, 200);
    }
    assert!(rig.sandbox.alive().is_empty());
    // The answer is lost, and the machine shows late.
    rig.sandbox.vast().add_fault(Fault::on("create", FaultKind::AppearLater { ms: 300 }));
    let url = format!("{}/api/v0/asks/{PLAIN}/", rig.sandbox.vast().endpoint());
    let lost = rig.client.put(&url).bearer_auth(rig.sandbox.vast().key()).json(&body()).send().await;
    assert!(lost.is_err());
    let id = rig.sandbox.alive()[0].id.parse().unwrap();
    assert!(rig.instance(id).await.is_null());
    let until = Instant::now() + Duration::from_secs(5);
    while rig.instance(id).await.is_null() {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::test]
async fn a_200_that_is_none() {
    let rig = Rig::new().await;
    let vast = rig.sandbox.vast();
    let failure = |when| VastFault::Failure { error: "server_error".into(), msg: "try later".into(), when };
    vast.add_fault(Fault::on("create", failure(When::After).into()));
    let (status, answer) = rig.ask_vast("PUT", &format!("asks/{PLAIN}/"), Some(body())).await;
    assert_eq!((status, answer["success"].as_bool(), rig.sandbox.alive().len()), (200, Some(false), 1));
    let id: u64 = rig.sandbox.alive()[0].id.parse().unwrap();
    let path = format!("instances/{id}/");
    vast.add_fault(Fault::on("delete_instance", failure(When::Before).into()));
    assert_eq!(rig.ask_vast("DELETE", &path, None).await.1["success"], false);
    vast.add_fault(Fault::on("delete_instance", VastFault::NoEffect.into()));
    assert_eq!(rig.ask_vast("DELETE", &path, None).await.1["success"], true);
    assert_eq!((rig.sandbox.alive().len(), rig.instance(id).await.is_null()), (1, false));
    for (shape, retry_after) in [(Throttle::Text, None), (Throttle::Detail, Some(2)), (Throttle::Slug, None)]
    {
        vast.add_fault(Fault::on("delete_instance", VastFault::Throttled { shape, retry_after }.into()));
        let answer = rig.vast("DELETE", &path, None).await;
        assert_eq!(
            (answer.status().as_u16(), answer.headers().contains_key("retry-after")),
            (429, retry_after.is_some())
        );
        assert_eq!(answer.text().await.unwrap().starts_with('{'), shape != Throttle::Text);
    }
    assert_eq!(rig.ask_vast("DELETE", &path, None).await.0, 200);
    let played = rig.sandbox.requests().iter().filter(|request| !request.faults.is_empty()).count();
    assert_eq!((played, rig.sandbox.alive().len()), (6, 0));
    vast.add_fault(Fault::on("current_user", FaultKind::status(503)));
    let (status, answer) = rig.ask_vast("GET", "users/current/", None).await;
    assert_eq!((status, answer["error"].as_str()), (503, Some("server_error")));
    vast.set_credit(vast.key(), 0.0);
    let (status, answer) = rig.ask_vast("PUT", &format!("asks/{PLAIN}/"), Some(body())).await;
    assert_eq!((status, answer["error"].as_str()), (200, Some("insufficient_credit")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_way_only() {
    let rig = Rig::new().await;
    let (key, public) = rig.key("id_ways", "ed25519").await;
    let closed = Some(LoginTrouble::Closed);
    for (script, open) in [
        (VastScript::Doors { direct: closed, proxy: None }, [false, true]),
        (VastScript::Doors { direct: None, proxy: closed }, [true, false]),
        (VastScript::Doors { direct: None, proxy: Some(LoginTrouble::NoKey) }, [true, false]),
    ] {
        rig.sandbox.vast().add_fault(Fault::on("create", FaultKind::Script { script: script.into() }));
        let id = rig.rent(PLAIN, body()).await;
        rig.attach(id, &public).await;
        let one = rig.running(id).await;
        let ports = [direct(&one), proxy(&one)];
        let good = if open[0] { 0 } else { 1 };
        assert_eq!(login(&key, ports[good], "true").await.0, 0);
        let other = super::run(super::ssh(&key, ports[1 - good]).args(["root@127.0.0.1", "true"])).await;
        assert_eq!(other.0, 255, "{other:?}");
        assert_eq!(rig.ask_vast("DELETE", &format!("instances/{id}/"), None).await.0, 200);
    }
    // Attached, and the key is not there.
    rig.sandbox.vast().add_fault(Fault::on("attach_key", VastFault::NoEffect.into()).times(50));
    let id = rig.rent(PLAIN, body()).await;
    rig.attach(id, &public).await;
    let one = rig.running(id).await;
    rig.sandbox.clear_faults();
    let until = Instant::now() + Duration::from_secs(5);
    while std::net::TcpStream::connect(("127.0.0.1", direct(&one))).is_err() {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(super::run(super::ssh(&key, direct(&one)).args(["root@127.0.0.1", "true"])).await.0, 255);
    rig.attach(id, &public).await;
    assert_eq!(login(&key, direct(&one), "true").await.0, 0);
}

/// The status fields of the offers that end in a certain way, once the boot is over.
#[tokio::test]
async fn ends_of_a_boot() {
    let rig = Rig::with(|options| options.clock = crate::sandbox::ClockMode::Step).await;
    let machine = |place: u64| 20_000_000 + (54_001 + place) * 10;
    let ends = [
        ("created", "stopped", "OCI runtime create failed"),
        ("exited", "running", ""),
        ("offline", "running", ""),
        ("unknown", "running", ""),
        ("loading", "stopped", ""),
        ("loading", "running", "manifest unknown"),
        ("loading", "running", "no space left on device"),
    ];
    for ((actual, contract, text), place) in ends.into_iter().zip(0..) {
        let id = rig.rent(machine(place), body()).await;
        rig.sandbox.step(Duration::from_secs(1));
        let one = rig.instance(id).await;
        assert_eq!(
            (one["actual_status"].as_str(), one["cur_state"].as_str(), one["intended_status"].as_str()),
            (Some(actual), Some(contract), Some(contract)),
            "{place}"
        );
        assert!(one["status_msg"].as_str().unwrap_or_default().contains(text), "{one}");
    }
    for (place, queued) in [(7, false), (8, true)] {
        let id = rig.rent(machine(place), body()).await;
        rig.sandbox.step(Duration::from_secs(70));
        let one = rig.instance(id).await;
        let words = ["cur_state", "intended_status", "status_msg"].map(|name| one[name].as_str().unwrap());
        assert_eq!(words, ["stopped", "running", ""]);
        let path = format!("instances/{id}/");
        let (_, answer) = rig.ask_vast("PUT", &path, Some(json!({"state": "running"}))).await;
        assert_eq!(answer["success"].as_bool(), Some(!queued));
        rig.sandbox.step(Duration::from_secs(1));
        assert_eq!(rig.instance(id).await["actual_status"] == "running", !queued);
    }
    let id = rig.rent(machine(9), body()).await;
    assert_eq!(rig.instance(id).await["disk_space"], 8.0);
    let id = rig.rent(20_550_010, with(json!({"price": 0.03}))).await;
    let one = rig.instance(id).await;
    assert_eq!((one["is_bid"].as_bool(), one["dph_base"].as_f64()), (Some(false), Some(0.06)));
    let id = rig.rent(20_550_020, with(json!({"price": 0.035}))).await;
    rig.sandbox.step(Duration::from_secs(4));
    assert_eq!(rig.instance(id).await["cur_state"], "stopped");
    let id = rig.rent(20_530_010, body()).await;
    assert_eq!(rig.instance(id).await["gpu_name"], "H100 SXM");
    let id = rig.rent(20_521_010, with(json!({"image": "vastai/base-image:cuda-12.8.1-auto"}))).await;
    rig.sandbox.step(Duration::from_secs(1));
    let one = rig.instance(id).await;
    assert!(one["status_msg"].as_str().unwrap().contains("unsatisfied condition: cuda>=12.8"), "{one}");
    let id = rig.rent(20_520_080, body()).await;
    rig.sandbox.step(Duration::from_secs(1));
    let one = rig.instance(id).await;
    assert_eq!((&one["ports"]["22/tcp"], &one["public_ipaddr"]), (&Value::Null, &Value::Null));
    assert!(one["ssh_port"].is_number(), "the proxy is the only way");
}

#[tokio::test]
async fn scripts_of_looks() {
    let rig = Rig::with(|options| options.clock = crate::sandbox::ClockMode::Step).await;
    let vast = rig.sandbox.vast();
    vast.add_fault(Fault::on("create", FaultKind::Script { script: Script::RuntimeSequence }));
    let id = rig.rent(PLAIN, body()).await;
    rig.sandbox.step(Duration::from_secs(1));
    let mut ports = Vec::new();
    for _ in 0..6 {
        ports.push(rig.instance(id).await["ports"].clone());
    }
    assert!(ports[2].is_null() && ports[4] == json!({}) && ports[5]["22/tcp"].is_array());
    vast.add_fault(Fault::on("get_instance", VastFault::NoPorts.into()));
    assert!(rig.instance(id).await.get("ports").is_none());
    vast.add_fault(Fault::on(
        "create",
        FaultKind::Script { script: VastScript::NullFirst { ms: 2000 }.into() },
    ));
    let id = rig.rent(FIVE, body()).await;
    assert!(rig.instance(id).await.is_null());
    rig.sandbox.step(Duration::from_secs(2));
    assert!(!rig.instance(id).await.is_null());
    vast.add_fault(Fault::on("create", FaultKind::Script { script: Script::Disappears { ms: 500 } }));
    let id = rig.rent(FIVE + 1, body()).await;
    let before = rig.sandbox.alive().len();
    rig.sandbox.step(Duration::from_secs(1));
    assert!(rig.instance(id).await.is_null() && rig.sandbox.alive().len() == before - 1);
}

#[tokio::test]
async fn over_the_control_path() {
    let rig = Rig::new().await;
    let control = rig.sandbox.control_endpoint();
    let post = |path: &str, body: Value| rig.client.post(format!("{control}/{path}")).json(&body).send();
    let fault = json!({"on": {"operation": "create", "cloud": "vast"}, "what": {"kind": "vast", "vast": "ask_gone", "form": "gone"}});
    let script = json!({"on": {"operation": "create", "nth": 2, "cloud": "vast"},
        "what": {"kind": "script", "script": {"script": "vast", "vast": "doors", "direct": {"cause": "closed"}}}});
    assert_eq!(post("faults", json!([fault, script])).await.unwrap().status(), 204);
    assert_eq!(rig.ask_vast("PUT", &format!("asks/{PLAIN}/"), Some(body())).await.0, 410);
    let account: Value = post("vast/accounts", json!({})).await.unwrap().json().await.unwrap();
    let seed =
        json!({"account": account["label"], "label": "dev", "bid": 0.2, "env": {"A": "b"}, "age_ms": 60000});
    let made: Value = post("vast/instances", seed).await.unwrap().json().await.unwrap();
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!(post(&format!("vast/instances/{id}/outbid"), json!({})).await.unwrap().status(), 204);
    assert_eq!(post("vast/accounts/vast-1", json!({"credit": 0.01})).await.unwrap().status(), 204);
    assert_eq!(post("vast/nothing", json!({})).await.unwrap().status(), 404);
    assert_eq!(
        rig.client.delete(format!("{control}/vast/instances/{id}")).send().await.unwrap().status(),
        204
    );
    assert_eq!(
        rig.client.delete(format!("{control}/vast/instances/{id}")).send().await.unwrap().status(),
        404
    );
    assert!(rig.sandbox.alive().is_empty());
}
