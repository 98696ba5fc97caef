//! The key pair that logs in.
//!
//! Everything is checked before anything costs: the public key is one line of a kind that clouds take, the private half
//! belongs to it, and no login will ask a question. Nobody is there to answer one: gpuprov logs in by itself.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

pub use super::public_key::PublicKeyError;

use super::files::{self, Mode};
use super::process::{self, Ended};
use super::public_key;
use super::quote::{self, UnwritablePath};

/// How long one call of a program may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The programs that keys need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// `ssh-keygen`.
    pub ssh_keygen: PathBuf,
    /// `ssh-add`; without it no agent is asked.
    pub ssh_add: Option<PathBuf>,
}

/// A key that can be used without a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPair {
    /// What goes into `IdentityFile`: the private key, or a `.pub` whose private half an agent holds.
    pub identity_file: PathBuf,
    /// The public key, `TYPE BASE64 [comment]`.
    pub public_line: String,
    /// Whether it was made just now.
    pub made: bool,
    /// Whether logins need the agent.
    pub by_agent: bool,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file is missing.
    #[error("the ssh key `{}` does not exist", .0.display())]
    Missing(PathBuf),
    /// A relative path; the caller makes paths absolute.
    #[error("the path of the ssh key `{}` is not absolute", .0.display())]
    Relative(PathBuf),
    /// The path cannot be written into an ssh configuration.
    #[error(transparent)]
    Unwritable(#[from] UnwritablePath),
    /// The public key is no good.
    #[error("the public key `{}` cannot be used: {why}", path.display())]
    Public {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: PublicKeyError,
    },
    /// Others can read the private key, so ssh refuses it.
    #[error("others can read the private key `{path}`, so ssh refuses it; run `chmod 600 {path}`", path = .0.display())]
    Permissions(PathBuf),
    /// It has a passphrase and no agent holds it.
    #[error("the private key `{path}` has a passphrase and no agent holds it; run `ssh-add {path}`, or choose another key", path = .0.display())]
    Passphrase(PathBuf),
    /// It has a passphrase, so its public half cannot be told.
    #[error("the private key `{path}` has a passphrase and no .pub beside it; run `ssh-keygen -y -f {path} > {path}.pub`", path = .0.display())]
    NoPublic(PathBuf),
    /// A public key alone, and no agent holds the private half.
    #[error("`{}` is a public key alone, and no agent holds its private half; run `ssh-add` with the private key, or name that", .0.display())]
    NotInAgent(PathBuf),
    /// The two files are of different keys.
    #[error("`{private}` and `{private}.pub` are not of one key; run `ssh-keygen -y -f {private} > {private}.pub`", private = .0.display())]
    Mismatch(PathBuf),
    /// ssh-keygen cannot read it.
    #[error("the private key `{}` cannot be read: {words}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The words of ssh-keygen.
        words: String,
    },
    /// A program failed.
    #[error("`{program}` failed: {words}")]
    Program {
        /// Its path.
        program: PathBuf,
        /// What went wrong.
        words: String,
    },
    /// A file could not be read or written; the path is in the words.
    #[error("the ssh key could not be read or written")]
    Io(#[from] io::Error),
}

/// Returns the key pair to log in with, or says what to do.
///
/// `configured` is absolute: a private key, or a `.pub` (whose private half is the file beside it, else an agent's). Without
/// it, the pair `dir/id_ed25519` is used, made at the first call. `agent_socket` is where the agent is
/// ([`super::exec::agent_socket`]). Nothing but our own pair is ever written.
pub async fn resolve(
    configured: Option<&Path>,
    dir: &Path,
    programs: &Programs,
    agent_socket: Option<&str>,
) -> Result<KeyPair, KeyError> {
    let agent = Agent { programs, socket: agent_socket };
    let Some(path) = configured else {
        return own(dir, programs, &agent).await;
    };
    if !path.is_absolute() {
        return Err(KeyError::Relative(path.to_owned()));
    }
    quote::identity(path)?;
    if path.extension().is_none_or(|extension| extension != "pub") {
        return private(path, programs, &agent).await;
    }
    let beside = path.with_extension("");
    if beside.is_file() {
        return private(&beside, programs, &agent).await;
    }
    let public_line = read_public(path)?.ok_or_else(|| KeyError::Missing(path.to_owned()))?;
    if !agent.holds(&public_line).await {
        return Err(KeyError::NotInAgent(path.to_owned()));
    }
    Ok(KeyPair { identity_file: path.to_owned(), public_line, made: false, by_agent: true })
}

/// Checks a private key and finds its public line.
async fn private(path: &Path, programs: &Programs, agent: &Agent<'_>) -> Result<KeyPair, KeyError> {
    let meta = match fs::metadata(path) {
        Ok(meta) if meta.is_file() => Some(meta),
        Ok(_) => return Err(unreadable(path, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(files::at(path, &error).into()),
    };
    let public_file = with_pub(path);
    let public = read_public(&public_file)?;
    let pair = |public_line, by_agent| KeyPair {
        identity_file: path.to_owned(),
        public_line,
        made: false,
        by_agent,
    };
    let Some(meta) = meta else {
        // ssh finds the `.pub` by the private key's name as well.
        return match public {
            Some(line) if agent.holds(&line).await => Ok(pair(line, true)),
            _ => Err(KeyError::Missing(path.to_owned())),
        };
    };
    // ssh looks at the permissions of its own user's files only.
    if meta.mode() & 0o077 != 0 && meta.uid() == nix::unistd::getuid().as_raw() {
        return Err(KeyError::Permissions(path.to_owned()));
    }
    let derived = match derive(path, programs).await? {
        Derived::Line(line) => line,
        Derived::Passphrase => {
            let line = public.ok_or_else(|| KeyError::NoPublic(path.to_owned()))?;
            return if agent.holds(&line).await {
                Ok(pair(line, true))
            } else {
                Err(KeyError::Passphrase(path.to_owned()))
            };
        }
    };
    match public {
        Some(line) if public_key::same(&line, &derived) => Ok(pair(line, false)),
        // ssh offers what the .pub says and would fail with it.
        Some(_) => Err(KeyError::Mismatch(path.to_owned())),
        None => Ok(pair(derived, false)),
    }
}

/// Returns our own pair, made if it is not there. Several processes at once get the same one: it is made under the lock of
/// the folder, and its private half appears last and whole.
async fn own(dir: &Path, programs: &Programs, agent: &Agent<'_>) -> Result<KeyPair, KeyError> {
    let path = dir.join("id_ed25519");
    quote::identity(&path)?;
    let mut made = false;
    if !path.exists() {
        let (folder, lock) = (dir.to_owned(), files::lock(dir)?);
        if !path.exists() {
            make(&folder, &path, programs).await?;
            made = true;
        }
        drop(lock);
    }
    let pair = private(&path, programs, agent).await?;
    if !with_pub(&path).exists() {
        files::write(&with_pub(&path), format!("{}\n", pair.public_line).as_bytes(), Mode::Private)?;
    }
    Ok(KeyPair { made, ..pair })
}

async fn make(dir: &Path, path: &Path, programs: &Programs) -> Result<(), KeyError> {
    let temporary =
        tempfile::Builder::new().prefix(".gpuprov-").tempdir_in(dir).map_err(|e| files::at(dir, &e))?;
    let key = temporary.path().join("key");
    let mut command = Command::new(&programs.ssh_keygen);
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "gpuprov", "-f"]).arg(&key);
    let output = keygen(&mut command, programs).await?;
    if output.code != Some(0) {
        return Err(failed(&programs.ssh_keygen, &output.stderr));
    }
    for (from, to) in [(with_pub(&key), with_pub(path)), (key, path.to_owned())] {
        files::give_to_owner_of(dir, &from);
        fs::File::open(&from).and_then(|file| file.sync_all()).map_err(|error| files::at(&from, &error))?;
        fs::rename(&from, &to).map_err(|error| files::at(&to, &error))?;
    }
    Ok(())
}

enum Derived {
    Line(String),
    Passphrase,
}

/// Asks ssh-keygen for the public half with an empty passphrase.
async fn derive(path: &Path, programs: &Programs) -> Result<Derived, KeyError> {
    let mut command = Command::new(&programs.ssh_keygen);
    command.args(["-y", "-P", "", "-f"]).arg(path);
    let output = keygen(&mut command, programs).await?;
    if output.code == Some(0) {
        let line = public_key::line(&output.stdout);
        return line.map(Derived::Line).map_err(|why| KeyError::Public { path: path.to_owned(), why });
    }
    let words = String::from_utf8_lossy(&output.stderr);
    if words.contains("incorrect passphrase") {
        return Ok(Derived::Passphrase);
    }
    let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("ssh-keygen says nothing");
    Err(unreadable(path, last.rsplit("\": ").next().unwrap_or(last)))
}

async fn keygen(command: &mut Command, programs: &Programs) -> Result<process::Output, KeyError> {
    // No window that asks for a passphrase or a PIN.
    command.env("SSH_ASKPASS_REQUIRE", "never").env_remove("SSH_ASKPASS").env_remove("DISPLAY");
    match process::run(command, &[], LIMIT).await {
        Ended::Done(output) => Ok(output),
        Ended::TooLong => Err(failed(&programs.ssh_keygen, b"it did not end in time")),
        Ended::NotStarted(error) => Err(failed(&programs.ssh_keygen, error.to_string().as_bytes())),
    }
}

/// The agent, asked once at most for each key.
struct Agent<'a> {
    programs: &'a Programs,
    socket: Option<&'a str>,
}

impl Agent<'_> {
    /// Whether the agent holds the private half. An agent that is locked, gone or silent holds nothing.
    async fn holds(&self, public_line: &str) -> bool {
        let (Some(program), Some(socket)) = (&self.programs.ssh_add, self.socket) else { return false };
        let mut command = Command::new(program);
        command.arg("-L").env("SSH_AUTH_SOCK", socket);
        match process::run(&mut command, &[], LIMIT).await {
            Ended::Done(output) => String::from_utf8_lossy(&output.stdout)
                .lines()
                .any(|line| public_key::same(line, public_line)),
            Ended::TooLong | Ended::NotStarted(_) => false,
        }
    }
}

/// Reads a public key; none if there is no file.
fn read_public(path: &Path) -> Result<Option<String>, KeyError> {
    let Some(text) = files::read_if_any(path)? else { return Ok(None) };
    public_key::line(&text).map(Some).map_err(|why| KeyError::Public { path: path.to_owned(), why })
}

fn with_pub(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    PathBuf::from(name)
}

fn unreadable(path: &Path, words: &str) -> KeyError {
    KeyError::Unreadable { path: path.to_owned(), words: crate::model::words::one_line(words, 200) }
}

fn failed(program: &Path, stderr: &[u8]) -> KeyError {
    let words = crate::model::words::one_line(&String::from_utf8_lossy(stderr), 200);
    KeyError::Program { program: program.to_owned(), words }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
