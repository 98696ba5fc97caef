//! The machines that are offered: what they hold, what they boot from, how they are sold.
//!
//! The tables are data files, because Google has no call that tells all of it; whether a zone has a machine is what the
//! catalogues of prices say, and what the re-check asks.

use std::sync::LazyLock;

use crate::model::gpu::Gpu;

/// Machines with GPUs; the file says where its figures are from.
const GPU_SHAPES: &str = include_str!("data/gpu-shapes.csv");

/// Machines without; the file says where its figures are from.
const CPU_SHAPES: &str = include_str!("data/cpu-shapes.csv");

/// The boot disk of everything that takes it.
const PD_BALANCED: &str = "pd-balanced";

/// Hosts of T4 cards with less memory than this are offered to those who name them: the driver and a desktop's worth of CUDA
/// do not fit beside each other.
const LEAST_HOST_GIB: f64 = 7.0;

/// The hosts of T4 cards that are offered to those who ask for neither vCPUs nor memory.
const USUAL_HOSTS: [(&str, u32); 5] = [
    ("n1-standard-4", 1),
    ("n1-standard-8", 1),
    ("n1-standard-16", 2),
    ("n1-standard-32", 4),
    ("n1-standard-64", 4),
];

/// A machine that can be had.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    /// Google's exact type.
    pub(super) machine_type: &'static str,
    /// Its GPUs; none for a machine without.
    pub(super) cards: Option<Cards>,
    /// vCPUs of the whole machine.
    pub(super) vcpus: u32,
    /// Memory of the whole machine in GiB.
    pub(super) memory_gib: f64,
    /// Local SSD in GiB that attaches by itself and is billed; 0 for most.
    pub(super) local_ssd_gib: u32,
    /// The type of its boot disk: `pd-balanced` or `hyperdisk-balanced`.
    pub(super) boot_disk: &'static str,
    /// Whether it can be had on demand; every machine can be had as spot.
    pub(super) on_demand: bool,
    /// The quota that its GPUs, or without GPUs its vCPUs, count against, on demand; none where the API tells none.
    pub(super) quota: Option<&'static str>,
}

/// The GPUs of a machine, all of one model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cards {
    /// The model; its `raw` is Google's accelerator type.
    pub(super) gpu: Gpu,
    /// How many.
    pub(super) count: u32,
    /// Whether the type takes cards (n1), rather than having them: then a create names them.
    pub(super) attached: bool,
}

impl Shape {
    /// How many GPUs, 0 for none.
    pub(super) fn gpu_count(&self) -> u32 {
        self.cards.as_ref().map_or(0, |cards| cards.count)
    }

    /// `g2` of `g2-standard-4`.
    pub(super) fn family(&self) -> &'static str {
        self.machine_type.split('-').next().unwrap_or(self.machine_type)
    }

    /// `e2-standard` of `e2-standard-4`.
    pub(super) fn kind(&self) -> &'static str {
        self.machine_type.rsplit_once('-').map_or(self.machine_type, |(kind, _)| kind)
    }

    /// Whether its GPUs are cards that the type takes.
    pub(super) fn is_attached(&self) -> bool {
        self.cards.as_ref().is_some_and(|cards| cards.attached)
    }

    /// Whether it is one of those that are offered to somebody who asks for its GPU, and as `sized` says, for vCPUs or memory.
    /// The n1 types that take a T4 are many, and the smallest are the cheapest and of little use.
    pub(super) fn is_usual(&self, sized: bool) -> bool {
        if !self.is_attached() {
            return true;
        }
        if sized {
            return self.memory_gib >= LEAST_HOST_GIB;
        }
        USUAL_HOSTS.contains(&(self.machine_type, self.gpu_count()))
    }
}

/// Returns every machine, those with GPUs first.
pub(super) fn shapes() -> &'static [Shape] {
    static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
        let gpus = rows(GPU_SHAPES).filter_map(|row| gpu_shape(&row));
        gpus.chain(rows(CPU_SHAPES).filter_map(|row| cpu_shape(&row))).collect()
    });
    &SHAPES
}

/// Returns the machine of this type with so many GPUs; an n1 type is several.
pub(super) fn find(machine_type: &str, gpu_count: u32) -> Option<&'static Shape> {
    shapes().iter().find(|shape| shape.machine_type == machine_type && shape.gpu_count() == gpu_count)
}

/// Returns the fields of each row of one of our data files: no quotes in them, comments and the header left out.
pub(super) fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split(',').collect())
}

fn gpu_shape(row: &[&'static str]) -> Option<Shape> {
    let [machine_type, accelerator, count, vram, vcpus, memory, ssd, disk, sold, host, quota] = *row else {
        return None;
    };
    let gpu = Gpu::identify(accelerator, vram.parse().ok());
    Some(Shape {
        machine_type,
        cards: Some(Cards { gpu, count: count.parse().ok()?, attached: host == "attach" }),
        vcpus: vcpus.parse().ok()?,
        memory_gib: memory.parse().ok()?,
        local_ssd_gib: ssd.parse().ok()?,
        boot_disk: disk,
        on_demand: sold == "both",
        quota: Some(quota).filter(|quota| !quota.is_empty()),
    })
}

fn cpu_shape(row: &[&'static str]) -> Option<Shape> {
    let [machine_type, vcpus, memory, quota] = *row else { return None };
    Some(Shape {
        machine_type,
        cards: None,
        vcpus: vcpus.parse().ok()?,
        memory_gib: memory.parse().ok()?,
        local_ssd_gib: 0,
        boot_disk: PD_BALANCED,
        on_demand: true,
        quota: Some(quota).filter(|quota| !quota.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_of_the_tables_is_read() {
        let lines = |text: &'static str| rows(text).count();
        assert_eq!((lines(GPU_SHAPES), lines(CPU_SHAPES)), (67, 116));
        assert_eq!(shapes().len(), 67 + 116);
        let named: BTreeSet<_> =
            shapes().iter().map(|shape| (shape.machine_type, shape.gpu_count())).collect();
        assert_eq!(named.len(), shapes().len(), "each once");
    }

    #[test]
    fn the_models_are_those_of_the_table_of_gpus() {
        let names: BTreeSet<&str> =
            shapes().iter().filter_map(|shape| Some(shape.cards.as_ref()?.gpu.name.as_str())).collect();
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            ["A100", "A100-80GB", "B200", "H100", "H200", "L4", "T4"]
        );
        assert!(shapes().iter().filter_map(|shape| shape.cards.as_ref()).all(|cards| cards.gpu.known));
    }

    #[test]
    fn how_machines_are_sold_and_what_they_boot_from() {
        let on_demand = |ty, count| find(ty, count).unwrap().on_demand;
        for (ty, count) in [("a3-highgpu-8g", 8), ("g2-standard-4", 1), ("a2-megagpu-16g", 16)] {
            assert!(on_demand(ty, count), "{ty}");
        }
        let spot_only: Vec<_> =
            shapes().iter().filter(|shape| !shape.on_demand).map(|shape| shape.machine_type).collect();
        assert_eq!(
            spot_only,
            ["a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g", "a3-ultragpu-8g", "a4-highgpu-8g"]
        );
        let hyperdisk = shapes().iter().filter(|shape| shape.boot_disk == "hyperdisk-balanced");
        assert_eq!(
            hyperdisk.map(|shape| shape.machine_type).collect::<Vec<_>>(),
            ["a3-ultragpu-8g", "a4-highgpu-8g"]
        );
        assert!(
            shapes().iter().all(|shape| ["pd-balanced", "hyperdisk-balanced"].contains(&shape.boot_disk))
        );
        assert_eq!(find("a2-ultragpu-2g", 2).unwrap().local_ssd_gib, 750);
        assert_eq!(find("n1-standard-8", 0), None, "n1 is offered with cards only");
    }

    #[test]
    fn one_type_takes_one_two_or_four_cards() {
        let hosts = |count| find("n1-standard-16", count).map(|shape| (shape.vcpus, shape.is_attached()));
        for count in [1, 2, 4] {
            assert_eq!(hosts(count), Some((16, true)));
        }
        assert_eq!((hosts(0), hosts(8)), (None, None));
        let usual =
            |sized| shapes().iter().filter(|shape| shape.is_attached() && shape.is_usual(sized)).count();
        assert_eq!(usual(false), USUAL_HOSTS.len());
        assert!(usual(true) > 25);
        assert!(!find("n1-highcpu-2", 1).unwrap().is_usual(true));
    }

    #[test]
    fn names_are_taken_apart() {
        let shape = find("c3d-highmem-360", 0).unwrap();
        assert_eq!((shape.family(), shape.kind(), shape.vcpus), ("c3d", "c3d-highmem", 360));
        assert_eq!((shape.memory_gib, shape.quota), (2880.0, None));
        assert_eq!(find("n2-standard-2", 0).unwrap().quota, Some("N2_CPUS"));
    }
}
