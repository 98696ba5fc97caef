//! Asking for an offer again.

use serde_json::{Value, json};

use super::shop::*;
use crate::cloud::{Cloud, ErrorKind, Recheck, Result};
use crate::http::canned::Reply;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::want::{Spot, Want};

const TYPE: &str = "GET /compute/v1/projects/lab-1/zones/us-central1-a/machineTypes/g2-standard-4";
const ROOM: &str = "POST /compute/v1/projects/lab-1/regions/us-central1/advice/capacity";
const HISTORY: &str = "POST /compute/v1/projects/lab-1/regions/us-central1/advice/capacityHistory";

async fn l4(spot: bool) -> Offer {
    let spot = if spot { Spot::Only } else { Spot::No };
    let offers = offers(&Want { spot, ..want("L4") }).await;
    offers.into_iter().find(|offer| offer.id.contains(":g2-standard-4:1:us-central1-a:")).unwrap()
}

async fn again(offer: &Offer, special: Vec<(&str, Reply)>) -> Result<Recheck> {
    let server = server(special).await;
    let key = OfferKey::decode(&offer.id).unwrap();
    cloud(&server.base).recheck(&key, &want("L4")).await
}

async fn same(offer: &Offer, special: Vec<(&str, Reply)>) {
    match again(offer, special).await.unwrap() {
        Recheck::Offered(now) => {
            let as_of = offer.price_as_of;
            assert_eq!(Offer { price_as_of: as_of, ..*now }, *offer);
        }
        Recheck::Gone(why) => panic!("{why}"),
    }
}

async fn gone(offer: &Offer, special: Vec<(&str, Reply)>) -> String {
    match again(offer, special).await.unwrap() {
        Recheck::Gone(why) => why,
        Recheck::Offered(now) => panic!("{now:?}"),
    }
}

#[tokio::test]
async fn an_offer_is_what_it_was() {
    for spot in [false, true] {
        same(&l4(spot).await, Vec::new()).await;
    }
    let t4 = offers(&want("T4:2")).await.remove(0);
    same(&t4, Vec::new()).await;
    let cpu = offers(&Want { disk_gb: 10, ..want_cpu() }).await.remove(0);
    same(&cpu, Vec::new()).await;
}

#[tokio::test]
async fn a_type_that_the_zone_has_not_is_gone() {
    let offer = l4(false).await;
    let missing =
        "The resource 'projects/lab-1/zones/us-central1-a/machineTypes/g2-standard-4' was not found";
    let why = gone(&offer, vec![(TYPE, problem(404, "notFound", missing))]).await;
    assert!(why.contains("not in the zone"), "{why}");
    for (state, is_gone) in
        [("OBSOLETE", true), ("DELETED", true), ("DEPRECATED", false), ("ACTIVE", false), ("NEW", false)]
    {
        let reply = good(&json!({"name": "g2-standard-4", "deprecated": {"state": state}}));
        match is_gone {
            true => drop(gone(&offer, vec![(TYPE, reply)]).await),
            false => same(&offer, vec![(TYPE, reply)]).await,
        }
    }
    let error = again(&offer, vec![(TYPE, problem(500, "internalError", "x"))]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let t4 = offers(&want("T4:2")).await.remove(0);
    let zone = t4.zone.clone().unwrap();
    let cards = format!("GET /compute/v1/projects/lab-1/zones/{zone}/acceleratorTypes/nvidia-tesla-t4");
    let why = gone(&t4, vec![(&cards, good(&json!({"maximumCardsPerInstance": 1})))]).await;
    assert!(why.contains("at most 1"), "{why}");
    same(&t4, vec![(&cards, problem(500, "internalError", "x"))]).await;
}

#[tokio::test]
async fn a_limit_without_room_is_gone() {
    let offer = l4(false).await;
    let why = gone(&offer, vec![(CENTRAL, quotas(&[("NVIDIA_L4_GPUS", 1.0, 1.0)]))]).await;
    assert!(why.contains("NVIDIA_L4_GPUS of us-central1 is 1, of which 1"), "{why}");
    let why = gone(&offer, vec![(PROJECT, quotas(&[("CPUS_ALL_REGIONS", 32.0, 30.0)]))]).await;
    assert!(why.contains("CPUS_ALL_REGIONS of all regions"), "{why}");
    gone(&offer, vec![(CENTRAL, quotas(&[("SSD_TOTAL_GB", 500.0, 480.0)]))]).await;
    same(&offer, vec![(CENTRAL, quotas(&[("SSD_TOTAL_GB", 500.0, 450.0)]))]).await;
    let error = again(&offer, vec![(PROJECT, problem(401, "authError", "x"))]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
}

#[tokio::test]
async fn advice_counts_where_it_answers_and_never_lowers_a_price() {
    let offer = l4(true).await;
    let history = |nanos: i64| {
        let price = json!({"currencyCode": "USD", "units": "0", "nanos": nanos});
        good(
            &json!({"priceHistory": [{"interval": {"startTime": "2026-11-30T00:00:00Z"}, "listPrice": price}]}),
        )
    };
    match again(&offer, vec![(HISTORY, history(400_000_000))]).await.unwrap() {
        Recheck::Offered(now) => assert_eq!(now.price_parts.compute.micros(), 400_000),
        Recheck::Gone(why) => panic!("{why}"),
    }
    same(&offer, vec![(HISTORY, history(100_000_000))]).await;
    let room = |score: Value| good(&json!({"recommendations": [{"scores": {"obtainability": score}}]}));
    assert!(gone(&offer, vec![(ROOM, room(json!(0.0)))]).await.contains("no room"));
    same(&offer, vec![(ROOM, room(json!(0.4)))]).await;
    for odd in
        [good(&json!([])), Reply::Answer(200, String::new(), "<html>".to_owned()), problem(500, "x", "x")]
    {
        same(&offer, vec![(ROOM, odd.clone()), (HISTORY, odd)]).await;
    }
    let server = server(vec![(ROOM, room(json!(0.0)))]).await;
    let key = OfferKey::decode(&l4(false).await.id).unwrap();
    let kept = cloud(&server.base).recheck(&key, &want("L4")).await.unwrap();
    assert!(matches!(kept, Recheck::Offered(_)), "it is about spot alone");
    assert!(!server.lines().iter().any(|line| line.contains("advice")));
}

#[tokio::test]
async fn what_an_id_says_may_not_be_ours() {
    let offer = l4(false).await;
    let with = |change: &dyn Fn(&mut OfferKey)| {
        let mut key = OfferKey::decode(&offer.id).unwrap();
        change(&mut key);
        Offer { id: key.encode(), ..offer.clone() }
    };
    for other in [
        with(&|key| key.instance_type = "a3-megagpu-8g".to_owned()),
        with(&|key| key.instance_type = "../../x".to_owned()),
        with(&|key| key.gpu_count = 2),
        with(&|key| key.zone = None),
        with(&|key| key.zone = Some("../x".to_owned())),
        with(&|key| key.zone = Some("us-central1-z".to_owned())),
        with(&|key| key.cuda = Some("13.1".parse().unwrap())),
    ] {
        gone(&other, Vec::new()).await;
    }
}

#[tokio::test]
async fn a_price_that_is_not_known_any_more_is_no_offer() {
    let offer = l4(false).await;
    let down = || Reply::Answer(503, String::new(), "later".to_owned());
    let why = gone(&offer, vec![(GPUHUNT, down()), (SKYPILOT, down())]).await;
    assert!(why.contains("price is not known") && why.contains("503"), "{why}");
}
