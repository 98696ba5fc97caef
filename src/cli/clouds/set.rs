//! `gpuprov clouds set`: connects an account, or replaces its credentials.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::view::Row;
use super::{log, rows_of, secret};
use crate::accounts::given::{TokenFrom, asked_for, candidate};
use crate::accounts::registry::{CLOUD_TIMEOUT, Connect, Connected};
use crate::accounts::{AccountsError, Candidate, Given, Store};
use crate::cli::context::{App, Waits};
use crate::cli::failure::{hint, refused, usage};
use crate::cli::lists::split;
use crate::cli::output::Output;
use crate::cloud::Identity;
use crate::model::account::{AccountFilter, AccountId};
use crate::model::secret::Secret;
use crate::provision::Context;
use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::within;
use crate::provision::holdings::{Held, Holdings, adopt, holdings, unproven};
use crate::state::regular;

/// Connects an account, or replaces its credentials
///
/// Without flags it looks in the usual places (variables, config file, files of the cloud's own tools), and on a terminal it
/// asks. The provider is asked before anything is kept; what is kept is sealed.
#[derive(Args, Clone, Debug)]
pub(super) struct Set {
    /// The cloud, or an account id
    #[arg(value_name = "CLOUD")]
    cloud: AccountFilter,
    /// The account's name: 1 to 30 lower-case letters, digits and dashes [default: default]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// RunPod, Vast: the API key; `-` reads it from standard input
    #[arg(long, value_name = "KEY|-", value_parser = secret::parse, allow_hyphen_values = true)]
    api_key: Option<Secret>,
    /// Verda: the client id
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Verda: the client secret; `-` reads it from standard input
    #[arg(long, value_name = "SECRET|-", value_parser = secret::parse, allow_hyphen_values = true)]
    client_secret: Option<Secret>,
    /// Google, Nebius: a credentials file; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Google: the project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Google: the service account that tokens from outside stand for
    #[arg(long, value_name = "EMAIL")]
    service_account: Option<String>,
    /// Google: the provider that trusts their issuer, `projects/N/locations/global/workloadIdentityPools/P/providers/Q`
    #[arg(long, value_name = "NAME")]
    workload_identity_provider: Option<String>,
    /// Nebius: the tenant
    #[arg(long, value_name = "TENANT")]
    tenant_id: Option<String>,
    /// Nebius: the service account that tokens from outside stand for
    #[arg(long, value_name = "ID")]
    service_account_id: Option<String>,
    /// Google, Nebius: tokens from outside are in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token_command", "token_github"])]
    token_file: Option<PathBuf>,
    /// Google, Nebius: tokens from outside are what this command prints
    #[arg(long, value_name = "COMMAND", conflicts_with = "token_github")]
    token_command: Option<String>,
    /// Google, Nebius: tokens from outside are those of the GitHub Actions job
    #[arg(long)]
    token_github: bool,
    /// Google: the zones that are asked
    #[arg(long, value_name = "LIST")]
    zones: Vec<String>,
    /// Nebius: the projects that are asked
    #[arg(long, value_name = "LIST")]
    projects: Vec<String>,
    /// Another base URL, which alone gets these credentials: https, or http to a loopback address
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Nebius: credentials may name a command that gives the token
    #[arg(long)]
    allow_command: bool,
    /// Keep the credentials without asking the provider
    #[arg(long)]
    no_check: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

impl Set {
    fn account(&self) -> Result<AccountId, Failure> {
        match (&self.cloud, &self.name) {
            (AccountFilter::Cloud(cloud), None) => Ok(AccountId::default_of(*cloud)),
            (AccountFilter::Cloud(cloud), Some(name)) => AccountId::new(*cloud, name).map_err(usage),
            (AccountFilter::Account(account), None) => Ok(account.clone()),
            (AccountFilter::Account(account), Some(name)) if account.name() == name => Ok(account.clone()),
            (AccountFilter::Account(account), Some(name)) => {
                Err(usage(format!("`{account}` and `--name {name}` are two accounts")))
            }
        }
    }

    async fn given(&self, app: &App) -> Result<Given, Failure> {
        let base = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let path = |path: &PathBuf| -> Result<PathBuf, Failure> {
            let text = path.to_str().ok_or_else(|| usage("a path is not UTF-8"))?;
            app.paths.resolve(text, &base).map_err(usage)
        };
        let mut given = Given {
            client_id: self.client_id.clone(),
            project: self.project.clone(),
            service_account: self.service_account.clone(),
            workload_identity_provider: self.workload_identity_provider.clone(),
            tenant: self.tenant_id.clone(),
            service_account_id: self.service_account_id.clone(),
            allow_command: self.allow_command,
            zones: split(&self.zones),
            projects: split(&self.projects),
            endpoint: self.endpoint.clone(),
            ..Given::default()
        };
        given.token = match (&self.token_file, &self.token_command, self.token_github) {
            (Some(file), ..) => Some(TokenFrom::File(path(file)?)),
            (_, Some(command), _) => Some(TokenFrom::Command(command.clone())),
            (.., true) => Some(TokenFrom::Github),
            _ => None,
        };
        if let Some(file) = &self.credentials {
            given.credentials = Some(match file.to_str() {
                Some("-") => {
                    let dash = Secret::trimmed("-");
                    let (text, _) = secret::given("--credentials", "credentials", &dash, &app.output).await?;
                    (PathBuf::from("standard input"), text)
                }
                _ => {
                    let file = path(file)?;
                    let text = regular::read_text(&file)
                        .map_err(|error| usage(format!("--credentials: `{}`: {error}", file.display())))?;
                    (file, Secret::new(text))
                }
            });
        }
        if let Some(value) = &self.api_key {
            given.api_key = Some(secret::given("--api-key", "API key", value, &app.output).await?);
        }
        if let Some(value) = &self.client_secret {
            given.client_secret =
                Some(secret::given("--client-secret", "client secret", value, &app.output).await?);
        } else if self.client_id.is_some() && Output::can_ask() {
            given.client_secret = Some(secret::asked("--client-secret", "client secret").await?);
        }
        Ok(given)
    }
}

pub(super) async fn run(command: &Set, app: &App, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let account = command.account()?;
    let mut given = command.given(app).await?;
    let mine = [AccountFilter::Account(account.clone())];
    let connected = app.connect_for_machines(Waits::default(), &mine)?;
    let mut warnings = Vec::new();
    let mut make = |given: &Given| {
        let timeout = app.config.wait.cloud_timeout.unwrap_or(CLOUD_TIMEOUT);
        candidate(request(app, &mine), timeout, &account, given, &mut warnings).map_err(of_given)
    };
    let mut found = make(&given)?;
    if found.is_none() && Output::can_ask() && ask(&account, &mut given, &app.output).await? {
        found = make(&given)?;
    }
    for warning in &warnings {
        app.output.warn(Kind::Note, None, None, warning);
    }
    let candidate = found.ok_or_else(|| nothing_found(&account))?;
    let Candidate { hint: shown, place, elsewhere, .. } = &candidate;
    let at = elsewhere.as_ref().map(|endpoint| format!(", to be asked at {endpoint}")).unwrap_or_default();
    app.output.progress(format!("{account}: credentials {shown} from {place}{at}"));
    let identity = match command.no_check {
        true => None,
        false => Some(check(app, &candidate).await?),
    };
    let known = identity.clone().unwrap_or_else(|| candidate.cloud.identity());

    let context = app.reading_context(&connected, Waits::default())?;
    let held = match &context {
        Some(context) => prove(app, context, &connected, &candidate, &known, command.no_check).await?,
        None => Vec::new(),
    };
    tell_twins(app, &connected, &account, &known, command.no_check).await;

    let store = Store::open(&app.paths.data).map_err(refused)?;
    let before = store.read(&account);
    let again = before.is_some();
    let mut stored = candidate.stored(identity, Timestamp::now());
    if let Some(Ok(before)) = before {
        stored.settings = stored.settings.over(before.settings);
    }
    store.write(&stored).map_err(refused)?;
    log(app, "clouds set", &account, if again { "replaced" } else { "connected" });
    for name in context.iter().flat_map(|context| adopt(context, &held, &known)) {
        let text = "another command works on it; its account is proven once more when it is removed";
        app.output.warn(Kind::Note, Some(&account), Some(&name), &format!("`{name}`: {text}"));
    }
    let checked = if command.no_check { "not checked" } else { "checked" };
    app.output.progress(format!("{account} is connected, {checked}, and kept sealed"));
    app.output.line(&account);
    *rows = rows_of(app, &[account]);
    Ok(())
}

fn request<'a>(app: &'a App, named: &'a [AccountFilter]) -> Connect<'a> {
    Connect {
        env: &app.env,
        config: &app.config,
        paths: &app.paths,
        cloud_timeout: None,
        boot_timeout: None,
        only_environment: app.in_sandbox,
        named,
        recorded: &[],
        read_only: false,
    }
}

/// What is wrong with what was given is wrong usage; what is wrong with this computer is a refusal.
fn of_given(error: AccountsError) -> Failure {
    match error {
        AccountsError::Flag { .. } | AccountsError::Given(_) | AccountsError::Endpoint { .. } => usage(error),
        other => refused(other),
    }
}

/// Asks a terminal for what is missing; returns whether there was anything to ask for.
async fn ask(account: &AccountId, given: &mut Given, output: &Output) -> Result<bool, Failure> {
    let flags = asked_for(account.cloud());
    for flag in flags {
        match *flag {
            "--api-key" => given.api_key = Some(secret::asked(flag, "API key").await?),
            "--client-id" => given.client_id = Some(secret::asked_openly("client id", output).await?),
            "--client-secret" => given.client_secret = Some(secret::asked(flag, "client secret").await?),
            _ => {}
        }
    }
    Ok(!flags.is_empty())
}

fn nothing_found(account: &AccountId) -> Failure {
    let cloud = account.cloud();
    let failure = Failure::new(
        Kind::NoAccount,
        format!("no credentials of {} were given, and none lie in the usual places", cloud.title()),
    );
    failure.hint(match asked_for(cloud) {
        [] => "give them with a flag; `gpuprov clouds set --help` names them".to_owned(),
        flags => format!("give them with {}; `-` reads a secret from standard input", flags.join(" and ")),
    })
}

/// Asks the provider who the credentials are.
async fn check(app: &App, candidate: &Candidate) -> Result<Identity, Failure> {
    let timeout = app.config.wait.cloud_timeout.unwrap_or(CLOUD_TIMEOUT);
    let asked = candidate.cloud.check();
    within(timeout, &candidate.cloud, "checking the credentials", asked).await.map_err(|error| {
        let failure = Failure::from(error.as_ref());
        let more = failure
            .hint
            .clone()
            .or_else(|| hint(&failure))
            .map(|hint| format!("{hint}; "))
            .unwrap_or_default();
        Failure::new(failure.kind, format!("{}; nothing was kept", failure.message))
            .hint(format!("{more}`--no-check` keeps them without asking"))
    })
}

/// Makes sure that what the account holds stays in reach: returns it if it is proven to be the new credentials' too.
async fn prove(
    app: &App,
    context: &Context,
    connected: &Connected,
    candidate: &Candidate,
    identity: &Identity,
    no_check: bool,
) -> Result<Vec<Held>, Failure> {
    let account = candidate.account();
    let old = connected.get(account).map(|account| Arc::clone(&account.cloud));
    let unchanged = old.as_ref().is_some_and(|old| old.identity().is_same(identity));
    let ask_old = old.as_ref().filter(|_| !no_check && !unchanged);
    let Holdings { held, unreadable, unlisted } =
        holdings(context, account, ask_old).await.map_err(refused)?;
    if !unreadable.is_empty() {
        let text = format!(
            "records cannot be read ({}); what they speak of may be in any account",
            unreadable.join(", ")
        );
        app.output.warn(Kind::Note, Some(account), None, &text);
    }
    let left = unproven(context, &held, &candidate.cloud, identity, !no_check).await;
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|held| held.shown.as_str()).collect();
        let why = if no_check { " without asking the provider" } else { "" };
        let failure = refused(format!(
            "{account} has machines: {}; the new credentials are not proven to be the same account at {}{why}, and without \
             the old ones nobody could remove them; nothing was changed",
            names.join(", "),
            account.cloud().title()
        ));
        return Err(failure.hint("remove them first, or connect the other account under another `--name`"));
    }
    // Old credentials that are refused cannot show anything any more, and are what is to be replaced.
    if let Some(error) = unlisted
        && held.is_empty()
    {
        let text = format!(
            "the credentials so far could not tell whether the account has machines that are not recorded here: {}",
            error.message
        );
        app.output.warn(Kind::Note, Some(account), None, &text);
    }
    Ok(held)
}

/// Says which other accounts are the same one at the provider.
async fn tell_twins(
    app: &App,
    connected: &Connected,
    account: &AccountId,
    identity: &Identity,
    no_check: bool,
) {
    let timeout: Duration = app.config.wait.cloud_timeout.unwrap_or(CLOUD_TIMEOUT);
    let others = connected
        .accounts
        .iter()
        .filter(|other| other.id().cloud() == account.cloud() && other.id() != account);
    let asked = others.map(async |other| {
        let known = other.identity();
        let tells = identity.provider.is_some() && known.provider.is_none();
        let same = known.is_same(identity)
            || tells
                && !no_check
                && within(timeout, &other.cloud, "checking the account", other.cloud.check())
                    .await
                    .is_ok_and(|known| known.is_same(identity));
        same.then(|| other.id().to_string())
    });
    let twins: Vec<String> = futures_util::future::join_all(asked).await.into_iter().flatten().collect();
    if !twins.is_empty() {
        let text = format!(
            "the same account at {} as {}; each keeps its own machines and never touches the other's",
            account.cloud().title(),
            twins.join(", ")
        );
        app.output.warn(Kind::Note, Some(account), None, &text);
    }
}
