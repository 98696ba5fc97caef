//! Prices of whole machines by zone, as a catalogue tells them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cloud::gcp::shapes::{Shape, shapes};
use crate::model::money::Usd;

/// What one machine costs per hour in one zone, GPUs and local SSD included, without boot disk and address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cell {
    /// On demand.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub(super) on_demand: Option<Usd>,
    /// As spot.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(super) spot: Option<Usd>,
    /// Whether the price on demand is made with one of our own list, because the catalogue's cannot be right.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_listed: bool,
}

/// A catalogue, cut to the machines that are offered. A format of the cache: see `source.rs` for its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Table(BTreeMap<String, BTreeMap<String, Cell>>);

impl Table {
    /// Returns the prices of a machine in a zone.
    pub(super) fn get(&self, shape: &Shape, zone: &str) -> Option<Cell> {
        self.0.get(&name(shape))?.get(zone).copied()
    }

    /// Whether the machine is in it at all.
    pub(super) fn has(&self, shape: &Shape) -> bool {
        self.0.contains_key(&name(shape))
    }

    /// Returns the zones of a machine with their prices.
    pub(super) fn zones(&self, shape: &Shape) -> impl Iterator<Item = (&str, Cell)> {
        self.0.get(&name(shape)).into_iter().flatten().map(|(zone, cell)| (zone.as_str(), *cell))
    }

    /// Notes a price. Of two for the same the higher counts: one of them is wrong, and a wrong low price would come first.
    pub(super) fn note(&mut self, shape: &Shape, zone: &str, spot: bool, price: Usd) {
        let cell = self.cell(shape, zone);
        let slot = if spot { &mut cell.spot } else { &mut cell.on_demand };
        *slot = (*slot).max(Some(price));
    }

    /// Returns the prices of a machine in a zone, to be written.
    pub(super) fn cell(&mut self, shape: &Shape, zone: &str) -> &mut Cell {
        self.0.entry(name(shape)).or_default().entry(zone.to_owned()).or_default()
    }

    /// How many prices there are.
    pub(super) fn len(&self) -> usize {
        let prices = |cell: &Cell| usize::from(cell.on_demand.is_some()) + usize::from(cell.spot.is_some());
        self.0.values().flat_map(BTreeMap::values).map(prices).sum()
    }

    /// Returns every machine of ours that is in it.
    pub(super) fn shapes(&self) -> impl Iterator<Item = &'static Shape> {
        shapes().iter().filter(|shape| self.has(shape))
    }
}

fn name(shape: &Shape) -> String {
    format!("{} {}", shape.machine_type, shape.gpu_count())
}
