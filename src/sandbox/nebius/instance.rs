//! One instance: what it is made of, where its life stands at a point of the clock, and how that is shown.
//!
//! A first start goes `CREATING`, `STOPPED` and reconciling, `STARTING`, `RUNNING`
//! (<https://docs.nebius.com/compute/virtual-machines/lifecycle>); the public address comes a little after `RUNNING`, sshd
//! later still. The address goes when it stops.

use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::catalog::{Platform, Preset};
use super::status::Trouble;
use super::trouble::NebiusScript;
use crate::sandbox::machine::Machine;
use crate::sandbox::scripts::Script;

/// An instance and everything that decides how it looks.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) project: String,
    pub(super) region: String,
    pub(super) name: String,
    pub(super) labels: Value,
    /// The spec as it was sent.
    pub(super) spec: Value,
    pub(super) platform: Platform,
    pub(super) preset: Preset,
    pub(super) spot: bool,
    /// US dollars per hour for the whole machine, without its disk.
    pub(super) price: f64,
    pub(super) foreign: bool,
    pub(super) script: Option<Script>,
    /// When it was made; the start of the sandbox for those that are older.
    pub(super) born: Duration,
    /// The same as a date, as old as it may be.
    pub(super) created: Timestamp,
    /// When its present run began: the create, or the last start.
    pub(super) started: Duration,
    /// How long a run takes to sshd.
    pub(super) boot: Duration,
    /// Why its start fails, and when, counted from the start.
    pub(super) fails: Option<(Duration, Box<Trouble>)>,
    /// Before this it is nowhere to be seen.
    pub(super) hidden_until: Duration,
    /// Before this it is not in lists.
    pub(super) listed_from: Duration,
    /// When it has stopped; before that it is stopping.
    pub(super) stopped: Option<Duration>,
    /// When its deletion began.
    pub(super) deleted: Option<Duration>,
    /// Deletes that were refused.
    pub(super) refused: u32,
    /// Whether its bill is at an end without a delete.
    pub(super) lost: bool,
    /// Whether nobody ever gets in.
    pub(super) hangs: bool,
    /// Whether it was asked for with a public address.
    pub(super) public: bool,
    pub(super) address: Ipv4Addr,
    pub(super) machine: Option<Machine>,
}

/// Where an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Creating,
    /// `STOPPED`, and about to start.
    Waiting,
    Starting,
    Running,
    Stopping,
    Stopped,
    /// `STOPPED` after a start that failed.
    Failed,
    /// `ERROR`.
    Broken,
    Deleting,
    Gone,
}

impl Instance {
    /// Where it stands now; stopping and deleting take `slow`.
    pub(super) fn stage(&self, now: Duration, slow: Duration, starts_at_once: bool) -> Stage {
        if let Some(deleted) = self.deleted {
            return if now < deleted.saturating_add(slow) { Stage::Deleting } else { Stage::Gone };
        }
        let age = now.saturating_sub(self.born);
        let reached = |ms: u64| age >= Duration::from_millis(ms);
        match &self.script {
            Some(Script::Disappears { ms }) if reached(*ms) => return Stage::Gone,
            Some(Script::GoesError { ms }) if reached(*ms) => return Stage::Broken,
            _ => {}
        }
        if let Some(stopped) = self.stopped {
            return if now < stopped { Stage::Stopping } else { Stage::Stopped };
        }
        let run = now.saturating_sub(self.started);
        if self.fails.as_ref().is_some_and(|(after, _)| run >= *after) {
            return Stage::Failed;
        }
        if run < self.boot / 10 {
            Stage::Creating
        } else if run < self.boot / 4 && !starts_at_once {
            Stage::Waiting
        } else if run < self.boot / 2 || self.never_up() {
            Stage::Starting
        } else {
            Stage::Running
        }
    }

    /// When a script stops it, if one does.
    pub(super) fn stops_at(&self) -> Option<Duration> {
        match &self.script {
            Some(Script::GoesExited { ms }) => Some(self.born + Duration::from_millis(*ms)),
            Some(Script::Nebius(NebiusScript::Preempted { ms })) if self.spot => {
                Some(self.born + Duration::from_millis(*ms))
            }
            _ => None,
        }
    }

    fn never_up(&self) -> bool {
        self.fails.is_some() || matches!(self.script, Some(Script::NeverReady { .. } | Script::CudaMismatch))
    }

    /// Whether sshd is due at this stage.
    pub(super) fn sshd_due(&self, stage: Stage, now: Duration) -> bool {
        stage == Stage::Running && now.saturating_sub(self.started) >= self.boot && !self.hangs
    }

    /// The word of its state.
    fn word(&self, stage: Stage) -> &str {
        match (&self.script, stage) {
            (Some(Script::NeverReady { word }), Stage::Creating | Stage::Waiting | Stage::Starting) => word,
            (_, Stage::Creating) => "CREATING",
            (_, Stage::Waiting | Stage::Stopped | Stage::Failed) => "STOPPED",
            (_, Stage::Starting) => "STARTING",
            (_, Stage::Running) => "RUNNING",
            (_, Stage::Stopping) => "STOPPING",
            (_, Stage::Broken) => "ERROR",
            (_, Stage::Deleting | Stage::Gone) => "DELETING",
        }
    }

    /// The public address that is told.
    fn told_address(&self, stage: Stage, now: Duration) -> Option<String> {
        let late = match &self.script {
            Some(Script::NeverSsh) => return None,
            Some(Script::Nebius(NebiusScript::LateAddress { ms })) => Duration::from_millis(*ms),
            _ => Duration::ZERO,
        };
        let from = self.started.saturating_add(self.boot * 3 / 5).saturating_add(late);
        let told = self.public && stage == Stage::Running && now >= from;
        told.then(|| format!("{}/32", self.address))
    }

    /// Ids of its allocations: the private address's, and the public one's.
    pub(super) fn allocations(&self) -> [String; 2] {
        let tail = self.id.rsplit('-').next().unwrap_or_default();
        [format!("vpcallocation-{tail}p"), format!("vpcallocation-{tail}q")]
    }

    /// Its private address, which is nowhere.
    pub(super) fn private_address(&self) -> String {
        let [_, _, third, fourth] = self.address.octets();
        format!("10.0.{third}.{fourth}/32")
    }

    /// As the API has it, with the disks on it: id and name.
    pub(super) fn show(&self, stage: Stage, now: Duration, disks: &[(String, String)]) -> Value {
        let [private, public] = self.allocations();
        let mut port = json!({
            "index": 0, "name": self.spec.pointer("/network_interfaces/0/name").cloned().unwrap_or(json!("eth0")),
            "ip_address": {"address": self.private_address(), "allocation_id": private},
        });
        if let Some(address) = self.told_address(stage, now) {
            port["public_ip_address"] = json!({"address": address, "allocation_id": public});
        } else if self.public && matches!(stage, Stage::Starting | Stage::Running) {
            port["public_ip_address"] = json!({});
        }
        let attached: Vec<Value> =
            disks.iter().map(|(id, name)| json!({"id": id, "name": name, "is_managed": true})).collect();
        let busy = matches!(
            stage,
            Stage::Creating | Stage::Waiting | Stage::Starting | Stage::Stopping | Stage::Deleting
        );
        let created = self.created.to_string();
        json!({
            "metadata": {
                "id": self.id, "parent_id": self.project, "name": self.name, "labels": self.labels,
                "resource_version": 1, "created_at": created, "updated_at": created,
            },
            "spec": self.spec,
            "status": {
                "state": self.word(stage), "reconciling": busy, "network_interfaces": [port],
                "disk_attachments": attached,
            },
        })
    }
}
