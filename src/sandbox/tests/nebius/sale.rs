//! What is for sale: projects, platforms, advice, quotas, prices.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Client;
use crate::sandbox::NebiusGuesses;
use crate::sandbox::tests::Rig;

const ADVICE: &str = "/nebius.capacity.v1.ResourceAdviceService/List";
const SPOT: &str = "/nebius.billing.v1alpha1.SpotPriceService/List";
const ESTIMATE: &str = "/nebius.billing.v1alpha1.CalculatorService/Estimate";
const QUOTAS: &str = "/nebius.quotas.v1.QuotaAllowanceService/List";
const PROJECTS: &str = "/nebius.iam.v2.ProjectService/List";

/// All pages of a list.
async fn all(client: &Client, path: &str, message: Value) -> Vec<Value> {
    let mut message = message;
    let mut items = Vec::new();
    loop {
        let page = client.ask(path, message.clone()).await.unwrap();
        items.extend(page["items"].as_array().cloned().unwrap_or_default());
        match page.get("next_page_token") {
            Some(token) => message["page_token"] = token.clone(),
            None => return items,
        }
    }
}

#[tokio::test]
async fn projects_come_in_pages_of_ten() {
    let rig = Rig::new().await;
    let client = rig.nebius().await;
    let tenants = all(&client, "/nebius.iam.v2.TenantService/List", json!({})).await;
    let tenant = &tenants[0]["metadata"]["id"];
    let first = client.ask(PROJECTS, json!({"parent_id": tenant})).await.unwrap();
    assert_eq!(first["items"].as_array().unwrap().len(), 10);
    let projects = all(&client, PROJECTS, json!({"parent_id": tenant})).await;
    assert_eq!(projects.len(), 11);
    let regions: BTreeSet<&str> = projects.iter().filter_map(|one| one["spec"]["region"].as_str()).collect();
    assert_eq!(regions.len(), 9);
    rig.sandbox.nebius().set_page_size(Some(2));
    assert_eq!(all(&client, PROJECTS, json!({"parent_id": tenant, "page_size": 100})).await.len(), 11);
    let bad = json!({"parent_id": tenant, "page_token": "page-zz"});
    assert_eq!(client.ask(PROJECTS, bad).await.unwrap_err().code, 3);
}

#[tokio::test]
async fn platforms_are_those_of_the_projects_region() {
    let rig = Rig::new().await;
    let client = rig.nebius().await;
    let mut names = BTreeSet::new();
    for project in rig.sandbox.nebius().projects() {
        let message = json!({"parent_id": project, "page_size": 1000});
        for platform in all(&client, "/nebius.compute.v1.PlatformService/List", message).await {
            names.insert(platform["metadata"]["name"].as_str().unwrap().to_owned());
            assert!(!platform["spec"]["presets"].as_array().unwrap().is_empty());
        }
    }
    assert_eq!(names.len(), 12, "{names:?}");
    let project = rig.sandbox.nebius().project("me-west1");
    let one = json!({"parent_id": project, "name": "gpu-b200-sxm-a"});
    let shown = client.ask("/nebius.compute.v1.PlatformService/GetByName", one).await.unwrap();
    assert_eq!(shown["spec"]["gpu_memory_gigabytes"], 180);
}

#[tokio::test]
async fn advice_is_clipped_by_quota() {
    let rig = Rig::new().await;
    let client = rig.nebius().await;
    let tenant = rig.sandbox.nebius().tenant();
    let find = |rows: &[Value], platform: &str, region: &str, preset: &str| -> Value {
        let row = rows.iter().rfind(|row| {
            let spec = &row["spec"];
            let instance = &spec["compute_instance"];
            spec["region"] == region
                && instance["platform"] == platform
                && instance["preset"]["name"] == preset
        });
        row.unwrap()["status"].clone()
    };
    let rows = all(&client, ADVICE, json!({"parent_id": tenant, "page_size": 1000})).await;
    let h100 = find(&rows, "gpu-h100-sxm", "eu-north1", "8gpu-128vcpu-1600gb");
    assert_eq!((&h100["on_demand"]["available"], &h100["on_demand"]["limit"]), (&json!(4), &json!(4)));
    let b200 = find(&rows, "gpu-b200-sxm-a", "me-west1", "1gpu-20vcpu-224gb");
    assert_eq!(b200["on_demand"]["availability_level"], "AVAILABILITY_LEVEL_LIMIT_REACHED");
    let b300 = find(&rows, "gpu-b300-sxm", "us-north1", "1gpu-24vcpu-346gb");
    assert_eq!(b300["on_demand"]["data_state"], "DATA_STATE_STALE");
    let names: BTreeSet<&str> =
        rows.iter().filter_map(|row| row["spec"]["compute_instance"]["platform"].as_str()).collect();
    assert!(!names.contains("cpu-d3"), "{names:?}");
    rig.sandbox.nebius().set_stock("gpu-h100-sxm", "eu-north1", 0, 1, true);
    let rows = all(&client, ADVICE, json!({"parent_id": tenant, "page_size": 1000})).await;
    let h100 = find(&rows, "gpu-h100-sxm", "eu-north1", "1gpu-16vcpu-200gb");
    assert!(h100["on_demand"].get("available").is_none());
    assert_eq!(h100["preemptible"]["available"], 1);
}

#[tokio::test]
async fn spot_prices_are_public_and_l40s_has_none() {
    let rig = Rig::new().await;
    let client = Client { token: None, ..rig.nebius().await };
    rig.sandbox.nebius().set_spot_price("gpu-h200-sxm", "eu-west1", None);
    rig.sandbox.nebius().set_spot_price("gpu-h100-sxm", "eu-north1", Some(2.125));
    let rows = all(&client, SPOT, json!({"page_size": 3})).await;
    let of = |platform: &str| {
        let rows = rows.iter().filter(|row| row["compute_instance"]["platform"] == platform);
        rows.map(|row| row["price"]["value"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of("gpu-h100-sxm"), ["2.125"]);
    assert_eq!(of("gpu-h200-sxm"), ["2.12", "2.12"]);
    assert!(of("gpu-l40s-a").is_empty());
    let flipped = Rig::with(|options| options.nebius_guesses = NebiusGuesses::flipped()).await;
    let client = Client { token: None, ..flipped.nebius().await };
    assert_eq!(client.ask(SPOT, json!({})).await.unwrap_err().code, 16);
}

#[tokio::test]
async fn the_calculator_takes_half_a_spec() {
    let rig = Rig::new().await;
    let client = rig.nebius().await;
    let project = rig.sandbox.nebius().project("eu-north1").unwrap();
    let spec = |platform: &str, preset: &str| {
        json!({"resource_spec": {"compute_instance_spec": {
            "metadata": {"parent_id": project}, "spec": {"resources": {"platform": platform, "preset": preset}},
        }}})
    };
    let cost = |shown: Value| shown["hourly_cost"]["general"]["total"]["cost"].as_str().unwrap().to_owned();
    let h100 = spec("gpu-h100-sxm", "1gpu-16vcpu-200gb");
    assert_eq!(cost(client.ask(ESTIMATE, h100.clone()).await.unwrap()), "4.5");
    let l40s = client.ask(ESTIMATE, spec("gpu-l40s-d", "4gpu-128vcpu-768gb")).await.unwrap();
    assert_eq!(cost(l40s), "9.1376");
    let cpu = client.ask(ESTIMATE, spec("cpu-e2", "2vcpu-8gb")).await.unwrap();
    assert_eq!(
        (cost(cpu.clone()), cpu["monthly_cost"]["general"]["total"]["cost"].as_str()),
        ("0.066".into(), Some("48.18"))
    );
    rig.sandbox.nebius().set_price_factor("gpu-h100-sxm", 1.2);
    assert_eq!(cost(client.ask(ESTIMATE, h100).await.unwrap()), "5.4");
    let wrong = spec("gpu-h100-sxm", "3gpu");
    assert_eq!(client.ask(ESTIMATE, wrong).await.unwrap_err().code, 3);
}

#[tokio::test]
async fn quotas_are_the_tenants() {
    let rig = Rig::new().await;
    let client = rig.nebius().await;
    let tenant = rig.sandbox.nebius().tenant();
    rig.sandbox.nebius().set_quota("nebius-1", "compute.instance.gpu.h100", "eu-north1", None);
    let rows = all(&client, QUOTAS, json!({"parent_id": tenant, "page_size": 1000})).await;
    let h100 = rows.iter().find(|row| row["metadata"]["name"] == "compute.instance.gpu.h100").unwrap();
    assert!(h100["spec"].get("limit").is_none());
    let none = rows.iter().find(|row| row["spec"]["limit"] == json!(0)).unwrap();
    assert!(none["metadata"]["name"].as_str().unwrap().starts_with("compute.instance.gpu."));
    let project = json!({"parent_id": rig.sandbox.nebius().project("eu-north1")});
    assert_eq!(client.ask(QUOTAS, project).await.unwrap_err().code, 7);
}

#[tokio::test]
async fn images_tell_their_smallest_disk() {
    let rig = Rig::new().await;
    let client = rig.nebius().await;
    let path = "/nebius.compute.v1.ImageService/GetLatestByFamily";
    let shown = client.ask(path, json!({"image_family": "ubuntu24.04-cuda13.0"})).await.unwrap();
    assert_eq!(shown["status"]["min_disk_size_bytes"], 42_949_672_960_i64);
    assert_eq!(client.ask(path, json!({"image_family": "ubuntu24.04"})).await.unwrap_err().code, 5);
    let public = "/nebius.compute.v1.ImageService/ListPublic";
    assert_eq!(all(&client, public, json!({"region": "eu-north1"})).await.len(), 3);
}
