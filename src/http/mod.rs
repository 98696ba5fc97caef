//! Requests over HTTP, the same for every cloud; nothing here knows one.
//!
//! - [`client`]: the client and one request: what may be asked where (TLS, proxy, loopback), limits of time and size;
//! - `bodies`: what a request carries;
//! - [`answer`]: what came back, whole or piece by piece;
//! - [`retry`]: which failed try is made again, and after how long;
//! - [`pace`]: slows down before a provider's rate window is used up;
//! - [`pages`]: lists that come in pages;
//! - [`cache`]: answers kept for a while on disk;
//! - [`address`]: paths and queries, percent-encoded;
//! - [`token`]: access tokens that expire, kept in memory and on disk;
//! - [`error`]: what can go wrong before there is an answer.
//!
//! An answer with any status is an answer, not an error: only a cloud's own folder knows what a status means there.
//!
//! Headers and bodies are never logged and never part of an error: keys travel in them.

pub mod address;
pub mod answer;
mod bodies;
pub mod cache;
#[cfg(test)]
pub(crate) mod canned;
pub mod client;
pub mod error;
pub mod pace;
pub mod pages;
pub mod retry;
#[cfg(test)]
mod tests;
pub mod token;

pub use answer::{Answer, Stream};
pub use client::{Client, ClientOptions, Request};
pub use error::{Error, ErrorKind, Sent};
pub use pace::Pacer;
pub use reqwest::Method;
pub use reqwest::header::HeaderMap;
pub use retry::Retry;
