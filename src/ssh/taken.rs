//! Names that the user's own ssh configuration has already.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{files, syntax};

/// How deep `Include` is followed, as deep as ssh itself goes.
const DEPTH: usize = 16;

/// The most files that are read.
const FILES: usize = 2000;

/// Where `~` and relative names in `Include` lead, and which file does not count.
pub(super) struct Search<'a> {
    /// The name that is looked for.
    pub(super) name: &'a str,
    /// The home that ssh takes `~` for.
    pub(super) home: Option<&'a Path>,
    /// Our own file, whose names the registry knows.
    pub(super) own: &'a Path,
    /// What was read already.
    pub(super) seen: HashSet<PathBuf>,
}

impl Search<'_> {
    /// Returns the file at or below `file` with a `Host` line that names exactly the name. Patterns with `*`, `?` or `!` do
    /// not count, and case does, as it does for ssh. A `Host` line inside a file that is included for one host only counts
    /// too. Included files that are missing or cannot be read are passed over; `file` itself may be missing only.
    pub(super) fn look(&mut self, file: &Path) -> io::Result<Option<PathBuf>> {
        match files::read_if_any(file)? {
            Some(text) => Ok(self.look_in(file, &text, DEPTH)),
            None => Ok(None),
        }
    }

    fn look_in(&mut self, file: &Path, text: &[u8], depth: usize) -> Option<PathBuf> {
        let real = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let own = fs::canonicalize(self.own).is_ok_and(|own| own == real);
        if own || self.seen.len() >= FILES || !self.seen.insert(real) {
            return None;
        }
        for directive in text.split(|b| *b == b'\n').filter_map(syntax::directive) {
            match directive.keyword.as_slice() {
                b"host" if directive.arguments.iter().any(|a| a == self.name.as_bytes()) => {
                    return Some(file.to_owned());
                }
                b"include" if depth > 0 => {
                    let home = self.home;
                    let patterns = directive.arguments.iter().filter_map(|a| absolute(a, home));
                    for found in patterns.flat_map(|pattern| syntax::expand(&pattern)) {
                        let text = files::read(&found).ok();
                        if let Some(hit) = text.and_then(|text| self.look_in(&found, &text, depth - 1)) {
                            return Some(hit);
                        }
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// Returns an `Include` argument as an absolute pattern: `~/` is `home`, a relative name is below `home/.ssh`. None for
/// `~user` and where the home is needed and not known.
pub(super) fn absolute(argument: &[u8], home: Option<&Path>) -> Option<Vec<u8>> {
    let below =
        |rest: &[u8], folder: &str| Some([home?.as_os_str().as_bytes(), folder.as_bytes(), rest].concat());
    match argument {
        [b'/', ..] => Some(argument.to_vec()),
        [b'~', b'/', rest @ ..] => below(rest, "/"),
        [b'~', ..] | [] => None,
        rest => below(rest, "/.ssh/"),
    }
}

/// Returns all `*.conf` in our folder, sorted; none if there is no folder.
pub(super) fn conf_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(files::at(dir, &error)),
    };
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.retain(|path| syntax::fits(b"*.conf", path.file_name().unwrap_or_default().as_bytes()));
    all.sort();
    Ok(all)
}
