//! What an attempt writes down: its record, our ssh files, the audit log.

use jiff::Timestamp;

use crate::cloud::Journal;
use crate::model::handle::{Resource, ResourceKind};
use crate::model::machine::{MachineName, MachineState};
use crate::model::mark::Claim;
use crate::provision::attempt::{Ended, Try};
use crate::provision::cancel::{Exposed, Exposure};
use crate::provision::events::{Event, Events};
use crate::provision::extras::begun;
use crate::provision::wait::Ready;
use crate::provision::{Context, Did, Request, cost_since};
use crate::state::error::StateError;
use crate::state::journal::Open;
use crate::state::record::{Attempt, Outcome, RecordedSsh};

/// Notes what a create makes, and keeps it on the list of what may cost money.
pub(super) struct Notes<'a> {
    pub(super) open: &'a Open,
    pub(super) claim: Claim,
    pub(super) exposure: &'a Exposure,
}

/// Puts what an attempt may have made on the list of what may cost money.
pub(super) fn expose(exposure: &Exposure, name: &MachineName, attempt: &Attempt) {
    let id = attempt.handle.as_ref().map(|handle| handle.id.as_str());
    let price = Some(attempt.offer.price_per_hour);
    exposure.add(&attempt.claim.to_string(), Exposed::at(name, &attempt.account, id, price));
}

impl Journal for Notes<'_> {
    fn made(&self, resource: &Resource) -> std::io::Result<()> {
        let noted = self.open.made(self.claim, resource);
        if resource.kind == ResourceKind::Machine {
            let record = self.open.record();
            let attempt = record.attempts.iter().find(|attempt| attempt.claim == self.claim);
            if let Some(attempt) = attempt {
                expose(self.exposure, &record.name, attempt);
            }
        }
        noted.map_err(std::io::Error::other)
    }
}

/// Keeps the record of something that may exist.
pub(super) fn left(
    context: &Context,
    attempt: &Try<'_>,
    claim: Claim,
    why: String,
    events: &dyn Events,
) -> Ended {
    let message = format!("it may still exist: {why}");
    let kept = attempt.open.update(|record| {
        record.state = MachineState::Unknown;
        record.message = Some(message.clone());
        if let Some(attempt) = record.attempt_mut(claim) {
            attempt.outcome = Some(Outcome::Unknown);
        }
    });
    note_failure(kept, events);
    audit(context, attempt, "create", claim, None, "left", events);
    Ended::Left { why: format!("{} at {}: {why}", attempt.open.name(), attempt.cloud.account()) }
}

/// Notes that the machine runs, and what the first login told of it. What is known of its cluster by now stays.
pub(super) fn note_running(
    open: &Open,
    request: &Request,
    ready: &Ready,
    script_failed: Option<&str>,
) -> Result<(), StateError> {
    open.update(|record| {
        record.state = MachineState::Running;
        record.ssh = Some(RecordedSsh {
            address: ready.address.clone(),
            identity_file: request.key.identity_file.display().to_string(),
            host_key_known: ready.host_key_known,
        });
        record.gpu_check = ready.look.gpu_check;
        record.message = script_failed.map(str::to_owned);
        record.k8s = record.k8s.take().or_else(|| ready.look.cluster.as_ref().map(begun));
        if let Some(attempt) = record.attempts.last_mut() {
            attempt.outcome = Some(Outcome::Created);
        }
    })
}

/// Notes how an attempt ended of which nothing is left.
pub(super) fn close_attempt(open: &Open, claim: Claim, outcome: Outcome) {
    // If this cannot be written the record says more than is true; the next `rm` finds that nothing is there.
    let _ = open.update(|record| {
        record.state = MachineState::Creating;
        record.machine_at = None;
        record.ssh = None;
        if let Some(attempt) = record.attempt_mut(claim) {
            attempt.outcome = Some(outcome);
        }
    });
}

/// Takes the machine out of our ssh files.
pub(super) fn forget_ssh(context: &Context, open: &Open, events: &dyn Events) {
    if let Err(error) = context.ssh.remove(open.name()) {
        events.event(Event::Note { account: None, message: format!("our ssh files: {error}") });
    }
}

/// Tells that something could not be written down; it must not stop a clean-up.
pub(super) fn note_failure<E: std::fmt::Display>(result: Result<(), E>, events: &dyn Events) {
    if let Err(error) = result {
        events.event(Event::Note { account: None, message: error.to_string() });
    }
}

/// Appends to the audit log.
pub(super) fn audit(
    context: &Context,
    attempt: &Try<'_>,
    action: &str,
    claim: Claim,
    created_at: Option<Timestamp>,
    outcome: &str,
    events: &dyn Events,
) {
    let cost = created_at.map(|at| cost_since(attempt.offer.price_per_hour, at, Timestamp::now()));
    let Try { cloud, offer, open, .. } = attempt;
    let did = Did::bought(action, open.name(), cloud.account(), claim, offer, outcome);
    context.record(Did { owner: context.owner.as_ref(), created_at, cost, ..did }, events);
}
