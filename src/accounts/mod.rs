//! Accounts: where credentials are, where they may be sent, who they are, and which clouds there are.
//!
//! [`registry`] is the one place that lists the five clouds. `kind` is what the making of an account is like everywhere; one file
//! for each cloud says where its credentials are and how an account is made of them.

pub mod endpoint;
pub mod error;
mod gcp;
pub mod identity;
mod kind;
mod nebius;
pub mod registry;
mod runpod;
pub mod sources;
mod vast;
mod verda;

pub use endpoint::Endpoint;
pub use error::AccountsError;
pub use registry::{Account, Connect, Connected, FoundNotUsed, connect};
pub use sources::Place;

#[cfg(test)]
mod gcp_tests;
#[cfg(test)]
mod nebius_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verda_tests;
