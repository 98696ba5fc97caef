//! Reading a GPU name, from a cloud or from a person.
//!
//! Words that say nothing about the model (vendor, socket, memory type, edition) are dropped, a size such as
//! `80GB` is set apart, and all the rest must be a name of the table, in order and to the last letter.

use super::table::{self, Model};

/// What a name says.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The model, if every word of the name was understood.
    pub(super) model: Option<&'static Model>,
    /// A memory size that the name spells out, GB.
    pub(super) size: Option<u32>,
    /// A size that the form factor stands for, GB: tells what a card is, but narrows no ask.
    pub(super) implied: Option<u32>,
}

/// Trims and turns every run of white space into one blank.
pub(super) fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The comparison form of names that are matched exactly: white space collapsed, case ignored.
pub(super) fn fold(text: &str) -> String {
    collapse(text).to_uppercase()
}

/// The words of a name in upper case without those that say nothing about the model; sizes stay.
pub(super) fn words(text: &str) -> Vec<String> {
    tokens(text).into_iter().filter(|word| !is_filler(word)).collect()
}

/// Reads a name.
pub(super) fn parse(text: &str) -> Parsed {
    let unknown = Parsed { model: None, size: None, implied: None };
    let all = tokens(text);
    if is_slice(&all) {
        return unknown;
    }
    let implied_nvl = all.iter().any(|word| word == "NVL");
    let mut size = None;
    let mut rest: Vec<&str> = Vec::new();
    for word in all.iter().filter(|word| !is_filler(word)) {
        match gigabytes(word) {
            Some(gb) if size.is_none_or(|seen| seen == gb) => size = Some(gb),
            // A second, different size is a word like any other: nothing in the table has it.
            _ => rest.push(word),
        }
    }
    let named_by_platform = all.len() > 1 && all.first().is_some_and(|word| word == "GPU");
    let model = if named_by_platform { platform(&rest) } else { lookup(&canonical(&join(&rest))) };
    let Some((model, alias_size)) = model else { return unknown };
    let implied = (implied_nvl && model.name == "H100").then_some(94);
    Parsed { model: Some(model), size: size.or(alias_size), implied }
}

/// Form factors and memory types, followed by a generation or not (`SXM5`, `NVL72`, `HBM2E`).
const BUSES: [&str; 4] = ["SXM", "PCIE", "NVL", "HBM"];

/// Splits into upper-case words at everything that is neither letter nor digit. Vendor words in front
/// (`InstinctMI50`, `TeslaT4`) and form factors behind (`H100SXM`) are cut off the model.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in text.split(|c: char| !c.is_alphanumeric()).filter(|piece| !piece.is_empty()) {
        let upper = piece.to_uppercase();
        let mut word = upper.as_str();
        while let Some(rest) = ["NVIDIA", "GEFORCE", "TESLA", "INSTINCT"]
            .into_iter()
            .find_map(|vendor| word.strip_prefix(vendor).filter(|rest| !rest.is_empty()))
        {
            word = rest;
        }
        let glued_bus = BUSES
            .into_iter()
            .filter_map(|bus| word.find(bus))
            .find(|at| word.get(..*at).is_some_and(|front| front.ends_with(|c: char| c.is_ascii_digit())));
        let (model, bus) = word.split_at(glued_bus.unwrap_or(word.len()));
        found.extend([model, bus].into_iter().filter(|part| !part.is_empty()).map(str::to_owned));
    }
    found
}

/// Words that say nothing about which model it is.
fn is_filler(word: &str) -> bool {
    matches!(
        word,
        "NVIDIA"
            | "GEFORCE"
            | "TESLA"
            | "AMD"
            | "INSTINCT"
            | "GPU"
            | "TENSOR"
            | "CORE"
            | "CORES"
            | "OAM"
            | "FHHL"
            | "NVLINK"
            | "MEGA"
            | "AC"
            | "SERVER"
            | "WORKSTATION"
            | "EDITION"
            | "GENERATION"
            | "LOVELACE"
    ) || BUSES.into_iter().any(|bus| {
        word.strip_prefix(bus)
            .is_some_and(|rest| rest.strip_suffix('E').unwrap_or(rest).chars().all(|c| c.is_ascii_digit()))
    })
}

/// Whether the words name a MIG slice: `MIG`, or a profile such as `1g.24gb` without the word.
fn is_slice(words: &[String]) -> bool {
    words.iter().any(|word| word == "MIG")
        || words.windows(2).any(|pair| {
            let [compute, memory] = pair else { return false };
            compute.len() == 2
                && compute.starts_with(|c: char| c.is_ascii_digit())
                && compute.ends_with('G')
                && gigabytes(memory).is_some()
        })
}

/// A word that is a memory size: `80GB`, `80G`, `80GIB`.
fn gigabytes(word: &str) -> Option<u32> {
    let digits = ["GIB", "GB", "G"].into_iter().find_map(|unit| word.strip_suffix(unit))?;
    if digits.is_empty() || digits.len() > 4 || !digits.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|gb| *gb > 0)
}

/// Glues words together, but never digit to digit: `40 90` is not `4090`.
fn join(words: &[&str]) -> String {
    let mut joined = String::new();
    for word in words {
        let digit = |c: char| c.is_ascii_digit();
        if joined.ends_with(digit) && word.starts_with(digit) {
            joined.push('-');
        }
        joined.push_str(word);
    }
    joined
}

/// The spelling of the table for a glued name: the `RTX` that people leave out is added, `S` is written out,
/// the words of a variant come in one order.
fn canonical(glued: &str) -> String {
    let (quadro, rest) = match glued.strip_prefix("QUADRO") {
        Some(rest) => (true, rest),
        None if glued.starts_with("QRTX") => (true, &glued[1..]),
        None => (false, glued),
    };
    let (line, rest) = match (rest.strip_prefix("RTX"), rest.strip_prefix("GTX")) {
        (Some(rest), _) => ("RTX", rest),
        (_, Some(rest)) => ("GTX", rest),
        _ => ("", rest),
    };
    let digits_at = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let pro = if line == "GTX" || quadro { None } else { rest.strip_prefix("PRO").filter(|r| digits_at(r)) };
    if let Some(model) = pro {
        let (number, variant) = split_number(model);
        let variant = variant.strip_prefix("BLACKWELL").unwrap_or(variant);
        // Vast's S and WS are the server and the workstation edition; Max-Q is the same card at less power.
        let variant = if matches!(variant, "S" | "SE" | "WS" | "MAXQ" | "MAXQWS") { "" } else { variant };
        return format!("RTXPRO{number}{variant}");
    }
    if line != "GTX" && rest.strip_prefix('A').is_some_and(digits_at) {
        // `RTX A6000` is `A6000`, but `A5000 Ada` is what the maker calls `RTX 5000 Ada`.
        return match rest.strip_suffix("ADA") {
            Some(ampere) => format!("RTX{}ADA", &ampere[1..]),
            None => rest.to_owned(),
        };
    }
    if line == "GTX" && rest.starts_with("TITAN") {
        return rest.to_owned();
    }
    if !digits_at(rest) {
        return glued.to_owned();
    }
    let (number, variant) = split_number(rest);
    if quadro {
        return if line == "RTX" { format!("QRTX{number}{variant}") } else { glued.to_owned() };
    }
    let variant = match variant {
        "S" => "SUPER",
        "TIS" | "STI" | "SUPERTI" => "TISUPER",
        "SFFADA" => "ADASFF",
        "BLACKWELL" if number.ends_with("00") && line != "GTX" => return format!("RTXPRO{number}"),
        "BLACKWELL" => "",
        other => other,
    };
    if !line.is_empty() {
        return format!("{line}{number}{variant}");
    }
    let rtx = format!("RTX{number}{variant}");
    let gtx = format!("GTX{number}{variant}");
    if table::find(&rtx).is_none() && table::find(&gtx).is_some() { gtx } else { rtx }
}

/// Cuts a text that starts with digits after the last of them.
fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Finds a canonical spelling in the table; some spellings are other names of a model, or of one size of it.
fn lookup(spelling: &str) -> Option<(&'static Model, Option<u32>)> {
    let (name, size) = match spelling {
        "A100X" => ("A100", Some(80)),
        // No later card has the bare name. `RTX6000`, `RTX5000` and `RTX4000` have three generations each and
        // are left unknown on purpose: guessing one would rent the wrong card.
        "RTX8000" => ("QRTX8000", None),
        "GTX2080TI" => ("RTX2080TI", None),
        other => (other, None),
    };
    table::find(name).map(|model| (model, size))
}

/// Names of the form `gpu-l40s-d`: the last letter tells platforms with the same card apart, and `rtx6000` is
/// the RTX PRO 6000.
fn platform(words: &[&str]) -> Option<(&'static Model, Option<u32>)> {
    if let Some(found) = lookup(&canonical(&join(words))) {
        return Some(found);
    }
    let words = match words {
        [front @ .., last] if last.len() == 1 && !front.is_empty() => front,
        all => all,
    };
    match join(words).as_str() {
        "RTX6000" => lookup("RTXPRO6000"),
        glued => lookup(&canonical(glued)),
    }
}
