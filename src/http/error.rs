//! What can go wrong before there is an answer.

use std::fmt;
use std::io;
use std::time::Duration;

/// Whether a request may have reached the other side. After a request that makes something, [`Sent::Maybe`] means that the
/// thing may exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Certainly not: no connection came about, or nothing was tried.
    No,
    /// It may have.
    Maybe,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// This machine has no root certificates.
    NoRoots,
    /// The client or the request cannot be made: a bad URL, a key with characters that no header takes.
    Unusable,
    /// Plain http to an address that is not loopback.
    Plaintext,
    /// The host's name is not found.
    Dns,
    /// No connection: refused, unreachable, no answer, or the proxy did not let it through.
    Connect,
    /// No agreement on TLS, mostly a certificate that is not trusted.
    Tls,
    /// No answer, or no whole answer, in time.
    Timeout,
    /// The connection was lost before there was an answer.
    Interrupted,
    /// The answer began and broke off, or its encoding is broken.
    Body,
    /// The answer is larger than any answer should be.
    TooLarge,
}

/// Why there is no answer. Holds no secret: neither headers nor query nor body.
#[derive(Debug)]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// Whether the request may have reached the other side, over all tries.
    pub sent: Sent,
    /// The host that was asked, with the port where one is named.
    pub host: String,
    /// How many tries were made.
    pub tries: u32,
    /// How long all of it took.
    pub elapsed: Duration,
    /// The system's or the library's own words.
    pub detail: String,
    /// What caused it underneath.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Returns the error of a request that was certainly not sent.
    pub(crate) fn new(kind: ErrorKind, host: &str, detail: impl Into<String>) -> Self {
        Error {
            kind,
            sent: Sent::No,
            host: host.to_owned(),
            tries: 0,
            elapsed: Duration::ZERO,
            detail: detail.into(),
            source: None,
        }
    }

    /// Sorts a failure of the library. `answered` says whether the head of an answer had come.
    pub(super) fn sort(error: reqwest::Error, host: &str, answered: bool) -> Self {
        // The library's text would show the URL with its query.
        let error = error.without_url();
        let kind = if error.is_builder() {
            ErrorKind::Unusable
        } else if error.is_dns() {
            ErrorKind::Dns
        } else if find::<rustls::Error>(&error).is_some() && error.is_connect() {
            ErrorKind::Tls
        } else if error.is_connect() {
            ErrorKind::Connect
        } else if error.is_timeout() {
            ErrorKind::Timeout
        } else if answered || error.is_body() || error.is_decode() {
            ErrorKind::Body
        } else {
            ErrorKind::Interrupted
        };
        let sent = match kind {
            ErrorKind::Unusable | ErrorKind::Dns | ErrorKind::Tls | ErrorKind::Connect => Sent::No,
            _ => Sent::Maybe,
        };
        let certificate = find::<rustls::Error>(&error).and_then(|error| bad_certificate(error, host));
        let mut sorted = Error::new(kind, host, certificate.unwrap_or_else(|| deepest(&error)));
        sorted.sent = sent;
        sorted.source = Some(Box::new(error));
        sorted
    }

    /// Whether the same request may well work a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        match self.kind {
            ErrorKind::Dns
            | ErrorKind::Connect
            | ErrorKind::Timeout
            | ErrorKind::Interrupted
            | ErrorKind::Body => true,
            ErrorKind::NoRoots
            | ErrorKind::Unusable
            | ErrorKind::Plaintext
            | ErrorKind::Tls
            | ErrorKind::TooLarge => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { host, detail, .. } = self;
        match self.kind {
            ErrorKind::NoRoots => f.write_str(
                "no root certificates on this machine: install ca-certificates or set SSL_CERT_FILE",
            ),
            ErrorKind::Unusable => write!(f, "the request to {host} cannot be made: {detail}"),
            ErrorKind::Plaintext => {
                write!(
                    f,
                    "{host} is not on this machine: plain http is for loopback addresses only, use https"
                )
            }
            ErrorKind::Dns => write!(f, "the host name {host} is not found: {detail}"),
            ErrorKind::Connect => write!(f, "no connection to {host}: {detail}"),
            ErrorKind::Tls => write!(f, "no secure connection to {host}: {detail}"),
            ErrorKind::Timeout => write!(f, "no answer from {host} within {:.0?}", self.elapsed),
            ErrorKind::Interrupted => write!(f, "the connection to {host} was lost: {detail}"),
            ErrorKind::Body => write!(f, "the answer of {host} broke off: {detail}"),
            ErrorKind::TooLarge => write!(f, "the answer of {host} is too large: {detail}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// Finds an error of type `E` among the causes, also where it is wrapped in an I/O error.
pub(crate) fn find<'a, E: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<E>() {
            return Some(found);
        }
        // An I/O error made from another error skips that one in its chain of sources.
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner as &(dyn std::error::Error + 'static)),
            None => cause.source(),
        };
    }
    None
}

/// Says what is wrong with a certificate that was not taken, and what to do.
pub(crate) fn bad_certificate(error: &rustls::Error, host: &str) -> Option<String> {
    use rustls::CertificateError as Bad;
    let rustls::Error::InvalidCertificate(bad) = error else { return None };
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    Some(match bad {
        Bad::UnknownIssuer => {
            "its certificate comes from an authority that this computer does not trust; SSL_CERT_FILE names others"
                .to_owned()
        }
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            format!("its certificate is not for the name {name}")
        }
        Bad::Expired | Bad::ExpiredContext { .. } => {
            "its certificate has expired, by the clock of this computer".to_owned()
        }
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
            "its certificate is not valid yet, by the clock of this computer".to_owned()
        }
        Bad::BadSignature => "its certificate is not signed by the authority that it names".to_owned(),
        Bad::Revoked => "its certificate was revoked".to_owned(),
        other => format!("its certificate is not taken: {other}"),
    })
}

/// Returns the words of the last cause: the ones that say what happened.
pub(crate) fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
