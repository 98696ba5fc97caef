//! Data centers and their two catalogue paths.
//!
//! Fields and filters are `DataCenter` and `listDataCenters` of `docs.runpod.io/api-reference-v2`. The country is
//! not on the wire; the catalogue's `countryCodes` needs it here.

use serde::Deserialize;
use serde_json::{Value, json};

use super::catalog::{BadQuery, Catalog, Stock};

/// One data center.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct DataCenter {
    pub(super) id: String,
    pub(super) name: String,
    region: String,
    pub(super) country: String,
    #[serde(default)]
    global_network: bool,
    #[serde(default)]
    network_volume_types: Vec<String>,
    #[serde(default)]
    compliance: Vec<String>,
}

impl DataCenter {
    /// As on the wire; the country is not part of it.
    pub(super) fn show(&self) -> Value {
        json!({"id": self.id, "name": self.name, "region": self.region, "globalNetwork": self.global_network,
               "networkVolumeTypes": self.network_volume_types, "compliance": self.compliance})
    }
}

const REGIONS: [&str; 9] = [
    "NORTH_AMERICA",
    "SOUTH_AMERICA",
    "EUROPE",
    "ASIA",
    "MIDDLE_EAST",
    "AFRICA",
    "OCEANIA",
    "ANTARCTICA",
    "UNKNOWN",
];

/// The query of the list; filters of one name are alternatives for regions, demands for the rest.
#[derive(Debug, Default)]
pub(super) struct PlaceQuery {
    gpus: bool,
    regions: Vec<String>,
    volumes: Vec<String>,
    compliance: Vec<String>,
    global: Option<bool>,
}

impl PlaceQuery {
    /// Reads it, words checked.
    pub(super) fn read(pairs: &[(String, String)]) -> Result<PlaceQuery, BadQuery> {
        let mut query = PlaceQuery::default();
        for (name, value) in pairs {
            let words: Vec<String> = value.split(',').map(str::to_owned).collect();
            let known = |all: &[&str]| words.iter().all(|word| all.contains(&word.as_str()));
            let good = match name.as_str() {
                "include" => known(&["GPU_AVAILABILITY", "CPU_AVAILABILITY"]),
                "regions" => known(&REGIONS),
                "networkVolumeTypes" => known(&["STANDARD", "HIGH_PERFORMANCE"]),
                "globalNetwork" => known(&["true", "false"]),
                _ => true,
            };
            if !good {
                return Err(BadQuery::Schema(format!("query parameter '{name}' is not valid")));
            }
            match name.as_str() {
                "include" => query.gpus |= words.iter().any(|word| word == "GPU_AVAILABILITY"),
                "regions" => query.regions.extend(words),
                "networkVolumeTypes" => query.volumes.extend(words),
                "compliance" => query.compliance.extend(words),
                "globalNetwork" => query.global = Some(value == "true"),
                _ => {}
            }
        }
        Ok(query)
    }

    fn takes(&self, dc: &DataCenter) -> bool {
        (self.regions.is_empty() || self.regions.contains(&dc.region))
            && self.volumes.iter().all(|kind| dc.network_volume_types.contains(kind))
            && self.compliance.iter().all(|kind| dc.compliance.contains(kind))
            && self.global.is_none_or(|global| global == dc.global_network)
    }
}

impl Catalog {
    /// `GET /v2/catalog/datacenters`.
    pub(super) fn places(&self, query: &PlaceQuery) -> Value {
        let shown = self.data_centers.iter().filter(|dc| query.takes(dc));
        json!({"dataCenters": shown.map(|dc| self.show_place(dc, query)).collect::<Vec<_>>()})
    }

    /// One data center, with the stock of its GPUs over all tiers when it is asked.
    pub(super) fn show_place(&self, dc: &DataCenter, query: &PlaceQuery) -> Value {
        let mut shown = dc.show();
        let mut stock = Vec::new();
        for gpu in self.gpus.iter().filter(|_| query.gpus) {
            let here = gpu.hosts.iter().filter(|host| host.dc.as_deref() == Some(dc.id.as_str()));
            if let Some(best) = here.map(|host| host.stock).max().filter(|best| *best > Stock::None) {
                stock.push(json!({"id": gpu.id, "name": gpu.name, "availability": best}));
            }
        }
        if !stock.is_empty() {
            shown["gpuAvailability"] = Value::Array(stock);
        }
        shown
    }
}
