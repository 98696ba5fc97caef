//! Which of the accounts that could serve a request are switched on, now and while it is waited.

use std::time::Duration;

use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::Asked;
use crate::provision::{Context, Request};
use crate::state::switches::Switches;

/// How often the switches are looked at while nothing else is done.
const LOOK: Duration = Duration::from_secs(1);

/// Reads the switches as they are now. What cannot be read switches nothing on.
pub fn switches(context: &Context) -> Result<Switches, Failure> {
    context.switches.read().map_err(|error| {
        Failure::new(Kind::Refused, format!("it is not known which accounts are switched off: {error}"))
    })
}

/// Returns the accounts that are switched on for what is asked for.
pub(super) fn serving(context: &Context, asked: &[Asked], request: &Request) -> Result<Vec<Asked>, Failure> {
    let switches = switches(context)?;
    let on = |asked: &&Asked| {
        let switch = switches.of(asked.cloud.account());
        match &request.offer {
            Some(offer) => switch.admits(offer.gpu_count),
            None => switch.serves(&request.want),
        }
    };
    Ok(asked.iter().filter(on).cloned().collect())
}

/// Returns the failure of a request that no account serves because all are switched off.
pub fn all_off(accounts: &[String]) -> Failure {
    let message = format!("every account that could serve is switched off: {}", accounts.join(", "));
    let hint = match accounts {
        [one] => format!("`gpuprov clouds on {one}` switches it on"),
        _ => "`gpuprov clouds on ACCOUNT` switches one on".to_owned(),
    };
    Failure::new(Kind::NothingOffered, message).hint(hint)
}

/// Waits until an account is switched on that was not among `before`.
pub(super) async fn came_back(context: &Context, asked: &[Asked], request: &Request, before: &[Asked]) {
    let known = |asked: &Asked| before.iter().any(|one| one.cloud.account() == asked.cloud.account());
    loop {
        tokio::time::sleep(LOOK).await;
        if serving(context, asked, request).is_ok_and(|now| now.iter().any(|asked| !known(asked))) {
            return;
        }
    }
}
