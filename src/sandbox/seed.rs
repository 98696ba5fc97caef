//! Machines that no request made: somebody else's, or made by another computer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::scripts::Script;

/// What a pod that is put there looks like. As JSON the age is `age_ms`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PodSeed {
    /// Cloud-side name.
    pub name: String,
    /// Environment, where a mark may be; `PUBLIC_KEY` decides who gets in.
    pub env: BTreeMap<String, String>,
    /// GPU id.
    pub gpu: String,
    /// GPUs.
    pub count: u32,
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

impl Default for PodSeed {
    fn default() -> PodSeed {
        PodSeed {
            name: "pod".into(),
            env: BTreeMap::new(),
            gpu: "NVIDIA A40".into(),
            count: 1,
            live: false,
            age: Duration::ZERO,
            stopped: false,
            script: None,
        }
    }
}

impl PodSeed {
    /// A pod with nothing of ours in it.
    pub fn foreign(name: &str) -> PodSeed {
        let env = [("JUPYTER_PASSWORD", "hunter2"), ("MODEL_NAME", "llama-3")];
        PodSeed {
            name: name.to_owned(),
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            ..PodSeed::default()
        }
    }

    /// A pod that carries this mark in `GPUPROV_MARK`.
    pub fn marked(name: &str, mark: &str) -> PodSeed {
        let env = BTreeMap::from([("GPUPROV_MARK".to_owned(), mark.to_owned())]);
        PodSeed { name: name.to_owned(), env, ..PodSeed::default() }
    }
}
