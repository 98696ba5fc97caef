//! Calls over gRPC, the same for every cloud; nothing here knows one.
//!
//! - [`channel`]: connections: TLS, proxy, loopback;
//! - [`call`]: one call with one request and one answer, its limits of time and its tries;
//! - `frame`: what goes over the wire and how an answer is read;
//! - [`error`]: what can go wrong.
//!
//! The transport below is HTTP/2 by `tonic`; the frames are read here, because an answer from something in between (a web page,
//! half a frame, no trailers, details that are no base64) must become an error that says so.
//!
//! Metadata and messages are never logged and never part of an error: tokens travel in them.

pub mod call;
#[cfg(test)]
pub(crate) mod canned;
pub mod channel;
pub mod error;
pub(crate) mod frame;
#[cfg(test)]
mod tests;

pub use call::{Call, Client, ClientOptions};
pub use error::{Error, Status, Via};
pub use tonic::Code;
