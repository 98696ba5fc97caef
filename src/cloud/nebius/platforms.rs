//! Platforms and presets: which GPU a platform has, and what a preset's name says.
//!
//! What exists is told by the API for each project; built in is only what the names mean (docs.nebius.com/compute, types of
//! virtual machines). A platform's name is `gpu-MODEL-...` or `cpu-...`; SXM cards and RTX PRO 6000 come as one or eight, L40S
//! as one, two or four.

use crate::model::gpu::Gpu;

/// Platforms whose processor is ARM64: the images that gpuprov boots are for x86.
const ARM: [&str; 3] = ["GB200", "GB300", "GH200"];

/// A card that Nebius's list names.
struct Card {
    /// The platform's word for it.
    stem: &'static str,
    /// Our spelling.
    name: &'static str,
    /// Nominal memory in GB; Nebius's pages name 270, 279 and 288 for the B300.
    memory_gb: f64,
    /// How many a machine has.
    counts: &'static [u32],
}

const fn card_of(stem: &'static str, name: &'static str, memory_gb: f64, counts: &'static [u32]) -> Card {
    Card { stem, name, memory_gb, counts }
}

/// The cards that are offered without being asked for by their exact type.
const CARDS: [Card; 6] = [
    card_of("h100", "H100", 80.0, &[1, 8]),
    card_of("h200", "H200", 141.0, &[1, 8]),
    card_of("b200", "B200", 180.0, &[1, 8]),
    card_of("b300", "B300", 288.0, &[1, 8]),
    // Not the RTX 6000 of other clouds.
    card_of("rtx6000", "RTXPRO6000", 96.0, &[1, 8]),
    card_of("l40s", "L40S", 48.0, &[1, 2, 4]),
];

/// Returns the word for the card in a platform's name: `h100` of `gpu-h100-sxm`; none without a GPU.
fn stem(platform: &str) -> Option<&str> {
    let rest = platform.strip_prefix("gpu-")?;
    rest.split('-').next().filter(|stem| !stem.is_empty())
}

/// Returns the card of a platform; none for one without a GPU. `memory_gb` is what the API tells of one card, and counts only
/// for cards that are not in the list.
pub(super) fn card(platform: &str, memory_gb: Option<f64>) -> Option<Gpu> {
    let stem = stem(platform)?;
    let listed = CARDS.iter().find(|card| card.stem == stem);
    let mut gpu = match listed {
        Some(card) => Gpu::identify(card.name, Some(card.memory_gb)),
        None => Gpu::identify(&stem.to_ascii_uppercase(), memory_gb),
    };
    platform.clone_into(&mut gpu.raw);
    Some(gpu)
}

/// Whether a preset with so many of the platform's cards is one that the list has. Of other cards every count is.
pub(super) fn is_listed(platform: &str, count: u32) -> bool {
    let Some(stem) = stem(platform) else { return count == 0 };
    match CARDS.iter().find(|card| card.stem == stem) {
        Some(card) => card.counts.contains(&count),
        None => count > 0,
    }
}

/// Whether the platform's processor is ARM64.
pub(super) fn is_arm(platform: &str) -> bool {
    stem(platform).is_some_and(|stem| ARM.iter().any(|word| stem.eq_ignore_ascii_case(word)))
}

/// Returns the name of the quota that counts a platform's GPUs, where the API does not tell it.
pub(super) fn gpu_quota(platform: &str) -> Option<String> {
    stem(platform).map(|stem| format!("compute.instance.gpu.{stem}"))
}

/// What a preset has, whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) gpus: u32,
    pub(super) vcpus: u32,
    /// GiB, though preset names say `gb`.
    pub(super) ram_gib: u32,
}

impl Shape {
    /// Reads a preset's name, `8gpu-128vcpu-1600gb` or `4vcpu-16gb`; none if it is something else.
    pub(super) fn of_name(preset: &str) -> Option<Self> {
        let (mut gpus, mut vcpus, mut ram_gib) = (0, None, None);
        for part in preset.split('-') {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let (figure, unit) = part.split_at(digits);
            let figure: u32 = figure.parse().ok()?;
            match unit {
                "gpu" => gpus = figure,
                "vcpu" => vcpus = Some(figure),
                "gb" => ram_gib = Some(figure),
                _ => return None,
            }
        }
        Some(Shape { gpus, vcpus: vcpus?, ram_gib: ram_gib? })
    }
}

/// Returns the instance type: the platform and the preset with a blank between.
pub(super) fn type_name(platform: &str, preset: &str) -> String {
    format!("{platform} {preset}")
}

/// Takes an instance type apart; none if it is none of Nebius's.
pub(super) fn read_type(name: &str) -> Option<(&str, &str)> {
    let (platform, preset) = name.trim().split_once(' ')?;
    let preset = preset.trim_start();
    let fits = |word: &str| {
        (1..=63).contains(&word.len())
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    (fits(platform) && fits(preset)).then_some((platform, preset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_of_platforms() {
        for (platform, memory, name, vram) in [
            ("gpu-h100-sxm", Some(80.0), "H100", 80.0),
            ("gpu-h200-sxm", None, "H200", 141.0),
            ("gpu-b200-sxm", Some(180.0), "B200", 180.0),
            ("gpu-b200-sxm-a", Some(192.0), "B200", 180.0),
            ("gpu-b300-sxm", Some(270.0), "B300", 288.0),
            ("gpu-rtx6000", Some(96.0), "RTXPRO6000", 96.0),
            ("gpu-rtx6000-a", None, "RTXPRO6000", 96.0),
            ("gpu-l40s-a", Some(48.0), "L40S", 48.0),
            ("gpu-l40s-d", Some(46.0), "L40S", 48.0),
            ("gpu-a100-sxm", Some(80.0), "A100-80GB", 80.0),
        ] {
            let card = card(platform, memory).unwrap();
            assert_eq!(
                (card.name.as_str(), card.vram_gb, card.known),
                (name, Some(vram), true),
                "{platform}"
            );
            assert_eq!(card.raw, platform);
        }
        let unknown = card("gpu-z900-sxm", Some(512.0)).unwrap();
        assert_eq!((unknown.name.as_str(), unknown.known), ("Z900", false));
        for none in ["cpu-d3", "cpu-e2", "gpu-", "gpu", ""] {
            assert_eq!(card(none, Some(80.0)), None, "{none}");
        }
        assert!(
            is_arm("gpu-gb300") && is_arm("gpu-gb200-nvl") && !is_arm("gpu-b300-sxm") && !is_arm("cpu-d3")
        );
        assert_eq!(gpu_quota("gpu-b200-sxm-a").as_deref(), Some("compute.instance.gpu.b200"));
    }

    #[test]
    fn counts_of_the_list() {
        for (platform, count, listed) in [
            ("gpu-h100-sxm", 1, true),
            ("gpu-h100-sxm", 8, true),
            ("gpu-h100-sxm", 4, false),
            ("gpu-l40s-d", 4, true),
            ("gpu-l40s-d", 8, false),
            ("gpu-z900", 3, true),
            ("cpu-d3", 0, true),
        ] {
            assert_eq!(is_listed(platform, count), listed, "{platform} {count}");
        }
    }

    #[test]
    fn names_are_read() {
        let shape = |gpus, vcpus, ram_gib| Some(Shape { gpus, vcpus, ram_gib });
        assert_eq!(Shape::of_name("8gpu-128vcpu-1600gb"), shape(8, 128, 1600));
        assert_eq!(Shape::of_name("4vcpu-16gb"), shape(0, 4, 16));
        for other in ["", "8gpu", "vcpu-gb", "4vcpu-16gb-fast", "99999999999vcpu-1gb", "4vcpu--16gb"] {
            assert_eq!(Shape::of_name(other), None, "{other}");
        }
        assert_eq!(read_type("gpu-h100-sxm 1gpu-16vcpu-200gb"), Some(("gpu-h100-sxm", "1gpu-16vcpu-200gb")));
        for other in ["", "gpu-h100-sxm", "gpu-h100-sxm ", "gpu a b", "GPU x", "gpu-\u{1b} x"] {
            assert_eq!(read_type(other), None, "{other:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,40}") {
            let _ = (Shape::of_name(&text), read_type(&text), card(&text, None), is_listed(&text, 1));
        }
    }
}
