//! What Google answers, as far as we read it (discovery document of the Compute Engine API v1,
//! `compute.googleapis.com/$discovery/rest?version=v1`). Enum words stay text: new ones come without a new version. 64-bit
//! integers are strings on the wire; a number is taken too.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::cloud::lenient::{lenient, lenient_list, lenient_object, lenient_objects};

/// Reads an integer that comes as a string or as a number, as text. For `#[serde(deserialize_with)]`.
pub(super) fn digits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// Returns a text that says something.
pub(super) fn told(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// Returns the last part of a link such as `https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a`. The host
/// of links is another one than that of the API.
pub(super) fn last(link: &str) -> &str {
    link.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// A machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Instance {
    #[serde(deserialize_with = "digits")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) zone: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status_message: Option<String>,
    /// RFC 3339, with Google's own offset.
    #[serde(deserialize_with = "lenient")]
    pub(super) creation_timestamp: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) machine_type: Option<String>,
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) guest_accelerators: Option<Vec<Accelerator>>,
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) disks: Option<Vec<AttachedDisk>>,
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) network_interfaces: Option<Vec<NetworkInterface>>,
    #[serde(deserialize_with = "lenient_object")]
    pub(super) scheduling: Option<Scheduling>,
    #[serde(deserialize_with = "lenient_object")]
    pub(super) resource_status: Option<ResourceStatus>,
    #[serde(deserialize_with = "lenient_object")]
    pub(super) tags: Option<NetworkTags>,
    #[serde(deserialize_with = "lenient")]
    pub(super) labels: Option<BTreeMap<String, Value>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) deletion_protection: Option<bool>,
}

/// GPUs of a machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Accelerator {
    #[serde(deserialize_with = "lenient")]
    pub(super) accelerator_type: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) accelerator_count: Option<u32>,
}

/// A disk of a machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AttachedDisk {
    #[serde(deserialize_with = "lenient")]
    pub(super) boot: Option<bool>,
    #[serde(deserialize_with = "digits")]
    pub(super) disk_size_gb: Option<String>,
}

/// A network interface of a machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NetworkInterface {
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) access_configs: Option<Vec<AccessConfig>>,
}

/// A public address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AccessConfig {
    #[serde(rename = "natIP", deserialize_with = "lenient")]
    pub(super) nat_ip: Option<String>,
}

/// How a machine was bought and when it ends.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Scheduling {
    #[serde(deserialize_with = "lenient")]
    pub(super) provisioning_model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) instance_termination_action: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) preemptible: Option<bool>,
    #[serde(deserialize_with = "lenient_object")]
    pub(super) max_run_duration: Option<Span>,
    #[serde(deserialize_with = "lenient")]
    pub(super) termination_time: Option<String>,
}

/// A span of time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Span {
    #[serde(deserialize_with = "digits")]
    pub(super) seconds: Option<String>,
}

/// What the host says about a machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceStatus {
    #[serde(deserialize_with = "lenient_object")]
    pub(super) scheduling: Option<StatusScheduling>,
}

/// When the host ends a machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StatusScheduling {
    #[serde(deserialize_with = "lenient")]
    pub(super) termination_timestamp: Option<String>,
}

/// Network tags.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NetworkTags {
    #[serde(deserialize_with = "lenient_list")]
    pub(super) items: Option<Vec<String>>,
}

/// A disk by itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Disk {
    #[serde(deserialize_with = "digits")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) zone: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "digits")]
    pub(super) size_gb: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) creation_timestamp: Option<String>,
    /// Links of the machines that it is attached to.
    #[serde(deserialize_with = "lenient_list")]
    pub(super) users: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) labels: Option<BTreeMap<String, Value>>,
}

/// A firewall rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Firewall {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) description: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) network: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) direction: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) disabled: Option<bool>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) source_ranges: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) source_tags: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) target_tags: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) target_service_accounts: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) allowed: Option<Vec<Allowed>>,
}

/// What a firewall rule lets in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Allowed {
    #[serde(rename = "IPProtocol", deserialize_with = "lenient")]
    pub(super) protocol: Option<String>,
    /// Ports and ranges; none at all means every port.
    #[serde(deserialize_with = "lenient_list")]
    pub(super) ports: Option<Vec<String>>,
}

/// An image.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Image {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "digits")]
    pub(super) disk_size_gb: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
}

/// What a machine publishes about itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GuestAttributes {
    #[serde(deserialize_with = "lenient_object")]
    pub(super) query_value: Option<GuestValues>,
}

/// The values of one name space.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GuestValues {
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) items: Option<Vec<GuestValue>>,
}

/// One value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GuestValue {
    #[serde(deserialize_with = "lenient")]
    pub(super) key: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) value: Option<String>,
}

/// A page of a list: in one scope, or over all zones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ListPage {
    /// A list, or a map from scope to lists.
    pub(super) items: Value,
    #[serde(deserialize_with = "lenient")]
    pub(super) next_page_token: Option<String>,
    /// Scopes of which nothing is known.
    #[serde(deserialize_with = "lenient_list")]
    pub(super) unreachables: Option<Vec<String>>,
}

/// Reads each entry of a list as a thing; an entry that is none is an error, as its absence would hide a machine.
pub(super) fn things<T: DeserializeOwned>(entries: Vec<Value>) -> Option<Vec<T>> {
    entries.into_iter().map(crate::cloud::lenient::object).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_come_as_strings_or_numbers_and_odd_fields_hide_nothing() {
        let read = |value: Value| serde_json::from_value::<Instance>(value).unwrap();
        let instance = read(
            json!({"id": "7240199231733014150", "status": 7, "labels": [], "disks": {"x": 1}, "new": {}}),
        );
        assert_eq!(instance.id.as_deref(), Some("7240199231733014150"));
        assert!(instance.status.is_none() && instance.labels.is_none() && instance.disks.is_none());
        assert_eq!(read(json!({"id": 42_u64})).id.as_deref(), Some("42"));
        assert!(read(json!({"id": null, "name": null})).id.is_none());
    }

    #[test]
    fn links_are_read_by_their_end() {
        assert_eq!(
            last("https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a"),
            "us-central1-a"
        );
        assert_eq!(last("zones/us-central1-a/machineTypes/g2-standard-4"), "g2-standard-4");
        assert_eq!(last(""), "");
    }
}
