//! Helpers, and what belongs to no single topic.

mod asks;
mod clouds;
mod random;

use super::*;

fn want(text: &str) -> GpuWant {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Which of `raws` (name, memory told) the ask takes.
fn taken<'a>(ask: &str, raws: &[(&'a str, Option<f64>)]) -> Vec<&'a str> {
    let want = want(ask);
    raws.iter()
        .filter(|(raw, gb)| want.model.matches(&Gpu::identify(raw, *gb)))
        .map(|(raw, _)| *raw)
        .collect()
}

fn told(gb: f64) -> Option<f64> {
    (gb > 0.0).then_some(gb)
}

#[test]
fn useless_memory_figures_are_ignored() {
    for gb in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 24564.0, f64::MAX] {
        assert_eq!(Gpu::identify("RTX 4090", Some(gb)), Gpu::identify("RTX 4090", None), "{gb}");
        assert_eq!(Gpu::identify("RTX 9999", Some(gb)).vram_gb, None, "{gb}");
    }
}

#[test]
fn nearest_names() {
    for (asked, first) in [
        ("RTX4900", "RTX4090"),
        ("H10", "H100"),
        ("rtx 409", "RTX4090"),
        ("A100-60GB", "A100-80GB"),
        ("RTXPRO600", "RTXPRO6000"),
        ("RTX5090TI", "RTX5090"),
        ("l40z", "L40"),
    ] {
        let found = nearest(asked, &[]);
        assert!(found.len() <= 3 && found.contains(&first.to_owned()), "{asked}: {found:?}");
    }
    let mut found = nearest("RTX6000", &[]);
    found.sort();
    assert_eq!(found, ["QRTX6000", "RTX6000ADA", "RTXPRO6000"]);
    assert!(nearest("", &[]).is_empty());
    assert!(nearest("zzzzzz", &[]).is_empty());
    let also = ["Imaginary RTX 9999".to_owned(), "RTX4090".to_owned()];
    assert_eq!(nearest("imaginary rtx 9998", &also).first(), Some(&also[0]));
    assert_eq!(nearest("RTX409", &also).iter().filter(|name| *name == "RTX4090").count(), 1);
}

#[test]
fn completion_list() {
    let names: Vec<_> = known_models().collect();
    assert!(names.is_sorted());
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name twice");
    for name in [
        "A100",
        "A100-80GB",
        "H100",
        "H100-94GB",
        "RTX4090",
        "RTX6000ADA",
        "RTXPRO6000",
        "V100-32GB",
        "MI300X",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn every_shown_name_is_a_fixed_point_and_asks_for_itself() {
    for name in known_models() {
        let gpu = Gpu::identify(name, None);
        assert_eq!((gpu.name.as_str(), gpu.known), (name, true));
        assert_eq!(Gpu::identify(name, gpu.vram_gb).name, name);
        assert!(GpuModel::named(name).matches(&gpu), "{name}");
        assert_eq!(GpuModel::named(name).to_string(), name);
        assert!(!name.split('-').next().unwrap().is_empty());
    }
}

#[test]
fn parts_of_machine_names() {
    for (raw, gb, short) in [
        ("NVIDIA GeForce RTX 4090", 24.0, "rtx4090"),
        ("A100 SXM4", 80.0, "a100-80gb"),
        ("H100 NVL", 94.0, "h100-94gb"),
        (
            "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb",
            24.0,
            "rtx-pro-6000-blackwell-mig-1g-24",
        ),
        ("Imaginary RTX 9999", 1.0, "imaginary-rtx-9999"),
        ("7900XTX", 24.0, "gpu-7900xtx"),
        ("", 1.0, "gpu"),
        ("日本", 1.0, "gpu"),
        ("a", 1.0, "gpu-a"),
        ("aΣ", 1.0, "gpu-a"),
    ] {
        assert_eq!(short_name(&Gpu::identify(raw, Some(gb))), short, "{raw:?}");
    }
}
