//! From credentials to tokens (RFC 8693; the roles as the official SDK fills them in `nebius/aio/token`).

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::cli_files;
use super::client::Api;
use super::credentials::{Credentials, Login, TokenSource};
use super::errors::{Asked, unreadable};
use super::jwt;
use super::wire::{CreateTokenResponse, ExchangeTokenRequest};
use crate::cloud::{ErrorKind, Reached, Result, Setup};
use crate::http::token::{Granted, Tokens};
use crate::http::{self, Method};
use crate::model::secret::{self, Secret};
use crate::model::words::one_line;

/// A token without a known life is taken for one of so long.
const SHORT_LIFE: Duration = Duration::from_secs(60);

/// A login of the nebius CLI with less left is as good as over.
const LEAST_LEFT: i64 = 600;

/// No token has more bytes.
const MOST_BYTES: u64 = 64 * 1024;

/// How long a command may take to print a token.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const SUBJECT_ID: &str = "urn:nebius:params:oauth:token-type:subject_identifier";

/// The tokens of one account.
pub(crate) struct Exchange {
    credentials: Credentials,
    tokens: Tokens,
    http: http::Client,
}

impl Exchange {
    /// Returns the tokens of an account. Nothing is read yet.
    pub(crate) fn new(setup: &Setup, credentials: Credentials, http: http::Client) -> Self {
        let folder =
            setup.cache.as_ref().filter(|_| credentials.exchanges()).map(|cache| cache.join("tokens"));
        let Setup { endpoint, secret_mark, .. } = setup;
        let key = format!("nebius {endpoint} {secret_mark} {}", credentials.way());
        Exchange { tokens: Tokens::new(folder.as_deref(), key), credentials, http }
    }

    /// Whether a token that is not taken can be replaced.
    pub(crate) fn renews(&self) -> bool {
        self.credentials.renews()
    }

    /// Drops a token that was not taken.
    pub(crate) async fn reject(&self, token: &Secret) {
        self.tokens.reject(token).await;
    }
}

impl Api {
    /// Returns a token that is good for a while.
    pub(super) async fn token(&self, asked: &Asked<'_>) -> Result<Secret> {
        if let Credentials::Token(token) = &self.exchange.credentials {
            return Ok(token.clone());
        }
        self.exchange.tokens.get(|| self.granted(&self.exchange.credentials, asked)).await
    }

    /// Gets a new token.
    fn granted<'a>(
        &'a self,
        credentials: &'a Credentials,
        asked: &'a Asked<'_>,
    ) -> BoxFuture<'a, Result<Granted>> {
        Box::pin(async move {
            match credentials {
                Credentials::Token(token) => Ok(Granted { token: token.clone(), lives: SHORT_LIFE }),
                Credentials::TokenFile(path) => Ok(Granted {
                    token: read_file(path).map_err(|why| local(asked, why))?,
                    lives: SHORT_LIFE,
                }),
                Credentials::Login(login) => self.logged_in(login, asked),
                Credentials::Key(key) => {
                    let statement =
                        jwt::sign(key, Timestamp::now()).map_err(|why| local(asked, why.to_owned()))?;
                    let request = ExchangeTokenRequest {
                        subject_token: statement,
                        subject_token_type: JWT.to_owned(),
                        ..asks()
                    };
                    self.exchanged(&request, asked, KEY_HINT).await
                }
                Credentials::Federated { account, source } => {
                    let token = self.foreign(source, asked).await?;
                    self.exchanged(&acting(account, &token, JWT), asked, FEDERATED_HINT).await
                }
                Credentials::Impersonated { account, by } => {
                    let by = self.granted(by, asked).await?;
                    self.exchanged(&acting(account, &by.token, ACCESS_TOKEN), asked, IMPERSONATION_HINT).await
                }
            }
        })
    }

    /// Exchanges what the request holds for a token.
    async fn exchanged(
        &self,
        request: &ExchangeTokenRequest,
        asked: &Asked<'_>,
        hint: &str,
    ) -> Result<Granted> {
        let CreateTokenResponse { access_token, expires_in, .. } =
            self.exchange_token(request, asked).await.map_err(|mut error| {
                // Nothing in that request is ours but the credentials.
                if matches!(error.kind, ErrorKind::Rejected | ErrorKind::Forbidden | ErrorKind::NotFound) {
                    error.kind = ErrorKind::Auth;
                }
                if error.kind == ErrorKind::Auth {
                    error.hint = Some(hint.to_owned());
                    error.limit = None;
                }
                error
            })?;
        let token = Secret::trimmed(&access_token);
        if token.is_empty() {
            return Err(unreadable(asked, "it holds no access token", Reached::No));
        }
        let lives = u64::try_from(expires_in).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs);
        Ok(Granted { token, lives: lives.unwrap_or(SHORT_LIFE) })
    }

    /// Gets the token of a person's login out of the CLI's file.
    fn logged_in(&self, login: &Login, asked: &Asked<'_>) -> Result<Granted> {
        let found = read_file_text(&login.cache)
            .and_then(|text| cli_files::cached_token(&text, &login.key).map_err(|error| error.to_string()));
        let left = |until: i64| until.saturating_sub(Timestamp::now().as_second());
        match found {
            Ok(Some((token, until))) if left(until) > LEAST_LEFT => {
                Ok(Granted { token, lives: Duration::from_secs(left(until).unsigned_abs()) })
            }
            Ok(_) => Err(over(login, asked, "the login of the nebius CLI is over")),
            Err(why) => Err(over(login, asked, &why)),
        }
    }

    /// Gets a token of another issuer.
    async fn foreign(&self, source: &TokenSource, asked: &Asked<'_>) -> Result<Secret> {
        match source {
            TokenSource::Given(token) => Ok(token.clone()),
            TokenSource::File(path) => read_file(path).map_err(|why| local(asked, why)),
            TokenSource::Command(words) => printed(words).await.map_err(|why| local(asked, why)),
            TokenSource::Github { url, token, audience } => {
                let url = match audience {
                    Some(audience) => {
                        format!("{url}&{}", http::address::query([("audience", audience.as_str())]))
                    }
                    None => url.clone(),
                };
                let answer = self.exchange.http.request(Method::GET, url).bearer(token).send().await;
                let answer = answer.map_err(|error| local(asked, format!("GitHub's token: {error}")))?;
                let value = answer.json::<serde_json::Value>().ok().filter(|_| answer.is_success());
                let token =
                    value.as_ref().and_then(|value| value.get("value")?.as_str()).map(Secret::trimmed);
                token.filter(|token| !token.is_empty()).ok_or_else(|| {
                    let why = format!(
                        "GitHub gave no token (status {}); the job needs `permissions: id-token: write`",
                        answer.status
                    );
                    local(asked, why)
                })
            }
        }
    }
}

const KEY_HINT: &str = "the key of the service account is not taken: was it deleted, or is this computer's clock wrong? \
                        make a new one with `nebius iam auth-public-key generate`";

const FEDERATED_HINT: &str = "look at the federated credentials of the service account: issuer, subject and audience must be \
                              those of the token, and the token must not be over";

const IMPERSONATION_HINT: &str = "these credentials may not act as that service account";

fn asks() -> ExchangeTokenRequest {
    ExchangeTokenRequest {
        grant_type: GRANT.to_owned(),
        requested_token_type: ACCESS_TOKEN.to_owned(),
        ..ExchangeTokenRequest::default()
    }
}

/// The service account is the subject, and what stands for it the actor.
fn acting(account: &str, token: &Secret, kind: &str) -> ExchangeTokenRequest {
    ExchangeTokenRequest {
        subject_token: account.to_owned(),
        subject_token_type: SUBJECT_ID.to_owned(),
        actor_token: token.expose().to_owned(),
        actor_token_type: kind.to_owned(),
        ..asks()
    }
}

/// Something on this computer is wrong: no request was made.
fn local(asked: &Asked<'_>, why: String) -> Box<crate::cloud::Error> {
    asked.error(ErrorKind::Auth, why, Reached::No)
}

fn over(login: &Login, asked: &Asked<'_>, why: &str) -> Box<crate::cloud::Error> {
    let mut error = local(asked, why.to_owned());
    error.hint = Some(format!(
        "log in again with `nebius iam get-access-token --profile {}`, or use a service account's key file",
        one_line(&login.profile, 40)
    ));
    error
}

fn read_file(path: &Path) -> std::result::Result<Secret, String> {
    let token = Secret::trimmed(&read_file_text(path)?);
    match token.expose() {
        "" => Err(format!("{} holds no token", path.display())),
        text if text.bytes().any(|byte| !byte.is_ascii_graphic()) => {
            Err(format!("{} holds something else than a token", path.display()))
        }
        _ => Ok(token),
    }
}

fn read_file_text(path: &Path) -> std::result::Result<String, String> {
    let shown = path.display();
    let mut text = String::new();
    // A pipe or a device in the file's place must not hang anybody.
    let opened = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
    opened
        .and_then(|file| match file.metadata()?.is_file() {
            true => file.take(MOST_BYTES).read_to_string(&mut text),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        })
        .map_err(|error| format!("{shown} cannot be read: {error}"))?;
    Ok(text)
}

/// Runs a command and returns the token that it prints. Its words are never shown: they may hold a secret.
async fn printed(words: &[String]) -> std::result::Result<Secret, String> {
    let Some((program, arguments)) = words.split_first() else { return Err("no token command".to_owned()) };
    let shown = one_line(program, 80);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command.kill_on_drop(true);
    for variable in secret::VARIABLES {
        command.env_remove(variable);
    }
    let mut child = command.spawn().map_err(|error| format!("`{shown}` cannot be run: {error}"))?;
    let run = async {
        let mut text = String::new();
        if let Some(out) = child.stdout.take() {
            out.take(MOST_BYTES).read_to_string(&mut text).await?;
        }
        Ok::<_, std::io::Error>((child.wait().await?, Secret::trimmed(&text)))
    };
    let ran = tokio::time::timeout(COMMAND_TIMEOUT, run).await;
    let (status, token) = ran
        .map_err(|_| format!("`{shown}` printed no token within {COMMAND_TIMEOUT:?}"))?
        .map_err(|error| format!("`{shown}`: {error}"))?;
    let is_token = !token.is_empty() && token.expose().bytes().all(|byte| byte.is_ascii_graphic());
    match (status.success(), is_token) {
        (true, true) => Ok(token),
        (true, false) => Err(format!("`{shown}` printed something else than a token")),
        (false, _) => Err(format!("`{shown}` failed ({status})")),
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
pub(super) mod tests;
