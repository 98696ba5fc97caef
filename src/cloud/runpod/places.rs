//! Data centres: their continent as the API tells it, their country by their id.
//!
//! The API has no country (docs.runpod.io/api-reference-v2, `GET /v2/catalog/datacenters`). Ids are built from it:
//! `US-KS-2`, `CA-MTL-3`, `EU-RO-1`, `EUR-IS-2`, `AP-JP-1`.

use std::collections::BTreeMap;

use super::wire::DataCenter;
use crate::model::place::{Continent, Country, Place, RegionWant};

/// What is known of the data centres.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// The region word of each, by id in upper case.
    regions: BTreeMap<String, Option<String>>,
}

impl Places {
    /// Takes in the API's list.
    pub(super) fn new(centers: &[DataCenter]) -> Self {
        let entry = |center: &DataCenter| {
            let id = center.id.as_deref()?.trim().to_uppercase();
            let region = center.region.as_deref().map(str::to_lowercase);
            Some((id, region.filter(|region| !region.is_empty() && region != "unknown")))
        };
        Places { regions: centers.iter().filter_map(entry).filter(|(id, _)| !id.is_empty()).collect() }
    }

    /// Returns where a data centre is. Without a region from the API the id tells.
    pub(super) fn place(&self, id: &str) -> Place {
        // Lower-case ids are accepted and break things (dstack's runpod/compute.py): upper case everywhere.
        let id = id.trim().to_uppercase();
        let country = country_of(&id);
        let told = self.regions.get(&id).cloned().flatten();
        let continent = match &told {
            Some(word) => word.parse().ok(),
            None => continent_of(&id).or(country.map(Country::continent)),
        };
        let region = told.or_else(|| continent.map(|continent: Continent| continent.as_str().to_owned()));
        Place { region, continent, country, zone: Some(id) }
    }

    /// Returns the place in the light of what was asked: a data centre that our rule cannot place, listed in an answer to a
    /// question about one country alone, is in that country.
    pub(super) fn place_asked(&self, id: &str, regions: &[RegionWant]) -> Place {
        let mut place = self.place(id);
        if let (None, [RegionWant::Country(country)]) = (place.country, regions) {
            place.country = Some(*country);
            let continent = *place.continent.get_or_insert(country.continent());
            place.region.get_or_insert_with(|| continent.as_str().to_owned());
        }
        place
    }

    /// Returns every id and every region word.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        self.regions.iter().flat_map(|(id, region)| [Some(id.clone()), region.clone()]).flatten()
    }
}

/// Returns the countries to send as `countryCodes`, upper case, comma-joined: only when nothing but countries was asked for.
/// The list is then narrowed by RunPod itself, which knows better than the ids.
pub(super) fn country_codes(regions: &[RegionWant]) -> Option<String> {
    let codes: Option<Vec<&str>> = regions
        .iter()
        .map(|region| match region {
            RegionWant::Country(country) => Some(country.as_str()),
            RegionWant::Continent(_) | RegionWant::Own(_) => None,
        })
        .collect();
    codes.filter(|codes| !codes.is_empty()).map(|codes| codes.join(","))
}

fn country_of(id: &str) -> Option<Country> {
    let mut parts = id.split('-');
    let (first, second) = (parts.next()?, parts.next()?);
    match first {
        // `US-CA-2` is in California, `CA-MTL-3` in Canada.
        "US" | "CA" => Country::parse(first),
        "EU" | "EUR" | "AP" | "SEA" | "OC" | "ME" | "SA" | "AF" => Country::parse(second),
        _ => None,
    }
}

fn continent_of(id: &str) -> Option<Continent> {
    Some(match id.split('-').next()? {
        "US" | "CA" => Continent::NorthAmerica,
        "EU" | "EUR" => Continent::Europe,
        "AP" | "SEA" => Continent::Asia,
        "OC" => Continent::Oceania,
        "ME" => Continent::MiddleEast,
        "SA" => Continent::SouthAmerica,
        "AF" => Continent::Africa,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn center(id: &str, region: &str) -> DataCenter {
        DataCenter { id: Some(id.to_owned()), region: Some(region.to_owned()) }
    }

    fn shown(place: &Place) -> (Option<&str>, Option<&str>) {
        (place.region.as_deref(), place.country.as_ref().map(Country::as_str))
    }

    #[test]
    fn country_by_id_and_region_by_the_api() {
        let places = Places::new(&[
            center("EU-RO-1", "EUROPE"),
            center("us-ca-2", "NORTH_AMERICA"),
            center("XX-9", "UNKNOWN"),
        ]);
        for (id, region, country) in [
            ("EU-RO-1", Some("europe"), Some("RO")),
            ("eu-ro-1", Some("europe"), Some("RO")),
            ("US-CA-2", Some("north_america"), Some("US")),
            ("CA-MTL-3", Some("north_america"), Some("CA")),
            ("EUR-IS-5", Some("europe"), Some("IS")),
            ("EU-UK-1", Some("europe"), Some("GB")),
            ("AP-JP-1", Some("asia"), Some("JP")),
            ("SA-BR-1", Some("south_america"), Some("BR")),
            ("XX-9", None, None),
            ("", None, None),
        ] {
            assert_eq!(shown(&places.place(id)), (region, country), "{id}");
        }
        assert_eq!(places.place("eu-ro-1").zone.as_deref(), Some("EU-RO-1"));
        let words: Vec<String> = places.words().collect();
        assert_eq!(words, ["EU-RO-1", "europe", "US-CA-2", "north_america", "XX-9"]);
    }

    #[test]
    fn a_continent_that_we_do_not_know_is_kept_as_a_word() {
        let places = Places::new(&[center("MO-ON-1", "MOON")]);
        let place = places.place("MO-ON-1");
        assert_eq!((place.region.as_deref(), place.continent), (Some("moon"), None));
    }

    #[test]
    fn countries_alone_are_sent_and_trusted() {
        let wants =
            |words: &[&str]| -> Vec<RegionWant> { words.iter().map(|word| word.parse().unwrap()).collect() };
        assert_eq!(country_codes(&wants(&["us", "CA"])).as_deref(), Some("US,CA"));
        assert_eq!(country_codes(&wants(&["US", "europe"])), None);
        assert_eq!(country_codes(&[]), None);
        let places = Places::default();
        assert_eq!(shown(&places.place_asked("ZZ-1", &wants(&["PT"]))), (Some("europe"), Some("PT")));
        assert_eq!(shown(&places.place_asked("ZZ-1", &wants(&["PT", "US"]))), (None, None));
        assert_eq!(
            shown(&places.place_asked("US-KS-2", &wants(&["PT"]))),
            (Some("north_america"), Some("US"))
        );
    }
}
