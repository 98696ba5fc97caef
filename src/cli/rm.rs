//! `gpuprov rm`: remove machines, and prove that they are gone.

mod targets;

use clap::Args;
use futures_util::StreamExt;
use serde_json::{Map, Value, json};

use crate::cli::context::{App, Waits};
use crate::cli::failure::{Exit, usage};
use crate::cli::lists::split;
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::rm::targets::{everything, named, recorded};
use crate::cli::selection::parse_all;
use crate::cloud::ErrorKind;
use crate::cluster::kubeconfig::KubeFiles;
use crate::model::account::AccountId;
use crate::model::duration;
use crate::model::machine::MachineName;
use crate::provision::Context;
use crate::provision::cancel::{Cancel, Exposed};
use crate::provision::failure::{Failure, Kind};
use crate::provision::forget::forget;
use crate::provision::recover::sweep;
use crate::provision::remove::{Doomed, Kept, Removed, remove};

/// How many machines are removed at once: enough that fifty take little longer than one. The clouds' rate windows are kept by
/// each account's own limiter.
const AT_ONCE: usize = 64;

/// Removes machines with their disks, and looks that they are gone
#[derive(Args, Clone, Debug)]
pub struct Rm {
    /// Names, or ACCOUNT:ID with the cloud's own id (`runpod/default:5xpma5eg46tqjq`)
    #[arg(value_name = "NAME|ACCOUNT:ID", required_unless_present_any = ["all", "expired"], conflicts_with_all = ["all", "expired"])]
    targets: Vec<String>,
    /// Everything that plain `gpuprov ls` shows
    #[arg(long, conflicts_with = "expired")]
    all: bool,
    /// Every machine whose end (`--ttl`) is over
    #[arg(long)]
    expired: bool,
    /// With --all or --expired: only of these clouds and accounts
    #[arg(long, value_name = "LIST")]
    cloud: Vec<String>,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
    /// A machine that is not there is no failure
    #[arg(long)]
    ignore_not_found: bool,
    /// With ACCOUNT:ID: also a marked machine of another installation
    #[arg(long)]
    not_mine: bool,
    /// Drop only the record of a machine that can never be proven gone
    #[arg(long, conflicts_with_all = ["all", "expired", "not_mine"])]
    forget: bool,
    /// How long any one account may take to answer
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_some)]
    cloud_timeout: Option<std::time::Duration>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Something to remove, and what is shown of it before.
struct Target {
    doomed: Doomed,
    shown: String,
    sandbox: bool,
}

#[derive(Default)]
struct Outcome {
    removed: Vec<Removed>,
    kept: Vec<Kept>,
}

/// Runs the command.
pub async fn run(command: &Rm, app: &App, cancel: &Cancel) -> Result<Exit, Failure> {
    let mut outcome = Outcome::default();
    let result = work(command, app, cancel, &mut outcome).await;
    app.output.end_live();
    let mut fields = Map::new();
    fields.insert("removed".to_owned(), outcome.removed.iter().map(removed_json).collect());
    fields.insert("failed".to_owned(), outcome.kept.iter().map(kept_json).collect());
    app.output.document(fields, result.as_ref().err());
    result.map(|()| Exit::Done)
}

async fn work(command: &Rm, app: &App, cancel: &Cancel, outcome: &mut Outcome) -> Result<(), Failure> {
    if !(command.cloud.is_empty() || command.all || command.expired) {
        return Err(usage("--cloud goes with --all or --expired"));
    }
    if command.cloud.iter().any(|word| split(std::slice::from_ref(word)).is_empty()) {
        // An unset variable of a script must not turn "of this cloud" into "everything".
        return Err(usage("--cloud: nothing is given"));
    }
    let waits = Waits { cloud_timeout: command.cloud_timeout, boot_timeout: None };
    let connected = app.connect_for_machines(waits, &targets::named_accounts(command))?;
    let context = app.context(&connected, waits)?;
    // Whoever is told that this was interrupted must not take it for removed.
    let asked_for = match command.targets.is_empty() {
        true => "every machine that was to be removed".to_owned(),
        false => command.targets.join(", "),
    };
    let exposed = match command.targets.is_empty() {
        true => vec![asked_for.clone()],
        false => command.targets.clone(),
    };
    if !command.forget {
        for what in &exposed {
            cancel.exposure().add(&format!("rm {what}"), Exposed::named(what));
        }
    }
    let targets = async {
        if command.forget {
            forget_all(command, app, &context, outcome).await?;
            return Ok::<_, Failure>(Vec::new());
        }
        let targets = match command.all || command.expired {
            true => everything(command, &context, &connected, outcome).await?,
            false => named(command, &context, outcome).await?,
        };
        if !targets.is_empty() {
            confirm(command, app, &targets).await?;
        }
        Ok(targets)
    };
    // Until here nothing was changed anywhere, so that it can be dropped at any point.
    let targets = tokio::select! {
        targets = targets => targets?,
        () = cancel.cancelled() => {
            return Err(Failure::new(Kind::LeftRunning, format!("stopped; nothing was removed: {asked_for}")));
        }
    };
    if !targets.is_empty() {
        let progress = Progress::new(&app.output);
        let removals = targets
            .iter()
            .map(async |target| (remove(&context, &target.doomed, &progress, cancel).await, target.sandbox));
        let mut removals = futures_util::stream::iter(removals).buffer_unordered(AT_ONCE);
        while let Some((removal, sandbox)) = removals.next().await {
            app.output.end_live();
            let whose = if sandbox { " (sandbox)" } else { "" };
            match removal {
                Ok(removed) => {
                    let cost =
                        removed.cost.map(|cost| format!("; it cost {cost} (estimated)")).unwrap_or_default();
                    app.output.progress(format!("{} is gone{cost}{whose}", removed.name));
                    app.output.line(&removed.name);
                    forget_cluster(app, &removed.name);
                    outcome.removed.push(removed);
                }
                Err(kept) => outcome.kept.push(kept),
            }
        }
        let removed = outcome.removed.iter().filter_map(|removed| removed.account.clone());
        let kept_at = outcome.kept.iter().filter_map(|kept| kept.account.clone());
        let accounts: Vec<AccountId> = removed.chain(kept_at).collect();
        let swept = sweep(&context, |watched| accounts.contains(&watched.account), &progress, cancel).await;
        for left in swept.left {
            outcome.kept.push(left);
        }
    } else if command.all || command.expired {
        app.output.progress("nothing to remove");
    }
    for what in &exposed {
        cancel.exposure().remove(&format!("rm {what}"));
    }
    conclude(outcome, cancel)
}

/// Removes the credentials of a cluster that is gone with its machine.
fn forget_cluster(app: &App, name: &str) {
    if let Err(error) = KubeFiles::new(&app.paths.data).remove(name) {
        let text = format!("the kubeconfig of `{name}` could not be removed: {error}");
        app.output.warn(Kind::Note, None, Some(name), &text);
    }
}

async fn confirm(command: &Rm, app: &App, targets: &[Target]) -> Result<(), Failure> {
    for target in targets {
        let whose = if target.sandbox { " (sandbox)" } else { "" };
        app.output.progress(format!("to remove, with its disks: {}{whose}", target.shown));
    }
    if command.yes {
        return Ok(());
    }
    if !Output::can_ask() {
        return Err(usage("nothing was removed: without a terminal `rm` needs --yes"));
    }
    let whose = if targets.iter().all(|target| target.sandbox) { "sandbox: " } else { "" };
    let question = match targets.len() {
        1 => format!("{whose}remove it?"),
        count => format!("{whose}remove these {count}?"),
    };
    if app.output.ask(&question).await {
        Ok(())
    } else {
        Err(Failure::new(Kind::Refused, "nothing was removed"))
    }
}

async fn forget_all(
    command: &Rm,
    app: &App,
    context: &Context,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    let names: Vec<MachineName> = parse_all("NAME", &command.targets)?;
    for name in &names {
        let target = recorded(context, name.clone());
        let whose = if target.sandbox { " (sandbox)" } else { "" };
        app.output.progress(format!("to forget without removing anything: {}{whose}", target.shown));
    }
    if !command.yes {
        if !Output::can_ask() {
            return Err(usage("nothing was forgotten: without a terminal `rm --forget` needs --yes"));
        }
        if !app.output.ask("drop the records? What they speak of may go on costing money.").await {
            return Err(Failure::new(Kind::Refused, "nothing was forgotten"));
        }
    }
    for name in names {
        match forget(context, &name) {
            Ok(what) => {
                if let Some(what) = what {
                    let text = format!(
                        "the record of `{name}` is dropped; look at the cloud's own page: {what} may still cost money"
                    );
                    app.output.warn(Kind::LeftRunning, None, Some(name.as_str()), &text);
                }
                app.output.line(&name);
                forget_cluster(app, name.as_str());
                outcome.removed.push(Removed { name: name.to_string(), account: None, id: None, cost: None });
            }
            Err(kept) => outcome.kept.push(kept),
        }
    }
    Ok(())
}

/// Returns the one failure of the command: whatever may still run wins.
fn conclude(outcome: &Outcome, cancel: &Cancel) -> Result<(), Failure> {
    let left = outcome.kept.iter().find(|kept| kept.kind == Kind::LeftRunning);
    if let Some(worst) = left.or_else(|| outcome.kept.first()) {
        let all: Vec<String> =
            outcome.kept.iter().map(|kept| format!("{}: {}", kept.name, kept.message)).collect();
        return Err(Failure::new(worst.kind, all.join("\n")));
    }
    if cancel.is_cancelled() {
        return Err(Failure::new(Kind::Cloud(ErrorKind::Interrupted), "stopped"));
    }
    Ok(())
}

fn kept(name: &str, kind: Kind, message: String) -> Kept {
    Kept { name: name.to_owned(), account: None, id: None, kind, message }
}

/// Returns what may still exist in the form of a removal that failed.
pub fn exposed_json(exposed: &Exposed) -> Value {
    json!({
        "name": exposed.name, "account": exposed.account, "id": exposed.id,
        "kind": Kind::LeftRunning.as_str(), "message": "may still exist and cost money",
    })
}

fn removed_json(removed: &Removed) -> Value {
    json!({"name": removed.name, "account": removed.account, "id": removed.id, "cost": removed.cost})
}

fn kept_json(kept: &Kept) -> Value {
    json!({
        "name": kept.name, "account": kept.account, "id": kept.id,
        "kind": kept.kind.as_str(), "message": kept.message,
    })
}
