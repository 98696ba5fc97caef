//! Making a machine: first its ssh key object, then the machine, each noted before the next request.
//!
//! There is no idempotency key. What a create may have made is found by its tags, the key by its whole name. When it is
//! certain that no machine was made, the key is deleted again before the error is given back.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client::{CREATING, made_id};
use super::delete::keys;
use super::errors::{Asked, Attempt, is_wrong_image, refused, unreadable};
use super::image::{MOST_IMAGES, candidates, candidates_of_names};
use super::marks::{key, machine, machine_data, tags, whole_name};
use super::wire::told;
use super::{MIN_DISK_GB, Verda};
use crate::cloud::{Created, Error, ErrorKind, Journal, Preview, Reached, Result};
use crate::http::Answer;
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;

/// The largest OS disk that is known to be taken, in GB (github.com/brevdev/cloud, `v1/providers/verda`).
pub(super) const MOST_DISK_GB: u32 = 10_240;

/// Stands for the key object in a preview: it is not made.
const KEY_PLACEHOLDER: &str = "…";

/// Makes a machine.
pub(super) async fn create(
    cloud: &Verda,
    offer: &Offer,
    spec: &MachineSpec,
    mark: &Mark,
    journal: &dyn Journal,
) -> Result<Created> {
    let order = Order::new(cloud, offer, spec)?;
    if spec.public_key.trim().is_empty() {
        let mut error =
            order.error(cloud, ErrorKind::Rejected, "the public key is empty: nobody could log in");
        error.user_input = true;
        return Err(error);
    }
    // Nothing was made yet, whatever became of this question.
    let images = images(cloud, &order).await.map_err(|mut error| {
        error.reached = Reached::No;
        error
    })?;
    let name = whole_name(mark);
    let key_id = match cloud.api.add_key(&name, spec.public_key.trim()).await {
        Ok(id) => id,
        Err(error) if error.reached == Reached::No => return Err(error),
        // An answer that was lost may have left one.
        Err(error) => return Err(cleaned(cloud, mark, BTreeSet::new(), error).await),
    };
    let only = BTreeSet::from([key_id.clone()]);
    if let Err(error) = journal.made(&key(&key_id)) {
        let message = format!("the record could not be written: {error}");
        return Err(cleaned(cloud, mark, only, order.error(cloud, ErrorKind::Unavailable, message)).await);
    }
    match buy(cloud, &order, images, &key_id, spec, mark, journal).await {
        Ok(handle) => Ok(Created { handle, notes: Vec::new() }),
        Err(error) if error.reached == Reached::No => Err(cleaned(cloud, mark, only, error).await),
        Err(error) => Err(error),
    }
}

/// Deletes the keys of an attempt of which no machine was made. If that fails the attempt must not be forgotten, and the
/// error says so: it is then looked for.
async fn cleaned(cloud: &Verda, mark: &Mark, known: BTreeSet<String>, mut error: Box<Error>) -> Box<Error> {
    match keys(cloud, Some(mark), known).await {
        Ok(true) => {
            // No request for a machine was sent, or it was refused.
            error.reached = Reached::No;
        }
        Ok(false) => error.reached = Reached::Maybe,
        Err(failed) => {
            error.message = format!("{}; its ssh key may be left: {}", error.message, failed.message);
            error.reached = Reached::Maybe;
        }
    }
    error
}

/// Sends the create, with the next image while the one before is not taken.
async fn buy(
    cloud: &Verda,
    order: &Order,
    images: Vec<String>,
    key_id: &str,
    spec: &MachineSpec,
    mark: &Mark,
    journal: &dyn Journal,
) -> Result<Handle> {
    let mut last = None;
    for image in images.into_iter().take(MOST_IMAGES) {
        let attempt = order.attempt(image);
        let body = order.body(&attempt.image, key_id, spec, mark);
        let answer = cloud.api.create(&body, &attempt).await?;
        let asked = Asked { attempt: Some(&attempt), ..cloud.api.asked(CREATING) };
        match handle(&answer, key_id, mark, &asked, journal) {
            Err(error) if is_wrong_image(&error) => last = Some(error),
            other => return other,
        }
    }
    Err(last.unwrap_or_else(|| order.error(cloud, ErrorKind::Rejected, "Verda has no image for this type")))
}

/// Returns the images to try, the best first.
async fn images(cloud: &Verda, order: &Order) -> Result<Vec<String>> {
    let key = &order.key;
    let has_gpu = key.gpu_count > 0;
    let floor = key.cuda.filter(|_| has_gpu);
    let Some(listed) = cloud.api.images(&key.instance_type).await? else {
        return Err(order.error(
            cloud,
            ErrorKind::NoCapacity,
            "Verda does not know the instance type any more",
        ));
    };
    let mut found = candidates(&listed, has_gpu, floor);
    if found.is_empty() {
        // The public copy of the same list.
        let types = cloud.api.types("listing images").await?;
        let row = types.iter().find(|row| told(row.instance_type.as_ref()) == Some(&key.instance_type));
        let names = row.and_then(|row| row.supported_os.clone()).unwrap_or_default();
        found = candidates_of_names(&names, has_gpu, floor);
    }
    if found.is_empty() {
        let floor = floor.map(|floor| format!(" with CUDA {floor} or newer")).unwrap_or_default();
        let message = format!("Verda has no Ubuntu image{floor} for {}", key.instance_type);
        let mut error = order.error(cloud, ErrorKind::Rejected, message);
        error.limit = Some(order.limit());
        return Err(error);
    }
    Ok(found.into_iter().map(|candidate| candidate.image).collect())
}

/// Returns the request that [`create`] would send, but for the key object, which is not made, and for the image, which is
/// not asked for.
pub(super) fn preview(cloud: &Verda, offer: &Offer, spec: &MachineSpec, mark: &Mark) -> Preview {
    let image = match offer.cuda.as_deref() {
        Some(cuda) => format!("the type's Ubuntu 24.04 image with CUDA {cuda}"),
        None => "the type's Ubuntu 24.04 image".to_owned(),
    };
    let body = Order::new(cloud, offer, spec).map(|order| order.body(&image, KEY_PLACEHOLDER, spec, mark));
    Preview { method: "POST".to_owned(), url: cloud.api.instances_url(), body: body.unwrap_or(Value::Null) }
}

/// What is asked for.
pub(super) struct Order {
    key: OfferKey,
    location: String,
}

impl Order {
    pub(super) fn new(cloud: &Verda, offer: &Offer, spec: &MachineSpec) -> Result<Self> {
        let broken = |what: String| {
            Box::new(Error::new(ErrorKind::Rejected, &cloud.setup.account, CREATING, what, Reached::No))
        };
        let mut key = OfferKey::decode(&offer.id).map_err(|error| broken(error.to_string()))?;
        let location = key.zone.clone().ok_or_else(|| broken("the offer names no location".to_owned()))?;
        if spec.image.is_some() {
            return Err(broken("Verda boots its own images".to_owned()));
        }
        if key.disk_gb > MOST_DISK_GB {
            let mut error = broken(format!("Verda takes disks of up to {MOST_DISK_GB} GB"));
            error.user_input = true;
            return Err(error);
        }
        key.disk_gb = key.disk_gb.max(MIN_DISK_GB);
        Ok(Order { key, location })
    }

    fn attempt(&self, image: String) -> Attempt {
        Attempt {
            instance_type: self.key.instance_type.clone(),
            location: self.location.clone(),
            spot: self.key.spot,
            image,
        }
    }

    fn limit(&self) -> crate::cloud::Limit {
        crate::cloud::Limit { instance_type: Some(self.key.instance_type.clone()), ..Default::default() }
    }

    fn error(&self, cloud: &Verda, kind: ErrorKind, message: impl Into<String>) -> Box<Error> {
        cloud.api.asked(CREATING).error(kind, message, Reached::No)
    }

    pub(super) fn body(&self, image: &str, key_id: &str, spec: &MachineSpec, mark: &Mark) -> Value {
        let spot = self.key.spot;
        let mut disk = json!({"name": whole_name(mark), "size": self.key.disk_gb, "tags": tags(mark)});
        if spot {
            // The default would leave the disk of a machine that is taken away, and its bill. On demand it is refused.
            disk["on_spot_discontinue"] = json!("delete_permanently");
        }
        json!({
            "instance_type": self.key.instance_type,
            "image": image,
            "hostname": spec.name.as_str(),
            "description": mark.cloud_name(),
            "location_code": self.location,
            "ssh_key_ids": [key_id],
            "os_volume": disk,
            "is_spot": spot,
            "contract": if spot { "SPOT" } else { "PAY_AS_YOU_GO" },
            "tags": tags(mark),
        })
    }
}

/// Reads the answer to a create. An id goes to the journal before anything else, whatever the answer is otherwise.
fn handle(
    answer: &Answer,
    key_id: &str,
    mark: &Mark,
    asked: &Asked<'_>,
    journal: &dyn Journal,
) -> Result<Handle> {
    let id = made_id(answer)
        .filter(|_| answer.is_success() || answer.json::<Value>().is_ok_and(|body| body.is_object()));
    if let Some(id) = &id {
        let made = Resource { kind: ResourceKind::Machine, id: id.clone(), data: machine_data(mark) };
        if let Err(error) = journal.made(&made) {
            let message = format!("machine {id} was made, but its record could not be written: {error}");
            let mut failed = asked.error(ErrorKind::Unavailable, message, Reached::Yes);
            failed.source = Some(Box::new(error));
            return Err(failed);
        }
    }
    match id {
        Some(id) if answer.is_success() => Ok(Handle { side: vec![key(key_id)], ..machine(&id, mark) }),
        Some(_) => {
            let mut error = refused(answer, asked);
            error.reached = Reached::Yes;
            Err(error)
        }
        None if answer.is_success() => Err(unreadable(asked, "it holds no machine id", Reached::Yes)),
        None => Err(refused(answer, asked)),
    }
}
