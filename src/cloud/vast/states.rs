//! What a machine's fields say about it.
//!
//! `actual_status` is the container, `intended_status` what was asked for, `cur_state` and `next_state` the contract. A status
//! line that does not change is no sign of a hang: slow hosts keep one line for ten minutes. Only the words below are
//! certain (github.com/vast-ai/base-image, `tools/template_manager`; github.com/dstackai/dstack/pull/4037).

use super::addresses::addresses;
use super::image::is_ours;
use super::instance::InstanceType;
use super::places::place;
use super::prices::{disk_of, whole_of};
use super::wire::Instance;
use crate::cloud::{Error, ErrorKind, HostKeys, Look, Reached, Sold};
use crate::model::account::AccountId;
use crate::model::machine::{MachineState, SshAddress};
use crate::model::words::one_line;

/// How a look is called in messages.
pub(super) const LOOKING: &str = "looking at the machine";

/// Sentences in the status line after which nothing comes any more, in lower case.
const FATAL: [&str; 12] = [
    "error response from daemon",
    "failed to pull image",
    "no space left on device",
    "manifest unknown",
    "pull access denied",
    "repository does not exist",
    "failed to resolve reference",
    "unauthorized",
    "unexpected eof",
    "oci runtime create failed",
    "unsatisfied condition: cuda",
    "unresolvable cdi devices",
];

/// Those of them that say that the image is wrong, on every host.
const WRONG_IMAGE: [&str; 5] = [
    "manifest unknown",
    "pull access denied",
    "repository does not exist",
    "failed to resolve reference",
    "unauthorized",
];

/// What the fields are read with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) account: &'a AccountId,
    pub(super) loopback: bool,
}

/// The fields that say what the machine is doing, in lower case; empty where nothing is told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Words {
    actual: String,
    intended: String,
    current: String,
    next: String,
    message: String,
}

impl Words {
    fn of(instance: &Instance) -> Self {
        let word = |field: &Option<String>| {
            field.as_deref().map(|word| one_line(word, 40).to_lowercase()).unwrap_or_default()
        };
        Words {
            actual: word(&instance.actual_status),
            intended: word(&instance.intended_status),
            current: word(&instance.cur_state),
            next: word(&instance.next_state),
            message: instance.status_msg.as_deref().map(|text| one_line(text, 300)).unwrap_or_default(),
        }
    }

    /// Whether nobody wants it to run, whatever the container still says.
    fn is_stopped(&self) -> bool {
        let stopped = |word: &str| matches!(word, "stopped" | "frozen");
        stopped(&self.intended) || (stopped(&self.current) && stopped(&self.next))
    }

    fn shown(&self) -> String {
        let status = match (self.actual.as_str(), self.is_stopped()) {
            ("", false) => "waiting for the host",
            ("", true) => "stopped",
            (actual, _) => actual,
        };
        if self.message.is_empty() { status.to_owned() } else { format!("{status}: {}", self.message) }
    }

    fn fatal(&self) -> bool {
        let message = self.message.to_lowercase();
        FATAL.iter().any(|sentence| message.contains(sentence))
    }
}

/// Whether the start of a machine got lost: it is to run, stands still, and says nothing.
pub(super) fn is_start_lost(instance: &Instance) -> bool {
    let words = Words::of(instance);
    words.current == "stopped" && words.intended == "running" && words.message.is_empty()
}

/// Returns what a machine says about itself.
pub(super) fn look(instance: &Instance, frame: &Frame<'_>) -> Look {
    let words = Words::of(instance);
    let (ssh, trouble) = addresses(instance, frame.loopback);
    let (state, why) = state(instance, &words, &ssh);
    let mut shown = words.shown();
    match state {
        MachineState::Booting if words.actual == "running" => {
            shown = format!("{shown}, no ssh address yet");
            if let Some(trouble) = &trouble {
                shown = format!("{shown} ({trouble})");
            }
        }
        MachineState::Preempted => shown = format!("{why}; its disk goes on costing ({shown})"),
        _ => {}
    }
    let is_up = state == MachineState::Running;
    Look {
        failed: failed(instance, &state, &words, why, frame),
        ssh: if is_up { ssh } else { Vec::new() },
        words: Some(shown),
        host_keys: HostKeys::Unknown,
        sold: sold(instance),
        costs_now: match state {
            MachineState::Running => whole_of(instance),
            // The disk is billed until the machine is deleted; the GPU only while it runs.
            MachineState::Stopped | MachineState::Preempted | MachineState::Failed => disk_of(instance),
            _ => None,
        },
        state,
        ends_at: None,
    }
}

fn state(instance: &Instance, words: &Words, ssh: &[SshAddress]) -> (MachineState, &'static str) {
    if words.current == "unloaded" {
        return (MachineState::Gone, "");
    }
    // Somebody bid more, or rented it on demand: there is no field for the reason. It may come back by itself.
    let is_bid = instance.is_bid == Some(true);
    let is_outbid = instance.min_bid.zip(instance.dph_base).is_some_and(|(least, ours)| least > ours);
    match words.actual.as_str() {
        _ if words.actual != "running" && words.fatal() => (MachineState::Failed, "it cannot start"),
        _ if words.is_stopped() && is_bid && is_outbid => (MachineState::Preempted, "outbid"),
        _ if words.is_stopped() && is_bid => (MachineState::Preempted, "stopped, probably outbid"),
        _ if words.is_stopped() => (MachineState::Stopped, "it was stopped"),
        "running" if !ssh.is_empty() => (MachineState::Running, ""),
        "exited" => (MachineState::Failed, "its container ended"),
        "offline" => (MachineState::Failed, "its host is offline"),
        "unknown" => (MachineState::Failed, "its host does not answer"),
        // Words that we do not know are waited on.
        _ => (MachineState::Booting, ""),
    }
}

/// The reason why it will never come up where it is.
fn failed(
    instance: &Instance,
    state: &MachineState,
    words: &Words,
    why: &str,
    frame: &Frame<'_>,
) -> Option<Box<Error>> {
    if !matches!(state, MachineState::Failed | MachineState::Stopped | MachineState::Preempted) {
        return None;
    }
    let mut error = failure(frame.account, format!("{why} ({})", words.shown()));
    let message = words.message.to_lowercase();
    if *state == MachineState::Failed && WRONG_IMAGE.iter().any(|sentence| message.contains(sentence)) {
        error.kind = ErrorKind::Rejected;
        error.user_input = instance.image_uuid.as_deref().is_some_and(|image| !is_ours(image));
        error.hint = Some("check the image's name and tag, and that it is public".to_owned());
    }
    Some(error)
}

/// Returns the error of a machine that will never come up where it is. Another host may do better.
pub(super) fn failure(account: &AccountId, message: String) -> Box<Error> {
    Box::new(Error::new(ErrorKind::NoCapacity, account, LOOKING, message, Reached::Yes))
}

fn sold(instance: &Instance) -> Sold {
    let positive = |figure: Option<f64>| figure.filter(|figure| *figure > 0.0);
    let tenth = |figure: f64| (figure * 10.0).round() / 10.0;
    let gpu = instance.gpu_name.clone().filter(|name| !name.trim().is_empty());
    let count = instance.num_gpus.filter(|count| *count > 0);
    let place = place(instance.geolocation.as_deref());
    Sold {
        price_per_hour: whole_of(instance),
        price_has_disk: Some(true),
        spot: instance.is_bid,
        instance_type: gpu.clone().zip(count).map(|(gpu, count)| InstanceType { gpu, count }.to_string()),
        gpu_raw: gpu,
        gpu_count: count,
        ram_gb: positive(instance.cpu_ram)
            .zip(positive(instance.gpu_frac))
            .map(|(mb, part)| tenth(mb * part.min(1.0) / 1000.0)),
        vcpus: positive(instance.cpu_cores_effective).map(tenth),
        disk_gb: positive(instance.disk_space).filter(|gb| *gb < 1e6).map(|gb| gb.round() as u32),
        region: place.region,
        zone: place.zone,
    }
}
