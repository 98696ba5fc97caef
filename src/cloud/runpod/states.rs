//! What a pod's fields say about it.
//!
//! `RUNNING` proves nothing: it also stands there while the image is being pulled. Only a complete `ssh.direct` says that
//! there is something to connect to. A host without a public address never gets one
//! (docs.runpod.io/api-reference-v2, `getPod`; the only mapping is then an `http` one on 100.64.0.0/10).

use super::instance::{InstanceType, Tier};
use super::places::Places;
use super::wire::Pod;
use crate::cloud::{Error, ErrorKind, HostKeys, Look, Reached, Sold};
use crate::model::account::AccountId;
use crate::model::machine::{MachineState, SshAddress};
use crate::model::money::Usd;
use crate::model::words::one_line;

/// A container that is up for longer than this many seconds without a direct address will not get one.
const NO_ADDRESS_AFTER: f64 = 120.0;

/// How a look is called in messages.
pub(super) const LOOKING: &str = "looking at the pod";

/// What the fields are read with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) account: &'a AccountId,
    pub(super) loopback: bool,
    pub(super) places: &'a Places,
}

/// Returns what a pod says about itself.
pub(super) fn look(pod: &Pod, frame: &Frame<'_>) -> Look {
    let status = pod.status.as_deref().map(|status| one_line(status, 40)).unwrap_or_default();
    let ssh = address(pod, frame.loopback);
    let state = match status.as_str() {
        // On its way out it may still name its old address.
        "TERMINATED" => MachineState::Gone,
        "EXITED" => MachineState::Stopped,
        "ERROR" => MachineState::Failed,
        "RUNNING" if matches!(ssh, Ok(Some(_))) => MachineState::Running,
        "" => MachineState::Unknown,
        // Words that we do not know are waited on.
        _ => MachineState::Booting,
    };
    let words = match (&state, &ssh) {
        (_, Err(error)) => Some(format!("{status}: {error}")),
        (MachineState::Booting, _) if status == "RUNNING" => {
            Some(format!("{status}, no ssh address yet{}", uptime(pod)))
        }
        (_, _) if status.is_empty() => None,
        _ => Some(status.clone()),
    };
    let up = matches!(state, MachineState::Running);
    Look {
        failed: failed(&status, pod, &ssh, frame),
        ssh: ssh.ok().flatten().filter(|_| up).into_iter().collect(),
        words,
        host_keys: HostKeys::Unknown,
        sold: sold(pod, frame.places),
        // Of a stopped pod the field was seen to go on showing the old rate.
        // Whether `cost` counts the disk is not documented: what was agreed tells more.
        costs_now: None,
        state,
        ends_at: None,
    }
}

fn uptime(pod: &Pod) -> String {
    let uptime = pod.runtime.as_ref().and_then(|runtime| runtime.uptime).filter(|uptime| *uptime > 0.0);
    uptime.map(|uptime| format!(", container up {uptime:.0} s")).unwrap_or_default()
}

/// Returns the direct address; an error if there is one that cannot be used.
fn address(pod: &Pod, loopback: bool) -> Result<Option<SshAddress>, String> {
    let Some(direct) = pod.ssh.as_ref().and_then(|ssh| ssh.direct.as_ref()) else { return Ok(None) };
    let (Some(host), Some(port)) = (direct.host.as_deref(), direct.port) else { return Ok(None) };
    if host.trim().is_empty() {
        return Ok(None);
    }
    let user = direct.username.as_deref().filter(|user| !user.trim().is_empty()).unwrap_or("root");
    SshAddress::new(host, port, user, loopback).map(Some).map_err(|error| error.to_string())
}

fn failed(
    status: &str,
    pod: &Pod,
    ssh: &Result<Option<SshAddress>, String>,
    frame: &Frame<'_>,
) -> Option<Box<Error>> {
    let message = match status {
        "ERROR" => "RunPod says ERROR: the pod cannot be brought up".to_owned(),
        "RUNNING" if !matches!(ssh, Ok(Some(_))) => {
            let uptime = pod.runtime.as_ref().and_then(|runtime| runtime.uptime);
            let uptime = uptime.filter(|uptime| *uptime > NO_ADDRESS_AFTER)?;
            format!("the host has no public address: no direct ssh {uptime:.0} s after the container started")
        }
        _ => return None,
    };
    Some(failure(frame.account, message))
}

/// Returns the error of a pod that will never come up where it is. Another host may do better.
pub(super) fn failure(account: &AccountId, message: String) -> Box<Error> {
    Box::new(Error::new(ErrorKind::NoCapacity, account, LOOKING, message, Reached::Yes))
}

fn cost(pod: &Pod) -> Option<Usd> {
    pod.cost.and_then(Usd::from_f32_wire).filter(|cost| cost.is_positive())
}

fn sold(pod: &Pod, places: &Places) -> Sold {
    let gpu = pod.gpu.clone().unwrap_or_default();
    let tier = pod.cloud.as_deref().and_then(|cloud| cloud.parse::<Tier>().ok());
    let instance = match (&gpu.id, gpu.count, tier) {
        (Some(id), Some(count), Some(tier)) => {
            Some(InstanceType { gpu_id: id.clone(), count, tier }.to_string())
        }
        _ => None,
    };
    let center = pod.data_center_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
    let place = center.map(|id| places.place(id)).unwrap_or_default();
    let positive = |figure: Option<f64>| figure.filter(|figure| *figure > 0.0);
    Sold {
        price_per_hour: cost(pod),
        // Not documented.
        price_has_disk: None,
        spot: Some(false),
        gpu_raw: gpu.id,
        gpu_count: gpu.count,
        ram_gb: positive(gpu.memory),
        vcpus: positive(gpu.vcpu_count),
        disk_gb: pod.disk.filter(|disk| *disk > 0),
        instance_type: instance,
        region: place.region,
        zone: place.zone,
    }
}
