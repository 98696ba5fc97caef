//! Instances that no request made: somebody else's, or made by another computer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::sandbox::scripts::Script;

/// What an instance that is put there looks like; it comes with an OS volume. As JSON the age is `age_ms`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerdaSeed {
    /// Host name.
    pub hostname: String,
    /// Description.
    pub description: String,
    /// Tags of the instance and of its OS volume, where a mark may be.
    pub tags: BTreeMap<String, String>,
    /// Instance type.
    pub instance_type: String,
    /// Location code.
    pub location: String,
    /// Public keys that get in, one a line.
    pub keys: String,
    /// Whether it is spot.
    pub spot: bool,
    /// Name of the OS volume.
    pub volume: String,
    /// Whether it is somebody else's, which must stay and is in no list of what is left.
    pub foreign: bool,
    /// Whether there is a machine to log in to.
    pub live: bool,
    /// How long ago it was made.
    #[serde(rename = "age_ms", deserialize_with = "milliseconds")]
    pub age: Duration,
    /// Whether it is `offline`, which is billed in full.
    pub offline: bool,
    /// How it behaves.
    pub script: Option<Script>,
}

fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

impl Default for VerdaSeed {
    fn default() -> VerdaSeed {
        VerdaSeed {
            hostname: "instance".into(),
            description: String::new(),
            tags: BTreeMap::new(),
            instance_type: "1H100.80S.32V".into(),
            location: "FIN-01".into(),
            keys: String::new(),
            spot: false,
            volume: "OS-NVMe-seed".into(),
            foreign: false,
            live: false,
            age: Duration::ZERO,
            offline: false,
            script: None,
        }
    }
}

impl VerdaSeed {
    /// An instance with nothing of ours on it.
    pub fn foreign(hostname: &str) -> VerdaSeed {
        let tags = BTreeMap::from([("team".to_owned(), "llama".to_owned())]);
        VerdaSeed {
            hostname: hostname.to_owned(),
            description: "do not touch".into(),
            tags,
            foreign: true,
            ..VerdaSeed::default()
        }
    }

    /// An instance that carries these tags.
    pub fn tagged(hostname: &str, tags: &[(&str, &str)]) -> VerdaSeed {
        let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        VerdaSeed { hostname: hostname.to_owned(), tags, ..VerdaSeed::default() }
    }
}
