//! Files that are there whole or not at all, also after a crash: temp file, fsync, rename, fsync of the directory.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes `bytes` to `path`, in place of what was there. `mode` is that of the file, narrowed by the umask. When it
/// returns, the file survives a crash of the computer; when it fails, what was there before is still there.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let dir = folder_of(path);
    prepare(path, dir, bytes, mode)?.persist(path).map_err(|error| error.error)?;
    sync_dir(dir)
}

/// Writes `bytes` to `path` as [`write()`] does, but fails with `AlreadyExists` when something is there: of several processes
/// exactly one succeeds, and nobody ever sees half a file.
pub fn create_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let dir = folder_of(path);
    prepare(path, dir, bytes, mode)?.persist_noclobber(path).map_err(|error| error.error)?;
    sync_dir(dir)
}

/// Removes the file, synced. That it is not there is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => sync_dir(folder_of(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes the temp files that writers of `path` left behind when they were killed. Only for those who hold the lock that
/// all writers of `path` take. Errors are passed over: a left-over does no harm.
pub fn sweep(path: &Path) {
    let Some(prefix) = temp_prefix(path) else { return };
    let Ok(entries) = fs::read_dir(folder_of(path)) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Syncs the directory itself, so that names in it survive a crash. File systems that cannot do that are let through.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    match File::open(dir)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temp_prefix(path: &Path) -> Option<String> {
    path.file_name().and_then(OsStr::to_str).map(|name| format!(".{name}.tmp-"))
}

fn prepare(path: &Path, dir: &Path, bytes: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let prefix = temp_prefix(path).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut file = tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn it_replaces_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dev.json");
        write(&path, b"one", 0o600).unwrap();
        write(&path, b"two", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(create_new(&path, b"three", 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["dev.json"]);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn sweeping_takes_only_the_temp_files_of_this_path() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".dev.json.tmp-a1", ".dev-2.json.tmp-b", "dev.json", ".dev.json", "dev.lock"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        sweep(&folder.path().join("dev.json"));
        assert_eq!(names(folder.path()), [".dev-2.json.tmp-b", ".dev.json", "dev.json", "dev.lock"]);
    }

    #[test]
    fn of_eight_creators_one_wins_and_all_see_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("installation");
        let won: usize = std::thread::scope(|scope| {
            let path = &path;
            let threads: Vec<_> = (0..8_u8)
                .map(|n| {
                    scope.spawn(move || {
                        let won = create_new(path, &[n; 4096], 0o600).is_ok();
                        let bytes = fs::read(path).unwrap();
                        assert!(bytes.len() == 4096 && bytes.iter().all(|byte| *byte == bytes[0]));
                        usize::from(won)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(won, 1);
    }
}
