//! gpuhunt's catalogue (github.com/dstackai/gpuhunt): a zip with one CSV, a row for each machine, zone and kind of price,
//! rebuilt every hour from Google's list of SKUs. Prices are of whole machines with their GPUs, without boot disk.
//!
//! It has no H200 (its table of accelerators lacks the card), and of machines without GPUs only e2 and n2. The local SSD of
//! the small a3-highgpu types is not in its prices.

use std::collections::HashMap;

use serde_json::Value;

use super::fields::{Row, Rows, is_close};
use super::parts::local_ssd;
use super::table::Table;
use crate::cloud::gcp::places::region_of;
use crate::cloud::gcp::shapes::{Shape, shapes};
use crate::model::gpu::Gpu;
use crate::model::money::Usd;

/// The columns that are read.
const COLUMNS: [&str; 11] = [
    "instance_name",
    "location",
    "price",
    "cpu",
    "memory",
    "gpu_count",
    "gpu_name",
    "gpu_memory",
    "spot",
    "flags",
    "provider_data",
];

const NAME: usize = 0;
const ZONE: usize = 1;
const PRICE: usize = 2;
const CPU: usize = 3;
const MEMORY: usize = 4;
const COUNT: usize = 5;
const GPU: usize = 6;
const GPU_MEMORY: usize = 7;
const SPOT: usize = 8;
const FLAGS: usize = 9;
const DATA: usize = 10;

/// The flag of prices for time that is booked ahead ("Dynamic Workload Scheduler", calendar mode): not ours to buy.
const CALENDAR: &str = "gcp-dws-calendar-mode";

/// Reads the CSV; an error says in what it is no catalogue.
pub(super) fn parse(text: &[u8]) -> Result<Table, String> {
    let known: HashMap<(&str, u32), &Shape> =
        shapes().iter().map(|shape| ((shape.machine_type, shape.gpu_count()), shape)).collect();
    let mut table = Table::default();
    let mut names = Names::new();
    Rows::new(text, &COLUMNS)?.each(|row| {
        let shape = row.count(COUNT).and_then(|count| known.get(&(row.text(NAME), count)));
        let Some(shape) = shape.filter(|shape| is_it(&row, shape, &mut names)) else { return };
        let (zone, spot) = (row.text(ZONE), flag(row.text(SPOT)));
        let price = row.price(PRICE).filter(|price| price.is_positive());
        if let (Some(_), Some(spot), Some(price)) = (region_of(zone), spot, price) {
            table.note(shape, zone, spot, price + missing_ssd(shape, spot));
        }
    })?;
    Ok(table)
}

/// Cards as we name them, by what rows say: there are thousands of rows and a handful of cards.
type Names = HashMap<String, String>;

/// Whether the row is about that machine, at a price at which it can be had.
fn is_it(row: &Row<'_>, shape: &Shape, names: &mut Names) -> bool {
    let gpu = shape.cards.as_ref().is_none_or(|cards| {
        let name = names.entry(format!("{} {}", row.text(GPU), row.text(GPU_MEMORY)));
        let name = name.or_insert_with(|| Gpu::identify(row.text(GPU), row.number(GPU_MEMORY)).name);
        *name == cards.gpu.name
    });
    gpu && is_close(row.number(CPU), f64::from(shape.vcpus))
        && is_close(row.number(MEMORY), shape.memory_gib)
        && !is_booked_ahead(row)
}

fn is_booked_ahead(row: &Row<'_>) -> bool {
    if row.text(FLAGS).split_whitespace().any(|flag| flag == CALENDAR) {
        return true;
    }
    let data = row.text(DATA);
    // What cannot be read may say that it is: then it is no price to show.
    match serde_json::from_str::<Value>(data) {
        Ok(data) => !matches!(data["is_dws_calendar_mode"], Value::Null | Value::Bool(false)),
        Err(_) => !data.is_empty(),
    }
}

fn missing_ssd(shape: &Shape, spot: bool) -> Usd {
    let has =
        shape.kind() == "a2-ultragpu" || shape.machine_type == "a3-highgpu-8g" || shape.family() == "a4";
    local_ssd(if has { 0 } else { shape.local_ssd_gib }, spot)
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "True" | "true" => Some(true),
        "False" | "false" => Some(false),
        _ => None,
    }
}
