//! `gpuprov ls`: the machines of this installation, recorded here or not.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::accounts::registry::Connected;
use crate::cli::asking::{failed_json, warn_failed};
use crate::cli::context::{App, Waits};
use crate::cli::failure::Exit;
use crate::cli::k8s::refresh::refresh;
use crate::cli::output::Output;
use crate::cli::view::{costs_now, failed_cluster, machine_json, machine_table};
use crate::cloud::ErrorKind;
use crate::model::duration;
use crate::model::machine::MachineName;
use crate::model::money::Usd;
use crate::provision::acquire::worst;
use crate::provision::cancel::Cancel;
use crate::provision::failure::{Failure, Kind};
use crate::provision::survey::{LeftOver, Scope, Survey, survey};

/// Lists machines: those of this installation, recorded here or not
#[derive(Args, Clone, Debug)]
pub struct Ls {
    /// Only these
    names: Vec<MachineName>,
    /// Every machine in the connected accounts that carries gpuprov's marks, whoever made it
    #[arg(long, conflicts_with = "local")]
    all: bool,
    /// What this computer knows, without asking any cloud
    #[arg(long)]
    local: bool,
    /// How long any one account may take to answer
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_some)]
    cloud_timeout: Option<std::time::Duration>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub async fn run(command: &Ls, app: &App, cancel: &Cancel) -> Result<Exit, Failure> {
    let mut fields = Map::new();
    fields.extend(["machines", "left_over", "failed"].map(|name| (name.to_owned(), json!([]))));
    let result = list(command, app, cancel, &mut fields).await;
    app.output.document(fields, result.as_ref().err());
    result.map(|()| Exit::Done)
}

async fn list(
    command: &Ls,
    app: &App,
    cancel: &Cancel,
    fields: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let scope = match (command.local, command.all) {
        (true, _) => Scope::Local,
        (_, true) => Scope::All,
        _ => Scope::Mine,
    };
    let waits = Waits { cloud_timeout: command.cloud_timeout, boot_timeout: None };
    let connected = if command.local { Connected::default() } else { app.connect_for_machines(waits, &[])? };
    // Whoever has no installation id has made no machine, but with --all others' are shown too.
    let context = if command.all {
        Some(app.context(&connected, waits)?)
    } else {
        app.reading_context(&connected, waits)?
    };
    let Some(context) = context else {
        if connected.accounts.is_empty() && !command.local {
            return Err(Failure::new(Kind::NoAccount, "no account is connected"));
        }
        app.output.progress("no machines");
        return Ok(());
    };
    let mut survey = tokio::select! {
        survey = survey(&context, scope) => survey.map_err(crate::cli::failure::refused)?,
        () = cancel.cancelled() => return Err(Failure::new(Kind::Cloud(ErrorKind::Interrupted), "stopped")),
    };
    if !command.names.is_empty() {
        survey.rows.retain(|row| command.names.iter().any(|name| name.as_str() == row.name));
    }
    if !command.local {
        tokio::select! {
            () = refresh(&context, &mut survey.rows) => {}
            () = cancel.cancelled() => return Err(Failure::new(Kind::Cloud(ErrorKind::Interrupted), "stopped")),
        }
    }
    let now = Timestamp::now();
    let machines: Vec<Value> = survey.rows.iter().map(|row| machine_json(row, Some(&context), now)).collect();
    fields.insert("machines".to_owned(), machines.into());
    fields.insert("left_over".to_owned(), survey.left_over.iter().map(left_over_json).collect());
    fields.insert("failed".to_owned(), failed_json(&survey.failed));
    if survey.rows.is_empty() {
        app.output.progress("no machines");
    } else {
        app.output.line(machine_table(&survey.rows, command.all, now));
    }
    for row in &survey.rows {
        if let Some(message) = &row.message {
            app.output.warn(
                Kind::Note,
                row.account.as_ref(),
                Some(&row.name),
                &format!("{}: {message}", row.name),
            );
        }
    }
    for (row, why) in survey.rows.iter().filter_map(|row| Some((row, failed_cluster(row)?))) {
        let text = format!("{0}: no cluster: {why}; `gpuprov k8s setup {0}` tries again", row.name);
        app.output.warn(Kind::SetupFailed, row.account.as_ref(), Some(&row.name), &text);
    }
    for left in &survey.left_over {
        app.output.line(format!(
            "left over: {} {} of `{}`; `gpuprov rm {}:{}` removes it",
            left.found.kind.as_str(),
            left.found.handle.id,
            left.found.mark.name,
            left.account,
            left.found.handle.id
        ));
    }
    if command.all {
        let sum: Usd = survey.rows.iter().filter_map(costs_now).sum();
        app.output.line(format!("\ntogether {sum}/h"));
    }
    let missing = command.names.iter().find(|name| !survey.rows.iter().any(|row| row.name == name.as_str()));
    if let Some(name) = missing {
        return Err(not_found(name, &survey, &app.output));
    }
    if scope != Scope::Local && connected.accounts.is_empty() && survey.rows.is_empty() {
        return Err(Failure::new(Kind::NoAccount, "no account is connected"));
    }
    if survey.answered == 0
        && let Some(failure) = worst(&survey.failed)
    {
        return Err(failure);
    }
    warn_failed(&survey.failed, &app.output);
    Ok(())
}

/// That a machine is not among the rows: proven only when every account answered.
fn not_found(name: &MachineName, survey: &Survey, output: &Output) -> Failure {
    if survey.failed.is_empty() {
        let failure = Failure::new(Kind::Cloud(ErrorKind::NotFound), format!("there is no machine `{name}`"));
        return failure.hint("`gpuprov ls` shows what there is");
    }
    warn_failed(&survey.failed, output);
    let silent: Vec<String> = survey.failed.iter().map(|error| error.account.to_string()).collect();
    let message = format!("`{name}` was not found, and {} did not answer", silent.join(" and "));
    // Where nobody answered the code is the one of that.
    let kind = match worst(&survey.failed) {
        Some(failure) if survey.answered == 0 => failure.kind,
        _ => Kind::Cloud(ErrorKind::NotFound),
    };
    Failure::new(kind, message)
}

fn left_over_json(left: &LeftOver) -> Value {
    json!({
        "account": left.account,
        "kind": left.found.kind.as_str(),
        "id": left.found.handle.id,
        "name": left.found.mark.name,
        "costs_now_per_hour": left.found.look.costs_now,
    })
}
