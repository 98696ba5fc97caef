//! The command line: the only place that prints, asks, hears signals and knows exit codes.
//!
//! One file per command, thin: an args struct whose doc comments are the help, and one run function.

pub mod asking;
pub mod audit;
pub mod clouds;
pub mod completions;
pub mod context;
pub mod doctor;
pub mod failure;
pub mod k8s;
pub mod lists;
pub mod ls;
pub mod machine_args;
pub mod offers;
pub mod output;
pub mod progress;
pub mod provision;
pub mod reference;
pub mod rm;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod selection;
pub mod signals;
pub mod ssh;
pub mod table;
pub mod view;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};
use tracing_subscriber::EnvFilter;

use crate::cli::context::{App, Reach};
use crate::cli::failure::Exit;
use crate::cli::output::Output;
use crate::provision::cancel::Exposed;
use crate::provision::failure::{Failure, Kind};
use crate::state::env::{self, Env};

/// One live list of GPU offers over your own cloud accounts, one command to get a machine, and `ssh NAME`
#[derive(Parser, Clone, Debug)]
#[command(name = "gpuprov", version, propagate_version = false, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Flags of every command.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// The config file
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub config: Option<PathBuf>,
    /// Work with the sandbox instead of real accounts
    #[arg(long, global = true, help_heading = "Global options")]
    pub sandbox: bool,
    /// Whether to colour the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    pub color: Color,
    /// Less output: no progress, no notes
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// More output: what is asked of the clouds; twice for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    Offers(Box<offers::Offers>),
    Provision(Box<provision::Provision>),
    Ssh(ssh::Ssh),
    #[command(visible_alias = "list")]
    Ls(ls::Ls),
    Rm(rm::Rm),
    Clouds(clouds::Clouds),
    K8s(k8s::K8s),
    Kubectl(k8s::kubectl::Kubectl),
    Kubeconfig(k8s::kubeconfig::Kubeconfig),
    Audit(audit::Audit),
    Doctor(doctor::Doctor),
    #[cfg(feature = "sandbox")]
    Sandbox(sandbox::Sandbox),
    #[command(alias = "completion")]
    Completions(completions::Completions),
}

impl Command {
    fn reach(&self) -> Reach {
        match self {
            #[cfg(feature = "sandbox")]
            Command::Sandbox(_) => Reach::Here,
            _ => Reach::Clouds,
        }
    }

    fn wants_json(&self) -> bool {
        match self {
            Command::Offers(command) => command.json,
            Command::Provision(command) => command.json,
            Command::Ls(command) => command.json,
            Command::Rm(command) => command.json,
            Command::Clouds(command) => command.wants_json(),
            Command::K8s(command) => command.wants_json(),
            Command::Audit(command) => command.json,
            Command::Doctor(command) => command.json,
            _ => false,
        }
    }

    /// The members of the JSON output of a command that failed before it knew anything.
    fn members(&self) -> Map<String, Value> {
        let empty = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), json!([]))).collect();
        match self {
            Command::Offers(command) => command.members(),
            Command::Provision(command) => command.members(),
            Command::Ls(_) => empty(&["machines", "left_over", "failed"]),
            Command::Rm(_) => empty(&["removed", "failed"]),
            Command::Clouds(_) => clouds::members(),
            Command::K8s(command) => command.members(),
            Command::Audit(_) => empty(&["entries", "totals", "machines"]),
            Command::Doctor(_) => empty(&["checks"]),
            _ => Map::new(),
        }
    }

    /// The members of the JSON output of a command that leaves at once: what may exist is named where the command names
    /// machines.
    fn members_left(&self, exposed: &[Exposed]) -> Map<String, Value> {
        let mut members = self.members();
        match self {
            Command::Provision(command) if !command.is_dry_run() => {
                members.insert("machines".to_owned(), exposed.iter().map(view::exposed_json).collect());
            }
            Command::Rm(_) => {
                members.insert("failed".to_owned(), exposed.iter().map(rm::exposed_json).collect());
            }
            _ => {}
        }
        members
    }
}

/// Parses the command line, runs the command, prints a failure, and returns how it ended.
pub fn main() -> Exit {
    let line: Vec<OsString> = std::env::args_os().collect();
    let split = ssh::split(&line);
    let mut cli = match Cli::try_parse_from(split.as_ref().map_or(&line, |split| &split.ours)) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout, errors of the parser to stderr, both in the parser's own form.
            let _ = error.print();
            return match (error.use_stderr(), &split) {
                (false, _) => Exit::Done,
                // Every code below is the remote command's.
                (true, Some(split)) if split.is_ssh => Exit::Other(255),
                (true, _) => Exit::Usage,
            };
        }
    };
    match (&mut cli.command, split) {
        (Command::Ssh(command), Some(split)) => command.say(split.words),
        (Command::Kubectl(command), Some(split)) => command.say(split.words),
        _ => {}
    }
    if let Command::Completions(command) = &cli.command {
        let exit = completions::run(command, Cli::command());
        return told(exit, &cli.command, &Output::new(false, false));
    }
    colour(cli.global.color);
    log(cli.global.verbose);
    let output = Arc::new(Output::new(cli.command.wants_json(), cli.global.quiet));
    let result = run(&cli, &output);
    output.end_live();
    let exit = match result {
        Ok(exit) => exit,
        Err(failure) => {
            output.failure(&failure);
            if matches!(cli.command, Command::Ssh(_)) { Exit::Other(255) } else { Exit::of(failure.kind) }
        }
    };
    told(exit, &cli.command, &output)
}

/// Returns how a command ended whose result may not have been told. Every code but that of success says more than this.
fn told(exit: Exit, command: &Command, output: &Output) -> Exit {
    let Some(why) = output::lost() else { return exit };
    output.failure(&Failure::new(Kind::Local, format!("the result could not be written to stdout: {why}")));
    match (exit, command) {
        (Exit::Done, Command::Provision(command)) if !command.is_dry_run() => Exit::SetupFailed,
        (Exit::Done, _) => Exit::Failed,
        _ => exit,
    }
}

fn run(cli: &Cli, output: &Arc<Output>) -> Result<Exit, Failure> {
    // Requests are signed and checked with one provider in the whole program. A second call is refused and changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    #[cfg(feature = "sandbox")]
    if let Command::Sandbox(command) = &cli.command {
        command.before();
    }
    let started = App::start_anyhow(&cli.global, Arc::clone(output), cli.command.reach());
    // A broken configuration ends every command but the one that tells what is broken.
    let started = started.and_then(|(app, problem)| match (&cli.command, problem) {
        (Command::Doctor(_), problem) => Ok((app, problem)),
        (_, Some(problem)) => Err(problem),
        (_, None) => Ok((app, None)),
    });
    let (app, problem) = match started {
        Ok(started) => started,
        Err(failure) => {
            output.document(cli.command.members(), Some(&failure));
            return Err(failure);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Kind::Local, error.to_string()))?;
    let result = runtime.block_on(async {
        match &cli.command {
            Command::Ssh(command) => return Err(ssh::run(command, &app).await),
            #[cfg(feature = "sandbox")]
            Command::Sandbox(command) => return sandbox::run(command, &app).await,
            Command::Audit(command) => return audit::run(command, &app),
            Command::Doctor(command) => return doctor::run(command, &app, problem.as_ref()).await,
            Command::Kubectl(command) => return k8s::kubectl::run(command, &app).await,
            Command::Kubeconfig(command) => return k8s::kubeconfig::run(command, &app).await,
            _ => {}
        }
        let left = cli.command.clone();
        let cancel = signals::listen(output, move |exposed| left.members_left(exposed))
            .map_err(|error| Failure::new(Kind::Local, error.to_string()))?;
        match &cli.command {
            Command::Offers(command) => offers::run(command, &app, &cancel).await,
            Command::Provision(command) => provision::run(command, &app, &cancel).await,
            Command::Ls(command) => ls::run(command, &app, &cancel).await,
            Command::Clouds(command) => clouds::run(command, &app, &cancel).await,
            Command::Rm(command) => match app.check_installation() {
                Ok(()) => rm::run(command, &app, &cancel).await,
                // Nothing was removed, and nobody can tell what there is.
                Err(why) => {
                    let failure = Failure::new(Kind::LeftRunning, format!("nothing was removed: {why}"));
                    output.document(cli.command.members(), Some(&failure));
                    Err(failure)
                }
            },
            Command::K8s(command) => k8s::run(command, &app, &cancel).await,
            _ => Ok(Exit::Done),
        }
    });
    // What still waits on a closed terminal or a slow name server must not hold the end up.
    runtime.shutdown_background();
    result
}

fn colour(color: Color) {
    match color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Starts the log. Other crates' targets never go below `warn`, because theirs print headers.
fn log(verbose: u8) {
    let ours = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let env = Env::capture();
    let given = env.get(&env::GPUPROV_LOG).map(|filter| {
        // Only directives for our own targets are taken; a bare level means ours.
        let ours = filter.split(',').map(str::trim).filter_map(|directive| match directive.split_once('=') {
            Some((target, _)) if target == "gpuprov" || target.starts_with("gpuprov::") => {
                Some(directive.to_owned())
            }
            None if !directive.is_empty() && !directive.contains([':', '[']) => {
                Some(format!("gpuprov={directive}"))
            }
            _ => None,
        });
        ours.collect::<Vec<_>>().join(",")
    });
    let filter = format!(
        "warn,rustls_platform_verifier=off,{}",
        given.filter(|given| !given.is_empty()).unwrap_or_else(|| format!("gpuprov={ours}"))
    );
    let filter = EnvFilter::try_new(&filter).unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .init();
}
