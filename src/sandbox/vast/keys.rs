//! SSH keys: those of the account, and those attached to one instance.

use std::time::Duration;

use russh::keys::PublicKey;
use serde_json::{Value, json};

use super::calls::number;
use super::instance::{Instance, Phase};
use super::{VastCloud, no_effect, no_such_instance, refusal};
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

impl VastCloud {
    /// `POST /instances/{id}/ssh/`. A new instance is unknown here for a moment.
    pub(super) fn attach(&self, call: &Call, account: &str, id: &str, body: &Value) -> Answer {
        let key = body.get("ssh_key").and_then(Value::as_str).map(str::trim).unwrap_or_default().to_owned();
        if key.lines().count() != 1 || PublicKey::from_openssh(&key).is_err() {
            return refusal(400, "invalid_args", "Invalid SSH key.").rejecting("not a public key");
        }
        let now = self.shared.clock.now();
        let lag = self.shared.options.attach_lag;
        let mut state = lock(&self.state);
        let fresh = state.id();
        let Some((one, _)) = state
            .visible(&self.shared, account, number(id))
            .filter(|(one, phase)| *phase != Phase::Unloaded && now >= one.born.saturating_add(lag))
        else {
            return no_such_instance(id);
        };
        if self.guesses().attach_again_refused && one.has_key(&key) {
            return refusal(400, "invalid_args", "SSH key already attached to this instance.");
        }
        if !no_effect(call) && !one.has_key(&key) {
            one.attached.push((fresh, key));
            one.authorize();
        }
        Answer::json(200, json!({"success": true, "msg": "SSH key attached successfully"}))
    }

    /// `GET /instances/{id}/ssh/`: a list, as text.
    pub(super) fn instance_keys(&self, account: &str, id: &str) -> Answer {
        let mut state = lock(&self.state);
        let Some((one, _)) = state.visible(&self.shared, account, number(id)) else {
            return no_such_instance(id);
        };
        let keys: Vec<Value> =
            one.attached.iter().map(|(id, key)| json!({"id": id, "name": null, "public_key": key})).collect();
        Answer::json(200, json!({"success": true, "ssh_keys": Value::Array(keys).to_string()}))
    }

    /// `DELETE /instances/{id}/ssh/{key}/`.
    pub(super) fn detach(&self, account: &str, id: &str, key: &str) -> Answer {
        let mut state = lock(&self.state);
        let Some((one, _)) = state.visible(&self.shared, account, number(id)) else {
            return no_such_instance(id);
        };
        let before = one.attached.len();
        one.attached.retain(|(known, _)| *known != number(key));
        if one.attached.len() == before {
            return refusal(404, "not_found", "SSH key not found.");
        }
        one.authorize();
        Answer::json(200, json!({"success": true, "msg": "SSH key removed from instance."}))
    }

    /// `GET /api/v0/ssh/`: a list, or 404 when there is none.
    pub(super) fn account_keys(&self, account: &str) -> Answer {
        let date = self.shared.clock.date(Duration::ZERO).to_string();
        let mut state = lock(&self.state);
        let Some(found) = state.account(account).filter(|found| !found.ssh_keys.is_empty()) else {
            return refusal(404, "not_found", "No SSH keys.");
        };
        let keys: Vec<Value> = (1..)
            .zip(&found.ssh_keys)
            .map(|(id, key)| json!({"id": id, "user_id": found.number, "key": key, "created_at": date, "deleted_at": null}))
            .collect();
        Answer::json(200, Value::Array(keys))
    }
}

impl Instance {
    fn has_key(&self, key: &str) -> bool {
        self.attached.iter().any(|(_, known)| known == key)
    }

    /// Lets the machine know its keys.
    fn authorize(&self) {
        if let Some(machine) = &self.machine {
            machine.authorize(&self.authorized());
        }
    }
}
