//! Exit codes, and how a failure is printed. Nothing else in gpuprov knows a number that a shell will see.

use std::fmt::Display;

use crate::cloud::ErrorKind;
use crate::provision::failure::{Failure, Kind};

/// How a command ended, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done. An empty list is done too.
    Done,
    /// Failed, and nothing of it costs money.
    Failed,
    /// Wrong usage, or refused before any request that costs.
    Usage,
    /// Nothing offered, no offer could be had, or only above the price limit.
    Nothing,
    /// No account connected, or credentials refused by every account that could serve.
    Credentials,
    /// Created but not ready in time; removed again.
    NotReady,
    /// Something may still be running and cost money. Wins over every other code.
    LeftRunning,
    /// The machine runs and is kept, but what was asked on top of it failed.
    SetupFailed,
    /// Interrupted, and nothing is left.
    Interrupted,
    /// What another program ended with (`ssh`).
    Other(u8),
}

impl Exit {
    /// Returns the number.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Nothing => 3,
            Exit::Credentials => 4,
            Exit::NotReady => 5,
            Exit::LeftRunning => 6,
            Exit::SetupFailed => 7,
            Exit::Interrupted => 130,
            Exit::Other(code) => code,
        }
    }

    /// Returns the code that a kind of failure ends with.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Usage | Kind::Refused | Kind::NameTaken | Kind::Unsupported => Exit::Usage,
            Kind::NothingOffered
            | Kind::TooDear
            | Kind::Cloud(ErrorKind::NoCapacity | ErrorKind::Quota | ErrorKind::Balance) => Exit::Nothing,
            Kind::NoAccount | Kind::Cloud(ErrorKind::Auth | ErrorKind::Forbidden) => Exit::Credentials,
            Kind::NotReady => Exit::NotReady,
            Kind::LeftRunning => Exit::LeftRunning,
            Kind::SetupFailed => Exit::SetupFailed,
            Kind::Cloud(ErrorKind::Interrupted) => Exit::Interrupted,
            Kind::Cloud(_) | Kind::Removed | Kind::Note | Kind::Local => Exit::Failed,
        }
    }
}

/// Returns a failure for wrong usage or input.
pub fn usage(message: impl Display) -> Failure {
    Failure::new(Kind::Usage, message.to_string())
}

/// Returns a failure for something that is refused before anything costs.
pub fn refused(message: impl Display) -> Failure {
    Failure::new(Kind::Refused, message.to_string())
}

/// Returns the hint for a failure that brings none of its own.
pub fn hint(failure: &Failure) -> Option<String> {
    if failure.hint.is_some() {
        return failure.hint.clone();
    }
    let text = match failure.kind {
        Kind::Cloud(ErrorKind::Auth) => "check the key: `gpuprov clouds check` says which account refused it",
        Kind::Cloud(ErrorKind::Forbidden) => {
            "the key is known but lacks a right, or the account may not do this"
        }
        Kind::Cloud(ErrorKind::Balance) => "add credit at the cloud, or take another one with `--cloud`",
        Kind::Cloud(ErrorKind::RateLimited) => "wait a minute; other programs with the same key count too",
        Kind::Cloud(ErrorKind::Unavailable | ErrorKind::Timeout) => {
            "the cloud may be down, or the network; `--cloud-timeout` waits longer"
        }
        Kind::Cloud(ErrorKind::Unreadable) => {
            "the answer is not what the cloud's API promises; try again, then update gpuprov"
        }
        Kind::NoAccount => {
            "connect one with `gpuprov clouds set CLOUD`, give a key, for example RUNPOD_API_KEY, or try \
             `gpuprov --sandbox offers`"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_end_with_the_codes_of_the_contract() {
        let cases = [
            (Kind::Usage, 2),
            (Kind::NameTaken, 2),
            (Kind::Unsupported, 2),
            (Kind::NothingOffered, 3),
            (Kind::TooDear, 3),
            (Kind::Cloud(ErrorKind::NoCapacity), 3),
            (Kind::Cloud(ErrorKind::Balance), 3),
            (Kind::Cloud(ErrorKind::Auth), 4),
            (Kind::NoAccount, 4),
            (Kind::NotReady, 5),
            (Kind::LeftRunning, 6),
            (Kind::SetupFailed, 7),
            (Kind::Cloud(ErrorKind::Interrupted), 130),
            (Kind::Cloud(ErrorKind::Rejected), 1),
            (Kind::Removed, 1),
            (Kind::Cloud(ErrorKind::Unavailable), 1),
        ];
        for (kind, code) in cases {
            assert_eq!(Exit::of(kind).code(), code, "{kind:?}");
        }
    }
}
