//! Forgetting: the last way out, when a machine can never be proven gone.

use crate::cloud::ErrorKind;
use crate::model::machine::MachineName;
use crate::provision::events::Silent;
use crate::provision::failure::Kind;
use crate::provision::remove::Kept;
use crate::provision::{Context, Did, What};
use crate::state::machines::Entry;
use crate::state::record::{Attempt, Record};

/// Drops only the record of a machine that can never be proven gone; returns what may still cost money.
pub fn forget(context: &Context, name: &MachineName) -> Result<Option<String>, Kept> {
    let kept =
        |kind: Kind, message: String| Kept { name: name.to_string(), account: None, id: None, kind, message };
    let lock = context.registry.lock(name).map_err(|error| kept(Kind::Refused, error.to_string()))?;
    let entry = lock.read().map_err(|error| kept(Kind::Local, error.to_string()))?;
    let Some(entry) = entry else {
        return Err(kept(Kind::Cloud(ErrorKind::NotFound), format!("there is no record of `{name}`")));
    };
    let record = match &entry {
        Entry::Record(record) => Some(record.as_ref()),
        Entry::Unreadable(_) => None,
    };
    let attempt = record.and_then(Record::current);
    lock.forget().map_err(|error| kept(Kind::Local, error.to_string()))?;
    // Both are comfort beside the record, which is gone now.
    let _ = context.ssh.remove(name);
    let (action, outcome) = ("forget", "forgotten");
    let did = match attempt {
        Some(Attempt { account, claim, offer, started_at, .. }) => Did {
            created_at: Some(*started_at),
            ..Did::bought(action, name, account, *claim, offer, outcome)
        },
        None => Did {
            action,
            account: None,
            owner: None,
            name: name.as_str(),
            claim: None,
            what: What::Unknown,
            created_at: None,
            cost: None,
            outcome,
        },
    };
    context.record(Did { owner: record.and_then(|record| record.owner.as_ref()), ..did }, &Silent);
    Ok(match (record, attempt) {
        (None, _) => Some("what it spoke of".to_owned()),
        (Some(_), None) => None,
        (_, Some(attempt)) => {
            let id = attempt.handle.as_ref().map_or("a machine without a known id", |handle| &handle.id);
            Some(format!("{}:{id} for {}/h", attempt.account, attempt.offer.price_per_hour))
        }
    })
}
