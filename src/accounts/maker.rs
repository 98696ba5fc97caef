//! Making the accounts, the same at every cloud: those that are connected, else what lies around.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::endpoint::Endpoint;
use super::error::AccountsError;
use super::identity::Marker;
use super::kind::{Kind, Official};
use super::registry::{Account, Connect, Connected, FoundNotUsed};
use super::sources::{Look, Place, account_table};
use super::store::{Store, Stored};
use crate::cloud::{Cloud, Setup};
use crate::http;
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTable, Config};
use crate::state::switches::{Board, Switches};

/// Makes the accounts of one cloud after the other.
pub(super) struct Maker<'a> {
    look: Look<'a>,
    request: Connect<'a>,
    timeout: Duration,
    http: http::Client,
    marker: Option<Marker>,
    // None where the data directory is not the sandbox's own: nothing real is to be opened there.
    store: Option<Store>,
    switches: Switches,
    connected: Connected,
}

impl<'a> Maker<'a> {
    /// Returns one with no account yet.
    pub(super) fn new(request: Connect<'a>, timeout: Duration) -> Self {
        let Connect { env, config, paths, only_environment, .. } = request;
        let sandboxed = paths.data.parent() == paths.state.parent();
        let mut connected = Connected::default();
        let mut store = None;
        if !only_environment || sandboxed {
            // Whoever only looks or removes must not be held up; without the directory there is no identity key either, so that
            // nothing is bought.
            store = Store::open(&paths.data)
                .map_err(|error| connected.warnings.push(format!("connected accounts are not used: {error}")))
                .ok();
        }
        let switches = Board::open(&paths.state).and_then(|board| board.read()).unwrap_or_else(|error| {
            connected.unswitched = Some(error.to_string());
            Switches::default()
        });
        Maker {
            look: Look { env, config, paths, only_environment },
            request,
            timeout,
            http: http::Client::new(http::ClientOptions { timeout, ..http::ClientOptions::default() }),
            marker: None,
            store,
            switches,
            connected,
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

    /// Makes all accounts of a cloud that are connected, or whose credentials can be found.
    pub(super) fn all<K: Kind>(&mut self) -> Result<(), AccountsError> {
        for account in self.accounts_of::<K>() {
            match self.store.as_ref().and_then(|store| store.read(&account)) {
                Some(Ok(stored)) => self.stored::<K>(stored)?,
                // Nothing else may take its place: another account would pay.
                Some(Err(unopened)) => self.not_opened(account, unopened.why),
                None => self.found::<K>(account)?,
            }
        }
        Ok(())
    }

    /// Makes a connected account.
    fn stored<K: Kind>(&mut self, stored: Stored) -> Result<(), AccountsError> {
        let Stored { account, hint, identity, settings, contents, .. } = stored;
        let credentials = match K::restore(&self.look, &contents.credentials) {
            Ok(credentials) => credentials,
            Err(why) => {
                self.not_opened(account, why);
                return Ok(());
            }
        };
        let Official { base, tails, .. } = K::OFFICIAL;
        let endpoint = match &contents.endpoint {
            Some(text) => Endpoint::parse(text, Place::Connected, base, tails)?,
            None => self.endpoint::<K>(&account)?,
        };
        if self.look.only_environment && !endpoint.loopback {
            self.not_used(account, &Place::Connected, None, "its endpoint is not of this sandbox".to_owned());
            return Ok(());
        }
        endpoint.admit(&account, &Place::Connected)?;
        let secret = K::secret(&credentials);
        self.warn_of_another::<K>(&account, &hint, &secret);
        let mut config = self.look.config.clone();
        K::apply(&settings, &account, &mut config);
        let provider =
            identity.filter(|identity| identity.endpoint == endpoint.base).and_then(|it| it.provider);
        let made =
            Made { account: account.clone(), endpoint, place: Place::Connected, hint, secret, provider };
        match self.add::<K>(made, credentials, &config) {
            // What stands beside the sealed part may have been changed by hand.
            Err(AccountsError::NotUsed { why, .. }) => {
                self.not_opened(account, format!("cannot be used: {why}"))
            }
            other => other?,
        }
        Ok(())
    }

    /// Says that other credentials of a connected account lie in the environment or the config file.
    fn warn_of_another<K: Kind>(&mut self, account: &AccountId, hint: &str, secret: &Secret) {
        // What is wrong with those that are not used is no news.
        let other = K::find(&self.look, account, &mut Vec::new());
        if let Some((other, place @ (Place::Variable(_) | Place::Table { .. }))) = other
            && K::unusable(&other).is_none()
            && K::secret(&other) != *secret
        {
            self.warn(format!(
                "{account} is connected with `gpuprov clouds set` ({hint}); the other credentials in {place} ({}) are not used",
                K::hint(&other)
            ));
        }
    }

    /// Makes an account of what lies around, if there is anything.
    fn found<K: Kind>(&mut self, account: AccountId) -> Result<(), AccountsError> {
        let found = K::find(&self.look, &account, &mut self.connected.warnings);
        let Some((credentials, place)) = found else {
            // A `default` that nobody set up is no news.
            if account.name() != "default" {
                let table = self.look.table(account_table(&account));
                self.not_used(account, &table, None, format!("it has no {}", K::LACKS));
            }
            return Ok(());
        };
        if let Some(why) = K::unusable(&credentials) {
            self.not_used(account, &place, None, why.to_owned());
            return Ok(());
        }
        let hint = K::hint(&credentials);
        if !self.is_used::<K>(&account) {
            let cloud = account.cloud();
            let why = format!(
                "nobody asked for it; `--cloud {cloud}`, a table `[{cloud}]` or `gpuprov clouds set {cloud}` does"
            );
            self.not_used(account, &place, Some(hint), why);
            return Ok(());
        }
        let endpoint = self.endpoint::<K>(&account)?;
        endpoint.admit(&account, &place)?;
        let secret = K::secret(&credentials);
        let config = self.look.config;
        self.add::<K>(Made { account, endpoint, place, hint, secret, provider: None }, credentials, config)
    }

    fn add<K: Kind>(
        &mut self,
        made: Made,
        credentials: K::Credentials,
        config: &Config,
    ) -> Result<(), AccountsError> {
        let Made { account, endpoint, place, hint, secret, provider } = made;
        let switch = self.switches.of(&account);
        let cloud = self.build::<K>(account, &endpoint, &secret, credentials, config)?;
        self.connected.accounts.push(Account {
            cloud,
            connected: place == Place::Connected,
            source: place.to_string(),
            hint,
            provider,
            elsewhere: endpoint.elsewhere(),
            gpu: switch.gpu,
            cpu: switch.cpu,
        });
        Ok(())
    }

    /// Makes the value that stands for the account. No request.
    pub(super) fn build<K: Kind>(
        &mut self,
        account: AccountId,
        endpoint: &Endpoint,
        secret: &Secret,
        credentials: K::Credentials,
        config: &Config,
    ) -> Result<Arc<dyn Cloud>, AccountsError> {
        let mark = self.secret_mark(secret)?;
        let setup = self.setup(account, endpoint, mark);
        let look = Look { config, ..self.look };
        K::cloud(&look, setup, credentials, self.http.clone())
    }

    /// Where to look.
    pub(super) fn look(&self) -> Look<'a> {
        self.look
    }

    /// Whom and what the making of accounts is for.
    pub(super) fn connected_mut(&mut self) -> &mut Connected {
        &mut self.connected
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

    /// The accounts that may have credentials: `default`, those with a table of their own, and those that are connected.
    fn accounts_of<K: Kind>(&self) -> Vec<AccountId> {
        let cloud = K::Table::CLOUD;
        let default = AccountId::default_of(cloud);
        let tables = K::tables(self.look.config);
        let named = tables.accounts.keys().filter(|_| !self.look.only_environment);
        let named = named.filter_map(|name| AccountId::new(cloud, name).ok());
        let connected = self.store.iter().flat_map(Store::names).filter(|account| account.cloud() == cloud);
        let others: BTreeSet<AccountId> =
            named.chain(connected).filter(|account| *account != default).collect();
        std::iter::once(default).chain(others).collect()
    }

    /// The endpoint of an account: the variable wins over the account's table, and that over the cloud's.
    pub(super) fn endpoint<K: Kind>(&self, account: &AccountId) -> Result<Endpoint, AccountsError> {
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

    fn not_used(&mut self, account: AccountId, place: &Place, hint: Option<String>, why: String) {
        self.connected.found_not_used.push(FoundNotUsed {
            account,
            connected: *place == Place::Connected,
            source: place.to_string(),
            hint,
            why,
        });
    }

    fn not_opened(&mut self, account: AccountId, why: String) {
        self.warn(format!("{account} {why}"));
        self.not_used(account, &Place::Connected, None, format!("it {why}"));
    }
}

/// An account about to be made.
struct Made {
    account: AccountId,
    endpoint: Endpoint,
    place: Place,
    hint: String,
    secret: Secret,
    provider: Option<String>,
}
