//! Durations as people and config files write them: `200ms`, `90s`, `15m`, `2h`, `1d`, or bare seconds.

use std::time::Duration;

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration, such as 200ms, 90s, 15m, 2h, 1d or a number of seconds")]
pub struct DurationError(String);

/// Reads a duration of at most 3650 days.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError(text.to_owned());
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let millis = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        "d" => 24 * 3600 * 1000,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(millis)
        .filter(|millis| *millis <= 3650 * 24 * 3600 * 1000)
        .map(Duration::from_millis)
        .ok_or_else(wrong)
}

/// Reads a duration as [`parse`] does, but no 0: nothing could be done within it.
pub fn parse_some(text: &str) -> Result<Duration, DurationError> {
    parse(text).ok().filter(|span| !span.is_zero()).ok_or_else(|| DurationError(text.to_owned()))
}

/// Shows a span in at most two units, as people say it: `850 ms`, `12 s`, `3 m 05 s`, `2 h 10 m`, `3 d 4 h`.
pub fn show(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{} ms", span.subsec_millis()),
        1..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_contract_lists() {
        for (text, millis) in [
            ("200ms", 200),
            ("90s", 90_000),
            ("15m", 900_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("45", 45_000),
        ] {
            assert_eq!(parse(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
        for bad in ["", "s", "-1s", "1.5h", "1w", "99999999999999999999", "4000d", "1 h 2 m"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn where_there_must_be_some() {
        assert_eq!(parse_some("1ms").unwrap(), Duration::from_millis(1));
        for bad in ["0", "0s", "0d", "x"] {
            assert!(parse_some(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shows_two_units_at_most() {
        for (seconds, shown) in [(12, "12 s"), (185, "3 m 05 s"), (7800, "2 h 10 m"), (273_600, "3 d 4 h")] {
            assert_eq!(show(Duration::from_secs(seconds)), shown);
        }
    }
}
