//! One look at a machine: first at the operation that makes it, then at the machine itself.
//!
//! What the operation says decides: a machine whose create fails is seen for a moment and then is gone
//! (github.com/dstackai/dstack/issues/1386). A spot machine that is taken away deletes itself; an operation of the system tells
//! that from a delete of somebody's (github.com/cloudpilot-ai/karpenter-provider-gcp/issues/37).

use std::time::Duration;

use super::client::{LOOKING, Waited};
use super::errors::failed;
use super::marks::{Known, kind_of, read_labels};
use super::states::{self, has_end, is_leaving};
use super::wire::{Instance, last, told};
use super::{Gcp, ports};
use crate::cloud::{ErrorKind, HostKeys, Look, Reached, Result, Which};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;
use crate::model::words::one_line;

/// How long one look waits for the operation of a create: it then tells at once that it has ended.
const OPERATION_WITHIN: Duration = Duration::from_secs(8);

/// How long a machine runs without a login before the firewall is looked at.
const SSH_RULE_AFTER: Duration = Duration::from_secs(45);

/// The types of host keys that are taken over.
const KEY_TYPES: [&str; 5] =
    ["ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"];

/// What a system operation is called that took a spot machine away.
const PREEMPTED: &str = "compute.instances.preempted";

/// Looks at what a handle stands for.
pub(super) async fn inspect(cloud: &Gcp, handle: &Handle) -> Result<Look> {
    match kind_of(handle) {
        ResourceKind::Disk => disk(cloud, handle).await,
        ResourceKind::Rule => rule(cloud, &handle.id).await,
        _ => machine(cloud, handle).await,
    }
}

/// Returns where a thing is; none if it is nowhere. A handle that does not say it is a machine's number alone: our machines are
/// then looked through. One that names another project than the account's is refused.
pub(super) async fn known(cloud: &Gcp, handle: &Handle, doing: &'static str) -> Result<Option<Known>> {
    let Some(known) = Known::read(&handle.data) else {
        let ours = super::find::find(cloud, &Which::AnyMarked).await?;
        let same = ours.into_iter().find(|found| found.handle.id == handle.id);
        return Ok(same.and_then(|found| Known::read(&found.handle.data)));
    };
    if known.project != cloud.settings.project {
        let (there, here) = (&known.project, &cloud.settings.project);
        let message = format!("it is in the project {there}, and the account is set to {here}");
        return Err(cloud.api.asked(doing).error(ErrorKind::Conflict, message, Reached::No));
    }
    Ok(Some(known))
}

async fn machine(cloud: &Gcp, handle: &Handle) -> Result<Look> {
    let Some(known) = known(cloud, handle, LOOKING).await? else { return Ok(Look::of(MachineState::Gone)) };
    let (mut failed_create, mut fresh) = (None, false);
    if let Some(operation) = &known.operation
        && !cloud.watch.is_settled(operation)
        && !cloud.watch.has_ended(&handle.id)
    {
        match cloud.api.wait(Some(&known.zone), operation, OPERATION_WITHIN, LOOKING).await? {
            Waited::Running => {
                let words = "Google is making it".to_owned();
                return Ok(Look { words: Some(words), ..Look::of(MachineState::Creating) });
            }
            Waited::Done(done) if done.has_failed() => {
                let attempt = known.attempt();
                let mut error = failed(&done, &cloud.api.asked(LOOKING).of(&attempt));
                if error.kind == ErrorKind::Unavailable || error.kind == ErrorKind::Conflict {
                    // It was accepted and came to nothing: another zone may do better.
                    error.kind = ErrorKind::NoCapacity;
                }
                failed_create = Some(error);
            }
            Waited::Done(_) | Waited::Unknown => {
                cloud.watch.settle(operation);
                fresh = true;
            }
        }
    }
    let found = cloud.api.instance(&known.zone, &known.name, LOOKING).await?;
    // A namesake that was made later is another machine.
    let found = found.filter(|instance| told(instance.id.as_ref()) == Some(&handle.id));
    if let Some(mut failed) = failed_create {
        if found.is_none() {
            // Whatever it left beside is looked for and deleted all the same.
            failed.reached = Reached::No;
        }
        let state = if found.is_some() { MachineState::Failed } else { MachineState::Gone };
        let words = Some(failed.message.clone());
        return Ok(Look { failed: Some(failed), words, ..Look::of(state) });
    }
    let Some(instance) = found else { return gone(cloud, handle, &known).await };
    let mut look = states::look(&instance, &cloud.frame());
    if fresh && read_labels(instance.labels.as_ref()).is_none() {
        // Nobody but this record would ever know it for ours.
        let message = "Google made the machine without our labels".to_owned();
        look.failed = Some(states::failure(&cloud.setup.account, message));
        return Ok(look);
    }
    if known.spot == Some(true) && (is_leaving(&instance) || look.state == MachineState::Stopped) {
        if let Some(words) = taken_away(cloud, handle, &known).await {
            look.state = MachineState::Preempted;
            look.words = Some(words);
        }
        return Ok(look);
    }
    if look.state == MachineState::Running {
        running(cloud, handle, &known, &instance, &mut look).await;
    }
    Ok(look)
}

async fn running(cloud: &Gcp, handle: &Handle, known: &Known, instance: &Instance, look: &mut Look) {
    let since = cloud.watch.runs(&handle.id);
    let (keys, ask) = cloud.watch.host_keys(&handle.id);
    let keys = if ask { host_keys(cloud, handle, known).await } else { keys };
    if !keys.is_empty() {
        look.host_keys = HostKeys::Keys(keys);
    }
    let ends = known.mark.as_ref().is_some_and(|mark| mark.expires.is_some());
    if ends && !has_end(instance) {
        look.words =
            Some("RUNNING; Google did not take its end: `gpuprov rm --expired` removes it".to_owned());
    }
    let late = SSH_RULE_AFTER.min(cloud.capabilities.boot_budget / 3);
    if since > late {
        let tags = instance.tags.as_ref().and_then(|tags| tags.items.clone()).unwrap_or_default();
        let shut = match cloud.watch.firewall(&handle.id) {
            Some(shut) => shut,
            None => {
                let shut = ports::ssh_is_shut(cloud, &tags).await;
                cloud.watch.learn_firewall(&handle.id, shut.clone());
                shut
            }
        };
        if let Some(shut) = shut {
            look.words = Some(format!("RUNNING, but {shut}"));
        }
    }
}

/// Asks for the host keys that the guest agent publishes; none yet, or never.
async fn host_keys(cloud: &Gcp, handle: &Handle, known: &Known) -> Vec<String> {
    let published = match cloud.api.host_keys(&known.zone, &known.name).await {
        Ok(published) => published,
        Err(error) => {
            if matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Rejected) {
                cloud.watch.learn_keys(&handle.id, None);
            }
            return Vec::new();
        }
    };
    let items = published.and_then(|published| published.query_value).and_then(|values| values.items);
    let keys: Vec<String> = items
        .iter()
        .flatten()
        .filter_map(|item| host_key(told(item.key.as_ref())?, told(item.value.as_ref())?))
        .collect();
    if !keys.is_empty() {
        cloud.watch.learn_keys(&handle.id, Some(keys.clone()));
    }
    keys
}

/// Returns a host key as it may be written into a file of known hosts.
fn host_key(kind: &str, value: &str) -> Option<String> {
    let base64 = |c: u8| c.is_ascii_alphanumeric() || b"+/=".contains(&c);
    let fits = KEY_TYPES.contains(&kind) && (16..=4096).contains(&value.len()) && value.bytes().all(base64);
    fits.then(|| format!("{kind} {value}"))
}

async fn gone(cloud: &Gcp, handle: &Handle, known: &Known) -> Result<Look> {
    let look = Look::of(MachineState::Gone);
    if cloud.watch.has_ended(&handle.id) || known.spot == Some(false) {
        return Ok(look);
    }
    Ok(match taken_away(cloud, handle, known).await {
        Some(words) => {
            let message = format!("the spot machine was {words}");
            let failed = Some(states::failure(&cloud.setup.account, message));
            Look { state: MachineState::Preempted, words: Some(words), failed, ..look }
        }
        None => look,
    })
}

/// Asks whether a spot machine was taken away; what to say if it was. No more than a reason: without an answer nobody knows.
async fn taken_away(cloud: &Gcp, handle: &Handle, known: &Known) -> Option<String> {
    let filter = format!("operationType=\"{PREEMPTED}\"");
    let operations = cloud.api.operations(&known.zone, &filter, LOOKING).await.ok()?;
    let ours = operations.into_iter().find(|operation| {
        let target = told(operation.target_id.as_ref());
        let link = told(operation.target_link.as_ref()).map(last);
        told(operation.operation_type.as_ref()) == Some(PREEMPTED)
            && match target {
                Some(id) => id == handle.id,
                None => link == Some(&known.name),
            }
    })?;
    let said = told(ours.status_message.as_ref()).map(|words| one_line(words, 120));
    Some(match said {
        Some(said) => format!("preempted by Google ({})", said.trim_end_matches('.')),
        None => "preempted by Google".to_owned(),
    })
}

async fn disk(cloud: &Gcp, handle: &Handle) -> Result<Look> {
    let Some(known) = known(cloud, handle, LOOKING).await? else { return Ok(Look::of(MachineState::Gone)) };
    let found = cloud.api.disk(&known.zone, &known.name, LOOKING).await?;
    let found = found.filter(|disk| told(disk.id.as_ref()) == Some(&handle.id));
    Ok(found.map_or_else(|| Look::of(MachineState::Gone), |disk| states::disk_look(&disk)))
}

async fn rule(cloud: &Gcp, name: &str) -> Result<Look> {
    Ok(match cloud.api.firewall(name, LOOKING).await {
        Ok(Some(_)) => Look::of(MachineState::Unknown),
        Ok(None) => Look::of(MachineState::Gone),
        // Whoever may not look at rules has made none.
        Err(error) if error.kind == ErrorKind::Forbidden => Look::of(MachineState::Gone),
        Err(error) => return Err(error),
    })
}
