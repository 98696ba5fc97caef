//! Connected accounts: one file each, with the credentials sealed and beside them what may be read and changed by hand.
//!
//! ```text
//! <data>/accounts/<cloud>/<name>.json    an account; `<name>.json.unreadable-N` is one that `clouds set` put aside
//! <data>/accounts/lock                   held by whoever changes one
//! <data>/seal.key                        what they are sealed under
//! ```
//!
//! A file that cannot be opened is told and spoils no other account. It is never overwritten and never taken for none: the
//! account of that name must not turn into another one's that lies around.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::AccountsError;
use super::seal::{Contents, Sealed, Sealer};
use crate::cloud::Identity;
use crate::model::account::{AccountId, CloudKind};
use crate::state::directory::{check_owner, private_dir};
use crate::state::{DirError, StateError, atomic, regular};

/// The version written today.
pub const ACCOUNT_VERSION: u32 = 1;

/// How long another writer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Settings of a connected account that `clouds set` was given; they may be changed by hand. A stored format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Google's project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The zones that are asked, at Google.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<Vec<String>>,
    /// Nebius's tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The projects that are asked, at Nebius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    /// Settings of a later version.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

impl Settings {
    /// Returns these settings with what they leave open taken from `base`.
    pub fn over(self, base: Settings) -> Settings {
        let mut unknown = base.unknown;
        unknown.extend(self.unknown);
        Settings {
            project: self.project.or(base.project),
            zones: self.zones.or(base.zones),
            tenant: self.tenant.or(base.tenant),
            projects: self.projects.or(base.projects),
            unknown,
        }
    }
}

/// A connected account.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The account.
    pub account: AccountId,
    /// What tells its credentials apart for people.
    pub hint: String,
    /// Where the credentials came from.
    pub source: String,
    /// When it was connected.
    pub connected_at: Timestamp,
    /// Who the credentials were when the provider was asked; none if it was not.
    pub identity: Option<Identity>,
    /// Its settings.
    pub settings: Settings,
    /// What is sealed.
    pub contents: Contents,
}

/// Why a connected account cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unopened {
    /// What is wrong, as it stands after the account.
    pub why: String,
    /// Whether a later version wrote it: nothing may change it then.
    pub newer: bool,
}

/// The file of an account.
#[derive(Debug, Serialize, Deserialize)]
struct OnDisk {
    version: u32,
    account: AccountId,
    hint: String,
    source: String,
    connected_at: Timestamp,
    identity: Option<Identity>,
    #[serde(default)]
    settings: Settings,
    sealed: Sealed,
}

/// The connected accounts of a data directory.
pub struct Store {
    data: PathBuf,
    folder: PathBuf,
    // Read once, and only where there is an account at all.
    sealer: OnceCell<Result<Option<Sealer>, String>>,
}

impl Store {
    /// Opens the accounts of a data directory, which may be missing. One of somebody else's is refused.
    pub fn open(data: &Path) -> Result<Self, AccountsError> {
        match check_owner(data) {
            // A file in the place of a folder above it: nothing can lie there.
            Err(DirError::Io { cause, .. }) if is_missing(&cause) => {}
            checked => checked?,
        }
        Ok(Store { data: data.to_owned(), folder: data.join("accounts"), sealer: OnceCell::new() })
    }

    /// Returns the accounts that have a file, readable or not, in their order. No file is opened.
    pub fn names(&self) -> Vec<AccountId> {
        let mut names = Vec::new();
        for cloud in CloudKind::ALL {
            let Ok(entries) = fs::read_dir(self.folder.join(cloud.as_str())) else { continue };
            let files = entries.flatten().map(|entry| entry.file_name());
            let stems = files.filter_map(|file| Some(file.to_str()?.strip_suffix(".json")?.to_owned()));
            names.extend(stems.filter_map(|stem| AccountId::new(cloud, &stem).ok()));
        }
        names.sort();
        names
    }

    /// Reads an account; none if it is not connected.
    pub fn read(&self, account: &AccountId) -> Option<Result<Stored, Unopened>> {
        let path = self.path(account);
        let text = match regular::read_text(&path) {
            Ok(text) => text,
            Err(error) if is_missing(&error) => return None,
            Err(error) => {
                let why = format!("is in `{}`, which cannot be read: {error}", path.display());
                return Some(Err(Unopened { why, newer: false }));
            }
        };
        let value: Option<Value> = serde_json::from_str(&text).ok();
        let version = value.as_ref().and_then(|value| value.get("version")).and_then(Value::as_u64);
        if version.is_some_and(|version| version > u64::from(ACCOUNT_VERSION)) {
            let why = format!("was connected by a newer gpuprov (`{}`); update gpuprov", path.display());
            return Some(Err(Unopened { why, newer: true }));
        }
        let unopened = |why: String| Unopened { why: format!("{why} (`{}`)", path.display()), newer: false };
        Some(self.decode(account, value).map_err(unopened))
    }

    fn decode(&self, account: &AccountId, value: Option<Value>) -> Result<Stored, String> {
        let value = value.ok_or("is connected in a file that is no JSON")?;
        // What serde says of a wrong value may quote it.
        let file = OnDisk::deserialize(value)
            .map_err(|_| "is connected in a file that is not of the form of an account".to_owned())?;
        if file.account != *account {
            return Err(format!("is connected in the file of another account, {}", file.account));
        }
        let sealer = self.sealer.get_or_init(|| Sealer::known(&self.data).map_err(|error| error.to_string()));
        let sealer = match sealer {
            Ok(Some(sealer)) => sealer,
            Ok(None) => {
                let why =
                    "cannot be opened: `seal.key` beside the folder of accounts is gone; put a copy back";
                return Err(why.to_owned());
            }
            Err(why) => return Err(format!("cannot be opened: {why}")),
        };
        let contents = sealer.open(account, &file.sealed)?;
        let OnDisk { hint, source, connected_at, identity, settings, .. } = file;
        Ok(Stored { account: account.clone(), hint, source, connected_at, identity, settings, contents })
    }

    /// Keeps others from changing accounts as long as the file is open.
    pub fn lock(&self) -> Result<File, AccountsError> {
        private_dir(&self.data)?;
        private_dir(&self.folder)?;
        let path = self.folder.join("lock");
        let open = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = open.map_err(StateError::io("open", &path))?;
        let end = Instant::now() + PATIENCE;
        while let Err(error) = file.try_lock() {
            if Instant::now() >= end {
                return Err(StateError::io("lock", &path)(error.into()).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(file)
    }

    /// Writes an account, in place of the one that was there. One that could not be opened is put aside, not overwritten; one
    /// of a newer version stays and is an error.
    pub fn write(&self, stored: &Stored) -> Result<(), AccountsError> {
        let account = &stored.account;
        let _lock = self.lock()?;
        let path = self.path(account);
        private_dir(path.parent().unwrap_or(&self.folder))?;
        atomic::sweep(&path);
        let sealer = match Sealer::known(&self.data)? {
            Some(sealer) => sealer,
            // A new key beside accounts under a lost one would keep the lost one from ever being put back.
            None if self.names().iter().any(|other| other != account) => {
                return Err(Sealer::missing(&self.data));
            }
            None => Sealer::open_or_make(&self.data)?,
        };
        let refused = |why: String| AccountsError::Sealed { account: account.clone(), why };
        match self.read(account) {
            Some(Err(Unopened { why, newer: true })) => return Err(refused(why)),
            Some(Err(_)) => put_aside(&path).map_err(StateError::io("put aside", &path))?,
            Some(Ok(_)) | None => {}
        }
        let sealed = sealer.seal(account, &stored.contents).map_err(|why| refused(why.to_owned()))?;
        let Stored { account, hint, source, connected_at, identity, settings, .. } = stored.clone();
        let file = OnDisk {
            version: ACCOUNT_VERSION,
            account,
            hint,
            source,
            connected_at,
            identity,
            settings,
            sealed,
        };
        let mut bytes =
            serde_json::to_vec_pretty(&file).map_err(|error| StateError::io("write", &path)(error.into()))?;
        bytes.push(b'\n');
        Ok(atomic::write(&path, &bytes, 0o600).map_err(StateError::io("write", &path))?)
    }

    /// Removes an account, also one that cannot be opened. One of a newer version stays and is an error.
    pub fn remove(&self, account: &AccountId) -> Result<(), AccountsError> {
        let _lock = self.lock()?;
        if let Some(Err(Unopened { why, newer: true })) = self.read(account) {
            return Err(AccountsError::Sealed { account: account.clone(), why });
        }
        let path = self.path(account);
        Ok(atomic::remove(&path).map_err(StateError::io("remove", &path))?)
    }

    fn path(&self, account: &AccountId) -> PathBuf {
        self.folder.join(account.cloud().as_str()).join(format!("{}.json", account.name()))
    }
}

/// Whether nothing is there, and nothing can be.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Moves a file to a name of its own beside it.
fn put_aside(path: &Path) -> io::Result<()> {
    for number in 1..10_000 {
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".unreadable-{number}"));
        let aside = PathBuf::from(aside);
        if fs::symlink_metadata(&aside).is_err() {
            fs::rename(path, &aside)?;
            return atomic::sync_dir(path.parent().unwrap_or(path));
        }
    }
    Err(io::Error::other("too many were put aside before"))
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
