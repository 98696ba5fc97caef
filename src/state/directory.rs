//! Directories that belong to the user alone.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::atomic::sync_dir;

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// It cannot be made, looked at or closed to others.
    #[error("cannot {doing} the directory `{}`: {cause}", path.display())]
    Io {
        /// What was being done, as it stands after "cannot".
        doing: &'static str,
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// Something else lies there.
    #[error("`{}` is not a directory", .0.display())]
    NotDirectory(PathBuf),
    /// It is somebody else's.
    #[error("the directory `{}` belongs to another user (uid {owner}, not {user}); it is not used", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who asks.
        user: u32,
    },
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DirError {
    move |cause| DirError::Io { doing, path: path.to_owned(), cause }
}

fn owned(path: &Path, metadata: &Metadata) -> Result<(), DirError> {
    if !metadata.is_dir() {
        return Err(DirError::NotDirectory(path.to_owned()));
    }
    let user = nix::unistd::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(DirError::Foreign { path: path.to_owned(), owner: metadata.uid(), user });
    }
    Ok(())
}

/// Makes sure that `path` is a directory of the user that nobody else can enter: makes it with mode 0700 where it is missing
/// (its parents with the usual mode), refuses one that belongs to somebody else, and takes the rights of group and others
/// away. What it makes is synced.
pub fn private_dir(path: &Path) -> Result<(), DirError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            if let Some(parent) = parent {
                fs::create_dir_all(parent).map_err(failed("make", parent))?;
            }
            match DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed("make", path)(error));
                }
                _ => {}
            }
            if let Some(parent) = parent {
                sync_dir(parent).map_err(failed("sync", parent))?;
            }
            fs::metadata(path).map_err(failed("look at", path))?
        }
        Err(error) => return Err(failed("look at", path)(error)),
    };
    owned(path, &metadata)?;
    let mode = metadata.mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(mode & 0o7700)).map_err(failed("close", path))?;
    }
    Ok(())
}

/// Refuses a directory of somebody else's, for those who only read. A missing one is fine.
pub fn check_owner(path: &Path) -> Result<(), DirError> {
    match fs::metadata(path) {
        Ok(metadata) => owned(path, &metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("look at", path)(error)),
    }
}

/// Whether group or others can read a file with a secret in it.
pub fn readable_by_others(metadata: &Metadata) -> bool {
    metadata.mode() & 0o044 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_private_with_ordinary_parents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/gpuprov");
        private_dir(&path).unwrap();
        private_dir(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        private_dir(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn files_and_foreign_directories_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(private_dir(&file), Err(DirError::NotDirectory(_))));
        assert!(private_dir(&file.join("below")).is_err());
        let foreign = Path::new("/proc/1");
        if nix::unistd::geteuid().is_root() {
            let theirs = folder.path().join("theirs");
            fs::create_dir(&theirs).unwrap();
            std::os::unix::fs::chown(&theirs, Some(12_345), None).unwrap();
            assert!(matches!(private_dir(&theirs), Err(DirError::Foreign { owner: 12_345, .. })));
            assert!(matches!(check_owner(&theirs), Err(DirError::Foreign { .. })));
        } else if foreign.exists() {
            assert!(matches!(check_owner(foreign), Err(DirError::Foreign { .. })));
        }
        check_owner(&folder.path().join("missing")).unwrap();
    }
}
