//! What is done to Nebius over the control path.
//!
//! | call | does |
//! |---|---|
//! | `POST /nebius/accounts` | opens an account; answers its tenant, token, service account and label |
//! | `GET /nebius/accounts/ACCOUNT` | the same of one that is there, and its projects |
//! | `GET /nebius/accounts/ACCOUNT/key-file` | the key file of its service account |
//! | `GET /nebius/accounts/ACCOUNT/oidc-token` | a token of the OIDC issuer that it trusts, to be exchanged for its service account |
//! | `POST /nebius/instances` | `{"account": ACCOUNT, ...}` with the fields of [`NebiusSeed`] |
//! | `DELETE /nebius/instances/ID` | as in the web console, the disk with it; `{"keep_disk": true}` keeps it detached |
//! | `POST /nebius/instances/ID/preempt` | preempts it |
//! | `POST /nebius/instances/ID/host-key` | another host key |
//! | `POST /nebius/tokens` | `{"life_ms": N}` for new tokens; `{"revoke": true}` ends those that came of an exchange |
//! | `GET /nebius/left` | everything that still exists, by kind, without what is somebody else's |
//!
//! ACCOUNT is a tenant id or a label.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::NebiusCloud;
use super::account::Account;
use super::seed::NebiusSeed;
use crate::sandbox::lock;
use crate::sandbox::oidc::RsaKey;
use crate::sandbox::server::{Answer, Emulator, problem_json};

fn show(owner: &mut Account) -> Value {
    let projects: Vec<Value> = owner
        .projects
        .iter()
        .map(|one| json!({"id": one.id, "name": one.name, "region": one.region, "state": one.state}))
        .collect();
    json!({
        "label": owner.label, "tenant": owner.tenant, "token": owner.token,
        "service_account": owner.service_account, "projects": projects,
    })
}

impl NebiusCloud {
    /// The control path below `/nebius`.
    pub(super) fn handle(&self, method: &str, parts: &[&str], body: Value) -> Option<Answer> {
        let done = |found: bool| {
            if found { Answer::empty(204) } else { refuse(404, "no such thing") }
        };
        let found = |shown: Option<Value>, status: u16| {
            shown.map_or_else(|| refuse(404, "no such account"), |shown| Answer::json(status, shown))
        };
        Some(match (method, parts) {
            ("POST", ["accounts"]) => {
                let label = self.open_account();
                found(self.with_account(&label, show), 201)
            }
            ("GET", ["accounts", name]) => found(self.with_account(name, show), 200),
            ("GET", ["accounts", name, "key-file"]) => match RsaKey::shared() {
                Ok(key) => found(self.with_account(name, |owner| owner.key_file(key.pem())), 200),
                Err(error) => refuse(500, &error.to_string()),
            },
            ("GET", ["accounts", name, "oidc-token"]) => {
                let issuer = self.with_account(name, |owner| owner.issuer.clone());
                let token = issuer.ok_or_else(|| io::Error::other("no such account"));
                match token.and_then(|issuer| issuer.token(None)) {
                    Ok(token) => Answer::json(200, json!({"token": token})),
                    Err(error) => refuse(404, &error.to_string()),
                }
            }
            ("POST", ["instances"]) => self.add(body),
            ("DELETE", ["instances", id]) => {
                done(self.remove(id, body.get("keep_disk") == Some(&Value::Bool(true))))
            }
            ("POST", ["instances", id, "preempt"]) => done(self.preempt(id)),
            ("POST", ["instances", id, "host-key"]) => done(self.swap_host_key(id)),
            ("POST", ["tokens"]) => {
                let mut state = lock(&self.state);
                if let Some(ms) = body.get("life_ms").and_then(Value::as_u64) {
                    state.token_life = Duration::from_millis(ms);
                }
                if body.get("revoke") == Some(&Value::Bool(true)) {
                    state.tokens.retain(|token| token.expires.is_none());
                }
                Answer::empty(204)
            }
            ("GET", ["left"]) => Answer::json(200, json!(self.left(false))),
            _ => return None,
        })
    }

    fn add(&self, mut body: Value) -> Answer {
        let Some(fields) = body.as_object_mut() else { return refuse(400, "want an object") };
        let account = fields.remove("account").and_then(|value| value.as_str().map(str::to_owned));
        let seed: NebiusSeed = match serde_json::from_value(body) {
            Ok(seed) => seed,
            Err(error) => return refuse(400, &error.to_string()),
        };
        match self.put(account.as_deref().unwrap_or("nebius-1"), &seed) {
            Ok(id) => Answer::json(201, json!({"id": id})),
            Err(error) => refuse(400, &error.to_string()),
        }
    }
}

fn refuse(status: u16, detail: &str) -> Answer {
    Answer::json(status, problem_json("control", status, detail))
}
