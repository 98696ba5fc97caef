//! The five clouds: the only place that matches on all of them.

use std::sync::Arc;
use std::time::Duration;

use super::error::AccountsError;
use super::maker::Maker;
use super::sources::open_to_others;
use super::{gcp, nebius, runpod, vast, verda};
use crate::cloud::{Cloud, Identity};
use crate::http;
use crate::model::account::{AccountFilter, AccountId, CloudKind};
use crate::state::config::{CloudTable, CloudTables, Config};
use crate::state::env::Env;
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
    /// What `--cloud` or the configuration names: accounts whose credentials merely lie around are used only then, or when
    /// they have a table, an endpoint, or a machine.
    pub named: &'a [AccountFilter],
    /// The accounts of the machines that the command is about.
    pub recorded: &'a [AccountId],
    /// Whether nothing may be written, not even a missing key for identity marks, which may then be passing ones.
    pub read_only: bool,
}

/// One connected account.
#[derive(Clone, Debug)]
pub struct Account {
    /// The account.
    pub cloud: Arc<dyn Cloud>,
    /// Whether it was connected with `clouds set`.
    pub connected: bool,
    /// Where its credentials are: a variable, a table, a file, or sealed.
    pub source: String,
    /// What tells its credentials apart for people.
    pub hint: String,
    /// The cloud's own id of the account, where it was asked for when the account was connected.
    pub provider: Option<String>,
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

    /// Returns who its credentials are, as far as it is known without a request.
    pub fn identity(&self) -> Identity {
        let identity = self.cloud.identity();
        Identity { provider: identity.provider.or_else(|| self.provider.clone()), ..identity }
    }
}

/// Credentials or settings that were found and not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundNotUsed {
    /// Of which account.
    pub account: AccountId,
    /// Whether it was connected with `clouds set`, and cannot be opened.
    pub connected: bool,
    /// Where they are.
    pub source: String,
    /// What tells the credentials apart for people, if there are any.
    pub hint: Option<String>,
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
    /// Why it cannot be told which accounts are switched off. Nothing may be bought then.
    pub unswitched: Option<String>,
    /// The client that all of them ask with.
    pub http: Option<http::Client>,
}

impl Connected {
    /// Returns the accounts that any of the filters lets through; all for no filters. A filter that lets none through is an
    /// error: it names an account that is not connected.
    pub fn select(&self, filters: &[AccountFilter]) -> Result<Vec<&Account>, AccountsError> {
        for filter in filters {
            if !self.accounts.iter().any(|account| filter.admits(account.id())) {
                let found = self.found_not_used.iter().find(|found| filter.admits(&found.account));
                return Err(match found {
                    Some(FoundNotUsed { account, source, why, .. }) => AccountsError::NotUsed {
                        account: account.clone(),
                        place: source.clone(),
                        why: why.clone(),
                    },
                    None => AccountsError::NotConnected(filter.clone()),
                });
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

/// Makes all accounts whose credentials can be found. Nothing is asked; the only file that may be written is the key for
/// identity marks, when there is an account and no key yet.
pub fn connect(request: Connect<'_>) -> Result<Connected, AccountsError> {
    let Connect { config, only_environment, .. } = request;
    let timeout = request.cloud_timeout.or(config.wait.cloud_timeout).unwrap_or(CLOUD_TIMEOUT);
    let mut maker = Maker::new(request, timeout);
    if !only_environment && config.readable_by_others && config.has_secret() {
        maker.warn(open_to_others(&config.path));
    }
    for cloud in CloudKind::ALL {
        match cloud {
            CloudKind::Gcp => maker.all::<gcp::Accounts>()?,
            CloudKind::Nebius => maker.all::<nebius::Accounts>()?,
            CloudKind::Runpod => maker.all::<runpod::Accounts>()?,
            CloudKind::Vast => maker.all::<vast::Accounts>()?,
            CloudKind::Verda => maker.all::<verda::Accounts>()?,
        }
    }
    Ok(maker.done())
}

/// Returns the accounts that may be connected: one of each cloud, and those with a table in the config file.
/// No credential is looked for.
pub fn names_in(config: &Config) -> Vec<AccountId> {
    fn of<T: CloudTable>(tables: &CloudTables<T>) -> Vec<AccountId> {
        let default = AccountId::default_of(T::CLOUD);
        let named = tables.accounts.keys().filter_map(|name| AccountId::new(T::CLOUD, name).ok());
        let named = named.filter(|account| *account != default);
        std::iter::once(default.clone()).chain(named).collect()
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
