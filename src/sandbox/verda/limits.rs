//! Verda's rate limits: 60 s windows a project, for everything and for each method and path.
//!
//! Numbers and headers are those of the API document (rate limits). They run by real time, also under a step clock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::error;
use crate::sandbox::server::Answer;

const WINDOW: Duration = Duration::from_secs(60);
const PROJECT: u64 = 500;

/// Calls in a window of one method and path.
fn quota(method: &str, path: &str) -> u64 {
    if method == "GET" && matches!(path, "/v1/instances" | "/v1/volumes") { 120 } else { 60 }
}

/// The windows of one project.
#[derive(Debug, Default)]
pub(super) struct Windows {
    project: Option<(Instant, u64)>,
    paths: HashMap<String, (Instant, u64)>,
}

/// How a call stands against the windows.
pub(super) struct Verdict {
    policy: String,
    limit: String,
    wait: Option<u64>,
}

impl Windows {
    /// Counts one call. Without `enforce` the headers show full windows and nothing is refused.
    pub(super) fn count(&mut self, method: &str, path: &str, enforce: bool) -> Verdict {
        let now = Instant::now();
        let own = quota(method, path);
        let project = self.project.get_or_insert((now, 0));
        let (all_left, all_wait) = spend(project, now, PROJECT, enforce);
        let endpoint = self.paths.entry(format!("{method} {path}")).or_insert((now, 0));
        let (own_left, own_wait) = spend(endpoint, now, own, enforce);
        let over = [(all_left, all_wait), (own_left, own_wait)];
        let wait = over.iter().filter(|(left, _)| left.is_none()).map(|(_, wait)| *wait).max();
        Verdict {
            policy: format!("\"project\";q={PROJECT};w=60, \"endpoint\";q={own};w=60"),
            limit: format!(
                "\"project\";r={};t={all_wait}, \"endpoint\";r={};t={own_wait}",
                all_left.unwrap_or(0),
                own_left.unwrap_or(0)
            ),
            wait,
        }
    }
}

/// What is left after this call, nothing when it is one too many, and the seconds until the window opens again.
fn spend(slot: &mut (Instant, u64), now: Instant, quota: u64, enforce: bool) -> (Option<u64>, u64) {
    if now.duration_since(slot.0) >= WINDOW {
        *slot = (now, 0);
    }
    let wait = WINDOW.saturating_sub(now.duration_since(slot.0)).as_secs().max(1);
    if !enforce {
        return (Some(quota), wait);
    }
    if slot.1 >= quota {
        return (None, wait);
    }
    slot.1 += 1;
    (Some(quota - slot.1), wait)
}

impl Verdict {
    /// The refusal, when the call is one too many.
    pub(super) fn refusal(&self) -> Option<Answer> {
        let answer = |wait: u64| {
            error(429, "rate_limit_exceeded", "Too many requests").with("retry-after", wait.to_string())
        };
        self.wait.map(answer)
    }

    /// Adds the headers.
    pub(super) fn on(&self, answer: Answer) -> Answer {
        answer.with("ratelimit-policy", self.policy.clone()).with("ratelimit", self.limit.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minute_runs_out() {
        let mut windows = Windows::default();
        for _ in 0..60 {
            assert!(windows.count("GET", "/v1/images", true).refusal().is_none());
        }
        let verdict = windows.count("GET", "/v1/images", true);
        assert!(verdict.refusal().is_some_and(|answer| answer.status == 429));
        assert!(verdict.limit.starts_with("\"project\";r=439;t="), "{}", verdict.limit);
        assert!(windows.count("GET", "/v1/instances", true).limit.contains("\"endpoint\";r=119;"));
    }
}
