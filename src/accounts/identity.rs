//! What stands for a secret in records: an HMAC under a key that never leaves this computer, so that two credentials can be
//! told to be one without keeping either.

use std::path::Path;

use ring::hmac;

use super::error::AccountsError;
use super::key_file::{KeyFile, LENGTH, random};
use crate::model::secret::Secret;

/// The key. Under another one no recorded machine's account could be told again.
const KEY: KeyFile = KeyFile {
    name: "identity.key",
    what: "identity key",
    way_out: "put a copy back, or delete it, and a new one is made",
};

/// Makes marks for secrets.
pub struct Marker(hmac::Key);

impl Marker {
    /// Reads the key in the data directory, or makes it. Processes that start at once agree. A file that is no key is an
    /// error and stays as it is.
    pub fn open(data: &Path) -> Result<Self, AccountsError> {
        KEY.read_or_make(data).map(|key| Marker::of(&key))
    }

    /// Returns a passing key that is not kept: under it no recorded account is known again.
    pub fn passing() -> Result<Self, AccountsError> {
        let failed = |why| KEY.failed(Path::new(""), why);
        random().map(|key| Marker::of(&key)).map_err(failed)
    }

    /// Reads the key in the data directory; where there is none, makes a passing one that is not kept.
    pub fn known(data: &Path) -> Result<Self, AccountsError> {
        match KEY.read(data)? {
            Some(key) => Ok(Marker::of(&key)),
            None => Marker::passing(),
        }
    }

    fn of(key: &[u8; LENGTH]) -> Self {
        Marker(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// Returns 16 hexadecimal digits that stand for the secret.
    pub fn secret_mark(&self, secret: &Secret) -> String {
        let tag = hmac::sign(&self.0, secret.expose().as_bytes());
        tag.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_mark_is_stable_and_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let secret = Secret::trimmed("rpa_0123456789abcdef");
        let mark = Marker::open(&data).unwrap().secret_mark(&secret);
        assert_eq!(mark.len(), 16);
        assert!(mark.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
        assert_eq!(Marker::open(&data).unwrap().secret_mark(&secret), mark);
        assert_ne!(Marker::open(&data).unwrap().secret_mark(&Secret::trimmed("rpa_other")), mark);
        let elsewhere = folder.path().join("elsewhere");
        assert_ne!(Marker::open(&elsewhere).unwrap().secret_mark(&secret), mark);
        assert_eq!(fs::metadata(data.join(KEY.name)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&data).unwrap().mode() & 0o777, 0o700);
        // A key fixed for ever: records are compared with what is calculated today.
        assert_eq!(Marker::of(&[7; LENGTH]).secret_mark(&secret), "52455d8a0b6e5e91");
    }

    #[test]
    fn eight_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let mark = || Marker::open(folder.path()).unwrap().secret_mark(&Secret::trimmed("x"));
        let mut marks: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(mark)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        marks.dedup();
        assert_eq!(marks.len(), 1);
    }

    #[test]
    fn a_damaged_key_is_left_and_a_missing_place_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY.name);
        for damaged in [&[][..], &[1; 31], &[1; 33]] {
            fs::write(&path, damaged).unwrap();
            let error = Marker::open(folder.path()).err().unwrap().to_string();
            assert!(error.contains("is damaged") && error.contains(KEY.name), "{error}");
            assert_eq!(fs::read(&path).unwrap(), damaged);
        }
        let error = Marker::open(&path.join("below")).err().unwrap().to_string();
        assert!(error.contains(KEY.name), "{error}");
    }
}
