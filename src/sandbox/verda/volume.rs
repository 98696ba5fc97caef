//! One volume: where it stands, and how that is shown.
//!
//! Shape and words are `GetVolumePublicResponseDto` and `GetVolumeInTrashPublicResponseDto` of the API document.
//! A volume in the trash can be restored for 96 hours, and counts against the quota all that time.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::wire::{OnSpot, Tag};

/// How long the trash keeps a volume.
const TRASH: Duration = Duration::from_secs(96 * 3600);

/// A volume, also one that is gone.
#[derive(Debug)]
pub(super) struct Volume {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) name: String,
    /// GB.
    pub(super) size: u64,
    pub(super) kind: String,
    pub(super) location: String,
    pub(super) is_os: bool,
    pub(super) key_ids: Vec<String>,
    pub(super) tags: Vec<Tag>,
    pub(super) on_spot: OnSpot,
    pub(super) foreign: bool,
    pub(super) created: Timestamp,
    pub(super) hidden_until: Duration,
    pub(super) place: Place,
}

/// What was done to a volume last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// On this instance.
    Attached(String),
    Detached,
    /// Thrown away at this point of the clock.
    Trash(Duration),
    /// Deleted for good; it is shown as such until this point of the clock.
    Deleting {
        since: Duration,
        until: Duration,
    },
}

/// Where a volume stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Attached,
    Detached,
    Trash,
    Deleting,
    Gone,
}

impl Volume {
    /// Where it stands.
    pub(super) fn standing(&self, now: Duration) -> Standing {
        match &self.place {
            Place::Attached(_) => Standing::Attached,
            Place::Detached => Standing::Detached,
            Place::Trash(since) if now < since.saturating_add(TRASH) => Standing::Trash,
            Place::Deleting { until, .. } if now < *until => Standing::Deleting,
            Place::Trash(_) | Place::Deleting { .. } => Standing::Gone,
        }
    }

    /// Whether it costs money or quota.
    pub(super) fn exists(&self, now: Duration) -> bool {
        matches!(self.standing(now), Standing::Attached | Standing::Detached | Standing::Trash)
    }

    /// The instance that it is attached to.
    pub(super) fn instance(&self) -> Option<&str> {
        match &self.place {
            Place::Attached(id) => Some(id),
            _ => None,
        }
    }

    /// As JSON; `instance` is what the list of instances has of the one that it is attached to.
    pub(super) fn show(
        &self,
        now: Duration,
        instance: Option<Value>,
        date: impl Fn(Duration) -> Timestamp,
    ) -> Value {
        let standing = self.standing(now);
        let size = f64::from(u32::try_from(self.size).unwrap_or(u32::MAX));
        let mut shown = json!({
            "id": self.id, "instance_id": self.instance(), "instances": instance.into_iter().collect::<Vec<_>>(),
            "name": self.name, "created_at": format!("{:.3}", self.created),
            "status": match standing {
                Standing::Attached => "attached",
                Standing::Detached => "detached",
                Standing::Deleting => "deleting",
                Standing::Trash | Standing::Gone => "deleted",
            },
            "size": self.size, "is_os_volume": self.is_os, "target": self.instance().map(|_| "vda"),
            "type": self.kind, "location": self.location, "ssh_key_ids": self.key_ids,
            "contract": "PAY_AS_YOU_GO", "base_hourly_cost": size * 0.2 / 730.0, "monthly_price": size * 0.2,
            "currency": "usd", "tags": self.tags.iter().map(Tag::show).collect::<Vec<_>>(),
        });
        match &self.place {
            Place::Trash(since) | Place::Deleting { since, .. } => {
                shown["deleted_at"] = json!(format!("{:.3}", date(*since)));
                shown["is_permanently_deleted"] = json!(standing != Standing::Trash);
            }
            _ => {
                for name in [
                    "pseudo_path",
                    "create_directory_command",
                    "mount_command",
                    "filesystem_to_fstab_command",
                    "long_term",
                ] {
                    shown[name] = Value::Null;
                }
            }
        }
        shown
    }
}
