//! Names and numbers that come from outside, checked before they are part of a path.

/// Whether a text can be a zone (`us-central1-a`).
pub(super) fn is_zone(text: &str) -> bool {
    (5..=40).contains(&text.len())
        && text.contains('-')
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether a text can be the name of a machine, disk, rule or operation (RFC 1035; system operations have more parts).
pub(super) fn is_name(text: &str) -> bool {
    (1..=120).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether a text can be the numeric id of something.
pub(super) fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_address_something_else_is_none() {
        for good in ["us-central1-a", "europe-west10-b", "northamerica-northeast1-c"] {
            assert!(is_zone(good), "{good}");
        }
        for bad in ["", "a", "us", "../x-a", "us-central1-A", "us/central1-a", "us-central1-a\n", "1-abc"] {
            assert!(!is_zone(bad), "{bad}");
        }
        for good in ["gpuprov-dev-00ff00", "a", "operation-1796030000000-64a1b2c3d4e5f-11112222-33334444"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "Dev", "a/b", "a?b", "..", "-a", "1a", &"a".repeat(121)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(
            is_number("7240199231733014150")
                && !is_number("")
                && !is_number("72-1")
                && !is_number(&"1".repeat(21))
        );
    }
}
