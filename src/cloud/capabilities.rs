//! What a cloud can do, as data: refusals, the tables in the docs, the poll pace and the boot budget all come from here.

use std::time::Duration;

use crate::model::account::CloudKind;

/// Whether a cloud honours a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Yes,
    /// It does nothing for it, and that is well: the note says why.
    Note(&'static str),
    /// It cannot; the reason stands in the refusal.
    No(&'static str),
}

/// How often a machine on its way up is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Between two looks at first.
    pub first: Duration,
    /// For how long `first` holds.
    pub first_for: Duration,
    /// Between two looks after that.
    pub then: Duration,
}

/// What one cloud can do and how it behaves.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// The cloud.
    pub cloud: CloudKind,
    /// `--spot`.
    pub spot: Support,
    /// `--cpu-only`.
    pub cpu_only: Support,
    /// `--image`.
    pub image: Support,
    /// `--port N`.
    pub ports: Support,
    /// `--port N@CIDR`.
    pub port_cidr: Support,
    /// A cluster on the machine: [`Support::No`] refuses `--k8s`, and the default cluster is skipped with the same words.
    pub cluster: Support,
    /// Whether the machine is a container: its environment can be given at create, and whoever operates the host can read it.
    pub container: bool,
    /// Whether prices of 0 are meant (reserved machines of one's own).
    pub free: bool,
    /// Smallest disk in GB that the cloud takes.
    pub min_disk_gb: u32,
    /// Largest disk in GB that the cloud takes, where it is known.
    pub max_disk_gb: Option<u32>,
    /// Whether `--env` cannot set a variable of this name there: the cloud's own, or ours.
    pub reserves_env: fn(&str) -> bool,
    /// Whether a machine that is stopped goes on costing what was agreed.
    pub bills_stopped: bool,
    /// Whether the create can carry a wish for memory and vCPUs where offers do not tell them.
    pub carries_ram_and_vcpus: bool,
    /// How long a machine may take from create to a login.
    pub boot_budget: Duration,
    /// How much longer it may take with an image of the user's, which no host has in its cache.
    pub own_image_extra: Duration,
    /// How often to look at a machine on its way up.
    pub poll: Pace,
    /// How long after a lost answer to a create a machine may still turn up in the list.
    pub listing_lag: Duration,
    /// How long "permission denied" is waited out after sshd first answered.
    pub key_grace: Duration,
    /// How long to wait for host keys that the cloud publishes a little after sshd is up; zero where it publishes none or at once.
    pub host_key_grace: Duration,
}

impl Capabilities {
    /// Whether a cluster is set up on its machines unless it is not wanted.
    pub fn has_cluster(&self) -> bool {
        !matches!(self.cluster, Support::No(_))
    }

    /// Whether every port of a machine is open to the world, so that the machine has to close those of its cluster itself.
    pub fn is_open(&self) -> bool {
        matches!(self.port_cidr, Support::No(_))
    }
}
