//! From rows to offers.

use serde_json::{Value, json};

use crate::cloud::vast::samples::*;
use crate::cloud::{Cloud, ErrorKind, OfferBatch, Recheck};
use crate::http::canned::{Canned, json as answer};
use crate::model::offer_key::OfferKey;
use crate::model::want::{Spot, Want};

async fn batch_of(rows: Vec<Value>, want: &Want) -> OfferBatch {
    let server = Canned::start(move |asked, _| shop_of(&rows, asked)).await;
    cloud(&server.base).offers(want).await.unwrap()
}

#[tokio::test]
async fn a_row_is_an_offer() {
    let mut offers = offers(&want("RTX5090")).await;
    let offer = offers.pop().unwrap();
    assert!(offers.is_empty());
    assert_eq!(offer.id, "1:vast/default:RTX_5090_x1:1:Ontario/2C_CA:o:d100:x21348645.37228:p380834");
    assert_eq!(offer.instance_type, "RTX 5090 x1");
    assert_eq!((offer.gpu.as_deref(), offer.vram_gb), (Some("RTX5090"), Some(32.0)));
    assert_eq!((offer.price_parts.compute.micros(), offer.price_parts.disk.micros()), (360_000, 20_834));
    assert_eq!((offer.ram_gb, offer.vcpus, offer.disk_gb), (Some(63.7), Some(24.0), 100));
    assert_eq!(
        (offer.region.as_deref(), offer.zone.as_deref()),
        (Some("north_america"), Some("Ontario, CA"))
    );
    assert_eq!((offer.host.as_deref(), offer.cuda.as_deref()), (Some("machine:37228"), Some("13.0")));
    let traffic = offer.traffic_per_gb.unwrap();
    assert_eq!((traffic.inward.micros(), traffic.outward.micros()), (4_000, 2_000));
    assert!(!offer.spot && !offer.secure && offer.sandbox && offer.stock.is_none());
}

#[tokio::test]
async fn a_part_of_a_host_gets_its_part_of_the_memory() {
    let offer = cheapest(&want("A100-80GB:2")).await;
    assert_eq!((offer.gpu.as_deref(), offer.vram_gb), (Some("A100-80GB"), Some(80.0)));
    assert_eq!((offer.ram_gb, offer.vcpus), (Some(516.0), Some(64.0)));
    assert!(offer.secure);
    assert_eq!(offer.price_per_hour.micros(), 1_648_000);
    assert!(offers(&want("A100:2")).await.is_empty(), "the 40 GB card alone");
}

#[tokio::test]
async fn a_bid_is_a_spot_offer_where_it_is_cheaper() {
    let spot = |gpus: &str, spot| Want { spot, ..want(gpus) };
    let offers = offers(&spot("RTX5090", Spot::Any)).await;
    let prices: Vec<(bool, i64)> =
        offers.iter().map(|offer| (offer.spot, offer.price_per_hour.micros())).collect();
    assert_eq!(prices, [(false, 380_834), (true, 204_834)]);
    // 1.15 x 0.32 is above what it costs on demand.
    let dear = changed(ask(), json!({"min_bid": 0.32}));
    let batch = batch_of(vec![dear, a100()], &spot("RTX5090,A100-80GB:2", Spot::Only)).await;
    let kept: Vec<&str> = batch.offers.iter().map(|offer| offer.instance_type.as_str()).collect();
    assert_eq!(kept, ["A100 SXM4 x2"]);
    assert!(batch.offers[0].spot && batch.offers[0].price_parts.compute.micros() == 931_500);
}

#[tokio::test]
async fn rows_that_a_filter_let_through_are_left_out() {
    for (changes, kept) in [
        (json!({}), true),
        (json!({"verification": "unverified"}), false),
        (json!({"verification": null}), false),
        (json!({"reliability": 0.9, "reliability2": 0.9}), false),
        (json!({"reliability": null, "reliability2": null}), false),
        (json!({"rentable": false}), false),
        (json!({"rented": true}), false),
        (json!({"external": true}), false),
        (json!({"disk_space": 99.0}), false),
        (json!({"direct_port_count": 0}), false),
        (json!({"duration": 3600}), false),
        (json!({"cuda_max_good": 11.8}), false),
        (json!({"cuda_max_good": null}), true),
        (json!({"gpu_arch": "amd"}), false),
        (json!({"cpu_arch": "arm64"}), false),
        (json!({"num_gpus": 2}), false),
        (json!({"gpu_name": null}), false),
        (json!({"machine_id": null}), false),
        (json!({"id": null, "ask_contract_id": null}), false),
        (json!({"geolocation": null}), true),
        (json!({"gpu_frac": null, "cpu_ram": "a lot"}), true),
        (json!({"gpu_name": "RTX 5090 "}), true),
        (json!({"gpu_name": "RTX 5090 D"}), false),
        (json!({"dph_base": null, "dph_total": null}), false),
        (json!({"dph_base": -1, "dph_total": 0}), false),
    ] {
        let row = changed(ask(), changes.clone());
        let server = Canned::start(move |asked, _| match asked.line.as_str() {
            "POST /api/v0/bundles/" => answer(200, json!({"offers": [row, null, 7, {}]}).to_string()),
            _ => shop(asked),
        })
        .await;
        let batch = cloud(&server.base).offers(&want("RTX5090")).await.unwrap();
        assert_eq!(!batch.offers.is_empty(), kept, "{changes}");
    }
}

#[tokio::test]
async fn names_match_whole_tokens() {
    let named = |at: u64, name: &str| {
        changed(
            ask(),
            json!({"id": at, "ask_contract_id": at, "machine_id": at, "gpu_name": name, "gpu_ram": 46068}),
        )
    };
    let rows = vec![named(1, "L40"), named(2, "L40S"), named(3, "GH200 SXM"), named(4, "H200")];
    for (asked, names) in [("L40", vec!["L40"]), ("L40S", vec!["L40S"])] {
        let batch = batch_of(rows.clone(), &want(asked)).await;
        let found: Vec<&str> = batch.offers.iter().map(|offer| offer.gpu_raw.as_deref().unwrap()).collect();
        assert_eq!(found, names, "{asked}");
    }
    // Whatever the server sends: the rows are looked at again.
    let server = Canned::start(move |asked, _| match asked.line.as_str() {
        "POST /api/v0/bundles/" => answer(200, json!({"offers": rows}).to_string()),
        _ => shop(asked),
    })
    .await;
    let batch = cloud(&server.base).offers(&want("L40")).await.unwrap();
    assert_eq!(batch.offers.len(), 1);
    assert!(batch.known_gpus.contains(&"L40S".to_owned()));
}

#[tokio::test]
async fn what_the_user_should_know() {
    let other_total = changed(ask(), json!({"dph_total": 0.5}));
    let batch = batch_of(vec![other_total], &want("RTX5090")).await;
    assert_eq!(batch.offers[0].price_per_hour.micros(), 380_834);
    assert!(batch.notes[0].contains("parts"), "{:?}", batch.notes);

    let free = changed(ask(), json!({"dph_base": 0, "dph_total": 0}));
    let batch = batch_of(vec![free], &want("RTX5090")).await;
    assert!(batch.notes[0].contains("1 offer without a usable price"), "{:?}", batch.notes);
    assert!(batch.notes[1].contains("verified, reliability from 0.95"), "{:?}", batch.notes);

    let server = Canned::start(|asked, _| match asked.line.as_str() {
        "GET /api/v0/users/current/" => answer(200, changed(user(), json!({"credit": 0.1})).to_string()),
        _ => shop(asked),
    })
    .await;
    let batch = cloud(&server.base).offers(&want("RTX5090")).await.unwrap();
    assert_eq!(batch.notes, ["the account has $0.10 of credit, less than an hour of the cheapest offer"]);
}

#[tokio::test]
async fn the_key_is_checked_beside_the_search() {
    let with = |reply: crate::http::canned::Reply| async move {
        let server = Canned::start(move |asked, _| match asked.line.as_str() {
            "GET /api/v0/users/current/" => reply.clone(),
            _ => shop(asked),
        })
        .await;
        let cloud = cloud(&server.base);
        let kind = cloud.offers(&want("RTX5090")).await.err().map(|error| error.kind);
        (kind, cloud.identity().provider)
    };
    let wrong = answer(404, "{\"success\":false,\"error\":\"auth_error\",\"msg\":\"Invalid user key\"}");
    assert_eq!(with(wrong).await, (Some(ErrorKind::Auth), None));
    // A key that may search and rent, but not tell whose it is.
    let scoped = answer(403, "{\"success\":false,\"error\":\"forbidden\",\"msg\":\"no user_read\"}");
    assert_eq!(with(scoped).await, (None, None));
    assert_eq!(with(answer(200, user().to_string())).await, (None, Some("123456".to_owned())));
}

async fn recheck(rows: Vec<Value>, key: &OfferKey) -> Recheck {
    let server = Canned::start(move |asked, _| shop_of(&rows, asked)).await;
    cloud(&server.base).recheck(key, &want("any")).await.unwrap()
}

#[tokio::test]
async fn an_offer_is_checked_again_by_its_ask() {
    let offer = cheapest(&want("RTX5090")).await;
    let key = OfferKey::decode(&offer.id).unwrap();
    match recheck(vec![ask(), a100()], &key).await {
        Recheck::Offered(again) => assert_eq!(*again, offer),
        gone => panic!("{gone:?}"),
    }
    for (changes, why) in [
        (json!({"ask_contract_id": 1, "id": 1}), "not offered any more"),
        (json!({"machine_id": 1}), "another machine"),
        (json!({"gpu_name": "RTX 4090"}), "RTX 4090 x1 now"),
        (json!({"num_gpus": 2}), "number of GPUs"),
        (json!({"disk_space": 50.0}), "disk"),
        (json!({"rentable": false}), "rented"),
        (json!({"dph_base": 0.0, "dph_total": 0.0}), "price"),
    ] {
        match recheck(vec![changed(ask(), changes.clone())], &key).await {
            Recheck::Gone(words) => assert!(words.contains(why), "{changes}: {words}"),
            offered => panic!("{changes}: {offered:?}"),
        }
    }
    let dearer = changed(ask(), json!({"dph_base": 0.5, "dph_total": 0.52}));
    match recheck(vec![dearer], &key).await {
        Recheck::Offered(again) => assert_eq!(again.price_parts.compute.micros(), 500_000),
        gone => panic!("{gone:?}"),
    }
}

#[tokio::test]
async fn a_bid_follows_the_minimum_of_now() {
    let offer = cheapest(&Want { spot: Spot::Only, ..want("RTX5090") }).await;
    let key = OfferKey::decode(&offer.id).unwrap();
    match recheck(vec![changed(ask(), json!({"min_bid": 0.2}))], &key).await {
        Recheck::Offered(again) => {
            assert!(again.spot);
            assert_eq!(again.price_parts.compute.micros(), 230_000);
        }
        gone => panic!("{gone:?}"),
    }
}

#[tokio::test]
async fn an_id_of_something_else_is_gone() {
    let offer = cheapest(&want("RTX5090")).await;
    let key = OfferKey::decode(&offer.id).unwrap();
    for odd in [OfferKey { own: None, ..key.clone() }, OfferKey { instance_type: "RTX".to_owned(), ..key }] {
        assert!(matches!(recheck(vec![ask()], &odd).await, Recheck::Gone(_)));
    }
}
