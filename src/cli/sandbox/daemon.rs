//! The sandbox in the background, one for each cache directory.
//!
//! ```text
//! <cache>/sandbox/daemon.lock    held by whoever starts, stops or joins it, for a moment
//! <cache>/sandbox/daemon.alive   held by the daemon as long as it lives
//! <cache>/sandbox/daemon.json    where it answers; believed only while its place is held too
//! <cache>/sandbox/daemon.log     what the last one had to say
//! <place>/use                    held (shared) by every command that works with it
//! <place>/stop                   asks it to end
//! ```
//!
//! Locks are the kernel's and go with their process; no process id is ever trusted. A command joins under `daemon.lock`, and
//! the daemon takes that lock too before it ends for being idle, so that no command is left with a daemon that has just gone.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::place::{self, Place, lock_file};
use crate::cli::failure::refused;
use crate::provision::failure::Failure;
use crate::state::atomic;
use crate::state::env::{self, Env};
use crate::state::paths::Paths;

/// How long it may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often locks and notes are looked at.
const LOOK: Duration = Duration::from_millis(25);

/// Where a daemon answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Running {
    /// Its place.
    pub(super) root: PathBuf,
    /// The variables that lead gpuprov there.
    pub(super) variables: BTreeMap<String, String>,
    /// The control path.
    pub(super) control: String,
    /// Since when.
    pub(super) since: Timestamp,
}

/// A command's hold on a daemon: while it lives the daemon does not take itself for idle.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "held, never read")] File);

/// The files of the daemon.
#[derive(Debug)]
struct Files {
    folder: PathBuf,
}

impl Files {
    fn open(paths: &Paths) -> io::Result<Self> {
        Ok(Files { folder: place::folder(paths)? })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Takes the lock of starting, stopping and joining.
    fn lock(&self) -> io::Result<File> {
        let lock = lock_file(&self.path("daemon.lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Whether a daemon lives, ready or not.
    fn is_alive(&self) -> bool {
        File::open(self.path("daemon.alive"))
            .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Returns where the daemon answers; none while there is none, or it is not ready.
    fn running(&self) -> Option<Running> {
        let text = std::fs::read(self.path("daemon.json")).ok()?;
        let running: Running = serde_json::from_slice(&text).ok()?;
        (self.is_alive() && place::is_alive(&running.root)).then_some(running)
    }

    /// Waits until the daemon that lives is ready; none if it ends before.
    fn ready(&self) -> Option<Running> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(running) = self.running() {
                return Some(running);
            }
            if !self.is_alive() {
                return None;
            }
            std::thread::sleep(LOOK);
        }
        None
    }
}

/// Joins the daemon, started if none runs. Returns whether it was.
pub(super) fn join(paths: &Paths, env: &Env) -> Result<(Running, Hold, bool), Failure> {
    let failed = |error: io::Error| refused(format!("the sandbox could not be started: {error}"));
    let files = Files::open(paths).map_err(failed)?;
    let _lock = files.lock().map_err(failed)?;
    let (running, started) = match files.ready() {
        Some(running) => (running, false),
        None => (start(&files, paths, env).map_err(failed)?, true),
    };
    let hold = hold(&running.root).map_err(failed)?;
    Ok((running, hold, started))
}

/// Returns the daemon if one runs; starts none and does not keep it from ending.
pub(super) fn look(paths: &Paths) -> Option<Running> {
    Files { folder: paths.cache.join("sandbox") }.running()
}

fn hold(root: &Path) -> io::Result<Hold> {
    let file = lock_file(&root.join("use"))?;
    file.lock_shared()?;
    file.set_modified(SystemTime::now())?;
    Ok(Hold(file))
}

fn start(files: &Files, paths: &Paths, env: &Env) -> io::Result<Running> {
    let log = files.path("daemon.log");
    let stderr = atomic_log(&log)?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["sandbox", "daemon"])
        // It is nobody's child that should know secrets: only what its own places need.
        .env_clear()
        .env(env::GPUPROV_CACHE_DIR.name, &paths.cache)
        .env(env::GPUPROV_CONFIG.name, "/dev/null")
        .env(env::GPUPROV_STATE_DIR.name, files.path("none"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    for variable in [&env::HOME, &env::PATH] {
        if let Some(value) = env.path(variable) {
            command.env(variable.name, value);
        }
    }
    let mut child = command.spawn()?;
    wait_for(files, &mut child).ok_or_else(|| {
        let _ = child.kill();
        let _ = child.wait();
        let words = tail(&log);
        io::Error::other(if words.is_empty() { "it did not get ready".to_owned() } else { words })
    })
}

fn wait_for(files: &Files, child: &mut Child) -> Option<Running> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(running) = files.running() {
            return Some(running);
        }
        if !matches!(child.try_wait(), Ok(None)) {
            // Somebody's else may have come first.
            return files.ready();
        }
        std::thread::sleep(LOOK);
    }
    None
}

fn atomic_log(path: &Path) -> io::Result<File> {
    let file = lock_file(path)?;
    file.set_len(0)?;
    Ok(file)
}

fn tail(log: &Path) -> String {
    let mut text = String::new();
    let read = File::open(log).and_then(|mut file| {
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(2000)))?;
        file.read_to_string(&mut text)
    });
    if read.is_ok() { text.trim().to_owned() } else { String::new() }
}

/// Ends the daemon and waits until it is gone. Returns what ran; none if nothing did.
pub(super) fn stop(paths: &Paths) -> Result<Option<Running>, Failure> {
    let failed = |error: io::Error| refused(format!("the sandbox could not be stopped: {error}"));
    let files = Files::open(paths).map_err(failed)?;
    let _lock = files.lock().map_err(failed)?;
    let running = files.ready();
    if let Some(running) = &running {
        File::create(running.root.join("stop")).map_err(failed)?;
    }
    let until = Instant::now() + PATIENCE;
    while files.is_alive() {
        if Instant::now() >= until {
            return Err(refused("the sandbox in the background does not end"));
        }
        std::thread::sleep(LOOK);
    }
    place::sweep(paths, &files.folder).map_err(failed)?;
    let _ = std::fs::remove_file(files.path("daemon.json"));
    Ok(running)
}

/// Makes this process one of its own: a session without a terminal, no file of the caller's, no working directory. Called
/// before anything is opened.
pub(super) fn detach() {
    // A process that leads a group already stays in its session.
    let _ = nix::unistd::setsid();
    let _ = std::env::set_current_dir("/");
    let open: Vec<i32> = std::fs::read_dir("/dev/fd")
        .map(|entries| {
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        })
        .unwrap_or_default();
    for number in open.into_iter().filter(|number| *number > 2) {
        let _ = nix::unistd::close(number);
    }
}

/// Serves until it is stopped, or nothing was asked for `idle`.
pub(super) async fn serve(paths: &Paths, idle: Duration) -> Result<(), Failure> {
    let failed = |error: io::Error| refused(format!("the sandbox could not be started: {error}"));
    let files = Files::open(paths).map_err(failed)?;
    let alive = lock_file(&files.path("daemon.alive")).map_err(failed)?;
    let until = Instant::now() + Duration::from_secs(1);
    // A look at the lock may stand in the way for a moment.
    while alive.try_lock().is_err() {
        if Instant::now() >= until {
            return Err(refused("another sandbox runs in the background already"));
        }
        tokio::time::sleep(LOOK).await;
    }
    let json = files.path("daemon.json");
    let _ = std::fs::remove_file(&json);
    let place = Place::make(paths, &files.folder).map_err(failed)?;
    let emulator = place.start().await.map_err(failed)?;
    let variables = place.variables(&emulator).into_iter().map(|(name, value)| (name.to_owned(), value));
    let running = Running {
        root: place.root.clone(),
        variables: variables.collect(),
        control: emulator.control_endpoint(),
        since: Timestamp::now(),
    };
    let use_file = place.root.join("use");
    drop(lock_file(&use_file).map_err(failed)?);
    let text = serde_json::to_vec_pretty(&running).map_err(|error| failed(error.into()))?;
    atomic::write(&json, &text, 0o600).map_err(failed)?;

    let hear = |kind| signal(kind).map_err(refused);
    let (mut int, mut hup, mut term) =
        (hear(SignalKind::interrupt())?, hear(SignalKind::hangup())?, hear(SignalKind::terminate())?);
    let mut busy = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK * 2) => {}
            _ = int.recv() => break,
            _ = hup.recv() => break,
            _ = term.recv() => break,
        }
        // A place that somebody deleted leads nobody here any more.
        if place.root.join("stop").exists() || !use_file.exists() {
            break;
        }
        // A long session counts to its end, although nothing is asked of the cloud meanwhile.
        if emulator.idle().is_zero() {
            busy = Instant::now();
        }
        let quiet = emulator.idle().min(busy.elapsed());
        if quiet >= idle && since_used(&use_file) >= idle && nobody_comes(&files, &use_file) {
            break;
        }
    }
    let _ = std::fs::remove_file(&json);
    emulator.stop().await;
    place.clear(paths);
    drop(alive);
    Ok(())
}

fn since_used(use_file: &Path) -> Duration {
    let modified = std::fs::metadata(use_file).and_then(|metadata| metadata.modified());
    modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default()
}

/// Whether no command works with it and none is about to; then none can join any more.
fn nobody_comes(files: &Files, use_file: &Path) -> bool {
    let Ok(lock) = lock_file(&files.path("daemon.lock")) else { return false };
    if lock.try_lock().is_err() {
        return false;
    }
    let free = File::open(use_file).is_ok_and(|file| file.try_lock().is_ok());
    if free {
        let _ = std::fs::remove_file(files.path("daemon.json"));
    }
    free
}
