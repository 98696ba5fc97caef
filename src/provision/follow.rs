//! What follows in the offer loop from how an attempt ended.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::cloud::{Error, ErrorKind};
use crate::model::account::AccountId;
use crate::model::offer::Offer;
use crate::plan::queue::Queue;
use crate::provision::attempt::Ended;
use crate::provision::bookkeeping::note_running;
use crate::provision::cancel::Cancel;
use crate::provision::events::{Event, Events};
use crate::provision::extras::Failed;
use crate::provision::failure::{Failure, Kind};
use crate::provision::run::{Loop, Pass, Tried, interrupted, removed};
use crate::provision::wait::Ready;
use crate::state::journal::Open;
use crate::state::record::Outcome;

/// After so many clean refusals a pass ends.
const MOST_REFUSALS: u32 = 40;
/// After so much time spent on refusals a pass ends; boot waits are not counted.
const LONGEST: Duration = Duration::from_secs(600);
/// Longest wait for a rate limit before the next account is asked.
const RATE_WAIT: Duration = Duration::from_secs(30);

/// What may be limited apart from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// Asking for the offer again.
    Recheck,
    /// The create.
    Create,
}

/// How far one pass is.
pub(super) struct Course {
    /// What is left to try.
    pub(super) queue: Queue,
    /// Offers that came back once with another price.
    pub(super) put_back: HashSet<(AccountId, String, Option<String>)>,
    /// Rate limits that were waited out, with no answer since.
    waited: HashSet<(AccountId, Step)>,
    refusals: u32,
    spent: Duration,
    begun: Instant,
}

impl Course {
    pub(super) fn new(queue: Queue) -> Self {
        Course {
            queue,
            put_back: HashSet::new(),
            waited: HashSet::new(),
            refusals: 0,
            spent: Duration::ZERO,
            begun: Instant::now(),
        }
    }

    /// Whether enough was tried in vain.
    pub(super) fn is_over(&self) -> bool {
        self.refusals >= MOST_REFUSALS || self.spent > LONGEST
    }

    /// The next offer is tried from now on.
    pub(super) fn begin(&mut self) {
        self.begun = Instant::now();
    }

    /// The account answered a re-check: its next rate limit is waited out anew.
    pub(super) fn answered(&mut self, account: &AccountId) {
        self.waited.remove(&(account.clone(), Step::Recheck));
    }

    /// The offer was tried in vain, and nothing was made.
    pub(super) fn count_refusal(&mut self) {
        self.refusals += 1;
        self.spent += self.begun.elapsed();
    }
}

impl Loop<'_> {
    /// Goes on after an attempt; how the pass ends, if it does.
    pub(super) async fn follow(
        &mut self,
        course: &mut Course,
        open: &Open,
        offer: Offer,
        ended: Ended,
        events: &dyn Events,
        cancel: &Cancel,
    ) -> Option<Pass> {
        match ended {
            Ended::Ready { ready, failed } => {
                return Some(self.finish(open, offer, *ready, failed, events));
            }
            Ended::Refused(error) => {
                if error.user_input {
                    let kind = Kind::Cloud(error.kind);
                    self.note(offer, Outcome::Refused, kind, error.message.clone(), events);
                    return Some(Pass::Over(Failure::from(error.as_ref())));
                }
                self.turned_down(course, Step::Create, offer, &error, events, cancel).await;
                course.count_refusal();
            }
            Ended::Abandoned(error) => {
                course.queue.not_ready(&offer);
                let message =
                    format!("{}; no machine turned up, its claim is looked for from now on", error.message);
                self.note(offer, Outcome::Unknown, Kind::Cloud(error.kind), message, events);
                if cancel.is_cancelled() {
                    let text = "stopped; no machine turned up of the last create, its claim is looked for from now on";
                    return Some(Pass::Over(Failure::new(Kind::Cloud(ErrorKind::Interrupted), text)));
                }
                if self.count_made() {
                    return Some(Pass::Empty);
                }
            }
            Ended::GivenUp { outcome, why, error } => {
                course.queue.not_ready(&offer);
                let kind = match (outcome, &error) {
                    (_, Some(error)) => Kind::Cloud(error.kind),
                    (Outcome::Differs, None) => Kind::Refused,
                    _ => Kind::NotReady,
                };
                if let Some(error) = &error {
                    course.queue.refused(&offer, error);
                }
                self.note(offer, outcome, kind, why, events);
                if let Some(error) = error.filter(|error| error.user_input) {
                    return Some(Pass::Over(Failure::from(error.as_ref())));
                }
                // A create that was refused and made a machine all the same counts too: it may have cost, unlike a refusal.
                if self.count_made() {
                    return Some(Pass::Empty);
                }
            }
            Ended::Left { why } => {
                self.note(offer, Outcome::Unknown, Kind::LeftRunning, why.clone(), events);
                let hint = format!("`gpuprov ls` shows it; `gpuprov rm {}` removes it", open.name());
                return Some(Pass::Over(Failure::new(Kind::LeftRunning, why).hint(hint)));
            }
            Ended::Elsewhere => {
                let why = "the machine was removed elsewhere while it started".to_owned();
                self.note(offer, Outcome::NotReady, Kind::Removed, why.clone(), events);
                return Some(Pass::Over(Failure::new(Kind::Removed, why)));
            }
            Ended::Interrupted => {
                let kind = Kind::Cloud(ErrorKind::Interrupted);
                self.note(offer, Outcome::Interrupted, kind, "stopped".to_owned(), events);
                return Some(Pass::Over(interrupted()));
            }
            Ended::Wanted => {
                let why = "removed by another command".to_owned();
                self.note(offer, Outcome::Interrupted, Kind::Removed, why, events);
                return Some(Pass::Over(removed()));
            }
            Ended::Broken(why) => return Some(Pass::Over(Failure::new(Kind::Local, why))),
        }
        None
    }

    /// Learns from a refusal that made nothing. A short rate limit is waited out, once until there is an answer, because it
    /// says nothing about the offer.
    pub(super) async fn turned_down(
        &mut self,
        course: &mut Course,
        step: Step,
        offer: Offer,
        error: &Error,
        events: &dyn Events,
        cancel: &Cancel,
    ) {
        if let (ErrorKind::RateLimited, Some(wait)) = (error.kind, error.retry_after)
            && wait <= RATE_WAIT
            && !cancel.is_cancelled()
            && course.waited.insert((offer.account.clone(), step))
        {
            events.event(Event::Step(format!(
                "{}: {}; waiting {} s",
                offer.account,
                error.message,
                wait.as_secs()
            )));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = cancel.cancelled() => {}
            }
            course.queue.put_back(offer);
        } else {
            self.refused(&mut course.queue, offer, error, events);
        }
    }

    /// Writes down that the machine is ready.
    fn finish(
        &mut self,
        open: &Open,
        offer: Offer,
        ready: Ready,
        failed: Failed,
        events: &dyn Events,
    ) -> Pass {
        let request = self.request;
        for message in &ready.look.notes {
            events.event(Event::Note { account: Some(&offer.account), message: message.clone() });
        }
        if let (Some(Err(why)), None) = (&ready.look.cluster, &failed.cluster) {
            let message = format!(
                "no cluster: its set-up could not be started: {why}; `gpuprov k8s setup {}` tries again",
                open.name()
            );
            events.event(Event::Note { account: Some(&offer.account), message });
        }
        let written = note_running(open, request, &ready, failed.script.as_deref());
        let kind = Kind::Note;
        self.tried.push(Tried { offer, outcome: Outcome::Created, kind, message: None, hint: None });
        if let Err(error) = written {
            // The record on disk still says that it is on its way: `ls` and `rm` find it all the same.
            events.event(Event::Note { account: None, message: error.to_string() });
        }
        let name = open.name();
        let cluster = failed.cluster.map(|why| format!("the cluster is not ready: {why}"));
        let mut hint = format!("the machine runs and is kept: `gpuprov ssh {name}`, or `gpuprov rm {name}`");
        if cluster.is_some() {
            hint = format!("{hint}; `gpuprov k8s setup {name}` takes the cluster up again");
        }
        let why: Vec<String> = failed.script.into_iter().chain(cluster).collect();
        match why.is_empty() {
            true => Pass::Ready,
            false => Pass::Over(Failure::new(Kind::SetupFailed, why.join("; ")).hint(hint)),
        }
    }
}
