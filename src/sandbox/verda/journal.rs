//! The journal: who did what to which machine or volume, newest first.
//!
//! Shape and words are `GetActivityJournalResponseDto` of the API document, which calls it beta. An eviction has
//! no actor and says `delete_reason`; what a user did has an actor and an origin.

use std::time::Duration;

use serde_json::{Value, json};

use super::VerdaCloud;
use super::wire::{find, page};
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    /// A call of the API.
    Api,
    /// The web console.
    Console,
    /// The provider itself.
    Nobody,
}

/// One event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) account: String,
    pub(super) object: String,
    /// `compute` or `volume`.
    pub(super) object_type: &'static str,
    pub(super) action: &'static str,
    pub(super) actor: Actor,
    pub(super) at: Duration,
    pub(super) location: String,
    pub(super) error: Option<String>,
    pub(super) reason: Option<&'static str>,
}

impl VerdaCloud {
    /// One page of the journal; `object` narrows it to one machine or volume.
    pub(super) fn journal(&self, call: &Call, account: &str, object: Option<&str>) -> Answer {
        let pairs = call.pairs();
        let wanted = [object, find(&pairs, &["compute_id"]), find(&pairs, &["volume_id"])];
        let state = lock(&self.state);
        let Some(owner) = state.accounts.iter().find(|known| known.label == account) else {
            return super::error(404, "not_found", "no such project");
        };
        let fits = |event: &Event| {
            event.account == account
                && wanted.iter().all(|id| id.is_none_or(|id| id == event.object))
                && find(&pairs, &["action_code"]).is_none_or(|code| code == event.action)
                && find(&pairs, &["object_type"]).is_none_or(|kind| kind == event.object_type)
        };
        let rows = state.journal.iter().enumerate().rev().filter(|(_, event)| fits(event));
        let rows = rows.map(|(index, event)| {
            let mut shown = json!({
                "id": format!("instance-log-{}", index + 1), "object_id": event.object,
                "object_type": event.object_type, "action_code": event.action, "actor_id": null,
                "project_id": owner.project, "timestamp": format!("{:.3}", self.shared.clock.date(event.at)),
                "location_code": event.location, "properties": {},
            });
            if event.actor != Actor::Nobody {
                let origin = if event.actor == Actor::Api { "public-api-v1" } else { "console-instances" };
                shown["actor_id"] = json!(owner.user);
                shown["request_origin"] = json!(origin);
            }
            if let Some(error) = &event.error {
                shown["error_message"] = json!(error);
            }
            if let Some(reason) = event.reason {
                shown["properties"] = json!({"delete_reason": reason});
            }
            shown
        });
        let rows: Vec<Value> = rows.collect();
        page(&pairs, rows)
    }
}
