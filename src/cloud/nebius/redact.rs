//! What a message of Nebius's must not show.

/// No token of Nebius's is shorter, in characters.
const SHORTEST: usize = 12;

/// Takes out whatever looks like a token or a key: signed tokens begin with the JSON of their header, Nebius's own with `ne1`.
pub(super) fn redact(text: &str) -> String {
    const KEY: &str = "-----BEGIN";
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '=' | '+' | '/');
    let mut clean = String::new();
    let mut rest = text;
    loop {
        let starts = ["eyJ", "ne1", KEY].into_iter().filter_map(|start| Some((rest.find(start)?, start)));
        let Some((at, start)) = starts.min() else { return clean + rest };
        let (before, found) = rest.split_at(at);
        let after = match start {
            // A key goes to the end of its last line, or of the text.
            KEY => {
                let inner = found[KEY.len()..].split_once("-----END").map_or("", |(_, end)| end);
                inner.trim_start_matches('-').split_once("-----").map_or("", |(_, after)| after)
            }
            _ => found.trim_start_matches(is_token),
        };
        // `zone1` is a word.
        let in_a_word = start == "ne1" && before.ends_with(|c: char| c.is_ascii_alphanumeric());
        let is_short = start == "ne1" && found.len() - after.len() < SHORTEST;
        clean.push_str(before);
        if in_a_word || is_short {
            clean.push_str(start);
            rest = &found[start.len()..];
        } else {
            clean.push('…');
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_token_or_a_key_is_not_shown() {
        for (text, shown) in [
            ("token eyJhbGciOi.eyJz-_.c2ln= is bad", "token … is bad"),
            ("Bearer ne1CtYBAQIDBAUGBwgJ.AA and (ne1CtYBAQIDBAUGBwgJ)", "Bearer … and (…)"),
            ("key -----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY----- is wrong", "key … is wrong"),
            ("key -----BEGIN RSA PRIVATE KEY-----\nMIIE", "key …"),
            ("not in zone1-abcdefghijklmnop or ne1", "not in zone1-abcdefghijklmnop or ne1"),
            ("ne1 eyJx ne1", "ne1 … ne1"),
            ("", ""),
        ] {
            assert_eq!(redact(text), shown);
        }
        for cut in ["-----BEGIN-----END", "-----BEGIN-----END-----", "-----BEGIN", "ne1…ne1"] {
            let _ = redact(cut);
        }
    }
}
