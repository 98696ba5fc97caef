//! What is kept on this computer: machines, journal, locks, audit, configuration, paths, variables.
//!
//! It imports `model` alone and asks no cloud. Nothing here prints or ends the process, and the environment is read in
//! [`env::Env::capture`] only.
//!
//! ```text
//! <state>/installation           the installation id, made once
//! <state>/machines/NAME.json     the record of one machine; NAME.lock beside it says who works on it, NAME.wanted asks
//!                                the holder to stop
//! <state>/abandoned/CLAIM.json   claims that were given up without an answer
//! <state>/audit.jsonl            every action that changed something, one line each
//! <state>/switches.json          which accounts are asked for offers
//! ```

pub mod abandoned;
pub mod atomic;
pub mod audit;
pub mod config;
pub mod directory;
pub mod env;
pub mod error;
pub mod installation;
pub mod journal;
mod later;
pub mod lock;
pub mod machines;
pub mod paths;
pub mod record;
pub mod regular;
pub mod switches;
#[cfg(test)]
mod tests;

pub use abandoned::{Abandoned, Watch};
pub use config::{Config, ConfigError};
pub use directory::{DirError, private_dir};
pub use env::{Env, Variable};
pub use error::{LockError, StateError};
pub use installation::installation;
pub use journal::Open;
pub use lock::NameLock;
pub use machines::{Entry, Registry, Unreadable};
pub use paths::{Paths, PathsError};
pub use switches::Board;
