//! One disk: `nebius.compute.v1.Disk`. A managed one lives and dies with its instance.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

/// A disk.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) project: String,
    pub(super) region: String,
    pub(super) name: String,
    pub(super) labels: Value,
    /// The spec as it was sent.
    pub(super) spec: Value,
    pub(super) gib: i64,
    /// The instance that it is on.
    pub(super) attached: Option<String>,
    /// Whether the instance owns it.
    pub(super) managed: bool,
    pub(super) foreign: bool,
    pub(super) created: Timestamp,
    pub(super) hidden_until: Duration,
    /// When its deletion ends.
    pub(super) deleted: Option<Duration>,
}

impl Disk {
    /// Whether it is there, and costs money.
    pub(super) fn exists(&self, now: Duration) -> bool {
        self.deleted.is_none_or(|until| now < until)
    }

    /// As the API has it.
    pub(super) fn show(&self) -> Value {
        let created = self.created.to_string();
        let holder = self.attached.as_deref().unwrap_or_default();
        json!({
            "metadata": {
                "id": self.id, "parent_id": self.project, "name": self.name, "labels": self.labels,
                "resource_version": 1, "created_at": created, "updated_at": created,
            },
            "spec": self.spec,
            "status": {
                "state": if self.deleted.is_some() { "DELETING" } else { "READY" },
                "read_write_attachment": holder, "managed_by": if self.managed { holder } else { "" },
                "size_bytes": self.gib << 30, "block_size_bytes": 4096, "source_image_cpu_architecture": "AMD64",
                "lock_state": {},
            },
        })
    }
}

/// The size of a disk's spec in GiB, rounded up; nothing when none is given or it is out of range.
pub(super) fn gib(spec: &Value) -> Option<i64> {
    let size = |name: &str| spec.get(name).and_then(Value::as_i64);
    let units = [
        ("size_bytes", 1_i64),
        ("size_kibibytes", 1 << 10),
        ("size_mebibytes", 1 << 20),
        ("size_gibibytes", 1 << 30),
    ];
    let bytes = units.iter().find_map(|(name, unit)| size(name)?.checked_mul(*unit))?;
    (bytes > 0).then(|| (bytes + (1 << 30) - 1) >> 30)
}
