//! `PUT /instances`: what is done to machines, and what becomes of their volumes.
//!
//! The reference contradicts users about a delete without `volume_ids`; `guesses.rs` has both readings.

use serde_json::{Value, json};

use super::instance::Phase;
use super::journal::Actor;
use super::state::{Fate, State};
use super::trouble::VerdaFault;
use super::volume::Volume;
use super::wire::{InstanceAction, OneOrMany, read};
use super::{STILL_PROVISIONING, VerdaCloud, error, invalid, no_effect};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

const ACTIONS: [&str; 11] = [
    "boot",
    "start",
    "shutdown",
    "delete",
    "discontinue",
    "hibernate",
    "configure_spot",
    "force_shutdown",
    "delete_stuck",
    "deploy",
    "transfer",
];

/// What one instance answers: done, nothing to do, or why not.
type Outcome = Result<bool, (u16, &'static str, &'static str)>;

impl VerdaCloud {
    /// Carries an action out on every instance that is named.
    pub(super) fn act(&self, call: &Call, account: &str) -> Answer {
        let body: InstanceAction = match read(call) {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        let ids = match body.id.clone() {
            OneOrMany::Many(ids) if ids.is_empty() => return invalid("id must not be empty"),
            ids => ids.list(),
        };
        let action = body.action.as_str();
        if !ACTIONS.contains(&action) {
            return invalid("action is not one of the known");
        }
        let unwanted = match action {
            "hibernate" => Some("hibernate deletes the machine and keeps its volumes"),
            "configure_spot" | "delete_stuck" | "deploy" | "transfer" => Some("an action that is not played"),
            _ => None,
        };
        if let Some(why) = unwanted.filter(|_| action != "hibernate") {
            return invalid(why);
        }
        let item = |id: &String| json!({"instanceId": id, "action": action, "status": "success"});
        if no_effect(call) {
            return Answer::json(202, ids.iter().map(item).collect());
        }
        for fault in &call.faults {
            if let FaultKind::Verda(VerdaFault::ItemsFail { status, error }) = fault {
                let failed = |id: &String| failure(id, action, *status, error);
                return Answer::json(207, ids.iter().map(failed).collect());
            }
        }
        let mut state = lock(&self.state);
        let outcomes: Vec<(String, Outcome)> = ids
            .into_iter()
            .map(|id| (id.clone(), self.act_on(&mut state, call, account, &id, &body)))
            .collect();
        state.tick(&self.shared);
        let answer = match outcomes.as_slice() {
            [(_, Ok(false))] => Answer::empty(204),
            [(_, Err((status, code, text)))] => error(*status, code, text),
            _ => {
                let all = outcomes.iter().all(|(_, outcome)| outcome.is_ok());
                let items = outcomes.iter().map(|(id, outcome)| match outcome {
                    Ok(_) => item(id),
                    Err((status, _, text)) => failure(id, action, *status, text),
                });
                Answer::json(if all { 202 } else { 207 }, items.collect())
            }
        };
        match unwanted {
            Some(why) => answer.rejecting(why),
            None => answer,
        }
    }

    fn act_on(
        &self,
        state: &mut State,
        call: &Call,
        account: &str,
        id: &str,
        body: &InstanceAction,
    ) -> Outcome {
        let now = self.shared.clock.now();
        let slow = self.shared.options.slow_delete;
        let unknown = if self.guesses().unknown_id_is_400 {
            (400, "invalid_request", "Invalid instance id")
        } else {
            (404, "not_found", "Invalid instance id")
        };
        let Some(index) = state.seen(now, account, id) else { return Err(unknown) };
        let one = &mut state.instances[index];
        let phase = one.phase(now, slow);
        match (phase, body.action.as_str()) {
            (Phase::Lost, _) => Err(unknown),
            (Phase::Discontinued, _) if self.guesses().gone_is_404 => Err(unknown),
            (Phase::Discontinued, "delete" | "discontinue" | "hibernate") => {
                Err((403, "forbidden_action", "Can't discontinue a discontinued instance"))
            }
            (Phase::Deleting, "delete" | "discontinue" | "hibernate") => Ok(false),
            (_, "delete" | "discontinue" | "hibernate") => {
                if one.refuses_delete() || one.too_early(phase, now, self.guesses()) {
                    return Err((403, "forbidden_action", STILL_PROVISIONING));
                }
                let attached = state.attached(id);
                if !body.volume_ids.iter().flatten().all(|volume| attached.contains(volume)) {
                    return Err((400, "invalid_request", "Invalid volume id"));
                }
                let hibernate = body.action == "hibernate";
                let fate =
                    |volume: &Volume| if hibernate { Fate::Detach } else { self.fate(body, call, volume) };
                state.end(&self.shared, index, Actor::Api, fate);
                Ok(true)
            }
            (Phase::Running, "shutdown" | "force_shutdown") => {
                one.offline = true;
                let machine = one.machine.take();
                state.note(index, "shutdown", Actor::Api, now);
                drop(machine);
                Ok(true)
            }
            (Phase::Offline, "shutdown" | "force_shutdown") | (Phase::Running, "start" | "boot") => Ok(false),
            (Phase::Offline, "start" | "boot") => {
                one.offline = false;
                one.script = None;
                one.started = now;
                state.note(index, "start", Actor::Api, now);
                let made = self.reserve_machine(&mut state.instances[index]);
                made.map(|()| true).map_err(|_| (500, "server_error", "the sandbox could not make a machine"))
            }
            _ => Err((403, "forbidden_action", "The instance's status does not allow this action")),
        }
    }

    /// What a delete makes of a volume.
    fn fate(&self, body: &InstanceAction, call: &Call, volume: &Volume) -> Fate {
        let has = |fault: VerdaFault| call.faults.contains(&FaultKind::Verda(fault));
        if has(VerdaFault::VolumesStay) {
            return Fate::Detach;
        }
        // `delete_permanently` works only together with `volume_ids`.
        let asked = match &body.volume_ids {
            Some(ids) if ids.contains(&volume.id) => {
                if body.delete_permanently == Some(true) {
                    Fate::Permanent
                } else {
                    Fate::Trash
                }
            }
            None if volume.is_os && self.guesses().bare_delete_trashes => Fate::Trash,
            _ => Fate::Detach,
        };
        if asked == Fate::Permanent && has(VerdaFault::VolumesTrashed) { Fate::Trash } else { asked }
    }
}

fn failure(id: &str, action: &str, status: u16, text: &str) -> Value {
    json!({"instanceId": id, "action": action, "status": "error", "error": text, "statusCode": status})
}
