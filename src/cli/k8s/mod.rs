//! `gpuprov k8s`, `kubectl` and `kubeconfig`: the cluster on a machine.

pub mod kubeconfig;
pub mod kubectl;
mod reach;
pub mod refresh;
mod setup;
mod status;
mod tunnel;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::cli::context::App;
use crate::cli::failure::Exit;
use crate::model::machine::MachineName;
use crate::provision::cancel::Cancel;
use crate::provision::failure::Failure;

/// Looks after the Kubernetes cluster on a machine
#[derive(Args, Clone, Debug)]
pub struct K8s {
    #[command(subcommand)]
    command: K8sCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum K8sCommand {
    /// Sets the cluster up, or takes the set-up up again, and waits until it is ready
    ///
    /// What is done already is not done again. It ends with 7 when the cluster does not get ready; the machine goes on running.
    Setup(setup::Setup),
    /// Tells how far the cluster is
    Status(status::StatusCommand),
    /// Keeps a tunnel to the cluster open for the file that `gpuprov kubeconfig` wrote, until Ctrl-C
    Tunnel(tunnel::TunnelCommand),
}

impl K8s {
    /// Whether one JSON document is asked for.
    pub fn wants_json(&self) -> bool {
        match &self.command {
            K8sCommand::Setup(command) => command.json,
            K8sCommand::Status(command) => command.json,
            K8sCommand::Tunnel(_) => false,
        }
    }

    /// Returns the members of the JSON output as they are before anything is known.
    pub fn members(&self) -> Map<String, Value> {
        let name = match &self.command {
            K8sCommand::Setup(command) => &command.name,
            K8sCommand::Status(command) => &command.name,
            K8sCommand::Tunnel(command) => &command.name,
        };
        members(name)
    }
}

fn members(name: &MachineName) -> Map<String, Value> {
    [("name".to_owned(), json!(name)), ("k8s".to_owned(), Value::Null)].into_iter().collect()
}

/// Runs the command.
pub async fn run(command: &K8s, app: &App, cancel: &Cancel) -> Result<Exit, Failure> {
    match &command.command {
        K8sCommand::Setup(command) => setup::run(command, app, cancel).await,
        K8sCommand::Status(command) => status::run(command, app, cancel).await,
        K8sCommand::Tunnel(command) => tunnel::run(command, app, cancel).await,
    }
}
