//! What is done to Verda over the control path.
//!
//! | call | does |
//! |---|---|
//! | `POST /verda/accounts` | opens an account; answers its client id, client secret and label |
//! | `POST /verda/accounts/ACCOUNT` | `{"balance": N}` replaces it |
//! | `POST /verda/instances` | `{"account": ACCOUNT, ...}` with the fields of [`VerdaSeed`] |
//! | `DELETE /verda/instances/ID` | as in the web console, the volumes with it; `{"keep_volumes": true}` keeps them detached |
//! | `POST /verda/instances/ID/evict` | somebody orders the capacity on demand |
//! | `POST /verda/instances/ID/host-key` | another host key |
//! | `POST /verda/tokens` | `{"life_ms": N}` for new tokens; `{"revoke": true}` ends all that are out |
//! | `GET /verda/left` | everything that still exists, by kind, without what is somebody else's |
//!
//! ACCOUNT is a client id or a label.

use std::time::Duration;

use serde_json::{Value, json};

use super::VerdaCloud;
use super::seed::VerdaSeed;
use super::state::Fate;
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Emulator, problem_json};

impl VerdaCloud {
    /// The control path below `/verda`.
    pub(super) fn handle(&self, method: &str, parts: &[&str], body: Value) -> Option<Answer> {
        let done = |found: bool| {
            if found { Answer::empty(204) } else { refuse(404, "no such thing") }
        };
        Some(match (method, parts) {
            ("POST", ["accounts"]) => {
                let id = lock(&self.state).add_account();
                let shown = self.with_account(&id, |owner| {
                    json!({"client_id": owner.client_id, "client_secret": owner.client_secret, "label": owner.label})
                });
                Answer::json(201, json!(shown))
            }
            ("POST", ["accounts", name]) => done(
                self.with_account(name, |owner| {
                    owner.balance = body.get("balance").and_then(Value::as_f64).unwrap_or(owner.balance);
                })
                .is_some(),
            ),
            ("POST", ["instances"]) => self.add(body),
            ("DELETE", ["instances", id]) => {
                let keep = body.get("keep_volumes") == Some(&Value::Bool(true));
                done(self.remove(id, if keep { Fate::Detach } else { Fate::Permanent }))
            }
            ("POST", ["instances", id, "evict"]) => done(self.evict(id)),
            ("POST", ["instances", id, "host-key"]) => done(self.swap_host_key(id)),
            ("POST", ["tokens"]) => {
                let mut state = lock(&self.state);
                if let Some(ms) = body.get("life_ms").and_then(Value::as_u64) {
                    state.token_life = Duration::from_millis(ms);
                }
                if body.get("revoke") == Some(&Value::Bool(true)) {
                    state.tokens.clear();
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
        let seed: VerdaSeed = match serde_json::from_value(body) {
            Ok(seed) => seed,
            Err(error) => return refuse(400, &error.to_string()),
        };
        match self.put(account.as_deref().unwrap_or("verda-1"), &seed) {
            Ok(id) => Answer::json(201, json!({"id": id})),
            Err(error) => refuse(400, &error.to_string()),
        }
    }
}

fn refuse(status: u16, detail: &str) -> Answer {
    Answer::json(status, problem_json("control", status, detail))
}
