//! What a machine's fields, and the operation that made it, say about it.

use super::cloud_init::USER;
use super::marks::host_keys;
use super::platforms::{Shape, card, type_name};
use super::prices::disk;
use super::wire::{DiskSpec, Instance, InstanceState, Operation, Status};
use crate::cloud::{Look, Sold};
use crate::model::handle::Handle;
use crate::model::machine::{MachineState, SshAddress};
use crate::model::words::one_line;

/// What the fields are read with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) loopback: bool,
    pub(super) ssh_port: u16,
    /// The handle that the machine was looked at by, if it was.
    pub(super) handle: Option<&'a Handle>,
    /// Whether it was seen running before.
    pub(super) was_up: bool,
}

/// How far the create is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Course {
    /// Nobody tells: the operation is not known, or not any more.
    Untold,
    /// It goes on.
    Running,
    /// It ended well: the machine came up.
    Done,
    /// It ended with an error: the machine will not come up.
    Failed(Status),
}

impl Course {
    /// Reads an operation. A status that is there and empty is success; none is no end.
    pub(super) fn of(operation: &Operation) -> Self {
        match &operation.status {
            None => Course::Running,
            Some(status) if status.code == 0 => Course::Done,
            Some(status) => Course::Failed(status.clone()),
        }
    }
}

/// Returns what a machine is doing, from its own state and from how far its create is.
///
/// A new machine shows `STOPPED` while Nebius works on it (`reconciling`); that is no end. While Nebius looks for hardware it
/// shows `STARTING`, for minutes, and then falls back to `STOPPED` (github.com/skypilot-org/skypilot/pull/6856).
fn state(instance: &Instance, course: &Course, frame: &Frame<'_>) -> MachineState {
    let told = told(instance);
    let reconciling = instance.status.as_ref().is_some_and(|status| status.reconciling);
    match told {
        InstanceState::Deleting => MachineState::Deleting,
        _ if matches!(course, Course::Failed(_)) => MachineState::Failed,
        InstanceState::Error => MachineState::Failed,
        InstanceState::Running => MachineState::Running,
        InstanceState::Stopping | InstanceState::Stopped => {
            let is_made = frame.was_up || *course == Course::Done;
            let is_young = !frame.was_up && (reconciling || *course == Course::Running);
            if is_young || (told == InstanceState::Stopping && !is_made) {
                MachineState::Booting
            } else if is_spot(instance) && !is_stopped_on_purpose(instance) {
                // The API has no word for it: a machine that may be taken away, and that nobody stopped.
                MachineState::Preempted
            } else {
                MachineState::Stopped
            }
        }
        // Words that we do not know are waited on.
        _ => MachineState::Booting,
    }
}

fn told(instance: &Instance) -> InstanceState {
    let number = instance.status.as_ref().map(|status| status.state).unwrap_or_default();
    InstanceState::try_from(number).unwrap_or(InstanceState::Unspecified)
}

/// Whether the machine is running by its own word.
pub(super) fn is_up(instance: &Instance) -> bool {
    told(instance) == InstanceState::Running
}

/// Whether it has stopped, or failed, by its own word: why is then asked for.
pub(super) fn is_down(instance: &Instance) -> bool {
    matches!(told(instance), InstanceState::Stopped | InstanceState::Error)
}

/// Whether it will not come up, by its own word.
pub(super) fn is_broken(instance: &Instance) -> bool {
    told(instance) == InstanceState::Error
}

/// Whether it is on its way out.
pub(super) fn is_going(instance: &Instance) -> bool {
    told(instance) == InstanceState::Deleting
}

fn is_spot(instance: &Instance) -> bool {
    instance.spec.as_ref().is_some_and(|spec| spec.preemptible.is_some())
}

fn is_stopped_on_purpose(instance: &Instance) -> bool {
    instance.spec.as_ref().is_some_and(|spec| spec.stopped)
}

/// Returns what a machine says about itself; the error of a failed create is the caller's to add.
pub(super) fn look(instance: &Instance, course: &Course, frame: &Frame<'_>) -> Look {
    let told = told(instance);
    let word = format!("{told:?}").to_ascii_lowercase();
    let reconciling = instance.status.as_ref().is_some_and(|status| status.reconciling);
    let address = address(instance, frame);
    let mut state = state(instance, course, frame);
    let words = match (&address, state) {
        (Err(error), MachineState::Running) => Some(format!("{word}: {error}")),
        (Ok(None), MachineState::Running) => Some(format!("{word}, no address yet")),
        (_, MachineState::Preempted) => {
            Some("taken away by Nebius and stopped; its disk goes on costing".to_owned())
        }
        (_, MachineState::Stopped) => Some("stopped; its disk goes on costing".to_owned()),
        (_, MachineState::Booting) if reconciling && told == InstanceState::Stopped => {
            Some("being prepared".to_owned())
        }
        _ if told == InstanceState::Unspecified => {
            instance.status.as_ref().map(|status| format!("state {}", status.state))
        }
        _ => Some(word),
    };
    let address = address.ok().flatten();
    if state == MachineState::Running && address.is_none() {
        state = MachineState::Booting;
    }
    let labels = instance.metadata.as_ref().map(|metadata| &metadata.labels);
    let only_disk = matches!(state, MachineState::Preempted | MachineState::Stopped);
    Look {
        ssh: address.into_iter().filter(|_| state == MachineState::Running).collect(),
        words,
        host_keys: labels.map(|labels| host_keys(frame.handle, labels)).unwrap_or_default(),
        sold: sold(instance),
        costs_now: boot_disk_gib(instance).filter(|_| only_disk).map(disk),
        ..Look::of(state)
    }
}

/// The address of the first network card, which comes with `/32` behind it.
fn address(instance: &Instance, frame: &Frame<'_>) -> Result<Option<SshAddress>, String> {
    let card = instance.status.as_ref().and_then(|status| status.network_interfaces.first());
    let public = card.and_then(|card| card.public_ip_address.as_ref());
    let text = public.map(|public| public.address.trim()).unwrap_or_default();
    let host = text.split_once('/').map_or(text, |(host, _)| host);
    if host.is_empty() {
        return Ok(None);
    }
    SshAddress::new(host, i64::from(frame.ssh_port), USER, frame.loopback)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// Returns the size of a disk in GiB.
pub(super) fn gib(spec: &DiskSpec) -> Option<u32> {
    let units = [
        (spec.size_gibibytes, 1),
        (spec.size_mebibytes, 1 << 10),
        (spec.size_kibibytes, 1 << 20),
        (spec.size_bytes, 1 << 30),
    ];
    let size =
        units.into_iter().find_map(|(size, of_a_gib)| Some(size?.saturating_add(of_a_gib - 1) / of_a_gib));
    size.and_then(|gib| u32::try_from(gib).ok()).filter(|gib| *gib > 0)
}

fn boot_disk_gib(instance: &Instance) -> Option<u32> {
    let disk = instance.spec.as_ref()?.boot_disk.as_ref()?.managed_disk.as_ref()?;
    gib(disk.spec.as_ref()?)
}

fn sold(instance: &Instance) -> Sold {
    let spec = instance.spec.as_ref();
    let resources = spec.and_then(|spec| spec.resources.as_ref());
    let platform = resources.map(|resources| one_line(&resources.platform, 63)).unwrap_or_default();
    let preset = resources.and_then(|resources| resources.preset.as_deref()).map(|name| one_line(name, 63));
    let shape = preset.as_deref().and_then(Shape::of_name);
    // By our own name: several platforms have one card.
    let gpu = card(&platform, None).map(|card| card.name);
    Sold {
        price_per_hour: None,
        price_has_disk: None,
        spot: spec.map(|spec| spec.preemptible.is_some()),
        gpu_raw: gpu,
        gpu_count: shape.map(|shape| shape.gpus),
        ram_gb: shape.map(|shape| f64::from(shape.ram_gib)),
        vcpus: shape.map(|shape| f64::from(shape.vcpus)),
        disk_gb: boot_disk_gib(instance),
        instance_type: preset.map(|preset| type_name(&platform, &preset)),
        // Neither is told: the region is that of the project.
        region: None,
        zone: None,
    }
}

#[cfg(test)]
#[path = "states_tests.rs"]
mod tests;
