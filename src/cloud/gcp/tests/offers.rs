//! Listing offers.

use std::collections::BTreeSet;

use super::shop::*;
use crate::cloud::{Cloud, ErrorKind};
use crate::http::canned::Reply;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::want::{Spot, Want};

fn rows(offers: &[Offer]) -> Vec<(String, u32, String, bool, i64)> {
    let mut rows: Vec<_> = offers
        .iter()
        .map(|offer| {
            let zone = offer.zone.clone().unwrap();
            (offer.instance_type.clone(), offer.gpu_count, zone, offer.spot, offer.price_per_hour.micros())
        })
        .collect();
    rows.sort();
    rows
}

fn types(offers: &[Offer]) -> Vec<String> {
    offers.iter().map(|offer| offer.instance_type.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// 50 GB and an address, on demand and spot.
const BESIDE: i64 = 6_850 + 5_000;
const BESIDE_SPOT: i64 = 6_850 + 2_500;

#[tokio::test]
async fn a_row_says_what_it_is_and_what_it_costs() {
    let offers = offers(&want("L4:1")).await;
    let offer = offers.iter().find(|offer| offer.instance_type == "g2-standard-4").unwrap();
    assert_eq!(offer.price_parts.compute.micros(), 706_832);
    assert_eq!(offer.price_parts.disk.micros(), 6_850);
    assert_eq!(offer.price_parts.address.unwrap().micros(), 5_000);
    assert_eq!(offer.price_per_hour.micros(), 706_832 + BESIDE);
    assert_eq!((offer.gpu.as_deref(), offer.gpu_raw.as_deref()), (Some("L4"), Some("nvidia-l4")));
    assert_eq!((offer.gpu_count, offer.vram_gb), (1, Some(24.0)));
    assert_eq!((offer.vcpus, offer.ram_gb, offer.disk_gb), (Some(4.0), Some(16.0), 50));
    assert_eq!((offer.region.as_deref(), offer.country.unwrap().as_str()), (Some("us-central1"), "US"));
    assert_eq!(
        (offer.zone.as_deref(), offer.continent.unwrap().as_str()),
        (Some("us-central1-a"), "north_america")
    );
    assert_eq!((offer.secure, offer.sandbox, offer.spot, offer.stock), (true, true, false, None));
    assert!(offer.price_estimated && offer.price_as_of.is_some());
    assert_eq!(offer.cuda.as_deref(), Some("13.0"));
    let traffic = offer.traffic_per_gb.unwrap();
    assert_eq!((traffic.inward.micros(), traffic.outward.micros()), (0, 120_000));
    assert_eq!(
        offer.id, "1:gcp/default:g2-standard-4:1:us-central1-a:o:d50:p718682",
        "ids are kept by scripts"
    );
}

#[tokio::test]
async fn on_demand_and_spot() {
    let of = async |spot| rows(&offers(&Want { spot, ..want("A100") }).await);
    let row = |zone: &str, spot, micros| ("a2-highgpu-1g".to_owned(), 1, zone.to_owned(), spot, micros);
    let demand =
        [row("europe-west4-b", false, 3_673_390 + BESIDE), row("us-central1-a", false, 3_673_390 + BESIDE)];
    let spot = [
        row("europe-west4-b", true, 1_803_850 + BESIDE_SPOT),
        row("us-central1-a", true, 1_803_850 + BESIDE_SPOT),
    ];
    assert_eq!(of(Spot::No).await, demand);
    assert_eq!(of(Spot::Only).await, spot);
    let mut both = [demand, spot].concat();
    both.sort();
    assert_eq!(of(Spot::Any).await, both);
}

#[tokio::test]
async fn what_is_spot_only_is_not_sold_on_demand_and_a_note_says_so() {
    let server = server(Vec::new()).await;
    let cloud = cloud(&server.base);
    let batch = cloud.offers(&want("H100:1,B200:8,H100:8")).await.unwrap();
    assert_eq!(types(&batch.offers), ["a3-highgpu-8g"]);
    let note = "Google sells H100:1, B200:8 as spot only (`--spot`)";
    assert!(batch.notes.iter().any(|told| told == note), "{:?}", batch.notes);
    let spot = cloud.offers(&Want { spot: Spot::Only, ..want("H100:1,H200:8,B200:8") }).await.unwrap();
    // B200 is not in this gpuhunt, and is then SkyPilot's, which is there for H200.
    assert_eq!(types(&spot.offers), ["a3-highgpu-1g", "a3-ultragpu-8g", "a4-highgpu-8g"]);
    assert_eq!(spot.notes, [""; 0]);
    assert_eq!(cloud.offers(&want("any:1")).await.unwrap().notes, [""; 0]);
}

#[tokio::test]
async fn t4_comes_with_usual_hosts_unless_sizes_are_asked_for() {
    assert_eq!(types(&offers(&want("T4:1")).await), ["n1-standard-4", "n1-standard-8"]);
    assert_eq!(types(&offers(&want("T4:2")).await), ["n1-standard-16"]);
    let sized = offers(&Want { ram_gb: Some(40), ..want("T4:1") }).await;
    assert!(types(&sized).contains(&"n1-highmem-8".to_owned()), "{:?}", types(&sized));
    assert!(!types(&sized).contains(&"n1-standard-1".to_owned()));
    assert_eq!(types(&offers(&want_type("n1-standard-1")).await), ["n1-standard-1"]);
    let counts = async |ty: &str| -> BTreeSet<u32> {
        offers(&want_type(ty)).await.iter().map(|offer| offer.gpu_count).collect()
    };
    assert_eq!(counts("n1-standard-8").await, [1].into());
    assert_eq!(counts("n1-standard-8:2").await, [2].into());
    assert_eq!(counts("g2-standard-48").await, [4].into());
    assert_eq!(counts("g2-standard-48:1").await, [].into());
    assert_eq!(counts("G2-standard-4").await, [].into());
}

#[tokio::test]
async fn without_a_gpu() {
    let offers = offers(&Want { disk_gb: 10, spot: Spot::Any, ..want_cpu() }).await;
    assert!(offers.iter().all(|offer| offer.gpu.is_none() && offer.gpu_count == 0 && offer.cuda.is_none()));
    let n2 = offers.iter().find(|offer| {
        offer.instance_type == "n2-standard-8" && offer.zone.as_deref() == Some("us-east4-a") && !offer.spot
    });
    let n2 = n2.unwrap();
    assert_eq!((n2.price_parts.compute.micros(), n2.disk_gb, n2.vcpus), (437_510, 10, Some(8.0)));
    assert!(types(&offers).iter().all(|ty| !ty.starts_with("n1") && !ty.starts_with("g2")));
}

#[tokio::test]
async fn the_disk_is_raised_with_a_note_where_it_was_asked_for() {
    let server = server(Vec::new()).await;
    let cloud = cloud(&server.base);
    let small = |want: Want| Want { disk_gb: 5, disk_given: true, ..want };
    for (want, disk) in [(small(want("L4")), 50), (small(want_cpu()), 10)] {
        let batch = cloud.offers(&want).await.unwrap();
        assert!(batch.offers.iter().all(|offer| offer.disk_gb == disk));
        assert!(batch.notes[0].contains(&format!("raised to {disk} GB")), "{:?}", batch.notes);
        let default = Want { disk_given: false, ..want };
        assert_eq!(cloud.offers(&default).await.unwrap().notes, [""; 0]);
    }
}

#[tokio::test]
async fn a_cuda_floor_goes_into_the_id_and_means_nothing_without_a_gpu() {
    let floor = Some("12.8".parse().unwrap());
    let offer = offers(&Want { cuda: floor, ..want("L4") }).await.remove(0);
    assert_eq!(OfferKey::decode(&offer.id).unwrap().cuda, floor);
    let server = server(Vec::new()).await;
    let batch = cloud(&server.base).offers(&Want { cuda: floor, ..want_cpu() }).await.unwrap();
    assert!(batch.notes[0].contains("--cuda"), "{:?}", batch.notes);
    assert!(!batch.offers[0].id.contains(":c12.8"));
}

#[tokio::test]
async fn zones_are_the_account_s_and_odd_ones_are_told() {
    let server = server(Vec::new()).await;
    let cloud = cloud_of(&server.base, &["europe-west4-b", "europe-west4", "../x"]);
    let batch = cloud.offers(&want("L4")).await.unwrap();
    assert!(batch.offers.iter().all(|offer| offer.zone.as_deref() == Some("europe-west4-b")));
    assert_eq!(batch.offers.len(), 2);
    assert_eq!(batch.known_places, ["europe-west4", "europe-west4-b"]);
    assert!(batch.notes[0].contains("europe-west4`") && batch.notes[1].contains("../x"), "{:?}", batch.notes);
    assert!(server.lines().iter().all(|line| !line.contains("us-central1")), "{:?}", server.lines());
}

#[tokio::test]
async fn names_that_are_known_are_told() {
    let server = server(Vec::new()).await;
    let batch = cloud(&server.base).offers(&want("RTX4090")).await.unwrap();
    assert_eq!(batch.offers.len(), 0);
    assert_eq!(batch.known_gpus, ["A100", "A100-80GB", "B200", "H100", "H200", "L4", "T4"]);
    let types = batch.known_types.unwrap();
    assert!(types.contains(&"a4-highgpu-8g".to_owned()) && types.contains(&"c3d-highcpu-360".to_owned()));
    assert!(batch.known_places.contains(&"us-east4".to_owned()));
    assert!(!server.lines().iter().any(|line| line.contains("/prices/")), "no price is needed");
}

#[tokio::test]
async fn all_questions_go_out_at_once_and_only_those_that_are_needed() {
    let server = server(Vec::new()).await;
    let narrow = Want { regions: vec!["europe".parse().unwrap()], ..want("L4,H200:8") };
    cloud(&server.base).offers(&narrow).await.unwrap();
    let mut lines = server.lines();
    lines.sort();
    let region = |name: &str| format!("{PROJECT}/regions/{name}");
    assert_eq!(
        lines,
        [
            PROJECT.to_owned(),
            region("europe-west1"),
            region("europe-west4"),
            GPUHUNT.to_owned(),
            SKYPILOT.to_owned()
        ]
    );
    let asked = server.asked();
    let bearer = |line: &str| {
        asked.iter().filter(|asked| asked.line == line).all(|asked| asked.header("authorization").is_some())
    };
    assert!(bearer(PROJECT) && !bearer(GPUHUNT) && !bearer(SKYPILOT), "no token for the catalogues");
}

#[tokio::test]
async fn a_quota_of_zero_leaves_out_what_it_forbids() {
    let none = quotas(&[("GPUS_ALL_REGIONS", 0.0, 0.0)]);
    let new = server(vec![(PROJECT, none)]).await;
    let batch = cloud(&new.base).offers(&want("L4")).await.unwrap();
    assert_eq!(batch.offers.len(), 0);
    assert!(batch.notes[0].starts_with("4 offers left out"), "{:?}", batch.notes);
    assert!(
        batch.notes[0].contains("GPUS_ALL_REGIONS 0 over all regions") && batch.notes[0].contains("lab-1")
    );
    assert!(!cloud(&new.base).offers(&want_cpu()).await.unwrap().offers.is_empty());
    let here = server(vec![(CENTRAL, quotas(&[("NVIDIA_L4_GPUS", 1.0, 1.0)]))]).await;
    let batch = cloud(&here.base).offers(&want("L4:4")).await.unwrap();
    let zones: Vec<_> = batch.offers.iter().map(|offer| offer.zone.as_deref().unwrap()).collect();
    assert_eq!(zones, ["europe-west4-b"]);
    assert!(batch.notes[0].contains("NVIDIA_L4_GPUS 1 in us-central1"), "{:?}", batch.notes);
    assert_eq!(cloud(&here.base).offers(&want("L4:1")).await.unwrap().offers.len(), 4, "in use or not");
}

#[tokio::test]
async fn limits_that_cannot_be_read_are_unknown() {
    let lacks = |right: &str| {
        problem(403, "forbidden", &format!("Required '{right}' permission for 'projects/lab-1'"))
    };
    for special in [
        vec![(CENTRAL, problem(503, "backendError", "later"))],
        vec![(CENTRAL, lacks("compute.regions.get"))],
        vec![(PROJECT, lacks("compute.projects.get"))],
        vec![(PROJECT, lacks("compute.projects.get")), (CENTRAL, lacks("compute.regions.get"))],
    ] {
        let server = server(special).await;
        let batch = cloud(&server.base).offers(&want("L4")).await.unwrap();
        assert_eq!(batch.offers.len(), 4);
        assert!(batch.notes[0].starts_with("quotas are not known"), "{:?}", batch.notes);
    }
    for odd in ["{}", r#"{"quotas": null, "quotaStatusWarning": {"code": "x"}}"#, r#"{"quotas": "x"}"#] {
        let server = server(vec![(PROJECT, Reply::Answer(200, String::new(), odd.to_owned()))]).await;
        assert_eq!(cloud(&server.base).offers(&want("L4")).await.unwrap().offers.len(), 4, "{odd}");
    }
}

#[tokio::test]
async fn a_project_that_cannot_be_asked_has_no_offers() {
    for (reply, kind) in [
        (problem(401, "authError", "Invalid Credentials"), ErrorKind::Auth),
        (problem(403, "accessNotConfigured", "Compute Engine API has not been used"), ErrorKind::Forbidden),
        (problem(404, "notFound", "The resource 'projects/lab-1' was not found"), ErrorKind::NotFound),
        (problem(500, "internalError", "x"), ErrorKind::Unavailable),
    ] {
        let server = server(vec![(PROJECT, reply)]).await;
        let error = cloud(&server.base).offers(&want("L4")).await.unwrap_err();
        assert_eq!(error.kind, kind);
    }
}

#[tokio::test]
async fn without_any_catalogue_there_are_no_offers() {
    let down = || Reply::Answer(503, String::new(), "later".to_owned());
    let nothing = server(vec![(GPUHUNT, down()), (SKYPILOT, down())]).await;
    let error = cloud(&nothing.base).offers(&want("L4")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("gpuhunt") && error.message.contains("503"), "{error}");
    let one = server(vec![(GPUHUNT, down())]).await;
    let batch = cloud(&one.base).offers(&want("A100-80GB")).await.unwrap();
    assert!(
        batch.offers.iter().all(|offer| offer.price_parts.compute.micros() > 5_000_000),
        "no wrong cheap price"
    );
    assert!(batch.notes[0].contains("gpuhunt's catalogue"), "{:?}", batch.notes);
    let list = batch.notes.iter().find(|note| note.contains("cannot be right")).unwrap();
    assert!(list.contains("A100-80GB"), "{list}");
    assert_eq!(batch.offers[0].price_as_of.unwrap().to_string(), "2026-11-30T00:00:00Z");
}

#[test]
fn cards_are_attached_to_machines_of_n1_alone() {
    for shape in crate::cloud::gcp::shapes::shapes() {
        let ty = shape.machine_type;
        let attached = shape.cards.as_ref().filter(|cards| cards.attached);
        assert_eq!(attached.is_some(), ty.starts_with("n1-"), "{ty}");
        assert!(attached.is_none_or(|cards| cards.gpu.raw == "nvidia-tesla-t4"), "{ty}");
    }
}
