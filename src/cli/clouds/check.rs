//! `gpuprov clouds check`: asks each provider who the credentials are and what is missing. It changes nothing.

use std::time::Duration;

use clap::Args;

use super::view::{self, Problem, Row};
use crate::accounts::registry::{Account, CLOUD_TIMEOUT, Connected};
use crate::cli::context::{App, Waits};
use crate::cli::failure::hint;
use crate::cloud::{Error, ErrorKind, Which};
use crate::model::account::{AccountFilter, AccountId};
use crate::model::duration;
use crate::provision::acquire::worst;
use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::within;

/// Asks each provider who the credentials are, and says what is missing and how to mend it
///
/// It changes nothing. It ends with 0 when every account works.
#[derive(Args, Clone, Debug)]
pub(super) struct Check {
    /// Only these clouds and accounts
    #[arg(value_name = "ACCOUNT|CLOUD")]
    targets: Vec<AccountFilter>,
    /// How long any one account may take to answer
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_some)]
    cloud_timeout: Option<Duration>,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) async fn run(command: &Check, app: &App, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let waits = Waits { cloud_timeout: command.cloud_timeout, boot_timeout: None };
    let connected = app.connect_for_machines(waits, &command.targets)?;
    let meant = |account: &AccountId| {
        command.targets.is_empty() || command.targets.iter().any(|target| target.admits(account))
    };
    *rows = view::rows(app, &connected);
    rows.retain(|row| meant(&row.account));
    if rows.is_empty() {
        return Err(Failure::new(Kind::NoAccount, "no account is connected"));
    }
    let timeout = waits.cloud_timeout.or(app.config.wait.cloud_timeout).unwrap_or(CLOUD_TIMEOUT);
    let asked = connected.accounts.iter().filter(|account| meant(account.id()));
    let answers = futures_util::future::join_all(asked.map(|account| ask(account, timeout))).await;
    let mut failed = Vec::new();
    for (account, answer) in answers {
        let Some(row) = rows.iter_mut().find(|row| row.account == *account.id()) else { continue };
        match answer {
            Ok((identity, problems)) => {
                row.ok = Some(problems.is_empty());
                row.identity = Some(identity);
                row.problems = problems;
            }
            Err(error) => {
                row.ok = Some(false);
                row.problems = vec![refusal(account, &error)];
                failed.push(error);
            }
        }
    }
    unopened(&connected, rows);
    show(app, rows);
    conclude(rows, &failed)
}

type Answer = Result<(crate::cloud::Identity, Vec<Problem>), Box<Error>>;

async fn ask(account: &Account, timeout: Duration) -> (&Account, Answer) {
    let answer = async {
        let doing = "checking the account";
        let identity = within(timeout, &account.cloud, doing, account.cloud.check()).await?;
        // Without the right to list, `ls` and `rm` would see nothing.
        let list = account.cloud.find(&Which::AnyMarked);
        let listed = within(timeout, &account.cloud, "listing machines", list);
        let (listed, lacks) =
            tokio::join!(listed, within(timeout, &account.cloud, doing, account.cloud.lacks()));
        let lacks = listed.and(lacks)?;
        let problem = |lack: crate::cloud::Lack| Problem {
            kind: lack.kind.as_str(),
            message: lack.message,
            fix: Some(lack.fix),
        };
        Ok((identity, lacks.into_iter().map(problem).collect()))
    };
    (account, answer.await)
}

/// What a provider objects to, and how to mend it.
fn refusal(account: &Account, error: &Error) -> Problem {
    let id = account.id();
    let again = match account.connected {
        true => format!("`gpuprov clouds set {} --name {}` connects it again", id.cloud(), id.name()),
        false => format!("correct {}", account.source),
    };
    let fix = match error.kind {
        ErrorKind::Auth => {
            let own = || format!("make new credentials at {}", id.cloud().title());
            format!("{}; {again}", error.hint.clone().unwrap_or_else(own))
        }
        _ => error.hint.clone().or_else(|| hint(&Failure::from(error))).unwrap_or(again),
    };
    let message = format!("{}: {}", error.doing, error.message);
    Problem { kind: error.kind.as_str(), message, fix: Some(fix) }
}

/// Accounts that are connected and cannot be opened are not well either.
fn unopened(connected: &Connected, rows: &mut [Row]) {
    for found in connected.found_not_used.iter().filter(|found| found.connected) {
        let Some(row) = rows.iter_mut().find(|row| row.account == found.account) else { continue };
        let id = &found.account;
        row.ok = Some(false);
        row.problems.push(Problem {
            kind: ErrorKind::Unreadable.as_str(),
            message: found.why.clone(),
            fix: Some(format!(
                "put a copy of the file back, or connect it again: `gpuprov clouds set {} --name {}`",
                id.cloud(),
                id.name()
            )),
        });
    }
}

fn show(app: &App, rows: &[Row]) {
    for row in rows {
        let hint = row.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let who = row.identity.as_ref().and_then(|identity| identity.provider.as_ref());
        let who = who.map(|who| format!(", {who} at {}", row.account.cloud().title())).unwrap_or_default();
        let word = match row.ok {
            Some(true) => "ok   ",
            Some(false) => "WRONG",
            None => "-    ",
        };
        let why = row.not_used.as_ref().filter(|_| row.ok.is_none());
        let why = why.map(|why| format!(": not used, {why}")).unwrap_or_default();
        app.output.line(format!("{word}  {}{hint} from {}{who}{why}", row.account, row.source));
        for problem in &row.problems {
            app.output.line(format!("         {}", problem.message));
            if let Some(fix) = &problem.fix {
                app.output.line(format!("         {fix}"));
            }
        }
        let same = view::same_as(row, rows).unwrap_or_default();
        if !same.is_empty() {
            let same: Vec<String> = same.iter().map(ToString::to_string).collect();
            app.output.line(format!("         the same account there as {}", same.join(", ")));
        }
    }
}

/// Where no account answered the code is that of their failures, else that something is wrong.
fn conclude(rows: &[Row], failed: &[Box<Error>]) -> Result<(), Failure> {
    let wrong = rows.iter().filter(|row| row.ok == Some(false)).count();
    let checked = rows.iter().filter(|row| row.ok.is_some()).count();
    if wrong == 0 {
        return Ok(());
    }
    let kind = match worst(failed) {
        Some(failure) if failed.len() == checked => failure.kind,
        _ => Kind::Local,
    };
    Err(Failure::new(kind, format!("{wrong} of {checked} accounts: something is wrong"))
        .hint("what to do stands beside each"))
}
