//! One call with one request and one answer.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, TE};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use prost::Message;
use prost::bytes::Bytes;
use tonic::Code;
use tonic::body::Body;
use tower::{Service, ServiceExt};
use url::Url;

use super::channel::{self, Channels};
use super::error::{Error, Status};
use super::frame;
use crate::http::retry::{MOST_TRIES, backoff};
use crate::http::{self as plain, ErrorKind, Retry, Sent};
use crate::model::secret::Secret;

/// No answer of any cloud comes near this many bytes; more is not read.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How long one call may take with all its tries, unless the call says otherwise.
    pub timeout: Duration,
    /// How long to wait before the second try of a call; doubled for each further one.
    pub backoff: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions { timeout: Duration::from_secs(15), backoff: Duration::from_millis(250) }
    }
}

/// The client; a clone is the same one, with the same connections.
#[derive(Clone, Debug)]
pub struct Client {
    options: ClientOptions,
    channels: Arc<Channels>,
}

impl Client {
    /// Returns a client. Nothing is read or connected yet.
    pub fn new(options: ClientOptions) -> Self {
        Client { options, channels: Arc::default() }
    }

    /// Starts a call: `base` is scheme and authority, `path` is `/package.Service/Method`.
    pub fn call(&self, base: &str, path: &'static str) -> Call {
        Call {
            client: self.clone(),
            base: base.to_owned(),
            path,
            headers: HeaderMap::new(),
            retry: Retry::Safe,
            within: self.options.timeout,
            each: None,
            again: |_| None,
            broken: None,
        }
    }
}

/// One call before it is sent.
#[must_use = "a call does nothing until it is sent"]
pub struct Call {
    client: Client,
    base: String,
    path: &'static str,
    headers: HeaderMap,
    retry: Retry,
    within: Duration,
    each: Option<Duration>,
    again: fn(&Status) -> Option<Duration>,
    broken: Option<&'static str>,
}

impl Call {
    /// Adds `authorization: Bearer`.
    pub fn bearer(mut self, secret: &Secret) -> Self {
        match HeaderValue::try_from(format!("Bearer {}", secret.expose())) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.insert(AUTHORIZATION, value);
            }
            Err(_) => self.broken = Some("the token holds characters that no header takes"),
        }
        self
    }

    /// Adds metadata without secrets.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        match HeaderValue::try_from(value) {
            Ok(value) => {
                self.headers.insert(HeaderName::from_static(name), value);
            }
            Err(_) => self.broken = Some("metadata holds characters that no header takes"),
        }
        self
    }

    /// Sets which tries without an answer may be made again; [`Retry::Safe`] by default. Of a [`Retry::Create`] that is only one
    /// for which no connection came about.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Sets which refusals may be tried again, and after how long at least; none by default. What it says holds for a
    /// [`Retry::Create`] too: it must name only refusals that certainly had no effect then.
    pub fn again(mut self, again: fn(&Status) -> Option<Duration>) -> Self {
        self.again = again;
        self
    }

    /// Sets how long the call may take with all its tries, in place of [`ClientOptions::timeout`].
    pub fn within(mut self, most: Duration) -> Self {
        self.within = most;
        self
    }

    /// Sets how long each try may take; never more than what is left of the whole call.
    pub fn each(mut self, most: Duration) -> Self {
        self.each = Some(most);
        self
    }

    /// Sends the request, again where that is allowed, and reads the answer.
    pub async fn send<Req: Message, Res: Message + Default>(self, request: &Req) -> Result<Res, Error> {
        let started = Instant::now();
        let host = host(&self.base);
        // Every try sends the same bytes: services tell a repeated call by its key only then.
        let body = Bytes::from(frame::frame(&request.encode_to_vec()));
        let (mut tries, mut waited, mut maybe_sent) = (0, Duration::ZERO, false);
        loop {
            tries += 1;
            let left = self.within.saturating_sub(started.elapsed());
            let most = self.each.map_or(left, |each| each.min(left));
            let since = Instant::now();
            let tried = Box::pin(tokio::time::timeout(most, self.once(&host, body.clone(), most))).await;
            let tried = tried.unwrap_or_else(|_| {
                let mut late = plain::Error::new(ErrorKind::Timeout, &host, "");
                late.sent = Sent::Maybe;
                Err(Error::Unanswered(late))
            });
            self.note(&host, &tried, since);
            let error = match tried {
                Ok(bytes) => return decode(&bytes, &host),
                Err(error) => error,
            };
            let wish = match &error {
                Error::Unanswered(error) if self.retry.takes_error(error) => Some(Duration::ZERO),
                Error::Refused(status) if self.retry != Retry::Never => (self.again)(status),
                _ => None,
            };
            let wait = wish.map(|least| least.max(backoff(tries, self.client.options.backoff)));
            let left = self.within.saturating_sub(started.elapsed());
            let patience = self.retry.patience().saturating_sub(waited);
            let Some(wait) = wait.filter(|wait| tries < MOST_TRIES && *wait < left && *wait <= patience)
            else {
                return Err(finish(error, started, tries, maybe_sent));
            };
            maybe_sent |= matches!(&error, Error::Unanswered(error) if error.sent == Sent::Maybe);
            waited += wait;
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends the request once and returns the message of a good answer, not decoded.
    async fn once(&self, host: &str, body: Bytes, most: Duration) -> Result<Vec<u8>, Error> {
        let unusable = |why: &str| Error::Unanswered(plain::Error::new(ErrorKind::Unusable, host, why));
        if let Some(why) = self.broken {
            return Err(unusable(why));
        }
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}{}", self.base, self.path))
            .body(Body::new(Full::new(body)))
            .map_err(|error| unusable(&error.to_string()))?;
        let headers = request.headers_mut();
        *headers = self.headers.clone();
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        if let Ok(limit) = HeaderValue::try_from(frame::timeout(most)) {
            headers.insert("grpc-timeout", limit);
        }
        let mut channel = self.client.channels.get(&self.base, host).map_err(Error::Unanswered)?;
        let lost = |error| Error::Unanswered(channel::sort(error, host));
        channel.ready().await.map_err(lost)?;
        let response = channel.call(request).await.map_err(lost)?;
        read(response, host).await
    }

    /// Logs a try, and gives up the connection where it may be the reason of a failure.
    fn note(&self, host: &str, tried: &Result<Vec<u8>, Error>, since: Instant) {
        let ms = since.elapsed().as_millis() as u64;
        let path = self.path;
        match tried {
            Ok(bytes) => {
                tracing::debug!(target: "gpuprov::grpc", host, path, ms, bytes = bytes.len(), "answer");
            }
            Err(Error::Refused(status)) => {
                let (code, id) = (status.code, status.request_id.as_deref());
                tracing::debug!(target: "gpuprov::grpc", host, path, ms, ?code, request_id = id, "refused");
            }
            Err(Error::Unreadable { what, .. }) => {
                tracing::debug!(target: "gpuprov::grpc", host, path, ms, what, "unreadable");
            }
            Err(Error::Unanswered(error)) => {
                tracing::debug!(target: "gpuprov::grpc", host, path, ms, kind = ?error.kind, "no answer");
                self.client.channels.forget(&self.base);
            }
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("base", &self.base).field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reads an answer to its end.
async fn read(response: Response<Body>, host: &str) -> Result<Vec<u8>, Error> {
    let (head, mut body) = response.into_parts();
    let headers = head.headers;
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_grpc = kind.starts_with("application/grpc");
    let unreadable = |what: String, done| Error::Unreadable { host: host.to_owned(), what, done };
    if let Some(status) = frame::status(&headers, &headers).filter(|_| is_grpc)
        && status.code != Code::Ok
    {
        return Err(Error::Refused(Box::new(status)));
    }
    if head.status != http::StatusCode::OK {
        return Err(Error::Refused(Box::new(frame::edge(head.status.as_u16(), &headers))));
    }
    if !is_grpc {
        return Err(unreadable(format!("it is {}, not gRPC", known(kind)), false));
    }
    let mut bytes = Vec::new();
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let mut broken = plain::Error::new(ErrorKind::Body, host, channel::words(&error));
            broken.sent = Sent::Maybe;
            Error::Unanswered(broken)
        })?;
        match frame.into_data() {
            Ok(data) => bytes.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
        if bytes.len() > MOST_BYTES {
            let mut large = plain::Error::new(ErrorKind::TooLarge, host, format!("over {MOST_BYTES} bytes"));
            large.sent = Sent::Maybe;
            return Err(Error::Unanswered(large));
        }
    }
    let status = frame::status(trailers.as_ref().unwrap_or(&headers), &headers);
    let Some(status) = status else { return Err(unreadable("it ends without a status".to_owned(), false)) };
    if status.code != Code::Ok {
        return Err(Error::Refused(Box::new(status)));
    }
    frame::unframe(&bytes).map(<[u8]>::to_vec).map_err(|what| unreadable(what, true))
}

/// Names what a body is without repeating any text of the answer's.
fn known(kind: &str) -> &'static str {
    match kind.split(';').next().unwrap_or_default().trim() {
        "text/html" => "a web page",
        "application/json" => "JSON",
        "text/plain" => "plain text",
        "" => "of no known kind",
        _ => "something else",
    }
}

fn decode<Res: Message + Default>(bytes: &[u8], host: &str) -> Result<Res, Error> {
    // The library's text names fields, never values.
    Res::decode(bytes).map_err(|error| Error::Unreadable {
        host: host.to_owned(),
        what: error.to_string(),
        done: true,
    })
}

fn host(base: &str) -> String {
    let url = Url::parse(base).ok();
    let host = url.as_ref().and_then(|url| {
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    });
    host.unwrap_or_else(|| "the endpoint".to_owned())
}

fn finish(error: Error, started: Instant, tries: u32, maybe_sent: bool) -> Error {
    let Error::Unanswered(mut error) = error else { return error };
    error.elapsed = started.elapsed();
    error.tries = tries;
    if maybe_sent {
        error.sent = Sent::Maybe;
    }
    Error::Unanswered(error)
}
