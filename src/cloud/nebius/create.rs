//! Making a machine: one request makes it with its disk and address.
//!
//! The request has an idempotency key that follows from the claim, so the same bytes under it are carried out once however
//! often they are sent. An answer that is lost is settled by sending them once more, and then by the machine's name and marks.

use super::Nebius;
use super::calls::CREATING;
use super::errors::{Asked, late, unreadable};
use super::host_key::HostKey;
use super::image::SAFE_DISK_GB;
use super::marks::{Carried, idempotency_key, is_of, names};
use super::order::{Order, With, as_json};
use super::states::Course;
use super::subnets::subnet;
use super::wire::methods::CREATE_INSTANCE;
use super::wire::{CreateInstanceRequest, Instance, Operation};
use crate::cloud::{Created, Error, ErrorKind, Journal, Preview, Reached, Result};
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::spec::MachineSpec;

/// Makes a machine.
pub(super) async fn create(
    cloud: &Nebius,
    offer: &Offer,
    spec: &MachineSpec,
    mark: &Mark,
    journal: &dyn Journal,
) -> Result<Created> {
    let order = Order::new(cloud, offer, spec)?;
    let attempt = order.attempt();
    let asked = Asked { attempt: Some(&attempt), ..cloud.api.asked(CREATING) };
    let host_key = HostKey::random().map_err(|why| asked.error(ErrorKind::Unavailable, why, Reached::No))?;
    let subnet = subnet(cloud, &order.project, &order.region).await?;
    let mut taken = None;
    for (number, name) in names(mark).iter().enumerate() {
        let request = order.request(With { name, subnet: &subnet, spec, mark, host_key: Some(&host_key) });
        let key = idempotency_key(mark, number);
        let make = Make { cloud, order: &order, asked: &asked, name, mark, host_key: &host_key, journal };
        match make.run(&request, &key).await {
            // The name is somebody else's, and with it nothing was made.
            Err(error) if error.kind == ErrorKind::Conflict && error.reached == Reached::No => {
                taken = Some(error);
            }
            Ok(handle) => return Ok(Created { handle, notes: notes(&order) }),
            Err(error) => return Err(error),
        }
    }
    Err(taken.unwrap_or_else(|| asked.error(ErrorKind::Conflict, "every name is taken", Reached::No)))
}

fn notes(order: &Order) -> Vec<String> {
    let size = order.disk_gb;
    let small = size < SAFE_DISK_GB;
    small
        .then(|| {
            format!("the boot disk has {size} GB; below {SAFE_DISK_GB} GB machines of Nebius were seen to hang at boot")
        })
        .into_iter()
        .collect()
}

/// One name's create.
struct Make<'a> {
    cloud: &'a Nebius,
    order: &'a Order,
    asked: &'a Asked<'a>,
    name: &'a str,
    mark: &'a Mark,
    host_key: &'a HostKey,
    journal: &'a dyn Journal,
}

impl Make<'_> {
    async fn run(&self, request: &CreateInstanceRequest, key: &str) -> Result<Handle> {
        let attempt = self.order.attempt();
        let send = || self.cloud.api.create(request, key, &attempt);
        let first = match send().await {
            Ok(operation) => return self.made(&operation),
            Err(error) if error.reached == Reached::No => return Err(error),
            Err(error) if error.kind == ErrorKind::Conflict => return self.settled(error, true).await,
            Err(error) => error,
        };
        // Not blindly: under its key it is the same create.
        match send().await {
            Ok(operation) => self.made(&operation),
            // What the second answer says is no word about the first, unless the machine is there.
            Err(_) => self.settled(first, false).await,
        }
    }

    /// Finds out by the machine's name what a create made that has no good answer. `is_taken`: Nebius says that the name is
    /// taken, so it knows whose it is.
    async fn settled(&self, mut error: Box<Error>, is_taken: bool) -> Result<Handle> {
        match self.cloud.api.instance_by_name(&self.order.project, self.name).await {
            Ok(Some(found)) if self.is_ours(&found) => {
                let id = found.metadata.map(|metadata| metadata.id).unwrap_or_default();
                self.note(&id, None)
            }
            // Somebody else's: with it nothing was made, and another name may do.
            Ok(Some(_)) if is_taken => {
                error.reached = Reached::No;
                Err(error)
            }
            // It may still come: it is looked for by its marks.
            Ok(_) | Err(_) => Err(error),
        }
    }

    fn is_ours(&self, found: &Instance) -> bool {
        found.metadata.as_ref().is_some_and(|metadata| is_of(&metadata.labels, self.mark))
    }

    /// Reads the answer to a create. An id goes to the journal before anything else.
    fn made(&self, operation: &Operation) -> Result<Handle> {
        if operation.resource_id.is_empty() {
            return Err(match Course::of(operation) {
                // Named nothing and failed.
                Course::Failed(status) => {
                    let mut error = late(&status, self.asked);
                    error.reached = Reached::Maybe;
                    error
                }
                _ => unreadable(self.asked, "it holds no machine id", Reached::Maybe),
            });
        }
        let operation_id = Some(operation.id.as_str()).filter(|id| !id.is_empty());
        let handle = self.note(&operation.resource_id, operation_id)?;
        match Course::of(operation) {
            Course::Failed(status) => Err(late(&status, self.asked)),
            _ => Ok(handle),
        }
    }

    fn note(&self, id: &str, operation: Option<&str>) -> Result<Handle> {
        if id.is_empty() {
            return Err(unreadable(self.asked, "the machine has no id", Reached::Maybe));
        }
        let carried = Carried {
            project: &self.order.project,
            region: &self.order.region,
            operation,
            name: self.name,
            mark: Some(self.mark),
            host_key: Some(&self.host_key.public),
        };
        let data = carried.data();
        let made = Resource { kind: ResourceKind::Machine, id: id.to_owned(), data: data.clone() };
        if let Err(error) = self.journal.made(&made) {
            let message = format!("machine {id} was made, but its record could not be written: {error}");
            let mut failed = self.asked.error(ErrorKind::Unavailable, message, Reached::Yes);
            failed.source = Some(Box::new(error));
            return Err(failed);
        }
        Ok(Handle { data, ..Handle::new(id) })
    }
}

/// Returns the request that [`create`] would send; the subnet is not asked for, and the host key is not made.
pub(super) fn preview(cloud: &Nebius, offer: &Offer, spec: &MachineSpec, mark: &Mark) -> Preview {
    let [name, _] = names(mark);
    let with = With { name: &name, subnet: "the project's default subnet", spec, mark, host_key: None };
    let body = Order::new(cloud, offer, spec).map(|order| as_json(&order.request(with)));
    Preview {
        method: CREATE_INSTANCE.path.trim_start_matches('/').to_owned(),
        url: format!("{}{}", cloud.api.base(&CREATE_INSTANCE), CREATE_INSTANCE.path),
        body: body.unwrap_or_default(),
    }
}
