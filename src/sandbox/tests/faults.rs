//! Every fault once, and the ledger beside it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Rig, body};
use crate::sandbox::{Fault, FaultKind, Junk, LoginTrouble, RetryAfter, RunPodGuesses, Script, When};

const ONE: &str = "/v2/catalog/gpus/NVIDIA%20L4?include=AVAILABILITY&product=POD";

#[tokio::test]
async fn on_the_wire() {
    let rig = Rig::new().await;
    let create = || rig.send("POST", "/v2/pods", Some(body("ssh-ed25519 AAAA")));
    let alive = || rig.sandbox.alive().len();
    let fault = |what: FaultKind| rig.sandbox.add_fault(Fault::on("create_pod", what));

    fault(FaultKind::status(500));
    assert_eq!(create().await.unwrap().status(), 500);
    assert_eq!(alive(), 0);
    fault(FaultKind::status_after(502));
    assert_eq!(create().await.unwrap().status(), 502);
    assert_eq!(alive(), 1);
    fault(FaultKind::Reset { when: When::Before });
    let error = create().await.unwrap_err();
    let mut chain: Option<&dyn std::error::Error> = Some(&error);
    let mut reset = false;
    while let Some(link) = chain {
        let kind = link.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        reset |= kind == Some(std::io::ErrorKind::ConnectionReset);
        chain = link.source();
    }
    assert!(reset, "{error:?}");
    assert_eq!(alive(), 1);
    fault(FaultKind::Reset { when: When::After });
    assert!(create().await.is_err());
    assert_eq!(alive(), 2);
    fault(FaultKind::Hang { when: When::After, ms: 100 });
    assert!(create().await.is_err());
    assert_eq!(alive(), 3);
    fault(FaultKind::CutBody);
    let cut = create().await.unwrap();
    assert_eq!(cut.status(), 201);
    assert!(cut.text().await.is_err());
    assert_eq!(alive(), 4);
    for (junk, text) in [(Junk::Empty, ""), (Junk::WrongType, "[1,\"two\",null]")] {
        fault(FaultKind::Garbage { body: junk });
        assert_eq!(create().await.unwrap().text().await.unwrap(), text);
    }
    fault(FaultKind::Garbage { body: Junk::Torn });
    assert!(create().await.unwrap().json::<Value>().await.is_err());
    fault(FaultKind::Garbage { body: Junk::Html });
    assert_eq!(create().await.unwrap().headers()["content-type"], "text/html");
    fault(FaultKind::Refuse { detail: "the moon is wrong".into() });
    let (status, answer) = rig.ask("POST", "/v2/pods", Some(body("x"))).await;
    assert_eq!((status, answer["detail"].as_str()), (400, Some("the moon is wrong")));
    assert_eq!(alive(), 8);
    assert!(rig.sandbox.faults().is_empty());
}

#[tokio::test]
async fn too_many_and_counting() {
    let rig = Rig::new().await;
    let fault = |what: FaultKind| rig.sandbox.add_fault(Fault::on("list_pods", what));
    fault(FaultKind::TooMany { retry_after: RetryAfter::Seconds(2) });
    fault(FaultKind::TooMany { retry_after: RetryAfter::Date(2) });
    fault(FaultKind::TooMany { retry_after: RetryAfter::Nothing });
    fault(FaultKind::Delay { ms: 60 });
    let answer = rig.send("GET", "/v2/pods", None).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].to_str().unwrap()), (429, "2"));
    let answer = rig.send("GET", "/v2/pods", None).await.unwrap();
    assert!(answer.headers()["retry-after"].to_str().unwrap().ends_with(" GMT"));
    let answer = rig.send("GET", "/v2/pods", None).await.unwrap();
    assert!(answer.headers().get("retry-after").is_none());
    assert_eq!(answer.headers()["content-type"], "text/plain");
    let began = Instant::now();
    assert_eq!(rig.get("/v2/pods").await.0, 200);
    assert!(began.elapsed() >= Duration::from_millis(60));

    rig.sandbox.add_fault(Fault::on_path("GET", "/v2/pods", FaultKind::status(503)).nth(2).times(2));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(rig.get("/v2/pods").await.0);
    }
    assert_eq!(seen, [200, 503, 503, 200]);
    rig.sandbox.add_fault(Fault::on("list_pods", FaultKind::status(401)).always().account("account-2"));
    assert_eq!(rig.get("/v2/pods").await.0, 200);
}

#[tokio::test]
async fn of_meaning() {
    let rig = Rig::new().await;
    let add = |on: &str, what: FaultKind| rig.sandbox.add_fault(Fault::on(on, what));
    add("catalog_one", FaultKind::PriceFactor { factor: 1.5 });
    assert_eq!(rig.get(ONE).await.1["price"]["secure"], json!(0.585));
    add("catalog_one", FaultKind::StaleOffer);
    let stale = rig.get(ONE).await.1;
    assert_eq!((stale["availability"].as_str(), stale.get("dataCenters")), (Some("NONE"), None));
    add("catalog_one", FaultKind::ExtraFields);
    assert!(rig.get(ONE).await.1["price"]["sandboxExtra"].is_object());

    add("create_pod", FaultKind::AppearLater { ms: 1000 });
    assert!(rig.send("POST", "/v2/pods", Some(body("x"))).await.is_err());
    let late = rig.sandbox.alive()[0].clone();
    assert_eq!(rig.get(&format!("/v2/pods/{}", late.id)).await.0, 404);
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert_eq!(rig.get(&format!("/v2/pods/{}", late.id)).await.0, 200);
    add("get_pod", FaultKind::StatusWord { word: "VALIDATING2".into() });
    assert_eq!(rig.get(&format!("/v2/pods/{}", late.id)).await.1["status"], "VALIDATING2");
    rig.sandbox.add_fault(Fault::on("delete_pod", FaultKind::DeleteRefused).times(2));
    for status in [409, 409, 204] {
        assert_eq!(rig.ask("DELETE", &format!("/v2/pods/{}", late.id), None).await.0, status);
    }
    assert!(rig.sandbox.alive().is_empty());
}

#[tokio::test]
async fn scripts() {
    let rig = Rig::new().await;
    let create = async |script: Script| -> String {
        rig.sandbox.add_fault(Fault::on("create_pod", FaultKind::Script { script }));
        rig.create(body("ssh-ed25519 AAAA")).await["id"].as_str().unwrap().to_owned()
    };
    let never = create(Script::NeverSsh).await;
    let broken = create(Script::GoesError { ms: 100 }).await;
    let exited = create(Script::GoesExited { ms: 100 }).await;
    let gone = create(Script::Disappears { ms: 100 }).await;
    let cuda = create(Script::CudaMismatch).await;
    let other = create(Script::SoldDifferently { cost_factor: 2.0, gpu: None, count: Some(1) }).await;
    let closed = create(Script::NeverLogin { cause: LoginTrouble::ForwardingOff }).await;
    tokio::time::sleep(Duration::from_millis(450)).await;
    let look = async |id: &str| rig.get(&format!("/v2/pods/{id}")).await;
    let pod = look(&never).await.1;
    assert!(pod["ssh"]["direct"].is_null() && pod["runtime"]["ports"].as_array().unwrap().len() == 1);
    assert_eq!(look(&broken).await.1["status"], "ERROR");
    assert_eq!(look(&exited).await.1["status"], "EXITED");
    assert_eq!(look(&gone).await.0, 404);
    assert!(!rig.sandbox.ledger().iter().any(|entry| entry.id == gone && entry.alive));
    assert!(look(&cuda).await.1["runtime"].is_null());
    let mut log = rig.send("GET", &format!("/v2/pods/{cuda}/logs?source=system"), None).await.unwrap();
    let text = String::from_utf8(log.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(text.contains("requirement error: unsatisfied condition: cuda>=12.9"));
    let pod = look(&other).await.1;
    assert_eq!((pod["cost"].as_f64(), pod["gpu"]["count"].as_u64()), (Some(1.36), Some(1)));
    let port = rig.ready(&closed).await;
    let mut silent = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let mut all = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut silent, &mut all).await;
    assert!(all.is_empty());

    let shut = create(Script::NeverLogin { cause: LoginTrouble::Closed }).await;
    let odd = create(Script::NeverReady { word: "WARMING".into() }).await;
    tokio::time::sleep(Duration::from_millis(420)).await;
    let port = look(&shut).await.1["ssh"]["direct"]["port"].as_u64().unwrap();
    let port = u16::try_from(port).unwrap();
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err());
    assert_eq!(look(&odd).await.1["status"], "WARMING");

    let six = create(Script::RuntimeSequence).await;
    tokio::time::sleep(Duration::from_millis(420)).await;
    let mut ports = Vec::new();
    for _ in 0..6 {
        let runtime = look(&six).await.1["runtime"].clone();
        ports.push(if runtime.is_null() { json!("no runtime") } else { runtime["ports"].clone() });
    }
    let none = json!("no runtime");
    assert_eq!(ports[..5], [none.clone(), none, Value::Null, json!([]), json!([])]);
    assert_eq!(ports[5].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn trap_rows() {
    let rig = Rig::new().await;
    let ask = |gpu: &str, dc: &[&str]| {
        let mut body = body("ssh-ed25519 AAAA");
        body["gpu"]["id"] = json!(gpu);
        body["gpu"]["count"] = json!(1);
        body["dataCenterIds"] = json!(dc);
        rig.ask("POST", "/v2/pods", Some(body))
    };
    let (status, answer) = ask("NVIDIA GeForce RTX 3090", &["EU-SE-1"]).await;
    assert_eq!(status, 400);
    assert!(answer["detail"].as_str().unwrap().contains("placement policy 7f3a"));
    assert_eq!(ask("NVIDIA RTX A5000", &["EU-SE-1"]).await.0, 400);
    let (status, pod) = ask("NVIDIA RTX A5000", &[]).await;
    assert_eq!((status, pod["dataCenterId"].is_null()), (201, true));
    assert_eq!(ask("NVIDIA GeForce RTX 3080", &[]).await.0, 201);
    for (gpu, dc) in [
        ("NVIDIA H100 PCIe", "CA-MTL-3"),
        ("NVIDIA A100 80GB PCIe", "CA-MTL-3"),
        ("NVIDIA GeForce RTX 5090", "US-TX-3"),
    ] {
        assert_eq!(ask(gpu, &[dc]).await.0, 201, "{gpu}");
    }
}

#[tokio::test]
async fn control_path() {
    let rig = Rig::new().await;
    let control = rig.sandbox.control_endpoint();
    let (bare, _) = control.rsplit_once('/').unwrap();
    assert_eq!(rig.client.get(format!("{bare}/ledger")).send().await.unwrap().status(), 404);
    let post = |path: &str, body: Value| rig.client.post(format!("{control}{path}")).json(&body).send();
    let fault = json!({"on": {"operation": "list_pods"}, "what": {"kind": "status", "code": 418}});
    assert_eq!(post("/faults", fault).await.unwrap().status(), 204);
    assert_eq!(rig.get("/v2/pods").await.0, 418);
    assert_eq!(post("/faults", json!({"on": {}, "what": {"kind": "nonsense"}})).await.unwrap().status(), 400);
    let made = post("/pods", json!({"name": "other", "env": {"GPUPROV_MARK": "v1"}})).await.unwrap();
    let id = made.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let ledger =
        rig.client.get(format!("{control}/ledger")).send().await.unwrap().json::<Value>().await.unwrap();
    let entry = ledger.as_array().unwrap().last().unwrap();
    assert_eq!((entry["id"].as_str(), entry["env"]["GPUPROV_MARK"].as_str()), (Some(&*id), Some("v1")));
    let away = rig.client.delete(format!("{control}/pods/{id}")).send().await.unwrap();
    assert_eq!(away.status(), 204);
    assert!(rig.sandbox.alive().is_empty());
    assert_eq!(post("/step", json!({"ms": 5})).await.unwrap().status(), 204);
    let account = post("/accounts", json!({})).await.unwrap().json::<Value>().await.unwrap();
    assert_eq!(account["label"], "account-2");
    let seen = rig.client.get(format!("{control}/requests")).send().await.unwrap().text().await.unwrap();
    assert!(!seen.contains(rig.sandbox.runpod_key()) && seen.contains("list_pods"));
}

#[tokio::test]
async fn off_the_network() {
    let rig = Rig::new().await;
    let pod = rig.create(body("ssh-ed25519 AAAA")).await;
    let path = format!("/v2/pods/{}", pod["id"].as_str().unwrap());
    rig.sandbox.unplug_runpod();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(rig.send("DELETE", &path, None).await.unwrap_err().is_connect());
    assert_eq!(rig.sandbox.alive().len(), 1);
    rig.sandbox.plug_runpod().await.unwrap();
    assert_eq!(rig.ask("DELETE", &path, None).await.0, 204);
}

#[tokio::test]
async fn guesses_flipped() {
    let rig = Rig::with(|options| {
        options.runpod_guesses = RunPodGuesses::flipped();
        options.boot = (Duration::from_millis(1600), Duration::from_millis(1600));
    })
    .await;
    let pod = rig.create(body("ssh-ed25519 AAAA")).await;
    assert_eq!((pod["status"].as_str(), pod["runtime"].clone()), (Some("RUNNING"), json!({})));
    assert_eq!(pod["cost"].as_f64(), Some(0.6868));
    let path = format!("/v2/pods/{}", pod["id"].as_str().unwrap());
    assert_eq!(rig.ask("DELETE", &path, None).await.0, 409);
    rig.ready(pod["id"].as_str().unwrap()).await;
    assert!(rig.get(&path).await.1["dataCenterId"].is_null());
    assert_eq!(rig.get(&format!("{path}/logs")).await.0, 403);
    assert!(rig.get("/v2/pods").await.1.get("pagination").is_none());
    let query = "/v2/catalog/gpus/NVIDIA%20GeForce%20RTX%204090?include=AVAILABILITY&product=POD&cloud=";
    assert!(rig.get(&format!("{query}COMMUNITY")).await.1.get("dataCenters").is_none());
    let place = &rig.get(&format!("{query}SECURE")).await.1["dataCenters"][0];
    assert_eq!(place["id"], place["name"]);
    assert_eq!(rig.ask("DELETE", &path, None).await.0, 204);
    assert_eq!(rig.get(&path).await.0, 404);
}
