//! `InstanceService/Create`: the new instance, its disk and its machine. `judge.rs` decides whether it may be.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Value, json};

use super::NebiusCloud;
use super::catalog::Preset;
use super::disk::Disk;
use super::instance::Instance;
use super::judge::{HANGS_BELOW, Plan, text};
use super::operation::Kind;
use super::state::{Once, State};
use super::status::{Outcome, Trouble};
use super::trouble::{NebiusFault, NebiusScript};
use super::{Request, cloud_init};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::grpc::Code;
use crate::sandbox::ledger::LedgerEntry;
use crate::sandbox::machine::Spec;
use crate::sandbox::scripts::{LoginTrouble, Script};
use crate::sandbox::{Shared, lock};

impl NebiusCloud {
    /// Carries a create out.
    pub(super) fn create(&self, request: &Request<'_>, account: &str) -> Outcome {
        let body = &request.message;
        let mut state = lock(&self.state);
        let key = request.call.header("x-idempotency-key");
        if key.is_empty() {
            return Err(Trouble::invalid(
                "x-idempotency-key",
                "a create without a key could be carried out twice",
            ));
        }
        let slot = (account.to_owned(), key.to_owned());
        if let Some(once) = state.once.get(&slot) {
            if once.path != request.call.path || once.body != *body {
                let message = "the key was used for another request";
                return Err(Trouble::invalid("x-idempotency-key", message));
            }
            let found = state.operations.iter().find(|one| one.id == once.operation);
            let found = found.ok_or_else(|| Trouble::not_found(&once.operation))?;
            return Ok(found.show(&self.shared.clock));
        }
        let plan = self.judge(&state, account, body)?;
        let over = self.over_quota(&state, account, &plan);
        let over = over.map(|(name, limit, wanted)| Trouble::quota(&name, limit, wanted));
        if let Some(over) = over.as_ref().filter(|_| state.guesses.quota_at_create) {
            return Err(over.clone());
        }
        let (mut one, disk) = self.build(&mut state, account, body, &plan, &request.call.faults);
        let late = one.boot / 2;
        let empty = plan.platform.site(&one.region).is_none_or(|site| {
            let (_, stock) = self.stock(&state, account, plan.platform, site, one.spot);
            stock < one.preset.1.max(1)
        });
        if request.call.faults.contains(&FaultKind::StaleOffer) || empty {
            one.fails = Some((late, Trouble::no_capacity(&plan.platform.name)));
        }
        if let Some(over) = over {
            one.fails = Some((late, over));
        }
        if let Some(Script::Nebius(NebiusScript::LateFailure { ms, cause })) = &one.script {
            one.fails = Some((Duration::from_millis(*ms), cause.trouble(&plan.platform.name)));
        }
        if let Err(failed) = self.power_on(&mut one) {
            let message = format!("the sandbox could not make a machine: {failed}");
            return Err(Trouble::plain(Code::INTERNAL, message));
        }
        enter(&self.shared, &one, Some(request.call.index));
        let (id, region) = (one.id.clone(), one.region.clone());
        state.disks.push(disk);
        state.instances.push(one);
        let operation = state.begin(&self.shared, account, Kind::Create, &id, &region);
        let once = Once { path: request.call.path.clone(), body: body.clone(), operation: operation.clone() };
        state.once.insert(slot, once);
        let shown = state.operation(account, &operation).map(|one| one.show(&self.shared.clock));
        if request.call.faults.contains(&FaultKind::Nebius(NebiusFault::OperationLost)) {
            let made = state.operations.iter_mut().filter(|one| one.id == operation);
            made.for_each(|one| one.lost = true);
        }
        Ok(shown.unwrap_or_default())
    }

    fn build(
        &self,
        state: &mut State,
        account: &str,
        body: &Value,
        plan: &Plan<'_>,
        faults: &[FaultKind],
    ) -> (Instance, Disk) {
        let now = self.shared.clock.now();
        let region = plan.project.region.clone();
        let id = state.id("computeinstance", &region);
        let hidden = faults.iter().find_map(|fault| match fault {
            FaultKind::AppearLater { ms } => Some(now + Duration::from_millis(*ms)),
            _ => None,
        });
        let hidden_until = hidden.unwrap_or(Duration::ZERO);
        let lost = faults.contains(&FaultKind::Nebius(NebiusFault::LabelsLost));
        let labels = |pointer: &str| match body.pointer(pointer) {
            Some(labels) if !lost => labels.clone(),
            _ => json!({}),
        };
        let managed = body.pointer("/spec/boot_disk/managed_disk").cloned().unwrap_or_default();
        let created = self.shared.clock.date(now);
        let disk = Disk {
            id: state.id("computedisk", &region),
            account: account.to_owned(),
            project: plan.project.id.clone(),
            region: region.clone(),
            name: text(&managed, "/name").to_owned(),
            labels: labels("/spec/boot_disk/managed_disk/labels"),
            spec: managed.get("spec").cloned().unwrap_or_default(),
            gib: plan.gib,
            attached: Some(id.clone()),
            managed: true,
            foreign: false,
            created,
            hidden_until,
            deleted: None,
        };
        let small = plan.gib < HANGS_BELOW && !state.guesses.small_disks_boot;
        let mut one = Instance {
            id,
            account: account.to_owned(),
            project: plan.project.id.clone(),
            name: plan.name.clone(),
            labels: labels("/metadata/labels"),
            spec: body.get("spec").cloned().unwrap_or_default(),
            platform: plan.platform.clone(),
            preset: plan.preset.clone(),
            spot: plan.spot,
            price: self.price(state, account, plan.platform, plan.preset, plan.spot, &region),
            region,
            foreign: false,
            script: None,
            born: now,
            created,
            started: now,
            boot: state.between(self.shared.options.boot),
            fails: None,
            hidden_until,
            listed_from: hidden.unwrap_or(now + self.shared.options.listing_lag),
            stopped: None,
            deleted: None,
            refused: 0,
            lost: false,
            hangs: small || plan.image.is_none(),
            public: plan.public,
            address: Ipv4Addr::LOCALHOST,
            machine: None,
        };
        if plan.image.is_some_and(|image| !image.driver) {
            // No driver, no GPUs to see.
            one.platform.smi.clear();
        }
        self.twist(&mut one, faults);
        (one, disk)
    }

    /// Faults of meaning on a create.
    fn twist(&self, one: &mut Instance, faults: &[FaultKind]) {
        for fault in faults {
            if let FaultKind::Script { script } = fault {
                one.script = Some(script.clone());
            }
        }
        match one.script.clone() {
            Some(Script::SoldDifferently { cost_factor, gpu, count }) => {
                one.price *= cost_factor;
                let platform = gpu.and_then(|name| self.catalog.platform(&name).cloned());
                one.platform = platform.unwrap_or_else(|| one.platform.clone());
                let wanted = count.unwrap_or(one.preset.1);
                let preset = one.platform.presets.iter().find(|preset| preset.1 == wanted);
                one.preset = preset.or(one.platform.presets.first()).unwrap_or(&one.preset).clone();
                one.spec["resources"] = json!({"platform": one.platform.name, "preset": one.preset.0});
            }
            Some(Script::Nebius(NebiusScript::Hangs)) => one.hangs = true,
            _ => {}
        }
    }

    /// Gives an instance an address and a machine that answers there after the boot.
    pub(super) fn power_on(&self, one: &mut Instance) -> io::Result<()> {
        let booted = cloud_init::boot(text(&one.spec, "/cloud_init_user_data"));
        let trouble = match &one.script {
            Some(Script::NeverLogin { cause }) => Some(*cause),
            _ if booted.no_sshd => Some(LoginTrouble::Closed),
            _ => booted.authorized.is_empty().then_some(LoginTrouble::NoKey),
        };
        let gpus = if one.platform.smi.is_empty() { Vec::new() } else { one.platform.smi(&one.preset) };
        let spec = Spec {
            host: one.id.clone(),
            user: cloud_init::USER,
            authorized: booted.authorized,
            gpus,
            container_env: Vec::new(),
            trouble,
            second: None,
            banner: None,
            forwarding: booted.forwarding && one.script != Some(Script::NoForwarding),
        };
        let (address, machine) = self.shared.addresses.reserve(&spec, &self.shared.options.scratch)?;
        if let Some(key) = booted.host_key {
            machine.set_host_key(key);
        }
        one.address = address;
        one.machine = Some(machine);
        Ok(())
    }

    /// US dollars per hour for a whole machine, without its disk.
    pub(super) fn price(
        &self,
        state: &State,
        account: &str,
        platform: &super::catalog::Platform,
        preset: &Preset,
        spot: bool,
        region: &str,
    ) -> f64 {
        let owner = state.account(account);
        let factor = owner.and_then(|owner| owner.factors.get(&platform.name)).copied().unwrap_or(1.0);
        let ceiling = platform.price(preset) * factor;
        let key = (platform.name.clone(), region.to_owned());
        let per_gpu = owner.and_then(|owner| owner.spot.get(&key)).copied().unwrap_or(platform.spot);
        match per_gpu.filter(|_| spot) {
            Some(per_gpu) => (per_gpu * f64::from(preset.1)).min(ceiling),
            None => ceiling,
        }
    }
}

/// Writes an instance into the ledger; its labels stand where other clouds have an environment.
pub(super) fn enter(shared: &Shared, one: &Instance, request: Option<usize>) {
    let labels = one.labels.as_object().into_iter().flatten();
    let env: BTreeMap<String, String> =
        labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect();
    shared.ledger.made(LedgerEntry {
        cloud: "nebius",
        id: one.id.clone(),
        name: one.name.clone(),
        account: one.account.clone(),
        created_at: one.created,
        ended_at: None,
        price_per_hour: one.price,
        gpu: one.platform.name.clone(),
        count: one.preset.1,
        env,
        alive: true,
        created_by_request: request,
    });
}
