//! MACHINE: the flags that say what the machine is to be like beside the offer.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::cli::context::App;
use crate::cli::failure::usage;
use crate::cli::lists::split;
use crate::model::duration;
use crate::model::secret::Secret;
use crate::provision::failure::Failure;
use crate::provision::setup::is_variable;

/// Longest startup script or file of variables, in bytes.
const LONGEST: u64 = 4 << 20;

/// What the machine is to be like.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// A private key with its .pub beside it, or a .pub alone whose private half an agent holds
    #[arg(long, value_name = "FILE")]
    pub ssh_key: Option<PathBuf>,
    /// A variable for every login: `K=V`, or `K` with the value from here
    #[arg(long, value_name = "K[=V]")]
    pub env: Vec<String>,
    /// A file with a `K=V` on every line
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,
    /// A script that runs once as root after the first login; `-` reads it from stdin
    #[arg(long, value_name = "FILE")]
    pub startup_script: Option<PathBuf>,
    /// Wait so long for an offer
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub queue: Option<Duration>,
    /// How long a machine may take from create to a login, in place of the cloud's own budget
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_some)]
    pub boot_timeout: Option<Duration>,
    /// Machines that may be made and given up again [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub attempts: Option<u32>,
    /// What to wait for: `ssh` or `k8s`
    #[arg(long, value_name = "WHAT", value_parser = ["ssh", "k8s"])]
    pub wait: Option<String>,
    /// End of the machine, from now
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_some)]
    pub ttl: Option<Duration>,
    /// Keep a machine that does not get ready, and say so with code 6
    #[arg(long)]
    pub keep_failed: bool,
}

impl MachineArgs {
    /// Returns the environment for the machine; later words win over earlier ones, flags over files, files over defaults.
    pub fn environment(&self, app: &App) -> Result<Vec<(String, Secret)>, Failure> {
        let mut env = Variables::default();
        let defaults = &app.config.defaults;
        for word in defaults.env.iter().flatten() {
            env.add(word.expose(), app, "defaults.env")?;
        }
        let files = if self.env_file.is_empty() {
            split(&defaults.env_file.clone().unwrap_or_default())
                .iter()
                .map(|file| app.paths.resolve(file, app.config.folder()).map_err(usage))
                .collect::<Result<Vec<_>, _>>()?
        } else {
            self.env_file.clone()
        };
        for file in files {
            env.add_file(&file, app)?;
        }
        for word in &self.env {
            env.add(word, app, "--env")?;
        }
        Ok(env.0)
    }

    /// Returns the startup script.
    pub fn script(&self, app: &App) -> Result<Option<Vec<u8>>, Failure> {
        let path = match (&self.startup_script, &app.config.defaults.startup_script) {
            (Some(path), _) if path.as_os_str() == "-" => {
                let mut script = Vec::new();
                let read = std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut script);
                read.map_err(|error| usage(format!("--startup-script: stdin: {error}")))?;
                return checked("--startup-script", "stdin", script).map(Some);
            }
            (Some(path), _) => path.clone(),
            (None, Some(path)) => app.paths.resolve(path, app.config.folder()).map_err(usage)?,
            (None, None) => return Ok(None),
        };
        read("--startup-script", &path).map(Some)
    }
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| usage(format!("{flag}: `{}`: {error}", path.display())))?;
    checked(flag, &path.display().to_string(), bytes)
}

fn checked(flag: &str, name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if bytes.len() as u64 > LONGEST {
        return Err(usage(format!("{flag}: `{name}` is longer than {LONGEST} bytes")));
    }
    if bytes.is_empty() {
        return Err(usage(format!("{flag}: `{name}` is empty")));
    }
    Ok(bytes)
}

#[derive(Default)]
struct Variables(Vec<(String, Secret)>);

impl Variables {
    /// Adds one word. Neither the word nor its value is ever shown: only the name, and only if it is one.
    fn add(&mut self, word: &str, app: &App, source: &str) -> Result<(), Failure> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None if !is_variable(word) => (word, String::new()),
            None => {
                let value = app.env.raw(word);
                (word, value.ok_or_else(|| usage(format!("{source}: `{word}` is not set here")))?)
            }
        };
        if !is_variable(name) {
            return Err(usage(format!("{source}: what stands before `=` is not the name of a variable")));
        }
        if name.starts_with("GPUPROV_") || name == "PUBLIC_KEY" {
            return Err(usage(format!(
                "{source}: `{name}` cannot be set: gpuprov itself sets such variables"
            )));
        }
        if value.contains('\0') {
            return Err(usage(format!("{source}: the value of `{name}` holds a NUL")));
        }
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), Secret::new(value)));
        Ok(())
    }

    /// Adds a file of `K=V` or `K` lines; blank lines and those that start with `#` are passed over, `export ` before the
    /// name and one pair of quotes around the value are taken off.
    fn add_file(&mut self, path: &Path, app: &App) -> Result<(), Failure> {
        let bytes = read("--env-file", path)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| usage(format!("--env-file: `{}` is not UTF-8", path.display())))?;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
            let source = format!("--env-file: `{}`, line {}", path.display(), number + 1);
            match line.split_once('=') {
                Some((name, value)) => {
                    self.add(&format!("{}={}", name.trim_end(), unquoted(value.trim())), app, &source)?
                }
                None => self.add(line, app, &source)?,
            }
        }
        Ok(())
    }
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}
