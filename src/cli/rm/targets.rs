//! What `rm` is to remove: names and ids resolved, or everything there is.

use super::{Outcome, Rm, Target, kept};
use crate::accounts::registry::Connected;
use crate::cli::failure::usage;
use crate::cli::selection::parse_all;
use crate::cli::view::{cost_so_far, expires, is_loopback, is_sandbox, price, row_of};
use crate::cloud::{Error, ErrorKind, Found};
use crate::model::account::{AccountFilter, AccountId};
use crate::model::handle::ResourceKind;
use crate::model::machine::MachineName;
use crate::provision::failure::{Failure, Kind};
use crate::provision::remove::{Doomed, Kept};
use crate::provision::survey::{Row, Scope, Sought, by_id, by_name, survey};
use crate::provision::{Context, cost_since};
use crate::state::machines::Entry;

/// Returns the accounts that the command names, by `--cloud` or in ids. What is none is refused where it is used.
pub(super) fn named_accounts(command: &Rm) -> Vec<AccountFilter> {
    let ids = command.targets.iter().filter_map(|text| text.split_once(':')).map(|(account, _)| account);
    let listed = crate::cli::lists::split(&command.cloud);
    ids.chain(listed.iter().map(String::as_str)).filter_map(|word| word.parse().ok()).collect()
}

/// Resolves names and ids. What is not there goes to the outcome.
pub(super) async fn named(
    command: &Rm,
    context: &Context,
    outcome: &mut Outcome,
) -> Result<Vec<Target>, Failure> {
    let mut targets: Vec<Target> = Vec::new();
    for text in &command.targets {
        let sought = match text.split_once(':') {
            Some((account, id)) if account.contains('/') => {
                let account: AccountId = account.parse().map_err(usage)?;
                if context.account(&account).is_none() {
                    outcome.kept.push(kept(
                        text,
                        Kind::NoAccount,
                        format!("the account {account} is not connected"),
                    ));
                    continue;
                }
                by_id(context, &account, id, command.not_mine).await
            }
            _ if command.not_mine => return Err(usage("--not-mine goes with ACCOUNT:ID, not with a name")),
            _ => by_name(context, &text.parse::<MachineName>().map_err(usage)?).await,
        };
        match sought.map_err(crate::cli::failure::refused)? {
            Sought::Recorded(name) => {
                let twice =
                    |target: &Target| matches!(&target.doomed, Doomed::Recorded(known) if *known == name);
                if !targets.iter().any(twice) {
                    targets.push(recorded(context, name));
                }
            }
            Sought::Found(account, found) => {
                let twice = |target: &Target| match &target.doomed {
                    Doomed::Found { account: at, found: known } => {
                        *at == account && known.handle.id == found.handle.id
                    }
                    Doomed::Recorded(_) => false,
                };
                if targets.iter().any(twice) {
                    continue;
                }
                let (shown, sandbox) = (describe_found(&account, &found), is_loopback(context, &account));
                targets.push(Target { doomed: Doomed::Found { account, found }, shown, sandbox });
            }
            Sought::Several(ids) => {
                let message = format!(
                    "there are {} machines of that name: {}; name one of them",
                    ids.len(),
                    ids.join(", ")
                );
                outcome.kept.push(kept(text, Kind::Refused, message));
            }
            Sought::NotMine(what) => {
                let message = format!("{what}; `--not-mine` removes it all the same");
                outcome.kept.push(kept(text, Kind::Refused, message));
            }
            Sought::Nothing(failed) => missing(command, context, text, &failed, outcome),
        }
    }
    Ok(targets)
}

/// A name that nobody knows is a failure, or none when that was asked for and every account answered.
fn missing(command: &Rm, context: &Context, text: &str, failed: &[Box<Error>], outcome: &mut Outcome) {
    if failed.is_empty() && !context.accounts.is_empty() {
        if !command.ignore_not_found {
            outcome.kept.push(kept(
                text,
                Kind::Cloud(ErrorKind::NotFound),
                format!("there is no machine `{text}`"),
            ));
        }
        return;
    }
    let silent: Vec<String> = failed.iter().map(|error| error.to_string()).collect();
    let why = if silent.is_empty() { "no account is connected".to_owned() } else { silent.join("; ") };
    // What an account that did not answer would have shown may run and cost money.
    let unproven = command.ignore_not_found || !failed.is_empty();
    let kind = if unproven { Kind::LeftRunning } else { Kind::Cloud(ErrorKind::NotFound) };
    outcome.kept.push(kept(
        text,
        kind,
        format!("there is no record of `{text}`, and not every account answered: {why}"),
    ));
}

/// Returns everything that plain `ls` shows, or of it what is over its end.
pub(super) async fn everything(
    command: &Rm,
    context: &Context,
    connected: &Connected,
    outcome: &mut Outcome,
) -> Result<Vec<Target>, Failure> {
    let filters: Vec<AccountFilter> = parse_all("--cloud", &crate::cli::lists::split(&command.cloud))?;
    connected.select(&filters).map_err(crate::cli::failure::refused)?;
    let survey = survey(context, Scope::Mine).await.map_err(crate::cli::failure::refused)?;
    let admitted = |account: Option<&AccountId>| {
        filters.is_empty()
            || account.is_some_and(|account| filters.iter().any(|filter| filter.admits(account)))
    };
    for error in survey.failed.iter().filter(|error| admitted(Some(&error.account))) {
        let message = format!("not every machine may be known: {error}");
        outcome.kept.push(Kept {
            account: Some(error.account.clone()),
            ..kept(&error.account.to_string(), Kind::LeftRunning, message)
        });
    }
    let now = jiff::Timestamp::now();
    let over = |end: Option<jiff::Timestamp>| end.is_some_and(|end| end <= now);
    let mut targets = Vec::new();
    for row in survey.rows {
        if !admitted(row.account.as_ref()) || (command.expired && !over(expires(&row))) {
            continue;
        }
        let recorded_name =
            (row.record.is_some() || row.account.is_none()).then(|| row.name.parse().ok()).flatten();
        let (shown, sandbox) = (describe(&row), is_sandbox(&row, context));
        let doomed = match (recorded_name, row.account, row.mark, row.look, row.handle) {
            (Some(name), ..) => Doomed::Recorded(name),
            (None, Some(account), Some(mark), Some(look), Some(handle)) => {
                let found = Found {
                    kind: ResourceKind::Machine,
                    handle,
                    cloud_name: String::new(),
                    mark,
                    since: row.since,
                    look,
                };
                Doomed::Found { account, found: Box::new(found) }
            }
            _ => continue,
        };
        targets.push(Target { doomed, shown, sandbox });
    }
    // What is left over of a machine whose end is over is over too.
    let left_over = survey
        .left_over
        .into_iter()
        .filter(|left| admitted(Some(&left.account)) && (command.all || over(left.found.mark.expires)));
    targets.extend(left_over.map(|left| Target {
        shown: format!("{} {} ({})", left.found.kind.as_str(), left.found.handle.id, left.account),
        sandbox: is_loopback(context, &left.account),
        doomed: Doomed::Found { account: left.account, found: Box::new(left.found) },
    }));
    Ok(targets)
}

/// Returns what a record speaks of.
pub(super) fn recorded(context: &Context, name: MachineName) -> Target {
    let entry = context.registry.read(&name).ok().flatten();
    let (shown, sandbox) = match entry {
        Some(Entry::Record(record)) => {
            let row = row_of(&record);
            (describe(&row), is_sandbox(&row, context))
        }
        _ => (name.to_string(), false),
    };
    Target { doomed: Doomed::Recorded(name), shown, sandbox }
}

fn describe(row: &Row) -> String {
    let price = price(row).map(|price| format!(", {price}/h")).unwrap_or_default();
    let cost =
        cost_so_far(row, jiff::Timestamp::now()).map(|cost| format!(", {cost} so far")).unwrap_or_default();
    let account = row.account.as_ref().map(|account| format!(" ({account})")).unwrap_or_default();
    format!("{}{account}{price}{cost}", row.name)
}

fn describe_found(account: &AccountId, found: &Found) -> String {
    let price = found.look.sold.price_per_hour;
    let shown = price.map(|price| format!(", {price}/h")).unwrap_or_default();
    let cost = price.zip(found.since).map(|(price, since)| cost_since(price, since, jiff::Timestamp::now()));
    let cost = cost.map(|cost| format!(", {cost} so far")).unwrap_or_default();
    format!("{} ({account}:{}){shown}{cost}", found.mark.name, found.handle.id)
}
