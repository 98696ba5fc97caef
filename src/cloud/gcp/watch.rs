//! What this process has learnt of machines.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a machine that runs is asked for its host keys; the guest agent publishes them at the first boot or never.
const KEYS_FOR: Duration = Duration::from_secs(180);

/// What this process has learnt of machines.
#[derive(Debug, Default)]
pub(super) struct Watch {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Operations of creates that have ended well, or that Google does not know any more.
    settled: HashSet<String>,
    /// Deletes on their way: the operation by the machine's number.
    deletes: HashMap<String, String>,
    /// Machines of which everything was deleted at our word: no reason is looked for.
    ended: HashSet<String>,
    machines: HashMap<String, Machine>,
}

#[derive(Debug, Default)]
struct Machine {
    running_since: Option<Instant>,
    host_keys: Vec<String>,
    keyless: bool,
    /// What was found out about the firewall, once that was looked at.
    firewall: Option<Option<String>>,
}

impl Watch {
    pub(super) fn settle(&self, operation: &str) {
        self.lock().settled.insert(operation.to_owned());
    }

    pub(super) fn is_settled(&self, operation: &str) -> bool {
        self.lock().settled.contains(operation)
    }

    pub(super) fn deleting(&self, id: &str, operation: Option<&str>) {
        let mut state = self.lock();
        match operation {
            Some(operation) => state.deletes.insert(id.to_owned(), operation.to_owned()),
            None => state.deletes.remove(id),
        };
    }

    pub(super) fn delete_of(&self, id: &str) -> Option<String> {
        self.lock().deletes.get(id).cloned()
    }

    /// Notes that everything of a machine is deleted.
    pub(super) fn end(&self, id: &str) {
        let mut state = self.lock();
        state.ended.insert(id.to_owned());
        state.machines.remove(id);
        state.deletes.remove(id);
    }

    pub(super) fn has_ended(&self, id: &str) -> bool {
        self.lock().ended.contains(id)
    }

    /// Notes that a machine runs; returns for how long it is known to.
    pub(super) fn runs(&self, id: &str) -> Duration {
        let mut state = self.lock();
        let machine = state.machines.entry(id.to_owned()).or_default();
        machine.running_since.get_or_insert_with(Instant::now).elapsed()
    }

    /// Returns the host keys that a machine published, and whether it is to be asked for them.
    pub(super) fn host_keys(&self, id: &str) -> (Vec<String>, bool) {
        let state = self.lock();
        let Some(machine) = state.machines.get(id) else { return (Vec::new(), true) };
        let late = machine.running_since.is_some_and(|since| since.elapsed() > KEYS_FOR);
        (machine.host_keys.clone(), machine.host_keys.is_empty() && !machine.keyless && !late)
    }

    /// Notes the host keys; none if the machine will never tell any.
    pub(super) fn learn_keys(&self, id: &str, keys: Option<Vec<String>>) {
        let mut state = self.lock();
        let machine = state.machines.entry(id.to_owned()).or_default();
        match keys {
            Some(keys) => machine.host_keys = keys,
            None => machine.keyless = true,
        }
    }

    /// Returns what was found out about the firewall; none if it was not looked at.
    pub(super) fn firewall(&self, id: &str) -> Option<Option<String>> {
        self.lock().machines.get(id).and_then(|machine| machine.firewall.clone())
    }

    pub(super) fn learn_firewall(&self, id: &str, words: Option<String>) {
        self.lock().machines.entry(id.to_owned()).or_default().firewall = Some(words);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left behind is at worst one question too many.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
