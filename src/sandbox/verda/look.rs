//! Looks at instances and volumes: lists, one by its id, tags in the query.

use serde_json::{Value, json};

use super::instance::{Instance, Phase};
use super::state::State;
use super::volume::{Standing, Volume};
use super::wire::find;
use super::{VerdaCloud, error, invalid};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

/// Words that `status` of the list of instances knows.
const STATUSES: [&str; 13] = [
    "running",
    "provisioning",
    "offline",
    "discontinued",
    "unknown",
    "ordered",
    "notfound",
    "new",
    "error",
    "deleting",
    "validating",
    "no_capacity",
    "installation_failed",
];

impl VerdaCloud {
    /// `GET /instances`: those that are not gone, newest first.
    pub(super) fn list(&self, call: &Call, account: &str) -> Answer {
        let pairs = call.pairs();
        let status = find(&pairs, &["status"]);
        if status.is_some_and(|word| !STATUSES.contains(&word)) {
            return invalid("status is not one of the known");
        }
        let id = find(&pairs, &["computeId"]);
        let tags: Vec<&String> = pairs.iter().filter(|(name, _)| name == "tag").map(|(_, tag)| tag).collect();
        let now = self.shared.clock.now();
        let slow = self.shared.options.slow_delete;
        let state = lock(&self.state);
        let fits = |one: &&Instance| {
            let phase = one.phase(now, slow);
            one.account == account
                && now >= one.listed_from
                && now >= one.hidden_until
                && !matches!(phase, Phase::Discontinued | Phase::Lost)
                && status.is_none_or(|word| word == one.word(phase))
                && id.is_none_or(|id| id == one.id)
                && tags.iter().all(|wanted| tagged(one, wanted))
        };
        let shown = state.instances.iter().rev().filter(fits);
        Answer::json(200, shown.map(|one| self.show(&state, one, &call.faults)).collect())
    }

    /// `GET /instances/{id}`: also long after its end.
    pub(super) fn get(&self, call: &Call, account: &str, id: &str) -> Answer {
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        let unknown = || {
            let (status, code) =
                if self.guesses().unknown_id_is_400 { (400, "invalid_request") } else { (404, "not_found") };
            error(status, code, "Invalid instance id")
        };
        let Some(one) = state.seen(now, account, id).map(|index| &state.instances[index]) else {
            return unknown();
        };
        match one.phase(now, self.shared.options.slow_delete) {
            Phase::Lost => unknown(),
            Phase::Discontinued if self.guesses().gone_is_404 => unknown(),
            _ => Answer::json(200, self.show(&state, one, &call.faults)),
        }
    }

    fn show(&self, state: &State, one: &Instance, faults: &[FaultKind]) -> Value {
        let now = self.shared.clock.now();
        let phase = one.phase(now, self.shared.options.slow_delete);
        let mut shown = one.show(phase, now, &state.attached(&one.id), self.guesses());
        for fault in faults {
            if let FaultKind::StatusWord { word } = fault {
                shown["status"] = json!(word);
            }
        }
        shown
    }

    /// `GET /volumes`: those that are not deleted.
    pub(super) fn volumes(&self, call: &Call, account: &str) -> Answer {
        let pairs = call.pairs();
        let status = find(&pairs, &["status"]);
        self.show_volumes(account, |_, standing| match standing {
            Standing::Attached => status.is_none_or(|word| word == "attached"),
            Standing::Detached => status.is_none_or(|word| word == "detached"),
            Standing::Deleting => status.is_none_or(|word| word == "deleting"),
            Standing::Trash | Standing::Gone => false,
        })
    }

    /// `GET /volumes/trash`.
    pub(super) fn trash(&self, account: &str) -> Answer {
        self.show_volumes(account, |_, standing| standing == Standing::Trash)
    }

    /// `GET /volumes/{id}`: also of one that is deleted.
    pub(super) fn volume(&self, account: &str, id: &str) -> Answer {
        let mut answer = self.show_volumes(account, |volume, _| volume.id == id);
        if let crate::sandbox::server::Payload::Json(Value::Array(found)) = &mut answer.body
            && let Some(one) = found.pop()
        {
            return Answer::json(200, one);
        }
        error(404, "not_found", "Invalid volume id")
    }

    fn show_volumes(&self, account: &str, wanted: impl Fn(&Volume, Standing) -> bool) -> Answer {
        let now = self.shared.clock.now();
        let slow = self.shared.options.slow_delete;
        let state = lock(&self.state);
        let fits = |volume: &&Volume| {
            volume.account == account && now >= volume.hidden_until && wanted(volume, volume.standing(now))
        };
        let shown = state.volumes.iter().rev().filter(fits).map(|volume| {
            let on = state.instances.iter().find(|one| volume.instance() == Some(one.id.as_str()));
            let on = on.map(|one| {
                let phase = one.phase(now, slow);
                json!({"id": one.id, "auto_rental_extension": null, "ip": one.told_address(phase, now),
                       "instance_type": one.kind.code, "status": one.word(phase), "os_volume_id": one.os_volume,
                       "hostname": one.hostname})
            });
            volume.show(now, on, |at| self.shared.clock.date(at))
        });
        Answer::json(200, shown.collect())
    }
}

/// Whether an instance carries a tag: `key` with any value, or `key=value`, split at the first `=`.
fn tagged(one: &Instance, wanted: &str) -> bool {
    let (key, value) = match wanted.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (wanted, None),
    };
    one.tags.iter().any(|tag| tag.key == key && value.is_none_or(|value| value == tag.value))
}
