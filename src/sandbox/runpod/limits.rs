//! RunPod's rate limits: three windows a user, reported in `RateLimit` headers on every authenticated answer.
//!
//! The form is that of `docs.runpod.io/api-reference-v2` (rate limits); the quotas are those that a live
//! account showed (180 a minute, 7200 an hour, 86400 a day). They run by real time, also under a step clock.

use std::time::{Duration, Instant};

use crate::sandbox::server::Answer;

const WINDOWS: [(&str, u64, u64); 3] = [("minute", 180, 60), ("hour", 7200, 3600), ("day", 86_400, 86_400)];

/// The three windows of one account.
#[derive(Debug, Default)]
pub(super) struct Windows([Option<(Instant, u64)>; 3]);

/// How a call stands against the windows.
pub(super) struct Verdict {
    /// Value of `RateLimit`.
    limit: String,
    /// Name of the fullest exhausted window and the seconds until it is open again.
    over: Option<(&'static str, u64)>,
}

impl Windows {
    /// Counts one call. Without `enforce` the headers show full windows and nothing is refused.
    pub(super) fn count(&mut self, enforce: bool) -> Verdict {
        let now = Instant::now();
        let mut parts = Vec::new();
        let mut over: Option<(&'static str, u64)> = None;
        for (slot, (name, quota, seconds)) in self.0.iter_mut().zip(WINDOWS) {
            let window = Duration::from_secs(seconds);
            let (since, used) = match *slot {
                Some((since, used)) if now.duration_since(since) < window => (since, used),
                _ => (now, 0),
            };
            let left_time = window.saturating_sub(now.duration_since(since)).as_secs().max(1);
            if enforce && used >= quota {
                over = over.filter(|(_, worst)| *worst >= left_time).or(Some((name, left_time)));
            }
            let used = if enforce { (used + 1).min(quota) } else { 0 };
            *slot = Some((since, used));
            parts.push(format!("\"{name}\";r={};t={left_time}", quota - used));
        }
        Verdict { limit: parts.join(", "), over }
    }
}

impl Verdict {
    /// The exhausted window, and the seconds to wait.
    pub(super) fn over(&self) -> Option<(&'static str, u64)> {
        self.over
    }

    /// Adds the headers.
    pub(super) fn on(&self, answer: Answer) -> Answer {
        let policy: Vec<String> =
            WINDOWS.iter().map(|(name, quota, window)| format!("\"{name}\";q={quota};w={window}")).collect();
        answer.with("ratelimit-policy", policy.join(", ")).with("ratelimit", self.limit.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minute_runs_out() {
        let mut windows = Windows::default();
        for _ in 0..180 {
            assert!(windows.count(true).over().is_none());
        }
        let (name, wait) = windows.count(true).over().unwrap();
        assert_eq!(name, "minute");
        assert!((1..=60).contains(&wait));
        assert!(Windows::default().count(false).limit.starts_with("\"minute\";r=180;t="));
    }
}
