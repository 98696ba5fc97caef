//! `POST /instances`: the new instance, its volumes and its machine. `judge.rs` decides whether it may be.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;

use super::instance::Instance;
use super::journal::Actor;
use super::judge::{OS_DISK, Plan};
use super::state::State;
use super::trouble::{VerdaFault, VerdaScript};
use super::volume::{Place, Volume};
use super::wire::{self, DataVolume, Deploy, OnSpot, OneOrMany, OsVolume};
use super::{VerdaCloud, error};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::ledger::LedgerEntry;
use crate::sandbox::machine::Spec;
use crate::sandbox::scripts::{LoginTrouble, Script};
use crate::sandbox::server::{Answer, Call};
use crate::sandbox::{Shared, lock};

impl VerdaCloud {
    /// Carries a create out.
    pub(super) fn create(&self, call: &Call, account: &str) -> Answer {
        let body: Deploy = match wire::read(call) {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        let mut state = lock(&self.state);
        let plan = match self.judge(&state, account, &body) {
            Ok(plan) => plan,
            Err(refused) => return *refused,
        };
        if let Some(refused) = self.afford(&mut state, account, &body, &plan) {
            return refused;
        }
        if let Some(refused) = self.place(&plan) {
            return refused;
        }
        let (one, volumes) = self.build(&mut state, account, body, plan, &call.faults);
        let mut one = one;
        if let Err(failed) = self.reserve_machine(&mut one) {
            return error(500, "server_error", &format!("the sandbox could not make a machine: {failed}"));
        }
        let id = one.id.clone();
        enter(&self.shared, &one, Some(call.index));
        state.volumes.extend(volumes);
        state.instances.push(one);
        let index = state.instances.len() - 1;
        state.note(index, "create", Actor::Api, self.shared.clock.now());
        self.new_id(202, &id)
    }

    fn build(
        &self,
        state: &mut State,
        account: &str,
        body: Deploy,
        plan: Plan<'_>,
        faults: &[FaultKind],
    ) -> (Instance, Vec<Volume>) {
        let now = self.shared.clock.now();
        let id = state.uuid();
        let key_ids = body.ssh_key_ids.map(OneOrMany::list).unwrap_or_default();
        let named = state.keys.iter().filter(|key| key_ids.contains(&key.id));
        let authorized: Vec<String> = named.map(|key| key.key.clone()).collect();
        let hidden = faults.iter().find_map(|fault| match fault {
            FaultKind::AppearLater { ms } => Some(now + Duration::from_millis(*ms)),
            _ => None,
        });
        let hidden_until = hidden.unwrap_or(Duration::ZERO);
        let lost = faults.contains(&FaultKind::Verda(VerdaFault::TagsLost));
        let mut tags = |sent: Option<Vec<wire::TagBody>>| {
            if lost { Vec::new() } else { state.tags(&sent.unwrap_or_default()) }
        };
        let own_tags = tags(body.tags);
        let os = body.os_volume.unwrap_or_else(|| OsVolume {
            name: format!("OS-NVMe-{}", &id[..8]),
            size: OS_DISK,
            on_spot_discontinue: None,
            tags: None,
        });
        let os = DataVolume {
            name: os.name,
            size: os.size,
            kind: "NVMe".into(),
            on_spot_discontinue: os.on_spot_discontinue,
            tags: os.tags,
        };
        let wanted = plan.boots_from.is_none().then_some((os, true));
        let wanted =
            wanted.into_iter().chain(body.volumes.into_iter().flatten().map(|volume| (volume, false)));
        let wanted: Vec<_> = wanted
            .map(|(mut volume, is_os)| {
                let tags = tags(volume.tags.take());
                (volume, is_os, tags)
            })
            .collect();
        let created = self.shared.clock.date(now);
        let volumes: Vec<Volume> = wanted
            .into_iter()
            .map(|(volume, is_os, tags)| Volume {
                id: state.uuid(),
                account: account.to_owned(),
                name: volume.name,
                size: volume.size,
                kind: volume.kind,
                location: plan.location.clone(),
                is_os,
                key_ids: key_ids.clone(),
                tags,
                on_spot: volume.on_spot_discontinue.unwrap_or(OnSpot::KeepDetached),
                foreign: false,
                created,
                hidden_until,
                place: Place::Attached(id.clone()),
            })
            .collect();
        let taken: Vec<&String> = body.existing_volumes.iter().flatten().chain(&plan.boots_from).collect();
        for volume in state.volumes.iter_mut().filter(|volume| taken.contains(&&volume.id)) {
            volume.place = Place::Attached(id.clone());
        }
        let os_volume = volumes.iter().find(|volume| volume.is_os).map(|volume| volume.id.clone());
        let mut one = Instance {
            id,
            account: account.to_owned(),
            user: state.account(account).map(|owner| owner.user.clone()).unwrap_or_default(),
            hostname: plan.hostname,
            description: body.description.unwrap_or_default(),
            tags: own_tags,
            kind: plan.kind.clone(),
            location: plan.location,
            image: plan.image,
            os_name: plan.os_name,
            spot: plan.spot,
            price: plan.kind.price(plan.spot),
            startup_script: body.startup_script_id,
            key_ids,
            authorized: authorized.join("\n"),
            os_volume: os_volume.or(plan.boots_from),
            foreign: false,
            script: plan.kind.behaves.clone(),
            born: now,
            created,
            started: now,
            boot: state.between(self.shared.options.boot),
            hidden_until,
            listed_from: hidden.unwrap_or(now + self.shared.options.listing_lag),
            offline: false,
            deleted: None,
            evicted: false,
            refused: 0,
            told: None,
            address: Ipv4Addr::LOCALHOST,
            machine: None,
        };
        self.twist(&mut one, faults);
        (one, volumes)
    }

    /// Faults of meaning on a create.
    fn twist(&self, one: &mut Instance, faults: &[FaultKind]) {
        for fault in faults {
            if let FaultKind::Script { script } = fault {
                one.script = Some(script.clone());
            }
        }
        if let Some(Script::SoldDifferently { cost_factor, gpu, count }) = one.script.clone() {
            one.price *= cost_factor;
            if let Some(kind) = gpu.and_then(|name| self.catalog.types.iter().find(|kind| kind.name == name))
            {
                one.kind.name.clone_from(&kind.name);
            }
            one.kind.gpus = count.unwrap_or(one.kind.gpus);
        }
    }

    /// Gives an instance an address and a machine that answers there after the boot.
    pub(super) fn reserve_machine(&self, one: &mut Instance) -> io::Result<()> {
        let spec = Spec {
            host: one.id.clone(),
            user: "root",
            authorized: one.authorized.clone(),
            gpus: one.kind.smi(),
            container_env: Vec::new(),
            trouble: match &one.script {
                Some(Script::NeverLogin { cause }) => Some(*cause),
                _ => one.authorized.is_empty().then_some(LoginTrouble::NoKey),
            },
            second: None,
            banner: None,
            forwarding: one.script != Some(Script::NoForwarding),
        };
        let (address, machine) = self.shared.addresses.reserve(&spec, &self.shared.options.scratch)?;
        one.address = address;
        one.machine = Some(machine);
        Ok(())
    }
}

/// Writes an instance into the ledger; its tags stand where other clouds have an environment.
pub(super) fn enter(shared: &Shared, one: &Instance, request: Option<usize>) {
    let env: BTreeMap<_, _> = one.tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())).collect();
    let created_at: Timestamp = one.created;
    shared.ledger.made(LedgerEntry {
        cloud: "verda",
        id: one.id.clone(),
        name: one.hostname.clone(),
        account: one.account.clone(),
        created_at,
        ended_at: None,
        price_per_hour: one.price,
        gpu: one.kind.name.clone(),
        count: one.kind.gpus,
        env,
        alive: true,
        created_by_request: request,
    });
}

impl Instance {
    /// Whether a script of its own refuses this delete.
    pub(super) fn refuses_delete(&mut self) -> bool {
        let refuses = matches!(&self.script, Some(Script::Verda(VerdaScript::RefusesDelete { times })) if self.refused < *times);
        self.refused += u32::from(refuses);
        refuses
    }
}
