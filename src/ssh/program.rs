//! Finding the system's programs (`ssh`, `ssh-keygen`, `ssh-add`, `ssh-keyscan`) in a search path given as text.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the first executable file called `name` in the absolute folders of `path_var` (the value of `PATH`). Empty and
/// relative entries are passed over: they depend on the current directory, which this module does not read.
pub fn find(path_var: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path_var)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_files_in_absolute_folders_count() {
        let top = tempfile::tempdir().unwrap();
        let (one, two) = (top.path().join("one"), top.path().join("two"));
        std::fs::create_dir_all(one.join("tool2")).unwrap();
        std::fs::create_dir_all(&two).unwrap();
        for (file, mode) in [(one.join("tool"), 0o644), (two.join("tool"), 0o755), (two.join("tool2"), 0o755)]
        {
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([Path::new(""), Path::new("bin"), &one, &two]).unwrap();
        assert_eq!(find(&path, "tool"), Some(two.join("tool")));
        assert_eq!(find(&path, "tool2"), Some(two.join("tool2")));
        assert_eq!(find(&path, "none"), None);
        assert_eq!(find(OsStr::new(""), "tool"), None);
    }
}
