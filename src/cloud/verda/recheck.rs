//! Asking for one offer again, right before a create. Not a reservation: the create may still fail.

use futures_util::future::join4;

use super::Verda;
use super::rows::{Frame, row_in};
use super::wire::told;
use crate::cloud::{Recheck, Result};
use crate::model::offer_key::OfferKey;

/// Asks for the offer that `key` names. Its wishes are those of the key: the id is complete.
pub(super) async fn recheck(cloud: &Verda, key: &OfferKey) -> Result<Recheck> {
    let Some(location) = key.zone.as_deref() else {
        return Ok(Recheck::Gone("the offer names no location".to_owned()));
    };
    let (in_stock, types, (places, _), (disk, _)) = join4(
        cloud.api.in_stock(&key.instance_type, location, key.spot),
        cloud.api.types("checking the offer again"),
        cloud.places(),
        cloud.disk_price(),
    )
    .await;
    let (in_stock, types) = (in_stock?, types?);
    let kind = if key.spot { "spot" } else { "on demand" };
    let asked = format!("{}, {kind}, {location}", key.instance_type);
    if !in_stock {
        return Ok(Recheck::Gone(format!("not in stock any more: {asked}")));
    }
    let row = types.iter().find(|row| told(row.instance_type.as_ref()) == Some(&key.instance_type));
    let Some(row) = row else {
        return Ok(Recheck::Gone(format!("Verda does not list the type any more: {asked}")));
    };
    let frame = Frame {
        account: &cloud.setup.account,
        sandbox: cloud.setup.loopback,
        places: &places,
        disk,
        disk_gb: key.disk_gb,
        floor: key.cuda,
    };
    Ok(match row_in(row, location, key.spot, &frame) {
        Some(offer) => Recheck::Offered(Box::new(offer)),
        None => Recheck::Gone(format!("without a usable price now: {asked}")),
    })
}
