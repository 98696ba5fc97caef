//! What is asked on top of a machine that is ready: a startup script, and a cluster.

use crate::cluster::follow::{DEADLINE, follow};
use crate::cluster::{Plan, State, Status, pins};
use crate::model::duration::show;
use crate::model::want::Cluster;
use crate::provision::attempt::{Reason, Try};
use crate::provision::bookkeeping::{note_failure, note_running};
use crate::provision::cancel::Cancel;
use crate::provision::events::{Event, Events};
use crate::provision::wait::{NOTE, Ready};
use crate::provision::{Context, setup};
use crate::state::record::RecordedCluster;

/// What was asked on top of a machine and failed; the machine runs all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// Why the startup script failed.
    pub script: Option<String>,
    /// Why there is no cluster, where that matters for how the command ends.
    pub cluster: Option<String>,
}

/// Returns the cluster that the machine gets; none where none is wanted, or none can be had.
pub(super) fn plan(attempt: &Try<'_>) -> Option<Plan> {
    let capabilities = attempt.cloud.capabilities();
    let wanted = attempt.request.want.cluster != Cluster::Off && capabilities.has_cluster();
    wanted.then(|| Plan {
        name: attempt.open.name().clone(),
        gpus: attempt.offer.gpu_count,
        firewall: capabilities.is_open(),
    })
}

/// Returns what a record says of a cluster after its set-up was started, or was not.
pub fn begun(start: &Result<(), String>) -> RecordedCluster {
    let (state, message) = match start {
        Ok(()) => (State::Installing, None),
        Err(why) => (State::Failed, Some(format!("the set-up could not be started: {why}"))),
    };
    RecordedCluster { state: state.as_str().to_owned(), version: Some(pins::VERSION.to_owned()), message }
}

/// Does what was asked on top; what of it failed, or why the machine is given up before it ended.
pub(super) async fn extras(
    context: &Context,
    attempt: &Try<'_>,
    cluster: Option<&Plan>,
    ready: &mut Ready,
    events: &dyn Events,
    cancel: &Cancel,
) -> Result<Failed, Reason> {
    let Try { open, request, .. } = attempt;
    let work = async {
        let mut failed = Failed::default();
        if let Some(script) = &request.startup_script {
            events.event(Event::Step("running the startup script".to_owned()));
            failed.script = setup::run_script(&context.login, open.name(), script).await.err();
        }
        let Some(plan) = cluster else { return failed };
        if ready.look.cluster.is_none() {
            ready.look.cluster = Some(setup::start_cluster(&context.login, open.name(), plan).await);
        }
        let insisted = request.wait_cluster || request.want.cluster == Cluster::Insist;
        match &ready.look.cluster {
            Some(Err(why)) if insisted => failed.cluster = Some(format!("it could not be started: {why}")),
            Some(Ok(())) if request.wait_cluster => {
                // From here on it runs, whatever becomes of this process.
                note_failure(note_running(open, request, ready, failed.script.as_deref()), events);
                failed.cluster = wait(context, attempt, events).await;
            }
            _ => {}
        }
        failed
    };
    let wanted = async {
        while !open.is_wanted() {
            tokio::time::sleep(NOTE).await;
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Reason::Interrupted),
        () = wanted => Err(Reason::Wanted),
        failed = work => Ok(failed),
    }
}

/// Waits for the cluster; why it is not ready, if it is not.
async fn wait(context: &Context, attempt: &Try<'_>, events: &dyn Events) -> Option<String> {
    let open = attempt.open;
    events.event(Event::Step(format!("waiting for the cluster, {} at most", show(DEADLINE))));
    let mut told = |line: &str, status: &Status| {
        events.event(Event::Step(format!("cluster: {line}")));
        note_failure(open.update(|record| record.k8s = Some(status.recorded())), events);
    };
    let followed = follow(&context.login, open.name(), &mut told).await;
    if let Some(warned) = followed.status.and_then(|status| status.warned) {
        events.event(Event::Note { account: None, message: format!("cluster: {warned}") });
    }
    followed.problem
}
