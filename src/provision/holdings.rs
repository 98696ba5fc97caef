//! What an account holds, and whether new credentials are proven to be the same account at the provider.

use std::sync::Arc;

use crate::cloud::{Cloud, Error, Found, Identity, Which};
use crate::model::account::AccountId;
use crate::model::handle::ResourceKind;
use crate::model::machine::MachineState;
use crate::model::mark::Claim;
use crate::provision::gather::within;
use crate::provision::{Context, identity_of, recorded};
use crate::state::error::StateError;
use crate::state::journal::Open;
use crate::state::machines::Entry;

/// Something in an account that may cost money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What it is, for people: a machine's name, or a left-over with its id.
    pub shown: String,
    /// The cloud's id, if it is known.
    pub id: Option<String>,
    /// Its claim.
    pub claim: Claim,
    /// Who the credentials were that it was made or seen with.
    pub identity: Identity,
}

/// What an account holds, as far as it can be told.
#[derive(Debug, Default)]
pub struct Holdings {
    /// What there is, by the records and by the cloud's own list.
    pub held: Vec<Held>,
    /// Records that cannot be read: what they speak of may be in any account.
    pub unreadable: Vec<String>,
    /// Why the cloud's list is missing.
    pub unlisted: Option<Box<Error>>,
}

/// Looks at the records, and asks the account for what carries this installation's marks. `cloud` is none where there are no
/// credentials to ask with.
pub async fn holdings(
    context: &Context,
    account: &AccountId,
    cloud: Option<&Arc<dyn Cloud>>,
) -> Result<Holdings, StateError> {
    let mut holdings = Holdings::default();
    for entry in context.registry.list()? {
        match entry {
            Entry::Unreadable(unreadable) => holdings.unreadable.push(unreadable.name.to_string()),
            Entry::Record(record) => {
                let Some(attempt) = record.current().filter(|attempt| attempt.account == *account) else {
                    continue;
                };
                holdings.held.push(Held {
                    shown: record.name.to_string(),
                    id: attempt.handle.as_ref().map(|handle| handle.id.clone()),
                    claim: attempt.claim,
                    identity: identity_of(&attempt.identity),
                });
            }
        }
    }
    let Some(cloud) = cloud else { return Ok(holdings) };
    match list(context, cloud).await {
        Ok(found) => {
            for found in found {
                if holdings.held.iter().any(|held| held.claim == found.mark.claim) {
                    continue;
                }
                let id = found.handle.id;
                let shown = match found.kind {
                    ResourceKind::Machine => format!("{} ({account}:{id})", found.mark.name),
                    kind => format!("{} {account}:{id}", kind.as_str()),
                };
                holdings.held.push(Held {
                    shown,
                    id: Some(id),
                    claim: found.mark.claim,
                    identity: cloud.identity(),
                });
            }
        }
        Err(error) => holdings.unlisted = Some(error),
    }
    Ok(holdings)
}

async fn list(context: &Context, cloud: &Arc<dyn Cloud>) -> crate::cloud::Result<Vec<Found>> {
    let which = Which::Installation(context.installation.clone());
    let found = within(context.cloud_timeout, cloud, "listing machines", cloud.find(&which)).await?;
    Ok(found.into_iter().filter(|found| found.look.state != MachineState::Gone).collect())
}

/// Returns what is not proven to belong to the provider account of the new credentials. Proven is what was made with an
/// identity that is certainly the same, what the list under the new credentials shows with its id and claim, and whatever was
/// made with the same identity as something shown. `ask` is whether the list may be asked for.
pub async fn unproven(
    context: &Context,
    held: &[Held],
    cloud: &Arc<dyn Cloud>,
    identity: &Identity,
    ask: bool,
) -> Vec<Held> {
    let mut same = vec![identity.clone()];
    let is_same = |same: &[Identity], held: &Held| same.iter().any(|one| one.is_same(&held.identity));
    if ask && held.iter().any(|held| !is_same(&same, held)) {
        let found = list(context, cloud).await.unwrap_or_default();
        let shown = |held: &&Held| {
            found.iter().any(|found| {
                found.mark.claim == held.claim && held.id.as_ref().is_none_or(|id| *id == found.handle.id)
            })
        };
        same.extend(held.iter().filter(shown).map(|held| held.identity.clone()));
    }
    held.iter().filter(|held| !is_same(&same, held)).cloned().collect()
}

/// Puts the new identity into the records of an account whose credentials were replaced by ones that are proven to be of the
/// same provider account: what they do not show any more is then gone. Returns the machines whose record is in work; those
/// are proven again when they are removed.
pub fn adopt(context: &Context, held: &[Held], identity: &Identity) -> Vec<String> {
    let mut left = Vec::new();
    let Ok(entries) = context.registry.list() else { return left };
    for record in entries.into_iter().filter_map(|entry| entry.into_record().ok()) {
        let current = record.current().map(|attempt| (attempt.claim, attempt.identity.clone()));
        let Some((claim, known)) = current.filter(|(claim, _)| held.iter().any(|held| held.claim == *claim))
        else {
            continue;
        };
        if known == recorded(identity) {
            continue;
        }
        let opened = context.registry.lock(&record.name).ok().and_then(|lock| Open::resume(lock).ok());
        let written = opened.is_some_and(|open| {
            let change = |record: &mut crate::state::record::Record| {
                if let Some(attempt) = record.attempt_mut(claim) {
                    attempt.identity = recorded(identity);
                }
            };
            open.update(change).is_ok()
        });
        if !written {
            left.push(record.name.to_string());
        }
    }
    left
}
