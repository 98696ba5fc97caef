//! The client and one request: what may be asked where, limits of time and size, what is logged.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, redirect};
use url::{Host, Url};

use super::address::is_metadata;
use super::answer::{Answer, Stream, text};
use super::error::{Error, ErrorKind, Sent};
use super::pace::{self, Pacer};
use super::retry::{self, Retry};
use crate::model::secret::Secret;

/// What our requests call themselves. Some providers' edges refuse requests without it (RunPod: `error code: 1010`).
pub const USER_AGENT: &str = concat!("gpuprov/", env!("CARGO_PKG_VERSION"));

/// How long one connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How long one call may take with all its tries, unless the call says otherwise.
    pub timeout: Duration,
    /// How long to wait before the second try of a call where the answer asks nothing; doubled for each further one.
    pub backoff: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions { timeout: Duration::from_secs(15), backoff: Duration::from_millis(250) }
    }
}

/// The client for all accounts of a process; a clone is the same client.
///
/// It is made ready at the first request to each of three kinds of address, so that a machine without root certificates can
/// still ask a sandbox:
/// - `http` on loopback: no certificates, no proxy;
/// - `https` on loopback: the system's certificates, no proxy;
/// - `https` elsewhere: the system's certificates and proxy.
///
/// `http` elsewhere is refused, but for the metadata server of a cloud's machine ([`super::address::is_metadata`]). Redirects are not followed: a key must not travel to another host.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    options: ClientOptions,
    plain: OnceLock<Result<reqwest::Client, String>>,
    secure_local: OnceLock<Result<reqwest::Client, String>>,
    secure: OnceLock<Result<reqwest::Client, String>>,
    pacers: Mutex<HashMap<String, Arc<Pacer>>>,
    clock: Mutex<Option<SignedDuration>>,
}

impl Client {
    /// Returns a client. Nothing is read or connected yet.
    pub fn new(options: ClientOptions) -> Self {
        Client {
            shared: Arc::new(Shared {
                options,
                plain: OnceLock::new(),
                secure_local: OnceLock::new(),
                secure: OnceLock::new(),
                pacers: Mutex::default(),
                clock: Mutex::default(),
            }),
        }
    }

    /// Returns the limiter called `key`: one for each provider and key, shared by all clones of the client. `key` holds no
    /// secret (endpoint and secret mark, for example).
    pub fn pacer(&self, key: &str) -> Arc<Pacer> {
        let mut pacers = self.shared.pacers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(pacers.entry(key.to_owned()).or_default())
    }

    /// Returns by how much the clock of the last server that answered is ahead of ours, by the `Date` of its answer, which
    /// counts whole seconds. None if no answer told one yet.
    pub fn clock_ahead(&self) -> Option<SignedDuration> {
        *self.shared.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a secure connection could be made from here: fails with [`ErrorKind::NoRoots`] without root certificates.
    pub fn check_roots(&self) -> Result<(), Error> {
        let built = self.shared.secure.get_or_init(|| build(false, false));
        built.as_ref().map(drop).map_err(|why| unready(why, "https"))
    }

    /// Starts a request. `url` holds no secret; segments and query are encoded by the caller ([`super::address`]).
    pub fn request(&self, method: Method, url: impl Into<String>) -> Request {
        let retry =
            if method == Method::POST || method == Method::PATCH { Retry::Never } else { Retry::Safe };
        Request {
            client: self.clone(),
            method,
            url: url.into(),
            headers: HeaderMap::new(),
            body: None,
            retry,
            within: self.shared.options.timeout,
            each: None,
            pacer: None,
            backoff: self.shared.options.backoff,
            last_word: None,
            broken: None,
        }
    }

    fn inner(&self, url: &Url, host: &str) -> Result<&reqwest::Client, Error> {
        let local = is_loopback(url);
        let (slot, plain) = match (url.scheme(), local) {
            ("http", true) => (&self.shared.plain, true),
            ("https", true) => (&self.shared.secure_local, false),
            ("https", false) => (&self.shared.secure, false),
            ("http", false) if is_metadata(url) => (&self.shared.plain, true),
            ("http", false) => return Err(Error::new(ErrorKind::Plaintext, host, "")),
            (other, _) => {
                return Err(Error::new(
                    ErrorKind::Unusable,
                    host,
                    format!("`{other}` is neither https nor http"),
                ));
            }
        };
        slot.get_or_init(|| build(plain, local)).as_ref().map_err(|why| unready(why, host))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

fn unready(why: &str, host: &str) -> Error {
    // The library's words for an empty store; see `build`.
    let kind = if why.contains("certificate") { ErrorKind::NoRoots } else { ErrorKind::Unusable };
    Error::new(kind, host, why)
}

fn build(plain: bool, local: bool) -> Result<reqwest::Client, String> {
    // Without a provider the builder panics. Whoever installed one before wins, which is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true);
    if local || plain {
        builder = builder.no_proxy();
    }
    if plain {
        // With no store on the machine the builder fails ("No CA certificates were loaded from the system"), also for a
        // client that only ever speaks http.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| {
        let mut words = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            words = format!("{words}: {error}");
            cause = error.source();
        }
        words
    })
}

/// Whether a URL names this machine itself.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).to_canonical().is_loopback(),
        None => false,
    }
}

/// One request before it is sent.
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    client: Client,
    method: Method,
    url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
    retry: Retry,
    within: Duration,
    each: Option<Duration>,
    pacer: Option<Arc<Pacer>>,
    backoff: Duration,
    last_word: Option<fn(&Answer) -> bool>,
    pub(super) broken: Option<&'static str>,
}

impl Request {
    /// Adds `Authorization: Bearer`.
    pub fn bearer(mut self, secret: &Secret) -> Self {
        match HeaderValue::try_from(format!("Bearer {}", secret.expose())) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.insert(AUTHORIZATION, value);
            }
            Err(_) => self.broken = Some("the key holds characters that no header takes"),
        }
        self
    }

    /// Adds a header without secrets.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::try_from(value) {
            Ok(value) => {
                self.headers.insert(name, value);
            }
            Err(_) => self.broken = Some("a header holds characters that no header takes"),
        }
        self
    }

    /// Sets which tries may be made again; by default [`Retry::Safe`], for POST and PATCH [`Retry::Never`].
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Sets how long the call may take with all its tries, in place of [`ClientOptions::timeout`].
    pub fn within(mut self, most: Duration) -> Self {
        self.within = most;
        self
    }

    /// Sets how long each try may take, from connecting to the last byte; never more than what is left of the whole call.
    pub fn each(mut self, most: Duration) -> Self {
        self.each = Some(most);
        self
    }

    /// Keeps the request within a provider's rate windows, and tells `pacer` what the answers say.
    pub fn paced(mut self, pacer: &Arc<Pacer>) -> Self {
        self.pacer = Some(Arc::clone(pacer));
        self
    }

    /// Sets how long to wait before the second try where the answer asks nothing, in place of [`ClientOptions::backoff`].
    pub fn backoff(mut self, first: Duration) -> Self {
        self.backoff = first;
        self
    }

    /// Sets which answers are the last word whatever their status: a spent daily quota does not come back in a minute.
    pub fn last_word(mut self, is: fn(&Answer) -> bool) -> Self {
        self.last_word = Some(is);
        self
    }

    /// Sends the request, again where that is allowed, and reads the whole answer, whatever its status.
    pub async fn send(self) -> Result<Answer, Error> {
        let mut started = Instant::now();
        let mut waited = Duration::ZERO;
        let mut maybe_sent = false;
        let mut tries = 0;
        loop {
            started += self.pace(started).await;
            tries += 1;
            let tried = Box::pin(self.once(started)).await;
            let wish = match &tried {
                Ok(answer)
                    if self.retry.takes_status(answer.status)
                        && !self.last_word.is_some_and(|is| is(answer)) =>
                {
                    answer.retry_after()
                }
                Err(error) if self.retry.takes_error(error) => None,
                _ => return tried.map_err(|error| finish(error, started, tries, maybe_sent)),
            };
            maybe_sent |= matches!(&tried, Err(error) if error.sent == Sent::Maybe);
            // A 429 that names no time is about a window of seconds at least.
            let wait = wish.unwrap_or_default().max(retry::backoff(tries, self.backoff));
            let left = self.within.saturating_sub(started.elapsed());
            let patience = self.retry.patience().saturating_sub(waited);
            if tries >= retry::MOST_TRIES || wait >= left || wait > patience {
                return tried.map_err(|error| finish(error, started, tries, maybe_sent));
            }
            waited += wait;
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends the request once and returns as soon as the head of the answer is there; for streams that stay open. The time
    /// limit holds until then.
    pub async fn open(self) -> Result<Stream, Error> {
        let mut started = Instant::now();
        started += self.pace(started).await;
        let host = self.host();
        let head = tokio::time::timeout(self.within, self.dispatch(&host, None)).await;
        match head {
            Ok(Ok((response, _))) => Ok(Stream::new(response, host)),
            Ok(Err(error)) => Err(finish(error, started, 1, false)),
            Err(_) => {
                let mut error = Error::new(ErrorKind::Timeout, &host, "");
                error.sent = Sent::Maybe;
                Err(finish(error, started, 1, false))
            }
        }
    }

    /// Waits for the request's turn, and returns how much of that is not counted against the answer.
    async fn pace(&self, started: Instant) -> Duration {
        let Some(pacer) = &self.pacer else { return Duration::ZERO };
        let left = self.within.saturating_sub(started.elapsed());
        let patience = pace::patience().filter(|_| self.retry == Retry::Safe);
        let most = match self.retry {
            Retry::Create => left.min(self.retry.patience()),
            _ => patience.unwrap_or(left),
        };
        let wait = pacer.book(Instant::now(), most);
        if !wait.is_zero() {
            tracing::debug!(target: "gpuprov::http", host = self.host(), ?wait, "little left of the rate window");
            tokio::time::sleep(wait).await;
        }
        if patience.is_none() {
            return Duration::ZERO;
        }
        pace::note_wait(wait);
        wait
    }

    async fn once(&self, started: Instant) -> Result<Answer, Error> {
        let host = self.host();
        let left = self.within.saturating_sub(started.elapsed());
        let most = self.each.map_or(left, |each| each.min(left));
        let (response, since) = self.dispatch(&host, Some(most)).await?;
        let answer = Stream::new(response, host).whole().await?;
        let (ms, bytes) = (since.elapsed().as_millis() as u64, answer.body.len());
        tracing::debug!(target: "gpuprov::http", ms, bytes, "whole answer");
        Ok(answer)
    }

    /// Sends one try and returns the head of its answer.
    async fn dispatch(
        &self,
        host: &str,
        most: Option<Duration>,
    ) -> Result<(reqwest::Response, Instant), Error> {
        let unusable = |why: &str| Error::new(ErrorKind::Unusable, host, why);
        if let Some(why) = self.broken {
            return Err(unusable(why));
        }
        let url = Url::parse(&self.url).map_err(|error| unusable(&error.to_string()))?;
        let path = url.path().to_owned();
        let mut builder =
            self.client.inner(&url, host)?.request(self.method.clone(), url).headers(self.headers.clone());
        if let Some(most) = most {
            builder = builder.timeout(most);
        }
        if let Some(body) = &self.body {
            builder = builder.body(body.clone());
        }
        let since = Instant::now();
        let sent = builder.send().await.map_err(|error| Error::sort(error, host, false));
        let (method, ms) = (self.method.as_str(), since.elapsed().as_millis() as u64);
        match &sent {
            Ok(response) => {
                let status = response.status().as_u16();
                let id = text(response.headers(), "x-request-id");
                tracing::debug!(target: "gpuprov::http", host, method, path, status, ms, request_id = id, "answer");
                if let Some(ahead) = clock_ahead(response.headers()) {
                    *self.client.shared.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
                }
                if let Some(pacer) = &self.pacer {
                    pacer.learn(response.headers(), Instant::now());
                }
            }
            Err(error) => {
                tracing::debug!(target: "gpuprov::http", host, method, path, ms, kind = ?error.kind, "no answer");
            }
        }
        Ok((sent?, since))
    }

    fn host(&self) -> String {
        let url = Url::parse(&self.url).ok();
        let host = url.as_ref().and_then(|url| {
            let host = url.host_str()?;
            Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        });
        host.unwrap_or_else(|| "the endpoint".to_owned())
    }
}

fn clock_ahead(headers: &HeaderMap) -> Option<SignedDuration> {
    let date = retry::http_date(text(headers, "date")?)?;
    Some(date.duration_since(Timestamp::now()))
}

fn finish(mut error: Error, started: Instant, tries: u32, maybe_sent: bool) -> Error {
    error.elapsed = started.elapsed();
    error.tries = tries;
    if maybe_sent {
        error.sent = Sent::Maybe;
    }
    error
}
