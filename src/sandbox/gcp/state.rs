//! All accounts and what they have, and what happens by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::account::{Account, Network};
use super::auth::Token;
use super::disk::{Disk, late};
use super::firewall::Rule;
use super::instance::{Going, Instance, Phase};
use super::limits::Windows;
use super::operation::Operation;
use super::trouble::{GcpFault, GcpLeaves, GcpScript};
use crate::sandbox::Shared;
use crate::sandbox::chance::Chance;
use crate::sandbox::faults::FaultKind;
use crate::sandbox::machine::{hex, random};
use crate::sandbox::scripts::Script;

/// Everything that changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) accounts: Vec<Account>,
    pub(super) tokens: Vec<Token>,
    pub(super) token_life: Duration,
    pub(super) instances: Vec<Instance>,
    pub(super) disks: Vec<Disk>,
    pub(super) rules: Vec<Rule>,
    pub(super) operations: Vec<Operation>,
    chance: Chance,
}

/// What becomes an operation.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) account: &'a str,
    pub(super) zone: Option<String>,
    pub(super) kind: &'a str,
    pub(super) target: String,
    pub(super) target_id: String,
    pub(super) request: Option<(String, String)>,
    pub(super) takes: Duration,
}

impl State {
    /// No accounts. The seed decides ids and boot times.
    pub(super) fn new(seed: Option<u64>, token_life: Duration) -> State {
        State {
            accounts: Vec::new(),
            tokens: Vec::new(),
            token_life,
            instances: Vec::new(),
            disks: Vec::new(),
            rules: Vec::new(),
            operations: Vec::new(),
            chance: Chance::new(seed),
        }
    }

    /// A new numeric id of 19 digits.
    pub(super) fn id(&mut self) -> String {
        (1_000_000_000_000_000_000 + self.chance.next() % 8_000_000_000_000_000_000).to_string()
    }

    /// A point between two durations.
    pub(super) fn between(&mut self, range: (Duration, Duration)) -> Duration {
        self.chance.between(range)
    }

    /// Opens a project with a service account and the usual network, and returns its label.
    pub(super) fn add_account(&mut self, now: Duration) -> String {
        let number = self.accounts.len() + 1;
        let label = format!("gcp-{number}");
        let project = format!("sandbox-{}", hex(&random::<4>()));
        let digits = (100_000_000_000 + self.chance.next() % 800_000_000_000).to_string();
        let network = Network { id: self.id(), name: "default".into(), auto: true, subnetworks: Vec::new() };
        self.accounts.push(Account {
            label: label.clone(),
            email: format!("gpuprov@{project}.iam.gserviceaccount.com"),
            project: project.clone(),
            number: digits,
            key_id: hex(&random::<20>()),
            client_id: (100_000_000_000_000_000 + self.chance.next() % 800_000_000_000_000_000).to_string(),
            denied: BTreeSet::new(),
            policies: BTreeSet::new(),
            networks: vec![network],
            limits: BTreeMap::new(),
            metadata: BTreeMap::new(),
            api_off: false,
            billing_off: false,
            key_deleted: false,
            windows: Windows::default(),
        });
        for rule in Rule::usual(&label, &project, now) {
            let id = self.id();
            self.rules.push(Rule { id, ..rule });
        }
        label
    }

    /// An account by its label or project.
    pub(super) fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.label == name || account.project == name)
    }

    /// The same, to be changed.
    pub(super) fn account_mut(&mut self, name: &str) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.label == name || account.project == name)
    }

    /// The project of an account.
    pub(super) fn project(&self, account: &str) -> String {
        self.account(account).map(|owner| owner.project.clone()).unwrap_or_default()
    }

    /// Where in the list an instance is that exists, by name or id, hidden or not.
    pub(super) fn instance(&self, account: &str, zone: &str, name: &str) -> Option<usize> {
        self.instances.iter().position(|one| {
            one.account == account && one.zone == zone && (one.name == name || one.id == name) && !one.gone
        })
    }

    /// Where in the list a disk is.
    pub(super) fn disk(&self, account: &str, zone: &str, name: &str) -> Option<usize> {
        let fits = |disk: &Disk| disk.account == account && disk.zone == zone;
        self.disks.iter().position(|disk| fits(disk) && (disk.name == name || disk.id == name))
    }

    /// Where in the list a firewall rule is.
    pub(super) fn rule(&self, account: &str, name: &str) -> Option<usize> {
        self.rules.iter().position(|rule| rule.account == account && (rule.name() == name || rule.id == name))
    }

    /// The disks of an instance as it shows them.
    pub(super) fn attached(&self, id: &str) -> Vec<Value> {
        let mine = self.disks.iter().filter(|disk| disk.user.as_ref().is_some_and(|(user, _)| user == id));
        mine.enumerate().map(|(index, disk)| disk.attached(index)).collect()
    }

    /// Makes an operation; faults of meaning decide about its end.
    pub(super) fn order(&mut self, shared: &Shared, order: Order<'_>, faults: &[FaultKind]) -> Operation {
        let now = shared.clock.now();
        let has = |wanted: &GcpFault| {
            faults.iter().any(|fault| matches!(fault, FaultKind::Gcp(fault) if fault == wanted))
        };
        let slow: u64 = faults
            .iter()
            .map(|fault| if let FaultKind::Gcp(GcpFault::OperationSlow { ms }) = fault { *ms } else { 0 })
            .sum();
        let (project, user) = self
            .account(order.account)
            .map(|owner| (owner.project.clone(), owner.email.clone()))
            .unwrap_or_default();
        let millis = shared.clock.date(now).as_millisecond();
        let dice = self.chance.next();
        let name = format!(
            "operation-{millis}-{:013x}-{:08x}-{:08x}",
            dice >> 12,
            dice & 0xffff_ffff,
            self.chance.next() >> 32
        );
        let operation = Operation {
            id: self.id(),
            name,
            account: order.account.to_owned(),
            project,
            user,
            zone: order.zone,
            kind: order.kind.to_owned(),
            target: order.target,
            target_id: order.target_id,
            request: order.request,
            inserted: now,
            done_at: now + order.takes + Duration::from_millis(slow),
            error: late(faults),
            warning: None,
            status_message: None,
            lost: has(&GcpFault::OperationLost),
        };
        self.operations.push(operation.clone());
        operation
    }

    /// Writes an operation that nobody asked for, such as a preemption.
    fn event(&mut self, shared: &Shared, index: usize, kind: &str, message: &str) {
        let one = &self.instances[index];
        let (account, zone, name, id) =
            (one.account.clone(), one.zone.clone(), one.name.clone(), one.id.clone());
        let order = Order {
            account: &account,
            zone: Some(zone.clone()),
            kind,
            target: format!("zones/{zone}/instances/{name}"),
            target_id: id,
            request: None,
            takes: Duration::ZERO,
        };
        self.order(shared, order, &[]);
        if let Some(last) = self.operations.last_mut() {
            last.name = last.name.replacen("operation-", "systemevent-", 1);
            last.user = "system".into();
            last.status_message = Some(message.to_owned());
        }
    }

    /// Takes the capacity of a spot instance away. It goes, and its disk as that says, or it stops if it was told to.
    pub(super) fn preempt(&mut self, shared: &Shared, index: usize) {
        self.event(shared, index, "compute.instances.preempted", "Instance was preempted.");
        self.leave(shared, index);
    }

    /// Ends an instance as its `instanceTerminationAction` says.
    fn leave(&mut self, shared: &Shared, index: usize) {
        let now = shared.clock.now();
        let slow = shared.options.gcp_guesses.preempted_stops;
        let one = &mut self.instances[index];
        one.machine.take().inspect(|_| shared.addresses.give_back(one.address));
        one.expires = None;
        if one.scheduling.get("instanceTerminationAction").is_some_and(|action| action == "DELETE") {
            one.going = Some(Going {
                until: if slow { now + shared.options.slow_delete } else { now },
                disks_stay: false,
            });
            self.settle(shared, index);
        } else {
            one.stopped = true;
        }
    }

    /// Ends an instance that is due to end.
    fn settle(&mut self, shared: &Shared, index: usize) {
        let now = shared.clock.now();
        let going = self.instances[index].going.clone();
        if let Some(going) = going.filter(|going| now >= going.until) {
            self.end(shared, index, going.disks_stay);
        }
    }

    /// An instance is gone from now on, and its disks with it unless they stay.
    pub(super) fn end(&mut self, shared: &Shared, index: usize, disks_stay: bool) {
        let one = &mut self.instances[index];
        one.machine.take().inspect(|_| shared.addresses.give_back(one.address));
        one.gone = true;
        let id = one.id.clone();
        let now = shared.clock.now();
        shared.ledger.ended("gcp", &id, shared.clock.date(now));
        // Nothing is left for an insert to do that takes longer.
        let inserts = self.operations.iter_mut().filter(|one| one.target_id == id && one.kind == "insert");
        inserts.for_each(|one| one.done_at = one.done_at.min(now));
        let mine = |disk: &Disk| disk.user.as_ref().is_some_and(|(user, _)| *user == id);
        self.disks.retain(|disk| !mine(disk) || disks_stay || !disk.auto_delete);
        self.disks.iter_mut().filter(|disk| mine(disk)).for_each(|disk| disk.user = None);
    }

    /// Lets happen what is due.
    pub(super) fn tick(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        for index in 0..self.instances.len() {
            if self.instances[index].gone {
                continue;
            }
            self.settle(shared, index);
            let one = &mut self.instances[index];
            if one.gone || one.going.is_some() {
                continue;
            }
            if now >= one.settled_at
                && let Some(doom) = one.doom.take()
            {
                match doom.leaves {
                    GcpLeaves::Instance => {}
                    GcpLeaves::Nothing => self.end(shared, index, false),
                    GcpLeaves::Disk => self.end(shared, index, true),
                }
                continue;
            }
            let age = now.saturating_sub(one.born);
            let reached = |ms: u64| age >= Duration::from_millis(ms);
            match one.script {
                Some(Script::Disappears { ms }) if reached(ms) => {
                    self.end(shared, index, false);
                    continue;
                }
                Some(Script::Gcp(GcpScript::Preempted { ms })) if reached(ms) && one.spot && !one.stopped => {
                    self.preempt(shared, index);
                    continue;
                }
                _ => {}
            }
            if one.expires.is_some_and(|at| now >= at) {
                self.event(
                    shared,
                    index,
                    "compute.instances.deprovisionedBySystem",
                    "Instance reached its maximum run duration.",
                );
                self.leave(shared, index);
                continue;
            }
            if one.sshd_due(now) {
                if let Some(machine) = one.machine.as_ref().filter(|machine| !machine.booted()) {
                    machine.boot();
                }
            } else if matches!(one.phase(now), Phase::Terminated | Phase::Ended) {
                one.machine.take().inspect(|_| shared.addresses.give_back(one.address));
            }
        }
        self.rules.retain(|rule| rule.ends_at.is_none_or(|at| now < at));
    }

    /// What an account uses of a metric; `region` is empty for the whole project.
    pub(super) fn used(&self, account: &str, region: &str, of: impl Fn(&Instance) -> f64) -> f64 {
        let here = |one: &&Instance| {
            one.account == account
                && !one.gone
                && (region.is_empty() || super::names::region_of(&one.zone) == region)
        };
        self.instances.iter().filter(here).map(of).sum()
    }
}

/// What is left to be said when a disk could not go with its machine.
pub(super) fn not_deleted(disk: &str) -> Value {
    json!({"code": "RESOURCE_NOT_DELETED", "message": format!("The resource '{disk}' is still in use and was not deleted."),
           "data": [{"key": "resource_name", "value": disk}]})
}
