//! What is left: everything of the sandbox's users that still exists, whether it costs money or only stands there.

use std::fmt;

use serde::Serialize;

use super::GcpCloud;
use super::operation::Operation;
use crate::sandbox::lock;

/// What kind of thing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GcpLeftKind {
    /// An instance, also one that is stopped or on its way out.
    Instance,
    /// A disk on an instance.
    Attached,
    /// A disk on no instance.
    Detached,
    /// A firewall rule.
    Rule,
    /// An operation that has not ended.
    Operation,
}

/// One thing that is left.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GcpLeft {
    /// What it is.
    pub kind: GcpLeftKind,
    /// The cloud's own numeric id.
    pub id: String,
    /// Its name; of an operation what it does to which resource.
    pub name: String,
    /// Label of the account.
    pub account: String,
}

impl fmt::Display for GcpLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} ({}, {})", self.kind, self.name, self.id, self.account)
    }
}

impl GcpCloud {
    /// Everything that exists, by kind; that of others, or that which is not.
    pub(super) fn left(&self, foreign: bool) -> Vec<GcpLeft> {
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        let entry = |kind, id: &String, name: &str, account: &String| GcpLeft {
            kind,
            id: id.clone(),
            name: name.to_owned(),
            account: account.clone(),
        };
        let mut left = Vec::new();
        let instances = state.instances.iter().filter(|one| one.foreign == foreign && !one.gone);
        left.extend(instances.map(|one| entry(GcpLeftKind::Instance, &one.id, &one.name, &one.account)));
        for disk in state.disks.iter().filter(|disk| disk.foreign == foreign) {
            let kind = if disk.user.is_some() { GcpLeftKind::Attached } else { GcpLeftKind::Detached };
            left.push(entry(kind, &disk.id, &disk.name, &disk.account));
        }
        let rules = state.rules.iter().filter(|rule| rule.foreign == foreign && rule.ends_at.is_none());
        left.extend(rules.map(|rule| entry(GcpLeftKind::Rule, &rule.id, rule.name(), &rule.account)));
        let running = state.operations.iter().filter(|one| !foreign && !one.is_done(now));
        let what = |one: &Operation| format!("{} {}", one.kind, one.target);
        left.extend(running.map(|one| entry(GcpLeftKind::Operation, &one.id, &what(one), &one.account)));
        left.sort();
        left
    }
}
