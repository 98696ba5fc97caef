//! Spellings of people, and which ask takes which card.

use super::super::*;
use super::{taken, want};

#[test]
fn spellings_of_people() {
    #[rustfmt::skip]
    let groups: &[(&str, &[&str])] = &[
        ("RTX5090", &["5090", "rtx5090", "RTX 5090", "rtx_5090", "RTX-5090", "GeForce RTX 5090", "NVIDIA GeForce RTX 5090 ",
            "geforce 5090", "rtx  5090", "NVIDIA_GeForce_RTX_5090", "RTX 5090 GPU"]),
        ("RTX4090", &["RTX 4090 ", "rtx  4090", "4090", "nvidia rtx 4090", "\tRTX\u{a0}4090"]),
        ("RTX4090D", &["RTX 4090 D", "4090 D", "4090d", "RTX4090-D"]),
        ("RTX4080SUPER", &["4080S", "4080 SUPER", "RTX4080SUPER", "rtx 4080s", "RTX 4080 S", "4080super"]),
        ("RTX4070TISUPER", &["4070 Ti SUPER", "4070TIS", "RTX 4070S Ti", "4070 super ti"]),
        ("RTX3080TI", &["3080Ti", "3080 TI", "RTX3080-TI", "GeForce RTX 3080 Ti"]),
        ("GTX1080TI", &["1080 ti", "GTX1080TI", "GeForce GTX 1080 Ti"]),
        ("RTX6000ADA", &["RTX 6000 Ada Generation", "RTX6000ADA", "6000 ada", "RTX 6000Ada", "rtx-6000-ada", "A6000 Ada"]),
        ("RTX4000ADASFF", &["RTX 4000 SFF Ada", "RTX4000SFFADA", "RTX 4000 Ada SFF"]),
        ("A6000", &["RTX A6000", "A6000", "rtxa6000", "Quadro RTX A6000", "rtx-a6000"]),
        ("RTXPRO6000", &["RTX PRO 6000", "rtxpro6000", "PRO 6000", "pro6000", "RTX PRO 6000 Blackwell Server Edition",
            "RTX PRO 6000 SE", "RTX 6000 Blackwell", "rtx-pro-6000-blackwell"]),
        ("QRTX8000", &["Quadro RTX 8000", "Q RTX 8000", "RTX 8000", "qrtx8000"]),
        ("QRTX6000", &["Quadro RTX 6000", "quadrortx6000"]),
        ("H100", &["h100", "H100 SXM", "H100-SXM5", "H100SXM", "H100 PCIe", "H100 NVL", "NVIDIA H100 Tensor Core GPU"]),
        ("H200", &["H200", "H200 NVL", "h200-sxm"]),
        ("B200", &["B200", "NVIDIA B200 SXM6", "gpu-b200-sxm-a"]),
        ("GB200", &["GB200", "GB200 NVL72"]),
        ("A100", &["a100", "A100 PCIE", "A100-40GB", "A100 40GB", "A100-SXM4-40GB", "A100SXM4"]),
        ("A100-80GB", &["A100-80GB", "a100 80g", "A100_80GB", "NVIDIA A100 80GB PCIe", "A100X", "A100 80GiB"]),
        ("V100-32GB", &["V100-32GB", "Tesla V100 32GB", "TeslaV100 32GB"]),
        ("MI300X", &["mi300x", "AMD Instinct MI300X", "Instinct MI300X OAM"]),
        ("TITANRTX", &["Titan RTX", "titanrtx", "NVIDIA TITAN RTX"]),
        ("any", &["any", "ANY", " Any "]),
    ];
    for (shown, spellings) in groups {
        for spelling in *spellings {
            let model = GpuModel::named(spelling);
            assert_eq!(model.to_string(), *shown, "{spelling:?}");
            assert!(model.is_known(), "{spelling:?}");
        }
    }
    assert_eq!(want("rtx 5090:2"), want("GeForce RTX 5090:2"));
    assert_ne!(want("RTX 5090:2"), want("RTX 5090:1"));
    assert_ne!(want("RTX 5090"), want("any"));
}

#[test]
fn whole_tokens_b21() {
    #[rustfmt::skip]
    let all = [
        ("RTX 4090 ", Some(24.0)),
        ("rtx  4090", Some(24.0)),
        ("RTX 4090 D", Some(24.0)),
        ("L4", Some(24.0)),
        ("L40", Some(48.0)),
        ("L40S", Some(48.0)),
        ("GH200", Some(96.0)),
        ("H200", Some(141.0)),
        ("H200 NVL", Some(143.0)),
        ("B300 SXM6", Some(288.0)),
        ("B200", Some(180.0)),
        ("GB200", Some(192.0)),
        ("GB300", Some(288.0)),
        ("null", None),
        ("A10", Some(24.0)),
        ("A10g", Some(24.0)),
        ("A100 SXM4", Some(40.0)),
        ("A40", Some(48.0)),
        ("RTX A4000", Some(16.0)),
        ("Q RTX 6000", Some(24.0)),
        ("RTX 6000Ada", Some(48.0)),
        ("RTX A6000", Some(48.0)),
        ("RTX PRO 6000 WS", Some(96.0)),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", Some(24.0)),
        ("RTX 4080", Some(16.0)),
        ("RTX 4080S", Some(16.0)),
        ("RTX 3080", Some(10.0)),
        ("RTX 3080 Ti", Some(12.0)),
        ("RTX 4000 SFF Ada", Some(20.0)),
        ("RTX 4000Ada", Some(20.0)),
    ];
    #[rustfmt::skip]
    let cases: &[(&str, &[&str])] = &[
        ("RTX4090", &["RTX 4090 ", "rtx  4090"]),
        ("4090D", &["RTX 4090 D"]),
        ("L4", &["L4"]),
        ("L40", &["L40"]),
        ("L40S", &["L40S"]),
        ("H200", &["H200", "H200 NVL"]),
        ("GH200", &["GH200"]),
        ("B200", &["B200"]),
        ("GB200", &["GB200"]),
        ("B300", &["B300 SXM6"]),
        ("A10", &["A10"]),
        ("A10G", &["A10g"]),
        ("A100", &["A100 SXM4"]),
        ("A40", &["A40"]),
        ("A4000", &["RTX A4000"]),
        ("RTX6000", &[]),
        ("QRTX6000", &["Q RTX 6000"]),
        ("RTX6000ADA", &["RTX 6000Ada"]),
        ("A6000", &["RTX A6000"]),
        ("RTXPRO6000", &["RTX PRO 6000 WS"]),
        (
            "nvidia rtx pro 6000 blackwell server edition  mig 1g.24gb:1",
            &["NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb"],
        ),
        ("RTX4080", &["RTX 4080"]),
        ("RTX4080SUPER", &["RTX 4080S"]),
        ("RTX3080", &["RTX 3080"]),
        ("RTX3080TI", &["RTX 3080 Ti"]),
        ("RTX4000ADA", &["RTX 4000Ada"]),
        ("RTX4000ADASFF", &["RTX 4000 SFF Ada"]),
        ("NULL", &["null"]),
        ("4", &[]),
        ("40", &[]),
        ("RTX", &[]),
    ];
    for (ask, expected) in cases {
        assert_eq!(taken(ask, &all), *expected, "{ask}");
    }
    assert_eq!(taken("any", &all).len(), all.len());
}

#[test]
fn sizes_decide_between_cards_of_one_name() {
    #[rustfmt::skip]
    let all = [
        ("A100 SXM4", Some(39.4)),
        ("A100 PCIE", Some(79.6)),
        ("NVIDIA A100 80GB PCIe", None),
        ("NVIDIA A100-SXM4-80GB", Some(80.0)),
        ("Tesla V100", Some(16.0)),
        ("Tesla V100-SXM2-32GB", None),
        ("H100 SXM", Some(79.6)),
        ("H100 NVL", Some(93.6)),
        ("H200 NVL", Some(143.0)),
        ("RTX 4090", Some(23.99)),
        ("RTX 4090", Some(47.99)),
        ("B200", Some(180.0)),
        ("B300", Some(262.0)),
    ];
    let a100_80 = ["A100 PCIE", "NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB"];
    assert_eq!(taken("A100", &all), ["A100 SXM4"]);
    assert_eq!(taken("A100-40GB", &all), ["A100 SXM4"]);
    assert_eq!(taken("A100-80GB", &all), a100_80);
    assert_eq!(taken("A100-78GB", &all), a100_80);
    assert_eq!(taken("A100-60GB", &all), [""; 0]);
    assert_eq!(taken("V100", &all), ["Tesla V100", "Tesla V100-SXM2-32GB"]);
    assert_eq!(taken("V100-16GB", &all), ["Tesla V100"]);
    assert_eq!(taken("V100-32GB", &all), ["Tesla V100-SXM2-32GB"]);
    assert_eq!(taken("H100", &all), ["H100 SXM", "H100 NVL"]);
    assert_eq!(taken("H100-80GB", &all), ["H100 SXM"]);
    assert_eq!(taken("H100-94GB", &all), ["H100 NVL"]);
    assert_eq!(taken("H100-96GB", &all), ["H100 NVL"]);
    assert_eq!(taken("H200-143GB", &all), ["H200 NVL"]);
    assert_eq!(taken("RTX4090", &all), ["RTX 4090", "RTX 4090"]);
    assert_eq!(taken("RTX4090-24GB", &all).len(), 1);
    assert_eq!(taken("RTX4090-48GB", &all).len(), 1);
    assert_eq!(taken("B200-192GB", &all), ["B200"]);
    assert_eq!(taken("B300-268GB", &all), ["B300"]);
    for known in ["A100", "A100-80GB", "V100-32GB", "B200-192GB", "any"] {
        assert!(want(known).model.is_known(), "{known}");
    }
    for unknown in ["A100-60GB", "RTX4090-12GB", "RTX 9999", "RTX6000", "L40X"] {
        assert!(!want(unknown).model.is_known(), "{unknown}");
    }
}

#[test]
fn a_slice_is_never_the_whole_card() {
    // Google's fractional G4 machines, or a marketplace host, may give a part of a card under its full name.
    let slice = Gpu::identify("nvidia-rtx-pro-6000", Some(23.6));
    assert_eq!((slice.name.as_str(), slice.vram_gb, slice.known), ("RTXPRO6000-24GB", Some(24.0), false));
    assert!(!want("RTXPRO6000").model.matches(&slice));
    assert!(!want("nvidia-rtx-pro-6000").model.matches(&slice));
    assert!(want("RTX PRO 6000 24GB").model.matches(&slice));
    assert!(!want("RTXPRO6000-24GB").model.is_known());
    // More memory than nominal does no harm.
    let rebuilt = Gpu::identify("RTX 3070", Some(15.9));
    assert_eq!((rebuilt.name.as_str(), rebuilt.known), ("RTX3070-16GB", true));
    assert!(want("RTX3070").model.matches(&rebuilt) && want("RTX3070-16GB").model.matches(&rebuilt));
}

#[test]
fn wants_are_read() {
    for (text, display) in [
        ("RTX4090", "RTX4090:1"),
        ("RTX 4090:2", "RTX4090:2"),
        (" 4090 : 8 ", "RTX4090:8"),
        ("any", "any:1"),
        ("ANY:8", "any:8"),
        ("A100-80GB:8", "A100-80GB:8"),
        ("a100-40gb", "A100:1"),
        ("H100-80GB", "H100-80GB:1"),
        ("Radeon  9999:2", "Radeon 9999:2"),
        ("4080s:1", "RTX4080SUPER:1"),
        ("RTX4090:002", "RTX4090:2"),
        (
            "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb:1",
            "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb:1",
        ),
    ] {
        assert_eq!(want(text).to_string(), display, "{text:?}");
    }
    assert_eq!(want(" rtx  4090 :2").model.as_asked(), "rtx 4090");
    assert_eq!(want("ANY:2").model.as_asked(), "any");
}

#[test]
fn bad_wants_say_what_is_wrong() {
    let message = |text: &str| text.parse::<GpuWant>().expect_err(text).to_string();
    for text in ["", "  ", ":2", " : ", ":"] {
        assert!(message(text).contains("names no GPU"), "{text:?}");
    }
    assert!(message("RTX4090:").contains("ends with a colon"));
    assert!(message("RTX4090:0").contains("at least 1"));
    for text in ["RTX4090:two", "RTX4090:1.5", "RTX4090:-1", "RTX4090:+1", "RTX4090:99999999999", "2:RTX4090"]
    {
        assert!(message(text).contains("not a number of GPUs"), "{text:?}");
    }
    assert!(message("RTX4090:x").contains("RTX4090:2"));
}
