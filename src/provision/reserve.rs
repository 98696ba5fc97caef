//! Taking a name before anything is bought.

use std::collections::BTreeMap;

use crate::cloud::Which;
use crate::model::gpu::{Gpu, short_name};
use crate::model::handle::ResourceKind;
use crate::model::machine::MachineName;
use crate::provision::Context;
use crate::provision::events::{Event, Events};
use crate::provision::failure::{Failure, Kind};
use crate::provision::remove::list;
use crate::state::error::LockError;
use crate::state::lock::NameLock;
use crate::state::machines::Entry;

/// Takes the lock on `name`, unless the name is taken in any way.
pub fn reserve(context: &Context, name: &MachineName) -> Result<NameLock, Failure> {
    let taken = |message: String| Failure::new(Kind::NameTaken, message);
    let lock = context.registry.lock(name).map_err(|error| match error {
        LockError::Held(_) => taken(format!("another gpuprov command is working on `{name}`")),
        LockError::State(error) => Failure::new(Kind::Refused, error.to_string()),
    })?;
    match lock.read().map_err(|error| Failure::new(Kind::Refused, error.to_string()))? {
        None => {}
        Some(Entry::Record(record)) => {
            return Err(taken(format!("there is a machine `{name}` already, in state `{}`", record.state))
                .hint(format!("see `gpuprov ls {name}`, or `gpuprov rm {name}`")));
        }
        Some(Entry::Unreadable(unreadable)) => {
            return Err(taken(format!(
                "the name `{name}` is taken by a record that cannot be read: {}",
                unreadable.why
            )));
        }
    }
    let elsewhere = context.ssh.taken_by(name).map_err(|error| {
        Failure::new(Kind::Refused, format!("the ssh configuration cannot be read: {error}"))
    })?;
    if let Some(path) = elsewhere {
        return Err(taken(format!("`{}` has a `Host {name}` of its own", path.display()))
            .hint("take another --name, or rename that host"));
    }
    Ok(lock)
}

/// Takes the first free name of the kind `rtx4090-1` that is not among `elsewhere` either.
pub fn reserve_new(context: &Context, card: Option<&Gpu>, elsewhere: &Names) -> Result<NameLock, Failure> {
    let stem = card.map_or_else(|| "cpu".to_owned(), short_name);
    let mut last = None;
    for number in 1..1000 {
        let Ok(name) = format!("{stem}-{number}").parse::<MachineName>() else { break };
        if elsewhere.contains_key(name.as_str()) {
            continue;
        }
        match reserve(context, &name) {
            Ok(lock) => return Ok(lock),
            Err(failure) if failure.kind == Kind::NameTaken => last = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    Err(last.unwrap_or_else(|| Failure::new(Kind::NameTaken, format!("no name like `{stem}-1` is free"))))
}

/// Names of this installation's machines in the accounts, each with one machine's id.
pub type Names = BTreeMap<String, String>;

/// Asks every account which machines of this installation there are. Only needed where the installation id was given, because
/// then other computers may share it. An account that does not answer is told and passed over: a pipeline must not stop for it.
pub async fn names_elsewhere(context: &Context, events: &dyn Events) -> Names {
    let (found, failed) = list(context, &Which::Installation(context.installation.clone())).await;
    for error in failed {
        let message = format!("names that other computers gave are not known: {}", error.message);
        events.event(Event::Note { account: Some(&error.account), message });
    }
    let machines = found.into_iter().filter(|(_, found)| found.kind == ResourceKind::Machine);
    machines.map(|(account, found)| (found.mark.name, format!("{account}:{}", found.handle.id))).collect()
}

/// Refuses a name that a machine of this installation has which another computer made.
pub fn free_elsewhere(elsewhere: &Names, name: &MachineName) -> Result<(), Failure> {
    let Some(id) = elsewhere.get(name.as_str()) else { return Ok(()) };
    let message = format!("there is a machine `{name}` of this installation: {id}");
    Err(Failure::new(Kind::NameTaken, message).hint(format!("see `gpuprov ls`, or `gpuprov rm {name}`")))
}
