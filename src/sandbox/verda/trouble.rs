//! What goes wrong at Verda and nowhere else: on a call, and with an instance.
//!
//! As JSON a fault is `{"kind": "verda", "verda": "no_effect"}`, a script
//! `{"script": "verda", "verda": "evicted", "ms": 500}`.

use serde::{Deserialize, Serialize};

use crate::sandbox::faults::{FaultKind, When};
use crate::sandbox::scripts::Script;

/// What goes wrong with a call. They are played by the emulator, after who may and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verda", rename_all = "snake_case")]
pub enum VerdaFault {
    /// An error in Verda's form.
    Failure {
        /// HTTP status.
        status: u16,
        /// Its `code`.
        code: String,
        /// Its `message`.
        message: String,
        /// Whether the request takes effect all the same.
        #[serde(default)]
        when: When,
    },
    /// `instance_action`: 207 with an error for every instance, and nothing is done.
    ItemsFail {
        /// The item's `statusCode`.
        status: u16,
        /// The item's `error`.
        error: String,
    },
    /// `instance_action`, `delete_volume`, `delete_key`: answered as done, and nothing is done.
    NoEffect,
    /// `instance_action`: the machine goes, and its volumes stay detached, whatever was asked
    /// (<https://github.com/verda-cloud/sdk-python/issues/14>).
    VolumesStay,
    /// `instance_action`: volumes go to the trash although they were to go for good
    /// (<https://github.com/dstackai/dstack/pull/3734>).
    VolumesTrashed,
    /// `create_instance`: neither the instance nor its volumes carry the tags that were sent.
    TagsLost,
    /// Catalogue calls and `get_instance`: prices are in euros.
    Euros,
}

impl VerdaFault {
    /// No capacity, as the reference has it.
    pub fn no_capacity() -> VerdaFault {
        Self::failure(503, "service_unavailable", "No capacity available")
    }

    /// The image does not fit the type (<https://github.com/dstackai/dstack/issues/3067>).
    pub fn wrong_image() -> VerdaFault {
        Self::failure(400, "invalid_request", super::WRONG_IMAGE)
    }

    /// A quota is used up; the message is such as `Volume limit exceeded`.
    pub fn quota(message: &str) -> VerdaFault {
        Self::failure(400, "invalid_request", message)
    }

    /// The balance is too low.
    pub fn no_funds() -> VerdaFault {
        Self::failure(402, "insufficient_funds", "Not enough funds")
    }

    /// A delete that comes too early (<https://github.com/dstackai/dstack/issues/3790>).
    pub fn provisioning() -> VerdaFault {
        Self::failure(403, "forbidden_action", super::STILL_PROVISIONING)
    }

    /// A token that must not do this.
    pub fn scope() -> VerdaFault {
        Self::failure(403, "forbidden_action", "Insufficient scope")
    }

    /// 500 although the request took effect (<https://github.com/ahelme/comfyume-v1/issues/230>).
    pub fn server_error_after() -> VerdaFault {
        VerdaFault::Failure {
            status: 500,
            code: "server_error".into(),
            message: "Internal server error".into(),
            when: When::After,
        }
    }

    fn failure(status: u16, code: &str, message: &str) -> VerdaFault {
        VerdaFault::Failure { status, code: code.to_owned(), message: message.to_owned(), when: When::Before }
    }

    /// Name in records.
    pub(in crate::sandbox) fn word(&self) -> &'static str {
        match self {
            VerdaFault::Failure { .. } => "failure",
            VerdaFault::ItemsFail { .. } => "items_fail",
            VerdaFault::NoEffect => "no_effect",
            VerdaFault::VolumesStay => "volumes_stay",
            VerdaFault::VolumesTrashed => "volumes_trashed",
            VerdaFault::TagsLost => "tags_lost",
            VerdaFault::Euros => "euros",
        }
    }
}

impl From<VerdaFault> for FaultKind {
    fn from(fault: VerdaFault) -> FaultKind {
        FaultKind::Verda(fault)
    }
}

/// How an instance behaves, where that is so at Verda only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verda", rename_all = "snake_case")]
pub enum VerdaScript {
    /// Its boot ends with this status in place of `running`.
    EndsAs {
        /// Status word, such as `no_capacity`, `error`, `installation_failed`, `offline`.
        word: String,
        /// Milliseconds after the create.
        ms: u64,
        /// `error_message` of the journal's event.
        #[serde(default)]
        error: Option<String>,
        /// Whether there is an OS volume that the instance does not tell of.
        #[serde(default)]
        hidden_volume: bool,
    },
    /// Shows this word in place of `provisioning`, and boots as usual.
    BootsAs {
        /// Status word, which need not be documented.
        word: String,
    },
    /// Runs, and has no address for so long (`ip` is null).
    LateAddress {
        /// Milliseconds after the boot.
        ms: u64,
    },
    /// Refuses this many deletes as if it were still provisioning.
    RefusesDelete {
        /// How many.
        times: u32,
    },
    /// Somebody orders its capacity on demand; only for spot.
    Evicted {
        /// Milliseconds after the create.
        ms: u64,
    },
}

impl VerdaScript {
    /// Accepted, and then there is no room after all.
    pub fn no_capacity() -> VerdaScript {
        Self::ends("no_capacity", None)
    }

    /// The image could not be installed.
    pub fn installation_failed() -> VerdaScript {
        Self::ends("installation_failed", None)
    }

    /// Accepted, and then the GPU quota is used up, which only the journal tells.
    pub fn quota() -> VerdaScript {
        Self::ends("error", Some("GPU_QUOTA_EXCEEDED".into()))
    }

    fn ends(word: &str, error: Option<String>) -> VerdaScript {
        VerdaScript::EndsAs { word: word.to_owned(), ms: 150, error, hidden_volume: false }
    }
}

impl From<VerdaScript> for Script {
    fn from(script: VerdaScript) -> Script {
        Script::Verda(script)
    }
}
