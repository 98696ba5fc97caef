//! `gpuprov kubectl`: the system's kubectl, through a tunnel that lives as long as it does.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use clap::Args;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::reach::{no_access, reach};
use crate::cli::context::App;
use crate::cli::failure::{Exit, refused};
use crate::cluster::access::{credentials, open};
use crate::cluster::kubeconfig::KubeFiles;
use crate::model::machine::MachineName;
use crate::model::secret::VARIABLES;
use crate::provision::failure::{Failure, Kind};

/// Runs kubectl on the cluster of a machine, through its ssh connection
///
/// Every word after NAME goes to kubectl as it is: `gpuprov kubectl dev -- get pods -A`. It ends with kubectl's code.
#[derive(Args, Clone, Debug)]
pub struct Kubectl {
    /// The machine
    name: MachineName,
    /// Anything that kubectl takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    words: Vec<OsString>,
}

impl Kubectl {
    /// Sets what goes to kubectl.
    pub fn say(&mut self, words: Vec<OsString>) {
        self.words = words;
    }
}

/// Runs the command.
pub async fn run(command: &Kubectl, app: &App) -> Result<Exit, Failure> {
    let name = &command.name;
    let Some(kubectl) = app.program("kubectl") else {
        return Err(refused("there is no `kubectl` program in PATH").hint(format!(
            "install it (kubernetes.io, tools), or use the machine's own: `gpuprov ssh {name} sudo k3s kubectl get pods`"
        )));
    };
    let client = reach(app, name).await?;
    // Two logins at once: one for the credentials, one for the tunnel.
    let (access, tunnel) = tokio::join!(credentials(&client, name), open(&client, name, None));
    let access = match access {
        Ok(access) => access,
        Err(error) => return Err(no_access(&client, name, error).await),
    };
    let (tunnel, port) = tunnel.map_err(local)?;
    let files = KubeFiles::new(&app.paths.data);
    let file = files.passing(name, &access.kubeconfig(name, port)).map_err(local)?;
    let words = command.words.strip_prefix(&[OsString::from("--")][..]).unwrap_or(&command.words);
    let mut child = Command::new(&kubectl);
    child.args(words).env("KUBECONFIG", file.path()).kill_on_drop(true);
    for variable in VARIABLES {
        child.env_remove(variable);
    }
    let mut child = child.spawn().map_err(|error| local(format!("kubectl could not be started: {error}")))?;
    let status = wait(&mut child).await.map_err(local)?;
    let said = tunnel.words();
    if !status.success() && !said.is_empty() {
        app.output.progress(format!("the tunnel said: {said}"));
        if said.contains("prohibited") {
            app.output.progress(format!(
                "sshd on the machine forbids forwarding; `gpuprov k8s setup {name}` allows it"
            ));
        }
    }
    Ok(Exit::Other(code(status)))
}

/// Waits for kubectl. Ctrl-C at the terminal reaches it by itself, and it decides; TERM and HUP are passed on.
async fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    loop {
        let passed_on = tokio::select! {
            status = child.wait() => return status,
            _ = interrupt.recv() => None,
            _ = terminate.recv() => Some(nix::sys::signal::Signal::SIGTERM),
            _ = hangup.recv() => Some(nix::sys::signal::Signal::SIGHUP),
        };
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        if let (Some(signal), Some(pid)) = (passed_on, pid) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(1)
}

fn local(error: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Local, error.to_string())
}
