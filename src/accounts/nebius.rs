//! The accounts at Nebius.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::AccountsError;
use super::given::Given;
use super::kind::{Kind, Official};
use super::nebius_parts;
use super::seal::Parts;
use super::sources::{Look, Place, open_to_others};
use super::store::Settings;
use crate::cloud::nebius::cli_files::{Profile, in_config};
use crate::cloud::nebius::credentials::{Credentials, TokenSource, in_key_file};
use crate::cloud::nebius::{self, Nebius};
use crate::cloud::{Cloud, Setup};
use crate::http;
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTables, Config, NebiusTable, is_readable_by_others};
use crate::state::{env, regular};

/// The nebius CLI's profiles, under the home folder.
const PROFILES: &str = ".nebius/config.yaml";

/// Where the nebius CLI keeps the tokens of people's logins, under the home folder.
const LOGINS: &str = ".nebius/credentials.yaml";

/// Where a service account's key usually lies, under the home folder (SkyPilot's documentation).
const KEY_FILE: &str = ".nebius/credentials.json";

/// How they are made.
pub(super) struct Accounts;

/// Credentials that were found, and the tenant that stands beside them.
pub(super) struct Found {
    /// What they are; or why they cannot be used. Others are then not looked for: another account would pay.
    credentials: Result<Credentials, String>,
    tenant: Option<String>,
    /// Whether the tenant of the settings counts, not what else lies around.
    settled: bool,
}

impl Kind for Accounts {
    type Table = NebiusTable;
    type Credentials = Found;
    const OFFICIAL: Official =
        Official { base: nebius::DEFAULT_ENDPOINT, variable: &env::GPUPROV_NEBIUS_ENDPOINT, tails: &[] };
    const LACKS: &'static str = "`credentials`, and no `service_account` with a `token_file`";
    const UNASKED: bool = false;
    const FLAGS: &'static [&'static str] = &[
        "--credentials",
        "--tenant-id",
        "--service-account-id",
        "--token-file",
        "--token-command",
        "--token-github",
        "--allow-command",
        "--projects",
    ];

    fn tables(config: &Config) -> &CloudTables<NebiusTable> {
        &config.nebius
    }

    fn find(look: &Look<'_>, account: &AccountId, warnings: &mut Vec<String>) -> Option<(Found, Place)> {
        let default = *account == AccountId::default_of(account.cloud());
        let alone = |credentials| Found { credentials, tenant: None, settled: false };
        if default && let Some(token) = look.env.get(&env::NEBIUS_IAM_TOKEN).and_then(Credentials::token) {
            return Some((alone(Ok(token)), Place::Variable(env::NEBIUS_IAM_TOKEN.name)));
        }
        if let Some((found, place)) = in_table(look, account, default, warnings) {
            return Some((alone(found), place));
        }
        if !default || look.only_environment {
            return None;
        }
        let home = look.paths.home.as_ref()?;
        profile(look, home, warnings).or_else(|| {
            let path = home.join(KEY_FILE);
            Some((alone(key(&path, own_text(&path)?, warnings)), Place::OwnFile(path)))
        })
    }

    fn unusable(found: &Found) -> Option<&str> {
        found.credentials.as_ref().err().map(String::as_str)
    }

    fn given(look: &Look<'_>, given: &Given) -> Result<Option<(Found, Place)>, AccountsError> {
        let tenant = given.tenant.clone();
        let found = nebius_parts::given(look, given)?;
        Ok(found.map(|(credentials, place)| {
            (Found { credentials: Ok(credentials), tenant, settled: true }, place)
        }))
    }

    fn parts(found: &Found) -> Option<Parts> {
        nebius_parts::apart(found.credentials.as_ref().ok()?)
    }

    fn restore(look: &Look<'_>, parts: &Parts) -> Result<Found, String> {
        let credentials = nebius_parts::together(look, parts)?;
        Ok(Found { credentials: Ok(credentials), tenant: None, settled: true })
    }

    fn settings(look: &Look<'_>, account: &AccountId, found: &Found) -> Settings {
        Settings { tenant: tenant(look, account, found), ..Settings::default() }
    }

    fn settle(found: Found) -> Found {
        Found { settled: true, ..found }
    }

    fn apply(settings: &Settings, account: &AccountId, config: &mut Config) {
        let own = config.nebius.accounts.remove(account.name()).unwrap_or_default();
        let kept = NebiusTable {
            tenant: settings.tenant.clone(),
            projects: settings.projects.clone(),
            ..NebiusTable::default()
        };
        config.nebius.accounts.insert(account.name().to_owned(), own.over(kept));
    }

    fn secret(found: &Found) -> Secret {
        found.credentials.as_ref().map_or_else(|_| Secret::new(String::new()), Credentials::whole)
    }

    fn hint(found: &Found) -> String {
        found.credentials.as_ref().map_or_else(|_| String::new(), Credentials::hint)
    }

    fn cloud(
        look: &Look<'_>,
        setup: Setup,
        found: Found,
        http: http::Client,
    ) -> Result<Arc<dyn Cloud>, AccountsError> {
        let table = look.config.nebius.of(&setup.account);
        let tenant = tenant(look, &setup.account, &found);
        let credentials = found.credentials.map_err(|why| AccountsError::NotUsed {
            account: setup.account.clone(),
            place: "its credentials".to_owned(),
            why,
        })?;
        let settings = nebius::Settings {
            credentials,
            tenant,
            projects: table.projects.unwrap_or_default(),
            ssh_port: table.ssh_port.unwrap_or(nebius::SSH_PORT),
        };
        Ok(Arc::new(Nebius::new(setup, settings, http)))
    }
}

/// Returns the tenant: of the variable, the config file, or what stands beside the credentials.
fn tenant(look: &Look<'_>, account: &AccountId, found: &Found) -> Option<String> {
    let default = *account == AccountId::default_of(account.cloud());
    let variable =
        look.env.get(&env::NEBIUS_TENANT_ID).filter(|_| default && !found.settled).map(str::to_owned);
    let given = |text: &String| !text.trim().is_empty();
    let table = look.config.nebius.of(account);
    let tenant = variable.filter(given).or(table.tenant.filter(given)).or(found.tenant.clone());
    tenant.map(|tenant| tenant.trim().to_owned())
}

/// Finds the credentials of an account in the config file: a key file, or a service account and the file with its token.
fn in_table(
    look: &Look<'_>,
    account: &AccountId,
    default: bool,
    warnings: &mut Vec<String>,
) -> Option<(Result<Credentials, String>, Place)> {
    let speaks = |table: &&NebiusTable| {
        table.credentials.is_some() || table.service_account.is_some() || table.token_file.is_some()
    };
    let (table, place) =
        look.in_config(&look.config.nebius, account, default, |table| Some(table).filter(speaks))?;
    Some((of_table(look, &table, warnings), place))
}

fn of_table(look: &Look<'_>, table: &NebiusTable, warnings: &mut Vec<String>) -> Result<Credentials, String> {
    let resolve =
        |text: &str| look.paths.resolve(text, look.config.folder()).map_err(|error| error.to_string());
    if let Some(file) = &table.credentials {
        let path = resolve(file)?;
        return key(&path, regular::read_text(&path), warnings);
    }
    match (&table.service_account, &table.token_file) {
        (Some(account), Some(file)) => {
            let source = TokenSource::File(resolve(file)?);
            Ok(Credentials::Federated { account: account.clone(), source })
        }
        (Some(_), None) => Err("`service_account` needs `token_file` beside it".to_owned()),
        (None, _) => Err("`token_file` needs `service_account` beside it".to_owned()),
    }
}

/// Finds the profile of the nebius CLI; none if it has none and none is asked for.
fn profile(look: &Look<'_>, home: &Path, warnings: &mut Vec<String>) -> Option<(Found, Place)> {
    let path = home.join(PROFILES);
    let named = look.env.get(&env::NEBIUS_PROFILE);
    let found = |credentials, tenant| Found { credentials, tenant, settled: false };
    let Some(text) = own_text(&path) else {
        let why = format!("there is no `{}` with the profile that it names", path.display());
        return named.map(|_| (found(Err(why), None), Place::Variable(env::NEBIUS_PROFILE.name)));
    };
    let below = |file: &str| look.paths.resolve(file, path.parent().unwrap_or(home));
    let resolve = |file: &str| below(file).unwrap_or_else(|_| PathBuf::from(file));
    let read = |file: &str| regular::read_text(&resolve(file)).map_err(|error| error.to_string());
    let profile = text.map_err(|error| error.to_string()).and_then(|text| {
        in_config(&text, named, &home.join(LOGINS), &read, &resolve).map_err(|error| error.to_string())
    });
    let found = match profile {
        Ok(profile) => {
            let Profile { credentials, tenant, .. } = profile?;
            warn_if_open(&path, warnings);
            found(Ok(credentials), tenant)
        }
        Err(why) => found(Err(format!("`{}`: {why}", path.display())), None),
    };
    Some((found, Place::OwnFile(path)))
}

/// Reads a file of the nebius CLI's; none if there is none.
fn own_text(path: &Path) -> Option<io::Result<String>> {
    match regular::read_text(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        read => Some(read),
    }
}

/// Takes the key out of the text of a key file.
fn key(path: &Path, text: io::Result<String>, warnings: &mut Vec<String>) -> Result<Credentials, String> {
    let key = text.map_err(|error| error.to_string());
    let key = key.and_then(|text| in_key_file(&text).map_err(|error| error.to_string()));
    if key.is_ok() {
        warn_if_open(path, warnings);
    }
    key.map_err(|why| format!("`{}`: {why}", path.display()))
}

fn warn_if_open(path: &Path, warnings: &mut Vec<String>) {
    if is_readable_by_others(path) {
        warnings.push(open_to_others(path));
    }
}
