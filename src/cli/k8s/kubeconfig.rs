//! `gpuprov kubeconfig`: a file for other programs, which works while a tunnel is open.

use clap::Args;

use super::reach::{no_access, reach};
use crate::cli::context::App;
use crate::cli::failure::Exit;
use crate::cluster::access::{credentials, port_for};
use crate::cluster::kubeconfig::KubeFiles;
use crate::model::machine::MachineName;
use crate::provision::failure::{Failure, Kind};

/// Writes a kubeconfig for the cluster on a machine, and prints its path
///
/// The file works while `gpuprov k8s tunnel NAME` runs. Your own kubeconfig is never touched.
#[derive(Args, Clone, Debug)]
pub struct Kubeconfig {
    /// The machine
    name: MachineName,
}

/// Runs the command.
pub async fn run(command: &Kubeconfig, app: &App) -> Result<Exit, Failure> {
    let name = &command.name;
    let client = reach(app, name).await?;
    let access = match credentials(&client, name).await {
        Ok(access) => access,
        Err(error) => return Err(no_access(&client, name, error).await),
    };
    let files = KubeFiles::new(&app.paths.data);
    // A file that is there keeps its port: a tunnel may be open for it.
    let port = match files.port(name) {
        Some(port) => port,
        None => port_for(name).map_err(|error| Failure::new(Kind::Local, error.to_string()))?,
    };
    let path = files.write(name, &access.kubeconfig(name, port)).map_err(|error| {
        Failure::new(Kind::Local, format!("the kubeconfig could not be written: {error}"))
    })?;
    app.output.progress(format!(
        "it works while `gpuprov k8s tunnel {name}` runs: export KUBECONFIG='{}'",
        path.display()
    ));
    app.output.line(path.display());
    Ok(Exit::Done)
}
