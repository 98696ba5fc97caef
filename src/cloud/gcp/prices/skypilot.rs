//! SkyPilot's catalogue (github.com/skypilot-org/skypilot-catalog, catalogs/v8/gcp/vms.csv): rows of hosts, in whose prices
//! there is no GPU, and rows of GPUs by count. A machine is the sum of two rows of one zone (issue 31 there).
//!
//! It has every machine that is offered, but no local SSD, and several of its on-demand prices of GPUs are of another product:
//! they are replaced by those of our list (`guard.rs`).

use std::collections::{BTreeMap, HashMap};

use super::fields::{Rows, is_close};
use super::guard;
use super::parts::local_ssd;
use super::table::{Cell, Table};
use crate::cloud::gcp::places::region_of;
use crate::cloud::gcp::shapes::{Cards, Shape, shapes};
use crate::model::money::Usd;

/// The columns that are read.
const COLUMNS: [&str; 8] = [
    "InstanceType",
    "vCPUs",
    "MemoryGiB",
    "AcceleratorName",
    "AcceleratorCount",
    "AvailabilityZone",
    "Price",
    "SpotPrice",
];

const TYPE: usize = 0;
const VCPUS: usize = 1;
const MEMORY: usize = 2;
const GPU: usize = 3;
const COUNT: usize = 4;
const ZONE: usize = 5;
const PRICE: usize = 6;
const SPOT_PRICE: usize = 7;

/// Prices by zone.
type Zones = BTreeMap<String, Cell>;

/// Reads the CSV; an error says in what it is no catalogue.
pub(super) fn parse(text: &[u8]) -> Result<Table, String> {
    let hosts_known: HashMap<&str, &Shape> =
        shapes().iter().map(|shape| (shape.machine_type, shape)).collect();
    let mut hosts: HashMap<&str, Zones> = HashMap::new();
    let mut gpus: HashMap<(String, u32), Zones> = HashMap::new();
    Rows::new(text, &COLUMNS)?.each(|row| {
        let zone = row.text(ZONE);
        let read = Cell { on_demand: row.price(PRICE), spot: row.price(SPOT_PRICE), is_listed: false };
        if region_of(zone).is_none() || (read.on_demand, read.spot) == (None, None) {
            return;
        }
        let zones = match (row.text(TYPE), row.text(GPU)) {
            ("", "") => return,
            ("", gpu) => match row.count(COUNT) {
                Some(count @ 1..) => gpus.entry((gpu.to_owned(), count)).or_default(),
                _ => return,
            },
            (host, "") => match hosts_known.get(host) {
                Some(shape)
                    if is_close(row.number(VCPUS), f64::from(shape.vcpus))
                        && is_close(row.number(MEMORY), shape.memory_gib) =>
                {
                    hosts.entry(shape.machine_type).or_default()
                }
                _ => return,
            },
            _ => return,
        };
        let cell = zones.entry(zone.to_owned()).or_default();
        // As in `Table::note`.
        cell.on_demand = cell.on_demand.max(read.on_demand);
        cell.spot = cell.spot.max(read.spot);
    })?;
    let mut table = Table::default();
    for shape in shapes() {
        let Some(zones) = hosts.get(shape.machine_type) else { continue };
        let cards = match &shape.cards {
            None => None,
            Some(cards) => match gpus.get(&(cards.gpu.name.clone(), cards.count)) {
                Some(zones) => Some((cards, zones)),
                None => continue,
            },
        };
        for (zone, host) in zones {
            let machine = match cards {
                None => Some(bare(*host)),
                Some((cards, zones)) => {
                    zones.get(zone).map(|gpus| with_gpus(shape, cards, zone, *host, *gpus))
                }
            };
            if let Some(machine) = machine.filter(|cell| cell.on_demand.is_some() || cell.spot.is_some()) {
                *table.cell(shape, zone) = machine;
            }
        }
    }
    Ok(table)
}

/// A price of nothing is none.
fn bare(host: Cell) -> Cell {
    let real = |price: Option<Usd>| price.filter(|price| price.is_positive());
    Cell { on_demand: real(host.on_demand), spot: real(host.spot), is_listed: false }
}

fn with_gpus(shape: &Shape, cards: &Cards, zone: &str, host: Cell, gpus: Cell) -> Cell {
    let (on_demand, is_listed) = guard::gpus_on_demand(cards, zone, gpus.on_demand, gpus.spot);
    // The host of an a4 has no price of its own: its cards carry that of the whole machine.
    let whole = shape.family() == "a4";
    let sum = |host: Option<Usd>, gpus: Option<Usd>, spot| {
        let host = host.filter(|host| whole || host.is_positive())?;
        let gpus = gpus.filter(|gpus| gpus.is_positive())?;
        Some(host + gpus + local_ssd(if whole { 0 } else { shape.local_ssd_gib }, spot))
    };
    Cell {
        on_demand: sum(host.on_demand, on_demand, false),
        spot: sum(host.spot, gpus.spot, true),
        is_listed,
    }
}
