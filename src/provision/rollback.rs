//! Deleting until the cloud confirms: the one loop behind every roll-back and every `rm`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cloud::{Cloud, Deletion, Error, ErrorKind, patiently};
use crate::model::handle::Handle;
use crate::model::machine::MachineState;
use crate::provision::Context;
use crate::provision::cancel::Cancel;
use crate::provision::events::{Event, Events};
use crate::provision::gather::within;

/// So many refusals in a row are meant: one can be a cloud's bad moment, and a machine that costs is at stake.
const DENIALS: u32 = 3;

/// How long a roll-back puts up with silence: nobody else removes what it leaves.
const ROLL_BACK: Duration = Duration::from_secs(5 * 60);

/// How long a removal that somebody asked for does: it can be asked for again.
const REMOVAL: Duration = Duration::from_secs(60);

/// How long either puts up with too many requests.
const LIMITED: Duration = Duration::from_secs(10 * 60);

/// How long each request may wait for its turn under the cloud's rate limits.
const TURN: Duration = Duration::from_secs(10 * 60);

/// More than the answers of one step take together when each comes in time.
const ANSWERS: u32 = 12;

/// How it ended.
#[derive(Debug)]
pub enum Undone {
    /// The cloud confirmed that nothing is left.
    Gone,
    /// It may still exist.
    Left(Left),
}

/// Why something may still exist.
#[derive(Debug)]
pub struct Left {
    /// In words.
    pub why: String,
    /// The cloud's error, if it was one.
    pub kind: Option<ErrorKind>,
}

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// While the cloud says that it is on its way.
    pub pending: Duration,
    /// While the cloud says nothing but that there are too many requests.
    pub limited: Duration,
    /// While the cloud does not answer. The wait for our own turn under its rate limits is no silence.
    pub silence: Duration,
    /// For one answer.
    pub answer: Duration,
}

impl Patience {
    /// Returns the patience of a roll-back: five minutes of silence, or ten times `[wait] grace` where that is shorter.
    pub fn of_roll_back(context: &Context) -> Self {
        Patience::with(context, ROLL_BACK, 10)
    }

    /// Returns the patience of a removal that somebody asked for: a minute of silence, or twice `[wait] grace` where that is
    /// shorter.
    pub fn of_removal(context: &Context) -> Self {
        Patience::with(context, REMOVAL, 2)
    }

    fn with(context: &Context, silence: Duration, graces: u32) -> Self {
        let silence = context.grace.map_or(silence, |grace| silence.min(grace.saturating_mul(graces)));
        let limited = context.grace.map_or(LIMITED, |grace| LIMITED.min(grace.saturating_mul(graces * 5)));
        Patience { pending: Duration::from_secs(600), limited, silence, answer: context.cloud_timeout }
    }
}

/// Deletes the machine behind `handle` and all that belongs to it, and looks that it is gone.
///
/// A wish to stop ends it only when `stoppable` (a removal may be finished by the next `rm`; a roll-back goes on until it is
/// done or the process is ended).
pub async fn delete_until_gone(
    cloud: &Arc<dyn Cloud>,
    handle: &Handle,
    patience: Patience,
    events: &dyn Events,
    cancel: &Cancel,
    stoppable: bool,
) -> Undone {
    let begun = Instant::now();
    // All are moved on by what our requests wait for their turn.
    let (mut since, mut answered, mut served) = (begun, begun, begun);
    let mut pause = Duration::from_millis(200);
    let mut denials = 0;
    loop {
        let step = patiently(TURN, step(cloud, handle, patience.answer));
        let (went, waited) = tokio::select! {
            went = step => went,
            () = cancel.cancelled(), if stoppable => {
                let why = "stopped before the cloud confirmed".to_owned();
                return Undone::Left(Left { why, kind: Some(ErrorKind::Interrupted) });
            }
        };
        (since, answered, served) = (since + waited, answered + waited, served + waited);
        let why = match went {
            Ok(Deletion::Gone) => return Undone::Gone,
            Ok(Deletion::Pending(words)) => {
                (answered, served, denials) = (Instant::now(), Instant::now(), 0);
                if since.elapsed() > patience.pending {
                    return Undone::Left(Left { why: words, kind: None });
                }
                events
                    .event(Event::Waiting { words: format!("removing: {words}"), elapsed: begun.elapsed() });
                (words, None)
            }
            Err(error) => {
                let denied =
                    matches!(error.kind, ErrorKind::Auth | ErrorKind::Forbidden | ErrorKind::Rejected);
                denials = if denied { denials + 1 } else { 0 };
                if error.kind == ErrorKind::RateLimited {
                    // Refused for now, but by the cloud.
                    answered = Instant::now();
                }
                let over = answered.elapsed() > patience.silence
                    || served.elapsed() > patience.limited
                    || since.elapsed() > patience.pending;
                if denials >= DENIALS || over {
                    return Undone::Left(Left { why: error.to_string(), kind: Some(error.kind) });
                }
                events.event(Event::Waiting {
                    words: format!("removing: {}", error.message),
                    elapsed: begun.elapsed(),
                });
                pause = pause.max(error.retry_after.unwrap_or_default());
                (error.to_string(), Some(error.kind))
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause.min(Duration::from_secs(30))) => {}
            () = cancel.cancelled(), if stoppable => {
                return Undone::Left(Left { why: format!("stopped before the cloud confirmed ({})", why.0), kind: why.1 });
            }
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

/// One delete, and one look that believes nothing it has not seen.
///
/// Each request keeps its own time limit, which does not count the wait for its turn; what is set here is a net under them.
async fn step(cloud: &Arc<dyn Cloud>, handle: &Handle, answer: Duration) -> Result<Deletion, Box<Error>> {
    let most = TURN + answer.saturating_mul(ANSWERS);
    match within(most, cloud, "deleting the machine", cloud.delete(handle)).await? {
        Deletion::Gone => {}
        pending => return Ok(pending),
    }
    let look = within(most, cloud, "looking whether the machine is gone", cloud.inspect(handle)).await?;
    Ok(match look.state {
        MachineState::Gone => Deletion::Gone,
        state => Deletion::Pending(look.words.unwrap_or_else(|| state.to_string())),
    })
}
