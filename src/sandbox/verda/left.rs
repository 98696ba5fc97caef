//! What is left: everything of the sandbox's users that still exists, whether it costs money or only quota.

use std::fmt;

use serde::Serialize;

use super::VerdaCloud;
use super::instance::Phase;
use super::volume::Standing;
use crate::sandbox::lock;

/// What kind of thing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftKind {
    /// An instance, also one that is offline or broken.
    Instance,
    /// A volume on an instance.
    Attached,
    /// A volume on no instance.
    Detached,
    /// A volume in the trash.
    Trash,
    /// An SSH key.
    SshKey,
    /// A startup script.
    Script,
}

/// One thing that is left.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Left {
    /// What it is.
    pub kind: LeftKind,
    /// The cloud's own id.
    pub id: String,
    /// The cloud-side name.
    pub name: String,
    /// Label of the account.
    pub account: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} ({}, {})", self.kind, self.name, self.id, self.account)
    }
}

impl VerdaCloud {
    /// Everything that exists, by kind; that of others, or that which is not.
    pub(super) fn left(&self, foreign: bool) -> Vec<Left> {
        let now = self.shared.clock.now();
        let slow = self.shared.options.slow_delete;
        let state = lock(&self.state);
        let entry = |kind, id: &String, name: &String, account: &String| Left {
            kind,
            id: id.clone(),
            name: name.clone(),
            account: account.clone(),
        };
        let mut left = Vec::new();
        for one in state.instances.iter().filter(|one| one.foreign == foreign) {
            if !matches!(one.phase(now, slow), Phase::Deleting | Phase::Discontinued | Phase::Lost) {
                left.push(entry(LeftKind::Instance, &one.id, &one.hostname, &one.account));
            }
        }
        for volume in state.volumes.iter().filter(|volume| volume.foreign == foreign) {
            let kind = match volume.standing(now) {
                Standing::Attached => LeftKind::Attached,
                Standing::Detached => LeftKind::Detached,
                Standing::Trash => LeftKind::Trash,
                Standing::Deleting | Standing::Gone => continue,
            };
            left.push(entry(kind, &volume.id, &volume.name, &volume.account));
        }
        let keys = state.keys.iter().filter(|key| key.foreign == foreign);
        left.extend(keys.map(|key| entry(LeftKind::SshKey, &key.id, &key.name, &key.account)));
        let scripts = state.scripts.iter().filter(|_| !foreign);
        left.extend(scripts.map(|script| entry(LeftKind::Script, &script.id, &script.name, &script.account)));
        left.sort();
        left
    }
}
