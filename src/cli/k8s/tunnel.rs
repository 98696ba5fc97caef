//! `gpuprov k8s tunnel`: keeps the way open for the file that `gpuprov kubeconfig` wrote.

use std::time::{Duration, Instant};

use clap::Args;

use super::reach::{no_access, reach};
use crate::cli::context::App;
use crate::cli::failure::Exit;
use crate::cluster::access::{credentials, open, port_for};
use crate::cluster::kubeconfig::KubeFiles;
use crate::model::machine::MachineName;
use crate::provision::cancel::Cancel;
use crate::provision::failure::{Failure, Kind};
use crate::ssh::exec::Client;
use crate::ssh::tunnel::Tunnel;

/// So long a lost connection is tried again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two tries.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Args, Clone, Debug)]
pub(super) struct TunnelCommand {
    /// The machine
    pub(super) name: MachineName,
}

pub(super) async fn run(command: &TunnelCommand, app: &App, cancel: &Cancel) -> Result<Exit, Failure> {
    tokio::select! {
        failure = hold(app, &command.name) => Err(failure),
        // That is how it is ended.
        () = cancel.cancelled() => Ok(Exit::Done),
    }
}

/// Holds the tunnel; returns only when there is none any more.
async fn hold(app: &App, name: &MachineName) -> Failure {
    let (client, mut tunnel, port) = match begin(app, name).await {
        Ok(begun) => begun,
        Err(failure) => return failure,
    };
    loop {
        tunnel.down().await;
        app.output.progress("the connection was lost; connecting again");
        let lost = Instant::now();
        tunnel = loop {
            // The file names the port: another one would be of no use.
            match client.tunnel(name.as_str(), port, crate::cluster::API_PORT).await {
                Ok(tunnel) => break tunnel,
                Err(error) if lost.elapsed() > PATIENCE => {
                    return Failure::new(
                        Kind::Local,
                        format!("the tunnel to `{name}` could not be opened again: {error}"),
                    )
                    .hint(format!("`gpuprov ls {name}` shows what the machine is doing"));
                }
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        };
        app.output.progress("connected again");
    }
}

async fn begin(app: &App, name: &MachineName) -> Result<(Client, Tunnel, u16), Failure> {
    let client = reach(app, name).await?;
    let access = match credentials(&client, name).await {
        Ok(access) => access,
        Err(error) => return Err(no_access(&client, name, error).await),
    };
    let files = KubeFiles::new(&app.paths.data);
    let known = files.port(name);
    let wanted = match known {
        Some(port) => port,
        None => port_for(name).map_err(local)?,
    };
    let (tunnel, port) = open(&client, name, Some(wanted)).await.map_err(local)?;
    if known.is_some_and(|known| known != port) {
        app.output.progress(format!("port {wanted} is taken: the kubeconfig has port {port} from now on"));
    }
    let path = files.write(name, &access.kubeconfig(name, port)).map_err(local)?;
    app.output.progress(format!(
        "the tunnel to {name} is open until Ctrl-C: export KUBECONFIG='{}'",
        path.display()
    ));
    app.output.line(path.display());
    Ok((client, tunnel, port))
}

fn local(error: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Local, error.to_string())
}
