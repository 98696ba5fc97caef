//! Prices that cannot be right.

use super::*;
use crate::cloud::gcp::places::DEFAULT_ZONES;
use crate::cloud::gcp::shapes::shapes;

#[test]
fn the_known_wrong_prices_are_replaced_by_the_list_s() {
    let prices = skypilot(SAMPLE);
    for (ty, gpus, zone, expected) in [
        // 1.09962 + 3.928 and 375 GiB of local SSD; the catalogue would have it for 2.95.
        ("a2-ultragpu-1g", 1, "us-central1-a", 5_068_716),
        ("a2-ultragpu-8g", 8, "us-east4-c", 45_627_402),
        // 1.18251 x 8, 9.79655 x 8, 6000 GiB; the catalogue would have it for 43.
        ("a3-highgpu-8g", 8, "us-central1-a", 88_490_014),
        ("a2-highgpu-1g", 1, "europe-west4-a", 4_041_360),
    ] {
        let told = micros(&prices, ty, gpus, zone, false);
        let (price, is_listed) = told.unwrap();
        assert!(is_listed, "{ty} {zone}");
        assert!((price - expected).abs() <= expected / 1000, "{ty} {zone}: {price}");
        let Answer::Price(price) = answer(&prices, ty, gpus, zone, false) else { panic!() };
        assert_eq!(price.as_of, LIST_DATE, "as old as the list");
    }
    for (ty, gpus, zone) in [
        ("a3-highgpu-8g", 8, "us-east4-a"),
        ("a3-highgpu-8g", 8, "europe-west4-b"),
        ("a2-highgpu-1g", 1, "us-central1-a"),
        ("g2-standard-96", 8, "europe-west1-b"),
        ("n1-standard-8", 4, "us-east4-b"),
    ] {
        assert!(!micros(&prices, ty, gpus, zone, false).unwrap().1, "{ty} {zone}");
    }
}

#[test]
fn no_price_on_demand_is_below_the_spot_price_or_far_below_the_list() {
    let prices = skypilot(SAMPLE);
    let mut looked_at = 0;
    for shape in shapes().iter().filter(|shape| shape.cards.is_some()) {
        for zone in DEFAULT_ZONES {
            let (Answer::Price(demand), Answer::Price(spot)) =
                (prices.of(shape, zone, false), prices.of(shape, zone, true))
            else {
                continue;
            };
            looked_at += 1;
            assert!(demand.compute > spot.compute, "{} {zone}", shape.machine_type);
        }
    }
    assert!(looked_at > 150, "{looked_at}");
}

#[test]
fn what_is_spot_only_has_no_price_on_demand() {
    let prices = skypilot(SAMPLE);
    for (ty, gpus, zone) in [
        ("a3-highgpu-1g", 1, "us-east4-a"),
        ("a3-highgpu-2g", 2, "us-east4-a"),
        ("a3-highgpu-4g", 4, "us-east4-a"),
        ("a3-ultragpu-8g", 8, "europe-west4-a"),
        ("a4-highgpu-8g", 8, "us-east4-b"),
    ] {
        assert_eq!(answer(&prices, ty, gpus, zone, false), Answer::NotSold, "{ty}");
        assert!(micros(&prices, ty, gpus, zone, true).is_some(), "{ty}");
    }
}

#[test]
fn whole_machines_are_looked_at_too() {
    let row = |ty, gpus, zone, spot, price| hunted_row(ty, gpus, zone, spot, price);
    let prices = gpuhunt(&[
        &row("a2-ultragpu-1g", 1, "us-central1-a", false, 2.95),
        &row("a2-ultragpu-1g", 1, "us-central1-a", true, 2.52),
        // Above 0.7 of the list, but not above spot.
        &row("g2-standard-4", 1, "us-central1-a", false, 0.60),
        &row("g2-standard-4", 1, "us-central1-a", true, 0.61),
        // In a region that the list does not have: left out rather than believed.
        &row("a2-ultragpu-1g", 1, "asia-southeast1-c", false, 2.95),
        &row("g2-standard-4", 1, "asia-southeast1-c", false, 0.81),
        // Spot for next to nothing.
        &row("g2-standard-8", 1, "us-central1-a", true, 0.02),
        &row("a4-highgpu-8g", 8, "us-central1-b", true, 3.26),
        &row("c3d-standard-8", 0, "us-central1-a", false, 0.003),
    ]);
    assert!(micros(&prices, "a2-ultragpu-1g", 1, "us-central1-a", false).unwrap().0 > 5_000_000);
    assert_eq!(micros(&prices, "g2-standard-4", 1, "us-central1-a", false), Some((706_832, true)));
    assert_eq!(micros(&prices, "g2-standard-4", 1, "us-central1-a", true), Some((610_000, false)));
    assert_eq!(micros(&prices, "g2-standard-4", 1, "asia-southeast1-c", false), Some((810_000, false)));
    for (ty, gpus, zone, spot) in [
        ("a2-ultragpu-1g", 1, "asia-southeast1-c", false),
        ("g2-standard-8", 1, "us-central1-a", true),
        ("a4-highgpu-8g", 8, "us-central1-b", true),
        ("c3d-standard-8", 0, "us-central1-a", false),
    ] {
        assert_eq!(answer(&prices, ty, gpus, zone, spot), Answer::Unusable, "{ty} {zone}");
    }
}

#[test]
fn a_catalogue_that_is_wrong_as_a_whole_is_refused() {
    let table = |text: &str| super::super::skypilot::parse(text.as_bytes()).unwrap();
    assert_eq!(guard::refuse(&table(SAMPLE)), Ok(()), "a few wrong rows are what is known of it");
    let scaled = |factor: f64| {
        let line = |line: &str| {
            let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
            for cell in cells.iter_mut().skip(8) {
                *cell = cell.parse::<f64>().map(|price| (price * factor).to_string()).unwrap_or_default();
            }
            cells.join(",")
        };
        let mut lines = SAMPLE.lines();
        let header = lines.next().unwrap().to_owned();
        std::iter::once(header).chain(lines.map(line)).collect::<Vec<_>>().join("\n") + "\n"
    };
    for factor in [0.01, 0.5, 100.0] {
        assert!(guard::refuse(&table(&scaled(factor))).is_err(), "{factor}");
    }
    assert_eq!(guard::refuse(&table(&scaled(1.1))), Ok(()));
}
