//! Asking for one offer again, right before a create. Not a reservation: the create may still fail.

use serde_json::json;

use super::Vast;
use super::instance::{InstanceType, Slot};
use super::rows::{Frame, Row, row};
use super::search::Class;
use super::wire::Ask;
use crate::cloud::{Recheck, Result};
use crate::model::offer_key::OfferKey;
use crate::model::want::Want;

/// Asks for the ask that `key` names. It is never taken from what was kept of earlier searches.
pub(super) async fn recheck(cloud: &Vast, key: &OfferKey, want: &Want) -> Result<Recheck> {
    let slot = key.own.as_deref().and_then(Slot::parse);
    let (Some(instance), Some(slot)) = (InstanceType::parse(&key.instance_type), slot) else {
        return Ok(Recheck::Gone(format!("`{}` is no offer of Vast", key.instance_type)));
    };
    let class = if key.spot { Class::Bid } else { Class::OnDemand };
    let body = json!({
        // A filter on `id` matches nothing.
        "ask_contract_id": {"eq": slot.ask},
        "rentable": {"eq": true},
        "type": class.wire(),
        "allocated_storage": key.disk_gb,
        "limit": 1,
    });
    let searched = cloud.api.search(&body, "checking the offer again");
    let (rows, known) = futures_util::future::join(searched, cloud.know_user()).await;
    known?;
    let read = rows?.into_iter().filter_map(|row| serde_json::from_value::<Ask>(row).ok());
    let gone = |why: String| {
        // What was kept shows it too.
        cloud.searches.clear();
        Ok(Recheck::Gone(why))
    };
    let Some(ask) = read.into_iter().find(|ask| ask.ask() == Some(slot.ask)) else {
        return gone(format!("ask {} is not offered any more", slot.ask));
    };
    if ask.machine_id != Some(slot.machine) {
        return gone(format!("ask {} is of another machine now", slot.ask));
    }
    let choice = cloud.choose(want.image.as_deref(), key.cuda, None);
    let frame = Frame {
        account: &cloud.setup.account,
        sandbox: cloud.setup.loopback,
        settings: &cloud.settings,
        choice: &choice,
        class,
        count: instance.count,
        disk_gb: key.disk_gb,
        cuda: key.cuda,
    };
    match row(&ask, None, &frame) {
        Row::Offer(offer, _) if offer.instance_type != key.instance_type => {
            gone(format!("ask {} is {} now, not {}", slot.ask, offer.instance_type, key.instance_type))
        }
        Row::Offer(offer, _) => Ok(Recheck::Offered(offer)),
        Row::Unpriced => gone(format!("ask {} has no usable price any more", slot.ask)),
        Row::Other(why) => gone(format!("ask {}: {why}", slot.ask)),
    }
}
