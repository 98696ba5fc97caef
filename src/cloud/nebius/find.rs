//! What carries our marks, in every project of the tenant: machines and disks by their labels.
//!
//! A disk that belongs to a listed machine goes with it and is not shown. Names and filters are not relied on: what a list
//! leaves out for a reason that we do not see would be a machine nobody sees.

use std::collections::BTreeSet;

use futures_util::future::{join_all, try_join};
use jiff::Timestamp;

use super::Nebius;
use super::errors::unreadable;
use super::marks::{self, Carried, read_labels};
use super::prices;
use super::scope::Project;
use super::states::{self, Course, Frame, gib, look};
use super::wire::{Disk, DiskState, Instance, ResourceMetadata};
use crate::cloud::{ErrorKind, Found, Look, Reached, Result, Which};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;
use crate::model::words::one_line;

/// Lists what `which` looks for.
pub(super) async fn find(cloud: &Nebius, which: &Which) -> Result<Vec<Found>> {
    cloud.api.log_in().await?;
    let scope = cloud.scope().await?;
    let lists = scope
        .all
        .iter()
        .map(|project| try_join(cloud.api.instances(&project.id), cloud.api.disks(&project.id)));
    let mut found = Vec::new();
    let mut hidden = None;
    for (project, lists) in scope.all.iter().zip(join_all(lists).await) {
        match lists {
            Ok((instances, disks)) => {
                found.extend(machines(cloud, project, &instances)?);
                found.extend(left_over(cloud, project, &instances, &disks)?);
            }
            // Somebody else's project of the tenant, in which these credentials can make nothing.
            Err(error) if error.kind == ErrorKind::Forbidden && !scope.projects.contains(project) => {
                hidden = Some((project, error));
            }
            // One that is on its way out may be gone by now, with all that was in it.
            Err(error) if error.kind == ErrorKind::NotFound && !scope.open.contains(project) => {}
            Err(error) => return Err(error),
        }
    }
    found.retain(|found| which.admits(&found.mark, cloud.setup.account.name()));
    if let Some((project, mut error)) = hidden
        && found.is_empty()
        && matches!(which, Which::Claim(..))
        && !cloud.settings.projects.is_empty()
    {
        // `projects` may have named others when the machine was asked for: that it is in none of those which can be seen
        // proves nothing.
        error.message = format!("it may be in {}: {}", project.id, error.message);
        return Err(error);
    }
    Ok(found)
}

fn machines(cloud: &Nebius, project: &Project, instances: &[Instance]) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for instance in instances {
        let Some(metadata) = &instance.metadata else { continue };
        let Some(mark) = read_labels(&metadata.labels) else { continue };
        let id = id(cloud, metadata)?;
        cloud.watch.learn(id, instance, &Course::Untold);
        let carried = Carried {
            project: &project.id,
            region: &project.region,
            name: &metadata.name,
            mark: Some(&mark),
            ..Carried::default()
        };
        let frame = Frame { was_up: cloud.watch.was_up(id), ..cloud.frame() };
        let mut look = look(instance, &Course::Untold, &frame);
        let region = Some(&project.region).filter(|region| !region.is_empty());
        look.sold.region = region.cloned();
        look.sold.zone = region.cloned();
        found.push(Found {
            kind: ResourceKind::Machine,
            handle: Handle { data: carried.data(), ..Handle::new(id) },
            cloud_name: one_line(&metadata.name, 80),
            since: since(metadata),
            mark,
            look,
        });
    }
    Ok(found)
}

/// Disks of ours whose machine is not there.
fn left_over(
    cloud: &Nebius,
    project: &Project,
    instances: &[Instance],
    disks: &[Disk],
) -> Result<Vec<Found>> {
    let living: BTreeSet<&str> =
        instances.iter().filter_map(|instance| Some(instance.metadata.as_ref()?.id.as_str())).collect();
    let mut found = Vec::new();
    for disk in disks {
        let Some(metadata) = &disk.metadata else { continue };
        let Some(mark) = read_labels(&metadata.labels) else { continue };
        if owners(disk).any(|owner| living.contains(owner)) {
            continue;
        }
        let mut look = disk_look(disk);
        let region = Some(&project.region).filter(|region| !region.is_empty());
        look.sold.region = region.cloned();
        look.sold.zone = region.cloned();
        found.push(Found {
            kind: ResourceKind::Disk,
            handle: marks::disk(id(cloud, metadata)?, &project.id),
            cloud_name: one_line(&metadata.name, 80),
            since: since(metadata),
            mark,
            look,
        });
    }
    Ok(found)
}

/// The machine that a disk goes with, and the one that it hangs on.
fn owners(disk: &Disk) -> impl Iterator<Item = &str> {
    let status = disk.status.iter();
    status.flat_map(|status| [status.managed_by.as_str(), status.read_write_attachment.as_str()])
}

/// Ours, and not to be told from others: to go on would make it disappear.
fn id<'a>(cloud: &Nebius, metadata: &'a ResourceMetadata) -> Result<&'a str> {
    if metadata.id.is_empty() {
        let what = format!("the id of `{}` is missing", one_line(&metadata.name, 80));
        return Err(unreadable(&cloud.api.asked("listing machines"), &what, Reached::No));
    }
    Ok(&metadata.id)
}

fn since(metadata: &ResourceMetadata) -> Option<Timestamp> {
    let at = metadata.created_at.as_ref()?;
    Timestamp::new(at.seconds, at.nanos).ok()
}

/// Returns what a disk without a machine looks like.
pub(super) fn disk_look(disk: &Disk) -> Look {
    let told = disk.status.as_ref().map(|status| status.state).unwrap_or_default();
    let state = DiskState::try_from(told).unwrap_or(DiskState::Unspecified);
    let mut look = Look::of(match state {
        DiskState::Deleting => MachineState::Deleting,
        _ => MachineState::Unknown,
    });
    let by_status = disk.status.as_ref().and_then(|status| u32::try_from(status.size_bytes >> 30).ok());
    let size = disk.spec.as_ref().and_then(gib).or(by_status.filter(|gib| *gib > 0));
    look.costs_now = size.map(prices::disk);
    look.sold.price_per_hour = look.costs_now;
    look.sold.disk_gb = size;
    look.words = Some(format!("{state:?}").to_ascii_lowercase());
    look
}

impl Nebius {
    /// Returns what machines are read with.
    pub(super) fn frame(&self) -> states::Frame<'static> {
        Frame { loopback: self.setup.loopback, ssh_port: self.settings.ssh_port, handle: None, was_up: false }
    }
}
