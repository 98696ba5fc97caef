//! Names, labels and tags: what Google's patterns let through.
//!
//! The patterns are those of the discovery document; a sandbox without a regular-expression engine knows the few that there are.

/// Whether a word fits one of the document's patterns; a pattern that is not known lets everything through.
pub(super) fn fits(pattern: &str, word: &str) -> bool {
    match pattern {
        "[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?" => is_name(word),
        "[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?|[1-9][0-9]{0,19}" => is_name(word) || is_id(word),
        "[a-zA-Z0-9-_]{1,128}" => is_metadata_key(word),
        "\\S{1,66}" => (1..=66).contains(&word.len()) && !word.contains(char::is_whitespace),
        "\\w[\\w.-]{0,254}" => {
            let inner = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
            (1..=255).contains(&word.len())
                && word.chars().all(inner)
                && word.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
        }
        _ => true,
    }
}

/// A name after RFC 1035: lower case, digits and dashes, a letter first, no dash last, at most 63.
pub(super) fn is_name(word: &str) -> bool {
    (1..=63).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && word.starts_with(|letter: char| letter.is_ascii_lowercase())
        && !word.ends_with('-')
}

fn is_id(word: &str) -> bool {
    (1..=20).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit()) && !word.starts_with('0')
}

fn is_metadata_key(word: &str) -> bool {
    (1..=128).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Key of a label: `[a-z][a-z0-9_-]{0,62}`, also in other scripts, which are not played.
pub(super) fn is_label_key(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_lowercase()) && is_label_value(word)
}

/// Value of a label: `[a-z0-9_-]{0,63}`.
pub(super) fn is_label_value(word: &str) -> bool {
    word.len() <= 63
        && word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
}

/// A UUID that is not all zeros.
pub(super) fn is_uuid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
        && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && word.bytes().any(|byte| byte != b'0' && byte != b'-')
}

/// Region of a zone: its name without the last part.
pub(super) fn region_of(zone: &str) -> &str {
    zone.rsplit_once('-').map_or(zone, |(region, _)| region)
}

/// The last part of a link.
pub(super) fn last(link: &str) -> &str {
    link.rsplit('/').next().unwrap_or(link)
}

/// The part of a link that follows `KIND/`, such as a zone's name after `zones/`; nothing when the link has no such part.
pub(super) fn after<'a>(link: &'a str, kind: &str) -> Option<&'a str> {
    let mut parts = link.split('/');
    parts.find(|part| *part == kind)?;
    parts.next().filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert!(is_name("gpuprov-dev-7f3a9c") && is_name("a") && is_name(&"a".repeat(63)));
        for bad in ["", "A", "1a", "a-", "-a", "a_b", "a.b", &"a".repeat(64)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(is_label_key("gpuprov-name") && !is_label_key("1a") && !is_label_key(""));
        assert!(
            is_label_value("") && is_label_value("1_-") && !is_label_value("A") && !is_label_value("a.b")
        );
        assert!(is_uuid("1b4e28ba-2fa1-11d2-883f-0016d3cca427"));
        for bad in ["", "00000000-0000-0000-0000-000000000000", "1b4e28ba2fa111d2883f0016d3cca427", "x"] {
            assert!(!is_uuid(bad), "{bad}");
        }
        let link = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instances/x";
        assert_eq!((after(link, "zones"), after(link, "regions")), (Some("us-central1-a"), None));
        assert_eq!((last(link), region_of("europe-west4-a")), ("x", "europe-west4"));
    }
}
