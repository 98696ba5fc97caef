//! Listing offers and asking for one again.

use serde_json::json;

use crate::cloud::verda::samples::*;
use crate::cloud::{Cloud, ErrorKind, Recheck};
use crate::http::canned::Canned;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::want::{Spot, Want};

fn rows(offers: &[Offer]) -> Vec<(String, String, bool, i64)> {
    let mut rows: Vec<_> = offers
        .iter()
        .map(|offer| {
            let zone = offer.zone.clone().unwrap();
            (offer.instance_type.clone(), zone, offer.spot, offer.price_per_hour.micros())
        })
        .collect();
    rows.sort();
    rows
}

fn row(ty: &str, zone: &str, spot: bool, micros: i64) -> (String, String, bool, i64) {
    (ty.to_owned(), zone.to_owned(), spot, micros)
}

/// 100 GB for $0.20 a month each, in an hour of 730.
const DISK: i64 = 27_398;

#[tokio::test]
async fn a_row_says_what_it_is_and_what_it_costs() {
    let offer =
        offers(&want("RTXPRO6000")).await.into_iter().find(|offer| offer.zone.as_deref() == Some("FIN-01"));
    let offer = offer.unwrap();
    assert_eq!(offer.price_parts.compute.micros(), 1_964_000);
    assert_eq!(offer.price_parts.disk.micros(), DISK);
    assert_eq!(offer.price_per_hour.micros(), 1_964_000 + DISK);
    assert_eq!(
        (offer.gpu.as_deref(), offer.gpu_raw.as_deref()),
        (Some("RTXPRO6000"), Some("RTX PRO 6000 96GB"))
    );
    assert_eq!((offer.gpu_count, offer.vram_gb), (1, Some(96.0)));
    assert_eq!((offer.vcpus, offer.ram_gb, offer.disk_gb), (Some(30.0), Some(90.0), 100));
    assert_eq!((offer.region.as_deref(), offer.country.unwrap().as_str()), (Some("FIN-01"), "FI"));
    assert_eq!(offer.continent.unwrap().as_str(), "europe");
    assert_eq!((offer.secure, offer.price_estimated, offer.sandbox, offer.spot), (true, false, true, false));
    assert_eq!(offer.cuda.as_deref(), Some("13.2"));
    assert_eq!(
        offer.id, "1:verda/default:1RTXPRO6000.30V:1:FIN-01:o:d100:p1991398",
        "ids are kept by scripts"
    );
}

#[tokio::test]
async fn on_demand_and_spot_are_two_lists() {
    let of = async |spot| rows(&offers(&Want { spot, ..want("RTXPRO6000,A100-80GB:8") }).await);
    let demand = [
        row("1RTXPRO6000.30V", "FIN-01", false, 1_964_000 + DISK),
        row("1RTXPRO6000.30V", "SWE-09", false, 1_964_000 + DISK),
    ];
    let spot = [
        row("1RTXPRO6000.30V", "FIN-03", true, 982_000 + DISK),
        row("8A100.176V", "FIN-03", true, 5_160_000 + DISK),
    ];
    assert_eq!(of(Spot::No).await, demand);
    assert_eq!(of(Spot::Only).await, spot);
    let mut both = [demand, spot].concat();
    both.sort();
    assert_eq!(of(Spot::Any).await, both);
}

#[tokio::test]
async fn memory_tells_cards_of_one_name_apart() {
    let names = async |gpus: &str| -> Vec<String> {
        offers(&want(gpus)).await.into_iter().map(|offer| offer.instance_type).collect()
    };
    assert_eq!(names("A100").await, ["1A100.40S.22V"]);
    assert_eq!(names("A100-80GB").await, ["1A100.22V"]);
    assert_eq!(names("B300:2").await, ["2B300.60V"]);
    assert_eq!(names("B300:1").await, [""; 0]);
}

#[tokio::test]
async fn what_does_not_run_ordinary_cuda_is_offered_only_by_its_exact_type() {
    for gpu in ["any", "RTXPRO6000", "GB300"] {
        for offer in offers(&want(gpu)).await {
            assert!(!offer.instance_type.ends_with(".CC") && !offer.instance_type.contains("GB300"), "{gpu}");
        }
    }
    assert_eq!(offers(&want_type("1RTXPRO6000.30V.CC")).await.len(), 1);
    assert_eq!(offers(&want_type("1GB300.36V")).await.len(), 1);
    assert_eq!(offers(&want_type("1rtxpro6000.30v")).await.len(), 0);
    assert_eq!(offers(&want_type("CPU.4V.16G")).await.len(), 1);
    let other = offers(&want("any")).await;
    let odd = other.iter().find(|offer| offer.instance_type == "1ODD.1V").unwrap();
    assert_eq!((odd.gpu.as_deref(), odd.cuda.as_deref()), (Some("Acme Turbo 12GB"), None));
}

#[tokio::test]
async fn without_a_gpu() {
    let offers = offers(&Want { spot: Spot::Any, ..want_cpu() }).await;
    assert_eq!(
        rows(&offers),
        [
            row("CPU.4V.16G", "FIN-01", true, 9_800 + DISK),
            row("CPU.4V.16G", "FIN-03", true, 9_800 + DISK),
            row("CPU.4V.16G", "SWE-09", false, 27_900 + DISK),
            row("CPU.8V.32G", "FIN-01", false, 55_800 + DISK),
        ]
    );
    assert!(offers.iter().all(|offer| offer.gpu.is_none() && offer.gpu_count == 0 && offer.cuda.is_none()));
}

#[tokio::test]
async fn an_unknown_location_is_kept_without_a_country() {
    let offer = offers(&want("B300:2")).await.remove(0);
    assert_eq!((offer.region.as_deref(), offer.country, offer.continent), (Some("SWE-09"), None, None));
    let server = server(vec![("GET /v1/locations", vec![problem(500, "server_error", "x")])]).await;
    let batch = cloud(&server.base).offers(&want("RTXPRO6000")).await.unwrap();
    assert_eq!(batch.offers.len(), 2);
    assert!(batch.notes[0].contains("countries"), "{:?}", batch.notes);
    assert_eq!(batch.known_places, ["FIN-01", "SWE-09"]);
}

#[tokio::test]
async fn prices_that_are_none_are_counted_and_other_money_is_none() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    let batch = cloud(&server.base).offers(&want("H100")).await.unwrap();
    assert_eq!(batch.offers.len(), 0);
    assert_eq!(batch.notes, ["1 offer without a usable price left out"]);
    assert!(
        batch.known_gpus.contains(&"H100".to_owned()) && batch.known_gpus.contains(&"A100-80GB".to_owned())
    );
    let euros: serde_json::Value = types()
        .as_array()
        .unwrap()
        .iter()
        .map(|row| changed(row.clone(), json!({"currency": "eur"})))
        .collect();
    let server = super::super::samples::server(vec![("GET /v1/instance-types", vec![good(&euros)])]).await;
    assert_eq!(cloud(&server.base).offers(&want("any")).await.unwrap().offers.len(), 0);
}

#[tokio::test]
async fn a_floor_of_cuda_leaves_out_types_without_such_an_image() {
    let floor = |text: &str| Some(text.parse().unwrap());
    let server = Canned::start(|asked, _| shop(asked)).await;
    let cloud = cloud(&server.base);
    let asked = Want { cuda: floor("13.0"), ..want("A100-80GB,RTXPRO6000") };
    let batch = cloud.offers(&asked).await.unwrap();
    assert!(batch.offers.iter().all(|offer| offer.instance_type == "1RTXPRO6000.30V"));
    assert_eq!(batch.offers[0].cuda.as_deref(), Some("13.2"), "the newest that has it");
    assert_eq!(OfferKey::decode(&batch.offers[0].id).unwrap().cuda, floor("13.0"));
    assert!(batch.notes[0].contains("1 offer left out"), "{:?}", batch.notes);
    let v100 = cloud.offers(&Want { cuda: floor("12.0"), ..want("V100") }).await.unwrap();
    assert_eq!(v100.offers.len(), 0, "its image tells no CUDA");
    assert_eq!(cloud.offers(&want("V100")).await.unwrap().offers.len(), 1);
}

#[tokio::test]
async fn the_disk_is_raised_and_priced_live_or_from_the_list() {
    let small = Want { disk_gb: 20, disk_given: true, ..want("RTXPRO6000") };
    let server = server(vec![(
        "GET /v1/volume-types",
        vec![good(&json!([])), problem(404, "not_found", "x"), good(&volume_types())],
    )])
    .await;
    let cloud = cloud(&server.base);
    for (estimated, notes) in [(true, 2), (true, 2), (false, 1), (false, 1)] {
        let batch = cloud.offers(&small).await.unwrap();
        assert_eq!(batch.offers[0].disk_gb, 50);
        assert_eq!(
            (batch.offers[0].price_parts.disk.micros(), batch.offers[0].price_estimated),
            (13_699, estimated)
        );
        assert_eq!(batch.notes.len(), notes, "{:?}", batch.notes);
    }
    let asked = server.lines().iter().filter(|line| line.contains("volume-types")).count();
    assert_eq!(asked, 3, "asked for once in a process");
}

#[tokio::test]
async fn half_a_list_is_noted_and_none_is_an_error() {
    let spot = "GET /v1/instance-availability?is_spot=true";
    let broken = || vec![problem(503, "service_unavailable", "later")];
    let both = Want { spot: Spot::Any, ..want("RTXPRO6000") };
    let server = server(vec![(spot, broken())]).await;
    let batch = cloud(&server.base).offers(&both).await.unwrap();
    assert_eq!(batch.offers.len(), 2);
    assert!(batch.notes[0].contains("spot offers are missing"), "{:?}", batch.notes);
    let only = Want { spot: Spot::Only, ..both.clone() };
    assert_eq!(cloud(&server.base).offers(&only).await.unwrap_err().kind, ErrorKind::Unavailable);
    for path in ["GET /v1/instance-types", "POST /v1/oauth2/token"] {
        let server = super::super::samples::server(vec![(path, broken())]).await;
        let error = cloud(&server.base).offers(&both).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{path}");
    }
}

#[tokio::test]
async fn all_questions_go_out_at_once() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    cloud(&server.base).offers(&Want { spot: Spot::Any, ..want("any") }).await.unwrap();
    let mut lines = server.lines();
    lines.sort();
    assert_eq!(
        lines,
        [
            "GET /v1/instance-availability?is_spot=false",
            "GET /v1/instance-availability?is_spot=true",
            "GET /v1/instance-types?currency=usd",
            "GET /v1/locations",
            "GET /v1/volume-types?currency=usd",
            "POST /v1/oauth2/token",
        ]
    );
}

#[tokio::test]
async fn an_offer_is_asked_for_again() {
    let offer = spot_offer().await;
    let key = OfferKey::decode(&offer.id).unwrap();
    let availability = "GET /v1/instance-availability/1RTXPRO6000.30V";
    let again = async |special| {
        let server = server(special).await;
        cloud(&server.base).recheck(&key, &want("RTXPRO6000")).await
    };
    for there in [json!(true), json!("true")] {
        match again(vec![(availability, vec![good(&there)])]).await.unwrap() {
            Recheck::Offered(now) => assert_eq!(*now, offer),
            Recheck::Gone(why) => panic!("{why}"),
        }
    }
    let mut dearer = types();
    dearer[0]["spot_price"] = json!("1.5");
    match again(vec![("GET /v1/instance-types", vec![good(&dearer)])]).await.unwrap() {
        Recheck::Offered(now) => assert_eq!(now.price_per_hour.micros(), 1_500_000 + DISK),
        Recheck::Gone(why) => panic!("{why}"),
    }
    for reply in [
        good(&json!(false)),
        good(&json!("false")),
        problem(404, "not_found", "x"),
        problem(400, "invalid_request", "x"),
    ] {
        assert!(matches!(again(vec![(availability, vec![reply])]).await.unwrap(), Recheck::Gone(_)));
    }
    let gone = again(vec![("GET /v1/instance-types", vec![good(&json!([]))])]).await.unwrap();
    assert!(matches!(gone, Recheck::Gone(_)));
    assert_eq!(
        again(vec![(availability, vec![good(&json!(7))])]).await.unwrap_err().kind,
        ErrorKind::Unreadable
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn odd_rows_hide_no_other(at in 0_usize..12, field in 0_usize..12, odd in 0_usize..6) {
        use crate::cloud::lenient::each;
        use crate::cloud::verda::{places::Places, prices::DiskPrice, rows::{Frame, rows}};
        let fields = ["gpu", "gpu_memory", "cpu", "memory", "price_per_hour", "spot_price", "currency",
            "instance_type", "supported_os", "name", "model", "manufacturer"];
        let values = [json!(null), json!(7), json!("x"), json!([]), json!({}), json!(-1.5)];
        let mut all = types();
        all[at][fields[field]] = values[odd].clone();
        let account = "verda/default".parse().unwrap();
        let places = Places::default();
        let frame = Frame { account: &account, sandbox: true, places: &places, disk: DiskPrice::LIST, disk_gb: 50, floor: None };
        let read = |types: serde_json::Value| {
            let types = each(types.as_array().unwrap().clone());
            let stock = each(stock(false).as_array().unwrap().clone());
            rows(&types, &stock, false, &want("any"), &frame).offers
        };
        let (whole, odd) = (read(types()), read(all.clone()));
        let touched = types()[at]["instance_type"].clone();
        for offer in whole.iter().filter(|offer| offer.instance_type != touched) {
            proptest::prop_assert!(odd.contains(offer), "{} is missing", offer.instance_type);
        }
        proptest::prop_assert!(odd.iter().all(|offer| offer.price_parts.compute.is_positive()));
    }
}
