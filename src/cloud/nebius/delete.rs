//! Deleting a machine: its disk and its address go with it. What is left of its disks all the same is deleted by itself.
//!
//! A machine that does not exist may still be on its way: the operation of its create is asked before that is believed.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::Nebius;
use super::calls::{DELETING, MAKING};
use super::client::found;
use super::errors::late;
use super::marks::{is_of, kind_of, mark_of, operation_of, project_of};
use super::states::{Course, is_going};
use super::wire::{Disk, DiskState};
use crate::cloud::{Deletion, ErrorKind, Result};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::mark::Mark;

/// Does the next step of deleting what a handle stands for.
pub(super) async fn delete(cloud: &Nebius, handle: &Handle) -> Result<Deletion> {
    match kind_of(handle) {
        ResourceKind::Disk => match cloud.api.disk(&handle.id).await? {
            Some(disk) => delete_disk(cloud, &disk, &handle.id).await.map(Deletion::Pending),
            None => Ok(Deletion::Gone),
        },
        _ => machine(cloud, handle).await,
    }
}

async fn machine(cloud: &Nebius, handle: &Handle) -> Result<Deletion> {
    const GOING: &str = "Nebius is deleting it";
    let id = &handle.id;
    let mut why = None;
    if let Some(operation) = cloud.watch.deleting(id) {
        // One that is not known any more, or does not answer, says nothing: the machine itself does.
        match cloud.api.operation(&operation, DELETING).await.ok().flatten().map(|it| Course::of(&it)) {
            Some(Course::Running) => return Ok(Deletion::Pending(GOING.to_owned())),
            Some(Course::Failed(status)) => {
                why = Some(late(&status, &cloud.api.asked(DELETING)).message);
                cloud.watch.delete(id, None);
            }
            _ => {}
        }
    }
    if let Some(instance) = cloud.api.instance(id, DELETING).await? {
        cloud.watch.learn(id, &instance, &Course::Untold);
        if is_going(&instance) {
            return Ok(Deletion::Pending(GOING.to_owned()));
        }
        match cloud.api.delete_instance(id).await {
            Ok(operation) => cloud.watch.delete(id, operation.map(|operation| operation.id)),
            // Something else is being done to it: that is waited out.
            Err(error) if error.kind == ErrorKind::Conflict => return Ok(Deletion::Pending(error.message)),
            Err(error) => return Err(error),
        }
        return Ok(Deletion::Pending(why.unwrap_or_else(|| GOING.to_owned())));
    }
    if let Deletion::Pending(words) = never_made(cloud, handle).await? {
        return Ok(Deletion::Pending(words));
    }
    disks(cloud, handle, mark_of(handle).as_ref()).await
}

/// Makes sure that a machine which is not there is not still being made.
async fn never_made(cloud: &Nebius, handle: &Handle) -> Result<Deletion> {
    let id = &handle.id;
    let operation = operation_of(handle).filter(|_| !cloud.watch.is_made(id));
    let Some(operation) = operation else { return Ok(Deletion::Gone) };
    match cloud.api.operation(operation, DELETING).await?.map(|operation| Course::of(&operation)) {
        Some(Course::Running) => return Ok(Deletion::Pending(MAKING.to_owned())),
        None | Some(Course::Untold) => {}
        Some(ended) => {
            // Between the two questions it may have come.
            if cloud.api.instance(id, DELETING).await?.is_some() {
                return Ok(Deletion::Pending("Nebius has just made it".to_owned()));
            }
            if ended == Course::Done {
                cloud.watch.settle(id);
            }
        }
    }
    Ok(Deletion::Gone)
}

/// Deletes what is left of the disks of a machine that is gone.
async fn disks(cloud: &Nebius, handle: &Handle, mark: Option<&Mark>) -> Result<Deletion> {
    let mut left: Vec<(String, Disk)> = Vec::new();
    let side = handle.side.iter().filter(|side| side.kind == ResourceKind::Disk).map(|side| side.id.clone());
    let known: BTreeSet<String> = cloud.watch.disks(&handle.id).into_iter().chain(side).collect();
    for (id, disk) in known.iter().zip(join_all(known.iter().map(|id| cloud.api.disk(id))).await) {
        left.extend(disk?.map(|disk| (id.clone(), disk)));
    }
    if let Some(mark) = mark {
        let projects: Vec<String> = match project_of(handle) {
            Some(project) => vec![project.to_owned()],
            None => cloud.scope().await?.all.iter().map(|project| project.id.clone()).collect(),
        };
        for listed in join_all(projects.iter().map(|project| cloud.api.disks(project))).await {
            // A project that is gone has no disks.
            left.extend(found(listed)?.unwrap_or_default().into_iter().filter_map(|disk| {
                let metadata = disk.metadata.as_ref()?;
                let is_new = !known.contains(&metadata.id);
                let id = (is_new && is_of(&metadata.labels, mark)).then(|| metadata.id.clone())?;
                Some((id, disk))
            }));
        }
    }
    let mut pending = None;
    for (id, disk) in &left {
        pending = Some(delete_disk(cloud, disk, id).await?);
    }
    Ok(pending.map_or(Deletion::Gone, Deletion::Pending))
}

/// Asks for the end of a disk, unless it is on its way; how far that is, in words.
async fn delete_disk(cloud: &Nebius, disk: &Disk, id: &str) -> Result<String> {
    let going = format!("Nebius is deleting its disk {id}");
    let is_going = disk.status.as_ref().is_some_and(|status| status.state == DiskState::Deleting as i32);
    if is_going {
        return Ok(going);
    }
    match cloud.api.delete_disk(id).await {
        Ok(Some(operation)) => Ok(match Course::of(&operation) {
            Course::Failed(status) => late(&status, &cloud.api.asked("deleting a disk")).message,
            _ => going,
        }),
        Ok(None) => Ok(going),
        // It still hangs on a machine on its way out.
        Err(error) if error.kind == ErrorKind::Conflict => Ok(format!("its disk {id}: {}", error.message)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "delete_tests.rs"]
mod tests;
