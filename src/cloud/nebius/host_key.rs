//! The machine's ssh host key: made here, put on the machine by cloud-init, so that the very first login is checked.
//!
//! The private half goes into the user data of the create and nowhere else. The public half goes into the machine's handle;
//! its fingerprint also stands in a label, so that a machine that is found by its marks alone is checked too. Whoever can read
//! the user data (the tenant, and programs on the machine) could read the key: it keeps out who stands between, not them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use zeroize::Zeroizing;

use crate::model::secret::Secret;

/// The type, as OpenSSH names it.
const TYPE: &str = "ssh-ed25519";

/// Characters on one line of a private key file.
const LINE: usize = 70;

/// The label that carries the fingerprint.
pub(super) const LABEL: &str = "gpuprov-host-key";

/// A host key pair.
pub(super) struct HostKey {
    /// `ssh-ed25519 BASE64`.
    pub(super) public: String,
    /// A private key file as OpenSSH has it (PROTOCOL.key of OpenSSH), without a passphrase.
    pub(super) private: Secret,
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostKey").field(&self.public).finish()
    }
}

impl HostKey {
    /// Makes a new pair; an error if the system has no random numbers to give.
    pub(super) fn random() -> Result<Self, &'static str> {
        const NO_RANDOM: &str = "the system's random number generator does not answer";
        let random = SystemRandom::new();
        let mut seed = Zeroizing::new([0_u8; 32]);
        random.fill(seed.as_mut()).map_err(|_| NO_RANDOM)?;
        let mut check = [0_u8; 4];
        random.fill(&mut check).map_err(|_| NO_RANDOM)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).map_err(|_| NO_RANDOM)?;
        let public = pair.public_key().as_ref();
        Ok(HostKey {
            public: format!("{TYPE} {}", STANDARD.encode(blob(public))),
            private: Secret::new(private_file(seed.as_ref(), public, check)),
        })
    }
}

/// Appends a string as the ssh protocol has it: its length, then its bytes.
fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    // Lengths here are below a hundred.
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The public key in the ssh protocol's form.
fn blob(public: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    string(&mut out, TYPE.as_bytes());
    string(&mut out, public);
    out
}

fn private_file(seed: &[u8], public: &[u8], check: [u8; 4]) -> String {
    let mut secret = Zeroizing::new(Vec::with_capacity(256));
    secret.extend_from_slice(&check);
    secret.extend_from_slice(&check);
    string(&mut secret, TYPE.as_bytes());
    string(&mut secret, public);
    let both = Zeroizing::new([seed, public].concat());
    string(&mut secret, &both);
    string(&mut secret, b"");
    // Up to the block size of no cipher.
    let mut pad = 0;
    while secret.len() % 8 != 0 {
        pad += 1;
        secret.push(pad);
    }
    let mut whole = Zeroizing::new(Vec::with_capacity(512));
    whole.extend_from_slice(b"openssh-key-v1\0");
    string(&mut whole, b"none");
    string(&mut whole, b"none");
    string(&mut whole, b"");
    whole.extend_from_slice(&1_u32.to_be_bytes());
    string(&mut whole, &blob(public));
    string(&mut whole, &secret);
    let text = Zeroizing::new(STANDARD.encode(&*whole));
    let mut file = String::with_capacity(text.len() + 128);
    file.push_str("-----BEGIN OPENSSH PRIVATE KEY-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        file.push_str(line);
        file.push('\n');
        rest = after;
    }
    file.push_str("-----END OPENSSH PRIVATE KEY-----\n");
    file
}

/// Whether a text is a host key as [`HostKey::public`] has it: it may be written into a file of known hosts.
pub(super) fn is_public(text: &str) -> bool {
    let bytes = text.strip_prefix("ssh-ed25519 ").and_then(|rest| STANDARD.decode(rest).ok());
    bytes.is_some_and(|bytes| bytes.len() == 51 && bytes == blob(bytes.get(19..).unwrap_or_default()))
}

/// Returns the value of [`LABEL`]: the SHA-256 of the public key in base32, lower case, without padding. Values of labels are
/// at most 63 of `a-z 0-9 - _`, which rules out base64 and hexadecimal.
pub(super) fn label(public: &str) -> Option<String> {
    let bytes = STANDARD.decode(public.split(' ').nth(1)?).ok()?;
    Some(base32(digest(&SHA256, &bytes).as_ref()))
}

/// Returns the fingerprint that a label carries, `SHA256:...`; none if it is something else.
pub(super) fn fingerprint(label: &str) -> Option<String> {
    let bytes = from_base32(label).filter(|bytes| bytes.len() == 32)?;
    Some(format!("SHA256:{}", STANDARD_NO_PAD.encode(bytes)))
}

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

fn base32(bytes: &[u8]) -> String {
    let (mut text, mut held, mut bits) = (String::new(), 0_u32, 0);
    let mut push = |five: u32| text.push(char::from(ALPHABET[(five & 31) as usize]));
    for byte in bytes {
        held = (held << 8 | u32::from(*byte)) & 0xFFF;
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            push(held >> bits);
        }
    }
    if bits > 0 {
        push(held << (5 - bits));
    }
    text
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes() {
        let five = ALPHABET.iter().position(|known| *known == letter)?;
        held = (held << 5 | five as u32) & 0xFFF;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xFF) as u8);
        }
    }
    // What is over is padding of fewer than five bits, all zero.
    (bits < 5 && held & ((1 << bits) - 1) == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn openssh_reads_the_pair_and_agrees_on_public_half_and_fingerprint() {
        let key = HostKey::random().unwrap();
        assert!(is_public(&key.public));
        assert!(!format!("{key:?}").contains("PRIVATE"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let mut options = std::fs::File::options();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
        std::io::Write::write_all(&mut file, key.private.expose().as_bytes()).unwrap();
        let run = |arguments: &[&str]| {
            let output = Command::new("ssh-keygen").args(arguments).arg("-f").arg(&path).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(run(&["-y"]).trim(), key.public);
        let told = run(&["-l", "-E", "sha256"]);
        let label = label(&key.public).unwrap();
        assert_eq!(label.len(), 52);
        assert_eq!(told.split(' ').nth(1).unwrap(), fingerprint(&label).unwrap());
    }

    #[test]
    fn two_pairs_differ() {
        assert_ne!(HostKey::random().unwrap().public, HostKey::random().unwrap().public);
    }

    #[test]
    fn what_is_no_key_and_no_fingerprint() {
        for none in
            ["", "ssh-ed25519", "ssh-ed25519 ", "ssh-ed25519 AAAA", "ssh-rsa AAAAB3NzaC1yc2E=", "x\ny"]
        {
            assert!(!is_public(none), "{none}");
        }
        for none in ["", "a", "abc", &"a".repeat(51), &"a".repeat(53), &"A".repeat(52), &"1".repeat(52)] {
            assert_eq!(fingerprint(none), None, "{none}");
        }
    }

    proptest::proptest! {
        #[test]
        fn base32_is_read_back(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
            proptest::prop_assert_eq!(from_base32(&base32(&bytes)), Some(bytes));
        }

        #[test]
        fn any_text_is_survived(text in "\\PC{0,80}|[a-z2-7]{50,54}") {
            let _ = (fingerprint(&text), is_public(&text), label(&text));
        }
    }
}
