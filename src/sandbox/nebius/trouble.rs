//! What goes wrong at Nebius and nowhere else: on a call, and with an instance.
//!
//! As JSON a fault is `{"kind": "nebius", "nebius": "no_effect"}`, a script
//! `{"script": "nebius", "nebius": "preempted", "ms": 500}`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::status::Trouble;
use crate::sandbox::faults::{FaultKind, When};
use crate::sandbox::grpc::Code;
use crate::sandbox::scripts::Script;

/// What goes wrong with a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "nebius", rename_all = "snake_case")]
pub enum NebiusFault {
    /// An error in Nebius's form.
    Failure {
        /// Status code of gRPC.
        code: u32,
        /// Its sentence.
        message: String,
        /// `nebius.common.v1.ServiceError` as JSON, such as `{"service": "compute", "code": "QuotaFailure", ...}`.
        #[serde(default)]
        detail: Value,
        /// Whether the request takes effect all the same.
        #[serde(default)]
        when: When,
    },
    /// The connection is reset after the call has taken effect, with all other calls that are on it.
    Disconnect,
    /// Takes effect; the answer is a message without any field.
    Hollow,
    /// Answered as done, and nothing is done: deletes.
    NoEffect,
    /// `create_instance`: neither the instance nor its disk carries the labels that were sent.
    LabelsLost,
    /// `create_instance`: the operation cannot be found from the next call on.
    OperationLost,
    /// `delete_instance`: the instance goes, and its disk stays, detached
    /// (<https://github.com/skypilot-org/skypilot/issues/6596>).
    DiskStays,
}

impl NebiusFault {
    /// No hardware, told at once.
    pub fn no_capacity() -> NebiusFault {
        Self::of(&Trouble::no_capacity("gpu-h100-sxm"))
    }

    /// A quota is used up, which only the details tell: code and kind of sentence are those of [`NebiusFault::no_capacity`].
    pub fn quota(name: &str) -> NebiusFault {
        Self::of(&Trouble::quota(name, 8, 9))
    }

    /// A quota is used up, which only the sentence tells
    /// (<https://github.com/dstackai/dstack/blob/master/src/dstack/_internal/core/backends/nebius/compute.py>).
    pub fn quota_by_text() -> NebiusFault {
        Self::of(&Trouble::plain(Code::UNKNOWN, "Quota limit exceeded"))
    }

    /// The account must not do this.
    pub fn denied(resource: &str) -> NebiusFault {
        Self::of(&Trouble::denied(resource))
    }

    /// The token is not accepted.
    pub fn unauthenticated() -> NebiusFault {
        Self::of(&Trouble::unauthenticated("The token has expired"))
    }

    /// Another operation is under way.
    pub fn conflict() -> NebiusFault {
        Self::of(&Trouble::conflict("computeoperation-e00other", "computeinstance-e00other"))
    }

    /// A status code alone, without details.
    pub fn code(code: u32, message: &str) -> NebiusFault {
        Self::of(&Trouble::plain(Code(code), message))
    }

    /// The same failure after the request has taken effect.
    #[must_use]
    pub fn after(self) -> NebiusFault {
        match self {
            NebiusFault::Failure { code, message, detail, .. } => {
                NebiusFault::Failure { code, message, detail, when: When::After }
            }
            other => other,
        }
    }

    fn of(trouble: &Trouble) -> NebiusFault {
        NebiusFault::Failure {
            code: trouble.code.0,
            message: trouble.message.clone(),
            detail: trouble.detail.clone(),
            when: When::Before,
        }
    }

    /// Name in records.
    pub(in crate::sandbox) fn word(&self) -> &'static str {
        match self {
            NebiusFault::Failure { .. } => "failure",
            NebiusFault::Disconnect => "disconnect",
            NebiusFault::Hollow => "hollow",
            NebiusFault::NoEffect => "no_effect",
            NebiusFault::LabelsLost => "labels_lost",
            NebiusFault::OperationLost => "operation_lost",
            NebiusFault::DiskStays => "disk_stays",
        }
    }
}

impl From<NebiusFault> for FaultKind {
    fn from(fault: NebiusFault) -> FaultKind {
        FaultKind::Nebius(fault)
    }
}

/// Why a start fails after the create was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateCause {
    /// `NotEnoughResources`.
    Capacity,
    /// `QuotaFailure`.
    Quota,
    /// A quota, told by the sentence alone.
    QuotaText,
    /// INTERNAL.
    Internal,
    /// Nothing is told: the operation ends well, and the instance is `STOPPED`.
    Silent,
}

impl LateCause {
    pub(super) fn trouble(self, platform: &str) -> Box<Trouble> {
        match self {
            LateCause::Capacity => Trouble::no_capacity(platform),
            LateCause::Quota => Trouble::quota("compute.instance.gpu.h100", 8, 9),
            LateCause::QuotaText => Trouble::plain(Code::RESOURCE_EXHAUSTED, "Quota limit exceeded"),
            LateCause::Internal => Trouble::internal("internal error"),
            LateCause::Silent => Trouble::plain(Code::OK, ""),
        }
    }
}

/// How an instance behaves, where that is so at Nebius only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "nebius", rename_all = "snake_case")]
pub enum NebiusScript {
    /// Its start fails: it stays `STOPPED`, with its disk, and the operation says why.
    LateFailure {
        /// Milliseconds after the create.
        ms: u64,
        /// Why.
        cause: LateCause,
    },
    /// Somebody pays more, or on demand; only for preemptible instances.
    Preempted {
        /// Milliseconds after the create.
        ms: u64,
    },
    /// Runs, and has no public address for so long.
    LateAddress {
        /// Milliseconds after it would have come.
        ms: u64,
    },
    /// Refuses this many deletes, as when a managed disk cannot be deleted.
    RefusesDelete {
        /// How many.
        times: u32,
    },
    /// Runs, and cloud-init never comes to an end: sshd never answers.
    Hangs,
}

impl NebiusScript {
    /// Accepted, and then there is no room after all.
    pub fn no_capacity() -> NebiusScript {
        NebiusScript::LateFailure { ms: 150, cause: LateCause::Capacity }
    }

    /// Accepted, and then a quota is used up.
    pub fn quota() -> NebiusScript {
        NebiusScript::LateFailure { ms: 150, cause: LateCause::Quota }
    }
}

impl From<NebiusScript> for Script {
    fn from(script: NebiusScript) -> Script {
        Script::Nebius(script)
    }
}
