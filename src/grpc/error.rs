//! What can go wrong with a call.

use std::fmt;

use tonic::Code;

use crate::http;
use crate::http::Sent;

/// Who said what a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The service itself, in the trailers of gRPC.
    Service,
    /// Something in between, with this HTTP status. Nothing is then certain about the request.
    Edge(u16),
}

/// A status other than `OK`.
#[derive(Clone, PartialEq, Eq)]
pub struct Status {
    /// The gRPC code.
    pub code: Code,
    /// For people; somebody else's text, of any length.
    pub message: String,
    /// The encoded `google.rpc.Status` that says more; empty if there is none.
    pub details: Vec<u8>,
    /// Who said it.
    pub via: Via,
    /// The service's own id of the request, for its support.
    pub request_id: Option<String>,
    /// The service's own id of the trace.
    pub trace_id: Option<String>,
}

/// Shows no details: they may repeat the request.
impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status").field("code", &self.code).field("via", &self.via).finish_non_exhaustive()
    }
}

/// A failed call. Holds no secret of ours: neither metadata nor message.
#[derive(Debug)]
pub enum Error {
    /// No answer, or none that came to its end.
    Unanswered(http::Error),
    /// An answer that says no.
    Refused(Box<Status>),
    /// A whole answer that is no gRPC or not the message that it should be. The call may have had its effect, and has had it if
    /// `done`: the service itself said `OK`.
    Unreadable {
        /// The host that was asked.
        host: String,
        /// What is wrong with the answer.
        what: String,
        /// Whether the service said that the call went well.
        done: bool,
    },
}

impl Error {
    /// Whether the call may have reached the service, as far as the transport can tell.
    pub fn sent(&self) -> Sent {
        match self {
            Error::Unanswered(error) => error.sent,
            Error::Refused(_) | Error::Unreadable { .. } => Sent::Maybe,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unanswered(error) => error.fmt(f),
            Error::Refused(status) => write!(f, "{:?}: {}", status.code, status.message),
            Error::Unreadable { host, what, .. } => write!(f, "the answer of {host} cannot be read: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unanswered(error) => Some(error),
            Error::Refused(_) | Error::Unreadable { .. } => None,
        }
    }
}
