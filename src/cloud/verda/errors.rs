//! What Verda's refusals mean. Only this file reads status codes and error bodies.
//!
//! Errors are `{"code", "message"}`; both are open sets, so what we do not know is sorted by the status. A body without them
//! comes from the edge in front of Verda, and then nothing is certain.

use std::time::Duration;

use serde_json::Value;

use super::wire::{Problem, told};
use crate::cloud::{Error, ErrorKind, Limit, Reached};
use crate::http::Answer;
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::model::words::one_line;

/// The longest text of somebody else's that we show, in characters.
const LONGEST: usize = 300;

/// Parts of messages that mean "not to be had now", in lower case (github.com/verda-cloud/verda-cli/issues/4; the API
/// document's own example).
const NO_CAPACITY: [&str; 2] = ["no capacity", "not enough resources"];

/// Parts that mean a limit of the account (github.com/verda-cloud, integration tests of the Go SDK; the journal's example
/// `GPU_QUOTA_EXCEEDED`).
const QUOTA: [&str; 3] = ["limit exceeded", "quota", "limit reached"];

/// What a wrong image is answered with (github.com/dstackai/dstack/issues/3067).
const WRONG_IMAGE: &str = "operating system is not valid";

/// What was asked for with a create.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// The instance type.
    pub(super) instance_type: String,
    /// The location code.
    pub(super) location: String,
    /// Spot or on demand.
    pub(super) spot: bool,
    /// The image of this try.
    pub(super) image: String,
}

impl Attempt {
    fn limit(&self) -> Limit {
        Limit { instance_type: Some(self.instance_type.clone()), spot: Some(self.spot), ..Limit::default() }
    }

    fn shown(&self) -> String {
        let kind = if self.spot { "spot" } else { "on demand" };
        format!("{}, {kind}, {}", self.instance_type, self.location)
    }
}

/// The circumstances of a refusal.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    /// The account.
    pub(super) account: &'a AccountId,
    /// What was being done.
    pub(super) doing: &'static str,
    /// A text that must not be shown, whoever repeats it.
    pub(super) secret: &'a Secret,
    /// The create, if it was one.
    pub(super) attempt: Option<&'a Attempt>,
}

impl Asked<'_> {
    /// Returns an error of ours about this request.
    pub(super) fn error(&self, kind: ErrorKind, message: impl Into<String>, reached: Reached) -> Box<Error> {
        Box::new(Error::new(kind, self.account, self.doing, message, reached))
    }
}

/// Returns the error that an answer with a status other than 2xx means.
pub(super) fn refused(answer: &Answer, asked: &Asked<'_>) -> Box<Error> {
    let read = Read::new(&answer.text(), asked);
    let (kind, reached) = match kind(answer.status, &read, asked.attempt.is_some()) {
        // Of a create it says that something which the request names is not there.
        (ErrorKind::NotFound, reached) if asked.attempt.is_some() => (ErrorKind::Rejected, reached),
        known => known,
    };
    let mut error = asked.error(kind, read.message(answer.status), reached);
    explain(&mut error, &read, asked);
    if answer.status == 429 {
        error.retry_after = Some(answer.retry_after().unwrap_or(Duration::from_secs(60)));
    }
    error
}

/// Returns the error of credentials that the token service does not take.
pub(super) fn not_admitted(answer: &Answer, asked: &Asked<'_>) -> Box<Error> {
    let mut error = refused(answer, asked);
    // Nothing in that request is ours but the credentials.
    if answer.status == 400 && error.kind == ErrorKind::Rejected {
        error.kind = ErrorKind::Auth;
        error.hint = Some(CREDENTIALS_HINT.to_owned());
    }
    // Whatever it was, the request that needed the token was not sent.
    error.reached = Reached::No;
    error
}

/// Returns an error for an answer that cannot be read.
pub(super) fn unreadable(asked: &Asked<'_>, what: &str, reached: Reached) -> Box<Error> {
    asked.error(ErrorKind::Unreadable, format!("Verda's answer cannot be read: {what}"), reached)
}

/// Whether Verda itself says that the thing does not exist: 404, or 400 for an id that it does not know.
pub(super) fn is_unknown(answer: &Answer) -> bool {
    let Some(problem) = problem(&answer.text()) else { return false };
    let message = problem.message.unwrap_or_default().to_lowercase();
    match answer.status {
        404 => !message.contains("cannot get") && !message.contains("cannot put"),
        400 => message.contains("invalid instance id") || message.contains("invalid volume id"),
        _ => false,
    }
}

/// Whether a refused create would work with another image.
pub(super) fn is_wrong_image(error: &Error) -> bool {
    error.kind == ErrorKind::Rejected && error.message.to_lowercase().contains(WRONG_IMAGE)
}

/// What the words of a refused delete mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is nothing to delete any more.
    Gone,
    /// It cannot be deleted yet.
    NotYet,
    /// Something else.
    Other,
}

/// Sorts the words of a refused delete (github.com/dstackai/dstack/issues/3790 and /3031).
pub(super) fn refusal(status: u16, words: &str) -> Refusal {
    let words = words.to_lowercase();
    let has = |part: &str| words.contains(part);
    if has("discontinued instance") || has("invalid instance id") || status == 404 {
        Refusal::Gone
    } else if has("provisioning") || matches!(status, 403 | 409) && !has("scope") {
        Refusal::NotYet
    } else {
        Refusal::Other
    }
}

/// Returns what a text of the cloud's about a failure after the create means.
pub(super) fn late_kind(words: &str) -> ErrorKind {
    let words = words.to_lowercase();
    if QUOTA.iter().any(|part| words.contains(part)) { ErrorKind::Quota } else { ErrorKind::NoCapacity }
}

const CREDENTIALS_HINT: &str =
    "make a new pair at console.verda.com: the project's page, Keys, Cloud API Credentials";

fn kind(status: u16, read: &Read, is_create: bool) -> (ErrorKind, Reached) {
    if !read.is_json {
        return match status {
            401 => (ErrorKind::Auth, Reached::Maybe),
            429 => (ErrorKind::RateLimited, Reached::No),
            _ => (ErrorKind::Unavailable, Reached::Maybe),
        };
    }
    let says = |parts: &[&str]| parts.iter().any(|part| read.lower.contains(part));
    match status {
        401 => (ErrorKind::Auth, Reached::No),
        402 => (ErrorKind::Balance, Reached::No),
        429 => (ErrorKind::RateLimited, Reached::No),
        400..=499 if read.code == "insufficient_funds" => (ErrorKind::Balance, Reached::No),
        400..=499 if read.lower.contains(WRONG_IMAGE) => (ErrorKind::Rejected, Reached::No),
        400..=499 if says(&NO_CAPACITY) => (ErrorKind::NoCapacity, Reached::No),
        400..=499 if says(&QUOTA) => (ErrorKind::Quota, Reached::No),
        403 => (ErrorKind::Forbidden, Reached::No),
        404 => (ErrorKind::NotFound, Reached::No),
        408 => (ErrorKind::Timeout, Reached::Maybe),
        409 => (ErrorKind::Conflict, Reached::No),
        400..=499 => (ErrorKind::Rejected, Reached::No),
        // Documented for a create without capacity; anywhere else it is an outage.
        503 if is_create && (read.code == "service_unavailable" || says(&NO_CAPACITY)) => {
            (ErrorKind::NoCapacity, Reached::No)
        }
        // A resource was seen to exist after a 500 (github.com/ahelme/comfyume-v1/issues/230).
        _ => (ErrorKind::Unavailable, Reached::Maybe),
    }
}

fn explain(error: &mut Error, read: &Read, asked: &Asked<'_>) {
    match error.kind {
        ErrorKind::Auth => error.hint = Some(CREDENTIALS_HINT.to_owned()),
        ErrorKind::Balance => {
            error.limit = Some(Limit::default());
            error.hint = Some("Verda is prepaid: add funds at console.verda.com".to_owned());
        }
        ErrorKind::Forbidden => {
            error.limit = Some(asked.attempt.map_or_else(Limit::default, Attempt::limit));
        }
        ErrorKind::Quota => {
            let of_disks = ["storage", "volume"].iter().any(|word| read.lower.contains(word));
            let (limit, hint) = match asked.attempt {
                Some(attempt) if !of_disks => {
                    (attempt.limit(), "ask Verda's support for a higher quota, or take another type")
                }
                _ => (
                    Limit::default(),
                    "volumes in the trash count for 96 hours: delete them for good at console.verda.com, \
                     or ask Verda's support for a higher quota",
                ),
            };
            error.limit = Some(limit);
            error.hint = Some(hint.to_owned());
        }
        ErrorKind::NoCapacity => {
            if let Some(attempt) = asked.attempt {
                error.message = format!("{} (asked: {})", error.message, attempt.shown());
            }
        }
        ErrorKind::Rejected => {
            if let Some(attempt) = asked.attempt
                && read.lower.contains(WRONG_IMAGE)
            {
                error.message = format!("{} (image `{}`)", error.message, attempt.image);
                error.limit = Some(attempt.limit());
            }
        }
        _ => {}
    }
}

fn problem(body: &str) -> Option<Problem> {
    let body: Value = serde_json::from_str(body).ok().filter(Value::is_object)?;
    let problem: Problem = serde_json::from_value(body).ok()?;
    (problem.code.is_some() || problem.message.is_some()).then_some(problem)
}

/// An error body, read and without secrets.
struct Read {
    is_json: bool,
    code: String,
    /// Code and message, or the body itself, in lower case.
    lower: String,
    /// What to show.
    shown: String,
}

impl Read {
    fn new(body: &str, asked: &Asked<'_>) -> Self {
        let problem = problem(body);
        let is_json = problem.is_some();
        let Problem { code, message } = problem.unwrap_or_default();
        let code = code.unwrap_or_default().to_lowercase();
        let text = match told(message.as_ref()) {
            Some(message) => message.to_owned(),
            None if is_json => code.clone(),
            None => body.to_owned(),
        };
        let lower = format!("{code} {}", text.to_lowercase());
        Read { is_json, code, lower, shown: one_line(&redact(&text, asked.secret), LONGEST) }
    }

    fn message(&self, status: u16) -> String {
        match self.shown.as_str() {
            "" if self.is_json => format!("Verda answered with status {status}"),
            "" => format!("status {status} without a word"),
            _ if !self.is_json && self.shown.starts_with('<') => {
                format!("status {status} with a web page, from something in between")
            }
            shown if self.is_json => shown.to_owned(),
            shown => format!("status {status}: {shown}"),
        }
    }
}

/// Takes the client secret out, and whatever looks like an access token (they begin with the JSON of their header).
pub(super) fn redact(text: &str, secret: &Secret) -> String {
    let secret = secret.expose();
    let text = if secret.chars().count() >= 4 { text.replace(secret, "…") } else { text.to_owned() };
    if !text.contains("eyJ") {
        return text;
    }
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '=');
    let mut clean = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("eyJ") {
        clean.push_str(&rest[..at]);
        clean.push('…');
        rest = rest[at..].trim_start_matches(is_token);
    }
    clean + rest
}

#[cfg(test)]
#[path = "errors_tests.rs"]
mod tests;
