//! SSH: files that make `ssh NAME` work, keys, the probe, and running commands through the system's client.
//!
//! `program` finds the programs, `keys` the key pair, [`SshFiles`] writes the configuration, `probe` looks whether a server
//! answers yet, `exec` logs in. Nothing here reads the environment, the current directory or the terminal, and nothing prints.
//!
//! # Files
//!
//! ```text
//! ~/.ssh/config                                   the user's; gets one Include line, first
//! ~/.ssh/gpuprov/INSTALLATION.conf                one Host block per machine, found by that line
//! ~/.ssh/gpuprov/INSTALLATION/config              for `ssh -F`: ours, then the user's, then the system's
//! ~/.ssh/gpuprov/INSTALLATION/NAME.known_hosts    one per machine
//! ~/.ssh/gpuprov/id_ed25519, id_ed25519.pub       our own key pair, if none is configured
//! ~/.ssh/gpuprov/.lock                            held while one of these is written
//! ```
//!
//! # Limits
//!
//! OpenSSH 7.6 or later is needed (`StrictHostKeyChecking accept-new`; `Include` came in 7.3): older versions stop at our
//! block with "unsupported option". Paths with a double quote, a backslash, a control character, `${`, or (our own folder) a
//! percent sign cannot be written for all versions and are refused (`quote`). In the file for `-F`, an `Include` of the
//! system's configuration that is not absolute is looked for in `~/.ssh` (Debian's and Fedora's are absolute).

mod config_file;
pub mod examine;
pub mod exec;
mod files;
pub mod keys;
pub mod known_hosts;
mod login_error;
pub mod probe;
mod process;
pub mod program;
mod public_key;
mod quote;
mod syntax;
mod taken;
pub mod tunnel;

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use config_file::Block;
pub use quote::UnwritablePath;

use crate::model::machine::MachineName;
use crate::model::mark::Installation;
use files::Mode;

/// The system's client configuration.
const SYSTEM_CONFIG: &str = "/etc/ssh/ssh_config";

/// The ssh files of one installation.
#[derive(Clone, Debug)]
pub struct SshFiles {
    dir: PathBuf,
    installation: Installation,
    user_config: Option<PathBuf>,
    passwd_home: Option<PathBuf>,
}

/// What became of the line in the user's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Include {
    /// It is there.
    Present,
    /// It was added as the first line. Undone by deleting the line.
    Added {
        /// The user's file.
        path: PathBuf,
        /// The line.
        line: String,
    },
}

/// Why the user's configuration was left as it is. Plain `ssh NAME` does not work then; `gpuprov ssh NAME` does.
#[derive(Debug, thiserror::Error)]
pub enum IncludeError {
    /// No home is known.
    #[error("no home directory is known, so there is no ssh configuration to add a line to")]
    NoHome,
    /// The path of our folder cannot be written.
    #[error(transparent)]
    Unwritable(#[from] UnwritablePath),
    /// It starts with a byte order mark, which ssh takes for part of the first word.
    #[error("`{}` starts with a byte order mark, which ssh does not read; save it without one", .0.display())]
    ByteOrderMark(PathBuf),
    /// It could not be read or written; the path is in the words.
    #[error("the ssh configuration could not be changed")]
    Io(#[from] io::Error),
}

impl SshFiles {
    /// Returns the files in `dir` (`~/.ssh/gpuprov`, absolute) for `installation`. `user_config` is `$HOME/.ssh/config`, and
    /// `passwd_home` the home that the password database has for the user, which is the one ssh goes by.
    pub fn new(
        dir: PathBuf,
        installation: Installation,
        user_config: Option<PathBuf>,
        passwd_home: Option<PathBuf>,
    ) -> Self {
        SshFiles { dir, installation, user_config, passwd_home }
    }

    /// Makes sure, before anything costs, that blocks can be written: the paths can be named, the folder takes files.
    pub fn check(&self) -> io::Result<()> {
        quote::include(&self.dir, "*.conf")?;
        files::make_folder(&self.folder())?;
        let _lock = files::lock(&self.dir)?;
        tempfile::tempfile_in(self.folder()).map_err(|error| files::at(&self.folder(), &error))?;
        Ok(())
    }

    /// Returns the folder with our own key pair, `~/.ssh/gpuprov`.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the file of blocks.
    pub fn conf_file(&self) -> PathBuf {
        self.dir.join(format!("{}.conf", self.installation))
    }

    /// Returns the file for `ssh -F`. It exists once a block was written.
    pub fn config_file(&self) -> PathBuf {
        self.folder().join("config")
    }

    /// Returns the machine's known_hosts file, which need not exist.
    pub fn known_hosts(&self, name: &MachineName) -> PathBuf {
        self.folder().join(format!("{name}.known_hosts"))
    }

    fn folder(&self) -> PathBuf {
        self.dir.join(self.installation.as_str())
    }

    /// Returns the names of all machines with a block.
    pub fn blocks(&self) -> io::Result<Vec<MachineName>> {
        Ok(self.read_blocks()?.into_iter().map(|(name, _)| name).collect())
    }

    fn read_blocks(&self) -> io::Result<Vec<(MachineName, Vec<u8>)>> {
        Ok(config_file::blocks(&files::read_if_any(&self.conf_file())?.unwrap_or_default()))
    }

    /// Writes or replaces the machine's block, and the file for `-F`. Returns whether the block changed.
    pub fn write_block(&self, block: &Block) -> io::Result<bool> {
        if !known_hosts::is_alias(&block.host_key_alias) {
            let error = known_hosts::KnownHostsError::Alias(block.host_key_alias.clone());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let text = block.text(&self.known_hosts(&block.name))?;
        // What is written already needs no folder that can be written to.
        if self.is_written(block, &text).unwrap_or(false) {
            return Ok(false);
        }
        files::make_folder(&self.folder())?;
        let _lock = files::lock(&self.dir)?;
        self.write_config()?;
        let mut blocks = self.read_blocks()?;
        let mut same = blocks.iter_mut().filter(|(name, _)| *name == block.name);
        match same.next() {
            Some((_, old)) if *old == text => return Ok(false),
            Some((_, old)) => *old = text,
            None => blocks.push((block.name.clone(), text)),
        }
        self.write_blocks(&blocks)?;
        Ok(true)
    }

    fn is_written(&self, block: &Block, text: &[u8]) -> io::Result<bool> {
        let config = files::read_if_any(&self.config_file())?;
        let is_there = self.read_blocks()?.iter().any(|(name, old)| *name == block.name && old == text);
        Ok(is_there && config == Some(self.config_text()?))
    }

    /// Removes the machine's block and known_hosts file; with the last one, the installation's own files too.
    pub fn remove(&self, name: &MachineName) -> io::Result<()> {
        if !self.dir.is_dir() {
            return Ok(());
        }
        let _lock = files::lock(&self.dir)?;
        files::remove(&self.known_hosts(name))?;
        // ssh keeps a copy when it replaces a key by hand (`ssh-keygen -R`).
        files::remove(&self.folder().join(format!("{name}.known_hosts.old")))?;
        let mut blocks = self.read_blocks()?;
        let before = blocks.len();
        blocks.retain(|(other, _)| other != name);
        if blocks.len() != before || blocks.is_empty() {
            self.write_blocks(&blocks)?;
        }
        Ok(())
    }

    fn write_blocks(&self, blocks: &[(MachineName, Vec<u8>)]) -> io::Result<()> {
        match config_file::join(blocks) {
            Some(text) => files::write(&self.conf_file(), &text, Mode::Private),
            None => {
                files::remove(&self.conf_file())?;
                files::remove(&self.config_file())?;
                // Something else in it is no failure.
                let _ = fs::remove_dir(self.folder());
                Ok(())
            }
        }
    }

    /// Writes the file for `-F` if it is not as it should be.
    fn write_config(&self) -> io::Result<()> {
        let text = self.config_text()?;
        let path = self.config_file();
        if files::read_if_any(&path)?.as_deref() == Some(text.as_slice()) {
            return Ok(());
        }
        files::write(&path, &text, Mode::Private)
    }

    /// Writes the file for `ssh -F` as it will be to a passing place, to try it before anything costs.
    pub fn draft(&self) -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new().prefix(".draft-").tempfile_in(self.folder())?;
        file.write_all(&self.config_text()?)?;
        Ok(file)
    }

    fn config_text(&self) -> io::Result<Vec<u8>> {
        let mut text = b"# Written by gpuprov for `gpuprov ssh`.\nInclude ".to_vec();
        text.extend(quote::include_file(&self.conf_file())?);
        text.push(b'\n');
        let user = self.user_config.as_deref().filter(|file| self.refusal(file).is_none());
        for file in
            user.into_iter().chain(Some(Path::new(SYSTEM_CONFIG)).filter(|f| self.refusal(f).is_none()))
        {
            // A path that cannot be named is the user's and no reason to fail: the block itself works without it.
            if let Ok(quoted) = quote::include_file(file) {
                text.extend_from_slice(b"Include ");
                text.extend(quoted);
                text.push(b'\n');
            }
        }
        Ok(text)
    }

    /// Returns why ssh would stop at an included file, as far as that is certain. A missing file is fine. Group-writable
    /// files are left to ssh: Debian's takes those of the user's own group.
    fn refusal(&self, file: &Path) -> Option<String> {
        let shown = file.display();
        let meta = match fs::metadata(file) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(format!("{shown}: {error}")),
        };
        if meta.uid() != 0 && meta.uid() != nix::unistd::getuid().as_raw() {
            return Some(format!("{shown} belongs to another user, so ssh refuses it"));
        }
        if meta.mode() & 0o002 != 0 {
            return Some(format!(
                "{shown} can be written by everybody, so ssh refuses it; run `chmod go-w {shown}`"
            ));
        }
        // Only regular files are opened: a FIFO would hang us.
        let error = if meta.is_file() { fs::File::open(file).err() } else { None };
        error.map(|error| format!("{shown}: {error}"))
    }

    /// Writes the machine's known_hosts file: `keys`, each `TYPE BASE64`, under `alias`, and nothing else.
    pub fn set_known_hosts(&self, name: &MachineName, alias: &str, keys: &[String]) -> io::Result<()> {
        let text = known_hosts::lines(alias, keys)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        files::make_folder(&self.folder())?;
        let _lock = files::lock(&self.dir)?;
        files::write(&self.known_hosts(name), text.as_bytes(), Mode::Private)
    }

    /// Forgets the machine's host key. Only for a machine that was made anew: a change in its life must alarm.
    pub fn clear_known_hosts(&self, name: &MachineName) -> io::Result<()> {
        files::remove(&self.known_hosts(name))
    }

    /// Makes our `Include` the first directive of the user's configuration, which is made if missing (0600, `~/.ssh` 0700).
    /// Mode, owner, symbolic link, line ends and all other bytes stay.
    pub fn ensure_include(&self) -> Result<Include, IncludeError> {
        let path = self.user_config.as_deref().ok_or(IncludeError::NoHome)?;
        let line = [b"Include ".to_vec(), quote::include(&self.dir, "*.conf")?].concat();
        let _lock = files::lock(&self.dir)?;
        let old = files::read_if_any(path)?;
        let text = old.as_deref().unwrap_or_default();
        if text.starts_with("\u{feff}".as_bytes()) {
            return Err(IncludeError::ByteOrderMark(path.to_owned()));
        }
        let conf = self.conf_file();
        let ours = |argument: &[u8]| {
            taken::absolute(argument, self.tilde()).is_some_and(|pattern| syntax::path_fits(&pattern, &conf))
        };
        let Some(new) = config_file::with_include(text, &line, ours) else {
            return Ok(Include::Present);
        };
        if old.is_some() {
            // Read-only means hands off, even where the folder would let us replace the file.
            fs::OpenOptions::new().write(true).open(path).map_err(|error| files::at(path, &error))?;
        } else if let Some(folder) = path.parent() {
            files::make_folder(folder)?;
        }
        files::write(path, &new, Mode::Kept)?;
        Ok(Include::Added { path: path.to_owned(), line: String::from_utf8_lossy(&line).into_owned() })
    }

    /// Returns the file that has a `Host` line naming exactly `name`: the user's own configuration, what it includes, or
    /// another installation's file. Our own file does not count. ssh would take parts of both blocks, or the other one's.
    pub fn taken_by(&self, name: &MachineName) -> io::Result<Option<PathBuf>> {
        let own = self.conf_file();
        let mut search =
            taken::Search { name: name.as_str(), home: self.tilde(), own: &own, seen: HashSet::new() };
        if let Some(config) = &self.user_config
            && let Some(file) = search.look(config)?
        {
            return Ok(Some(file));
        }
        for file in taken::conf_files(&self.dir)? {
            if let Some(file) = search.look(&file)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Returns what ssh takes `~` for; `$HOME` where the password database has nothing.
    fn tilde(&self) -> Option<&Path> {
        self.passwd_home.as_deref().or_else(|| self.home())
    }

    fn home(&self) -> Option<&Path> {
        self.user_config.as_deref()?.parent()?.parent()
    }

    /// Returns why plain `ssh NAME` will not see our blocks although the line is in place, and what to type instead: the
    /// password database has another home than `$HOME`, or ssh refuses the user's configuration.
    pub fn plain_ssh_note(&self) -> Option<String> {
        let (Some(config), Some(home), Some(passwd)) = (&self.user_config, self.home(), &self.passwd_home)
        else {
            return None;
        };
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if real(home) != real(passwd) {
            return Some(format!(
                "HOME is {}, but ssh goes by the password database, which says {}: use `gpuprov ssh NAME`, or `ssh -F '{}' NAME`",
                home.display(),
                passwd.display(),
                self.config_file().display()
            ));
        }
        self.refusal(config)
    }
}

#[cfg(test)]
mod tests;
