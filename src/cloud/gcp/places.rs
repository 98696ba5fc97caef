//! Zones and regions: a zone is its region with a letter.

use crate::model::place::{Place, site};

/// The zones that are looked at where the account names none.
pub(super) const DEFAULT_ZONES: [&str; 12] = [
    "us-central1-a",
    "us-central1-b",
    "us-central1-c",
    "us-east1-b",
    "us-east4-a",
    "us-east4-b",
    "us-east4-c",
    "us-west1-b",
    "us-west1-c",
    "europe-west4-a",
    "europe-west4-b",
    "europe-west1-b",
];

/// Returns the region of a zone; none if the text is no zone. What is returned is fit for a path.
pub(super) fn region_of(zone: &str) -> Option<&str> {
    let (region, letter) = zone.rsplit_once('-')?;
    let is_letter = letter.len() == 1 && letter.bytes().all(|byte| byte.is_ascii_lowercase());
    (is_letter && is_region(region)).then_some(region)
}

/// `us-central1`: words of lower-case letters and dashes, with a number at the end.
fn is_region(text: &str) -> bool {
    let name = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let words = || name.split('-');
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    text.len() <= 40 && name.len() < text.len() && words().count() >= 2 && words().all(is_word)
}

/// Returns where a zone is. Of a region that our table does not know, only its name is told.
pub(super) fn place(zone: &str) -> Place {
    let region = region_of(zone);
    let known = region.and_then(site);
    Place {
        region: region.map(str::to_owned),
        continent: known.map(|site| site.continent),
        country: known.and_then(|site| site.country),
        zone: Some(zone.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_zones_are_on_the_map() {
        let shown = |zone: &str| {
            let place = place(zone);
            (
                place.region.unwrap(),
                place.country.unwrap().as_str().to_owned(),
                place.continent.unwrap().as_str(),
            )
        };
        assert_eq!(shown("us-central1-a"), ("us-central1".to_owned(), "US".to_owned(), "north_america"));
        assert_eq!(shown("europe-west4-b"), ("europe-west4".to_owned(), "NL".to_owned(), "europe"));
        assert_eq!(shown("europe-west1-b"), ("europe-west1".to_owned(), "BE".to_owned(), "europe"));
        for zone in DEFAULT_ZONES {
            assert!(["US", "NL", "BE"].contains(&shown(zone).1.as_str()), "{zone}");
        }
    }

    #[test]
    fn an_unknown_region_is_kept_and_what_is_no_zone_is_none() {
        let new = place("us-south9-a");
        assert_eq!((new.region.as_deref(), new.country, new.continent), (Some("us-south9"), None, None));
        assert_eq!(region_of("northamerica-northeast1-c"), Some("northamerica-northeast1"));
        for odd in [
            "",
            "us-central1",
            "us-central1-",
            "us-central1-aa",
            "us-central1-A",
            "../x1-a",
            "x1-a",
            "us--x1-a",
            "us-1-a",
            "us-central1/b-a",
            "ü-x1-a",
        ] {
            assert_eq!(region_of(odd), None, "{odd}");
        }
    }
}
