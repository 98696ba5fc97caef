//! All accounts and what they have, and what happens by itself.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::account::{Account, Token};
use super::disk::Disk;
use super::guesses::NebiusGuesses;
use super::instance::{Instance, Stage};
use super::operation::{Kind, Operation};
use super::status::Trouble;
use super::trouble::NebiusScript;
use crate::sandbox::Shared;
use crate::sandbox::chance::Chance;
use crate::sandbox::grpc::Code;
use crate::sandbox::scripts::Script;

/// What is done with an idempotency key: the method, the request, and the operation that came of it.
#[derive(Debug)]
pub(super) struct Once {
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) operation: String,
}

/// Everything that changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) accounts: Vec<Account>,
    pub(super) tokens: Vec<Token>,
    pub(super) token_life: Duration,
    pub(super) instances: Vec<Instance>,
    pub(super) disks: Vec<Disk>,
    pub(super) operations: Vec<Operation>,
    /// By account and key.
    pub(super) once: HashMap<(String, String), Once>,
    /// Most items on a page, where that is less than what is asked for.
    pub(super) page: Option<usize>,
    pub(super) guesses: NebiusGuesses,
    chance: Chance,
}

/// The code of a region in ids, as they have been seen.
fn region_code(region: &str) -> &'static str {
    match region {
        "eu-north1" => "e00",
        "eu-west1" => "e01",
        "us-central1" => "u00",
        "uk-south1" => "e03",
        "eu-west2" => "e04",
        "us-north1" => "u01",
        "me-west1" => "m00",
        _ => "e05",
    }
}

impl State {
    /// No accounts. The seed decides ids and boot times.
    pub(super) fn new(seed: Option<u64>, guesses: NebiusGuesses) -> State {
        State {
            accounts: Vec::new(),
            tokens: Vec::new(),
            token_life: Duration::from_secs(12 * 3600),
            instances: Vec::new(),
            disks: Vec::new(),
            operations: Vec::new(),
            once: HashMap::new(),
            page: None,
            guesses,
            chance: Chance::new(seed),
        }
    }

    /// A new id of a kind, such as `computeinstance`.
    pub(super) fn id(&mut self, kind: &str, region: &str) -> String {
        format!("{kind}-{}{:016x}", region_code(region), self.chance.next())
    }

    /// A point between two durations.
    pub(super) fn between(&mut self, range: (Duration, Duration)) -> Duration {
        self.chance.between(range)
    }

    /// An account by its label.
    pub(super) fn account(&self, label: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.label == label)
    }

    /// Where an instance stands.
    pub(super) fn stage(&self, shared: &Shared, one: &Instance) -> Stage {
        one.stage(shared.clock.now(), shared.options.slow_delete, self.guesses.starts_at_once)
    }

    /// Where in the list an instance is that this account can see by its id.
    pub(super) fn seen(&self, shared: &Shared, account: &str, id: &str) -> Option<usize> {
        let now = shared.clock.now();
        self.instances.iter().position(|one| {
            one.id == id
                && one.account == account
                && now >= one.hidden_until
                && self.stage(shared, one) != Stage::Gone
        })
    }

    /// An operation of this account, by its id.
    pub(super) fn operation(&self, account: &str, id: &str) -> Option<&Operation> {
        self.operations.iter().find(|one| one.id == id && one.account == account && !one.lost)
    }

    /// The operation that is under way on a resource.
    pub(super) fn under_way(&self, resource: &str) -> Option<&Operation> {
        self.operations.iter().find(|one| one.resource == resource && one.finished.is_none())
    }

    /// Begins an operation and returns its id.
    pub(super) fn begin(
        &mut self,
        shared: &Shared,
        account: &str,
        kind: Kind,
        resource: &str,
        region: &str,
    ) -> String {
        let id = self.id("computeoperation", region);
        let by = self.account(account).map(|owner| owner.service_account.clone()).unwrap_or_default();
        let now = shared.clock.now();
        self.operations.push(Operation {
            id: id.clone(),
            account: account.to_owned(),
            kind,
            resource: resource.to_owned(),
            by,
            created: now,
            finished: None,
            trouble: None,
            lost: false,
        });
        id
    }

    /// Ends the operations under way on a resource.
    pub(super) fn finish(
        &mut self,
        now: Duration,
        resource: &str,
        kind: Option<Kind>,
        trouble: Option<Box<Trouble>>,
    ) {
        let open =
            self.operations.iter_mut().filter(|one| one.resource == resource && one.finished.is_none());
        for one in open.filter(|one| kind.is_none_or(|kind| kind == one.kind)) {
            one.finished = Some(now);
            one.trouble.clone_from(&trouble);
        }
    }

    /// Ids and names of the disks on an instance.
    pub(super) fn disks_on(&self, instance: &str, now: Duration) -> Vec<(String, String)> {
        let here = self.disks.iter().filter(|disk| disk.attached.as_deref() == Some(instance));
        here.filter(|disk| disk.exists(now)).map(|disk| (disk.id.clone(), disk.name.clone())).collect()
    }

    /// Lets a machine go and its address with it.
    pub(super) fn power_off(&mut self, shared: &Shared, index: usize) {
        let one = &mut self.instances[index];
        if one.machine.take().is_some() {
            shared.addresses.give_back(one.address);
        }
    }

    /// Begins to delete an instance with its managed disks. The bill ends now, whatever is shown.
    pub(super) fn end(&mut self, shared: &Shared, index: usize, disk_stays: bool) {
        let now = shared.clock.now();
        self.power_off(shared, index);
        let one = &mut self.instances[index];
        one.deleted = Some(now);
        let id = one.id.clone();
        shared.ledger.ended("nebius", &id, shared.clock.date(now));
        let until = now + shared.options.slow_delete;
        for disk in self.disks.iter_mut().filter(|disk| disk.attached.as_deref() == Some(&id)) {
            if disk.managed && !disk_stays {
                disk.deleted = Some(until);
            } else {
                (disk.attached, disk.managed) = (None, false);
            }
        }
    }

    /// Lets happen what is due.
    pub(super) fn tick(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        for index in 0..self.instances.len() {
            let one = &mut self.instances[index];
            if one.deleted.is_none() && one.stopped.is_none() {
                let due = one.stops_at().filter(|at| now >= *at);
                one.stopped = due.map(|at| at + shared.options.slow_delete);
            }
            let stage = self.stage(shared, &self.instances[index]);
            let one = &self.instances[index];
            let id = one.id.clone();
            if one.sshd_due(stage, now)
                && let Some(machine) = one.machine.as_ref().filter(|machine| !machine.booted())
            {
                machine.boot();
            }
            match stage {
                Stage::Running => self.finish(now, &id, None, None),
                Stage::Failed => {
                    let why = one.fails.as_ref().map(|(_, why)| why.clone());
                    self.power_off(shared, index);
                    self.finish(now, &id, None, why.filter(|why| why.code != Code::OK));
                }
                Stage::Broken => {
                    self.power_off(shared, index);
                    self.finish(now, &id, None, Some(Trouble::internal("internal error")));
                }
                Stage::Stopping => {
                    self.power_off(shared, index);
                    self.finish(now, &id, Some(Kind::Create), None);
                }
                Stage::Stopped => self.finish(now, &id, None, None),
                Stage::Gone if self.instances[index].deleted.is_none() => self.lose(shared, index),
                Stage::Gone => self.finish(now, &id, None, None),
                Stage::Creating | Stage::Waiting | Stage::Starting | Stage::Deleting => {}
            }
        }
        for disk in &self.disks {
            if disk.deleted.is_some_and(|until| now >= until) {
                let open = self.operations.iter_mut().filter(|one| one.resource == disk.id);
                open.filter(|one| one.finished.is_none()).for_each(|one| one.finished = Some(now));
            }
        }
    }

    /// An instance that is gone without a trace, and its disk with it.
    fn lose(&mut self, shared: &Shared, index: usize) {
        if std::mem::replace(&mut self.instances[index].lost, true) {
            return;
        }
        let now = shared.clock.now();
        self.power_off(shared, index);
        let id = self.instances[index].id.clone();
        shared.ledger.ended("nebius", &id, shared.clock.date(now));
        let here = self.disks.iter_mut().filter(|disk| disk.attached.as_deref() == Some(&id));
        here.for_each(|disk| disk.deleted = Some(now));
        self.finish(now, &id, None, None);
    }

    /// Stops a running instance as if somebody else paid more. False when there is nothing to stop.
    pub(super) fn preempt(&mut self, shared: &Shared, index: usize) -> bool {
        let one = &self.instances[index];
        let up = one.spot && self.stage(shared, one) == Stage::Running;
        if up {
            self.instances[index].stopped = Some(shared.clock.now() + shared.options.slow_delete);
            self.tick(shared);
        }
        up
    }
}

impl Instance {
    /// Whether a script of its own refuses this delete.
    pub(super) fn refuses_delete(&mut self) -> bool {
        let most = match &self.script {
            Some(Script::Nebius(NebiusScript::RefusesDelete { times })) => *times,
            _ => 0,
        };
        let refuses = self.refused < most;
        self.refused += u32::from(refuses);
        refuses
    }
}
