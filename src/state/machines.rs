//! The registry: one file per machine, which names are taken, and who may write.
//!
//! Reading needs no lock, because records are replaced whole. It also works where nothing can be written, and where there is
//! nothing yet.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::directory::{check_owner, private_dir};
use super::error::{LockError, StateError};
use super::lock::{self, NameLock};
use super::record::{RECORD_VERSION, Record};
use super::regular;
use crate::model::machine::MachineName;
use crate::model::words::one_line;

/// No record is that long, in bytes; longer files are not read.
const LIMIT: u64 = 4 << 20;

/// How often a lock is tried again by one who waits for it.
const RETRY: Duration = Duration::from_millis(100);

/// What a record's file holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A record.
    Record(Box<Record>),
    /// Something that this version must not touch.
    Unreadable(Unreadable),
}

/// A record that is listed as `unknown`, keeps its name taken, and is never rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The machine's name.
    pub name: MachineName,
    /// The file.
    pub path: PathBuf,
    /// Why it cannot be read, for people.
    pub why: String,
    /// Whether a later version wrote it.
    pub newer: bool,
}

impl Unreadable {
    /// Returns the error of a command that would have to read or write it.
    pub fn into_error(self) -> StateError {
        if self.newer {
            StateError::Newer(self.name)
        } else {
            StateError::Unreadable { name: self.name, path: self.path, why: self.why }
        }
    }
}

impl Entry {
    /// Returns the machine's name.
    pub fn name(&self) -> &MachineName {
        match self {
            Entry::Record(record) => &record.name,
            Entry::Unreadable(unreadable) => &unreadable.name,
        }
    }

    /// Returns the record; an error that says why if it cannot be read.
    pub fn into_record(self) -> Result<Record, StateError> {
        match self {
            Entry::Record(record) => Ok(*record),
            Entry::Unreadable(unreadable) => Err(unreadable.into_error()),
        }
    }
}

/// The records of machines in a state directory.
#[derive(Clone, Debug)]
pub struct Registry {
    state: PathBuf,
    machines: PathBuf,
}

impl Registry {
    /// Opens the registry of a state directory, which may be missing or read-only. One of somebody else's is refused.
    pub fn open(state: &Path) -> Result<Self, StateError> {
        check_owner(state)?;
        Ok(Registry { state: state.to_owned(), machines: state.join("machines") })
    }

    /// Returns the state directory.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Makes sure that a record can be written and survives a crash: makes the directories, writes a file, syncs it and
    /// removes it.
    pub fn check_writable(&self) -> Result<(), StateError> {
        self.prepare()?;
        let probe = || -> io::Result<()> {
            let mut file = tempfile::Builder::new().prefix(".probe-").tempfile_in(&self.machines)?;
            file.write_all(b"probe\n")?;
            file.as_file().sync_all()?;
            file.close()?;
            super::atomic::sync_dir(&self.machines)
        };
        probe().map_err(StateError::io("write to", &self.machines))
    }

    /// Returns all records, sorted by name.
    pub fn list(&self) -> Result<Vec<Entry>, StateError> {
        let names = self.names_taken()?;
        let entries = names.iter().map(|name| self.read(name));
        entries.filter_map(Result::transpose).collect()
    }

    /// Returns the names that have a record, readable or not. No record is read.
    pub fn names_taken(&self) -> Result<BTreeSet<MachineName>, StateError> {
        let entries = match fs::read_dir(&self.machines) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(StateError::io("read", &self.machines)(error)),
        };
        let mut names = BTreeSet::new();
        for entry in entries {
            let file = entry.map_err(StateError::io("read", &self.machines))?.file_name();
            let stem = file.to_str().and_then(|file| file.strip_suffix(".json"));
            names.extend(stem.and_then(|stem| stem.parse::<MachineName>().ok()));
        }
        Ok(names)
    }

    /// Returns the record of this name; none if there is none.
    pub fn read(&self, name: &MachineName) -> Result<Option<Entry>, StateError> {
        read_entry(&self.machines, name)
    }

    /// Takes the lock on a name, which needs no record. It does not wait: whoever holds the lock may do so for long.
    pub fn lock(&self, name: &MachineName) -> Result<NameLock, LockError> {
        self.prepare()?;
        lock::take(&self.machines, name)
    }

    /// Takes the lock on a name, waiting up to `within` for it. With `ask` the holder finds a note that asks it to stop
    /// ([`NameLock::is_wanted`]), put again whenever a new holder took it away. Dropping the future gives up waiting; a note
    /// that is left then asks only the present holder.
    pub async fn lock_within(
        &self,
        name: &MachineName,
        within: Duration,
        ask: bool,
    ) -> Result<NameLock, LockError> {
        let end = Instant::now() + within;
        loop {
            match self.lock(name) {
                Err(LockError::Held(_)) if Instant::now() < end => {}
                result => return result,
            }
            if ask {
                self.ask(name).map_err(StateError::io("ask in", &self.machines))?;
            }
            tokio::time::sleep_until(end.min(Instant::now() + RETRY)).await;
        }
    }

    /// Whether a command works on the machine of this name right now.
    pub fn is_held(&self, name: &MachineName) -> bool {
        lock::is_held(&self.machines, name)
    }

    /// Puts a note that asks the command that works on this machine to stop.
    pub fn ask(&self, name: &MachineName) -> io::Result<()> {
        lock::put_wanted(&self.machines, name)
    }

    fn prepare(&self) -> Result<(), StateError> {
        private_dir(&self.state)?;
        Ok(private_dir(&self.machines)?)
    }
}

/// Reads one record; none if there is none.
pub(super) fn read_entry(machines: &Path, name: &MachineName) -> Result<Option<Entry>, StateError> {
    Ok(read_raw(machines, name)?.map(|(entry, _)| entry))
}

/// Reads one record and the value that its file holds, which may have more in it; none if there is none.
pub(super) fn read_raw(machines: &Path, name: &MachineName) -> Result<Option<(Entry, Value)>, StateError> {
    let path = lock::record_path(machines, name);
    let mut bytes = Vec::new();
    let read = regular::open(&path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes));
    let unreadable = |newer: bool, why: String| {
        (Entry::Unreadable(Unreadable { name: name.clone(), path: path.clone(), why, newer }), Value::Null)
    };
    Ok(Some(match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // One record that cannot be opened must not hide the others.
        Err(error) => unreadable(false, error.to_string()),
        Ok(_) => match decode(&bytes, name) {
            Ok((record, value)) => (Entry::Record(Box::new(record)), value),
            Err((newer, why)) => unreadable(newer, why),
        },
    }))
}

fn decode(bytes: &[u8], name: &MachineName) -> Result<(Record, Value), (bool, String)> {
    if bytes.len() as u64 > LIMIT {
        return Err((false, "it is too long for a record".to_owned()));
    }
    let bad = |error: serde_json::Error| (false, one_line(&error.to_string(), 200));
    let value: Value = serde_json::from_slice(bytes).map_err(bad)?;
    match value.get("version").and_then(Value::as_u64) {
        None | Some(0) => return Err((false, "it says no version".to_owned())),
        Some(version) if version > u64::from(RECORD_VERSION) => {
            return Err((true, "it was written by a newer gpuprov".to_owned()));
        }
        Some(_) => {}
    }
    let record = Record::deserialize(&value).map_err(bad)?;
    if record.name != *name {
        return Err((false, format!("it is the record of another machine, `{}`", record.name)));
    }
    Ok((record, value))
}
