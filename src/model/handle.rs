//! What is needed to find and delete a machine and its side resources again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What kind of thing a cloud made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// The machine itself.
    Machine,
    /// A disk or volume.
    Disk,
    /// An ssh key object.
    Key,
    /// A startup script object.
    Script,
    /// A firewall rule.
    Rule,
}

impl ResourceKind {
    /// Returns the word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ResourceKind::Machine => "machine",
            ResourceKind::Disk => "disk",
            ResourceKind::Key => "key",
            ResourceKind::Script => "script",
            ResourceKind::Rule => "rule",
        }
    }
}

/// One thing that a cloud made for a machine, written to the record before the next request goes out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// What it is.
    pub kind: ResourceKind,
    /// The cloud's own id.
    pub id: String,
    /// What else its cloud needs to delete it (a zone, a project); read by that cloud alone.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
}

/// A machine at its cloud: the id, and all that must go with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handle {
    /// The cloud's own id of the machine.
    pub id: String,
    /// What else its cloud needs to look at it and delete it; read by that cloud alone.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// Disks, keys, scripts, rules that go when the machine goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side: Vec<Resource>,
}

impl Handle {
    /// Returns the handle of a machine without side resources.
    pub fn new(id: impl Into<String>) -> Self {
        Handle { id: id.into(), data: Map::new(), side: Vec::new() }
    }
}
