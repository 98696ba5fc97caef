//! One instance: what it is made of, where its life stands at a point of the clock, and how that is shown.
//!
//! A boot goes `PROVISIONING`, `STAGING`, `RUNNING`; the address comes with `RUNNING` and sshd a little later. A delete goes
//! `STOPPING` and then 404. Shapes are those of the schema `Instance`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::GcpCloud;
use super::operation::LINKS;
use super::shapes::Shape;
use super::trouble::{GcpOperationError, GcpScript};
use crate::sandbox::machine::Machine;
use crate::sandbox::scripts::Script;

/// An instance that is on its way out.
#[derive(Debug, Clone)]
pub(super) struct Going {
    pub(super) until: Duration,
    /// Whether its disks stay, whatever they say.
    pub(super) disks_stay: bool,
}

/// An instance and everything that decides how it looks.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) project: String,
    pub(super) zone: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) metadata: Vec<(String, String)>,
    pub(super) tags: Vec<String>,
    pub(super) scheduling: Map<String, Value>,
    pub(super) network: String,
    pub(super) subnetwork: String,
    /// Whether it was given an external address, and of which tier.
    pub(super) external: Option<String>,
    pub(super) deletion_protection: bool,
    pub(super) shape: Shape,
    /// Its GPUs: kind and number.
    pub(super) gpus: Option<(String, u32)>,
    /// Quota metrics of its GPUs, on demand and for spot.
    pub(super) gpu_metrics: (String, String),
    pub(super) spot: bool,
    /// US dollars per hour for the whole machine, without disk and address.
    pub(super) price: f64,
    pub(super) foreign: bool,
    pub(super) script: Option<Script>,
    pub(super) born: Duration,
    /// How old it was when it was put there.
    pub(super) age: Duration,
    /// How long it takes to sshd.
    pub(super) boot: Duration,
    pub(super) hidden_until: Duration,
    pub(super) listed_from: Duration,
    /// When its insert ends, and how if not well.
    pub(super) settled_at: Duration,
    pub(super) doom: Option<GcpOperationError>,
    /// When it ends by itself, after `maxRunDuration`.
    pub(super) expires: Option<Duration>,
    pub(super) stopped: bool,
    pub(super) going: Option<Going>,
    pub(super) gone: bool,
    /// Deletes that were refused.
    pub(super) refused: u32,
    /// The host keys that the guest agent publishes: type and text.
    pub(super) host_keys: Vec<(String, String)>,
    pub(super) address: Ipv4Addr,
    pub(super) machine: Option<Machine>,
}

/// Where an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Provisioning,
    Staging,
    Running,
    Stopping,
    Terminated,
    /// Ended with the word of its script.
    Ended,
    Gone,
}

impl Instance {
    /// Where it stands now.
    pub(super) fn phase(&self, now: Duration) -> Phase {
        if self.gone {
            return Phase::Gone;
        }
        let age = now.saturating_sub(self.born);
        let reached = |ms: u64| age >= Duration::from_millis(ms);
        if self.going.is_some() {
            return Phase::Stopping;
        }
        match &self.script {
            Some(Script::GoesError { ms } | Script::Gcp(GcpScript::EndsAs { ms, .. })) if reached(*ms) => {
                return Phase::Ended;
            }
            Some(Script::GoesExited { ms }) if reached(*ms) => return Phase::Terminated,
            _ => {}
        }
        if self.stopped {
            return Phase::Terminated;
        }
        if age < self.boot / 8 {
            Phase::Provisioning
        } else if age < self.boot / 2 || self.never_up() {
            Phase::Staging
        } else {
            Phase::Running
        }
    }

    fn never_up(&self) -> bool {
        matches!(self.script, Some(Script::NeverReady { .. } | Script::CudaMismatch))
    }

    /// Whether sshd is due.
    pub(super) fn sshd_due(&self, now: Duration) -> bool {
        now.saturating_sub(self.born) >= self.boot && self.phase(now) == Phase::Running && self.doom.is_none()
    }

    /// The status word.
    pub(super) fn word(&self, phase: Phase) -> &str {
        let starting = matches!(phase, Phase::Provisioning | Phase::Staging);
        match &self.script {
            Some(Script::NeverReady { word }) if starting => return word,
            Some(Script::Gcp(GcpScript::BootsAs { word })) if phase == Phase::Staging => return word,
            Some(Script::Gcp(GcpScript::EndsAs { word, .. })) if phase == Phase::Ended => return word,
            _ => {}
        }
        match phase {
            Phase::Provisioning => "PROVISIONING",
            Phase::Staging => "STAGING",
            Phase::Running => "RUNNING",
            Phase::Stopping | Phase::Gone => "STOPPING",
            Phase::Terminated | Phase::Ended => "TERMINATED",
        }
    }

    /// A value of its metadata.
    pub(super) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The external address that is told.
    fn told_address(&self, phase: Phase, now: Duration, early: bool) -> Option<String> {
        self.external.as_ref()?;
        let late = match &self.script {
            Some(Script::NeverSsh) => return None,
            Some(Script::Gcp(GcpScript::LateAddress { ms })) => Duration::from_millis(*ms),
            _ => Duration::ZERO,
        };
        let running = self.born + self.boot / 2;
        let told = match phase {
            Phase::Running => now >= running + late,
            Phase::Staging => early && late.is_zero(),
            _ => false,
        };
        told.then(|| self.address.to_string())
    }

    /// Whether the guest agent has published its host keys.
    pub(super) fn keys_published(&self, now: Duration) -> bool {
        let late = match &self.script {
            Some(Script::Gcp(GcpScript::NoHostKeys)) => return false,
            Some(Script::Gcp(GcpScript::LateHostKeys { ms })) => Duration::from_millis(*ms),
            _ => Duration::ZERO,
        };
        let asked =
            self.metadata("enable-guest-attributes").is_some_and(|word| word.eq_ignore_ascii_case("true"));
        asked && self.phase(now) == Phase::Running && now >= self.born + self.boot + late
    }
}

impl GcpCloud {
    /// An instance as JSON, with its disks.
    pub(super) fn show_instance(&self, one: &Instance, disks: &[Value]) -> Value {
        let now = self.shared.clock.now();
        let phase = one.phase(now);
        let (project, zone) = (&one.project, &one.zone);
        let base = format!("{LINKS}/{project}");
        let mut nic = json!({
            "kind": "compute#networkInterface", "name": "nic0",
            "network": format!("{base}/global/networks/{}", one.network),
            "subnetwork": format!("{base}/regions/{}/subnetworks/{}", super::names::region_of(zone), one.subnetwork),
            "networkIP": format!("10.128.0.{}", 2 + one.id.bytes().map(u64::from).sum::<u64>() % 250),
            "stackType": "IPV4_ONLY", "fingerprint": "aBcDeFgHiJk=",
        });
        if let Some(tier) = &one.external {
            let mut access = json!({"kind": "compute#accessConfig", "type": "ONE_TO_ONE_NAT", "name": "External NAT",
                                    "networkTier": tier});
            if let Some(address) = one.told_address(phase, now, self.guesses().early_address) {
                access["natIP"] = json!(address);
            }
            nic["accessConfigs"] = json!([access]);
        }
        let created = one.born.saturating_sub(one.age);
        let mut shown = json!({
            "kind": "compute#instance", "id": one.id, "name": one.name,
            "zone": format!("{base}/zones/{zone}"), "status": one.word(phase),
            "creationTimestamp": self.aged(one.born, one.age),
            "machineType": format!("{base}/zones/{zone}/machineTypes/{}", one.shape.name),
            "cpuPlatform": if phase == Phase::Running { "Intel Cascade Lake" } else { "Unknown CPU Platform" },
            "disks": disks, "networkInterfaces": [nic], "scheduling": one.scheduling,
            "metadata": {"kind": "compute#metadata", "fingerprint": fingerprint(&json!(one.metadata)),
                         "items": one.metadata.iter().map(|(key, value)| json!({"key": key, "value": value})).collect::<Vec<_>>()},
            "labelFingerprint": fingerprint(&json!(one.labels)),
            "tags": {"fingerprint": fingerprint(&json!(one.tags))},
            "startRestricted": false, "canIpForward": false, "deletionProtection": one.deletion_protection,
            "fingerprint": "kLmNoPqRsTu=",
            "selfLink": format!("{base}/zones/{zone}/instances/{}", one.name),
        });
        if !one.tags.is_empty() {
            shown["tags"]["items"] = json!(one.tags);
        }
        if !one.labels.is_empty() {
            shown["labels"] = json!(one.labels);
        }
        if let Some(description) = &one.description {
            shown["description"] = json!(description);
        }
        if phase == Phase::Running {
            shown["lastStartTimestamp"] = json!(self.date(created + one.boot / 2));
        }
        let bundled = one.shape.bundle.is_some();
        if let Some((kind, count)) = one.gpus.as_ref().filter(|_| !bundled || !self.guesses().bundled_unseen)
        {
            shown["guestAccelerators"] = json!([{
                "acceleratorType": format!("{base}/zones/{zone}/acceleratorTypes/{kind}"), "acceleratorCount": count}]);
        }
        shown
    }
}

/// A fingerprint of what is shown: another one after every change.
pub(super) fn fingerprint(of: &Value) -> String {
    use base64::Engine;
    let digest = ring::digest::digest(&ring::digest::SHA256, of.to_string().as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&digest.as_ref()[..8])
}
