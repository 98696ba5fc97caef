//! Regions: where they are. Nebius opens regions without notice and tells no country, so none is left out for being unknown:
//! the first part of its word tells the continent.

use crate::model::place::{Continent, Country, Place, site};

/// Returns where a region is. A region is the finest place that Nebius names, so it stands for the zone too.
pub(super) fn place(region: &str) -> Place {
    let known = site(region).filter(|site| site.is_region);
    let mut place = match known {
        Some(site) => Place { continent: Some(site.continent), country: site.country, ..Place::default() },
        None => by_prefix(region),
    };
    place.region = Some(region.to_owned());
    place.zone = Some(region.to_owned());
    place
}

fn by_prefix(region: &str) -> Place {
    let continent = |continent| Place { continent: Some(continent), ..Place::default() };
    let country = |code| Country::parse(code).map(Place::in_country).unwrap_or_default();
    match region.split_once('-').map(|(first, _)| first) {
        Some("us") => country("US"),
        Some("uk") => country("GB"),
        Some("eu") => continent(Continent::Europe),
        Some("me") => continent(Continent::MiddleEast),
        Some("ap" | "asia") => continent(Continent::Asia),
        _ => Place::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_have_a_place() {
        for (region, country, continent) in [
            ("eu-north1", Some("FI"), "europe"),
            ("eu-west1", Some("FR"), "europe"),
            ("eu-west2", None, "europe"),
            ("eu-south1", Some("ES"), "europe"),
            ("uk-south1", Some("GB"), "europe"),
            ("uk-south9", Some("GB"), "europe"),
            ("us-central1", Some("US"), "north_america"),
            ("us-north1", Some("US"), "north_america"),
            ("us-west7", Some("US"), "north_america"),
            ("me-west1", Some("IL"), "middle_east"),
            ("me-east5", None, "middle_east"),
            ("eu-east9", None, "europe"),
        ] {
            let place = place(region);
            assert_eq!(place.country.as_ref().map(Country::as_str), country, "{region}");
            assert_eq!(place.continent.map(Continent::as_str), Some(continent), "{region}");
            assert_eq!((place.region.as_deref(), place.zone.as_deref()), (Some(region), Some(region)));
        }
        assert_eq!(place("mars1").continent, None);
    }
}
