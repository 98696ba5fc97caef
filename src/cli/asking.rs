//! Whom to ask for offers, and what names in the request nobody knows.

use serde_json::{Value, json};

use crate::accounts::Account;
use crate::accounts::registry::Connected;
use crate::cli::context::select;
use crate::cli::failure::refused;
use crate::cli::output::Output;
use crate::cli::selection::Chosen;
use crate::cloud::Error;
use crate::model::account::{AccountFilter, AccountId};
use crate::plan::refuse::{Fit, fit, skipped_cluster};
use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::Asked;
use crate::provision::serving::all_off;

/// An account that was not asked.
#[derive(Debug)]
pub struct Skipped {
    account: AccountId,
    reason: &'static str,
    message: String,
}

/// Who is asked, and who is not.
#[derive(Debug, Default)]
pub struct Asking {
    /// Accounts with their own form of the request.
    pub asked: Vec<Asked>,
    /// The same for accounts that are switched off for it.
    pub off: Vec<Asked>,
    /// Accounts that are not asked.
    pub skipped: Vec<Skipped>,
}

/// Decides whom to ask; `env` is the names of the variables that the machine gets. That nobody is left is for [`Asking::check`] to say, so that the reasons can be told first.
pub fn asking(
    connected: &Connected,
    chosen: &Chosen,
    output: &Output,
    env: &[String],
    for_machine: bool,
) -> Result<Asking, Failure> {
    let accounts: Vec<&Account> = if chosen.soft_accounts {
        select(connected, &serving(connected, &chosen.accounts, output))?
    } else {
        select(connected, &chosen.accounts)?
    };
    if let Some(why) = &connected.unswitched {
        return Err(refused(format!("it is not known which accounts are switched off: {why}")));
    }
    let mut asking = Asking::default();
    for found in &connected.found_not_used {
        let skipped =
            Skipped { account: found.account.clone(), reason: "not_connected", message: found.why.clone() };
        asking.skipped.push(skipped);
    }
    for account in accounts {
        match fit(&chosen.want, chosen.soft, env, account.cloud.capabilities()) {
            Fit::Fits { want, notes } => {
                let asked = Asked { cloud: std::sync::Arc::clone(&account.cloud), want: *want };
                if !chosen.serves(account) {
                    asking.off.push(asked);
                    let message =
                        format!("switched off; `gpuprov clouds on {}` switches it on", account.id());
                    asking.skipped.push(Skipped {
                        account: account.id().clone(),
                        reason: "switched_off",
                        message,
                    });
                    continue;
                }
                for note in notes {
                    output.warn(Kind::Note, Some(account.id()), None, &note);
                }
                if for_machine && let Some(note) = skipped_cluster(&chosen.want, account.cloud.capabilities())
                {
                    output.warn(Kind::Note, Some(account.id()), None, &note);
                }
                asking.asked.push(asked);
            }
            Fit::Skipped(message) => {
                asking.skipped.push(Skipped {
                    account: account.id().clone(),
                    reason: "unsupported",
                    message,
                });
            }
        }
    }
    if asking.asked.is_empty() {
        return Ok(asking);
    }
    if !asking.off.is_empty() {
        output.progress(format!("switched off and not asked: {}", asking.names_off().join(", ")));
    }
    for skipped in asking.skipped.iter().filter(|skipped| skipped.reason == "unsupported") {
        let message = format!("not asked: {}", skipped.message);
        output.warn(Kind::Note, Some(&skipped.account), None, &message);
    }
    Ok(asking)
}

/// Returns the accounts of `defaults.cloud` that there are; the others are left out with a note, unless none is there: then
/// all are returned, for the failure to name them.
fn serving(connected: &Connected, filters: &[AccountFilter], output: &Output) -> Vec<AccountFilter> {
    let refused = |filter: &AccountFilter| connected.select(std::slice::from_ref(filter)).err();
    let there: Vec<AccountFilter> =
        filters.iter().filter(|filter| refused(filter).is_none()).cloned().collect();
    if there.is_empty() {
        return filters.to_vec();
    }
    for (filter, why) in filters.iter().filter_map(|filter| Some((filter, refused(filter)?))) {
        output.warn(Kind::Note, None, None, &format!("`{filter}` of `defaults.cloud` is left out: {why}"));
    }
    there
}

impl Asking {
    /// Fails when nobody is left to ask.
    pub fn check(&self) -> Result<(), Failure> {
        if !self.asked.is_empty() {
            return Ok(());
        }
        if !self.off.is_empty() {
            return Err(all_off(&self.names_off()));
        }
        let unsupported = self.skipped.iter().filter(|skipped| skipped.reason == "unsupported");
        let reasons: Vec<String> =
            unsupported.map(|skipped| format!("{}: {}", skipped.account, skipped.message)).collect();
        let failure =
            Failure::new(Kind::Unsupported, format!("no account can do that: {}", reasons.join("; ")));
        Err(failure.hint("drop the flag, or connect an account at a cloud that can"))
    }

    /// Returns everybody who could serve: those that are switched off may come back while it is waited.
    pub fn all(&self) -> Vec<Asked> {
        self.asked.iter().chain(&self.off).cloned().collect()
    }

    fn names_off(&self) -> Vec<String> {
        self.off.iter().map(|asked| asked.cloud.account().to_string()).collect()
    }

    /// Returns the `skipped` member of the JSON output.
    pub fn skipped_json(&self) -> Value {
        self.skipped
            .iter()
            .map(|skipped| {
                json!({"account": skipped.account, "reason": skipped.reason, "message": skipped.message})
            })
            .collect()
    }
}

/// Returns the `failed` member of the JSON output.
pub fn failed_json(failed: &[Box<Error>]) -> Value {
    failed
        .iter()
        .map(|error| {
            json!({
                "account": error.account,
                "kind": error.kind.as_str(),
                "message": format!("{}: {}", error.doing, error.message),
            })
        })
        .collect()
}

/// Warns of every account that did not answer.
pub fn warn_failed(failed: &[Box<Error>], output: &Output) {
    for error in failed {
        let message = format!("{}: {}", error.doing, error.message);
        output.warn(Kind::Cloud(error.kind), Some(&error.account), None, &message);
    }
}
