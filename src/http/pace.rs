//! Keeps one account within a provider's rate windows: requests are spread out when little of a window is left.
//!
//! Fed by the `RateLimit` and `RateLimit-Policy` headers of every answer
//! (draft-ietf-httpapi-ratelimit-headers; RunPod: docs.runpod.io/api-reference-v2/overview), in the forms
//! `"minute";r=58;t=41, "hour";r=2998;t=1812` and `"minute";q=60;w=60`; or held to a fixed number of requests in a span of
//! time, for providers that publish one for each call and say nothing in their answers (Vast:
//! docs.vast.ai/api-reference/rate-limits-and-errors).

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::header::HeaderMap;

/// More windows than any provider has; what an answer names beyond is not kept.
const MOST_WINDOWS: usize = 16;

tokio::task_local! {
    static TURN: Turn;
}

/// How long a request may wait for its turn, and how long those of this work did.
struct Turn {
    most: Duration,
    waited: Cell<Duration>,
}

/// Does work whose requests may each wait for their turn for up to `most`, beside the time that their answers may take, and
/// returns how long they waited. A clean-up is done this way: one that does not wait for its turn is refused by the provider.
pub async fn patiently<T>(most: Duration, work: impl Future<Output = T>) -> (T, Duration) {
    let work = async {
        let done = work.await;
        (done, TURN.with(|turn| turn.waited.get()))
    };
    TURN.scope(Turn { most, waited: Cell::default() }, work).await
}

/// Returns how long a request that may be repeated waits for its turn here; none outside of [`patiently`].
pub(super) fn patience() -> Option<Duration> {
    TURN.try_with(|turn| turn.most).ok()
}

/// Notes that a request waited for its turn.
pub(super) fn note_wait(wait: Duration) {
    // Outside of `patiently` nobody counts.
    let _ = TURN.try_with(|turn| turn.waited.set(turn.waited.get() + wait));
}

/// The state of one provider's windows for one key.
#[derive(Debug, Default)]
pub struct Pacer {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    windows: BTreeMap<String, Window>,
    /// When the next request may go out at the earliest.
    next: Option<Instant>,
    fixed: Option<Fixed>,
}

/// So many requests in so long a time, and when the last ones went or go out.
#[derive(Debug)]
struct Fixed {
    most: usize,
    within: Duration,
    booked: VecDeque<Instant>,
}

#[derive(Debug, Default)]
struct Window {
    quota: Option<u64>,
    length: Option<Duration>,
    left: Option<u64>,
    resets: Option<Instant>,
}

impl Pacer {
    /// Holds the requests to at most `most` (one at least) in every span of `within`; the last call of this wins.
    pub fn limit(&self, most: usize, within: Duration) {
        let mut state = self.lock();
        let booked = state.fixed.take().map(|fixed| fixed.booked).unwrap_or_default();
        state.fixed = Some(Fixed { most: most.max(1), within, booked });
    }

    /// Takes in what an answer that came at `now` says.
    pub fn learn(&self, headers: &HeaderMap, now: Instant) {
        let mut state = self.lock();
        for (name, fields) in items(headers, "ratelimit-policy") {
            if let Some(window) = state.window(name) {
                window.quota = number(&fields, "q").or(window.quota);
                let length = number(&fields, "w").map(|seconds| Duration::from_secs(seconds.min(7 * 86_400)));
                window.length = length.or(window.length);
            }
        }
        for (name, fields) in items(headers, "ratelimit") {
            let left = number(&fields, "r");
            let reset = number(&fields, "t").map(|seconds| Duration::from_secs(seconds.min(7 * 86_400)));
            if let Some(window) = state.window(name) {
                window.left = left;
                window.resets = reset.and_then(|reset| now.checked_add(reset));
            }
        }
    }

    /// Returns how long a request would have to wait now for its turn under [`Pacer::limit`].
    pub fn turn(&self, now: Instant) -> Duration {
        let state = self.lock();
        state.fixed.as_ref().map_or(now, |fixed| fixed.earliest(now)).saturating_duration_since(now)
    }

    /// Books the next request and returns how long to wait before it goes out. A wait longer than `most` is not booked and
    /// comes back as zero: the provider's own refusal then says better what is wrong.
    pub fn book(&self, now: Instant, most: Duration) -> Duration {
        let mut state = self.lock();
        let earliest = state.next.unwrap_or(now).max(now);
        let (mut at, mut spacing) = (earliest, Duration::ZERO);
        for window in state.windows.values() {
            let (turn, distance) = window.turn(earliest, now);
            (at, spacing) = (at.max(turn), spacing.max(distance));
        }
        let at = state.fixed.as_ref().map_or(at, |fixed| fixed.earliest(at));
        let wait = at.saturating_duration_since(now);
        if wait > most {
            return Duration::ZERO;
        }
        state.next = (!spacing.is_zero()).then(|| at + spacing);
        if let Some(fixed) = &mut state.fixed {
            fixed.booked.push_back(at);
            let over = fixed.booked.len().saturating_sub(fixed.most);
            fixed.booked.drain(..over);
        }
        for window in state.windows.values_mut() {
            window.left = window.left.map(|left| left.saturating_sub(1));
        }
        wait
    }

    /// Whether more than half of every window is left, so that asking more often than usual harms nobody. Providers that say
    /// nothing of windows have none.
    pub fn is_roomy(&self) -> bool {
        let now = Instant::now();
        self.lock().windows.values().all(|window| {
            window.is_over(now)
                || match (window.left, window.quota) {
                    (Some(left), Some(quota)) => left.saturating_mul(2) > quota,
                    _ => true,
                }
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left behind is at worst an old figure.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn window(&mut self, name: &str) -> Option<&mut Window> {
        if !self.windows.contains_key(name) {
            if self.windows.len() >= MOST_WINDOWS {
                return None;
            }
            self.windows.insert(name.to_owned(), Window::default());
        }
        self.windows.get_mut(name)
    }
}

impl Fixed {
    /// When a request that may go out at `at` keeps the limit.
    fn earliest(&self, at: Instant) -> Instant {
        let oldest = self.booked.len().checked_sub(self.most).and_then(|first| self.booked.get(first));
        oldest.map_or(at, |oldest| at.max(*oldest + self.within))
    }
}

impl Window {
    fn is_over(&self, now: Instant) -> bool {
        self.resets.is_none_or(|resets| resets <= now)
    }

    /// When a request that may go out at `earliest` keeps the window, and how far behind it the next one is: by so much that
    /// the rest of the window lasts, or not at all while more than a tenth is left. What does not fit any more goes into the
    /// next window, evenly.
    fn turn(&self, earliest: Instant, now: Instant) -> (Instant, Duration) {
        let (Some(left), Some(resets)) = (self.left, self.resets) else { return (earliest, Duration::ZERO) };
        let plenty = self.quota.map_or(left > 3, |quota| left.saturating_mul(10) > quota);
        if plenty || self.is_over(now) {
            return (earliest, Duration::ZERO);
        }
        let per = |span: Duration, count: u64| span / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        if left == 0 || earliest >= resets {
            let even = self.length.zip(self.quota).map(|(length, quota)| per(length, quota));
            return (earliest.max(resets), even.unwrap_or_default());
        }
        (earliest, per(resets.saturating_duration_since(now), left))
    }
}

/// Splits a structured list: `"name";a=1;b=2, "other";a=3`. Several header lines are one list.
fn items<'a>(headers: &'a HeaderMap, header: &str) -> Vec<(&'a str, Vec<(&'a str, &'a str)>)> {
    let lines = headers.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
    let split = |item: &'a str| {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().trim_matches('"');
        (name, parts.filter_map(|part| part.split_once('=')).collect())
    };
    lines.flat_map(|line| line.split(',')).map(split).filter(|(name, _)| !name.is_empty()).collect()
}

fn number(fields: &[(&str, &str)], name: &str) -> Option<u64> {
    fields.iter().find(|(field, _)| *field == name).and_then(|(_, value)| value.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "\"minute\";q=60;w=60, \"hour\";q=3000;w=3600, \"day\";q=50000;w=86400";

    fn pacer(now: Instant, limit: &str) -> Pacer {
        let pacer = Pacer::default();
        let mut headers = HeaderMap::new();
        headers.insert("ratelimit-policy", POLICY.parse().unwrap());
        headers.insert("ratelimit", limit.parse().unwrap());
        pacer.learn(&headers, now);
        pacer
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn plenty_is_not_slowed() {
        let now = Instant::now();
        let pacer = pacer(now, "\"minute\";r=58;t=41, \"hour\";r=2998;t=1812");
        assert!(pacer.is_roomy());
        for _ in 0..20 {
            assert_eq!(pacer.book(now, MINUTE), Duration::ZERO);
        }
        assert!(Pacer::default().is_roomy());
        assert_eq!(Pacer::default().book(now, MINUTE), Duration::ZERO);
    }

    #[test]
    fn the_last_tenth_is_spread_over_the_rest_of_the_window() {
        let now = Instant::now();
        let pacer = pacer(now, "\"minute\";r=4;t=40");
        assert!(!pacer.is_roomy());
        assert_eq!(pacer.book(now, MINUTE), Duration::ZERO);
        assert_eq!(pacer.book(now, MINUTE), Duration::from_secs(10));
    }

    #[test]
    fn nothing_left_waits_for_the_reset_but_not_beyond_the_deadline() {
        let now = Instant::now();
        let pacer = pacer(now, "\"minute\";r=0;t=5");
        assert_eq!(pacer.book(now, Duration::from_secs(3)), Duration::ZERO);
        assert_eq!(pacer.book(now, MINUTE), Duration::from_secs(5));
        assert_eq!(pacer.book(now + Duration::from_secs(10), MINUTE), Duration::ZERO);
    }

    #[test]
    fn many_that_find_nothing_left_share_the_next_window() {
        let now = Instant::now();
        let pacer = pacer(now, "\"minute\";r=0;t=5");
        let waits = [0; 4].map(|_: u64| pacer.book(now, MINUTE).as_secs());
        assert_eq!(waits, [5, 6, 7, 8]);
    }

    #[tokio::test]
    async fn patience_holds_for_the_work_that_it_was_given_to() {
        assert_eq!(patience(), None);
        let work = async {
            note_wait(Duration::from_secs(2));
            note_wait(Duration::from_secs(3));
            patience()
        };
        assert_eq!(patiently(MINUTE, work).await, (Some(MINUTE), Duration::from_secs(5)));
    }

    #[test]
    fn half_is_not_roomy_and_a_window_that_is_over_does_not_count() {
        let now = Instant::now();
        assert!(!pacer(now, "\"minute\";r=30;t=50").is_roomy());
        assert!(pacer(now, "\"minute\";r=31;t=50").is_roomy());
        assert!(pacer(now, "\"minute\";r=1;t=0").is_roomy());
    }

    #[test]
    fn a_fixed_limit_is_kept_in_every_span() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let pacer = Pacer::default();
        pacer.limit(1, second * 3);
        assert_eq!([0, 3, 6], [0; 3].map(|_: u64| pacer.book(now, MINUTE).as_secs()));
        assert_eq!(pacer.turn(now), second * 9);
        assert_eq!(pacer.book(now + second * 20, MINUTE), Duration::ZERO);
        assert_eq!(pacer.book(now + second * 21, second), Duration::ZERO, "not booked: beyond the deadline");
        assert_eq!(pacer.book(now + second * 21, MINUTE), second * 2);

        let pacer = Pacer::default();
        pacer.limit(2, second * 10);
        let waits = [0, 1, 2, 3].map(|at| pacer.book(now + second * at, MINUTE).as_secs());
        assert_eq!(waits, [0, 0, 8, 8]);
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_survived(text in "[ -~]{0,80}", wait in 0_u64..100) {
            let now = Instant::now();
            let pacer = pacer(now, &text);
            proptest::prop_assert!(pacer.book(now, Duration::from_secs(wait)) <= Duration::from_secs(wait));
        }
    }
}
