//! `gpuprov k8s setup`: begins the set-up, or takes it up again, and waits for it.

use clap::Args;

use super::reach::{keep, not_ready, reach, record, status_json};
use crate::cli::context::{App, Waits};
use crate::cli::failure::{Exit, refused};
use crate::cloud::{ErrorKind, Support};
use crate::cluster::follow::{DEADLINE, follow};
use crate::cluster::{Plan, Status};
use crate::model::duration::show;
use crate::model::machine::{MachineName, MachineState};
use crate::provision::cancel::Cancel;
use crate::provision::extras::begun;
use crate::provision::failure::{Failure, Kind};
use crate::provision::setup::start_cluster;

#[derive(Args, Clone, Debug)]
pub(super) struct Setup {
    /// The machine
    pub(super) name: MachineName,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) async fn run(command: &Setup, app: &App, cancel: &Cancel) -> Result<Exit, Failure> {
    let mut fields = super::members(&command.name);
    let mut last = None;
    let result = tokio::select! {
        result = work(command, app, &mut last) => result,
        () = cancel.cancelled() => Err(Failure::new(
            Kind::Cloud(ErrorKind::Interrupted),
            "no longer waited for; the set-up goes on there",
        )),
    };
    if let Some(status) = &last {
        fields.insert("k8s".to_owned(), status_json(status));
    }
    app.output.document(fields, result.as_ref().err());
    result.map(|()| Exit::Done)
}

async fn work(command: &Setup, app: &App, last: &mut Option<Status>) -> Result<(), Failure> {
    let name = &command.name;
    let plan = plan(app, name)?;
    let client = reach(app, name).await?;
    let start = start_cluster(&client, name, &plan).await;
    keep(app, name, &begun(&start));
    if let Err(why) = start {
        return Err(not_ready(name, &format!("the set-up could not be started: {why}")));
    }
    app.output.progress(format!("the cluster on {name} is being set up, {} at most", show(DEADLINE)));
    let mut told = |line: &str, status: &Status| {
        app.output.progress(format!("{name}: {line}"));
        keep(app, name, &status.recorded());
        *last = Some(status.clone());
    };
    let followed = follow(&client, name, &mut told).await;
    let warned = followed.status.as_ref().and_then(|status| status.warned.clone());
    if let Some(warned) = warned {
        app.output.warn(Kind::Note, None, Some(name.as_str()), &warned);
    }
    match followed.problem {
        None => {
            app.output
                .progress(format!("the cluster on {name} is ready: `gpuprov kubectl {name} -- get nodes`"));
            app.output.line(name);
            Ok(())
        }
        Some(why) => Err(not_ready(name, &why)),
    }
}

/// Returns what the cluster is to be, from the machine's record and what its cloud can do.
fn plan(app: &App, name: &MachineName) -> Result<Plan, Failure> {
    let Some(record) = record(app, name) else {
        return Err(refused(format!("there is no record of `{name}` on this computer"))
            .hint("run it where the machine was made, or with a copy of its state directory"));
    };
    let Some(attempt) = record.current().filter(|_| record.state == MachineState::Running) else {
        return Err(refused(format!("`{name}` is not running (state `{}`)", record.state)));
    };
    // No cloud is asked anything: what it can do is known without.
    let waits = Waits::default();
    let connected = app.connect_for_machines(waits, &[])?;
    let account = connected.accounts.iter().find(|account| *account.id() == attempt.account);
    let Some(account) = account else {
        let message = format!("the account {} is not connected", attempt.account);
        return Err(Failure::new(Kind::NoAccount, message));
    };
    let capabilities = account.cloud.capabilities();
    if let Support::No(why) = capabilities.cluster {
        let message = format!("no Kubernetes on {}: {why}", capabilities.cloud.title());
        return Err(Failure::new(Kind::Unsupported, message));
    }
    Ok(Plan { name: name.clone(), gpus: attempt.offer.gpu_count, firewall: capabilities.is_open() })
}
