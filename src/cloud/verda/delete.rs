//! Deleting a machine with everything that was made for it: machine, volumes, key, in this order.
//!
//! Volumes that a delete does not name stay and go on costing, so they are named; what stays all the same (a machine that was
//! taken away, a delete of somebody else's) is deleted by itself, out of the trash too, where it would count against the
//! quota for 96 hours. A machine on its way up cannot be deleted: that is waited out.

use std::collections::BTreeSet;

use futures_util::future::{join_all, try_join3};

use super::Verda;
use super::client::DELETING;
use super::errors::{Refusal, refusal, refused, unreadable};
use super::marks::{is_volume_of, kind_of, mark_of, read_name};
use super::states::is_gone;
use super::wire::{ActionResult, Instance, Volume, told};
use crate::cloud::lenient::each;
use crate::cloud::{Deletion, ErrorKind, Reached, Result};
use crate::http::Answer;
use crate::model::handle::{Handle, ResourceKind};
use crate::model::mark::Mark;
use crate::model::words::one_line;

/// Whether nothing is left of a volume: not even something in the trash that could be restored.
pub(super) fn is_volume_gone(volume: &Volume) -> bool {
    volume.is_permanently_deleted == Some(true)
        || matches!(volume.status.as_deref(), Some("canceled" | "exported"))
}

/// Does the next step of deleting what a handle stands for.
pub(super) async fn delete(cloud: &Verda, handle: &Handle) -> Result<Deletion> {
    match kind_of(handle) {
        ResourceKind::Disk => volumes(cloud, None, BTreeSet::from([handle.id.clone()])).await,
        ResourceKind::Key => {
            cloud.api.delete_key(&handle.id).await?;
            let there = cloud.api.keys().await?.iter().any(|key| key.id.as_deref() == Some(&handle.id));
            Ok(if there { Deletion::Pending("Verda still lists the key".to_owned()) } else { Deletion::Gone })
        }
        _ => machine(cloud, handle).await,
    }
}

async fn machine(cloud: &Verda, handle: &Handle) -> Result<Deletion> {
    let mark = mark_of(handle);
    if let Some(instance) = cloud.api.instance(&handle.id, DELETING).await?
        && !is_gone(&instance)
    {
        cloud.watch.learn(&handle.id, &instance);
        if instance.status.as_deref() != Some("deleting") {
            let refused = discontinue(cloud, handle, &instance, mark.as_ref()).await?;
            if let Some(words) = refused {
                return Ok(Deletion::Pending(words));
            }
        }
        if let Some(instance) = cloud.api.instance(&handle.id, DELETING).await?
            && !is_gone(&instance)
        {
            let status = one_line(instance.status.as_deref().unwrap_or_default(), 40);
            return Ok(Deletion::Pending(format!("Verda still shows it as {status}")));
        }
    }
    let side = |kind| handle.side.iter().filter(move |side| side.kind == kind).map(|side| side.id.clone());
    let known: BTreeSet<String> =
        side(ResourceKind::Disk).chain(cloud.watch.os_volumes(&handle.id)).collect();
    if let Deletion::Pending(words) = volumes(cloud, mark.as_ref(), known).await? {
        return Ok(Deletion::Pending(words));
    }
    if !keys(cloud, mark.as_ref(), side(ResourceKind::Key).collect()).await? {
        return Ok(Deletion::Pending("Verda still lists its ssh key".to_owned()));
    }
    cloud.watch.end(&handle.id);
    Ok(Deletion::Gone)
}

/// Deletes the machine with its own volumes; returns why not yet, if Verda says so.
async fn discontinue(
    cloud: &Verda,
    handle: &Handle,
    instance: &Instance,
    mark: Option<&Mark>,
) -> Result<Option<String>> {
    let os = told(instance.os_volume_id.as_ref()).map(str::to_owned);
    let mut own: BTreeSet<String> = os.iter().cloned().collect();
    let attached: Vec<&String> = instance.volume_ids.iter().flatten().collect();
    // A volume that somebody attached later is theirs: not named, it is only detached.
    if let Some(mark) = mark
        && attached.iter().any(|id| Some(*id) != os.as_ref())
    {
        let listed: Vec<Volume> = each(cloud.api.volumes().await?);
        let ours = listed.into_iter().filter(|volume| is_volume_of(volume, mark));
        own.extend(ours.filter_map(|volume| volume.id).filter(|id| attached.contains(&id)));
    }
    let own: Vec<String> = own.into_iter().collect();
    let answer = cloud.api.delete(&handle.id, &own).await?;
    let refusals = match answer.status {
        204 => Vec::new(),
        200..=299 => refusals(&answer, &handle.id),
        400 | 403 | 404 | 409 => {
            let error = refused(&answer, &cloud.api.asked(DELETING));
            match (refusal(answer.status, &error.message), error.reached) {
                // Something in between knows nothing of machines.
                (_, Reached::Maybe) | (Refusal::Other, _) => return Err(error),
                (Refusal::NotYet, _) => return Ok(Some(error.message)),
                (Refusal::Gone, _) => Vec::new(),
            }
        }
        _ => return Err(refused(&answer, &cloud.api.asked(DELETING))),
    };
    for (status, words) in refusals {
        match refusal(status, &words) {
            Refusal::Gone => {}
            Refusal::NotYet => return Ok(Some(words)),
            Refusal::Other => {
                let asked = cloud.api.asked(DELETING);
                return Err(asked.error(ErrorKind::Unavailable, words, Reached::Maybe));
            }
        }
    }
    Ok(None)
}

/// Returns what a good answer says went wrong all the same, with the status it would have had.
fn refusals(answer: &Answer, id: &str) -> Vec<(u16, String)> {
    let results: Vec<ActionResult> = answer.json().map(each).unwrap_or_default();
    let ours =
        results.into_iter().filter(|result| result.instance_id.as_deref().is_none_or(|found| found == id));
    ours.filter(|result| result.status.as_deref() == Some("error"))
        .map(|result| {
            let words = one_line(result.error.as_deref().unwrap_or("refused without a word"), 300);
            (result.status_code.unwrap_or(403), words)
        })
        .collect()
}

/// Deletes for good the volumes of the attempt and those `known`, none of them of a living machine, and looks again.
async fn volumes(cloud: &Verda, mark: Option<&Mark>, known: BTreeSet<String>) -> Result<Deletion> {
    let left = remaining(cloud, mark, &known).await?;
    if left.is_empty() {
        return Ok(Deletion::Gone);
    }
    let on_its_way = |volume: &Volume| matches!(volume.status.as_deref(), Some("deleting" | "canceling"));
    let asked = cloud.api.asked("deleting a volume");
    let mut words = None;
    for volume in left.iter().filter(|volume| !on_its_way(volume)) {
        let id = told(volume.id.as_ref())
            .ok_or_else(|| unreadable(&asked, "a volume without an id", Reached::No))?;
        let answer = cloud.api.delete_volume(id).await?;
        if !answer.is_success() && answer.status != 404 {
            let error = refused(&answer, &asked);
            match error.kind {
                // Attached to a machine on its way out.
                ErrorKind::Forbidden | ErrorKind::Conflict | ErrorKind::Rejected => {
                    words = Some(format!("its volume {id}: {}", error.message));
                }
                _ => return Err(error),
            }
        }
    }
    let left = remaining(cloud, mark, &known).await?;
    Ok(match left.first() {
        None => Deletion::Gone,
        Some(volume) => Deletion::Pending(words.unwrap_or_else(|| {
            let id = volume.id.as_deref().unwrap_or_default();
            let status = one_line(volume.status.as_deref().unwrap_or_default(), 40);
            format!("Verda still shows its volume {id} as {status}")
        })),
    })
}

/// Returns what is left of the volumes, each once. Those known by id are asked for by id: lists lag behind.
async fn remaining(cloud: &Verda, mark: Option<&Mark>, known: &BTreeSet<String>) -> Result<Vec<Volume>> {
    let api = &cloud.api;
    let listed = async {
        match mark {
            Some(_) => api.volumes().await,
            None => Ok(Vec::new()),
        }
    };
    let trash = async {
        match mark {
            Some(_) => api.trash().await,
            None => Ok(Vec::new()),
        }
    };
    let by_id = async {
        let looks = join_all(known.iter().map(|id| api.volume(id))).await;
        looks.into_iter().collect::<Result<Vec<Option<Volume>>>>()
    };
    let (listed, trash, by_id) = try_join3(listed, trash, by_id).await?;
    let listed = each::<Volume>(listed).into_iter().chain(each(trash));
    let ours = listed.filter(|volume| mark.is_some_and(|mark| is_volume_of(volume, mark)));
    let mut left: Vec<Volume> = Vec::new();
    // What was asked for by id is the newer word.
    for volume in by_id.into_iter().flatten().chain(ours) {
        if !left.iter().any(|seen| seen.id == volume.id) {
            left.push(volume);
        }
    }
    left.retain(|volume| !is_volume_gone(volume));
    Ok(left)
}

/// Deletes the ssh key objects of the attempt: those known, and any of its whole name (a lost answer may have left one more).
/// Returns whether none is left.
pub(super) async fn keys(cloud: &Verda, mark: Option<&Mark>, known: BTreeSet<String>) -> Result<bool> {
    let ours = async || -> Result<Vec<String>> {
        let listed = cloud.api.keys().await?;
        let is_ours = |name: &str| {
            mark.is_some_and(|mark| read_name(name) == Some((mark.installation.clone(), mark.claim)))
        };
        let named = listed.into_iter().filter_map(|key| {
            let id = key.id?;
            (known.contains(&id) || key.name.as_deref().is_some_and(is_ours)).then_some(id)
        });
        Ok(named.collect())
    };
    let listed = ours().await?;
    // A new key may not be in the list yet.
    let all: BTreeSet<String> = known.iter().cloned().chain(listed).collect();
    if all.is_empty() {
        return Ok(true);
    }
    for id in &all {
        cloud.api.delete_key(id).await?;
    }
    Ok(ours().await?.is_empty())
}
