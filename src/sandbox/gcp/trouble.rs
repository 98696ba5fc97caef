//! What goes wrong at Google Cloud and nowhere else: on a call, in an operation, and with an instance.
//!
//! As JSON a fault is `{"kind": "gcp", "gcp": "no_effect"}`, a script `{"script": "gcp", "gcp": "preempted", "ms": 500}`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::sandbox::faults::{FaultKind, When};
use crate::sandbox::scripts::Script;

/// What is there after an insert whose operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcpLeaves {
    /// Nothing: the instance was seen for a moment.
    #[default]
    Nothing,
    /// The instance, which lives and costs.
    Instance,
    /// The boot disk alone.
    Disk,
}

/// How an operation ends that was accepted and then failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GcpOperationError {
    /// `httpErrorStatusCode`.
    pub status: u16,
    /// `error.errors[0].code`.
    pub code: String,
    /// Its `message`; `{zone}` and `{region}` stand for the machine's, `{project}` for the project.
    pub message: String,
    /// What `zonesAvailable` names; absent is no details at all.
    #[serde(default)]
    pub zones_available: Option<Vec<String>>,
    /// `errorDetails[0].quotaInfo`.
    #[serde(default)]
    pub quota_info: Option<Value>,
    /// `insert_instance`: what stays.
    #[serde(default)]
    pub leaves: GcpLeaves,
}

impl GcpOperationError {
    /// Any error without details.
    pub fn plain(status: u16, code: &str, message: &str) -> GcpOperationError {
        GcpOperationError {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            zones_available: None,
            quota_info: None,
            leaves: GcpLeaves::Nothing,
        }
    }

    /// No capacity in the zone, without details.
    pub fn exhausted() -> GcpOperationError {
        Self::out_of("ZONE_RESOURCE_POOL_EXHAUSTED")
    }

    /// No capacity under one of its other names, such as `STOCKOUT` or `RESOURCE_POOL_EXHAUSTED`.
    pub fn out_of(code: &str) -> GcpOperationError {
        let text = "The zone 'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request.  Try a different zone, or try again later.";
        Self::plain(503, code, text)
    }

    /// No capacity, with zones that have some (<https://github.com/kubernetes/k8s.io/issues/9834>).
    pub fn exhausted_but(zones: &[&str]) -> GcpOperationError {
        let text = "The zone 'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request.  '(resource type:compute)'.";
        let zones = zones.iter().map(|zone| (*zone).to_owned()).collect();
        GcpOperationError {
            zones_available: Some(zones),
            ..Self::plain(503, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", text)
        }
    }

    /// A quota is used up; without a region it is that of the whole project.
    pub fn quota(metric: &str, limit: f64, region: Option<&str>) -> GcpOperationError {
        let place = match region {
            Some(region) => format!("in region {region}."),
            None => "globally.".into(),
        };
        let small = metric.to_lowercase();
        let dimensions = match region {
            Some(region) => json!({"region": region}),
            None => json!({"global": "global"}),
        };
        let scope = if region.is_some() { "per-project-region" } else { "per-project" };
        let info = json!({"metricName": format!("compute.googleapis.com/{small}"),
                          "limitName": format!("{}-{scope}", metric.replace('_', "-")),
                          "dimensions": dimensions, "limit": limit});
        let text = format!("Quota '{metric}' exceeded.  Limit: {limit:.1} {place}");
        GcpOperationError { quota_info: Some(info), ..Self::plain(403, "QUOTA_EXCEEDED", &text) }
    }

    /// Something that the request names is not there, or not any more.
    pub fn not_found() -> GcpOperationError {
        Self::plain(404, "RESOURCE_NOT_FOUND", "The resource 'projects/{project}/zones/{zone}' was not found")
    }

    /// The same, and this stays.
    #[must_use]
    pub fn leaving(mut self, leaves: GcpLeaves) -> GcpOperationError {
        self.leaves = leaves;
        self
    }
}

/// What goes wrong with a call. They are played by the emulator, after who may and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "gcp", rename_all = "snake_case")]
pub enum GcpFault {
    /// An error in Google's form.
    Failure {
        /// HTTP status.
        status: u16,
        /// `error.errors[0].reason`.
        reason: String,
        /// `error.message`.
        message: String,
        /// Whether the request takes effect all the same.
        #[serde(default)]
        when: When,
    },
    /// The call is accepted, and its operation ends with this.
    Late {
        /// How.
        error: GcpOperationError,
    },
    /// The call is carried out, and its operation is never found by its name.
    OperationLost,
    /// The operation takes so much longer.
    OperationSlow {
        /// Milliseconds.
        ms: u64,
    },
    /// Deletes: the operation ends well, and nothing is done.
    NoEffect,
    /// `delete_instance`: the boot disk stays, with the warning `RESOURCE_NOT_DELETED`.
    DiskStays,
    /// `insert_instance`: neither the instance nor its disk carries the labels that were sent.
    LabelsLost,
    /// Lists over all zones: one zone does not answer, and what is there is not told.
    Unreachable {
        /// Its name.
        zone: String,
    },
    /// `get_project`, `get_region`: `quotaStatusWarning` in place of quotas.
    QuotasHidden,
}

impl GcpFault {
    /// An error before any effect.
    pub fn failure(status: u16, reason: &str, message: &str) -> GcpFault {
        GcpFault::Failure {
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
            when: When::Before,
        }
    }

    /// The operation of an insert ends so.
    pub fn late(error: GcpOperationError) -> GcpFault {
        GcpFault::Late { error }
    }

    /// No capacity, told at once (<https://github.com/scylladb/scylla-cluster-tests/issues/12477>).
    pub fn no_capacity() -> GcpFault {
        let text = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: The zone does not have enough resources available to fulfill the request.";
        Self::failure(503, "insufficientCapacity", text)
    }

    /// A quota is used up, told at once.
    pub fn quota(metric: &str, limit: f64, region: &str) -> GcpFault {
        let text = format!("Quota '{metric}' exceeded.  Limit: {limit:.1} in region {region}.");
        Self::failure(403, "quotaExceeded", &text)
    }

    /// Too many calls, in Google's older form.
    pub fn rate_limit() -> GcpFault {
        Self::failure(403, "rateLimitExceeded", "Rate Limit Exceeded")
    }

    /// Something is still being changed.
    pub fn not_ready() -> GcpFault {
        Self::failure(400, "resourceNotReady", "The resource is not ready")
    }

    /// A policy of the organisation.
    pub fn policy(constraint: &str) -> GcpFault {
        let text = format!("Constraint constraints/{constraint} violated for project 123456789012.");
        Self::failure(412, "conditionNotMet", &text)
    }

    /// 503 although the request took effect.
    pub fn server_error_after() -> GcpFault {
        GcpFault::Failure {
            status: 503,
            reason: "backendError".into(),
            message: "Internal error. Please try again or contact Google Support.".into(),
            when: When::After,
        }
    }

    /// Name in records.
    pub(in crate::sandbox) fn word(&self) -> &'static str {
        match self {
            GcpFault::Failure { .. } => "failure",
            GcpFault::Late { .. } => "late",
            GcpFault::OperationLost => "operation_lost",
            GcpFault::OperationSlow { .. } => "operation_slow",
            GcpFault::NoEffect => "no_effect",
            GcpFault::DiskStays => "disk_stays",
            GcpFault::LabelsLost => "labels_lost",
            GcpFault::Unreachable { .. } => "unreachable",
            GcpFault::QuotasHidden => "quotas_hidden",
        }
    }
}

impl From<GcpFault> for FaultKind {
    fn from(fault: GcpFault) -> FaultKind {
        FaultKind::Gcp(fault)
    }
}

/// How an instance behaves, where that is so at Google Cloud only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "gcp", rename_all = "snake_case")]
pub enum GcpScript {
    /// Shows this word in place of `STAGING`, and boots as usual.
    BootsAs {
        /// Status word, which need not be documented.
        word: String,
    },
    /// Ends with this status and stays.
    EndsAs {
        /// Status word, such as `TERMINATED`, `SUSPENDED`, `REPAIRING`.
        word: String,
        /// Milliseconds after the insert.
        ms: u64,
    },
    /// Runs, and has no `natIP` for so long.
    LateAddress {
        /// Milliseconds after `RUNNING`.
        ms: u64,
    },
    /// Publishes its host keys so much after sshd is up.
    LateHostKeys {
        /// Milliseconds.
        ms: u64,
    },
    /// Never publishes its host keys; the serial console does.
    NoHostKeys,
    /// Publishes a host key that is not the one that sshd has.
    OtherHostKey,
    /// Is preempted; only for spot.
    Preempted {
        /// Milliseconds after the insert.
        ms: u64,
    },
    /// Refuses this many deletes with `resourceNotReady`.
    RefusesDelete {
        /// How many.
        times: u32,
    },
    /// `maxRunDuration` is taken and forgotten.
    ForgetsEnd,
}

impl From<GcpScript> for Script {
    fn from(script: GcpScript) -> Script {
        Script::Gcp(script)
    }
}
