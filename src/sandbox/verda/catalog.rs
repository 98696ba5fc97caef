//! The catalogue: instance types, images, locations, volume types, and the answers of the calls that list them.
//!
//! The rows are `catalog/verda.json`. Stock does not run out. The traps:
//!
//! | row | what it plays |
//! |---|---|
//! | `1H100.80S.30V.CC`, `1RTXPRO6000.30V.CC` | confidential computing: no CUDA for ordinary programs; the first is the cheapest H100 |
//! | B200, `8A100.176V`, `8RTXPRO6000.240V` | spot only, so the on-demand list alone hides them |
//! | `1L40S.20V`, `4RTXPRO6000.120V`, `CPU.32V.128G` | on demand only |
//! | `1H100.80S.30V` on demand | in FIN-02, where nothing else of that GPU is |
//! | `1V100.6V` in FIN-03, `2V100.10V` | listed there, and every create is 503 with another sentence |
//! | `1A6000.10V` | refuses the two newest images of its own list; the third works |
//! | `2A6000.20V` | refuses four of five |
//! | `1A100.40S.22V` | ends as `installation_failed` |
//! | `1L40S.20V` | accepted, then `no_capacity` |
//! | A100 | 40 and 80 GB have one model name |
//! | B300 | memory that no multiple fits: 262, 525, 1050 for a name that says 268 |
//! | RTX 6000 Ada | spelt in two ways |
//! | `1H200.141S.44V` in SWE-01 | a location that is in no list of locations |
//! | V100 | no image with CUDA but `jupyter` |
//! | CPU types | their list has a CUDA image too |
//! | images | two naming schemes, 26.04 first, clusters, Kubernetes, `verda-gpureset`, Debian |
//! | `17900XTX.10V` | AMD |
//! | `1GB300.36V` | an ARM64 host, which no field says |
//! | RTX NOVA 9000 | a name that no table knows |
//!
//! Facts: the API document at `api.verda.com/v1/docs`, and prices of September 2026.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::sandbox::faults::FaultKind;
use crate::sandbox::machine::Smi;
use crate::sandbox::scripts::Script;
use crate::sandbox::verda::trouble::VerdaFault;

/// Euros for a dollar, for who asks in euros.
const EUROS: f64 = 0.86;

/// The whole data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalog {
    locations: Vec<Location>,
    volume_types: Vec<Value>,
    images: Vec<Image>,
    image_sets: BTreeMap<String, Vec<String>>,
    pub(super) types: Vec<Kind>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Location {
    code: String,
    name: String,
    country_code: String,
}

/// One image.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Image {
    pub(super) id: String,
    pub(super) image_type: String,
    pub(super) name: String,
    is_default: bool,
    is_cluster: bool,
    details: Vec<String>,
    category: String,
}

/// One instance type.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kind {
    pub(super) code: String,
    model: String,
    pub(super) name: String,
    pub(super) gpus: u32,
    /// GB of all GPUs together.
    gpu_memory: u64,
    pub(super) vcpus: u32,
    memory: u64,
    /// US dollars per hour for the whole machine, as text.
    price: String,
    spot: String,
    /// Name of its list of images.
    images: String,
    /// Locations with stock on demand, and for spot.
    on_demand: Vec<String>,
    spot_in: Vec<String>,
    #[serde(default = "nvidia")]
    manufacturer: String,
    display_name: Option<String>,
    p2p: Option<String>,
    cpu_model: Option<String>,
    deploy_warning: Option<String>,
    /// Images of its list that a create refuses.
    #[serde(default)]
    pub(super) wrong_images: Vec<String>,
    /// Locations where every create is refused although they are listed.
    #[serde(default)]
    pub(super) refuse_in: Vec<String>,
    /// How its machines behave.
    pub(super) behaves: Option<Script>,
}

fn nvidia() -> String {
    "NVIDIA".into()
}

impl Kind {
    /// US dollars per hour for the whole machine.
    pub(super) fn price(&self, spot: bool) -> f64 {
        if spot { &self.spot } else { &self.price }.parse().unwrap_or(0.0)
    }

    /// Whether it is in stock there.
    pub(super) fn in_stock(&self, location: &str, spot: bool) -> bool {
        let places = if spot { &self.spot_in } else { &self.on_demand };
        places.iter().any(|place| place == location)
    }

    /// What `nvidia-smi` shows.
    pub(super) fn smi(&self) -> Vec<Smi> {
        let gpus = u64::from(self.gpus);
        let gb = self.gpu_memory.checked_div(gpus).unwrap_or(0);
        (0..gpus).map(|_| Smi { name: format!("NVIDIA {}", self.name), mib: gb * 1024 }).collect()
    }

    /// The parts that a type and its instances show alike.
    pub(super) fn parts(&self) -> Value {
        let mut cpu = json!({"description": format!("{} CPU", self.vcpus), "number_of_cores": self.vcpus});
        if let Some(model) = &self.cpu_model {
            cpu["model"] = json!(model);
        }
        let gpu = if self.gpus == 0 { String::new() } else { format!("{}x {}", self.gpus, self.name) };
        let memory = match self.gpu_memory {
            0 => String::new(),
            gb => format!("{gb}GB GPU RAM"),
        };
        json!({
            "cpu": cpu,
            "gpu": {"description": gpu, "number_of_gpus": self.gpus},
            "gpu_memory": {"description": memory, "size_in_gigabytes": self.gpu_memory},
            "memory": {"description": format!("{}GB RAM", self.memory), "size_in_gigabytes": self.memory},
            "storage": {"description": "dynamic"},
        })
    }
}

impl Catalog {
    /// Reads the rows that are built in.
    pub(super) fn load() -> io::Result<Catalog> {
        serde_json::from_str(include_str!("../catalog/verda.json")).map_err(io::Error::from)
    }

    /// A type by its code.
    pub(super) fn kind(&self, code: &str) -> Option<&Kind> {
        self.types.iter().find(|kind| kind.code == code)
    }

    /// Whether a location exists, listed or not.
    pub(super) fn knows_location(&self, code: &str) -> bool {
        self.codes().iter().any(|known| known == code)
    }

    /// An image that this type can have, by its type or id.
    pub(super) fn image(&self, kind: &Kind, name: &str) -> Option<&Image> {
        let names = self.image_sets.get(&kind.images)?;
        self.images
            .iter()
            .find(|image| (image.image_type == name || image.id == name) && names.contains(&image.image_type))
    }

    /// `GET /instance-types`.
    pub(super) fn show_types(&self, currency: &str, faults: &[FaultKind]) -> Value {
        let mut factor = if currency == "eur" { EUROS } else { 1.0 };
        let mut currency = currency;
        for fault in faults {
            match fault {
                FaultKind::PriceFactor { factor: more } => factor *= more,
                FaultKind::Verda(VerdaFault::Euros) => (factor, currency) = (factor * EUROS, "eur"),
                _ => {}
            }
        }
        let rows = self.types.iter().enumerate();
        rows.map(|(row, kind)| self.show_type(row, kind, currency, factor)).collect()
    }

    fn show_type(&self, row: usize, kind: &Kind, currency: &str, factor: f64) -> Value {
        let money = |text: &String| {
            if (factor - 1.0).abs() < f64::EPSILON {
                return text.clone();
            }
            let exact = text.parse::<f64>().unwrap_or(0.0) * factor;
            ((exact * 10_000.0).round() / 10_000.0).to_string()
        };
        let mut shown = kind.parts();
        let own = json!({
            "id": format!("60006000-{row:04x}-47af-8ff0-600060006001"), "instance_type": kind.code,
            "best_for": [], "deploy_warning": kind.deploy_warning, "description": "Dedicated Hardware Instance",
            "model": kind.model, "name": kind.name, "p2p": kind.p2p, "manufacturer": kind.manufacturer,
            "display_name": kind.display_name, "currency": currency,
            "price_per_hour": money(&kind.price), "spot_price": money(&kind.spot),
            "dynamic_price": null, "max_dynamic_price": money(&kind.price),
            "supported_os": self.image_sets.get(&kind.images),
        });
        if let (Value::Object(shown), Value::Object(own)) = (&mut shown, own) {
            shown.extend(own);
        }
        shown
    }

    /// `GET /instance-availability`: every location, also those without stock.
    pub(super) fn availability(&self, spot: bool, only: Option<&str>, stale: bool) -> Value {
        let codes = self.codes();
        let asked = codes.iter().filter(|code| only.is_none_or(|only| only == code.as_str()));
        asked
            .map(|code| {
                let here = self.types.iter().filter(|kind| !stale && kind.in_stock(code, spot));
                let names: Vec<&str> = here.map(|kind| kind.code.as_str()).collect();
                json!({"location_code": code, "availabilities": names})
            })
            .collect()
    }

    /// Whether a type is in stock, anywhere or in one location.
    pub(super) fn available(&self, kind: &Kind, spot: bool, only: Option<&str>) -> bool {
        self.codes()
            .iter()
            .any(|code| only.is_none_or(|only| only == code.as_str()) && kind.in_stock(code, spot))
    }

    /// Codes of all locations; the last have no row.
    fn codes(&self) -> Vec<String> {
        let mut codes: Vec<String> = self.locations.iter().map(|place| place.code.clone()).collect();
        for code in self.types.iter().flat_map(|kind| kind.on_demand.iter().chain(&kind.spot_in)) {
            if !codes.contains(code) {
                codes.push(code.clone());
            }
        }
        codes
    }

    /// `GET /locations`.
    pub(super) fn show_locations(&self) -> Value {
        json!(self.locations)
    }

    /// `GET /volume-types`.
    pub(super) fn show_volume_types(&self, currency: &str) -> Value {
        let mut shown = self.volume_types.clone();
        if currency == "eur" {
            for kind in &mut shown {
                let price = kind["price"]["price_per_month_per_gb"].as_f64().unwrap_or(0.0);
                kind["price"]["price_per_month_per_gb"] = json!(price * EUROS);
                kind["price"]["currency"] = json!("eur");
            }
        }
        Value::Array(shown)
    }

    /// `GET /images`: those of one type in that type's order, or all; nothing for an unknown type.
    pub(super) fn show_images(&self, code: Option<&str>) -> Option<Value> {
        let Some(code) = code else { return Some(json!(self.images)) };
        let names = self.image_sets.get(&self.kind(code)?.images)?;
        let find = |name: &String| self.images.iter().find(|image| image.image_type == *name);
        Some(json!(names.iter().filter_map(find).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hang_together() {
        let catalog = Catalog::load().unwrap();
        for kind in &catalog.types {
            let names = catalog.image_sets.get(&kind.images).unwrap();
            assert!(names.iter().all(|name| catalog.image(kind, name).is_some()), "{}", kind.code);
            assert!(kind.wrong_images.iter().all(|name| names.contains(name)), "{}", kind.code);
            assert!(kind.price(false) > kind.price(true) && kind.price(true) > 0.0, "{}", kind.code);
        }
    }
}
