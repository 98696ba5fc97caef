//! The accounts at Verda.

use std::path::Path;
use std::sync::Arc;

use super::error::AccountsError;
use super::given::Given;
use super::kind::{Kind, Official, UNKNOWN_PARTS};
use super::seal::Parts;
use super::sources::{Look, Place, open_to_others, read_own};
use crate::cloud::verda::credentials::{self as files, Credentials};
use crate::cloud::verda::{self, Verda};
use crate::cloud::{Cloud, Setup};
use crate::http;
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTables, Config, VerdaTable, is_readable_by_others};
use crate::state::env;

/// What both parts are called where they are sealed. A stored format.
const CLIENT_ID: &str = "client_id";
const CLIENT_SECRET: &str = "client_secret";

/// How they are made.
pub(super) struct Accounts;

impl Kind for Accounts {
    type Table = VerdaTable;
    type Credentials = Credentials;
    const OFFICIAL: Official =
        Official { base: verda::DEFAULT_ENDPOINT, variable: &env::GPUPROV_VERDA_ENDPOINT, tails: &["/v1"] };
    const LACKS: &'static str = "`client_id` and `client_secret`";
    const UNASKED: bool = true;
    const FLAGS: &'static [&'static str] = &["--client-id", "--client-secret"];
    const ASKED: &'static [&'static str] = &["--client-id", "--client-secret"];

    fn tables(config: &Config) -> &CloudTables<VerdaTable> {
        &config.verda
    }

    fn find(
        look: &Look<'_>,
        account: &AccountId,
        warnings: &mut Vec<String>,
    ) -> Option<(Credentials, Place)> {
        pair(look, account, warnings)
    }

    fn given(_: &Look<'_>, given: &Given) -> Result<Option<(Credentials, Place)>, AccountsError> {
        match (&given.client_id, &given.client_secret) {
            (None, None) => Ok(None),
            (Some(id), Some((secret, place))) => {
                let empty = || AccountsError::Given("the client id or the client secret is empty".to_owned());
                let pair = Credentials::new(id, secret.expose()).ok_or_else(empty)?;
                Ok(Some((pair, place.clone())))
            }
            _ => Err(AccountsError::Given("--client-id and --client-secret go together".to_owned())),
        }
    }

    fn parts(credentials: &Credentials) -> Option<Parts> {
        let id = Secret::trimmed(&credentials.client_id);
        Some(
            [(CLIENT_ID.to_owned(), id), (CLIENT_SECRET.to_owned(), credentials.client_secret.clone())]
                .into(),
        )
    }

    fn restore(_: &Look<'_>, parts: &Parts) -> Result<Credentials, String> {
        let pair = parts.get(CLIENT_ID).zip(parts.get(CLIENT_SECRET));
        let pair = pair.and_then(|(id, secret)| Credentials::new(id.expose(), secret.expose()));
        pair.ok_or_else(|| UNKNOWN_PARTS.to_owned())
    }

    fn secret(credentials: &Credentials) -> Secret {
        credentials.whole()
    }

    fn hint(credentials: &Credentials) -> String {
        credentials.hint()
    }

    fn cloud(
        look: &Look<'_>,
        setup: Setup,
        credentials: Credentials,
        http: http::Client,
    ) -> Result<Arc<dyn Cloud>, AccountsError> {
        let ssh_port = look.config.verda.of(&setup.account).ssh_port.unwrap_or(verda::SSH_PORT);
        Ok(Arc::new(Verda::new(setup, verda::Settings { credentials, ssh_port }, http)))
    }
}

/// Finds client id and secret of a Verda account, both in one place. Files that cannot be used, and half a pair of
/// variables, are told in `warnings`.
fn pair(look: &Look<'_>, account: &AccountId, warnings: &mut Vec<String>) -> Option<(Credentials, Place)> {
    let default = *account == AccountId::default_of(account.cloud());
    if default {
        let pair = [&env::VERDA_CLIENT_ID, &env::VERDA_CLIENT_SECRET];
        let [id, secret] = pair.map(|variable| look.env.get(variable).unwrap_or_default());
        if let Some(found) = Credentials::new(id, secret) {
            return Some((found, Place::Variable(env::VERDA_CLIENT_SECRET.name)));
        }
        let [id, secret] = [id, secret].map(|text| !text.trim().is_empty());
        if id != secret {
            let (has, lacks) = if id { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
            warnings.push(format!("{} is not used: {} is not set", has.name, lacks.name));
        }
    }
    let whole = |table: &&VerdaTable| table.client_id.is_some() && table.client_secret.is_some();
    let table = look.in_config(&look.config.verda, account, default, |table| Some(table).filter(whole));
    if let Some((VerdaTable { client_id: Some(id), client_secret: Some(secret), .. }, place)) = table
        && let Some(found) = Credentials::new(&id, secret.expose())
    {
        return Some((found, place));
    }
    if !default || look.only_environment {
        return None;
    }
    let home = look.paths.home.as_ref()?;
    let profile = look.env.get(&env::VERDA_PROFILE);
    let json = |text: &str| files::in_json(text);
    let ini = |text: &str| files::in_ini(text, profile);
    in_file(&home.join(files::JSON_FILE), json, warnings)
        .or_else(|| in_file(&home.join(files::INI_FILE), ini, warnings))
}

fn in_file(
    path: &Path,
    read: impl Fn(&str) -> Result<Option<Credentials>, files::FileError>,
    warnings: &mut Vec<String>,
) -> Option<(Credentials, Place)> {
    let found = read(&read_own(path, warnings)?).unwrap_or_else(|error| {
        warnings.push(format!("`{}` is not used: {error}", path.display()));
        None
    })?;
    if is_readable_by_others(path) {
        warnings.push(open_to_others(path));
    }
    Some((found, Place::OwnFile(path.to_owned())))
}
