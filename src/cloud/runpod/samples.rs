//! Answers in the form of the API document, for tests, and an account to give them to.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::{RunPod, Settings, Tier};
use crate::cloud::{Cloud, Journal, Setup};
use crate::http::canned::{Asked, Canned, Reply, json as answer};
use crate::http::{Client, ClientOptions};
use crate::model::handle::Resource;
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::secret::Secret;
use crate::model::spec::MachineSpec;
use crate::model::want::{Cluster, Kind, Want};

pub(super) const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOURS gpuprov";

/// An account at `base`.
pub(super) fn cloud(base: &str) -> RunPod {
    cloud_with(base, |_| {})
}

/// An account with other settings.
pub(super) fn cloud_with(base: &str, change: impl FnOnce(&mut Settings)) -> RunPod {
    let setup = Setup {
        account: "runpod/default".parse().unwrap(),
        endpoint: base.to_owned(),
        loopback: true,
        timeout: Duration::from_secs(2),
        secret_mark: "0123456789abcdef".to_owned(),
        cache: None,
        grace: None,
        poll: None,
        boot_timeout: None,
    };
    let mut settings = Settings {
        key: Secret::trimmed("rpa_0123456789"),
        image: None,
        tiers: Tier::ALL.to_vec(),
        account_keys: true,
    };
    change(&mut settings);
    let options = ClientOptions { backoff: Duration::from_millis(1), ..ClientOptions::default() };
    RunPod::new(setup, settings, Client::new(options))
}

/// A request for these GPUs, comma separated.
pub(super) fn want(gpus: &str) -> Want {
    Want::new(Kind::Gpus(gpus.split(',').map(|gpu| gpu.parse().unwrap()).collect()), 50)
}

/// A request for this exact type.
pub(super) fn want_type(name: &str) -> Want {
    Want::new(Kind::Types(vec![name.parse().unwrap()]), 50)
}

pub(super) fn mark() -> Mark {
    Mark::from_text("v1:lab:default:dev:00ff00ff00ff00ff::").unwrap()
}

pub(super) fn spec() -> MachineSpec {
    MachineSpec {
        name: "dev".parse().unwrap(),
        public_key: KEY.to_owned(),
        image: None,
        env: Vec::new(),
        ports: Vec::new(),
        cluster: Cluster::Default,
    }
}

/// Remembers what was made; fails if told so.
#[derive(Debug, Default)]
pub(super) struct Notebook {
    pub(super) made: Mutex<Vec<String>>,
    pub(super) is_full: bool,
}

impl Journal for Notebook {
    fn made(&self, resource: &Resource) -> std::io::Result<()> {
        self.made.lock().unwrap().push(resource.id.clone());
        if self.is_full { Err(std::io::Error::other("disk full")) } else { Ok(()) }
    }
}

/// `GET /v2/catalog/gpus`: a common card, a big one, a slice, one that is out of stock, one of AMD, and odd rows.
pub(super) fn catalog(tier: &str) -> Value {
    let secure = tier == "SECURE";
    let gpu = |id: &str, memory: u32, price: [f64; 2], most: [u32; 2], stock: &str, centers: Value| {
        let mut gpu = json!({
            "id": id, "name": id, "pool": null, "manufacturer": "NVIDIA", "memory": memory,
            "secure": price[0] != 0.0, "community": price[1] != 0.0,
            "price": {"secure": price[0], "community": price[1]},
            "maxCount": {"secure": most[0], "community": most[1]},
            "availability": stock, "dataCenters": centers,
        });
        if gpu["dataCenters"].is_null() {
            gpu.as_object_mut().unwrap().remove("dataCenters");
        }
        gpu
    };
    let center = |id: &str, stock: &str| json!({"id": id, "name": "US Kansas 2", "availability": stock});
    let centers = json!([center("EU-RO-1", "HIGH"), center("us-il-1", "LOW"), center("EUR-IS-2", "NONE")]);
    let h100 = if secure { json!([center("US-KS-2", "PLENTIFUL")]) } else { Value::Null };
    let mut amd =
        gpu("AMD Instinct MI300X OAM", 192, [2.5, 0.0], [8, 0], "LOW", json!([center("EU-RO-1", "LOW")]));
    amd["manufacturer"] = json!("AMD");
    let mut free =
        gpu("NVIDIA RTX A4000", 16, [0.2, 0.1], [8, 8], "HIGH", json!([center("EU-RO-1", "HIGH")]));
    free["price"] = json!({"secure": 0, "community": null});
    json!({"gpus": [
        gpu("NVIDIA GeForce RTX 4090", 24, [f64::from(0.69_f32), f64::from(0.34_f32)], [8, 6], "HIGH", centers),
        gpu("NVIDIA H100 80GB HBM3", 80, [2.69, 2.49], [8, 8], "LOW", h100),
        gpu("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", 24, [0.55, 0.0], [1, 0], "MEDIUM",
            json!([center("US-NC-2", "MEDIUM")])),
        gpu("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, [1.8, 0.0], [8, 0], "MEDIUM",
            json!([center("US-NC-2", "MEDIUM")])),
        gpu("NVIDIA A100 80GB PCIe", 80, [1.2, 1.1], [8, 8], "MEDIUM", json!([center("EU-RO-1", "MEDIUM")])),
        gpu("NVIDIA A30", 24, [0.3, 0.0], [8, 0], "LOW", json!([center("EU-RO-1", "LOW")])),
        gpu("NVIDIA  A30", 24, [0.2, 0.0], [8, 0], "LOW", json!([center("US-KS-2", "LOW")])),
        gpu("NVIDIA B200", 180, [5.98, 0.0], [8, 0], "NONE", Value::Null),
        amd, free,
        {"id": null}, {}, 7, {"id": "NVIDIA L4", "price": "cheap", "secure": "yes"},
    ]})
}

/// `GET /v2/catalog/datacenters`.
pub(super) fn data_centers() -> Value {
    let center = |id: &str, region: &str| json!({"id": id, "name": id, "region": region, "globalNetwork": true, "networkVolumeTypes": [], "compliance": []});
    json!({"dataCenters": [
        center("EU-RO-1", "EUROPE"), center("US-KS-2", "NORTH_AMERICA"), center("US-IL-1", "NORTH_AMERICA"),
        center("US-NC-2", "NORTH_AMERICA"), center("AP-JP-1", "ASIA"),
    ]})
}

/// A pod just made.
pub(super) fn pod(id: &str) -> Value {
    json!({
        "id": id, "name": "gpuprov-dev-00ff00", "status": "PROVISIONING", "actions": ["stop", "terminate"],
        "image": "runpod/base:1.4.1-cuda1290-ubuntu2204", "args": "", "cmd": [], "entrypoint": [], "disk": 50,
        "mounts": {}, "ports": ["22/tcp"], "registry": null,
        "env": {"PUBLIC_KEY": KEY, "GPUPROV_MARK": mark().to_text()},
        "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 1, "vcpuCount": 16, "memory": 62},
        "cloud": "COMMUNITY", "dataCenterId": null, "cudaVersion": null,
        "ssh": {"proxy": null, "direct": null}, "template": null, "cost": 0.34, "locked": false,
        "globalNetworking": {"enabled": false}, "runtime": null,
        "createdAt": "2026-11-30T09:00:00.436Z", "startedAt": null,
    })
}

/// A pod that can be logged in to.
pub(super) fn ready_pod(id: &str) -> Value {
    let mut pod = pod(id);
    pod["status"] = json!("RUNNING");
    pod["dataCenterId"] = json!("EU-RO-1");
    pod["ssh"] = json!({
        "proxy": {"host": "ssh.runpod.io", "port": 22, "username": "x-1", "command": "ssh x-1@ssh.runpod.io"},
        "direct": {"host": "127.0.0.1", "port": 35558, "username": "root", "command": "ssh root@127.0.0.1 -p 35558"},
    });
    pod["runtime"] = json!({"uptime": 3, "gpus": [], "ports": []});
    pod
}

/// A list of one page.
pub(super) fn list(pods: &[Value]) -> Value {
    json!({"pods": pods, "pagination": {"nextCursor": null, "hasNextPage": false}})
}

pub(super) fn problem(status: u16, detail: &str) -> Reply {
    let body = json!({"title": "Problem", "status": status, "detail": detail}).to_string();
    Reply::Answer(status, "content-type: application/problem+json\r\n".to_owned(), body)
}

/// Answers questions to the catalogue as RunPod would, the CUDA floor left aside.
pub(super) fn shop(asked: &Asked) -> Reply {
    let tier = if asked.line.contains("cloud=SECURE") { "SECURE" } else { "COMMUNITY" };
    match asked.line.split('?').next().unwrap_or_default() {
        "GET /v2/catalog/gpus" => answer(200, catalog(tier).to_string()),
        "GET /v2/catalog/datacenters" => answer(200, data_centers().to_string()),
        "GET /v2/account/ssh-keys" => answer(200, "{\"keys\":[]}"),
        one if one.starts_with("GET /v2/catalog/gpus/") => {
            let id = one["GET /v2/catalog/gpus/".len()..].replace("%20", " ");
            let all = catalog(tier);
            let found = all["gpus"].as_array().unwrap().iter().find(|gpu| gpu["id"] == *id);
            found.map_or_else(|| problem(404, "resource not found"), |gpu| answer(200, gpu.to_string()))
        }
        _ => problem(404, "The requested path was not found."),
    }
}

/// The offers of [`shop`] for this request.
pub(super) async fn offers(want: &Want) -> Vec<Offer> {
    let server = Canned::start(|asked, _| shop(asked)).await;
    cloud(&server.base).offers(want).await.unwrap().offers
}

/// The cheapest of them.
pub(super) async fn cheapest(want: &Want) -> Offer {
    offers(want).await.into_iter().min_by(Offer::order).unwrap()
}
