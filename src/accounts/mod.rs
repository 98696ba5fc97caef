//! Accounts: where credentials are, where they may be sent, who they are, and which clouds there are.
//!
//! [`registry`] is the one place that lists the five clouds. `maker` makes accounts, the same at every cloud; one file for each
//! cloud says, as its `kind`, where its credentials are and how an account is made of them. [`store`] keeps those that were connected,
//! sealed by [`seal`]; [`given`] is what `clouds set` is given, and what becomes of it before it is kept.

pub mod endpoint;
pub mod error;
mod gcp;
mod gcp_parts;
pub mod given;
pub mod identity;
mod key_file;
mod kind;
mod maker;
mod nebius;
mod nebius_parts;
pub mod registry;
mod runpod;
pub mod seal;
pub mod sources;
pub mod store;
mod vast;
mod verda;

pub use endpoint::Endpoint;
pub use error::AccountsError;
pub use given::{Candidate, Given};
pub use registry::{Account, Connect, Connected, FoundNotUsed, connect};
pub use sources::Place;
pub use store::{Store, Stored};

#[cfg(test)]
mod gcp_tests;
#[cfg(test)]
mod nebius_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verda_tests;
