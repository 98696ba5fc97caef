//! The token of the outside world for Google's (RFC 8693, `sts.googleapis.com/v1/token`), and that one for the service
//! account's (`iamcredentials.googleapis.com`, `generateAccessToken`).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::SCOPE;
use super::external::External;
use super::subject;
use crate::cloud::gcp::errors::{Asked, not_admitted, unreadable};
use crate::cloud::gcp::verdicts::{Impersonated, StsAnswer};
use crate::cloud::gcp::wire::told;
use crate::cloud::{Error, ErrorKind, Reached, Result};
use crate::http::token::Granted;
use crate::http::{Answer, Client, Method, Retry};
use crate::model::secret::Secret;

/// What a federated token needs to be allowed when it is exchanged once more.
const IAM_SCOPE: &str = "https://www.googleapis.com/auth/iam";

/// A token whose answer names no life is taken for one of so long.
const SHORT_LIFE: Duration = Duration::from_secs(60);

const STS_HINT: &str = "the workload identity provider does not take the token: look at its issuer, its allowed audiences and \
                        its attribute condition";

const IMPERSONATION_HINT: &str = "the federated identity needs roles/iam.workloadIdentityUser on the service account, and \
                                  iamcredentials.googleapis.com must be switched on in its project";

/// Gets a token for the service account.
pub(in crate::cloud::gcp) async fn grant(
    external: &External,
    http: &Client,
    within: Duration,
    asked: &Asked<'_>,
) -> Result<Granted> {
    let subject = subject::token(external, http, within)
        .await
        .map_err(|why| asked.error(ErrorKind::Auth, why, Reached::No))?;
    let federated = exchange(external, &subject, http, within, asked).await?;
    match &external.impersonation_url {
        None => Ok(federated),
        Some(url) => impersonate(url, &federated.token, http, within, asked).await,
    }
}

async fn exchange(
    external: &External,
    subject: &Secret,
    http: &Client,
    within: Duration,
    asked: &Asked<'_>,
) -> Result<Granted> {
    let scope = if external.impersonation_url.is_some() { IAM_SCOPE } else { SCOPE };
    let request = http
        .request(Method::POST, &external.token_url)
        .form(&[
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token", subject.expose()),
            ("subject_token_type", &external.token_type),
            ("audience", &external.audience),
            ("scope", scope),
        ])
        .retry(Retry::Safe)
        .within(within);
    let answer = request.send().await.map_err(|error| unanswered(error, asked))?;
    if !answer.is_success() {
        return Err(not_admitted(&answer, asked, "exchanging the token", STS_HINT));
    }
    let granted: StsAnswer = read(&answer, asked)?;
    let Some(token) = told(granted.access_token.as_ref()) else {
        return Err(unreadable(asked, "it holds no access token", Reached::No));
    };
    let seconds = granted.expires_in.filter(|seconds| (0.0..1e9).contains(seconds));
    Ok(Granted { token: Secret::trimmed(token), lives: seconds.map_or(SHORT_LIFE, Duration::from_secs_f64) })
}

async fn impersonate(
    url: &str,
    federated: &Secret,
    http: &Client,
    within: Duration,
    asked: &Asked<'_>,
) -> Result<Granted> {
    let body = json!({"scope": [SCOPE], "lifetime": "3600s"});
    let request =
        http.request(Method::POST, url).bearer(federated).json(&body).retry(Retry::Safe).within(within);
    let answer = request.send().await.map_err(|error| unanswered(error, asked))?;
    if !answer.is_success() {
        return Err(not_admitted(&answer, asked, "becoming the service account", IMPERSONATION_HINT));
    }
    let granted: Impersonated = read(&answer, asked)?;
    let Some(token) = told(granted.access_token.as_ref()) else {
        return Err(unreadable(asked, "it holds no access token", Reached::No));
    };
    let until = granted.expire_time.and_then(|at| at.parse::<Timestamp>().ok());
    // The answer's own clock, where it tells: ours may be wrong.
    let now = answer.header("date").and_then(crate::http::retry::http_date).unwrap_or_else(Timestamp::now);
    let lives = until.and_then(|until| Duration::try_from(until.duration_since(now)).ok());
    Ok(Granted { token: Secret::trimmed(token), lives: lives.unwrap_or(SHORT_LIFE) })
}

fn unanswered(error: crate::http::Error, asked: &Asked<'_>) -> Box<Error> {
    let mut error = Error::unanswered(error, asked.account, asked.doing);
    // The request that needs the token was not sent.
    error.reached = Reached::No;
    error
}

fn read<T: serde::de::DeserializeOwned>(answer: &Answer, asked: &Asked<'_>) -> Result<T> {
    answer.json().map_err(|error| {
        let what = format!("no such JSON as expected (line {}, column {})", error.line(), error.column());
        unreadable(asked, &what, Reached::No)
    })
}
