//! What is done to instances and disks that exist: delete, stop, start.

use serde_json::Value;

use super::instance::Stage;
use super::judge::text;
use super::operation::Kind;
use super::state::State;
use super::status::{Outcome, Trouble};
use super::trouble::NebiusFault;
use super::{NebiusCloud, Request};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::grpc::Code;
use crate::sandbox::lock;

fn has(request: &Request<'_>, fault: &NebiusFault) -> bool {
    request.call.faults.iter().any(|one| matches!(one, FaultKind::Nebius(one) if one == fault))
}

impl NebiusCloud {
    /// `InstanceService/Delete`.
    pub(super) fn delete(&self, request: &Request<'_>, account: &str) -> Outcome {
        let id = text(&request.message, "/id");
        let mut state = lock(&self.state);
        let index = state.seen(&self.shared, account, id).ok_or_else(|| Trouble::not_found(id))?;
        let region = state.instances[index].region.clone();
        if state.instances[index].deleted.is_some() {
            let open = state.under_way(id).map(|one| one.show(&self.shared.clock));
            return open.ok_or_else(|| Trouble::not_found(id));
        }
        if state.guesses.delete_waits
            && let Some(open) = state.under_way(id)
        {
            return Err(Trouble::conflict(&open.id, id));
        }
        if state.instances[index].refuses_delete() {
            return Err(Trouble::state(id, "managed disk cannot be deleted"));
        }
        let now = self.shared.clock.now();
        if has(request, &NebiusFault::NoEffect) {
            let operation = state.begin(&self.shared, account, Kind::Delete, id, &region);
            let made = state.operations.iter_mut().filter(|one| one.id == operation);
            made.for_each(|one| one.finished = Some(now));
            return self.operation(&state, account, &operation);
        }
        let open: Vec<String> = state
            .operations
            .iter()
            .filter(|one| one.resource == id && one.finished.is_none())
            .map(|one| one.id.clone())
            .collect();
        let operation = state.begin(&self.shared, account, Kind::Delete, id, &region);
        for one in state.operations.iter_mut().filter(|one| open.contains(&one.id)) {
            one.finished = Some(now);
            one.trouble = Some(Trouble::aborted(&one.id, &operation, id));
        }
        state.end(&self.shared, index, has(request, &NebiusFault::DiskStays));
        self.operation(&state, account, &operation)
    }

    /// `InstanceService/Stop`: the address goes, the disk stays and is billed.
    pub(super) fn stop(&self, request: &Request<'_>, account: &str) -> Outcome {
        let id = text(&request.message, "/id");
        let mut state = lock(&self.state);
        let index = state.seen(&self.shared, account, id).ok_or_else(|| Trouble::not_found(id))?;
        if let Some(open) = state.under_way(id) {
            return Err(Trouble::conflict(&open.id, id));
        }
        if self.stage(&state, &state.instances[index]) != Stage::Running {
            return Err(Trouble::state(id, "instance is not running"));
        }
        let region = state.instances[index].region.clone();
        let operation = state.begin(&self.shared, account, Kind::Stop, id, &region);
        state.instances[index].stopped = Some(self.shared.clock.now() + self.shared.options.slow_delete);
        state.tick(&self.shared);
        self.operation(&state, account, &operation)
    }

    /// `InstanceService/Start`: with another address.
    pub(super) fn start_again(&self, request: &Request<'_>, account: &str) -> Outcome {
        let id = text(&request.message, "/id");
        let mut state = lock(&self.state);
        let index = state.seen(&self.shared, account, id).ok_or_else(|| Trouble::not_found(id))?;
        if let Some(open) = state.under_way(id) {
            return Err(Trouble::conflict(&open.id, id));
        }
        if !matches!(self.stage(&state, &state.instances[index]), Stage::Stopped | Stage::Failed) {
            return Err(Trouble::state(id, "instance is not stopped"));
        }
        let region = state.instances[index].region.clone();
        let operation = state.begin(&self.shared, account, Kind::Start, id, &region);
        let one = &mut state.instances[index];
        (one.stopped, one.fails, one.script) = (None, None, None);
        one.started = self.shared.clock.now();
        if let Err(failed) = self.power_on(one) {
            let message = format!("the sandbox could not make a machine: {failed}");
            return Err(Trouble::plain(Code::INTERNAL, message));
        }
        self.operation(&state, account, &operation)
    }

    /// `DiskService/Delete`.
    pub(super) fn delete_disk(&self, request: &Request<'_>, account: &str) -> Outcome {
        let id = text(&request.message, "/id");
        let mut state = lock(&self.state);
        let now = self.shared.clock.now();
        let until = now + self.shared.options.slow_delete;
        let found = state.disks.iter_mut().find(|disk| {
            disk.id == id && disk.account == account && disk.exists(now) && now >= disk.hidden_until
        });
        let disk = found.ok_or_else(|| Trouble::not_found(id))?;
        if disk.attached.is_some() {
            return Err(Trouble::state(id, "disk is attached to an instance"));
        }
        let region = disk.region.clone();
        let begun = disk.deleted.is_some();
        if !begun && !has(request, &NebiusFault::NoEffect) {
            disk.deleted = Some(until);
        }
        if let Some(open) = state.under_way(id) {
            return Ok(open.show(&self.shared.clock));
        }
        let operation = state.begin(&self.shared, account, Kind::DeleteDisk, id, &region);
        if has(request, &NebiusFault::NoEffect) {
            let made = state.operations.iter_mut().filter(|one| one.id == operation);
            made.for_each(|one| one.finished = Some(now));
        }
        self.operation(&state, account, &operation)
    }

    /// How an operation looks now.
    pub(super) fn operation(&self, state: &State, account: &str, id: &str) -> Outcome<Value> {
        let found = state.operation(account, id).ok_or_else(|| Trouble::not_found(id))?;
        Ok(found.show(&self.shared.clock))
    }
}
