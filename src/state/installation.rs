//! The installation id: made once in the state directory, or given.

use std::io;
use std::path::Path;

use super::atomic;
use super::directory::private_dir;
use super::error::StateError;
use super::regular;
use crate::model::mark::Installation;

const FILE: &str = "installation";

/// Returns the installation id: the given one (`GPUPROV_INSTALLATION`, `defaults.installation`), else the one in the state
/// directory, else a new one, which is written there. Processes that start at once agree. A file that holds no id is an
/// error and stays as it is: with another id, machines would be lost sight of.
pub fn installation(state: &Path, given: Option<Installation>) -> Result<Installation, StateError> {
    if let Some(known) = known_installation(state, given)? {
        return Ok(known);
    }
    private_dir(state)?;
    let path = state.join(FILE);
    let made = Installation::random().map_err(|error| StateError::Malformed {
        path: path.clone(),
        why: format!("cannot be made: {error}"),
    })?;
    match atomic::create_new(&path, format!("{made}\n").as_bytes(), 0o600) {
        Ok(()) => Ok(made),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(&path)?.ok_or_else(|| StateError::io("read", &path)(error))
        }
        Err(error) => Err(StateError::io("write", &path)(error)),
    }
}

/// Returns the installation id as [`installation`] does, but makes none: for commands that only read.
pub fn known_installation(
    state: &Path,
    given: Option<Installation>,
) -> Result<Option<Installation>, StateError> {
    if given.is_some() { Ok(given) } else { read(&state.join(FILE)) }
}

fn read(path: &Path) -> Result<Option<Installation>, StateError> {
    let text = match regular::read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StateError::io("read", path)(error)),
    };
    let why = || {
        "holds no installation id (1 to 40 of a-z, 0-9 and dash); it was left as it is: give the id with \
         GPUPROV_INSTALLATION (every record in `machines` beside it names it), or delete the file if no machine is left"
            .to_owned()
    };
    let parsed = text.trim().parse().map(Some);
    parsed.map_err(|_| StateError::Malformed { path: path.to_owned(), why: why() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn eight_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let mut ids: Vec<Installation> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| installation(&state, None).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        ids.dedup();
        assert_eq!(ids.len(), 1);
        assert_eq!(installation(&state, None).unwrap(), ids[0]);
    }

    #[test]
    fn a_given_one_wins_and_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let given: Installation = "team-ci".parse().unwrap();
        assert_eq!(installation(&state, Some(given.clone())).unwrap(), given);
        assert!(!state.exists());
        assert_eq!(known_installation(&state, None).unwrap(), None);
    }

    #[test]
    fn a_broken_file_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("installation");
        for broken in ["", "Not One", "a:b"] {
            fs::write(&file, broken).unwrap();
            assert!(matches!(installation(folder.path(), None), Err(StateError::Malformed { .. })));
            assert_eq!(fs::read_to_string(&file).unwrap(), broken);
        }
    }
}
