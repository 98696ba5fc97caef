//! What goes wrong at Vast and nowhere else: on a call, and with an instance.
//!
//! As JSON a fault is `{"kind": "vast", "vast": "ask_gone", "form": "gone"}`, a script
//! `{"script": "vast", "vast": "outbid", "ms": 500}`.

use serde::{Deserialize, Serialize};

use crate::sandbox::faults::{FaultKind, When};
use crate::sandbox::scripts::{LoginTrouble, Script};

/// What goes wrong with a call. They are played by the emulator, so its checks come first where a fault is
/// played after the effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "vast", rename_all = "snake_case")]
pub enum VastFault {
    /// `create`: somebody else was quicker. The offer is in no search from then on.
    AskGone {
        /// How the answer says so.
        form: GoneForm,
    },
    /// `create`: refused, but a stopped instance is there whose disk costs money; its id is `new_contract`
    /// (<https://github.com/dstackai/dstack/pull/4036>).
    LeavesStopped {
        /// Status of the answer, 400 or 200.
        status: u16,
        /// Its `error`.
        error: String,
    },
    /// 200 with `success: false`.
    Failure {
        /// Its `error`, such as `resources_unavailable` or `insufficient_credit`.
        error: String,
        /// Its `msg`.
        msg: String,
        /// Whether the request takes effect all the same.
        #[serde(default)]
        when: When,
    },
    /// `delete_instance`, `attach_key`, `set_state`, `change_bid`: answered as done, and nothing is done.
    NoEffect,
    /// 429 without any effect.
    Throttled {
        /// Form of the body.
        shape: Throttle,
        /// `Retry-After` in seconds.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// `search`: the quota of the day is used up, with `X-RateLimit-Reset`.
    QuotaExceeded {
        /// Seconds until the date in the header.
        resets_in: u64,
    },
    /// `get_instance`: the record has no `ports`.
    NoPorts,
    /// `search`: rows that this filter excludes are in the answer
    /// (<https://github.com/browser-use/browser-harness/issues/617>).
    LeakyFilter {
        /// Name of the filter.
        field: String,
    },
    /// `search`: prices are for the smallest disk, whatever `allocated_storage` was.
    StorageIgnored,
}

impl VastFault {
    /// Name in records.
    pub(in crate::sandbox) fn word(&self) -> &'static str {
        match self {
            VastFault::AskGone { .. } => "ask_gone",
            VastFault::LeavesStopped { .. } => "leaves_stopped",
            VastFault::Failure { .. } => "failure",
            VastFault::NoEffect => "no_effect",
            VastFault::Throttled { .. } => "throttled",
            VastFault::QuotaExceeded { .. } => "quota_exceeded",
            VastFault::NoPorts => "no_ports",
            VastFault::LeakyFilter { .. } => "leaky_filter",
            VastFault::StorageIgnored => "storage_ignored",
        }
    }
}

impl From<VastFault> for FaultKind {
    fn from(fault: VastFault) -> FaultKind {
        FaultKind::Vast(fault)
    }
}

/// How a create says that the offer is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoneForm {
    /// 400 `invalid_args` with `no_such_ask` in the text, as seen in practice.
    BadRequest,
    /// The same as 404, as documented.
    NotFound,
    /// 410 `no_such_ask`.
    Gone,
    /// 200 with `success: false`.
    Ok,
}

/// Body of a 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Throttle {
    /// JSON with `detail`.
    Detail,
    /// JSON with `error` and `msg`.
    Slug,
    /// Plain text.
    Text,
}

/// How an instance behaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "vast", rename_all = "snake_case")]
pub enum VastScript {
    /// Shows these words from so many milliseconds after the create on, for ever, and nothing runs.
    Words {
        /// Milliseconds after the create.
        ms: u64,
        /// `actual_status`.
        actual: Option<String>,
        /// `cur_state`.
        cur: String,
        /// `next_state`.
        next: String,
        /// `intended_status`.
        intended: String,
        /// `status_msg`.
        msg: Option<String>,
    },
    /// What is wrong at the direct port and at the proxy.
    Doors {
        /// At the direct port.
        #[serde(default)]
        direct: Option<LoginTrouble>,
        /// At the proxy.
        #[serde(default)]
        proxy: Option<LoginTrouble>,
    },
    /// Runs, and only the proxy is told: no direct address.
    ProxyOnly,
    /// The bid is not taken as one: rented on demand, at the on-demand price.
    BidIgnored,
    /// Stops after so many milliseconds because somebody pays more; its disk goes on costing.
    Outbid {
        /// Milliseconds after the create.
        ms: u64,
    },
    /// The start request is lost: nothing happens until `state` is set to `running` once more.
    LostStart {
        /// Whether that is answered with `resources_unavailable` and nothing happens either.
        #[serde(default)]
        no_gpu: bool,
    },
    /// A smaller disk than asked for.
    SmallDisk {
        /// GB.
        gb: f64,
    },
    /// `instances: null` by its id for so many milliseconds after the create.
    NullFirst {
        /// Milliseconds after the create.
        ms: u64,
    },
}

impl VastScript {
    fn words(actual: &str, contract: &str, intended: &str, msg: &str) -> VastScript {
        VastScript::Words {
            ms: 0,
            actual: Some(actual.to_owned()),
            cur: contract.to_owned(),
            next: contract.to_owned(),
            intended: intended.to_owned(),
            msg: (!msg.is_empty()).then(|| msg.to_owned()),
        }
    }

    /// The container could not be made; the contract is stopped.
    pub fn oci_failed() -> VastScript {
        let msg = "Error response from daemon: failed to create task for container: failed to create shim task: \
                   OCI runtime create failed: runc create failed: unable to start container process";
        Self::words("created", "stopped", "stopped", msg)
    }

    /// Outbid while it boots: still `loading`, and already stopped.
    pub fn outbid_in_boot() -> VastScript {
        Self::words("loading", "stopped", "stopped", "")
    }

    /// The container ended and is not started again.
    pub fn exited() -> VastScript {
        Self::words("exited", "running", "running", "container exited")
    }

    /// The host is gone.
    pub fn offline() -> VastScript {
        Self::words("offline", "running", "running", "")
    }

    /// No heartbeat from the host.
    pub fn unknown() -> VastScript {
        Self::words("unknown", "running", "running", "")
    }

    /// The image cannot be had.
    pub fn pull_failed() -> VastScript {
        let msg = "Error response from daemon: pull access denied for me/mine, repository does not exist or may \
                   require 'docker login': denied: requested access to the resource is denied";
        Self::words("loading", "running", "running", msg)
    }

    /// The host's disk is full.
    pub fn no_space() -> VastScript {
        Self::words("loading", "running", "running", "write /var/lib/docker/tmp: no space left on device")
    }
}

impl From<VastScript> for Script {
    fn from(script: VastScript) -> Script {
        Script::Vast(script)
    }
}
