//! `gpuprov completions`: scripts that let a shell complete our words, and the answers to their questions.
//!
//! A script calls `gpuprov completions SHELL -- WORDS...` with the words up to the cursor and gets a candidate on each line.
//! No cloud is asked and no record is read: names of machines are names of files, accounts come from the config file and
//! the names of connected ones, GPUs and flags are in the program.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use clap::{Arg, Args, Command, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};

use crate::accounts::Store;
use crate::accounts::registry::names_in;
use crate::cli::failure::Exit;
use crate::cli::output::raw;
use crate::model::gpu::known_models;
use crate::model::place::Continent;
use crate::state::config::Config;
use crate::state::env::Env;
use crate::state::machines::Registry;
use crate::state::paths::Paths;

/// Prints a script that lets the shell complete commands, flags, machines, accounts and GPUs
///
/// For bash: `source <(gpuprov completions bash)` in ~/.bashrc; zsh: the same in ~/.zshrc, after compinit; fish:
/// `gpuprov completions fish > ~/.config/fish/completions/gpuprov.fish`.
#[derive(Args, Clone, Debug)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
    /// The words to complete, for the script
    #[arg(last = true, hide = true)]
    words: Vec<OsString>,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Runs the command. `command` is our whole command line. A broken configuration does not stop it: it has no bearing.
pub fn run(completions: &Completions, command: Command) -> Exit {
    if completions.words.is_empty() {
        raw(match completions.shell {
            Shell::Bash => include_str!("completions/gpuprov.bash"),
            Shell::Zsh => include_str!("completions/gpuprov.zsh"),
            Shell::Fish => include_str!("completions/gpuprov.fish"),
        });
        return Exit::Done;
    }
    let known = Known::here(&completions.words);
    let mut command = known.teach(command);
    let words = completions.words.clone();
    let last = words.len() - 1;
    let Ok(candidates) = complete(&mut command, words, last, None) else { return Exit::Failed };
    let mut text = String::new();
    for candidate in candidates.iter().filter(|candidate| !candidate.is_hide_set()) {
        text.push_str(&candidate.get_value().to_string_lossy());
        // bash has no place for a description.
        if completions.shell != Shell::Bash
            && let Some(help) = candidate.get_help()
        {
            let help = help.to_string();
            text.push('\t');
            text.push_str(help.lines().next().unwrap_or_default());
        }
        text.push('\n');
    }
    raw(&text);
    Exit::Done
}

/// What this computer knows without asking anybody.
#[derive(Clone, Debug, Default)]
struct Known {
    machines: Vec<String>,
    accounts: Vec<String>,
}

impl Known {
    fn here(words: &[OsString]) -> Self {
        let env = Env::capture();
        let Ok(paths) = Paths::new(&env) else { return Known::default() };
        let config = Config::load(&paths).unwrap_or_default();
        let mut accounts: BTreeSet<String> = BTreeSet::new();
        let connected = Store::open(&paths.data).map(|store| store.names()).unwrap_or_default();
        for account in names_in(&config).into_iter().chain(connected) {
            accounts.insert(account.cloud().to_string());
            accounts.insert(account.to_string());
        }
        let state = state_directory(&env, &paths, words);
        let names = state.and_then(|state| Registry::open(&state).ok()?.names_taken().ok());
        Known {
            machines: names.unwrap_or_default().iter().map(ToString::to_string).collect(),
            accounts: accounts.into_iter().collect(),
        }
    }

    /// Tells the commands what their values may be.
    fn teach(&self, command: Command) -> Command {
        let machines = || values(self.machines.clone(), List::No);
        let shared = |command: Command| {
            let gpus = known_models().map(str::to_owned).chain(["any".to_owned()]).collect();
            command
                .mut_arg("gpus", |arg| arg.add(values(gpus, List::Yes)))
                .mut_arg("cloud", |arg| arg.add(values(self.accounts.clone(), List::Yes)))
                .mut_arg("region", |arg: Arg| {
                    let continents = Continent::ALL.iter().map(|name| name.as_str().to_owned());
                    arg.add(values(continents.collect(), List::Yes))
                })
        };
        command
            .mut_subcommand("offers", shared)
            .mut_subcommand("provision", shared)
            .mut_subcommand("ssh", |command| {
                // What is changed goes to the end of the list, where the trailing words belong.
                command.mut_arg("name", |arg| arg.add(machines())).mut_arg("words", |arg| arg)
            })
            .mut_subcommand("kubectl", |command| {
                command.mut_arg("name", |arg| arg.add(machines())).mut_arg("words", |arg| arg)
            })
            .mut_subcommand("kubeconfig", |command| command.mut_arg("name", |arg| arg.add(machines())))
            .mut_subcommand("k8s", |command| {
                ["setup", "status", "tunnel"].into_iter().fold(command, |command, one| {
                    command.mut_subcommand(one, |command| command.mut_arg("name", |arg| arg.add(machines())))
                })
            })
            .mut_subcommand("ls", |command| command.mut_arg("names", |arg| arg.add(machines())))
            .mut_subcommand("clouds", |command| {
                let accounts = || values(self.accounts.clone(), List::No);
                let words = [
                    ("set", "cloud"),
                    ("rm", "account"),
                    ("on", "target"),
                    ("off", "target"),
                    ("check", "targets"),
                ];
                words.into_iter().fold(command, |command, (word, arg)| {
                    command.mut_subcommand(word, |command| command.mut_arg(arg, |arg| arg.add(accounts())))
                })
            })
            .mut_subcommand("rm", |command| {
                command
                    .mut_arg("targets", |arg| arg.add(machines()))
                    .mut_arg("cloud", |arg| arg.add(values(self.accounts.clone(), List::Yes)))
            })
    }
}

/// Whether a value may be several, comma separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Yes,
    No,
}

/// Completes a value: after `USER@`, after the last comma of a list, in either case.
fn values(all: Vec<String>, list: List) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let Some(current) = current.to_str() else { return Vec::new() };
        let separator = if list == List::Yes { ',' } else { '@' };
        let begun = current.rfind(separator).map_or(0, |at| at + 1);
        let (before, word) = current.split_at(begun);
        let fits =
            |name: &&String| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        all.iter().filter(fits).map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
    })
}

#[cfg(feature = "sandbox")]
fn state_directory(env: &Env, paths: &Paths, words: &[OsString]) -> Option<std::path::PathBuf> {
    if words.iter().any(|word| word == "--sandbox") || env.is_on(&crate::state::env::GPUPROV_SANDBOX) {
        return crate::cli::sandbox::state_of_running(env, paths);
    }
    Some(paths.state.clone())
}

#[cfg(not(feature = "sandbox"))]
fn state_directory(_: &Env, paths: &Paths, _: &[OsString]) -> Option<std::path::PathBuf> {
    Some(paths.state.clone())
}
