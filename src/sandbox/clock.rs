//! The sandbox's time: what decides when a machine boots, appears in a list or is gone.
//!
//! Machines never hold timers. They hold points on this clock, and their state is worked out from `now`,
//! so the same code runs by the wall clock (for people) and by steps (for tests).

use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// How the sandbox's time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMode {
    /// With the wall clock.
    Timer,
    /// Only by [`Sandbox::step`](super::Sandbox::step) or the control path's `POST /step`.
    Step,
}

/// A clock that starts at zero with the sandbox.
#[derive(Debug)]
pub(super) struct Clock {
    mode: ClockMode,
    born: Instant,
    epoch: Timestamp,
    extra: Mutex<Duration>,
}

impl Clock {
    /// A clock that reads zero now.
    pub(super) fn new(mode: ClockMode) -> Clock {
        Clock { mode, born: Instant::now(), epoch: Timestamp::now(), extra: Mutex::new(Duration::ZERO) }
    }

    /// Time since the sandbox started, as the machines see it.
    pub(super) fn now(&self) -> Duration {
        let extra = *super::lock(&self.extra);
        match self.mode {
            ClockMode::Timer => self.born.elapsed() + extra,
            ClockMode::Step => extra,
        }
    }

    /// The date of its zero.
    pub(super) fn started(&self) -> Timestamp {
        self.epoch
    }

    /// Moves the clock ahead; by timer too, where it comes on top of the time that passes anyway.
    pub(super) fn step(&self, by: Duration) {
        let mut extra = super::lock(&self.extra);
        *extra = extra.saturating_add(by);
    }

    /// A point on this clock as a date in whole milliseconds, for answers such as `createdAt`.
    pub(super) fn date(&self, at: Duration) -> Timestamp {
        let step = jiff::SignedDuration::try_from(at).unwrap_or(jiff::SignedDuration::ZERO);
        let exact = self.epoch.checked_add(step).unwrap_or(self.epoch);
        Timestamp::from_millisecond(exact.as_millisecond()).unwrap_or(exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_only_when_told() {
        let clock = Clock::new(ClockMode::Step);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(clock.now(), Duration::ZERO);
        clock.step(Duration::from_secs(90));
        assert_eq!(clock.now(), Duration::from_secs(90));
        assert_eq!(clock.date(clock.now()).as_second() - clock.date(Duration::ZERO).as_second(), 90);
    }
}
