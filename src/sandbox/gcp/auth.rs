//! Who calls: self-signed tokens of a key, tokens that were exchanged, and the exchanges.
//!
//! - a key signs a JWT and sends it as it is (<https://google.aip.dev/auth/4111>); it has a scope or an audience, not both;
//! - `POST /oauth2/token` gives a token for a JWT (<https://developers.google.com/identity/protocols/oauth2/service-account>);
//! - `POST /sts/v1/token` gives a federated token for a token of an outside issuer
//!   (<https://google.aip.dev/auth/4117>), which is good for one thing: `generateAccessToken` below `/iamcredentials/v1`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{GcpCloud, fail};
use crate::sandbox::lock;
use crate::sandbox::machine::{hex, random};
use crate::sandbox::oidc::{Issuer, RsaKey};
use crate::sandbox::server::{Answer, Call};

/// Scope of everything.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const COMPUTE_SCOPES: [&str; 2] = [SCOPE, "https://www.googleapis.com/auth/compute"];
const READ_SCOPE: &str = "https://www.googleapis.com/auth/compute.readonly";
/// `aud` of a self-signed token without a scope.
const COMPUTE_AUDIENCE: &str = "https://compute.googleapis.com/";
/// `aud` of a token that is to be exchanged; some clients send this one whatever the key's `token_uri` is.
const TOKEN_AUDIENCE: &str = "https://oauth2.googleapis.com/token";
/// Longest life of a signed token: an hour, and the seconds by which clients date it back.
const LONGEST: i64 = 3660;

/// What a token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Good {
    /// Compute, all of it.
    All,
    /// Compute, as far as nothing is changed.
    Looks,
    /// Nothing but `generateAccessToken`.
    Impersonation,
}

/// A token that was handed out.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) account: String,
    pub(super) text: String,
    pub(super) good: Good,
    pub(super) expires: Duration,
}

/// Why a bearer token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stranger {
    /// There is none.
    Nobody,
    /// It was good.
    Expired,
    /// It never was, for this reason.
    Wrong(&'static str),
}

impl GcpCloud {
    /// Whose a bearer token is, and what it is good for.
    pub(super) fn bearer(&self, header: &str) -> Result<(String, Good), Stranger> {
        let token =
            header.strip_prefix("Bearer ").filter(|token| !token.is_empty()).ok_or(Stranger::Nobody)?;
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        if let Some(known) = state.tokens.iter().find(|known| known.text == token) {
            return if now < known.expires {
                Ok((known.account.clone(), known.good))
            } else {
                Err(Stranger::Expired)
            };
        }
        drop(state);
        if token.split('.').count() != 3 || token.starts_with("ya29.") {
            return Err(Stranger::Wrong("unknown token"));
        }
        let (account, claims) = self.signed(token)?;
        let scope = claims.get("scope").and_then(Value::as_str);
        let audience = claims.get("aud").and_then(Value::as_str);
        let good = match (scope, audience) {
            (Some(_), Some(_)) => {
                return Err(Stranger::Wrong("a self-signed token has a scope or an audience, not both"));
            }
            (Some(scope), None) => {
                scopes(scope).ok_or(Stranger::Wrong("the scope does not cover Compute Engine"))?
            }
            (None, Some(COMPUTE_AUDIENCE)) => Good::All,
            _ => return Err(Stranger::Wrong("the audience is not Compute Engine")),
        };
        Ok((account, good))
    }

    /// The account that signed a token, and its claims.
    fn signed(&self, token: &str) -> Result<(String, serde_json::Map<String, Value>), Stranger> {
        let key = RsaKey::shared().map_err(|_| Stranger::Wrong("the sandbox has no RSA key"))?;
        let jwt = key.verify(token).map_err(Stranger::Wrong)?;
        let state = lock(&self.state);
        let owner = state.accounts.iter().find(|owner| owner.key_id == jwt.kid() && !owner.key_deleted);
        let owner = owner.ok_or(Stranger::Wrong("no service account has this key"))?;
        let (issuer, subject) = (jwt.claim("iss"), jwt.claim("sub"));
        if issuer != owner.email || !(subject.is_empty() || subject == owner.email) {
            return Err(Stranger::Wrong("iss and sub are not the service account of the key"));
        }
        match jwt.in_time(LONGEST) {
            Ok(()) => Ok((owner.label.clone(), jwt.claims)),
            Err("token is expired") => Err(Stranger::Expired),
            Err(why) => Err(Stranger::Wrong(why)),
        }
    }

    /// Hands out a token.
    fn give(&self, account: String, good: Good, kind: &str, life: Duration) -> String {
        let text = format!("ya29.{kind}.sandbox-{}", hex(&random::<24>()));
        let expires = self.shared.clock.now().saturating_add(life);
        lock(&self.state).tokens.push(Token { account, text: text.clone(), good, expires });
        text
    }

    /// `POST /oauth2/token`: a signed token for one that is shorter and opaque.
    pub(super) fn oauth(&self, call: &Call) -> Answer {
        let form = match form(call) {
            Ok(form) => form,
            Err(refused) => return *refused,
        };
        let field =
            |name: &str| form.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
        if field("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
            return grant("unsupported_grant_type", "Invalid grant_type: ")
                .rejecting("unsupported grant type");
        }
        let (account, claims) = match self.signed(field("assertion")) {
            Ok(signed) => signed,
            Err(Stranger::Expired) => {
                return grant(
                    "invalid_grant",
                    "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.",
                );
            }
            Err(_) => return grant("invalid_grant", "Invalid JWT Signature."),
        };
        let audience = claims.get("aud").and_then(Value::as_str).unwrap_or_default();
        let known =
            audience == TOKEN_AUDIENCE || audience.ends_with("/oauth2/token") || audience.ends_with("/token");
        if !known {
            return grant("invalid_grant", "Invalid JWT: Failed audience check.")
                .rejecting("a wrong audience");
        }
        let Some(good) = claims.get("scope").and_then(Value::as_str).and_then(scopes) else {
            return grant("invalid_scope", "Invalid OAuth scope or ID token audience provided.")
                .rejecting("a wrong scope");
        };
        let life = lock(&self.state).token_life;
        let token = self.give(account, good, "c", life);
        Answer::json(200, json!({"access_token": token, "expires_in": told(life), "token_type": "Bearer"}))
    }

    /// `POST /sts/v1/token`: a token of an outside issuer for a federated one.
    pub(super) fn sts(&self, call: &Call) -> Answer {
        let form = match form(call) {
            Ok(form) => form,
            Err(refused) => return *refused,
        };
        const FIELDS: [(&str, &str); 9] = [
            ("grant_type", "grantType"),
            ("requested_token_type", "requestedTokenType"),
            ("subject_token_type", "subjectTokenType"),
            ("subject_token", "subjectToken"),
            ("audience", "audience"),
            ("scope", "scope"),
            ("options", "options"),
            ("actor_token", "actorToken"),
            ("actor_token_type", "actorTokenType"),
        ];
        if let Some((name, _)) =
            form.iter().find(|(name, _)| !FIELDS.iter().any(|(one, two)| name == one || name == two))
        {
            return grant("invalid_request", &format!("Unknown name \"{name}\""))
                .rejecting("an unknown field");
        }
        let field = |name: &str| {
            let other = FIELDS.iter().find(|(one, _)| *one == name).map_or(name, |(_, two)| two);
            form.iter().find(|(key, _)| key == name || key == other).map_or("", |(_, value)| value.as_str())
        };
        for (name, want) in [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
        ] {
            let id_token =
                name == "subject_token_type" && field(name) == "urn:ietf:params:oauth:token-type:id_token";
            if field(name) != want && !id_token {
                return grant("invalid_request", &format!("Invalid value for \"{name}\".")).rejecting(name);
            }
        }
        if field("scope").is_empty() {
            return grant("invalid_request", "Invalid value for \"scope\".").rejecting("no scope");
        }
        let audience = field("audience");
        let owner = {
            let state = lock(&self.state);
            let owner = state.accounts.iter().find(|owner| owner.audience() == audience);
            owner.map(|owner| (owner.label.clone(), owner.audience()))
        };
        let Some((account, provider)) = owner else {
            return grant(
                "invalid_target",
                "The target service indicated by the \"audience\" parameters is invalid. This might either be because the pool or provider is disabled or deleted or because it doesn't exist.",
            );
        };
        // With or without the scheme, when the provider lists no audiences of its own.
        let trusted = issuer(&provider);
        let bare = Issuer { audience: provider, ..trusted.clone() };
        let checked = trusted.check(field("subject_token"));
        match checked.or_else(|why| bare.check(field("subject_token")).map_err(|_| why)) {
            Ok(()) => {}
            Err(why) if why.contains("audience") => {
                return grant(
                    "invalid_grant",
                    "The audience in ID Token does not match the expected audience.",
                );
            }
            Err(why) if why.contains("subject") => {
                let text = "The given credential is rejected by the attribute condition.";
                return Answer::json(403, json!({"error": "unauthorized_client", "error_description": text}));
            }
            Err(why) => return grant("invalid_grant", &format!("ID Token issued is not valid: {why}.")),
        }
        let life = lock(&self.state).token_life;
        let token = self.give(account, Good::Impersonation, "d", life);
        Answer::json(
            200,
            json!({"access_token": token, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                   "token_type": "Bearer", "expires_in": told(life)}),
        )
    }

    /// `POST /iamcredentials/v1/projects/-/serviceAccounts/EMAIL:generateAccessToken`.
    pub(super) fn impersonate(&self, call: &Call, account: &str, good: Good, name: &str) -> Answer {
        let Some(email) = name.strip_suffix(":generateAccessToken") else {
            return fail(404, "notFound", "Requested entity was not found.").rejecting("an unknown method");
        };
        let Ok(body) = serde_json::from_slice::<Value>(&call.body) else {
            return fail(400, "badRequest", "Invalid JSON payload received.").rejecting("no JSON");
        };
        for (name, value) in body.as_object().into_iter().flatten() {
            let fits = match name.as_str() {
                "scope" | "delegates" => value.is_null() || value.is_array(),
                "lifetime" => value.is_null() || value.is_string(),
                _ => false,
            };
            if !fits {
                let text =
                    format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field.");
                return fail(400, "invalid", &text).rejecting("an unknown field");
            }
        }
        let wanted: Vec<&str> =
            body["scope"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if wanted.is_empty() {
            return fail(400, "badRequest", "Scope required.").rejecting("no scope");
        }
        let lifetime = body["lifetime"].as_str().unwrap_or("3600s");
        let seconds = lifetime.strip_suffix('s').and_then(|text| text.parse::<u64>().ok());
        let Some(seconds) = seconds.filter(|seconds| (1..=3600).contains(seconds)) else {
            return fail(400, "badRequest", "The token lifetime is not valid.").rejecting("a bad lifetime");
        };
        let state = lock(&self.state);
        let Some(owner) = state.accounts.iter().find(|owner| owner.email == email) else {
            return fail(404, "notFound", "Not found; Gaia id not found for email");
        };
        let may = owner.label == account && !owner.denied.contains("iam.serviceAccounts.getAccessToken");
        if !may || good == Good::Looks {
            let text =
                "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).";
            return Answer::json(
                403,
                json!({"error": {"code": 403, "message": text, "status": "PERMISSION_DENIED",
                       "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "IAM_PERMISSION_DENIED",
                                    "domain": "iam.googleapis.com",
                                    "metadata": {"permission": "iam.serviceAccounts.getAccessToken"}}]}}),
            );
        }
        let life = state.token_life.min(Duration::from_secs(seconds));
        drop(state);
        let Some(good) = scopes(&wanted.join(" ")) else {
            return fail(400, "badRequest", "Scope is not known.").rejecting("a wrong scope");
        };
        let token = self.give(account.to_owned(), good, "c", life);
        let until = jiff::SignedDuration::from_secs(i64::try_from(told(life)).unwrap_or(0));
        let until = Timestamp::now().checked_add(until).unwrap_or(Timestamp::now());
        Answer::json(
            200,
            json!({"accessToken": token, "expireTime": until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}),
        )
    }
}

/// The outside issuer that every project's provider trusts.
pub(super) fn issuer(audience: &str) -> Issuer {
    Issuer {
        url: "https://token.actions.githubusercontent.com".into(),
        kid: "sandbox-ci-1".into(),
        subject: "repo:sandbox/llama:ref:refs/heads/main".into(),
        audience: format!("https:{audience}"),
    }
}

fn scopes(text: &str) -> Option<Good> {
    let mut words = text.split_whitespace();
    if words.clone().any(|word| COMPUTE_SCOPES.contains(&word)) {
        return Some(Good::All);
    }
    words.any(|word| word == READ_SCOPE).then_some(Good::Looks)
}

/// Seconds that the client is told. A life below a second is told as a second: the client believes in a token that is dead.
fn told(life: Duration) -> u64 {
    life.as_secs().max(1)
}

/// The fields of a form, or of a JSON object.
fn form(call: &Call) -> Result<Vec<(String, String)>, Box<Answer>> {
    let kind = call.header("content-type");
    if kind.starts_with("application/x-www-form-urlencoded") {
        return Ok(url::form_urlencoded::parse(&call.body).into_owned().collect());
    }
    let object = serde_json::from_slice::<serde_json::Map<String, Value>>(&call.body).ok();
    match object.filter(|_| kind.starts_with("application/json")) {
        Some(object) => {
            let text = |value: Value| value.as_str().map(str::to_owned).unwrap_or_default();
            Ok(object.into_iter().map(|(name, value)| (name, text(value))).collect())
        }
        None => Err(Box::new(grant("invalid_request", "Bad Request").rejecting("neither a form nor JSON"))),
    }
}

/// An error of the token endpoints (RFC 6749).
fn grant(error: &str, description: &str) -> Answer {
    Answer::json(400, json!({"error": error, "error_description": description}))
}
