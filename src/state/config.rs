//! The config file: typed, checked key by key.
//!
//! It may hold secrets, so nothing here ever quotes a line or a value of it, and unknown keys only where they are a slip of
//! the hand away from a known one. That is why the file is walked by hand instead of being left to serde, whose errors quote.

mod accounts;
mod error;
mod read;
mod tables;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::de::DeTable;

pub use accounts::{CloudTable, CloudTables};
pub use error::{ConfigError, Problem};
pub use tables::{
    Defaults, GcpTable, Key, NebiusTable, RunpodTable, SshTable, VastTable, VerdaTable, WaitTable,
};

use self::read::{Report, Table};
use super::directory::readable_by_others;
use super::paths::Paths;
use super::regular;

/// A longer file is no config file, in bytes.
const LIMIT: u64 = 1 << 20;

/// What the config file says. Everything in it is optional.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The file, also where it does not exist.
    pub path: PathBuf,
    /// Whether group or others can read the file.
    pub readable_by_others: bool,
    /// `[defaults]`.
    pub defaults: Defaults,
    /// `[ssh]`.
    pub ssh: SshTable,
    /// `[wait]`.
    pub wait: WaitTable,
    /// `[runpod]` and `[account."runpod/..."]`.
    pub runpod: CloudTables<RunpodTable>,
    /// `[vast]` and `[account."vast/..."]`.
    pub vast: CloudTables<VastTable>,
    /// `[verda]` and `[account."verda/..."]`.
    pub verda: CloudTables<VerdaTable>,
    /// `[gcp]` and `[account."gcp/..."]`.
    pub gcp: CloudTables<GcpTable>,
    /// `[nebius]` and `[account."nebius/..."]`.
    pub nebius: CloudTables<NebiusTable>,
}

impl Config {
    /// Reads the config file. A missing one is an empty one, unless somebody named it.
    pub fn load(paths: &Paths) -> Result<Self, ConfigError> {
        let path = &paths.config_file;
        let failed = |problem| ConfigError { path: path.clone(), line: None, problem };
        let mut text = String::new();
        let read = regular::open(path).and_then(|file| {
            let metadata = file.metadata()?;
            file.take(LIMIT + 1).read_to_string(&mut text)?;
            Ok(metadata)
        });
        match read {
            Ok(_) if text.len() as u64 > LIMIT => Err(failed(Problem::TooLong)),
            Ok(metadata) => {
                let config = Config::parse(&text, path)?;
                Ok(Config { readable_by_others: readable_by_others(&metadata), ..config })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !paths.config_file_given => {
                Ok(Config { path: path.clone(), ..Config::default() })
            }
            Err(error) => Err(failed(Problem::Unreadable(error.kind()))),
        }
    }

    /// Reads the text of a config file. Of several mistakes the first in the file is reported.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let report = Report::new(text, path);
        let parsed = DeTable::parse(text).map_err(|error| report.syntax(&error))?;
        let mut root = Table::root(parsed.get_ref(), &report);
        let mut config = Config { path: path.to_owned(), ..Config::default() };
        config.defaults = root.table("defaults", Defaults::read).unwrap_or_default();
        config.ssh = root.table("ssh", SshTable::read).unwrap_or_default();
        config.wait = root.table("wait", WaitTable::read).unwrap_or_default();
        config.runpod.table = root.table("runpod", RunpodTable::read);
        config.vast.table = root.table("vast", VastTable::read);
        config.verda.table = root.table("verda", VerdaTable::read);
        config.gcp.table = root.table("gcp", GcpTable::read);
        config.nebius.table = root.table("nebius", NebiusTable::read);
        root.table("account", |accounts| {
            config.runpod.read_accounts(accounts, RunpodTable::read);
            config.vast.read_accounts(accounts, VastTable::read);
            config.verda.read_accounts(accounts, VerdaTable::read);
            config.gcp.read_accounts(accounts, GcpTable::read);
            config.nebius.read_accounts(accounts, NebiusTable::read);
            accounts.reject_rest_as_accounts();
        });
        root.finish();
        report.first().map_or(Ok(config), Err)
    }

    /// Returns the folder under which relative paths in the file lie.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Whether the file holds a secret, so that others should not be able to read it.
    pub fn has_secret(&self) -> bool {
        self.defaults.env.as_ref().is_some_and(|env| !env.is_empty())
            || self.runpod.has_secret()
            || self.vast.has_secret()
            || self.verda.has_secret()
            || self.gcp.has_secret()
            || self.nebius.has_secret()
    }
}

/// Whether others can read the file at `path`; not if it cannot be looked at.
pub fn is_readable_by_others(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| readable_by_others(&metadata))
}

#[cfg(test)]
mod tests;
