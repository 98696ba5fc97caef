//! Continents, countries, sites, and what a `--region` takes.

use proptest::prelude::*;

use super::*;

fn want(text: &str) -> RegionWant {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn country(code: &str) -> Country {
    Country::parse(code).unwrap_or_else(|| panic!("{code}"))
}

fn codes(text: &str) -> impl Iterator<Item = Country> {
    text.split_whitespace().map(country)
}

const MIDDLE_EAST: &str = "AE BH IL IQ IR JO KW LB OM PS QA SA SY TR YE";

#[test]
fn continents_are_read_in_any_spelling() {
    for text in [
        "north_america",
        "North America",
        "NORTH-AMERICA",
        "northamerica",
        " north  america ",
        "NORTH_AMERICA",
    ] {
        assert_eq!(text.parse(), Ok(Continent::NorthAmerica), "{text:?}");
    }
    for continent in Continent::ALL {
        assert_eq!(continent.as_str().parse(), Ok(continent));
        let json = serde_json::to_string(&continent).unwrap();
        assert_eq!(json, format!("\"{continent}\""));
        assert_eq!(serde_json::from_str::<Continent>(&json).unwrap(), continent);
    }
    for text in ["", "america", "eu", "unknown", "_"] {
        assert!(text.parse::<Continent>().is_err(), "{text:?}");
    }
}

#[test]
fn the_country_table_is_whole() {
    let all: Vec<Country> = Country::all().collect();
    // ISO 3166-1 has 249, and Kosovo.
    assert_eq!(all.len(), 250);
    let mut unique: Vec<&str> = all.iter().map(Country::as_str).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 250);
    for country in all {
        assert_eq!(Country::parse(country.as_str()), Some(country));
        assert_eq!(Country::parse(&country.as_str().to_lowercase()), Some(country));
        assert!(!country.name().is_empty());
        assert!(country.answers_to(country.continent()));
        let answers = Continent::ALL.into_iter().filter(|c| country.answers_to(*c)).count();
        assert_eq!(answers, if MIDDLE_EAST.contains(country.as_str()) { 2 } else { 1 }, "{country}");
        let json = serde_json::to_string(&country).unwrap();
        assert_eq!(serde_json::from_str::<Country>(&json).unwrap(), country);
    }
}

#[test]
fn countries_and_their_continents() {
    for (code, name, continent) in [
        ("US", "United States", Continent::NorthAmerica),
        ("CA", "Canada", Continent::NorthAmerica),
        ("PR", "Puerto Rico", Continent::NorthAmerica),
        ("GB", "United Kingdom", Continent::Europe),
        ("uk", "United Kingdom", Continent::Europe),
        ("CY", "Cyprus", Continent::Europe),
        ("RU", "Russia", Continent::Europe),
        ("XK", "Kosovo", Continent::Europe),
        (" is ", "Iceland", Continent::Europe),
        ("IL", "Israel", Continent::MiddleEast),
        ("TR", "Turkey", Continent::MiddleEast),
        ("EG", "Egypt", Continent::Africa),
        ("GE", "Georgia", Continent::Asia),
        ("IN", "India", Continent::Asia),
        ("NA", "Namibia", Continent::Africa),
        ("AS", "American Samoa", Continent::Oceania),
        ("BR", "Brazil", Continent::SouthAmerica),
        ("AQ", "Antarctica", Continent::Antarctica),
    ] {
        assert_eq!((country(code).name(), country(code).continent()), (name, continent), "{code}");
    }
    for text in ["", "U", "USA", "ZZ", "EU", "XX", "U S", "12", "é", "ÜS", "日"] {
        assert_eq!(Country::parse(text), None, "{text:?}");
        assert!(text.parse::<Country>().is_err());
    }
    for country in codes(MIDDLE_EAST) {
        assert_eq!(country.continent(), Continent::MiddleEast, "{country}");
        assert!(country.answers_to(Continent::Asia), "{country}");
        assert!(
            !country.answers_to(Continent::Europe) && !country.answers_to(Continent::Africa),
            "{country}"
        );
    }
}

/// The country lists of Vast's own regions; only the Middle East is shown apart from Asia.
#[test]
fn vast_countries_are_on_the_same_continents() {
    for (continent, list) in [
        (Continent::NorthAmerica, "AG BS BB BZ CA CR CU DM DO SV GD GT HT HN JM MX NI PA KN LC VC TT US PR"),
        (Continent::SouthAmerica, "AR BO BR CL CO EC FK GF GY PY PE SR UY VE"),
        (
            Continent::Europe,
            "AL AD AT BY BE BA BG HR CY CZ DK EE FI FR DE GR HU IS IE IT LV LI LT LU MT MD MC ME NL MK NO \
            PL PT RO RU SM RS SK SI ES SE CH UA GB VA XK",
        ),
        (
            Continent::Asia,
            "AF AM AZ BH BD BT BN KH CN GE IN ID IR IQ IL JP JO KZ KW KG LA LB MY MV MN MM NP KP OM PK PH QA SA \
            SG KR LK SY TW TJ TH TL TR TM AE UZ VN YE HK MO",
        ),
        (Continent::Oceania, "AS AU CK FJ PF GU KI MH FM NR NC NZ NU MP PW PG PN WS SB TK TO TV VU WF"),
        (
            Continent::Africa,
            "DZ AO BJ BW BF BI CV CM CF TD KM CG CD CI DJ EG GQ ER SZ ET GA GM GH GN GW KE LS LR LY MG MW ML \
            MR MU MA MZ NA NE NG RW ST SN SC SL SO ZA SS SD TZ TG TN UG ZM ZW",
        ),
    ] {
        for country in codes(list) {
            assert!(country.answers_to(continent), "{country} {continent}");
        }
    }
}

#[test]
fn regions_are_read() {
    for (text, expected) in [
        ("EU", RegionWant::Continent(Continent::Europe)),
        ("eu", RegionWant::Continent(Continent::Europe)),
        (" Europe ", RegionWant::Continent(Continent::Europe)),
        ("north-america", RegionWant::Continent(Continent::NorthAmerica)),
        ("MIDDLE_EAST", RegionWant::Continent(Continent::MiddleEast)),
        ("US", RegionWant::Country(country("US"))),
        ("ca", RegionWant::Country(country("CA"))),
        ("NA", RegionWant::Country(country("NA"))),
        ("SA", RegionWant::Country(country("SA"))),
        ("ME", RegionWant::Country(country("ME"))),
        ("uk", RegionWant::Country(country("GB"))),
        ("us-central1", RegionWant::Own("us-central1".to_owned())),
        ("FIN-01", RegionWant::Own("FIN-01".to_owned())),
        ("ZZ", RegionWant::Own("ZZ".to_owned())),
    ] {
        assert_eq!(want(text), expected, "{text:?}");
    }
    assert_eq!("  ".parse::<RegionWant>(), Err(PlaceError::Empty));
}

#[test]
fn asks_against_places() {
    let place = |region: &str, continent: Option<Continent>, code: &str| Place {
        region: (!region.is_empty()).then(|| region.to_owned()),
        continent,
        country: Country::parse(code),
        zone: None,
    };
    let places = [
        ("iowa", place("us-central1", Some(Continent::NorthAmerica), "US")),
        ("montreal", place("NORTH_AMERICA", Some(Continent::NorthAmerica), "CA")),
        ("helsinki", place("FIN-01", Some(Continent::Europe), "FI")),
        ("eu-west2", place("eu-west2", Some(Continent::Europe), "")),
        ("tel aviv", place("me-west1", Some(Continent::MiddleEast), "IL")),
        ("tel aviv by prefix", place("me-west1", Some(Continent::Asia), "IL")),
        ("somewhere in the middle east", place("MIDDLE_EAST", Some(Continent::MiddleEast), "")),
        ("somewhere in asia", place("ASIA", Some(Continent::Asia), "")),
        ("cairo", place("africa", Some(Continent::Africa), "EG")),
        ("country only", place("", None, "SE")),
        ("nowhere", Place::default()),
        ("region only", place("mars-1", None, "")),
    ];
    let cases: &[(&str, &[&str])] = &[
        ("north_america", &["iowa", "montreal"]),
        ("CA", &["montreal"]),
        ("US", &["iowa"]),
        ("EU", &["helsinki", "eu-west2", "country only"]),
        ("FI", &["helsinki"]),
        ("asia", &["tel aviv", "tel aviv by prefix", "somewhere in the middle east", "somewhere in asia"]),
        ("middle_east", &["tel aviv", "tel aviv by prefix", "somewhere in the middle east"]),
        ("africa", &["cairo"]),
        ("SE", &["country only"]),
        ("GB", &[]),
        ("fin-01", &["helsinki"]),
        ("US-CENTRAL1", &["iowa"]),
        ("us-central", &[]),
        ("Mars-1", &["region only"]),
    ];
    for (ask, expected) in cases {
        let ask_want = want(ask);
        let taken: Vec<&str> =
            places.iter().filter(|(_, place)| ask_want.matches(place)).map(|(name, _)| *name).collect();
        assert_eq!(taken, *expected, "{ask}");
    }
}

#[test]
fn words_we_know() {
    for known in [
        "EU",
        "US",
        "asia",
        "us-central1",
        "US-EAST4",
        "europe-west4",
        "FIN-03",
        "ICE-01",
        "eu-north1",
        "eu-west2",
        "uk-south2",
        "us-north1",
        "me-west1",
    ] {
        assert!(want(known).is_known(), "{known}");
    }
    for unknown in ["us-central9", "ZZ", "mars", "USA", "EU-RO-1", "us-central1-a"] {
        assert!(!want(unknown).is_known(), "{unknown}");
    }
    for known in [
        "EU-RO-1",
        "us-ca-2",
        "CA-MTL-3",
        "FIN-01",
        "us-central1-a",
        "us-central1-f",
        "europe-west1-b",
        "asia-east1-c",
    ] {
        assert!(zone_is_known(known), "{known}");
    }
    for unknown in [
        "EU-RO-9",
        "us-central1",
        "us-central9-a",
        "us-central1-1",
        "eu-north1-a",
        "us-north1-a",
        "",
        "-",
        "a",
    ] {
        assert!(!zone_is_known(unknown), "{unknown}");
    }
}

#[test]
fn sites_are_placed() {
    for (word, continent, code) in [
        ("us-central1", Continent::NorthAmerica, "US"),
        ("europe-west1", Continent::Europe, "BE"),
        ("europe-west4", Continent::Europe, "NL"),
        ("eu-north1", Continent::Europe, "FI"),
        ("eu-south1", Continent::Europe, "ES"),
        ("uk-south1", Continent::Europe, "GB"),
        ("me-west1", Continent::MiddleEast, "IL"),
        ("FIN-02", Continent::Europe, "FI"),
        // California is not Canada.
        ("US-CA-2", Continent::NorthAmerica, "US"),
        ("ca-mtl-3", Continent::NorthAmerica, "CA"),
        ("EUR-IS-1", Continent::Europe, "IS"),
        ("AP-IN-1", Continent::Asia, "IN"),
        ("OC-AU-1", Continent::Oceania, "AU"),
    ] {
        let found = site(word).unwrap_or_else(|| panic!("{word}"));
        assert_eq!((found.continent, found.country), (continent, Country::parse(code)), "{word}");
    }
    assert_eq!(site("eu-west2").map(|s| (s.continent, s.country)), Some((Continent::Europe, None)));
    assert_eq!(site("mars"), None);
    let mut words: Vec<String> = known_sites().map(|site| site.word.to_lowercase()).collect();
    let before = words.len();
    words.sort();
    words.dedup();
    assert_eq!(words.len(), before, "a word twice: its place would be the first one's");
}

#[test]
fn nearest_words() {
    for (asked, expected) in [
        ("us-centrall", "us-central1"),
        ("us-central1-a", "us-central1"),
        ("germany", "DE"),
        ("Untied States", "US"),
        ("eurpoe", "europe"),
        ("northamercia", "north_america"),
        ("FIN-3", "FIN-03"),
        ("middleeast1", "middle_east"),
    ] {
        let found = nearest_region(asked, &[]);
        assert!(found.len() <= 3 && found.contains(&expected.to_owned()), "{asked}: {found:?}");
    }
    assert_eq!(nearest_region("mars-2", &["mars-1".to_owned()]).first().map(String::as_str), Some("mars-1"));
    assert!(nearest_region("", &[]).is_empty());
    assert!(nearest_zone("EU-RO-2", &[]).contains(&"EU-RO-1".to_owned()));
    assert_eq!(
        nearest_zone("ontario ca", &["Ontario, CA".to_owned()]).first().map(String::as_str),
        Some("Ontario, CA")
    );
}

#[test]
fn zones_compare_without_case_and_extra_blanks() {
    let place = Place { zone: Some("Ontario, CA".to_owned()), ..Place::in_country(country("CA")) };
    assert!(place.in_zone("ontario,  ca ") && !place.in_zone("Ontario") && !Place::default().in_zone(""));
    assert_eq!(place.continent, Some(Continent::NorthAmerica));
}

proptest! {
    #[test]
    fn reading_takes_any_text(text in any::<String>()) {
        let _ = Country::parse(&text);
        let _ = zone_is_known(&text);
        if let Ok(read) = text.parse::<RegionWant>() {
            prop_assert_eq!(&read.to_string().parse::<RegionWant>(), &Ok(read.clone()));
            prop_assert!(!read.matches(&Place::default()));
        }
        prop_assert!(nearest_region(&text, &[]).len() <= 3);
    }

    #[test]
    fn an_own_word_takes_its_region(word in "[a-z]{3,8}-[a-z]{3,8}[0-9]") {
        let place = Place { region: Some(word.to_ascii_uppercase()), ..Place::default() };
        prop_assert!(want(&word).matches(&place) || !matches!(want(&word), RegionWant::Own(_)));
    }
}
