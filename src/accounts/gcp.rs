//! The accounts at Google Cloud.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::AccountsError;
use super::gcp_parts::{self, Held};
use super::given::Given;
use super::kind::{Kind, Official};
use super::seal::Parts;
use super::sources::{Look, Place, open_to_others};
use super::store::Settings;
use crate::cloud::gcp::credentials::DEFAULT_FILE;
use crate::cloud::gcp::{self, Gcp};
use crate::cloud::{Cloud, Setup};
use crate::http;
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTables, Config, GcpTable, is_readable_by_others};
use crate::state::{env, regular};

/// How they are made.
pub(super) struct Accounts;

/// Credentials that were found.
pub(super) struct Found {
    /// What they are, and the project that pays; or why they cannot be used.
    read: Result<(Held, String), String>,
    /// Whether the project of the settings counts, not what else lies around.
    settled: bool,
}

impl Kind for Accounts {
    type Table = GcpTable;
    type Credentials = Found;
    const OFFICIAL: Official = Official {
        base: gcp::DEFAULT_ENDPOINT,
        variable: &env::GPUPROV_GCP_ENDPOINT,
        tails: &["/v1", "/compute"],
    };
    const LACKS: &'static str = "`credentials`";
    const UNASKED: bool = false;
    const FLAGS: &'static [&'static str] = &[
        "--credentials",
        "--project",
        "--service-account",
        "--workload-identity-provider",
        "--token-file",
        "--token-command",
        "--token-github",
        "--zones",
    ];

    fn tables(config: &Config) -> &CloudTables<GcpTable> {
        &config.gcp
    }

    fn find(look: &Look<'_>, account: &AccountId, warnings: &mut Vec<String>) -> Option<(Found, Place)> {
        let (path, place) = file(look, account)?;
        let (path, read) = match path {
            Ok(path) => {
                let read = read(look, account, &path);
                (Some(path), read)
            }
            Err(why) => (None, Err(why)),
        };
        if let Some(path) = path.filter(|path| read.is_ok() && is_readable_by_others(path)) {
            warnings.push(open_to_others(&path));
        }
        Some((Found { read, settled: false }, place))
    }

    fn unusable(found: &Found) -> Option<&str> {
        found.read.as_ref().err().map(String::as_str)
    }

    fn given(look: &Look<'_>, given: &Given) -> Result<Option<(Found, Place)>, AccountsError> {
        let Some((held, place)) = gcp_parts::given(look, given)? else { return Ok(None) };
        let project = given.project.clone().or_else(|| held.project()).unwrap_or_default();
        Ok(Some((Found { read: Ok((held, project.trim().to_owned())), settled: true }, place)))
    }

    fn parts(found: &Found) -> Option<Parts> {
        gcp_parts::apart(&found.read.as_ref().ok()?.0)
    }

    fn restore(look: &Look<'_>, parts: &Parts) -> Result<Found, String> {
        let held = gcp_parts::together(look, parts)?;
        let project = held.project().unwrap_or_default();
        Ok(Found { read: Ok((held, project)), settled: true })
    }

    fn settings(_: &Look<'_>, _: &AccountId, found: &Found) -> Settings {
        let project = found.read.as_ref().ok().map(|(_, project)| project.clone());
        Settings { project: project.filter(|project| !project.is_empty()), ..Settings::default() }
    }

    fn settle(found: Found) -> Found {
        Found { settled: true, ..found }
    }

    fn apply(settings: &Settings, account: &AccountId, config: &mut Config) {
        let own = config.gcp.accounts.remove(account.name()).unwrap_or_default();
        let kept = GcpTable {
            project: settings.project.clone(),
            zones: settings.zones.clone(),
            ..GcpTable::default()
        };
        config.gcp.accounts.insert(account.name().to_owned(), own.over(kept));
    }

    fn secret(found: &Found) -> Secret {
        found.read.as_ref().map_or_else(|_| Secret::new(String::new()), |(held, _)| held.whole())
    }

    fn hint(found: &Found) -> String {
        found.read.as_ref().map_or_else(|_| String::new(), |(held, _)| held.hint())
    }

    fn cloud(
        look: &Look<'_>,
        setup: Setup,
        found: Found,
        http: http::Client,
    ) -> Result<Arc<dyn Cloud>, AccountsError> {
        let wrong = |what| {
            let place = look.table(setup.account.cloud().as_str()).to_string();
            AccountsError::Setting { place, what }
        };
        let table = look.config.gcp.of(&setup.account);
        let words = table.zones.unwrap_or_default();
        let zones: Vec<String> = words
            .iter()
            .flat_map(|words| words.split(','))
            .map(|zone| zone.trim().to_owned())
            .filter(|zone| !zone.is_empty())
            .collect();
        if !zones.iter().all(|zone| gcp::is_zone(zone)) {
            return Err(wrong("`zones` must be a list of zones such as \"us-central1-a\""));
        }
        let network = table.network.unwrap_or_else(|| gcp::NETWORK.to_owned());
        if !gcp::is_network(&network) {
            return Err(wrong("`network` must be the name of a network, or its path in another project"));
        }
        let unused = |why: String| AccountsError::NotUsed {
            account: setup.account.clone(),
            place: "its credentials".to_owned(),
            why,
        };
        let (held, project) = found.read.map_err(unused)?;
        let settled = table.project.filter(|_| found.settled).map(|project| project.trim().to_owned());
        let project = settled.unwrap_or(project);
        if !gcp::is_project(&project) {
            return Err(unused(
                "they name no project, or one that is no project id; `--project` gives one".to_owned(),
            ));
        }
        let credentials = held.credentials(&setup.endpoint);
        let ssh_port = table.ssh_port.unwrap_or(gcp::SSH_PORT);
        let settings = gcp::Settings { credentials, project, zones, network, ssh_port };
        Ok(Arc::new(Gcp::new(setup, settings, http)))
    }
}

/// Finds the file with an account's credentials, or why its name is none: the variable, the config file, the file of
/// application default credentials.
fn file(look: &Look<'_>, account: &AccountId) -> Option<(Result<PathBuf, String>, Place)> {
    let default = *account == AccountId::default_of(account.cloud());
    if default && let Some(path) = look.env.path(&env::GOOGLE_APPLICATION_CREDENTIALS) {
        return Some((Ok(path), Place::Variable(env::GOOGLE_APPLICATION_CREDENTIALS.name)));
    }
    let named = look.in_config(&look.config.gcp, account, default, |table| table.credentials.as_ref());
    if let Some((text, place)) = named {
        let path = look.paths.resolve(&text, look.config.folder()).map_err(|error| error.to_string());
        return Some((path, place));
    }
    let home = look.paths.home.as_ref().filter(|_| default && !look.only_environment)?;
    let path = home.join(DEFAULT_FILE);
    path.exists().then(|| (Ok(path.clone()), Place::OwnFile(path)))
}

/// Reads a credentials file, and finds out the project.
fn read(look: &Look<'_>, account: &AccountId, path: &Path) -> Result<(Held, String), String> {
    let shown = path.display();
    let text = regular::read_text(path).map_err(|error| format!("`{shown}`: {error}"))?;
    let held =
        Held::file(look, Secret::new(text), path.parent()).map_err(|why| format!("`{shown}`: {why}"))?;
    let default = *account == AccountId::default_of(account.cloud());
    let variable = look.env.get(&env::GOOGLE_CLOUD_PROJECT).filter(|_| default).map(str::to_owned);
    let configured = look.in_config(&look.config.gcp, account, true, |table| table.project.as_ref());
    let project = variable.or(configured.map(|(project, _)| project));
    let project = project.map(|project| project.trim().to_owned()).filter(|project| !project.is_empty());
    let project = project.or_else(|| held.project());
    match project {
        Some(project) if gcp::is_project(&project) => Ok((held, project)),
        Some(_) => Err("the project is no project id, such as `my-project-123456`".to_owned()),
        None => Err(format!("`{shown}` names no project; set `project` in `[gcp]`, or GOOGLE_CLOUD_PROJECT")),
    }
}
