//! `gpuprov audit`: what was done, by whom, and what it cost.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cli::context::App;
use crate::cli::failure::{Exit, refused};
use crate::cli::table::{fit, table};
use crate::cloud::ErrorKind;
use crate::model::duration;
use crate::model::money::Usd;
use crate::provision::failure::{Failure, Kind};
use crate::state::audit::{Audit as Log, AuditEntry, History, machine_costs, totals};

/// How many rows a table shows.
const ROWS: usize = 25;

/// Shows what was made, removed and changed on this computer, and what it cost
///
/// Costs are estimates; they stand beside each removal. What runs still is not among them: `gpuprov ls` tells.
#[derive(Args, Clone, Debug)]
pub struct Audit {
    /// Only what was done in the last so long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Duration>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(command: &Audit, app: &App) -> Result<Exit, Failure> {
    let since = command.since.map(|since| Timestamp::now() - since);
    let read = Log::open(&app.paths.state).and_then(|log| log.read(since)).map_err(refused);
    let mut fields = Map::new();
    let history = match read {
        Ok(history) => history,
        Err(failure) => {
            fields.extend(["entries", "totals", "machines"].map(|name| (name.to_owned(), json!([]))));
            app.output.document(fields, Some(&failure));
            return Err(failure);
        }
    };
    if history.unreadable > 0 {
        let lines = if history.unreadable == 1 { "1 line" } else { &format!("{} lines", history.unreadable) };
        let message = format!("{lines} of the audit log cannot be read and are left out");
        app.output.warn(Kind::Cloud(ErrorKind::Unreadable), None, None, &message);
    }
    fields.insert("entries".to_owned(), history.entries.iter().map(entry_json).collect());
    fields.insert("totals".to_owned(), serde_json::to_value(totals(&history.entries)).unwrap_or_default());
    let machines = machine_costs(&history.entries);
    fields.insert("machines".to_owned(), serde_json::to_value(machines).unwrap_or_default());
    show(app, &history);
    app.output.document(fields, None);
    Ok(Exit::Done)
}

fn entry_json(entry: &AuditEntry) -> Value {
    serde_json::to_value(entry).unwrap_or_default()
}

fn show(app: &App, history: &History) {
    let entries = &history.entries;
    if entries.is_empty() {
        app.output.progress("nothing was done");
        return;
    }
    let header = ["TIME", "USER", "ACTION", "NAME", "WHAT", "$/HOUR", "COST", "OUTCOME"];
    let newest = &entries[entries.len().saturating_sub(ROWS)..];
    app.output.line(table(&header, &[5, 6], newest.iter().map(cells)));
    if newest.len() < entries.len() {
        let earlier = entries.len() - newest.len();
        app.output.line(format!("{earlier} earlier entries: `gpuprov audit --json` shows all"));
    }
    let totals = totals(entries);
    if totals.is_empty() {
        return;
    }
    app.output.line("");
    let mut machines = machine_costs(entries);
    machines.sort_by_key(|machine| std::cmp::Reverse(machine.cost));
    for machine in machines.iter().take(ROWS) {
        let owner = machine.owner.as_ref().map(|owner| format!(", for {owner}")).unwrap_or_default();
        app.output.line(format!(
            "{} ({}){owner}: {}",
            machine.name.as_deref().unwrap_or("a machine"),
            machine.account.as_deref().unwrap_or("no account"),
            machine.cost
        ));
    }
    if machines.len() > ROWS {
        app.output
            .line(format!("{} cheaper machines: `gpuprov audit --json` shows all", machines.len() - ROWS));
    }
    app.output.line("");
    let sum: Usd = totals.iter().map(|total| total.cost).sum();
    for total in &totals {
        let owner = total.owner.as_ref().map(|owner| format!(", for {owner}")).unwrap_or_default();
        app.output.line(format!(
            "{}{owner}: {}",
            total.account.as_deref().unwrap_or("no account"),
            total.cost
        ));
    }
    if totals.len() > 1 {
        app.output.line(format!("together: {sum}"));
    }
}

fn cells(entry: &AuditEntry) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let what = match (&entry.gpu, &entry.instance_type) {
        (Some(gpu), _) => Some(format!("{gpu}:{}", entry.gpu_count.unwrap_or(1))),
        (None, name) => name.clone(),
    };
    vec![
        entry.time.strftime("%Y-%m-%d %H:%M").to_string(),
        fit(&entry.user, 10),
        fit(&entry.action, 10),
        fit(&or_dash(entry.name.clone().or_else(|| entry.account.clone())), 16),
        fit(&or_dash(what), 14),
        or_dash(entry.price_per_hour.map(Usd::four_decimals)),
        or_dash(entry.cost.map(Usd::four_decimals)),
        fit(&entry.outcome, 16),
    ]
}
