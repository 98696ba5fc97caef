//! Catalogues as they are, and as they must not be.

mod formats;
mod guarded;
mod kept;

use std::sync::Arc;

use super::source::Copy;
use super::table::Table;
use super::*;
use crate::cloud::gcp::shapes::find;

/// Rows in SkyPilot's layout, wrong ones among them as in the real file.
pub(in crate::cloud::gcp) const SAMPLE: &str = include_str!("../../data/prices-sample.csv");

/// Prices of one catalogue.
fn prices(which: Which, table: Table) -> Prices {
    let mut prices = Prices::default();
    prices.take(which, Some(Ok(Got { copy: Arc::new(Copy::of(table)), stale: None })));
    prices
}

fn skypilot(text: &str) -> Prices {
    prices(Which::Skypilot, super::skypilot::parse(text.as_bytes()).unwrap())
}

fn gpuhunt(rows: &[&str]) -> Prices {
    prices(Which::Gpuhunt, super::gpuhunt::parse(hunted(rows).as_bytes()).unwrap())
}

/// A catalogue in gpuhunt's layout.
pub(in crate::cloud::gcp) fn hunted(rows: &[&str]) -> String {
    format!("{}\n{}\n", HUNT_HEADER, rows.join("\n"))
}

const HUNT_HEADER: &str = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,cpu_arch,provider_data";

/// A row of a machine of ours.
pub(in crate::cloud::gcp) fn hunted_row(ty: &str, gpus: u32, zone: &str, spot: bool, price: f64) -> String {
    let shape = find(ty, gpus).unwrap();
    let (name, memory, vendor) = match &shape.cards {
        None => (String::new(), String::new(), ""),
        Some(cards) => {
            let name = cards.gpu.name.split('-').next().unwrap().to_owned();
            (name, format!("{:.1}", cards.gpu.vram_gb.unwrap()), "nvidia")
        }
    };
    let spot = if spot { "True" } else { "False" };
    format!(
        "{ty},{zone},{price},{},{:.1},{gpus},{name},{memory},{spot},,{vendor},,x86,\"{{\"\"is_dws_calendar_mode\"\": false}}\"",
        shape.vcpus, shape.memory_gib
    )
}

fn answer(prices: &Prices, ty: &str, gpus: u32, zone: &str, spot: bool) -> Answer {
    prices.of(find(ty, gpus).unwrap(), zone, spot)
}

/// The price in micro-dollars, and whether it is of our list.
fn micros(prices: &Prices, ty: &str, gpus: u32, zone: &str, spot: bool) -> Option<(i64, bool)> {
    match answer(prices, ty, gpus, zone, spot) {
        Answer::Price(price) => Some((price.compute.micros(), price.is_listed)),
        Answer::NotSold | Answer::Unusable => None,
    }
}
