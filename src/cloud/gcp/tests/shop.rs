//! Answers about projects, regions, machine types and prices, and an account to give them to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cloud::gcp::Gcp;
use crate::cloud::gcp::prices::{SAMPLE, hunted, hunted_row, packed};
use crate::cloud::gcp::samples::cloud_with;
use crate::http::canned::{Asked, Canned, Reply, json as answer};
use crate::model::offer::Offer;
use crate::model::want::{Kind, Want};

pub(super) const PROJECT: &str = "GET /compute/v1/projects/lab-1";
pub(super) const CENTRAL: &str = "GET /compute/v1/projects/lab-1/regions/us-central1";
pub(super) const GPUHUNT: &str = "GET /prices/gpuhunt/catalog.zip";
pub(super) const SKYPILOT: &str = "GET /prices/skypilot/vms.csv";

/// An account with zones of its own.
pub(super) fn cloud_of(base: &str, zones: &[&str]) -> Gcp {
    cloud_with(base, |setup, settings| {
        setup.timeout = Duration::from_secs(3);
        settings.zones = zones.iter().map(|zone| (*zone).to_owned()).collect();
    })
}

/// An account at `base`.
pub(super) fn cloud(base: &str) -> Gcp {
    cloud_of(base, &[])
}

/// A request for these GPUs, comma separated, with 50 GB.
pub(super) fn want(gpus: &str) -> Want {
    Want::new(Kind::Gpus(gpus.split(',').map(|gpu| gpu.parse().unwrap()).collect()), 50)
}

/// A request for this exact type.
pub(super) fn want_type(name: &str) -> Want {
    Want::new(Kind::Types(vec![name.parse().unwrap()]), 50)
}

/// A request for a machine without a GPU.
pub(super) fn want_cpu() -> Want {
    Want::new(Kind::CpuOnly, 50)
}

/// An answer with quotas: metric, limit, usage.
pub(super) fn quotas(rows: &[(&str, f64, f64)]) -> Reply {
    let rows: Vec<Value> = rows
        .iter()
        .map(|(metric, limit, usage)| json!({"metric": metric, "limit": limit, "usage": usage}))
        .collect();
    good(&json!({"kind": "compute#project", "quotas": rows}))
}

pub(super) fn good(body: &Value) -> Reply {
    answer(200, body.to_string())
}

/// A refusal in Google's form.
pub(super) fn problem(status: u16, reason: &str, message: &str) -> Reply {
    let error = json!({"domain": "global", "reason": reason, "message": message});
    answer(status, json!({"error": {"code": status, "message": message, "errors": [error]}}).to_string())
}

pub(super) fn bytes(body: &[u8]) -> Reply {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    Reply::Raw([head.as_bytes(), body].concat())
}

/// gpuhunt's catalogue: L4 and T4 on demand and spot in two zones, and an A100.
fn hunted_zip() -> Reply {
    let mut rows = Vec::new();
    for zone in ["us-central1-a", "europe-west4-b"] {
        for (ty, gpus, demand, spot) in [
            ("g2-standard-4", 1, 0.706_832, 0.281_84),
            ("g2-standard-8", 1, 0.853_624, 0.340_58),
            ("g2-standard-48", 4, 4.001_664, 1.597_28),
            ("a2-highgpu-1g", 1, 3.673_39, 1.803_85),
            ("n1-standard-1", 1, 0.397_5, 0.188),
            ("n1-standard-4", 1, 0.539_999, 0.227_23),
            ("n1-standard-8", 1, 0.729_998, 0.279_46),
            ("n1-highmem-8", 1, 0.823_212, 0.304_32),
            ("n1-standard-8", 2, 1.079_998, 0.454_46),
            ("n1-standard-16", 2, 1.459_996, 0.558_92),
            ("a3-highgpu-1g", 1, 10.979, 3.353_77),
            ("a3-highgpu-8g", 8, 88.49, 27.0),
        ] {
            rows.push(hunted_row(ty, gpus, zone, false, demand));
            rows.push(hunted_row(ty, gpus, zone, true, spot));
        }
    }
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    bytes(&packed(&[("gcp.csv", hunted(&rows).as_bytes())]))
}

/// What a project without trouble answers.
pub(super) fn shop(asked: &Asked) -> Reply {
    match asked.line.as_str() {
        GPUHUNT => hunted_zip(),
        SKYPILOT => bytes(SAMPLE.as_bytes()),
        PROJECT => quotas(&[("GPUS_ALL_REGIONS", 64.0, 0.0), ("CPUS_ALL_REGIONS", 5000.0, 4.0)]),
        line if line.contains("/regions/") && line.starts_with("GET") => {
            quotas(&[("CPUS", 200.0, 4.0), ("NVIDIA_L4_GPUS", 8.0, 0.0)])
        }
        line if line.contains("/machineTypes/") => good(&json!({"name": line.rsplit('/').next().unwrap()})),
        line if line.contains("/acceleratorTypes/") => good(&json!({"maximumCardsPerInstance": 4})),
        line if line.contains("/advice/") => problem(403, "forbidden", "Advice is not for you"),
        other => panic!("{other}"),
    }
}

/// A server whose answers to these lines are others.
pub(super) async fn server(special: Vec<(&str, Reply)>) -> Canned {
    let special: Arc<HashMap<String, Reply>> =
        Arc::new(special.into_iter().map(|(line, reply)| (line.to_owned(), reply)).collect());
    Canned::start(move |asked, _| special.get(&asked.line).cloned().unwrap_or_else(|| shop(asked))).await
}

/// The offers of a project without trouble.
pub(super) async fn offers(want: &Want) -> Vec<Offer> {
    use crate::cloud::Cloud;
    let server = server(Vec::new()).await;
    cloud(&server.base).offers(want).await.unwrap().offers
}
