//! Paths and queries, percent-encoded.

use std::fmt::Write;

use url::{Host, Url};

/// Returns `text` as one segment of a path: everything but letters, digits and `-._~` is percent-encoded, a slash too.
///
/// A segment that is empty, `.` or `..` would address something else; callers refuse those before.
pub fn segment(text: &str) -> String {
    encode(text, b"")
}

/// Returns `pairs` as a query, without the question mark. Commas and colons stay as they are: APIs that take lists document
/// them so, and not all of them decode before they split.
pub fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        text.push_str(&encode(name, b""));
        text.push('=');
        text.push_str(&encode(value, b",:"));
    }
    text
}

/// Whether a URL names the server that tells a cloud's machine about itself, which speaks plain http and never leaves the host.
pub fn is_metadata(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "metadata.google.internal",
        Some(Host::Ipv4(ip)) => ip.octets() == [169, 254, 169, 254],
        _ => false,
    }
}

fn encode(text: &str, kept: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_queries() {
        assert_eq!(segment("NVIDIA GeForce RTX 4090"), "NVIDIA%20GeForce%20RTX%204090");
        assert_eq!(segment("a/b?c#d%"), "a%2Fb%3Fc%23d%25");
        assert_eq!(
            query([("countryCodes", "US,CA"), ("x y", "a&b=ü")]),
            "countryCodes=US,CA&x%20y=a%26b%3D%C3%BC"
        );
        assert_eq!(query([]), "");
    }
}
