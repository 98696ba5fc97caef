//! One attempt: from the create to a machine that can be logged in to, or to the proof that nothing is left of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;

use crate::cloud::{Cloud, Created, Error, Reached};
use crate::model::handle::Handle;
use crate::model::machine::MachineState;
use crate::model::mark::{Claim, Mark};
use crate::model::offer::Offer;
use crate::model::spec::MachineSpec;
use crate::provision::bookkeeping::{Notes, audit, close_attempt, expose, forget_ssh, left, note_failure};
use crate::provision::cancel::Cancel;
use crate::provision::events::{Event, Events};
use crate::provision::extras::{Failed, extras, plan};
use crate::provision::parts::delete_parts;
use crate::provision::recover::{Search, abandon, prove_gone, search};
use crate::provision::rollback::{Patience, Undone, delete_until_gone};
use crate::provision::wait::{End, Ready, Waiting, until_ready};
use crate::provision::{Context, Request, recorded};
use crate::state::journal::Open;
use crate::state::record::{Attempt, Outcome};

/// How an attempt ended.
#[derive(Debug)]
pub enum Ended {
    /// A login works.
    Ready {
        /// What is known of it.
        ready: Box<Ready>,
        /// What was asked on top of it and failed.
        failed: Failed,
    },
    /// The create was refused, and nothing was made.
    Refused(Box<Error>),
    /// Nobody knows; the claim is looked for from now on, also if the user wanted to stop meanwhile.
    Abandoned(Box<Error>),
    /// It was made, given up and removed; a refusal is one of these when it named a machine all the same.
    GivenUp {
        /// What to call it.
        outcome: Outcome,
        /// Why.
        why: String,
        /// The cloud's error, if there was one.
        error: Option<Box<Error>>,
    },
    /// It may still exist, or is kept because the user asked for that.
    Left {
        /// What and why.
        why: String,
    },
    /// Somebody else removed it.
    Elsewhere,
    /// The user wanted to stop; nothing is left.
    Interrupted,
    /// Another command wanted it removed; nothing is left.
    Wanted,
    /// Something on this computer failed before anything was made, or after all was removed.
    Broken(String),
}

/// What one attempt works with.
#[derive(Debug)]
pub struct Try<'a> {
    /// The account.
    pub cloud: &'a Arc<dyn Cloud>,
    /// What is bought.
    pub offer: &'a Offer,
    /// What goes into the create beside it.
    pub spec: &'a MachineSpec,
    /// The whole request.
    pub request: &'a Request,
    /// The record of the machine.
    pub open: &'a Open,
}

/// Buys the offer and waits until a login works.
pub async fn run(context: &Context, attempt: &Try<'_>, events: &dyn Events, cancel: &Cancel) -> Ended {
    let claim = match Claim::random() {
        Ok(claim) => claim,
        Err(error) => return Ended::Broken(error.to_string()),
    };
    let Try { cloud, offer, open, .. } = attempt;
    let name = open.name().clone();
    // Counted from the create: who waited long for an offer gets the machine for as long all the same.
    let expires = attempt.request.ttl.map(|ttl| Timestamp::now() + ttl);
    let mark = Mark {
        installation: context.installation.clone(),
        account: cloud.account().name().to_owned(),
        name: name.to_string(),
        claim,
        expires,
        owner: context.owner.clone(),
    };
    let identity = recorded(&cloud.identity());
    let begun = Attempt {
        claim,
        account: cloud.account().clone(),
        identity,
        offer: (*offer).clone(),
        started_at: Timestamp::now(),
        outcome: None,
        handle: None,
        side: Vec::new(),
        unknown: std::collections::BTreeMap::new(),
    };
    let written = open.update(|record| {
        record.state = MachineState::Creating;
        record.expires_at = expires;
        record.message = None;
        record.k8s = None;
        record.attempts.push(begun.clone());
    });
    if let Err(error) = written {
        return Ended::Broken(error.to_string());
    }
    // The last moment at which stopping costs nothing: the offer was asked for again before, which may have taken long.
    let stopped = match (cancel.is_cancelled(), open.is_wanted()) {
        (true, _) => Some(Ended::Interrupted),
        (_, true) => Some(Ended::Wanted),
        _ => None,
    };
    if let Some(stopped) = stopped {
        close_attempt(open, claim, Outcome::Interrupted);
        return stopped;
    }

    // From here on only a proof takes it off the list: `settle` and `undo` do, and the last look for what was given up. A
    // machine that is ready stays on it: whoever leaves at once has not been told of it yet.
    expose(cancel.exposure(), &name, &begun);
    let since = Instant::now();
    match create(attempt, &mark, claim, events, cancel).await {
        Ok(Created { handle, notes }) => {
            for message in notes {
                events.event(Event::Note { account: Some(cloud.account()), message });
            }
            made(context, attempt, claim, handle, since, events, cancel).await
        }
        Err(error) => settle(context, attempt, claim, error, since, events, cancel).await,
    }
}

/// Sends the create. A wish to stop does not drop it: whatever it makes must be known to be removed.
async fn create(
    attempt: &Try<'_>,
    mark: &Mark,
    claim: Claim,
    events: &dyn Events,
    cancel: &Cancel,
) -> crate::cloud::Result<Created> {
    let notes = Notes { open: attempt.open, claim, exposure: cancel.exposure() };
    let answer = attempt.cloud.create(attempt.offer, attempt.spec, mark, &notes);
    tokio::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => return answer,
        () = cancel.cancelled() => {
            let text = "stopping: waiting for the cloud's answer, to remove what it makes (again to leave at once)";
            events.event(Event::Step(text.to_owned()));
        }
    }
    answer.await
}

/// Finds out what a create made that failed or got no answer.
async fn settle(
    context: &Context,
    attempt: &Try<'_>,
    claim: Claim,
    error: Box<Error>,
    since: Instant,
    events: &dyn Events,
    cancel: &Cancel,
) -> Ended {
    let Try { cloud, open, .. } = attempt;
    let noted = open.record().attempt_mut(claim).cloned();
    if let Some(handle) = noted.as_ref().and_then(Attempt::whole) {
        // The answer named a machine and failed all the same: it must not stay.
        audit(context, attempt, "create", claim, None, "created", events);
        let made = Made { handle, seen: false };
        // Where its record cannot be written no other offer helps.
        let reason = match open.update(|_| {}) {
            Ok(()) => Reason::cloud(Outcome::Refused, error),
            Err(failed) => Reason::Local(failed.to_string()),
        };
        return undo(context, attempt, claim, made, reason, events, cancel).await;
    }
    if error.reached == Reached::No {
        close_attempt(open, claim, Outcome::Refused);
        cancel.exposure().remove(&claim.to_string());
        audit(context, attempt, "create", claim, None, "refused", events);
        return Ended::Refused(error);
    }
    events.event(Event::Step(format!(
        "{}: no certain answer to the create ({}); looking whether it took effect",
        cloud.account(),
        error.message
    )));
    // The lag counts from here: before its answer was lost the create may have waited for other answers and for its turn in
    // the rate window, and a search that ends too early buys a second machine beside the first.
    let until = Instant::now() + cloud.capabilities().listing_lag;
    let parts = match search(context, cloud, claim, until, events).await {
        Search::Found(handle) => {
            events.event(Event::Step(format!("{}: it did: {}", cloud.account(), handle.id)));
            return made(context, attempt, claim, *handle, since, events, cancel).await;
        }
        Search::Unanswered(silent) => return left(context, attempt, claim, silent.to_string(), events),
        Search::Nothing(parts) => parts,
    };
    let side = noted.map(|attempt| attempt.side).unwrap_or_default();
    if let Err(why) = delete_parts(context, cloud, &parts, &side, events, cancel).await {
        return left(context, attempt, claim, why, events);
    }
    let record = open.record();
    let watched = record.attempts.iter().find(|attempt| attempt.claim == claim);
    if let Some(watched) = watched
        && let Err(failed) = abandon(context, open.name(), watched)
    {
        // Without a note of it the claim may not be forgotten: it stays in the record.
        return left(context, attempt, claim, failed.to_string(), events);
    }
    let dropped = open.update(|record| record.attempts.retain(|attempt| attempt.claim != claim));
    note_failure(dropped, events);
    audit(context, attempt, "create", claim, None, "unknown", events);
    Ended::Abandoned(error)
}

/// Goes on with a machine that exists.
async fn made(
    context: &Context,
    attempt: &Try<'_>,
    claim: Claim,
    handle: Handle,
    since: Instant,
    events: &dyn Events,
    cancel: &Cancel,
) -> Ended {
    let Try { cloud, offer, open, request, .. } = attempt;
    let written = open.update(|record| {
        record.state = MachineState::Booting;
        record.machine_at = record.machine_at.or_else(|| Some(Timestamp::now()));
        record.price_per_hour = Some(offer.price_per_hour);
        if let Some(attempt) = record.attempt_mut(claim) {
            attempt.handle = Some(handle.clone());
            expose(cancel.exposure(), open.name(), attempt);
        }
    });
    audit(context, attempt, "create", claim, None, "created", events);
    if let Err(error) = written {
        let reason = Reason::Local(error.to_string());
        return undo(context, attempt, claim, Made { handle, seen: false }, reason, events, cancel).await;
    }
    let seen = AtomicBool::new(false);
    let cluster = plan(attempt);
    let machine = Waiting {
        cloud,
        handle: &handle,
        seen: &seen,
        offer,
        open,
        identity_file: &request.key.identity_file,
        public_key: &attempt.spec.public_key,
        own_image: attempt.spec.image.is_some(),
        env: &request.env,
        // A startup script may need apt, which the set-up holds for a while: it comes first.
        cluster: cluster.as_ref().filter(|_| request.startup_script.is_none()),
        since,
    };
    let reason = match until_ready(context, &machine, events, cancel).await {
        End::Ready(mut ready) => {
            match extras(context, attempt, cluster.as_ref(), &mut ready, events, cancel).await {
                Ok(failed) => return Ended::Ready { ready: Box::new(ready), failed },
                Err(reason) => reason,
            }
        }
        End::Elsewhere => Reason::Elsewhere,
        // Refused late, and nothing was made: no other refusal, once that is proven.
        End::Failed(error) if error.reached == Reached::No => Reason::cloud(Outcome::Refused, error),
        End::Failed(error) => Reason::cloud(Outcome::NotReady, error),
        End::NotReady(why) => Reason::GivenUp { outcome: Outcome::NotReady, why, error: None },
        End::Differs(why) => Reason::GivenUp { outcome: Outcome::Differs, why, error: None },
        End::Interrupted => Reason::Interrupted,
        End::Wanted => Reason::Wanted,
    };
    // What is not what was agreed is never kept: nobody said that it may cost more.
    if request.keep_failed
        && let Reason::GivenUp { why, outcome: Outcome::NotReady, .. } = &reason
    {
        let message = format!("kept though it did not get ready: {why}");
        note_failure(
            open.update(|record| {
                record.state = MachineState::Failed;
                record.message = Some(message.clone());
            }),
            events,
        );
        return Ended::Left { why: format!("{} {message}", open.name()) };
    }
    let seen = seen.load(Ordering::Relaxed);
    undo(context, attempt, claim, Made { handle, seen }, reason, events, cancel).await
}

/// Why a machine is given up.
pub(super) enum Reason {
    GivenUp {
        outcome: Outcome,
        why: String,
        error: Option<Box<Error>>,
    },
    Interrupted,
    Wanted,
    /// Somebody else removed it, as far as a look tells: it is deleted all the same, because a record is not dropped for one
    /// answer of one server.
    Elsewhere,
    Local(String),
}

impl Reason {
    fn cloud(outcome: Outcome, error: Box<Error>) -> Self {
        Reason::GivenUp { outcome, why: error.message.clone(), error: Some(error) }
    }
}

/// A machine that is given up.
struct Made {
    handle: Handle,
    /// Whether a look by its id ever showed it.
    seen: bool,
}

/// Removes what the attempt made, until the cloud confirms it.
async fn undo(
    context: &Context,
    attempt: &Try<'_>,
    claim: Claim,
    Made { handle, seen }: Made,
    reason: Reason,
    events: &dyn Events,
    cancel: &Cancel,
) -> Ended {
    let Try { cloud, open, .. } = attempt;
    let why = match &reason {
        Reason::GivenUp { why, .. } | Reason::Local(why) => why.as_str(),
        Reason::Interrupted => "stopping",
        Reason::Wanted => "another command wants it removed",
        Reason::Elsewhere => "the cloud does not have it any more",
    };
    events.event(Event::Step(format!("{why}; removing {}", handle.id)));
    note_failure(open.update(|record| record.state = MachineState::Deleting), events);
    let patience = Patience::of_roll_back(context);
    match delete_until_gone(cloud, &handle, patience, events, cancel, false).await {
        Undone::Gone => {}
        Undone::Left(undone) => {
            let words = format!("{} could not be removed: {}", handle.id, undone.why);
            return left(context, attempt, claim, words, events);
        }
    }
    // That an id is not known proves nothing where it never was: a server that is behind says the same.
    if !seen && let Err(why) = prove_gone(context, cloud, claim, events, cancel).await {
        return left(context, attempt, claim, format!("{} may not be removed: {why}", handle.id), events);
    }
    cancel.exposure().remove(&claim.to_string());
    let made_at = open.record().machine_at;
    let (outcome, word) = match &reason {
        Reason::GivenUp { outcome, .. } => (*outcome, outcome.as_str()),
        Reason::Interrupted | Reason::Wanted => (Outcome::Interrupted, "interrupted"),
        Reason::Elsewhere => (Outcome::NotReady, "removed elsewhere"),
        Reason::Local(_) => (Outcome::NotReady, "not_ready"),
    };
    // The log comes first: once the record calls it gone, no later command would write its removal down.
    audit(context, attempt, "remove", claim, made_at, word, events);
    close_attempt(open, claim, outcome);
    forget_ssh(context, open, events);
    match reason {
        Reason::GivenUp { error: Some(error), .. } if error.reached == Reached::No => Ended::Refused(error),
        Reason::GivenUp { outcome, why, error } => Ended::GivenUp { outcome, why, error },
        Reason::Interrupted => Ended::Interrupted,
        Reason::Wanted => Ended::Wanted,
        Reason::Elsewhere => Ended::Elsewhere,
        Reason::Local(why) => Ended::Broken(why),
    }
}
