//! What can be wrong with a config file, in words that give nothing of it away.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A mistake in the config file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1; none if the whole file is meant.
    pub line: Option<usize>,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The file cannot be read.
    Unreadable(io::ErrorKind),
    /// The file is longer than a config file can be.
    TooLong,
    /// It is not TOML there; a fixed phrase.
    Syntax(&'static str),
    /// There is no such key.
    UnknownKey {
        /// The table, as it stands in brackets; empty for the top of the file.
        table: String,
        /// The key, only if it is a slip of the hand away from `nearest`.
        key: Option<String>,
        /// The known key nearest to it.
        nearest: String,
    },
    /// The value is not what the key takes.
    Wrong {
        /// The key with its table.
        key: String,
        /// What it takes, as it stands after "must be".
        expected: &'static str,
    },
    /// Two keys of one table say opposite things.
    Both {
        /// The key with its table.
        key: String,
        /// The other key.
        other: &'static str,
    },
    /// A table of `[account]` is not called like an account.
    NoAccount,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "config file `{}`", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        f.write_str(": ")?;
        match &self.problem {
            Problem::Unreadable(kind) => write!(f, "cannot be read: {kind}"),
            Problem::TooLong => f.write_str("is longer than 1 MB"),
            Problem::Syntax(what) => f.write_str(what),
            Problem::UnknownKey { table, key, nearest } => {
                match key {
                    Some(key) => write!(f, "unknown key `{key}`")?,
                    None => f.write_str("unknown key")?,
                }
                if !table.is_empty() {
                    write!(f, " in `[{table}]`")?;
                }
                if key.is_some() {
                    write!(f, "; did you mean `{nearest}`?")
                } else {
                    write!(f, "; the nearest known one is `{nearest}`")
                }
            }
            Problem::Wrong { key, expected } => write!(f, "`{key}` must be {expected}"),
            Problem::Both { key, other } => write!(f, "`{key}` and `{other}` contradict each other"),
            Problem::NoAccount => f.write_str(
                "a table of `[account]` must be called like an account, such as `[account.\"runpod/lab\"]`",
            ),
        }
    }
}

impl std::error::Error for ConfigError {}
