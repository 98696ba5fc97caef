//! Access tokens that expire: kept in memory and on disk, renewed before their end, by one task at a time.
//!
//! A token is a secret. On disk it lies in a file of mode 0600 in a folder of mode 0700, one file for each account and
//! endpoint, and that file may be deleted at any time. A file that others could read or that is damaged is not used.
//!
//! The wall clock decides: it goes on while a laptop sleeps, and several processes share the file.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use ring::digest;
use serde::{Deserialize, Serialize};
use tokio::sync::RwLock;

use crate::model::secret::Secret;

/// A token is renewed this long before its end, or when a tenth of its life is left, if that is later.
const MARGIN: Duration = Duration::from_secs(300);

/// No token lives longer; a longer life in an answer is somebody's mistake.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// No file of ours has this many bytes.
const MOST_BYTES: u64 = 64 * 1024;

/// The version of the file; another one is not read.
const VERSION: u32 = 1;

/// A token as it was given out just now.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The token.
    pub token: Secret,
    /// How long it lives from now on.
    pub lives: Duration,
}

/// The tokens of one account.
#[derive(Debug)]
pub struct Tokens {
    key: String,
    file: Option<PathBuf>,
    held: RwLock<Option<Held>>,
}

#[derive(Clone, Debug)]
struct Held {
    token: Secret,
    renew_at: Timestamp,
    ends_at: Timestamp,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    key: String,
    token: String,
    renew_at: Timestamp,
    ends_at: Timestamp,
}

impl Tokens {
    /// Returns the tokens of the account that `key` stands for: cloud, endpoint and secret mark, no secret. With `folder`
    /// they are kept there from one process to the next. Nothing is read yet.
    pub fn new(folder: Option<&Path>, key: impl Into<String>) -> Self {
        let key = key.into();
        let hash = digest::digest(&digest::SHA256, key.as_bytes());
        let name: String = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let file = folder.map(|folder| folder.join(format!("{name}.json")));
        Tokens { key, file, held: RwLock::new(None) }
    }

    /// Returns a token that is good for a while, the one that is held if it is, else one that `renew` gets. While one task
    /// renews, the others wait for its token. When a renewal fails, a token before its end is still given out.
    pub async fn get<E, F>(&self, renew: impl FnOnce() -> F) -> Result<Secret, E>
    where
        F: Future<Output = Result<Granted, E>>,
    {
        if let Some(held) = self.held.read().await.as_ref().filter(|held| held.is_fresh()) {
            return Ok(held.token.clone());
        }
        let mut held = self.held.write().await;
        if held.is_none() {
            *held = self.file.as_deref().and_then(|file| load(file, &self.key));
        }
        if let Some(held) = held.as_ref().filter(|held| held.is_fresh()) {
            return Ok(held.token.clone());
        }
        match renew().await {
            Ok(granted) => {
                let new = Held::of(&granted);
                self.store(&new);
                *held = Some(new);
                Ok(granted.token)
            }
            Err(error) => match held.as_ref().filter(|held| Timestamp::now() < held.ends_at) {
                Some(held) => Ok(held.token.clone()),
                None => Err(error),
            },
        }
    }

    /// Drops a token that the provider did not take, here and on disk; any other one stays.
    pub async fn reject(&self, token: &Secret) {
        let mut held = self.held.write().await;
        if held.as_ref().is_some_and(|held| held.token == *token) {
            *held = None;
        }
        let Some(file) = &self.file else { return };
        if load(file, &self.key).is_some_and(|stored| stored.token == *token) {
            let _ = fs::remove_file(file);
        }
    }

    /// Comfort only: without the file the next process asks for a token of its own.
    fn store(&self, held: &Held) {
        let Some(file) = &self.file else { return };
        if let Err(error) = save(file, &self.key, held) {
            tracing::debug!(target: "gpuprov::http", %error, "a token is not kept on disk");
        }
    }
}

impl Held {
    fn of(granted: &Granted) -> Self {
        let lives = granted.lives.min(LONGEST);
        let margin = MARGIN.min(lives / 10);
        let now = Timestamp::now();
        Held {
            token: granted.token.clone(),
            renew_at: later(now, lives - margin),
            ends_at: later(now, lives),
        }
    }

    fn is_fresh(&self) -> bool {
        Timestamp::now() < self.renew_at
    }
}

fn later(at: Timestamp, span: Duration) -> Timestamp {
    at.checked_add(span).unwrap_or(at)
}

fn load(path: &Path, key: &str) -> Option<Held> {
    let file = File::open(path).ok()?;
    // What others can read they may have written or copied.
    if file.metadata().ok()?.mode() & 0o077 != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    let stored: Stored = serde_json::from_str(&text).ok()?;
    let token = Secret::new(stored.token);
    // A file from a computer whose clock was ahead would keep a dead token for long.
    let plausible = stored.ends_at <= later(Timestamp::now(), LONGEST) && stored.renew_at <= stored.ends_at;
    (stored.version == VERSION && stored.key == key && plausible && !token.is_empty()).then_some(Held {
        token,
        renew_at: stored.renew_at,
        ends_at: stored.ends_at,
    })
}

fn save(path: &Path, key: &str, held: &Held) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let stored = Stored {
        version: VERSION,
        key: key.to_owned(),
        token: held.token.expose().to_owned(),
        renew_at: held.renew_at,
        ends_at: held.ends_at,
    };
    // Made with mode 0600, and in place at once as a whole.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(serde_json::to_string(&stored)?.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
