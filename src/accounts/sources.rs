//! Where the credentials of each cloud are, in the order in which they are taken: environment, config file, the cloud's own
//! files. (Connected accounts, which come first, are a later issue.)

use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::cloud::verda::credentials as verda;
use crate::cloud::verda::credentials::Credentials as VerdaCredentials;
use crate::cloud::{runpod, vast};
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTables, Config, VerdaTable, is_readable_by_others};
use crate::state::env::{self, Env};
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
}

impl Place {
    /// Returns what counts as one place: the whole environment, one table, one file.
    pub fn group(&self) -> (u8, &Path, &str) {
        match self {
            Place::Variable(_) => (0, Path::new(""), ""),
            Place::Table { file, table } => (1, file, table),
            Place::OwnFile(file) => (2, file, ""),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Variable(name) => f.write_str(name),
            Place::Table { file, table } => write!(f, "`[{table}]` in `{}`", file.display()),
            Place::OwnFile(file) => write!(f, "`{}`", file.display()),
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

    /// Finds the API key of a RunPod account. Files that cannot be used are told in `warnings`.
    pub fn runpod_key(&self, account: &AccountId, warnings: &mut Vec<String>) -> Option<(Secret, Place)> {
        let default = *account == AccountId::default_of(account.cloud());
        if default && let Some(key) = self.env.get(&env::RUNPOD_API_KEY) {
            let key = Secret::trimmed(key);
            if !key.is_empty() {
                return Some((key, Place::Variable(env::RUNPOD_API_KEY.name)));
            }
        }
        if let Some(found) =
            self.in_config(&self.config.runpod, account, default, |table| table.api_key.as_ref())
        {
            return Some(found);
        }
        if !default || self.only_environment {
            return None;
        }
        let path = self.paths.home.as_ref()?.join(runpod::credentials::OWN_FILE);
        let key = read_own(&path, warnings).and_then(|text| {
            runpod::credentials::key_in_own_file(&text).unwrap_or_else(|error| {
                warnings.push(format!("`{}` is not used: {error}", path.display()));
                None
            })
        });
        key.map(|key| own(key, path, warnings))
    }

    /// Finds the API key of a Vast account. Files that cannot be used are told in `warnings`.
    pub fn vast_key(&self, account: &AccountId, warnings: &mut Vec<String>) -> Option<(Secret, Place)> {
        let default = *account == AccountId::default_of(account.cloud());
        if default && let Some(key) = self.env.get(&env::VAST_API_KEY) {
            let key = Secret::trimmed(key);
            if !key.is_empty() {
                return Some((key, Place::Variable(env::VAST_API_KEY.name)));
            }
        }
        let found = self.in_config(&self.config.vast, account, default, |table| table.api_key.as_ref());
        if found.is_some() || !default || self.only_environment {
            return found;
        }
        let home = self.paths.home.as_ref();
        let given = self.env.path(&env::XDG_CONFIG_HOME).filter(|path| path.is_absolute());
        let folders = [given, home.map(|home| home.join(".config"))].into_iter().flatten();
        let files = folders.map(|folder| folder.join(vast::credentials::OWN_FILE));
        let files = files.chain(home.map(|home| home.join(vast::credentials::OLD_FILE)));
        for path in files {
            let Some(text) = read_own(&path, warnings) else { continue };
            match vast::credentials::key_in_own_file(&text) {
                Some(key) => return Some(own(key, path, warnings)),
                None if text.trim().is_empty() => {}
                None => warnings.push(format!("`{}` is not used: it is not a bare key", path.display())),
            }
        }
        None
    }

    /// Finds client id and secret of a Verda account, both in one place. Files that cannot be used, and half a pair of
    /// variables, are told in `warnings`.
    pub fn verda_credentials(
        &self,
        account: &AccountId,
        warnings: &mut Vec<String>,
    ) -> Option<(VerdaCredentials, Place)> {
        let default = *account == AccountId::default_of(account.cloud());
        if default {
            let pair = [&env::VERDA_CLIENT_ID, &env::VERDA_CLIENT_SECRET];
            let [id, secret] = pair.map(|variable| self.env.get(variable).unwrap_or_default());
            if let Some(found) = VerdaCredentials::new(id, secret) {
                return Some((found, Place::Variable(env::VERDA_CLIENT_SECRET.name)));
            }
            let [id, secret] = [id, secret].map(|text| !text.trim().is_empty());
            if id != secret {
                let (has, lacks) = if id { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
                warnings.push(format!("{} is not used: {} is not set", has.name, lacks.name));
            }
        }
        let whole = |table: &&VerdaTable| table.client_id.is_some() && table.client_secret.is_some();
        let table = self.in_config(&self.config.verda, account, default, |table| Some(table).filter(whole));
        if let Some((VerdaTable { client_id: Some(id), client_secret: Some(secret), .. }, place)) = table
            && let Some(found) = VerdaCredentials::new(&id, secret.expose())
        {
            return Some((found, place));
        }
        if !default || self.only_environment {
            return None;
        }
        let home = self.paths.home.as_ref()?;
        let profile = self.env.get(&env::VERDA_PROFILE);
        let json = |text: &str| verda::in_json(text);
        let ini = |text: &str| verda::in_ini(text, profile);
        verda_file(&home.join(verda::JSON_FILE), json, warnings)
            .or_else(|| verda_file(&home.join(verda::INI_FILE), ini, warnings))
    }
}

fn verda_file(
    path: &Path,
    read: impl Fn(&str) -> Result<Option<VerdaCredentials>, verda::FileError>,
    warnings: &mut Vec<String>,
) -> Option<(VerdaCredentials, Place)> {
    let found = read(&read_own(path, warnings)?).unwrap_or_else(|error| {
        warnings.push(format!("`{}` is not used: {error}", path.display()));
        None
    })?;
    if is_readable_by_others(path) {
        warnings.push(open_to_others(path));
    }
    Some((found, Place::OwnFile(path.to_owned())))
}

/// Returns a key from a cloud's own file, and warns where others can read it.
fn own(key: Secret, path: PathBuf, warnings: &mut Vec<String>) -> (Secret, Place) {
    if is_readable_by_others(&path) {
        warnings.push(open_to_others(&path));
    }
    (key, Place::OwnFile(path))
}

/// Returns the warning about a file with a secret that others can read.
pub fn open_to_others(path: &Path) -> String {
    format!("`{0}` holds a secret and can be read by others; `chmod 600 {0}` closes it", path.display())
}

fn read_own(path: &Path, warnings: &mut Vec<String>) -> Option<String> {
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
