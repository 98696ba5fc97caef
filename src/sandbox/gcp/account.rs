//! One project with its service account: what it may, what it may have, which networks there are.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::limits::Windows;

/// A policy of the organisation that a project is under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcpPolicy {
    /// `compute.vmExternalIpAccess`: no machine may have an external address.
    NoExternalAddress,
    /// `compute.requireOsLogin`: keys in metadata do not count, and OS Login cannot be switched off.
    OsLogin,
    /// `compute.disableGuestAttributesAccess`: the metadata key must not be set.
    NoGuestAttributes,
    /// `compute.requireShieldedVm`: vTPM and integrity monitoring.
    ShieldedVm,
}

impl GcpPolicy {
    /// Name of the constraint.
    pub(super) fn constraint(self) -> &'static str {
        match self {
            GcpPolicy::NoExternalAddress => "compute.vmExternalIpAccess",
            GcpPolicy::OsLogin => "compute.requireOsLogin",
            GcpPolicy::NoGuestAttributes => "compute.disableGuestAttributesAccess",
            GcpPolicy::ShieldedVm => "compute.requireShieldedVm",
        }
    }
}

/// A network of a project.
#[derive(Debug, Clone)]
pub(super) struct Network {
    pub(super) id: String,
    pub(super) name: String,
    /// Whether it has a subnetwork of its own name in every region.
    pub(super) auto: bool,
    /// Subnetworks of a custom one: region and name.
    pub(super) subnetworks: Vec<(String, String)>,
}

/// One project and its service account.
#[derive(Debug)]
pub(super) struct Account {
    /// Label in records and in the ledger.
    pub(super) label: String,
    pub(super) project: String,
    pub(super) number: String,
    pub(super) email: String,
    /// `private_key_id` of its key.
    pub(super) key_id: String,
    pub(super) client_id: String,
    /// Permissions that its roles do not hold.
    pub(super) denied: BTreeSet<String>,
    pub(super) policies: BTreeSet<GcpPolicy>,
    pub(super) networks: Vec<Network>,
    /// Limits that differ from the usual, by region (empty for the whole project) and metric.
    pub(super) limits: BTreeMap<(String, String), f64>,
    /// Metadata of the project, which its machines have too.
    pub(super) metadata: BTreeMap<String, String>,
    /// Whether the Compute Engine API is switched off.
    pub(super) api_off: bool,
    /// Whether there is no billing account.
    pub(super) billing_off: bool,
    /// Whether the key was deleted.
    pub(super) key_deleted: bool,
    pub(super) windows: Windows,
}

impl Account {
    /// What may be had at most of a metric; `region` is empty for the whole project.
    pub(super) fn limit(&self, region: &str, metric: &str) -> f64 {
        let own = self.limits.get(&(region.to_owned(), metric.to_owned()));
        own.copied().unwrap_or_else(|| usual(metric))
    }

    /// A network by its name.
    pub(super) fn network(&self, name: &str) -> Option<&Network> {
        self.networks.iter().find(|network| network.name == name)
    }

    /// The audience of its workload identity provider.
    pub(super) fn audience(&self) -> String {
        format!(
            "//iam.googleapis.com/projects/{}/locations/global/workloadIdentityPools/sandbox/providers/ci",
            self.number
        )
    }
}

/// What a project that has been used for a while may have.
fn usual(metric: &str) -> f64 {
    match metric {
        // Google gives this one to nobody who does not ask, and then the other CPU metrics count.
        "PREEMPTIBLE_CPUS" => 0.0,
        "GPUS_ALL_REGIONS" => 64.0,
        _ if metric.ends_with("_GPUS") => 32.0,
        "IN_USE_ADDRESSES" => 64.0,
        "INSTANCES" | "FIREWALLS" => 500.0,
        _ if metric.ends_with("_TOTAL_GB") => 40_960.0,
        _ => 2400.0,
    }
}
