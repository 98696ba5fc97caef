//! One pod: what it is made of, where its life stands at a point of the clock, and how that is shown.
//!
//! Shape and words are `Pod`, `PodRuntime` and `PodSsh` of `docs.runpod.io/api-reference-v2`. A boot goes
//! PROVISIONING, STARTING, RUNNING without an address, RUNNING with one, and a little later sshd answers:
//! status RUNNING proves nothing (<https://github.com/dstackai/dstack/issues/1145>).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::wire::Cloud;
use crate::sandbox::machine::Machine;
use crate::sandbox::scripts::Script;

/// A pod and everything that decides how it looks.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) id: String,
    /// Counts up with every pod made; among pods of one moment the later is the newer.
    pub(super) serial: u64,
    pub(super) account: String,
    pub(super) name: String,
    pub(super) image: String,
    pub(super) args: String,
    pub(super) cmd: Vec<String>,
    pub(super) entrypoint: Vec<String>,
    pub(super) disk: i64,
    pub(super) ports: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) gpu: String,
    pub(super) count: i64,
    pub(super) ram: i64,
    pub(super) vcpus: i64,
    pub(super) cloud: Cloud,
    pub(super) dc: Option<String>,
    pub(super) cuda: Option<String>,
    /// US dollars per hour.
    pub(super) cost: f64,
    pub(super) script: Option<Script>,
    /// When it was made; the start of the sandbox for those that are older.
    pub(super) born: Duration,
    /// The same as a date, as old as it may be.
    pub(super) created: Timestamp,
    /// When its present run began: the create, or the last start.
    pub(super) started: Duration,
    /// How long a run takes to sshd.
    pub(super) boot: Duration,
    /// Before this it is nowhere to be seen.
    pub(super) hidden_until: Duration,
    /// Before this it is not in lists.
    pub(super) listed_from: Duration,
    pub(super) stopped: bool,
    pub(super) deleted: Option<Duration>,
    /// How often it was looked at.
    pub(super) looks: u32,
    pub(super) machine: Option<Machine>,
}

/// Where a pod stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Provisioning,
    Starting,
    /// RUNNING, without an address.
    Pulling,
    /// RUNNING, with an address unless it never gets one.
    Up,
    Exited,
    Error,
    Terminated,
    Gone,
}

impl Pod {
    /// Its place in lists, which begin with the greatest.
    pub(super) fn place(&self) -> (i128, u64) {
        (self.created.as_nanosecond(), self.serial)
    }

    /// Where it stands now; a deleted pod is TERMINATED for `slow_delete` and then gone.
    pub(super) fn phase(&self, now: Duration, slow_delete: Duration) -> Phase {
        if let Some(deleted) = self.deleted {
            return if now < deleted.saturating_add(slow_delete) { Phase::Terminated } else { Phase::Gone };
        }
        let age = now.saturating_sub(self.born);
        let reached = |ms: u64| age >= Duration::from_millis(ms);
        match &self.script {
            Some(Script::Disappears { ms }) if reached(*ms) => return Phase::Gone,
            Some(Script::GoesError { ms }) if reached(*ms) => return Phase::Error,
            Some(Script::GoesExited { ms }) if reached(*ms) => return Phase::Exited,
            _ => {}
        }
        if self.stopped {
            return Phase::Exited;
        }
        let run = now.saturating_sub(self.started);
        if run < self.boot / 4 {
            Phase::Provisioning
        } else if run < self.boot / 2 {
            Phase::Starting
        } else if run < self.boot * 3 / 4 || self.never_up() {
            Phase::Pulling
        } else {
            Phase::Up
        }
    }

    /// Whether sshd is due.
    pub(super) fn sshd_due(&self, now: Duration, slow_delete: Duration) -> bool {
        now.saturating_sub(self.started) >= self.boot && self.phase(now, slow_delete) == Phase::Up
    }

    fn never_up(&self) -> bool {
        matches!(self.script, Some(Script::CudaMismatch | Script::NeverReady { .. }))
    }

    fn word(&self, phase: Phase) -> &str {
        if let Some(Script::NeverReady { word }) = &self.script
            && matches!(phase, Phase::Provisioning | Phase::Starting | Phase::Pulling)
        {
            return word;
        }
        match phase {
            Phase::Provisioning => "PROVISIONING",
            Phase::Starting => "STARTING",
            Phase::Pulling | Phase::Up => "RUNNING",
            Phase::Exited => "EXITED",
            Phase::Error => "ERROR",
            Phase::Terminated | Phase::Gone => "TERMINATED",
        }
    }

    /// What can be done to it (`docs.runpod.io/api-reference-v2`, pod actions).
    pub(super) fn actions(phase: Phase) -> &'static [&'static str] {
        match phase {
            Phase::Provisioning | Phase::Starting => &["stop", "terminate"],
            Phase::Pulling | Phase::Up => &["stop", "restart", "terminate"],
            Phase::Exited | Phase::Error => &["start", "terminate"],
            Phase::Terminated | Phase::Gone => &[],
        }
    }

    /// As JSON.
    pub(super) fn show(&self, phase: Phase, now: Duration, date: impl Fn(Duration) -> Timestamp) -> Value {
        let running = matches!(phase, Phase::Pulling | Phase::Up);
        let placed = running || matches!(phase, Phase::Exited | Phase::Error | Phase::Terminated);
        let proxy = running.then(|| {
            let user = format!("{}-64411eb2", self.id);
            json!({"host": "ssh.runpod.io", "port": 22, "username": user,
                   "command": format!("ssh {user}@ssh.runpod.io")})
        });
        let direct = self.address(phase).map(|(host, port)| {
            json!({"host": host, "port": port, "username": "root",
                   "command": format!("ssh root@{host} -p {port}")})
        });
        let cost = if matches!(phase, Phase::Exited | Phase::Terminated) { 0.0 } else { self.cost };
        json!({
            "id": self.id, "name": self.name, "status": self.word(phase), "actions": Self::actions(phase),
            "image": self.image, "args": self.args, "cmd": self.cmd, "entrypoint": self.entrypoint,
            "disk": self.disk, "mounts": {}, "ports": self.ports, "env": self.env, "registry": null,
            "gpu": {"id": self.gpu, "count": self.count, "vcpuCount": self.vcpus, "memory": self.ram},
            "cloud": self.cloud.word(), "dataCenterId": if placed { json!(self.dc) } else { Value::Null },
            "cudaVersion": if placed { json!(self.cuda) } else { Value::Null },
            "ssh": {"proxy": proxy, "direct": direct}, "template": null, "cost": cost, "locked": false,
            "globalNetworking": {"enabled": false}, "runtime": self.runtime(phase, now),
            "createdAt": self.created.to_string(),
            "startedAt": running.then(|| date(self.started + self.boot / 2).to_string()),
        })
    }

    /// The address in `ssh.direct`; it comes a little before sshd answers there.
    fn address(&self, phase: Phase) -> Option<(String, u16)> {
        let mapped = self.ports.iter().any(|port| port == "22/tcp");
        if phase != Phase::Up || !mapped || self.script == Some(Script::NeverSsh) {
            return None;
        }
        if self.script == Some(Script::RuntimeSequence) && self.looks < 6 {
            return None;
        }
        match &self.machine {
            Some(machine) => Some((machine.address().ip().to_string(), machine.address().port())),
            // A pod without a machine, at a port where nothing ever listens.
            None => Some(("127.0.0.1".into(), 1)),
        }
    }

    fn runtime(&self, phase: Phase, now: Duration) -> Value {
        if phase != Phase::Up {
            return Value::Null;
        }
        let uptime = now.saturating_sub(self.started + self.boot / 2).as_secs();
        let gpus: Vec<Value> = (0..self.count).map(|_| json!({"util": 0, "memoryUtil": 0})).collect();
        let mut runtime = json!({"uptime": uptime, "gpus": gpus, "cpu": {"util": 0}, "memory": {"util": 0}});
        let http = json!({"ip": "100.65.14.155", "private": 19123, "public": 60821, "type": "http"});
        let mut ports = vec![http];
        if let Some((ip, port)) = self.address(phase) {
            ports.insert(0, json!({"ip": ip, "private": 22, "public": port, "type": "tcp"}));
        }
        runtime["ports"] = json!(ports);
        // https://github.com/runpod/runpodctl/issues/39
        if self.script == Some(Script::RuntimeSequence) {
            match self.looks {
                0..=2 => return Value::Null,
                3 => runtime["ports"] = Value::Null,
                4 | 5 => runtime["ports"] = json!([]),
                _ => {}
            }
        }
        runtime
    }
}
