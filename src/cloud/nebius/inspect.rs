//! One look at a machine and at the operation that makes it.
//!
//! Quota and capacity are often refused late: the create is taken, and its operation ends with the error while the machine
//! stays, stopped, with its disk. The operation is asked for beside the machine until it has ended well; where it is not
//! known (any more), the machine's operations are listed once it has stopped.

use futures_util::future::{OptionFuture, join};

use super::Nebius;
use super::calls::{LOOKING, MAKING};
use super::errors::{Asked, Attempt, late};
use super::marks::{kind_of, operation_of, region_of};
use super::platforms::{card, type_name};
use super::states::{self, Course, Frame, is_down};
use super::wire::{Instance, Operation, ResourceMetadata};
use crate::cloud::{Error, ErrorKind, Look, Reached, Result};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;

/// What is said when a machine has been running for long and nobody got in: gpuprov makes no security groups, the user may
/// have.
const NO_SSH: &str =
    "running; if ssh gets no answer, look whether the security groups of its network let TCP port 22 in";

/// Looks at what a handle stands for.
pub(super) async fn inspect(cloud: &Nebius, handle: &Handle) -> Result<Look> {
    match kind_of(handle) {
        ResourceKind::Disk => Ok(match cloud.api.disk(&handle.id).await? {
            Some(disk) => super::find::disk_look(&disk),
            None => Look::of(MachineState::Gone),
        }),
        _ => machine(cloud, handle).await,
    }
}

async fn machine(cloud: &Nebius, handle: &Handle) -> Result<Look> {
    let id = &handle.id;
    let is_made = cloud.watch.is_made(id);
    let operation = operation_of(handle).filter(|_| !is_made);
    let operation = OptionFuture::from(operation.map(|id| cloud.api.operation(id, LOOKING)));
    let (found, operation) = join(cloud.api.instance(id, LOOKING), operation).await;
    let mut found = found?;
    if found.is_none()
        && let Some(operation) = operation.as_ref()
    {
        // It is gone only if it is not on its way.
        match operation {
            Ok(Some(operation)) if Course::of(operation) == Course::Running => {
                let words = Some(MAKING.to_owned());
                return Ok(Look { words, ..Look::of(MachineState::Creating) });
            }
            // Between the two questions it may have come.
            Ok(Some(_)) => found = cloud.api.instance(id, LOOKING).await?,
            Ok(None) | Err(_) => {}
        }
    }
    // Without an answer about it the machine itself tells.
    let mut course = match operation {
        Some(Ok(Some(operation))) => Course::of(&operation),
        Some(Err(error)) if found.is_none() => return Err(error),
        _ if is_made => Course::Done,
        _ => Course::Untold,
    };
    let Some(instance) = found else {
        let failed = failure(cloud, handle, &Instance::default(), &course);
        return Ok(Look { failed, ..Look::of(MachineState::Gone) });
    };
    cloud.watch.learn(id, &instance, &course);
    if course == Course::Untold && is_down(&instance) && !cloud.watch.was_up(id) {
        course = cloud.api.operations(id, LOOKING).await.map_or(Course::Untold, |all| first(&all));
    }
    let frame = Frame { handle: Some(handle), was_up: cloud.watch.was_up(id), ..cloud.frame() };
    let mut look = states::look(&instance, &course, &frame);
    look.failed = failure(cloud, handle, &instance, &course).filter(|_| look.state != MachineState::Deleting);
    if let Some(region) = region_of(handle) {
        look.sold.region = Some(region.to_owned());
        look.sold.zone = Some(region.to_owned());
    }
    let long = cloud.capabilities.boot_budget / 4;
    if look.state == MachineState::Running && cloud.watch.up_for(id).is_some_and(|up| up > long) {
        look.words = Some(NO_SSH.to_owned());
    }
    Ok(look)
}

/// Reads how the create went out of all operations on a machine: it is the oldest.
fn first(operations: &[Operation]) -> Course {
    let since = |operation: &&Operation| {
        operation.created_at.as_ref().map(|at| (at.seconds, at.nanos)).unwrap_or_default()
    };
    operations.iter().min_by_key(since).map_or(Course::Untold, Course::of)
}

/// Returns why a machine will not come up, if it will not.
fn failure(cloud: &Nebius, handle: &Handle, instance: &Instance, course: &Course) -> Option<Box<Error>> {
    let attempt = attempt(handle, instance);
    let asked = Asked { attempt: Some(&attempt), ..cloud.api.asked(LOOKING) };
    match course {
        Course::Failed(status) => Some(late(status, &asked)),
        _ if states::is_broken(instance) => Some(asked.error(
            ErrorKind::NoCapacity,
            "Nebius says error: the machine cannot be brought up",
            Reached::Yes,
        )),
        _ => None,
    }
}

/// What was asked for, as the machine has it.
fn attempt(handle: &Handle, instance: &Instance) -> Attempt {
    let spec = instance.spec.as_ref();
    let resources = spec.and_then(|spec| spec.resources.clone()).unwrap_or_default();
    let parent = |metadata: &ResourceMetadata| metadata.parent_id.clone();
    Attempt {
        region: region_of(handle).unwrap_or_default().to_owned(),
        project: instance.metadata.as_ref().map(parent).unwrap_or_default(),
        instance_type: type_name(&resources.platform, resources.preset.as_deref().unwrap_or_default()),
        gpu: card(&resources.platform, None).map(|card| card.name),
        spot: spec.is_some_and(|spec| spec.preemptible.is_some()),
    }
}
