//! What a person asks for with `--gpus`.

use std::fmt;
use std::str::FromStr;

use super::Gpu;
use super::name::{collapse, fold, parse};
use super::table::{Model, same_size};

/// One `--gpus NAME[:COUNT]`: a model and how many of it. COUNT is exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuWant {
    /// Which model.
    pub model: GpuModel,
    /// How many cards in one machine, at least 1.
    pub count: u32,
}

/// Which model is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuModel {
    /// Any model, also one that our table does not know.
    Any,
    /// The named one.
    Named(NamedModel),
}

/// A model named by a person. Two of them are equal when they ask for the same, however spelled.
#[derive(Clone, Debug)]
pub struct NamedModel {
    asked: String,
    rule: Rule,
}

/// How a named model is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// A model of the table; with a size, only cards within 10 % of it (GB).
    Table { model: &'static Model, size: Option<u32> },
    /// A model of the table in a size that the table does not have: by shown name.
    OddSize { shown: String },
    /// A name the table does not know: equal to the cloud's spelling, but for case and blanks. Folded.
    Exact { folded: String },
}

/// Why a `--gpus` value could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuWantError {
    /// Nothing was given, or nothing before the colon.
    #[error("`{asked}` names no GPU; write NAME or NAME:COUNT, such as RTX4090 or RTX4090:2")]
    NoName {
        /// What was given.
        asked: String,
    },
    /// Nothing after the colon.
    #[error("`{asked}` ends with a colon; write {name} or {name}:COUNT")]
    NoCount {
        /// What was given.
        asked: String,
        /// The part before the colon.
        name: String,
    },
    /// What stands after the colon is no whole number.
    #[error(
        "`{count}` in `{asked}` is not a number of GPUs; write NAME:COUNT with a whole number, such as {name}:2"
    )]
    BadCount {
        /// What was given.
        asked: String,
        /// The part before the colon.
        name: String,
        /// The part after the colon.
        count: String,
    },
    /// Zero GPUs.
    #[error(
        "`{asked}` asks for no GPU at all; the count is at least 1 (a machine without a GPU: --cpu-only)"
    )]
    ZeroCount {
        /// What was given.
        asked: String,
    },
}

impl FromStr for GpuWant {
    type Err = GpuWantError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let asked = || text.trim().to_owned();
        let (name, count) = match text.rsplit_once(':') {
            Some((name, count)) => (collapse(name), Some(count.trim())),
            None => (collapse(text), None),
        };
        if name.is_empty() {
            return Err(GpuWantError::NoName { asked: asked() });
        }
        let count = match count {
            None => 1,
            Some("") => return Err(GpuWantError::NoCount { asked: asked(), name }),
            Some(digits) => {
                // `parse` alone would take `+2`.
                let number = digits.parse().ok().filter(|_| !digits.starts_with('+'));
                let Some(number) = number else {
                    return Err(GpuWantError::BadCount { asked: asked(), name, count: digits.to_owned() });
                };
                number
            }
        };
        if count == 0 {
            return Err(GpuWantError::ZeroCount { asked: asked() });
        }
        Ok(GpuWant { model: GpuModel::named(&name), count })
    }
}

impl fmt::Display for GpuWant {
    /// The canonical form, `RTX4090:1`; reads back as the same want.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.model, self.count)
    }
}

impl GpuModel {
    /// The model of this name (without a count); `any` is any. An unknown name is kept for exact comparison.
    pub fn named(name: &str) -> GpuModel {
        let asked = collapse(name);
        if asked.eq_ignore_ascii_case("any") {
            return GpuModel::Any;
        }
        let parsed = parse(&asked);
        let rule = match (parsed.model, parsed.size) {
            (None, _) => Rule::Exact { folded: fold(&asked) },
            (Some(model), None) => Rule::Table { model, size: None },
            (Some(model), Some(gb)) if model.sizes.iter().any(|size| same(*size, gb)) => {
                // A100-40GB is what plain A100 means.
                let size = Some(gb).filter(|gb| !(narrowed(model) && same(model.usual(), *gb)));
                Rule::Table { model, size }
            }
            (Some(model), Some(gb)) => Rule::OddSize { shown: model.shown(gb) },
        };
        GpuModel::Named(NamedModel { asked, rule })
    }

    /// Whether this card will do.
    pub fn matches(&self, gpu: &Gpu) -> bool {
        match self {
            GpuModel::Any => true,
            GpuModel::Named(named) => named.rule.matches(gpu),
        }
    }

    /// Whether our table knows the model (in the size asked for); `any` is known.
    pub fn is_known(&self) -> bool {
        match self {
            GpuModel::Any => true,
            GpuModel::Named(named) => matches!(named.rule, Rule::Table { .. }),
        }
    }

    /// What the person typed, blanks collapsed, without the count.
    pub fn as_asked(&self) -> &str {
        match self {
            GpuModel::Any => "any",
            GpuModel::Named(named) => &named.asked,
        }
    }
}

impl fmt::Display for GpuModel {
    /// The canonical spelling of a known name, the asked one of an unknown name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuModel::Any => f.write_str("any"),
            GpuModel::Named(named) => match &named.rule {
                Rule::Table { model, size: None } => f.write_str(model.name),
                Rule::Table { model, size: Some(gb) } => write!(f, "{}-{gb}GB", model.name),
                Rule::OddSize { shown } => f.write_str(shown),
                Rule::Exact { .. } => f.write_str(&named.asked),
            },
        }
    }
}

impl PartialEq for NamedModel {
    fn eq(&self, other: &Self) -> bool {
        self.rule == other.rule
    }
}

impl Eq for NamedModel {}

impl Rule {
    fn matches(&self, gpu: &Gpu) -> bool {
        match self {
            Rule::Table { model, size } => {
                // Shown names of the table hold no dash but the one before the size.
                let base = gpu.name.split('-').next().unwrap_or_default();
                if !gpu.known || base != model.name {
                    return false;
                }
                let wanted = size.or_else(|| narrowed(model).then(|| model.usual()));
                match (wanted, gpu.vram_gb) {
                    (None, _) => true,
                    (Some(wanted), Some(gb)) => same_size(f64::from(wanted), gb),
                    (Some(_), None) => false,
                }
            }
            Rule::OddSize { shown } => gpu.name.eq_ignore_ascii_case(shown),
            Rule::Exact { folded } => !gpu.known && (fold(&gpu.name) == *folded || fold(&gpu.raw) == *folded),
        }
    }
}

/// Whether the bare name stands for the usual size alone. Only A100 is so: its 80 GB card costs far more.
fn narrowed(model: &Model) -> bool {
    model.name == "A100"
}

fn same(a: u32, b: u32) -> bool {
    same_size(f64::from(a), f64::from(b))
}
