//! Folders, locks and whole-file writes below `~/.ssh`.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The largest file that is read, in bytes.
const MOST: u64 = 4 << 20;

/// How long the lock is waited for. It is held for milliseconds, or while one key pair is made.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// What mode a written file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Always 0600.
    Private,
    /// That of the file it replaces, 0600 if there is none.
    Kept,
}

/// Adds what was being done to which path to an error.
pub(super) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Returns the content of a regular file of at most 4 MB; anything else is an error, so that a FIFO or device never hangs us.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "larger than 4 MB"));
    }
    Ok(bytes)
}

/// Like [`read`], with a missing file being none.
pub(super) fn read_if_any(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path, &error)),
    }
}

/// Removes a file that may be missing.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path, &error)),
        _ => Ok(()),
    }
}

/// Makes `folder` and whatever is missing above it, each 0700.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    make_folder(parent)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {
            give_to_owner_of(parent, folder);
            Ok(())
        }
        // Made by another process in between.
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(at(folder, &error)),
    }
}

/// Takes the one lock of `folder` (made if missing) until the returned file is dropped or the process dies.
pub(super) fn lock(folder: &Path) -> io::Result<File> {
    make_folder(folder)?;
    let path = folder.join(".lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| at(&path, &error))?;
    give_to_owner_of(folder, &path);
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // A file system without locks: single writes are atomic still.
            Err(TryLockError::Error(error)) if has_no_locks(&error) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(at(&path, &error)),
            Err(TryLockError::WouldBlock) if start.elapsed() > LOCK_WAIT => {
                let words = format!("{}: held by another gpuprov for too long", path.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn has_no_locks(error: &io::Error) -> bool {
    use nix::libc::{ENOLCK, ENOSYS, EOPNOTSUPP};
    error.raw_os_error().is_some_and(|code| [ENOLCK, ENOSYS, EOPNOTSUPP].contains(&code))
}

/// Returns the file that `path` stands for, symbolic links followed, whether or not the last one leads to something.
pub(super) fn real(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else {
            return Ok(path);
        };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    Err(at(&path, &io::Error::other("too many symbolic links")))
}

/// Replaces the file at `path` in one step: readers see the old content or the new, never a part. A symbolic link stays one
/// and its target is replaced. The owner stays; a new file gets the owner of its folder (both only as far as we may: this is
/// for `sudo` with another user's HOME).
pub(super) fn write(path: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
    let target = real(path)?;
    write_at(&target, bytes, mode).map_err(|error| at(&target, &error))
}

fn write_at(target: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
    let folder = target.parent().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let old = fs::metadata(target).ok();
    let mut temporary = tempfile::Builder::new().prefix(".gpuprov-").tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    let bits = match (&old, mode) {
        (Some(old), Mode::Kept) => old.mode() & 0o7777,
        _ => 0o600,
    };
    give_to_owner_of(if old.is_some() { target } else { folder }, temporary.path());
    // After the owner, as a change of owner clears bits.
    temporary.as_file().set_permissions(Permissions::from_mode(bits))?;
    temporary.as_file().sync_all()?;
    temporary.persist(target)?;
    // The rename is what must not be lost; a folder that cannot be synced is no reason to fail.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Gives `file` the owner of `model` where they differ and we may.
pub(super) fn give_to_owner_of(model: &Path, file: &Path) {
    let (Ok(model), Ok(now)) = (fs::metadata(model), fs::metadata(file)) else { return };
    if model.uid() != now.uid() {
        let _ = std::os::unix::fs::chown(file, Some(model.uid()), Some(model.gid()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_and_mode_is_kept() {
        let top = tempfile::tempdir().unwrap();
        let (folder, dots) = (top.path().join("ssh"), top.path().join("dots"));
        make_folder(&folder.join("deep")).unwrap();
        make_folder(&dots).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        std::os::unix::fs::symlink("../dots/config", folder.join("config")).unwrap();
        write(&folder.join("config"), b"one", Mode::Kept).unwrap();
        let target = dots.join("config");
        assert_eq!(fs::read(&target).unwrap(), b"one");
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&target, Permissions::from_mode(0o644)).unwrap();
        write(&folder.join("config"), b"two", Mode::Kept).unwrap();
        assert!(fs::symlink_metadata(folder.join("config")).unwrap().is_symlink());
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o644);
        write(&folder.join("config"), b"three", Mode::Private).unwrap();
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&dots).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_loop_of_links_and_a_fifo_are_errors() {
        let top = tempfile::tempdir().unwrap();
        let (one, two) = (top.path().join("one"), top.path().join("two"));
        std::os::unix::fs::symlink(&two, &one).unwrap();
        std::os::unix::fs::symlink(&one, &two).unwrap();
        assert!(write(&one, b"x", Mode::Kept).is_err());
        let fifo = top.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read(&fifo).is_err());
    }

    #[test]
    fn the_lock_excludes_and_goes_with_its_file() {
        let top = tempfile::tempdir().unwrap();
        let held = lock(top.path()).unwrap();
        let other = File::open(top.path().join(".lock")).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        lock(top.path()).unwrap();
    }
}
