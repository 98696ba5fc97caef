//! `gpuprov clouds on` and `off`: which accounts are asked for offers.

use clap::Args;

use super::view::Row;
use super::{log, rows_of, silently};
use crate::cli::context::{App, Waits};
use crate::cli::failure::refused;
use crate::model::account::{AccountFilter, AccountId};
use crate::provision::failure::{Failure, Kind};
use crate::state::switches::{Board, Side};

/// Switches an account, or all accounts of a cloud, on again
///
/// Without --gpu and --cpu both switches are meant.
#[derive(Args, Clone, Debug)]
pub(super) struct On {
    #[command(flatten)]
    pub(super) turn: Turn,
}

/// Switches an account, or all accounts of a cloud, off: it is not asked for offers
///
/// Machines that run are not touched, and `ls`, `rm` and `ssh` go on seeing them. Without --gpu and --cpu both switches are
/// meant.
#[derive(Args, Clone, Debug)]
pub(super) struct Off {
    #[command(flatten)]
    pub(super) turn: Turn,
}

#[derive(Args, Clone, Debug)]
pub(super) struct Turn {
    /// An account, or a cloud for all its accounts
    #[arg(value_name = "ACCOUNT|CLOUD")]
    target: AccountFilter,
    /// The switch for GPU machines
    #[arg(long)]
    gpu: bool,
    /// The switch for machines without a GPU
    #[arg(long)]
    cpu: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(turn: &Turn, on: bool, app: &App, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let side = match (turn.gpu, turn.cpu) {
        (true, false) => Side::Gpu,
        (false, true) => Side::Cpu,
        _ => Side::Both,
    };
    let board = Board::open(&app.paths.state).map_err(refused)?;
    let accounts = meant(&turn.target, app, &board)?;
    let word = if on { "on" } else { "off" };
    let mut changed = Vec::new();
    board
        .turn(&accounts, side, on, |account, differs| {
            log(app, &format!("clouds {word}"), account, differs.as_str());
            changed.push((account.clone(), differs));
        })
        .map_err(refused)?;
    for account in &accounts {
        match changed.iter().find(|(one, _)| one == account) {
            Some((_, differs)) => {
                app.output.progress(format!("{account}: {} switched {word}", differs.as_str()));
            }
            None => app.output.progress(format!("{account} was {word} already")),
        }
        app.output.line(account);
    }
    *rows = rows_of(app, &accounts);
    Ok(())
}

/// Returns the accounts that are meant: those that there are, used or not, and those that were switched before.
fn meant(target: &AccountFilter, app: &App, board: &Board) -> Result<Vec<AccountId>, Failure> {
    let connected = silently(app, Waits::default(), std::slice::from_ref(target))?;
    let used = connected.accounts.iter().map(|account| account.id().clone());
    let found = connected.found_not_used.iter().map(|found| found.account.clone());
    let switched = board.read().map_err(refused)?;
    let mut accounts: Vec<AccountId> = used.chain(found).chain(switched.accounts()).collect();
    accounts.retain(|account| target.admits(account));
    accounts.sort();
    accounts.dedup();
    if accounts.is_empty() {
        let failure = Failure::new(Kind::NoAccount, format!("no account `{target}` is connected"));
        return Err(failure.hint("`gpuprov clouds` lists what there is"));
    }
    Ok(accounts)
}
