//! What is done to volumes: creating, deleting, the other actions.

use super::judge::volume_type;
use super::state::State;
use super::volume::{Place, Standing, Volume};
use super::wire::{CreateVolume, DeleteVolume, OnSpot, VolumeAction, read, tags_wrong};
use super::{VerdaCloud, error, invalid, no_effect};
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

impl VerdaCloud {
    /// `POST /volumes`.
    pub(super) fn create_volume(&self, call: &Call, account: &str) -> Answer {
        let body: CreateVolume = match read(call) {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        if let Err(refused) = volume_type(&body.kind) {
            return *refused;
        }
        if body.instance_id.is_some() || body.instance_ids.is_some() {
            return invalid("a volume that is made on an instance is not played");
        }
        if body.name.is_empty() || body.size == 0 || !self.catalog.knows_location(&body.location_code) {
            return invalid("a volume needs a name, a size and a known location");
        }
        if let Some(wrong) = body.tags.as_ref().and_then(|tags| tags_wrong(tags)) {
            return invalid(&wrong);
        }
        let now = self.shared.clock.now();
        let mut state = lock(&self.state);
        let (gb, count) = state.stored(account, now);
        let quota = state.account(account).map(|owner| owner.quota).unwrap_or_default();
        if count >= quota.volumes {
            return error(400, "invalid_request", "Volume limit exceeded");
        }
        if gb + body.size > quota.storage {
            return error(400, "invalid_request", "Storage limit exceeded");
        }
        let tags = state.tags(&body.tags.unwrap_or_default());
        let id = state.uuid();
        state.volumes.push(Volume {
            id: id.clone(),
            account: account.to_owned(),
            name: body.name,
            size: body.size,
            kind: body.kind,
            location: body.location_code,
            is_os: false,
            key_ids: Vec::new(),
            tags,
            on_spot: OnSpot::KeepDetached,
            foreign: false,
            created: self.shared.clock.date(now),
            hidden_until: now,
            place: Place::Detached,
        });
        self.new_id(202, &id)
    }

    /// `DELETE /volumes/{id}`.
    pub(super) fn delete_volume(&self, call: &Call, account: &str, id: &str) -> Answer {
        if call.query.contains("force") {
            return invalid("force is no parameter of this call");
        }
        let body = if call.body.is_empty() { Ok(DeleteVolume::default()) } else { read(call) };
        let body = match body {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        if no_effect(call) {
            return Answer::empty(202);
        }
        let mut state = lock(&self.state);
        self.drop_volume(&mut state, account, id, body.is_permanent == Some(true))
    }

    /// Deletes one volume; one that is in the trash already can be deleted for good.
    fn drop_volume(&self, state: &mut State, account: &str, id: &str, permanent: bool) -> Answer {
        let now = self.shared.clock.now();
        let slow = self.shared.options.slow_delete;
        let mine = |volume: &&Volume| volume.id == id && volume.account == account;
        let Some(found) = state.volumes.iter().find(mine) else {
            return error(404, "not_found", "Invalid volume id");
        };
        let held = found.instance().and_then(|on| state.instances.iter().find(|one| one.id == on));
        let runs = held.is_some_and(|one| !one.offline && one.deleted.is_none());
        match found.standing(now) {
            Standing::Deleting | Standing::Gone => return Answer::empty(204),
            Standing::Attached if runs => {
                return error(
                    403,
                    "forbidden_action",
                    "Can't delete a volume that is attached to a running instance",
                );
            }
            Standing::Trash if !permanent => return Answer::empty(204),
            _ => {}
        }
        let place =
            if permanent { Place::Deleting { since: now, until: now + slow } } else { Place::Trash(now) };
        state
            .volumes
            .iter_mut()
            .filter(|volume| volume.id == id)
            .for_each(|volume| volume.place = place.clone());
        Answer::empty(202)
    }

    /// `PUT /volumes`.
    pub(super) fn volume_action(&self, call: &Call, account: &str) -> Answer {
        let body: VolumeAction = match read(call) {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        if no_effect(call) {
            return Answer::empty(202);
        }
        let now = self.shared.clock.now();
        let mut state = lock(&self.state);
        for id in body.id.clone().list() {
            if body.action == "delete" {
                let answer = self.drop_volume(&mut state, account, &id, body.is_permanent == Some(true));
                if answer.status >= 300 {
                    return answer;
                }
                continue;
            }
            let on = body.instance_id.as_ref().or_else(|| body.instance_ids.as_ref()?.first());
            let on =
                on.and_then(|on| state.seen(now, account, on)).map(|index| state.instances[index].id.clone());
            let found = state.volumes.iter_mut().find(|volume| volume.id == id && volume.account == account);
            let Some(volume) = found else { return error(404, "not_found", "Invalid volume id") };
            match (body.action.as_str(), volume.standing(now)) {
                ("detach", Standing::Attached) if !volume.is_os => volume.place = Place::Detached,
                ("attach", Standing::Detached) => match on {
                    Some(on) => volume.place = Place::Attached(on),
                    None => return error(404, "not_found", "Invalid instance id"),
                },
                ("restore", Standing::Trash) => volume.place = Place::Detached,
                ("rename", Standing::Attached | Standing::Detached) => match &body.name {
                    Some(name) => volume.name.clone_from(name),
                    None => return invalid("name is required"),
                },
                ("resize", Standing::Detached) => match body.size {
                    Some(size) if size > volume.size => volume.size = size,
                    _ => return invalid("a volume can only grow"),
                },
                ("detach" | "attach" | "restore" | "rename" | "resize", _) => {
                    return error(403, "forbidden_action", "The volume's status does not allow this action");
                }
                _ => return invalid("an action that is not played"),
            }
        }
        Answer::empty(202)
    }
}
