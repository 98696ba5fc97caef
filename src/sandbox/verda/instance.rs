//! One instance: what it is made of, where its life stands at a point of the clock, and how that is shown.
//!
//! Shape and words are `GetInstanceResponsePublicApiDto` of the API document. A boot goes `new`, `ordered`,
//! `validating`, `provisioning`, `running`; `ip` is null before that, and sshd answers a little later.

use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::catalog::Kind;
use super::guesses::VerdaGuesses;
use super::trouble::VerdaScript;
use super::wire::Tag;
use crate::sandbox::machine::Machine;
use crate::sandbox::scripts::Script;

/// An instance and everything that decides how it looks.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) user: String,
    pub(super) hostname: String,
    pub(super) description: String,
    pub(super) tags: Vec<Tag>,
    pub(super) kind: Kind,
    pub(super) location: String,
    pub(super) image: String,
    pub(super) os_name: String,
    pub(super) spot: bool,
    /// US dollars per hour for the whole machine, without volumes.
    pub(super) price: f64,
    pub(super) startup_script: Option<String>,
    pub(super) key_ids: Vec<String>,
    /// Public keys that get in, one a line.
    pub(super) authorized: String,
    pub(super) os_volume: Option<String>,
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
    /// Before this it is nowhere to be seen.
    pub(super) hidden_until: Duration,
    /// Before this it is not in lists.
    pub(super) listed_from: Duration,
    pub(super) offline: bool,
    /// When its deletion began.
    pub(super) deleted: Option<Duration>,
    /// Whether it ended without a deletion that takes its time.
    pub(super) evicted: bool,
    /// Deletes that were refused.
    pub(super) refused: u32,
    /// The last phase that the journal knows.
    pub(super) told: Option<Phase>,
    pub(super) address: Ipv4Addr,
    pub(super) machine: Option<Machine>,
}

/// Where an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    New,
    Ordered,
    Validating,
    Provisioning,
    Running,
    Offline,
    /// Ended with the word of its script.
    Ended,
    Deleting,
    Discontinued,
    /// Without a trace.
    Lost,
}

impl Instance {
    /// Where it stands now; a deleted instance is `deleting` for `slow`.
    pub(super) fn phase(&self, now: Duration, slow: Duration) -> Phase {
        if let Some(deleted) = self.deleted {
            let shown = !self.evicted && now < deleted.saturating_add(slow);
            return if shown { Phase::Deleting } else { Phase::Discontinued };
        }
        let age = now.saturating_sub(self.born);
        let reached = |ms: u64| age >= Duration::from_millis(ms);
        match &self.script {
            Some(Script::Disappears { ms }) if reached(*ms) => return Phase::Lost,
            Some(Script::GoesError { ms }) if reached(*ms) => return Phase::Ended,
            Some(Script::GoesExited { ms }) if reached(*ms) => return Phase::Offline,
            Some(Script::Verda(VerdaScript::EndsAs { ms, .. })) if reached(*ms) => return Phase::Ended,
            _ => {}
        }
        if self.offline {
            return Phase::Offline;
        }
        let run = now.saturating_sub(self.started);
        if run < self.boot / 20 {
            Phase::New
        } else if run < self.boot / 8 {
            Phase::Ordered
        } else if run < self.boot / 4 {
            Phase::Validating
        } else if run < self.boot * 3 / 4 || self.never_up() {
            Phase::Provisioning
        } else {
            Phase::Running
        }
    }

    /// Whether sshd is due.
    pub(super) fn sshd_due(&self, now: Duration, slow: Duration) -> bool {
        now.saturating_sub(self.started) >= self.boot && self.phase(now, slow) == Phase::Running
    }

    fn never_up(&self) -> bool {
        matches!(
            self.script,
            Some(
                Script::NeverReady { .. } | Script::CudaMismatch | Script::Verda(VerdaScript::EndsAs { .. })
            )
        )
    }

    /// Whether a delete comes too early: not before it left `provisioning`. One that never leaves it can be deleted
    /// when it should have left.
    pub(super) fn too_early(&self, phase: Phase, now: Duration, guesses: VerdaGuesses) -> bool {
        let run = now.saturating_sub(self.started);
        let hopeless = matches!(self.script, Some(Script::NeverReady { .. } | Script::CudaMismatch));
        match phase {
            Phase::Provisioning => !hopeless || run < self.boot * 3 / 4,
            Phase::New | Phase::Ordered | Phase::Validating => guesses.early_delete_refused,
            _ => false,
        }
    }

    /// The status word.
    pub(super) fn word(&self, phase: Phase) -> &str {
        let starting = matches!(phase, Phase::New | Phase::Ordered | Phase::Validating | Phase::Provisioning);
        match &self.script {
            Some(Script::NeverReady { word }) if starting => return word,
            Some(Script::Verda(VerdaScript::BootsAs { word })) if phase == Phase::Provisioning => {
                return word;
            }
            Some(Script::Verda(VerdaScript::EndsAs { word, .. })) if phase == Phase::Ended => return word,
            _ => {}
        }
        match phase {
            Phase::New => "new",
            Phase::Ordered => "ordered",
            Phase::Validating => "validating",
            Phase::Provisioning => "provisioning",
            Phase::Running => "running",
            Phase::Offline => "offline",
            Phase::Ended => "error",
            Phase::Deleting => "deleting",
            Phase::Discontinued => "discontinued",
            Phase::Lost => "notfound",
        }
    }

    /// The address that is told; it comes a little before sshd answers there.
    pub(super) fn told_address(&self, phase: Phase, now: Duration) -> Option<String> {
        let late = match &self.script {
            Some(Script::NeverSsh) => return None,
            Some(Script::Verda(VerdaScript::LateAddress { ms })) => Duration::from_millis(*ms),
            _ => Duration::ZERO,
        };
        let up = self.started.saturating_add(self.boot).saturating_add(late);
        let told = matches!(phase, Phase::Running | Phase::Offline) && (late.is_zero() || now >= up);
        told.then(|| self.address.to_string())
    }

    /// Whether its volumes are told.
    fn volumes_told(&self, phase: Phase) -> bool {
        let hides =
            matches!(self.script, Some(Script::Verda(VerdaScript::EndsAs { hidden_volume: true, .. })));
        match phase {
            Phase::Running | Phase::Offline | Phase::Deleting => !hides,
            Phase::Ended => !hides,
            _ => false,
        }
    }

    /// As JSON, with the ids of the volumes that are attached to it.
    pub(super) fn show(
        &self,
        phase: Phase,
        now: Duration,
        attached: &[String],
        guesses: VerdaGuesses,
    ) -> Value {
        let told = self.volumes_told(phase);
        let os = self.os_volume.as_ref().filter(|id| told && attached.contains(id));
        let volumes: Vec<&String> = attached
            .iter()
            .filter(|id| told && (!guesses.os_volume_apart || Some(*id) != self.os_volume.as_ref()))
            .collect();
        let units = if guesses.price_per_gpu { self.kind.gpus.max(1) } else { 1 };
        let units = if guesses.price_per_gpu && self.kind.gpus == 0 { self.kind.vcpus } else { units };
        let mut shown = json!({
            "id": self.id, "ip": self.told_address(phase, now), "status": self.word(phase),
            "created_at": format!("{:.3}", self.created), "created_by_user_id": self.user,
            "hostname": self.hostname, "description": self.description,
            "tags": self.tags.iter().map(Tag::show).collect::<Vec<_>>(), "location": self.location,
            "price_per_hour": self.price / f64::from(units), "is_spot": self.spot,
            "instance_type": self.kind.code, "image": self.image, "os_name": self.os_name,
            "startup_script_id": self.startup_script, "ssh_key_ids": self.key_ids, "os_volume_id": os,
            "jupyter_token": "", "contract": if self.spot { "SPOT" } else { "PAY_AS_YOU_GO" },
            "pricing": "FIXED_PRICE", "volume_ids": volumes,
        });
        if let (Value::Object(shown), Value::Object(parts)) = (&mut shown, self.kind.parts()) {
            shown.extend(parts);
        }
        shown
    }
}
