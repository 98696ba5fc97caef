//! What is shown of accounts: a row each, as a table and in JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::accounts::registry::{Account, Connected, FoundNotUsed};
use crate::cli::context::App;
use crate::cli::table::{fit, table};
use crate::cloud::Identity;
use crate::model::account::{AccountId, CloudKind};
use crate::state::machines::{Entry, Registry};
use crate::state::switches::{Board, Switch};

/// Something that is wrong with an account.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) fix: Option<String>,
}

/// One account.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) account: AccountId,
    pub(super) source: String,
    pub(super) hint: Option<String>,
    /// Who the credentials are, as far as it is known.
    pub(super) identity: Option<Identity>,
    pub(super) switch: Switch,
    /// How many machines are recorded here.
    pub(super) machines: usize,
    /// Why it is not used; none if it is.
    pub(super) not_used: Option<String>,
    /// Whether the provider takes it; none if it was not asked.
    pub(super) ok: Option<bool>,
    pub(super) problems: Vec<Problem>,
}

/// Returns a row for every account, used or not.
pub(super) fn rows(app: &App, connected: &Connected) -> Vec<Row> {
    let machines = machines(app);
    let switches = Board::open(&app.paths.state).and_then(|board| board.read()).unwrap_or_default();
    let used = connected.accounts.iter().map(|account| row_of(account, &machines));
    let not_used = connected.found_not_used.iter().map(|found| {
        let FoundNotUsed { account, source, hint, why, .. } = found.clone();
        Row {
            source,
            hint,
            identity: None,
            switch: switches.of(&account),
            machines: machines.get(&account).copied().unwrap_or_default(),
            not_used: Some(why),
            ok: None,
            problems: Vec::new(),
            account,
        }
    });
    let mut rows: Vec<Row> = used.chain(not_used).collect();
    rows.sort_by(|one, two| order(&one.account).cmp(&order(&two.account)));
    rows
}

/// By cloud, `default` first.
fn order(account: &AccountId) -> (CloudKind, bool, &str) {
    (account.cloud(), account.name() != "default", account.name())
}

fn row_of(account: &Account, machines: &BTreeMap<AccountId, usize>) -> Row {
    Row {
        account: account.id().clone(),
        source: account.source.clone(),
        hint: Some(account.hint.clone()),
        identity: Some(account.identity()),
        switch: Switch { gpu: account.gpu, cpu: account.cpu },
        machines: machines.get(account.id()).copied().unwrap_or_default(),
        not_used: None,
        ok: None,
        problems: Vec::new(),
    }
}

/// Counts the recorded machines of every account.
fn machines(app: &App) -> BTreeMap<AccountId, usize> {
    let mut counts = BTreeMap::new();
    let entries = Registry::open(&app.paths.state).and_then(|registry| registry.list()).unwrap_or_default();
    for entry in entries {
        if let Entry::Record(record) = entry
            && let Some(attempt) = record.current()
        {
            *counts.entry(attempt.account.clone()).or_default() += 1;
        }
    }
    counts
}

/// Returns the other accounts that are the same one at the provider; none where its id is not known.
pub(super) fn same_as(row: &Row, rows: &[Row]) -> Option<Vec<AccountId>> {
    let identity = row.identity.as_ref().filter(|identity| identity.provider.is_some())?;
    let others = rows.iter().filter(|other| {
        other.account != row.account
            && other.account.cloud() == row.account.cloud()
            && other.identity.as_ref().is_some_and(|other| other.is_same(identity))
    });
    Some(others.map(|other| other.account.clone()).collect())
}

/// Returns a row as an element of `accounts`.
pub(super) fn json(row: &Row, rows: &[Row]) -> Value {
    let problems: Vec<Value> = row
        .problems
        .iter()
        .map(|problem| json!({"kind": problem.kind, "message": problem.message, "fix": problem.fix}))
        .collect();
    json!({
        "account": row.account,
        "cloud": row.account.cloud().as_str(),
        "source": row.source,
        "hint": row.hint,
        "identity": row.identity.as_ref().and_then(|identity| identity.provider.as_ref()),
        "same_as": same_as(row, rows),
        "gpu": row.switch.gpu,
        "cpu": row.switch.cpu,
        "machines": row.machines,
        "used": row.not_used.is_none(),
        "ok": row.ok,
        "problems": problems,
    })
}

/// Returns the rows as a table; those that are not used come after it, with the reason.
pub(super) fn text(rows: &[Row]) -> String {
    let word = |on: bool| if on { "on" } else { "off" };
    let used: Vec<&Row> = rows.iter().filter(|row| row.not_used.is_none()).collect();
    let cells = used.iter().map(|row| {
        vec![
            row.account.to_string(),
            fit(row.hint.as_deref().unwrap_or("-"), 20),
            word(row.switch.gpu).to_owned(),
            word(row.switch.cpu).to_owned(),
            row.machines.to_string(),
            row.source.clone(),
        ]
    });
    let mut parts = Vec::new();
    if !used.is_empty() {
        parts.push(table(&["ACCOUNT", "HINT", "GPU", "CPU", "MACHINES", "FROM"], &[4], cells));
    }
    for row in rows {
        if let Some(why) = &row.not_used {
            parts.push(format!("not used: {} from {}: {why}", row.account, row.source));
        }
        let same = same_as(row, rows).unwrap_or_default();
        // Each pair once.
        for other in same.iter().filter(|other| row.account < **other) {
            let cloud = row.account.cloud().title();
            parts.push(format!("{} and {other} are one account at {cloud}", row.account));
        }
    }
    parts.join("\n")
}
