//! Places: continent, country, a cloud's region and zone, and what `--region` and `--zone` match.

mod country;
mod sites;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::country::Country;
pub use self::sites::{Site, known_sites, site};

/// A continent, as clouds and people speak of them (the Middle East is one).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Continent {
    /// North America with Central America and the Caribbean.
    NorthAmerica,
    /// South America.
    SouthAmerica,
    /// Europe.
    Europe,
    /// Asia without the Middle East.
    Asia,
    /// The Middle East; its countries answer to `asia` too.
    MiddleEast,
    /// Africa.
    Africa,
    /// Australia, New Zealand and the Pacific.
    Oceania,
    /// Antarctica.
    Antarctica,
}

impl Continent {
    /// Every continent.
    pub const ALL: [Continent; 8] = [
        Continent::NorthAmerica,
        Continent::SouthAmerica,
        Continent::Europe,
        Continent::Asia,
        Continent::MiddleEast,
        Continent::Africa,
        Continent::Oceania,
        Continent::Antarctica,
    ];

    /// The word used on the command line and in JSON: `north_america`.
    pub fn as_str(self) -> &'static str {
        match self {
            Continent::NorthAmerica => "north_america",
            Continent::SouthAmerica => "south_america",
            Continent::Europe => "europe",
            Continent::Asia => "asia",
            Continent::MiddleEast => "middle_east",
            Continent::Africa => "africa",
            Continent::Oceania => "oceania",
            Continent::Antarctica => "antarctica",
        }
    }
}

impl fmt::Display for Continent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no continent, no country or no region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Not the name of a continent.
    #[error("`{0}` is not a continent")]
    Continent(String),
    /// Not an ISO 3166-1 alpha-2 code.
    #[error("`{0}` is not a two-letter country code")]
    Country(String),
    /// Nothing was given.
    #[error("an empty region; write a continent (europe), a country code (US) or a cloud's own region name")]
    Empty,
}

impl FromStr for Continent {
    type Err = PlaceError;

    /// Takes any case, and a dash, a blank or nothing in place of the underscore.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |text: &str| text.replace(['_', '-'], " ").split_whitespace().collect::<String>();
        let wanted = plain(text).to_ascii_lowercase();
        Continent::ALL
            .into_iter()
            .find(|continent| plain(continent.as_str()) == wanted)
            .ok_or_else(|| PlaceError::Continent(text.trim().to_owned()))
    }
}

impl Serialize for Continent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Continent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Where a machine is, as far as the cloud tells.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The cloud's own word for the region.
    pub region: Option<String>,
    /// The continent.
    pub continent: Option<Continent>,
    /// The country.
    pub country: Option<Country>,
    /// The cloud's own word for the data centre or zone.
    pub zone: Option<String>,
}

impl Place {
    /// A place of which the country is known, and so the continent.
    pub fn in_country(country: Country) -> Place {
        Place { continent: Some(country.continent()), country: Some(country), ..Place::default() }
    }

    /// Whether `asked`, a `--zone`, is this place's zone: case and extra blanks are ignored.
    pub fn in_zone(&self, asked: &str) -> bool {
        self.zone.as_deref().is_some_and(|zone| fold(zone) == fold(asked))
    }
}

/// One `--region`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionWant {
    /// A continent.
    Continent(Continent),
    /// A country.
    Country(Country),
    /// A cloud's own region name, as typed (trimmed).
    Own(String),
}

impl FromStr for RegionWant {
    type Err = PlaceError;

    /// Continents first, then countries; all other words are a cloud's own name. Two letters are always a
    /// country where there is one (`CA` is Canada, `NA` Namibia); `EU`, which is none, is Europe.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let asked = text.trim();
        if asked.is_empty() {
            return Err(PlaceError::Empty);
        }
        if asked.eq_ignore_ascii_case("EU") {
            return Ok(RegionWant::Continent(Continent::Europe));
        }
        Ok(match (asked.parse(), Country::parse(asked)) {
            (Ok(continent), _) => RegionWant::Continent(continent),
            (_, Some(country)) => RegionWant::Country(country),
            _ => RegionWant::Own(asked.to_owned()),
        })
    }
}

impl fmt::Display for RegionWant {
    /// `europe`, `US`, or the own name as typed; reads back as the same want.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionWant::Continent(continent) => continent.fmt(f),
            RegionWant::Country(country) => country.fmt(f),
            RegionWant::Own(name) => f.write_str(name),
        }
    }
}

impl RegionWant {
    /// Whether the place will do. What the cloud does not tell does not match.
    pub fn matches(&self, place: &Place) -> bool {
        match self {
            RegionWant::Continent(wanted) => match (place.country, place.continent) {
                // The country decides where it is known: it alone can answer to two continents.
                (Some(country), _) => country.answers_to(*wanted),
                // Every country of the Middle East answers to Asia, so the whole of it does.
                (None, Some(Continent::MiddleEast)) => {
                    matches!(wanted, Continent::MiddleEast | Continent::Asia)
                }
                (None, told) => told == Some(*wanted),
            },
            RegionWant::Country(wanted) => place.country == Some(*wanted),
            RegionWant::Own(wanted) => {
                place.region.as_deref().is_some_and(|region| fold(region) == fold(wanted))
            }
        }
    }

    /// Whether our tables know the word: every continent and country, and the clouds' regions that we have
    /// heard of. An answer may know more.
    pub fn is_known(&self) -> bool {
        match self {
            RegionWant::Continent(_) | RegionWant::Country(_) => true,
            RegionWant::Own(name) => site(name).is_some_and(|site| site.is_region),
        }
    }
}

/// Whether our tables know this zone or data centre. Google's are known by their region, so this takes any
/// letter behind one (`us-central1-f`). An answer may know more.
pub fn zone_is_known(asked: &str) -> bool {
    let asked = asked.trim();
    // At Vast a zone is a free text that ends in a country, or one physical machine.
    let in_country = asked.rsplit_once(',').is_some_and(|(_, code)| Country::parse(code.trim()).is_some());
    let digits = |id: &str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
    if in_country || asked.strip_prefix("machine:").is_some_and(digits) {
        return true;
    }
    let lettered = asked.rsplit_once('-').is_some_and(|(region, letter)| {
        letter.len() == 1
            && letter.chars().all(|c| c.is_ascii_alphabetic())
            && site(region).is_some_and(|site| site.has_lettered_zones())
    });
    lettered || site(asked).is_some_and(|site| site.is_zone)
}

/// Up to three regions close to `asked`, nearest first: continents, country codes (found by code or English
/// name), clouds' regions, and `also` (region words that the clouds' answers brought).
pub fn nearest_region(asked: &str, also: &[String]) -> Vec<String> {
    let continents = Continent::ALL.into_iter().map(|c| (c.as_str().to_owned(), c.as_str().to_owned()));
    let countries = Country::all().map(|c| (c.name().to_owned(), c.as_str().to_owned()));
    let regions = known_sites().filter(|s| s.is_region).map(|s| (s.word.to_owned(), s.word.to_owned()));
    let told = also.iter().map(|word| (word.clone(), word.clone()));
    nearest(asked, told.chain(continents).chain(regions).chain(countries))
}

/// Up to three zones close to `asked`, nearest first, from our tables and from `also`.
pub fn nearest_zone(asked: &str, also: &[String]) -> Vec<String> {
    let zones = known_sites().filter(|s| s.is_zone).map(|s| (s.word.to_owned(), s.word.to_owned()));
    nearest(asked, also.iter().map(|word| (word.clone(), word.clone())).chain(zones))
}

/// Ranks pairs of (text to compare, word to suggest).
fn nearest(asked: &str, candidates: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let wanted = fold(asked);
    let mut scored: Vec<(f64, String)> = Vec::new();
    for (text, word) in candidates {
        let score = strsim::jaro_winkler(&wanted, &fold(&text));
        if score >= 0.75 && !scored.iter().any(|(_, seen)| fold(seen) == fold(&word)) {
            scored.push((score, word));
        }
    }
    // A stable sort: what the clouds' answers brought comes first among equals.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, word)| word).collect()
}

/// The comparison form of place words: lower case, white space collapsed.
fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
