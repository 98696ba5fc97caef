//! Instances that no request made: somebody else's, or made by another computer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::sandbox::scripts::Script;

/// What an instance that is put there looks like. As JSON the age is `age_ms`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstanceSeed {
    /// Label, empty for none.
    pub label: String,
    /// Environment, where a mark may be.
    pub env: BTreeMap<String, String>,
    /// GPU name.
    pub gpu: String,
    /// GPUs.
    pub count: u32,
    /// Public keys that get in, one a line.
    pub keys: String,
    /// The bid, for one that is interruptible.
    pub bid: Option<f64>,
    /// Whether there is a machine to log in to.
    pub live: bool,
    /// How long ago it was made.
    #[serde(rename = "age_ms", deserialize_with = "milliseconds")]
    pub age: Duration,
    /// Whether it is stopped.
    pub stopped: bool,
    /// How it behaves.
    pub script: Option<Script>,
}

fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

impl Default for InstanceSeed {
    fn default() -> InstanceSeed {
        InstanceSeed {
            label: String::new(),
            env: BTreeMap::new(),
            gpu: "RTX 3090".into(),
            count: 1,
            keys: String::new(),
            bid: None,
            live: false,
            age: Duration::ZERO,
            stopped: false,
            script: None,
        }
    }
}

impl InstanceSeed {
    /// An instance with nothing of ours in it.
    pub fn foreign(label: &str) -> InstanceSeed {
        let env = [("JUPYTER_PASSWORD", "hunter2"), ("-p 8080:8080", "1")];
        InstanceSeed {
            label: label.to_owned(),
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            ..InstanceSeed::default()
        }
    }

    /// An instance that carries this mark in `GPUPROV_MARK`.
    pub fn marked(label: &str, mark: &str) -> InstanceSeed {
        let env = BTreeMap::from([("GPUPROV_MARK".to_owned(), mark.to_owned())]);
        InstanceSeed { label: label.to_owned(), env, ..InstanceSeed::default() }
    }
}
