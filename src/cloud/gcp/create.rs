//! Making a machine: its firewall rules first, if any were asked for, then the machine, each noted before the next request.
//!
//! The answer to the create is an operation with the number that the machine will have; how it ended is for the first looks.
//! An answer that was lost is settled at once: the machine is asked for by its name, which is unique in its zone, and the same
//! create is sent again under the same request id, which makes nothing twice.

use std::time::Duration;

use jiff::Timestamp;

use super::Gcp;
use super::client::{CREATING, operation};
use super::errors::Asked;
use super::image::{Picked, family_of};
use super::marks::{Known, read_labels, rule};
use super::names::is_number;
use super::order::{Order, Parts, request_id};
use super::ports;
use super::verdicts::Operation;
use super::wire::{Instance, told};
use crate::cloud::{Created, Error, ErrorKind, Journal, Preview, Reached, Result};
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::spec::MachineSpec;

/// Between the tries to settle a lost answer.
const SETTLE: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3)];

/// So many images are tried before the type is given up.
const MOST_IMAGES: usize = 3;

/// Makes a machine.
pub(super) async fn create(
    cloud: &Gcp,
    offer: &Offer,
    spec: &MachineSpec,
    mark: &Mark,
    journal: &dyn Journal,
) -> Result<Created> {
    let order = Order::new(cloud, offer, spec, mark)?;
    // Nothing was made yet, whatever became of this question.
    let image = pick(cloud, &order, &[]).await.map_err(|mut error| {
        error.reached = Reached::No;
        error
    })?;
    let rules = ports::open(cloud, spec, mark, journal).await?;
    let mut notes = Vec::new();
    match buy(cloud, &order, image, spec, mark, journal, &mut notes).await {
        Ok(mut handle) => {
            handle.side = rules.iter().map(|name| rule(name, &cloud.settings.project)).collect();
            Ok(Created { handle, notes })
        }
        Err(error) if error.reached == Reached::No => {
            Err(ports::cleaned(cloud, &rules, rules.len(), error).await)
        }
        Err(error) => Err(error),
    }
}

/// Sends the create, again with what can be done without, and with the next image where one does not exist.
async fn buy(
    cloud: &Gcp,
    order: &Order,
    mut image: Picked,
    spec: &MachineSpec,
    mark: &Mark,
    journal: &dyn Journal,
    notes: &mut Vec<String>,
) -> Result<Handle> {
    let (mut guest_attributes, mut tried) = (true, Vec::new());
    for round in 0.. {
        let disk_gb = order.key.disk_gb.max(image.size_gb.unwrap_or_default());
        let link = image.link();
        let parts = Parts { image: &link, disk_gb, guest_attributes, now: Timestamp::now() };
        let body = order.body(&parts, spec, mark);
        let id = request_id(mark.claim, &format!("create {round}"));
        let send = Send { cloud, order, mark, journal, id: &id, body: &body };
        let error = match send.settled().await {
            Ok(handle) => {
                if disk_gb > order.key.disk_gb {
                    notes.push(format!("the disk has {disk_gb} GB: the image {} needs them", image.name));
                }
                return Ok(handle);
            }
            Err(error) => error,
        };
        if error.reached != Reached::No {
            return Err(error);
        }
        if guest_attributes && error.message.contains("disableGuestAttributesAccess") {
            notes.push(
                "the organisation forbids guest attributes: the first contact with the host key is trusted"
                    .to_owned(),
            );
            guest_attributes = false;
        } else if error.message.contains("/images/") && tried.len() + 1 < MOST_IMAGES {
            tried.push(image);
            image = pick(cloud, order, &tried).await?;
        } else {
            return Err(error);
        }
    }
    Err(cloud.api.asked(CREATING).error(ErrorKind::Unavailable, "no try was made", Reached::No))
}

async fn pick(cloud: &Gcp, order: &Order, tried: &[Picked]) -> Result<Picked> {
    let found = cloud.images.pick(&cloud.api, order.has_gpu(), tried).await?;
    found.ok_or_else(|| {
        let message = "Google has none of the images that gpuprov boots";
        cloud.api.asked(CREATING).of(&order.attempt).error(ErrorKind::Rejected, message, Reached::No)
    })
}

/// What an answer to a create tells.
enum Told {
    /// The number of the machine, and the operation.
    Made(String, Option<String>),
    /// It was refused.
    No(Box<Error>),
    /// Nobody knows.
    Unsure(Box<Error>),
}

/// One create, under one request id.
struct Send<'a> {
    cloud: &'a Gcp,
    order: &'a Order,
    mark: &'a Mark,
    journal: &'a dyn Journal,
    id: &'a str,
    body: &'a serde_json::Value,
}

impl Send<'_> {
    fn asked(&self) -> Asked<'_> {
        self.cloud.api.asked(CREATING).of(&self.order.attempt)
    }

    /// Sends it until there is an answer that tells what became of it.
    async fn settled(&self) -> Result<Handle> {
        let mut unsure = match self.once().await {
            Told::Made(id, operation) => return self.noted(&id, operation),
            Told::No(error) if error.kind != ErrorKind::Conflict => return Err(error),
            Told::No(error) | Told::Unsure(error) => error,
        };
        for pause in SETTLE {
            tokio::time::sleep(pause).await;
            match self.by_name().await {
                Some(Ok(id)) => return self.noted(&id, None),
                // The name is somebody else's, so that ours was not made.
                Some(Err(())) => {
                    unsure.reached = Reached::No;
                    return Err(unsure);
                }
                None => {}
            }
            match self.once().await {
                Told::Made(id, operation) => return self.noted(&id, operation),
                // The first one may still be on its way.
                Told::No(error) | Told::Unsure(error) => unsure = error,
            }
            unsure.reached = Reached::Maybe;
        }
        unsure.reached = Reached::Maybe;
        Err(unsure)
    }

    async fn once(&self) -> Told {
        let sent = self.cloud.api.insert(&self.order.zone, self.id, self.body, &self.order.attempt).await;
        let read = sent.and_then(|answer| {
            let made: Operation = operation(&answer, &self.asked())?;
            let id = told(made.target_id.as_ref()).filter(|id| is_number(id)).map(str::to_owned);
            let what = "the operation names no machine";
            let id = id.ok_or_else(|| super::errors::unreadable(&self.asked(), what, Reached::Yes))?;
            Ok((id, made.name))
        });
        match read {
            Ok((id, operation)) => Told::Made(id, operation),
            Err(error) if error.reached == Reached::No => Told::No(error),
            Err(error) => Told::Unsure(error),
        }
    }

    /// Finds what a lost answer made: names are unique in a zone, and the labels say whose it is. The number if it is ours, an
    /// error if it is another's, none if there is no machine of that name or nobody says so.
    async fn by_name(&self) -> Option<std::result::Result<String, ()>> {
        let name = self.mark.cloud_name();
        let found = self.cloud.api.instance(&self.order.zone, &name, CREATING).await.ok()??;
        let id = told(found.id.as_ref()).filter(|id| is_number(id))?;
        Some(if self.is_ours(&found) { Ok(id.to_owned()) } else { Err(()) })
    }

    fn is_ours(&self, instance: &Instance) -> bool {
        read_labels(instance.labels.as_ref())
            .is_some_and(|mark| mark.claim == self.mark.claim && mark.installation == self.mark.installation)
    }

    /// Writes the machine down before anything else is done.
    fn noted(&self, id: &str, operation: Option<String>) -> Result<Handle> {
        let known = Known { operation, ..self.order.known(&self.cloud.settings.project, self.mark) };
        let made = Resource { kind: ResourceKind::Machine, id: id.to_owned(), data: known.data() };
        if let Err(error) = self.journal.made(&made) {
            let message = format!("machine {id} was made, but its record could not be written: {error}");
            let mut failed = self.asked().error(ErrorKind::Unavailable, message, Reached::Yes);
            failed.source = Some(Box::new(error));
            return Err(failed);
        }
        Ok(Handle { data: made.data, ..Handle::new(id) })
    }
}

/// Returns the request that [`create`] would send, with the image's family in place of its newest image, which is not asked
/// for.
pub(super) fn preview(cloud: &Gcp, offer: &Offer, spec: &MachineSpec, mark: &Mark) -> Preview {
    let order = Order::new(cloud, offer, spec, mark);
    let zone = order.as_ref().map(|order| order.zone.clone()).unwrap_or_default();
    let body = order.map(|order: Order| {
        let image = family_of(order.has_gpu());
        let disk_gb = order.key.disk_gb;
        let parts = Parts { image: &image, disk_gb, guest_attributes: true, now: Timestamp::now() };
        order.body(&parts, spec, mark)
    });
    Preview {
        method: "POST".to_owned(),
        url: cloud.api.url(&format!("zones/{zone}/instances")),
        body: body.unwrap_or(serde_json::Value::Null),
    }
}
