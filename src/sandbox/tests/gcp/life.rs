//! From insert to gone, and what becomes of disks, rules and operations.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Rig;
use super::super::ssh::{run, ssh};
use super::{ZONE, body, on_demand, with};
use crate::sandbox::{ClockMode, GcpGuesses, GcpLeftKind, GcpSeed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_life() {
    let rig = Rig::new().await;
    let (file, public) = rig.key("id_test", "ed25519").await;
    let request = "requestId=1b4e28ba-2fa1-11d2-883f-0016d3cca427";
    let path = format!("{ZONE}/instances?{request}");
    let (status, first) = rig.google("POST", &path, Some(body(&public))).await;
    assert_eq!((status, &first["operationType"]), (200, &json!("insert")), "{first}");
    assert_eq!(first["clientOperationId"], "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
    let again = rig.google("POST", &path, Some(body(&public))).await.1;
    assert_eq!(
        (&again["name"], &again["targetId"]),
        (&first["name"], &first["targetId"]),
        "the same requestId"
    );
    let (status, other) = rig.google("POST", &format!("{ZONE}/instances"), Some(body(&public))).await;
    assert_eq!((status, &other["error"]["errors"][0]["reason"]), (409, &json!("alreadyExists")));
    assert_eq!(
        rig.google_kinds(),
        [GcpLeftKind::Instance, GcpLeftKind::Attached, GcpLeftKind::Operation],
        "{:?}",
        rig.sandbox.gcp().left()
    );
    let early = rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.1;
    assert!(early["networkInterfaces"][0]["accessConfigs"][0]["natIP"].is_null(), "{early}");
    let attributes = format!("{ZONE}/instances/dev/getGuestAttributes?queryPath=hostkeys%2F");
    assert_eq!(rig.google("GET", &attributes, None).await.0, 404);
    let done = rig.done(&first).await;
    assert_eq!((&done["progress"], &done["error"]), (&json!(100), &Value::Null));
    let one = rig.turns("dev", "RUNNING").await;
    assert_eq!((&one["id"], &one["labels"]["gpuprov-name"]), (&first["targetId"], &json!("dev")));
    assert_eq!(one["guestAccelerators"][0]["acceleratorCount"], 1);
    let address = one["networkInterfaces"][0]["accessConfigs"][0]["natIP"].as_str().unwrap().to_owned();
    let port = rig.sandbox.vm_ssh_port();
    let mut last = (-1, String::new(), String::new());
    for _ in 0..40 {
        last =
            run(ssh(&file, port)
                .args([&format!("ubuntu@{address}"), "nvidia-smi -L; sudo -n id -un; whoami"]))
            .await;
        if last.0 != 255 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(last.0, 0, "{last:?}");
    assert!(last.1.contains("NVIDIA L4"), "{last:?}");
    let keys = rig.google("GET", &attributes, None).await.1;
    let key = keys["queryValue"]["items"][0]["value"].as_str().unwrap().to_owned();
    assert!(key.starts_with("AAAAC3NzaC1lZDI1NTE5"), "{keys}");
    let serial = rig.google("GET", &format!("{ZONE}/instances/dev/serialPort?port=1&start=0"), None).await.1;
    assert!(serial["contents"].as_str().unwrap().contains(&key), "{serial}");
    let entry = &rig.sandbox.alive()[0];
    assert_eq!((entry.cloud, entry.gpu.as_str(), entry.count), ("gcp", "nvidia-l4", 1));
    assert!((entry.price_per_hour - 0.28184).abs() < 1e-6, "{}", entry.price_per_hour);
    let gone = rig.google("DELETE", &format!("{ZONE}/instances/dev"), None).await.1;
    assert_eq!(rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.1["status"], "STOPPING");
    let done = rig.done(&gone).await;
    assert_eq!((&done["operationType"], &done["error"]), (&json!("delete"), &Value::Null));
    assert_eq!(rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.0, 404);
    assert_eq!(rig.google("DELETE", &format!("{ZONE}/instances/dev"), None).await.0, 404);
    assert!(rig.sandbox.alive().is_empty());
    assert_eq!((rig.google_kinds(), rig.sandbox.gcp().harmed()), (vec![], vec![]));
    assert!(rig.sandbox.rejected().is_empty(), "{:#?}", rig.sandbox.rejected());
}

#[tokio::test]
async fn by_steps() {
    let rig = Rig::with(|options| {
        options.clock = ClockMode::Step;
        options.boot = (Duration::from_secs(40), Duration::from_secs(40));
    })
    .await;
    let scheduling = json!({"provisioningModel": "STANDARD", "onHostMaintenance": "TERMINATE",
        "instanceTerminationAction": "DELETE", "maxRunDuration": {"seconds": "3600"}});
    let first = rig
        .google("POST", &format!("{ZONE}/instances"), Some(with(&json!({"scheduling": scheduling}))))
        .await
        .1;
    let operation = format!("{ZONE}/operations/{}", first["name"].as_str().unwrap());
    let mut words = Vec::new();
    for _ in 0..10 {
        let one = rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.1;
        let told = rig.google("GET", &operation, None).await.1;
        words.push((one["status"].as_str().unwrap().to_owned(), told["status"].as_str().unwrap().to_owned()));
        rig.sandbox.step(Duration::from_secs(4));
    }
    let (phases, ends): (Vec<_>, Vec<_>) = words.into_iter().unzip();
    assert_eq!(
        phases,
        ["PROVISIONING", "PROVISIONING", "STAGING", "STAGING", "STAGING"]
            .into_iter()
            .chain(["RUNNING"; 5])
            .collect::<Vec<_>>()
    );
    assert_eq!(ends[..4], ["PENDING", "RUNNING", "RUNNING", "DONE"]);
    let one = rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.1;
    assert_eq!(one["scheduling"]["maxRunDuration"]["seconds"], "3600");
    rig.sandbox.step(Duration::from_secs(3600));
    assert_eq!(rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.0, 404);
    assert!(rig.sandbox.alive().is_empty() && rig.google_kinds().is_empty());
}

#[tokio::test]
async fn preemption_and_what_stays() {
    let rig = Rig::new().await;
    let gcp = rig.sandbox.gcp();
    let rule = json!({"name": "gpuprov-7f3a9c", "network": "global/networks/default", "direction": "INGRESS",
        "sourceRanges": ["0.0.0.0/0"], "targetTags": ["gpuprov-7f3a9c"],
        "allowed": [{"IPProtocol": "tcp", "ports": ["8080", "9000-9010"]}]});
    let (status, made) = rig.google("POST", "global/firewalls", Some(rule.clone())).await;
    assert_eq!(status, 200, "{made}");
    rig.done(&made).await;
    assert_eq!(rig.google("POST", "global/firewalls", Some(rule)).await.0, 409);
    let operation = rig.insert(body("")).await;
    let id = operation["targetId"].as_str().unwrap();
    assert!(!gcp.preempt(gcp.foreign_instance()), "not spot");
    assert!(gcp.preempt(id) && !gcp.preempt(id));
    assert_eq!(rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.0, 404);
    assert_eq!(rig.google_kinds(), [GcpLeftKind::Rule], "the rule stays");
    let filter = format!("(operationType = \"compute.instances.preempted\") AND (targetId = {id})");
    let filter: String = url::form_urlencoded::byte_serialize(filter.as_bytes()).collect();
    let found = rig.google("GET", &format!("{ZONE}/operations?filter={filter}"), None).await.1;
    let event = &found["items"][0];
    assert_eq!(
        (&event["user"], &event["statusMessage"]),
        (&json!("system"), &json!("Instance was preempted."))
    );
    assert!(event["name"].as_str().unwrap().starts_with("systemevent-"), "{event}");
    let gone = rig.google("DELETE", "global/firewalls/gpuprov-7f3a9c", None).await.1;
    rig.done(&gone).await;
    assert_eq!(rig.google("DELETE", "global/firewalls/gpuprov-7f3a9c", None).await.0, 404);
    // A disk that was not to go with its machine.
    let mut keeps = body("");
    keeps["disks"][0]["autoDelete"] = json!(false);
    rig.insert(keeps).await;
    assert_eq!(rig.google("DELETE", &format!("{ZONE}/disks/dev"), None).await.0, 400, "in use");
    let gone = rig.google("DELETE", &format!("{ZONE}/instances/dev"), None).await.1;
    rig.done(&gone).await;
    assert_eq!(rig.google_kinds(), [GcpLeftKind::Detached]);
    let disks = rig.google("GET", "aggregated/disks?filter=labels.gpuprov%3D1", None).await.1;
    let disk = &disks["items"]["zones/us-central1-a"]["disks"][0];
    assert_eq!((&disk["name"], &disk["users"]), (&json!("dev"), &Value::Null));
    let gone = rig.google("DELETE", &format!("{ZONE}/disks/dev"), None).await.1;
    rig.done(&gone).await;
    assert_eq!((rig.google_kinds(), gcp.harmed()), (vec![], vec![]));
    assert!(gcp.remove_instance(gcp.foreign_instance()));
    assert_eq!(gcp.harmed().len(), 2, "the instance and its disk");
}

#[tokio::test]
async fn machines_of_others() {
    let rig = Rig::new().await;
    let gcp = rig.sandbox.gcp();
    let seed =
        GcpSeed { zone: "europe-west4-a".into(), ..GcpSeed::labelled("elsewhere", &[("gpuprov", "1")]) };
    let id = gcp.add_instance(gcp.project(), &seed).unwrap();
    let all = rig.google("GET", "aggregated/instances?filter=labels.gpuprov%3D1", None).await.1;
    assert_eq!(all["items"]["zones/europe-west4-a"]["instances"][0]["id"], json!(id));
    assert_eq!(all["items"]["zones/us-central1-a"]["warning"]["code"], "NO_RESULTS_ON_PAGE");
    let everything = rig.google("GET", "aggregated/instances", None).await.1;
    assert_eq!(everything["items"]["zones/us-central1-a"]["instances"][0]["name"], "jupyter-team");
    assert!(gcp.remove_instance(&id) && rig.google_kinds().is_empty());
    let other = gcp.add_account();
    assert_eq!(gcp.account(&other).as_deref(), Some("gcp-2"));
    assert!(rig.sandbox.strangers().contains(&gcp.foreign_instance()));
}

#[tokio::test]
async fn the_other_guesses() {
    let rig = Rig::with(|options| options.gcp_guesses = GcpGuesses::flipped()).await;
    let gcp = rig.sandbox.gcp();
    let (status, first) = rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await;
    assert_eq!(status, 200);
    let path = format!("{ZONE}/operations/{}/wait", first["name"].as_str().unwrap());
    assert_ne!(rig.google("POST", &path, None).await.1["status"], "DONE", "it answers at once");
    rig.done(&first).await;
    let one = rig.turns("dev", "RUNNING").await;
    assert!(one["guestAccelerators"].is_null());
    assert!(gcp.preempt(first["targetId"].as_str().unwrap()));
    assert_eq!(rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.1["status"], "STOPPING");
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert_eq!(rig.google("GET", &format!("{ZONE}/instances/dev"), None).await.0, 404);
    assert_eq!(rig.google("GET", &format!("{ZONE}/operations?filter=targetId%3D1"), None).await.0, 400);
    gcp.set_quota(gcp.project(), None, "GPUS_ALL_REGIONS", 0.0);
    let (status, refused) = rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await;
    assert_eq!((status, &refused["error"]["errors"]), (403, &Value::Null));
    assert_eq!(refused["error"]["details"][0]["reason"], "quotaExceeded");
    let only = on_demand(&json!({"machineType": format!("{ZONE}/machineTypes/a3-highgpu-1g")}));
    assert_eq!(rig.google("POST", &format!("{ZONE}/instances"), Some(only)).await.0, 400);
}
