//! The API key in the file that RunPod's own tools write, `~/.runpod/config.toml`.
//!
//! Two official tools write it in two forms, sometimes both in one file: `runpodctl` a key `apikey` at the top
//! (github.com/runpod/runpodctl, `cmd/root.go`), the Python packages a table for each profile with `api_key`
//! (`runpod` on PyPI, `cli/groups/config/functions.py`). The table wins, as in the official packages.

use toml::{Table, Value};

use crate::model::secret::Secret;

/// Where the file lies, from the home directory.
pub const OWN_FILE: &str = ".runpod/config.toml";

/// Where the file is broken. Never quotes it: the line may hold the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not TOML at line {line}, column {column}")]
pub struct OwnFileError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// Returns the key in the file's text; none if it holds none.
pub fn key_in_own_file(text: &str) -> Result<Option<Secret>, OwnFileError> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        // A span may begin inside a character only if the library is wrong; then the whole text counts.
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        OwnFileError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    })?;
    let profile = table.get("default").and_then(Value::as_table).and_then(|profile| profile.get("api_key"));
    // viper writes keys in lower case; files written by hand have `apiKey`.
    let top = table.iter().find(|(name, _)| name.eq_ignore_ascii_case("apikey")).map(|(_, value)| value);
    let keys = [profile, top].into_iter().flatten().filter_map(Value::as_str).map(Secret::trimmed);
    Ok(keys.into_iter().find(|key| !key.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Option<String> {
        key_in_own_file(text).unwrap().map(|key| key.expose().to_owned())
    }

    #[test]
    fn both_forms_and_both_at_once() {
        assert_eq!(key("apikey = 'rpa_A'\napiurl = 'https://x'\n").as_deref(), Some("rpa_A"));
        assert_eq!(key("apiKey = \" rpa_A \"\n").as_deref(), Some("rpa_A"));
        assert_eq!(key("[default]\napi_key = \"rpa_B\"\n").as_deref(), Some("rpa_B"));
        assert_eq!(key("apikey = 'rpa_A'\n[default]\napi_key = 'rpa_B'\n").as_deref(), Some("rpa_B"));
        assert_eq!(key("apikey = 'rpa_A'\n[default]\napi_key = ''\n").as_deref(), Some("rpa_A"));
        assert_eq!(key("apikey = 'rpa_A'\n[default]\nother = 1\n").as_deref(), Some("rpa_A"));
        for none in ["", "apikey = ''", "apikey = 7", "default = 'x'", "[other]\napi_key = 'x'"] {
            assert_eq!(key(none), None, "{none}");
        }
    }

    #[test]
    fn a_broken_file_is_named_by_place_only() {
        let error = key_in_own_file("ok = 1\napikey = rpa_SECRET\n").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(!format!("{error} {error:?}").contains("SECRET"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,60}|[a-z=\\[\\]\"'\n é]{0,60}") {
            let _ = key_in_own_file(&text);
        }
    }
}
