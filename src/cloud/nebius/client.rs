//! How calls are made: where to, with which token, what is done again, how lists are read to their end. The calls themselves
//! are in `calls.rs`.

use std::fmt;
use std::time::Duration;

use prost::Message;
use ring::rand::{SecureRandom, SystemRandom};

use super::CREATE_TIMEOUT;
use super::credentials::Credentials;
use super::errors::{Asked, failed, may_repeat_create, may_repeat_read, unreadable};
use super::exchange::Exchange;
use super::wire::methods::{self, Method};
use super::wire::{CreateTokenResponse, ExchangeTokenRequest};
use crate::cloud::{ErrorKind, Reached, Result, Setup};
use crate::grpc::{self, Code, Via};
use crate::http::pages::{self, Page, PagesError};
use crate::http::{self, Retry};
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::model::words::one_line;

/// How long the create may take with waiting for the rate limit: the try itself and half a minute of patience.
const CREATE_WITHIN: Duration = CREATE_TIMEOUT.saturating_add(Duration::from_secs(31));

/// How long each try of another call may take (what the official SDK gives one).
const TRY_TIMEOUT: Duration = Duration::from_secs(20);

/// No list has more pages.
const MOST_PAGES: usize = 2000;

/// The API with the account's credentials.
pub(crate) struct Api {
    grpc: grpc::Client,
    account: AccountId,
    endpoint: String,
    pub(super) exchange: Exchange,
    timeout: Duration,
}

/// The secret stays out.
impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("account", &self.account)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// How a call is made.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    /// With a token.
    pub(super) admitted: bool,
    /// With a key under which it is carried out once.
    pub(super) key: Option<&'a str>,
    /// Sent again only where it certainly had no effect.
    pub(super) create: bool,
}

/// A call that may be repeated.
pub(super) const READ: How<'static> = How { admitted: true, key: None, create: false };

impl Api {
    /// Returns the API for an account. No request.
    pub(crate) fn new(setup: &Setup, credentials: Credentials, http: http::Client) -> Self {
        let options = grpc::ClientOptions { timeout: setup.timeout, ..grpc::ClientOptions::default() };
        Api {
            grpc: grpc::Client::new(options),
            account: setup.account.clone(),
            endpoint: setup.endpoint.clone(),
            exchange: Exchange::new(setup, credentials, http),
            timeout: setup.timeout,
        }
    }

    /// Returns the circumstances of a call, for its errors.
    pub(crate) fn asked(&self, doing: &'static str) -> Asked<'_> {
        Asked { account: &self.account, doing, attempt: None }
    }

    /// Returns where a call goes: the one endpoint that was named, or the service's own host.
    pub(crate) fn base<Req, Res>(&self, method: &Method<Req, Res>) -> String {
        match self.endpoint.strip_prefix("https://") {
            Some(domain) if self.endpoint == super::DEFAULT_ENDPOINT => {
                format!("https://{}.{domain}", method.host)
            }
            _ => self.endpoint.clone(),
        }
    }

    /// Makes sure that there is a token, so that calls that go out at once need not wait for each other.
    pub(crate) async fn log_in(&self) -> Result<()> {
        self.token(&self.asked("logging in")).await.map(drop)
    }

    /// Returns an id as it may be sent.
    pub(super) fn id(&self, id: &str, asked: &Asked<'_>) -> Result<String> {
        if is_id(id) {
            return Ok(id.to_owned());
        }
        let message = format!("`{}` is no id of Nebius's", one_line(id, 80));
        Err(asked.error(ErrorKind::Rejected, message, Reached::No))
    }

    /// Returns a new key under which a call that changes something is carried out once, however often it is sent.
    pub(crate) fn key(&self, asked: &Asked<'_>) -> Result<String> {
        let mut bytes = [0_u8; 16];
        SystemRandom::new().fill(&mut bytes).map_err(|_| {
            asked.error(ErrorKind::Unavailable, "the system has no random numbers", Reached::No)
        })?;
        Ok(key_of(bytes))
    }

    /// Reads all pages of a list: all of it or an error, as a short list would make machines disappear.
    pub(super) async fn list<Req, Res, T>(
        &self,
        method: &Method<Req, Res>,
        request: impl Fn(String) -> Req,
        split: impl Fn(Res) -> (Vec<T>, String),
        how: How<'_>,
        doing: &'static str,
    ) -> Result<Vec<T>>
    where
        Req: Message,
        Res: Message + Default,
    {
        let asked = self.asked(doing);
        let read = pages::all(MOST_PAGES, |cursor| {
            let request = request(cursor.unwrap_or_default());
            let (asked, split) = (&asked, &split);
            async move {
                let (items, next) = split(self.call(method, &request, how, asked).await?);
                Ok(Page { items, next: Some(next).filter(|next| !next.is_empty()) })
            }
        });
        read.await.map_err(|error| match error {
            PagesError::Page(error) => error,
            PagesError::Repeated => unreadable(&asked, "a page names one that was read already", Reached::No),
            PagesError::TooMany(most) => unreadable(&asked, &format!("more than {most} pages"), Reached::No),
        })
    }

    /// Makes a call; once more with a new token when this one is not taken, as nothing was done then.
    pub(super) async fn call<Req, Res>(
        &self,
        method: &Method<Req, Res>,
        request: &Req,
        how: How<'_>,
        asked: &Asked<'_>,
    ) -> Result<Res>
    where
        Req: Message,
        Res: Message + Default,
    {
        if !how.admitted {
            return self.once(method, request, how, None).await.map_err(|error| failed(error, asked));
        }
        let token = self.token(asked).await?;
        match self.once(method, request, how, Some(&token)).await {
            Err(grpc::Error::Refused(status))
                if status.code == Code::Unauthenticated
                    && status.via == Via::Service
                    && self.exchange.renews() =>
            {
                self.exchange.reject(&token).await;
                let token = self.token(asked).await?;
                self.once(method, request, how, Some(&token)).await
            }
            other => other,
        }
        .map_err(|error| failed(error, asked))
    }

    async fn once<Req, Res>(
        &self,
        method: &Method<Req, Res>,
        request: &Req,
        how: How<'_>,
        token: Option<&Secret>,
    ) -> std::result::Result<Res, grpc::Error>
    where
        Req: Message,
        Res: Message + Default,
    {
        let mut call = self.grpc.call(&self.base(method), method.path);
        call = match how.create {
            true => {
                call.retry(Retry::Create).again(may_repeat_create).within(CREATE_WITHIN).each(CREATE_TIMEOUT)
            }
            false => call.again(may_repeat_read).within(self.timeout).each(TRY_TIMEOUT),
        };
        if let Some(token) = token {
            call = call.bearer(token);
        }
        if let Some(key) = how.key {
            call = call.header("x-idempotency-key", key);
        }
        call.send(request).await
    }

    /// Exchanges credentials for a token. Needs none.
    pub(super) async fn exchange_token(
        &self,
        request: &ExchangeTokenRequest,
        asked: &Asked<'_>,
    ) -> Result<CreateTokenResponse> {
        // Whatever is said of a create holds for the create, not for this.
        let asked = Asked { attempt: None, ..*asked };
        let how = How { admitted: false, ..READ };
        self.call(&methods::EXCHANGE, request, how, &asked).await.map_err(|mut error| {
            // The request that needs the token was not sent.
            error.reached = Reached::No;
            error
        })
    }
}

/// Whether a text can be an id: a kind, a dash, and letters and digits (`computeinstance-e00abc`).
pub(crate) fn is_id(text: &str) -> bool {
    (3..=100).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Writes 16 bytes as a UUID of version 4.
fn key_of(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Takes "there is no such thing" for an answer.
pub(super) fn found<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
