//! `POST /v2/pods`: checks, placement, the new pod and its machine.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::catalog::{Gpu, Host, NO_CAPACITY, Needs};
use super::pods::{Phase, Pod};
use super::wire::{self, Cloud, CreatePod};
use super::{RunPod, problem, refused};
use crate::sandbox::Shared;
use crate::sandbox::faults::FaultKind;
use crate::sandbox::ledger::LedgerEntry;
use crate::sandbox::machine::{Machine, Smi, Spec};
use crate::sandbox::scripts::{LoginTrouble, Script};
use crate::sandbox::server::{Answer, Call};
use crate::sandbox::{PodSeed, lock};

/// Container disk where the body names none.
const DISK: i64 = 20;

impl RunPod {
    /// Carries a create out.
    pub(super) fn create(&self, call: &Call, account: &str) -> Answer {
        let body = match wire::read::<CreatePod>(&call.body).and_then(|body| body.check().map(|()| body)) {
            Ok(body) => body,
            Err(refusal) => return refused(&refusal),
        };
        if body.template_id.is_some() {
            return problem(404, "template not found");
        }
        let image = body.image.clone().unwrap_or_default();
        if image.trim().is_empty() || image.contains("does-not-exist") {
            return problem(422, &format!("image {image} was not found in its registry"));
        }
        let Some(asked) = &body.gpu else { return problem(400, NO_CAPACITY) };
        let Some(gpu) = self.catalog.gpu(&asked.id) else { return problem(400, NO_CAPACITY) };
        let count = asked.count.unwrap_or(1);
        let cloud = body.cloud.unwrap_or(Cloud::Secure);
        let disk = body.disk.unwrap_or(DISK);
        let needs = Needs {
            count,
            cloud,
            data_centers: &body.data_center_ids,
            min_cuda: asked.min_cuda_version.as_deref(),
            cuda: &asked.allowed_cuda_versions,
            ram: asked.min_ram_per_gpu,
            vcpus: asked.min_vcpu_count_per_gpu,
            disk,
        };
        let host = match self.catalog.place(gpu, &needs) {
            Ok(host) => host,
            Err(sentence) => return problem(400, &sentence),
        };
        let mut pod = self.build(account, &body, gpu, &host, count, disk);
        self.twist(&mut pod, call);
        if let Err(error) = self.reserve_machine(&mut pod) {
            return problem(500, &format!("the sandbox could not make a machine: {error}"));
        }
        enter(&self.shared, &pod, Some(call.index));
        let shown = self.show(&pod, Phase::Provisioning, &call.faults);
        lock(&self.state).pods.push(pod);
        Answer::json(201, shown)
    }

    fn build(&self, account: &str, body: &CreatePod, gpu: &Gpu, host: &Host, count: i64, disk: i64) -> Pod {
        let now = self.shared.clock.now();
        let mut state = lock(&self.state);
        let mut env = body.env.clone();
        if body.start_ssh && !env.contains_key("PUBLIC_KEY") {
            let keys = state.account(account).map(|found| found.ssh_keys.join("\n")).unwrap_or_default();
            env.insert("PUBLIC_KEY".into(), keys);
        }
        let image = body.image.clone().unwrap_or_default();
        let too_old = image_cuda(&image)
            .zip(host.cuda.as_deref().map(wire::version))
            .is_some_and(|(wants, has)| wants > has);
        let script = host.behaves.clone().or(too_old.then_some(Script::CudaMismatch));
        Pod {
            id: state.id(),
            serial: state.serial(),
            account: account.to_owned(),
            name: body.name.clone(),
            image,
            args: body.args.clone().unwrap_or_default(),
            cmd: body.cmd.clone(),
            entrypoint: body.entrypoint.clone(),
            disk,
            ports: body.ports.clone(),
            env,
            gpu: gpu.id.clone(),
            count,
            ram: gpu.ram(count),
            vcpus: gpu.vcpus(count),
            cloud: host.cloud,
            // A community host that refuses the pin is really somewhere else.
            dc: host.dc.clone().filter(|_| host.pin),
            cuda: host.cuda.clone(),
            cost: round(
                gpu.price(host.cloud) * f64::from(i32::try_from(count).unwrap_or(1)) + self.disk_cost(disk),
            ),
            script,
            born: now,
            created: self.shared.clock.date(now),
            started: now,
            boot: state.between(self.shared.options.boot),
            hidden_until: Duration::ZERO,
            listed_from: now + self.shared.options.listing_lag,
            stopped: false,
            deleted: None,
            looks: 0,
            machine: None,
        }
    }

    /// US dollars per hour for the container disk: $0.10 a GB and month (`docs.runpod.io/pods/pricing`).
    fn disk_cost(&self, disk: i64) -> f64 {
        if !self.guesses().cost_with_disk {
            return 0.0;
        }
        f64::from(i32::try_from(disk).unwrap_or(0)) * 0.10 / 730.0
    }

    /// Faults of meaning on a create.
    fn twist(&self, pod: &mut Pod, call: &Call) {
        for fault in &call.faults {
            match fault {
                FaultKind::AppearLater { ms } => {
                    pod.hidden_until = pod.born + Duration::from_millis(*ms);
                    pod.listed_from = pod.hidden_until;
                }
                FaultKind::Script { script } => pod.script = Some(script.clone()),
                _ => {}
            }
        }
        if let Some(Script::SoldDifferently { cost_factor, gpu, count }) = pod.script.clone() {
            pod.cost = round(pod.cost * cost_factor);
            pod.gpu = gpu.unwrap_or_else(|| pod.gpu.clone());
            pod.count = count.map_or(pod.count, i64::from);
        }
    }

    /// Gives a pod its machine, with a port that answers only after the boot.
    pub(super) fn reserve_machine(&self, pod: &mut Pod) -> io::Result<()> {
        let smi = self.catalog.gpu(&pod.gpu).map(Gpu::smi).unwrap_or_else(|| (pod.gpu.clone(), 24_576));
        let gpus = (0..pod.count).map(|_| Smi { name: smi.0.clone(), mib: smi.1 }).collect();
        // https://github.com/openclaw/crabbox/issues/1202: not sent comes out as the text "null".
        let authorized = pod.env.get("PUBLIC_KEY").map_or("null", String::as_str);
        let no_sshd = authorized.is_empty() || !pod.cmd.is_empty() || !pod.entrypoint.is_empty();
        let trouble = match &pod.script {
            Some(Script::NeverLogin { cause }) => Some(*cause),
            _ => no_sshd.then_some(LoginTrouble::Closed),
        };
        let spec = Spec {
            host: pod.id.clone(),
            user: "root",
            authorized: authorized.to_owned(),
            gpus,
            container_env: container_env(pod),
            trouble,
            second: None,
            banner: None,
            forwarding: pod.script != Some(Script::NoForwarding),
        };
        pod.machine = Some(Machine::reserve(spec, &self.shared.options.scratch)?);
        Ok(())
    }

    /// Puts a pod into an account that no request made.
    pub(in crate::sandbox) fn add_pod(&self, account: &str, seed: &PodSeed) -> io::Result<String> {
        let now = self.shared.clock.now();
        let account = &self.find_account(account).ok_or_else(|| io::Error::other("no such account"))?;
        let (id, serial) = {
            let mut state = lock(&self.state);
            (state.id(), state.serial())
        };
        let gpu = self.catalog.gpu(&seed.gpu);
        let born = now.saturating_sub(seed.age);
        let age = jiff::SignedDuration::try_from(seed.age).map_err(io::Error::other)?;
        let created = self.shared.clock.date(now).checked_sub(age).map_err(io::Error::other)?;
        let mut pod = Pod {
            id: id.clone(),
            serial,
            account: account.to_owned(),
            name: seed.name.clone(),
            image: "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404".into(),
            args: String::new(),
            cmd: Vec::new(),
            entrypoint: Vec::new(),
            disk: 50,
            ports: vec!["8888/http".into(), "22/tcp".into()],
            env: seed.env.clone(),
            gpu: seed.gpu.clone(),
            count: i64::from(seed.count),
            ram: gpu.map_or(64, |gpu| gpu.ram(i64::from(seed.count))),
            vcpus: gpu.map_or(16, |gpu| gpu.vcpus(i64::from(seed.count))),
            cloud: Cloud::Secure,
            dc: Some("US-KS-2".into()),
            cuda: Some("12.8".into()),
            cost: round(gpu.map_or(0.4, |gpu| gpu.price(Cloud::Secure)) * f64::from(seed.count)),
            script: seed.script.clone(),
            born,
            created,
            started: born,
            boot: Duration::ZERO,
            hidden_until: Duration::ZERO,
            listed_from: Duration::ZERO,
            stopped: seed.stopped,
            deleted: None,
            looks: 0,
            machine: None,
        };
        if seed.live {
            self.reserve_machine(&mut pod)?;
        }
        enter(&self.shared, &pod, None);
        let mut state = lock(&self.state);
        state.pods.push(pod);
        state.tick(&self.shared);
        Ok(id)
    }
}

fn enter(shared: &Shared, pod: &Pod, request: Option<usize>) {
    shared.ledger.made(LedgerEntry {
        cloud: "runpod",
        id: pod.id.clone(),
        name: pod.name.clone(),
        account: pod.account.clone(),
        created_at: pod.created,
        ended_at: None,
        price_per_hour: pod.cost,
        gpu: pod.gpu.clone(),
        count: u32::try_from(pod.count).unwrap_or(0),
        env: pod.env.clone(),
        alive: true,
        created_by_request: request,
    });
}

/// What the platform and `start.sh` of the official images leave in `/etc/rp_environment`
/// (`docs.runpod.io/pods/references/environment-variables`).
fn container_env(pod: &Pod) -> Vec<(String, String)> {
    let named = |(name, _): &(&String, &String)| {
        name.as_str() != "PUBLIC_KEY" && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let own: BTreeMap<_, _> = pod.env.iter().filter(named).collect();
    let mut all: Vec<(String, String)> =
        own.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    all.push(("RUNPOD_POD_ID".into(), pod.id.clone()));
    all.push(("RUNPOD_GPU_COUNT".into(), pod.count.to_string()));
    all.push(("RUNPOD_DC_ID".into(), pod.dc.clone().unwrap_or_default()));
    all
}

/// CUDA version in the tag of an official image: `cuda1290`, `cu1281`.
fn image_cuda(image: &str) -> Option<(u32, u32)> {
    let tag = image.rsplit_once(':')?.1;
    tag.split('-').find_map(|part| {
        let digits = part.strip_prefix("cuda").or_else(|| part.strip_prefix("cu"))?;
        let whole = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole { Some((digits[..2].parse().ok()?, digits[2..3].parse().ok()?)) } else { None }
    })
}

fn round(price: f64) -> f64 {
    (price * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::image_cuda;

    #[test]
    fn reads_official_tags() {
        assert_eq!(image_cuda("runpod/base:1.4.1-cuda1290-ubuntu2204"), Some((12, 9)));
        assert_eq!(image_cuda("runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"), Some((12, 8)));
        assert_eq!(image_cuda("me/mine:latest"), None);
    }
}
