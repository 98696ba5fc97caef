//! `gpuprov clouds`: the accounts, and everything that changes which there are and which are asked.
//!
//! One file per word: `list`, `set`, `rm`, `switch` (`on` and `off`), `check`. `view` is what all of them show, `secret` how a
//! secret gets in.

mod check;
mod list;
mod rm;
mod secret;
mod set;
mod switch;
mod view;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::accounts::registry::{Connect, Connected, connect};
use crate::cli::clouds::view::Row;
use crate::cli::context::{App, Waits};
use crate::cli::failure::{Exit, refused};
use crate::cloud::ErrorKind;
use crate::model::account::{AccountFilter, AccountId};
use crate::provision::cancel::Cancel;
use crate::provision::failure::{Failure, Kind};
use crate::state::audit::{Audit, AuditEntry, Author};

/// Shows the accounts, and connects, removes, switches and checks them
///
/// Without a word it is `clouds list`. All of it works without a terminal.
#[derive(Args, Clone, Debug)]
pub struct Clouds {
    #[command(subcommand)]
    what: Option<What>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    List(list::List),
    Set(Box<set::Set>),
    Rm(rm::Rm),
    On(switch::On),
    Off(switch::Off),
    Check(check::Check),
}

impl Clouds {
    /// Whether one JSON document is asked for.
    pub fn wants_json(&self) -> bool {
        let inner = match &self.what {
            None => false,
            Some(What::List(command)) => command.json,
            Some(What::Set(command)) => command.json,
            Some(What::Rm(command)) => command.json,
            Some(What::On(command)) => command.turn.json,
            Some(What::Off(command)) => command.turn.json,
            Some(What::Check(command)) => command.json,
        };
        self.json || inner
    }
}

/// Runs the command. What it is about is shown also where it failed.
pub async fn run(command: &Clouds, app: &App, cancel: &Cancel) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    let work = async {
        match &command.what {
            None => list::run(app, &mut rows),
            Some(What::List(_)) => list::run(app, &mut rows),
            Some(What::Set(command)) => set::run(command, app, &mut rows).await,
            Some(What::Rm(command)) => rm::run(command, app, &mut rows).await,
            Some(What::On(command)) => switch::run(&command.turn, true, app, &mut rows),
            Some(What::Off(command)) => switch::run(&command.turn, false, app, &mut rows),
            Some(What::Check(command)) => check::run(command, app, &mut rows).await,
        }
    };
    let result = tokio::select! {
        result = work => result,
        () = cancel.cancelled() => Err(Failure::new(Kind::Cloud(ErrorKind::Interrupted), "stopped")),
    };
    let mut fields = Map::new();
    fields.insert("accounts".to_owned(), rows.iter().map(|row| view::json(row, &rows)).collect());
    app.output.document(fields, result.as_ref().err());
    result.map(|()| Exit::Done)
}

/// The members of the JSON output of a command that failed before it knew anything.
pub fn members() -> Map<String, Value> {
    [("accounts".to_owned(), json!([]))].into_iter().collect()
}

/// Makes the accounts without a word: what is wrong with them was told, or is told another time.
fn silently(app: &App, waits: Waits, named: &[AccountFilter]) -> Result<Connected, Failure> {
    connect(Connect {
        env: &app.env,
        config: &app.config,
        paths: &app.paths,
        cloud_timeout: waits.cloud_timeout,
        boot_timeout: None,
        only_environment: app.in_sandbox,
        named,
        recorded: &[],
        read_only: true,
    })
    .map_err(refused)
}

/// Returns the rows of these accounts as they are now, for those who changed them.
fn rows_of(app: &App, accounts: &[AccountId]) -> Vec<Row> {
    let connected = silently(app, Waits::default(), &[]).unwrap_or_default();
    let mut rows = view::rows(app, &connected);
    rows.retain(|row| accounts.contains(&row.account));
    rows
}

/// Appends a change to the audit log. The change is made: that it cannot be logged is told as a note.
fn log(app: &App, action: &str, account: &AccountId, outcome: &str) {
    let entry = AuditEntry {
        account: Some(account.to_string()),
        owner: app.config.defaults.owner.as_ref().map(ToString::to_string),
        ..AuditEntry::new(Timestamp::now(), &Author::here(), action, outcome)
    };
    if let Err(error) = Audit::open(&app.paths.state).and_then(|audit| audit.append(&entry)) {
        let message = format!("the audit log could not be written: {error}");
        app.output.warn(Kind::Note, Some(account), None, &message);
    }
}
