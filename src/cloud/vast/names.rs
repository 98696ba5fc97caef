//! Vast's spellings of GPU names: a search must name them, or its 64 rows are those of every card there is.
//!
//! The live catalogue is `GET /api/v0/gpu_types/`; names in it are stable, new cards follow the same style. What is not here
//! is asked for as the user spells it.

use crate::model::gpu::{Gpu, GpuModel};

/// A spelling, and the sizes of such cards in GB as rows tell them.
type Name = (&'static str, &'static [u32]);

/// The spellings of the live catalogue (github.com/vast-ai/vast-cli, `vastai/data`), and of cards that came later.
#[rustfmt::skip]
const NAMES: &[Name] = &[
    ("A10", &[24]), ("A100 PCIE", &[40, 80]), ("A100 SXM4", &[40, 80]), ("A100 SXM", &[40, 80]), ("A100X", &[80]),
    ("A10g", &[24]), ("A16", &[16]), ("A2", &[16]), ("A30", &[24]), ("A40", &[48]), ("A800 PCIE", &[80]),
    ("B200", &[180]), ("B200 SXM", &[180]), ("B300", &[288]), ("B300 SXM6", &[288]), ("GB200", &[192]), ("GB300", &[288]),
    ("GH200 SXM", &[96, 144]), ("H100 NVL", &[94]), ("H100 PCIE", &[80]), ("H100 SXM", &[80]),
    ("H200", &[141]), ("H200 NVL", &[141]), ("H800", &[80]), ("H20", &[96, 141]),
    ("L4", &[24]), ("L40", &[48]), ("L40S", &[48]), ("L20", &[48]),
    ("RTX PRO 6000 WS", &[96]), ("RTX PRO 6000 S", &[96]), ("RTX PRO 6000", &[96]), ("RTX PRO 6000 Max-Q", &[96]),
    ("RTX PRO 5000", &[48, 72]), ("RTX PRO 4500", &[32]), ("RTX PRO 4000", &[24]), ("RTX PRO 2000", &[16]),
    ("RTX 5090", &[32]), ("RTX 5090 D", &[32]), ("RTX 5090D", &[32]), ("RTX 5080", &[16]), ("RTX 5070 Ti", &[16]),
    ("RTX 5070", &[12]), ("RTX 5060 Ti", &[8, 16]), ("RTX 5060", &[8]), ("RTX 5050", &[8]),
    ("RTX 4090", &[24, 48]), ("RTX 4090D", &[24, 48]), ("RTX 4090 D", &[24, 48]), ("RTX 4080S", &[16, 32]), ("RTX 4080", &[16]),
    ("RTX 4070S Ti", &[16]), ("RTX 4070 Ti", &[12]), ("RTX 4070S", &[12]), ("RTX 4070", &[12]),
    ("RTX 4060 Ti", &[8, 16]), ("RTX 4060", &[8]),
    ("RTX 3090 Ti", &[24]), ("RTX 3090", &[24]), ("RTX 3080 Ti", &[12]), ("RTX 3080", &[10, 12, 20]),
    ("RTX 3070 Ti", &[8]), ("RTX 3070", &[8]), ("RTX 3060 Ti", &[8]), ("RTX 3060", &[12, 8]), ("RTX 3050", &[8, 6]),
    ("RTX 6000Ada", &[48]), ("RTX 5880Ada", &[48]), ("RTX 5000Ada", &[32]), ("RTX 4500Ada", &[24]),
    ("RTX 4000Ada", &[20]), ("RTX 2000Ada", &[16]),
    ("RTX A6000", &[48]), ("RTX A5500", &[24]), ("RTX A5000", &[24]), ("RTX A4500", &[20]), ("RTX A4000", &[16]),
    ("RTX A2000", &[6, 12]), ("RTX A1000", &[8]), ("RTX A400", &[4]),
    ("Q RTX 8000", &[48]), ("Q RTX 6000", &[24]), ("Q RTX 5000", &[16]), ("Q RTX 4000", &[8]),
    ("Titan RTX", &[24]), ("Titan V", &[12]), ("TITAN V CEO", &[32]), ("Titan X", &[12]), ("Titan Xp", &[12]),
    ("RTX 2080 Ti", &[11, 22]), ("RTX 2080S", &[8]), ("RTX 2080", &[8]), ("RTX 2070S", &[8]), ("RTX 2070", &[8]),
    ("RTX 2060S", &[8]), ("RTX 2060", &[6, 12]),
    ("Tesla T4", &[16]), ("Tesla V100", &[16, 32]), ("Tesla P100", &[16, 12]), ("Tesla P40", &[24]), ("Tesla P4", &[8]),
    ("Tesla M40", &[12, 24]), ("Tesla K80", &[12]),
    ("GTX 1660 Ti", &[6]), ("GTX 1660 S", &[6]), ("GTX 1660", &[6]), ("GTX 1650 S", &[4]), ("GTX 1650", &[4]),
    ("GTX 1080 Ti", &[11]), ("GTX 1080", &[8]), ("GTX 1070 Ti", &[8]), ("GTX 1070", &[8]), ("GTX 1060", &[6, 3]),
    ("GTX 1050 Ti", &[4]), ("GTX 1050", &[2, 3]),
    ("Quadro GV100", &[32]), ("Quadro GP100", &[16]), ("Quadro P6000", &[24]), ("Quadro P5000", &[16]),
    ("Quadro P4000", &[8]), ("Quadro P2000", &[5]),
    ("InstinctMI50", &[16, 32]), ("InstinctMI100", &[32]), ("InstinctMI210", &[64]), ("InstinctMI250X", &[128]),
    ("InstinctMI300X", &[192]),
];

/// How a search names a card, and between which sizes it looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cards {
    /// Vast's spellings; empty for any card.
    pub(super) names: Vec<String>,
    /// Smallest and largest memory of one card in GB, nominal, where the names alone would bring other cards too.
    pub(super) sizes: Option<(u32, u32)>,
}

/// Returns the spellings of all these models together.
pub(super) fn cards<'a>(models: impl IntoIterator<Item = &'a GpuModel>) -> Cards {
    let models: Vec<&GpuModel> = models.into_iter().collect();
    if models.contains(&&GpuModel::Any) {
        return Cards::default();
    }
    let mut cards = Cards::default();
    let (mut wanted, mut others) = (Vec::new(), false);
    for model in models {
        let before = cards.names.len();
        for (name, sizes) in NAMES {
            let fits = |gb: &&u32| model.matches(&Gpu::identify(name, Some(f64::from(**gb))));
            let fitting: Vec<u32> = sizes.iter().filter(fits).copied().collect();
            if !fitting.is_empty() {
                others |= fitting.len() < sizes.len();
                wanted.extend(fitting);
                cards.names.push((*name).to_owned());
            }
        }
        if cards.names.len() == before {
            cards.names.push(model.as_asked().to_owned());
            // Nobody knows the size of a card that nobody knows.
            wanted.extend([0, u32::MAX]);
        }
    }
    cards.names.sort();
    cards.names.dedup();
    let range = wanted.iter().min().zip(wanted.iter().max());
    cards.sizes = range.map(|(least, most)| (*least, *most)).filter(|(_, most)| others && *most < u32::MAX);
    cards
}

/// Returns the spelling of an exact type as the user typed it: Vast's own where only case and blanks differ.
pub(super) fn spelling(typed: &str) -> String {
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let typed = fold(typed);
    let known = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(&typed));
    known.map_or(typed, |(name, _)| (*name).to_owned())
}

/// Whether cards of this name sit in ARM hosts, for which our image may not be made.
pub(super) fn is_arm(name: &str) -> bool {
    name.starts_with("GH") || name.starts_with("GB")
}

/// Whether this is a card without CUDA.
pub(super) fn is_amd(name: &str) -> bool {
    name.starts_with("Instinct") || name.starts_with("Radeon")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(models: &[&str]) -> Cards {
        let models: Vec<GpuModel> = models.iter().map(|name| GpuModel::named(name)).collect();
        cards(&models)
    }

    #[test]
    fn a_model_is_all_its_spellings_and_nothing_else() {
        for (model, names) in [
            ("RTX4090", &["RTX 4090"][..]),
            ("4090", &["RTX 4090"]),
            ("RTX4090D", &["RTX 4090 D", "RTX 4090D"]),
            ("H100", &["H100 NVL", "H100 PCIE", "H100 SXM"]),
            ("H200", &["H200", "H200 NVL"]),
            ("L40", &["L40"]),
            ("A10G", &["A10g"]),
            ("A6000", &["RTX A6000"]),
            ("RTX6000ADA", &["RTX 6000Ada"]),
            ("RTXPRO6000", &["RTX PRO 6000", "RTX PRO 6000 Max-Q", "RTX PRO 6000 S", "RTX PRO 6000 WS"]),
            ("RTX4070TISUPER", &["RTX 4070S Ti"]),
            ("T4", &["Tesla T4"]),
            ("some new card", &["some new card"]),
        ] {
            assert_eq!(of(&[model]).names, names, "{model}");
        }
        assert_eq!(of(&["H100", "any"]), Cards::default());
        assert_eq!(of(&["L4", "H200"]).names, ["H200", "H200 NVL", "L4"]);
    }

    #[test]
    fn sizes_narrow_names_that_stand_for_several() {
        assert_eq!(of(&["A100"]).sizes, Some((40, 40)));
        assert_eq!(of(&["A100"]).names, ["A100 PCIE", "A100 SXM", "A100 SXM4"]);
        assert_eq!(of(&["A100-80GB"]).sizes, Some((80, 80)));
        assert_eq!(of(&["V100-32GB"]).sizes, Some((32, 32)));
        assert_eq!(of(&["A100", "L4"]).sizes, Some((24, 40)));
        for all in [&["RTX4090"][..], &["H100"], &["A100", "some new card"]] {
            assert_eq!(of(all).sizes, None, "{all:?}");
        }
    }

    #[test]
    fn every_spelling_is_a_card_of_our_table() {
        for (name, sizes) in NAMES {
            for gb in *sizes {
                assert!(Gpu::identify(name, Some(f64::from(*gb))).known, "{name} {gb}");
            }
        }
    }

    #[test]
    fn an_exact_type_is_spelled_as_vast_does() {
        assert_eq!(spelling(" rtx  4090"), "RTX 4090");
        assert_eq!(spelling("No Such"), "No Such");
    }
}
