//! What can go wrong with the files of the state directory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::DirError;
use crate::model::machine::MachineName;

/// A failed read or write of state. The text names the file.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system refused.
    #[error("cannot {doing} `{}`: {cause}", path.display())]
    Io {
        /// What was being done, as it stands after "cannot".
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// A directory cannot be used.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// A record of a later version, which this one must not rewrite.
    #[error("the record of `{0}` was written by a newer gpuprov; update gpuprov")]
    Newer(MachineName),
    /// A record that cannot be read and must not be rewritten.
    #[error("the record `{}` of `{name}` cannot be read: {why}", path.display())]
    Unreadable {
        /// Of which machine.
        name: MachineName,
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// There is a record of this name already.
    #[error("there is a record of a machine `{0}` already")]
    Taken(MachineName),
    /// There is no record of this name.
    #[error("there is no record of a machine `{0}`")]
    NoRecord(MachineName),
    /// A file other than a record does not hold what it should.
    #[error("`{}` {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, as it stands after the file's name.
        why: String,
    },
}

impl StateError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StateError {
        move |cause| StateError::Io { doing, path: path.to_owned(), cause }
    }
}

/// Why a name could not be locked.
#[derive(Debug)]
pub enum LockError {
    /// Another command works on this machine.
    Held(MachineName),
    /// The lock file cannot be used.
    State(StateError),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Held(name) => write!(f, "another gpuprov command is working on `{name}`"),
            LockError::State(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LockError {}

impl From<StateError> for LockError {
    fn from(error: StateError) -> Self {
        LockError::State(error)
    }
}

impl From<DirError> for LockError {
    fn from(error: DirError) -> Self {
        LockError::State(error.into())
    }
}
