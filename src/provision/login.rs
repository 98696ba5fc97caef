//! Proving that a login works, with the same client and configuration that the user gets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::cloud::{Cloud, HostKeys};
use crate::model::handle::Handle;
use crate::model::machine::{MachineName, SshAddress};
use crate::provision::Context;
use crate::ssh::Block;
use crate::ssh::exec::{LoginError, Output};
use crate::ssh::known_hosts::fingerprint;
use crate::ssh::probe::{self, Banner};

/// Between two knocks at the port.
const KNOCK: Duration = Duration::from_millis(250);
/// Between two logins, whether or not a banner ever comes: some networks let only a ProxyJump out.
const LOGIN: Duration = Duration::from_secs(5);
/// Between two logins where sshd answers but does not let us in yet.
const AGAIN: Duration = Duration::from_secs(1);
/// After a refused key.
const DENIED: Duration = Duration::from_secs(3);
/// Between two addresses of one machine: the better one may need a moment, and then it is to be preferred.
const FALL_BACK: Duration = Duration::from_secs(5);
/// So long a key is refused before the cloud is asked to let it in once more.
const READMIT: Duration = Duration::from_secs(10);
/// For one login with all that is done in it.
const LIMIT: Duration = Duration::from_secs(90);

/// Where the machine is and what is known of its host key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// Where ssh answers, the most preferred address first; never empty.
    pub addresses: Vec<SshAddress>,
    /// Its host key, as far as the cloud tells.
    pub keys: HostKeys,
}

/// How the attempt to log in ended.
#[derive(Debug)]
pub enum Login {
    /// It worked; this is what the command said.
    In {
        /// What the command said.
        output: Output,
        /// Where.
        address: SshAddress,
        /// Whether the host key was learnt over the cloud's API.
        host_key_known: bool,
    },
    /// It cannot work.
    Never(String),
}

/// What a login needs.
#[derive(Debug)]
pub struct Key<'a> {
    /// The machine's name, also the host's in our ssh configuration.
    pub name: &'a MachineName,
    /// The private key, or the public one whose private half an agent holds.
    pub identity_file: &'a PathBuf,
    /// The name under which the host key is kept.
    pub alias: &'a str,
    /// Its account.
    pub cloud: &'a Arc<dyn Cloud>,
    /// What it is there.
    pub handle: &'a Handle,
    /// The public key that it must admit, one `authorized_keys` line.
    pub public_key: &'a str,
}

/// One address of the machine, and how far it let us in.
struct Entrance {
    address: SshAddress,
    /// When it may be tried first.
    opens: Instant,
    /// When sshd first answered.
    answered: Option<Instant>,
    /// When the next login is due.
    due: Instant,
    /// When it first refused the key.
    denied: Option<Instant>,
}

impl Entrance {
    /// A fall-back is tried only when the addresses before it had their time. Whether or not a banner ever comes, a login is
    /// tried after a while.
    fn new(address: SshAddress, place: u32, now: Instant) -> Self {
        let opens = now + FALL_BACK * place;
        Entrance { address, opens, answered: None, due: opens + LOGIN, denied: None }
    }

    fn shown(&self) -> String {
        format!("{}:{}", self.address.host(), self.address.port())
    }

    /// Whether it goes on refusing the key for longer than keys take.
    fn is_shut(&self, grace: Duration) -> bool {
        self.denied.is_some() && self.answered.is_some_and(|since| since.elapsed() > grace)
    }
}

/// Returns the addresses of now in their order, with what is known of those that were named before.
fn entrances(mut before: Vec<Entrance>, door: &Door) -> Vec<Entrance> {
    let now = Instant::now();
    let entrance = |(place, address): (usize, &SshAddress)| {
        let known = before.iter().position(|entrance| entrance.address == *address);
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        known.map_or_else(|| Entrance::new(address.clone(), place, now), |at| before.swap_remove(at))
    };
    door.addresses.iter().enumerate().map(entrance).collect()
}

/// Knocks and logs in until a login works, running `command` with `script` on its standard input in it. Of several addresses
/// the first that lets us in is the machine's. `last` always holds the newest reason why it did not work yet.
pub async fn log_in(
    context: &Context,
    key: &Key<'_>,
    mut door: watch::Receiver<Option<Door>>,
    command: (&str, &[u8]),
    last: &watch::Sender<String>,
) -> Login {
    let capabilities = key.cloud.capabilities();
    let mut ways: Vec<Entrance> = Vec::new();
    let mut session = Session { context, key, command, last, prepared: None, readmitted: false };
    loop {
        let Some(at) = door.borrow_and_update().clone() else {
            if door.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            continue;
        };
        ways = entrances(ways, &at);
        for way in ways.iter_mut().filter(|way| way.opens <= Instant::now()) {
            // One banner is enough: servers count connections without a login against their caller.
            if way.answered.is_none() {
                match probe::banner(&way.address, Duration::from_secs(2)).await {
                    Banner::Ssh => {
                        way.answered = Some(Instant::now());
                        way.due = Instant::now();
                    }
                    other => {
                        last.send_replace(format!("ssh at {}: {}", way.shown(), words(&other)));
                    }
                }
            }
            let keys_due = at.keys == HostKeys::Unknown
                && way.answered.is_some_and(|since| since.elapsed() < capabilities.host_key_grace);
            if keys_due || Instant::now() < way.due {
                continue;
            }
            if let Some(end) = session.enter(way, &at.keys).await {
                return end;
            }
        }
        let grace = capabilities.key_grace;
        let answering: Vec<&Entrance> = ways.iter().filter(|way| way.answered.is_some()).collect();
        if !answering.is_empty() && answering.iter().all(|way| way.is_shut(grace)) {
            let shut: Vec<String> = answering.iter().map(|way| way.shown()).collect();
            return Login::Never(format!(
                "sshd at {} does not take the key {} (permission denied)",
                shut.join(" and "),
                key.identity_file.display()
            ));
        }
        tokio::time::sleep(KNOCK).await;
    }
}

/// What all logins to one machine have in common.
struct Session<'a> {
    context: &'a Context,
    key: &'a Key<'a>,
    command: (&'a str, &'a [u8]),
    last: &'a watch::Sender<String>,
    /// For which address and host keys our ssh files are written, and whether the host key is known.
    prepared: Option<(SshAddress, HostKeys, bool)>,
    readmitted: bool,
}

impl Session<'_> {
    /// Logs in once; returns how it ended if nothing more is to be tried.
    async fn enter(&mut self, way: &mut Entrance, keys: &HostKeys) -> Option<Login> {
        way.due = Instant::now() + if way.answered.is_some() { AGAIN } else { LOGIN };
        let known = match self.prepare(&way.address, keys).await {
            Ok(known) => known,
            Err(why) => {
                self.last.send_replace(why);
                return None;
            }
        };
        let Session { context, key, command: (command, script), last, .. } = self;
        match context.login.run(key.name.as_str(), command, script, LIMIT).await {
            Ok(output) if output.code == Some(255) || output.code.is_none() => {
                last.send_replace("the connection broke off".to_owned());
            }
            Ok(output) => {
                return Some(Login::In { output, address: way.address.clone(), host_key_known: known });
            }
            Err(LoginError::PermissionDenied { .. }) => {
                let words =
                    format!("does not take the key {} yet (permission denied)", key.identity_file.display());
                last.send_replace(format!("sshd at {} {words}", way.shown()));
                // Servers count refused logins against their caller too.
                way.due = Instant::now() + DENIED;
                let since = *way.denied.get_or_insert_with(Instant::now);
                if !self.readmitted && since.elapsed() > READMIT {
                    self.readmitted = true;
                    if let Err(error) = key.cloud.readmit(key.handle, key.public_key).await {
                        last.send_replace(error.message.clone());
                    }
                }
            }
            Err(LoginError::Misconfigured(why)) => {
                return Some(Login::Never(format!("ssh's configuration: {why}")));
            }
            Err(LoginError::HostKeyChanged) if !known => {
                // Nobody has used this machine yet, and a container that starts again makes new keys.
                last.send_replace("the host key changed while it started".to_owned());
                let _ = context.ssh.clear_known_hosts(key.name);
                self.prepared = None;
            }
            Err(error) => {
                last.send_replace(error.to_string());
            }
        }
        None
    }

    /// Makes our ssh files right for an address; returns whether its host key is known.
    async fn prepare(&mut self, address: &SshAddress, keys: &HostKeys) -> Result<bool, String> {
        match &self.prepared {
            Some((at, with, known)) if at == address && with == keys => return Ok(*known),
            Some((at, _, false)) if at != address => {
                // Behind another address there may be another host key, and nobody has used this machine yet.
                let _ = self.context.ssh.clear_known_hosts(self.key.name);
            }
            _ => {}
        }
        self.prepared = None;
        let known = prepare(self.context, self.key, address, keys).await?;
        self.prepared = Some((address.clone(), keys.clone(), known));
        Ok(known)
    }
}

fn words(banner: &Banner) -> String {
    match banner {
        Banner::Ssh => "answers".to_owned(),
        Banner::Refused => "nothing listens yet".to_owned(),
        Banner::Silent => "no answer".to_owned(),
        Banner::NotSsh(line) => format!("something else answers: {line}"),
        Banner::Unreachable(why) => why.clone(),
    }
}

/// Writes the machine's block and, where the cloud told them, its host keys; returns whether the key is known.
async fn prepare(
    context: &Context,
    key: &Key<'_>,
    address: &SshAddress,
    keys: &HostKeys,
) -> Result<bool, String> {
    let known = match keys {
        HostKeys::Unknown => false,
        HostKeys::Keys(keys) => {
            context
                .ssh
                .set_known_hosts(key.name, key.alias, keys)
                .map_err(|error| format!("the host keys could not be written: {error}"))?;
            true
        }
        HostKeys::Fingerprints(expected) => {
            // Without the scanner the key cannot be compared: the first contact is trusted, as where nothing is known.
            match &context.keyscan {
                None => false,
                Some(program) => {
                    let seen = probe::scan(program, address, Duration::from_secs(5))
                        .await
                        .map_err(|error| format!("reading the host key: {error}"))?;
                    let proven: Vec<String> = seen
                        .into_iter()
                        .filter(|line| fingerprint(line).is_some_and(|print| expected.contains(&print)))
                        .collect();
                    if proven.is_empty() {
                        return Err("the host key is not the one that the cloud's log names".to_owned());
                    }
                    context
                        .ssh
                        .set_known_hosts(key.name, key.alias, &proven)
                        .map_err(|error| format!("the host keys could not be written: {error}"))?;
                    true
                }
            }
        }
    };
    let block = Block {
        name: key.name.clone(),
        address: address.clone(),
        identity_file: key.identity_file.clone(),
        host_key_alias: key.alias.to_owned(),
        host_key_known: known,
    };
    context
        .ssh
        .write_block(&block)
        .map_err(|error| format!("our ssh configuration could not be written: {error}"))?;
    Ok(known)
}
