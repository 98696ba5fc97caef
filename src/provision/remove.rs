//! Removing machines: delete, look that they are gone, and only then forget them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::cloud::{Cloud, Error, ErrorKind, Found, Reached, Which};
use crate::model::account::AccountId;
use crate::model::machine::{MachineName, MachineState};
use crate::model::money::Usd;
use crate::provision::cancel::{Cancel, Exposed};
use crate::provision::events::{Event, Events};
use crate::provision::failure::Kind;
use crate::provision::gather::within;
use crate::provision::parts::delete_parts;
use crate::provision::recover::{Search, abandon, search};
use crate::provision::rollback::{Patience, Undone, delete_until_gone};
use crate::provision::{Context, Did, What, cost_since, is_proven_same};
use crate::state::error::LockError;
use crate::state::journal::Open;
use crate::state::lock::NameLock;
use crate::state::machines::Entry;
use crate::state::record::{Attempt, Outcome, Record};

/// How long another command may take to stop.
const HELD: Duration = Duration::from_secs(20 * 60);

/// Something to remove.
#[derive(Debug)]
pub enum Doomed {
    /// What a record speaks of.
    Recorded(MachineName),
    /// A machine or left-over without a record.
    Found {
        /// Its account.
        account: AccountId,
        /// What the list says of it.
        found: Box<Found>,
    },
}

/// Something that is proven to be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The machine's name.
    pub name: String,
    /// Its account; none if nothing had been bought yet.
    pub account: Option<AccountId>,
    /// The cloud's id; none if it never had one.
    pub id: Option<String>,
    /// What it cost, estimated.
    pub cost: Option<Usd>,
}

/// Something that is not proven to be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The machine's name, or the id that was asked for.
    pub name: String,
    /// Its account.
    pub account: Option<AccountId>,
    /// The cloud's id.
    pub id: Option<String>,
    /// What went wrong.
    pub kind: Kind,
    /// In words, with what to do.
    pub message: String,
}

/// Removes one machine.
pub async fn remove(
    context: &Context,
    doomed: &Doomed,
    events: &dyn Events,
    cancel: &Cancel,
) -> Result<Removed, Kept> {
    match doomed {
        Doomed::Recorded(name) => recorded(context, name, events, cancel).await,
        Doomed::Found { account, found } => unrecorded(context, account, found, events, cancel).await,
    }
}

async fn recorded(
    context: &Context,
    name: &MachineName,
    events: &dyn Events,
    cancel: &Cancel,
) -> Result<Removed, Kept> {
    let kept =
        |kind: Kind, message: String| Kept { name: name.to_string(), account: None, id: None, kind, message };
    let lock = take(context, name, events, cancel).await.map_err(|why| kept(Kind::LeftRunning, why))?;
    let entry = lock.read().map_err(|error| kept(Kind::LeftRunning, error.to_string()))?;
    let record = match entry {
        // The command that was making it has removed it.
        None => return Ok(Removed { name: name.to_string(), account: None, id: None, cost: None }),
        Some(Entry::Unreadable(unreadable)) => {
            return Err(kept(
                Kind::LeftRunning,
                format!("{}; what it speaks of may still run", unreadable.into_error()),
            ));
        }
        Some(Entry::Record(record)) => *record,
    };
    let Some(attempt) = record.current().cloned() else {
        // Every attempt is proven to be gone, or none was begun.
        forget_ssh(context, name, events);
        lock.remove().map_err(|error| kept(Kind::Local, error.to_string()))?;
        return Ok(Removed { name: name.to_string(), account: None, id: None, cost: None });
    };
    let id = attempt.handle.as_ref().map(|handle| handle.id.clone());
    let kept = |kind: Kind, message: String| Kept {
        name: name.to_string(),
        account: Some(attempt.account.clone()),
        id: id.clone(),
        kind,
        message,
    };
    let Some(cloud) = context.account(&attempt.account) else {
        return Err(kept(
            Kind::LeftRunning,
            format!(
                "the account {} is not connected; give its credentials ({}), or drop the record with `gpuprov rm --forget {name}`",
                attempt.account, attempt.identity.hint
            ),
        ));
    };
    let exposed = attempt.claim.to_string();
    cancel.exposure().add(
        &exposed,
        Exposed::at(name, &attempt.account, id.as_deref(), Some(attempt.offer.price_per_hour)),
    );
    let open = Open::resume(lock).map_err(|error| kept(Kind::LeftRunning, error.to_string()))?;
    let outcome = delete_attempt(context, cloud, &open, &attempt, events, cancel).await;
    let made_at = record.machine_at;
    let cost = made_at.map(|at| cost_since(attempt.offer.price_per_hour, at, Timestamp::now()));
    match outcome {
        Ok(()) => {
            cancel.exposure().remove(&exposed);
            audit(context, &record, &attempt, cost, "removed", events);
            // The record goes last: without it nobody would take the ssh block away, whose address is somebody else's soon.
            forget_ssh(context, name, events);
            open.close()
                .map_err(|error| kept(Kind::Local, format!("it is gone, but its record is not: {error}")))?;
            Ok(Removed {
                name: name.to_string(),
                account: Some(attempt.account.clone()),
                id: id.clone(),
                cost,
            })
        }
        Err((state, message)) => {
            let written = open.update(|record| {
                record.state = state;
                record.message = Some(message.clone());
            });
            if let Err(error) = written {
                events.event(Event::Note { account: None, message: error.to_string() });
            }
            audit(context, &record, &attempt, cost, "left", events);
            Err(kept(Kind::LeftRunning, message))
        }
    }
}

fn forget_ssh(context: &Context, name: &MachineName, events: &dyn Events) {
    if let Err(error) = context.ssh.remove(name) {
        events.event(Event::Note { account: None, message: format!("our ssh files: {error}") });
    }
}

/// Takes the lock; a command that is making the machine is asked to stop and to remove what it made.
async fn take(
    context: &Context,
    name: &MachineName,
    events: &dyn Events,
    cancel: &Cancel,
) -> Result<NameLock, String> {
    match context.registry.lock(name) {
        Ok(lock) => return Ok(lock),
        Err(LockError::Held(_)) => {}
        Err(error) => return Err(error.to_string()),
    }
    events.event(Event::Step(format!("another command is working on `{name}`; asking it to stop")));
    let begun = Instant::now();
    let waiting = async {
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            events.event(Event::Waiting {
                words: format!("waiting for the other command on `{name}`"),
                elapsed: begun.elapsed(),
            });
        }
    };
    tokio::select! {
        lock = context.registry.lock_within(name, HELD, true) => lock.map_err(|error| error.to_string()),
        () = cancel.cancelled() => Err(format!("stopped before the other command on `{name}` had ended")),
        () = waiting => Err("unreachable".to_owned()),
    }
}

/// Deletes what an attempt made; on failure, in which state it is now and why.
async fn delete_attempt(
    context: &Context,
    cloud: &Arc<dyn Cloud>,
    open: &Open,
    attempt: &Attempt,
    events: &dyn Events,
    cancel: &Cancel,
) -> Result<(), (MachineState, String)> {
    let unknown = |why: String| (MachineState::Unknown, why);
    let name = open.name();
    let same = is_proven_same(context, cloud, &attempt.identity).await;
    let mut handle = attempt.handle.clone();
    if handle.is_none() || !same {
        let age = Timestamp::now().duration_since(attempt.started_at);
        let age = Duration::try_from(age).unwrap_or_default();
        let lag = if same { cloud.capabilities().listing_lag } else { Duration::ZERO };
        let until = Instant::now() + lag.saturating_sub(age);
        let found = tokio::select! {
            found = search(context, cloud, attempt.claim, until, events) => found,
            () = cancel.cancelled() => return Err(unknown("stopped before it was known whether it exists".to_owned())),
        };
        match found {
            Search::Found(found) => {
                if handle.as_ref().is_some_and(|handle| handle.id != found.id) {
                    return Err(unknown(format!(
                        "the cloud lists another machine under its claim; look at {} by hand",
                        cloud.account()
                    )));
                }
                // What the record knows of side resources is more than a list can tell.
                handle = handle.or(Some(*found));
            }
            Search::Nothing(parts) if same => {
                let deleted = delete_parts(context, cloud, &parts, &attempt.side, events, cancel).await;
                deleted.map_err(unknown)?;
                // It was never made, as far as can be told today; should it turn up within a day, `ls` and `rm` see it.
                return abandon(context, name, attempt).map_err(|error| unknown(error.to_string()));
            }
            Search::Nothing(_) => {
                return Err(unknown(format!(
                    "the credentials of {} ({}) are not proven to be those that made it ({}), and do not show it: \
                     give the right ones, or drop the record with `gpuprov rm --forget {name}`",
                    cloud.account(),
                    cloud.identity().hint,
                    attempt.identity.hint
                )));
            }
            Search::Unanswered(error) => return Err(unknown(error.to_string())),
        }
    }
    let whole = Attempt { handle, ..attempt.clone() }.whole();
    let Some(handle) = whole else {
        return Err(unknown("it is not known what to delete".to_owned()));
    };
    let written = open.update(|record| {
        record.state = MachineState::Deleting;
        if let Some(attempt) = record.attempt_mut(attempt.claim) {
            attempt.handle = Some(handle.clone());
            attempt.outcome = attempt.outcome.or(Some(Outcome::Unknown));
            if !same {
                // These credentials showed the machine under its claim, so they are the account's; once it is gone nothing
                // could prove that any more.
                attempt.identity = crate::provision::recorded(&cloud.identity());
            }
        }
    });
    if let Err(error) = written {
        events.event(Event::Note { account: None, message: error.to_string() });
    }
    let patience = Patience::of_removal(context);
    match delete_until_gone(cloud, &handle, patience, events, cancel, true).await {
        Undone::Gone => Ok(()),
        Undone::Left(left) => {
            let state = if left.kind.is_none() { MachineState::Deleting } else { MachineState::Unknown };
            Err((state, format!("it may still exist: {}", left.why)))
        }
    }
}

/// Takes the ssh block of a machine without a record away, before the machine: nothing would lead to it afterwards. Where a
/// record has the name, the block is that machine's.
fn forget_ssh_of_unrecorded(context: &Context, found: &Found, events: &dyn Events) {
    let Ok(name) = found.mark.name.parse::<MachineName>() else { return };
    let free = matches!(context.registry.read(&name), Ok(None)) && !context.registry.is_held(&name);
    if free && found.mark.installation == context.installation {
        forget_ssh(context, &name, events);
    }
}

async fn unrecorded(
    context: &Context,
    account: &AccountId,
    found: &Found,
    events: &dyn Events,
    cancel: &Cancel,
) -> Result<Removed, Kept> {
    let kept = |kind: Kind, message: String| Kept {
        name: found.mark.name.clone(),
        account: Some(account.clone()),
        id: Some(found.handle.id.clone()),
        kind,
        message,
    };
    let Some(cloud) = context.account(account) else {
        return Err(kept(Kind::NoAccount, format!("the account {account} is not connected")));
    };
    forget_ssh_of_unrecorded(context, found, events);
    let patience = Patience::of_removal(context);
    let exposed = found.mark.claim.to_string();
    let price = found.look.sold.price_per_hour;
    cancel.exposure().add(&exposed, Exposed::at(&found.mark.name, account, Some(&found.handle.id), price));
    let cost = price.zip(found.since).map(|(price, since)| cost_since(price, since, Timestamp::now()));
    let undone = delete_until_gone(cloud, &found.handle, patience, events, cancel, true).await;
    let outcome = if matches!(undone, Undone::Gone) { "removed" } else { "left" };
    let did = Did {
        action: "remove",
        account: Some(account),
        owner: found.mark.owner.as_ref(),
        name: &found.mark.name,
        claim: Some(found.mark.claim),
        what: What::Sold(&found.look.sold),
        created_at: found.since,
        cost,
        outcome,
    };
    context.record(did, events);
    match undone {
        Undone::Gone => {
            cancel.exposure().remove(&exposed);
            Ok(Removed {
                name: found.mark.name.clone(),
                account: Some(account.clone()),
                id: Some(found.handle.id.clone()),
                cost,
            })
        }
        Undone::Left(left) => Err(kept(Kind::LeftRunning, format!("it may still exist: {}", left.why))),
    }
}

fn audit(
    context: &Context,
    record: &Record,
    attempt: &Attempt,
    cost: Option<Usd>,
    outcome: &str,
    events: &dyn Events,
) {
    let did = Did::bought("remove", &record.name, &attempt.account, attempt.claim, &attempt.offer, outcome);
    let owner = record.owner.as_ref();
    context.record(Did { owner, created_at: record.machine_at, cost, ..did }, events);
}

/// Returns what every account lists of what is looked for, and who did not answer.
pub async fn list(
    context: &Context,
    which: &Which,
) -> (Vec<(AccountId, Found)>, Vec<Box<crate::cloud::Error>>) {
    let answers = context.accounts.iter().map(|cloud| async move {
        (
            cloud.account().clone(),
            within(context.cloud_timeout, cloud, "listing machines", cloud.find(which)).await,
        )
    });
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for (account, answer) in futures_util::future::join_all(answers).await {
        match answer {
            // A cloud may show for a while what is gone already.
            Ok(found) => all.extend(
                found
                    .into_iter()
                    .filter(|found| found.look.state != MachineState::Gone)
                    .map(|found| (account.clone(), found)),
            ),
            Err(error) => failed.push(error),
        }
    }
    for (account, why) in &context.unopened {
        let message = format!("its credentials {why}");
        let silent = Error::new(ErrorKind::Auth, account, "listing machines", message, Reached::No);
        failed.push(Box::new(silent));
    }
    (all, failed)
}
