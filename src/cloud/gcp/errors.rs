//! What Google's refusals mean. Only this file and `faults.rs` read status codes and error bodies.
//!
//! A refusal comes at once, as an error body, or late, in an operation that had been accepted; both are read into a [`Fault`]
//! and sorted by the same words (`faults.rs`). A body that is not Google's JSON comes from something in between, and then
//! nothing is certain.

use std::time::Duration;

use super::faults::{Fault, explain, kind};
use super::verdicts::{Operation, Refusal, TokenRefusal};
use super::wire::told;
use crate::cloud::{Error, ErrorKind, Limit, Reached};
use crate::http::Answer;
use crate::model::account::AccountId;
use crate::model::words::one_line;

/// The longest text of somebody else's that we show, in characters.
pub(super) const LONGEST: usize = 400;

/// How long to wait where too many requests are refused without a word for how long: the windows are a minute each.
const WINDOW: Duration = Duration::from_secs(5);

/// What was asked for with a create.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempt {
    /// The machine type.
    pub(super) instance_type: String,
    /// The zone.
    pub(super) zone: String,
    /// Spot or on demand.
    pub(super) spot: bool,
    /// The GPU in our spelling; none for a machine without one.
    pub(super) gpu: Option<String>,
}

impl Attempt {
    /// The same type in the same zone, bought the same way.
    pub(super) fn limit(&self) -> Limit {
        Limit {
            zone: Some(self.zone.clone()),
            instance_type: Some(self.instance_type.clone()),
            spot: Some(self.spot),
            ..Limit::default()
        }
    }

    /// Names it for people.
    pub(super) fn shown(&self) -> String {
        let kind = if self.spot { "spot" } else { "on demand" };
        format!("{}, {kind}, {}", self.instance_type, self.zone)
    }
}

/// The circumstances of a refusal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// The account.
    pub(super) account: &'a AccountId,
    /// What was being done.
    pub(super) doing: &'static str,
    /// The project, for commands that mend something.
    pub(super) project: &'a str,
    /// The network of machines.
    pub(super) network: &'a str,
    /// The create, if it was one.
    pub(super) attempt: Option<&'a Attempt>,
}

impl<'a> Asked<'a> {
    /// Returns an error of ours about this request.
    pub(super) fn error(&self, kind: ErrorKind, message: impl Into<String>, reached: Reached) -> Box<Error> {
        Box::new(Error::new(kind, self.account, self.doing, message, reached))
    }

    /// Returns the circumstances of a create.
    pub(super) fn of(self, attempt: &'a Attempt) -> Asked<'a> {
        Asked { attempt: Some(attempt), ..self }
    }
}

/// Returns the error that an answer with a status other than 2xx means.
pub(super) fn refused(answer: &Answer, asked: &Asked<'_>) -> Box<Error> {
    let Some(fault) = Fault::of_answer(answer) else { return from_between(answer, asked) };
    let kind = kind(&fault);
    // A refusal is Google's word that nothing was done; a broken server knows nothing.
    let reached = match kind {
        ErrorKind::Unavailable | ErrorKind::Timeout => Reached::Maybe,
        _ => Reached::No,
    };
    let mut error = asked.error(kind, shown(&fault), reached);
    if kind == ErrorKind::RateLimited {
        error.retry_after = Some(answer.retry_after().unwrap_or(WINDOW));
    }
    explain(&mut error, &fault, asked);
    error
}

/// Returns the error of an operation that ended badly. It was accepted: what it works on may exist all the same.
pub(super) fn failed(operation: &Operation, asked: &Asked<'_>) -> Box<Error> {
    let fault = Fault::of_operation(operation);
    let mut error = asked.error(kind(&fault), shown(&fault), Reached::Yes);
    explain(&mut error, &fault, asked);
    error
}

/// Returns the error of credentials that a token service does not take. The request that needs the token was not sent.
pub(super) fn not_admitted(answer: &Answer, asked: &Asked<'_>, what: &str, hint: &str) -> Box<Error> {
    let refusal: TokenRefusal = answer.json().unwrap_or_default();
    let mut error = match told(refusal.error.as_ref()) {
        Some(word) => {
            let text = told(refusal.error_description.as_ref()).unwrap_or(word);
            let kind = match answer.status {
                429 => ErrorKind::RateLimited,
                500.. => ErrorKind::Unavailable,
                _ => ErrorKind::Auth,
            };
            asked.error(kind, format!("{what}: {}", one_line(&redact(text), LONGEST)), Reached::No)
        }
        None => {
            let mut error = refused(answer, asked);
            // Nothing in that request is ours but the credentials.
            if (400..500).contains(&answer.status)
                && matches!(error.kind, ErrorKind::Rejected | ErrorKind::NotFound | ErrorKind::Forbidden)
            {
                error.kind = ErrorKind::Auth;
            }
            error.message = format!("{what}: {}", error.message);
            error
        }
    };
    error.reached = Reached::No;
    if error.kind == ErrorKind::Auth {
        error.hint = Some(hint.to_owned());
    }
    error
}

/// Returns an error for an answer that cannot be read.
pub(super) fn unreadable(asked: &Asked<'_>, what: &str, reached: Reached) -> Box<Error> {
    asked.error(ErrorKind::Unreadable, format!("Google's answer cannot be read: {what}"), reached)
}

/// Whether Google itself says that the thing whose path ends in `tail` does not exist. The message names what is missing: a
/// project that these credentials do not see is no proof about a machine in it.
pub(super) fn is_missing(answer: &Answer, tail: &str) -> bool {
    let Some(fault) = Fault::of_answer(answer).filter(|_| answer.status == 404) else { return false };
    // Some answers have no words but the sentence.
    if !fault.words.is_empty() && !fault.has_word("notfound") {
        return false;
    }
    match fault.message.split('\'').nth(1) {
        Some(named) if named.starts_with("projects/") => named.ends_with(tail),
        _ => true,
    }
}

fn from_between(answer: &Answer, asked: &Asked<'_>) -> Box<Error> {
    let text = one_line(&redact(&answer.text()), LONGEST);
    let status = answer.status;
    let (kind, reached) = match status {
        401 => (ErrorKind::Auth, Reached::Maybe),
        408 => (ErrorKind::Timeout, Reached::Maybe),
        429 => (ErrorKind::RateLimited, Reached::No),
        _ => (ErrorKind::Unavailable, Reached::Maybe),
    };
    let message = match text.as_str() {
        "" => format!("status {status} without a word"),
        text if text.starts_with('<') => {
            format!("status {status} with a web page, from something in between")
        }
        text => format!("status {status}: {text}"),
    };
    let mut error = asked.error(kind, message, reached);
    if status == 429 {
        error.retry_after = Some(answer.retry_after().unwrap_or(WINDOW));
    }
    error
}

fn shown(fault: &Fault) -> String {
    let text = one_line(&redact(&fault.message), LONGEST);
    match (text.as_str(), fault.words.first()) {
        ("", Some(word)) => format!("Google answered {} ({word})", fault.status),
        ("", None) => format!("Google answered with status {}", fault.status),
        _ => text,
    }
}

/// Takes out whatever looks like a token: signed ones begin with the JSON of their header, Google's own with `ya29.`.
pub(super) fn redact(text: &str) -> String {
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '=' | '+' | '/');
    let mut clean = String::new();
    let mut rest = text;
    while let Some(at) = ["eyJ", "ya29."].iter().filter_map(|start| rest.find(start)).min() {
        clean.push_str(&rest[..at]);
        clean.push('…');
        rest = rest[at..].trim_start_matches(is_token);
    }
    clean + rest
}

/// Reads the error body of an answer; none if it is not Google's.
pub(super) fn refusal(answer: &Answer) -> Option<super::verdicts::RefusalBody> {
    answer.json::<Refusal>().ok()?.error
}

#[cfg(test)]
#[path = "errors_tests.rs"]
mod tests;
