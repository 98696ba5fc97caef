//! A world for one test: a sandbox, a HOME, and the binary run in a cleared environment.

pub mod clouds;
pub mod machines;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use gpuprov::sandbox::{Options, Sandbox};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// No command of a test may take longer.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Replaces every cloud's own pace, so that tests take seconds.
const CONFIG: &str = "[wait]\npoll = \"100ms\"\ngrace = \"1s\"\n";

/// A sandbox and a HOME. Both are gone when it is dropped.
pub struct World {
    pub sandbox: Sandbox,
    home: TempDir,
    /// Holds what must not be found below HOME.
    aside: TempDir,
    variables: Vec<(OsString, OsString)>,
}

/// What a command left.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl World {
    /// A sandbox with quick boots and no rate limits.
    pub async fn new() -> World {
        World::with(|_| {}).await
    }

    /// The same, with other options.
    pub async fn with(change: impl FnOnce(&mut Options)) -> World {
        let home = tempfile::Builder::new().prefix("h").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let scratch = home.path().join("machines");
        std::fs::create_dir(&scratch).unwrap();
        let mut options = Options::for_tests(scratch);
        change(&mut options);
        let sandbox = Sandbox::start(options).await.unwrap();
        let aside = tempfile::Builder::new().prefix("a").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut world = World { sandbox, home, aside, variables: Vec::new() };
        world.write(".config/gpuprov/config.toml", CONFIG);
        world.set("GPUPROV_RUNPOD_ENDPOINT", world.sandbox.runpod_endpoint());
        world.set("RUNPOD_API_KEY", world.sandbox.runpod_key().to_owned());
        world
    }

    /// Sets a variable for every command from now on.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.unset(name);
        self.variables.push((name.into(), value.into()));
    }

    /// Unsets a variable for every command from now on.
    pub fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
    }

    /// The HOME of every command.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.home().join(".local/state/gpuprov")
    }

    /// Writes a file below HOME.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Adds tables to the config file.
    pub fn config(&self, more: &str) {
        self.write(".config/gpuprov/config.toml", &format!("{CONFIG}{more}"));
    }

    /// Any program in the environment of the tests.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .envs(self.variables.iter().cloned())
            .current_dir(self.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// The binary with these words.
    pub fn gpuprov<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_gpuprov"));
        command.args(words);
        command
    }

    /// Runs the binary with words that are split at blanks.
    pub async fn run(&self, words: &str) -> Ran {
        finish(self.gpuprov(words.split_whitespace())).await
    }

    /// Runs the binary and takes what it prints for one JSON document.
    pub async fn json(&self, words: &str) -> (i32, Value) {
        let ran = self.run(&format!("{words} --json")).await;
        let document = serde_json::from_str(&ran.stdout);
        (ran.code, document.unwrap_or_else(|error| panic!("{error}: {ran:?}")))
    }

    /// Runs the binary with exactly these words.
    pub async fn args<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Ran {
        finish(self.gpuprov(words)).await
    }

    /// Runs the binary with exactly these words and `--json`.
    pub async fn json_args(&self, words: &[&str]) -> (i32, Value) {
        let ran = self.args(words.iter().chain(&["--json"])).await;
        let document = serde_json::from_str(&ran.stdout);
        (ran.code, document.unwrap_or_else(|error| panic!("{error}: {ran:?}")))
    }

    /// How many requests the cloud got so far.
    pub fn requests(&self) -> usize {
        self.sandbox.requests().len()
    }

    /// Starts the binary and leaves it running.
    pub fn start(&self, words: &str) -> Child {
        self.gpuprov(words.split_whitespace()).spawn().unwrap()
    }

    /// Provisions an RTX 4090 called `name`, which must work.
    pub async fn provision(&self, name: &str) -> Ran {
        let ran = self.run(&format!("provision --gpus RTX4090:1 --name {name}")).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    }

    /// How many creates reached the cloud.
    pub fn creates(&self) -> usize {
        self.sandbox.requests().iter().filter(|request| request.operation == "create_pod").count()
    }

    /// Fails if the cloud holds anything of ours, lost the foreign machine, or saw a request it would reject as malformed.
    pub fn assert_empty(&self) {
        let alive = self.sandbox.alive();
        assert!(alive.is_empty(), "still alive: {alive:#?}");
        let left = self.sandbox.verda().left();
        assert!(left.is_empty(), "left at Verda: {left:#?}");
        self.assert_clean();
    }

    /// Fails if the foreign machine is gone, or a request was one that the real API would reject as malformed.
    pub fn assert_clean(&self) {
        let ledger = self.sandbox.ledger();
        for stranger in self.sandbox.strangers() {
            assert!(ledger.iter().any(|entry| entry.id == stranger && entry.alive), "{stranger} is gone");
        }
        let harmed = self.sandbox.verda().harmed();
        assert!(harmed.is_empty(), "somebody else's at Verda: {harmed:#?}");
        let rejected = self.sandbox.rejected();
        assert!(rejected.is_empty(), "malformed requests: {rejected:#?}");
    }

    /// Takes what differs from run to run out of a text, for snapshots.
    pub fn plain(&self, text: &str) -> String {
        let home = self.home().display().to_string();
        let text = text.replace(&home, "[HOME]").replace(&self.sandbox.runpod_endpoint(), "[ENDPOINT]");
        text.replace(self.sandbox.runpod_key(), "[KEY]")
    }
}

/// Runs a command to its end.
pub async fn finish(command: Command) -> Ran {
    finish_with(command, b"").await
}

/// Runs a command to its end with `input` on its stdin.
pub async fn finish_with(mut command: Command, input: &[u8]) -> Ran {
    if !input.is_empty() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().unwrap();
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input to the end is free to.
        let _ = stdin.write_all(input).await;
    }
    ended(child).await
}

/// Waits for the end of a command.
pub async fn ended(child: Child) -> Ran {
    use std::os::unix::process::ExitStatusExt;
    let output =
        tokio::time::timeout(LIMIT, child.wait_with_output()).await.expect("a command did not end").unwrap();
    let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default());
    Ran {
        code,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Waits until `ready` says so; fails after ten seconds.
pub async fn until(what: &str, ready: impl Fn() -> bool) {
    for _ in 0..500 {
        if ready() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}
