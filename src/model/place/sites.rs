//! The clouds' own words for regions and zones, as far as we have heard of them.
//!
//! They serve to tell a mistyped word from one that has nothing on offer, and to place a word whose cloud tells
//! no country. Clouds open sites without notice: what an answer says always wins, and an unknown word is kept.

use super::{Continent, Country};

/// One site: a cloud's word for a region, a zone, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The cloud's word.
    pub word: &'static str,
    /// Where it is.
    pub continent: Continent,
    /// In which country, if that is known.
    pub country: Option<Country>,
    /// Whether it is what its cloud calls a region (what `--region` means).
    pub is_region: bool,
    /// Whether it is a zone or data centre (what `--zone` means).
    pub is_zone: bool,
}

impl Site {
    /// Whether zones are named by this word with a letter behind it, as Google does.
    pub(super) fn has_lettered_zones(&self) -> bool {
        self.is_region && GOOGLE.iter().any(|(_, words)| words.contains(&self.word))
    }
}

/// Words of one country: the ISO code, then the words.
type Row = (&'static str, &'static [&'static str]);

/// Google's regions.
#[rustfmt::skip]
const GOOGLE: &[Row] = &[
    ("US", &["us-central1", "us-east1", "us-east4", "us-east5", "us-south1", "us-west1", "us-west2", "us-west3", "us-west4"]),
    ("CA", &["northamerica-northeast1", "northamerica-northeast2"]),
    ("MX", &["northamerica-south1"]),
    ("BR", &["southamerica-east1"]),
    ("CL", &["southamerica-west1"]),
    ("BE", &["europe-west1"]), ("GB", &["europe-west2"]), ("DE", &["europe-west3", "europe-west10"]),
    ("NL", &["europe-west4"]), ("CH", &["europe-west6"]), ("IT", &["europe-west8", "europe-west12"]),
    ("FR", &["europe-west9"]), ("FI", &["europe-north1"]), ("SE", &["europe-north2"]),
    ("PL", &["europe-central2"]), ("ES", &["europe-southwest1"]),
    ("IL", &["me-west1"]), ("QA", &["me-central1"]), ("SA", &["me-central2"]),
    ("TW", &["asia-east1"]), ("HK", &["asia-east2"]), ("JP", &["asia-northeast1", "asia-northeast2"]),
    ("KR", &["asia-northeast3"]), ("IN", &["asia-south1", "asia-south2"]), ("SG", &["asia-southeast1"]),
    ("ID", &["asia-southeast2"]), ("AU", &["australia-southeast1", "australia-southeast2"]),
    ("ZA", &["africa-south1"]),
];

/// Nebius's regions but for those that Google has too (`us-central1`, `me-west1`: in the same countries).
const NEBIUS: &[Row] = &[
    ("FI", &["eu-north1"]),
    ("FR", &["eu-west1"]),
    ("ES", &["eu-south1"]),
    ("GB", &["uk-south1", "uk-south2"]),
    ("US", &["us-north1"]),
];

/// Nebius's regions of which only the continent, Europe, is known.
const NEBIUS_EUROPE: &[&str] = &["eu-north2", "eu-west2"];

/// Verda's locations: region and zone in one.
const VERDA: &[Row] = &[("FI", &["FIN-01", "FIN-02", "FIN-03"]), ("IS", &["ICE-01"])];

/// RunPod's data centres: zones, their region is the continent.
#[rustfmt::skip]
const RUNPOD: &[Row] = &[
    ("US", &["US-CA-1", "US-CA-2", "US-CO-1", "US-DE-1", "US-GA-1", "US-GA-2", "US-IL-1", "US-KS-1", "US-KS-2",
        "US-KS-3", "US-MD-1", "US-MO-1", "US-MO-2", "US-NC-1", "US-NC-2", "US-NE-1", "US-OR-1", "US-OR-2", "US-PA-1",
        "US-TX-1", "US-TX-2", "US-TX-3", "US-TX-4", "US-TX-5", "US-TX-6", "US-WA-1", "US-WA-2"]),
    ("CA", &["CA-MTL-1", "CA-MTL-2", "CA-MTL-3", "CA-MTL-4"]),
    ("CZ", &["EU-CZ-1"]), ("DK", &["EU-DK-1"]), ("FR", &["EU-FR-1"]), ("NL", &["EU-NL-1"]), ("RO", &["EU-RO-1"]),
    ("SE", &["EU-SE-1", "EU-SE-2"]), ("IS", &["EUR-IS-1", "EUR-IS-2", "EUR-IS-3", "EUR-IS-4", "EUR-IS-5"]),
    ("NO", &["EUR-NO-1", "EUR-NO-2"]), ("IN", &["AP-IN-1", "AP-IN-2"]), ("JP", &["AP-JP-1"]), ("SG", &["SEA-SG-1"]),
    ("AU", &["OC-AU-1"]),
];

/// Google's zones that are looked at by default (mission G6); others follow from the region.
#[rustfmt::skip]
const GOOGLE_ZONES: &[Row] = &[
    ("US", &["us-central1-a", "us-central1-b", "us-central1-c", "us-east1-b", "us-east4-a", "us-east4-b", "us-east4-c",
        "us-west1-b", "us-west1-c"]),
    ("NL", &["europe-west4-a", "europe-west4-b"]),
    ("BE", &["europe-west1-b"]),
];

/// Every site we have heard of.
pub fn known_sites() -> impl Iterator<Item = Site> {
    // Rows, whether they are regions, whether they are zones.
    let tables = [
        (GOOGLE, true, false),
        (NEBIUS, true, false),
        (VERDA, true, true),
        (RUNPOD, false, true),
        (GOOGLE_ZONES, false, true),
    ];
    let placed = tables.into_iter().flat_map(|(rows, is_region, is_zone)| {
        rows.iter().flat_map(move |(code, words)| {
            let country = Country::parse(code);
            words.iter().filter_map(move |word| {
                let continent = country?.continent();
                Some(Site { word, continent, country, is_region, is_zone })
            })
        })
    });
    let loose = NEBIUS_EUROPE.iter().map(|word| Site {
        word,
        continent: Continent::Europe,
        country: None,
        is_region: true,
        is_zone: false,
    });
    placed.chain(loose)
}

/// The site of this word, in any case; of no cloud in particular.
pub fn site(word: &str) -> Option<Site> {
    known_sites().find(|site| site.word.eq_ignore_ascii_case(word.trim()))
}
