//! What is done to the emulator from outside its API: accounts, the web console's work, host keys.

use std::path::PathBuf;

use super::pods::Phase;
use super::{RunPod, state};
use crate::sandbox::lock;

impl RunPod {
    /// Opens an account and returns its API key.
    pub(in crate::sandbox) fn add_account(&self) -> String {
        lock(&self.state).add_account()
    }

    /// Label of the account with this API key.
    pub(in crate::sandbox) fn label(&self, key: &str) -> Option<String> {
        lock(&self.state).accounts.iter().find(|account| account.key == key).map(|found| found.label.clone())
    }

    /// Label of the account with this API key or label.
    pub(super) fn find_account(&self, name: &str) -> Option<String> {
        let state = lock(&self.state);
        let found = state.accounts.iter().find(|account| account.key == name || account.label == name)?;
        Some(found.label.clone())
    }

    /// Replaces the SSH keys on file.
    pub(in crate::sandbox) fn set_ssh_keys(&self, key: &str, ssh_keys: Vec<String>) {
        if let Some(account) = lock(&self.state).accounts.iter_mut().find(|account| account.key == key) {
            account.ssh_keys = ssh_keys;
        }
    }

    /// Gives an account another API key; the old one stops working.
    pub(in crate::sandbox) fn rotate(&self, key: &str) -> Option<String> {
        let mut state = lock(&self.state);
        let fresh = state::new_key();
        let account = state.accounts.iter_mut().find(|account| account.key == key)?;
        account.key.clone_from(&fresh);
        Some(fresh)
    }

    /// Removes a pod as the web console does.
    pub(in crate::sandbox) fn remove(&self, id: &str) -> bool {
        let now = self.shared.clock.now();
        let slow = self.shared.options.slow_delete;
        let mut state = lock(&self.state);
        let found = state.pods.iter_mut().find(|pod| pod.id == id);
        match found.filter(|pod| !matches!(pod.phase(now, slow), Phase::Terminated | Phase::Gone)) {
            Some(pod) => {
                state::end(&self.shared, pod);
                true
            }
            None => false,
        }
    }

    /// Gives a pod's machine another host key.
    pub(super) fn another_host_key(&self, id: &str) -> bool {
        let state = lock(&self.state);
        let machine = state.pods.iter().find(|pod| pod.id == id).and_then(|pod| pod.machine.as_ref());
        if let Some(machine) = machine {
            machine.swap_host_key();
        }
        machine.is_some()
    }

    /// Whether any machine runs something for a client.
    pub(super) fn running_something(&self) -> bool {
        lock(&self.state).pods.iter().any(|pod| pod.machine.as_ref().is_some_and(|machine| machine.busy()))
    }

    /// Home of a pod's machine.
    pub(super) fn home_of(&self, id: &str) -> Option<PathBuf> {
        let state = lock(&self.state);
        let machine = state.pods.iter().find(|pod| pod.id == id)?.machine.as_ref()?;
        Some(machine.home().to_owned())
    }
}
