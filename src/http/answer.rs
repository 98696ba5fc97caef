//! What came back: a whole answer, or one that is read piece by piece.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

use super::error::{Error, ErrorKind, Sent};
use super::retry;

/// No answer of any cloud comes near this many bytes; more is not read.
const MOST_BYTES: usize = 32 * 1024 * 1024;

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A whole answer, of whatever status.
#[derive(Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Vec<u8>,
}

impl Answer {
    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the media type in lower case without parameters; empty if none is named.
    pub fn content_type(&self) -> String {
        let named = text(&self.headers, "content-type").unwrap_or_default();
        named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Returns a header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        text(&self.headers, name)
    }

    /// Returns the body as text; what is no UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Reads the body as JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// Returns how long the answer asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        retry::retry_after(&self.headers, Timestamp::now())
    }
}

/// Shows no body: it may hold secrets.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("content_type", &self.content_type())
            .field("bytes", &self.body.len())
            .finish()
    }
}

/// An answer that is read piece by piece.
pub struct Stream {
    /// The HTTP status.
    pub status: u16,
    response: reqwest::Response,
    host: String,
    read: usize,
}

impl Stream {
    /// Wraps an answer of which only the head was read.
    pub(super) fn new(response: reqwest::Response, host: String) -> Self {
        Stream { status: response.status().as_u16(), response, host, read: 0 }
    }

    /// Reads the rest.
    pub(super) async fn whole(mut self) -> Result<Answer, Error> {
        let headers = std::mem::take(self.response.headers_mut());
        let mut body = Vec::new();
        while let Some(piece) = self.next().await? {
            body.extend_from_slice(&piece);
        }
        Ok(Answer { status: self.status, headers, body })
    }

    /// Returns the next piece; none at the end. The caller sets how long it waits.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let chunk = self.response.chunk().await.map_err(|error| Error::sort(error, &self.host, true))?;
        let Some(chunk) = chunk else { return Ok(None) };
        self.read = self.read.saturating_add(chunk.len());
        if self.read > MOST_BYTES {
            let mut error = Error::new(ErrorKind::TooLarge, &self.host, format!("over {MOST_BYTES} bytes"));
            error.sent = Sent::Maybe;
            return Err(error);
        }
        Ok(Some(chunk.to_vec()))
    }
}
