//! Locations: their country as the API tells it. Sites come and go (Iceland closed, Sweden is announced), so none is built in.

use std::collections::BTreeMap;

use super::wire::{Location, told};
use crate::model::place::{Country, Place};

/// What is known of the locations.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(BTreeMap<String, Option<Country>>);

impl Places {
    /// Takes in the API's list.
    pub(super) fn new(locations: &[Location]) -> Self {
        let entry = |location: &Location| {
            let country = told(location.country_code.as_ref()).and_then(Country::parse);
            Some((told(location.code.as_ref())?.to_owned(), country))
        };
        Places(locations.iter().filter_map(entry).collect())
    }

    /// Returns where a location is. One that the list does not have is kept, its country unknown.
    pub(super) fn place(&self, code: &str) -> Place {
        let country = self.0.get(code).copied().flatten();
        let place = country.map(Place::in_country).unwrap_or_default();
        Place { region: Some(code.to_owned()), zone: Some(code.to_owned()), ..place }
    }

    /// Returns every location code.
    pub(super) fn codes(&self) -> impl Iterator<Item = String> {
        self.0.keys().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countries_come_from_the_list() {
        let location = |code: &str, country: &str| Location {
            code: Some(code.to_owned()),
            country_code: Some(country.to_owned()),
        };
        let places = Places::new(&[
            location("FIN-01", "FI"),
            location("SWE-01", "SE"),
            location("X", "??"),
            Location::default(),
        ]);
        let shown = |code: &str| {
            let place = places.place(code);
            assert_eq!((place.region.as_deref(), place.zone.as_deref()), (Some(code), Some(code)));
            (place.country.map(|country| country.as_str().to_owned()), place.continent.map(|it| it.as_str()))
        };
        assert_eq!(shown("FIN-01"), (Some("FI".to_owned()), Some("europe")));
        assert_eq!(shown("SWE-01"), (Some("SE".to_owned()), Some("europe")));
        for unknown in ["X", "ICE-01"] {
            assert_eq!(shown(unknown), (None, None));
        }
        assert_eq!(places.codes().collect::<Vec<_>>(), ["FIN-01", "SWE-01", "X"]);
    }
}
