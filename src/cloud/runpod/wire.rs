//! What RunPod answers, as far as we read it.
//!
//! Everything is optional and of any type: a field that is missing, null or of an unexpected type is read as none, so that
//! one odd row never hides the others. What may not be missing is decided where it is used. Enum words stay text.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::cloud::lenient::{lenient, lenient_list, lenient_object, lenient_objects, object};

/// `GET /v2/catalog/gpus`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GpuList {
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) gpus: Option<Vec<GpuType>>,
}

/// One GPU type with its stock, and `GET /v2/catalog/gpus/{id}`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GpuType {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) manufacturer: Option<String>,
    /// Memory of one GPU in GB.
    #[serde(deserialize_with = "lenient")]
    pub(super) memory: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) secure: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(super) community: Option<bool>,
    /// USD per hour for one GPU.
    #[serde(deserialize_with = "lenient_object")]
    pub(super) price: Option<Tiers<f64>>,
    /// GPUs in the largest machine.
    #[serde(deserialize_with = "lenient_object")]
    pub(super) max_count: Option<Tiers<u32>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) availability: Option<String>,
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) data_centers: Option<Vec<CenterStock>>,
}

/// A figure for each tier.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, bound = "T: Default + DeserializeOwned")]
pub(super) struct Tiers<T> {
    #[serde(deserialize_with = "lenient")]
    pub(super) secure: Option<T>,
    #[serde(deserialize_with = "lenient")]
    pub(super) community: Option<T>,
}

/// Stock in one data centre.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CenterStock {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) availability: Option<String>,
}

/// `GET /v2/catalog/datacenters`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DataCenterList {
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) data_centers: Option<Vec<DataCenter>>,
}

/// One data centre.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DataCenter {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) region: Option<String>,
}

/// `GET /v2/account/ssh-keys`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SshKeys {
    #[serde(deserialize_with = "lenient_list")]
    pub(super) keys: Option<Vec<String>>,
}

/// `GET /v2/pods`. Entries are read one by one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodList {
    #[serde(deserialize_with = "lenient")]
    pub(super) pods: Option<Vec<Value>>,
    /// Read by itself: what cannot be read here would cut the list short.
    pub(super) pagination: Option<Value>,
}

/// Where the list goes on; missing from older servers, whose list is one page. The one part that is read strictly.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Pagination {
    pub(super) next_cursor: Option<String>,
    pub(super) has_next_page: Option<bool>,
}

impl Pagination {
    /// Reads it; none if it is not what it should be.
    pub(super) fn of(value: Option<Value>) -> Option<Self> {
        match value {
            None | Some(Value::Null) => Some(Pagination::default()),
            Some(value) => object(value),
        }
    }
}

/// A pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Pod {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) env: Option<Map<String, Value>>,
    #[serde(deserialize_with = "lenient_object")]
    pub(super) gpu: Option<PodGpu>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cloud: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) data_center_id: Option<String>,
    /// Disk of the container in GB.
    #[serde(deserialize_with = "lenient")]
    pub(super) disk: Option<u32>,
    #[serde(deserialize_with = "lenient_object")]
    pub(super) ssh: Option<PodSsh>,
    /// Present for members of a cluster.
    #[serde(deserialize_with = "lenient")]
    pub(super) cluster: Option<Map<String, Value>>,
    /// USD per hour, whole pod.
    #[serde(deserialize_with = "lenient")]
    pub(super) cost: Option<f64>,
    #[serde(deserialize_with = "lenient_object")]
    pub(super) runtime: Option<Runtime>,
    /// RFC 3339.
    #[serde(deserialize_with = "lenient")]
    pub(super) created_at: Option<String>,
}

/// The GPUs of a pod, and what else the machine has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodGpu {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) count: Option<u32>,
    /// vCPUs of the whole pod.
    #[serde(deserialize_with = "lenient")]
    pub(super) vcpu_count: Option<f64>,
    /// Memory of the whole pod in GB.
    #[serde(deserialize_with = "lenient")]
    pub(super) memory: Option<f64>,
}

/// Ways to log in. The proxy is not read: it takes neither commands nor files.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodSsh {
    #[serde(deserialize_with = "lenient_object")]
    pub(super) direct: Option<SshEndpoint>,
}

/// One way to log in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SshEndpoint {
    #[serde(deserialize_with = "lenient")]
    pub(super) host: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) port: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) username: Option<String>,
}

/// What runs in a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Runtime {
    /// Seconds since the container started.
    #[serde(deserialize_with = "lenient")]
    pub(super) uptime: Option<f64>,
}

/// One event of a log stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LogLine {
    #[serde(deserialize_with = "lenient")]
    pub(super) line: Option<String>,
}

/// An error, RFC 9457.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Problem {
    #[serde(deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<u16>,
    #[serde(deserialize_with = "lenient")]
    pub(super) detail: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) errors: Option<Vec<String>>,
}

impl Problem {
    /// Reads the body of an answer with this status. Only RunPod's own counts: title, detail, and the status once more
    /// (docs.runpod.io/api-reference-v2, `ErrorResponse`). Any other JSON is a word of something in between.
    pub(super) fn of(status: u16, body: &[u8]) -> Option<Self> {
        let problem: Problem = object(serde_json::from_slice(body).ok()?)?;
        let own = problem.title.is_some() && problem.detail.is_some() && problem.status == Some(status);
        own.then_some(problem)
    }
}
