//! `PUT /api/v0/asks/{id}/`: checks, the new instance and its machine.

use std::io;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::catalog::{Ask, Host, LEAST_DISK, View, round};
use super::instance::Instance;
use super::seed::InstanceSeed;
use super::trouble::{GoneForm, VastFault, VastScript};
use super::wire::Create;
use super::{VastCloud, images, refusal};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::ledger::LedgerEntry;
use crate::sandbox::machine::{Door, Machine, Smi, Spec};
use crate::sandbox::scripts::{LoginTrouble, Script};
use crate::sandbox::server::{Answer, Call};
use crate::sandbox::{Shared, lock};

/// What Vast's sshd says before a login (<https://docs.vast.ai/instances/sshscp>).
const BANNER: &str = "Welcome to vast.ai. If authentication fails, try again after a few seconds, and double check your \
                      ssh key.\nHave fun!\n";

impl VastCloud {
    /// Carries a create out.
    pub(super) fn create(&self, call: &Call, account: &str, id: &str, body: Value) -> Answer {
        let create = match Create::read(&body, !self.guesses().long_env_refused) {
            Ok(create) => create,
            Err(malformed) => {
                return refusal(malformed.0, malformed.1, &malformed.2).rejecting(malformed.2.clone());
            }
        };
        if create.untagged() {
            return refusal(500, "server_error", "error 500: could not start the image");
        }
        if lock(&self.state).account(account).is_none_or(|account| account.credit <= 0.0) {
            let status = if self.guesses().no_credit_is_402 { 402 } else { 200 };
            return refusal(
                status,
                "insufficient_credit",
                "Your account lacks credit; see the billing page.",
            );
        }
        let number: u64 = id.parse().unwrap_or(0);
        for fault in &call.faults {
            if let FaultKind::Vast(VastFault::AskGone { form }) = fault {
                lock(&self.state).sold.insert(number);
                return gone(*form, number);
            }
        }
        let Some((host, ask)) = self.catalog.ask(number) else { return gone(GoneForm::BadRequest, number) };
        if !lock(&self.state).rentable(host, ask, create.price.is_some()) {
            return gone(GoneForm::BadRequest, number);
        }
        let mut instance = self.build(account, &create, host, ask);
        let room = instance.row.get("disk_space").and_then(Value::as_f64).unwrap_or(0.0);
        if create.disk > room {
            let msg = format!("error 400/3467: Invalid args: disk {} is more than {room} GB", create.disk);
            return refusal(400, "invalid_args", &msg).rejecting(msg);
        }
        let short = create.price.is_some_and(|price| price < instance.min_bid);
        let refused = call.faults.iter().find_map(|fault| match fault {
            FaultKind::Vast(VastFault::LeavesStopped { status, error }) => Some((*status, error.clone())),
            _ => None,
        });
        let refused = refused.or(short.then(|| (400, "bid_too_low".to_owned())));
        instance.stopped = create.stopped || refused.is_some();
        self.twist(&mut instance, &call.faults);
        if !instance.stopped
            && let Err(error) = self.reserve_machine(&mut instance)
        {
            return refusal(500, "server_error", &format!("the sandbox could not make a machine: {error}"));
        }
        enter(&self.shared, &instance, Some(call.index));
        let new = instance.id;
        let mut state = lock(&self.state);
        if !instance.is_bid && !instance.stopped {
            state.push_bids_aside(host, instance.count);
        }
        state.instances.push(instance);
        match refused {
            None => Answer::json(200, json!({"success": true, "new_contract": new})),
            Some((status, error)) => {
                let msg = "The instance could not be started now.";
                Answer::json(
                    status,
                    json!({"success": false, "error": error, "msg": msg, "new_contract": new}),
                )
            }
        }
    }

    fn build(&self, account: &str, create: &Create, host: &Host, ask: &Ask) -> Instance {
        let now = self.shared.clock.now();
        let view = View { storage: create.disk, bid: false, rentable: true, factor: 1.0 };
        let row = host.show(ask, view);
        let number = |name: &str| row.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let cuda = images::version(host.cuda);
        let image = images::resolve(&create.image, cuda);
        let too_new = images::cuda_of(&image).is_some_and(|wants| wants > cuda);
        let bad = image.contains("does-not-exist").then(|| VastScript::pull_failed().into());
        let script = bad.or(too_new.then_some(Script::CudaMismatch)).or_else(|| host.behaves.clone());
        let mut state = lock(&self.state);
        Instance {
            id: state.id(),
            account: account.to_owned(),
            label: create.label.clone(),
            image,
            runtype: create.runtype.clone(),
            onstart: create.onstart.clone(),
            env: create.env.clone(),
            ask_id: ask.id,
            machine_id: host.machine_id,
            gpu: host.gpu_name.clone(),
            count: ask.gpus,
            disk: create.disk,
            is_bid: create.price.is_some(),
            dph_base: create.price.unwrap_or_else(|| number("dph_base")),
            min_bid: number("min_bid"),
            disk_cost: number("storage_total_cost"),
            row,
            script,
            born: now,
            created: self.shared.clock.date(now),
            started: now,
            boot: state.between(self.shared.options.boot),
            hidden_until: Duration::ZERO,
            listed_from: now + self.shared.options.listing_lag,
            stopped: false,
            ran: false,
            deleted: None,
            looks: 0,
            account_keys: state.account(account).map(|found| found.ssh_keys.clone()).unwrap_or_default(),
            attached: Vec::new(),
            machine: None,
        }
    }

    /// Faults of meaning, and what the script says from the start.
    fn twist(&self, instance: &mut Instance, faults: &[FaultKind]) {
        for fault in faults {
            match fault {
                FaultKind::AppearLater { ms } => {
                    instance.hidden_until = instance.born + Duration::from_millis(*ms);
                    instance.listed_from = instance.hidden_until;
                }
                FaultKind::Script { script } => instance.script = Some(script.clone()),
                _ => {}
            }
        }
        match instance.script.clone() {
            Some(Script::SoldDifferently { cost_factor, gpu, count }) => {
                instance.dph_base = round(instance.dph_base * cost_factor);
                if let Some(host) = gpu.as_deref().and_then(|gpu| self.catalog.with_gpu(gpu)) {
                    instance.row.insert("gpu_ram".into(), json!(host.gpu_ram));
                }
                instance.gpu = gpu.unwrap_or_else(|| instance.gpu.clone());
                instance.count = count.unwrap_or(instance.count);
            }
            Some(Script::Vast(VastScript::BidIgnored)) => {
                instance.is_bid = false;
                instance.dph_base =
                    instance.row.get("dph_base").and_then(Value::as_f64).unwrap_or(instance.dph_base);
            }
            Some(Script::Vast(VastScript::SmallDisk { gb })) => instance.disk = gb,
            _ => {}
        }
    }

    /// Gives an instance its machine, with ports that answer only after the boot.
    pub(super) fn reserve_machine(&self, instance: &mut Instance) -> io::Result<()> {
        let smi = self.catalog.with_gpu(&instance.gpu).map(Host::smi);
        let (name, mib) = smi.unwrap_or_else(|| (instance.gpu.clone(), 24_576));
        let direct_ports = instance.row.get("direct_port_count").and_then(Value::as_u64).unwrap_or(0);
        if direct_ports == 0 && instance.script.is_none() {
            instance.script = Some(VastScript::ProxyOnly.into());
        }
        let shut = Some(LoginTrouble::Closed);
        let no_sshd = !(instance.runtype.contains("ssh") || instance.runtype.contains("jupyter"));
        let (direct, proxy) = match &instance.script {
            _ if no_sshd => (shut, shut),
            Some(Script::NeverLogin { cause }) => (Some(*cause), Some(*cause)),
            Some(Script::NeverSsh) => (shut, shut),
            Some(Script::Vast(VastScript::Doors { direct, proxy })) => (*direct, *proxy),
            _ => (None, None),
        };
        let spec = Spec {
            host: format!("vast-{}", instance.id),
            user: "root",
            authorized: instance.authorized(),
            gpus: (0..instance.count).map(|_| Smi { name: name.clone(), mib }).collect(),
            // The container's environment is not in the shells of ssh.
            container_env: Vec::new(),
            trouble: direct,
            second: Some(Door { trouble: proxy }),
            banner: Some(BANNER),
            forwarding: instance.script != Some(Script::NoForwarding),
        };
        let machine = Machine::reserve(spec, &self.shared.options.scratch)?;
        if let Some(onstart) = &instance.onstart {
            std::fs::write(machine.home().join("onstart.sh"), onstart)?;
        }
        instance.machine = Some(machine);
        Ok(())
    }

    /// Puts an instance into an account that no request made.
    pub(super) fn put(&self, account: &str, seed: &InstanceSeed) -> io::Result<String> {
        let now = self.shared.clock.now();
        let missing = |what: &str| io::Error::other(format!("no such {what}"));
        let account = self.find_account(account).ok_or_else(|| missing("account"))?;
        let host = self.catalog.with_gpu(&seed.gpu).ok_or_else(|| missing("GPU"))?;
        let ask = host.asks.first().ok_or_else(|| missing("ask"))?;
        let body = Map::from_iter([
            ("image".to_owned(), json!("vastai/pytorch:@vastai-automatic-tag")),
            ("disk".to_owned(), json!(LEAST_DISK * 4.0)),
            ("label".to_owned(), json!(seed.label)),
            ("runtype".to_owned(), json!("ssh_direc ssh_proxy")),
            ("env".to_owned(), json!(seed.env)),
            ("price".to_owned(), json!(seed.bid)),
        ]);
        let create = Create::read(&Value::Object(body), true).map_err(|bad| io::Error::other(bad.2))?;
        let mut instance = self.build(&account, &create, host, ask);
        let age = SignedDuration::try_from(seed.age).map_err(io::Error::other)?;
        // What is not from here holds nothing that is for sale here.
        instance.ask_id = 0;
        instance.machine_id = 0;
        instance.count = seed.count;
        instance.born = now.saturating_sub(seed.age);
        instance.started = instance.born;
        instance.created = instance.created.checked_sub(age).map_err(io::Error::other)?;
        instance.boot = Duration::ZERO;
        instance.listed_from = Duration::ZERO;
        instance.stopped = seed.stopped;
        instance.ran = true;
        instance.script.clone_from(&seed.script);
        instance.account_keys = seed.keys.lines().map(str::to_owned).collect();
        if seed.live {
            self.reserve_machine(&mut instance)?;
        }
        enter(&self.shared, &instance, None);
        let id = instance.id.to_string();
        let mut state = lock(&self.state);
        state.instances.push(instance);
        state.tick(&self.shared);
        Ok(id)
    }
}

/// Somebody else has it: in practice 400, though 404 is documented.
fn gone(form: GoneForm, id: u64) -> Answer {
    let (status, error, msg) = match form {
        GoneForm::BadRequest | GoneForm::NotFound => {
            let msg = format!("error 404/3603: no_such_ask  Instance type by id {id} is not available.");
            (if form == GoneForm::NotFound { 404 } else { 400 }, "invalid_args", msg)
        }
        GoneForm::Gone => {
            let msg = format!("error 410/3907: no_such_ask Instance type {id} is no longer available.");
            (410, "no_such_ask", msg)
        }
        GoneForm::Ok => (200, "no_such_ask", format!("Instance type {id} is no longer available.")),
    };
    Answer::json(status, json!({"success": false, "error": error, "msg": msg, "ask_id": id}))
}

fn enter(shared: &Shared, instance: &Instance, request: Option<usize>) {
    let created_at: Timestamp = instance.created;
    shared.ledger.made(LedgerEntry {
        cloud: "vast",
        id: instance.id.to_string(),
        name: instance.label.clone().unwrap_or_default(),
        account: instance.account.clone(),
        created_at,
        ended_at: None,
        price_per_hour: instance.cost(),
        gpu: instance.gpu.clone(),
        count: instance.count,
        env: instance.env.iter().cloned().collect(),
        alive: true,
        created_by_request: request,
    });
}
