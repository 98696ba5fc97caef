//! Answers in the form of the discovery document, for tests, and an account to give them to.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::credentials::Credentials;
use super::credentials::key::tests::file;
use super::marks::Known;
use super::{Gcp, Settings};
use crate::cloud::{Journal, Setup};
use crate::http::canned::{Asked, Canned, Reply, json as answer};
use crate::http::{Client, ClientOptions};
use crate::model::handle::{Handle, Resource};
use crate::model::mark::Mark;
use crate::model::money::Usd;
use crate::model::offer::{Offer, PriceParts};
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;
use crate::model::want::{Cluster, PortWant};

pub(super) const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOURS ana's läptop";
pub(super) const PROJECT: &str = "lab-1";
pub(super) const ID: &str = "7240199231733014150";
pub(super) const NAME: &str = "gpuprov-dev-00ff00";
pub(super) const ZONE: &str = "us-central1-a";
pub(super) const OPERATION: &str = "operation-1796030000000-64a1b2c3d4e5f-11112222-33334444";
pub(super) const RULE: &str = "gpuprov-00ff00ff00ff00ff";
pub(super) const HOST_KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIHOST";

/// Where things of the project are.
pub(super) const P: &str = "/compute/v1/projects/lab-1";

/// An account at `base`.
pub(super) fn cloud(base: &str) -> Gcp {
    cloud_with(base, |_, _| {})
}

/// An account with other settings.
pub(super) fn cloud_with(base: &str, change: impl FnOnce(&mut Setup, &mut Settings)) -> Gcp {
    let mut setup = Setup {
        account: "gcp/default".parse().unwrap(),
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
        credentials: Credentials::parse(&file().to_string(), None, false).unwrap(),
        project: PROJECT.to_owned(),
        zones: Vec::new(),
        network: super::NETWORK.to_owned(),
        ssh_port: 22,
    };
    change(&mut setup, &mut settings);
    let options = ClientOptions { backoff: Duration::from_millis(1), ..ClientOptions::default() };
    Gcp::new(setup, settings, Client::new(options))
}

pub(super) fn mark() -> Mark {
    Mark::from_text("v1:lab:default:dev:00ff00ff00ff00ff::ana").unwrap()
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

pub(super) fn spec_with_ports(ports: &[&str]) -> MachineSpec {
    let ports: Vec<PortWant> = ports.iter().map(|port| port.parse().unwrap()).collect();
    MachineSpec { ports, ..spec() }
}

/// An offer for a machine type.
pub(super) fn offer(instance_type: &str, gpu: Option<&str>, count: u32, spot: bool) -> Offer {
    let key = OfferKey {
        account: "gcp/default".parse().unwrap(),
        instance_type: instance_type.to_owned(),
        gpu_count: count,
        zone: Some(ZONE.to_owned()),
        spot,
        disk_gb: 50,
        cuda: None,
        ram_gb: None,
        vcpus: None,
        price: Usd::from_micros(713_680),
        own: None,
    };
    let price_parts =
        PriceParts { compute: Usd::from_micros(706_830), disk: Usd::from_micros(6_850), address: None };
    Offer { gpu: gpu.map(str::to_owned), price_parts, ..Offer::of_key(&key.encode(), &key) }
}

/// One L4, spot.
pub(super) fn l4() -> Offer {
    offer("g2-standard-4", Some("L4"), 1, true)
}

/// What is known of the machine that a create of [`l4`] made.
pub(super) fn known() -> Known {
    Known {
        project: PROJECT.to_owned(),
        zone: ZONE.to_owned(),
        name: NAME.to_owned(),
        operation: Some(OPERATION.to_owned()),
        mark: Some(mark()),
        instance_type: Some("g2-standard-4".to_owned()),
        gpu: Some("L4".to_owned()),
        spot: Some(true),
    }
}

/// Its handle.
pub(super) fn handle() -> Handle {
    Handle { data: known().data(), ..Handle::new(ID) }
}

/// Remembers what was made; fails from the given entry on.
#[derive(Debug)]
pub(super) struct Notebook {
    pub(super) made: Mutex<Vec<Resource>>,
    pub(super) room: usize,
}

impl Default for Notebook {
    fn default() -> Self {
        Notebook { made: Mutex::default(), room: usize::MAX }
    }
}

impl Journal for Notebook {
    fn made(&self, resource: &Resource) -> std::io::Result<()> {
        let mut made = self.made.lock().unwrap();
        made.push(resource.clone());
        if made.len() > self.room { Err(std::io::Error::other("disk full")) } else { Ok(()) }
    }
}

impl Notebook {
    pub(super) fn ids(&self) -> Vec<String> {
        self.made.lock().unwrap().iter().map(|resource| resource.id.clone()).collect()
    }
}

fn link(path: &str) -> String {
    format!("https://www.googleapis.com/compute/v1/projects/{PROJECT}/{path}")
}

/// An operation on the machine.
pub(super) fn operation(kind: &str, status: &str) -> Value {
    json!({
        "kind": "compute#operation", "id": "6105395321733014149", "name": OPERATION, "operationType": kind,
        "zone": link("zones/us-central1-a"), "targetId": ID, "status": status, "progress": 0,
        "targetLink": link("zones/us-central1-a/instances/gpuprov-dev-00ff00"),
        "user": "gpuprov@lab-1.iam.gserviceaccount.com", "insertTime": "2026-11-30T01:00:00.100-08:00",
    })
}

/// One that ended badly.
pub(super) fn failed(status: u16, code: &str, message: &str, details: Value) -> Value {
    changed(
        operation("insert", "DONE"),
        json!({
            "progress": 100, "httpErrorStatusCode": status, "httpErrorMessage": "NO",
            "error": {"errors": [{"code": code, "message": message, "errorDetails": details}]},
        }),
    )
}

/// A zone that has nothing left, with what Google knows about others.
pub(super) fn exhausted() -> Value {
    failed(
        503,
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "The zone 'projects/lab-1/zones/us-central1-a' does not have enough resources available to fulfill the request.  \
         '(resource type:compute)'.",
        json!([
            {"help": {"links": [{"description": "x", "url": "https://cloud.google.com/compute/docs/resource-error"}]}},
            {"localizedMessage": {"locale": "en-US", "message": "Consider another zone."}},
            {"errorInfo": {
                "domain": "compute.googleapis.com", "reason": "resource_availability",
                "metadatas": {"vmType": "g2-standard-4", "zone": ZONE, "zonesAvailable": "us-central1-c,us-east1-b"},
            }},
        ]),
    )
}

/// The machine on its way up.
pub(super) fn staging() -> Value {
    let labels: serde_json::Map<String, Value> =
        mark().labels().into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    json!({
        "kind": "compute#instance", "id": ID, "name": NAME, "zone": link("zones/us-central1-a"), "status": "STAGING",
        "creationTimestamp": "2026-11-30T01:00:00.300-08:00",
        "machineType": link("zones/us-central1-a/machineTypes/g2-standard-4"),
        "guestAccelerators": [{
            "acceleratorType": link("zones/us-central1-a/acceleratorTypes/nvidia-l4"), "acceleratorCount": 1,
        }],
        "disks": [{"kind": "compute#attachedDisk", "type": "PERSISTENT", "boot": true, "autoDelete": true, "diskSizeGb": "50"}],
        "networkInterfaces": [{
            "kind": "compute#networkInterface", "name": "nic0", "networkIP": "10.128.0.7",
            "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "External NAT", "networkTier": "PREMIUM"}],
        }],
        "scheduling": {
            "provisioningModel": "SPOT", "instanceTerminationAction": "DELETE", "automaticRestart": false,
            "onHostMaintenance": "TERMINATE", "preemptible": true,
        },
        "labels": labels, "deletionProtection": false,
    })
}

/// The machine that can be logged in to.
pub(super) fn running() -> Value {
    let mut instance = changed(staging(), json!({"status": "RUNNING"}));
    instance["networkInterfaces"][0]["accessConfigs"][0]["natIP"] = json!("203.0.113.17");
    instance
}

/// The machine's boot disk by itself.
pub(super) fn disk() -> Value {
    json!({
        "kind": "compute#disk", "id": "7240199231733014151", "name": NAME, "zone": link("zones/us-central1-a"),
        "status": "READY", "sizeGb": "50", "creationTimestamp": "2026-11-30T01:00:00.300-08:00",
        "labels": staging()["labels"],
    })
}

/// The machine's firewall rule.
pub(super) fn rule() -> Value {
    json!({
        "kind": "compute#firewall", "id": "7240199231733014152", "name": RULE, "description": mark().to_text(),
        "network": link("global/networks/default"), "direction": "INGRESS", "priority": 1000,
        "sourceRanges": ["0.0.0.0/0"], "targetTags": [RULE], "allowed": [{"IPProtocol": "tcp", "ports": ["8080"]}],
        "disabled": false,
    })
}

pub(super) fn host_keys() -> Value {
    json!({
        "kind": "compute#guestAttributes", "queryPath": "hostkeys/",
        "queryValue": {"items": [
            {"namespace": "hostkeys", "key": "ssh-ed25519", "value": HOST_KEY},
            {"namespace": "hostkeys", "key": "ssh-new", "value": "AAAA"},
            {"namespace": "hostkeys", "key": "ssh-rsa", "value": "two words\nHost *"},
        ]},
    })
}

pub(super) fn image(name: &str, size: &str) -> Value {
    json!({"kind": "compute#image", "name": name, "diskSizeGb": size, "status": "READY", "architecture": "X86_64"})
}

/// All zones, one of them with these things.
pub(super) fn aggregated(member: &str, things: &[Value]) -> Value {
    let empty = json!({"warning": {"code": "NO_RESULTS_ON_PAGE", "message": "none", "data": []}});
    json!({
        "kind": "compute#list", "id": "x", "items": {"zones/us-central1-a": {member: things}, "zones/us-central1-b": empty},
    })
}

pub(super) fn changed(mut value: Value, changes: Value) -> Value {
    for (name, change) in changes.as_object().unwrap() {
        value[name] = change.clone();
    }
    value
}

pub(super) fn problem(status: u16, reason: &str, message: &str) -> Reply {
    let error = json!({"message": message, "domain": "global", "reason": reason});
    answer(status, json!({"error": {"code": status, "message": message, "errors": [error]}}).to_string())
}

/// What Google says about something in the project that is not there.
pub(super) fn missing(path: &str) -> Reply {
    problem(404, "notFound", &format!("The resource 'projects/lab-1/{path}' was not found"))
}

pub(super) fn good(value: &Value) -> Reply {
    answer(200, value.to_string())
}

/// Answers as Google would with nothing in the project.
pub(super) fn shop(asked: &Asked) -> Reply {
    let line = asked.line.as_str();
    if !asked.header("authorization").is_some_and(|token| token.starts_with("Bearer eyJ")) {
        return problem(401, "authError", "Request had invalid authentication credentials.");
    }
    let (method, path) = line.split_once(' ').unwrap();
    let path = path.split('?').next().unwrap_or_default();
    if method == "POST" && path.ends_with("/wait") {
        if asked.header("content-length") != Some("0") {
            return Reply::Answer(411, "content-type: text/html\r\n".to_owned(), "<html>".to_owned());
        }
        return good(&operation("any", "DONE"));
    }
    if let Some(family) = path.rsplit_once("/family/").map(|(_, family)| family) {
        let size = if family.starts_with("common-") { "50" } else { "10" };
        return good(&image(&format!("{family}-v20261101"), size));
    }
    let Some(path) = path.strip_prefix(P) else { return problem(404, "notFound", "no such path") };
    match (method, path) {
        ("GET", "") => good(&json!({"name": PROJECT})),
        ("POST", "/zones/us-central1-a/instances") => good(&operation("insert", "RUNNING")),
        ("POST", "/global/firewalls") | ("DELETE", _) => good(&operation("any", "RUNNING")),
        ("GET", "/aggregated/instances") => good(&aggregated("instances", &[])),
        ("GET", "/aggregated/disks") => good(&aggregated("disks", &[])),
        ("GET", "/global/firewalls" | "/zones/us-central1-a/operations") => {
            good(&json!({"kind": "compute#list"}))
        }
        ("GET", _) => missing(path.trim_start_matches('/')),
        _ => problem(400, "invalid", "no such call"),
    }
}

/// A server that answers lines that begin like one of `special` (below [`P`]) from its replies in turn, the last one again and
/// again, and everything else like [`shop`].
pub(super) async fn server(special: Vec<(&'static str, Vec<Reply>)>) -> Canned {
    let counts: Mutex<HashMap<&'static str, usize>> = Mutex::default();
    Canned::start(move |asked, _| {
        let fits = special.iter().filter(|(start, _)| {
            let (method, path) = start.split_once(' ').unwrap();
            let whole = format!("{method} {P}{path}");
            asked.line == whole || asked.line.starts_with(&format!("{whole}?"))
        });
        let Some((start, replies)) = fits.max_by_key(|(start, _)| start.len()) else { return shop(asked) };
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(*start).or_default();
        *count += 1;
        replies[(*count - 1).min(replies.len() - 1)].clone()
    })
    .await
}

/// The request lines so far without queries, below the project.
pub(super) fn calls(server: &Canned) -> Vec<String> {
    let bare = |line: String| line.split('?').next().unwrap_or_default().replace(P, "");
    server.lines().into_iter().map(bare).collect()
}

/// The bodies that were sent with this call.
pub(super) fn bodies(server: &Canned, call: &str) -> Vec<Value> {
    let asked = server.asked();
    let hits = asked.iter().filter(|asked| asked.line.split('?').next().unwrap().replace(P, "") == call);
    hits.map(|asked| serde_json::from_str(&asked.body).unwrap()).collect()
}
