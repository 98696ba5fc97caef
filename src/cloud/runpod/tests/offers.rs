//! Listing offers and asking again.

use proptest::prelude::*;
use serde_json::json;

use crate::cloud::runpod::samples::*;
use crate::cloud::runpod::{Tier, wire};
use crate::cloud::{Cloud, ErrorKind, Recheck};
use crate::http::canned::{Canned, Reply, json as answer};
use crate::model::offer::{Offer, Stock};
use crate::model::offer_key::OfferKey;

fn shown(offers: &[Offer]) -> Vec<(String, Option<String>, i64)> {
    let mut rows: Vec<_> = offers
        .iter()
        .map(|offer| (offer.instance_type.clone(), offer.zone.clone(), offer.price_per_hour.micros()))
        .collect();
    rows.sort();
    rows
}

fn row(ty: &str, zone: &str, micros: i64) -> (String, Option<String>, i64) {
    (ty.to_owned(), Some(zone).filter(|zone| !zone.is_empty()).map(str::to_owned), micros)
}

#[tokio::test]
async fn every_data_centre_with_stock_is_one_offer_in_each_tier() {
    let offers = offers(&want("RTX4090")).await;
    let (secure, community) = ("NVIDIA GeForce RTX 4090 x1 secure", "NVIDIA GeForce RTX 4090 x1 community");
    assert_eq!(
        shown(&offers),
        [
            row(community, "EU-RO-1", 346_850),
            row(community, "US-IL-1", 346_850),
            row(secure, "EU-RO-1", 696_850),
            row(secure, "US-IL-1", 696_850),
        ]
    );
    let offer = offers.iter().find(|offer| offer.id.contains("EU-RO-1") && !offer.secure).unwrap();
    assert_eq!(
        offer.id,
        "1:runpod/default:NVIDIA_GeForce_RTX_4090_x1_community:1:EU-RO-1:o:d50:c12.9:p346850"
    );
    assert_eq!((offer.gpu.as_deref(), offer.vram_gb), (Some("RTX4090"), Some(24.0)));
    assert_eq!((offer.region.as_deref(), offer.country.unwrap().as_str()), (Some("europe"), "RO"));
    assert_eq!((offer.cuda.as_deref(), offer.stock), (Some("12.9"), Some(Stock::High)));
    assert_eq!((offer.price_parts.compute.micros(), offer.price_parts.disk.micros()), (340_000, 6850));
    assert!(offer.sandbox && offer.ram_gb.is_none() && offer.vcpus.is_none());
}

#[tokio::test]
async fn a_community_host_without_a_data_centre_has_no_zone() {
    let offers = offers(&want("H100")).await;
    assert_eq!(
        shown(&offers),
        [
            row("NVIDIA H100 80GB HBM3 x1 community", "", 2_496_850),
            row("NVIDIA H100 80GB HBM3 x1 secure", "US-KS-2", 2_696_850)
        ]
    );
    let loose = offers.iter().find(|offer| offer.zone.is_none()).unwrap();
    assert_eq!((&loose.region, loose.stock), (&None, Some(Stock::Low)));
    // A word for stock that nobody knows means that there is some.
    assert_eq!(offers.iter().find(|offer| offer.zone.is_some()).unwrap().stock, None);
}

#[tokio::test]
async fn which_types_match() {
    let types = async |want: crate::model::want::Want| {
        let mut types: Vec<String> =
            offers(&want).await.into_iter().map(|offer| offer.instance_type).collect();
        types.sort();
        types.dedup();
        types
    };
    assert_eq!(types(want("RTXPRO6000")).await, ["NVIDIA RTX PRO 6000 Blackwell Server Edition x1 secure"]);
    assert_eq!(types(want("A100")).await, [""; 0]);
    assert_eq!(
        types(want("A100-80GB:8")).await,
        ["NVIDIA A100 80GB PCIe x8 community", "NVIDIA A100 80GB PCIe x8 secure"]
    );
    assert_eq!(types(want("RTX4090:8")).await, ["NVIDIA GeForce RTX 4090 x8 secure"]);
    assert_eq!(types(want("B200,MI300X")).await, [""; 0]);
    // Two ids that differ by a blank: each means itself, and other spellings mean both.
    assert_eq!(types(want_type("NVIDIA  A30")).await, ["NVIDIA  A30 x1 secure"]);
    assert_eq!(types(want_type("NVIDIA A30")).await, ["NVIDIA A30 x1 secure"]);
    assert_eq!(types(want_type("nvidia   a30:2")).await, ["NVIDIA  A30 x2 secure", "NVIDIA A30 x2 secure"]);
    assert_eq!(
        types(want_type("NVIDIA GeForce RTX 4090 x2 community")).await,
        ["NVIDIA GeForce RTX 4090 x2 community"]
    );
    // AMD only by its exact id, with an image of one's own.
    assert_eq!(types(want_type("AMD Instinct MI300X OAM")).await, [""; 0]);
    let mut amd = want_type("AMD Instinct MI300X OAM");
    amd.image = Some("rocm/pytorch:latest".to_owned());
    assert_eq!(types(amd).await, ["AMD Instinct MI300X OAM x1 secure"]);
}

#[tokio::test]
async fn what_is_asked_and_how_often() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    let mut want = want("RTX4090,H100:8");
    want.regions = vec!["us".parse().unwrap(), "CA".parse().unwrap()];
    want.cuda = Some("13".parse().unwrap());
    cloud(&server.base).offers(&want).await.unwrap();
    let mut lines = server.lines();
    lines.sort();
    let catalog = |count: u32, tier: &str| {
        format!(
            "GET /v2/catalog/gpus?include=AVAILABILITY&product=POD&count={count}&cloud={tier}&minCudaVersion=13.0&countryCodes=US,CA"
        )
    };
    assert_eq!(
        lines,
        [
            "GET /v2/catalog/datacenters".to_owned(),
            catalog(1, "COMMUNITY"),
            catalog(1, "SECURE"),
            catalog(8, "COMMUNITY"),
            catalog(8, "SECURE")
        ]
    );
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer rpa_0123456789"));

    let server = Canned::start(|asked, _| shop(asked)).await;
    want.secure = true;
    cloud(&server.base).offers(&want).await.unwrap();
    assert_eq!(server.lines().len(), 3);
    let batch = cloud_with(&server.base, |settings| settings.tiers = vec![Tier::Community]);
    let batch = batch.offers(&want).await.unwrap();
    assert!(batch.offers.is_empty() && batch.notes[0].contains("tiers"));
}

#[tokio::test]
async fn one_note_counts_what_our_image_hides() {
    let server = Canned::start(|asked, _| {
        if asked.line.contains("minCudaVersion=12.9") && asked.line.contains("COMMUNITY") {
            return answer(200, "{\"gpus\":[]}");
        }
        shop(asked)
    })
    .await;
    let cloud = cloud(&server.base);
    let hidden = |notes: &[String]| notes.iter().find(|note| note.contains("hidden")).cloned();
    let notes = cloud.offers(&want("RTX4090")).await.unwrap().notes;
    assert_eq!(
        hidden(&notes).unwrap(),
        "2 offers are hidden because our image needs CUDA 12.9: `--cuda 12.8` shows them"
    );
    // Only what was asked for counts, and only where the image is ours and nobody chose a version.
    let mut narrow = want("RTX4090");
    narrow.zones = vec!["EU-RO-1".to_owned()];
    assert!(hidden(&cloud.offers(&narrow).await.unwrap().notes).unwrap().contains("1 offer is"));
    narrow.cuda = Some("12.9".parse().unwrap());
    assert_eq!(hidden(&cloud.offers(&narrow).await.unwrap().notes), None);
    let mut own = want("RTX4090");
    own.image = Some("me/own:cuda12.9".to_owned());
    assert_eq!(hidden(&cloud.offers(&own).await.unwrap().notes), None);
    let before = server.lines().iter().filter(|line| line.contains("12.8")).count();
    assert_eq!(before, 4);
}

#[tokio::test]
async fn a_hidden_list_that_hangs_holds_up_nothing() {
    let server =
        Canned::start(
            |asked, _| {
                if asked.line.contains("minCudaVersion=12.8") { Reply::Hang } else { shop(asked) }
            },
        )
        .await;
    let started = std::time::Instant::now();
    assert_eq!(cloud(&server.base).offers(&want("RTX4090")).await.unwrap().offers.len(), 4);
    assert!(started.elapsed() < std::time::Duration::from_secs(2));
}

#[tokio::test]
async fn notes_and_known_names() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    let cloud = cloud(&server.base);
    let batch = cloud.offers(&want("A100")).await.unwrap();
    assert!(batch.notes.iter().any(|note| note.contains("A100-80GB")), "{:?}", batch.notes);
    for gpu in ["RTX4090", "B200", "A100-80GB", "MI300X"] {
        assert!(batch.known_gpus.iter().any(|known| known == gpu), "{gpu}: {:?}", batch.known_gpus);
    }
    for place in ["EU-RO-1", "AP-JP-1", "europe", "asia"] {
        assert!(batch.known_places.iter().any(|known| known == place), "{place}");
    }
    let mut small = want("A4000");
    (small.disk_gb, small.disk_given) = (10, true);
    let notes = cloud.offers(&small).await.unwrap().notes;
    assert!(notes.iter().any(|note| note == "2 offers without a usable price left out"), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("20 GB")), "{notes:?}");
    // The list of data centres is asked for once in a process.
    assert_eq!(server.lines().iter().filter(|line| line.ends_with("datacenters")).count(), 1);
}

#[tokio::test]
async fn a_part_that_does_not_answer_is_said() {
    let server = Canned::start(|asked, _| match asked.line.as_str() {
        line if line.contains("COMMUNITY") => problem(500, "internal error"),
        line if line.contains("datacenters") => answer(502, "<html>"),
        _ => shop(asked),
    })
    .await;
    let batch = cloud(&server.base).offers(&want("RTX4090")).await.unwrap();
    assert_eq!(batch.offers.len(), 2);
    assert_eq!(batch.offers[0].region.as_deref(), Some("europe"));
    assert!(batch.notes.iter().any(|note| note.contains("community offers with 1 GPU are missing")));
    assert!(batch.notes.iter().any(|note| note.contains("data centres' names")), "{:?}", batch.notes);

    let server = Canned::with(vec![problem(401, "missing bearer token")]).await;
    let error = cloud(&server.base).offers(&want("RTX4090")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
    for odd in ["[]", "{}", "{\"gpus\":null}", "{\"gpus\":", ""] {
        let server = Canned::with(vec![answer(200, odd)]).await;
        let error = cloud(&server.base).offers(&want("RTX4090")).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreadable, "{odd}");
    }
}

#[tokio::test]
async fn asking_again_gives_the_price_of_now() {
    let offer = cheapest(&want("RTX4090")).await;
    let key = OfferKey::decode(&offer.id).unwrap();
    let server = Canned::start(|asked, _| {
        let mut gpu = catalog("COMMUNITY")["gpus"][0].clone();
        gpu["price"]["community"] = json!(0.5);
        if asked.line.contains("/gpus/") { answer(200, gpu.to_string()) } else { shop(asked) }
    })
    .await;
    let cloud = cloud(&server.base);
    let want = want("RTX4090");
    let Recheck::Offered(now) = cloud.recheck(&key, &want).await.unwrap() else { panic!("gone") };
    assert_eq!(now.price_per_hour.micros(), 506_850);
    assert_eq!(
        (now.zone.as_deref(), now.region.as_deref(), now.cuda.as_deref()),
        (Some("EU-RO-1"), Some("europe"), Some("12.9"))
    );
    let line = "GET /v2/catalog/gpus/NVIDIA%20GeForce%20RTX%204090?include=AVAILABILITY&product=POD&count=1&cloud=COMMUNITY&minCudaVersion=12.9";
    assert!(server.lines().iter().any(|asked| asked == line), "{:?}", server.lines());

    for (zone, ty) in [
        (Some("EUR-IS-2"), None),
        (Some("AP-JP-1"), None),
        (None, Some("NVIDIA H400 x1 secure")),
        (None, Some("x")),
    ] {
        let server = Canned::start(|asked, _| shop(asked)).await;
        let gone = OfferKey {
            zone: zone.map(str::to_owned),
            instance_type: ty.map_or(key.instance_type.clone(), str::to_owned),
            ..key.clone()
        };
        let answer = samples_cloud(&server).recheck(&gone, &want).await.unwrap();
        let Recheck::Gone(why) = answer else { panic!("{zone:?} {ty:?}") };
        if let Some(zone) = zone {
            assert!(why.contains(zone) && why.contains("CUDA 12.9") && why.contains("community"), "{why}");
        }
    }
}

fn samples_cloud(server: &Canned) -> crate::cloud::runpod::RunPod {
    cloud(&server.base)
}

#[tokio::test]
async fn asking_again_without_a_zone() {
    let offer = cheapest(&want("H100")).await;
    assert_eq!(offer.zone, None);
    let server = Canned::start(|asked, _| shop(asked)).await;
    let key = OfferKey::decode(&offer.id).unwrap();
    let Recheck::Offered(now) = cloud(&server.base).recheck(&key, &want("H100")).await.unwrap() else {
        panic!("gone")
    };
    assert_eq!(*now, offer);
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let words = [
        "id",
        "gpus",
        "price",
        "secure",
        "community",
        "availability",
        "dataCenters",
        "HIGH",
        "memory",
        "maxCount",
        "NVIDIA H100 PCIe",
        "manufacturer",
        "NVIDIA",
        "EU-RO-1",
    ];
    let word = proptest::sample::select(words.to_vec()).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|it| json!(it)),
        any::<i64>().prop_map(|it| json!(it)),
        any::<f64>().prop_map(|it| json!(it)),
        word.clone().prop_map(|it| json!(it)),
    ];
    leaf.prop_recursive(4, 40, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            proptest::collection::vec((word.clone(), inner), 0..8)
                .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_answer_is_survived(value in any_json()) {
        use crate::cloud::runpod::{places::Places, rows, states};
        let account = "runpod/default".parse().unwrap();
        let centers: Option<wire::DataCenterList> = serde_json::from_value(value.clone()).ok();
        let places = Places::new(&centers.and_then(|list| list.data_centers).unwrap_or_default());
        let wishes = rows::Wishes { disk_gb: 50, floor: None, ram_gb: None, vcpus: None };
        let frame = rows::Frame {
            account: &account, sandbox: false, places: &places, regions: &[], tier: Tier::Secure, count: 1, wishes,
        };
        let gpu: Option<wire::GpuType> = serde_json::from_value(value.clone()).ok();
        let found = rows::rows(&gpu.into_iter().collect::<Vec<_>>(), &rows::asks(&want("any")), false, &frame);
        prop_assert!(found.offers.iter().all(|offer| offer.price_per_hour.is_positive()));
        let pod: wire::Pod = serde_json::from_value(value).unwrap_or_default();
        states::look(&pod, &states::Frame { account: &account, loopback: false, places: &places });
    }
}
