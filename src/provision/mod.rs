//! The one orchestrator: plan, re-check, journal, create, wait, login, set-up, ready; and remove.
//!
//! It asks clouds through their trait, writes records through `state`, logs in through `ssh`, tells what it does through
//! [`events::Events`] and stops when [`cancel::Cancel`] says so. It reads no environment, no terminal and no signal.
//!
//! # Never losing a machine
//!
//! A record with the account, the identity and a fresh claim is on disk before the first request that can create anything;
//! the cloud's id is on disk before the first wait; a create without a certain answer is looked for by its claim before
//! anything else is bought; what an attempt made is deleted until the cloud confirms it, or stays in the registry.

pub mod acquire;
pub mod attempt;
mod bookkeeping;
pub mod cancel;
pub mod events;
pub mod extras;
pub mod failure;
mod follow;
pub mod forget;
pub mod gather;
pub mod holdings;
pub mod login;
pub mod names;
pub mod parts;
pub mod recover;
pub mod rehearse;
pub mod remove;
pub mod request;
pub mod reserve;
pub mod rollback;
pub mod rounds;
pub mod run;
pub mod serving;
pub mod setup;
pub mod survey;
pub mod wait;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::cloud::{Cloud, Identity, Sold};
use crate::model::account::AccountId;
use crate::model::gpu::Gpu;
use crate::model::machine::MachineName;
use crate::model::mark::{Claim, Installation, Owner};
use crate::model::money::Usd;
use crate::model::offer::Offer;
use crate::provision::events::{Event, Events};
use crate::provision::gather::within;
use crate::ssh::SshFiles;
use crate::ssh::exec::Client;
use crate::state::abandoned::Watch;
use crate::state::audit::{Audit, AuditEntry, Author};
use crate::state::machines::Registry;
use crate::state::record::RecordedIdentity;
use crate::state::switches::Board;

pub use request::{Report, Request};

/// What every command here works with.
#[derive(Debug)]
pub struct Context {
    /// The connected accounts, switched on or off.
    pub accounts: Vec<Arc<dyn Cloud>>,
    /// Accounts that are connected and whose credentials cannot be opened, with the reason: what is there nobody can tell.
    pub unopened: Vec<(AccountId, String)>,
    /// The records.
    pub registry: Registry,
    /// Claims that were given up without an answer.
    pub watch: Watch,
    /// Which accounts are asked for offers.
    pub switches: Board,
    /// The audit log.
    pub audit: Audit,
    /// Who works and where, for the audit log.
    pub author: Author,
    /// Our ssh files.
    pub ssh: SshFiles,
    /// The system's ssh client.
    pub login: Client,
    /// The system's `ssh-keyscan`.
    pub keyscan: Option<PathBuf>,
    /// Whose machines these are.
    pub installation: Installation,
    /// Whether the installation id was given, so that other computers may share it.
    pub installation_given: bool,
    /// Whom new machines are for.
    pub owner: Option<Owner>,
    /// Whether the one line in the user's own ssh configuration is ours to keep.
    pub manage_ssh_config: bool,
    /// How long any one account may take to answer a question.
    pub cloud_timeout: Duration,
    /// `[wait] grace`: replaces every cloud's own listing grace, and shortens the patience with silence of a removal.
    pub grace: Option<Duration>,
}

impl Context {
    /// Returns the account with this id.
    pub fn account(&self, id: &AccountId) -> Option<&Arc<dyn Cloud>> {
        self.accounts.iter().find(|cloud| cloud.account() == id)
    }

    /// Appends to the audit log. The log must not stop a clean-up: that it cannot be written is told as a note.
    fn record(&self, did: Did<'_>, events: &dyn Events) {
        let Did { action, account, owner, name, claim, what, created_at, cost, outcome } = did;
        let (offer, sold) = match what {
            What::Offer(offer) => (Some(offer), None),
            What::Sold(sold) => (None, Some(sold)),
            What::Unknown => (None, None),
        };
        let told = || sold?.gpu_raw.as_deref().map(|raw| Gpu::identify(raw, None).name);
        let entry = AuditEntry {
            account: account.map(ToString::to_string),
            owner: owner.map(ToString::to_string),
            name: Some(name.to_owned()),
            claim,
            instance_type: offer
                .map(|offer| offer.instance_type.clone())
                .or_else(|| sold?.instance_type.clone()),
            gpu: offer.and_then(|offer| offer.gpu.clone()).or_else(told),
            gpu_count: offer.map(|offer| offer.gpu_count).or_else(|| sold?.gpu_count),
            spot: offer.map(|offer| offer.spot).or_else(|| sold?.spot),
            price_per_hour: offer.map(|offer| offer.price_per_hour).or_else(|| sold?.price_per_hour),
            created_at,
            cost,
            ..AuditEntry::new(Timestamp::now(), &self.author, action, outcome)
        };
        if let Err(error) = self.audit.append(&entry) {
            let message = format!("the audit log could not be written: {error}");
            events.event(Event::Note { account: None, message });
        }
    }
}

impl<'a> Did<'a> {
    /// Returns a line about a machine that was bought here; what it cost and when it was made can be added.
    fn bought(
        action: &'a str,
        name: &'a MachineName,
        account: &'a AccountId,
        claim: Claim,
        offer: &'a Offer,
        outcome: &'a str,
    ) -> Self {
        Did {
            action,
            account: Some(account),
            owner: None,
            name: name.as_str(),
            claim: Some(claim),
            what: What::Offer(offer),
            created_at: None,
            cost: None,
            outcome,
        }
    }
}

/// One line of the audit log.
struct Did<'a> {
    action: &'a str,
    account: Option<&'a AccountId>,
    owner: Option<&'a Owner>,
    name: &'a str,
    claim: Option<Claim>,
    what: What<'a>,
    created_at: Option<Timestamp>,
    cost: Option<Usd>,
    outcome: &'a str,
}

/// What is known of the machine that a line speaks of.
enum What<'a> {
    /// What was bought here.
    Offer(&'a Offer),
    /// What the cloud says of a machine without a record.
    Sold(&'a Sold),
    /// Nothing.
    Unknown,
}

/// Returns what `price_per_hour` comes to since `since`: our estimate, not the bill.
pub fn cost_since(price_per_hour: Usd, since: Timestamp, now: Timestamp) -> Usd {
    let span = now.duration_since(since);
    price_per_hour.for_span(Duration::try_from(span).unwrap_or_default())
}

/// Whether the account's credentials are proven to be of the same account at the provider as recorded. Where that does not show
/// without a request, the cloud is asked who it is: also where the record names the provider's account and what lies in the
/// same place as before does not.
pub async fn is_proven_same(context: &Context, cloud: &Arc<dyn Cloud>, known: &RecordedIdentity) -> bool {
    let known = identity_of(known);
    let ours = cloud.identity();
    if ours.is_same(&known) && (known.provider.is_none() || ours.provider.is_some()) {
        return true;
    }
    known.provider.is_some()
        && within(context.cloud_timeout, cloud, "checking the credentials", cloud.check())
            .await
            .is_ok_and(|identity| identity.is_same(&known))
}

/// Returns an identity as records keep it.
pub fn recorded(identity: &Identity) -> RecordedIdentity {
    let Identity { endpoint, provider, secret_mark, hint } = identity.clone();
    RecordedIdentity { endpoint, provider, secret_mark, hint }
}

/// Returns a recorded identity as clouds know it.
pub fn identity_of(recorded: &RecordedIdentity) -> Identity {
    let RecordedIdentity { endpoint, provider, secret_mark, hint } = recorded.clone();
    Identity { endpoint, provider, secret_mark, hint }
}
