//! The five clouds: the only place that matches on all of them.

use std::sync::Arc;
use std::time::Duration;

use super::endpoint::Endpoint;
use super::error::AccountsError;
use super::identity::Marker;
use super::sources::{Look, Place, account_table, open_to_others};
use crate::cloud::runpod::{self, RunPod, Tier};
use crate::cloud::vast::{self, Vast};
use crate::cloud::verda::{self, Verda};
use crate::cloud::{Cloud, Setup};
use crate::http;
use crate::model::account::{AccountFilter, AccountId, CloudKind};
use crate::model::secret::Secret;
use crate::state::config::{CloudTable, CloudTables, Config};
use crate::state::env::{self, Env, Variable};
use crate::state::paths::Paths;

/// How long one account may take to answer by default.
pub const CLOUD_TIMEOUT: Duration = Duration::from_secs(15);

/// What accounts are made from.
#[derive(Clone, Copy, Debug)]
pub struct Connect<'a> {
    /// The environment.
    pub env: &'a Env,
    /// The config file.
    pub config: &'a Config,
    /// The places on this computer.
    pub paths: &'a Paths,
    /// `--cloud-timeout`; wins over `[wait] cloud_timeout`, and that over [`CLOUD_TIMEOUT`].
    pub cloud_timeout: Option<Duration>,
    /// `--boot-timeout`; wins over `[wait] boot_timeout`.
    pub boot_timeout: Option<Duration>,
    /// Whether credentials and endpoints are taken from the environment alone (the sandbox).
    pub only_environment: bool,
    /// Whether nothing may be written, not even a missing key for identity marks, which may then be passing ones.
    pub read_only: bool,
}

/// One connected account.
#[derive(Clone, Debug)]
pub struct Account {
    /// The account.
    pub cloud: Arc<dyn Cloud>,
    /// Where its credentials are: a variable, a table, a file.
    pub source: String,
    /// What tells its credentials apart for people.
    pub hint: String,
    /// Its endpoint, if that is not the cloud's own: every command says so.
    pub elsewhere: Option<String>,
    /// Whether it is asked for GPU machines.
    pub gpu: bool,
    /// Whether it is asked for machines without a GPU.
    pub cpu: bool,
}

impl Account {
    /// Returns the account's id.
    pub fn id(&self) -> &AccountId {
        self.cloud.account()
    }
}

/// Credentials or settings that were found and not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundNotUsed {
    /// Of which account.
    pub account: AccountId,
    /// Where they are.
    pub source: String,
    /// Why they are not used, for people.
    pub why: String,
}

/// All accounts of this computer's user.
#[derive(Clone, Debug, Default)]
pub struct Connected {
    /// The accounts, by cloud, `default` first.
    pub accounts: Vec<Account>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What was found and not used.
    pub found_not_used: Vec<FoundNotUsed>,
    /// Why the accounts cannot be told to be those of the records: the identity key cannot be kept or read. Nothing may be
    /// made then.
    pub unproven: Option<String>,
    /// The client that all of them ask with.
    pub http: Option<http::Client>,
}

impl Connected {
    /// Returns the accounts that any of the filters lets through; all for no filters. A filter that lets none through is an
    /// error: it names a cloud that this version does not have, or an account that is not connected.
    pub fn select(&self, filters: &[AccountFilter]) -> Result<Vec<&Account>, AccountsError> {
        for filter in filters {
            if !is_in_this_version(filter.cloud()) {
                return Err(AccountsError::NotYet(filter.cloud()));
            }
            if !self.accounts.iter().any(|account| filter.admits(account.id())) {
                return Err(AccountsError::NotConnected(filter.clone()));
            }
        }
        let admitted = |account: &&Account| {
            filters.is_empty() || filters.iter().any(|filter| filter.admits(account.id()))
        };
        Ok(self.accounts.iter().filter(admitted).collect())
    }

    /// Returns the account of this id.
    pub fn get(&self, id: &AccountId) -> Option<&Account> {
        self.accounts.iter().find(|account| account.id() == id)
    }
}

/// Whether this version has the cloud.
pub fn is_in_this_version(cloud: CloudKind) -> bool {
    match cloud {
        CloudKind::Runpod | CloudKind::Vast | CloudKind::Verda => true,
        CloudKind::Gcp | CloudKind::Nebius => false,
    }
}

/// Makes all accounts whose credentials can be found. Nothing is asked; the only file that may be written is the key for
/// identity marks, when there is an account and no key yet.
pub fn connect(request: Connect<'_>) -> Result<Connected, AccountsError> {
    let Connect { env, config, paths, only_environment, .. } = request;
    let timeout = request.cloud_timeout.or(config.wait.cloud_timeout).unwrap_or(CLOUD_TIMEOUT);
    let mut work = Work {
        look: Look { env, config, paths, only_environment },
        timeout,
        boot_timeout: request.boot_timeout.or(config.wait.boot_timeout),
        read_only: request.read_only,
        http: http::Client::new(http::ClientOptions { timeout, ..http::ClientOptions::default() }),
        marker: None,
        connected: Connected::default(),
    };
    if !only_environment && config.readable_by_others && config.has_secret() {
        work.connected.warnings.push(open_to_others(&config.path));
    }
    for cloud in CloudKind::ALL {
        match cloud {
            CloudKind::Gcp => work.not_yet(
                &config.gcp,
                |table| table.credentials.is_some(),
                &[&env::GOOGLE_APPLICATION_CREDENTIALS],
            ),
            CloudKind::Nebius => work.not_yet(
                &config.nebius,
                |table| table.credentials.is_some() || table.token_file.is_some(),
                &[&env::NEBIUS_IAM_TOKEN],
            ),
            CloudKind::Runpod => work.runpod()?,
            CloudKind::Vast => work.vast()?,
            CloudKind::Verda => work.verda()?,
        }
    }
    work.connected.http = Some(work.http);
    Ok(work.connected)
}

/// Returns the accounts that may be connected: those of this version's clouds, and those with a table in the config file.
/// No credential is looked for.
pub fn names_in(config: &Config) -> Vec<AccountId> {
    fn of<T: CloudTable>(tables: &CloudTables<T>) -> Vec<AccountId> {
        let default = AccountId::default_of(T::CLOUD);
        let named = tables.accounts.keys().filter_map(|name| AccountId::new(T::CLOUD, name).ok());
        let named = named.filter(|account| *account != default);
        std::iter::once(default.clone())
            .chain(named)
            .filter(|account| is_in_this_version(account.cloud()))
            .collect()
    }
    CloudKind::ALL
        .into_iter()
        .flat_map(|cloud| match cloud {
            CloudKind::Gcp => of(&config.gcp),
            CloudKind::Nebius => of(&config.nebius),
            CloudKind::Runpod => of(&config.runpod),
            CloudKind::Vast => of(&config.vast),
            CloudKind::Verda => of(&config.verda),
        })
        .collect()
}

struct Work<'a> {
    look: Look<'a>,
    timeout: Duration,
    boot_timeout: Option<Duration>,
    read_only: bool,
    http: http::Client,
    marker: Option<Marker>,
    connected: Connected,
}

impl Work<'_> {
    fn runpod(&mut self) -> Result<(), AccountsError> {
        let tables = &self.look.config.runpod;
        for account in self.accounts_of(tables) {
            let Some((key, place)) = self.look.runpod_key(&account, &mut self.connected.warnings) else {
                self.lacks(account, "`api_key`");
                continue;
            };
            let endpoint = self.endpoint(
                &account,
                tables,
                |table| table.endpoint.as_ref(),
                &env::GPUPROV_RUNPOD_ENDPOINT,
                runpod::DEFAULT_ENDPOINT,
                &["/v2"],
            )?;
            endpoint.admit(&account, &place)?;
            let settings = self.runpod_settings(&account, key.clone())?;
            let mark = self.secret_mark(&key)?;
            let cloud = RunPod::new(self.setup(account, &endpoint, mark), settings, self.http.clone());
            self.add(Arc::new(cloud), &place, key.hint(), &endpoint);
        }
        Ok(())
    }

    /// Notes that an account which the config file names has no credentials there; a `default` that nobody set up is no news.
    fn lacks(&mut self, account: AccountId, what: &str) {
        if account.name() != "default" {
            let table = self.look.table(account_table(&account));
            self.not_used(account, &table, format!("it has no {what}"));
        }
    }

    fn runpod_settings(&self, account: &AccountId, key: Secret) -> Result<runpod::Settings, AccountsError> {
        let config = self.look.config;
        let table = config.runpod.of(account);
        let tiers = match table.tiers {
            None => Tier::ALL.to_vec(),
            Some(words) => {
                let tiers = words.iter().flat_map(|words| words.split(',')).map(|word| word.trim().parse());
                let tiers: Result<Vec<Tier>, _> = tiers.collect();
                tiers.ok().filter(|tiers| !tiers.is_empty()).ok_or_else(|| AccountsError::Setting {
                    place: self.look.table(account.cloud().as_str()).to_string(),
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

    fn verda(&mut self) -> Result<(), AccountsError> {
        let tables = &self.look.config.verda;
        for account in self.accounts_of(tables) {
            let found = self.look.verda_credentials(&account, &mut self.connected.warnings);
            let Some((credentials, place)) = found else {
                self.lacks(account, "`client_id` and `client_secret`");
                continue;
            };
            let endpoint = self.endpoint(
                &account,
                tables,
                |table| table.endpoint.as_ref(),
                &env::GPUPROV_VERDA_ENDPOINT,
                verda::DEFAULT_ENDPOINT,
                &["/v1"],
            )?;
            endpoint.admit(&account, &place)?;
            let mark = self.secret_mark(&credentials.whole())?;
            let hint = credentials.hint();
            let settings = verda::Settings {
                credentials,
                ssh_port: tables.of(&account).ssh_port.unwrap_or(verda::SSH_PORT),
            };
            let cloud = Verda::new(self.setup(account, &endpoint, mark), settings, self.http.clone());
            self.add(Arc::new(cloud), &place, hint, &endpoint);
        }
        Ok(())
    }

    fn vast(&mut self) -> Result<(), AccountsError> {
        let tables = &self.look.config.vast;
        for account in self.accounts_of(tables) {
            let Some((key, place)) = self.look.vast_key(&account, &mut self.connected.warnings) else {
                self.lacks(account, "`api_key`");
                continue;
            };
            let endpoint = self.endpoint(
                &account,
                tables,
                |table| table.endpoint.as_ref(),
                &env::GPUPROV_VAST_ENDPOINT,
                vast::DEFAULT_ENDPOINT,
                &["/v0", "/v1", "/api"],
            )?;
            endpoint.admit(&account, &place)?;
            let table = self.look.config.vast.of(&account);
            let usual = vast::Settings::new(key.clone());
            let settings = vast::Settings {
                image: table.image.or_else(|| self.look.config.defaults.image.clone()),
                min_reliability: table.min_reliability.unwrap_or(usual.min_reliability),
                verified: table.verified.unwrap_or(usual.verified),
                datacenter: table.datacenter.unwrap_or(usual.datacenter),
                ..usual
            };
            let mark = self.secret_mark(&key)?;
            let cloud = Vast::new(self.setup(account, &endpoint, mark), settings, self.http.clone());
            self.add(Arc::new(cloud), &place, key.hint(), &endpoint);
        }
        Ok(())
    }

    /// A cloud that this version does not have: what the user has for it is told, not used.
    fn not_yet<T: CloudTable>(
        &mut self,
        tables: &CloudTables<T>,
        has_credentials: impl Fn(&T) -> bool,
        variables: &[&Variable],
    ) {
        let why = || AccountsError::NotYet(T::CLOUD).to_string();
        let default = AccountId::default_of(T::CLOUD);
        for variable in variables {
            if self.look.env.path(variable).is_some() {
                self.not_used(default.clone(), &Place::Variable(variable.name), why());
            }
        }
        if self.look.only_environment {
            return;
        }
        if tables.table.as_ref().is_some_and(&has_credentials) {
            self.not_used(default, &self.look.table(T::CLOUD.as_str()), why());
        }
        for (name, table) in &tables.accounts {
            if let Some(account) = AccountId::new(T::CLOUD, name).ok().filter(|_| has_credentials(table)) {
                let place = self.look.table(account_table(&account));
                self.not_used(account, &place, why());
            }
        }
    }

    /// The accounts that may have credentials: `default`, and those with a table of their own.
    fn accounts_of<T: CloudTable>(&self, tables: &CloudTables<T>) -> Vec<AccountId> {
        let mut accounts = vec![AccountId::default_of(T::CLOUD)];
        if !self.look.only_environment {
            let named = tables.accounts.keys().filter(|name| *name != "default");
            accounts.extend(named.filter_map(|name| AccountId::new(T::CLOUD, name).ok()));
        }
        accounts
    }

    /// The endpoint of an account: the variable wins over the account's table, and that over the cloud's.
    fn endpoint<T: CloudTable>(
        &self,
        account: &AccountId,
        tables: &CloudTables<T>,
        pick: impl Fn(&T) -> Option<&String>,
        variable: &Variable,
        official: &str,
        tails: &[&str],
    ) -> Result<Endpoint, AccountsError> {
        let given = self.look.env.get(variable).map(|text| (text.to_owned(), Place::Variable(variable.name)));
        match given.or_else(|| self.look.in_config(tables, account, true, pick)) {
            Some((text, place)) => Endpoint::parse(&text, place, official, tails),
            None => Ok(Endpoint::official(official)),
        }
    }

    fn setup(&self, account: AccountId, endpoint: &Endpoint, secret_mark: String) -> Setup {
        let wait = &self.look.config.wait;
        Setup {
            account,
            endpoint: endpoint.base.clone(),
            loopback: endpoint.loopback,
            timeout: self.timeout,
            secret_mark,
            cache: Some(self.look.paths.cache.clone()),
            grace: wait.grace,
            poll: wait.poll,
            boot_timeout: self.boot_timeout,
        }
    }

    fn secret_mark(&mut self, secret: &Secret) -> Result<String, AccountsError> {
        let marker = match self.marker.take() {
            Some(marker) => marker,
            None => {
                let data = &self.look.paths.data;
                let opened = if self.read_only { Marker::known(data) } else { Marker::open(data) };
                // Whoever only looks or removes must not be held up: machines are told by their marks as well.
                opened.or_else(|error| {
                    let why = error.to_string();
                    let text = format!("{why}; who pays for recorded machines cannot be told meanwhile");
                    self.connected.warnings.push(text);
                    self.connected.unproven = Some(why);
                    Marker::passing()
                })?
            }
        };
        let mark = marker.secret_mark(secret);
        self.marker = Some(marker);
        Ok(mark)
    }

    fn add(&mut self, cloud: Arc<dyn Cloud>, place: &Place, hint: String, endpoint: &Endpoint) {
        self.connected.accounts.push(Account {
            cloud,
            source: place.to_string(),
            hint,
            elsewhere: endpoint.elsewhere(),
            gpu: true,
            cpu: true,
        });
    }

    fn not_used(&mut self, account: AccountId, place: &Place, why: String) {
        self.connected.found_not_used.push(FoundNotUsed { account, source: place.to_string(), why });
    }
}
