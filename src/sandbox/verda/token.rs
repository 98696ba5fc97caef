//! `POST /oauth2/token`: credentials for a token that does not live long.
//!
//! Shapes and sentences are those of the API document. Tokens are random; only who was given one has it.

use std::time::Duration;

use serde_json::json;

use super::wire::{TokenBody, read};
use super::{VerdaCloud, error};
use crate::sandbox::lock;
use crate::sandbox::machine::{hex, random};
use crate::sandbox::server::{Answer, Call};

/// One pair that was handed out.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) account: String,
    pub(super) access: String,
    refresh: String,
    pub(super) expires: Duration,
    refresh_expires: Duration,
}

impl VerdaCloud {
    /// Hands out a pair of tokens.
    pub(super) fn token(&self, call: &Call) -> Answer {
        let body: TokenBody = match read(call) {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        let now = self.shared.clock.now();
        let mut state = lock(&self.state);
        let account = match body.grant_type.as_deref() {
            Some("client_credentials") => {
                let (Some(id), Some(secret)) = (&body.client_id, &body.client_secret) else {
                    return error(400, "invalid_request", "client_id and client_secret are required")
                        .rejecting("credentials are missing");
                };
                let known = state
                    .accounts
                    .iter()
                    .find(|known| known.client_id == *id && known.client_secret == *secret);
                let Some(known) = known else {
                    return error(401, "unauthorized_request", "Invalid client id or client secret");
                };
                known.label.clone()
            }
            Some("refresh_token") => {
                let sent = body.refresh_token.as_deref().unwrap_or("");
                let known =
                    state.tokens.iter().position(|pair| pair.refresh == sent && now < pair.refresh_expires);
                let Some(known) = known else {
                    return error(401, "unauthorized_request", "Invalid refresh token");
                };
                state.tokens.remove(known).account
            }
            _ => {
                return error(400, "invalid_request", "unsupported grant type")
                    .rejecting("unsupported grant type");
            }
        };
        let life = state.token_life;
        let fresh = || format!("sandbox-token-{}", hex(&random::<24>()));
        let pair = Token {
            account,
            access: fresh(),
            refresh: fresh(),
            expires: now.saturating_add(life),
            refresh_expires: now.saturating_add(life * 24),
        };
        // A life below a second is told as a second: the client believes in a token that is dead.
        let answer = json!({"access_token": pair.access, "token_type": "Bearer", "expires_in": life.as_secs().max(1),
                            "refresh_token": pair.refresh, "scope": "cloud-api-v1"});
        state.tokens.push(pair);
        Answer::json(200, answer)
    }
}
