//! A public key as one line, checked before it is sent anywhere.

use super::known_hosts;

/// The types that clouds and ssh servers take.
const TYPES: [&str; 5] =
    ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"];

/// Why a text is no public key that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// Nothing in it.
    #[error("it is empty")]
    Empty,
    /// A private key.
    #[error("it is a private key, not a public one")]
    Private,
    /// The format of other SSH programs.
    #[error("it is in the SSH2 format; `ssh-keygen -i -f FILE` turns it into OpenSSH's")]
    Ssh2,
    /// A security key.
    #[error("it needs a touch at every login (`{0}`), and gpuprov logs in by itself; use another key")]
    NeedsTouch(String),
    /// A type that clouds or servers do not take, or a certificate.
    #[error(
        "its type `{0}` is not one that clouds take: ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, -384, -521"
    )]
    Type(String),
    /// Not `TYPE BASE64`.
    #[error("it is not `TYPE BASE64`, or a part of it is missing")]
    Broken,
}

/// Returns the first key of `text` as `TYPE BASE64 [comment]`, on one line. Of the comment only characters that mean nothing
/// to a shell, YAML or JSON stay, as clouds put it into all of them.
pub(super) fn line(text: &[u8]) -> Result<String, PublicKeyError> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = lines.next().ok_or(PublicKeyError::Empty)?;
    if line.starts_with("-----BEGIN ") {
        return Err(PublicKeyError::Private);
    }
    if line.starts_with("---- BEGIN ") {
        return Err(PublicKeyError::Ssh2);
    }
    let (ty, base64, _) = known_hosts::split(line).ok_or(PublicKeyError::Broken)?;
    if ty.starts_with("sk-") {
        return Err(PublicKeyError::NeedsTouch(crate::model::words::one_line(ty, 60)));
    }
    if !TYPES.contains(&ty) {
        return Err(PublicKeyError::Type(crate::model::words::one_line(ty, 60)));
    }
    let comment: Vec<&str> = line.split_ascii_whitespace().skip(2).collect();
    let harmless = |c: &char| c.is_ascii_alphanumeric() || " @._-+".contains(*c);
    let comment: String = comment.join(" ").chars().filter(harmless).take(100).collect();
    Ok(format!("{ty} {base64} {}", comment.trim()).trim_end().to_owned())
}

/// Whether two lines hold one key, comments aside.
pub(super) fn same(one: &str, two: &str) -> bool {
    let key = |line: &str| known_hosts::split(line).map(|(_, _, blob)| blob);
    key(one).is_some() && key(one) == key(two)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHiQa+s6mE2/SwHPdJTYWwH0/PC0h9Xr01nthiDZh7sa";

    #[test]
    fn what_is_taken() {
        let read = |text: &str| line(text.as_bytes());
        assert_eq!(read(&format!("# c\n\n{KEY} me@host\r\n")).unwrap(), format!("{KEY} me@host"));
        assert_eq!(read(&format!("{KEY} a'b\"$(x);{{}} c\n")).unwrap(), format!("{KEY} abx c"));
        assert_eq!(read(&format!("{KEY}\té")).unwrap(), KEY);
        assert!(same(KEY, &format!("{KEY} x")) && !same(KEY, "x") && !same("", ""));
    }

    #[test]
    fn what_is_not() {
        for (text, error) in [
            ("", PublicKeyError::Empty),
            ("\n  \n", PublicKeyError::Empty),
            ("null", PublicKeyError::Broken),
            ("ssh-ed25519", PublicKeyError::Broken),
            (&KEY[..40], PublicKeyError::Broken),
            (&format!("command=\"x\" {KEY}"), PublicKeyError::Broken),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", PublicKeyError::Private),
            ("---- BEGIN SSH2 PUBLIC KEY ----", PublicKeyError::Ssh2),
            ("ssh-dss AAAAB3NzaC1kc3MAAAABeA==", PublicKeyError::Type("ssh-dss".to_owned())),
            (
                "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4AAAABHNzaDo=",
                PublicKeyError::NeedsTouch("sk-ssh-ed25519@openssh.com".to_owned()),
            ),
        ] {
            assert_eq!(line(text.as_bytes()), Err(error), "{text}");
        }
    }
}
