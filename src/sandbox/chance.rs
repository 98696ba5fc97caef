//! The sandbox's dice: ids and boot times, the same every time for the same seed.

use std::time::Duration;

use super::machine::random;

/// A seeded sequence (splitmix64).
#[derive(Debug)]
pub(super) struct Chance(u64);

impl Chance {
    /// The sequence of a seed, or any sequence.
    pub(super) fn new(seed: Option<u64>) -> Chance {
        Chance(seed.unwrap_or_else(|| u64::from_le_bytes(random::<8>())))
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A point between two durations, in whole milliseconds.
    pub(super) fn between(&mut self, (low, high): (Duration, Duration)) -> Duration {
        let span = u64::try_from(high.saturating_sub(low).as_millis()).unwrap_or(0);
        low + Duration::from_millis(self.next() % (span + 1))
    }
}
