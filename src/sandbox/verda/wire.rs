//! What Verda accepts: bodies and tags, checked as strictly as its own validator, or more so.
//!
//! Written from the API document (`DeployInstancePublicDto` and its neighbours). `null` stands for an absent field,
//! which the official Python client relies on; an unknown field is refused.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{error, refuse};
use crate::sandbox::server::{Answer, Call};

/// Body of `POST /instances`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deploy {
    pub(super) instance_type: Option<String>,
    pub(super) image: Option<String>,
    pub(super) hostname: Option<String>,
    /// Required since 2026-03-19.
    pub(super) location_code: Option<String>,
    pub(super) ssh_key_ids: Option<OneOrMany>,
    pub(super) startup_script_id: Option<String>,
    pub(super) description: Option<String>,
    pub(super) tags: Option<Vec<TagBody>>,
    pub(super) os_volume: Option<OsVolume>,
    pub(super) volumes: Option<Vec<DataVolume>>,
    pub(super) existing_volumes: Option<Vec<String>>,
    pub(super) is_spot: Option<bool>,
    pub(super) contract: Option<String>,
    pub(super) pricing: Option<String>,
    pub(super) coupon: Option<String>,
}

/// One id or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    /// All of them.
    pub(super) fn list(self) -> Vec<String> {
        match self {
            OneOrMany::One(id) => vec![id],
            OneOrMany::Many(ids) => ids,
        }
    }
}

/// What becomes of a volume when its spot machine is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnSpot {
    #[default]
    KeepDetached,
    MoveToTrash,
    DeletePermanently,
}

/// `os_volume` of a create.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OsVolume {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) on_spot_discontinue: Option<OnSpot>,
    pub(super) tags: Option<Vec<TagBody>>,
}

/// One of `volumes` of a create.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DataVolume {
    pub(super) name: String,
    pub(super) size: u64,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) on_spot_discontinue: Option<OnSpot>,
    pub(super) tags: Option<Vec<TagBody>>,
}

/// A tag as it is sent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TagBody {
    pub(super) key: String,
    pub(super) value: Option<String>,
}

/// Body of `PUT /instances`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstanceAction {
    pub(super) action: String,
    pub(super) id: OneOrMany,
    pub(super) volume_ids: Option<Vec<String>>,
    pub(super) delete_permanently: Option<bool>,
}

/// Body of `POST /volumes`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateVolume {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) location_code: String,
    pub(super) size: u64,
    pub(super) name: String,
    pub(super) instance_id: Option<String>,
    pub(super) instance_ids: Option<Vec<String>>,
    pub(super) tags: Option<Vec<TagBody>>,
}

/// Body of `PUT /volumes`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VolumeAction {
    pub(super) action: String,
    pub(super) id: OneOrMany,
    pub(super) size: Option<u64>,
    pub(super) instance_id: Option<String>,
    pub(super) instance_ids: Option<Vec<String>>,
    pub(super) name: Option<String>,
    #[serde(rename = "type")]
    _kind: Option<String>,
    pub(super) is_permanent: Option<bool>,
    #[serde(rename = "location_code")]
    _location_code: Option<String>,
}

/// Body of `DELETE /volumes/{id}`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteVolume {
    pub(super) is_permanent: Option<bool>,
}

/// Body of `POST /ssh-keys`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddKey {
    pub(super) name: String,
    pub(super) key: String,
}

/// Body of `DELETE /ssh-keys`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteKeys {
    pub(super) keys: Vec<String>,
}

/// Body of `POST /scripts`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddScript {
    pub(super) name: String,
    pub(super) script: String,
}

/// Body of `DELETE /scripts`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteScripts {
    pub(super) scripts: Vec<String>,
}

/// Body of `POST /oauth2/token`; the refresh may carry the client's id and secret too, as the Go client sends them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenBody {
    pub(super) grant_type: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(super) refresh_token: Option<String>,
}

/// Reads a JSON body.
pub(super) fn read<T: DeserializeOwned>(call: &Call) -> Result<T, Box<Answer>> {
    if !call.header("content-type").starts_with("application/json") {
        return Err(refuse("the body must be application/json"));
    }
    let value: Value =
        serde_json::from_slice(&call.body).map_err(|error| refuse(&format!("not valid json: {error}")))?;
    if !value.is_object() {
        return Err(refuse("the body must be an object"));
    }
    serde_json::from_value(value).map_err(|error| refuse(&error.to_string()))
}

/// A tag on an instance or a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) value: String,
}

impl Tag {
    /// As JSON; a tag without a value has an empty one.
    pub(super) fn show(&self) -> Value {
        json!({"id": self.id, "key": self.key, "value": self.value})
    }
}

/// The sentence that refuses these tags, if any does (reference: at most 10, key 63, value 127 characters).
pub(super) fn tags_wrong(tags: &[TagBody]) -> Option<String> {
    if tags.len() > 10 {
        return Some("tags must contain no more than 10 elements".into());
    }
    for (index, tag) in tags.iter().enumerate() {
        if tag.key.is_empty() || tag.key.chars().count() > 63 {
            return Some("tag key must be 1 to 63 characters".into());
        }
        if tag.value.as_ref().is_some_and(|value| value.chars().count() > 127) {
            return Some("tag value must be at most 127 characters".into());
        }
        if tags[..index].iter().any(|other| other.key.eq_ignore_ascii_case(&tag.key)) {
            return Some(format!("tag {} is there twice", tag.key));
        }
    }
    None
}

/// The sentence that refuses this host name, if any does (reference and official command line).
pub(super) fn hostname_wrong(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > 60 {
        return Some("hostname must be 1 to 60 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Some("hostname must contain only letters, digits and hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        return Some("hostname must not start or end with a hyphen");
    }
    if !name.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return Some("hostname must contain at least one letter");
    }
    None
}

/// A word of the query that is `true` or `false`, under any of its names.
pub(super) fn flag(pairs: &[(String, String)], names: &[&str]) -> Result<bool, Box<Answer>> {
    let word = pairs.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.as_str());
    match word {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(refuse(&format!("{} must be true or false, not {other}", names[0]))),
    }
}

/// A part of the query under any of its names.
pub(super) fn find<'a>(pairs: &'a [(String, String)], names: &[&str]) -> Option<&'a str> {
    pairs.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.as_str())
}

/// `usd` or `eur`.
pub(super) fn currency(pairs: &[(String, String)]) -> Result<&'static str, Box<Answer>> {
    match find(pairs, &["currency"]) {
        None | Some("usd") => Ok("usd"),
        Some("eur") => Ok("eur"),
        Some(_) => Err(refuse("currency must be usd or eur")),
    }
}

/// One page of a list with its headers; `page` counts from 1, `pageSize` is at most 100.
pub(super) fn page(pairs: &[(String, String)], all: Vec<Value>) -> Answer {
    let number = |name: &str, default: usize| match find(pairs, &[name]) {
        None => Some(default),
        Some(text) => text.parse().ok().filter(|number| *number >= 1),
    };
    let (Some(page), Some(size)) = (number("page", 1), number("pageSize", 10).filter(|size| *size <= 100))
    else {
        return error(400, "invalid_request", "page must be at least 1, pageSize 1 to 100")
            .rejecting("a bad page");
    };
    let total = all.len();
    let rows: Vec<Value> = all.into_iter().skip((page - 1).saturating_mul(size)).take(size).collect();
    Answer::json(200, Value::Array(rows))
        .with("x-page", page.to_string())
        .with("x-page-size", size.to_string())
        .with("x-total-count", total.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names() {
        for good in ["dev", "a", "gpu-1", "A1"] {
            assert_eq!(hostname_wrong(good), None, "{good}");
        }
        for bad in ["", "-a", "a-", "1-2", "a.b", "a_b", &"a".repeat(61)] {
            assert!(hostname_wrong(bad).is_some(), "{bad}");
        }
    }
}
