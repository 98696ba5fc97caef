//! All accounts and instances, who holds which GPUs, and what happens by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::Ed25519Keypair;

use super::catalog::{Ask, Host};
use super::instance::{Instance, Phase};
use super::limits::Pace;
use crate::sandbox::Shared;
use crate::sandbox::chance::Chance;
use crate::sandbox::machine::{hex, random};

/// One account.
#[derive(Debug)]
pub(super) struct Account {
    /// Label in records and in the ledger.
    pub(super) label: String,
    pub(super) number: u64,
    pub(super) key: String,
    /// Public keys that every new instance gets.
    pub(super) ssh_keys: Vec<String>,
    /// US dollars that can be spent.
    pub(super) credit: f64,
}

/// Everything that changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) accounts: Vec<Account>,
    /// In the order they were made; those long gone are dropped, the ledger keeps them.
    pub(super) instances: Vec<Instance>,
    /// Asks that somebody outside the sandbox took.
    pub(super) sold: BTreeSet<u64>,
    pub(super) pace: Pace,
    /// Logs that were asked for: path, text, and when it is there.
    pub(super) logs: BTreeMap<String, (Duration, String)>,
    /// How long a destroyed instance is shown.
    pub(super) slow: Duration,
    chance: Chance,
    last_id: u64,
}

impl State {
    /// No accounts, no instances. The seed decides ids and boot times.
    pub(super) fn new(seed: Option<u64>, slow: Duration) -> State {
        State {
            accounts: Vec::new(),
            instances: Vec::new(),
            sold: BTreeSet::new(),
            pace: Pace::default(),
            logs: BTreeMap::new(),
            slow,
            chance: Chance::new(seed),
            last_id: 45_390_000,
        }
    }

    /// The id of the next instance, or of a key.
    pub(super) fn id(&mut self) -> u64 {
        self.last_id += 1 + self.chance.next() % 900;
        self.last_id
    }

    /// A point between two durations.
    pub(super) fn between(&mut self, range: (Duration, Duration)) -> Duration {
        self.chance.between(range)
    }

    /// Opens an account with one SSH key whose private half nobody has, and returns its API key.
    pub(super) fn add_account(&mut self) -> String {
        let key = new_key();
        let mut pair = PrivateKey::from(Ed25519Keypair::from_seed(&random::<32>()));
        pair.set_comment("me@example.com");
        let count = self.accounts.len() + 1;
        self.accounts.push(Account {
            label: format!("vast-{count}"),
            number: 123_455 + u64::try_from(count).unwrap_or(0),
            key: key.clone(),
            ssh_keys: pair.public_key().to_openssh().into_iter().collect(),
            credit: 25.0,
        });
        key
    }

    /// An account by its label.
    pub(super) fn account(&mut self, label: &str) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.label == label)
    }

    /// An instance that this account can see by its id.
    pub(super) fn visible(
        &mut self,
        shared: &Shared,
        account: &str,
        id: u64,
    ) -> Option<(&mut Instance, Phase)> {
        let now = shared.clock.now();
        let slow = self.slow;
        let instance = self.instances.iter_mut().find(|one| one.id == id && one.account == account)?;
        let phase = instance.phase(now, slow);
        (phase != Phase::Gone && now >= instance.hidden_until).then_some((instance, phase))
    }

    /// Whether an ask can be had now. An on-demand renter pushes bids aside, a bid pushes nobody.
    pub(super) fn rentable(&self, host: &Host, ask: &Ask, bid: bool) -> bool {
        let rivals = self.instances.iter().filter(|one| one.holds_gpus() && (bid || !one.is_bid));
        let (mut taken, mut same) = (0, self.sold.contains(&ask.id));
        for one in rivals.filter(|one| one.machine_id == host.machine_id) {
            taken += one.count;
            same |= one.ask_id == ask.id;
        }
        !same && taken + ask.gpus <= host.gpus
    }

    /// Stops as many bids on a machine as an on-demand renter of so many GPUs needs, the lowest first.
    pub(super) fn push_bids_aside(&mut self, host: &Host, wanted: u32) {
        let on_host = |one: &&mut Instance| one.holds_gpus() && one.machine_id == host.machine_id;
        let mut here: Vec<&mut Instance> = self.instances.iter_mut().filter(on_host).collect();
        let mut taken: u32 = here.iter().map(|one| one.count).sum();
        here.sort_by(|left, right| left.dph_base.total_cmp(&right.dph_base));
        for one in here.into_iter().filter(|one| one.is_bid) {
            if taken + wanted <= host.gpus {
                return;
            }
            taken -= one.count;
            one.outbid();
        }
    }

    /// Lets happen what is due.
    pub(super) fn tick(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        let slow = self.slow;
        for one in &mut self.instances {
            if one.outbid_due(now) {
                one.outbid();
            }
            match one.phase(now, slow) {
                Phase::Up if one.sshd_due(now) => {
                    if let Some(machine) = one.machine.as_ref().filter(|machine| !machine.booted()) {
                        machine.boot();
                    }
                }
                Phase::Stopped | Phase::Failed | Phase::Unloaded | Phase::Gone => one.machine = None,
                _ => {}
            }
            if one.deleted.is_none() && one.phase(now, slow) == Phase::Gone {
                shared.ledger.ended("vast", &one.id.to_string(), shared.clock.date(now));
            }
        }
        self.instances.retain(|one| one.phase(now, slow) != Phase::Gone);
    }
}

/// A fresh API key.
pub(super) fn new_key() -> String {
    format!("sandbox-{}", hex(&random::<24>()))
}

/// Ends an instance for good: the machine stops at once, and so does the bill.
pub(super) fn end(shared: &Shared, instance: &mut Instance) {
    let now = shared.clock.now();
    instance.machine = None;
    instance.deleted = Some(now);
    shared.ledger.ended("vast", &instance.id.to_string(), shared.clock.date(now));
}
