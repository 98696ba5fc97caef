//! Parts of requests that several calls judge alike: labels, metadata, scheduling.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::names::{is_label_key, is_label_value};
use super::{fail, invalid};
use crate::sandbox::server::Answer;

/// Good, or the refusal.
pub(super) type Verdict<T> = Result<T, Box<Answer>>;

/// A 400 that no correct client gets.
pub(super) fn bad<T>(text: &str) -> Verdict<T> {
    Err(Box::new(invalid(text)))
}

/// A field is missing.
pub(super) fn required<T>(field: &str) -> Verdict<T> {
    let text = format!("Required field '{field}' not specified");
    Err(Box::new(fail(400, "required", &text).rejecting(text)))
}

fn texts(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Labels as they may be.
pub(super) fn labels(value: &Value, field: &str) -> Verdict<BTreeMap<String, String>> {
    let labels = texts(value);
    if labels.len() > 64 {
        return bad(&format!("Invalid value for field '{field}': too many labels"));
    }
    for (key, value) in &labels {
        if !is_label_key(key) {
            return bad(&format!(
                "Invalid label key '{key}' in field '{field}'. Keys must start with a lowercase character and hold only lowercase letters, digits, underscores and dashes, at most 63."
            ));
        }
        if !is_label_value(value) {
            return bad(&format!(
                "Invalid value for field '{field}': '{value}'. Label value '{value}' violates format constraints. The value can only contain lowercase letters, numeric characters, underscores and dashes. The value can be at most 63 characters long."
            ));
        }
    }
    Ok(labels)
}

/// The items of metadata as they may be.
pub(super) fn metadata(value: &Value) -> Verdict<Vec<(String, String)>> {
    let items = value["items"].as_array().cloned().unwrap_or_default();
    let mut kept: Vec<(String, String)> = Vec::new();
    for item in &items {
        let (key, text) =
            (item["key"].as_str().unwrap_or_default(), item["value"].as_str().unwrap_or_default());
        if kept.iter().any(|(known, _)| known == key) {
            return bad(&format!(
                "Invalid value for field 'metadata.items[].key': '{key}'. Metadata has duplicate keys: {key}"
            ));
        }
        if text.len() > 256 * 1024 {
            return bad(&format!(
                "Value for field 'metadata.items[].value' is too large: maximum size 262144 character(s); actual size {}.",
                text.len()
            ));
        }
        kept.push((key.to_owned(), text.to_owned()));
    }
    if kept.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() > 512 * 1024 {
        return bad("Metadata is too large: at most 512 KB in all.");
    }
    Ok(kept)
}

/// Scheduling as it is shown, whether it is spot, and how long it lasts.
pub(super) fn scheduling(sent: &Value, gpus: bool) -> Verdict<(Map<String, Value>, bool, Option<Duration>)> {
    let model = sent["provisioningModel"].as_str().unwrap_or(if sent["preemptible"] == true {
        "SPOT"
    } else {
        "STANDARD"
    });
    let spot = match model {
        "SPOT" => true,
        "STANDARD" => false,
        _ => {
            return bad(&format!(
                "Invalid value for field 'resource.scheduling.provisioningModel': '{model}'. The sandbox plays SPOT and STANDARD."
            ));
        }
    };
    let maintenance = sent["onHostMaintenance"].as_str();
    let restart = sent["automaticRestart"].as_bool();
    let action = sent["instanceTerminationAction"].as_str();
    let seconds =
        |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok()).or_else(|| value.as_u64());
    let lasts = seconds(&sent["maxRunDuration"]["seconds"]);
    if sent["maxRunDuration"].is_object()
        && !lasts.is_some_and(|seconds| (30..=120 * 24 * 3600).contains(&seconds))
    {
        return bad(
            "Invalid value for field 'resource.scheduling.maxRunDuration': must be at least 30 seconds and at most 120 days.",
        );
    }
    if spot && restart == Some(true) {
        return bad(
            "Invalid value for field 'resource.scheduling.automaticRestart': 'true'. Automatic restart must be disabled when preemptible is enabled.",
        );
    }
    if spot && maintenance == Some("MIGRATE") {
        return bad(
            "Invalid value for field 'resource.scheduling.onHostMaintenance': 'MIGRATE'. Scheduling must be TERMINATE when preemptible is enabled.",
        );
    }
    if gpus && !spot && maintenance != Some("TERMINATE") {
        let text = "Instances with guest accelerators do not support live migration.";
        return Err(Box::new(fail(400, "badRequest", text).rejecting(text)));
    }
    if action.is_some() && !spot && lasts.is_none() {
        return bad(
            "Invalid value for field 'resource.scheduling.instanceTerminationAction': instanceTerminationAction is allowed only for SPOT instances and instances with a maximum run duration.",
        );
    }
    if lasts.is_some() && action.is_none() {
        return bad(
            "Invalid value for field 'resource.scheduling.instanceTerminationAction': it is required with maxRunDuration.",
        );
    }
    let mut shown = json!({
        "onHostMaintenance": maintenance.unwrap_or(if spot { "TERMINATE" } else { "MIGRATE" }),
        "automaticRestart": restart.unwrap_or(!spot), "preemptible": spot, "provisioningModel": model,
    });
    if spot || action.is_some() {
        shown["instanceTerminationAction"] = json!(action.unwrap_or("STOP"));
    }
    if let Some(seconds) = lasts {
        shown["maxRunDuration"] = json!({"seconds": seconds.to_string()});
    }
    Ok((shown.as_object().cloned().unwrap_or_default(), spot, lasts.map(Duration::from_secs)))
}
