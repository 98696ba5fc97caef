//! `gpuprov sandbox`: the emulator, for trying gpuprov without an account. The only folder of ours that knows it.
//!
//! `place` is the directories of one sandbox, `daemon` the one in the background behind `--sandbox`.

mod daemon;
mod place;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};

pub use daemon::Hold;
use place::Place;

use crate::cli::context::App;
use crate::cli::failure::{Exit, refused};
use crate::cli::output::raw;
use crate::model::duration::{self, show};
use crate::provision::failure::{Failure, Kind};
use crate::sandbox::Sandbox as Emulator;
use crate::state::env::{self, Env};
use crate::state::machines::Registry;
use crate::state::paths::Paths;

/// After so long without a request the sandbox in the background ends by itself.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// Runs an emulator of the clouds on this computer, to try gpuprov without an account
#[derive(Args, Clone, Debug)]
pub struct Sandbox {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    /// Runs one command against a fresh sandbox, and removes everything at the end
    Run {
        /// The command; `gpuprov` in it is this very program
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Serves a sandbox until it is stopped, and prints the variables for another terminal
    Serve,
    /// Ends the sandbox in the background with all its machines
    Stop,
    /// Tells whether a sandbox runs in the background; code 1 if none does
    Status,
    /// What `--sandbox` starts
    #[command(hide = true)]
    Daemon {
        /// How long without a request until it ends by itself
        #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "30m")]
        idle: Duration,
    },
}

impl Sandbox {
    /// Does what must be done before anything is opened.
    pub fn before(&self) {
        if matches!(self.what, What::Daemon { .. }) {
            daemon::detach();
        }
    }
}

/// What `--sandbox` makes of a command: its environment, a hold on the daemon, and whether that was just started.
#[derive(Debug)]
pub struct Entered {
    /// Leads to the sandbox and to nothing else.
    pub env: Env,
    /// Keeps the daemon from ending for being idle.
    pub hold: Option<Hold>,
    /// Whether a daemon was started.
    pub started: bool,
}

/// Leads a command to the sandbox: to the one whose variables are set, else to the one in the background, started if none
/// runs. Nothing of the caller's accounts, endpoints and directories is left; HOME is, for `~/.ssh`.
pub fn enter(env: Env, paths: &Paths) -> Result<Entered, Failure> {
    if place::given(&env).is_some() {
        return Ok(Entered { env, hold: None, started: false });
    }
    let (running, hold, started) = daemon::join(paths, &env)?;
    let variables: Vec<(String, String)> = running.variables.into_iter().collect();
    Ok(Entered { env: place::environment(env, &variables), hold: Some(hold), started })
}

/// Whether the variables of a sandbox are set (`sandbox run`, `sandbox serve`), so that no file of the caller's accounts may be
/// read.
pub fn is_inside(env: &Env) -> bool {
    place::is_inside(env)
}

/// Returns the state directory of the sandbox that `--sandbox` leads to, if it runs; for completions, which start nothing.
pub fn state_of_running(env: &Env, paths: &Paths) -> Option<PathBuf> {
    let root = place::given(env).or_else(|| daemon::look(paths).map(|running| running.root));
    root.map(|root| root.join("state"))
}

/// Runs the command.
pub async fn run(command: &Sandbox, app: &App) -> Result<Exit, Failure> {
    match &command.what {
        What::Run { command } => {
            with_fresh(app, async |place, emulator| child(app, place, emulator, command).await).await
        }
        What::Serve => with_fresh(app, async |place, emulator| serve(place, emulator).await).await,
        What::Stop => stop(app),
        What::Status => Ok(status(app)),
        What::Daemon { idle } => daemon::serve(&app.paths, *idle).await.map(|()| Exit::Done),
    }
}

/// Runs `work` with a fresh sandbox, and removes everything at the end.
async fn with_fresh(
    app: &App,
    work: impl AsyncFnOnce(&Place, &Emulator) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let (place, emulator) =
        start(app).await.map_err(|error| refused(format!("the sandbox could not be started: {error}")))?;
    let result = work(&place, &emulator).await;
    let left = emulator.alive();
    emulator.stop().await;
    place.clear(&app.paths);
    let exit = result?;
    for machine in &left {
        app.output.progress(format!(
            "the sandbox ended with {} still running, for ${}/h",
            machine.name, machine.price_per_hour
        ));
    }
    Ok(exit)
}

/// Starts an emulator in a place of its own.
async fn start(app: &App) -> io::Result<(Place, Emulator)> {
    let folder = place::folder(&app.paths)?;
    let place = Place::make(&app.paths, &folder)?;
    let emulator = place.start().await?;
    Ok((place, emulator))
}

fn stop(app: &App) -> Result<Exit, Failure> {
    let machines = daemon::look(&app.paths).map(|running| machines(&running));
    match daemon::stop(&app.paths)? {
        None => app.output.line("no sandbox runs in the background"),
        Some(_) => match machines.unwrap_or_default() {
            0 => app.output.line("the sandbox is stopped"),
            count => app.output.line(format!("the sandbox is stopped, and its {count} machines with it")),
        },
    }
    Ok(Exit::Done)
}

fn status(app: &App) -> Exit {
    let Some(running) = daemon::look(&app.paths) else {
        app.output.line("no sandbox runs in the background");
        return Exit::Failed;
    };
    let up = Timestamp::now().duration_since(running.since);
    app.output.line(format!(
        "a sandbox runs in the background since {}, with {} machines\nendpoint: {}\ncontrol path: {}\ndirectories: {}\n\
         it ends with `gpuprov sandbox stop`, or by itself {} after the last command",
        show(Duration::try_from(up).unwrap_or_default()),
        machines(&running),
        running.variables.get(env::GPUPROV_RUNPOD_ENDPOINT.name).map_or("-", String::as_str),
        running.control,
        running.root.display(),
        show(IDLE),
    ));
    Exit::Done
}

/// Counts the machines that have a record there.
fn machines(running: &daemon::Running) -> usize {
    let names = Registry::open(&running.root.join("state")).and_then(|registry| registry.names_taken());
    names.map_or(0, |names| names.len())
}

/// Runs the command with the sandbox's variables, and ends with its code.
async fn child(app: &App, place: &Place, emulator: &Emulator, words: &[OsString]) -> Result<Exit, Failure> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Failure::new(Kind::Usage, "which command? `gpuprov sandbox run -- COMMAND`"));
    };
    let path = app.env.path(&env::PATH).unwrap_or_default();
    let paths = std::iter::once(place.root.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).map_err(refused)?;
    let hear = |kind| signal(kind).map_err(refused);
    // Ctrl-C goes to the command as well: it is the command that decides what becomes of it.
    let (mut int, mut hup, mut term) =
        (hear(SignalKind::interrupt())?, hear(SignalKind::hangup())?, hear(SignalKind::terminate())?);
    let mut command = tokio::process::Command::new(program);
    for variable in place::REAL {
        command.env_remove(variable.name);
    }
    let mut child = command
        .args(arguments)
        .envs(place.variables(emulator))
        .env(env::PATH.name, path)
        .env_remove(env::GPUPROV_SANDBOX.name)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| refused(format!("`{}` could not be started: {error}", program.display())))?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(refused)?,
            _ = int.recv() => {}
            _ = hup.recv() => {}
            _ = term.recv() => {
                let id = child.id().and_then(|id| i32::try_from(id).ok());
                if let Some(id) = id {
                    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGTERM);
                }
            }
        }
    };
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(Exit::Other(u8::try_from(code).unwrap_or(1)))
}

/// Prints the variables and waits for the end.
async fn serve(place: &Place, emulator: &Emulator) -> Result<Exit, Failure> {
    let mut text =
        String::from("# Variables for another terminal. The sandbox ends with this command (Ctrl-C).\n");
    // Set, they would lead elsewhere.
    let variables = place.variables(emulator);
    let real = place::REAL.iter().map(|variable| variable.name);
    let unset: Vec<&str> = std::iter::once(env::GPUPROV_SANDBOX.name)
        .chain(real.filter(|name| variables.iter().all(|(ours, _)| ours != name)))
        .collect();
    text.push_str(&format!("unset {}\n", unset.join(" ")));
    for (name, value) in variables {
        text.push_str(&format!("export {name}='{}'\n", value.replace('\'', r"'\''")));
    }
    text.push_str(&format!(
        "# RunPod's official MCP server: RUNPOD_API_BASE_URL='{}'\n# Vast's official client: VAST_URL='{}'\n# Verda's official clients: base_url '{}/v1'\n# Google's official clients: api_endpoint '{}'\n# Nebius's official Python client: options [(INSECURE, True)], resolver Constant('{}')\n# control path: {}\n",
        emulator.runpod_endpoint(),
        emulator.vast().endpoint(),
        emulator.verda().endpoint(),
        emulator.gcp().endpoint(),
        emulator.nebius().endpoint().trim_start_matches("http://"),
        emulator.control_endpoint()
    ));
    raw(&text);
    let hear = |kind| signal(kind).map_err(refused);
    let (mut int, mut hup, mut term) =
        (hear(SignalKind::interrupt())?, hear(SignalKind::hangup())?, hear(SignalKind::terminate())?);
    tokio::select! {
        _ = int.recv() => {}
        _ = hup.recv() => {}
        _ = term.recv() => {}
    }
    Ok(Exit::Done)
}
