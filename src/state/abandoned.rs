//! Claims that were given up without an answer: the machine's name is free again, but for a day every command that asks the
//! account looks whether a machine turned up after all.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::atomic;
use super::directory::{check_owner, private_dir};
use super::error::StateError;
use super::record::RecordedIdentity;
use crate::model::account::AccountId;
use crate::model::machine::MachineName;
use crate::model::mark::{Claim, Installation};
use crate::model::offer::Offer;

/// The version written today.
pub const ABANDONED_VERSION: u32 = 1;

/// For how long a claim is looked for, in hours.
pub const HOURS: i64 = 24;

/// A claim whose create got no answer and whose machine was not found. A stored format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Abandoned {
    /// [`ABANDONED_VERSION`].
    pub version: u32,
    /// The claim on the machine.
    pub claim: Claim,
    /// The name that the machine would have.
    pub name: MachineName,
    /// Whose it would be.
    pub installation: Installation,
    /// The account that would pay.
    pub account: AccountId,
    /// Who its credentials were.
    pub identity: RecordedIdentity,
    /// What was to be bought; the price of its machine, should one turn up.
    pub offer: Offer,
    /// When the create was sent.
    pub since: Timestamp,
    /// Until when it is looked for.
    pub until: Timestamp,
    /// Fields of a later version.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

/// The claims that are looked for, in a state directory.
#[derive(Clone, Debug)]
pub struct Watch {
    state: PathBuf,
    folder: PathBuf,
}

impl Watch {
    /// Opens the watch of a state directory, which may be missing or read-only.
    pub fn open(state: &Path) -> Result<Self, StateError> {
        check_owner(state)?;
        Ok(Watch { state: state.to_owned(), folder: state.join("abandoned") })
    }

    /// Adds a claim, synced. It must stand here before its attempt leaves the record.
    pub fn add(&self, abandoned: &Abandoned) -> Result<(), StateError> {
        private_dir(&self.state)?;
        private_dir(&self.folder)?;
        let path = self.path(abandoned.claim);
        let mut bytes = serde_json::to_vec_pretty(abandoned)
            .map_err(|error| StateError::io("write", &path)(io::Error::other(error)))?;
        bytes.push(b'\n');
        atomic::write(&path, &bytes, 0o600).map_err(StateError::io("write", &path))
    }

    /// Returns the claims to look for, the oldest first. Those whose time is over are dropped; files that cannot be read,
    /// also of a later version, stay and are passed over.
    pub fn list(&self, now: Timestamp) -> Result<Vec<Abandoned>, StateError> {
        let (claims, over) = self.read_all(now)?;
        for path in over {
            // It may be read-only here; then the next command drops it.
            let _ = fs::remove_file(path);
        }
        Ok(claims)
    }

    /// Returns the same and drops nothing.
    pub fn peek(&self, now: Timestamp) -> Result<Vec<Abandoned>, StateError> {
        self.read_all(now).map(|(claims, _)| claims)
    }

    /// Reads the claims, and the files of those whose time is over.
    fn read_all(&self, now: Timestamp) -> Result<(Vec<Abandoned>, Vec<PathBuf>), StateError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
            Err(error) => return Err(StateError::io("read", &self.folder)(error)),
        };
        let (mut claims, mut over) = (Vec::new(), Vec::new());
        for entry in entries {
            let path = entry.map_err(StateError::io("read", &self.folder))?.path();
            let Some(abandoned) = read(&path) else { continue };
            if abandoned.until > now { claims.push(abandoned) } else { over.push(path) }
        }
        claims.sort_by_key(|abandoned| (abandoned.since, abandoned.claim));
        Ok((claims, over))
    }

    /// Drops a claim: its machine was found and is gone, or has a record again. That there is none is no error.
    pub fn remove(&self, claim: Claim) -> Result<(), StateError> {
        let path = self.path(claim);
        atomic::remove(&path).map_err(StateError::io("remove", &path))
    }

    fn path(&self, claim: Claim) -> PathBuf {
        self.folder.join(format!("{claim}.json"))
    }
}

fn read(path: &Path) -> Option<Abandoned> {
    let claim: Claim = path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()?;
    let abandoned: Abandoned = serde_json::from_str(&super::regular::read_text(path).ok()?).ok()?;
    (abandoned.version <= ABANDONED_VERSION && abandoned.claim == claim).then_some(abandoned)
}
