//! What RunPod's API v2 accepts: request bodies and queries, checked as strictly as its own validator.
//!
//! Written from the OpenAPI document of `docs.runpod.io/api-reference-v2` (`CreatePodRequest` and the catalogue
//! parameters). Unknown fields anywhere are 422 there (`unevaluatedProperties: false`), and so here.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Limit of a JSON body in bytes, decided before authentication (API reference, `413`).
pub(super) const MOST_BODY: usize = 102_400;

/// Tier of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Cloud {
    Secure,
    Community,
}

impl Cloud {
    /// As on the wire.
    pub(super) fn word(self) -> &'static str {
        match self {
            Cloud::Secure => "SECURE",
            Cloud::Community => "COMMUNITY",
        }
    }
}

/// Body of `POST /v2/pods`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CreatePod {
    pub(super) name: String,
    pub(super) image: Option<String>,
    pub(super) template_id: Option<String>,
    pub(super) cloud: Option<Cloud>,
    pub(super) gpu: Option<CreateGpu>,
    pub(super) cpu: Option<CreateCpu>,
    #[serde(default)]
    pub(super) data_center_ids: Vec<String>,
    pub(super) disk: Option<i64>,
    #[serde(default)]
    pub(super) ports: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) mounts: Option<Mounts>,
    pub(super) args: Option<String>,
    #[serde(default)]
    pub(super) cmd: Vec<String>,
    #[serde(default)]
    pub(super) entrypoint: Vec<String>,
    #[serde(rename = "registry")]
    _registry: Option<String>,
    #[serde(default, rename = "globalNetworking")]
    _global_networking: bool,
    #[serde(default, rename = "startJupyter")]
    _start_jupyter: bool,
    #[serde(default)]
    pub(super) start_ssh: bool,
}

/// `gpu` of a create.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CreateGpu {
    pub(super) id: String,
    pub(super) count: Option<i64>,
    #[serde(default)]
    pub(super) allowed_cuda_versions: Vec<String>,
    pub(super) min_cuda_version: Option<String>,
    pub(super) min_ram_per_gpu: Option<i64>,
    pub(super) min_vcpu_count_per_gpu: Option<i64>,
}

/// `cpu` of a create; CPU pods are not played.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CreateCpu {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "vcpuCount")]
    _vcpu_count: i64,
}

/// `mounts` of a create.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mounts {
    persistent: Option<PersistentMount>,
    network: Option<Vec<NetworkMount>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PersistentMount {
    size: i64,
    #[serde(rename = "path")]
    _path: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NetworkMount {
    #[serde(rename = "volumeId")]
    _volume_id: String,
    #[serde(rename = "path")]
    _path: String,
}

/// Body of `POST /v2/pods/{id}/action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PodAction {
    pub(super) action: Action,
}

/// What can be done to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Start,
    Stop,
    Restart,
    Terminate,
}

/// Why a body is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// 422 with these entries in `errors`.
    Schema(Vec<String>),
    /// 400, a rule over several fields.
    Rule(&'static str),
    /// 400 with the capacity sentence although the client is at fault: `gpu.count` is missing
    /// (<https://github.com/runpod/runpod-mcp/issues/77>).
    CountMissing,
}

/// Reads a body, `null` being no value of any field but `registry`.
pub(super) fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let schema = |text: String| Refusal::Schema(vec![text]);
    let value: Value =
        serde_json::from_slice(body).map_err(|error| schema(format!("$: not JSON: {error}")))?;
    if !value.is_object() {
        return Err(schema("$: want object".into()));
    }
    let mut nulls = Vec::new();
    find_nulls("$", &value, &mut nulls);
    if !nulls.is_empty() {
        return Err(Refusal::Schema(nulls));
    }
    serde_json::from_value(value).map_err(|error| schema(like_validator(&error.to_string())))
}

fn find_nulls(at: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null if at != "$.registry" => found.push(format!("{at}: got null")),
        Value::Object(map) => map.iter().for_each(|(key, v)| find_nulls(&format!("{at}.{key}"), v, found)),
        Value::Array(items) => items.iter().for_each(|item| find_nulls(&format!("{at}[]"), item, found)),
        _ => {}
    }
}

/// Serde's sentence in the validator's words, as in the API reference's 422 examples.
fn like_validator(text: &str) -> String {
    let name = text.split('`').nth(1).unwrap_or("");
    if text.starts_with("unknown field") {
        format!("$: additional properties '{name}' not allowed")
    } else if text.starts_with("missing field") {
        format!("$: missing property '{name}'")
    } else {
        format!("$: {text}")
    }
}

impl CreatePod {
    /// The rules of the schema that types alone do not hold, then those of the handler.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let mut errors = Vec::new();
        let mut want = |good: bool, text: &str| {
            if !good {
                errors.push(text.to_owned());
            }
        };
        want(!self.name.is_empty(), "$.name: length must be >= 1");
        want(self.image.is_some() || self.template_id.is_some(), "$: missing property 'image'");
        want(self.disk.is_none_or(|disk| disk >= 1), "$.disk: must be >= 1");
        want(self.ports.iter().all(|port| port_ok(port)), "$.ports[]: want port/protocol");
        if let Some(gpu) = &self.gpu {
            want(gpu.count.is_none_or(|count| count >= 1), "$.gpu.count: must be >= 1");
            want(gpu.min_ram_per_gpu.is_none_or(|gb| gb >= 1), "$.gpu.minRamPerGpu: must be >= 1");
            want(gpu.min_vcpu_count_per_gpu.is_none_or(|n| n >= 1), "$.gpu.minVcpuCountPerGpu: must be >= 1");
            let versions = gpu.allowed_cuda_versions.iter().chain(&gpu.min_cuda_version);
            for version in versions {
                want(
                    dotted(version),
                    &format!("$.gpu: '{version}' does not match pattern '^\\\\d+\\\\.\\\\d+$'"),
                );
            }
        }
        if let Some(mounts) = &self.mounts {
            want(
                mounts.persistent.as_ref().is_none_or(|m| m.size >= 10),
                "$.mounts.persistent.size: must be >= 10",
            );
            want(mounts.network.as_ref().is_none_or(|n| n.len() <= 1), "$.mounts.network: at most 1 item");
        }
        if !errors.is_empty() {
            return Err(Refusal::Schema(errors));
        }
        if self.mounts.as_ref().is_some_and(|m| m.persistent.is_some() && m.network.is_some()) {
            return Err(Refusal::Rule("mounts.persistent and mounts.network are mutually exclusive"));
        }
        if self.gpu.is_some() == self.cpu.is_some() {
            return Err(Refusal::Rule("exactly one of gpu or cpu is required"));
        }
        let Some(gpu) = &self.gpu else { return Ok(()) };
        if gpu.min_cuda_version.is_some() && !gpu.allowed_cuda_versions.is_empty() {
            return Err(Refusal::Rule("minCudaVersion and allowedCudaVersions are mutually exclusive"));
        }
        if gpu.count.is_none() { Err(Refusal::CountMissing) } else { Ok(()) }
    }
}

fn port_ok(port: &str) -> bool {
    port.split_once('/').is_some_and(|(number, protocol)| {
        number.parse::<u16>().is_ok_and(|number| number > 0) && matches!(protocol, "tcp" | "http")
    })
}

/// `^\d+\.\d+$`
pub(super) fn dotted(version: &str) -> bool {
    version.split_once('.').is_some_and(|(major, minor)| digits(major) && digits(minor))
}

/// `^\d+(\.\d+)?$`, the form that the catalogue's floor allows.
pub(super) fn dotted_or_bare(version: &str) -> bool {
    dotted(version) || digits(version)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A version as a pair that compares by number, so 12.11 is above 12.2.
pub(super) fn version(text: &str) -> (u32, u32) {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}
