//! What `clouds set` is given, and the account that it would make: not kept yet, so that its provider can be asked first.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::endpoint::Endpoint;
use super::error::AccountsError;
use super::kind::{Kind, Official};
use super::maker::Maker;
use super::registry::Connect;
use super::seal::{Contents, Parts};
use super::sources::{Look, Place};
use super::store::{Settings, Stored};
use super::{gcp, nebius, runpod, vast, verda};
use crate::cloud::{Cloud, Identity};
use crate::model::account::{AccountId, CloudKind};
use crate::model::secret::Secret;
use crate::state::config::CloudTable;

/// Where a token from outside comes from, for accounts without keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenFrom {
    /// A file, read anew each time.
    File(PathBuf),
    /// A command, run each time.
    Command(String),
    /// GitHub Actions, by the variables of its jobs.
    Github,
}

/// What `clouds set` was given; everything is optional.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `--api-key`, and how it was given.
    pub api_key: Option<(Secret, Place)>,
    /// `--client-id`.
    pub client_id: Option<String>,
    /// `--client-secret`, and how it was given.
    pub client_secret: Option<(Secret, Place)>,
    /// `--credentials`: the file and its text.
    pub credentials: Option<(PathBuf, Secret)>,
    /// `--project`.
    pub project: Option<String>,
    /// `--service-account`.
    pub service_account: Option<String>,
    /// `--workload-identity-provider`.
    pub workload_identity_provider: Option<String>,
    /// `--tenant-id`.
    pub tenant: Option<String>,
    /// `--service-account-id`.
    pub service_account_id: Option<String>,
    /// `--token-file`, `--token-command`, `--token-github`.
    pub token: Option<TokenFrom>,
    /// `--allow-command`.
    pub allow_command: bool,
    /// `--zones`.
    pub zones: Vec<String>,
    /// `--projects`.
    pub projects: Vec<String>,
    /// `--endpoint`.
    pub endpoint: Option<String>,
}

impl Given {
    /// Returns the flags that were given, but for `--endpoint`.
    fn flags(&self) -> Vec<&'static str> {
        let token = |wanted: fn(&TokenFrom) -> bool| self.token.as_ref().is_some_and(wanted);
        let all = [
            ("--api-key", self.api_key.is_some()),
            ("--client-id", self.client_id.is_some()),
            ("--client-secret", self.client_secret.is_some()),
            ("--credentials", self.credentials.is_some()),
            ("--project", self.project.is_some()),
            ("--service-account", self.service_account.is_some()),
            ("--workload-identity-provider", self.workload_identity_provider.is_some()),
            ("--tenant-id", self.tenant.is_some()),
            ("--service-account-id", self.service_account_id.is_some()),
            ("--token-file", token(|token| matches!(token, TokenFrom::File(_)))),
            ("--token-command", token(|token| matches!(token, TokenFrom::Command(_)))),
            ("--token-github", token(|token| *token == TokenFrom::Github)),
            ("--allow-command", self.allow_command),
            ("--zones", !self.zones.is_empty()),
            ("--projects", !self.projects.is_empty()),
        ];
        all.into_iter().filter_map(|(flag, given)| given.then_some(flag)).collect()
    }

    /// Returns the settings that stand beside the sealed part.
    fn settings(&self) -> Settings {
        let list = |words: &[String]| (!words.is_empty()).then(|| words.to_vec());
        Settings {
            project: self.project.clone(),
            zones: list(&self.zones),
            tenant: self.tenant.clone(),
            projects: list(&self.projects),
            ..Settings::default()
        }
    }
}

/// An account that could be connected.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// It as a cloud, to be asked.
    pub cloud: Arc<dyn Cloud>,
    /// Where the credentials were found or how they were given.
    pub place: Place,
    /// What tells the credentials apart for people.
    pub hint: String,
    /// Its endpoint, if that is not the cloud's own.
    pub elsewhere: Option<String>,
    settings: Settings,
    contents: Contents,
}

impl Candidate {
    /// Returns the account's id.
    pub fn account(&self) -> &AccountId {
        self.cloud.account()
    }

    /// Returns it as it is kept. `identity` is who the provider says that the credentials are, if it was asked.
    pub fn stored(self, identity: Option<Identity>, now: Timestamp) -> Stored {
        Stored {
            account: self.cloud.account().clone(),
            hint: self.hint,
            source: self.place.to_string(),
            connected_at: now,
            identity,
            settings: self.settings,
            contents: self.contents,
        }
    }
}

/// Returns the flags of `clouds set` that a terminal is asked for where nothing is given and nothing is found.
pub fn asked_for(cloud: CloudKind) -> &'static [&'static str] {
    match cloud {
        CloudKind::Gcp => gcp::Accounts::ASKED,
        CloudKind::Nebius => nebius::Accounts::ASKED,
        CloudKind::Runpod => runpod::Accounts::ASKED,
        CloudKind::Vast => vast::Accounts::ASKED,
        CloudKind::Verda => verda::Accounts::ASKED,
    }
}

/// Makes the account that `clouds set` would connect, of what it was given, else of what lies in the usual places; none if
/// nothing does. Nothing is asked and nothing is kept. What the user should know is added to `warnings`.
pub fn candidate(
    request: Connect<'_>,
    timeout: Duration,
    account: &AccountId,
    given: &Given,
    warnings: &mut Vec<String>,
) -> Result<Option<Candidate>, AccountsError> {
    let mut maker = Maker::new(request, timeout);
    let made = match account.cloud() {
        CloudKind::Gcp => maker.candidate::<gcp::Accounts>(account, given),
        CloudKind::Nebius => maker.candidate::<nebius::Accounts>(account, given),
        CloudKind::Runpod => maker.candidate::<runpod::Accounts>(account, given),
        CloudKind::Vast => maker.candidate::<vast::Accounts>(account, given),
        CloudKind::Verda => maker.candidate::<verda::Accounts>(account, given),
    };
    let connected = maker.done();
    warnings.extend(connected.warnings);
    if let Some(why) = connected.unproven {
        return Err(AccountsError::Given(format!(
            "{why}; without it nobody could tell later whose machines are whose"
        )));
    }
    made
}

impl Maker<'_> {
    fn candidate<K: Kind>(
        &mut self,
        account: &AccountId,
        given: &Given,
    ) -> Result<Option<Candidate>, AccountsError> {
        let flags = given.flags();
        if let Some(flag) = flags.iter().find(|flag| !K::FLAGS.contains(flag)) {
            let takes = K::FLAGS.join(", ");
            return Err(AccountsError::Flag { flag, cloud: account.cloud(), takes });
        }
        let Some((credentials, place)) = K::given(&self.look(), given)?.or_else(|| self.usual::<K>(account))
        else {
            return Ok(None);
        };
        if let Some(why) = K::unusable(&credentials) {
            return Err(AccountsError::Given(format!("the credentials in {place} cannot be used: {why}")));
        }
        let Official { base, tails, .. } = K::OFFICIAL;
        let endpoint = match &given.endpoint {
            // Whoever names an endpoint and an account in one command says where its credentials go.
            Some(text) => Endpoint::parse(text, Place::Told("--endpoint"), base, tails)?,
            None => self.endpoint::<K>(account)?,
        };
        if given.endpoint.is_none() {
            endpoint.admit(account, &place)?;
        }
        let no_parts = || AccountsError::Given(format!("the credentials in {place} cannot be kept"));
        let parts: Parts = K::parts(&credentials).ok_or_else(no_parts)?;
        // One on loopback (a tunnel, a sandbox) is looked up each time, unless it was named here.
        let keep = given.endpoint.is_some() || !endpoint.loopback;
        let contents = Contents { credentials: parts, endpoint: endpoint.elsewhere().filter(|_| keep) };
        let (hint, secret) = (K::hint(&credentials), K::secret(&credentials));
        let settings = given.settings().over(K::settings(&self.look(), account, &credentials));
        let credentials = K::settle(credentials);
        let mut config = self.look().config.clone();
        K::apply(&settings, account, &mut config);
        let elsewhere = endpoint.elsewhere();
        let cloud = self.build::<K>(account.clone(), &endpoint, &secret, credentials, &config)?;
        Ok(Some(Candidate { cloud, place, hint, elsewhere, settings, contents }))
    }

    /// Looks in the usual places: the environment first, also for an account that is not called `default`.
    fn usual<K: Kind>(&mut self, account: &AccountId) -> Option<(K::Credentials, Place)> {
        let default = AccountId::default_of(K::Table::CLOUD);
        let look = self.look();
        let environment = Look { only_environment: true, ..look };
        let warnings = &mut self.connected_mut().warnings;
        K::find(&environment, &default, warnings)
            .or_else(|| K::find(&look, account, warnings))
            .or_else(|| K::find(&look, &default, warnings))
    }
}
