use super::super::prices::Estimate;
use super::super::spot;
use super::super::stock::tests::{advice, quota, there};
use super::super::wire::{
    AvailabilityLevel, PlatformSpec, PlatformStatus, PresetResources, ResourceMetadata,
};
use super::*;
use crate::model::offer::Stock;

fn preset(name: &str) -> Preset {
    let shape = Shape::of_name(name).unwrap();
    let figure = |figure: u32| i32::try_from(figure).unwrap();
    Preset {
        name: name.to_owned(),
        resources: Some(PresetResources {
            vcpu_count: figure(shape.vcpus),
            memory_gibibytes: figure(shape.ram_gib),
            gpu_count: figure(shape.gpus),
            ..PresetResources::default()
        }),
        ..Preset::default()
    }
}

fn platform(name: &str, presets: &[&str], preemptible: bool) -> Platform {
    Platform {
        metadata: Some(ResourceMetadata { name: name.to_owned(), ..ResourceMetadata::default() }),
        spec: Some(PlatformSpec {
            presets: presets.iter().map(|name| preset(name)).collect(),
            ..PlatformSpec::default()
        }),
        status: Some(PlatformStatus { allowed_for_preemptibles: preemptible }),
    }
}

fn platforms() -> Vec<Platform> {
    vec![
        platform("gpu-h100-sxm", &["1gpu-16vcpu-200gb", "4gpu-64vcpu-800gb", "8gpu-128vcpu-1600gb"], true),
        platform("gpu-l40s-d", &["1gpu-16vcpu-96gb", "2gpu-64vcpu-384gb"], true),
        platform("gpu-gb300", &["4gpu-144vcpu-900gb"], true),
        platform("gpu-z900-sxm", &["1gpu-16vcpu-200gb"], true),
        platform("cpu-d3", &["4vcpu-16gb", "8vcpu-32gb"], false),
        platform("gpu-odd", &["4vcpu-16gb"], true),
        Platform::default(),
    ]
}

fn home() -> Project {
    Project { id: "project-e00a".to_owned(), name: "default".to_owned(), region: "eu-north1".to_owned() }
}

#[derive(Default)]
struct Told {
    on_demand: OnDemand,
    shown: Option<Usd>,
    spot: Option<SpotPrices>,
    stocks: Stocks,
    quotas: Quotas,
}

fn listed(want: &Want, told: &Told) -> Rows {
    let account = "nebius/lab".parse().unwrap();
    let frame = Frame {
        account: &account,
        sandbox: false,
        disk_gb: disk_gb(want),
        floor: want.cuda,
        on_demand: &told.on_demand,
        shown: told.shown,
        spot: told.spot.as_ref(),
        stocks: &told.stocks,
        quotas: &told.quotas,
    };
    let mut rows = Rows::default();
    add(&mut rows, &home(), &platforms(), want, &frame);
    rows
}

fn want(gpus: &str, spot: Spot) -> Want {
    let gpus = gpus.split(',').map(|gpu| gpu.parse().unwrap()).collect();
    Want { spot, ..Want::new(Kind::Gpus(gpus), 50) }
}

fn shown(rows: &Rows) -> Vec<(String, bool, i64)> {
    rows.offers
        .iter()
        .map(|offer| (offer.instance_type.clone(), offer.spot, offer.price_parts.compute.micros()))
        .collect()
}

#[test]
fn presets_of_the_list_with_the_count_that_is_asked_for() {
    let told = Told::default();
    let one = listed(&want("any:1", Spot::No), &told);
    assert_eq!(
        shown(&one),
        [
            ("gpu-h100-sxm 1gpu-16vcpu-200gb".to_owned(), false, 4_500_000),
            ("gpu-l40s-d 1gpu-16vcpu-96gb".to_owned(), false, 1_817_200),
        ]
    );
    assert_eq!(one.unpriced, 1, "nobody knows the price of the new card");
    let offer = &one.offers[0];
    assert_eq!((offer.gpu.as_deref(), offer.gpu_count, offer.vram_gb), (Some("H100"), 1, Some(80.0)));
    assert_eq!((offer.vcpus, offer.ram_gb, offer.disk_gb), (Some(16.0), Some(200.0), 64));
    assert_eq!((offer.region.as_deref(), offer.zone.as_deref()), (Some("eu-north1"), Some("eu-north1")));
    assert_eq!((offer.cuda.as_deref(), offer.secure, offer.price_estimated), (Some("13.0"), true, true));
    assert!(offer.price_as_of.is_some());
    let key = OfferKey::decode(&offer.id).unwrap();
    assert_eq!(key.own.as_deref(), Some("project-e00a"));
    assert_eq!(key.price, offer.price_per_hour);
    assert_eq!(shown(&listed(&want("H100:8", Spot::No), &told)).len(), 1);
    assert_eq!(shown(&listed(&want("H100:4,L40:1,H200:1,GB300:4", Spot::No), &told)), []);
    let cards: Vec<&str> = one.cards.iter().map(String::as_str).collect();
    assert_eq!(cards, ["H100", "L40S", "Z900"]);
}

#[test]
fn exact_types_reach_what_the_list_has_not() {
    let ty = |name: &str| Want::new(Kind::Types(vec![name.parse().unwrap()]), 50);
    let told = Told::default();
    assert_eq!(shown(&listed(&ty("gpu-h100-sxm 4gpu-64vcpu-800gb"), &told)).len(), 1);
    assert_eq!(shown(&listed(&ty("cpu-d3 8vcpu-32gb"), &told)).len(), 1);
    assert_eq!(shown(&listed(&ty("gpu-h100-sxm 1gpu-16vcpu-200gb:8"), &told)).len(), 0);
    assert_eq!(shown(&listed(&ty("gpu-gb300 4gpu-144vcpu-900gb"), &told)).len(), 0, "ARM");
    let priced = OnDemand::new([(
        Item {
            region: "eu-north1".to_owned(),
            platform: "gpu-z900-sxm".to_owned(),
            preset: "1gpu-16vcpu-200gb".to_owned(),
        },
        super::super::prices::Estimate { price: Usd::from_micros(1), at: jiff::Timestamp::now() },
    )]);
    let told = Told { on_demand: priced, ..Told::default() };
    let rows = listed(&want("Z900", Spot::No), &told);
    assert_eq!((rows.offers.len(), rows.offers[0].price_estimated), (1, false));
}

#[test]
fn spot_needs_a_live_price_and_is_never_above_on_demand() {
    let prices = |rows: &[(&str, &str)]| {
        let rows: Vec<_> =
            rows.iter().map(|(platform, price)| spot::tests::row("eu-north1", platform, price)).collect();
        Some(SpotPrices::new(&rows))
    };
    let told = Told { spot: prices(&[("gpu-h100-sxm", "1.87"), ("cpu-d3", "0.01")]), ..Told::default() };
    let rows = listed(&want("any:1", Spot::Only), &told);
    assert_eq!(shown(&rows), [("gpu-h100-sxm 1gpu-16vcpu-200gb".to_owned(), true, 1_870_000)]);
    assert_eq!((rows.unpriced, rows.offers[0].price_estimated, rows.offers[0].price_as_of), (0, false, None));
    let eight = listed(&want("H100:8", Spot::Any), &told);
    assert_eq!(
        shown(&eight).iter().map(|row| (row.1, row.2)).collect::<Vec<_>>(),
        [(false, 36_000_000), (true, 14_960_000)]
    );
    assert_eq!(shown(&listed(&want("any:1", Spot::Only), &Told::default())), []);
    let cpu = Want { spot: Spot::Any, ..Want::new(Kind::CpuOnly, 50) };
    assert!(shown(&listed(&cpu, &told)).iter().all(|row| !row.1));
    let (item, price) = (
        Item {
            region: "eu-north1".to_owned(),
            platform: "gpu-h100-sxm".to_owned(),
            preset: "1gpu-16vcpu-200gb".to_owned(),
        },
        Usd::from_micros(4_000_000),
    );
    let estimate = super::super::prices::Estimate { price, at: jiff::Timestamp::now() };
    let told = Told {
        on_demand: OnDemand::new([(item, estimate)]),
        spot: prices(&[("gpu-h100-sxm", "4.2")]),
        ..Told::default()
    };
    assert_eq!(shown(&listed(&want("H100", Spot::Only), &told))[0].2, 4_000_000);
}

#[test]
fn stock_and_quotas() {
    let h100 = "gpu-h100-sxm";
    let row = |preset: &str, on_demand, spot| advice("eu-north1", h100, preset, on_demand, spot);
    let told = Told {
        spot: Some(SpotPrices::new(&[spot::tests::row("eu-north1", h100, "1.87")])),
        stocks: Stocks::new(&[
            row("1gpu-16vcpu-200gb", Some(there(3, AvailabilityLevel::Low)), None),
            row("8gpu-128vcpu-1600gb", Some(there(0, AvailabilityLevel::LimitReached)), None),
        ]),
        ..Told::default()
    };
    let rows = listed(&want("H100:1,H100:8", Spot::Any), &told);
    let found: Vec<_> = rows.offers.iter().map(|offer| (offer.gpu_count, offer.spot, offer.stock)).collect();
    assert_eq!(found, [(1, false, Some(Stock::Low)), (1, true, None), (8, true, None)]);

    let quotas = |name: &str| Quotas::new(&[quota(name, "eu-north1", Some(0))]);
    let left = |name: &str, want: &Want| {
        let rows = listed(want, &Told { spot: told.spot.clone(), quotas: quotas(name), ..Told::default() });
        let kinds: Vec<bool> = rows.offers.iter().map(|offer| offer.spot).collect();
        (kinds, rows.no_quota.into_iter().collect::<Vec<_>>())
    };
    let both = want("H100", Spot::Any);
    assert_eq!(left("compute.instance.gpu.h100", &both), (vec![true], vec!["H100 in eu-north1".to_owned()]));
    assert_eq!(left("compute.instance.preemptible.count", &both).0, [false]);
    assert_eq!(left("compute.instance.count", &both).0, [] as [bool; 0]);
    assert_eq!(left("compute.instance.gpu.h200", &both).0, [false, true]);
    let cpu = Want::new(Kind::CpuOnly, 50);
    assert_eq!(
        left("compute.instance.non-gpu.vcpu", &cpu),
        (vec![], vec!["machines without a GPU in eu-north1".to_owned()])
    );
}

#[test]
fn the_disk_is_at_least_what_boots() {
    let size = |disk_gb, disk_given| disk_gb_of(disk_gb, disk_given);
    fn disk_gb_of(disk: u32, disk_given: bool) -> u32 {
        disk_gb(&Want { disk_given, ..Want::new(Kind::CpuOnly, disk) })
    }
    for (disk, given, expected) in [
        (50, false, 64),
        (50, true, 50),
        (10, true, 40),
        (10, false, 64),
        (200, false, 200),
        (200, true, 200),
    ] {
        assert_eq!(size(disk, given), expected, "{disk} {given}");
    }
}

#[test]
fn one_question_for_a_row_of_machines_without_a_gpu() {
    let asked = |want: &Want| {
        let items = to_price(&home(), &platforms(), want);
        items.into_iter().map(|item| format!("{} {}", item.platform, item.preset)).collect::<Vec<_>>()
    };
    assert_eq!(asked(&Want::new(Kind::CpuOnly, 50)), ["cpu-d3 4vcpu-16gb"]);
    assert_eq!(asked(&want("H100:1,H100:8", Spot::No)).len(), 2);
    let ty = Want::new(Kind::Types(vec!["cpu-d3 8vcpu-32gb".parse().unwrap()]), 50);
    assert_eq!(asked(&ty), ["cpu-d3 8vcpu-32gb"]);
}

#[test]
fn a_list_s_price_is_never_below_what_was_shown() {
    let compute = |on_demand: OnDemand, shown: i64, gpus: &str| {
        let told = Told { on_demand, shown: Some(Usd::from_micros(shown)), ..Told::default() };
        let rows = listed(&want(gpus, Spot::No), &told);
        let offer = rows.offers.into_iter().next().unwrap();
        (offer.price_parts.compute.micros(), offer.price_estimated)
    };
    let list = compute(OnDemand::default(), 1, "H100:1");
    assert!(list.0 > 1 && list.1);
    assert_eq!(compute(OnDemand::default(), list.0 + 5, "H100:1"), (list.0 + 5, true));
    let item = Type::all(&platforms()).next().unwrap().item("eu-north1");
    let estimate = Estimate { price: Usd::from_micros(7), at: jiff::Timestamp::now() };
    assert_eq!(
        compute(OnDemand::new([(item, estimate)]), list.0, "H100:1"),
        (7, false),
        "the calculator knows"
    );
}
