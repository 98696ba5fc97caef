//! Prices that cannot be right: a list of Google's own unit prices on demand, and what a catalogue's price is worth beside it.
//!
//! A price that is too low would come first in the list and be bought; one that is too high only comes last. So the guard
//! looks down: on demand below 0.7 of the list or, for GPUs, not above the same row's spot price, is replaced by the list's
//! and told to be; where the list has no price for the region, the machine is left out. Spot prices move, up to a discount of
//! 91 % (cloud.google.com/compute/docs/instances/spot); below 6 % of the price on demand is none.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use jiff::Timestamp;

use super::parts::local_ssd;
use super::table::{Cell, Table};
use crate::cloud::gcp::places::region_of;
use crate::cloud::gcp::shapes::{Cards, Shape, rows};
use crate::model::money::Usd;

/// The list; the file says where it is from.
const LIST: &str = include_str!("../data/list-prices.csv");

/// When the list was noted.
pub(super) const LIST_DATE: Timestamp = Timestamp::constant(1_795_996_800, 0);

/// A vCPU on demand costs no less in any family that is offered.
const LEAST_VCPU: Usd = Usd::from_micros(17_000);

/// Unit prices: by what they are of and the region.
type List = HashMap<(&'static str, &'static str), (Usd, Usd)>;

fn list() -> &'static List {
    static PRICES: LazyLock<List> = LazyLock::new(|| {
        let price = |text: &str| text.parse().ok().and_then(Usd::from_f64);
        let entry = |row: Vec<&'static str>| match row[..] {
            [what, region, core, gib] => Some(((what, region), (price(core)?, price(gib)?))),
            _ => None,
        };
        rows(LIST).filter_map(entry).collect()
    });
    &PRICES
}

/// What became of a catalogue's prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    /// On demand, and whether it is of our list.
    pub(super) on_demand: Option<(Usd, bool)>,
    /// As spot.
    pub(super) spot: Option<Usd>,
    /// Whether the price on demand, and whether the spot price, cannot be right and has no other in its place.
    pub(super) is_refused: [bool; 2],
}

/// Looks at the prices of a machine in a zone.
pub(super) fn judge(shape: &Shape, zone: &str, cell: Cell) -> Judged {
    let region = region_of(zone).unwrap_or_default();
    let here = listed(shape, region);
    let known = here.or_else(|| cheapest(shape));
    let mut judged = Judged::default();
    if let Some(price) = cell.on_demand.filter(|price| price.is_positive() && shape.on_demand) {
        let floor = known.map_or(LEAST_VCPU.times(shape.vcpus), |list| part(list, 70));
        let below_spot = shape.cards.is_some() && cell.spot.is_some_and(|spot| price <= spot);
        judged.on_demand = match here {
            _ if price >= floor && !below_spot => Some((price, cell.is_listed)),
            Some(list) => Some((list, true)),
            None => None,
        };
        judged.is_refused[0] = judged.on_demand.is_none();
    }
    let beside = judged.on_demand.map(|(price, _)| price);
    let least = known.or(beside).map_or(Usd::ZERO, |on_demand| part(on_demand, 6));
    judged.spot = cell.spot.filter(|price| price.is_positive() && *price >= least);
    judged.is_refused[1] = cell.spot.is_some() && judged.spot.is_none();
    judged
}

/// Returns what GPUs cost on demand where a catalogue prices them apart, and whether that is of our list.
pub(super) fn gpus_on_demand(
    cards: &Cards,
    zone: &str,
    told: Option<Usd>,
    spot: Option<Usd>,
) -> (Option<Usd>, bool) {
    let (Some(price), Some(region)) = (told, region_of(zone)) else { return (told, false) };
    match unit(&cards.gpu.name, region).map(|(one, _)| one.times(cards.count)) {
        Some(list) if price < part(list, 70) || spot.is_some_and(|spot| price <= spot) => (Some(list), true),
        _ => (told, false),
    }
}

/// Says why a catalogue is none to go by: more than half of the prices that the list knows are far off. A few wrong ones are
/// what is known of it, and are dealt with one by one.
pub(super) fn refuse(table: &Table) -> Result<(), String> {
    for with_gpus in [true, false] {
        let (mut looked_at, mut off) = (0_usize, 0_usize);
        for shape in table.shapes().filter(|shape| shape.cards.is_some() == with_gpus && shape.on_demand) {
            for (zone, cell) in table.zones(shape) {
                let list = region_of(zone).and_then(|region| listed(shape, region));
                let (Some(list), Some(price)) = (list, cell.on_demand) else { continue };
                looked_at += 1;
                let fits = part(list, 70) <= price && price <= list.times(3) && !cell.is_listed;
                off += usize::from(!fits);
            }
        }
        if off * 2 > looked_at {
            return Err(format!("{off} of the {looked_at} prices that can be checked are far off"));
        }
    }
    Ok(())
}

/// Returns the list price of a machine on demand in a region, local SSD included.
fn listed(shape: &Shape, region: &str) -> Option<Usd> {
    let host = match shape.family() {
        // Its cards carry the price of the whole machine.
        "a4" => Usd::ZERO,
        family => {
            let (core, gib) = unit(shape.kind(), region).or_else(|| unit(family, region))?;
            core.times(shape.vcpus) + Usd::from_f64(gib.as_f64() * shape.memory_gib)?
        }
    };
    let cards = match &shape.cards {
        Some(cards) => unit(&cards.gpu.name, region)?.0.times(cards.count),
        None => Usd::ZERO,
    };
    let ssd = if shape.family() == "a4" { 0 } else { shape.local_ssd_gib };
    Some(host + cards + local_ssd(ssd, false))
}

/// Returns the lowest list price of a machine in any region.
fn cheapest(shape: &Shape) -> Option<Usd> {
    static REGIONS: LazyLock<BTreeSet<&'static str>> =
        LazyLock::new(|| list().keys().map(|(_, region)| *region).collect());
    REGIONS.iter().filter_map(|region| listed(shape, region)).min()
}

fn unit(what: &str, region: &str) -> Option<(Usd, Usd)> {
    list().get(&(what, region)).copied()
}

/// `percent` hundredths of a price.
fn part(price: Usd, percent: u32) -> Usd {
    Usd::from_micros(price.times(percent).micros() / 100)
}
