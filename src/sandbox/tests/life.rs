//! From create to gone, and what lists show of it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Rig, body};
use crate::sandbox::{ClockMode, Fault, FaultKind, PodSeed};

fn ids(list: &Value) -> Vec<String> {
    list["pods"].as_array().unwrap().iter().map(|pod| pod["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn by_steps() {
    let rig = Rig::with(|options| {
        options.clock = ClockMode::Step;
        options.boot = (Duration::from_secs(8), Duration::from_secs(8));
        options.listing_lag = Duration::from_secs(2);
        options.slow_delete = Duration::from_secs(1);
    })
    .await;
    let pod = rig.create(body("ssh-ed25519 AAAA")).await;
    let id = pod["id"].as_str().unwrap();
    assert_eq!((pod["status"].as_str(), pod["cost"].as_f64()), (Some("PROVISIONING"), Some(0.68)));
    assert_eq!(
        pod["gpu"],
        json!({"id": "NVIDIA GeForce RTX 4090", "count": 2, "vcpuCount": 32, "memory": 124})
    );
    let path = format!("/v2/pods/{id}");
    assert_eq!(rig.get(&path).await.0, 200);
    assert_eq!(ids(&rig.get("/v2/pods").await.1).len(), 1, "the list lags");
    rig.sandbox.step(Duration::from_secs(2));
    assert_eq!(ids(&rig.get("/v2/pods").await.1)[0], id, "newest first");
    assert_eq!(rig.get(&path).await.1["status"], "STARTING");
    rig.sandbox.step(Duration::from_secs(2));
    let pod = rig.get(&path).await.1;
    assert_eq!((pod["status"].as_str(), pod["ssh"]["direct"].is_null()), (Some("RUNNING"), true));
    assert!(pod["ssh"]["proxy"]["host"].is_string() && pod["runtime"].is_null());
    rig.sandbox.step(Duration::from_secs(2));
    let pod = rig.get(&path).await.1;
    let port = u16::try_from(pod["ssh"]["direct"]["port"].as_u64().unwrap()).unwrap();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "the address comes before sshd");
    rig.sandbox.step(Duration::from_secs(2));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert_eq!(rig.sandbox.alive().len(), 1);
    assert_eq!(rig.ask("DELETE", &path, None).await.0, 204);
    assert!(rig.sandbox.alive().is_empty());
    assert_eq!(rig.get(&path).await.1["status"], "TERMINATED");
    assert_eq!(rig.ask("DELETE", &path, None).await.0, 404);
    rig.sandbox.step(Duration::from_secs(1));
    assert_eq!(rig.get(&path).await.0, 404);
    let ledger = rig.sandbox.ledger();
    let pods: Vec<_> = ledger.iter().filter(|entry| entry.cloud == "runpod").collect();
    assert!(pods[0].alive, "the foreign pod stays");
    assert_eq!(pods[1].created_by_request, Some(0));
}

#[tokio::test]
async fn pages_and_accounts() {
    let rig = Rig::new().await;
    for index in 0..5 {
        let seed = PodSeed { age: Duration::from_millis(index), ..PodSeed::marked("x", "v1:other") };
        rig.sandbox.add_pod(rig.sandbox.runpod_key(), &seed).unwrap();
    }
    assert_eq!(rig.get("/v2/pods?limit=0").await.0, 422);
    assert_eq!(rig.get("/v2/pods?limit=1001").await.0, 422);
    assert_eq!(rig.get("/v2/pods?cursor=invented").await.0, 422);
    let mut seen = Vec::new();
    let mut cursor = String::new();
    for _ in 0..10 {
        let (_, list) = rig.get(&format!("/v2/pods?limit=2&status=IGNORED{cursor}")).await;
        seen.extend(ids(&list));
        if list["pagination"]["hasNextPage"] == false {
            assert!(list["pagination"]["nextCursor"].is_null());
            break;
        }
        cursor = format!("&cursor={}", list["pagination"]["nextCursor"].as_str().unwrap());
    }
    let unique: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!((seen.len(), unique.len()), (6, 6));
    rig.sandbox.add_fault(Fault::on("list_pods", FaultKind::PageSize { size: 1 }));
    assert_eq!(ids(&rig.get("/v2/pods").await.1).len(), 1);
    let other = rig.sandbox.add_runpod_account();
    let url = format!("{}/v2/pods/{}", rig.sandbox.runpod_endpoint(), seen[0]);
    assert_eq!(rig.client.get(&url).bearer_auth(&other).send().await.unwrap().status(), 404);
    let fresh = rig.sandbox.rotate_runpod_key(&other).unwrap();
    assert_eq!(rig.client.get(&url).bearer_auth(&other).send().await.unwrap().status(), 401);
    assert_eq!(rig.client.get(&url).bearer_auth(&fresh).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn stop_and_start() {
    let rig = Rig::new().await;
    let pod = rig.create(body("ssh-ed25519 AAAA")).await;
    let id = pod["id"].as_str().unwrap();
    let first = rig.ready(id).await;
    let action = format!("/v2/pods/{id}/action");
    assert_eq!(rig.ask("POST", &action, Some(json!({"action": "start"}))).await.0, 409);
    assert_eq!(rig.ask("POST", &action, Some(json!({"action": "reset"}))).await.0, 422);
    let (status, pod) = rig.ask("POST", &action, Some(json!({"action": "stop"}))).await;
    assert_eq!((status, pod["status"].as_str()), (200, Some("EXITED")));
    assert_eq!((pod["actions"].clone(), pod["runtime"].is_null()), (json!(["start", "terminate"]), true));
    assert_eq!(rig.ask("POST", &action, Some(json!({"action": "start"}))).await.0, 200);
    assert_ne!(rig.ready(id).await, first);
    assert_eq!(rig.ask("POST", &action, Some(json!({"action": "terminate"}))).await.0, 204);
    assert!(rig.sandbox.alive().is_empty());
}

#[tokio::test]
async fn logs_show_the_host_key() {
    let rig = Rig::new().await;
    let pod = rig.create(body("ssh-ed25519 AAAA")).await;
    let id = pod["id"].as_str().unwrap().to_owned();
    assert_eq!(rig.get(&format!("/v2/pods/{id}/logs?tail=9999")).await.0, 422);
    let mut answer =
        rig.send("GET", &format!("/v2/pods/{id}/logs?source=container&tail=1000"), None).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut text = String::new();
    while !text.contains("Pod is ready to use") {
        text.push_str(&String::from_utf8_lossy(&answer.chunk().await.unwrap().unwrap()));
    }
    assert!(text.starts_with("id: ") && text.contains("\"source\":\"container\""));
    assert!(!text.contains("\"source\":\"system\""));
    let port = rig.ready(&id).await;
    let scan = tokio::process::Command::new("sh")
        .arg("-c")
        .arg(format!("ssh-keyscan -t ed25519 -p {port} 127.0.0.1 2>/dev/null | ssh-keygen -lf -"))
        .output()
        .await
        .unwrap();
    let scanned = String::from_utf8(scan.stdout).unwrap();
    let fingerprint = scanned.split_whitespace().nth(1).unwrap();
    assert!(text.contains(&format!("256 {fingerprint} root@{id} (ED25519)")), "{scanned} {text}");
}
