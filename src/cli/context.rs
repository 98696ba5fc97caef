//! What a command starts from: environment, paths, configuration, accounts, and the context of the orchestrator.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::accounts::registry::{CLOUD_TIMEOUT, Connect, Connected, connect};
use crate::accounts::{Account, AccountsError};
use crate::cli::Global;
use crate::cli::failure::{refused, usage};
use crate::cli::lists::split;
use crate::cli::output::Output;
use crate::model::account::{AccountFilter, AccountId};
use crate::model::mark::Installation;
use crate::provision::Context;
use crate::provision::failure::{Failure, Kind};
use crate::ssh::SshFiles;
use crate::ssh::exec::Client;
use crate::ssh::program;
use crate::state::abandoned::Watch;
use crate::state::audit::{Audit, Author};
use crate::state::config::Config;
use crate::state::env::{self, Env};
use crate::state::installation::{installation, known_installation};
use crate::state::machines::Registry;
use crate::state::paths::Paths;
use crate::state::switches::Board;

#[cfg(feature = "sandbox")]
use crate::cli::sandbox::Hold;
#[cfg(not(feature = "sandbox"))]
type Hold = std::convert::Infallible;

/// What every command starts from.
#[derive(Debug)]
pub struct App {
    /// The environment as it was at start.
    pub env: Env,
    /// The places on this computer.
    pub paths: Paths,
    /// The configuration.
    pub config: Config,
    /// Where output goes.
    pub output: Arc<Output>,
    /// Whether `--sandbox` or the variables of a sandbox led here, so that no credential but the sandbox's is looked for.
    pub in_sandbox: bool,
    // Keeps the sandbox in the background from ending meanwhile.
    _hold: Option<Hold>,
}

/// What a command works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Clouds, or the sandbox in their place.
    Clouds,
    /// Only this computer: `--sandbox` starts nothing.
    Here,
}

#[cfg(feature = "sandbox")]
fn enter_sandbox(env: Env, paths: &Paths, output: &Output) -> Result<(Env, Option<Hold>), Failure> {
    let entered = crate::cli::sandbox::enter(env, paths)?;
    if entered.started {
        output.progress("started a sandbox in the background; `gpuprov sandbox stop` ends it");
    }
    Ok((entered.env, entered.hold))
}

#[cfg(feature = "sandbox")]
fn is_inside_sandbox(env: &Env) -> bool {
    crate::cli::sandbox::is_inside(env)
}

#[cfg(not(feature = "sandbox"))]
fn is_inside_sandbox(_: &Env) -> bool {
    false
}

#[cfg(not(feature = "sandbox"))]
fn enter_sandbox(_: Env, _: &Paths, _: &Output) -> Result<(Env, Option<Hold>), Failure> {
    Err(Failure::new(Kind::Unsupported, "the sandbox is not in this build of gpuprov")
        .hint("build it with the feature `sandbox`, which is on by default"))
}

/// How long to wait for clouds, as flags say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    /// `--cloud-timeout`.
    pub cloud_timeout: Option<Duration>,
    /// `--boot-timeout`.
    pub boot_timeout: Option<Duration>,
}

impl App {
    /// Reads environment and configuration. That the configuration cannot be read is told beside an empty one.
    pub fn start_anyhow(
        global: &Global,
        output: Arc<Output>,
        reach: Reach,
    ) -> Result<(Self, Option<Failure>), Failure> {
        let mut env = Env::capture();
        let in_sandbox = reach == Reach::Clouds && (global.sandbox || env.is_on(&env::GPUPROV_SANDBOX));
        let mut hold = None;
        if let Some(config) = &global.config {
            if in_sandbox {
                return Err(usage(
                    "--config does not go with the sandbox, which has a configuration of its own",
                ));
            }
            let path = std::path::absolute(config).map_err(|error| refused(format!("--config: {error}")))?;
            env = env.with(&env::GPUPROV_CONFIG, path);
        }
        if in_sandbox {
            let paths = Paths::new(&env).map_err(refused)?;
            (env, hold) = enter_sandbox(env, &paths, &output)?;
        }
        let in_sandbox = in_sandbox || is_inside_sandbox(&env);
        let paths = Paths::new(&env).map_err(refused)?;
        let (config, problem) = match Config::load(&paths) {
            Ok(config) => (config, None),
            Err(error) => {
                (Config { path: paths.config_file.clone(), ..Config::default() }, Some(usage(error)))
            }
        };
        for name in env.unreadable() {
            // Without its endpoint a key would go to the real cloud, without its key another account would pay.
            let secret = env::ALL.iter().any(|variable| variable.name == name && variable.secret);
            if name.starts_with("GPUPROV_") || secret {
                return Err(refused(format!("the variable {name} is not UTF-8")));
            }
            output.warn(
                Kind::Note,
                None,
                None,
                &format!("the variable {name} is not UTF-8 and is passed over"),
            );
        }
        Ok((App { env, paths, config, output, in_sandbox, _hold: hold }, problem))
    }

    /// Makes the accounts that may make a machine, and says what the user should know about them. `named` is what the flags
    /// or the configuration name.
    pub fn connect(&self, waits: Waits, named: &[AccountFilter]) -> Result<Connected, Failure> {
        self.connect_all(waits, named, &[])
    }

    /// Makes the accounts for a command about machines that are there: also those whose credentials merely lie around, if a
    /// machine is recorded with them.
    pub fn connect_for_machines(&self, waits: Waits, named: &[AccountFilter]) -> Result<Connected, Failure> {
        let by_default = split(self.config.defaults.cloud.as_deref().unwrap_or_default());
        let by_default = by_default.iter().filter_map(|word| word.parse().ok());
        let named: Vec<AccountFilter> = named.iter().cloned().chain(by_default).collect();
        self.connect_all(waits, &named, &self.recorded_accounts())
    }

    /// Returns the installation of the records, if there are any.
    fn recorded_installation(&self) -> Result<Option<Installation>, Failure> {
        let registry = Registry::open(&self.paths.state).map_err(refused)?;
        let entries = registry.list().map_err(refused)?;
        let nothing = entries.is_empty();
        let readable = entries.into_iter().find_map(|entry| entry.into_record().ok());
        match readable {
            Some(record) => Ok(Some(record.installation)),
            None if nothing => Ok(None),
            // What cannot be read is told, too.
            None => installation(&self.paths.state, None).map(Some).map_err(refused),
        }
    }

    /// Returns the accounts that records and claims given up name. Whoever works with these says what is wrong with them.
    fn recorded_accounts(&self) -> Vec<AccountId> {
        let records = Registry::open(&self.paths.state).and_then(|registry| registry.list());
        let records = records.into_iter().flatten().filter_map(|entry| entry.into_record().ok());
        let given_up = Watch::open(&self.paths.state).and_then(|watch| watch.peek(Timestamp::now()));
        let given_up = given_up.into_iter().flatten().map(|claim| claim.account);
        let attempts = records.flat_map(|record| record.attempts).map(|attempt| attempt.account);
        attempts.chain(given_up).collect()
    }

    fn connect_all(
        &self,
        waits: Waits,
        named: &[AccountFilter],
        recorded: &[AccountId],
    ) -> Result<Connected, Failure> {
        let connected = connect(Connect {
            env: &self.env,
            config: &self.config,
            paths: &self.paths,
            cloud_timeout: waits.cloud_timeout,
            boot_timeout: waits.boot_timeout,
            only_environment: self.in_sandbox,
            named,
            recorded,
            read_only: false,
        })
        .map_err(refused)?;
        for warning in &connected.warnings {
            self.output.warn(Kind::Note, None, None, warning);
        }
        for account in &connected.accounts {
            if let Some(endpoint) = &account.elsewhere {
                self.output.progress(format!("{} answers at {endpoint}", account.id()));
            }
        }
        Ok(connected)
    }

    /// Returns what the orchestrator works with.
    pub fn context(&self, connected: &Connected, waits: Waits) -> Result<Context, Failure> {
        let given = self.given_installation()?;
        let installation = installation(&self.paths.state, given.clone()).map_err(refused)?;
        self.context_of(connected, waits, installation, given.is_some())
    }

    /// Returns the same for a command that changes nothing: it makes no installation id. None if there is none yet, so that
    /// there can be no machine either.
    pub fn reading_context(&self, connected: &Connected, waits: Waits) -> Result<Option<Context>, Failure> {
        let given = self.given_installation()?;
        let known = known_installation(&self.paths.state, given.clone()).map_err(refused)?;
        // Records may be here without the id that they were made under: it was given, or its file is lost.
        let known = match known {
            Some(known) => Some(known),
            None => self.recorded_installation()?,
        };
        known.map(|installation| self.context_of(connected, waits, installation, given.is_some())).transpose()
    }

    fn context_of(
        &self,
        connected: &Connected,
        waits: Waits,
        installation: Installation,
        installation_given: bool,
    ) -> Result<Context, Failure> {
        let ssh = self.ssh_files(installation.clone());
        let config = ssh.config_file();
        Ok(Context {
            accounts: connected.accounts.iter().map(|account| Arc::clone(&account.cloud)).collect(),
            unopened: connected
                .found_not_used
                .iter()
                .filter(|found| found.connected)
                .map(|found| (found.account.clone(), found.why.clone()))
                .collect(),
            registry: Registry::open(&self.paths.state).map_err(refused)?,
            watch: Watch::open(&self.paths.state).map_err(refused)?,
            switches: Board::open(&self.paths.state).map_err(refused)?,
            audit: Audit::open(&self.paths.state).map_err(refused)?,
            author: Author::here(),
            ssh,
            login: Client { ssh: self.program("ssh").unwrap_or_else(|| PathBuf::from("ssh")), config },
            keyscan: self.program("ssh-keyscan"),
            installation,
            installation_given,
            owner: self.config.defaults.owner.clone(),
            manage_ssh_config: self.config.ssh.manage_config.unwrap_or(true),
            cloud_timeout: waits.cloud_timeout.or(self.config.wait.cloud_timeout).unwrap_or(CLOUD_TIMEOUT),
            grace: self.config.wait.grace,
        })
    }

    /// Makes sure that the installation id can be read, if there is one.
    pub fn check_installation(&self) -> Result<(), String> {
        let given = self.given_installation().map_err(|failure| failure.message)?;
        known_installation(&self.paths.state, given).map(drop).map_err(|error| error.to_string())
    }

    /// Returns our ssh files.
    pub fn ssh_files(&self, installation: Installation) -> SshFiles {
        ssh_files_of(&self.paths, installation)
    }

    /// Returns a program of the system.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        program::find(self.env.path(&env::PATH).as_deref().map_or(OsStr::new(""), Path::as_os_str), name)
    }

    /// Returns the installation id that was given; the environment wins.
    pub fn given_installation(&self) -> Result<Option<Installation>, Failure> {
        match self.env.get(&env::GPUPROV_INSTALLATION) {
            Some(text) => {
                text.parse().map(Some).map_err(|error| refused(format!("GPUPROV_INSTALLATION: {error}")))
            }
            None => Ok(self.config.defaults.installation.clone()),
        }
    }
}

/// Returns the ssh files of an installation.
pub fn ssh_files_of(paths: &Paths, installation: Installation) -> SshFiles {
    let Paths { ssh, user_ssh_config, passwd_home, .. } = paths.clone();
    SshFiles::new(ssh, installation, user_ssh_config, passwd_home)
}

/// Returns the accounts that the filters let through. That none is connected at all is a failure with its own code.
pub fn select<'a>(connected: &'a Connected, filters: &[AccountFilter]) -> Result<Vec<&'a Account>, Failure> {
    let accounts = connected.select(filters).map_err(|error| match error {
        AccountsError::NotConnected(_) | AccountsError::NotUsed { .. } => {
            Failure::new(Kind::NoAccount, error.to_string())
        }
        other => refused(other),
    })?;
    if accounts.is_empty() {
        return Err(Failure::new(Kind::NoAccount, "no account is connected"));
    }
    Ok(accounts)
}
