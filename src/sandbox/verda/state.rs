//! All accounts and what they have, and what happens by itself.

use std::time::Duration;

use super::instance::{Instance, Phase};
use super::journal::{Actor, Event};
use super::limits::Windows;
use super::token::Token;
use super::trouble::VerdaScript;
use super::volume::{Place, Standing, Volume};
use super::wire::{OnSpot, Tag, TagBody};
use crate::sandbox::Shared;
use crate::sandbox::chance::Chance;
use crate::sandbox::machine::{hex, random};
use crate::sandbox::scripts::Script;

/// What one project may have at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerdaQuota {
    /// GPUs on demand.
    pub gpus: u32,
    /// GPUs of spot machines.
    pub spot_gpus: u32,
    /// GB of all volumes, those in the trash too.
    pub storage: u64,
    /// Volumes, those in the trash too.
    pub volumes: usize,
}

impl Default for VerdaQuota {
    fn default() -> VerdaQuota {
        VerdaQuota { gpus: 64, spot_gpus: 64, storage: 50_000, volumes: 200 }
    }
}

/// One account: a project with its own credentials.
#[derive(Debug)]
pub(super) struct Account {
    /// Label in records and in the ledger.
    pub(super) label: String,
    pub(super) client_id: String,
    pub(super) client_secret: String,
    pub(super) project: String,
    pub(super) user: String,
    /// US dollars that can be spent; nothing is ever taken from them.
    pub(super) balance: f64,
    pub(super) quota: VerdaQuota,
    pub(super) windows: Windows,
}

/// One SSH key on file.
#[derive(Debug)]
pub(super) struct KeyObject {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) name: String,
    pub(super) key: String,
    pub(super) foreign: bool,
}

/// One startup script on file.
#[derive(Debug)]
pub(super) struct ScriptObject {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) name: String,
    pub(super) text: String,
    pub(super) at: Duration,
}

/// What becomes of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Detach,
    Trash,
    Permanent,
}

/// Everything that changes. Nothing that was made is ever dropped: what is gone still answers by its id.
#[derive(Debug)]
pub(super) struct State {
    pub(super) accounts: Vec<Account>,
    pub(super) tokens: Vec<Token>,
    pub(super) token_life: Duration,
    pub(super) instances: Vec<Instance>,
    pub(super) volumes: Vec<Volume>,
    pub(super) keys: Vec<KeyObject>,
    pub(super) scripts: Vec<ScriptObject>,
    pub(super) journal: Vec<Event>,
    chance: Chance,
}

impl State {
    /// No accounts. The seed decides ids and boot times.
    pub(super) fn new(seed: Option<u64>, token_life: Duration) -> State {
        State {
            accounts: Vec::new(),
            tokens: Vec::new(),
            token_life,
            instances: Vec::new(),
            volumes: Vec::new(),
            keys: Vec::new(),
            scripts: Vec::new(),
            journal: Vec::new(),
            chance: Chance::new(seed),
        }
    }

    /// A new id.
    pub(super) fn uuid(&mut self) -> String {
        let (high, low) = (self.chance.next(), self.chance.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// A point between two durations.
    pub(super) fn between(&mut self, range: (Duration, Duration)) -> Duration {
        self.chance.between(range)
    }

    /// Tags as the server keeps them: with ids, keys in lower case.
    pub(super) fn tags(&mut self, sent: &[TagBody]) -> Vec<Tag> {
        sent.iter().map(|tag| self.tag(tag)).collect()
    }

    /// One of them.
    pub(super) fn tag(&mut self, sent: &TagBody) -> Tag {
        let id = format!("tag_{:016x}{:06x}", self.chance.next(), self.chance.next() & 0xff_ffff);
        Tag { id, key: sent.key.to_lowercase(), value: sent.value.clone().unwrap_or_default() }
    }

    /// Opens an account and returns its client id.
    pub(super) fn add_account(&mut self) -> String {
        let client_id = format!("sandbox-{}", hex(&random::<8>()));
        let account = Account {
            label: format!("verda-{}", self.accounts.len() + 1),
            client_id: client_id.clone(),
            client_secret: format!("sandbox-{}", hex(&random::<24>())),
            project: self.uuid(),
            user: self.uuid(),
            balance: 100.0,
            quota: VerdaQuota::default(),
            windows: Windows::default(),
        };
        self.accounts.push(account);
        client_id
    }

    /// An account by its label.
    pub(super) fn account(&mut self, label: &str) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.label == label)
    }

    /// Ids of the volumes that are attached to an instance, the OS volume first.
    pub(super) fn attached(&self, id: &str) -> Vec<String> {
        let mut here: Vec<&Volume> =
            self.volumes.iter().filter(|volume| volume.instance() == Some(id)).collect();
        here.sort_by_key(|volume| !volume.is_os);
        here.into_iter().map(|volume| volume.id.clone()).collect()
    }

    /// Where in the list an instance is that this account can see by its id.
    pub(super) fn seen(&self, now: Duration, account: &str, id: &str) -> Option<usize> {
        self.instances
            .iter()
            .position(|one| one.id == id && one.account == account && now >= one.hidden_until)
    }

    /// Writes an event about an instance.
    pub(super) fn note(
        &mut self,
        index: usize,
        action: &'static str,
        actor: Actor,
        at: Duration,
    ) -> &mut Event {
        let one = &self.instances[index];
        self.journal.push(Event {
            account: one.account.clone(),
            object: one.id.clone(),
            object_type: "compute",
            action,
            actor,
            at,
            location: one.location.clone(),
            error: None,
            reason: None,
        });
        let last = self.journal.len() - 1;
        &mut self.journal[last]
    }

    /// Ends an instance and decides about its volumes. The bill ends now, whatever is shown.
    pub(super) fn end(
        &mut self,
        shared: &Shared,
        index: usize,
        actor: Actor,
        fate: impl Fn(&Volume) -> Fate,
    ) {
        let now = shared.clock.now();
        let evicted = actor == Actor::Nobody;
        let one = &mut self.instances[index];
        if one.machine.take().is_some() {
            shared.addresses.give_back(one.address);
        }
        one.deleted = Some(now);
        one.evicted = evicted;
        let id = one.id.clone();
        shared.ledger.ended("verda", &id, shared.clock.date(now));
        self.note(index, "delete", actor, now).reason = evicted.then_some("evicted_by_on_demand");
        // A machine's volumes outlast it a little (third-party reports).
        let until = now + shared.options.slow_delete * 2;
        for volume in self.volumes.iter_mut().filter(|volume| volume.instance() == Some(&id)) {
            let fate = fate(volume);
            volume.place = match fate {
                Fate::Detach => Place::Detached,
                Fate::Trash => Place::Trash(now),
                Fate::Permanent => Place::Deleting { since: now, until },
            };
        }
    }

    /// Evicts a spot instance: deleted at once, its volumes as their `on_spot_discontinue` says.
    pub(super) fn evict(&mut self, shared: &Shared, index: usize) {
        self.end(shared, index, Actor::Nobody, |volume| match volume.on_spot {
            OnSpot::KeepDetached => Fate::Detach,
            OnSpot::MoveToTrash => Fate::Trash,
            OnSpot::DeletePermanently => Fate::Permanent,
        });
    }

    /// Lets happen what is due.
    pub(super) fn tick(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        let slow = shared.options.slow_delete;
        for index in 0..self.instances.len() {
            let one = &mut self.instances[index];
            if let Some(Script::Verda(VerdaScript::Evicted { ms })) = one.script
                && one.spot
                && one.deleted.is_none()
                && now >= one.born + Duration::from_millis(ms)
            {
                self.evict(shared, index);
                continue;
            }
            let phase = one.phase(now, slow);
            if one.sshd_due(now, slow) {
                if let Some(machine) = one.machine.as_ref().filter(|machine| !machine.booted()) {
                    machine.boot();
                }
            } else if matches!(phase, Phase::Offline | Phase::Ended | Phase::Lost)
                && one.machine.take().is_some()
            {
                shared.addresses.give_back(one.address);
            }
            if one.told != Some(phase) {
                one.told = Some(phase);
                self.tell(shared, index, phase, now);
            }
        }
    }

    /// Writes down that an instance came into a phase.
    fn tell(&mut self, shared: &Shared, index: usize, phase: Phase, now: Duration) {
        let action = match phase {
            Phase::Validating => "validating",
            Phase::Provisioning => "provisioning",
            Phase::Running => "running",
            Phase::Deleting => "deleting",
            Phase::Discontinued => "delete:complete",
            Phase::Ended => {
                let one = &self.instances[index];
                let (action, error) = match &one.script {
                    Some(Script::Verda(VerdaScript::EndsAs { word, error, .. })) => (
                        if word == "installation_failed" { "installation:failed" } else { "error" },
                        error.clone(),
                    ),
                    _ => ("error", None),
                };
                self.note(index, action, Actor::Nobody, now).error = error;
                return;
            }
            Phase::Lost => {
                let one = &self.instances[index];
                shared.ledger.ended("verda", &one.id, shared.clock.date(now));
                let id = one.id.clone();
                for volume in self.volumes.iter_mut().filter(|volume| volume.instance() == Some(&id)) {
                    volume.place = Place::Detached;
                }
                return;
            }
            Phase::New | Phase::Ordered | Phase::Offline => return,
        };
        self.note(index, action, Actor::Nobody, now);
    }

    /// GB and number of an account's volumes that count against its quota.
    pub(super) fn stored(&self, account: &str, now: Duration) -> (u64, usize) {
        let mine = self.volumes.iter().filter(|volume| volume.account == account && volume.exists(now));
        mine.fold((0, 0), |(gb, count), volume| (gb + volume.size, count + 1))
    }

    /// GPUs of an account's machines.
    pub(super) fn gpus(&self, account: &str, spot: bool) -> u32 {
        let mine = self.instances.iter().filter(|one| one.account == account && one.spot == spot);
        mine.filter(|one| one.deleted.is_none()).map(|one| one.kind.gpus).sum()
    }

    /// A detached OS volume of this account, for booting from.
    pub(super) fn bootable(&self, account: &str, id: &str, now: Duration) -> Option<&Volume> {
        self.volumes.iter().find(|volume| {
            volume.id == id
                && volume.account == account
                && volume.is_os
                && volume.standing(now) == Standing::Detached
        })
    }
}
