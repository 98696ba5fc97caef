//! Countries: ISO 3166-1 alpha-2 codes, names and continents.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Continent, PlaceError};

/// A country by its ISO 3166-1 alpha-2 code, upper case. Only codes of the table can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Country([u8; 2]);

impl Country {
    /// The country of a code in any case, blanks around it ignored; `UK` is taken for `GB`. `None` for all that
    /// is no code of ISO 3166-1 (or `XK`, which stands for Kosovo everywhere but in the standard).
    pub fn parse(text: &str) -> Option<Country> {
        let code: [u8; 2] = text.trim().to_ascii_uppercase().into_bytes().try_into().ok()?;
        let code = if code == *b"UK" { *b"GB" } else { code };
        entry(code).map(|_| Country(code))
    }

    /// Every country of the table.
    pub fn all() -> impl Iterator<Item = Country> {
        COUNTRIES.iter().flat_map(|(_, rows)| rows.iter().map(|(code, _)| Country(*code)))
    }

    /// The code: `US`.
    pub fn as_str(&self) -> &str {
        // Always ASCII: only codes of the table are made.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The English short name, for messages: `United States`.
    pub fn name(self) -> &'static str {
        entry(self.0).map_or("", |(_, name)| name)
    }

    /// The continent that is shown for it.
    pub fn continent(self) -> Continent {
        // Never the fallback: only codes of the table are made.
        entry(self.0).map_or(Continent::Antarctica, |(continent, _)| continent)
    }

    /// Whether `--region <continent>` takes it. The countries shown under the Middle East answer to Asia too;
    /// all others to their own continent alone.
    pub fn answers_to(self, continent: Continent) -> bool {
        let shown = self.continent();
        shown == continent || (shown == Continent::MiddleEast && continent == Continent::Asia)
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Country {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Country::parse(text).ok_or_else(|| PlaceError::Country(text.trim().to_owned()))
    }
}

impl Serialize for Country {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Country {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Continent and name of a code.
fn entry(code: [u8; 2]) -> Option<(Continent, &'static str)> {
    COUNTRIES.iter().find_map(|(continent, rows)| {
        rows.iter().find(|(listed, _)| *listed == code).map(|(_, name)| (*continent, *name))
    })
}

/// A code and the English short name.
type Row = ([u8; 2], &'static str);

/// All 249 codes of ISO 3166-1 and `XK`, by the continent shown. Cyprus is under Europe, Egypt under Africa,
/// Puerto Rico and Greenland under North America.
#[rustfmt::skip]
const COUNTRIES: &[(Continent, &[Row])] = &[
    (Continent::NorthAmerica, &[
        (*b"AG", "Antigua and Barbuda"), (*b"AI", "Anguilla"), (*b"AW", "Aruba"), (*b"BB", "Barbados"),
        (*b"BL", "Saint Barthelemy"), (*b"BM", "Bermuda"), (*b"BQ", "Bonaire, Sint Eustatius and Saba"),
        (*b"BS", "Bahamas"), (*b"BZ", "Belize"), (*b"CA", "Canada"), (*b"CR", "Costa Rica"),
        (*b"CU", "Cuba"), (*b"CW", "Curacao"), (*b"DM", "Dominica"), (*b"DO", "Dominican Republic"),
        (*b"GD", "Grenada"), (*b"GL", "Greenland"), (*b"GP", "Guadeloupe"), (*b"GT", "Guatemala"),
        (*b"HN", "Honduras"), (*b"HT", "Haiti"), (*b"JM", "Jamaica"), (*b"KN", "Saint Kitts and Nevis"),
        (*b"KY", "Cayman Islands"), (*b"LC", "Saint Lucia"), (*b"MF", "Saint Martin"),
        (*b"MQ", "Martinique"), (*b"MS", "Montserrat"), (*b"MX", "Mexico"), (*b"NI", "Nicaragua"),
        (*b"PA", "Panama"), (*b"PM", "Saint Pierre and Miquelon"), (*b"PR", "Puerto Rico"),
        (*b"SV", "El Salvador"), (*b"SX", "Sint Maarten"), (*b"TC", "Turks and Caicos Islands"),
        (*b"TT", "Trinidad and Tobago"), (*b"US", "United States"),
        (*b"VC", "Saint Vincent and the Grenadines"), (*b"VG", "British Virgin Islands"),
        (*b"VI", "U.S. Virgin Islands"),
    ]),
    (Continent::SouthAmerica, &[
        (*b"AR", "Argentina"), (*b"BO", "Bolivia"), (*b"BR", "Brazil"), (*b"CL", "Chile"),
        (*b"CO", "Colombia"), (*b"EC", "Ecuador"), (*b"FK", "Falkland Islands"), (*b"GF", "French Guiana"),
        (*b"GY", "Guyana"), (*b"PE", "Peru"), (*b"PY", "Paraguay"), (*b"SR", "Suriname"),
        (*b"UY", "Uruguay"), (*b"VE", "Venezuela"),
    ]),
    (Continent::Europe, &[
        (*b"AD", "Andorra"), (*b"AL", "Albania"), (*b"AT", "Austria"), (*b"AX", "Aland Islands"),
        (*b"BA", "Bosnia and Herzegovina"), (*b"BE", "Belgium"), (*b"BG", "Bulgaria"), (*b"BY", "Belarus"),
        (*b"CH", "Switzerland"), (*b"CY", "Cyprus"), (*b"CZ", "Czechia"), (*b"DE", "Germany"),
        (*b"DK", "Denmark"), (*b"EE", "Estonia"), (*b"ES", "Spain"), (*b"FI", "Finland"),
        (*b"FO", "Faroe Islands"), (*b"FR", "France"), (*b"GB", "United Kingdom"), (*b"GG", "Guernsey"),
        (*b"GI", "Gibraltar"), (*b"GR", "Greece"), (*b"HR", "Croatia"), (*b"HU", "Hungary"),
        (*b"IE", "Ireland"), (*b"IM", "Isle of Man"), (*b"IS", "Iceland"), (*b"IT", "Italy"),
        (*b"JE", "Jersey"), (*b"LI", "Liechtenstein"), (*b"LT", "Lithuania"), (*b"LU", "Luxembourg"),
        (*b"LV", "Latvia"), (*b"MC", "Monaco"), (*b"MD", "Moldova"), (*b"ME", "Montenegro"),
        (*b"MK", "North Macedonia"), (*b"MT", "Malta"), (*b"NL", "Netherlands"), (*b"NO", "Norway"),
        (*b"PL", "Poland"), (*b"PT", "Portugal"), (*b"RO", "Romania"), (*b"RS", "Serbia"),
        (*b"RU", "Russia"), (*b"SE", "Sweden"), (*b"SI", "Slovenia"), (*b"SJ", "Svalbard and Jan Mayen"),
        (*b"SK", "Slovakia"), (*b"SM", "San Marino"), (*b"UA", "Ukraine"), (*b"VA", "Vatican City"),
        (*b"XK", "Kosovo"),
    ]),
    (Continent::MiddleEast, &[
        (*b"AE", "United Arab Emirates"), (*b"BH", "Bahrain"), (*b"IL", "Israel"), (*b"IQ", "Iraq"),
        (*b"IR", "Iran"), (*b"JO", "Jordan"), (*b"KW", "Kuwait"), (*b"LB", "Lebanon"), (*b"OM", "Oman"),
        (*b"PS", "Palestine"), (*b"QA", "Qatar"), (*b"SA", "Saudi Arabia"), (*b"SY", "Syria"),
        (*b"TR", "Turkey"), (*b"YE", "Yemen"),
    ]),
    (Continent::Asia, &[
        (*b"AF", "Afghanistan"), (*b"AM", "Armenia"), (*b"AZ", "Azerbaijan"), (*b"BD", "Bangladesh"),
        (*b"BN", "Brunei"), (*b"BT", "Bhutan"), (*b"CC", "Cocos Islands"), (*b"CN", "China"),
        (*b"CX", "Christmas Island"), (*b"GE", "Georgia"), (*b"HK", "Hong Kong"), (*b"ID", "Indonesia"),
        (*b"IN", "India"), (*b"IO", "British Indian Ocean Territory"), (*b"JP", "Japan"),
        (*b"KG", "Kyrgyzstan"), (*b"KH", "Cambodia"), (*b"KP", "North Korea"), (*b"KR", "South Korea"),
        (*b"KZ", "Kazakhstan"), (*b"LA", "Laos"), (*b"LK", "Sri Lanka"), (*b"MM", "Myanmar"),
        (*b"MN", "Mongolia"), (*b"MO", "Macao"), (*b"MV", "Maldives"), (*b"MY", "Malaysia"),
        (*b"NP", "Nepal"), (*b"PH", "Philippines"), (*b"PK", "Pakistan"), (*b"SG", "Singapore"),
        (*b"TH", "Thailand"), (*b"TJ", "Tajikistan"), (*b"TL", "Timor-Leste"), (*b"TM", "Turkmenistan"),
        (*b"TW", "Taiwan"), (*b"UZ", "Uzbekistan"), (*b"VN", "Vietnam"),
    ]),
    (Continent::Oceania, &[
        (*b"AS", "American Samoa"), (*b"AU", "Australia"), (*b"CK", "Cook Islands"), (*b"FJ", "Fiji"),
        (*b"FM", "Micronesia"), (*b"GU", "Guam"), (*b"KI", "Kiribati"), (*b"MH", "Marshall Islands"),
        (*b"MP", "Northern Mariana Islands"), (*b"NC", "New Caledonia"), (*b"NF", "Norfolk Island"),
        (*b"NR", "Nauru"), (*b"NU", "Niue"), (*b"NZ", "New Zealand"), (*b"PF", "French Polynesia"),
        (*b"PG", "Papua New Guinea"), (*b"PN", "Pitcairn"), (*b"PW", "Palau"), (*b"SB", "Solomon Islands"),
        (*b"TK", "Tokelau"), (*b"TO", "Tonga"), (*b"TV", "Tuvalu"), (*b"UM", "U.S. Outlying Islands"),
        (*b"VU", "Vanuatu"), (*b"WF", "Wallis and Futuna"), (*b"WS", "Samoa"),
    ]),
    (Continent::Africa, &[
        (*b"AO", "Angola"), (*b"BF", "Burkina Faso"), (*b"BI", "Burundi"), (*b"BJ", "Benin"),
        (*b"BW", "Botswana"), (*b"CD", "DR Congo"), (*b"CF", "Central African Republic"), (*b"CG", "Congo"),
        (*b"CI", "Ivory Coast"), (*b"CM", "Cameroon"), (*b"CV", "Cape Verde"), (*b"DJ", "Djibouti"),
        (*b"DZ", "Algeria"), (*b"EG", "Egypt"), (*b"EH", "Western Sahara"), (*b"ER", "Eritrea"),
        (*b"ET", "Ethiopia"), (*b"GA", "Gabon"), (*b"GH", "Ghana"), (*b"GM", "Gambia"), (*b"GN", "Guinea"),
        (*b"GQ", "Equatorial Guinea"), (*b"GW", "Guinea-Bissau"), (*b"KE", "Kenya"), (*b"KM", "Comoros"),
        (*b"LR", "Liberia"), (*b"LS", "Lesotho"), (*b"LY", "Libya"), (*b"MA", "Morocco"),
        (*b"MG", "Madagascar"), (*b"ML", "Mali"), (*b"MR", "Mauritania"), (*b"MU", "Mauritius"),
        (*b"MW", "Malawi"), (*b"MZ", "Mozambique"), (*b"NA", "Namibia"), (*b"NE", "Niger"),
        (*b"NG", "Nigeria"), (*b"RE", "Reunion"), (*b"RW", "Rwanda"), (*b"SC", "Seychelles"),
        (*b"SD", "Sudan"), (*b"SH", "Saint Helena"), (*b"SL", "Sierra Leone"), (*b"SN", "Senegal"),
        (*b"SO", "Somalia"), (*b"SS", "South Sudan"), (*b"ST", "Sao Tome and Principe"),
        (*b"SZ", "Eswatini"), (*b"TD", "Chad"), (*b"TG", "Togo"), (*b"TN", "Tunisia"), (*b"TZ", "Tanzania"),
        (*b"UG", "Uganda"), (*b"YT", "Mayotte"), (*b"ZA", "South Africa"), (*b"ZM", "Zambia"),
        (*b"ZW", "Zimbabwe"),
    ]),
    (Continent::Antarctica, &[
        (*b"AQ", "Antarctica"), (*b"BV", "Bouvet Island"), (*b"GS", "South Georgia"),
        (*b"HM", "Heard and McDonald Islands"), (*b"TF", "French Southern Territories"),
    ]),];
