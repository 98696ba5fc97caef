//! The switches of accounts: whether an account is asked for GPU machines, and for machines without a GPU.
//!
//! They lie in one file of the state directory, written whole under a lock and read anew wherever it matters, so that a command
//! that waits sees what another one switches. An account that is not in the file has both switches on. A file that cannot be
//! read is an error and is never overwritten: taking it for "all on" would spend money in an account that was switched off.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::atomic;
use super::directory::{DirError, check_owner, private_dir};
use super::error::StateError;
use super::regular;
use crate::model::account::AccountId;
use crate::model::want::{Kind, Want};

const FILE: &str = "switches.json";

/// The version written today.
pub const SWITCHES_VERSION: u32 = 1;

/// How long another writer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The two switches of one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Whether it is asked for GPU machines.
    pub gpu: bool,
    /// Whether it is asked for machines without a GPU.
    pub cpu: bool,
}

impl Switch {
    /// Both on, as every account begins.
    pub const ON: Switch = Switch { gpu: true, cpu: true };

    /// Whether an account with these switches may serve the request at all. An exact type may be of either kind.
    pub fn serves(self, want: &Want) -> bool {
        match want.kind {
            Kind::CpuOnly => self.cpu,
            Kind::Gpus(_) => self.gpu,
            Kind::Types(_) => self.gpu || self.cpu,
        }
    }

    /// Whether a machine with so many GPUs may be bought.
    pub fn admits(self, gpu_count: u32) -> bool {
        if gpu_count == 0 { self.cpu } else { self.gpu }
    }
}

/// Which of the two switches a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one for GPU machines.
    Gpu,
    /// The one for machines without a GPU.
    Cpu,
    /// Both.
    Both,
}

impl Side {
    /// Returns the switches with these turned on or off.
    fn turn(self, switch: Switch, on: bool) -> Switch {
        match self {
            Side::Gpu => Switch { gpu: on, ..switch },
            Side::Cpu => Switch { cpu: on, ..switch },
            Side::Both => Switch { gpu: on, cpu: on },
        }
    }

    /// Returns what differs between two states of the switches; none if nothing does.
    fn between(before: Switch, now: Switch) -> Option<Side> {
        match (before.gpu != now.gpu, before.cpu != now.cpu) {
            (true, true) => Some(Side::Both),
            (true, false) => Some(Side::Gpu),
            (false, true) => Some(Side::Cpu),
            (false, false) => None,
        }
    }

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Side::Gpu => "gpu",
            Side::Cpu => "cpu",
            Side::Both => "gpu and cpu",
        }
    }
}

/// The switches of all accounts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Switches(BTreeMap<String, Switch>);

impl Switches {
    /// Returns an account's switches.
    pub fn of(&self, account: &AccountId) -> Switch {
        self.0.get(&account.to_string()).copied().unwrap_or(Switch::ON)
    }

    /// Returns the accounts that are named in the file.
    pub fn accounts(&self) -> impl Iterator<Item = AccountId> {
        self.0.keys().filter_map(|text| text.parse().ok())
    }
}

/// The file as it is stored. Fields of a later version survive.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    accounts: BTreeMap<String, StoredSwitch>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredSwitch {
    gpu: bool,
    cpu: bool,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

/// The switches of a state directory.
#[derive(Clone, Debug)]
pub struct Board {
    state: PathBuf,
}

impl Board {
    /// Opens the switches of a state directory, which may be missing or read-only.
    pub fn open(state: &Path) -> Result<Self, StateError> {
        match check_owner(state) {
            // A file in the place of a folder above it: nothing can lie there.
            Err(DirError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotADirectory => {}
            checked => checked?,
        }
        Ok(Board { state: state.to_owned() })
    }

    /// Reads the switches as they are now.
    pub fn read(&self) -> Result<Switches, StateError> {
        let stored = self.stored()?;
        let accounts = stored.accounts.into_iter();
        Ok(Switches(accounts.map(|(id, StoredSwitch { gpu, cpu, .. })| (id, Switch { gpu, cpu })).collect()))
    }

    /// Turns switches of accounts on or off. `changed` hears of every account where something changed, while no other process
    /// can change anything, so that a log has the changes in their order.
    pub fn turn(
        &self,
        accounts: &[AccountId],
        side: Side,
        on: bool,
        mut changed: impl FnMut(&AccountId, Side),
    ) -> Result<(), StateError> {
        self.change(
            |stored| {
                let mut all = Vec::new();
                for account in accounts {
                    let id = account.to_string();
                    let known = stored.accounts.get(&id);
                    let before = known.map_or(Switch::ON, |known| Switch { gpu: known.gpu, cpu: known.cpu });
                    let now = side.turn(before, on);
                    let Some(differs) = Side::between(before, now) else { continue };
                    let unknown = known.map(|known| known.unknown.clone()).unwrap_or_default();
                    stored.accounts.insert(id, StoredSwitch { gpu: now.gpu, cpu: now.cpu, unknown });
                    all.push((account, differs));
                }
                all
            },
            |all| all.into_iter().for_each(|(account, differs)| changed(account, differs)),
        )
    }

    /// Drops the switches of an account that is no more: another one of its name begins with both on.
    pub fn forget(&self, account: &AccountId) -> Result<(), StateError> {
        let id = account.to_string();
        if !self.stored()?.accounts.contains_key(&id) {
            return Ok(());
        }
        self.change(|stored| stored.accounts.remove(&id).into_iter().collect(), |_: Vec<StoredSwitch>| ())
    }

    /// Changes the file under its lock, unless the change is none, and tells `after` what was changed while the lock is held.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Stored) -> Vec<T>,
        after: impl FnOnce(Vec<T>),
    ) -> Result<(), StateError> {
        private_dir(&self.state)?;
        let _lock = self.lock()?;
        let path = self.path();
        atomic::sweep(&path);
        let mut stored = self.stored()?;
        let changes = change(&mut stored);
        if changes.is_empty() {
            return Ok(());
        }
        let mut bytes = serde_json::to_vec_pretty(&stored)
            .map_err(|error| StateError::io("write", &path)(error.into()))?;
        bytes.push(b'\n');
        atomic::write(&path, &bytes, 0o600).map_err(StateError::io("write", &path))?;
        after(changes);
        Ok(())
    }

    fn stored(&self) -> Result<Stored, StateError> {
        let path = self.path();
        let text = match regular::read_text(&path) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                let (accounts, unknown) = (BTreeMap::new(), BTreeMap::new());
                return Ok(Stored { version: SWITCHES_VERSION, accounts, unknown });
            }
            Err(error) => return Err(StateError::io("read", &path)(error)),
        };
        let malformed = |why: String| StateError::Malformed { path: path.clone(), why };
        let stored: Stored = serde_json::from_str(&text).map_err(|error| {
            malformed(format!(
                "holds no switches ({error}) and is left as it is: put a copy back, or delete it, and every account is on"
            ))
        })?;
        if stored.version > SWITCHES_VERSION {
            return Err(malformed("was written by a newer gpuprov; update gpuprov".to_owned()));
        }
        Ok(stored)
    }

    fn path(&self) -> PathBuf {
        self.state.join(FILE)
    }

    // The kernel's, on a file that is never deleted: see `state/lock.rs`.
    fn lock(&self) -> Result<File, StateError> {
        let path = self.state.join("switches.lock");
        let open = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = open.map_err(StateError::io("open", &path))?;
        let end = Instant::now() + PATIENCE;
        while let Err(error) = file.try_lock() {
            if Instant::now() >= end {
                return Err(StateError::io("lock", &path)(error.into()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(file)
    }
}
