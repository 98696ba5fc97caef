//! Instances that no request made: somebody else's, or made by another computer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::sandbox::scripts::Script;

/// What an instance that is put there looks like; it comes with a managed boot disk. As JSON the age is `age_ms`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NebiusSeed {
    /// Name.
    pub name: String,
    /// Labels of the instance and of its disk, where a mark may be.
    pub labels: BTreeMap<String, String>,
    /// Platform.
    pub platform: String,
    /// Preset.
    pub preset: String,
    /// Region; it comes into the first project there.
    pub region: String,
    /// Public keys that get in, one a line.
    pub keys: String,
    /// Whether it is preemptible.
    pub spot: bool,
    /// Whether it is somebody else's, which must stay and is in no list of what is left.
    pub foreign: bool,
    /// Whether there is a machine to log in to.
    pub live: bool,
    /// How long ago it was made.
    #[serde(rename = "age_ms", deserialize_with = "milliseconds")]
    pub age: Duration,
    /// Whether it is `STOPPED`, where only its disk is billed.
    pub stopped: bool,
    /// How it behaves.
    pub script: Option<Script>,
}

fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

impl Default for NebiusSeed {
    fn default() -> NebiusSeed {
        NebiusSeed {
            name: "instance".into(),
            labels: BTreeMap::new(),
            platform: "gpu-h100-sxm".into(),
            preset: "1gpu-16vcpu-200gb".into(),
            region: "eu-north1".into(),
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

impl NebiusSeed {
    /// An instance with nothing of ours on it.
    pub fn foreign(name: &str) -> NebiusSeed {
        let labels = BTreeMap::from([("team".to_owned(), "llama".to_owned())]);
        NebiusSeed { name: name.to_owned(), labels, foreign: true, ..NebiusSeed::default() }
    }

    /// An instance that carries these labels.
    pub fn labelled(name: &str, labels: &[(&str, &str)]) -> NebiusSeed {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        NebiusSeed { name: name.to_owned(), labels, ..NebiusSeed::default() }
    }
}
