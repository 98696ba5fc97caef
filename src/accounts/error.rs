//! Why accounts cannot be used. None of these texts holds a secret.

use std::path::PathBuf;

use crate::model::account::{AccountFilter, AccountId, CloudKind};
use crate::state::{DirError, StateError};

/// Why accounts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// A base URL that is not taken. It is not shown: it may hold a password.
    #[error("the endpoint in {place} {why}")]
    Endpoint {
        /// Where it was given.
        place: String,
        /// What is wrong, as it stands after "the endpoint".
        why: &'static str,
    },
    /// Credentials of one place would go to an endpoint of another.
    #[error(
        "the credentials of {account} come from {credentials}, but the endpoint {endpoint} comes from {given}; another \
         endpoint gets only credentials from the same place as itself"
    )]
    Elsewhere {
        /// The account.
        account: AccountId,
        /// Where the credentials are.
        credentials: String,
        /// The endpoint.
        endpoint: String,
        /// Where the endpoint was given.
        given: String,
    },
    /// A setting of a cloud has a value that the cloud does not know.
    #[error("{place}: {what}")]
    Setting {
        /// Where it was given.
        place: String,
        /// What it must be.
        what: &'static str,
    },
    /// A directory cannot be used.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// A file cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// A key of this computer cannot be read or made.
    #[error("the {what} `{}` {why}", path.display())]
    KeyFile {
        /// Which key.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong, as it stands after the file's name.
        why: String,
    },
    /// A flag that does not go with the cloud.
    #[error("{flag} does not go with {}, which takes {takes}", cloud.title())]
    Flag {
        /// The flag.
        flag: &'static str,
        /// The cloud.
        cloud: CloudKind,
        /// Which flags it takes.
        takes: String,
    },
    /// What was given makes no credentials.
    #[error("{0}")]
    Given(String),
    /// A sealed account that is there and cannot be opened or must not be written.
    #[error("the account {account} {why}")]
    Sealed {
        /// The account.
        account: AccountId,
        /// What is wrong, as it stands after the account.
        why: String,
    },
    /// No such account is connected.
    #[error("no account `{0}` is connected")]
    NotConnected(AccountFilter),
    /// The account was found, and cannot or may not be used.
    #[error("{account} from {place} is not used: {why}")]
    NotUsed {
        /// The account.
        account: AccountId,
        /// Where its credentials or settings are.
        place: String,
        /// Why it is not used.
        why: String,
    },
}
