//! Making a pod: the body of the request, and what its answer says was made.

use serde_json::{Map, Value, json};

use super::RunPod;
use super::account_keys::{merged, notes};
use super::client::CREATING;
use super::errors::{Asked, Attempt, refused, unreadable};
use super::instance::InstanceType;
use super::recheck::constraints;
use super::rows::Wishes;
use crate::cloud::{Created, Error, ErrorKind, Journal, Preview, Reached, Result};
use crate::http::Answer;
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::model::mark::{MARK_VARIABLE, Mark};
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;

/// Variable from which RunPod's images write `authorized_keys`; without it they start no sshd
/// (github.com/runpod/containers, `container-template/start.sh`).
const KEY_VARIABLE: &str = "PUBLIC_KEY";

/// Bodies above this are refused with 413 (docs.runpod.io/api-reference-v2).
const MOST_BODY_BYTES: usize = 102_400;

/// Makes a pod.
pub(super) async fn create(
    cloud: &RunPod,
    offer: &Offer,
    spec: &MachineSpec,
    mark: &Mark,
    journal: &dyn Journal,
) -> Result<Created> {
    let plan = Plan::new(cloud, offer, spec)?;
    plan.check_env(cloud, spec)?;
    let account_keys = cloud.account_keys().await?;
    let (keys, others) = merged(&spec.public_key, &account_keys.lines);
    let body = plan.body(&keys, spec, mark);
    let bytes = body.to_string().len();
    if bytes > MOST_BODY_BYTES {
        let why = format!(
            "the request has {bytes} bytes, RunPod takes {MOST_BODY_BYTES}: give fewer or shorter `--env` values"
        );
        return Err(of_the_user(cloud, why));
    }
    let answer = cloud.api.create(&body, &plan.attempt).await?;
    let mut asked = Asked { attempt: Some(&plan.attempt), ..cloud.api.asked(CREATING) };
    asked.secrets.extend(spec.env.iter().map(|(_, value)| value.expose()));
    let handle = handle(&answer, &asked, journal)?;
    cloud.watch.begin(&handle.id);
    Ok(Created { handle, notes: notes(others, account_keys.problem.as_deref()) })
}

/// Returns the request that [`create`] would send, but for the account's keys, which are not asked for, and with the values
/// of the user's environment left out.
pub(super) fn preview(cloud: &RunPod, offer: &Offer, spec: &MachineSpec, mark: &Mark) -> Preview {
    let body = Plan::new(cloud, offer, spec).map(|plan| plan.body(spec.public_key.trim(), spec, mark));
    let mut body = body.unwrap_or(Value::Null);
    if let Some(env) = body.get_mut("env").and_then(Value::as_object_mut) {
        for (_, value) in env.iter_mut().filter(|(name, _)| !is_own(name)) {
            *value = Value::from("…");
        }
    }
    Preview { method: "POST".to_owned(), url: cloud.api.pods_url(), body }
}

/// What is asked for.
struct Plan {
    instance: InstanceType,
    zone: Option<String>,
    wishes: Wishes,
    attempt: Attempt,
}

impl Plan {
    fn new(cloud: &RunPod, offer: &Offer, spec: &MachineSpec) -> Result<Self> {
        let broken = |what: String| {
            Box::new(Error::new(ErrorKind::Rejected, &cloud.setup.account, CREATING, what, Reached::No))
        };
        let key = OfferKey::decode(&offer.id).map_err(|error| broken(error.to_string()))?;
        let instance = InstanceType::parse(&key.instance_type)
            .ok_or_else(|| broken(format!("`{}` is no instance type of RunPod", key.instance_type)))?;
        let choice = cloud.choose(spec.image.as_deref(), key.cuda);
        let wishes = Wishes {
            disk_gb: key.disk_gb.max(1),
            floor: cloud.floor(spec.image.as_deref(), &key),
            ram_gb: key.ram_gb,
            vcpus: key.vcpus,
        };
        let attempt = Attempt {
            gpu: offer.gpu.clone(),
            secure: instance.tier == super::Tier::Secure,
            constraints: constraints(&instance, &key, &wishes),
            image: choice.image,
            image_is_ours: choice.is_ours,
        };
        Ok(Plan { instance, zone: key.zone, wishes, attempt })
    }

    /// Returns the body. Nothing in it is null or empty: an unset `PUBLIC_KEY` once became the text `null`
    /// (github.com/openclaw/crabbox/issues/1202), and unknown or null members are refused with 422.
    fn body(&self, keys: &str, spec: &MachineSpec, mark: &Mark) -> Value {
        let Plan { instance, wishes, .. } = self;
        // Without the count every create fails as if nothing were in stock
        // (github.com/runpod/runpod-mcp/issues/77).
        let mut gpu = json!({"id": instance.gpu_id, "count": instance.count});
        let each = |whole: u32| Value::from(whole.div_ceil(instance.count.max(1)));
        if let Some(floor) = wishes.floor {
            gpu["minCudaVersion"] = Value::from(floor.to_string());
        }
        if let Some(ram) = wishes.ram_gb.filter(|ram| *ram > 0) {
            gpu["minRamPerGpu"] = each(ram);
        }
        if let Some(vcpus) = wishes.vcpus.filter(|vcpus| *vcpus > 0) {
            gpu["minVcpuCountPerGpu"] = each(vcpus);
        }
        let mut body = json!({
            "name": mark.cloud_name(),
            "image": self.attempt.image,
            "cloud": instance.tier.wire(),
            "gpu": gpu,
        });
        if let Some(zone) = &self.zone {
            body["dataCenterIds"] = json!([zone]);
        }
        let mut env = Map::new();
        env.insert(KEY_VARIABLE.to_owned(), Value::from(keys));
        env.insert(MARK_VARIABLE.to_owned(), Value::from(mark.to_text()));
        for (name, value) in spec.env.iter().filter(|(name, value)| !is_own(name) && !value.is_empty()) {
            env.insert(name.clone(), Value::from(value.expose()));
        }
        body["disk"] = Value::from(wishes.disk_gb);
        body["ports"] = json!(["22/tcp"]);
        body["env"] = Value::Object(env);
        body
    }

    fn check_env(&self, cloud: &RunPod, spec: &MachineSpec) -> Result<()> {
        if spec.public_key.trim().is_empty() {
            return Err(of_the_user(cloud, "the public key is empty: nobody could log in".to_owned()));
        }
        let taken = spec.env.iter().find(|(name, _)| reserves(name));
        match taken {
            Some((name, _)) => {
                let whose = if is_own(name) { "gpuprov" } else { "RunPod" };
                Err(of_the_user(
                    cloud,
                    format!("`--env {name}` cannot be set: {whose} itself sets that variable in a pod"),
                ))
            }
            None => Ok(()),
        }
    }
}

/// Whether a variable of the environment is ours or RunPod's own.
pub(super) fn reserves(name: &str) -> bool {
    is_own(name) || name.to_ascii_uppercase().starts_with("RUNPOD_")
}

fn is_own(name: &str) -> bool {
    [KEY_VARIABLE, MARK_VARIABLE].contains(&name)
}

fn of_the_user(cloud: &RunPod, message: String) -> Box<Error> {
    let mut error = Error::new(ErrorKind::Rejected, &cloud.setup.account, CREATING, message, Reached::No);
    error.user_input = true;
    Box::new(error)
}

/// Reads the answer to a create. An id goes to the journal before anything else, whatever the answer is otherwise.
fn handle(answer: &Answer, asked: &Asked<'_>, journal: &dyn Journal) -> Result<Handle> {
    let id = pod_id(answer);
    if let Some(id) = &id {
        let made = Resource { kind: ResourceKind::Machine, id: id.clone(), data: Map::new() };
        if let Err(error) = journal.made(&made) {
            let message = format!("pod {id} was made, but its record could not be written: {error}");
            let mut failed =
                Error::new(ErrorKind::Unavailable, asked.account, asked.doing, message, Reached::Yes);
            failed.source = Some(Box::new(error));
            return Err(Box::new(failed));
        }
    }
    match id {
        Some(id) if answer.is_success() => Ok(Handle::new(id)),
        Some(_) => {
            let mut error = refused(answer, asked);
            error.reached = Reached::Yes;
            Err(error)
        }
        None if answer.is_success() => Err(unreadable(asked, "it holds no pod id", Reached::Yes)),
        None => Err(refused(answer, asked)),
    }
}

/// Finds a pod's id in an answer, also in one that is odd otherwise.
fn pod_id(answer: &Answer) -> Option<String> {
    let body: Value = answer.json().ok()?;
    let places = [body.get("id"), body.pointer("/pod/id"), body.pointer("/data/id")];
    let is_id = |id: &&str| {
        (4..=64).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    places.into_iter().flatten().filter_map(Value::as_str).find(is_id).map(str::to_owned)
}
