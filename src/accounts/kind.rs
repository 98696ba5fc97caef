//! What the making of an account is like at every cloud, and what each cloud adds to it.

use std::sync::Arc;
use std::time::Duration;

use super::endpoint::Endpoint;
use super::error::AccountsError;
use super::identity::Marker;
use super::registry::{Account, Connect, Connected, FoundNotUsed};
use super::sources::{Look, Place, account_table};
use crate::cloud::{Cloud, Setup};
use crate::http;
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTable, CloudTables, Config};
use crate::state::env::Variable;

/// What one cloud adds: where its credentials are, and how an account is made of them.
pub(super) trait Kind {
    /// The cloud's table in the config file.
    type Table: CloudTable;
    /// What lets an account in.
    type Credentials;
    /// Where the cloud is asked.
    const OFFICIAL: Official;
    /// What a table of the config file lacks that makes no account.
    const LACKS: &'static str;
    /// Whether credentials are used that merely lie around: an environment variable or a file of other tools that nobody set
    /// up for gpuprov.
    const UNASKED: bool;

    /// Picks the cloud's tables.
    fn tables(config: &Config) -> &CloudTables<Self::Table>;

    /// Looks for the credentials of an account, and says where they are. What is there and cannot be used is told in
    /// `warnings`.
    fn find(
        look: &Look<'_>,
        account: &AccountId,
        warnings: &mut Vec<String>,
    ) -> Option<(Self::Credentials, Place)>;

    /// Returns why credentials that were found cannot be used; they are then told as found and not used.
    fn unusable(_credentials: &Self::Credentials) -> Option<&str> {
        None
    }

    /// Returns the long-lived part of the credentials, which tells accounts apart.
    fn secret(credentials: &Self::Credentials) -> Secret;

    /// Returns what tells the credentials apart for people, without being secret.
    fn hint(credentials: &Self::Credentials) -> String;

    /// Makes the account with its settings. No request.
    fn cloud(
        look: &Look<'_>,
        setup: Setup,
        credentials: Self::Credentials,
        http: http::Client,
    ) -> Result<Arc<dyn Cloud>, AccountsError>;
}

/// A cloud's own address, and the variable that names another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Official {
    /// Where it answers, without a slash at the end.
    pub(super) base: &'static str,
    /// The variable.
    pub(super) variable: &'static Variable,
    /// What belongs to the paths below the base but is often copied with it.
    pub(super) tails: &'static [&'static str],
}

/// Makes the accounts of one cloud after the other.
pub(super) struct Maker<'a> {
    look: Look<'a>,
    request: Connect<'a>,
    timeout: Duration,
    http: http::Client,
    marker: Option<Marker>,
    connected: Connected,
}

impl<'a> Maker<'a> {
    /// Returns one with no account yet.
    pub(super) fn new(request: Connect<'a>, timeout: Duration) -> Self {
        let Connect { env, config, paths, only_environment, .. } = request;
        Maker {
            look: Look { env, config, paths, only_environment },
            request,
            timeout,
            http: http::Client::new(http::ClientOptions { timeout, ..http::ClientOptions::default() }),
            marker: None,
            connected: Connected::default(),
        }
    }

    /// Notes what the user should know.
    pub(super) fn warn(&mut self, warning: String) {
        self.connected.warnings.push(warning);
    }

    /// Returns what was made.
    pub(super) fn done(self) -> Connected {
        Connected { http: Some(self.http), ..self.connected }
    }

    /// Makes all accounts of a cloud whose credentials can be found.
    pub(super) fn all<K: Kind>(&mut self) -> Result<(), AccountsError> {
        let tables = K::tables(self.look.config);
        for account in self.accounts_of(tables) {
            let found = K::find(&self.look, &account, &mut self.connected.warnings);
            let Some((credentials, place)) = found else {
                // A `default` that nobody set up is no news.
                if account.name() != "default" {
                    let table = self.look.table(account_table(&account));
                    self.not_used(account, &table, format!("it has no {}", K::LACKS));
                }
                continue;
            };
            if let Some(why) = K::unusable(&credentials) {
                self.not_used(account, &place, why.to_owned());
                continue;
            }
            if !self.is_used::<K>(&account) {
                let cloud = account.cloud();
                let why = format!("nobody asked for it; `--cloud {cloud}` or a table `[{cloud}]` does");
                self.not_used(account, &place, why);
                continue;
            }
            let endpoint = self.endpoint::<K>(&account)?;
            endpoint.admit(&account, &place)?;
            let mark = self.secret_mark(&K::secret(&credentials))?;
            let hint = K::hint(&credentials);
            let setup = self.setup(account, &endpoint, mark);
            let cloud = K::cloud(&self.look, setup, credentials, self.http.clone())?;
            self.connected.accounts.push(Account {
                cloud,
                source: place.to_string(),
                hint,
                elsewhere: endpoint.elsewhere(),
                gpu: true,
                cpu: true,
            });
        }
        Ok(())
    }

    /// Whether credentials that were found are used: always at most clouds; where other tools leave theirs around, only if
    /// somebody set them up for gpuprov or asks for the account.
    fn is_used<K: Kind>(&self, account: &AccountId) -> bool {
        K::UNASKED
            || K::tables(self.look.config).is_named()
            || self.look.env.get(K::OFFICIAL.variable).is_some()
            || self.request.named.iter().any(|filter| filter.admits(account))
            || self.request.recorded.contains(account)
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
    fn endpoint<K: Kind>(&self, account: &AccountId) -> Result<Endpoint, AccountsError> {
        let Official { base, variable, tails } = K::OFFICIAL;
        let given = self.look.env.get(variable).map(|text| (text.to_owned(), Place::Variable(variable.name)));
        let tables = K::tables(self.look.config);
        match given.or_else(|| self.look.in_config(tables, account, true, K::Table::endpoint)) {
            Some((text, place)) => Endpoint::parse(&text, place, base, tails),
            None => Ok(Endpoint::official(base)),
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
            boot_timeout: self.request.boot_timeout.or(wait.boot_timeout),
        }
    }

    fn secret_mark(&mut self, secret: &Secret) -> Result<String, AccountsError> {
        let marker = match self.marker.take() {
            Some(marker) => marker,
            None => {
                let data = &self.look.paths.data;
                let opened = if self.request.read_only { Marker::known(data) } else { Marker::open(data) };
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

    fn not_used(&mut self, account: AccountId, place: &Place, why: String) {
        self.connected.found_not_used.push(FoundNotUsed { account, source: place.to_string(), why });
    }
}
