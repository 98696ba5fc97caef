//! Why a command failed, in the words of the JSON output.

use std::fmt;

use crate::cloud::{Error, ErrorKind};

/// The kinds of failure: those of the clouds, and ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A cloud's.
    Cloud(ErrorKind),
    /// Wrong usage.
    Usage,
    /// Refused before any request that costs.
    Refused,
    /// A wish that no account can honour.
    Unsupported,
    /// The name is taken.
    NameTaken,
    /// No account is connected.
    NoAccount,
    /// No offer meets the wishes.
    NothingOffered,
    /// Only above the price limit.
    TooDear,
    /// Created but not ready in time; removed again.
    NotReady,
    /// The machine runs, but what was asked on top of it failed.
    SetupFailed,
    /// Something may still be running and cost money.
    LeftRunning,
    /// Removed by another command.
    Removed,
    /// A plain warning.
    Note,
    /// Something on this computer failed (a file, a program).
    Local,
}

impl Kind {
    /// Returns the word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Cloud(kind) => kind.as_str(),
            Kind::Usage => "usage",
            Kind::Refused => "refused",
            Kind::Unsupported => "unsupported",
            Kind::NameTaken => "name_taken",
            Kind::NoAccount => "no_account",
            Kind::NothingOffered => "nothing_offered",
            Kind::TooDear => "too_dear",
            Kind::NotReady => "not_ready",
            Kind::SetupFailed => "setup_failed",
            Kind::LeftRunning => "left_running",
            Kind::Removed => "removed",
            Kind::Note => "note",
            // The contract has no word for a failing disk; readers take what they do not know for `unknown`.
            Kind::Local => "local",
        }
    }
}

/// A failed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub kind: Kind,
    /// What and where, lower case, no full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// Returns a failure without a hint.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Failure { kind, message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Failure { kind: Kind::Cloud(error.kind), message: error.to_string(), hint: error.hint.clone() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
