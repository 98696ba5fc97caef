//! Where credentials are looked for, at any cloud, in the order in which they are taken: environment, config file, the
//! cloud's own files.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTables, Config, is_readable_by_others};
use crate::state::env::Env;
use crate::state::paths::Paths;
use crate::state::regular;

/// A longer file is nobody's credentials, in bytes.
const LIMIT: u64 = 1 << 20;

/// Where something was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this variable.
    Variable(&'static str),
    /// In a table of the config file.
    Table {
        /// The config file.
        file: PathBuf,
        /// The table, without the brackets.
        table: String,
    },
    /// In a file that the cloud's own tools write.
    OwnFile(PathBuf),
    /// Kept sealed by `clouds set`.
    Connected,
    /// Given to `clouds set`: a flag, standard input, an answer.
    Told(&'static str),
}

impl Place {
    /// Returns what counts as one place: the whole environment, one table, one file.
    pub fn group(&self) -> (u8, &Path, &str) {
        match self {
            Place::Variable(_) => (0, Path::new(""), ""),
            Place::Table { file, table } => (1, file, table),
            Place::OwnFile(file) => (2, file, ""),
            Place::Connected => (3, Path::new(""), ""),
            Place::Told(_) => (4, Path::new(""), ""),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Variable(name) => f.write_str(name),
            Place::Table { file, table } => write!(f, "`[{table}]` in `{}`", file.display()),
            Place::OwnFile(file) => write!(f, "`{}`", file.display()),
            Place::Connected => f.write_str("`gpuprov clouds set`"),
            Place::Told(how) => f.write_str(how),
        }
    }
}

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The environment.
    pub env: &'a Env,
    /// The config file.
    pub config: &'a Config,
    /// The places on this computer.
    pub paths: &'a Paths,
    /// Whether neither the config file nor the clouds' own files may give credentials (the sandbox).
    pub only_environment: bool,
}

/// Returns the name of the table that holds for one account alone.
pub fn account_table(account: &AccountId) -> String {
    format!("account.\"{account}\"")
}

impl Look<'_> {
    /// Returns the place of a table in the config file.
    pub fn table(&self, table: impl Into<String>) -> Place {
        Place::Table { file: self.config.path.clone(), table: table.into() }
    }

    /// Finds what `pick` takes out of the account's own table, else out of the cloud's table, which is looked at only if
    /// `shared` says so.
    pub fn in_config<T, V: Clone>(
        &self,
        tables: &CloudTables<T>,
        account: &AccountId,
        shared: bool,
        pick: impl Fn(&T) -> Option<&V>,
    ) -> Option<(V, Place)> {
        if self.only_environment {
            return None;
        }
        let own = tables.accounts.get(account.name()).and_then(&pick).cloned();
        let own = own.map(|value| (value, self.table(account_table(account))));
        own.or_else(|| {
            let value = tables.table.as_ref().filter(|_| shared).and_then(&pick).cloned();
            value.map(|value| (value, self.table(account.cloud().as_str())))
        })
    }
}

/// Returns a key from a cloud's own file, and warns where others can read it.
pub(super) fn own(key: Secret, path: PathBuf, warnings: &mut Vec<String>) -> (Secret, Place) {
    if is_readable_by_others(&path) {
        warnings.push(open_to_others(&path));
    }
    (key, Place::OwnFile(path))
}

/// Returns the warning about a file with a secret that others can read.
pub fn open_to_others(path: &Path) -> String {
    format!("`{0}` holds a secret and can be read by others; `chmod 600 {0}` closes it", path.display())
}

/// Reads a cloud's own file; one that is there and cannot be read is told in `warnings`.
pub(super) fn read_own(path: &Path, warnings: &mut Vec<String>) -> Option<String> {
    let mut text = String::new();
    match regular::open(path).and_then(|file| file.take(LIMIT).read_to_string(&mut text)) {
        Ok(_) => Some(text),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        Err(error) => {
            warnings.push(format!("`{}` is not used: {error}", path.display()));
            None
        }
    }
}
