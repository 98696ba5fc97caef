//! The calls on one instance, and on the account.

use std::time::Duration;

use serde_json::{Value, json};

use super::instance::{Instance, Phase};
use super::trouble::{VastFault, VastScript};
use super::{VastCloud, no_effect, no_such_instance, refusal, state};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::scripts::Script;
use crate::sandbox::server::{Answer, Call};

/// Reads a number from a path.
pub(super) fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

impl VastCloud {
    /// `GET /instances/{id}/`: an object below a plural key.
    pub(super) fn get(&self, call: &Call, account: &str, id: &str) -> Answer {
        let now = self.shared.clock.now();
        let mut state = lock(&self.state);
        let Some((one, phase)) =
            state.visible(&self.shared, account, number(id)).filter(|(one, _)| !one.is_null(now))
        else {
            return match self.guesses().gone_is_404 {
                true => no_such_instance(id),
                false => Answer::json(200, json!({"instances": null})),
            };
        };
        one.looks = one.looks.saturating_add(1);
        let mut shown = self.show(one, phase, &call.faults);
        let hidden = call.faults.contains(&FaultKind::Vast(VastFault::NoPorts));
        if (hidden || self.guesses().by_id_without_ports)
            && let Some(fields) = shown.as_object_mut()
        {
            fields.shift_remove("ports");
        }
        Answer::json(200, json!({"instances": shown}))
    }

    /// An instance as JSON, with the faults of meaning that this call gets.
    pub(super) fn show(&self, one: &Instance, phase: Phase, faults: &[FaultKind]) -> Value {
        let mut shown = one.show(phase);
        for fault in faults {
            if let FaultKind::StatusWord { word } = fault {
                shown.insert("actual_status".into(), json!(word));
            }
        }
        Value::Object(shown)
    }

    /// `PUT /instances/{id}/`: state and label.
    pub(super) fn change(&self, call: &Call, account: &str, id: &str, body: &Value) -> Answer {
        let state_word = body.get("state").filter(|value| !value.is_null());
        let label = body.get("label").filter(|value| !value.is_null());
        let words = matches!(state_word.map(Value::as_str), None | Some(Some("running" | "stopped")));
        let short = label.is_none_or(|label| label.as_str().is_some_and(|text| text.chars().count() <= 1024));
        if !words || !short || (state_word.is_none() && label.is_none()) {
            return refusal(400, "invalid_args", "want state or label").rejecting("neither state nor label");
        }
        let mut state = lock(&self.state);
        let found = state.visible(&self.shared, account, number(id));
        let Some((one, _)) = found.filter(|(_, phase)| *phase != Phase::Unloaded) else {
            return no_such_instance(id);
        };
        if no_effect(call) {
            return Answer::json(200, json!({"success": true}));
        }
        if let Some(label) = label.and_then(Value::as_str) {
            one.label = Some(label.to_owned());
        }
        match state_word.and_then(Value::as_str) {
            Some("stopped") => {
                one.machine = None;
                one.stopped = true;
                one.ran = true;
            }
            Some(_) => {
                if one.script == Some(Script::Vast(VastScript::LostStart { no_gpu: true })) || one.is_outbid()
                {
                    let msg = "Required resources are currently unavailable, state change queued.";
                    return refusal(200, "resources_unavailable", msg);
                }
                if one.stopped || one.script == Some(Script::Vast(VastScript::LostStart { no_gpu: false })) {
                    one.script = None;
                    return self.start_again(one);
                }
            }
            None => {}
        }
        Answer::json(200, json!({"success": true}))
    }

    /// `PUT /instances/reboot/{id}/`.
    pub(super) fn reboot(&self, account: &str, id: &str) -> Answer {
        let mut state = lock(&self.state);
        match state.visible(&self.shared, account, number(id)) {
            Some((one, Phase::Up | Phase::Loading)) => self.start_again(one),
            Some((_, phase)) if phase != Phase::Unloaded => {
                refusal(400, "invalid_args", "instance is not running")
            }
            _ => no_such_instance(id),
        }
    }

    /// A new run: another machine, with another port and host key.
    fn start_again(&self, one: &mut Instance) -> Answer {
        one.machine = None;
        one.stopped = false;
        one.started = self.shared.clock.now();
        match self.reserve_machine(one) {
            Ok(()) => Answer::json(200, json!({"success": true})),
            Err(error) => refusal(500, "server_error", &error.to_string()),
        }
    }

    /// `PUT /instances/bid_price/{id}/`.
    pub(super) fn change_bid(&self, call: &Call, account: &str, id: &str, body: &Value) -> Answer {
        let mut state = lock(&self.state);
        let found = state.visible(&self.shared, account, number(id));
        let Some((one, _)) = found.filter(|(_, phase)| *phase != Phase::Unloaded) else {
            return no_such_instance(id);
        };
        let most = 32.0 * f64::from(one.count);
        let price = body.get("price").and_then(Value::as_f64);
        let client = body.get("client_id").and_then(Value::as_str);
        let Some(price) = price.filter(|price| (0.001..=most).contains(price) && client.is_some()) else {
            let msg = "Please set a bid price >= 0.001.";
            return refusal(400, "invalid_args", msg).rejecting(msg);
        };
        if !one.is_bid {
            return refusal(400, "invalid_args", "not an interruptible instance")
                .rejecting("a bid on an on-demand instance");
        }
        if no_effect(call) {
            return Answer::json(200, json!({"success": true}));
        }
        let was_outbid = one.is_outbid();
        one.dph_base = price;
        if was_outbid && !one.is_outbid() {
            return self.start_again(one);
        }
        Answer::json(200, json!({"success": true}))
    }

    /// `DELETE /instances/{id}/`.
    pub(super) fn delete(&self, call: &Call, account: &str, id: &str) -> Answer {
        let mut state = lock(&self.state);
        match state.visible(&self.shared, account, number(id)) {
            Some((_, Phase::Unloaded)) | None => no_such_instance(id),
            Some((one, _)) => {
                if !no_effect(call) {
                    state::end(&self.shared, one);
                }
                Answer::json(200, json!({"success": true, "msg": format!("destroying instance {id}.")}))
            }
        }
    }

    /// `DELETE /instances/` with `instance_ids`.
    pub(super) fn delete_several(&self, call: &Call, account: &str, body: &Value) -> Answer {
        let ids: Option<Vec<u64>> = body
            .get("instance_ids")
            .and_then(Value::as_array)
            .map(|ids| ids.iter().filter_map(Value::as_u64).collect());
        let Some(ids) = ids.filter(|ids| !ids.is_empty()) else {
            return refusal(400, "invalid_args", "instance_ids is required").rejecting("no instance_ids");
        };
        let done: Vec<Value> = ids
            .iter()
            .map(|id| {
                let answer = self.delete(call, account, &id.to_string());
                json!({"id": id, "success": answer.status == 200})
            })
            .collect();
        Answer::json(200, json!({"success": done.iter().all(|one| one["success"] == true), "results": done}))
    }

    /// `GET /users/current/`.
    pub(super) fn user(&self, account: &str) -> Answer {
        match lock(&self.state).account(account) {
            Some(found) => Answer::json(
                200,
                json!({"id": found.number, "email": "you@example.com", "credit": found.credit, "balance": 0,
                       "ssh_key": "", "has_billing": true}),
            ),
            None => super::bad_key(),
        }
    }

    /// `GET /api/v0/instances/`, retired in the summer of 2026
    /// (<https://github.com/skypilot-org/skypilot/issues/10517>).
    pub(super) fn old_list(&self) -> Answer {
        let status = if self.guesses().old_list_is_200 { 200 } else { 410 };
        let msg = "/api/v0/instances/ is deprecated. Use /api/v1/instances/ instead.";
        refusal(status, "deprecated_endpoint", msg).rejecting(msg)
    }
}

impl Instance {
    /// Whether it is stopped because its bid is below what is asked by now.
    fn is_outbid(&self) -> bool {
        self.is_bid && self.stopped && self.dph_base < self.min_bid
    }

    /// Whether a look by its id finds nothing yet.
    fn is_null(&self, now: Duration) -> bool {
        let age = now.saturating_sub(self.born);
        matches!(self.script, Some(Script::Vast(VastScript::NullFirst { ms })) if age < Duration::from_millis(ms))
    }
}
