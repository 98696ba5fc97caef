//! What Vast answers, as far as we read it.
//!
//! Everything is optional and of any type: a field that is missing, null or of an unexpected type is read as none, so that
//! one odd row never hides the others. What may not be missing is decided where it is used. Words stay text.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// Ids come as numbers; a text of digits is taken too.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(id_of(&Value::deserialize(deserializer)?))
}

/// Reads an id.
pub(super) fn id_of(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|id| *id > 0)
}

/// Figures come as numbers; some hosts' come as texts.
fn figure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    Ok(number.filter(|number| number.is_finite()))
}

/// One offer of a search. All prices in USD.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ask {
    #[serde(deserialize_with = "id")]
    pub(super) id: Option<u64>,
    #[serde(deserialize_with = "id")]
    pub(super) ask_contract_id: Option<u64>,
    #[serde(deserialize_with = "id")]
    pub(super) machine_id: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) gpu_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) num_gpus: Option<u32>,
    /// MB of one GPU.
    #[serde(deserialize_with = "figure")]
    pub(super) gpu_ram: Option<f64>,
    /// Part of the machine's GPUs.
    #[serde(deserialize_with = "figure")]
    pub(super) gpu_frac: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) gpu_arch: Option<String>,
    #[serde(deserialize_with = "figure")]
    pub(super) cuda_max_good: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cpu_arch: Option<String>,
    #[serde(deserialize_with = "figure")]
    pub(super) cpu_cores_effective: Option<f64>,
    /// MB of the whole machine.
    #[serde(deserialize_with = "figure")]
    pub(super) cpu_ram: Option<f64>,
    /// GB to be had.
    #[serde(deserialize_with = "figure")]
    pub(super) disk_space: Option<f64>,
    /// Per hour, GPU part.
    #[serde(deserialize_with = "figure")]
    pub(super) dph_base: Option<f64>,
    /// Per hour, with the allocated disk.
    #[serde(deserialize_with = "figure")]
    pub(super) dph_total: Option<f64>,
    /// Per hour, without disk.
    #[serde(deserialize_with = "figure")]
    pub(super) min_bid: Option<f64>,
    /// Per GB and month.
    #[serde(deserialize_with = "figure")]
    pub(super) storage_cost: Option<f64>,
    /// Per GB.
    #[serde(deserialize_with = "figure")]
    pub(super) inet_up_cost: Option<f64>,
    /// Per GB.
    #[serde(deserialize_with = "figure")]
    pub(super) inet_down_cost: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) geolocation: Option<String>,
    /// 0 to 1.
    #[serde(deserialize_with = "figure")]
    pub(super) reliability: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) reliability2: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) verification: Option<String>,
    /// 1 in a data centre.
    #[serde(deserialize_with = "figure")]
    pub(super) hosting_type: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) direct_port_count: Option<f64>,
    /// Seconds until the host takes its machine back.
    #[serde(deserialize_with = "figure")]
    pub(super) duration: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) rentable: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(super) rented: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(super) external: Option<bool>,
}

impl Ask {
    /// Returns the id that goes into a create.
    pub(super) fn ask(&self) -> Option<u64> {
        self.ask_contract_id.or(self.id)
    }
}

/// One machine, from the list or by its id.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Instance {
    #[serde(deserialize_with = "id")]
    pub(super) id: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) actual_status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) intended_status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cur_state: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) next_state: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status_msg: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) label: Option<String>,
    /// Pairs; see [`Instance::variable`].
    #[serde(deserialize_with = "lenient")]
    pub(super) extra_env: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(super) image_uuid: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) image_runtype: Option<String>,
    #[serde(deserialize_with = "id")]
    pub(super) machine_id: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) gpu_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) num_gpus: Option<u32>,
    #[serde(deserialize_with = "figure")]
    pub(super) gpu_frac: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) cpu_cores_effective: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) cpu_ram: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) disk_space: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_bid: Option<bool>,
    #[serde(deserialize_with = "figure")]
    pub(super) min_bid: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) dph_base: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) dph_total: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) storage_cost: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) storage_total_cost: Option<f64>,
    /// Seconds since 1970.
    #[serde(deserialize_with = "figure")]
    pub(super) start_date: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) geolocation: Option<String>,
    /// Ends in a line end.
    #[serde(deserialize_with = "lenient")]
    pub(super) public_ipaddr: Option<String>,
    /// `{"22/tcp": [{"HostPort": "41022"}]}`; also null, empty, or a list of numbers.
    #[serde(deserialize_with = "lenient")]
    pub(super) ports: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(super) ssh_host: Option<String>,
    #[serde(deserialize_with = "figure")]
    pub(super) ssh_port: Option<f64>,
}

impl Instance {
    /// Returns a variable of the machine's environment. The environment comes as pairs, in the published document as texts
    /// `NAME=VALUE`; a map would be the third way.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        match self.extra_env.as_ref()? {
            Value::Array(entries) => entries.iter().find_map(|entry| match entry {
                Value::Array(pair) => {
                    let is_it = pair.first().and_then(Value::as_str) == Some(name);
                    pair.get(1).and_then(Value::as_str).filter(|_| is_it).map(str::to_owned)
                }
                Value::String(text) => {
                    text.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
                }
                _ => None,
            }),
            Value::Object(map) => map.get(name).and_then(Value::as_str).map(str::to_owned),
            _ => None,
        }
    }

    /// Whether the answer tells anything of the environment.
    pub(super) fn tells_env(&self) -> bool {
        match &self.extra_env {
            Some(Value::Array(entries)) => !entries.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            _ => false,
        }
    }
}

/// `GET /api/v0/users/current/`.
#[derive(Clone, Debug, Default)]
pub(super) struct User {
    /// Vast's id of the user.
    pub(super) id: Option<String>,
    /// USD to be spent.
    pub(super) credit: Option<f64>,
}

impl User {
    /// Reads the answer.
    pub(super) fn of(body: &Map<String, Value>) -> Self {
        User {
            id: body.get("id").and_then(id_of).map(|id| id.to_string()),
            credit: body.get("credit").and_then(Value::as_f64).filter(|credit| credit.is_finite()),
        }
    }
}
