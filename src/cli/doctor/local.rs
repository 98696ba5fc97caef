//! This computer: programs, directories, configuration, the key.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{AccessFlags, access};

use super::Checks;
use crate::cli::context::{App, ssh_files_of};
use crate::model::mark::Installation;
use crate::provision::failure::Failure;
use crate::ssh::exec::agent_socket;
use crate::ssh::keys::{self, Programs};
use crate::ssh::{SshFiles, examine};
use crate::state::env;
use crate::state::installation::known_installation;

/// Looks for the programs of OpenSSH.
pub(super) async fn programs(app: &App, checks: &mut Checks) {
    const INSTALL: &str = "install OpenSSH's client";
    for name in ["ssh", "ssh-keygen", "ssh-keyscan", "ssh-add"] {
        let Some(program) = app.program(name) else {
            checks.bad(name, format!("there is no `{name}` program in PATH"), INSTALL);
            continue;
        };
        if name != "ssh" {
            checks.good(name, program.display().to_string());
            continue;
        }
        let (major, minor) = examine::OLDEST;
        match examine::version(&program).await {
            Err(why) => checks.bad(name, format!("`{}` cannot be run: {why}", program.display()), INSTALL),
            Ok(words) => match examine::number(&words) {
                Some(number) if number >= examine::OLDEST => checks.good(name, words),
                Some(_) => checks.bad(
                    name,
                    format!("{words} is too old for the configuration that gpuprov writes"),
                    format!("install OpenSSH {major}.{minor} or later"),
                ),
                None => checks.bad(
                    name,
                    format!("`{}` does not say that it is OpenSSH: {words}", program.display()),
                    format!("put OpenSSH {major}.{minor} or later first in PATH"),
                ),
            },
        }
    }
}

/// Looks at the directories: whose they are, who can enter them, whether they can be written.
pub(super) fn directories(app: &App, checks: &mut Checks) {
    let paths = &app.paths;
    for (name, path) in
        [("state", &paths.state), ("data", &paths.data), ("cache", &paths.cache), ("ssh files", &paths.ssh)]
    {
        directory(name, path, checks);
    }
    if let Some(folder) = paths.user_ssh_config.as_deref().and_then(Path::parent)
        && let Ok(metadata) = fs::metadata(folder)
    {
        let shown = folder.display();
        if metadata.mode() & 0o022 != 0 {
            checks.bad("ssh folder", format!("others can write to `{shown}`"), format!("chmod go-w {shown}"));
        } else {
            checks.good("ssh folder", shown.to_string());
        }
    }
}

fn directory(name: &str, path: &Path, checks: &mut Checks) {
    let shown = path.display();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.ancestors().skip(1).find(|parent| parent.exists()).unwrap_or(Path::new("/"));
            return match access(parent, AccessFlags::W_OK | AccessFlags::X_OK) {
                Ok(()) => checks.good(name, format!("`{shown}` will be made when it is needed")),
                Err(error) => checks.bad(
                    name,
                    format!(
                        "`{shown}` is missing and cannot be made: {}: {}",
                        parent.display(),
                        error.desc()
                    ),
                    format!("make `{shown}`, or name another place in its variable"),
                ),
            };
        }
        Err(error) => return checks.bad(name, format!("`{shown}`: {error}"), "make it a directory of yours"),
    };
    let user = nix::unistd::geteuid().as_raw();
    if !metadata.is_dir() {
        checks.bad(
            name,
            format!("`{shown}` is not a directory"),
            format!("move it away: mv {shown} {shown}.old"),
        );
    } else if metadata.uid() != user {
        let message = format!("`{shown}` belongs to another user (uid {}, not {user})", metadata.uid());
        checks.bad(name, message, format!("chown -R {user} {shown}, or name another place in its variable"));
    } else if metadata.mode() & 0o077 != 0 {
        checks.bad(name, format!("others can enter `{shown}`"), format!("chmod 700 {shown}"));
    } else if let Err(error) = access(path, AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK) {
        checks.bad(
            name,
            format!("`{shown}` cannot be written: {}", error.desc()),
            format!("chmod 700 {shown}"),
        );
    } else {
        checks.good(name, shown.to_string());
    }
}

/// Tells what is wrong with the configuration.
pub(super) fn config(app: &App, problem: Option<&Failure>, checks: &mut Checks) {
    let config = &app.config;
    let shown = config.path.display();
    if let Some(problem) = problem {
        checks.bad("config", &problem.message, format!("correct `{shown}`"));
    } else if !config.path.exists() {
        checks.good("config", format!("there is no `{shown}`, and none is needed"));
    } else if config.readable_by_others && config.has_secret() {
        checks.bad(
            "config",
            format!("`{shown}` holds a secret and can be read by others"),
            format!("chmod 600 {shown}"),
        );
    } else {
        checks.good("config", shown.to_string());
    }
    for name in app.env.unreadable() {
        checks.bad(
            "environment",
            format!("the variable {name} is not UTF-8 and is passed over"),
            format!("unset {name}"),
        );
    }
}

/// Looks whether the key can log in without a question.
pub(super) async fn key(app: &App, checks: &mut Checks) {
    let configured =
        match app.config.ssh.key.as_deref().map(|path| app.paths.resolve(path, app.config.folder())) {
            Some(Err(error)) => {
                return checks.bad("key", error.to_string(), "correct `ssh.key` in the config file");
            }
            Some(Ok(path)) => Some(path),
            None => None,
        };
    let own = app.paths.ssh.join("id_ed25519");
    if configured.is_none() && !own.exists() {
        return checks.good("key", format!("`{}` will be made at the first `provision`", own.display()));
    }
    let (Some(ssh), Some(ssh_keygen)) = (app.program("ssh"), app.program("ssh-keygen")) else {
        return checks.bad(
            "key",
            "it cannot be looked at without ssh and ssh-keygen",
            "install OpenSSH's client",
        );
    };
    let user_config = app.paths.user_ssh_config.clone().filter(|path| path.exists());
    let from_env = app.env.get(&env::SSH_AUTH_SOCK);
    let socket = agent_socket(&ssh, user_config.as_deref(), "gpuprov-machine", from_env).await;
    let programs = Programs { ssh_keygen, ssh_add: app.program("ssh-add") };
    // Named, the pair is only looked at; a missing half of our own would be made otherwise.
    let path = configured.unwrap_or(own);
    match keys::resolve(Some(&path), &app.paths.ssh, &programs, socket.as_deref()).await {
        Ok(pair) => {
            let by = if pair.by_agent { ", by the agent" } else { "" };
            checks.good("key", format!("{}{by}", pair.identity_file.display()));
        }
        // The message says what to run.
        Err(error) => {
            checks.bad("key", error.to_string(), "do what the message says, or name another key in `ssh.key`")
        }
    }
}

/// Compares HOME with the password database, which ssh goes by.
pub(super) fn home(app: &App, checks: &mut Checks) {
    match files(app).and_then(|files| files.plain_ssh_note()) {
        Some(note) => checks.bad("home", note, "use `gpuprov ssh NAME`, which works all the same"),
        None => checks.good("home", "gpuprov and ssh read the same configuration"),
    }
}

/// Returns our ssh files; where no installation is known yet, those of one that has none.
pub(super) fn files(app: &App) -> Option<SshFiles> {
    let known =
        app.given_installation().ok().and_then(|given| known_installation(&app.paths.state, given).ok());
    let installation: Option<Installation> = known.flatten().or_else(|| "none".parse().ok());
    installation.map(|installation| ssh_files_of(&app.paths, installation))
}
