//! Which failed try is made again, and after how long.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::error::{Error, Sent};

/// How many tries one call gets.
pub(crate) const MOST_TRIES: u32 = 4;

/// Which tries may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The request can be repeated without harm (reads, deletes): again on no connection, a lost connection, a timeout, a
    /// broken answer, 5xx and 429.
    Safe,
    /// The request makes something: again only when it was certainly not carried out, that is with no connection at all or
    /// with 429, for at most 30 s of waiting.
    Create,
    /// Never again.
    Never,
}

impl Retry {
    /// The longest that all waiting of one call may add up to.
    pub(crate) fn patience(self) -> Duration {
        match self {
            Retry::Safe => Duration::MAX,
            Retry::Create => Duration::from_secs(30),
            Retry::Never => Duration::ZERO,
        }
    }

    /// Whether a try that ended in `error` may be made again.
    pub(crate) fn takes_error(self, error: &Error) -> bool {
        match self {
            Retry::Safe => error.is_passing(),
            Retry::Create => error.is_passing() && error.sent == Sent::No,
            Retry::Never => false,
        }
    }

    /// Whether a try that was answered with `status` may be made again.
    pub(super) fn takes_status(self, status: u16) -> bool {
        match self {
            // 501 and 505 say that it never will.
            Retry::Safe => matches!(status, 408 | 429 | 500..=599) && !matches!(status, 501 | 505),
            Retry::Create => status == 429,
            Retry::Never => false,
        }
    }
}

/// Returns how long to wait before try number `tries + 1` (at least one was made): doubled each time, with jitter so that
/// several processes do not come back at the same moment, at most 16 times `first`.
pub(crate) fn backoff(tries: u32, first: Duration) -> Duration {
    let whole = first.saturating_mul(1 << tries.saturating_sub(1).min(4));
    let random = RandomState::new().hash_one(tries) % 1000;
    whole.mul_f64(0.5 + random as f64 / 2000.0)
}

/// Returns how long an answer asks to wait, by its `Retry-After`: whole seconds, or a date, which must come with the time of
/// the answer (`Date`, else `now`). None if it asks nothing that can be read.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = http_date(text)?;
    // The difference of two times of the same clock: ours may be wrong.
    let answered =
        headers.get("date").and_then(|value| value.to_str().ok()).and_then(http_date).unwrap_or(now);
    Some(Duration::try_from(at.duration_since(answered)).unwrap_or(Duration::ZERO))
}

/// Reads a date as HTTP writes it.
pub fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::ErrorKind;

    fn asked(text: &str, date: Option<&str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, text.parse().unwrap());
        if let Some(date) = date {
            headers.insert("date", date.parse().unwrap());
        }
        retry_after(&headers, "2026-11-30T09:00:00Z".parse().unwrap())
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(asked("2", None), Some(Duration::from_secs(2)));
        assert_eq!(asked("Mon, 30 Nov 2026 09:00:07 GMT", None), Some(Duration::from_secs(7)));
        let date = Some("Mon, 30 Nov 2026 09:00:05 GMT");
        assert_eq!(asked("Mon, 30 Nov 2026 09:00:07 GMT", date), Some(Duration::from_secs(2)));
        assert_eq!(asked("Mon, 30 Nov 2026 08:00:00 GMT", None), Some(Duration::ZERO));
        for odd in ["", "soon", "-1", "1.5"] {
            assert_eq!(asked(odd, None), None, "{odd}");
        }
    }

    #[test]
    fn a_create_is_repeated_only_when_nothing_can_have_been_made() {
        let error = |kind, sent| {
            let mut error = Error::new(kind, "x", "");
            error.sent = sent;
            error
        };
        let refused = error(ErrorKind::Connect, Sent::No);
        let lost = error(ErrorKind::Interrupted, Sent::Maybe);
        let untrusted = error(ErrorKind::Tls, Sent::No);
        assert!(Retry::Create.takes_error(&refused) && Retry::Safe.takes_error(&refused));
        assert!(!Retry::Create.takes_error(&lost) && Retry::Safe.takes_error(&lost));
        assert!(!Retry::Create.takes_error(&untrusted) && !Retry::Safe.takes_error(&untrusted));
        assert!(Retry::Create.takes_status(429) && !Retry::Create.takes_status(500));
        assert!(
            Retry::Safe.takes_status(503) && !Retry::Safe.takes_status(501) && !Retry::Safe.takes_status(404)
        );
        assert!(!Retry::Never.takes_error(&refused) && !Retry::Never.takes_status(429));
    }

    #[test]
    fn backoff_grows_and_is_bounded() {
        let first = Duration::from_millis(100);
        for (tries, most) in [(1, 100), (2, 200), (5, 1600), (50, 1600)] {
            let wait = backoff(tries, first).as_millis();
            assert!(wait >= most / 2 && wait <= most, "{tries}: {wait}");
        }
    }
}
