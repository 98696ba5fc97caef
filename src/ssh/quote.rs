//! Writing paths into an ssh configuration.
//!
//! ssh reads a double-quoted argument up to the next double quote. What is inside is not all taken as it is:
//!
//! - `\"`, `\'` and `\\` are escapes since OpenSSH 8.7 and plain text before, so a backslash means different paths to
//!   different versions;
//! - `IdentityFile` expands `%` tokens in all versions (`%%` is a percent sign), `UserKnownHostsFile` since 8.4, `Include`
//!   only in the newest;
//! - `${NAME}` is expanded since 8.4 and cannot be escaped;
//! - `Include` expands `*`, `?` and `[...]`, which `[*]`, `[?]` and `[[]` escape in every version.
//!
//! Spaces, `#`, `'`, `$` alone and bytes that are not UTF-8 need nothing. What cannot be written for every version is refused.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path that cannot be written into an ssh configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be named in an ssh configuration: {why}", path.display())]
pub struct UnwritablePath {
    /// The path.
    pub path: PathBuf,
    /// What is in the way.
    pub why: &'static str,
}

impl From<UnwritablePath> for io::Error {
    fn from(error: UnwritablePath) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}

/// Returns `path` as an argument of `IdentityFile`, quotes included.
pub(super) fn identity(path: &Path) -> Result<Vec<u8>, UnwritablePath> {
    let mut text = Vec::new();
    for byte in checked(path)? {
        text.push(*byte);
        if *byte == b'%' {
            text.push(b'%');
        }
    }
    Ok(in_quotes(&text))
}

/// Returns `path` as an argument of `UserKnownHostsFile`, quotes included.
pub(super) fn known_hosts(path: &Path) -> Result<Vec<u8>, UnwritablePath> {
    Ok(in_quotes(without_percent(path)?))
}

/// Returns `folder/rest` as an argument of `Include`, quotes included. Glob characters of `folder` stand for themselves;
/// `rest` is a pattern.
pub(super) fn include(folder: &Path, rest: &str) -> Result<Vec<u8>, UnwritablePath> {
    let mut text = escape_glob(without_percent(folder)?);
    text.push(b'/');
    text.extend_from_slice(rest.as_bytes());
    Ok(in_quotes(&text))
}

/// Returns `file` as an argument of `Include`, quotes included, standing for this one file.
pub(super) fn include_file(file: &Path) -> Result<Vec<u8>, UnwritablePath> {
    Ok(in_quotes(&escape_glob(without_percent(file)?)))
}

fn escape_glob(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in bytes {
        if matches!(byte, b'*' | b'?' | b'[') {
            text.extend_from_slice(&[b'[', *byte, b']']);
        } else {
            text.push(*byte);
        }
    }
    text
}

fn in_quotes(text: &[u8]) -> Vec<u8> {
    [b"\"", text, b"\""].concat()
}

fn without_percent(path: &Path) -> Result<&[u8], UnwritablePath> {
    let bytes = checked(path)?;
    if bytes.contains(&b'%') { Err(unwritable(path, "it contains a percent sign")) } else { Ok(bytes) }
}

fn checked(path: &Path) -> Result<&[u8], UnwritablePath> {
    let bytes = path.as_os_str().as_bytes();
    let why = if !path.is_absolute() {
        "it is not absolute"
    } else if bytes.contains(&b'"') {
        "it contains a double quote"
    } else if bytes.contains(&b'\\') {
        "it contains a backslash"
    } else if bytes.iter().any(u8::is_ascii_control) {
        "it contains a control character"
    } else if bytes.windows(2).any(|pair| pair == b"${") {
        "it contains `${`, which ssh takes for a variable"
    } else {
        return Ok(bytes);
    };
    Err(unwritable(path, why))
}

fn unwritable(path: &Path, why: &'static str) -> UnwritablePath {
    UnwritablePath { path: path.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_written() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(text(identity(Path::new("/a b/100%/k'#")).unwrap()), "\"/a b/100%%/k'#\"");
        assert_eq!(text(include(Path::new("/a[1]*?"), "*.conf").unwrap()), "\"/a[[]1][*][?]/*.conf\"");
        assert_eq!(text(include_file(Path::new("/a*/x")).unwrap()), "\"/a[*]/x\"");
        assert_eq!(text(known_hosts(Path::new("/a$b/x")).unwrap()), "\"/a$b/x\"");
    }

    #[test]
    fn what_cannot() {
        for bad in ["rel/x", "/a\"b", "/a\\b", "/a\nHost *", "/a\rb", "/a${HOME}"] {
            let error = identity(Path::new(bad)).unwrap_err();
            assert!(error.to_string().contains("cannot be named"), "{bad}");
            assert!(include(Path::new(bad), "x").is_err() && known_hosts(Path::new(bad)).is_err(), "{bad}");
        }
        assert!(include(Path::new("/a%b"), "x").is_err() && known_hosts(Path::new("/a%b")).is_err());
    }
}
