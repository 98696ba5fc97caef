//! Our pods in the account's list, told by the mark in their environment.

use serde_json::Value;

use super::RunPod;
use super::errors::unreadable;
use super::states::look;
use super::wire::Pod;
use crate::cloud::lenient::object;
use crate::cloud::{Found, Reached, Result, Which};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;
use crate::model::mark::{MARK_VARIABLE, Mark};
use crate::model::words::one_line;

/// Lists the pods that `which` looks for; a pod without our mark is never among them.
pub(super) async fn find(cloud: &RunPod, which: &Which) -> Result<Vec<Found>> {
    let asked = cloud.api.asked("listing pods");
    let mut found: Vec<Found> = Vec::new();
    for entry in cloud.api.pods().await? {
        match read(&entry) {
            Entry::Foreign => {}
            Entry::Odd(what) => return Err(unreadable(&asked, &what, Reached::No)),
            Entry::Ours(id, mark, pod) => {
                let seen = found.iter().any(|found| found.handle.id == id);
                let look = look(&pod, &cloud.states_frame());
                // RunPod lists a deleted pod for a while, and says that it is.
                let gone = look.state == MachineState::Gone;
                if !seen && !gone && which.admits(&mark, cloud.setup.account.name()) {
                    found.push(Found {
                        kind: ResourceKind::Machine,
                        handle: Handle::new(id),
                        cloud_name: one_line(pod.name.as_deref().unwrap_or_default(), 80),
                        mark,
                        since: pod.created_at.as_deref().and_then(|at| at.parse().ok()),
                        look,
                    });
                }
            }
        }
    }
    Ok(found)
}

/// What an entry of the list is.
enum Entry {
    /// Without our mark.
    Foreign,
    /// With it.
    Ours(String, Mark, Box<Pod>),
    /// It may be ours, but cannot be read: to go on would make a machine disappear.
    Odd(String),
}

fn read(entry: &Value) -> Entry {
    let Some(pod) = object::<Pod>(entry.clone()) else {
        return Entry::Odd("an entry of the list is no pod".to_owned());
    };
    if pod.id.is_none() && pod.env.is_none() {
        return Entry::Odd("an entry of the list has neither an id nor an environment".to_owned());
    }
    let Some(env) = &pod.env else {
        // Names decide nothing, but one of ours without its environment is a warning that the list does not tell it.
        return match pod.name.as_deref() {
            Some(name) if name.starts_with("gpuprov-") => {
                Entry::Odd(format!("the environment of `{}` is missing", one_line(name, 80)))
            }
            _ => Entry::Foreign,
        };
    };
    let mark = env.get(MARK_VARIABLE).and_then(Value::as_str).and_then(Mark::from_text);
    match (mark, pod.id.clone().filter(|id| !id.trim().is_empty())) {
        (None, _) => Entry::Foreign,
        (Some(mark), _) if pod.status.is_none() => {
            Entry::Odd(format!("the status of pod `{}` is missing", one_line(&mark.name, 80)))
        }
        (Some(mark), Some(id)) => Entry::Ours(id, mark, Box::new(pod)),
        (Some(mark), None) => Entry::Odd(format!("the id of pod `{}` is missing", one_line(&mark.name, 80))),
    }
}
