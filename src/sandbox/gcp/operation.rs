//! Operations: what every change answers, and what is told of them afterwards.
//!
//! An insert that is accepted may fail in its operation some seconds later, which is why an operation has an end and an error
//! from the moment it is made. What it does to the world is done when the end is reached, see `state.rs`.

use std::time::Duration;

use serde_json::{Value, json};

use super::filter::Filter;
use super::names::region_of;
use super::trouble::GcpOperationError;
use super::{GcpCloud, fail, not_found};
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

/// One operation.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) account: String,
    pub(super) project: String,
    pub(super) user: String,
    /// Absent for global ones.
    pub(super) zone: Option<String>,
    /// `operationType`, such as `insert`.
    pub(super) kind: String,
    /// Link of what it is about, below the project.
    pub(super) target: String,
    pub(super) target_id: String,
    /// The `requestId` that made it, and the call that did.
    pub(super) request: Option<(String, String)>,
    pub(super) inserted: Duration,
    pub(super) done_at: Duration,
    pub(super) error: Option<GcpOperationError>,
    pub(super) warning: Option<Value>,
    pub(super) status_message: Option<String>,
    /// Whether it is never found.
    pub(super) lost: bool,
}

impl Operation {
    /// Whether it has ended.
    pub(super) fn is_done(&self, now: Duration) -> bool {
        now >= self.done_at
    }
}

/// The public host of links, whatever the host that was asked.
pub(super) const LINKS: &str = "https://www.googleapis.com/compute/v1/projects";

impl GcpCloud {
    /// An operation as it is now.
    pub(super) fn show_operation(&self, operation: &Operation) -> Value {
        let now = self.shared.clock.now();
        let done = operation.is_done(now);
        let project = &operation.project;
        let place = match &operation.zone {
            Some(zone) => format!("zones/{zone}"),
            None => "global".into(),
        };
        let waiting = now < operation.inserted + (operation.done_at.saturating_sub(operation.inserted)) / 8;
        let mut shown = json!({
            "kind": "compute#operation", "id": operation.id, "name": operation.name,
            "operationType": operation.kind,
            "targetLink": format!("{LINKS}/{project}/{}", operation.target), "targetId": operation.target_id,
            "status": if done { "DONE" } else if waiting { "PENDING" } else { "RUNNING" },
            "user": operation.user, "progress": if done { 100 } else { 0 },
            "insertTime": self.date(operation.inserted), "startTime": self.date(operation.inserted),
            "selfLink": format!("{LINKS}/{project}/{place}/operations/{}", operation.name),
        });
        if operation.zone.is_some() {
            shown["zone"] = json!(format!("{LINKS}/{project}/{place}"));
        }
        if let Some((id, _)) = &operation.request {
            shown["clientOperationId"] = json!(id);
        }
        if let Some(message) = &operation.status_message {
            shown["statusMessage"] = json!(message);
        }
        if done {
            shown["endTime"] = json!(self.date(operation.done_at));
            if let Some(warning) = &operation.warning {
                shown["warnings"] = json!([warning]);
            }
            if let Some(error) = &operation.error {
                let zone = operation.zone.as_deref().unwrap_or_default();
                shown["error"] = json!({"errors": [detail(error, project, zone)]});
                shown["httpErrorStatusCode"] = json!(error.status);
                shown["httpErrorMessage"] = json!(phrase(error.status));
            }
        }
        shown
    }

    /// `get` and `wait` of one operation.
    pub(super) fn operation_of(&self, account: &str, zone: Option<&str>, name: &str) -> Answer {
        let state = lock(&self.state);
        let found = state.operations.iter().find(|one| {
            one.account == account
                && one.zone.as_deref() == zone
                && (one.name == name || one.id == name)
                && !one.lost
        });
        match found {
            Some(operation) => {
                let operation = operation.clone();
                drop(state);
                Answer::json(200, self.show_operation(&operation))
            }
            None => {
                let place = zone.map_or("global".to_owned(), |zone| format!("zones/{zone}"));
                not_found(&format!("{place}/operations/{name}"), &state.project(account))
            }
        }
    }

    /// Whether a `wait` for this operation still waits.
    pub(super) fn is_running(&self, zone: Option<&str>, name: &str) -> bool {
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        let found = state.operations.iter().find(|one| one.name == name && one.zone.as_deref() == zone);
        found.is_some_and(|one| !one.lost && !one.is_done(now))
    }

    /// `GET .../operations`: those of one zone.
    pub(super) fn operations(&self, call: &Call, account: &str, zone: &str) -> Answer {
        let named = |(name, text): &(String, String)| {
            name == "filter" && Filter::read(text).is_ok_and(|filter| filter.names("targetId"))
        };
        if self.guesses().no_target_filter && call.pairs().iter().any(named) {
            return fail(400, "invalid", "Invalid value for field 'filter'. Invalid list filter expression.");
        }
        let state = lock(&self.state);
        let mine = state
            .operations
            .iter()
            .rev()
            .filter(|one| one.account == account && one.zone.as_deref() == Some(zone) && !one.lost);
        let mine: Vec<Operation> = mine.cloned().collect();
        drop(state);
        let shown = mine.iter().map(|one| self.show_operation(one)).collect();
        self.list(call, "operation", shown, &format!("zones/{zone}/operations"), account)
    }
}

/// One of `error.errors`.
fn detail(error: &GcpOperationError, project: &str, zone: &str) -> Value {
    let place = |text: &str| {
        text.replace("{project}", project).replace("{zone}", zone).replace("{region}", region_of(zone))
    };
    let mut shown = json!({"code": error.code, "message": place(&error.message)});
    if let Some(zones) = &error.zones_available {
        let text = format!(
            "A VM instance is currently unavailable in the {zone} zone. Consider trying your request in the {} zone(s), which currently has capacity.",
            zones.join(", ")
        );
        shown["errorDetails"] = json!([
            {"help": {"links": [{"description": "Troubleshooting documentation",
                                 "url": "https://cloud.google.com/compute/docs/resource-error"}]}},
            {"localizedMessage": {"locale": "en-US", "message": text}},
            {"errorInfo": {"domain": "compute.googleapis.com", "reason": "resource_availability",
                           "metadatas": {"zone": zone, "zonesAvailable": zones.join(",")}}},
        ]);
    }
    if let Some(info) = &error.quota_info {
        shown["errorDetails"] = json!([{"quotaInfo": info}]);
    }
    shown
}

/// The words that go with a status.
fn phrase(status: u16) -> &'static str {
    match status {
        400 => "BAD REQUEST",
        403 => "FORBIDDEN",
        404 => "NOT FOUND",
        409 => "CONFLICT",
        412 => "PRECONDITION FAILED",
        429 => "TOO MANY REQUESTS",
        500 => "INTERNAL SERVER ERROR",
        503 => "SERVICE UNAVAILABLE",
        _ => "ERROR",
    }
}
