//! One operation: `nebius.common.v1.Operation`.

use std::time::Duration;

use serde_json::{Value, json};

use super::status::Trouble;
use crate::sandbox::clock::Clock;

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Create,
    Delete,
    DeleteDisk,
    Start,
    Stop,
}

/// An operation.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) kind: Kind,
    pub(super) resource: String,
    pub(super) by: String,
    pub(super) created: Duration,
    pub(super) finished: Option<Duration>,
    pub(super) trouble: Option<Box<Trouble>>,
    /// Whether the service knows it no more.
    pub(super) lost: bool,
}

impl Operation {
    /// As the API has it: a status only when it is finished, an empty one when it went well.
    pub(super) fn show(&self, clock: &Clock) -> Value {
        let description = match self.kind {
            Kind::Create => "Create instance",
            Kind::Delete => "Delete instance",
            Kind::DeleteDisk => "Delete disk",
            Kind::Start => "Start instance",
            Kind::Stop => "Stop instance",
        };
        let mut shown = json!({
            "id": self.id, "description": description, "created_at": clock.date(self.created).to_string(),
            "created_by": self.by, "resource_id": self.resource,
        });
        if let Some(finished) = self.finished {
            shown["finished_at"] = json!(clock.date(finished).to_string());
            shown["status"] = self.trouble.as_ref().map_or_else(|| json!({}), |trouble| trouble.status());
        }
        shown
    }
}
