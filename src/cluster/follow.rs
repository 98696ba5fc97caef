//! Waiting until a cluster is ready or it is certain that it will not be.

use std::time::{Duration, Instant};

use super::status::{State, Status, ask};
use crate::model::duration::show;
use crate::model::machine::MachineName;
use crate::ssh::exec::Client;

/// How long a cluster may take from now; the steps on the machine have ends of their own before that.
pub const DEADLINE: Duration = Duration::from_secs(20 * 60);
/// How long one look may hold on for a change.
const HOLD: Duration = Duration::from_secs(10);
/// So long nothing is heard before the wait is given up; the set-up goes on there.
const SILENCE: Duration = Duration::from_secs(120);
/// Between two tries to connect.
const AGAIN: Duration = Duration::from_secs(2);

/// How the wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// What the machine said last.
    pub status: Option<Status>,
    /// Why the cluster is not ready; none if it is.
    pub problem: Option<String>,
}

/// Waits for the cluster of the machine called `name`, for [`DEADLINE`] at most, telling every step in a line, and whatever
/// else changes. The future can be dropped at any time: the set-up goes on.
pub async fn follow(
    login: &Client,
    name: &MachineName,
    told: &mut (dyn FnMut(&str, &Status) + Send),
) -> Followed {
    let begun = Instant::now();
    let mut heard = Instant::now();
    let mut last: Option<Status> = None;
    loop {
        if begun.elapsed() > DEADLINE {
            let place = last.as_ref().map(Status::shown).unwrap_or_default();
            let problem = format!("it is not ready after {}, and goes on ({place})", show(DEADLINE));
            return Followed { status: last, problem: Some(problem) };
        }
        let seen = last.as_ref().map(|status| status.mark.clone()).unwrap_or_default();
        match ask(login, name, &seen, HOLD).await {
            Ok(None) => {
                let problem = Some("no cluster was begun on the machine".to_owned());
                return Followed { status: None, problem };
            }
            Ok(Some(status)) => {
                heard = Instant::now();
                let known = last.as_ref().map(|last| last.begun.as_slice()).unwrap_or_default();
                // A set-up that was taken up again begins with no step.
                let news = status.begun.strip_prefix(known).unwrap_or(&status.begun);
                news.iter().for_each(|line| told(line, &status));
                let shown = status.shown();
                if news.last() != Some(&shown) && last.as_ref().map(Status::shown).as_ref() != Some(&shown) {
                    told(&shown, &status);
                }
                let ended = match status.state {
                    State::Ready => Some(None),
                    State::Failed => Some(Some(status.shown())),
                    State::Pending | State::Installing => None,
                };
                last = Some(status);
                if let Some(problem) = ended {
                    return Followed { status: last, problem };
                }
            }
            Err(error) if heard.elapsed() > SILENCE => {
                let problem = format!(
                    "the machine was not reached for {} ({error}); the set-up goes on there",
                    show(SILENCE)
                );
                return Followed { status: last, problem: Some(problem) };
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}
