//! Instances that no request made: somebody else's, or made by another computer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::sandbox::scripts::Script;

/// What an instance that is put there looks like; it comes with a boot disk. As JSON the age is `age_ms`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcpSeed {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Labels of the instance and of its disk, where a mark may be.
    pub labels: BTreeMap<String, String>,
    /// Network tags.
    pub tags: Vec<String>,
    /// Machine type.
    pub machine_type: String,
    /// T4s that are attached to an n1 type.
    pub t4: u32,
    /// Zone.
    pub zone: String,
    /// Public keys that get in, one a line.
    pub keys: String,
    /// Whether it is spot, to be deleted when it is preempted.
    pub spot: bool,
    /// Whether it is somebody else's, which must stay and is in no list of what is left.
    pub foreign: bool,
    /// Whether there is a machine to log in to.
    pub live: bool,
    /// How long ago it was made.
    #[serde(rename = "age_ms", deserialize_with = "milliseconds")]
    pub age: Duration,
    /// Whether it is `TERMINATED`; its disk is billed.
    pub stopped: bool,
    /// How it behaves.
    pub script: Option<Script>,
}

fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

impl Default for GcpSeed {
    fn default() -> GcpSeed {
        GcpSeed {
            name: "instance".into(),
            description: String::new(),
            labels: BTreeMap::new(),
            tags: Vec::new(),
            machine_type: "g2-standard-8".into(),
            t4: 0,
            zone: "us-central1-a".into(),
            keys: String::new(),
            spot: false,
            foreign: false,
            live: false,
            age: Duration::ZERO,
            stopped: false,
            script: None,
        }
    }
}

impl GcpSeed {
    /// An instance with nothing of ours on it.
    pub fn foreign(name: &str) -> GcpSeed {
        let labels = BTreeMap::from([("team".to_owned(), "llama".to_owned())]);
        GcpSeed {
            name: name.to_owned(),
            description: "do not touch".into(),
            labels,
            foreign: true,
            ..GcpSeed::default()
        }
    }

    /// An instance that carries these labels.
    pub fn labelled(name: &str, labels: &[(&str, &str)]) -> GcpSeed {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        GcpSeed { name: name.to_owned(), labels, ..GcpSeed::default() }
    }
}
