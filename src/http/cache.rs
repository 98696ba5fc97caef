//! Answers kept for a while on disk, for providers that count every question.
//!
//! A cache may be deleted at any time, and whatever is wrong with it is as if it were empty: nothing depends on it. It holds
//! no secret; all the same only its owner can read it.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A folder of answers that grow old.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: Option<PathBuf>,
    most: Duration,
}

impl Cache {
    /// Returns the cache in `dir`, whose entries hold for `most`; without a folder nothing is kept. Nothing is made yet.
    pub fn new(dir: Option<PathBuf>, most: Duration) -> Self {
        Cache { dir, most }
    }

    /// Returns what was kept for `question`; none if there is nothing, or nothing young enough.
    pub fn get<T: DeserializeOwned>(&self, question: &str) -> Option<T> {
        let dir = self.dir.as_deref()?;
        // Only the owner may have written what prices are taken from.
        let owner = fs::metadata(dir).ok().filter(fs::Metadata::is_dir)?.uid();
        let path = file(dir, question);
        let metadata = fs::symlink_metadata(&path).ok()?;
        let ours = metadata.is_file() && metadata.uid() == owner && owner == nix::unistd::geteuid().as_raw();
        if !ours || !self.is_young(&metadata) {
            return None;
        }
        serde_json::from_slice(&fs::read(&path).ok()?).ok()
    }

    /// Keeps the answer to `question`, and drops what is too old. That it cannot be kept harms nobody.
    pub fn put<T: Serialize>(&self, question: &str, answer: &T) {
        if let Some(dir) = self.dir.as_deref() {
            let _ = self.write(dir, question, answer);
            self.sweep(dir, false);
        }
    }

    /// Drops every answer.
    pub fn clear(&self) {
        if let Some(dir) = self.dir.as_deref() {
            self.sweep(dir, true);
        }
    }

    fn write<T: Serialize>(&self, dir: &Path, question: &str, answer: &T) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let metadata = fs::metadata(dir)?;
        if metadata.uid() != nix::unistd::geteuid().as_raw() {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        if metadata.mode() & 0o077 != 0 {
            fs::set_permissions(dir, Permissions::from_mode(0o700))?;
        }
        let mut file_now =
            tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(dir)?;
        file_now.write_all(&serde_json::to_vec(answer)?)?;
        file_now.persist(file(dir, question))?;
        Ok(())
    }

    fn sweep(&self, dir: &Path, all: bool) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        for entry in entries.flatten() {
            let is_ours = entry.file_name().to_str().is_some_and(|name| name.ends_with(".json"));
            let old = entry.metadata().is_ok_and(|metadata| !self.is_young(&metadata));
            if is_ours && (all || old) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn is_young(&self, metadata: &fs::Metadata) -> bool {
        // A time to come is of a clock that was set back: nothing is known of the age.
        let age = metadata.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_some_and(|age| age < self.most)
    }
}

fn file(dir: &Path, question: &str) -> PathBuf {
    let digest = ring::digest::digest(&ring::digest::SHA256, question.as_bytes());
    let name: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    dir.join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn an_answer_is_kept_for_its_time_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("gpuprov/vast");
        let cache = Cache::new(Some(dir.clone()), LONG);
        assert_eq!(cache.get::<u32>("one"), None);
        cache.put("one", &7);
        cache.put("two", &8);
        assert_eq!((cache.get("one"), cache.get("two")), (Some(7), Some(8)));
        assert_eq!(cache.get::<u32>("three"), None);
        assert_eq!(cache.get::<String>("one"), None, "of another type");
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        let files: Vec<_> = fs::read_dir(&dir).unwrap().flatten().collect();
        assert_eq!(files.len(), 2);
        assert!(files.iter().all(|file| file.metadata().unwrap().mode() & 0o777 == 0o600));

        let old = Cache::new(Some(dir.clone()), Duration::ZERO);
        assert_eq!(old.get::<u32>("one"), None);
        cache.clear();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }

    #[test]
    fn what_is_old_goes_when_something_new_comes() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().to_owned()), LONG);
        cache.put("one", &1);
        let old = SystemTime::now() - LONG * 2;
        let path = file(folder.path(), "one");
        fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        assert_eq!(cache.get::<u32>("one"), None);
        cache.put("two", &2);
        assert!(!path.exists());
    }

    #[test]
    fn without_a_folder_or_with_a_broken_file_there_is_nothing() {
        let none = Cache::new(None, LONG);
        none.put("one", &1);
        assert_eq!(none.get::<u32>("one"), None);
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().to_owned()), LONG);
        fs::write(file(folder.path(), "one"), "{").unwrap();
        assert_eq!(cache.get::<u32>("one"), None);
        let blocked = Cache::new(Some(folder.path().join("x.json/y")), LONG);
        fs::write(folder.path().join("x.json"), "").unwrap();
        blocked.put("one", &1);
        assert_eq!(blocked.get::<u32>("one"), None);
    }
}
