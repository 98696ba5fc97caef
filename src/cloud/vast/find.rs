//! Our machines in the account's list, told by the mark in their environment, else by their label.

use serde_json::Value;

use super::Vast;
use super::errors::unreadable;
use super::states::look;
use super::wire::Instance;
use crate::cloud::{Found, Reached, Result, Which};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;
use crate::model::mark::{MARK_VARIABLE, Mark};
use crate::model::words::one_line;

/// Lists the machines that `which` looks for; a machine without our mark is never among them.
pub(super) async fn find(cloud: &Vast, which: &Which) -> Result<Vec<Found>> {
    let asked = cloud.api.asked("listing machines");
    let mut found: Vec<Found> = Vec::new();
    for entry in cloud.api.machines().await? {
        let machine = match entry {
            Value::Object(_) => serde_json::from_value::<Instance>(entry).unwrap_or_default(),
            _ => return Err(unreadable(&asked, "an entry of the list is no machine", Reached::No)),
        };
        let Some(mark) = mark(&machine) else {
            if machine.id.is_none() && !machine.tells_env() {
                return Err(unreadable(&asked, "an entry of the list tells nothing", Reached::No));
            }
            continue;
        };
        let Some(id) = machine.id else {
            // To go on would make a machine disappear.
            let what = format!("the id of machine `{}` is missing", one_line(&mark.name, 80));
            return Err(unreadable(&asked, &what, Reached::No));
        };
        let handle = Handle::new(id.to_string());
        let look = look(&machine, &cloud.states_frame());
        let seen = found.iter().any(|found| found.handle.id == handle.id);
        if seen || look.state == MachineState::Gone || !which.admits(&mark, cloud.setup.account.name()) {
            continue;
        }
        found.push(Found {
            kind: ResourceKind::Machine,
            handle,
            cloud_name: one_line(machine.label.as_deref().unwrap_or_default(), 80),
            mark,
            since: machine.start_date.and_then(moment),
            look,
        });
    }
    Ok(found)
}

/// Returns our mark. The environment cannot be changed afterwards, so it decides where it is told; the label is for
/// machines that do not tell theirs yet.
fn mark(machine: &Instance) -> Option<Mark> {
    if machine.tells_env() {
        return machine.variable(MARK_VARIABLE).as_deref().and_then(Mark::from_text);
    }
    machine.label.as_deref().map(str::trim).and_then(Mark::from_text)
}

/// Seconds since 1970, with a fraction.
fn moment(seconds: f64) -> Option<jiff::Timestamp> {
    let sane = (1.0e9..1.0e11).contains(&seconds);
    sane.then(|| jiff::Timestamp::from_millisecond((seconds * 1000.0) as i64).ok()).flatten()
}
