//! What can go wrong with a cloud, in words that mean the same for all five.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::http;
use crate::model::account::AccountId;
use crate::model::words;

/// What went wrong. The words are those of the JSON output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The offer cannot be had now.
    NoCapacity,
    /// A limit of the account.
    Quota,
    /// The credentials are not taken.
    Auth,
    /// The credentials lack a right.
    Forbidden,
    /// The account has no money.
    Balance,
    /// The cloud says that the request is wrong.
    Rejected,
    /// Too many requests, also after waiting.
    RateLimited,
    /// The cloud is out of reach or broken.
    Unavailable,
    /// It does not exist.
    NotFound,
    /// It clashes with the state of something.
    Conflict,
    /// The cloud answered with something that cannot be read.
    Unreadable,
    /// No answer in time.
    Timeout,
    /// The user or another command stopped it.
    Interrupted,
}

impl ErrorKind {
    /// Returns the word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::NoCapacity => "no_capacity",
            ErrorKind::Quota => "quota",
            ErrorKind::Auth => "auth",
            ErrorKind::Forbidden => "forbidden",
            ErrorKind::Balance => "balance",
            ErrorKind::Rejected => "rejected",
            ErrorKind::RateLimited => "rate_limited",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Unreadable => "unreadable",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Interrupted => "interrupted",
        }
    }
}

/// Whether a request may have taken effect. It is the field that protects the user's money: after a create with anything but
/// [`Reached::No`] the claim must be looked for before another offer may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It certainly had no effect: never sent, or refused by the cloud itself.
    No,
    /// It may have had its effect: cut off, timed out, or answered by something in between.
    Maybe,
    /// It had its effect.
    Yes,
}

/// What else would fail the same way. The account always; each further part narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Only in this region.
    pub region: Option<String>,
    /// Only in this zone.
    pub zone: Option<String>,
    /// Only for this GPU, in our spelling.
    pub gpu: Option<String>,
    /// Only in this tier (secure or not).
    pub secure: Option<bool>,
    /// Only for this instance type.
    pub instance_type: Option<String>,
    /// Only for spot, or only for on demand.
    pub spot: Option<bool>,
}

/// A failed request to a cloud.
#[derive(Debug)]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// The account that was asked.
    pub account: AccountId,
    /// What was being done, a fixed phrase such as `listing offers`.
    pub doing: &'static str,
    /// The cloud's own words on one line, without secrets, or ours where there are none.
    pub message: String,
    /// Whether the request may have taken effect.
    pub reached: Reached,
    /// What else would fail the same way; none if nothing is known.
    pub limit: Option<Limit>,
    /// Zones that the cloud names as better.
    pub prefer: Vec<String>,
    /// How long the cloud asks to wait.
    pub retry_after: Option<Duration>,
    /// Whether it concerns something that the user gave (image, key), so that no other offer can help.
    pub user_input: bool,
    /// What the user can do about it, where the cloud's folder knows better than a general hint.
    pub hint: Option<String>,
    /// What caused it underneath.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Returns an error that says nothing about effects beyond `reached`.
    pub fn new(
        kind: ErrorKind,
        account: &AccountId,
        doing: &'static str,
        message: impl Into<String>,
        reached: Reached,
    ) -> Self {
        Error {
            kind,
            account: account.clone(),
            doing,
            message: message.into(),
            reached,
            limit: None,
            prefer: Vec::new(),
            retry_after: None,
            user_input: false,
            hint: None,
            source: None,
        }
    }

    /// Returns the error of a request over HTTP that got no answer; the same for every cloud.
    pub fn unanswered(error: http::Error, account: &AccountId, doing: &'static str) -> Box<Self> {
        let kind = match error.kind {
            http::ErrorKind::Timeout => ErrorKind::Timeout,
            http::ErrorKind::TooLarge => ErrorKind::Unreadable,
            _ => ErrorKind::Unavailable,
        };
        let reached = match error.sent {
            http::Sent::No => Reached::No,
            http::Sent::Maybe => Reached::Maybe,
        };
        let mut failed = Error::new(kind, account, doing, words::one_line(&error.to_string(), 300), reached);
        if let http::ErrorKind::NoRoots | http::ErrorKind::Tls = error.kind {
            let hint = "nothing was sent; `gpuprov doctor` looks at certificates, endpoints and the clock";
            failed.hint = Some(hint.to_owned());
        }
        failed.source = Some(Box::new(error));
        Box::new(failed)
    }

    /// Adds what else would fail the same way.
    pub fn with_limit(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Adds what to do about it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.account, self.doing, self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// Result of a request to a cloud. The error is boxed: it is large and rare.
pub type Result<T> = std::result::Result<T, Box<Error>>;
