//! Quotas: what is shown, what is used, and which one an insert would go over.
//!
//! Only the metrics that the API shows are shown; those of H100 (on demand), H200 and B200 exist and are not
//! (<https://cloud.google.com/compute/resource-usage>).

use serde_json::{Value, json};

use super::account::Account;
use super::instance::Instance;
use super::names::region_of;
use super::state::State;
use super::trouble::GcpOperationError;

/// Metrics of a region.
const REGIONAL: [&str; 21] = [
    "CPUS",
    "N2_CPUS",
    "N2D_CPUS",
    "C3_CPUS",
    "A2_CPUS",
    "E2_CPUS",
    "PREEMPTIBLE_CPUS",
    "DISKS_TOTAL_GB",
    "SSD_TOTAL_GB",
    "HDB_TOTAL_GB",
    "LOCAL_SSD_TOTAL_GB",
    "IN_USE_ADDRESSES",
    "INSTANCES",
    "NVIDIA_L4_GPUS",
    "PREEMPTIBLE_NVIDIA_L4_GPUS",
    "NVIDIA_T4_GPUS",
    "PREEMPTIBLE_NVIDIA_T4_GPUS",
    "NVIDIA_A100_GPUS",
    "PREEMPTIBLE_NVIDIA_A100_GPUS",
    "NVIDIA_A100_80GB_GPUS",
    "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS",
];

/// Metrics of the whole project.
const GLOBAL: [&str; 4] = ["GPUS_ALL_REGIONS", "CPUS_ALL_REGIONS", "FIREWALLS", "NETWORKS"];

/// The metric that the vCPUs of a family count against; one that is not shown for the newest.
fn cpu_metric(family: &str) -> String {
    match family {
        "e2" | "n1" | "g2" => "CPUS".into(),
        other => format!("{}_CPUS", other.to_uppercase()),
    }
}

/// How much of a metric an instance takes.
fn takes(one: &Instance, metric: &str, owner: &Account) -> f64 {
    let region = region_of(&one.zone);
    let vcpus = f64::from(one.shape.vcpus);
    let gpus = one.gpus.as_ref().map_or(0.0, |(_, count)| f64::from(*count));
    // A preemptible limit of 0 is none at all, and the standard metric counts.
    let spot = |metric: &str| one.spot && owner.limit(region, metric) > 0.0;
    let cpus =
        if spot("PREEMPTIBLE_CPUS") { "PREEMPTIBLE_CPUS".into() } else { cpu_metric(one.shape.family()) };
    let gpu = if spot(&one.gpu_metrics.1) { &one.gpu_metrics.1 } else { &one.gpu_metrics.0 };
    match metric {
        "INSTANCES" => 1.0,
        "IN_USE_ADDRESSES" => f64::from(u8::from(one.external.is_some())),
        "CPUS_ALL_REGIONS" => vcpus,
        "GPUS_ALL_REGIONS" => gpus,
        "LOCAL_SSD_TOTAL_GB" => 375.0 * f64::from(one.shape.ssds),
        _ if metric == cpus => vcpus,
        _ if metric == gpu => gpus,
        _ => 0.0,
    }
}

/// The metric that disks of a type count against.
fn disk_metric(kind: &str) -> &'static str {
    match kind {
        "pd-standard" => "DISKS_TOTAL_GB",
        "hyperdisk-balanced" => "HDB_TOTAL_GB",
        _ => "SSD_TOTAL_GB",
    }
}

/// What is used of a metric; `region` is empty for the whole project.
fn used(state: &State, owner: &Account, region: &str, metric: &str) -> f64 {
    let instances = state.used(&owner.label, region, |one| takes(one, metric, owner));
    let here =
        state.disks.iter().filter(|disk| disk.account == owner.label && region_of(&disk.zone) == region);
    // Sizes are far below the point where whole numbers are rounded.
    let disks: f64 = here.filter(|disk| disk_metric(&disk.kind) == metric).map(|disk| disk.gb as f64).sum();
    let rules = state.rules.iter().filter(|rule| rule.account == owner.label).count() as f64;
    match metric {
        "FIREWALLS" => rules,
        "NETWORKS" => owner.networks.len() as f64,
        _ => instances + disks,
    }
}

/// The quotas of a region, or of the whole project.
pub(super) fn shown(state: &State, account: &str, region: &str) -> Vec<Value> {
    let Some(owner) = state.account(account) else { return Vec::new() };
    let metrics: &[&str] = if region.is_empty() { &GLOBAL } else { &REGIONAL };
    let row = |metric: &&str| json!({"metric": metric, "limit": owner.limit(region, metric), "usage": used(state, owner, region, metric)});
    metrics.iter().map(row).collect()
}

/// The first quota that a new instance with these disks (type and GB) would go over, as its operation tells it.
pub(super) fn exceeded(
    state: &State,
    one: &Instance,
    disks: &[(String, u64)],
    spot_stands_alone: bool,
) -> Option<GcpOperationError> {
    let owner = state.account(&one.account)?;
    let region = region_of(&one.zone);
    let over = |region: &str, metric: &str, more: f64| {
        let limit = owner.limit(region, metric);
        let region_name = Some(region).filter(|region| !region.is_empty());
        (more > 0.0 && used(state, owner, region, metric) + more > limit)
            .then(|| GcpOperationError::quota(metric, limit, region_name))
    };
    for metric in ["GPUS_ALL_REGIONS", "CPUS_ALL_REGIONS"] {
        if let Some(error) = over("", metric, takes(one, metric, owner)) {
            return Some(error);
        }
    }
    if spot_stands_alone && one.spot && one.gpus.is_some() && owner.limit(region, &one.gpu_metrics.1) <= 0.0 {
        return Some(GcpOperationError::quota(&one.gpu_metrics.1, 0.0, Some(region)));
    }
    let own = [cpu_metric(one.shape.family()), one.gpu_metrics.0.clone(), one.gpu_metrics.1.clone()];
    let fixed = ["PREEMPTIBLE_CPUS", "IN_USE_ADDRESSES", "INSTANCES", "LOCAL_SSD_TOTAL_GB"];
    for metric in own.iter().map(String::as_str).chain(fixed) {
        if let Some(error) = over(region, metric, takes(one, metric, owner)) {
            return Some(error);
        }
    }
    disks.iter().find_map(|(kind, gb)| over(region, disk_metric(kind), *gb as f64))
}
