//! Plain words shared by all layers: account, GPU, place, money, want, offer, machine, mark, secret.
//!
//! Nothing here does I/O, reads a clock, or knows a cloud's wire format. Everything that is written to disk, put on a
//! machine or printed as JSON is defined here, because those forms are contracts and must not change by accident.

pub mod account;
pub mod duration;
pub mod gpu;
pub mod handle;
pub mod image;
pub mod machine;
pub mod mark;
pub mod money;
pub mod offer;
pub mod offer_key;
pub mod place;
pub mod secret;
pub mod spec;
pub mod want;
pub mod words;
