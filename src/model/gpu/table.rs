//! The cards we know, with the nominal memory of each.
//!
//! A name here is a shown spelling: upper case, no blanks, variants written out. The first size is the usual
//! one, which the bare name stands for; the others are shown with their size (`V100-32GB`).

use std::collections::HashMap;
use std::sync::LazyLock;

/// One model of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// The shown name of the usual size.
    pub(super) name: &'static str,
    /// Nominal sizes in GB, the usual one first; never empty.
    pub(super) sizes: &'static [u32],
}

/// How a memory figure sits with the sizes of a model. All in GB.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// One of the nominal sizes.
    Nominal(u32),
    /// Far more than any: a card with its memory chips replaced, as found on market places.
    Larger(u32),
    /// Far less than any: a part of a card.
    Slice(u32),
}

impl Model {
    /// The usual size, GB.
    pub(super) fn usual(&self) -> u32 {
        self.sizes.first().copied().unwrap_or_default()
    }

    /// The name shown for a card of this size.
    pub(super) fn shown(&self, size: u32) -> String {
        if size == self.usual() { self.name.to_owned() } else { format!("{}-{size}GB", self.name) }
    }

    /// Which size a figure means. Clouds tell what the driver sees, 2 to 9 % below nominal.
    pub(super) fn fit(&self, figure: Option<u32>) -> Fit {
        let Some(figure) = figure else { return Fit::Nominal(self.usual()) };
        let smallest = self.sizes.iter().copied().min().unwrap_or_default();
        let largest = self.sizes.iter().copied().max().unwrap_or_default();
        if figure * 4 < smallest * 3 {
            return Fit::Slice(figure);
        }
        if figure * 4 > largest * 5 {
            return Fit::Larger(figure);
        }
        let off = |size: u32| f64::from(size.max(figure)) / f64::from(size.min(figure).max(1));
        let nearest = self.sizes.iter().copied().min_by(|a, b| off(*a).total_cmp(&off(*b)));
        Fit::Nominal(nearest.unwrap_or_default())
    }
}

/// Whether two sizes are the same for an ask: within 10 %.
pub(super) fn same_size(a: f64, b: f64) -> bool {
    // The tiny surplus keeps exactly 10 % inside in spite of binary fractions.
    (a - b).abs() <= a.max(b) * 0.1 + 1e-9
}

/// The model with this exact shown name (of the usual size).
pub(super) fn find(name: &str) -> Option<&'static Model> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Model>> =
        LazyLock::new(|| MODELS.iter().map(|model| (model.name, model)).collect());
    BY_NAME.get(name).copied()
}

/// Every name the table can show, sorted.
pub(super) fn shown_names() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut names: Vec<String> =
            MODELS.iter().flat_map(|model| model.sizes.iter().map(|size| model.shown(*size))).collect();
        names.sort();
        names
    });
    &NAMES
}

const fn m(name: &'static str, sizes: &'static [u32]) -> Model {
    Model { name, sizes }
}

/// Every model, by family.
#[rustfmt::skip]
pub(super) static MODELS: &[Model] = &[
    // Data centre. B300 is told as 262 to 288, B200 as 180 to 192, H200 NVL as 143.
    m("GB300", &[288]), m("GB200", &[192]), m("B300", &[288]), m("B200", &[180]),
    m("GH200", &[96, 144]), m("H200", &[141]), m("H100", &[80, 94]), m("H800", &[80]), m("H20", &[96, 141]),
    m("A100", &[40, 80]), m("A800", &[80, 40]), m("A40", &[48]), m("A30", &[24]), m("A16", &[16]),
    m("A10", &[24]), m("A10G", &[24]), m("A2", &[16]),
    m("L40S", &[48]), m("L40", &[48]), m("L20", &[48]), m("L4", &[24]), m("L2", &[24]),
    m("V100", &[16, 32]), m("T4", &[16]), m("T4G", &[16]),
    m("P100", &[16, 12]), m("P40", &[24]), m("P4", &[8]), m("M60", &[8]), m("M40", &[12, 24]), m("M4", &[4]),
    m("K80", &[12]), m("K40", &[12]),
    // Workstation: Blackwell, Ada, Ampere, Turing, Pascal.
    m("RTXPRO6000", &[96]), m("RTXPRO5000", &[48, 72]), m("RTXPRO4500", &[32]), m("RTXPRO4000", &[24]),
    m("RTXPRO2000", &[16]),
    m("RTX6000ADA", &[48]), m("RTX5880ADA", &[48]), m("RTX5000ADA", &[32]), m("RTX4500ADA", &[24]),
    m("RTX4000ADA", &[20]), m("RTX4000ADASFF", &[20]), m("RTX2000ADA", &[16]),
    m("A6000", &[48]), m("A5500", &[24]), m("A5000", &[24]), m("A4500", &[20]), m("A4000", &[16]),
    m("A2000", &[6, 12]), m("A1000", &[8]), m("A400", &[4]),
    m("QRTX8000", &[48]), m("QRTX6000", &[24]), m("QRTX5000", &[16]), m("QRTX4000", &[8]),
    m("QUADROGV100", &[32]), m("QUADROGP100", &[16]), m("QUADROP6000", &[24]), m("QUADROP5000", &[16]),
    m("QUADROP4000", &[8]), m("QUADROP2000", &[5]),
    m("TITANRTX", &[24]), m("TITANV", &[12]), m("TITANVCEO", &[32]), m("TITANX", &[12]), m("TITANXP", &[12]),
    // GeForce. 22, 20 and 48 GB are cards rebuilt with more memory, offered on market places.
    m("RTX5090", &[32]), m("RTX5090D", &[32]), m("RTX5080", &[16]), m("RTX5070TI", &[16]), m("RTX5070", &[12]),
    m("RTX5060TI", &[8, 16]), m("RTX5060", &[8]), m("RTX5050", &[8]),
    m("RTX4090", &[24, 48]), m("RTX4090D", &[24, 48]), m("RTX4080SUPER", &[16, 32]), m("RTX4080", &[16]),
    m("RTX4070TISUPER", &[16]), m("RTX4070TI", &[12]), m("RTX4070SUPER", &[12]), m("RTX4070", &[12]),
    m("RTX4060TI", &[8, 16]), m("RTX4060", &[8]),
    m("RTX3090TI", &[24]), m("RTX3090", &[24]), m("RTX3080TI", &[12]), m("RTX3080", &[10, 12, 20]),
    m("RTX3070TI", &[8]), m("RTX3070", &[8]), m("RTX3060TI", &[8]), m("RTX3060", &[12, 8]), m("RTX3050", &[8, 6]),
    m("RTX2080TI", &[11, 22]), m("RTX2080SUPER", &[8]), m("RTX2080", &[8]), m("RTX2070SUPER", &[8]),
    m("RTX2070", &[8]), m("RTX2060SUPER", &[8]), m("RTX2060", &[6, 12]),
    m("GTX1660TI", &[6]), m("GTX1660SUPER", &[6]), m("GTX1660", &[6]), m("GTX1650SUPER", &[4]), m("GTX1650", &[4]),
    m("GTX1080TI", &[11]), m("GTX1080", &[8]), m("GTX1070TI", &[8]), m("GTX1070", &[8]), m("GTX1060", &[6, 3]),
    m("GTX1050TI", &[4]), m("GTX1050", &[2, 3]), m("GTX980TI", &[6]), m("GTX980", &[4]), m("GTX970", &[4]),
    // AMD.
    m("MI355X", &[288]), m("MI350X", &[288]), m("MI325X", &[256]), m("MI300X", &[192]), m("MI300A", &[128]),
    m("MI250X", &[128]), m("MI250", &[128]), m("MI210", &[64]), m("MI100", &[32]), m("MI60", &[32]),
    m("MI50", &[16, 32]),
];
