//! What all commands about a cluster begin with: a way to the machine, and its record.

use serde_json::{Value, json};

use crate::cli::context::App;
use crate::cli::ssh;
use crate::cluster::access::AccessError;
use crate::cluster::status::{StatusError, ask};
use crate::cluster::{State, Status};
use crate::model::machine::MachineName;
use crate::provision::failure::{Failure, Kind};
use crate::ssh::exec::Client;
use crate::state::journal::Open;
use crate::state::machines::{Entry, Registry};
use crate::state::record::{Record, RecordedCluster};

/// Returns the ssh client that leads to the machine.
pub(super) async fn reach(app: &App, name: &MachineName) -> Result<Client, Failure> {
    ssh::reach(app, ssh::program(app)?, name).await
}

/// Returns the machine's record, if there is one.
pub(super) fn record(app: &App, name: &MachineName) -> Option<Box<Record>> {
    match Registry::open(&app.paths.state).ok()?.read(name) {
        Ok(Some(Entry::Record(record))) => Some(record),
        _ => None,
    }
}

/// Keeps what is known of the cluster. Comfort only: whoever works on the machine writes it, and a full disk stops nothing.
pub(super) fn keep(app: &App, name: &MachineName, cluster: &RecordedCluster) {
    let Ok(registry) = Registry::open(&app.paths.state) else { return };
    keep_in(&registry, name, cluster);
}

/// The same with the registry at hand.
pub(super) fn keep_in(registry: &Registry, name: &MachineName, cluster: &RecordedCluster) {
    let Ok(Some(Entry::Record(known))) = registry.read(name) else { return };
    if known.k8s.as_ref() == Some(cluster) {
        return;
    }
    let Ok(open) = registry.lock(name).map_err(drop).and_then(|lock| Open::resume(lock).map_err(drop)) else {
        return;
    };
    let _ = open.update(|record| record.k8s = Some(cluster.clone()));
}

/// Returns the `k8s` member of the JSON output.
pub(super) fn status_json(status: &Status) -> Value {
    json!({
        "state": status.state.as_str(),
        "version": status.version,
        "message": status.shown(),
        "step": status.step,
        "step_number": status.at,
        "steps": status.of,
        "warning": status.warned,
    })
}

/// Returns the failure of a login or an answer.
pub(super) fn unanswered(name: &MachineName, error: &StatusError) -> Failure {
    Failure::new(Kind::Local, format!("`{name}`: {error}")).hint(format!(
        "`gpuprov ssh {name} true` shows whether a login works, `gpuprov ls {name}` what it is doing"
    ))
}

/// Returns why there is no way to the cluster: how far its set-up is says more than a missing file.
pub(super) async fn no_access(client: &Client, name: &MachineName, error: AccessError) -> Failure {
    if !matches!(error, AccessError::NotYet(_)) {
        return Failure::new(Kind::Local, format!("`{name}`: {error}"));
    }
    match ask(client, name, "", std::time::Duration::ZERO).await {
        Ok(Some(status)) if status.state == State::Failed => not_ready(name, &status.shown()),
        Ok(Some(status)) => {
            Failure::new(Kind::Local, format!("the cluster on `{name}` is not ready yet: {}", status.shown()))
                .hint(format!("`gpuprov k8s setup {name}` waits for it"))
        }
        Ok(None) => none_begun(name),
        Err(_) => Failure::new(Kind::Local, format!("`{name}`: {error}")),
    }
}

/// Returns the failure of a cluster that is not there though it was asked for.
pub(super) fn not_ready(name: &MachineName, why: &str) -> Failure {
    let hint = format!(
        "the machine goes on running; `gpuprov k8s setup {name}` takes the set-up up again, and \
         `gpuprov ssh {name} sudo tail /var/log/gpuprov-k3s.log` shows what it did"
    );
    Failure::new(Kind::SetupFailed, format!("the cluster on `{name}` is not ready: {why}")).hint(hint)
}

/// Returns the failure where no cluster was ever begun.
pub(super) fn none_begun(name: &MachineName) -> Failure {
    Failure::new(Kind::Refused, format!("no cluster was begun on `{name}`"))
        .hint(format!("`gpuprov k8s setup {name}` sets one up"))
}
