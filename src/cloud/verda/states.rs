//! What a machine's fields say about it.

use super::wire::{Gpus, Instance, told};
use crate::cloud::{Error, ErrorKind, HostKeys, Look, Reached, Sold};
use crate::model::account::AccountId;
use crate::model::machine::{MachineState, SshAddress};
use crate::model::words::one_line;

use super::client::LOOKING;

/// Whom to log in as: Verda's keys are root's.
const USER: &str = "root";

/// What the fields are read with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) account: &'a AccountId,
    pub(super) loopback: bool,
    pub(super) ssh_port: u16,
}

/// Whether a status means that the machine does not exist any more.
pub(super) fn is_gone(instance: &Instance) -> bool {
    matches!(told(instance.status.as_ref()), Some("discontinued" | "notfound"))
}

/// Returns what a machine says about itself.
pub(super) fn look(instance: &Instance, frame: &Frame<'_>) -> Look {
    let status = one_line(told(instance.status.as_ref()).unwrap_or_default(), 40);
    let address = address(instance, frame);
    let state = match status.as_str() {
        "running" if matches!(address, Ok(Some(_))) => MachineState::Running,
        "offline" => MachineState::Stopped,
        "no_capacity" | "error" | "installation_failed" => MachineState::Failed,
        "deleting" => MachineState::Deleting,
        "discontinued" | "notfound" => MachineState::Gone,
        "" | "unknown" => MachineState::Unknown,
        // Words that we do not know are waited on.
        _ => MachineState::Booting,
    };
    let words = match (&address, status.as_str()) {
        (_, "") => None,
        (Err(error), _) => Some(format!("{status}: {error}")),
        (Ok(None), "running") => Some("running, no address yet".to_owned()),
        (_, "offline") => Some("offline: stopped, and billed in full".to_owned()),
        _ => Some(status.clone()),
    };
    let up = state == MachineState::Running;
    Look {
        failed: failed(&status, frame.account),
        ssh: address.ok().flatten().filter(|_| up).into_iter().collect(),
        words,
        host_keys: HostKeys::Unknown,
        sold: sold(instance),
        // What a machine tells counts neither its disk nor always all of its GPUs: the agreed price says more.
        costs_now: None,
        state,
        ends_at: None,
    }
}

fn address(instance: &Instance, frame: &Frame<'_>) -> Result<Option<SshAddress>, String> {
    let Some(ip) = told(instance.ip.as_ref()) else { return Ok(None) };
    SshAddress::new(ip, i64::from(frame.ssh_port), USER, frame.loopback)
        .map(Some)
        .map_err(|error| error.to_string())
}

fn failed(status: &str, account: &AccountId) -> Option<Box<Error>> {
    let message = match status {
        "no_capacity" => "Verda has no capacity after all",
        "error" => "Verda says error: the machine cannot be brought up",
        "installation_failed" => "Verda says installation_failed: the system could not be installed",
        _ => return None,
    };
    Some(failure(account, ErrorKind::NoCapacity, message.to_owned()))
}

/// Returns the error of a machine that will never come up. Another host may do better.
pub(super) fn failure(account: &AccountId, kind: ErrorKind, message: String) -> Box<Error> {
    Box::new(Error::new(kind, account, LOOKING, message, Reached::Yes))
}

/// The price that a machine tells, where it can be trusted: with several GPUs, or with vCPUs alone, it may be that of one of
/// them (the official command line multiplies it).
fn price(instance: &Instance) -> Option<crate::model::money::Usd> {
    let one = instance.gpu.as_ref().and_then(|gpu| gpu.number_of_gpus) == Some(1);
    instance.price_per_hour.filter(|price| one && price.is_positive())
}

fn sold(instance: &Instance) -> Sold {
    let gpu = instance.gpu.clone().unwrap_or_default();
    let positive = |figure: Option<f64>| figure.filter(|figure| *figure > 0.0);
    let location = told(instance.location.as_ref()).map(|location| one_line(location, 40));
    Sold {
        price_per_hour: price(instance),
        price_has_disk: Some(false),
        spot: instance.is_spot,
        gpu_raw: card(&gpu).map(str::to_owned),
        gpu_count: gpu.number_of_gpus,
        ram_gb: positive(instance.memory.as_ref().and_then(|memory| memory.size_in_gigabytes)),
        vcpus: positive(instance.cpu.as_ref().and_then(|cpu| cpu.number_of_cores)),
        disk_gb: None,
        instance_type: told(instance.instance_type.as_ref()).map(str::to_owned),
        region: location.clone(),
        zone: location,
    }
}

/// Returns the name of the card in `1x H100 SXM5 80GB`; none where there is none.
pub(super) fn card(gpu: &Gpus) -> Option<&str> {
    let text = told(gpu.description.as_ref())?;
    let card = match text.split_once(['x', 'X']) {
        Some((count, card)) if !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()) => card.trim(),
        _ => text,
    };
    Some(card).filter(|card| !card.is_empty())
}
