//! What is refused.

use serde_json::{Value, json};

use super::super::Rig;
use super::{ZONE, body, changed, on_demand, with};
use crate::sandbox::GcpPolicy;

#[tokio::test]
async fn bodies() {
    let rig = Rig::new().await;
    let disk = |changes: Value| {
        let mut disk = body("")["disks"][0].clone();
        for (name, value) in changes.as_object().unwrap() {
            disk["initializeParams"][name] = value.clone();
        }
        json!({"disks": [disk]})
    };
    let spot = |changes: Value| json!({"scheduling": changed(&body("")["scheduling"], &changes)});
    let t4 = |kind: &str, count: u32| {
        json!({"machineType": format!("{ZONE}/machineTypes/{kind}"), "guestAccelerators": [
            {"acceleratorType": format!("{ZONE}/acceleratorTypes/nvidia-tesla-t4"), "acceleratorCount": count}]})
    };
    for (bad, status, word) in [
        (with(&json!({"colour": "red"})), 400, "Unknown name \"colour\""),
        (with(&json!({"machineType": null})), 400, "'resource.machineType' not specified"),
        (with(&json!({"disks": []})), 400, "'resource.disks' not specified"),
        (with(&json!({"networkInterfaces": null})), 400, "'resource.networkInterfaces' not specified"),
        (with(&json!({"name": "Dev"})), 400, "regex"),
        (with(&json!({"labels": {"Team": "x"}})), 400, "label key"),
        (with(&json!({"labels": {"team": "a.b"}})), 400, "violates format"),
        (with(&json!({"tags": {"items": ["-x"]}})), 400, "tags"),
        (with(&json!({"machineType": "zones/us-east4-a/machineTypes/g2-standard-4"})), 400, "malformed"),
        (with(&json!({"machineType": format!("{ZONE}/machineTypes/g9-x")})), 404, "was not found"),
        (with(&disk(json!({"diskSizeGb": "20"}))), 400, "smaller than the image size (50 GB)"),
        (with(&disk(json!({"diskSizeGb": "70000"}))), 400, "at most"),
        (with(&disk(json!({"diskType": "pd-balanced"}))), 400, "malformed"),
        (
            with(&disk(json!({"diskType": format!("{ZONE}/diskTypes/hyperdisk-balanced")}))),
            400,
            "InstanceTaxonomies",
        ),
        (
            with(&disk(json!({"sourceImage": "projects/ubuntu-os-cloud/global/images/none"}))),
            404,
            "was not found",
        ),
        (with(&spot(json!({"automaticRestart": true}))), 400, "Automatic restart"),
        (with(&spot(json!({"onHostMaintenance": "MIGRATE"}))), 400, "TERMINATE"),
        (with(&spot(json!({"provisioningModel": "spot"}))), 400, "provisioningModel"),
        (
            with(&json!({"scheduling": {"provisioningModel": "STANDARD"}})),
            400,
            "do not support live migration",
        ),
        (
            on_demand(
                &json!({"scheduling": {"onHostMaintenance": "TERMINATE", "instanceTerminationAction": "DELETE"}}),
            ),
            400,
            "allowed only",
        ),
        (with(&t4("g2-standard-4", 1)), 400, "built in"),
        (with(&t4("n1-standard-96", 1)), 400, "not compatible"),
        (with(&t4("n2-standard-4", 1)), 400, "not compatible"),
        (with(&json!({"networkInterfaces": [{"network": "global/networks/none"}]})), 404, "networks/none"),
        (
            with(&json!({"metadata": {"items": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]}})),
            400,
            "duplicate",
        ),
    ] {
        let (found, refused) = rig.google("POST", &format!("{ZONE}/instances"), Some(bad)).await;
        let text = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(found == status && text.contains(word), "{word}: {found} {refused}");
    }
    assert!(rig.sandbox.made().is_empty() && rig.google_kinds().is_empty());
    for (good, cpu) in [
        (with(&t4("n1-standard-4", 1)), false),
        (
            with(&json!({"machineType": format!("{ZONE}/machineTypes/n2-standard-4"), "name": "cpu",
        "scheduling": {"provisioningModel": "STANDARD", "onHostMaintenance": "MIGRATE"}})),
            true,
        ),
    ] {
        let ended = rig.insert(good).await;
        assert_eq!(ended["error"], Value::Null, "{cpu} {ended}");
    }
}

#[tokio::test]
async fn requests() {
    let rig = Rig::new().await;
    for (method, path, status) in [
        ("GET", "zones/us-central1-a/instances?returnPartialSuccess=true".to_owned(), 400),
        ("GET", "zones/us-central1-a/instances?alt=json&prettyPrint=false".to_owned(), 200),
        ("GET", "zones/us-central1-a/instances?filter=%3D".to_owned(), 400),
        ("GET", "zones/us-central1-a/instances?maxResults=0".to_owned(), 400),
        ("GET", "zones/us-central1-a/instances?pageToken=x".to_owned(), 400),
        ("GET", "zones/us-central1-z/instances".to_owned(), 404),
        ("GET", "zones/us-central1-a/instances/none".to_owned(), 404),
        ("GET", "zones/us-central1-a/instances/None".to_owned(), 400),
        ("GET", "zones/us-central1-a/operations/none".to_owned(), 404),
        ("GET", "regions/us-central1?fields=quotas(".to_owned(), 400),
        ("GET", "zones/us-central1-a/reservations".to_owned(), 404),
        ("DELETE", "zones/us-central1-a/instances/jupyter-team?requestId=x".to_owned(), 400),
        (
            "DELETE",
            "zones/us-central1-a/instances/jupyter-team?requestId=00000000-0000-0000-0000-000000000000"
                .to_owned(),
            400,
        ),
    ] {
        let (found, answer) = rig.google(method, &path, None).await;
        assert_eq!(found, status, "{method} {path}: {answer}");
    }
    // A POST that does not say how long it is.
    let gcp = rig.sandbox.gcp();
    let mut stream =
        tokio::net::TcpStream::connect(gcp.endpoint().trim_start_matches("http://")).await.unwrap();
    let request = format!(
        "POST /compute/v1/projects/{}/zones/us-central1-a/operations/x/wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        gcp.project()
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 411 "), "{answer}");
    assert!(gcp.harmed().is_empty());
}

#[tokio::test]
async fn policies_and_networks() {
    let rig = Rig::new().await;
    let gcp = rig.sandbox.gcp();
    let project = gcp.project().to_owned();
    let try_it = async |body: Value| rig.google("POST", &format!("{ZONE}/instances"), Some(body)).await;
    for (policy, word) in [
        (GcpPolicy::NoExternalAddress, "compute.vmExternalIpAccess"),
        (GcpPolicy::OsLogin, "compute.requireOsLogin"),
        (GcpPolicy::NoGuestAttributes, "compute.disableGuestAttributesAccess"),
    ] {
        gcp.set_policy(&project, policy, true);
        let (status, refused) = try_it(body("")).await;
        assert_eq!((status, &refused["error"]["errors"][0]["reason"]), (412, &json!("conditionNotMet")));
        assert!(refused["error"]["message"].as_str().unwrap().contains(word), "{refused}");
        gcp.set_policy(&project, policy, false);
    }
    gcp.set_policy(&project, GcpPolicy::ShieldedVm, true);
    assert_eq!(try_it(with(&json!({"shieldedInstanceConfig": null}))).await.0, 412);
    let ended = rig.insert(body("")).await;
    assert_eq!(ended["error"], Value::Null);
    gcp.add_custom_network(&project, "lab", "us-central1", "lab-1");
    let nic = |nic: Value| with(&json!({"name": "two", "networkInterfaces": [nic]}));
    let (status, refused) = try_it(nic(json!({"network": "global/networks/lab"}))).await;
    assert_eq!(status, 400, "{refused}");
    let ended = rig
        .insert(nic(
            json!({"network": "global/networks/lab", "subnetwork": "regions/us-central1/subnetworks/lab-1"}),
        ))
        .await;
    assert_eq!(ended["error"], Value::Null);
    gcp.remove_network(&project, "default");
    let (status, refused) = try_it(with(&json!({"name": "three"}))).await;
    let text = format!("The resource 'projects/{project}/global/networks/default' was not found");
    assert_eq!((status, &refused["error"]["message"]), (404, &json!(text)));
    assert_eq!(rig.google("GET", "global/firewalls", None).await.1["items"], Value::Null);
}
