//! Accounts: where credentials are, where they may be sent, who they are, and which clouds there are.
//!
//! [`registry`] is the one place that lists the five clouds.

pub mod endpoint;
pub mod error;
pub mod identity;
pub mod registry;
pub mod sources;

pub use endpoint::Endpoint;
pub use error::AccountsError;
pub use registry::{Account, Connect, Connected, FoundNotUsed, connect};
pub use sources::Place;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod verda_tests;
