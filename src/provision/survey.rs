//! What there is: the records of this computer merged with what the clouds list. Nothing is changed in any cloud.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::cloud::{Error, Found, Look, Which};
use crate::model::account::AccountId;
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::{MachineName, MachineState};
use crate::model::mark::{Claim, Mark};
use crate::provision::gather::{self, within};
use crate::provision::remove::list;
use crate::provision::wait::host_key_alias;
use crate::provision::{Context, is_proven_same};
use crate::ssh::Block;
use crate::state::error::StateError;
use crate::state::journal::Open;
use crate::state::machines::{Entry, Unreadable};
use crate::state::record::{Attempt, Record};

/// One machine.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its account; none if nothing was bought yet, or the record cannot be read.
    pub account: Option<AccountId>,
    /// The cloud's id.
    pub id: Option<String>,
    /// How its cloud deletes it; none where a record knows that.
    pub handle: Option<Handle>,
    /// What it is doing.
    pub state: MachineState,
    /// What this computer knows.
    pub record: Option<Box<Record>>,
    /// Its marks at the cloud.
    pub mark: Option<Mark>,
    /// What the cloud said just now.
    pub look: Option<Look>,
    /// When it was made.
    pub since: Option<Timestamp>,
    /// What its owner should know.
    pub message: Option<String>,
}

/// A side resource that no machine needs any more.
#[derive(Debug)]
pub struct LeftOver {
    /// Its account.
    pub account: AccountId,
    /// What it is.
    pub found: Found,
}

/// Everything there is.
#[derive(Debug, Default)]
pub struct Survey {
    /// The machines, sorted by name.
    pub rows: Vec<Row>,
    /// Side resources without a machine.
    pub left_over: Vec<LeftOver>,
    /// Which accounts did not answer.
    pub failed: Vec<Box<Error>>,
    /// How many did.
    pub answered: usize,
}

/// Which part of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This installation's, without asking any cloud.
    Local,
    /// This installation's.
    Mine,
    /// Whatever carries the marks.
    All,
}

/// Looks at the records and asks the accounts.
pub async fn survey(context: &Context, scope: Scope) -> Result<Survey, StateError> {
    let entries = context.registry.list()?;
    let (mut found, failed) = match scope {
        Scope::Local => (Vec::new(), Vec::new()),
        Scope::Mine => list(context, &Which::Installation(context.installation.clone())).await,
        Scope::All => list(context, &Which::AnyMarked).await,
    };
    if scope == Scope::All {
        gather::once(&mut found);
    }
    let asked = if scope == Scope::Local { 0 } else { context.accounts.len() };
    let silent = failed.iter().filter(|error| context.account(&error.account).is_some()).count();
    let mut survey = Survey { answered: asked - silent, ..Survey::default() };
    let mut live: HashSet<Claim> = HashSet::new();
    for entry in entries {
        let row = match entry {
            Entry::Unreadable(unreadable) => unreadable_row(unreadable),
            Entry::Record(record) => {
                let hit = take_hit(&record, &mut found);
                live.extend(record.current().map(|attempt| attempt.claim));
                merge(context, record, hit, &failed, scope).await
            }
        };
        survey.rows.push(row);
    }
    live.extend(
        found
            .iter()
            .filter(|(_, found)| found.kind == ResourceKind::Machine)
            .map(|(_, found)| found.mark.claim),
    );
    let watched = context.watch.list(Timestamp::now()).unwrap_or_default();
    for (account, found) in found {
        if found.kind == ResourceKind::Machine {
            let lost = watched.iter().any(|watched| watched.claim == found.mark.claim);
            survey.rows.push(found_row(account, found, lost));
        } else if !live.contains(&found.mark.claim) {
            survey.left_over.push(LeftOver { account, found });
        }
    }
    survey
        .rows
        .sort_by(|one, two| (&one.name, &one.account, &one.id).cmp(&(&two.name, &two.account, &two.id)));
    survey.failed = failed;
    Ok(survey)
}

/// Takes what the list says of a record's machine out of the list.
fn take_hit(record: &Record, found: &mut Vec<(AccountId, Found)>) -> Option<Found> {
    let attempt = record.current()?;
    let id = attempt.handle.as_ref().map(|handle| handle.id.as_str());
    let at = found.iter().position(|(account, found)| {
        *account == attempt.account
            && found.kind == ResourceKind::Machine
            && found.mark.installation == record.installation
            && found.mark.claim == attempt.claim
            && id.is_none_or(|id| id == found.handle.id)
    })?;
    Some(found.swap_remove(at).1)
}

fn unreadable_row(unreadable: Unreadable) -> Row {
    let message = if unreadable.newer {
        format!("{}; update gpuprov", unreadable.why)
    } else {
        format!("the record cannot be read ({}); its machine may still run", unreadable.why)
    };
    Row {
        name: unreadable.name.to_string(),
        account: None,
        id: None,
        handle: None,
        state: MachineState::Unknown,
        record: None,
        mark: None,
        look: None,
        since: None,
        message: Some(message),
    }
}

fn found_row(account: AccountId, found: Found, lost: bool) -> Row {
    let message = lost.then(|| {
        format!(
            "turned up after its create was given up; `gpuprov rm {account}:{}` removes it",
            found.handle.id
        )
    });
    Row {
        name: found.mark.name.clone(),
        account: Some(account),
        id: Some(found.handle.id.clone()),
        handle: Some(found.handle),
        state: found.look.state,
        record: None,
        mark: Some(found.mark),
        look: Some(found.look),
        since: found.since,
        message,
    }
}

/// Merges one record with what its cloud says.
async fn merge(
    context: &Context,
    record: Box<Record>,
    hit: Option<Found>,
    failed: &[Box<Error>],
    scope: Scope,
) -> Row {
    let held = context.registry.is_held(&record.name);
    let attempt = record.current().cloned();
    let mut row = Row {
        name: record.name.to_string(),
        account: attempt.as_ref().map(|attempt| attempt.account.clone()),
        id: attempt.as_ref().and_then(|attempt| attempt.handle.as_ref()).map(|handle| handle.id.clone()),
        handle: None,
        state: record.state,
        since: record.machine_at,
        message: record.message.clone(),
        mark: None,
        look: None,
        record: None,
    };
    let on_its_way =
        matches!(record.state, MachineState::Creating | MachineState::Booting | MachineState::Deleting);
    let interrupted = on_its_way && !held;
    if interrupted {
        row.message = Some(format!("interrupted; `gpuprov rm {}` finishes the clean-up", record.name));
    }
    if scope == Scope::Local || (on_its_way && held) {
        row.look = hit.map(|hit| hit.look);
        row.record = Some(record);
        return row;
    }
    let Some(attempt) = attempt else {
        row.record = Some(record);
        return row;
    };
    let cloud = context.account(&attempt.account);
    let silent = failed.iter().find(|error| error.account == attempt.account);
    let look = match (hit, cloud, silent) {
        (Some(hit), ..) => {
            row.id = Some(hit.handle.id.clone());
            row.since = row.since.or(hit.since);
            Some(hit.look)
        }
        (None, None, _) => {
            row.state = MachineState::Unknown;
            row.message = Some(format!("the account {} is not connected", attempt.account));
            None
        }
        (None, Some(_), Some(error)) => {
            row.state = MachineState::Unknown;
            row.message = Some(format!("the cloud did not answer: {}", error.message));
            None
        }
        (None, Some(cloud), None) => match &attempt.handle {
            None => {
                row.state = MachineState::Unknown;
                None
            }
            // A list that does not show it proves nothing; a look at the machine itself does.
            Some(handle) => {
                match within(context.cloud_timeout, cloud, "looking at the machine", cloud.inspect(handle))
                    .await
                {
                    Ok(look)
                        if look.state == MachineState::Gone
                            && !is_proven_same(context, cloud, &attempt.identity).await =>
                    {
                        row.state = MachineState::Unknown;
                        row.message = Some(format!(
                            "the credentials of {} are not proven to be those that made it, and do not show it",
                            attempt.account
                        ));
                        None
                    }
                    Ok(look) => Some(look),
                    Err(error) => {
                        row.state = MachineState::Unknown;
                        row.message = Some(format!("the cloud did not answer: {}", error.message));
                        None
                    }
                }
            }
        },
    };
    if let Some(mut look) = look {
        row.state = match (record.state, look.state) {
            // A login never worked, or a removal was begun: that it runs is only half of it.
            (MachineState::Failed, MachineState::Running) => MachineState::Failed,
            (MachineState::Deleting, MachineState::Running | MachineState::Booting) => MachineState::Deleting,
            (_, now) => now,
        };
        if row.state == MachineState::Gone {
            row.message = Some(format!(
                "the cloud does not have it any more; `gpuprov rm {}` clears the record",
                record.name
            ));
        } else if let (MachineState::Stopped | MachineState::Preempted | MachineState::Failed, Some(words)) =
            (look.state, &look.words)
        {
            row.message = row.message.or_else(|| Some(words.clone()));
        }
        follow_address(context, &record, &look);
        let stopped = look.state == MachineState::Stopped && look.costs_now.is_none();
        if stopped && cloud.is_some_and(|cloud| cloud.capabilities().bills_stopped) {
            look.costs_now = record.price_per_hour.or(Some(attempt.offer.price_per_hour));
        }
        row.look = Some(look);
    }
    row.record = Some(record);
    row
}

/// Rewrites the ssh block of a machine whose address changed. Comfort only: a failure here is not one of the list.
pub fn follow_address(context: &Context, record: &Record, look: &Look) -> bool {
    let (Some(known), Some(now), Some(attempt)) = (&record.ssh, look.ssh.first(), record.current()) else {
        return false;
    };
    let Some(handle) = &attempt.handle else { return false };
    // Of several addresses the one that let us in is kept as long as the cloud names it.
    if look.ssh.contains(&known.address) {
        return false;
    }
    let Ok(lock) = context.registry.lock(&record.name) else { return false };
    let Ok(open) = Open::resume(lock) else { return false };
    let block = Block {
        name: record.name.clone(),
        address: now.clone(),
        identity_file: known.identity_file.clone().into(),
        host_key_alias: host_key_alias(&attempt.account, &handle.id),
        host_key_known: known.host_key_known,
    };
    context.ssh.write_block(&block).is_ok()
        && open
            .update(|record| {
                if let Some(ssh) = &mut record.ssh {
                    ssh.address = now.clone();
                }
            })
            .is_ok()
}

/// What a name or a cloud's id stands for.
#[derive(Debug)]
pub enum Sought {
    /// A record.
    Recorded(MachineName),
    /// Something at a cloud without a record.
    Found(AccountId, Box<Found>),
    /// Several machines of that name; these are their ids.
    Several(Vec<String>),
    /// Something that is not this installation's.
    NotMine(String),
    /// Nothing; with the accounts that did not answer.
    Nothing(Vec<Box<Error>>),
}

/// Looks for a machine by its name.
pub async fn by_name(context: &Context, name: &MachineName) -> Result<Sought, StateError> {
    if context.registry.read(name)?.is_some() || context.registry.is_held(name) {
        return Ok(Sought::Recorded(name.clone()));
    }
    let (found, failed) = list(context, &Which::Installation(context.installation.clone())).await;
    let mut hits: Vec<(AccountId, Found)> = found
        .into_iter()
        .filter(|(_, found)| found.kind == ResourceKind::Machine && found.mark.name == name.as_str())
        .collect();
    Ok(match (hits.len(), hits.pop()) {
        (_, None) => Sought::Nothing(failed),
        (1, Some((account, found))) => Sought::Found(account, Box::new(found)),
        (_, Some(last)) => {
            hits.push(last);
            Sought::Several(
                hits.iter().map(|(account, found)| format!("{account}:{}", found.handle.id)).collect(),
            )
        }
    })
}

/// Looks for a machine or left-over by its account and the cloud's id.
pub async fn by_id(
    context: &Context,
    account: &AccountId,
    id: &str,
    not_mine: bool,
) -> Result<Sought, StateError> {
    let recorded = |fits: &dyn Fn(&Attempt) -> bool| -> Result<Option<MachineName>, StateError> {
        Ok(context.registry.list()?.into_iter().find_map(|entry| match entry {
            Entry::Record(record) => record
                .current()
                .is_some_and(|attempt| attempt.account == *account && fits(attempt))
                .then_some(record.name),
            Entry::Unreadable(_) => None,
        }))
    };
    if let Some(name) = recorded(&|attempt| attempt.handle.as_ref().is_some_and(|handle| handle.id == id))? {
        return Ok(Sought::Recorded(name));
    }
    let Some(cloud) = context.account(account) else { return Ok(Sought::Nothing(Vec::new())) };
    let listed =
        within(context.cloud_timeout, cloud, "listing machines", cloud.find(&Which::AnyMarked)).await;
    let found = match listed {
        Ok(found) => found.into_iter().find(|found| found.handle.id == id),
        Err(error) => return Ok(Sought::Nothing(vec![error])),
    };
    // A create whose answer has not come, or was lost with its process, has a record without an id: the machine is its.
    if let Some(found) = &found
        && found.mark.installation == context.installation
        && let Some(name) =
            recorded(&|attempt| attempt.handle.is_none() && attempt.claim == found.mark.claim)?
    {
        return Ok(Sought::Recorded(name));
    }
    Ok(match found {
        None => Sought::Nothing(Vec::new()),
        Some(found) => {
            let mine = Which::Installation(context.installation.clone()).admits(&found.mark, account.name());
            if mine || not_mine {
                Sought::Found(account.clone(), Box::new(found))
            } else {
                Sought::NotMine(format!(
                    "{account}:{id} is `{}` of installation `{}`, account `{}`",
                    found.mark.name, found.mark.installation, found.mark.account
                ))
            }
        }
    })
}
