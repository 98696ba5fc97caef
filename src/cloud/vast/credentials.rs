//! The API key in the files that Vast's own tools write: the bare key and nothing else
//! (docs.vast.ai/api-reference/authentication; github.com/vast-ai/vast-cli, `vastai/api/client.py`).

use crate::model::secret::Secret;

/// Where the file lies below the folder of configurations (`XDG_CONFIG_HOME`, else `~/.config`).
pub const OWN_FILE: &str = "vastai/vast_api_key";

/// Where older tools put it, from the home directory.
pub const OLD_FILE: &str = ".vast_api_key";

/// Returns the key in a file's text; none if it holds none. A file with more than one word is something else.
pub fn key_in_own_file(text: &str) -> Option<Secret> {
    let mut words = text.split_whitespace();
    let key = words.next().map(Secret::trimmed)?;
    words.next().is_none().then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_key_with_or_without_a_line_end() {
        let key = |text: &str| key_in_own_file(text).map(|key| key.expose().to_owned());
        assert_eq!(key("abc123\n").as_deref(), Some("abc123"));
        assert_eq!(key(" abc123").as_deref(), Some("abc123"));
        for none in ["", " \n", "two words", "{\"key\": \"x\"}"] {
            assert_eq!(key(none), None, "{none}");
        }
    }
}
