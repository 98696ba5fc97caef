//! `instances.insert`: the new instance, its disks, its operation and its machine. `judge.rs` decides whether it may be.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde_json::Value;

use super::GcpCloud;
use super::disk::{Disk, late};
use super::instance::Instance;
use super::judge::Plan;
use super::operation::Operation;
use super::quota;
use super::state::{Order, State};
use super::trouble::{GcpFault, GcpLeaves, GcpOperationError, GcpScript};
use super::{fail, invalid};
use crate::sandbox::Shared;
use crate::sandbox::addresses::NOWHERE;
use crate::sandbox::faults::FaultKind;
use crate::sandbox::ledger::LedgerEntry;
use crate::sandbox::lock;
use crate::sandbox::machine::Spec;
use crate::sandbox::scripts::{LoginTrouble, Script};
use crate::sandbox::server::{Answer, Call};

/// The user that keys in metadata are for; the images' default one.
const USER: &str = "ubuntu";

impl GcpCloud {
    /// Carries an insert out.
    pub(super) fn insert(
        &self,
        call: &Call,
        account: &str,
        zone: &str,
        body: &Value,
        request: Option<String>,
    ) -> Answer {
        let mut state = lock(&self.state);
        let Some(owner) = state.account(account) else { return invalid("no such project") };
        let name = body["name"].as_str().unwrap_or_default();
        if state.instance(account, zone, name).is_some() {
            let text = format!(
                "The resource 'projects/{}/zones/{zone}/instances/{name}' already exists",
                owner.project
            );
            return fail(409, "alreadyExists", &text);
        }
        let plan = match self.judge(&state, owner, zone, body) {
            Ok(plan) => plan,
            Err(refused) => return *refused,
        };
        let spot_only = plan.shape.spot_only && !plan.spot;
        if spot_only && self.guesses().spot_only_refused {
            let text = format!(
                "Machine type {} is only available with the SPOT provisioning model.",
                plan.shape.name
            );
            return fail(400, "badRequest", &text);
        }
        let (mut one, disks) = self.build(&mut state, account, zone, body, plan, &call.faults);
        let sizes: Vec<(String, u64)> = disks.iter().map(|disk| (disk.kind.clone(), disk.gb)).collect();
        let exceeded = quota::exceeded(&state, &one, &sizes, self.guesses().spot_quota_stands_alone);
        if let Some(error) = exceeded.as_ref().filter(|_| self.guesses().quota_at_once) {
            return fail(403, "quotaExceeded", &error.message);
        }
        let exceeded = exceeded.map(|mut error| {
            if self.guesses().quota_with_details {
                error.code = "QUOTA_EXCEEDED_WITH_DETAILS".into();
            }
            error
        });
        let no_room = spot_only.then(GcpOperationError::exhausted);
        one.doom = late(&call.faults).or(exceeded).or(no_room);
        if one.doom.as_ref().is_none_or(|doom| doom.leaves == GcpLeaves::Instance)
            && let Err(failed) = self.reserve_machine(&state, &mut one)
        {
            return fail(500, "internalError", &format!("the sandbox could not make a machine: {failed}"));
        }
        let operation = self.enter(&mut state, call, &one, request);
        ledger(&self.shared, &one, Some(call.index));
        state.disks.extend(disks);
        state.instances.push(one);
        drop(state);
        Answer::json(200, self.show_operation(&operation))
    }

    fn enter(&self, state: &mut State, call: &Call, one: &Instance, request: Option<String>) -> Operation {
        let order = Order {
            account: &one.account,
            zone: Some(one.zone.clone()),
            kind: "insert",
            target: format!("zones/{}/instances/{}", one.zone, one.name),
            target_id: one.id.clone(),
            request: request.map(|id| (id, format!("{} {}", call.method, call.path))),
            takes: one.settled_at.saturating_sub(one.born),
        };
        let mut operation = state.order(&self.shared, order, &call.faults);
        operation.error.clone_from(&one.doom);
        if let Some(last) = state.operations.last_mut() {
            last.error.clone_from(&one.doom);
        }
        operation
    }

    fn build(
        &self,
        state: &mut State,
        account: &str,
        zone: &str,
        body: &Value,
        plan: Plan,
        faults: &[FaultKind],
    ) -> (Instance, Vec<Disk>) {
        let now = self.shared.clock.now();
        let id = state.id();
        let project = state.project(account);
        let hidden = faults.iter().find_map(|fault| match fault {
            FaultKind::AppearLater { ms } => Some(now + Duration::from_millis(*ms)),
            _ => None,
        });
        let hidden_until = hidden.unwrap_or(Duration::ZERO);
        let lost = faults.contains(&FaultKind::Gcp(GcpFault::LabelsLost));
        let kept = |labels: BTreeMap<String, String>| if lost { BTreeMap::new() } else { labels };
        let disks = plan
            .disks
            .into_iter()
            .map(|disk| Disk {
                id: state.id(),
                account: account.to_owned(),
                project: project.clone(),
                zone: zone.to_owned(),
                name: disk.name,
                gb: disk.gb,
                kind: disk.kind,
                image: disk.image,
                labels: kept(disk.labels),
                foreign: false,
                created: now,
                hidden_until,
                user: Some((id.clone(), plan.name.clone())),
                boot: disk.boot,
                auto_delete: disk.auto_delete,
                device: disk.device,
            })
            .collect();
        let (kind, count) = plan.gpus.clone().unzip();
        let metrics =
            kind.as_deref().and_then(|kind| self.shapes.accelerator(kind)).map(|one| one.metrics.clone());
        let boot = state.between(self.shared.options.boot);
        let mut one = Instance {
            id,
            account: account.to_owned(),
            project,
            zone: zone.to_owned(),
            name: plan.name,
            description: body["description"].as_str().filter(|text| !text.is_empty()).map(str::to_owned),
            labels: kept(plan.labels),
            metadata: plan.metadata,
            tags: plan.tags,
            scheduling: plan.scheduling,
            network: plan.network,
            subnetwork: plan.subnetwork,
            external: plan.external,
            deletion_protection: body["deletionProtection"] == true,
            price: self.prices.of(
                &plan.shape.name,
                zone,
                count.filter(|_| plan.shape.bundle.is_none()),
                plan.spot,
            ),
            shape: plan.shape,
            gpus: plan.gpus,
            gpu_metrics: metrics.unwrap_or_default(),
            spot: plan.spot,
            foreign: false,
            script: None,
            born: now,
            age: Duration::ZERO,
            boot,
            hidden_until,
            listed_from: hidden.unwrap_or(now),
            settled_at: now + boot / 4,
            doom: None,
            expires: plan.lasts.map(|lasts| now + lasts),
            stopped: false,
            going: None,
            gone: false,
            refused: 0,
            host_keys: Vec::new(),
            address: NOWHERE,
            machine: None,
        };
        self.twist(&mut one, faults);
        (one, disks)
    }

    /// Faults of meaning on an insert.
    fn twist(&self, one: &mut Instance, faults: &[FaultKind]) {
        for fault in faults {
            if let FaultKind::Script { script } = fault {
                one.script = Some(script.clone());
            }
        }
        match one.script.clone() {
            Some(Script::SoldDifferently { cost_factor, gpu, count }) => {
                one.price *= cost_factor;
                if let Some(shape) = gpu.and_then(|name| self.shapes.all.get(&name)) {
                    one.shape = shape.clone();
                    one.gpus = shape.bundle.as_ref().map(|bundle| (bundle.accelerator.clone(), bundle.count));
                }
                if let Some((_, gpus)) = &mut one.gpus {
                    *gpus = count.unwrap_or(*gpus);
                }
            }
            Some(Script::Gcp(GcpScript::ForgetsEnd)) => {
                one.expires = None;
                one.scheduling.remove("maxRunDuration");
            }
            _ => {}
        }
    }

    /// Gives an instance an address and a machine that answers there after the boot.
    pub(super) fn reserve_machine(&self, state: &State, one: &mut Instance) -> io::Result<()> {
        let authorized = authorized(state, one);
        let trouble = match &one.script {
            Some(Script::NeverLogin { cause }) => Some(*cause),
            _ if !state.lets_ssh_in(&one.account, &one.network, &one.tags) => Some(LoginTrouble::Closed),
            _ => authorized.is_empty().then_some(LoginTrouble::NoKey),
        };
        let smi =
            one.gpus.as_ref().and_then(|(kind, count)| Some(self.shapes.accelerator(kind)?.smi(*count)));
        let spec = Spec {
            host: one.id.clone(),
            user: USER,
            authorized,
            gpus: smi.unwrap_or_default(),
            container_env: Vec::new(),
            trouble,
            second: None,
            banner: None,
            forwarding: one.script != Some(Script::NoForwarding),
        };
        let (address, machine) = self.shared.addresses.reserve(&spec, &self.shared.options.scratch)?;
        one.address = address;
        let key = if one.script == Some(GcpScript::OtherHostKey.into()) {
            // Ed25519 in OpenSSH's wire format, of a key that nobody has.
            let mut wire = b"\0\0\0\x0bssh-ed25519\0\0\0\x20".to_vec();
            wire.extend_from_slice(&crate::sandbox::machine::random::<32>());
            use base64::Engine;
            base64::engine::general_purpose::STANDARD.encode(wire)
        } else {
            machine.host_key()
        };
        one.host_keys = vec![("ssh-ed25519".to_owned(), key)];
        one.machine = Some(machine);
        Ok(())
    }
}

/// The keys that get in as the images' user: those in the instance's metadata, those of the project unless they are blocked,
/// and none at all with OS Login.
fn authorized(state: &State, one: &Instance) -> String {
    let owner = state.account(&one.account);
    let wide = |key: &str| owner.and_then(|owner| owner.metadata.get(key)).map(String::as_str);
    let yes = |word: &str| word.eq_ignore_ascii_case("true");
    let enforced = owner.is_some_and(|owner| owner.policies.contains(&super::account::GcpPolicy::OsLogin));
    if enforced || one.metadata("enable-oslogin").or_else(|| wide("enable-oslogin")).is_some_and(yes) {
        return String::new();
    }
    let blocked = one.metadata("block-project-ssh-keys").is_some_and(yes);
    let own = one.metadata("ssh-keys").unwrap_or_default();
    let shared = wide("ssh-keys").filter(|_| !blocked).unwrap_or_default();
    let lines = own.lines().chain(shared.lines());
    // A line with a letter that is not ASCII is skipped by cloud-init.
    let keys = lines.filter(|line| line.is_ascii()).filter_map(|line| line.strip_prefix("ubuntu:"));
    keys.collect::<Vec<_>>().join("\n")
}

/// Writes an instance into the ledger; its labels stand where other clouds have an environment.
pub(super) fn ledger(shared: &Shared, one: &Instance, request: Option<usize>) {
    let born = shared.clock.date(one.born);
    let age = jiff::SignedDuration::try_from(one.age).unwrap_or(jiff::SignedDuration::ZERO);
    shared.ledger.made(LedgerEntry {
        cloud: "gcp",
        id: one.id.clone(),
        name: one.name.clone(),
        account: one.account.clone(),
        created_at: born.checked_sub(age).unwrap_or(born),
        ended_at: None,
        price_per_hour: one.price,
        gpu: one.gpus.as_ref().map(|(kind, _)| kind.clone()).unwrap_or_default(),
        count: one.gpus.as_ref().map_or(0, |(_, count)| *count),
        env: one.labels.clone(),
        alive: true,
        created_by_request: request,
    });
}
