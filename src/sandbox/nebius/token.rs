//! `TokenExchangeService/Exchange` and `ProfileService/Get`: who may.
//!
//! The forms of the exchange are those of the official clients: a JWT that a service account's key has signed
//! (<https://github.com/nebius/api>, README), and a token of an OIDC issuer, or an access token, as the actor for a service
//! account (<https://github.com/nebius/pysdk>).

use serde_json::{Value, json};

use super::account::{Account, Token, token_text};
use super::judge::text;
use super::status::{Outcome, Trouble};
use super::{NebiusCloud, Request};
use crate::sandbox::lock;
use crate::sandbox::oidc::RsaKey;

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const SUBJECT: &str = "urn:nebius:params:oauth:token-type:subject_identifier";
/// Whom the JWT of a service account is for.
const AUDIENCE: &str = "token-service.iam.new.nebiuscloud.net";
/// Longest life of such a JWT, in seconds.
const LONGEST: i64 = 300;

impl NebiusCloud {
    /// Carries an exchange out.
    pub(super) fn exchange(&self, request: &Request<'_>) -> Outcome {
        let message = &request.message;
        if text(message, "/grant_type") != EXCHANGE {
            return Err(Trouble::invalid("grant_type", "unsupported grant type"));
        }
        if text(message, "/requested_token_type") != ACCESS_TOKEN {
            return Err(Trouble::invalid("requested_token_type", "unsupported token type"));
        }
        let mut state = lock(&self.state);
        let subject = text(message, "/subject_token");
        let actor = text(message, "/actor_token");
        let account = match (text(message, "/subject_token_type"), text(message, "/actor_token_type")) {
            (JWT, "") => self.signed(&state.accounts, subject)?,
            (SUBJECT, kind @ (JWT | ACCESS_TOKEN)) => {
                let owner = state.accounts.iter().find(|owner| owner.service_account == subject);
                let owner = owner.ok_or_else(|| Trouble::unauthenticated("no such service account"))?;
                if kind == JWT {
                    let judged = owner.issuer.check(actor);
                    judged
                        .map_err(|why| Trouble::unauthenticated(&format!("federated credentials: {why}")))?;
                } else {
                    let now = self.shared.clock.now();
                    let live = |token: &&Token| token.expires.is_none_or(|expires| now < expires);
                    let known =
                        state.tokens.iter().find(|token| token.text == actor && token.account == owner.label);
                    known.filter(live).ok_or_else(|| Trouble::unauthenticated("actor token is not valid"))?;
                }
                owner.label.clone()
            }
            _ => return Err(Trouble::invalid("subject_token_type", "unsupported token type")),
        };
        let text = token_text();
        let life = state.token_life;
        let expires = Some(self.shared.clock.now() + life);
        state.tokens.push(Token { text: text.clone(), account, expires, person: false });
        Ok(json!({
            "access_token": text, "issued_token_type": ACCESS_TOKEN, "token_type": "Bearer",
            "expires_in": life.as_secs().max(1),
        }))
    }

    /// The account whose key has signed this JWT.
    fn signed(&self, accounts: &[Account], jwt: &str) -> Outcome<String> {
        let bad = |why: &str| Trouble::unauthenticated(&format!("subject token: {why}"));
        let key = RsaKey::shared().map_err(|_| bad("the sandbox has no RSA key"))?;
        let jwt = key.verify(jwt).map_err(bad)?;
        let owner = accounts.iter().find(|owner| owner.public_key == jwt.kid());
        let owner = owner.ok_or_else(|| bad("unknown public key"))?;
        if jwt.claim("iss") != owner.service_account || jwt.claim("sub") != owner.service_account {
            return Err(bad("iss and sub are not the key's service account"));
        }
        if !jwt.is_for(AUDIENCE) {
            return Err(bad("audience is another"));
        }
        jwt.in_time(LONGEST).map_err(bad)?;
        Ok(owner.label.clone())
    }

    /// Who a token belongs to.
    pub(super) fn profile(&self, request: &Request<'_>, account: &str) -> Outcome {
        let state = lock(&self.state);
        let owner = state.account(account).ok_or_else(|| Trouble::unauthenticated("no such account"))?;
        let bearer = request.call.header("authorization").trim_start_matches("Bearer ");
        let person = state.tokens.iter().any(|token| token.text == bearer && token.person);
        Ok(if person { user(owner) } else { service_account(owner) })
    }
}

fn user(owner: &Account) -> Value {
    json!({"user_profile": {"id": format!("useraccount-{}", owner.label), "tenants": [{
        "tenant_id": owner.tenant, "tenant_user_account_id": format!("tenantuseraccount-{}", owner.label),
        "tenant_user_account_state": "ACTIVE",
    }]}})
}

fn service_account(owner: &Account) -> Value {
    let parent = owner.projects.first().map(|project| project.id.clone());
    json!({"service_account_profile": {"info": {
        "metadata": {"id": owner.service_account, "parent_id": parent, "name": "gpuprov"}, "spec": {},
        "status": {"active": true},
    }}})
}
