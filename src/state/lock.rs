//! Who works on a machine: the lock on its name.
//!
//! The lock is the kernel's, on `NAME.lock`, taken with `std::fs::File::try_lock`; it goes when the process dies, and no
//! process id is ever trusted. Lock files are never renamed and never deleted: deleting one lets two processes hold "the"
//! lock on two files of one name, and the check of the inode that would prevent it is not to be trusted on network file
//! systems. What stays behind is one empty file for each name ever used.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::atomic;
use super::error::{LockError, StateError};
use super::later;
use super::machines::{Entry, read_entry, read_raw};
use super::record::{RECORD_VERSION, Record};
use super::regular;
use crate::model::machine::MachineName;

/// How long a look at a lock ([`is_held`]) may stand in the way of one who wants to hold it.
const LOOKS: u32 = 200;

/// How often a lock must be found held, a fifth of a millisecond apart, before that is believed: a child that was forked and has not
/// yet become another program holds for a moment what its parent has just let go.
const FORKS: u32 = 50;

/// The lock on a machine's name. Whoever has it is the only writer of the record.
#[derive(Debug)]
pub struct NameLock {
    name: MachineName,
    machines: PathBuf,
    // Held as long as the file is open.
    _file: File,
}

pub(super) fn record_path(machines: &Path, name: &MachineName) -> PathBuf {
    machines.join(format!("{name}.json"))
}

fn lock_path(machines: &Path, name: &MachineName) -> PathBuf {
    machines.join(format!("{name}.lock"))
}

pub(super) fn wanted_path(machines: &Path, name: &MachineName) -> PathBuf {
    machines.join(format!("{name}.wanted"))
}

/// Takes the lock at once or not at all. `machines` exists.
pub(super) fn take(machines: &Path, name: &MachineName) -> Result<NameLock, LockError> {
    let path = lock_path(machines, name);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(StateError::io("open", &path))?;
    let mut held = 0;
    for _ in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => {
                let lock = NameLock { name: name.clone(), machines: machines.to_owned(), _file: file };
                // Nobody else writes now: what killed writers left is nobody's, and a note was for the holder before us.
                atomic::sweep(&record_path(machines, name));
                lock.clear_wanted();
                return Ok(lock);
            }
            Err(TryLockError::Error(error)) => return Err(StateError::io("lock", &path)(error).into()),
            Err(TryLockError::WouldBlock) => {}
        }
        // A look takes the lock shared for a moment. If it can be shared, nobody works on the machine.
        match file.try_lock_shared() {
            Ok(()) => file.unlock().map_err(StateError::io("unlock", &path))?,
            Err(TryLockError::WouldBlock) if held == FORKS => return Err(LockError::Held(name.clone())),
            Err(TryLockError::WouldBlock) => held += 1,
            Err(TryLockError::Error(error)) => return Err(StateError::io("lock", &path)(error).into()),
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Err(LockError::Held(name.clone()))
}

/// Whether somebody works on the machine right now.
pub(super) fn is_held(machines: &Path, name: &MachineName) -> bool {
    let Ok(file) = regular::open(&lock_path(machines, name)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Puts the note that asks the holder to stop.
pub(super) fn put_wanted(machines: &Path, name: &MachineName) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(wanted_path(machines, name))
        .map(drop)
}

impl NameLock {
    /// Returns the name.
    pub fn name(&self) -> &MachineName {
        &self.name
    }

    /// Reads the record; none if there is none.
    pub fn read(&self) -> Result<Option<Entry>, StateError> {
        read_entry(&self.machines, &self.name)
    }

    /// Writes the record, synced. A record of a later version, or one that cannot be read, is not overwritten. Fields that a
    /// later version put into the file, at any depth, stay.
    pub fn write(&self, record: &Record) -> Result<(), StateError> {
        let path = record_path(&self.machines, &self.name);
        if record.name != self.name {
            let why = format!("is not the place for a record of `{}`", record.name);
            return Err(StateError::Malformed { path, why });
        }
        if record.version > RECORD_VERSION {
            return Err(StateError::Newer(self.name.clone()));
        }
        let encode = |record: &Record| {
            serde_json::to_value(record).map_err(|error| StateError::io("write", &path)(error.into()))
        };
        let mut value = encode(record)?;
        match read_raw(&self.machines, &self.name)? {
            Some((Entry::Unreadable(old), _)) => return Err(old.into_error()),
            Some((Entry::Record(old), raw)) => later::keep(&raw, &encode(&old)?, &mut value),
            None => {}
        }
        let mut bytes = serde_json::to_vec_pretty(&value)
            .map_err(|error| StateError::io("write", &path)(error.into()))?;
        bytes.push(b'\n');
        atomic::write(&path, &bytes, 0o600).map_err(StateError::io("write", &path))
    }

    /// Drops the record and the note, synced. The lock is still held. A record of a later version, or one that cannot be
    /// read, is not dropped.
    pub fn remove(&self) -> Result<(), StateError> {
        if let Some(Entry::Unreadable(old)) = self.read()? {
            return Err(old.into_error());
        }
        self.forget()
    }

    /// Drops the record, also one that cannot be read: only for `rm --forget`, after its owner was told what it may cost.
    pub fn forget(&self) -> Result<(), StateError> {
        let path = record_path(&self.machines, &self.name);
        if fs::symlink_metadata(&path).is_ok_and(|there| there.is_dir()) {
            fs::remove_dir(&path).map_err(|error| StateError::Malformed {
                path: path.clone(),
                why: format!(
                    "is a folder and cannot be removed ({error}): look at what is in it, and move it away"
                ),
            })?;
        }
        atomic::remove(&path).map_err(StateError::io("remove", &path))?;
        self.clear_wanted();
        Ok(())
    }

    /// Whether another command asks to stop.
    pub fn is_wanted(&self) -> bool {
        fs::symlink_metadata(wanted_path(&self.machines, &self.name)).is_ok_and(|note| note.is_file())
    }

    /// Takes the note away.
    pub fn clear_wanted(&self) {
        let _ = fs::remove_file(wanted_path(&self.machines, &self.name));
    }
}
