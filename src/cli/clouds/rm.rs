//! `gpuprov clouds rm`: forgets a connected account, unless it has machines.

use clap::Args;
use jiff::Timestamp;

use super::view::Row;
use super::{log, rows_of};
use crate::accounts::Store;
use crate::accounts::registry::Connected;
use crate::cli::context::{App, Waits};
use crate::cli::failure::refused;
use crate::cloud::ErrorKind;
use crate::model::account::{AccountFilter, AccountId};
use crate::provision::Context;
use crate::provision::failure::{Failure, Kind};
use crate::provision::holdings::{Holdings, holdings};
use crate::state::abandoned::Watch;
use crate::state::switches::Board;

/// Forgets an account that was connected with `clouds set`; refused while it has machines
#[derive(Args, Clone, Debug)]
pub(super) struct Rm {
    /// The account
    #[arg(value_name = "ACCOUNT")]
    account: AccountId,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) async fn run(command: &Rm, app: &App, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let account = &command.account;
    let connected = app.connect_for_machines(Waits::default(), &[AccountFilter::Account(account.clone())])?;
    let store = Store::open(&app.paths.data).map_err(refused)?;
    if !store.names().contains(account) {
        return Err(not_connected(&connected, account));
    }
    if let Some(context) = app.reading_context(&connected, Waits::default())? {
        nothing_held(app, &context, &connected, account).await?;
    }
    store.remove(account).map_err(refused)?;
    log(app, "clouds rm", account, "removed");
    *rows = rows_of(app, std::slice::from_ref(account));
    match rows.first().filter(|row| row.not_used.is_none()) {
        Some(row) => {
            let text = format!("from now on it is used with the credentials in {}", row.source);
            app.output.warn(Kind::Note, Some(account), None, &text);
        }
        None => {
            let forgotten = Board::open(&app.paths.state).and_then(|board| board.forget(account));
            if let Err(error) = forgotten {
                app.output.warn(Kind::Note, Some(account), None, &format!("its switches stay: {error}"));
            }
        }
    }
    app.output
        .progress(format!("{account} is forgotten; its key at {} is still valid", account.cloud().title()));
    app.output.line(account);
    Ok(())
}

fn not_connected(connected: &Connected, account: &AccountId) -> Failure {
    let found = connected.get(account).map(|account| account.source.clone());
    let found = found.or_else(|| {
        let found = connected.found_not_used.iter().find(|found| found.account == *account);
        found.map(|found| found.source.clone())
    });
    match found {
        Some(source) => {
            refused(format!("{account} was not connected with `clouds set`: it comes from {source}"))
                .hint("take it away there; `gpuprov clouds off` keeps it from being asked")
        }
        None => Failure::new(Kind::NoAccount, format!("no account `{account}` is connected"))
            .hint("`gpuprov clouds` lists what there is"),
    }
}

/// Makes sure that nobody would be left without the credentials that remove it.
async fn nothing_held(
    app: &App,
    context: &Context,
    connected: &Connected,
    account: &AccountId,
) -> Result<(), Failure> {
    let cloud = connected.get(account).map(|account| &account.cloud);
    let Holdings { held, unreadable, unlisted } = holdings(context, account, cloud).await.map_err(refused)?;
    let waiting =
        Watch::open(&app.paths.state).and_then(|watch| watch.peek(Timestamp::now())).map_err(refused)?;
    let waiting = waiting.into_iter().filter(|claim| claim.account == *account).map(|claim| {
        format!(
            "{} (its create got no answer; looked for until {})",
            claim.name,
            claim.until.strftime("%Y-%m-%d %H:%M")
        )
    });
    let unreadable = unreadable
        .into_iter()
        .map(|name| format!("{name} (its record cannot be read and may be of this account)"));
    let named: Vec<String> =
        held.into_iter().map(|held| held.shown).chain(waiting).chain(unreadable).collect();
    if !named.is_empty() {
        let failure = refused(format!(
            "{account} has machines, which could not be removed any more: {}; nothing was changed",
            named.join(", ")
        ));
        return Err(failure.hint("`gpuprov rm NAME` removes a machine"));
    }
    if cloud.is_none() {
        let text = "it cannot be opened, so machines that are not recorded here could not be looked for";
        app.output.warn(Kind::Note, Some(account), None, text);
    }
    match unlisted {
        None => Ok(()),
        // Credentials that are refused will never show anything again.
        Some(error) if matches!(error.kind, ErrorKind::Auth | ErrorKind::Forbidden) => {
            let text = format!(
                "{} refuses the credentials, so machines that are not recorded here could not be looked for: {}",
                account.cloud().title(),
                error.message
            );
            app.output.warn(Kind::Cloud(error.kind), Some(account), None, &text);
            Ok(())
        }
        Some(error) => {
            let failure = Failure::from(error.as_ref());
            let message = format!("{}; nothing was changed: it may have machines", failure.message);
            Err(Failure { message, ..failure }.hint("try again when the cloud answers"))
        }
    }
}
