//! All accounts and pods, and what happens to them by itself.

use std::collections::HashMap;
use std::time::Duration;

use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::Ed25519Keypair;

use super::limits::{Verdict, Windows};
use super::pods::{Phase, Pod};
use crate::sandbox::Shared;
use crate::sandbox::chance::Chance;
use crate::sandbox::machine::{hex, random};
use crate::sandbox::scripts::Script;

/// One account.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) label: String,
    pub(super) key: String,
    pub(super) ssh_keys: Vec<String>,
    windows: Windows,
}

/// Everything that changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) accounts: Vec<Account>,
    /// In the order they were made; those long gone are dropped, the ledger keeps them.
    pub(super) pods: Vec<Pod>,
    /// Cursors handed out: to whom, and after which pod the next page begins.
    pub(super) cursors: HashMap<String, (String, (i128, u64))>,
    serial: u64,
    chance: Chance,
}

impl State {
    /// No accounts, no pods. The seed decides ids and boot times.
    pub(super) fn new(seed: Option<u64>) -> State {
        let chance = Chance::new(seed);
        State { accounts: Vec::new(), pods: Vec::new(), cursors: HashMap::new(), serial: 0, chance }
    }

    /// The next serial number of a pod.
    pub(super) fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// A point between two durations.
    pub(super) fn between(&mut self, range: (Duration, Duration)) -> Duration {
        self.chance.between(range)
    }

    /// Fourteen lower-case letters and digits, as pods have.
    pub(super) fn id(&mut self) -> String {
        const DIGITS: &[u8; 32] = b"0123456789abcdefghijkmnpqrstuvwx";
        let (low, high) = (self.chance.next(), self.chance.next());
        (0..14)
            .map(|i| if i < 7 { low >> (5 * i) } else { high >> (5 * (i - 7)) })
            .map(|bits| char::from(DIGITS[usize::try_from(bits & 31).unwrap_or(0)]))
            .collect()
    }

    /// Opens an account with one SSH key whose private half nobody has, and returns its API key.
    pub(super) fn add_account(&mut self) -> String {
        let key = new_key();
        let mut pair = PrivateKey::from(Ed25519Keypair::from_seed(&random::<32>()));
        pair.set_comment("me@example.com");
        let label = format!("account-{}", self.accounts.len() + 1);
        let ssh_keys = pair.public_key().to_openssh().into_iter().collect();
        self.accounts.push(Account { label, key: key.clone(), ssh_keys, windows: Windows::default() });
        key
    }

    /// An account by its label.
    pub(super) fn account(&mut self, label: &str) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.label == label)
    }

    /// Counts one call against an account's rate limits.
    pub(super) fn count_call(&mut self, label: &str, enforce: bool) -> Verdict {
        match self.account(label) {
            Some(account) => account.windows.count(enforce),
            None => Windows::default().count(false),
        }
    }

    /// A pod that this account can see by its id.
    pub(super) fn visible(&mut self, shared: &Shared, account: &str, id: &str) -> Option<(&mut Pod, Phase)> {
        let now = shared.clock.now();
        let pod = self.pods.iter_mut().find(|pod| pod.id == id && pod.account == account)?;
        let phase = pod.phase(now, shared.options.slow_delete);
        (phase != Phase::Gone && now >= pod.hidden_until).then_some((pod, phase))
    }

    /// Lets happen what is due.
    pub(super) fn tick(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        let slow = shared.options.slow_delete;
        for pod in &mut self.pods {
            if pod.sshd_due(now, slow) {
                if let Some(machine) = pod.machine.as_ref().filter(|machine| !machine.booted()) {
                    machine.boot();
                }
            } else if matches!(pod.phase(now, slow), Phase::Exited | Phase::Error | Phase::Gone) {
                pod.machine = None;
            }
            if matches!(pod.script, Some(Script::Disappears { .. })) && pod.phase(now, slow) == Phase::Gone {
                shared.ledger.ended("runpod", &pod.id, shared.clock.date(now));
            }
        }
        self.pods.retain(|pod| pod.phase(now, slow) != Phase::Gone);
    }
}

/// A fresh API key.
pub(super) fn new_key() -> String {
    format!("sandbox-{}", hex(&random::<20>()))
}

/// Ends a pod for good: the machine stops at once, and so does the bill.
pub(super) fn end(shared: &Shared, pod: &mut Pod) {
    let now = shared.clock.now();
    pod.machine = None;
    pod.deleted = Some(now);
    shared.ledger.ended("runpod", &pod.id, shared.clock.date(now));
}
