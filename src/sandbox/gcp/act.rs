//! What is done to instances that exist: delete, stop, labels, metadata, scheduling.

use serde_json::{Value, json};

use super::disk::late;
use super::instance::{Going, Instance, Phase, fingerprint};
use super::state::{Order, State, not_deleted};
use super::trouble::{GcpFault, GcpScript};
use super::{GcpCloud, fail, invalid, not_found, parts};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::scripts::Script;
use crate::sandbox::server::{Answer, Call};

impl Instance {
    /// Whether a script of its own refuses this delete.
    fn refuses_delete(&mut self) -> bool {
        let refuses = matches!(&self.script, Some(Script::Gcp(GcpScript::RefusesDelete { times })) if self.refused < *times);
        self.refused += u32::from(refuses);
        refuses
    }
}

impl GcpCloud {
    /// `instances.delete` and the other calls that change one instance.
    pub(super) fn act(
        &self,
        call: &Call,
        account: &str,
        id: &str,
        place: (&str, &str),
        body: &Value,
        request: Option<String>,
    ) -> Answer {
        let (zone, name) = place;
        let now = self.shared.clock.now();
        let mut state = lock(&self.state);
        let found = state.instance(account, zone, name);
        let Some(index) = found.filter(|index| now >= state.instances[*index].hidden_until) else {
            return not_found(&format!("zones/{zone}/instances/{name}"), &state.project(account));
        };
        let options = &self.shared.options;
        let mut takes = options.slow_delete / 4;
        let mut warning = None;
        let kind = match id {
            "instances.delete" => {
                match self.delete(&mut state, index, call) {
                    Ok(left) => warning = left,
                    Err(refused) => return *refused,
                }
                // It ends with the instance, and so does a second one. Time has passed: ending a machine takes some.
                let later = self.shared.clock.now();
                let going = state.instances[index].going.as_ref();
                takes = going.map_or(options.slow_delete, |going| going.until.saturating_sub(later));
                "delete"
            }
            "instances.stop" => {
                let one = &mut state.instances[index];
                if one.phase(now) != Phase::Running {
                    return fail(400, "resourceNotReady", "The resource is not ready");
                }
                one.stopped = true;
                one.machine.take().inspect(|_| self.shared.addresses.give_back(one.address));
                "stop"
            }
            "instances.setLabels" => {
                let one = &mut state.instances[index];
                if let Some(stale) = stale(body, "labelFingerprint", &json!(one.labels)) {
                    return stale;
                }
                match parts::labels(&body["labels"], "labels") {
                    Ok(labels) => one.labels = labels,
                    Err(refused) => return *refused,
                }
                "setLabels"
            }
            "instances.setMetadata" => {
                let one = &mut state.instances[index];
                if let Some(stale) = stale(body, "fingerprint", &json!(one.metadata)) {
                    return stale;
                }
                match parts::metadata(body) {
                    Ok(metadata) => one.metadata = metadata,
                    Err(refused) => return *refused,
                }
                self.let_in(&state, index);
                "setMetadata"
            }
            "instances.setScheduling" => return invalid("scheduling cannot be changed in the sandbox"),
            _ => match self.auto_delete(&mut state, index, call) {
                Ok(()) => "setDiskAutoDelete",
                Err(refused) => return *refused,
            },
        };
        let one = &state.instances[index];
        let order = Order {
            account,
            zone: Some(zone.to_owned()),
            kind,
            target: format!("zones/{zone}/instances/{}", one.name.clone()),
            target_id: one.id.clone(),
            request: request.map(|id| (id, format!("{} {}", call.method, call.path))),
            takes,
        };
        let mut operation = state.order(&self.shared, order, &call.faults);
        operation.warning.clone_from(&warning);
        if let Some(last) = state.operations.last_mut() {
            last.warning = warning;
        }
        drop(state);
        Answer::json(200, self.show_operation(&operation))
    }

    /// Lets an instance go; what stays is the operation's warning.
    fn delete(&self, state: &mut State, index: usize, call: &Call) -> Result<Option<Value>, Box<Answer>> {
        let now = self.shared.clock.now();
        let one = &mut state.instances[index];
        if one.refuses_delete() {
            let text = format!(
                "The resource 'projects/{}/zones/{}/instances/{}' is not ready",
                one.project, one.zone, one.name
            );
            return Err(Box::new(fail(400, "resourceNotReady", &text)));
        }
        if one.deletion_protection {
            let text = "Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion. Remove deletion protection and try again.'.";
            return Err(Box::new(fail(400, "invalidResourceUsage", text)));
        }
        let has = |fault: GcpFault| call.faults.contains(&FaultKind::Gcp(fault));
        if late(&call.faults).is_some() || has(GcpFault::NoEffect) {
            return Ok(None);
        }
        if one.going.is_none() {
            one.machine.take().inspect(|_| self.shared.addresses.give_back(one.address));
            let until = now + self.shared.options.slow_delete;
            one.going = Some(Going { until, disks_stay: has(GcpFault::DiskStays) });
        }
        let disk = format!("projects/{}/zones/{}/disks/{}", one.project, one.zone, one.name);
        Ok(has(GcpFault::DiskStays).then(|| not_deleted(&disk)))
    }

    /// Lets the keys of changed metadata in.
    fn let_in(&self, state: &State, index: usize) {
        let one = &state.instances[index];
        let keys = one
            .metadata("ssh-keys")
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.strip_prefix("ubuntu:"));
        let keys: Vec<&str> = keys.collect();
        one.machine.iter().for_each(|machine| machine.authorize(&keys.join("\n")));
    }

    fn auto_delete(&self, state: &mut State, index: usize, call: &Call) -> Result<(), Box<Answer>> {
        let pairs = call.pairs();
        let find = |name: &str| {
            pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
        };
        let (device, on) = (find("deviceName"), find("autoDelete"));
        let id = state.instances[index].id.clone();
        let mine = |disk: &&mut super::disk::Disk| {
            disk.device == device && disk.user.as_ref().is_some_and(|(user, _)| *user == id)
        };
        let Some(disk) = state.disks.iter_mut().find(mine) else {
            return Err(Box::new(invalid(&format!("No attached disk found with device name '{device}'"))));
        };
        disk.auto_delete = on == "true";
        Ok(())
    }

    /// `instances.get`.
    pub(super) fn instance(&self, call: &Call, account: &str, zone: &str, name: &str) -> Answer {
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        match state.instance(account, zone, name).filter(|index| now >= state.instances[*index].hidden_until)
        {
            Some(index) => Answer::json(200, self.look(&state, &state.instances[index], &call.faults)),
            None => not_found(&format!("zones/{zone}/instances/{name}"), &state.project(account)),
        }
    }

    fn look(&self, state: &State, one: &Instance, faults: &[FaultKind]) -> Value {
        let mut shown = self.show_instance(one, &state.attached(&one.id));
        for fault in faults {
            if let FaultKind::StatusWord { word } = fault {
                shown["status"] = json!(word);
            }
        }
        shown
    }

    /// The instances of an account as a list shows them, with their zones.
    pub(super) fn shown_instances(&self, call: &Call, account: &str) -> Vec<(String, Value)> {
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        let mine = state.instances.iter().filter(|one| one.account == account && !one.gone);
        let seen = mine.filter(|one| now >= one.listed_from && now >= one.hidden_until);
        let mut all: Vec<(String, Value)> =
            seen.map(|one| (one.zone.clone(), self.look(&state, one, &call.faults))).collect();
        all.sort_by_key(|(_, shown)| shown["name"].as_str().map(str::to_owned));
        all
    }

    /// `instances.getGuestAttributes`.
    pub(super) fn guest_attributes(&self, call: &Call, account: &str, zone: &str, name: &str) -> Answer {
        let now = self.shared.clock.now();
        let pairs = call.pairs();
        let find =
            |wanted: &str| pairs.iter().find(|(known, _)| known == wanted).map(|(_, value)| value.as_str());
        let state = lock(&self.state);
        let project = state.project(account);
        let at = format!("zones/{zone}/instances/{name}");
        let Some(one) = state.instance(account, zone, name).map(|index| &state.instances[index]) else {
            return not_found(&at, &project);
        };
        let missing = || not_found(&format!("{at}/guestAttributes/hostkeys/"), &project);
        if !one.keys_published(now) {
            return missing();
        }
        let link = format!("{}/{project}/{at}/guestAttributes/", super::operation::LINKS);
        match (find("queryPath"), find("variableKey")) {
            (Some(path), None) if matches!(path.trim_end_matches('/'), "hostkeys" | "") => {
                let items = one
                    .host_keys
                    .iter()
                    .map(|(kind, key)| json!({"namespace": "hostkeys", "key": kind, "value": key}));
                Answer::json(
                    200,
                    json!({"kind": "compute#guestAttributes", "queryPath": path,
                    "queryValue": {"items": items.collect::<Vec<_>>()}, "selfLink": link}),
                )
            }
            (None, Some(key)) => {
                match one.host_keys.iter().find(|(kind, _)| key.strip_prefix("hostkeys/") == Some(kind)) {
                    Some((_, value)) => Answer::json(
                        200,
                        json!({"kind": "compute#guestAttributes", "variableKey": key,
                    "variableValue": value, "selfLink": link}),
                    ),
                    None => missing(),
                }
            }
            (Some(_), None) => missing(),
            _ => invalid("exactly one of queryPath and variableKey must be given"),
        }
    }

    /// `instances.getSerialPortOutput`: what the first serial port has said so far.
    pub(super) fn serial_port(&self, call: &Call, account: &str, zone: &str, name: &str) -> Answer {
        let now = self.shared.clock.now();
        let pairs = call.pairs();
        let start = pairs
            .iter()
            .find(|(known, _)| known == "start")
            .and_then(|(_, value)| value.parse::<usize>().ok())
            .unwrap_or(0);
        let state = lock(&self.state);
        let at = format!("zones/{zone}/instances/{name}");
        let Some(one) = state.instance(account, zone, name).map(|index| &state.instances[index]) else {
            return not_found(&at, &state.project(account));
        };
        let mut text = String::new();
        if one.phase(now) == Phase::Running {
            text.push_str("[    0.000000] Linux version 6.8.0-1015-gcp (gpuprov sandbox)\r\n");
        }
        if one.sshd_due(now) {
            text.push_str("cloud-init: generating host keys\r\n-----BEGIN SSH HOST KEY KEYS-----\r\n");
            for (kind, key) in &one.host_keys {
                text.push_str(&format!("{kind} {key} root@{}\r\n", one.name));
            }
            text.push_str("-----END SSH HOST KEY KEYS-----\r\n");
        }
        let next = text.len();
        let rest = text.get(start.min(next)..).unwrap_or_default();
        let link = format!("{}/{}/{at}/serialPort", super::operation::LINKS, one.project);
        Answer::json(
            200,
            json!({"kind": "compute#serialPortOutput", "contents": rest, "start": start.min(next).to_string(),
                                 "next": next.to_string(), "selfLink": link}),
        )
    }
}

/// The refusal of a change that was made from an old look.
fn stale(body: &Value, field: &str, of: &Value) -> Option<Answer> {
    let sent = body[field].as_str().unwrap_or_default();
    (sent != fingerprint(of)).then(|| {
        fail(412, "conditionNotMet", "Supplied fingerprint does not match current metadata fingerprint.")
    })
}
