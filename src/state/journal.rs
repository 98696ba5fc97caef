//! The record of the machine in work, kept by the command that holds its lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::error::StateError;
use super::lock::NameLock;
use super::record::Record;
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::model::machine::MachineName;
use crate::model::mark::Claim;

/// A machine in work: the lock on its name and its record, on disk and in memory.
#[derive(Debug)]
pub struct Open {
    lock: NameLock,
    record: Mutex<Record>,
}

impl Open {
    /// Begins with a new record, written and synced. A record that is there already is not overwritten.
    pub fn start(lock: NameLock, record: Record) -> Result<Self, StateError> {
        if let Some(entry) = lock.read()? {
            entry.into_record()?;
            return Err(StateError::Taken(lock.name().clone()));
        }
        lock.write(&record)?;
        Ok(Open { lock, record: Mutex::new(record) })
    }

    /// Goes on with the record that is there.
    pub fn resume(lock: NameLock) -> Result<Self, StateError> {
        let entry = lock.read()?.ok_or_else(|| StateError::NoRecord(lock.name().clone()))?;
        let record = entry.into_record()?;
        Ok(Open { lock, record: Mutex::new(record) })
    }

    /// Returns the machine's name.
    pub fn name(&self) -> &MachineName {
        self.lock.name()
    }

    /// Returns the record as it is now.
    pub fn record(&self) -> Record {
        self.guard().clone()
    }

    /// Changes the record and writes it, synced. When the write fails the change stays in memory, because it tells what
    /// happened: what was made must be known to those who remove it again.
    pub fn update(&self, change: impl FnOnce(&mut Record)) -> Result<(), StateError> {
        let mut record = self.guard();
        change(&mut record);
        self.lock.write(&record)
    }

    /// Notes what a cloud made for the attempt with this claim, synced. The machine becomes the attempt's handle; anything
    /// else goes to its side resources, once.
    pub fn made(&self, claim: Claim, resource: &Resource) -> Result<(), StateError> {
        self.update(|record| {
            let machine_at = record.machine_at.or_else(|| Some(Timestamp::now()));
            let Some(attempt) = record.attempt_mut(claim) else { return };
            if resource.kind == ResourceKind::Machine {
                let side = attempt.handle.take().map(|handle| handle.side).unwrap_or_default();
                attempt.handle = Some(Handle { id: resource.id.clone(), data: resource.data.clone(), side });
                // Whatever becomes of it: from now on it may cost.
                record.machine_at = machine_at;
            } else if !attempt.side.contains(resource) {
                attempt.side.push(resource.clone());
            }
        })
    }

    /// Whether another command asks to stop.
    pub fn is_wanted(&self) -> bool {
        self.lock.is_wanted()
    }

    /// Drops the record: the machine is proven to be gone. The lock goes too.
    pub fn close(self) -> Result<(), StateError> {
        self.lock.remove()
    }

    fn guard(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
