//! What is there before anything is made: places, types, images, quotas, advice, prices, pages.

use std::io::Read;

use serde_json::{Value, json};

use super::super::Rig;
use super::{ZONE, body, with};
use crate::sandbox::{Fault, FaultKind, GcpFault, GcpPrices, GcpSeed, GcpSource};

#[tokio::test]
async fn places_types_and_images() {
    let rig = Rig::new().await;
    let project = rig.google("GET", "", None).await.1;
    let gpus = project["quotas"]
        .as_array()
        .unwrap()
        .iter()
        .find(|quota| quota["metric"] == "GPUS_ALL_REGIONS")
        .unwrap();
    assert_eq!((&gpus["limit"], &gpus["usage"]), (&json!(64.0), &json!(1.0)), "the foreign machine has one");
    for path in [
        "zones",
        "regions",
        "aggregated/machineTypes?filter=name%20eq%20%22(g2%7Ca2)-.*%22",
        "aggregated/acceleratorTypes",
        "zones/us-central1-a/machineTypes?maxResults=5",
        "zones/us-central1-a/acceleratorTypes",
        "zones/us-central1-a",
        "regions/us-central1/subnetworks",
        "regions/us-central1/subnetworks/default",
        "global/networks/default",
        "global/firewalls?filter=network%20eq%20.*%2Fdefault",
        "zones/us-central1-a/disks",
        "zones/us-central1-a/instances",
    ] {
        let (status, answer) = rig.google("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
    let region = rig.google("GET", "regions/us-central1?fields=quotas,name", None).await.1;
    assert_eq!(region.as_object().unwrap().len(), 2);
    let kind = rig.google("GET", &format!("{ZONE}/machineTypes/a3-highgpu-1g"), None).await.1;
    assert_eq!(
        (&kind["memoryMb"], &kind["bundledLocalSsds"]["partitionCount"]),
        (&json!(239_616), &json!(2)),
        "{kind}"
    );
    assert_eq!(rig.google("GET", "zones/us-east4-b/machineTypes/g2-standard-4", None).await.0, 404);
    assert_eq!(
        rig.google("GET", &format!("{ZONE}/acceleratorTypes/nvidia-tesla-t4"), None).await.1["maximumCardsPerInstance"],
        4
    );
    let image = |path: &str| format!("{}/compute/v1/projects/{path}", rig.sandbox.gcp().endpoint());
    let look = async |path: &str| {
        let answer = rig.client.get(image(path)).bearer_auth(rig.google_token()).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let family = "deeplearning-platform-release/global/images/family/common-cu129-ubuntu-2204-nvidia-580";
    let (status, found) = look(family).await;
    assert_eq!((status, &found["diskSizeGb"]), (200, &json!("50")));
    assert_eq!(found["name"], "common-cu129-ubuntu-2204-nvidia-580-v20261001");
    assert_eq!(
        look("deeplearning-platform-release/global/images/family/common-cu124-debian-11").await.0,
        404
    );
    rig.sandbox.gcp().retire_family("common-cu129-ubuntu-2204-nvidia-580");
    assert_eq!(look(family).await.0, 404);
    assert_eq!(look("ubuntu-os-cloud/global/images/family/ubuntu-2204-lts").await.1["diskSizeGb"], "10");
}

#[tokio::test]
async fn quotas_are_counted() {
    let rig = Rig::new().await;
    let gcp = rig.sandbox.gcp();
    let usage = async |metric: &str| {
        let region = rig.google("GET", "regions/us-central1", None).await.1;
        region["quotas"].as_array().unwrap().iter().find(|quota| quota["metric"] == metric).unwrap()["usage"]
            .clone()
    };
    let before = usage("SSD_TOTAL_GB").await;
    rig.insert(body("")).await;
    assert_eq!(usage("PREEMPTIBLE_NVIDIA_L4_GPUS").await, 1.0);
    assert_eq!(usage("SSD_TOTAL_GB").await, before.as_f64().unwrap() + 50.0);
    gcp.set_quota(gcp.project(), Some("us-central1"), "PREEMPTIBLE_NVIDIA_L4_GPUS", 1.0);
    let ended = rig.insert(with(&json!({"name": "two"}))).await;
    assert_eq!(
        (&ended["httpErrorStatusCode"], &ended["error"]["errors"][0]["code"]),
        (&json!(403), &json!("QUOTA_EXCEEDED"))
    );
    let text = "Quota 'PREEMPTIBLE_NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region us-central1.";
    assert_eq!(ended["error"]["errors"][0]["message"], text);
    assert_eq!(ended["error"]["errors"][0]["errorDetails"][0]["quotaInfo"]["limit"], 1.0);
    assert_eq!(rig.google("GET", &format!("{ZONE}/instances/two"), None).await.0, 404);
    gcp.set_quota(gcp.project(), None, "GPUS_ALL_REGIONS", 0.0);
    let ended = rig.insert(with(&json!({"name": "two"}))).await;
    assert_eq!(
        ended["error"]["errors"][0]["message"],
        "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."
    );
    gcp.add_fault(Fault::on("get_region", GcpFault::QuotasHidden.into()));
    let region = rig.google("GET", "regions/us-central1", None).await.1;
    assert_eq!(region["quotaStatusWarning"]["code"], "QUOTA_INFO_UNAVAILABLE");
}

#[tokio::test]
async fn advice_and_prices() {
    let rig = Rig::new().await;
    let ask = json!({"size": 1, "instanceProperties": {"scheduling": {"provisioningModel": "SPOT"}},
        "instanceFlexibilityPolicy": {"instanceSelections": {"s1": {"machineTypes": ["g2-standard-4"]}}},
        "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE", "zones": [{"zone": "zones/us-central1-a"}]}});
    let answer = rig.google("POST", "regions/us-central1/advice/capacity", Some(ask)).await.1;
    assert_eq!(answer["recommendations"][0]["shards"][0]["machineType"], "g2-standard-4", "{answer}");
    let ask = json!({"types": ["PRICE"], "instanceProperties": {"machineType": "g2-standard-4",
        "scheduling": {"provisioningModel": "SPOT"}}, "locationPolicy": {"location": "zones/us-central1-a"}});
    let answer = rig.google("POST", "regions/us-central1/advice/capacityHistory", Some(ask)).await.1;
    assert_eq!(answer["priceHistory"][0]["listPrice"]["nanos"], 281_840_000, "{answer}");
    let gcp = rig.sandbox.gcp();
    let fetch = async |path: &str| {
        let answer = rig.client.get(format!("{}/prices/{path}", gcp.endpoint())).send().await.unwrap();
        (answer.status().as_u16(), answer.bytes().await.unwrap())
    };
    let (status, zipped) = fetch("gpuhunt/catalog.zip").await;
    assert_eq!(status, 200);
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(zipped)).unwrap();
    let mut text = String::new();
    archive.by_name("gcp.csv").unwrap().read_to_string(&mut text).unwrap();
    assert!(text.starts_with("instance_name,location,price,") && text.contains("gcp-dws-calendar-mode"));
    let (_, whole) = fetch("skypilot/vms.csv").await;
    assert!(whole.starts_with(b"InstanceType,vCPUs,"));
    for (how, status, check) in [
        (GcpPrices::Down, 503, None),
        (GcpPrices::Html, 200, Some("<!DOCTYPE")),
        (
            GcpPrices::WrongHeader,
            200,
            Some(
                "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Cost,SpotCost",
            ),
        ),
    ] {
        gcp.set_prices(GcpSource::Skypilot, how);
        let (found, bytes) = fetch("skypilot/vms.csv").await;
        assert_eq!(found, status, "{how:?}");
        assert!(check.is_none_or(|check| bytes.starts_with(check.as_bytes())), "{how:?}");
    }
    gcp.set_prices(GcpSource::Skypilot, GcpPrices::Torn);
    assert_eq!(fetch("skypilot/vms.csv").await.1.len(), whole.len() / 2);
}

#[tokio::test]
async fn pages_and_silent_zones() {
    let rig = Rig::new().await;
    let gcp = rig.sandbox.gcp();
    for (name, zone) in
        [("a1", "us-central1-a"), ("a2", "us-east4-a"), ("a3", "us-east4-a"), ("a4", "europe-west4-a")]
    {
        let seed = GcpSeed { zone: zone.into(), ..GcpSeed::labelled(name, &[("gpuprov", "1")]) };
        gcp.add_instance(gcp.project(), &seed).unwrap();
    }
    gcp.add_fault(Fault::on("list_instances", FaultKind::PageSize { size: 3 }).always());
    let mut path = "aggregated/instances?filter=labels.gpuprov%3D1".to_owned();
    let mut names = Vec::new();
    for page in 0..2 {
        let answer = rig.google("GET", &path, None).await.1;
        for scope in answer["items"].as_object().unwrap().values() {
            let here = scope["instances"].as_array().cloned().unwrap_or_default();
            names.extend(here.iter().map(|one| one["name"].as_str().unwrap().to_owned()));
        }
        let next = answer["nextPageToken"].as_str().map(str::to_owned);
        assert_eq!(next.is_some(), page == 0);
        path =
            format!("aggregated/instances?filter=labels.gpuprov%3D1&pageToken={}", next.unwrap_or_default());
    }
    names.sort();
    assert_eq!(names, ["a1", "a2", "a3", "a4"]);
    gcp.add_fault(Fault::on("list_instances", GcpFault::Unreachable { zone: "us-east4-a".into() }.into()));
    let answer = rig.google("GET", "aggregated/instances", None).await.1;
    assert_eq!(answer["unreachables"], json!(["zones/us-east4-a"]));
    assert!(answer["items"]["zones/us-east4-a"].is_null());
}
