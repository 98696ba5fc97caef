//! Keys of this computer: 32 random bytes in a file of the data directory that only its owner can read.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::error::AccountsError;
use crate::state::{atomic, private_dir, regular};

/// A key's length in bytes.
pub(super) const LENGTH: usize = 32;

/// A key; its memory is wiped when it goes.
pub(super) type Key = Zeroizing<[u8; LENGTH]>;

/// A file with a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyFile {
    /// Its name in the data directory.
    pub(super) name: &'static str,
    /// What it is, for people.
    pub(super) what: &'static str,
    /// What to do when it is damaged.
    pub(super) way_out: &'static str,
}

impl KeyFile {
    /// Returns where it lies.
    pub(super) fn path(self, data: &Path) -> PathBuf {
        data.join(self.name)
    }

    /// Reads the key; none if there is none. A file that is no key is an error and stays as it is.
    pub(super) fn read(self, data: &Path) -> Result<Option<Key>, AccountsError> {
        let path = self.path(data);
        let mut bytes = Zeroizing::new(Vec::with_capacity(LENGTH + 1));
        match regular::open(&path).and_then(|file| file.take(LENGTH as u64 + 1).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(data, format!("cannot be read: {error}"))),
        }
        let key: Result<[u8; LENGTH], _> = bytes.as_slice().try_into();
        let damaged = || self.failed(data, format!("is damaged; it was left as it is: {}", self.way_out));
        key.map(|key| Some(Zeroizing::new(key))).map_err(|_| damaged())
    }

    /// Reads the key, or makes it. Processes that start at once agree.
    pub(super) fn read_or_make(self, data: &Path) -> Result<Key, AccountsError> {
        if let Some(key) = self.read(data)? {
            return Ok(key);
        }
        private_dir(data)?;
        let key = random().map_err(|why| self.failed(data, why))?;
        match atomic::create_new(&self.path(data), key.as_ref(), 0o600) {
            Ok(()) => Ok(key),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.read(data)?.ok_or_else(|| self.failed(data, "was removed while it was read".to_owned()))
            }
            Err(error) => Err(self.failed(data, format!("cannot be made: {error}"))),
        }
    }

    /// Returns the error of a file that cannot be used.
    pub(super) fn failed(self, data: &Path, why: String) -> AccountsError {
        AccountsError::KeyFile { what: self.what, path: self.path(data), why }
    }
}

/// Returns a new key that is kept nowhere.
pub(super) fn random() -> Result<Key, String> {
    let mut bytes = Zeroizing::new([0; LENGTH]);
    let filled = SystemRandom::new().fill(bytes.as_mut());
    filled.map(|()| bytes).map_err(|_| "cannot be made: the system has no random numbers".to_owned())
}
