//! GPU names: what a cloud calls a card, what we show, and what an ask matches.
//!
//! [`Gpu::identify`] turns a cloud's spelling into one shown name with its nominal memory; [`GpuWant`] is what a
//! person asked for. Both read names with the same parser (`name.rs`) against one table (`table.rs`), so any
//! spelling that a cloud uses can also be asked for.
//!
//! A name counts as known only when every word of it is understood. One word too many (`LAPTOP`, `MIG`, `vws`)
//! makes it an unknown card, shown as the cloud spells it and matched by that exact name alone: this is what
//! keeps `L40` from being `L40S`, and a slice from being sold as the whole card.

mod name;
mod table;
#[cfg(test)]
mod tests;
mod want;

use self::name::{collapse, parse};
use self::table::Fit;
pub use self::want::{GpuModel, GpuWant, GpuWantError, NamedModel};

/// No card has this much memory (GB); a larger figure is in another unit or for a whole cluster.
const IMPLAUSIBLE_GB: f64 = 1024.0;

/// One GPU model as a cloud offers it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// The shown name: `RTX4090`, `A100-80GB`. For a card our table does not know, and for a MIG slice, the
    /// cloud's own spelling with blanks collapsed.
    pub name: String,
    /// The cloud's spelling, byte for byte; requests to the cloud use this one.
    pub raw: String,
    /// Memory of one card in GB: the nominal size from our table, for unknown names the cloud's own figure.
    pub vram_gb: Option<f64>,
    /// Whether our table knows the card. Unknown ones match only by exact name and by `any`.
    pub known: bool,
}

impl Gpu {
    /// Finds out which card `raw` is. Never fails: what is not understood comes back as an unknown card.
    ///
    /// `memory_gb` is the memory of one card as the cloud tells it, in GB or GiB (both are near enough). It
    /// decides between cards that share a name. A card with far less memory than any of its name is a slice,
    /// whatever it is called: it becomes an unknown card that shows its size (`RTXPRO6000-24GB`).
    pub fn identify(raw: &str, memory_gb: Option<f64>) -> Gpu {
        let told = memory_gb.filter(|gb| *gb > 0.0 && *gb < IMPLAUSIBLE_GB);
        let parsed = parse(raw);
        let Some(model) = parsed.model else {
            return Gpu { name: collapse(raw), raw: raw.to_owned(), vram_gb: told, known: false };
        };
        let figure = told.map(whole_gb).or(parsed.size).or(parsed.implied);
        let (size, known) = match model.fit(figure) {
            Fit::Nominal(size) | Fit::Larger(size) => (size, true),
            Fit::Slice(size) => (size, false),
        };
        Gpu { name: model.shown(size), raw: raw.to_owned(), vram_gb: Some(f64::from(size)), known }
    }
}

/// Rounds a plausible figure to whole GB, at least 1.
fn whole_gb(gb: f64) -> u32 {
    // In range: `identify` has dropped everything outside 0..1024.
    (gb.round() as u32).max(1)
}

/// The names our table can show, sorted; for shell completion and for suggestions.
pub fn known_models() -> impl Iterator<Item = &'static str> {
    table::shown_names().iter().map(String::as_str)
}

/// Up to three shown names close to `asked`, nearest first, from our table and from `also` (names that the
/// clouds' answers brought). Empty when nothing is close.
pub fn nearest(asked: &str, also: &[String]) -> Vec<String> {
    let wanted = compact(asked);
    let numbers = number_runs(&wanted);
    let mut scored: Vec<(f64, String)> = Vec::new();
    for candidate in known_models().map(str::to_owned).chain(also.iter().map(|name| collapse(name))) {
        let form = compact(&candidate);
        let mut score = strsim::jaro_winkler(&wanted, &form);
        // The model number says more than the letters: `RTX6000` is closer to `RTX6000ADA` than to `RTX2060`.
        if number_runs(&form).iter().any(|run| numbers.contains(run)) {
            score += 0.15;
        }
        if score >= 0.75 && !scored.iter().any(|(_, seen)| compact(seen) == form) {
            scored.push((score, candidate));
        }
    }
    // Ties go to the shorter name, which is the plain card.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.len().cmp(&b.1.len())).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Upper case, letters and digits only; vendor words go, so that they do not make all names look alike.
fn compact(text: &str) -> String {
    let words = name::words(text);
    if words.is_empty() {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_uppercase).collect()
    } else {
        words.concat()
    }
}

/// Runs of two or more digits in a name.
fn number_runs(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() > 1).collect()
}

/// The longest part of a machine name that a GPU may take; leaves room for `-1234` in the 40 of a name.
const SHORT_NAME_MAX: usize = 32;

/// The card's part of a machine name: `rtx4090`, `a100-80gb`. Only `[a-z0-9-]`, starts with a letter, does not
/// end with a dash, 2 to 32 long.
pub fn short_name(gpu: &Gpu) -> String {
    let text = if gpu.known { gpu.name.clone() } else { name::words(&gpu.name).join("-") };
    let mut short = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            short.push(c.to_ascii_lowercase());
        } else if !short.is_empty() && !short.ends_with('-') {
            short.push('-');
        }
    }
    short.truncate(short.trim_end_matches('-').len());
    if short.len() < 2 || !short.starts_with(|c: char| c.is_ascii_lowercase()) {
        short.insert_str(0, "gpu-");
    }
    short.truncate(SHORT_NAME_MAX);
    short.truncate(short.trim_end_matches('-').len());
    short
}
