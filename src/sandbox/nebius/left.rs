//! What is left: everything of the sandbox's users that still exists and costs money.

use std::fmt;

use serde::Serialize;

use super::NebiusCloud;
use super::instance::Stage;
use crate::sandbox::lock;

/// What kind of thing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NebiusLeftKind {
    /// An instance, also one that is stopped.
    Instance,
    /// A disk on an instance.
    Disk,
    /// A disk on no instance.
    DetachedDisk,
}

/// One thing that is left.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NebiusLeft {
    /// What it is.
    pub kind: NebiusLeftKind,
    /// The cloud's own id.
    pub id: String,
    /// The cloud-side name.
    pub name: String,
    /// Label of the account.
    pub account: String,
}

impl fmt::Display for NebiusLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} ({}, {})", self.kind, self.name, self.id, self.account)
    }
}

impl NebiusCloud {
    /// Everything that exists; that of others, or that which is not.
    pub(super) fn left(&self, foreign: bool) -> Vec<NebiusLeft> {
        let state = lock(&self.state);
        let mut left = Vec::new();
        for one in state.instances.iter().filter(|one| one.foreign == foreign) {
            if !matches!(self.stage(&state, one), Stage::Deleting | Stage::Gone) {
                left.push(NebiusLeft {
                    kind: NebiusLeftKind::Instance,
                    id: one.id.clone(),
                    name: one.name.clone(),
                    account: one.account.clone(),
                });
            }
        }
        for disk in state.disks.iter().filter(|disk| disk.foreign == foreign) {
            if disk.deleted.is_none() {
                let attached = disk.attached.is_some();
                left.push(NebiusLeft {
                    kind: if attached { NebiusLeftKind::Disk } else { NebiusLeftKind::DetachedDisk },
                    id: disk.id.clone(),
                    name: disk.name.clone(),
                    account: disk.account.clone(),
                });
            }
        }
        left.sort();
        left
    }
}
