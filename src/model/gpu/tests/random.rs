//! Rules that hold for any text.

use proptest::prelude::*;

use super::super::*;

/// Texts that look like GPU names, so that random tests reach the interesting branches.
fn gpu_like() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("NVIDIA".to_owned()),
        Just("RTX".to_owned()),
        Just("GTX".to_owned()),
        Just("PRO".to_owned()),
        Just("Quadro".to_owned()),
        Just("Q".to_owned()),
        Just("Ada".to_owned()),
        Just("Ti".to_owned()),
        Just("S".to_owned()),
        Just("SUPER".to_owned()),
        Just("MIG".to_owned()),
        Just("1g.24gb".to_owned()),
        Just("gpu".to_owned()),
        Just("A".to_owned()),
        Just("TITAN".to_owned()),
        Just("SXM5".to_owned()),
        Just("NVL".to_owned()),
        Just("Max-Q".to_owned()),
        Just("Blackwell".to_owned()),
        Just("é".to_owned()),
        "[A-Z]?[0-9]{1,4}[a-zA-Z]{0,3}",
        "[0-9]{1,5}G[iI]?B?",
        "\\PC{0,3}",
    ];
    let glue = prop_oneof![Just(""), Just(" "), Just("  "), Just("-"), Just("_"), Just(":")];
    proptest::collection::vec((word, glue), 0..7)
        .prop_map(|parts| parts.into_iter().map(|(word, glue)| word + glue).collect())
}

fn figure() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![Just(None), (1.0..400.0_f64).prop_map(Some), any::<f64>().prop_map(Some)]
}

proptest! {
    #[test]
    fn identify_takes_any_text(raw in any::<String>(), gb in figure()) {
        let gpu = Gpu::identify(&raw, gb);
        prop_assert_eq!(&gpu.raw, &raw);
        prop_assert!(nearest(&raw, &[]).len() <= 3);
    }

    #[test]
    fn shown_names_are_fixed_points(raw in gpu_like(), gb in figure()) {
        let gpu = Gpu::identify(&raw, gb);
        let again = Gpu::identify(&gpu.name, None);
        prop_assert_eq!(&again.name, &gpu.name);
        prop_assert_eq!(again.known, gpu.known);
        if gpu.known {
            prop_assert_eq!(again.vram_gb, gpu.vram_gb);
        }
    }

    #[test]
    fn a_shown_name_asks_for_itself(raw in gpu_like(), gb in figure()) {
        let gpu = Gpu::identify(&raw, gb);
        // An empty name cannot be asked for.
        if gpu.name.is_empty() {
            return Ok(());
        }
        prop_assert!(GpuModel::named(&gpu.name).matches(&gpu), "{:?}", gpu);
        let upper = GpuModel::named(&gpu.name.to_ascii_uppercase());
        let wide = GpuModel::named(&format!("  {} ", gpu.name.to_ascii_lowercase().replace(' ', "   ")));
        prop_assert!(upper.matches(&gpu) && wide.matches(&gpu));
        prop_assert_eq!(upper, wide);
    }

    #[test]
    fn wants_round_trip(name in prop_oneof![gpu_like(), "\\PC{1,20}"], count in 1_u32..) {
        if let Ok(read) = format!("{name}:{count}").parse::<GpuWant>() {
            prop_assert_eq!(read.count, count);
            prop_assert_eq!(&read.to_string().parse::<GpuWant>(), &Ok(read));
        }
    }

    #[test]
    fn known_asks_take_only_cards_of_that_name(ask in gpu_like(), raw in gpu_like(), gb in figure()) {
        let model = GpuModel::named(&ask);
        let gpu = Gpu::identify(&raw, gb);
        if model.is_known() && model != GpuModel::Any && model.matches(&gpu) {
            prop_assert!(gpu.known, "{} took {:?}", model, gpu);
            let base = |text: &str| text.split('-').next().map(str::to_owned);
            prop_assert_eq!(base(&model.to_string()), base(&gpu.name));
        }
    }

    #[test]
    fn short_names_fit_machine_names(raw in prop_oneof![gpu_like(), any::<String>()], gb in figure()) {
        let short = short_name(&Gpu::identify(&raw, gb));
        prop_assert!(short.starts_with(|c: char| c.is_ascii_lowercase()), "{}", short);
        prop_assert!(short.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        prop_assert!(!short.ends_with('-') && (2..=SHORT_NAME_MAX).contains(&short.len()), "{}", short);
    }
}
