//! One look at a machine, and at the reason why one is gone.
//!
//! A spot machine that is taken away is deleted, not stopped: it leaves the list, and only the journal (beta) tells the
//! eviction from a delete of somebody's.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Verda;
use super::client::LOOKING;
use super::errors::late_kind;
use super::marks::{is_volume_of, kind_of, mark_of};
use super::states::{self, failure, is_gone};
use super::wire::{Event, Instance, told};
use crate::cloud::lenient::each;
use crate::cloud::{ErrorKind, Limit, Look, Result};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;
use crate::model::money::Usd;
use crate::model::words::one_line;

/// Looks at what a handle stands for.
pub(super) async fn inspect(cloud: &Verda, handle: &Handle) -> Result<Look> {
    match kind_of(handle) {
        ResourceKind::Disk => disk(cloud, &handle.id).await,
        ResourceKind::Key => key(cloud, &handle.id).await,
        _ => machine(cloud, handle).await,
    }
}

async fn machine(cloud: &Verda, handle: &Handle) -> Result<Look> {
    let found = cloud.api.instance(&handle.id, LOOKING).await?;
    if let Some(instance) = found.as_ref().filter(|instance| !is_gone(instance)) {
        cloud.watch.learn(&handle.id, instance);
        let mut look = states::look(instance, &cloud.frame());
        if let Some(failed) = look.failed.as_mut()
            && let Some(reason) = failure_reason(cloud, &handle.id).await
        {
            failed.kind = late_kind(&reason);
            // Quotas are counted by GPU, and apart for spot.
            failed.limit = Some(Limit {
                instance_type: told(instance.instance_type.as_ref()).map(str::to_owned),
                spot: instance.is_spot,
                ..Limit::default()
            })
            .filter(|_| failed.kind == ErrorKind::Quota);
            failed.message = format!("{}: {reason}", failed.message);
        }
        return Ok(look);
    }
    let look = Look::of(MachineState::Gone);
    if cloud.watch.has_ended(&handle.id) {
        return Ok(look);
    }
    // Beta, and no more than a reason: without an answer it is gone, and nobody knows why.
    let journal = cloud.api.journal_of(&handle.id).await.unwrap_or_default();
    Ok(match ending(&journal) {
        Ending::Evicted(reason) => Look {
            state: MachineState::Preempted,
            words: Some(format!("taken away by Verda ({reason})")),
            failed: Some(failure(
                &cloud.setup.account,
                ErrorKind::NoCapacity,
                format!("the spot machine was taken away while it started ({reason})"),
            )),
            costs_now: left_behind(cloud, handle).await,
            ..look
        },
        Ending::Discontinued => {
            let words = "discontinued by Verda";
            let failed = failure(&cloud.setup.account, ErrorKind::NoCapacity, words.to_owned());
            Look { words: Some(words.to_owned()), failed: Some(failed), ..look }
        }
        Ending::Untold => look,
    })
}

/// Who ended a machine.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// Verda did, for somebody who pays more; the reason as the journal words it.
    Evicted(String),
    /// Verda did, and says no more.
    Discontinued,
    /// Somebody did, or the journal does not tell.
    Untold,
}

fn ending(journal: &[Event]) -> Ending {
    let deletes: Vec<&Event> = journal
        .iter()
        .filter(|event| matches!(event.action_code.as_deref(), Some("delete" | "delete:complete")))
        .collect();
    let reason = deletes.iter().find_map(|event| told(event.properties.as_ref()?.delete_reason.as_ref()));
    match reason {
        Some(reason) if reason.contains("evict") => Ending::Evicted(one_line(reason, 60)),
        _ if deletes.iter().any(|event| told(event.actor_id.as_ref()).is_some()) => Ending::Untold,
        // The reason of a user's own delete is not documented; one that nobody is named for is Verda's.
        Some(_) => Ending::Discontinued,
        None => Ending::Untold,
    }
}

/// Returns what the journal says of a machine that failed.
async fn failure_reason(cloud: &Verda, id: &str) -> Option<String> {
    let journal = cloud.api.journal_of(id).await.ok()?;
    let message = journal.iter().find_map(|event| told(event.error_message.as_ref()))?;
    Some(one_line(message, 200))
}

/// What the volumes of a machine that was taken away go on costing; none if that cannot be told.
async fn left_behind(cloud: &Verda, handle: &Handle) -> Option<Usd> {
    let mark = mark_of(handle)?;
    let volumes: Vec<super::wire::Volume> = each(cloud.api.volumes().await.ok()?);
    let ours = volumes.iter().filter(|volume| is_volume_of(volume, &mark));
    // On its way out it is not billed any more.
    let stays = ours.filter(|volume| volume.status.as_deref() != Some("deleting"));
    stays.map(|volume| volume.base_hourly_cost).sum()
}

async fn disk(cloud: &Verda, id: &str) -> Result<Look> {
    Ok(match cloud.api.volume(id).await? {
        Some(volume) if !super::delete::is_volume_gone(&volume) => super::find::volume_look(&volume),
        _ => Look::of(MachineState::Gone),
    })
}

async fn key(cloud: &Verda, id: &str) -> Result<Look> {
    let there = cloud.api.keys().await?.iter().any(|key| key.id.as_deref() == Some(id));
    Ok(Look::of(if there { MachineState::Unknown } else { MachineState::Gone }))
}

/// What this process has learnt of machines.
#[derive(Debug, Default)]
pub(super) struct Watch {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// OS volumes by machine: the machine stops telling them when it is gone, and lists lag behind.
    os_volumes: HashMap<String, HashSet<String>>,
    /// Machines of which everything was deleted at our word: no reason is looked for.
    ended: HashSet<String>,
}

impl Watch {
    /// Notes what a look tells.
    pub(super) fn learn(&self, id: &str, instance: &Instance) {
        if let Some(volume) = told(instance.os_volume_id.as_ref()) {
            self.lock().os_volumes.entry(id.to_owned()).or_default().insert(volume.to_owned());
        }
    }

    /// Returns the OS volumes that a machine was seen with.
    pub(super) fn os_volumes(&self, id: &str) -> Vec<String> {
        self.lock().os_volumes.get(id).map(|volumes| volumes.iter().cloned().collect()).unwrap_or_default()
    }

    /// Notes that everything of a machine is deleted.
    pub(super) fn end(&self, id: &str) {
        self.lock().ended.insert(id.to_owned());
    }

    fn has_ended(&self, id: &str) -> bool {
        self.lock().ended.contains(id)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left behind is at worst one question too many.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(events: serde_json::Value) -> Ending {
        ending(&each(events.as_array().unwrap().clone()))
    }

    #[test]
    fn who_ended_it() {
        let reason = json!({"delete_reason": "evicted_by_on_demand"});
        assert_eq!(
            of(
                json!([{"action_code": "running"}, {"action_code": "delete", "actor_id": null, "properties": reason}])
            ),
            Ending::Evicted("evicted_by_on_demand".to_owned())
        );
        assert_eq!(
            of(json!([{"action_code": "delete:complete", "properties": {"delete_reason": "balance"}}])),
            Ending::Discontinued
        );
        for untold in [
            json!([]),
            json!([{"action_code": "delete"}]),
            json!([{"action_code": "delete", "actor_id": "7dfc2631", "properties": {"delete_reason": "user"}}]),
            json!([{"action_code": "trash", "properties": {"delete_reason": "evicted_by_on_demand"}}]),
            json!([{"action_code": 7, "properties": []}, 5]),
        ] {
            assert_eq!(of(untold.clone()), Ending::Untold, "{untold}");
        }
    }
}
