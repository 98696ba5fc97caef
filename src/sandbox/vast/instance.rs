//! One instance: what it is made of, where its life stands at a point of the clock, and how that is shown.
//!
//! `actual_status` is the container, `cur_state` and `next_state` the contract, `intended_status` what was asked
//! (`docs.vast.ai/api-reference`, instances). A boot goes null, `loading`, `running` with an address, and a little
//! later sshd answers.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::trouble::VastScript;
use crate::sandbox::machine::Machine;
use crate::sandbox::scripts::Script;

/// An instance and everything that decides how it looks.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) id: u64,
    pub(super) account: String,
    pub(super) label: Option<String>,
    pub(super) image: String,
    pub(super) runtype: String,
    pub(super) onstart: Option<String>,
    /// As sent, variables and ports.
    pub(super) env: Vec<(String, String)>,
    pub(super) ask_id: u64,
    pub(super) machine_id: u64,
    /// The offer's row, for what an instance repeats of it.
    pub(super) row: Map<String, Value>,
    pub(super) gpu: String,
    pub(super) count: u32,
    pub(super) disk: f64,
    pub(super) is_bid: bool,
    /// US dollars per hour of the GPUs: the bid, or the on-demand price.
    pub(super) dph_base: f64,
    pub(super) min_bid: f64,
    /// US dollars per hour of the disk.
    pub(super) disk_cost: f64,
    pub(super) script: Option<Script>,
    pub(super) born: Duration,
    /// The same as a date, as old as it may be.
    pub(super) created: Timestamp,
    /// When its present run began.
    pub(super) started: Duration,
    /// How long a run takes to sshd.
    pub(super) boot: Duration,
    /// Before this it is nowhere to be seen.
    pub(super) hidden_until: Duration,
    /// Before this it is not in lists.
    pub(super) listed_from: Duration,
    pub(super) stopped: bool,
    /// Whether it ever ran.
    pub(super) ran: bool,
    pub(super) deleted: Option<Duration>,
    /// How often it was looked at.
    pub(super) looks: u32,
    /// Keys of the account when it was made.
    pub(super) account_keys: Vec<String>,
    /// Keys attached since, with their ids.
    pub(super) attached: Vec<(u64, String)>,
    pub(super) machine: Option<Machine>,
}

/// Where an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No status yet.
    Provisioning,
    /// The image comes.
    Loading,
    /// Runs; sshd comes a little later.
    Up,
    /// Stopped, whether asked for or outbid.
    Stopped,
    /// What the script says, and nothing runs.
    Failed,
    /// Destroyed, and still shown.
    Unloaded,
    Gone,
}

/// The status fields.
#[derive(Debug)]
struct Words {
    actual: Option<String>,
    cur: String,
    next: String,
    intended: String,
    msg: Option<String>,
}

impl Words {
    fn new(actual: Option<&str>, contract: &str, intended: &str, msg: Option<String>) -> Words {
        Words {
            actual: actual.map(str::to_owned),
            cur: contract.to_owned(),
            next: contract.to_owned(),
            intended: intended.to_owned(),
            msg,
        }
    }
}

impl Instance {
    /// Where it stands now.
    pub(super) fn phase(&self, now: Duration, slow_delete: Duration) -> Phase {
        if let Some(deleted) = self.deleted {
            return if now < deleted.saturating_add(slow_delete) { Phase::Unloaded } else { Phase::Gone };
        }
        let age = now.saturating_sub(self.born);
        let reached = |ms: &u64| age >= Duration::from_millis(*ms);
        match &self.script {
            Some(Script::Disappears { ms }) if reached(ms) => return Phase::Gone,
            Some(Script::GoesError { ms } | Script::GoesExited { ms }) if reached(ms) => {
                return Phase::Failed;
            }
            Some(Script::Vast(VastScript::Words { ms, .. })) if reached(ms) => return Phase::Failed,
            Some(Script::Vast(VastScript::LostStart { .. })) => return Phase::Failed,
            _ => {}
        }
        if self.stopped {
            return Phase::Stopped;
        }
        let run = now.saturating_sub(self.started);
        if run < self.boot / 4 {
            Phase::Provisioning
        } else if run < self.boot * 3 / 4 {
            Phase::Loading
        } else if matches!(self.script, Some(Script::CudaMismatch)) {
            Phase::Failed
        } else if matches!(self.script, Some(Script::NeverReady { .. })) {
            Phase::Loading
        } else {
            Phase::Up
        }
    }

    /// Whether sshd is due; the phase is up.
    pub(super) fn sshd_due(&self, now: Duration) -> bool {
        now.saturating_sub(self.started) >= self.boot
    }

    /// Whether somebody else cannot have its GPUs.
    pub(super) fn holds_gpus(&self) -> bool {
        !self.stopped && self.deleted.is_none()
    }

    /// Whether its script has it outbid by now.
    pub(super) fn outbid_due(&self, now: Duration) -> bool {
        let age = now.saturating_sub(self.born);
        matches!(self.script, Some(Script::Vast(VastScript::Outbid { ms })) if age >= Duration::from_millis(ms))
            && self.holds_gpus()
    }

    /// Stops it because somebody pays more. The disk goes on costing.
    pub(super) fn outbid(&mut self) {
        self.stopped = true;
        self.ran = true;
        self.script = None;
        self.machine = None;
        self.min_bid = super::catalog::round(self.dph_base * 1.15).max(self.min_bid);
    }

    /// US dollars per hour with the disk.
    pub(super) fn cost(&self) -> f64 {
        super::catalog::round(self.dph_base + self.disk_cost)
    }

    /// Text of its `authorized_keys`.
    pub(super) fn authorized(&self) -> String {
        let attached = self.attached.iter().map(|(_, key)| key.as_str());
        self.account_keys.iter().map(String::as_str).chain(attached).collect::<Vec<_>>().join("\n")
    }

    fn words(&self, phase: Phase) -> Words {
        let running = |actual, msg| Words::new(actual, "running", "running", msg);
        match (phase, &self.script) {
            (
                Phase::Failed,
                Some(Script::Vast(VastScript::Words { actual, cur, next, intended, msg, .. })),
            ) => Words {
                actual: actual.clone(),
                cur: cur.clone(),
                next: next.clone(),
                intended: intended.clone(),
                msg: msg.clone(),
            },
            (Phase::Failed, Some(Script::Vast(_))) => {
                Words::new(None, "stopped", "running", Some(String::new()))
            }
            (Phase::Failed, Some(Script::CudaMismatch)) => running(Some("created"), Some(self.cuda_error())),
            (Phase::Failed, Some(Script::GoesError { .. })) => {
                let msg = "Error response from daemon: failed to create task for container: OCI runtime create failed";
                Words::new(Some("created"), "stopped", "stopped", Some(msg.into()))
            }
            (Phase::Failed, _) => running(Some("exited"), Some("container exited".into())),
            (Phase::Loading, Some(Script::NeverReady { word })) => running(Some(word), None),
            (Phase::Provisioning, _) => running(None, None),
            (Phase::Loading, _) => {
                running(Some("loading"), Some("f1555660aa88: Download complete \n".into()))
            }
            (Phase::Up, _) => {
                let name = self.image.replace(':', "_");
                running(Some("running"), Some(format!("success, running {name}/ssh\n")))
            }
            (Phase::Stopped, _) => {
                let actual = if self.ran { "exited" } else { "created" };
                Words::new(Some(actual), "stopped", "stopped", None)
            }
            (Phase::Unloaded | Phase::Gone, _) => Words::new(Some("exited"), "unloaded", "stopped", None),
        }
    }

    /// What Docker says when the driver is too old for the image.
    pub(super) fn cuda_error(&self) -> String {
        let (major, minor) = super::images::cuda_of(&self.image).unwrap_or((12, 8));
        format!(
            "Error response from daemon: failed to create task for container: nvidia-container-cli: requirement \
             error: unsatisfied condition: cuda>={major}.{minor}, please update your driver to a newer version"
        )
    }

    /// As JSON, the same for both records.
    pub(super) fn show(&self, phase: Phase) -> Map<String, Value> {
        let words = self.words(phase);
        let total = self.cost();
        let ports = self.ports(phase);
        // What was addressed before is still told while the container is stopped.
        let placed = !matches!(phase, Phase::Provisioning) && self.script != Some(Script::NeverSsh);
        let direct = placed && self.script != Some(Script::Vast(VastScript::ProxyOnly));
        let proxy = self.machine.as_ref().and_then(Machine::second_address).filter(|_| placed);
        let env: Vec<Value> = self.env.iter().map(|(name, value)| json!([name, value])).collect();
        let mut shown = self.row.clone();
        for name in [
            "id",
            "ask_contract_id",
            "bundle_id",
            "bundled_results",
            "rentable",
            "rented",
            "external",
            "search",
            "instance",
            "dph_total_adj",
            "discounted_dph_total",
            "score",
            "verified",
        ] {
            shown.shift_remove(name);
        }
        let used = |value: f64| if phase == Phase::Up { json!(value) } else { Value::Null };
        let mine = json!({
            "id": self.id, "actual_status": words.actual, "cur_state": words.cur, "next_state": words.next,
            "intended_status": words.intended, "status_msg": words.msg, "label": self.label,
            "image_uuid": self.image, "image_runtype": self.runtype, "image_args": [], "onstart": self.onstart,
            "extra_env": env, "gpu_name": self.gpu, "num_gpus": self.count,
            "gpu_totalram": self.row.get("gpu_total_ram"), "disk_space": self.disk, "is_bid": self.is_bid,
            "min_bid": self.min_bid, "dph_base": self.dph_base, "dph_total": total,
            "storage_total_cost": self.disk_cost, "start_date": self.created.as_millisecond() as f64 / 1000.0,
        });
        let more = json!({
            "disk_usage": 0.4, "disk_util": 0.004, "uptime_mins": null, "duration": 27_360_875.7,
            "country_code": null, "public_ipaddr": direct.then_some("127.0.0.1\n"),
            "local_ipaddrs": "10.0.0.5 172.17.0.2 \n", "ssh_host": proxy.map(|at| at.ip().to_string()),
            "ssh_idx": "5", "ssh_port": proxy.map(|at| at.port()), "machine_dir_ssh_port": 9,
            "direct_port_start": -1, "direct_port_end": -1, "ports": ports, "jupyter_token": "redacted",
            "template_id": null, "template_hash_id": null, "template_name": null, "time_remaining": "",
            "cpu_util": used(1.5), "gpu_util": used(0.0),
        });
        for part in [mine, more] {
            shown.extend(part.as_object().cloned().unwrap_or_default());
        }
        shown
    }

    /// `ports`: null, then empty, then with what is mapped; the address comes a little before sshd answers.
    fn ports(&self, phase: Phase) -> Value {
        let sequence = self.script == Some(Script::RuntimeSequence);
        match phase {
            Phase::Provisioning => return Value::Null,
            Phase::Up if sequence && self.looks <= 3 => return Value::Null,
            Phase::Up if sequence && self.looks < 6 => return json!({}),
            Phase::Up if self.script == Some(Script::NeverSsh) => return json!({}),
            Phase::Up => {}
            _ => return json!({}),
        }
        let mut ports = Map::new();
        let direct =
            self.runtype.contains("direc") && self.script != Some(Script::Vast(VastScript::ProxyOnly));
        if direct {
            // An instance without a machine, at a port where nothing ever listens.
            let port = self.machine.as_ref().map_or(1, |machine| machine.address().port());
            ports.insert("22/tcp".into(), mapped(port));
        }
        let asked = self.env.iter().filter_map(|(name, _)| name.strip_prefix("-p "));
        for (ours, inner) in (2..).zip(asked.filter_map(|text| text.rsplit_once(':')).map(|(_, inner)| inner))
        {
            let inner = if inner.contains('/') { inner.to_owned() } else { format!("{inner}/tcp") };
            // Nothing is behind these.
            ports.insert(inner, mapped(ours));
        }
        Value::Object(ports)
    }
}

fn mapped(port: u16) -> Value {
    json!([{"HostIp": "0.0.0.0", "HostPort": port.to_string()}])
}
