//! What `provision` would try, without creating anything.

use crate::cloud::{Error, ErrorKind};
use crate::model::machine::MachineName;
use crate::model::offer::Offer;
use crate::provision::Context;
use crate::provision::acquire::{name_for, nothing, offers};
use crate::provision::events::Events;
use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::{Asked, Gathered};
use crate::provision::names::unknown_name;
use crate::provision::request::Request;
use crate::provision::reserve::{Names, free_elsewhere, names_elsewhere, reserve};
use crate::provision::run::{Fresh, Loop};
use crate::state::lock::NameLock;

/// What would be tried.
#[derive(Debug)]
pub struct Rehearsal {
    /// The offers in the order of trying; never empty.
    pub offers: Vec<Offer>,
    /// The name that the machine would get.
    pub name: MachineName,
}

/// Returns the offers that would be tried, in the order of trying, for `--dry-run`. An offer taken by its id is asked for
/// again, as it would be before the create. Who did not answer is added to `failed`.
pub async fn rehearse(
    context: &Context,
    request: &Request,
    asked: &[Asked],
    events: &dyn Events,
    failed: &mut Vec<Box<Error>>,
) -> Result<Rehearsal, Failure> {
    // The lock is let go at the end: nothing is taken.
    let lock = request.name.as_ref().map(|name| reserve(context, name)).transpose()?;
    let elsewhere = async {
        match context.installation_given {
            true => names_elsewhere(context, events).await,
            false => Names::new(),
        }
    };
    let (mut gathered, elsewhere) = tokio::join!(offers(context, request, asked, events), elsewhere);
    let rehearsed = settle(context, request, asked, (lock, &elsewhere), &mut gathered).await;
    failed.append(&mut gathered.failed);
    rehearsed
}

async fn settle(
    context: &Context,
    request: &Request,
    asked: &[Asked],
    (lock, elsewhere): (Option<NameLock>, &Names),
    gathered: &mut Gathered,
) -> Result<Rehearsal, Failure> {
    if let Some(offer) = &request.offer {
        gathered.offers = vec![again(context, request, asked, offer).await?];
    }
    if let Some(failure) = unknown_name(&request.want, gathered) {
        return Err(failure);
    }
    if let Some(name) = &request.name {
        free_elsewhere(elsewhere, name)?;
    }
    if gathered.offers.is_empty() {
        return Err(nothing(gathered, request));
    }
    let lock = match lock {
        Some(lock) => lock,
        None => name_for(context, gathered, request, elsewhere)?,
    };
    Ok(Rehearsal { offers: std::mem::take(&mut gathered.offers), name: lock.name().clone() })
}

async fn again(
    context: &Context,
    request: &Request,
    asked: &[Asked],
    offer: &Offer,
) -> Result<Offer, Failure> {
    let turns = Loop { context, request, asked, tried: Vec::new(), made: 0, approved: None };
    let Some(asked) = asked.iter().find(|asked| *asked.cloud.account() == offer.account) else {
        return Err(Failure::new(Kind::NothingOffered, "the account of the offer is not asked"));
    };
    match turns.recheck(asked, offer).await {
        Fresh::Take(fresh) => Ok(*fresh),
        Fresh::Dearer(fresh) => Err(Failure::new(
            Kind::TooDear,
            format!("it is {}/h now, {}/h was shown", fresh.price_per_hour, offer.price_per_hour),
        )),
        Fresh::Gone(why) => Err(Failure::new(Kind::Cloud(ErrorKind::NoCapacity), why)),
        Fresh::Failed(error) => Err(Failure::from(error.as_ref())),
    }
}
