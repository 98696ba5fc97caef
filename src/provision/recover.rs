//! Finding out whether a create took effect, by its claim.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::cloud::{Cloud, Error, Found, Which};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineName;
use crate::model::mark::Claim;
use crate::provision::cancel::{Cancel, Exposed};
use crate::provision::events::{Event, Events};
use crate::provision::failure::Kind;
use crate::provision::gather::within;
use crate::provision::parts::delete_parts;
use crate::provision::remove::Kept;
use crate::provision::rollback::{Patience, Undone, delete_until_gone};
use crate::provision::{Context, Did, cost_since};
use crate::state::abandoned::{ABANDONED_VERSION, Abandoned, HOURS};
use crate::state::error::StateError;
use crate::state::record::Attempt;

/// Whether a create took effect.
#[derive(Debug)]
pub enum Search {
    /// It did; this is the machine, side resources beside it.
    Found(Box<Handle>),
    /// The list was asked after the last moment at which the machine could have turned up, and does not show it; these side
    /// resources it does show.
    Nothing(Vec<Found>),
    /// The cloud did not answer.
    Unanswered(Box<Error>),
}

/// Looks for `claim` until it is found or could have turned up no later than `until`.
pub async fn search(
    context: &Context,
    cloud: &Arc<dyn Cloud>,
    claim: Claim,
    until: Instant,
    events: &dyn Events,
) -> Search {
    let begun = Instant::now();
    let which = Which::Claim(context.installation.clone(), claim);
    let pace = cloud.capabilities().poll.then;
    // After the last moment, the list must answer once more; a cloud that is down then gets as long again as two answers.
    let end = until.max(begun) + context.cloud_timeout * 2;
    loop {
        let asked_at = Instant::now();
        let error =
            match within(context.cloud_timeout, cloud, "looking for the machine", cloud.find(&which)).await {
                Ok(found) => match machine_of(&found) {
                    Some(machine) => return Search::Found(Box::new(machine)),
                    // A key or disk alone proves nothing: it was made before the machine, which may still turn up.
                    None if asked_at >= until => return Search::Nothing(found),
                    None => None,
                },
                Err(error) => Some(error),
            };
        let words = match &error {
            Some(error) => format!("looking whether the create took effect: {}", error.message),
            None => "looking whether the create took effect".to_owned(),
        };
        events.event(Event::Waiting { words, elapsed: begun.elapsed() });
        if let Some(error) = error
            && Instant::now() >= end
        {
            return Search::Unanswered(error);
        }
        let pause = pace.min(until.saturating_duration_since(Instant::now())).max(Duration::from_millis(200));
        tokio::time::sleep(pause).await;
    }
}

/// Returns the machine among what was found under one claim, side resources beside it.
pub fn machine_of(found: &[Found]) -> Option<Handle> {
    let mut handle = found.iter().find(|found| found.kind == ResourceKind::Machine)?.handle.clone();
    for side in found.iter().filter(|found| found.kind != ResourceKind::Machine) {
        let known = handle.side.iter().any(|resource| resource.id == side.handle.id);
        if !known {
            handle.side.push(crate::model::handle::Resource {
                kind: side.kind,
                id: side.handle.id.clone(),
                data: side.handle.data.clone(),
            });
        }
    }
    Some(handle)
}

/// Looks by its claim for a machine whose id the cloud does not know, and deletes what the list shows all the same; why it may
/// still exist otherwise.
pub(super) async fn prove_gone(
    context: &Context,
    cloud: &Arc<dyn Cloud>,
    claim: Claim,
    events: &dyn Events,
    cancel: &Cancel,
) -> Result<(), String> {
    let patience = Patience::of_removal(context);
    let end = Instant::now() + patience.silence.max(cloud.capabilities().listing_lag);
    loop {
        match search(context, cloud, claim, Instant::now(), events).await {
            Search::Nothing(parts) => return delete_parts(context, cloud, &parts, &[], events, cancel).await,
            Search::Unanswered(error) => return Err(error.to_string()),
            Search::Found(_) if Instant::now() > end => {
                return Err("the cloud says that it is gone, and lists it".to_owned());
            }
            Search::Found(handle) => {
                if let Undone::Left(left) =
                    delete_until_gone(cloud, &handle, patience, events, cancel, false).await
                {
                    return Err(left.why);
                }
            }
        }
        tokio::time::sleep(cloud.capabilities().poll.then).await;
    }
}

/// Gives up the claim of an attempt: it is looked for from now on by every `ls` and `rm` of the account, for 24 hours.
pub fn abandon(context: &Context, name: &MachineName, attempt: &Attempt) -> Result<(), StateError> {
    let now = Timestamp::now();
    context.watch.add(&Abandoned {
        version: ABANDONED_VERSION,
        claim: attempt.claim,
        name: name.clone(),
        installation: context.installation.clone(),
        account: attempt.account.clone(),
        identity: attempt.identity.clone(),
        offer: attempt.offer.clone(),
        since: attempt.started_at,
        until: now + jiff::SignedDuration::from_hours(HOURS),
        unknown: BTreeMap::new(),
    })
}

/// What became of the claims that were given up earlier.
#[derive(Debug, Default)]
pub struct Swept {
    /// Removed now.
    pub removed: Vec<String>,
    /// Found and not removed.
    pub left: Vec<Kept>,
}

/// Looks for the claims that were given up in accounts that `concerns` lets through, and deletes what turned up.
pub async fn sweep(
    context: &Context,
    concerns: impl Fn(&Abandoned) -> bool,
    events: &dyn Events,
    cancel: &Cancel,
) -> Swept {
    let mut swept = Swept::default();
    let watched = match context.watch.list(Timestamp::now()) {
        Ok(watched) => watched,
        Err(error) => {
            events.event(Event::Note { account: None, message: error.to_string() });
            return swept;
        }
    };
    for watched in watched.into_iter().filter(|watched| concerns(watched)) {
        let Some(cloud) = context.account(&watched.account) else { continue };
        let which = Which::Claim(context.installation.clone(), watched.claim);
        let looked =
            within(context.cloud_timeout, cloud, "looking for a lost machine", cloud.find(&which)).await;
        let found = match looked {
            Ok(found) => found,
            Err(error) => {
                let message = format!(
                    "could not look whether a lost create of `{}` took effect after all ({}); `gpuprov ls` looks again",
                    watched.name, error.message
                );
                events.event(Event::Note { account: Some(&watched.account), message });
                continue;
            }
        };
        let Some(handle) = machine_of(&found) else {
            if let Err(why) = delete_parts(context, cloud, &found, &[], events, cancel).await {
                events.event(Event::Note { account: Some(&watched.account), message: why });
            }
            // As far as can be told today: from tomorrow's list it would be removed.
            cancel.exposure().remove(&watched.claim.to_string());
            continue;
        };
        let price = Some(watched.offer.price_per_hour);
        let exposed = Exposed::at(&watched.name, &watched.account, Some(&handle.id), price);
        let what = exposed.to_string();
        cancel.exposure().add(&watched.claim.to_string(), exposed);
        events.event(Event::Step(format!("removing {what}, which turned up after its create was given up")));
        let patience = Patience::of_removal(context);
        let undone = delete_until_gone(cloud, &handle, patience, events, cancel, false).await;
        let outcome = match undone {
            Undone::Gone => "removed",
            Undone::Left(_) => "left",
        };
        let now = Timestamp::now();
        let cost = cost_since(watched.offer.price_per_hour, watched.since, now);
        let did =
            Did::bought("remove", &watched.name, &watched.account, watched.claim, &watched.offer, outcome);
        let owner = context.owner.as_ref();
        context.record(Did { owner, created_at: Some(watched.since), cost: Some(cost), ..did }, events);
        match undone {
            Undone::Gone => {
                cancel.exposure().remove(&watched.claim.to_string());
                // The claim cannot make a second machine, but the file costs nothing until its time is over: the same lost
                // request may be delivered twice.
                swept.removed.push(what);
            }
            Undone::Left(left) => swept.left.push(Kept {
                name: watched.name.to_string(),
                account: Some(watched.account),
                id: Some(handle.id),
                kind: Kind::LeftRunning,
                message: format!("{what} turned up after its create was given up: {}", left.why),
            }),
        }
    }
    swept
}
