//! Host keys: lines of a known_hosts file, and fingerprints.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Why host keys cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnownHostsError {
    /// The alias is not 1 to 200 letters, digits, dots, dashes and underscores.
    #[error("`{0}` is not a host key alias")]
    Alias(String),
    /// Not `TYPE BASE64`, or the two do not belong together.
    #[error("`{0}` is not a host key")]
    Key(String),
    /// There are none.
    #[error("no host keys are given")]
    Empty,
}

/// Whether `alias` may stand in a configuration and in a known_hosts file: 1 to 200 of A-Z, a-z, 0-9, dot, dash, underscore,
/// and no dash first.
pub fn is_alias(alias: &str) -> bool {
    (1..=200).contains(&alias.len())
        && !alias.starts_with('-')
        && alias.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// Returns the known_hosts lines `ALIAS TYPE BASE64` for `keys` (each `TYPE BASE64`, a comment is dropped).
pub fn lines(alias: &str, keys: &[String]) -> Result<String, KnownHostsError> {
    if !is_alias(alias) {
        return Err(KnownHostsError::Alias(shown(alias)));
    }
    if keys.is_empty() {
        return Err(KnownHostsError::Empty);
    }
    let mut text = String::new();
    for key in keys {
        let (ty, base64, _) = split(key).ok_or_else(|| KnownHostsError::Key(shown(key)))?;
        text.push_str(&format!("{alias} {ty} {base64}\n"));
    }
    Ok(text)
}

/// Returns the fingerprint of `TYPE BASE64` as `ssh-keygen -l` shows it, `SHA256:...`; none if it is no key.
pub fn fingerprint(key_line: &str) -> Option<String> {
    let (_, _, blob) = split(key_line)?;
    let digest = ring::digest::digest(&ring::digest::SHA256, &blob);
    Some(format!("SHA256:{}", STANDARD_NO_PAD.encode(digest)))
}

/// Returns the keys among `keys` whose fingerprint is one of `fingerprints`, for clouds that publish fingerprints only: the
/// keys are scanned, compared by this, and only then written.
pub fn matching(keys: &[String], fingerprints: &[String]) -> Vec<String> {
    let known = |key: &&String| fingerprint(key).is_some_and(|print| fingerprints.contains(&print));
    keys.iter().filter(known).cloned().collect()
}

/// Splits `TYPE BASE64 [comment]` into type, base64 and the decoded key; none unless the key itself says the same type and is
/// whole (a line that was cut is no key).
pub(super) fn split(line: &str) -> Option<(&str, &str, Vec<u8>)> {
    let mut words = line.split_ascii_whitespace();
    let (ty, base64) = (words.next()?, words.next()?);
    let blob = STANDARD.decode(base64).ok()?;
    let fields = fields(&blob)?;
    let whole = match ty {
        "ssh-ed25519" => fields.len() == 2 && fields[1].len() == 32,
        "ssh-rsa" => fields.len() == 3,
        _ if ty.starts_with("ecdsa-sha2-") => fields.len() == 3,
        _ => fields.len() >= 2,
    };
    (whole && fields[0] == ty.as_bytes()).then_some((ty, base64, blob))
}

/// Splits a key into its fields, each behind its length in four bytes; none if they do not fill it exactly.
fn fields(mut blob: &[u8]) -> Option<Vec<&[u8]>> {
    let mut fields = Vec::new();
    while !blob.is_empty() {
        let (length, rest) = blob.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (field, rest) = rest.split_at_checked(length)?;
        fields.push(field);
        blob = rest;
    }
    Some(fields)
}

fn shown(text: &str) -> String {
    crate::model::words::one_line(text, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHiQa+s6mE2/SwHPdJTYWwH0/PC0h9Xr01nthiDZh7sa";
    const PRINT: &str = "SHA256:Vx0DaPt3pRIRoHgafxlbajJmpBGEOLjTpUViWWWOd9M";

    #[test]
    fn a_fingerprint_as_ssh_keygen_shows_it() {
        assert_eq!(fingerprint(KEY).as_deref(), Some(PRINT));
        assert_eq!(fingerprint(&format!("{KEY} comment")).as_deref(), Some(PRINT));
        for bad in ["", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-ed25519 !", "null", "x AAAAAAAA"] {
            assert_eq!(fingerprint(bad), None, "{bad}");
        }
        assert_eq!(fingerprint(&KEY.replace("ssh-ed25519", "ssh-rsa")), None);
    }

    #[test]
    fn only_matching_keys_are_taken() {
        let keys = [KEY.to_owned(), "ssh-rsa AAAA".to_owned()];
        assert_eq!(matching(&keys, &[PRINT.to_owned()]), [KEY.to_owned()]);
        assert!(matching(&keys, &["SHA256:x".to_owned()]).is_empty());
    }

    #[test]
    fn lines_are_validated() {
        let keys = [format!("{KEY} root@host\n")];
        assert_eq!(lines("gpuprov-vast-1", &keys).unwrap(), format!("gpuprov-vast-1 {KEY}\n"));
        for alias in ["", "a b", "a\nb", "*", "a,b", "-a", "[a]:22"] {
            assert!(lines(alias, &keys).is_err(), "{alias}");
        }
        assert!(lines("a", &[]).is_err());
        assert!(lines("a", &["ssh-ed25519 AAAA\n* x".to_owned()]).is_err());
    }
}
