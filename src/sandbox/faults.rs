//! What can be made to go wrong, on which call, and how often.
//!
//! A [`Fault`] is plain data: tests build it in Rust, the control path reads it as JSON, for example
//! `{"on":{"operation":"create_pod"},"what":{"kind":"status","code":500,"when":"after"}}`.
//! Faults on the wire (status, hang, reset, ...) are played by `server.rs` for every cloud alike; faults of
//! meaning (a stale offer, a machine that never lets anybody in, ...) are handed to the emulator.
//! "After" always means that the request has taken effect, and the ledger says so.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::gcp::GcpFault;
use super::lock;
use super::nebius::NebiusFault;
use super::scripts::Script;
use super::vast::VastFault;
use super::verda::VerdaFault;

/// One thing that goes wrong, on the calls that `on` picks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which calls.
    pub on: Match,
    /// What happens to them.
    pub what: FaultKind,
}

impl Fault {
    /// A fault on the next call of one operation, such as `create_pod`.
    pub fn on(operation: &str, what: FaultKind) -> Fault {
        Fault { on: Match { operation: Some(operation.to_owned()), ..Match::default() }, what }
    }

    /// A fault on the next call with this method whose path begins so.
    pub fn on_path(method: &str, path: &str, what: FaultKind) -> Fault {
        let on = Match { method: Some(method.to_owned()), path: Some(path.to_owned()), ..Match::default() };
        Fault { on, what }
    }

    /// Plays it so many times; 0 is for ever.
    #[must_use]
    pub fn times(mut self, times: u32) -> Fault {
        self.on.times = times;
        self
    }

    /// Plays it on every matching call, for ever.
    #[must_use]
    pub fn always(self) -> Fault {
        self.times(0)
    }

    /// Lets matching calls pass until the n-th, counted from 1.
    #[must_use]
    pub fn nth(mut self, nth: u32) -> Fault {
        self.on.nth = Some(nth);
        self
    }

    /// Only for calls to this cloud, such as `vast`; some operations have the same name at several.
    #[must_use]
    pub fn cloud(mut self, cloud: &str) -> Fault {
        self.on.cloud = Some(cloud.to_owned());
        self
    }

    /// Only for calls of the account with this label (see [`Recorded::account`](super::Recorded::account)).
    #[must_use]
    pub fn account(mut self, label: &str) -> Fault {
        self.on.account = Some(label.to_owned());
        self
    }
}

/// Which calls a fault is played on; an absent part fits every call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// Cloud, such as `runpod`.
    pub cloud: Option<String>,
    /// HTTP method.
    pub method: Option<String>,
    /// Beginning of the path, percent-encoded as sent.
    pub path: Option<String>,
    /// Operation name. RunPod: `list_pods`, `create_pod`, `get_pod`, `delete_pod`, `pod_action`, `logs`,
    /// `catalog`, `catalog_one`, `datacenters`, `datacenter`, `ssh_keys`. Vast: `search`, `create`, `attach_key`,
    /// `get_instance`, `list_instances`, `delete_instance`, `set_state`, `change_bid`, `logs`, `log_file`, `reboot`,
    /// `current_user`, `gpu_types`, `gpu_names`, `instance_keys`, `detach_key`, `account_keys`, `old_list`. Verda:
    /// `token`, `list_types`, `availability`, `availability_one`, `locations`, `images`, `volume_types`, `balance`,
    /// `list_instances`, `get_instance`, `create_instance`, `instance_action`, `add_tag`, `delete_tag`, `list_volumes`,
    /// `list_trash`, `get_volume`, `create_volume`, `volume_action`, `delete_volume`, `list_keys`, `get_key`,
    /// `create_key`, `delete_key`, `delete_keys`, `list_scripts`, `get_script`, `create_script`, `delete_script`,
    /// `delete_scripts`, `journal`. Google Cloud: `insert_instance`, `get_instance`, `list_instances` (over all zones),
    /// `delete_instance`, `get_operation`, `wait_operation`, `guest_attributes`, `insert_firewall`, `get_firewall`,
    /// `list_firewalls`, `delete_firewall`, `get_project`, `get_region`, `get_machine_type`, `get_accelerator_type`,
    /// `image_family`, `get_image`, `get_network`, `list_disks`, `get_disk`, `delete_disk`, `list_operations`, `advice`,
    /// `sts_token`, `impersonate`, `oauth_token`, `prices_gpuhunt`, `prices_skypilot`, and the others of `gcp/discovery.rs`.
    /// Nebius: `exchange_token`, `profile`, `list_tenants`, `get_tenant`, `list_projects`,
    /// `get_project`, `list_platforms`, `get_platform`, `list_advice`, `list_spot_prices`, `list_quotas`, `get_quota`,
    /// `estimate`, `list_subnets`, `get_subnet`, `image_latest`, `get_image`, `list_images`, `create_instance`,
    /// `get_instance`, `get_instance_by_name`, `list_instances`, `delete_instance`, `start_instance`, `stop_instance`,
    /// `get_operation`, `list_operations`, `list_disks`, `get_disk`, `get_disk_by_name`, `delete_disk`,
    /// `list_allocations`.
    pub operation: Option<String>,
    /// First matching call that it is played on, counted from 1; absent is the next one.
    pub nth: Option<u32>,
    /// How often it is played; 0 is for ever, default 1.
    pub times: u32,
    /// Account label.
    pub account: Option<String>,
}

impl Default for Match {
    fn default() -> Match {
        Match { cloud: None, method: None, path: None, operation: None, nth: None, times: 1, account: None }
    }
}

impl Match {
    fn fits(&self, call: &CallShape<'_>) -> bool {
        self.cloud.as_deref().is_none_or(|cloud| cloud == call.cloud)
            && self.method.as_deref().is_none_or(|method| method.eq_ignore_ascii_case(call.method))
            && self.path.as_deref().is_none_or(|path| call.path.starts_with(path))
            && self.operation.as_deref().is_none_or(|operation| operation == call.operation)
            && self.account.as_deref().is_none_or(|account| Some(account) == call.account)
    }
}

/// What of a call a [`Match`] looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallShape<'a> {
    pub(super) cloud: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) operation: &'a str,
    pub(super) account: Option<&'a str>,
}

/// Whether the request takes effect before the fault is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// It never reaches the service.
    #[default]
    Before,
    /// It is carried out, and only the answer is lost or changed.
    After,
}

/// The form of a `Retry-After` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// Whole seconds.
    Seconds(u64),
    /// An HTTP date so many seconds from now.
    Date(u64),
    /// No header, and a body that is plain text.
    Nothing,
}

/// A body that is not what the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Junk {
    /// An HTML page.
    Html,
    /// No bytes at all, still called JSON.
    Empty,
    /// JSON of another type than documented: a list where an object belongs.
    WrongType,
    /// JSON that stops in the middle, with a fitting `Content-Length`.
    Torn,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// Another status, and a body of the cloud's own error form unless one is given.
    Status {
        /// HTTP status code.
        code: u16,
        /// Whether it takes effect.
        #[serde(default)]
        when: When,
        /// Body as sent.
        #[serde(default)]
        body: Option<String>,
        /// Type of the body, default `application/problem+json`.
        #[serde(default)]
        content_type: Option<String>,
        /// More headers.
        #[serde(default)]
        headers: Vec<(String, String)>,
    },
    /// No answer until the client leaves, at most so long; then the connection is cut.
    Hang {
        /// Whether it takes effect, and before the waiting.
        #[serde(default)]
        when: When,
        /// Longest wait in milliseconds, default 120 s.
        #[serde(default = "two_minutes")]
        ms: u64,
    },
    /// A TCP reset in place of an answer.
    Reset {
        /// Whether it takes effect.
        #[serde(default)]
        when: When,
    },
    /// Takes effect; the answer announces more bytes than it sends, then the connection ends.
    CutBody,
    /// Takes effect; the answer keeps its status but has another body.
    Garbage {
        /// The body.
        body: Junk,
    },
    /// 429 before any effect.
    TooMany {
        /// Form of the waiting time.
        retry_after: RetryAfter,
    },
    /// The answer comes later by so many milliseconds; it takes effect first.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// 400 with this sentence, before any effect.
    Refuse {
        /// The sentence, in the cloud's error form.
        detail: String,
    },
    /// `create`: it is made, the connection is reset, and it shows nowhere for so long.
    AppearLater {
        /// Milliseconds of the sandbox's clock.
        ms: u64,
    },
    /// Catalogue calls: all prices are multiplied.
    PriceFactor {
        /// The factor.
        factor: f64,
    },
    /// Catalogue calls: no data center has it any more.
    StaleOffer,
    /// `delete`: 409, nothing is deleted.
    DeleteRefused,
    /// Looks and lists: this word as the machine's status.
    StatusWord {
        /// The word.
        word: String,
    },
    /// Fields that nobody knows, in every object of the answer.
    ExtraFields,
    /// Lists: at most so many machines a page, whatever was asked.
    PageSize {
        /// Machines on a page.
        size: usize,
    },
    /// `create`: the machine made by this call behaves so.
    Script {
        /// How it behaves.
        script: Script,
    },
    /// What only goes wrong at Vast.
    Vast(VastFault),
    /// What only goes wrong at Verda.
    Verda(VerdaFault),
    /// What only goes wrong at Google Cloud.
    Gcp(GcpFault),
    /// What only goes wrong at Nebius.
    Nebius(NebiusFault),
}

fn two_minutes() -> u64 {
    120_000
}

impl FaultKind {
    /// A status of the cloud's own error form, before any effect.
    pub fn status(code: u16) -> FaultKind {
        Self::status_when(code, When::Before)
    }

    /// A status after the request has taken effect.
    pub fn status_after(code: u16) -> FaultKind {
        Self::status_when(code, When::After)
    }

    fn status_when(code: u16, when: When) -> FaultKind {
        FaultKind::Status { code, when, body: None, content_type: None, headers: Vec::new() }
    }

    /// A hang of up to 120 s.
    pub fn hang(when: When) -> FaultKind {
        FaultKind::Hang { when, ms: two_minutes() }
    }

    /// Name in records.
    pub(super) fn word(&self) -> &'static str {
        match self {
            FaultKind::Status { .. } => "status",
            FaultKind::Hang { .. } => "hang",
            FaultKind::Reset { .. } => "reset",
            FaultKind::CutBody => "cut_body",
            FaultKind::Garbage { .. } => "garbage",
            FaultKind::TooMany { .. } => "too_many",
            FaultKind::Delay { .. } => "delay",
            FaultKind::Refuse { .. } => "refuse",
            FaultKind::AppearLater { .. } => "appear_later",
            FaultKind::PriceFactor { .. } => "price_factor",
            FaultKind::StaleOffer => "stale_offer",
            FaultKind::DeleteRefused => "delete_refused",
            FaultKind::StatusWord { .. } => "status_word",
            FaultKind::ExtraFields => "extra_fields",
            FaultKind::PageSize { .. } => "page_size",
            FaultKind::Script { .. } => "script",
            FaultKind::Vast(fault) => fault.word(),
            FaultKind::Verda(fault) => fault.word(),
            FaultKind::Gcp(fault) => fault.word(),
            FaultKind::Nebius(fault) => fault.word(),
        }
    }

    /// Whether the whole connection is reset, with all that goes on there, where one stream could be.
    pub(super) fn ends_connection(&self) -> bool {
        matches!(self, FaultKind::Nebius(NebiusFault::Disconnect))
    }

    /// Whether the emulator never sees the call.
    pub(super) fn stops_before(&self) -> bool {
        matches!(
            self,
            FaultKind::Status { when: When::Before, .. }
                | FaultKind::Hang { when: When::Before, .. }
                | FaultKind::Reset { when: When::Before }
                | FaultKind::TooMany { .. }
                | FaultKind::Refuse { .. }
                | FaultKind::DeleteRefused
        )
    }
}

/// The faults that are set, with how often each has matched and been played.
#[derive(Debug, Default)]
pub(super) struct FaultBook(Mutex<Vec<Armed>>);

#[derive(Debug)]
struct Armed {
    fault: Fault,
    seen: u32,
    played: u32,
}

impl FaultBook {
    /// Sets one more fault.
    pub(super) fn add(&self, fault: Fault) {
        lock(&self.0).push(Armed { fault, seen: 0, played: 0 });
    }

    /// Takes all faults away.
    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// Faults that may still be played.
    pub(super) fn all(&self) -> Vec<Fault> {
        lock(&self.0).iter().filter(|armed| !armed.spent()).map(|armed| armed.fault.clone()).collect()
    }

    /// The faults that this call gets, in the order they were set; they count as played.
    pub(super) fn take(&self, call: &CallShape<'_>) -> Vec<FaultKind> {
        let mut taken: Vec<FaultKind> = Vec::new();
        for armed in lock(&self.0).iter_mut().filter(|armed| armed.fault.on.fits(call)) {
            armed.seen = armed.seen.saturating_add(1);
            let due = armed.fault.on.nth.is_none_or(|nth| armed.seen >= nth);
            if !due || armed.spent() || taken.iter().any(FaultKind::stops_before) {
                continue;
            }
            armed.played = armed.played.saturating_add(1);
            taken.push(armed.fault.what.clone());
        }
        taken
    }
}

impl Armed {
    fn spent(&self) -> bool {
        self.fault.on.times != 0 && self.played >= self.fault.on.times
    }
}
