//! Client id and secret, and the two files in which other tools keep them.
//!
//! `~/.verda/config.json` is a JSON object (github.com/skypilot-org/skypilot, `sky/adaptors/verda.py`); `~/.verda/credentials`
//! an INI file with one section for each profile, written by the official command line
//! (github.com/verda-cloud/verda-cli, `internal/verda-cli/options/credentials.go`).

use std::fmt;

use serde_json::Value;

use crate::model::secret::Secret;

/// Where the JSON file lies, from the home directory.
pub const JSON_FILE: &str = ".verda/config.json";

/// Where the INI file lies, from the home directory.
pub const INI_FILE: &str = ".verda/credentials";

/// The profile that is taken when none is named.
const USUAL_PROFILE: &str = "default";

/// The same service under its two names; the second is its old one.
const OFFICIAL: [&str; 2] = ["https://api.verda.com", "https://api.datacrunch.io"];

/// An API credential of one project.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The client id; not secret.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Secret,
}

impl Credentials {
    /// Returns the pair, white space around both dropped; none if one is empty.
    pub fn new(client_id: &str, client_secret: &str) -> Option<Self> {
        let pair = Credentials {
            client_id: client_id.trim().to_owned(),
            client_secret: Secret::trimmed(client_secret),
        };
        (!pair.client_id.is_empty() && !pair.client_secret.is_empty()).then_some(pair)
    }

    /// Returns what tells the pair apart for people: the end of the client id.
    pub fn hint(&self) -> String {
        Secret::trimmed(&self.client_id).hint()
    }

    /// Returns both parts as one secret, for the identity mark.
    pub fn whole(&self) -> Secret {
        Secret::new(format!("{}:{}", self.client_id, self.client_secret.expose()))
    }
}

/// Shows no secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// Why a file's credentials are not used. Never quotes the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The JSON file is no JSON object.
    #[error("not a JSON object (line {line}, column {column})")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// Only one of both parts.
    #[error("it holds only one of client id and secret")]
    Half,
    /// Credentials for another server.
    #[error(
        "it names another base URL than Verda's; set `GPUPROV_VERDA_ENDPOINT` together with the variables"
    )]
    Elsewhere,
    /// Several profiles, none of them the usual one, and none named.
    #[error("it holds several profiles and none is called `default`; name one in `VERDA_PROFILE`")]
    WhichProfile,
    /// The named profile is not there.
    #[error("it holds no profile `{0}`")]
    NoProfile(String),
}

/// Returns the credentials in the JSON file's text; none if it holds none.
pub fn in_json(text: &str) -> Result<Option<Credentials>, FileError> {
    let file: Value = serde_json::from_str(text)
        .map_err(|error| FileError::Json { line: error.line(), column: error.column() })?;
    let Some(file) = file.as_object() else { return Err(FileError::Json { line: 1, column: 1 }) };
    let get = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
    pair(get("client_id"), get("client_secret"), get("base_url"))
}

/// Returns the credentials in the INI file's text: those of `profile`, else of the one called `default`, else of the only
/// one. None if it holds none.
pub fn in_ini(text: &str, profile: Option<&str>) -> Result<Option<Credentials>, FileError> {
    let sections = sections(text);
    let named = |name: &str| sections.iter().find(|section| section.name == name);
    let section = match profile {
        Some(profile) => Some(
            named(profile).ok_or_else(|| FileError::NoProfile(crate::model::words::one_line(profile, 40)))?,
        ),
        None => match (named(USUAL_PROFILE), sections.as_slice()) {
            (Some(usual), _) => Some(usual),
            (None, []) => None,
            (None, [only]) => Some(only),
            (None, _) => return Err(FileError::WhichProfile),
        },
    };
    let Some(section) = section else { return Ok(None) };
    pair(section.get("verda_client_id"), section.get("verda_client_secret"), section.get("verda_base_url"))
}

fn pair(client_id: &str, client_secret: &str, base_url: &str) -> Result<Option<Credentials>, FileError> {
    let (client_id, client_secret) = (client_id.trim(), client_secret.trim());
    if client_id.is_empty() && client_secret.is_empty() {
        return Ok(None);
    }
    let base = base_url.trim().trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base).trim_end_matches('/');
    if !base.is_empty() && !OFFICIAL.iter().any(|official| official.eq_ignore_ascii_case(base)) {
        return Err(FileError::Elsewhere);
    }
    Credentials::new(client_id, client_secret).map(Some).ok_or(FileError::Half)
}

struct Section<'a> {
    name: &'a str,
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Section<'a> {
    /// The last value of that name, as in the library that writes the file.
    fn get(&self, name: &str) -> &'a str {
        let hits = self.values.iter().rev().find(|(known, _)| known.eq_ignore_ascii_case(name));
        hits.map_or("", |(_, value)| value)
    }
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push(Section { name: name.trim(), values: Vec::new() });
        } else if !line.starts_with(['#', ';'])
            && let Some((name, value)) = line.split_once('=')
            && let Some(section) = sections.last_mut()
        {
            section.values.push((name.trim(), unquoted(value.trim())));
        }
    }
    sections
}

fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).or_else(|| inner('`')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(found: Result<Option<Credentials>, FileError>) -> Option<(String, String)> {
        found.unwrap().map(|pair| (pair.client_id, pair.client_secret.expose().to_owned()))
    }

    fn pair_of(id: &str, secret: &str) -> Option<(String, String)> {
        Some((id.to_owned(), secret.to_owned()))
    }

    #[test]
    fn the_json_file() {
        let text = r#"{"client_id": " abc ", "client_secret": "s3cret\n", "default_region": "FIN-01"}"#;
        assert_eq!(shown(in_json(text)), pair_of("abc", "s3cret"));
        for base in ["", "https://api.verda.com/v1", "https://api.datacrunch.io/v1/", "https://API.verda.com"]
        {
            let text = format!(r#"{{"client_id":"a","client_secret":"b","base_url":"{base}"}}"#);
            assert_eq!(shown(in_json(&text)), pair_of("a", "b"), "{base}");
        }
        let elsewhere = r#"{"client_id":"a","client_secret":"b","base_url":"https://staging.example/v1"}"#;
        assert_eq!(in_json(elsewhere), Err(FileError::Elsewhere));
        assert_eq!(in_json(r#"{"client_id":"a"}"#), Err(FileError::Half));
        assert_eq!(in_json(r#"{"inference_key":"x","client_id":7}"#), Ok(None));
        for broken in ["", "[]", "{\"client_secret\": \"s3cret\"", "7"] {
            let error = in_json(broken).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{broken}");
        }
    }

    #[test]
    fn the_ini_file_and_its_profiles() {
        let two = "; made by verda\n[work]\nverda_client_id = w\nverda_client_secret= \"ws\"\n\n[default]\n# x\n\
                   verda_client_id=d\nverda_client_secret=d=s;#\nverda_token = t\n";
        assert_eq!(shown(in_ini(two, None)), pair_of("d", "d=s;#"));
        assert_eq!(shown(in_ini(two, Some("work"))), pair_of("w", "ws"));
        assert_eq!(in_ini(two, Some("home")), Err(FileError::NoProfile("home".to_owned())));
        let only =
            "[lab]\nverda_client_id = l\nverda_client_secret = s\nverda_base_url = https://api.verda.com/v1";
        assert_eq!(shown(in_ini(only, None)), pair_of("l", "s"));
        let several = "[a]\nverda_client_id=1\n[b]\nverda_client_id=2\n";
        assert_eq!(in_ini(several, None), Err(FileError::WhichProfile));
        for none in ["", "verda_client_id = x\nverda_client_secret = y", "[default]\n", "[default]\nx=1"] {
            assert_eq!(in_ini(none, None), Ok(None), "{none}");
        }
    }

    #[test]
    fn nothing_shows_the_secret() {
        let pair = Credentials::new("6a51jsgnISg6JOyE7wYZh", "s3cret").unwrap();
        assert!(!format!("{pair:?} {}", pair.hint()).contains("s3cret"));
        assert_eq!(pair.hint(), "…wYZh");
        assert_eq!(pair.whole().expose(), "6a51jsgnISg6JOyE7wYZh:s3cret");
        assert_eq!(Credentials::new(" ", "x"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,60}|(\\[[a-z]{0,4}\\]|verda_client_(id|secret) ?=[\"'a-z]{0,4}|\n){0,8}") {
            let _ = in_json(&text);
            let _ = in_ini(&text, None);
            let _ = in_ini(&text, Some("a"));
        }
    }
}
