//! The rounds of `--queue`: when to ask again for an offer.
//!
//! The first pause is 30 s, or a tenth of the whole queue where that is shorter; each further one is half as long again, up to
//! 5 min, all with a tenth of jitter. So a short queue asks a handful of times too, and never more often than a long one does
//! in the same number of rounds.

use std::time::{Duration, Instant};

use crate::model::mark::Claim;

/// Between two rounds at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));

/// The rounds of one `provision`.
#[derive(Debug)]
pub struct Rounds {
    until: Option<Instant>,
    pause: Duration,
}

impl Rounds {
    /// Returns the rounds of a queue; without one there is no second round.
    pub fn new(queue: Option<Duration>, now: Instant) -> Self {
        Rounds {
            until: queue.map(|queue| now + queue),
            pause: queue.map_or(PAUSE.0, |queue| PAUSE.0.min(queue / 10)),
        }
    }

    /// Returns how long to wait before the next round; none if the time is over. The last round is at the very end.
    pub fn next_wait(&mut self, now: Instant) -> Option<Duration> {
        let left = self.until?.checked_duration_since(now).filter(|left| !left.is_zero())?;
        let wait = jittered(self.pause).min(left);
        self.pause = (self.pause * 3 / 2).min(PAUSE.1);
        Some(wait)
    }

    /// Returns how long the queue goes on.
    pub fn left(&self, now: Instant) -> Duration {
        self.until.map(|until| until.saturating_duration_since(now)).unwrap_or_default()
    }
}

fn jittered(pause: Duration) -> Duration {
    // A claim is 64 random bits; a few hundredths up or down keep many waiting commands apart.
    let random = Claim::random()
        .map_or(50, |claim| u32::from_str_radix(&claim.to_string()[..4], 16).unwrap_or(0) % 100);
    pause * (95 + random / 10) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All waits of a queue in which asking takes no time.
    fn waits(queue: u64) -> Vec<f64> {
        let mut now = Instant::now();
        let mut rounds = Rounds::new(Some(Duration::from_secs(queue)), now);
        let mut waits = Vec::new();
        while let Some(wait) = rounds.next_wait(now) {
            waits.push(wait.as_secs_f64());
            now += wait;
        }
        waits
    }

    #[test]
    fn pauses_grow_to_five_minutes_and_end_with_the_queue() {
        let long = waits(24 * 3600);
        for (at, pause) in [30.0, 45.0, 67.5, 101.25, 151.875, 227.8, 300.0, 300.0].into_iter().enumerate() {
            assert!((long[at] / pause - 1.0).abs() <= 0.051, "{at}: {}", long[at]);
        }
        assert!((long.iter().sum::<f64>() - 24.0 * 3600.0).abs() < 0.001);
        assert!(long.len() < 310);
    }

    #[test]
    fn a_short_queue_asks_a_handful_of_times() {
        for queue in [1, 10, 120, 299] {
            let waits = waits(queue);
            assert!((4..=6).contains(&waits.len()), "{queue}: {waits:?}");
            assert!((waits.iter().sum::<f64>() - queue as f64).abs() < 0.001);
        }
    }

    #[test]
    fn no_queue_is_one_round() {
        assert_eq!(Rounds::new(None, Instant::now()).next_wait(Instant::now()), None);
        assert_eq!(Rounds::new(Some(Duration::ZERO), Instant::now()).next_wait(Instant::now()), None);
    }
}
