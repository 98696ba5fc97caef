//! `gpuprov ssh`: the system's ssh, with our configuration first.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::context::{App, Waits};
use crate::cli::failure::usage;
use crate::cloud::Look;
use crate::model::account::AccountId;
use crate::model::machine::{MachineName, MachineState};
use crate::provision::Context;
use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::within;
use crate::provision::survey::{Sought, by_name, follow_address};
use crate::provision::wait::host_key_alias;
use crate::ssh::Block;
use crate::ssh::exec::Client;
use crate::state::installation::known_installation;
use crate::state::machines::{Entry, Registry};
use crate::state::record::{Record, RecordedSsh};

/// Opens ssh to a machine, or runs a command on it
///
/// Every word after NAME goes to ssh as it is: `gpuprov ssh dev nvidia-smi`, `gpuprov ssh dev -L 8888:localhost:8888`. It ends
/// with the remote command's code; what goes wrong on this side is 255.
#[derive(Args, Clone, Debug)]
pub struct Ssh {
    /// The machine, or USER@NAME
    name: String,
    /// Anything that ssh takes after the host
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    words: Vec<OsString>,
}

/// Our own words of a command line, and what goes to ssh.
#[derive(Debug, PartialEq, Eq)]
pub struct Split {
    /// The command line up to NAME, for our parser.
    pub ours: Vec<OsString>,
    /// Every word after NAME.
    pub words: Vec<OsString>,
    /// Whether it is `ssh`, which ends with the remote command's codes.
    pub is_ssh: bool,
}

/// Splits a command line of `gpuprov ssh` or `kubectl` at NAME, before a parser could take a word behind it for one of our
/// flags; none if it is another command's.
pub fn split(line: &[OsString]) -> Option<Split> {
    let command = plain_word(line, 1)?;
    if line.get(command).is_none_or(|word| word != "ssh" && word != "kubectl") {
        return None;
    }
    let end = plain_word(line, command + 1).map_or(line.len(), |name| name + 1);
    let is_ssh = line[command] == "ssh";
    Some(Split { ours: line[..end].to_vec(), words: line[end..].to_vec(), is_ssh })
}

/// Returns where the first word at or after `at` stands that is neither a flag nor a flag's value.
fn plain_word(line: &[OsString], mut at: usize) -> Option<usize> {
    while let Some(word) = line.get(at) {
        if word == "--" {
            return Some(at + 1).filter(|next| *next < line.len());
        }
        if !word.as_encoded_bytes().starts_with(b"-") {
            return Some(at);
        }
        // Our flags that take their value from the next word.
        at += if word == "--config" || word == "--color" { 2 } else { 1 };
    }
    None
}

impl Ssh {
    /// Sets what goes to ssh.
    pub fn say(&mut self, words: Vec<OsString>) {
        self.words = words;
    }
}

/// Replaces this process by ssh; returns only on failure.
pub async fn run(command: &Ssh, app: &App) -> Failure {
    match prepare(command, app).await {
        Err(failure) => failure,
        Ok((client, user, name)) => {
            let error = client.replace(user.as_deref(), name.as_str(), &command.words);
            Failure::new(Kind::Local, format!("ssh could not be started: {error}"))
        }
    }
}

async fn prepare(command: &Ssh, app: &App) -> Result<(Client, Option<String>, MachineName), Failure> {
    let (user, name) = match command.name.rsplit_once('@') {
        Some((user, name)) => (Some(user.to_owned()), name),
        None => (None, command.name.as_str()),
    };
    let name: MachineName = name.parse().map_err(usage)?;
    let ssh = program(app)?;
    Ok((reach(app, ssh, &name).await?, user, name))
}

/// Makes sure that our ssh files lead to the machine, and returns the client. A machine that runs is reached without asking any
/// cloud, and without reading more than its record.
pub(super) async fn reach(app: &App, ssh: PathBuf, name: &MachineName) -> Result<Client, Failure> {
    let known = known_installation(&app.paths.state, app.given_installation()?).map_err(local)?;
    if let Some(installation) = known {
        let registry = Registry::open(&app.paths.state).map_err(local)?;
        if let Some(Entry::Record(record)) = registry.read(name).map_err(local)?
            && record.state == MachineState::Running
            && record.ssh.is_some()
        {
            let files = app.ssh_files(installation);
            write_block_of(&files, &record)?;
            return Ok(Client { ssh, config: files.config_file() });
        }
    }
    look_first(app, name).await?;
    let installation = known_installation(&app.paths.state, app.given_installation()?).map_err(local)?;
    let Some(installation) = installation else {
        return Err(unknown(name));
    };
    let files = app.ssh_files(installation);
    Ok(Client { ssh, config: files.config_file() })
}

/// Returns the system's ssh.
pub(super) fn program(app: &App) -> Result<PathBuf, Failure> {
    app.program("ssh").ok_or_else(|| {
        Failure::new(Kind::Refused, "there is no `ssh` program in PATH").hint("install OpenSSH's client")
    })
}

/// Writes the block of a recorded machine again if it is not there: the state directory may have come from another computer.
fn write_block_of(files: &crate::ssh::SshFiles, record: &Record) -> Result<(), Failure> {
    let (Some(ssh), Some(attempt)) = (&record.ssh, record.current()) else { return Ok(()) };
    let Some(handle) = &attempt.handle else { return Ok(()) };
    let block = Block {
        name: record.name.clone(),
        address: ssh.address.clone(),
        identity_file: PathBuf::from(&ssh.identity_file),
        host_key_alias: host_key_alias(&attempt.account, &handle.id),
        host_key_known: ssh.host_key_known && files.known_hosts(&record.name).exists(),
    };
    files.write_block(&block).map(drop).map_err(|error| local(format!("our ssh files: {error}")))
}

/// Looks once at a machine that is not known to run, and says what it sees.
async fn look_first(app: &App, name: &MachineName) -> Result<(), Failure> {
    let waits = Waits::default();
    let connected = app.connect_for_machines(waits, &[])?;
    let context = app.context(&connected, waits)?;
    match by_name(&context, name).await.map_err(local)? {
        Sought::Recorded(name) => recorded(app, &context, &name).await,
        Sought::Found(account, found) => {
            let key = context.ssh.dir().join("id_ed25519");
            say(app, name, &account, &found.look);
            write_block(&context, name, &account, &found.handle.id, &found.look, &key, None)
        }
        Sought::Several(ids) => Err(Failure::new(
            Kind::Refused,
            format!("there are {} machines `{name}`: {}", ids.len(), ids.join(", ")),
        )),
        Sought::NotMine(what) => Err(Failure::new(Kind::Refused, what)),
        Sought::Nothing(failed) => match failed.first() {
            None => Err(unknown(name)),
            Some(error) => Err(Failure::from(error.as_ref())),
        },
    }
}

async fn recorded(app: &App, context: &Context, name: &MachineName) -> Result<(), Failure> {
    let entry = context.registry.read(name).map_err(local)?;
    let record = match entry {
        Some(Entry::Record(record)) => record,
        Some(Entry::Unreadable(unreadable)) => return Err(local(unreadable.into_error())),
        None => {
            return Err(Failure::new(Kind::Refused, format!("`{name}` is being created by another command")));
        }
    };
    let attempt = record.current().filter(|attempt| attempt.handle.is_some());
    let Some((attempt, handle)) = attempt.and_then(|attempt| Some((attempt, attempt.handle.as_ref()?)))
    else {
        return Err(Failure::new(
            Kind::Refused,
            format!("`{name}` has no machine yet (state `{}`)", record.state),
        )
        .hint(format!("`gpuprov ls {name}` shows how far it is")));
    };
    let Some(cloud) = context.account(&attempt.account) else {
        return Err(Failure::new(
            Kind::NoAccount,
            format!("the account {} is not connected", attempt.account),
        ));
    };
    let look = within(context.cloud_timeout, cloud, "looking at the machine", cloud.inspect(handle))
        .await
        .map_err(|error| Failure::from(error.as_ref()))?;
    say(app, name, &attempt.account, &look);
    let key = record
        .ssh
        .as_ref()
        .map_or_else(|| context.ssh.dir().join("id_ed25519"), |ssh| ssh.identity_file.clone().into());
    if !follow_address(context, &record, &look) {
        write_block(context, name, &attempt.account, &handle.id, &look, &key, record.ssh.as_ref())?;
    }
    Ok(())
}

fn say(app: &App, name: &MachineName, account: &AccountId, look: &Look) {
    let words = look.words.as_deref().map(|words| format!(" ({words})")).unwrap_or_default();
    app.output.progress(format!("{name} at {account} is {}{words}", look.state));
}

fn write_block(
    context: &Context,
    name: &MachineName,
    account: &AccountId,
    id: &str,
    look: &Look,
    key: &Path,
    known: Option<&RecordedSsh>,
) -> Result<(), Failure> {
    // Of several addresses the one that let us in before is kept.
    let kept = known.map(|known| &known.address).filter(|known| look.ssh.contains(known));
    let Some(address) = kept.or(look.ssh.first()) else {
        return Err(Failure::new(
            Kind::Refused,
            format!("`{name}` has no ssh address now (state `{}`)", look.state),
        )
        .hint(format!("`gpuprov ls {name}` shows how far it is")));
    };
    let block = Block {
        name: name.clone(),
        address: address.clone(),
        identity_file: key.to_owned(),
        host_key_alias: host_key_alias(account, id),
        host_key_known: known.is_some_and(|known| known.host_key_known),
    };
    context.ssh.write_block(&block).map(drop).map_err(|error| local(format!("our ssh files: {error}")))
}

fn unknown(name: &MachineName) -> Failure {
    Failure::new(Kind::Refused, format!("there is no machine `{name}`"))
        .hint("`gpuprov ls` shows what there is")
}

fn local(error: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Local, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<(String, String)> {
        let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let join = |words: Vec<OsString>| words.join(" ".as_ref()).into_string().unwrap();
        split(&line).map(|split| (join(split.ours), join(split.words)))
    }

    #[test]
    fn what_stands_after_the_name_is_ssh_s() {
        for (line, ours, words) in [
            ("g ssh dev", "g ssh dev", ""),
            ("g ssh dev -v true", "g ssh dev", "-v true"),
            ("g -v ssh --color never -q dev -q --config x", "g -v ssh --color never -q dev", "-q --config x"),
            ("g --config ssh ssh --color=never dev -- -v", "g --config ssh ssh --color=never dev", "-- -v"),
            ("g ssh -- dev --sandbox", "g ssh -- dev", "--sandbox"),
            ("g ssh --bogus dev true", "g ssh --bogus dev", "true"),
            ("g ssh --help", "g ssh --help", ""),
            ("g kubectl dev -- get pods -v 8", "g kubectl dev", "-- get pods -v 8"),
            ("g -q kubectl dev get pods -q", "g -q kubectl dev", "get pods -q"),
        ] {
            assert_eq!(of(line), Some((ours.to_owned(), words.to_owned())), "{line}");
        }
        for other in ["g", "g ls ssh", "g -v ls dev -v", "g --config ssh ls", "g --"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
