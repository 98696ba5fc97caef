//! Every name of the five clouds' packs, and names that must stay unknown.

use super::super::*;
use super::told;

/// Cloud's spelling, memory it tells (0: none), shown name, nominal size. Known cards only.
#[rustfmt::skip]
const KNOWN: &[(&str, f64, &str, f64)] = &[
    // RunPod ids.
    ("AMD Instinct MI300X OAM", 192.0, "MI300X", 192.0),
    ("NVIDIA A100 80GB PCIe", 80.0, "A100-80GB", 80.0),
    ("NVIDIA A100-SXM4-80GB", 80.0, "A100-80GB", 80.0),
    ("NVIDIA A30", 24.0, "A30", 24.0),
    ("NVIDIA  A30", 24.0, "A30", 24.0),
    ("NVIDIA RTX A30", 24.0, "A30", 24.0),
    ("NVIDIA A40", 48.0, "A40", 48.0),
    ("NVIDIA B200", 180.0, "B200", 180.0),
    ("NVIDIA B300 SXM6 AC", 288.0, "B300", 288.0),
    ("NVIDIA GeForce RTX 3070", 8.0, "RTX3070", 8.0),
    ("NVIDIA GeForce RTX 3080", 10.0, "RTX3080", 10.0),
    ("NVIDIA GeForce RTX 3080 Ti", 12.0, "RTX3080TI", 12.0),
    ("NVIDIA GeForce RTX 3080TI", 12.0, "RTX3080TI", 12.0),
    ("NVIDIA GeForce RTX 3090", 24.0, "RTX3090", 24.0),
    ("NVIDIA GeForce RTX 3090 Ti", 24.0, "RTX3090TI", 24.0),
    ("NVIDIA GeForce RTX 4070 Ti", 12.0, "RTX4070TI", 12.0),
    ("NVIDIA GeForce RTX 4080", 16.0, "RTX4080", 16.0),
    ("NVIDIA GeForce RTX 4080 SUPER", 16.0, "RTX4080SUPER", 16.0),
    ("NVIDIA GeForce RTX 4090", 24.0, "RTX4090", 24.0),
    ("NVIDIA GeForce RTX 5080", 16.0, "RTX5080", 16.0),
    ("NVIDIA GeForce RTX 5090", 32.0, "RTX5090", 32.0),
    ("NVIDIA H100 80GB HBM3", 80.0, "H100", 80.0),
    ("NVIDIA H100 NVL", 94.0, "H100-94GB", 94.0),
    ("NVIDIA H100 NVL", 0.0, "H100-94GB", 94.0),
    ("NVIDIA H100 PCIe", 80.0, "H100", 80.0),
    ("NVIDIA H200", 141.0, "H200", 141.0),
    ("NVIDIA H200 NVL", 143.0, "H200", 141.0),
    ("NVIDIA L4", 24.0, "L4", 24.0),
    ("NVIDIA L40", 48.0, "L40", 48.0),
    ("NVIDIA L40S", 48.0, "L40S", 48.0),
    ("NVIDIA RTX 2000 Ada Generation", 16.0, "RTX2000ADA", 16.0),
    ("NVIDIA RTX 4000 Ada Generation", 20.0, "RTX4000ADA", 20.0),
    ("NVIDIA RTX 4000 SFF Ada Generation", 20.0, "RTX4000ADASFF", 20.0),
    ("NVIDIA RTX 5000 Ada Generation", 32.0, "RTX5000ADA", 32.0),
    ("NVIDIA A5000 Ada", 32.0, "RTX5000ADA", 32.0),
    ("NVIDIA RTX 6000 Ada Generation", 48.0, "RTX6000ADA", 48.0),
    ("NVIDIA RTX A2000", 6.0, "A2000", 6.0),
    ("NVIDIA RTX A4000", 16.0, "A4000", 16.0),
    ("NVIDIA RTX A4500", 20.0, "A4500", 20.0),
    ("NVIDIA  RTX A4500", 20.0, "A4500", 20.0),
    ("NVIDIA RTX A5000", 24.0, "A5000", 24.0),
    ("NVIDIA RTX A6000", 48.0, "A6000", 48.0),
    ("NVIDIA RTX PRO 4500 Blackwell", 32.0, "RTXPRO4500", 32.0),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96.0, "RTXPRO6000", 96.0),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96.0, "RTXPRO6000", 96.0),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 96.0, "RTXPRO6000", 96.0),
    ("Tesla V100-PCIE-16GB", 16.0, "V100", 16.0),
    ("Tesla V100-FHHL-16GB", 16.0, "V100", 16.0),
    ("Tesla V100-SXM2-16GB", 16.0, "V100", 16.0),
    ("Tesla V100-SXM2-32GB", 32.0, "V100-32GB", 32.0),
    ("Tesla V100-PCIE-32GB", 0.0, "V100-32GB", 32.0),
    ("Tesla T4", 16.0, "T4", 16.0),
    // Vast names, with MiB / 1024.
    ("A100 PCIE", 39.4, "A100", 40.0),
    ("A100 PCIE", 80.0, "A100-80GB", 80.0),
    ("A100 SXM4", 40.0, "A100", 40.0),
    ("A100 SXM4", 79.6, "A100-80GB", 80.0),
    ("A100 SXM", 80.0, "A100-80GB", 80.0),
    ("A100X", 79.2, "A100-80GB", 80.0),
    ("A100X", 0.0, "A100-80GB", 80.0),
    ("A100 SXM4", 0.0, "A100", 40.0),
    ("A800 PCIE", 79.3, "A800", 80.0),
    ("H100 PCIE", 79.6, "H100", 80.0),
    ("H100 SXM", 79.6, "H100", 80.0),
    ("H100 NVL", 93.6, "H100-94GB", 94.0),
    ("H200", 140.4, "H200", 141.0),
    ("H200 NVL", 139.8, "H200", 141.0),
    ("GH200 SXM", 95.6, "GH200", 96.0),
    ("GH200 SXM", 143.0, "GH200-144GB", 144.0),
    ("B200", 179.1, "B200", 180.0),
    ("B200", 191.5, "B200", 180.0),
    ("L4", 22.5, "L4", 24.0),
    ("L40", 44.99, "L40", 48.0),
    ("L40S", 44.99, "L40S", 48.0),
    ("A10", 22.5, "A10", 24.0),
    ("A10g", 22.06, "A10G", 24.0),
    ("A16", 15.0, "A16", 16.0),
    ("A30", 24.0, "A30", 24.0),
    ("A40", 45.0, "A40", 48.0),
    ("RTX PRO 6000 WS", 95.6, "RTXPRO6000", 96.0),
    ("RTX PRO 6000 S", 95.6, "RTXPRO6000", 96.0),
    ("RTX PRO 6000", 95.6, "RTXPRO6000", 96.0),
    ("RTX PRO 6000 Max-Q", 95.6, "RTXPRO6000", 96.0),
    ("RTX PRO 5000", 47.8, "RTXPRO5000", 48.0),
    ("RTX PRO 4500", 31.9, "RTXPRO4500", 32.0),
    ("RTX PRO 4000", 23.9, "RTXPRO4000", 24.0),
    ("RTX 5090", 31.84, "RTX5090", 32.0),
    ("RTX 5080", 15.9, "RTX5080", 16.0),
    ("RTX 5070 Ti", 15.9, "RTX5070TI", 16.0),
    ("RTX 5070", 11.9, "RTX5070", 12.0),
    ("RTX 5060 Ti", 15.9, "RTX5060TI-16GB", 16.0),
    ("RTX 5060 Ti", 7.9, "RTX5060TI", 8.0),
    ("RTX 5060", 7.9, "RTX5060", 8.0),
    ("RTX 4090", 23.99, "RTX4090", 24.0),
    ("RTX 4090", 24.564, "RTX4090", 24.0),
    ("RTX 4090", 47.99, "RTX4090-48GB", 48.0),
    ("RTX 4090D", 23.99, "RTX4090D", 24.0),
    ("RTX 4080S", 15.99, "RTX4080SUPER", 16.0),
    ("RTX 4080", 15.99, "RTX4080", 16.0),
    ("RTX 4070S Ti", 15.99, "RTX4070TISUPER", 16.0),
    ("RTX 4070 Ti", 11.99, "RTX4070TI", 12.0),
    ("RTX 4070S", 11.99, "RTX4070SUPER", 12.0),
    ("RTX 4070", 11.99, "RTX4070", 12.0),
    ("RTX 4060 Ti", 8.0, "RTX4060TI", 8.0),
    ("RTX 4060 Ti", 16.0, "RTX4060TI-16GB", 16.0),
    ("RTX 4060", 8.0, "RTX4060", 8.0),
    ("RTX 3090 Ti", 24.0, "RTX3090TI", 24.0),
    ("RTX 3090", 24.0, "RTX3090", 24.0),
    ("RTX 3080 Ti", 12.0, "RTX3080TI", 12.0),
    ("RTX 3080", 9.8, "RTX3080", 10.0),
    ("RTX 3080", 11.8, "RTX3080-12GB", 12.0),
    ("RTX 3070 Ti", 8.0, "RTX3070TI", 8.0),
    ("RTX 3060 Ti", 8.0, "RTX3060TI", 8.0),
    ("RTX 3060", 12.0, "RTX3060", 12.0),
    ("RTX 3050", 8.0, "RTX3050", 8.0),
    ("RTX 6000Ada", 47.99, "RTX6000ADA", 48.0),
    ("RTX 5880Ada", 47.99, "RTX5880ADA", 48.0),
    ("RTX 5000Ada", 31.99, "RTX5000ADA", 32.0),
    ("RTX 4500Ada", 23.99, "RTX4500ADA", 24.0),
    ("RTX 4000Ada", 19.99, "RTX4000ADA", 20.0),
    ("RTX 2000Ada", 15.99, "RTX2000ADA", 16.0),
    ("RTX A6000", 47.99, "A6000", 48.0),
    ("RTX A5000", 23.99, "A5000", 24.0),
    ("RTX A4000", 15.99, "A4000", 16.0),
    ("RTX A2000", 11.99, "A2000-12GB", 12.0),
    ("Q RTX 8000", 47.8, "QRTX8000", 48.0),
    ("Q RTX 6000", 23.7, "QRTX6000", 24.0),
    ("Q RTX 5000", 15.9, "QRTX5000", 16.0),
    ("Q RTX 4000", 7.8, "QRTX4000", 8.0),
    ("Titan RTX", 23.6, "TITANRTX", 24.0),
    ("Titan V", 11.8, "TITANV", 12.0),
    ("TITAN V CEO", 31.7, "TITANVCEO", 32.0),
    ("Titan X", 11.9, "TITANX", 12.0),
    ("Titan Xp", 11.9, "TITANXP", 12.0),
    ("RTX 2080 Ti", 11.0, "RTX2080TI", 11.0),
    ("RTX 2080 Ti", 21.5, "RTX2080TI-22GB", 22.0),
    ("RTX 2080S", 8.0, "RTX2080SUPER", 8.0),
    ("RTX 2070S", 8.0, "RTX2070SUPER", 8.0),
    ("RTX 2060S", 8.0, "RTX2060SUPER", 8.0),
    ("RTX 2060", 6.0, "RTX2060", 6.0),
    ("RTX 2060", 12.0, "RTX2060-12GB", 12.0),
    ("Tesla T4", 15.0, "T4", 16.0),
    ("Tesla V100", 16.0, "V100", 16.0),
    ("Tesla V100", 32.0, "V100-32GB", 32.0),
    ("Tesla P100", 16.0, "P100", 16.0),
    ("Tesla P40", 22.5, "P40", 24.0),
    ("Tesla P4", 7.6, "P4", 8.0),
    ("Tesla M40", 11.9, "M40", 12.0),
    ("Tesla K80", 11.2, "K80", 12.0),
    ("GTX 1080 Ti", 11.0, "GTX1080TI", 11.0),
    ("GTX 1070", 8.0, "GTX1070", 8.0),
    ("GTX 1660 S", 6.0, "GTX1660SUPER", 6.0),
    ("Quadro P4000", 8.0, "QUADROP4000", 8.0),
    ("InstinctMI50", 16.0, "MI50", 16.0),
    ("InstinctMI100", 32.0, "MI100", 32.0),
    // Verda descriptions and models.
    ("B300 SXM6 268GB", 262.0, "B300", 288.0),
    ("B300 SXM6 268GB", 0.0, "B300", 288.0),
    ("B200 SXM6 180GB", 180.0, "B200", 180.0),
    ("H200 SXM5 141GB", 141.0, "H200", 141.0),
    ("H100 SXM5 80GB", 80.0, "H100", 80.0),
    ("A100 SXM4 80GB", 80.0, "A100-80GB", 80.0),
    ("A100 SXM4 40GB", 40.0, "A100", 40.0),
    ("A100", 80.0, "A100-80GB", 80.0),
    ("L40S 48GB", 48.0, "L40S", 48.0),
    ("RTX PRO 6000 96GB", 96.0, "RTXPRO6000", 96.0),
    ("RTX6000 Ada 48GB", 48.0, "RTX6000ADA", 48.0),
    ("RTX 6000 Ada 48GB", 48.0, "RTX6000ADA", 48.0),
    ("RTX A6000 48GB", 48.0, "A6000", 48.0),
    ("Tesla V100 16GB", 16.0, "V100", 16.0),
    // Google accelerator types, and the words of its price sources.
    ("nvidia-l4", 24.0, "L4", 24.0),
    ("nvidia-tesla-a100", 40.0, "A100", 40.0),
    ("nvidia-tesla-a100", 0.0, "A100", 40.0),
    ("nvidia-a100-80gb", 0.0, "A100-80GB", 80.0),
    ("nvidia-h100-80gb", 0.0, "H100", 80.0),
    ("nvidia-h100-mega-80gb", 80.0, "H100", 80.0),
    ("nvidia-h200-141gb", 0.0, "H200", 141.0),
    ("nvidia-b200", 0.0, "B200", 180.0),
    ("nvidia-gb200", 0.0, "GB200", 192.0),
    ("nvidia-tesla-t4", 0.0, "T4", 16.0),
    ("nvidia-tesla-v100", 16.0, "V100", 16.0),
    ("nvidia-tesla-p100", 16.0, "P100", 16.0),
    ("nvidia-tesla-p4", 8.0, "P4", 8.0),
    ("nvidia-tesla-k80", 12.0, "K80", 12.0),
    ("nvidia-rtx-pro-6000", 96.0, "RTXPRO6000", 96.0),
    ("A100-80GB", 80.0, "A100-80GB", 80.0),
    ("H100-MEGA", 80.0, "H100", 80.0),
    // Nebius platforms.
    ("gpu-h100-sxm", 80.0, "H100", 80.0),
    ("gpu-h200-sxm", 141.0, "H200", 141.0),
    ("gpu-b200-sxm", 180.0, "B200", 180.0),
    ("gpu-b200-sxm-a", 180.0, "B200", 180.0),
    ("gpu-b300-sxm", 270.0, "B300", 288.0),
    ("gpu-b300-sxm", 279.0, "B300", 288.0),
    ("gpu-rtx6000", 96.0, "RTXPRO6000", 96.0),
    ("gpu-rtx6000-a", 0.0, "RTXPRO6000", 96.0),
    ("gpu-l40s-a", 48.0, "L40S", 48.0),
    ("gpu-l40s-d", 48.0, "L40S", 48.0),
    ("gpu-gb300", 288.0, "GB300", 288.0),
];

/// Names that are no card of the table: shown as spelled (blanks collapsed), memory as told.
const UNKNOWN: &[(&str, &str)] = &[
    (
        "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb",
    ),
    (
        "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb",
    ),
    ("NVIDIA A100-SXM4-80GB 1g.10gb", "NVIDIA A100-SXM4-80GB 1g.10gb"),
    ("RTX 4090 laptop", "RTX 4090 laptop"),
    ("RTX PRO 5000 Mobile", "RTX PRO 5000 Mobile"),
    ("GeForce RTX 2080 Max-Q", "GeForce RTX 2080 Max-Q"),
    ("nvidia-tesla-t4-vws", "nvidia-tesla-t4-vws"),
    ("nvidia-l4-vws", "nvidia-l4-vws"),
    ("P104-100", "P104-100"),
    ("AMD 7900XTX", "AMD 7900XTX"),
    ("  Imaginary  RTX 9999 ", "Imaginary RTX 9999"),
    ("RTX 40 90", "RTX 40 90"),
    ("A100 40GB 80GB", "A100 40GB 80GB"),
    ("RTX 6000", "RTX 6000"),
    ("NVIDIA", "NVIDIA"),
    ("80GB", "80GB"),
    ("null", "null"),
    ("", ""),
    ("   ", ""),
    ("-", "-"),
    ("GPU", "GPU"),
    ("gpu-a", "gpu-a"),
    ("日本 4090", "日本 4090"),
];

#[test]
fn names_of_the_clouds() {
    for (raw, gb, name, vram) in KNOWN {
        let gpu = Gpu::identify(raw, told(*gb));
        assert_eq!((gpu.name.as_str(), gpu.vram_gb, gpu.known), (*name, Some(*vram), true), "{raw:?} {gb}");
        assert_eq!(gpu.raw, *raw);
    }
}

#[test]
fn unknown_names_stay_as_spelled() {
    for (raw, name) in UNKNOWN {
        let gpu = Gpu::identify(raw, Some(23.6));
        assert_eq!((gpu.name.as_str(), gpu.vram_gb, gpu.known), (*name, Some(23.6), false), "{raw:?}");
        assert_eq!(gpu.raw, *raw);
        assert!(GpuModel::Any.matches(&gpu));
        if !name.is_empty() {
            assert!(GpuModel::named(raw).matches(&gpu), "{raw:?} by exact name");
            assert!(GpuModel::named(&raw.to_lowercase()).matches(&gpu), "{raw:?} in lower case");
        }
    }
}

#[test]
fn every_known_name_can_be_asked_for_as_shown() {
    for (raw, gb, name, _) in KNOWN {
        let gpu = Gpu::identify(raw, told(*gb));
        for spelling in
            [name.to_string(), name.to_lowercase(), name.replace('-', " "), format!(" nvidia {name} ")]
        {
            assert!(GpuModel::named(&spelling).matches(&gpu), "{spelling:?} for {raw:?}");
        }
        assert!(GpuModel::named(name).is_known(), "{name}");
        // And nothing else of the table matches it, but for the bare name and neighbours in size.
        for other in known_models() {
            let same_card = other.split('-').next() == name.split('-').next();
            assert!(same_card || !GpuModel::named(other).matches(&gpu), "{other} took {raw:?}");
        }
    }
}
