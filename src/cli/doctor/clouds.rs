//! The accounts and what reaching them needs: credentials, endpoints, root certificates, the clock.

use std::time::{Duration, Instant};

use jiff::SignedDuration;

use super::Checks;
use crate::accounts::registry::{CLOUD_TIMEOUT, Connect, Connected, connect};
use crate::cli::context::App;
use crate::cli::failure::hint;
use crate::model::duration::show;
use crate::provision::failure::Failure;
use crate::provision::gather::within;

/// A clock that is off by less troubles nobody: dates of answers are whole seconds old, networks slow.
const TOLERATED: SignedDuration = SignedDuration::from_secs(30);

/// Looks at all accounts.
pub(super) async fn all(app: &App, cloud_timeout: Option<Duration>, checks: &mut Checks) {
    let connected = connect(Connect {
        env: &app.env,
        config: &app.config,
        paths: &app.paths,
        cloud_timeout,
        boot_timeout: None,
        only_environment: app.in_sandbox,
        named: &[],
        recorded: &[],
        read_only: true,
    });
    let connected = match connected {
        Ok(connected) => connected,
        Err(error) => return checks.bad("accounts", error.to_string(), "correct what the message names"),
    };
    for warning in &connected.warnings {
        checks.bad("accounts", warning, "");
    }
    if let Some(why) = &connected.unswitched {
        checks.bad("accounts", format!("it is not known which are switched off: {why}"), "");
    }
    for found in connected.found_not_used.iter().filter(|found| !found.connected) {
        checks.good("accounts", format!("{} in {} is not used: {}", found.account, found.source, found.why));
    }
    if connected.accounts.is_empty() {
        checks.bad(
            "accounts",
            "no account is connected",
            "connect one with `gpuprov clouds set CLOUD`, or try `gpuprov --sandbox offers`",
        );
    }
    certificates(&connected, checks);
    let timeout = cloud_timeout.or(app.config.wait.cloud_timeout).unwrap_or(CLOUD_TIMEOUT);
    let answers = connected.accounts.iter().map(async |account| {
        let since = Instant::now();
        let answer = within(timeout, &account.cloud, "checking the account", account.cloud.check()).await;
        (account, answer, since.elapsed())
    });
    for (account, answer, took) in futures_util::future::join_all(answers).await {
        let endpoint =
            account.elsewhere.as_ref().map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
        let whose = format!("{} ({}) from {}", account.id(), account.hint, account.source);
        match answer {
            Ok(_) => {
                let off = match (account.gpu, account.cpu) {
                    (true, true) => "",
                    (false, false) => "; switched off",
                    (false, true) => "; switched off for GPU machines",
                    (true, false) => "; switched off for machines without a GPU",
                };
                checks.good("account", format!("{whose}{endpoint}: answered in {}{off}", show(took)));
            }
            Err(error) => {
                let failure = Failure::from(error.as_ref());
                let fix = hint(&failure).unwrap_or_else(|| "look at the cloud's own page".to_owned());
                checks.bad("account", format!("{whose}{endpoint}: {}", failure.message), fix);
            }
        }
    }
    clock(&connected, checks);
}

fn certificates(connected: &Connected, checks: &mut Checks) {
    let plain = |endpoint: &Option<String>| endpoint.as_ref().is_some_and(|base| base.starts_with("http:"));
    let needed =
        connected.accounts.is_empty() || !connected.accounts.iter().all(|account| plain(&account.elsewhere));
    match connected.http.as_ref().map(|http| http.check_roots()) {
        Some(Err(error)) if needed => checks.bad(
            "certificates",
            error.to_string(),
            "install the package ca-certificates, or set SSL_CERT_FILE to a file of root certificates",
        ),
        Some(Err(_)) => checks.good("certificates", "there are none, and no account needs them"),
        Some(Ok(())) | None => checks.good("certificates", "root certificates are there"),
    }
}

fn clock(connected: &Connected, checks: &mut Checks) {
    match connected.http.as_ref().and_then(|http| http.clock_ahead()) {
        None => checks.good("clock", "not compared: no cloud told the time"),
        Some(ahead) if ahead.abs() <= TOLERATED => checks.good("clock", "it agrees with the clouds'"),
        Some(ahead) => {
            let off = show(ahead.unsigned_abs());
            let word = if ahead.is_positive() { "behind" } else { "ahead of" };
            checks.bad(
                "clock",
                format!("the clock of this computer is {off} {word} the clouds'; ages, costs and `--ttl` are off by as much"),
                "set it, for example with `timedatectl set-ntp true`",
            );
        }
    }
}
