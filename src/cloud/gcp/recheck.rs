//! Asking for one offer again, right before a create: the type in its zone, the limits, the price, and for spot what Google
//! advises. Nothing here costs anything, and nothing can promise that there is room.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::{join, join3};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Gcp;
use super::places::region_of;
use super::prices::{Answer, Price};
use super::quotas::Need;
use super::rows::{Frame, IMAGE_CUDA, disk_gb, offer};
use super::shapes::{Shape, find};
use crate::cloud::lenient::{lenient, lenient_object};
use crate::cloud::{Recheck, Result};
use crate::http::address::segment;
use crate::model::money::Usd;
use crate::model::offer_key::OfferKey;
use crate::model::want::Want;

/// What the questions are called in messages.
const CHECKING: &str = "checking the offer again";

/// How long advice is waited for: without it nothing is lost.
const ADVICE_WITHIN: Duration = Duration::from_secs(4);

/// A score of obtainability below this is Google's word for "no" (it is 0 to 1).
const HOPELESS: f64 = 0.02;

/// What a machine or accelerator type says of itself, cut to what is read.
#[derive(Clone, Debug, Default, Deserialize)]
struct Type {
    #[serde(default, deserialize_with = "lenient_object")]
    deprecated: Option<Deprecated>,
    #[serde(default, rename = "maximumCardsPerInstance", deserialize_with = "lenient")]
    most_cards: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Deprecated {
    #[serde(default, deserialize_with = "lenient")]
    state: Option<String>,
}

/// Asks for the offer that `key` names. Its wishes are those of the key: the id is complete.
pub(super) async fn recheck(cloud: &Gcp, key: &OfferKey, _: &Want) -> Result<Recheck> {
    let gone = |why: String| Ok(Recheck::Gone(why));
    let kind = if key.spot { "spot" } else { "on demand" };
    let zone = key.zone.as_deref().unwrap_or_default();
    let asked = format!("{}, {kind}, {zone}", key.instance_type);
    let (Some(shape), Some(region)) = (find(&key.instance_type, key.gpu_count), region_of(zone)) else {
        return gone(format!("gpuprov does not offer it: {asked}"));
    };
    if key.cuda.is_some_and(|floor| shape.cards.is_some() && floor > IMAGE_CUDA) {
        return gone(format!("the image has CUDA {IMAGE_CUDA}: {asked}"));
    }
    let machines = [shape];
    let ((types, quotas), prices, advice) = join3(
        join(types(cloud, shape, zone), cloud.quotas(BTreeSet::from([region]), CHECKING)),
        cloud.prices.prices(&machines),
        advice(cloud, shape, zone, region, key.spot),
    )
    .await;
    if let Some(why) = types? {
        return gone(format!("{why}: {asked}"));
    }
    let (quotas, _) = quotas?;
    let disk_gb = disk_gb(shape, key.disk_gb);
    if let Some(short) = quotas.lacks_room(&Need { shape, region, spot: key.spot, disk_gb }) {
        return gone(format!("{}: {asked}", short.words()));
    }
    let price = match prices.of(shape, zone, key.spot) {
        Answer::Price(price) => price,
        Answer::NotSold => {
            let why = prices.missing().map(|why| format!("its price is not known now ({why})"));
            return gone(format!("{}: {asked}", why.as_deref().unwrap_or("not in the catalogue any more")));
        }
        Answer::Unusable => return gone(format!("without a usable price now: {asked}")),
    };
    if advice.obtainability.is_some_and(|score| score < HOPELESS) {
        return gone(format!("Google sees no room for it now: {asked}"));
    }
    // Google's own figure only ever raises the catalogue's: whether it counts everything is not documented.
    let compute = advice.price.map_or(price.compute, |told| told.max(price.compute));
    let frame =
        Frame { account: &cloud.setup.account, sandbox: cloud.setup.loopback, disk_gb, floor: key.cuda };
    let now = offer(shape, zone, key.spot, &Price { compute, ..price }, &frame);
    Ok(Recheck::Offered(Box::new(now)))
}

/// Says why the zone does not have the type (or the cards); none if it has.
async fn types(cloud: &Gcp, shape: &Shape, zone: &str) -> Result<Option<String>> {
    let path = format!("zones/{}/machineTypes/{}", segment(zone), segment(shape.machine_type));
    let machine = cloud.api.get_json::<Type>(&path, CHECKING);
    let attached = shape.cards.as_ref().filter(|cards| cards.attached);
    let Some(cards) = attached else { return Ok(problem(machine.await?.as_ref(), "the type", 0)) };
    let path = format!("zones/{}/acceleratorTypes/{}", segment(zone), segment(&cards.gpu.raw));
    let (machine, card) = join(machine, cloud.api.get_json::<Type>(&path, CHECKING)).await;
    Ok(problem(machine?.as_ref(), "the type", 0).or_else(|| match card {
        Ok(card) => problem(card.as_ref(), "the GPU", cards.count),
        Err(_) => None,
    }))
}

fn problem(ty: Option<&Type>, what: &str, cards: u32) -> Option<String> {
    let Some(ty) = ty else { return Some(format!("{what} is not in the zone")) };
    let state = ty.deprecated.as_ref().and_then(|deprecated| deprecated.state.as_deref());
    if matches!(state, Some("OBSOLETE" | "DELETED")) {
        return Some(format!("Google has withdrawn {what}"));
    }
    ty.most_cards.filter(|most| *most < cards).map(|most| format!("at most {most} of {what} fit a machine"))
}

/// What Google advises on a spot machine; both only where it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Advice {
    /// How likely it is to be had, 0 to 1.
    obtainability: Option<f64>,
    /// What it costs now.
    price: Option<Usd>,
}

async fn advice(cloud: &Gcp, shape: &Shape, zone: &str, region: &str, spot: bool) -> Advice {
    // Cards that a type takes are not among what can be asked for.
    if !spot || shape.is_attached() {
        return Advice::default();
    }
    let scheduling = json!({"provisioningModel": "SPOT"});
    let place = format!("zones/{zone}");
    let room = json!({
        "size": 1,
        "instanceProperties": {"scheduling": scheduling},
        "instanceFlexibilityPolicy": {"instanceSelections": {"one": {"machineTypes": [shape.machine_type]}}},
        "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE", "zones": [{"zone": place}]},
    });
    let history = json!({
        "types": ["PRICE"],
        "instanceProperties": {"machineType": shape.machine_type, "scheduling": scheduling},
        "locationPolicy": {"location": place},
    });
    let ask = async |what: &str, body: &Value| {
        let path = format!("regions/{}/advice/{what}", segment(region));
        let answer = cloud.api.ask_json::<Value>(&path, body, CHECKING);
        // Which projects and machines it is for is not documented: whatever goes wrong is as if it were not there.
        tokio::time::timeout(ADVICE_WITHIN, answer).await.ok().and_then(Result::ok).unwrap_or_default()
    };
    let (room, history) = join(ask("capacity", &room), ask("capacityHistory", &history)).await;
    Advice { obtainability: obtainability(&room), price: latest_price(&history) }
}

fn obtainability(answer: &Value) -> Option<f64> {
    let recommendations = answer["recommendations"].as_array()?;
    let scores = recommendations.iter().filter_map(|one| one["scores"]["obtainability"].as_f64());
    scores.filter(|score| (0.0..=1.0).contains(score)).reduce(f64::max)
}

/// Returns the price of the interval that began last.
fn latest_price(answer: &Value) -> Option<Usd> {
    let history = answer["priceHistory"].as_array()?;
    let begin = |entry: &&Value| entry["interval"]["startTime"].as_str().map(str::to_owned);
    let price = &history.iter().max_by_key(begin)?["listPrice"];
    if price["currencyCode"].as_str().is_some_and(|currency| currency != "USD") {
        return None;
    }
    // 64-bit whole numbers are texts.
    let units = match &price["units"] {
        Value::Null => 0.0,
        Value::String(text) => text.parse().ok()?,
        other => other.as_f64()?,
    };
    let nanos = if price["nanos"].is_null() { 0.0 } else { price["nanos"].as_f64()? };
    Usd::from_f64(units + nanos / 1e9).filter(|price| price.is_positive())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn google_s_own_figures_are_read_where_they_can_be() {
        let entry = |from: &str, units: Value, nanos: Value| json!({"interval": {"startTime": from}, "listPrice": {"currencyCode": "USD", "units": units, "nanos": nanos}});
        let history = json!({"priceHistory": [
            entry("2026-11-30T00:00:00Z", json!("0"), json!(281_840_000)),
            entry("2026-11-01T00:00:00Z", json!("9"), json!(0)),
        ]});
        assert_eq!(latest_price(&history), Some(Usd::from_micros(281_840)));
        let of = |units, nanos| latest_price(&json!({"priceHistory": [entry("x", units, nanos)]}));
        assert_eq!(of(json!("1"), Value::Null), Some(Usd::from_micros(1_000_000)));
        for none in [
            of(json!("x"), json!(1)),
            of(json!("0"), json!(0)),
            of(json!([]), json!(0)),
            of(json!("-1"), json!(0)),
        ] {
            assert_eq!(none, None);
        }
        for odd in [json!(null), json!([]), json!({"priceHistory": 7}), json!({"priceHistory": [7]})] {
            assert_eq!((latest_price(&odd), obtainability(&odd)), (None, None), "{odd}");
        }
        let score =
            |score: Value| obtainability(&json!({"recommendations": [{"scores": {"obtainability": score}}]}));
        assert_eq!(
            (score(json!(0.9)), score(json!(0)), score(json!(7)), score(json!("1"))),
            (Some(0.9), Some(0.0), None, None)
        );
    }
}
