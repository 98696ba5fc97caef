//! What this process has learnt of machines.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::states::{Course, is_up};
use super::wire::Instance;

/// What is known of each machine, by id.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<HashMap<String, Known>>);

#[derive(Debug, Default)]
struct Known {
    /// When it was first seen running.
    up: Option<Instant>,
    /// Whether its create ended well.
    is_made: bool,
    /// The disks that go with it.
    disks: BTreeSet<String>,
    /// The operation that deletes it.
    deleting: Option<String>,
}

impl Watch {
    /// Notes what a look tells.
    pub(super) fn learn(&self, id: &str, instance: &Instance, course: &Course) {
        let mut all = self.lock();
        let known = all.entry(id.to_owned()).or_default();
        if is_up(instance) {
            known.up.get_or_insert_with(Instant::now);
        }
        known.is_made |= *course == Course::Done;
        let attached = instance.status.iter().flat_map(|status| &status.disk_attachments);
        known.disks.extend(attached.filter(|disk| disk.is_managed).map(|disk| disk.id.clone()));
    }

    /// Whether it was seen running.
    pub(super) fn was_up(&self, id: &str) -> bool {
        self.lock().get(id).is_some_and(|known| known.up.is_some())
    }

    /// For how long it has been running, as far as was seen.
    pub(super) fn up_for(&self, id: &str) -> Option<Duration> {
        self.lock().get(id)?.up.map(|since| since.elapsed())
    }

    /// Whether its create is known to have ended well: it need not be asked for again.
    pub(super) fn is_made(&self, id: &str) -> bool {
        self.lock().get(id).is_some_and(|known| known.is_made)
    }

    /// Notes that its create ended well.
    pub(super) fn settle(&self, id: &str) {
        self.lock().entry(id.to_owned()).or_default().is_made = true;
    }

    /// Returns the disks that it was seen with and that go with it.
    pub(super) fn disks(&self, id: &str) -> BTreeSet<String> {
        self.lock().get(id).map(|known| known.disks.clone()).unwrap_or_default()
    }

    /// Returns the operation that deletes it.
    pub(super) fn deleting(&self, id: &str) -> Option<String> {
        self.lock().get(id)?.deleting.clone()
    }

    /// Notes the operation that deletes it, or that there is none any more.
    pub(super) fn delete(&self, id: &str, operation: Option<String>) {
        self.lock().entry(id.to_owned()).or_default().deleting = operation.filter(|id| !id.is_empty());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        // What a panicking thread left behind is at worst one question too many.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
