//! Credentials files: a service account key, or workload identity federation.
//!
//! - `key.rs`: a key signs its own tokens, nobody is asked (google.aip.dev/auth/4111);
//! - `external.rs`: what a federation file may name (google.aip.dev/auth/4117);
//! - `subject.rs`: the token of the outside world, from a file, an address or a command;
//! - `exchange.rs`: that token for Google's, and Google's for the service account's.
//!
//! A user's own login is refused: it is a person's, it expires by policy, and it needs a client of its own.

pub(super) mod exchange;
pub mod external;
pub(super) mod key;
pub(super) mod subject;

use std::fmt;
use std::path::Path;

use serde_json::Value;

use self::external::External;
use self::key::Key;
use crate::model::secret::Secret;
use crate::model::words::one_line;

/// Where the file of application default credentials lies, from the home directory.
pub const DEFAULT_FILE: &str = ".config/gcloud/application_default_credentials.json";

/// The scope that covers all that we ask for.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// How an account proves who it is.
#[derive(Clone)]
pub enum Credentials {
    /// A service account's key.
    Key(Box<Key>),
    /// A token from elsewhere that is exchanged.
    Federated(Box<External>),
}

/// Why a credentials file is not used. Never quotes the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// No JSON object.
    #[error("not a JSON object (line {line}, column {column})")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A user's login.
    #[error(
        "it is a user login (gcloud auth application-default login); gpuprov needs the key of a service account, or workload \
         identity federation"
    )]
    UserLogin,
    /// Another type of file.
    #[error(
        "its type `{0}` is not one that gpuprov can use; it needs `service_account` or `external_account`"
    )]
    Type(String),
    /// A part is missing.
    #[error("it holds no `{0}`")]
    Lacks(&'static str),
    /// The private key is no key.
    #[error("its `private_key` cannot be read: it must be an RSA key in PKCS #8 (`BEGIN PRIVATE KEY`)")]
    BadKey,
    /// For another universe than Google's public one.
    #[error("it is for the universe `{0}`; gpuprov talks to googleapis.com only")]
    Universe(String),
    /// It names an address that credentials may not be sent to.
    #[error("its `{field}` may not be used: {why}")]
    Address {
        /// The member of the file.
        field: &'static str,
        /// Why.
        why: String,
    },
    /// Its token comes from a command.
    #[error(
        "it names a command that gives its token; `GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1` allows that"
    )]
    Command,
    /// A source of tokens that we do not know.
    #[error("its `credential_source` is none of file, url and executable")]
    Source,
}

impl Credentials {
    /// Reads a credentials file's text. `folder` is where it lies: relative paths in it start there. A command that gives
    /// tokens is let through only with `allow_commands`.
    pub fn parse(text: &str, folder: Option<&Path>, allow_commands: bool) -> Result<Self, FileError> {
        let file: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| FileError::Json { line: error.line(), column: error.column() })?;
        if !file.is_object() {
            return Err(FileError::Json { line: 1, column: 1 });
        }
        match part(&file, "type").unwrap_or_default() {
            "service_account" => Key::read(&file).map(Box::new).map(Credentials::Key),
            "external_account" => {
                External::read(&file, folder, allow_commands).map(Box::new).map(Credentials::Federated)
            }
            "authorized_user" => Err(FileError::UserLogin),
            "" => Err(FileError::Lacks("type")),
            other => Err(FileError::Type(one_line(other, 60))),
        }
    }

    /// Returns the project that the credentials belong to, where they tell.
    pub fn project(&self) -> Option<&str> {
        match self {
            Credentials::Key(key) => key.project.as_deref(),
            Credentials::Federated(external) => external.project(),
        }
    }

    /// Returns what tells the credentials apart for people: the service account.
    pub fn hint(&self) -> String {
        match self {
            Credentials::Key(key) => key.email.clone(),
            Credentials::Federated(external) => external.hint(),
        }
    }

    /// Returns all of it that lasts as one secret, for the identity mark.
    pub fn whole(&self) -> Secret {
        match self {
            Credentials::Key(key) => key.whole(),
            Credentials::Federated(external) => external.whole(),
        }
    }
}

/// Shows no secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credentials").field(&self.hint()).finish()
    }
}

/// Returns a text member that says something.
fn part<'a>(file: &'a Value, name: &str) -> Option<&'a str> {
    file.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// Refuses a file for another cloud than the public one.
fn universe(file: &Value) -> Result<(), FileError> {
    match part(file, "universe_domain") {
        None | Some("googleapis.com") => Ok(()),
        Some(other) => Err(FileError::Universe(one_line(other, 60))),
    }
}
