//! Answers in the form of Vast's samples, for tests, and an account to give them to.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Settings, Vast};
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

/// An account at `base`, quick and without a cache.
pub(super) fn cloud(base: &str) -> Vast {
    cloud_with(base, |_, _| {})
}

/// An account with other settings.
pub(super) fn cloud_with(base: &str, change: impl FnOnce(&mut Setup, &mut Settings)) -> Vast {
    let mut setup = Setup {
        account: "vast/default".parse().unwrap(),
        endpoint: base.to_owned(),
        loopback: true,
        timeout: Duration::from_secs(2),
        secret_mark: "0123456789abcdef".to_owned(),
        cache: None,
        grace: None,
        poll: Some(Duration::from_millis(1)),
        boot_timeout: None,
    };
    let mut settings = Settings::new(Secret::trimmed("vast0123456789"));
    change(&mut setup, &mut settings);
    Vast::new(setup, settings, Client::new(ClientOptions::default()))
}

/// A request for these GPUs, comma separated.
pub(super) fn want(gpus: &str) -> Want {
    Want::new(Kind::Gpus(gpus.split(',').map(|gpu| gpu.parse().unwrap()).collect()), 100)
}

/// A request for this exact type.
pub(super) fn want_type(name: &str) -> Want {
    Want::new(Kind::Types(vec![name.parse().unwrap()]), 100)
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

/// Returns `value` with these members in place of its own.
pub(super) fn changed(mut value: Value, changes: Value) -> Value {
    for (name, change) in changes.as_object().unwrap() {
        value[name] = change.clone();
    }
    value
}

/// One RTX 5090 in Ontario, as a search on demand shows it with 100 GB.
pub(super) fn ask() -> Value {
    let hardware = json!({
        "id": 21348645, "ask_contract_id": 21348645, "machine_id": 37228, "host_id": 98979, "bundled_results": null,
        "gpu_name": "RTX 5090", "num_gpus": 1, "gpu_ram": 32607, "gpu_total_ram": 32607, "gpu_frac": 1.0,
        "gpu_arch": "nvidia", "compute_cap": 1200, "cuda_max_good": 13.0, "driver_version": "580.95.05", "cpu_arch": "amd64",
        "cpu_cores": 24, "cpu_cores_effective": 24.0, "cpu_ram": 63745, "disk_space": 2973.7,
    });
    let terms = json!({
        "dph_base": 0.36, "dph_total": 0.3808333333, "min_bid": 0.16, "storage_cost": 0.15, "storage_total_cost": 0.0208333333,
        "inet_up": 820.0, "inet_down": 940.0, "inet_up_cost": 0.002, "inet_down_cost": 0.004, "discount_rate": null,
        "geolocation": "Ontario, CA", "reliability": 0.9964, "reliability2": 0.9964, "verification": "verified",
        "verified": null, "hosting_type": 0, "static_ip": true, "direct_port_count": 499, "duration": 3149474.3,
        "rentable": true, "rented": false, "is_bid": false, "external": null, "resource_type": "gpu", "score": 1376.6,
    });
    changed(hardware, terms)
}

/// Two A100 with 80 GB of eight in a data centre in Sweden.
pub(super) fn a100() -> Value {
    changed(
        ask(),
        json!({
            "id": 30011802, "ask_contract_id": 30011802, "machine_id": 41777, "gpu_name": "A100 SXM4", "num_gpus": 2,
            "gpu_ram": 81920, "gpu_frac": 0.25, "cuda_max_good": 12.8, "cpu_cores_effective": 64.0, "cpu_ram": 2064192,
            "disk_space": 5120.0, "dph_base": 1.62, "dph_total": 1.648, "min_bid": 0.81, "storage_cost": 0.2016,
            "geolocation": "Sweden, SE", "hosting_type": 1, "inet_down_cost": 0.0, "inet_up_cost": 0.0,
        }),
    )
}

/// The same row in a search for bids.
pub(super) fn as_bid(row: &Value) -> Value {
    let (bid, base, total) = (&row["min_bid"], &row["dph_base"], &row["dph_total"]);
    let disk = total.as_f64().unwrap() - base.as_f64().unwrap();
    changed(row.clone(), json!({"is_bid": true, "dph_base": bid, "dph_total": bid.as_f64().unwrap() + disk}))
}

/// Answers searches out of `rows` as Vast would, as far as class, name, count, ask and machine go.
pub(super) fn search_in(rows: &[Value], body: &Value) -> Reply {
    let is_bid = body["type"] == "bid";
    let names = body["gpu_name"]["in"].as_array();
    let takes = |row: &&Value| {
        names.is_none_or(|names| names.contains(&row["gpu_name"]))
            && [("num_gpus", "num_gpus"), ("ask_contract_id", "ask_contract_id")]
                .iter()
                .all(|(filter, field)| body[filter].is_null() || body[filter]["eq"] == row[field])
            && body["id"].is_null()
    };
    let found: Vec<Value> =
        rows.iter().filter(takes).map(|row| if is_bid { as_bid(row) } else { row.clone() }).collect();
    answer(200, json!({"offers": found}).to_string())
}

/// Answers searches out of [`ask`] and [`a100`], and who the key belongs to.
pub(super) fn shop(asked: &Asked) -> Reply {
    shop_of(&[ask(), a100()], asked)
}

pub(super) fn shop_of(rows: &[Value], asked: &Asked) -> Reply {
    match asked.line.as_str() {
        "POST /api/v0/bundles/" => search_in(rows, &serde_json::from_str(&asked.body).unwrap()),
        "GET /api/v0/users/current/" => answer(200, user().to_string()),
        _ => no_such_instance(),
    }
}

pub(super) fn user() -> Value {
    json!({"id": 123456, "email": "you@example.com", "credit": 25.0, "balance": 0, "ssh_key": ""})
}

/// A machine that can be logged in to.
pub(super) fn machine() -> Value {
    json!({
        "id": 45390642, "actual_status": "running", "cur_state": "running", "next_state": "running",
        "intended_status": "running", "status_msg": "success, running vastai/base-image_cuda-13.0.3-auto/ssh\n",
        "label": mark().to_text(), "image_uuid": "vastai/base-image:cuda-13.0.3-auto", "image_runtype": "ssh_direct",
        "onstart": "touch ~/.no_auto_tmux", "extra_env": [["GPUPROV_MARK", mark().to_text()], ["-p 8000:8000", "1"]],
        "machine_id": 37228, "host_id": 98979, "gpu_name": "RTX 5090", "num_gpus": 1, "gpu_ram": 32607, "gpu_frac": 1.0,
        "cpu_cores_effective": 24.0, "cpu_ram": 63745, "disk_space": 100.0, "is_bid": false, "min_bid": 0.16,
        "dph_base": 0.36, "dph_total": 0.3808333333, "storage_cost": 0.15, "storage_total_cost": 0.0208333333,
        "start_date": 1796000000.25, "geolocation": "Ontario, CA", "public_ipaddr": "127.0.0.1\n",
        "ssh_host": "127.0.0.2", "ssh_port": 20642, "machine_dir_ssh_port": 5300, "direct_port_start": -1,
        "ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": "41022"}]},
    })
}

/// The same machine on its way up.
pub(super) fn loading() -> Value {
    json!({
        "id": 45390642, "actual_status": "loading", "cur_state": "running", "next_state": "running",
        "intended_status": "running", "status_msg": "f1555660aa88: Download complete \n", "label": mark().to_text(),
        "ports": {}, "public_ipaddr": "203.0.113.14\n",
    })
}

/// What `GET /instances/{id}/` says of a machine.
pub(super) fn one(machine: Value) -> Value {
    json!({"instances": machine})
}

/// A page of the list.
pub(super) fn list(machines: &[Value], next: Option<&str>) -> Value {
    json!({"success": true, "instances_found": machines.len(), "next_token": next, "instances": machines})
}

pub(super) fn no_such_instance() -> Reply {
    answer(404, "{\"success\":false,\"error\":\"no_such_instance\",\"msg\":\"Instance 45390642 not found.\"}")
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
