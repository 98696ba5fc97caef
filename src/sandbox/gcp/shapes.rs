//! What can be rented where: machine types, GPUs, zones, images.
//!
//! Rows are in `catalog/gcp-gpu-shapes.csv`, `catalog/gcp-cpu-shapes.csv` (facts of
//! <https://cloud.google.com/compute/docs/accelerator-optimized-machines> and the machine family pages, November 2026) and
//! `catalog/gcp.json`. Stock does not run out by itself. The traps:
//!
//! | row | what it plays |
//! |---|---|
//! | a3-highgpu-1g, -2g, -4g, a3-ultragpu, a4 | spot only: on demand they are accepted, and there is no capacity |
//! | a3-ultragpu, a4 | no `pd-balanced` disk |
//! | T4 | a GPU that is attached to n1 types, up to so many for so many vCPUs |
//! | `nvidia-tesla-t4-vws` | a workstation licence of the same GPU |
//! | `common-cu124-debian-11` | a family that is retired |
//! | us-central1-f and others | zones that price lists of the usual zones do not have |

use std::collections::BTreeMap;
use std::io;

use serde::Deserialize;

use super::names::region_of;
use crate::sandbox::machine::Smi;

/// GPUs that are built into a machine type.
#[derive(Debug, Clone)]
pub(super) struct Bundle {
    pub(super) accelerator: String,
    pub(super) count: u32,
}

/// One machine type.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) vcpus: u32,
    pub(super) mib: u64,
    pub(super) zones: Vec<String>,
    pub(super) bundle: Option<Bundle>,
    /// Partitions of 375 GiB that come with it.
    pub(super) ssds: u32,
    /// The boot disk that it takes for sure.
    pub(super) disk: String,
    pub(super) spot_only: bool,
}

impl Shape {
    /// Its family, such as `g2`.
    pub(super) fn family(&self) -> &str {
        self.name.split('-').next().unwrap_or_default()
    }

    /// Whether it takes a boot disk of this type.
    pub(super) fn takes(&self, disk: &str) -> bool {
        let new = self.disk == "hyperdisk-balanced";
        match disk {
            "hyperdisk-balanced" => new || matches!(self.family(), "c3" | "c3d" | "a3"),
            "pd-balanced" | "pd-ssd" => !new,
            "pd-standard" => matches!(self.family(), "n1" | "n2" | "n2d" | "e2" | "a2"),
            _ => false,
        }
    }
}

/// One kind of GPU.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Accelerator {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) most: u32,
    smi: String,
    #[serde(skip)]
    pub(super) gib: u64,
    #[serde(skip)]
    pub(super) zones: Vec<String>,
    /// Metric on demand, and for spot.
    #[serde(skip)]
    pub(super) metrics: (String, String),
}

impl Accelerator {
    /// What `nvidia-smi` shows of so many.
    pub(super) fn smi(&self, count: u32) -> Vec<Smi> {
        (0..count).map(|_| Smi { name: self.smi.clone(), mib: self.gib * 1024 }).collect()
    }
}

/// One image.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Image {
    pub(super) project: String,
    pub(super) family: String,
    pub(super) name: String,
    pub(super) gb: u64,
    pub(super) created: String,
    /// `DEPRECATED` (still works) or `OBSOLETE` (does not).
    pub(super) deprecated: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    zones: Vec<String>,
    more_t4_zones: Vec<String>,
    accelerators: Vec<Accelerator>,
    images: Vec<Image>,
}

#[derive(Debug, Deserialize)]
struct GpuRow {
    #[serde(rename = "type")]
    name: String,
    accelerator: String,
    gpus: u32,
    gpu_gib: u64,
    vcpus: u32,
    gib: f64,
    ssds: u32,
    disk: String,
    consumption: String,
    attach: String,
    quota: String,
    spot_quota: String,
    zones: String,
}

#[derive(Debug, Deserialize)]
struct CpuRow {
    #[serde(rename = "type")]
    name: String,
    vcpus: u32,
    gib: f64,
    regions: String,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Shapes {
    pub(super) all: BTreeMap<String, Shape>,
    /// Machine types that take GPUs of a kind, with the numbers that they take.
    attach: BTreeMap<(String, String), Vec<u32>>,
    pub(super) accelerators: Vec<Accelerator>,
    pub(super) zones: Vec<String>,
    pub(super) images: Vec<Image>,
}

fn mib(gib: f64) -> u64 {
    // Machine types have quarters of a GiB at the finest, so this is exact.
    format!("{:.0}", gib * 1024.0).parse().unwrap_or(0)
}

impl Shapes {
    /// Reads the rows that are built in.
    pub(super) fn load() -> io::Result<Shapes> {
        let file: File = serde_json::from_str(include_str!("../catalog/gcp.json"))?;
        let mut shapes = Shapes {
            all: BTreeMap::new(),
            attach: BTreeMap::new(),
            accelerators: file.accelerators,
            zones: file.zones,
            images: file.images,
        };
        let mut rows = csv::Reader::from_reader(include_str!("../catalog/gcp-gpu-shapes.csv").as_bytes());
        for row in rows.deserialize() {
            shapes.enter(row.map_err(io::Error::other)?);
        }
        let mut rows = csv::Reader::from_reader(include_str!("../catalog/gcp-cpu-shapes.csv").as_bytes());
        for row in rows.deserialize() {
            let row: CpuRow = row.map_err(io::Error::other)?;
            let regions: Vec<&str> = row.regions.split(' ').collect();
            let zones =
                shapes.zones.iter().filter(|zone| regions.contains(&region_of(zone))).cloned().collect();
            let shape = Shape {
                name: row.name.clone(),
                vcpus: row.vcpus,
                mib: mib(row.gib),
                zones,
                bundle: None,
                ssds: 0,
                disk: "pd-balanced".into(),
                spot_only: false,
            };
            shapes.all.insert(row.name, shape);
        }
        for accelerator in &mut shapes.accelerators {
            if accelerator.name.starts_with("nvidia-tesla-t4") {
                accelerator.zones.extend(file.more_t4_zones.iter().cloned());
            }
        }
        Ok(shapes)
    }

    fn enter(&mut self, row: GpuRow) {
        let bundled = row.attach == "bundled";
        let zones: Vec<String> = row.zones.split(' ').map(str::to_owned).collect();
        for accelerator in &mut self.accelerators {
            if accelerator.name.strip_suffix("-vws").unwrap_or(&accelerator.name) == row.accelerator {
                accelerator.gib = row.gpu_gib;
                if row.quota.is_empty() {
                    // H200 and B200 have no metric in the API; this one is never shown.
                    let hidden =
                        accelerator.name.trim_start_matches("nvidia-").to_uppercase().replace('-', "_");
                    accelerator.metrics =
                        (format!("NVIDIA_{hidden}"), format!("PREEMPTIBLE_NVIDIA_{hidden}"));
                } else {
                    accelerator.metrics = (row.quota.clone(), row.spot_quota.clone());
                }
                let new = zones.iter().filter(|zone| !accelerator.zones.contains(zone)).cloned();
                let new: Vec<String> = new.collect();
                accelerator.zones.extend(new);
            }
        }
        if !bundled {
            let counts = self.attach.entry((row.name.clone(), row.accelerator.clone())).or_default();
            counts.push(row.gpus);
        }
        let everywhere = || self.zones.clone();
        self.all.entry(row.name.clone()).or_insert_with(|| Shape {
            name: row.name.clone(),
            vcpus: row.vcpus,
            mib: mib(row.gib),
            zones: if bundled { zones } else { everywhere() },
            bundle: bundled.then(|| Bundle { accelerator: row.accelerator.clone(), count: row.gpus }),
            ssds: row.ssds,
            disk: row.disk.clone(),
            spot_only: row.consumption == "spot",
        });
    }

    /// A machine type that is sold in a zone.
    pub(super) fn there(&self, name: &str, zone: &str) -> Option<&Shape> {
        self.all.get(name).filter(|shape| shape.zones.iter().any(|known| known == zone))
    }

    /// A kind of GPU.
    pub(super) fn accelerator(&self, name: &str) -> Option<&Accelerator> {
        self.accelerators.iter().find(|known| known.name == name)
    }

    /// Whether so many GPUs of a kind may be attached to a machine type.
    pub(super) fn attaches(&self, shape: &str, accelerator: &str, count: u32) -> bool {
        let key = (shape.to_owned(), accelerator.trim_end_matches("-vws").to_owned());
        self.attach.get(&key).is_some_and(|counts| counts.contains(&count))
    }

    /// All regions, in the order of their zones.
    pub(super) fn regions(&self) -> Vec<&str> {
        let mut regions: Vec<&str> = self.zones.iter().map(|zone| region_of(zone)).collect();
        regions.dedup();
        regions
    }

    /// Whether there is such a zone.
    pub(super) fn has_zone(&self, zone: &str) -> bool {
        self.zones.iter().any(|known| known == zone)
    }

    /// An image by its name.
    pub(super) fn image(&self, project: &str, name: &str) -> Option<&Image> {
        self.images.iter().find(|image| image.project == project && image.name == name)
    }

    /// The newest image of a family that is not retired.
    pub(super) fn family(&self, project: &str, family: &str) -> Option<&Image> {
        let mine = self.images.iter().filter(|image| image.project == project && image.family == family);
        mine.filter(|image| image.deprecated.is_none()).max_by_key(|image| &image.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hang_together() {
        let shapes = Shapes::load().unwrap();
        for shape in shapes.all.values() {
            assert!(shape.zones.iter().all(|zone| shapes.has_zone(zone)), "{}", shape.name);
            assert!(shape.takes(&shape.disk), "{}", shape.name);
            if let Some(bundle) = &shape.bundle {
                let accelerator = shapes.accelerator(&bundle.accelerator).unwrap();
                assert!(accelerator.gib > 0 && accelerator.most >= bundle.count, "{}", shape.name);
                assert!(shape.zones.iter().all(|zone| accelerator.zones.contains(zone)), "{}", shape.name);
            }
        }
        assert!(shapes.attaches("n1-standard-4", "nvidia-tesla-t4", 1));
        assert!(!shapes.attaches("n1-standard-96", "nvidia-tesla-t4", 1), "too many vCPUs for one");
        assert!(!shapes.attaches("n2-standard-4", "nvidia-tesla-t4", 1));
        assert_eq!(shapes.there("g2-standard-4", "us-central1-a").map(|shape| shape.mib), Some(16384));
        assert!(shapes.there("g2-standard-4", "us-east4-b").is_none());
        assert!(shapes.there("c3d-highmem-360", "europe-west4-a").is_some());
        assert!(shapes.family("deeplearning-platform-release", "common-cu124-debian-11").is_none());
    }
}
