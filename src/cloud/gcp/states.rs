//! What a machine's fields say about it (`instances.get`; the life cycle is at
//! cloud.google.com/compute/docs/instances/instance-lifecycle).

use jiff::Timestamp;

use super::places::region_of;
use super::prices;
use super::wire::{Disk, Instance, last, told};
use crate::cloud::{Error, ErrorKind, HostKeys, Look, Reached, Sold};
use crate::model::account::AccountId;
use crate::model::machine::{MachineState, SshAddress};
use crate::model::money::Usd;
use crate::model::words::one_line;

use super::client::LOOKING;

/// Whom to log in as: the user to whom cloud-init gives the keys of the metadata too.
pub(super) const USER: &str = "ubuntu";

/// What the fields are read with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) loopback: bool,
    pub(super) ssh_port: u16,
}

/// Whether a machine is on its way out.
pub(super) fn is_leaving(instance: &Instance) -> bool {
    matches!(told(instance.status.as_ref()), Some("STOPPING" | "DEPROVISIONING" | "PENDING_STOP"))
}

/// Whether a machine is spot.
pub(super) fn is_spot(instance: &Instance) -> Option<bool> {
    let scheduling = instance.scheduling.as_ref()?;
    match told(scheduling.provisioning_model.as_ref()) {
        Some("SPOT") => Some(true),
        Some("STANDARD") => Some(scheduling.preemptible.unwrap_or_default()),
        _ => scheduling.preemptible,
    }
}

/// Returns when Google itself ends a machine, as it says.
pub(super) fn ends_at(instance: &Instance) -> Option<Timestamp> {
    let status = instance.resource_status.as_ref().and_then(|status| status.scheduling.as_ref());
    let told_end = status.and_then(|scheduling| scheduling.termination_timestamp.as_ref());
    let scheduling = instance.scheduling.as_ref();
    let set = scheduling.and_then(|scheduling| scheduling.termination_time.as_ref());
    told_end.or(set).and_then(|at| at.parse().ok())
}

/// Whether a machine has an end at Google's side that deletes it.
pub(super) fn has_end(instance: &Instance) -> bool {
    let Some(scheduling) = instance.scheduling.as_ref() else { return false };
    let span = scheduling.max_run_duration.as_ref().and_then(|span| told(span.seconds.as_ref()));
    (span.is_some() || ends_at(instance).is_some())
        && told(scheduling.instance_termination_action.as_ref()) == Some("DELETE")
}

/// Returns when Google deletes a machine: the moment that it tells, else the span that it was given from its creation on.
fn end(instance: &Instance) -> Option<Timestamp> {
    if !has_end(instance) {
        return None;
    }
    ends_at(instance).or_else(|| {
        let span = instance.scheduling.as_ref()?.max_run_duration.as_ref()?;
        let seconds: i64 = told(span.seconds.as_ref())?.parse().ok()?;
        let created: Timestamp = instance.creation_timestamp.as_deref()?.parse().ok()?;
        created.checked_add(jiff::SignedDuration::from_secs(seconds)).ok()
    })
}

/// Returns what a machine says about itself.
pub(super) fn look(instance: &Instance, frame: &Frame) -> Look {
    let status = one_line(told(instance.status.as_ref()).unwrap_or_default(), 40);
    let address = address(instance, frame);
    let state = match status.as_str() {
        "RUNNING" if matches!(address, Ok(Some(_))) => MachineState::Running,
        "PENDING_STOP" | "STOPPING" | "STOPPED" | "TERMINATED" | "SUSPENDING" | "SUSPENDED" => {
            MachineState::Stopped
        }
        "DEPROVISIONING" => MachineState::Deleting,
        "PENDING" | "PROVISIONING" | "STAGING" => MachineState::Creating,
        "" => MachineState::Unknown,
        // Running without an address, repaired by Google, and words that we do not know: all of them are waited on.
        _ => MachineState::Booting,
    };
    let detail = told(instance.status_message.as_ref()).map(|words| one_line(words, 200));
    let words = match (&address, status.as_str()) {
        (_, "") => None,
        (Err(error), _) => Some(format!("{status}: {error}")),
        (Ok(None), "RUNNING") => Some("RUNNING, no public address yet".to_owned()),
        _ => Some(detail.map_or_else(|| status.clone(), |detail| format!("{status}: {detail}"))),
    };
    let up = state == MachineState::Running;
    Look {
        failed: None,
        ssh: address.ok().flatten().filter(|_| up).into_iter().collect(),
        words,
        host_keys: HostKeys::Unknown,
        sold: sold(instance),
        costs_now: None,
        state,
        ends_at: end(instance),
    }
}

/// Returns the error of a machine that will never come up, or not any more. Another zone may do better.
pub(super) fn failure(account: &AccountId, message: String) -> Box<Error> {
    Box::new(Error::new(ErrorKind::NoCapacity, account, LOOKING, message, Reached::Yes))
}

fn address(instance: &Instance, frame: &Frame) -> Result<Option<SshAddress>, String> {
    let interfaces = instance.network_interfaces.iter().flatten();
    let mut addresses = interfaces
        .flat_map(|interface| interface.access_configs.iter().flatten())
        .filter_map(|config| told(config.nat_ip.as_ref()));
    let Some(ip) = addresses.next() else { return Ok(None) };
    SshAddress::new(ip, i64::from(frame.ssh_port), USER, frame.loopback)
        .map(Some)
        .map_err(|error| error.to_string())
}

fn sold(instance: &Instance) -> Sold {
    let cards: Vec<_> = instance.guest_accelerators.iter().flatten().collect();
    let card = cards.first().and_then(|card| told(card.accelerator_type.as_ref())).map(last);
    let zone = told(instance.zone.as_ref()).map(|zone| one_line(last(zone), 40));
    let boot = instance.disks.iter().flatten().find(|disk| disk.boot == Some(true));
    Sold {
        spot: is_spot(instance),
        gpu_raw: card.map(|card| one_line(card, 60)),
        // A machine type with GPUs in it may or may not show them here.
        gpu_count: card.and_then(|_| cards.iter().map(|card| card.accelerator_count).sum()),
        disk_gb: boot.and_then(|disk| told(disk.disk_size_gb.as_ref())?.parse().ok()),
        instance_type: told(instance.machine_type.as_ref()).map(|name| one_line(last(name), 60)),
        region: zone.as_deref().and_then(region_of).map(str::to_owned),
        zone,
        ..Sold::default()
    }
}

/// Returns what a disk without a machine looks like.
pub(super) fn disk_look(disk: &Disk) -> Look {
    let mut look = Look::of(MachineState::Unknown);
    let size = told(disk.size_gb.as_ref()).and_then(|size| size.parse().ok());
    look.costs_now = size.map(|size| prices::parts(Usd::ZERO, size, false).disk);
    look.sold.price_per_hour = look.costs_now;
    look.sold.disk_gb = size;
    look.sold.zone = told(disk.zone.as_ref()).map(|zone| one_line(last(zone), 40));
    look.words = told(disk.status.as_ref()).map(|status| one_line(status, 40));
    look
}
