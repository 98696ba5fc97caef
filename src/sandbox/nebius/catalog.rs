//! The catalogue: platforms, presets, regions, stock, images. Its rows are `catalog/nebius.json`.
//!
//! Prices are US dollars per hour: a platform's GPU price holds its vCPUs and memory, but for L40S and CPU-only
//! platforms, which sum up. Stock is in GPUs (CPU-only: in machines) and does not run out; quotas do. The traps:
//!
//! | row | what it plays |
//! |---|---|
//! | `gpu-h200-sxm` in us-central1, `gpu-b300-sxm` in us-north1 | nothing on demand, preemptible only; the second's advice is stale |
//! | `gpu-h200-sxm` in eu-west1 | on demand only |
//! | `gpu-b200-sxm-a`, `gpu-b300-sxm` in eu-west2 | plenty in stock, and a quota of zero |
//! | `gpu-l40s-*` | allowed for preemptibles, and without a spot price |
//! | `gpu-l40s-a` | its largest presets have more vCPUs than some want, and the same one GPU |
//! | `gpu-gb300` | arm64, four GPUs, no spot price |
//! | `gpu-rtx6000` | no RTX A6000 and no RTX 6000 Ada |
//! | `ubuntu24.04-cuda12` | no image for B300 and RTX PRO 6000 |

use std::collections::BTreeMap;
use std::io;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::sandbox::machine::Smi;

/// One image family, with its newest image.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Image {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) family: String,
    pub(super) human: String,
    /// Smallest disk, in GiB.
    pub(super) min_gib: i64,
    pub(super) labels: BTreeMap<String, String>,
    /// Whether it has a GPU driver.
    pub(super) driver: bool,
    pub(super) unsupported: Vec<String>,
}

/// One preset: name, GPUs, vCPUs, GiB of memory.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Preset(pub(super) String, pub(super) u32, pub(super) u32, pub(super) u32);

/// A platform in one region.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Site {
    pub(super) region: String,
    /// GPUs to be had on demand.
    pub(super) on_demand: u32,
    /// GPUs to be had as preemptible.
    pub(super) preemptible: u32,
    /// Quota of a new tenant, in GPUs, or in vCPUs.
    pub(super) quota: u64,
    /// Whether the advice is out of date.
    #[serde(default)]
    pub(super) stale: bool,
}

/// One platform.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Platform {
    pub(super) name: String,
    pub(super) long: String,
    pub(super) short: String,
    /// Name of the GPU in `nvidia-smi`.
    pub(super) smi: String,
    /// Memory of one GPU in MiB, as `nvidia-smi` has it.
    pub(super) mib: u64,
    /// Memory of one GPU in GB, as the API has it.
    pub(super) gigabytes: u32,
    pub(super) preemptible: bool,
    pub(super) usd_gpu: f64,
    pub(super) usd_vcpu: f64,
    pub(super) usd_gib: f64,
    /// Spot price of a GPU, where there is one.
    pub(super) spot: Option<f64>,
    /// Name of the quota that it counts against.
    pub(super) quota: String,
    #[serde(default)]
    pub(super) arm: bool,
    pub(super) presets: Vec<Preset>,
    pub(super) places: Vec<Site>,
}

impl Platform {
    /// A preset by its name.
    pub(super) fn preset(&self, name: &str) -> Option<&Preset> {
        self.presets.iter().find(|preset| preset.0 == name)
    }

    /// The platform in a region.
    pub(super) fn site(&self, region: &str) -> Option<&Site> {
        self.places.iter().find(|site| site.region == region)
    }

    /// US dollars per hour on demand.
    pub(super) fn price(&self, preset: &Preset) -> f64 {
        let Preset(_, gpus, vcpus, gib) = preset;
        f64::from(*gpus) * self.usd_gpu + f64::from(*vcpus) * self.usd_vcpu + f64::from(*gib) * self.usd_gib
    }

    /// The GPUs of a preset as `nvidia-smi` reports them.
    pub(super) fn smi(&self, preset: &Preset) -> Vec<Smi> {
        (0..preset.1).map(|_| Smi { name: self.smi.clone(), mib: self.mib }).collect()
    }

    /// As the API has it.
    pub(super) fn show(&self) -> Value {
        let presets: Vec<Value> = self
            .presets
            .iter()
            .map(|preset| {
                json!({"name": preset.0, "resources": resources(preset), "allow_gpu_clustering": preset.1 == 8})
            })
            .collect();
        let id = format!("computeplatform-e00{}", self.name.replace('-', ""));
        json!({
            "metadata": {"id": id, "parent_id": "project-e00publicimages", "name": self.name},
            "spec": {
                "presets": presets, "gpu_count_quota_type": if self.usd_gpu > 0.0 { &self.quota } else { "" },
                "human_readable_name": self.long, "short_human_readable_name": self.short,
                "gpu_memory_gigabytes": self.gigabytes,
            },
            "status": {"allowed_for_preemptibles": self.preemptible},
        })
    }
}

/// Resources of a preset, as several messages have them.
pub(super) fn resources(preset: &Preset) -> Value {
    json!({"vcpu_count": preset.2, "memory_gibibytes": preset.3, "gpu_count": preset.1})
}

/// A price as a decimal string.
pub(super) fn decimal(price: f64) -> String {
    let text = format!("{price:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The whole catalogue.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalog {
    pub(super) regions: Vec<String>,
    pub(super) images: Vec<Image>,
    pub(super) platforms: Vec<Platform>,
}

impl Catalog {
    /// Reads it.
    pub(super) fn load() -> io::Result<Catalog> {
        serde_json::from_str(include_str!("../catalog/nebius.json")).map_err(io::Error::other)
    }

    /// A platform by its name.
    pub(super) fn platform(&self, name: &str) -> Option<&Platform> {
        self.platforms.iter().find(|platform| platform.name == name)
    }

    /// The image of a family, or with an id.
    pub(super) fn image(&self, family: &str, id: &str) -> Option<&Image> {
        self.images.iter().find(|image| image.family == family || image.full_id() == id)
    }
}

impl Image {
    /// Its id.
    pub(super) fn full_id(&self) -> String {
        format!("computeimage-e00{}", self.id)
    }

    /// As the API has it.
    pub(super) fn show(&self, catalog: &Catalog) -> Value {
        let unsupported: serde_json::Map<String, Value> =
            self.unsupported.iter().map(|name| (name.clone(), json!("driver is too old"))).collect();
        let fits = |platform: &&super::catalog::Platform| {
            self.driver == (platform.usd_gpu > 0.0)
                && !platform.arm
                && !self.unsupported.contains(&platform.name)
        };
        let recommended: Vec<&str> =
            catalog.platforms.iter().filter(fits).map(|platform| platform.name.as_str()).collect();
        json!({
            "metadata": {
                "id": self.full_id(), "parent_id": "project-e00publicimages", "name": self.name, "labels": self.labels,
            },
            "spec": {
                "image_family": self.family, "version": "1", "cpu_architecture": "AMD64",
                "image_family_human_readable": self.human, "recommended_platforms": recommended,
                "unsupported_platforms": unsupported,
            },
            "status": {"state": "READY", "min_disk_size_bytes": self.min_gib << 30},
        })
    }
}
