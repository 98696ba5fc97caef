//! The accounts at Vast.

use std::sync::Arc;

use super::error::AccountsError;
use super::given::Given;
use super::kind::{Kind, Official, UNKNOWN_PARTS};
use super::seal::Parts;
use super::sources::{Look, Place, own, read_own};
use crate::cloud::vast::{self, Vast};
use crate::cloud::{Cloud, Setup};
use crate::http;
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTables, Config, VastTable};
use crate::state::env;

/// What the key is called where it is sealed. A stored format.
const API_KEY: &str = "api_key";

/// How they are made.
pub(super) struct Accounts;

impl Kind for Accounts {
    type Table = VastTable;
    type Credentials = Secret;
    const OFFICIAL: Official = Official {
        base: vast::DEFAULT_ENDPOINT,
        variable: &env::GPUPROV_VAST_ENDPOINT,
        tails: &["/v0", "/v1", "/api"],
    };
    const LACKS: &'static str = "`api_key`";
    const UNASKED: bool = true;
    const FLAGS: &'static [&'static str] = &["--api-key"];
    const ASKED: &'static [&'static str] = &["--api-key"];

    fn tables(config: &Config) -> &CloudTables<VastTable> {
        &config.vast
    }

    fn find(look: &Look<'_>, account: &AccountId, warnings: &mut Vec<String>) -> Option<(Secret, Place)> {
        key(look, account, warnings)
    }

    fn given(_: &Look<'_>, given: &Given) -> Result<Option<(Secret, Place)>, AccountsError> {
        Ok(given.api_key.clone())
    }

    fn parts(key: &Secret) -> Option<Parts> {
        Some([(API_KEY.to_owned(), key.clone())].into())
    }

    fn restore(_: &Look<'_>, parts: &Parts) -> Result<Secret, String> {
        parts.get(API_KEY).cloned().ok_or_else(|| UNKNOWN_PARTS.to_owned())
    }

    fn secret(key: &Secret) -> Secret {
        key.clone()
    }

    fn hint(key: &Secret) -> String {
        key.hint()
    }

    fn cloud(
        look: &Look<'_>,
        setup: Setup,
        key: Secret,
        http: http::Client,
    ) -> Result<Arc<dyn Cloud>, AccountsError> {
        let table = look.config.vast.of(&setup.account);
        let usual = vast::Settings::new(key);
        let settings = vast::Settings {
            image: table.image.or_else(|| look.config.defaults.image.clone()),
            min_reliability: table.min_reliability.unwrap_or(usual.min_reliability),
            verified: table.verified.unwrap_or(usual.verified),
            datacenter: table.datacenter.unwrap_or(usual.datacenter),
            ..usual
        };
        Ok(Arc::new(Vast::new(setup, settings, http)))
    }
}

/// Finds the API key of a Vast account. Files that cannot be used are told in `warnings`.
fn key(look: &Look<'_>, account: &AccountId, warnings: &mut Vec<String>) -> Option<(Secret, Place)> {
    let default = *account == AccountId::default_of(account.cloud());
    if default && let Some(key) = look.env.get(&env::VAST_API_KEY) {
        let key = Secret::trimmed(key);
        if !key.is_empty() {
            return Some((key, Place::Variable(env::VAST_API_KEY.name)));
        }
    }
    let found = look.in_config(&look.config.vast, account, default, |table| table.api_key.as_ref());
    if found.is_some() || !default || look.only_environment {
        return found;
    }
    let home = look.paths.home.as_ref();
    let given = look.env.path(&env::XDG_CONFIG_HOME).filter(|path| path.is_absolute());
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
