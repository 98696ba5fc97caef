//! Sealing: AES-256-GCM under a key of this computer, with the account's id as associated data.
//!
//! The key lies beside what it seals, in a file that only its owner can read. So a copy of the accounts alone (a backup that
//! leaves the key out, a file sent by mistake, a line of `cat` on a shared screen) gives nothing away, and what was changed or
//! moved to another account is noticed. It does not protect against somebody who can read everything that the user can read.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::error::AccountsError;
use super::key_file::{Key, KeyFile};
use crate::model::account::AccountId;
use crate::model::secret::Secret;

/// The key that accounts are sealed under.
const KEY: KeyFile = KeyFile {
    name: "seal.key",
    what: "seal key",
    way_out: "put a copy back; if there is none, move the folder `accounts` beside it away with it, and connect the \
              accounts again with `gpuprov clouds set`",
};

/// The parts of some credentials by their names. A stored format, once sealed: names keep their meaning.
pub type Parts = BTreeMap<String, Secret>;

/// What is sealed of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The credentials.
    pub credentials: Parts,
    /// The base URL that alone may get them, where that is not the cloud's own. It is sealed with them: who could change it
    /// could send them elsewhere.
    pub endpoint: Option<String>,
}

/// Sealed contents, as they stand in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sealed {
    /// 8 hexadecimal digits that tell the key, without giving anything of it away.
    key: String,
    nonce: String,
    data: String,
}

/// Seals and opens.
pub(super) struct Sealer {
    key: LessSafeKey,
    id: String,
}

impl Sealer {
    /// Reads the key, or makes it.
    pub(super) fn open_or_make(data: &Path) -> Result<Self, AccountsError> {
        Sealer::of(&KEY.read_or_make(data)?, data)
    }

    /// Reads the key; none if there is none.
    pub(super) fn known(data: &Path) -> Result<Option<Self>, AccountsError> {
        KEY.read(data)?.map(|key| Sealer::of(&key, data)).transpose()
    }

    /// Returns the error of a key that is not there and cannot be made anew.
    pub(super) fn missing(data: &Path) -> AccountsError {
        KEY.failed(data, format!("is not there, but accounts that it sealed are: {}", KEY.way_out))
    }

    fn of(key: &Key, data: &Path) -> Result<Self, AccountsError> {
        let unbound = UnboundKey::new(&AES_256_GCM, key.as_ref())
            .map_err(|_| KEY.failed(data, "cannot be used".to_owned()))?;
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()), b"which seal key this is");
        let id = tag.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Sealer { key: LessSafeKey::new(unbound), id })
    }

    /// Seals the contents for the account.
    pub(super) fn seal(&self, account: &AccountId, contents: &Contents) -> Result<Sealed, &'static str> {
        let parts: BTreeMap<&str, &str> =
            contents.credentials.iter().map(|(name, part)| (name.as_str(), part.expose())).collect();
        let plain = Plain { credentials: parts, endpoint: contents.endpoint.as_deref() };
        // Long enough that it never moves: what was left behind elsewhere in memory could not be wiped.
        let mut bytes = Zeroizing::new(Vec::with_capacity(64 << 10));
        serde_json::to_writer(&mut *bytes, &plain).map_err(|_| "cannot be written as text")?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| "cannot be sealed: the system has no random numbers")?;
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad(account), &mut *bytes)
            .map_err(|_| "cannot be sealed")?;
        Ok(Sealed { key: self.id.clone(), nonce: BASE64.encode(nonce), data: BASE64.encode(&*bytes) })
    }

    /// Opens what was sealed for the account; the error says what is wrong, as it stands after the account.
    pub(super) fn open(&self, account: &AccountId, sealed: &Sealed) -> Result<Contents, &'static str> {
        const DAMAGED: &str = "was changed after it was sealed, or sealed as another account";
        if sealed.key != self.id {
            return Err("was sealed under another key than the one in `seal.key`");
        }
        let nonce =
            BASE64.decode(&sealed.nonce).ok().and_then(|nonce| nonce.try_into().ok()).ok_or(DAMAGED)?;
        let mut bytes = Zeroizing::new(BASE64.decode(&sealed.data).map_err(|_| DAMAGED)?);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = self.key.open_in_place(nonce, aad(account), &mut bytes).map_err(|_| DAMAGED)?;
        let plain: Opened =
            serde_json::from_slice(plain).map_err(|_| "holds nothing that this version knows")?;
        let credentials = plain.credentials.into_iter().map(|(name, part)| (name, Secret::new(part)));
        Ok(Contents { credentials: credentials.collect(), endpoint: plain.endpoint })
    }
}

fn aad(account: &AccountId) -> Aad<Vec<u8>> {
    Aad::from(account.to_string().into_bytes())
}

#[derive(Serialize)]
struct Plain<'a> {
    credentials: BTreeMap<&'a str, &'a str>,
    endpoint: Option<&'a str>,
}

#[derive(Deserialize)]
struct Opened {
    credentials: BTreeMap<String, String>,
    #[serde(default)]
    endpoint: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "k3y-of-the-lab-0123";

    fn contents() -> Contents {
        let credentials = [("api_key".to_owned(), Secret::trimmed(SECRET))].into_iter().collect();
        Contents { credentials, endpoint: Some("https://proxy.example".to_owned()) }
    }

    fn account(text: &str) -> AccountId {
        text.parse().unwrap()
    }

    #[test]
    fn it_opens_for_the_account_and_under_the_key_that_it_was_sealed_with() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Sealer::known(folder.path()).unwrap().is_none());
        let sealer = Sealer::open_or_make(folder.path()).unwrap();
        let sealed = sealer.seal(&account("vast/lab"), &contents()).unwrap();
        let again = Sealer::known(folder.path()).unwrap().unwrap();
        assert_eq!(again.open(&account("vast/lab"), &sealed).unwrap(), contents());
        assert!(again.open(&account("vast/lab-b"), &sealed).is_err());
        let other = Sealer::open_or_make(&folder.path().join("other")).unwrap();
        assert!(other.open(&account("vast/lab"), &sealed).unwrap_err().contains("another key"));
        assert_ne!(
            sealer.seal(&account("vast/lab"), &contents()).unwrap(),
            sealed,
            "the nonce is new every time"
        );
        assert!(!format!("{sealed:?} {:?}", contents()).contains(SECRET));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let sealer = Sealer::open_or_make(folder.path()).unwrap();
        let sealed = sealer.seal(&account("vast/lab"), &contents()).unwrap();
        for (member, text) in [("nonce", &sealed.nonce), ("data", &sealed.data)] {
            let bytes = BASE64.decode(text).unwrap();
            for at in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[at / 8] ^= 1 << (at % 8);
                let mut other = sealed.clone();
                match member {
                    "nonce" => other.nonce = BASE64.encode(flipped),
                    _ => other.data = BASE64.encode(flipped),
                }
                assert!(sealer.open(&account("vast/lab"), &other).is_err(), "{member} {at}");
            }
        }
        for text in ["", "%", "AAAA"] {
            let other = Sealed { data: text.to_owned(), ..sealed.clone() };
            assert!(sealer.open(&account("vast/lab"), &other).is_err());
        }
    }
}
