//! Deleting a machine with everything that was made for it: machine, boot disk, firewall rules, in this order.
//!
//! A machine that does not exist may still be on its way: the operation of its create is asked before that is believed. The boot
//! disk goes with its machine; one that stayed all the same is deleted by itself. Only the machine with our number is deleted,
//! never a namesake.

use std::time::Duration;

use super::client::{DELETING, Waited};
use super::errors::failed;
use super::inspect::known;
use super::marks::{Known, kind_of, read_labels, rules_of};
use super::order::new_request_id;
use super::wire::{Instance, told};
use super::{Gcp, ports};
use crate::cloud::{Deletion, ErrorKind, Result};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::words::one_line;

/// How long one step waits for an operation.
const STEP: Duration = Duration::from_secs(10);

/// Does the next step of deleting what a handle stands for.
pub(super) async fn delete(cloud: &Gcp, handle: &Handle) -> Result<Deletion> {
    match kind_of(handle) {
        ResourceKind::Rule => ports::close(cloud, std::slice::from_ref(&handle.id)).await,
        ResourceKind::Disk => {
            let Some(known) = known(cloud, handle, DELETING).await? else { return Ok(Deletion::Gone) };
            disk(cloud, &known, Some(&handle.id)).await
        }
        _ => machine(cloud, handle).await,
    }
}

async fn machine(cloud: &Gcp, handle: &Handle) -> Result<Deletion> {
    let Some(known) = known(cloud, handle, DELETING).await? else { return Ok(Deletion::Gone) };
    let ours = async || -> Result<Option<Instance>> {
        let found = cloud.api.instance(&known.zone, &known.name, DELETING).await?;
        Ok(found.filter(|instance| told(instance.id.as_ref()) == Some(&handle.id)))
    };
    let there = ours().await?.is_some();
    // A delete of ours is followed to its end, also when the machine is out of sight before.
    if there || cloud.watch.delete_of(&handle.id).is_some() {
        if let Deletion::Pending(words) = take_down(cloud, handle, &known).await? {
            return Ok(Deletion::Pending(words));
        }
        if let Some(instance) = ours().await? {
            let status = one_line(instance.status.as_deref().unwrap_or_default(), 40);
            return Ok(Deletion::Pending(format!("Google still shows it as {status}")));
        }
    }
    if let Deletion::Pending(words) = never_made(cloud, handle, &known).await? {
        return Ok(Deletion::Pending(words));
    }
    if let Deletion::Pending(words) = disk(cloud, &known, None).await? {
        return Ok(Deletion::Pending(words));
    }
    if let Deletion::Pending(words) = ports::close(cloud, &rules_of(handle)).await? {
        return Ok(Deletion::Pending(words));
    }
    cloud.watch.end(&handle.id);
    Ok(Deletion::Gone)
}

/// Deletes the machine, or goes on waiting for a delete of ours.
async fn take_down(cloud: &Gcp, handle: &Handle, known: &Known) -> Result<Deletion> {
    let operation = match cloud.watch.delete_of(&handle.id) {
        Some(operation) => operation,
        None => {
            let path = format!("zones/{}/instances/{}", known.zone, known.name);
            let sent = match cloud.api.delete(&path, &new_request_id(), DELETING).await {
                Ok(Some(operation)) => operation.name,
                Ok(None) => return Ok(Deletion::Gone),
                // Something else is being done to it.
                Err(error) if error.kind == ErrorKind::Conflict => {
                    return Ok(Deletion::Pending(error.message));
                }
                Err(mut error) => {
                    if error.message.contains("protected against deletion") {
                        error.hint = Some(format!(
                            "gcloud compute instances update {} --zone={} --project={} --no-deletion-protection",
                            known.name, known.zone, known.project
                        ));
                    }
                    return Err(error);
                }
            };
            let Some(operation) = sent else { return Ok(Deletion::Gone) };
            cloud.watch.deleting(&handle.id, Some(&operation));
            operation
        }
    };
    match cloud.api.wait(Some(&known.zone), &operation, STEP, DELETING).await? {
        Waited::Running => Ok(Deletion::Pending("Google is deleting it".to_owned())),
        Waited::Done(done) if done.has_failed() => {
            // The next step asks once more.
            cloud.watch.deleting(&handle.id, None);
            let error = failed(&done, &cloud.api.asked(DELETING));
            match error.kind {
                ErrorKind::NotFound => Ok(Deletion::Gone),
                ErrorKind::Conflict => Ok(Deletion::Pending(error.message)),
                _ => Err(error),
            }
        }
        Waited::Done(_) | Waited::Unknown => {
            cloud.watch.deleting(&handle.id, None);
            Ok(Deletion::Gone)
        }
    }
}

/// Makes sure that a machine which is not there is not still being made. Also of one that was there: its create may go on.
async fn never_made(cloud: &Gcp, handle: &Handle, known: &Known) -> Result<Deletion> {
    let Some(operation) = known.operation.as_deref() else { return Ok(Deletion::Gone) };
    if cloud.watch.is_settled(operation) || cloud.watch.has_ended(&handle.id) {
        return Ok(Deletion::Gone);
    }
    match cloud.api.wait(Some(&known.zone), operation, STEP, DELETING).await? {
        Waited::Running => return Ok(Deletion::Pending("Google is still making it".to_owned())),
        Waited::Unknown => {}
        Waited::Done(done) => {
            // Between the two questions it may have come.
            let late = cloud.api.instance(&known.zone, &known.name, DELETING).await?;
            if late.is_some_and(|instance| told(instance.id.as_ref()) == Some(&handle.id)) {
                return Ok(Deletion::Pending("Google has just made it".to_owned()));
            }
            if !done.has_failed() {
                cloud.watch.settle(operation);
            }
        }
    }
    Ok(Deletion::Gone)
}

/// Deletes the boot disk that a machine left, or the disk of this number.
async fn disk(cloud: &Gcp, known: &Known, id: Option<&str>) -> Result<Deletion> {
    let Some(found) = cloud.api.disk(&known.zone, &known.name, DELETING).await? else {
        return Ok(Deletion::Gone);
    };
    let ours = match id {
        Some(id) => told(found.id.as_ref()) == Some(id),
        // Of a name that may be another attempt's by now: the labels decide.
        None => {
            let (mark, made_for) = (read_labels(found.labels.as_ref()), known.mark.as_ref());
            mark.zip(made_for).is_some_and(|(mark, made_for)| {
                mark.claim == made_for.claim && mark.installation == made_for.installation
            })
        }
    };
    if !ours {
        return Ok(Deletion::Gone);
    }
    if found.users.as_ref().is_some_and(|users| !users.is_empty()) {
        return Ok(Deletion::Pending(format!("its disk {} is still attached", known.name)));
    }
    let path = format!("zones/{}/disks/{}", known.zone, known.name);
    let operation = match cloud.api.delete(&path, &new_request_id(), DELETING).await {
        Ok(Some(operation)) => operation,
        Ok(None) => return Ok(Deletion::Gone),
        Err(error) if error.kind == ErrorKind::Conflict => {
            return Ok(Deletion::Pending(format!("its disk: {}", error.message)));
        }
        Err(error) => return Err(error),
    };
    let Some(name) = told(operation.name.as_ref()) else { return Ok(Deletion::Gone) };
    match cloud.api.wait(Some(&known.zone), name, STEP, DELETING).await? {
        Waited::Running => Ok(Deletion::Pending("Google is deleting its disk".to_owned())),
        Waited::Done(done) if done.has_failed() => {
            let error = failed(&done, &cloud.api.asked(DELETING));
            match error.kind {
                ErrorKind::NotFound => Ok(Deletion::Gone),
                ErrorKind::Conflict => Ok(Deletion::Pending(error.message)),
                _ => Err(error),
            }
        }
        Waited::Done(_) | Waited::Unknown => {
            let left = cloud.api.disk(&known.zone, &known.name, DELETING).await?;
            let left = left.filter(|left| left.id == found.id);
            Ok(match left {
                None => Deletion::Gone,
                Some(_) => Deletion::Pending(format!("Google still shows its disk {}", known.name)),
            })
        }
    }
}
