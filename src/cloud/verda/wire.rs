//! What Verda answers, as far as we read it (`api.verda.com/v1/openapi.json`). Enum words stay text: the provider adds new
//! ones without a new version.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::cloud::lenient::{lenient, lenient_list};
use crate::model::money::Usd;

/// Reads an amount that comes as a string (`"1.964"`) or as a number.
fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => number.as_f64().and_then(Usd::from_f64),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// `POST /v1/oauth2/token`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenAnswer {
    #[serde(deserialize_with = "lenient")]
    pub(super) access_token: Option<String>,
    /// Seconds.
    #[serde(deserialize_with = "lenient")]
    pub(super) expires_in: Option<f64>,
}

/// An error body.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Problem {
    #[serde(deserialize_with = "lenient")]
    pub(super) code: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Option<String>,
}

/// One entry of `GET /v1/instance-types`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TypeRow {
    #[serde(deserialize_with = "lenient")]
    pub(super) instance_type: Option<String>,
    /// Whole machine, per hour, in `currency`.
    #[serde(deserialize_with = "amount")]
    pub(super) price_per_hour: Option<Usd>,
    #[serde(deserialize_with = "amount")]
    pub(super) spot_price: Option<Usd>,
    #[serde(deserialize_with = "lenient")]
    pub(super) currency: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) gpu: Option<Gpus>,
    /// Over all GPUs.
    #[serde(deserialize_with = "lenient")]
    pub(super) gpu_memory: Option<Size>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cpu: Option<Cores>,
    #[serde(deserialize_with = "lenient")]
    pub(super) memory: Option<Size>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) manufacturer: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) supported_os: Option<Vec<String>>,
}

/// The GPUs of a type or machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Gpus {
    /// `1x H100 SXM5 80GB`; empty where there are none.
    #[serde(deserialize_with = "lenient")]
    pub(super) description: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) number_of_gpus: Option<u32>,
}

/// An amount of memory.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Size {
    #[serde(deserialize_with = "lenient")]
    pub(super) size_in_gigabytes: Option<f64>,
}

/// The vCPUs of a type or machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cores {
    #[serde(deserialize_with = "lenient")]
    pub(super) number_of_cores: Option<f64>,
}

/// One entry of `GET /v1/instance-availability`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stock {
    #[serde(deserialize_with = "lenient")]
    pub(super) location_code: Option<String>,
    /// Instance types.
    #[serde(deserialize_with = "lenient_list")]
    pub(super) availabilities: Option<Vec<String>>,
}

/// One entry of `GET /v1/locations`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Location {
    #[serde(deserialize_with = "lenient")]
    pub(super) code: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) country_code: Option<String>,
}

/// One entry of `GET /v1/volume-types`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct VolumeType {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) price: Option<VolumePrice>,
}

/// What a volume costs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct VolumePrice {
    #[serde(deserialize_with = "amount")]
    pub(super) price_per_month_per_gb: Option<Usd>,
    /// The older name.
    #[serde(deserialize_with = "amount")]
    pub(super) monthly_per_gb: Option<Usd>,
    #[serde(deserialize_with = "lenient")]
    pub(super) currency: Option<String>,
}

/// One entry of `GET /v1/images`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Image {
    #[serde(deserialize_with = "lenient")]
    pub(super) image_type: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_default: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_cluster: Option<bool>,
}

/// A tag on a machine or volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tag {
    #[serde(deserialize_with = "lenient")]
    pub(super) key: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) value: Option<String>,
}

/// A machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Instance {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) ip: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    /// RFC 3339.
    #[serde(deserialize_with = "lenient")]
    pub(super) created_at: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) gpu: Option<Gpus>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cpu: Option<Cores>,
    #[serde(deserialize_with = "lenient")]
    pub(super) memory: Option<Size>,
    #[serde(deserialize_with = "lenient")]
    pub(super) hostname: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) description: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) ssh_key_ids: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) tags: Option<Vec<Tag>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) location: Option<String>,
    /// Whether for the whole machine or for one GPU is not clear; with one GPU it is both.
    #[serde(deserialize_with = "amount")]
    pub(super) price_per_hour: Option<Usd>,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_spot: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(super) instance_type: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) os_volume_id: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) volume_ids: Option<Vec<String>>,
}

/// A volume, in the list or in the trash.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Volume {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    /// Effectively GiB.
    #[serde(deserialize_with = "lenient")]
    pub(super) size: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) created_at: Option<String>,
    #[serde(deserialize_with = "amount")]
    pub(super) base_hourly_cost: Option<Usd>,
    #[serde(deserialize_with = "lenient")]
    pub(super) location: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_permanently_deleted: Option<bool>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) tags: Option<Vec<Tag>>,
}

/// An ssh key object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeyRow {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
}

/// What became of an action for one machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ActionResult {
    #[serde(deserialize_with = "lenient")]
    pub(super) instance_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status_code: Option<u16>,
}

/// One event of the journal (beta).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(deserialize_with = "lenient")]
    pub(super) action_code: Option<String>,
    /// Who did it; none for the provider itself.
    #[serde(deserialize_with = "lenient")]
    pub(super) actor_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) project_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) error_message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) properties: Option<EventProperties>,
}

/// What an event tells beside.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventProperties {
    #[serde(deserialize_with = "lenient")]
    pub(super) delete_reason: Option<String>,
}

/// Whether a value read from an answer says something.
pub(super) fn told(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// Reads what is one object, or an array of one: documents and official clients disagree about it.
pub(super) fn one<T: DeserializeOwned>(value: Value) -> Option<T> {
    let value = match value {
        Value::Array(mut items) if items.len() == 1 => items.remove(0),
        other => other,
    };
    value.is_object().then(|| serde_json::from_value(value).ok()).flatten()
}
