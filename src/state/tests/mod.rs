//! Tests of the registry, the locks, the journal, the watch and the audit log, with what they share.

mod audit;
mod locks;
mod machines;
mod switches;

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::record::{Attempt, Outcome, RECORD_VERSION, Record, RecordedIdentity};
use crate::model::handle::Handle;
use crate::model::machine::MachineState;
use crate::model::money::Usd;
use crate::model::offer::Offer;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn offer() -> Offer {
    serde_json::from_value(json!({
        "id": "1:runpod/default:x:1::o:d50:p346850", "account": "runpod/default", "cloud": "runpod",
        "region": null, "country": null, "zone": null, "instance_type": "NVIDIA GeForce RTX 4090",
        "gpu": "RTX 4090", "gpu_raw": "NVIDIA GeForce RTX 4090", "gpu_count": 1, "vram_gb": 24.0, "vcpus": null,
        "ram_gb": null, "disk_gb": 50, "spot": false, "secure": true, "price_per_hour": 0.34685,
        "price_parts": {"compute": 0.34, "disk": 0.00685}, "price_estimated": false, "price_as_of": null,
        "traffic_per_gb": null, "continent": null, "cuda": null, "stock": "low", "sandbox": false
    }))
    .unwrap()
}

fn identity() -> RecordedIdentity {
    RecordedIdentity {
        endpoint: "https://api.runpod.io".to_owned(),
        provider: None,
        secret_mark: "0123456789abcdef".to_owned(),
        hint: "…cdef".to_owned(),
    }
}

fn record(name: &str) -> Record {
    Record {
        version: RECORD_VERSION,
        name: name.parse().unwrap(),
        installation: "team-ci".parse().unwrap(),
        owner: None,
        state: MachineState::Creating,
        created_at: at(1_800_000_000),
        machine_at: None,
        expires_at: None,
        attempts: vec![Attempt {
            claim: "00ff00ff00ff00ff".parse().unwrap(),
            account: "runpod/default".parse().unwrap(),
            identity: identity(),
            offer: offer(),
            started_at: at(1_800_000_000),
            outcome: None,
            handle: None,
            side: Vec::new(),
            unknown: BTreeMap::new(),
        }],
        ssh: None,
        price_per_hour: Some(Usd::from_micros(346_850)),
        vcpus: None,
        ram_gb: None,
        zone: None,
        gpu_check: None,
        k8s: None,
        message: None,
        unknown: BTreeMap::new(),
    }
}

fn unknown() -> impl Strategy<Value = BTreeMap<String, Value>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::hash_map("[a-z]{1,6}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    proptest::collection::btree_map("later_[a-z]{1,8}", value, 0..4)
}

fn records() -> impl Strategy<Value = Record> {
    let attempt = (any::<u64>(), 0..4_u8, proptest::option::of("[a-z0-9]{1,12}"), unknown());
    let attempts = proptest::collection::vec(attempt, 0..4);
    ("[a-z][a-z0-9-]{0,30}[a-z0-9]", attempts, 0_i64..4_000_000_000, "\\PC{0,20}", unknown()).prop_map(
        |(name, attempts, second, message, unknown)| Record {
            created_at: at(second),
            message: Some(message),
            vcpus: Some((second % 4096) as f64 / 4.0),
            unknown,
            attempts: attempts
                .into_iter()
                .map(|(claim, outcome, id, unknown)| Attempt {
                    claim: format!("{claim:016x}").parse().unwrap(),
                    outcome: [None, Some(Outcome::Created), Some(Outcome::Refused), Some(Outcome::Unknown)]
                        [usize::from(outcome)],
                    handle: id.map(Handle::new),
                    unknown,
                    ..record("dev").attempts.remove(0)
                })
                .collect(),
            ..record(&name)
        },
    )
}
