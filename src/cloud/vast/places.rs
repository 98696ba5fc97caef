//! Where a host is: `Ontario, CA`, `Texas, US`, `, US`, `US`, or nothing.

use crate::model::place::{Country, Place, RegionWant};
use crate::model::words::one_line;

/// Returns the place that a row's text names. Vast has no continents; the country gives it.
pub(super) fn place(geolocation: Option<&str>) -> Place {
    let Some(text) = geolocation else { return Place::default() };
    let parts: Vec<String> =
        text.split(',').map(|part| one_line(part, 60)).filter(|part| !part.is_empty()).collect();
    let is_code = |part: &&String| part.len() == 2 && part.bytes().all(|b| b.is_ascii_uppercase());
    let country = parts.iter().rev().find(is_code).and_then(|code| Country::parse(code));
    let mut place = country.map(Place::in_country).unwrap_or_default();
    place.region = place.continent.map(|continent| continent.as_str().to_owned());
    place.zone = Some(parts.join(", ")).filter(|zone| !zone.is_empty());
    place
}

/// Returns the countries to narrow a search to: only when nothing but countries was asked for.
pub(super) fn countries(regions: &[RegionWant]) -> Option<Vec<&str>> {
    let codes: Option<Vec<&str>> = regions
        .iter()
        .map(|region| match region {
            RegionWant::Country(country) => Some(country.as_str()),
            RegionWant::Continent(_) | RegionWant::Own(_) => None,
        })
        .collect();
    codes.filter(|codes| !codes.is_empty())
}

/// Returns the machine that a `--zone` pins, by Vast's number of it.
pub(super) fn pinned_machine(zone: &str) -> Option<u64> {
    zone.trim().strip_prefix("machine:")?.parse().ok()
}

/// Returns the zone word that pins a machine.
pub(super) fn machine_word(id: u64) -> String {
    format!("machine:{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_country_code_decides() {
        for (text, region, country, zone) in [
            ("Ontario, CA", Some("north_america"), Some("CA"), Some("Ontario, CA")),
            ("  Sweden,  SE ", Some("europe"), Some("SE"), Some("Sweden, SE")),
            (", US", Some("north_america"), Some("US"), Some("US")),
            ("US", Some("north_america"), Some("US"), Some("US")),
            ("Dubai, AE", Some("middle_east"), Some("AE"), Some("Dubai, AE")),
            ("Bavaria", None, None, Some("Bavaria")),
            ("Somewhere, ZZ", None, None, Some("Somewhere, ZZ")),
            ("", None, None, None),
            (", ,", None, None, None),
        ] {
            let place = place(Some(text));
            let shown =
                (place.region.as_deref(), place.country.as_ref().map(Country::as_str), place.zone.as_deref());
            assert_eq!(shown, (region, country, zone), "{text}");
        }
        assert_eq!(place(None), Place::default());
    }

    #[test]
    fn countries_alone_narrow_a_search() {
        let wants =
            |words: &[&str]| -> Vec<RegionWant> { words.iter().map(|word| word.parse().unwrap()).collect() };
        assert_eq!(countries(&wants(&["us", "CA"])), Some(vec!["US", "CA"]));
        assert_eq!(countries(&wants(&["US", "europe"])), None);
        assert_eq!(countries(&[]), None);
    }

    #[test]
    fn a_zone_may_be_one_machine() {
        assert_eq!(pinned_machine(" machine:37228"), Some(37228));
        assert_eq!(pinned_machine(&machine_word(7)), Some(7));
        for other in ["machine:", "machine:x", "Ontario, CA", "37228"] {
            assert_eq!(pinned_machine(other), None, "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,40}") {
            let _ = (place(Some(&text)), pinned_machine(&text));
        }
    }
}
