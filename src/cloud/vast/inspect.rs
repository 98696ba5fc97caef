//! One look at a machine, and what is still owed to it: our key, and a start that got lost.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Vast;
use super::addresses::has_direct;
use super::states::{self, LOOKING, failure, is_start_lost, look};
use super::wire::Instance;
use crate::cloud::{ErrorKind, Look, Result};
use crate::model::handle::Handle;
use crate::model::machine::MachineState;

/// So long a machine may stand still without a word before it is started once more.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// Looks at a machine once.
pub(super) async fn inspect(cloud: &Vast, handle: &Handle) -> Result<Look> {
    let Some(mut machine) = cloud.api.machine(&handle.id, LOOKING).await? else {
        return Ok(Look::of(MachineState::Gone));
    };
    if runs(&machine) && !has_direct(&machine) {
        // By its id a machine may not tell its ports; the list does. Without an answer there is still the proxy.
        if let Ok(Some(listed)) = cloud.api.listed(&handle.id, LOOKING).await {
            machine.ports = listed.ports.or(machine.ports);
            machine.public_ipaddr = machine.public_ipaddr.or(listed.public_ipaddr);
        }
    }
    let mut look = look(&machine, &cloud.states_frame());
    if look.state == MachineState::Gone {
        cloud.watch.end(&handle.id);
        return Ok(look);
    }
    if let Some(why) = cloud.settle_debts(handle, &machine, Instant::now()).await {
        look.failed = look.failed.or_else(|| Some(failure(&cloud.setup.account, why)));
    }
    Ok(look)
}

fn runs(machine: &Instance) -> bool {
    machine.actual_status.as_deref().is_some_and(|status| status.trim() == "running")
}

impl Vast {
    /// Returns what machines are read with.
    pub(super) fn states_frame(&self) -> states::Frame<'_> {
        states::Frame { account: &self.setup.account, loopback: self.setup.loopback }
    }

    /// Attaches a key that is still owed, and starts once more what stands still; returns why that can never work.
    async fn settle_debts(&self, handle: &Handle, machine: &Instance, now: Instant) -> Option<String> {
        if let Some(key) = self.watch.owed_key(&handle.id) {
            match self.api.attach(&handle.id, &key).await {
                Ok(()) => self.watch.paid_key(&handle.id),
                Err(error) if error.kind == ErrorKind::Rejected => return Some(error.message),
                Err(_) => {}
            }
        }
        if !self.watch.is_start_due(&handle.id, is_start_lost(machine), now) {
            return None;
        }
        match self.api.start(&handle.id).await {
            // "state change queued" is a 200 that says no: there is no GPU to be had there.
            Err(error) if error.kind == ErrorKind::NoCapacity => Some(error.message),
            _ => None,
        }
    }
}

/// What this process knows of the machines that it made.
#[derive(Debug, Default)]
pub(super) struct Watch {
    machines: Mutex<HashMap<String, Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The public key that could not be attached yet.
    key: Option<String>,
    /// Since when it stands still.
    still: Option<Instant>,
    started: bool,
}

impl Watch {
    /// Notes that a machine was made and will be waited for.
    pub(super) fn begin(&self, id: &str) {
        self.lock().insert(id.to_owned(), Seen::default());
    }

    /// Forgets a machine.
    pub(super) fn end(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Notes that the key is still to be attached.
    pub(super) fn owe_key(&self, id: &str, public_key: &str) {
        self.lock().entry(id.to_owned()).or_default().key = Some(public_key.to_owned());
    }

    fn owed_key(&self, id: &str) -> Option<String> {
        self.lock().get(id)?.key.clone()
    }

    fn paid_key(&self, id: &str) {
        if let Some(seen) = self.lock().get_mut(id) {
            seen.key = None;
        }
    }

    /// Whether a machine that this process made stands still for so long that it is to be started once more.
    fn is_start_due(&self, id: &str, is_still: bool, now: Instant) -> bool {
        let mut machines = self.lock();
        let Some(seen) = machines.get_mut(id) else { return false };
        if !is_still {
            seen.still = None;
            return false;
        }
        let since = *seen.still.get_or_insert(now);
        let due = !seen.started && now.saturating_duration_since(since) > LOST_AFTER;
        seen.started |= due;
        due
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Seen>> {
        // What a panicking thread left behind is at worst one request too many.
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_start_is_made_up_for_once_and_only_for_our_own() {
        let watch = Watch::default();
        let now = Instant::now();
        let later = now + LOST_AFTER + Duration::from_secs(1);
        assert!(!watch.is_start_due("7", true, later));
        watch.begin("7");
        assert!(!watch.is_start_due("7", true, now));
        assert!(!watch.is_start_due("7", false, now), "it moves");
        assert!(!watch.is_start_due("7", true, later));
        assert!(watch.is_start_due("7", true, later + LOST_AFTER * 2));
        assert!(!watch.is_start_due("7", true, later + LOST_AFTER * 4));
    }

    #[test]
    fn a_key_is_owed_until_it_is_paid() {
        let watch = Watch::default();
        watch.begin("7");
        assert_eq!(watch.owed_key("7"), None);
        watch.owe_key("7", "ssh-ed25519 A");
        assert_eq!(watch.owed_key("7").as_deref(), Some("ssh-ed25519 A"));
        watch.paid_key("7");
        assert_eq!(watch.owed_key("7"), None);
    }
}
