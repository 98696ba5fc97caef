//! Vast's rate limits: a shortest time between two calls of one endpoint and method, an identity each.
//!
//! Numbers are the `x-rate-limit` marks of `docs.vast.ai/api-reference`. The body of a 429 comes in three shapes;
//! here they take turns. They run by real time, also under a step clock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::json;

use super::trouble::Throttle;
use crate::sandbox::server::Answer;

/// Shortest time between two calls, and what a refused call adds, in milliseconds.
fn interval(operation: &str) -> (u64, u64) {
    match operation {
        "create" => (4500, 12_000),
        "list_instances" | "set_state" | "attach_key" | "reboot" => (1000, 0),
        "get_instance" | "detach_key" => (2000, 0),
        "delete_instance" => (3000, 0),
        "change_bid" => (5500, 0),
        _ => (0, 0),
    }
}

/// Searches in a minute.
const SEARCHES: usize = 10;

/// When which call was made last.
#[derive(Debug, Default)]
pub(super) struct Pace {
    next: HashMap<(String, &'static str), Instant>,
    searches: HashMap<String, Vec<Instant>>,
    refused: usize,
}

impl Pace {
    /// Counts one call; the refusal when it comes too early.
    pub(super) fn count(&mut self, who: &str, operation: &'static str) -> Option<Answer> {
        let now = Instant::now();
        if operation == "search" {
            let minute = Duration::from_secs(60);
            let recent = self.searches.entry(who.to_owned()).or_default();
            recent.retain(|at| now.duration_since(*at) < minute);
            if let Some(first) = recent.first().filter(|_| recent.len() >= SEARCHES) {
                let wait = minute.saturating_sub(now.duration_since(*first));
                return Some(self.refuse(6.0, wait));
            }
            recent.push(now);
            return None;
        }
        let (step, penalty) = interval(operation);
        if step == 0 {
            return None;
        }
        let next = self.next.entry((who.to_owned(), operation)).or_insert(now);
        if *next > now {
            *next = (*next).max(now + Duration::from_millis(penalty));
            let wait = next.duration_since(now);
            return Some(self.refuse(Duration::from_millis(step).as_secs_f64(), wait));
        }
        *next = now + Duration::from_millis(step);
        None
    }

    fn refuse(&mut self, threshold: f64, wait: Duration) -> Answer {
        let shapes = [Throttle::Detail, Throttle::Slug, Throttle::Text];
        let shape = shapes[self.refused % shapes.len()];
        self.refused += 1;
        // Some servers send the header by now; it comes with one of the shapes.
        let header = (shape == Throttle::Slug).then(|| wait.as_secs() + 1);
        throttled(shape, threshold, header)
    }
}

/// A 429.
pub(super) fn throttled(shape: Throttle, threshold: f64, retry_after: Option<u64>) -> Answer {
    let text = format!("API requests too frequent endpoint threshold={threshold:.1}");
    let answer = match shape {
        Throttle::Detail => Answer::json(429, json!({"detail": text})),
        Throttle::Slug => {
            Answer::json(429, json!({"success": false, "error": "rate_limit_exceeded", "msg": text}))
        }
        Throttle::Text => {
            let text = text.replace("frequent endpoint", "frequent: endpoint");
            Answer::text(429, "text/plain", &text)
        }
    };
    match retry_after {
        Some(seconds) => answer.with("retry-after", seconds.to_string()),
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_and_searches() {
        let mut pace = Pace::default();
        assert!(pace.count("a", "get_instance").is_none());
        assert!(pace.count("b", "get_instance").is_none() && pace.count("a", "current_user").is_none());
        let refused = pace.count("a", "get_instance").unwrap();
        assert_eq!(refused.status, 429);
        for _ in 0..SEARCHES {
            assert!(pace.count("a", "search").is_none());
        }
        assert!(pace.count("a", "search").unwrap().headers[0].0 == "retry-after");
        assert!(pace.count("b", "search").is_none());
    }
}
