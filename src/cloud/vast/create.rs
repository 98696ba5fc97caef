//! Making a machine: the body of the request, what its answer says was made, and the key.

use serde_json::{Map, Value, json};

use super::Vast;
use super::client::CREATING;
use super::env::{environment, note};
use super::errors::{Asked, Attempt, good, is_about_image, unreadable};
use super::image::{Choice, cuda};
use super::instance::Slot;
use super::wire::id_of;
use crate::cloud::{Created, Error, ErrorKind, Journal, Preview, Reached, Result};
use crate::http::Answer;
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::model::mark::{MARK_VARIABLE, Mark};
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;

/// Longest label at a create.
const LONGEST_LABEL: usize = 256;

/// Runs in the container at every start: logins would land in a tmux (docs.vast.ai, instances FAQ).
const ON_START: &str = "touch ~/.no_auto_tmux";

/// Makes a machine and attaches the key.
pub(super) async fn create(
    cloud: &Vast,
    offer: &Offer,
    spec: &MachineSpec,
    mark: &Mark,
    journal: &dyn Journal,
) -> Result<Created> {
    let plan = Plan::new(cloud, offer, spec)?;
    plan.check(cloud, spec)?;
    // Whatever comes of it, what earlier searches brought is not the truth any more.
    cloud.searches.clear();
    let handle = match plan.send(cloud, &plan.choice.image, spec, mark, journal).await {
        Sent::Made(handle) => handle,
        Sent::Refused(answer, error) => {
            let instead = plan.choice.instead.as_deref().filter(|_| {
                error.reached == Reached::No
                    && error.kind == ErrorKind::Rejected
                    && is_about_image(&answer, &plan.choice.image)
            });
            match instead {
                // The refusal was certain, so that this is no second machine.
                Some(image) => match plan.send(cloud, image, spec, mark, journal).await {
                    Sent::Made(handle) => handle,
                    Sent::Refused(_, error) | Sent::Failed(error) => return Err(error),
                },
                None => return Err(error),
            }
        }
        Sent::Failed(error) => return Err(error),
    };
    let mut notes: Vec<String> = note(&environment(mark, &spec.env).left_out).into_iter().collect();
    notes.extend(cloud.admit(&handle, &spec.public_key).await?);
    Ok(Created { handle, notes })
}

/// Returns the request that [`create`] would send, with the values of the user's environment left out.
pub(super) fn preview(cloud: &Vast, offer: &Offer, spec: &MachineSpec, mark: &Mark) -> Preview {
    let plan = Plan::new(cloud, offer, spec);
    let (url, mut body) = match &plan {
        Ok(plan) => (cloud.api.ask_url(plan.slot.ask), plan.body(&plan.choice.image, spec, mark)),
        Err(_) => (cloud.api.ask_url(0), Value::Null),
    };
    if let Some(env) = body.get_mut("env").and_then(Value::as_object_mut) {
        for (_, value) in env.iter_mut().filter(|(name, _)| *name != MARK_VARIABLE) {
            *value = Value::from("…");
        }
    }
    Preview { method: "PUT".to_owned(), url, body }
}

/// What became of one request.
enum Sent {
    /// A machine, noted.
    Made(Handle),
    /// A refusal.
    Refused(Answer, Box<Error>),
    /// No answer, or one that says more than a refusal.
    Failed(Box<Error>),
}

/// What is asked for.
struct Plan {
    slot: Slot,
    /// The bid; none for on demand.
    bid: Option<f64>,
    disk_gb: u32,
    choice: Choice,
}

impl Plan {
    fn new(cloud: &Vast, offer: &Offer, spec: &MachineSpec) -> Result<Self> {
        let broken = |what: String| {
            Box::new(Error::new(ErrorKind::Rejected, &cloud.setup.account, CREATING, what, Reached::No))
        };
        let key = OfferKey::decode(&offer.id).map_err(|error| broken(error.to_string()))?;
        let slot = key.own.as_deref().and_then(Slot::parse);
        let slot = slot.ok_or_else(|| broken(format!("`{}` names no ask of Vast", offer.id)))?;
        let host =
            offer.cuda.as_deref().and_then(|text| text.parse().ok()).and_then(|figure| cuda(Some(figure)));
        Ok(Plan {
            slot,
            // Without its price a bid becomes an on-demand machine, and the answer does not say so
            // (github.com/vast-ai/vast-cli/pull/403).
            bid: key.spot.then(|| offer.price_parts.compute.as_f64()),
            disk_gb: super::disk_gb(key.disk_gb),
            choice: cloud.choose(spec.image.as_deref(), key.cuda, host),
        })
    }

    fn body(&self, image: &str, spec: &MachineSpec, mark: &Mark) -> Value {
        let mut body = json!({
            "client_id": "me",
            "image": image,
            "disk": self.disk_gb,
            "runtype": "ssh_direct",
            "target_state": "running",
            // Else an offer that is gone leaves a stopped machine whose disk is billed.
            "cancel_unavail": true,
            "env": environment(mark, &spec.env).sent,
            "onstart": ON_START,
        });
        let label = mark.to_text();
        if label.len() <= LONGEST_LABEL {
            body["label"] = Value::from(label);
        }
        if let Some(bid) = self.bid {
            body["price"] = Value::from(bid);
        }
        body
    }

    fn check(&self, cloud: &Vast, spec: &MachineSpec) -> Result<()> {
        let of_the_user = |message: &str| {
            let mut error =
                Error::new(ErrorKind::Rejected, &cloud.setup.account, CREATING, message, Reached::No);
            error.user_input = true;
            Err(Box::new(error))
        };
        if spec.public_key.trim().is_empty() {
            return of_the_user("the public key is empty: nobody could log in");
        }
        if spec.env.iter().any(|(name, _)| reserves(name)) {
            return of_the_user("`--env GPUPROV_MARK` cannot be set: gpuprov itself sets that variable");
        }
        Ok(())
    }

    async fn send(
        &self,
        cloud: &Vast,
        image: &str,
        spec: &MachineSpec,
        mark: &Mark,
        journal: &dyn Journal,
    ) -> Sent {
        let attempt = Attempt { image: image.to_owned(), image_is_ours: self.choice.is_ours };
        let body = self.body(image, spec, mark);
        let answer = match cloud.api.create(self.slot.ask, &body, &attempt).await {
            Ok(answer) => answer,
            Err(error) => return Sent::Failed(error),
        };
        let mut asked = Asked { attempt: Some(&attempt), ..cloud.api.asked(CREATING) };
        asked.secrets.extend(spec.env.iter().map(|(_, value)| value.expose()));
        read(answer, &asked, journal)
    }
}

/// Reads the answer to a create. A contract goes to the journal before anything else, whatever the answer is otherwise: also
/// failures carry one, a stopped machine whose disk is billed (github.com/dstackai/dstack/pull/4036).
fn read(answer: Answer, asked: &Asked<'_>, journal: &dyn Journal) -> Sent {
    let contract = contract(&answer);
    if let Some(id) = &contract {
        let made = Resource { kind: ResourceKind::Machine, id: id.clone(), data: Map::new() };
        if let Err(error) = journal.made(&made) {
            let message = format!("machine {id} was made, but its record could not be written: {error}");
            let mut failed =
                Error::new(ErrorKind::Unavailable, asked.account, asked.doing, message, Reached::Yes);
            failed.source = Some(Box::new(error));
            return Sent::Failed(Box::new(failed));
        }
    }
    match (good(&answer, asked), contract) {
        (Ok(_), Some(id)) => Sent::Made(Handle::new(id)),
        (Ok(_), None) => Sent::Failed(unreadable(asked, "it holds no contract", Reached::Yes)),
        (Err(mut error), Some(_)) => {
            error.reached = Reached::Yes;
            if error.kind == ErrorKind::Rejected && !error.user_input {
                // It was made and could not start where it is; another host may do better.
                error.kind = ErrorKind::NoCapacity;
            }
            Sent::Failed(error)
        }
        (Err(error), None) => Sent::Refused(answer, error),
    }
}

/// Finds the id of a machine in an answer, also in one that is odd otherwise.
fn contract(answer: &Answer) -> Option<String> {
    let body: Value = answer.json().ok()?;
    body.get("new_contract").and_then(id_of).map(|id| id.to_string())
}

impl Vast {
    /// Attaches the key to a machine just made. Where that does not work yet, the looks at the machine go on trying; returns
    /// what the user should know then. A key that Vast refuses is an error: nobody could ever log in.
    async fn admit(&self, handle: &Handle, public_key: &str) -> Result<Option<String>> {
        self.watch.begin(&handle.id);
        match self.api.attach(&handle.id, public_key).await {
            Ok(()) => Ok(None),
            Err(mut error) => match error.kind {
                ErrorKind::Auth | ErrorKind::Forbidden | ErrorKind::Rejected => {
                    error.reached = Reached::Yes;
                    Err(error)
                }
                // Right after a create the machine may not be known yet.
                _ => {
                    self.watch.owe_key(&handle.id, public_key);
                    Ok(None)
                }
            },
        }
    }
}

/// Whether a variable of the environment is ours.
pub(super) fn reserves(name: &str) -> bool {
    name == MARK_VARIABLE
}
