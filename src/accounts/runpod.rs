//! The accounts at RunPod.

use std::sync::Arc;

use super::error::AccountsError;
use super::given::Given;
use super::kind::{Kind, Official, UNKNOWN_PARTS};
use super::seal::Parts;
use super::sources::{Look, Place, own, read_own};
use crate::cloud::runpod::{self, RunPod, Tier};
use crate::cloud::{Cloud, Setup};
use crate::http;
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTables, Config, RunpodTable};
use crate::state::env;

/// What the key is called where it is sealed. A stored format.
const API_KEY: &str = "api_key";

/// How they are made.
pub(super) struct Accounts;

impl Kind for Accounts {
    type Table = RunpodTable;
    type Credentials = Secret;
    const OFFICIAL: Official =
        Official { base: runpod::DEFAULT_ENDPOINT, variable: &env::GPUPROV_RUNPOD_ENDPOINT, tails: &["/v2"] };
    const LACKS: &'static str = "`api_key`";
    const UNASKED: bool = true;
    const FLAGS: &'static [&'static str] = &["--api-key"];
    const ASKED: &'static [&'static str] = &["--api-key"];

    fn tables(config: &Config) -> &CloudTables<RunpodTable> {
        &config.runpod
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
        let settings = settings(look, &setup.account, key)?;
        Ok(Arc::new(RunPod::new(setup, settings, http)))
    }
}

/// Finds the API key of a RunPod account. Files that cannot be used are told in `warnings`.
fn key(look: &Look<'_>, account: &AccountId, warnings: &mut Vec<String>) -> Option<(Secret, Place)> {
    let default = *account == AccountId::default_of(account.cloud());
    if default && let Some(key) = look.env.get(&env::RUNPOD_API_KEY) {
        let key = Secret::trimmed(key);
        if !key.is_empty() {
            return Some((key, Place::Variable(env::RUNPOD_API_KEY.name)));
        }
    }
    if let Some(found) = look.in_config(&look.config.runpod, account, default, |table| table.api_key.as_ref())
    {
        return Some(found);
    }
    if !default || look.only_environment {
        return None;
    }
    let path = look.paths.home.as_ref()?.join(runpod::credentials::OWN_FILE);
    let key = read_own(&path, warnings).and_then(|text| {
        runpod::credentials::key_in_own_file(&text).unwrap_or_else(|error| {
            warnings.push(format!("`{}` is not used: {error}", path.display()));
            None
        })
    });
    key.map(|key| own(key, path, warnings))
}

fn settings(look: &Look<'_>, account: &AccountId, key: Secret) -> Result<runpod::Settings, AccountsError> {
    let config = look.config;
    let table = config.runpod.of(account);
    let tiers = match table.tiers {
        None => Tier::ALL.to_vec(),
        Some(words) => {
            let tiers = words.iter().flat_map(|words| words.split(',')).map(|word| word.trim().parse());
            let tiers: Result<Vec<Tier>, _> = tiers.collect();
            tiers.ok().filter(|tiers| !tiers.is_empty()).ok_or_else(|| AccountsError::Setting {
                place: look.table(account.cloud().as_str()).to_string(),
                what: "`tiers` must be a list of \"secure\" and \"community\"",
            })?
        }
    };
    Ok(runpod::Settings {
        key,
        image: table.image.or_else(|| config.defaults.image.clone()),
        tiers,
        account_keys: table.account_keys.unwrap_or(true),
    })
}
