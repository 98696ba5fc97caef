//! What is done to Google Cloud over the control path.
//!
//! | call | does |
//! |---|---|
//! | `POST /gcp/accounts` | opens a project; answers its id and label |
//! | `POST /gcp/accounts/ACCOUNT` | any of `{"deny": [...]}`, `{"allow_all": true}`, `{"api": false}`, `{"billing": false}`, `{"quota": {"region": R, "metric": M, "limit": N}}`, `{"policy": P, "on": true}` |
//! | `POST /gcp/instances` | `{"account": ACCOUNT, ...}` with the fields of [`GcpSeed`] |
//! | `DELETE /gcp/instances/ID` | as in the web console, the disk with it |
//! | `POST /gcp/instances/ID/preempt` | takes a spot machine's capacity away |
//! | `POST /gcp/instances/ID/host-key` | another host key |
//! | `POST /gcp/prices` | `{"source": "gpuhunt", "how": "down"}` |
//! | `POST /gcp/tokens` | `{"life_ms": N}` for new tokens; `{"revoke": true}` ends all that are out |
//! | `POST /gcp/oidc` | a token of the outside issuer for the first project, with the provider's audience and the service account; `{"flaw": F}` makes it wrong: `expired`, `audience`, `signature`, `subject`, `issuer` |
//! | `GET /gcp/left` | everything that still exists, by kind, without what is somebody else's |
//!
//! ACCOUNT is a project or a label.

use std::time::Duration;

use serde_json::{Value, json};

use super::GcpCloud;
use super::account::GcpPolicy;
use super::auth::issuer;
use super::seed::GcpSeed;
use crate::sandbox::lock;
use crate::sandbox::oidc::OidcFlaw;
use crate::sandbox::server::{Answer, Emulator, problem_json};

impl GcpCloud {
    /// The control path below `/gcp`.
    pub(super) fn handle(&self, method: &str, parts: &[&str], body: Value) -> Option<Answer> {
        let done = |found: bool| {
            if found { Answer::empty(204) } else { refuse(404, "no such thing") }
        };
        Some(match (method, parts) {
            ("POST", ["accounts"]) => {
                let label = lock(&self.state).add_account(self.shared.clock.now());
                Answer::json(201, json!({"project": self.project_of(&label), "label": label}))
            }
            ("POST", ["accounts", name]) => self.change(name, &body),
            ("POST", ["instances"]) => self.add(body),
            ("DELETE", ["instances", id]) => done(self.remove(id)),
            ("POST", ["instances", id, "preempt"]) => done(self.preempt(id)),
            ("POST", ["instances", id, "host-key"]) => done(self.swap_host_key(id)),
            ("POST", ["prices"]) => {
                let source = serde_json::from_value(body["source"].clone());
                let how = serde_json::from_value(body["how"].clone());
                match (source, how) {
                    (Ok(source), Ok(how)) => {
                        self.set_prices(source, how);
                        Answer::empty(204)
                    }
                    _ => refuse(400, "want a source and how it answers"),
                }
            }
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
            ("POST", ["oidc"]) => self.outside_token(body["flaw"].as_str()),
            ("GET", ["left"]) => Answer::json(200, json!(self.left(false))),
            _ => return None,
        })
    }

    fn outside_token(&self, flaw: Option<&str>) -> Answer {
        let flaw = match flaw {
            None => None,
            Some("expired") => Some(OidcFlaw::Expired),
            Some("audience") => Some(OidcFlaw::Audience),
            Some("signature") => Some(OidcFlaw::Signature),
            Some("subject") => Some(OidcFlaw::Subject),
            Some("issuer") => Some(OidcFlaw::Issuer),
            Some(_) => return refuse(400, "no such flaw"),
        };
        let owner = self.with_account("gcp-1", |owner| (owner.audience(), owner.email.clone()));
        let (audience, email) = owner.unwrap_or_default();
        match issuer(&audience).token(flaw) {
            Ok(token) => {
                Answer::json(201, json!({"token": token, "audience": audience, "service_account": email}))
            }
            Err(error) => refuse(500, &error.to_string()),
        }
    }

    fn change(&self, name: &str, body: &Value) -> Answer {
        let policy: Option<GcpPolicy> = serde_json::from_value(body["policy"].clone()).ok();
        let changed = self.with_account(name, |owner| {
            for permission in body["deny"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                owner.denied.insert(permission.to_owned());
            }
            if body["allow_all"] == true {
                owner.denied.clear();
            }
            owner.api_off = body["api"].as_bool().map_or(owner.api_off, |on| !on);
            owner.billing_off = body["billing"].as_bool().map_or(owner.billing_off, |on| !on);
            let quota = &body["quota"];
            if let (Some(metric), Some(limit)) = (quota["metric"].as_str(), quota["limit"].as_f64()) {
                let region = quota["region"].as_str().unwrap_or_default();
                owner.limits.insert((region.to_owned(), metric.to_owned()), limit);
            }
            if let Some(policy) = policy {
                if body["on"] == false {
                    owner.policies.remove(&policy);
                } else {
                    owner.policies.insert(policy);
                }
            }
        });
        if changed.is_some() { Answer::empty(204) } else { refuse(404, "no such project") }
    }

    fn add(&self, mut body: Value) -> Answer {
        let Some(fields) = body.as_object_mut() else { return refuse(400, "want an object") };
        let account = fields.remove("account").and_then(|value| value.as_str().map(str::to_owned));
        let seed: GcpSeed = match serde_json::from_value(body) {
            Ok(seed) => seed,
            Err(error) => return refuse(400, &error.to_string()),
        };
        match self.put(account.as_deref().unwrap_or("gcp-1"), &seed) {
            Ok(id) => Answer::json(201, json!({"id": id})),
            Err(error) => refuse(400, &error.to_string()),
        }
    }
}

fn refuse(status: u16, detail: &str) -> Answer {
    Answer::json(status, problem_json("control", status, detail))
}
