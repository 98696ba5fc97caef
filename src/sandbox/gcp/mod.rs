//! Google Cloud, as far as renting virtual machines goes.
//!
//! Owns projects, instances, disks, firewall rules, operations and the answers of `/compute/v1`, the token services `/sts`,
//! `/iamcredentials` and `/oauth2`, and the two public price catalogues under `/prices`. What a request may hold is decided by the
//! discovery document of the API (`discovery.rs`); it is as strict as the service, and in places stricter; what the service would
//! call malformed is noted as rejected. Sources are that document (revision 20261106), the documentation at
//! `cloud.google.com/compute/docs`, and bug reports where they are named.
//!
//! Not played: templates, reservations, several network interfaces, disks that exist already, start and reset, regional
//! resources, what startup scripts and `user-data` do, whether ports can be reached (but for 22), the Billing Catalog.
//!
//! A machine is an address alone, see `addresses.rs` above.
//!
//! `shapes.rs` what can be rented, `prices.rs` what it costs, `discovery.rs`, `mask.rs`, `filter.rs`, `names.rs` what a request may
//! say, `auth.rs`, `rights.rs`, `limits.rs` who may and how often, `insert.rs`, `judge.rs`, `parts.rs`, `new_disk.rs`, `quota.rs`, `put.rs` new instances,
//! `instance.rs`, `disk.rs`, `firewall.rs`, `operation.rs` one of each, `account.rs` and `state.rs` all of them, `calls.rs`, `act.rs`, `lists.rs`,
//! `places.rs` the calls, `errors.rs` refusals, `trouble.rs` what goes wrong here only, `hands.rs` and `control.rs` what is done to it
//! from outside, `left.rs` what is left, `guesses.rs` what no document settles, `seed.rs` instances that were there.

mod account;
mod act;
mod auth;
mod calls;
mod control;
mod discovery;
mod disk;
mod errors;
mod filter;
mod firewall;
mod guesses;
mod hands;
mod insert;
mod instance;
mod judge;
mod left;
mod limits;
mod lists;
mod mask;
mod names;
mod new_disk;
mod operation;
mod parts;
mod places;
mod prices;
mod put;
mod quota;
mod rights;
mod seed;
mod shapes;
mod state;
mod trouble;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::HeaderMap;
use serde_json::Value;

pub use self::account::GcpPolicy;
pub use self::guesses::GcpGuesses;
pub use self::hands::Gcp;
pub use self::left::{GcpLeft, GcpLeftKind};
pub use self::prices::{GcpPrices, GcpSource};
pub use self::rights::GCP_FIREWALL_PERMISSIONS;
pub use self::seed::GcpSeed;
pub use self::trouble::{GcpFault, GcpLeaves, GcpOperationError, GcpScript};

use self::discovery::{Discovery, Method};
use self::errors::{fail, invalid, not_found};
use self::prices::Prices;
use self::shapes::Shapes;
use self::state::State;
use super::clock::ClockMode;
use super::faults::{FaultKind, When};
use super::server::{Answer, Call, Emulator, Payload, segments};
use super::{Shared, lock};

/// How often a held `wait` is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The emulator.
#[derive(Debug)]
struct GcpCloud {
    shared: Arc<Shared>,
    discovery: Discovery,
    shapes: Shapes,
    prices: Prices,
    state: Mutex<State>,
    /// How the price catalogues answer.
    sources: Mutex<HashMap<GcpSource, GcpPrices>>,
    /// Image families that were retired.
    retired: Mutex<Vec<String>>,
}

/// A path that is not one of Compute Engine: its operation, and the name in it.
fn other<'a>(method: &str, parts: &[&'a str]) -> (&'static str, &'a str) {
    match (method, parts) {
        ("POST", ["sts", "v1", "token"]) => ("sts_token", ""),
        ("POST", ["iamcredentials", "v1", "projects", _, "serviceAccounts", name]) => ("impersonate", name),
        ("POST", ["oauth2", "token"] | ["token"]) => ("oauth_token", ""),
        ("GET", ["prices", "gpuhunt", "catalog.zip"]) => ("prices_gpuhunt", ""),
        ("GET", ["prices", "skypilot", "vms.csv"]) => ("prices_skypilot", ""),
        _ => ("unknown", ""),
    }
}

/// The error that a fault puts in place of the answer.
fn failure(call: &Call, at: When) -> Option<Answer> {
    call.faults.iter().find_map(|fault| match fault {
        FaultKind::Gcp(GcpFault::Failure { status, reason, message, when }) if *when == at => {
            Some(fail(*status, reason, message))
        }
        _ => None,
    })
}

impl GcpCloud {
    /// An emulator without accounts.
    fn new(shared: Arc<Shared>) -> io::Result<GcpCloud> {
        let state = Mutex::new(State::new(shared.options.seed, shared.options.gcp_token_life));
        Ok(GcpCloud {
            shared,
            discovery: Discovery::load()?,
            shapes: Shapes::load()?,
            prices: Prices::load()?,
            state,
            sources: Mutex::default(),
            retired: Mutex::default(),
        })
    }

    fn guesses(&self) -> GcpGuesses {
        self.shared.options.gcp_guesses
    }

    fn project_of(&self, account: &str) -> String {
        lock(&self.state).project(account)
    }

    fn is_retired(&self, family: &str) -> bool {
        lock(&self.retired).iter().any(|retired| retired == family)
    }

    /// A point on the clock as Google writes dates: Pacific time.
    fn date(&self, at: Duration) -> String {
        self.aged(at, Duration::ZERO)
    }

    /// The same, so much earlier.
    fn aged(&self, at: Duration, age: Duration) -> String {
        let date = self.shared.clock.date(at);
        let age = jiff::SignedDuration::try_from(age).unwrap_or(jiff::SignedDuration::ZERO);
        let date = date.checked_sub(age).unwrap_or(date);
        let pacific = date.checked_sub(jiff::SignedDuration::from_hours(8)).unwrap_or(date);
        format!("{}-08:00", pacific.strftime("%Y-%m-%dT%H:%M:%S%.3f"))
    }

    /// The services beside Compute Engine.
    fn beside(&self, call: &Call, operation: &'static str, name: &str) -> Answer {
        if let Some(instead) = failure(call, When::Before) {
            return instead;
        }
        let source = |source| {
            let how = lock(&self.sources).get(&source).copied().unwrap_or_default();
            prices::answer(source, how, &call.faults)
        };
        let answer = match operation {
            "sts_token" => self.sts(call),
            "oauth_token" => self.oauth(call),
            "impersonate" => match self.bearer(call.header("authorization")) {
                Ok((account, good)) => self.impersonate(call, &account, good, name),
                Err(who) => errors::stranger(who),
            },
            "prices_gpuhunt" => source(GcpSource::Gpuhunt),
            "prices_skypilot" => source(GcpSource::Skypilot),
            _ => Answer::text(404, "text/html", "<html><title>Error 404 (Not Found)!!1</title></html>")
                .rejecting("unknown path or method"),
        };
        failure(call, When::After).filter(|_| answer.status < 300).unwrap_or(answer)
    }

    /// The answers have to fit the document as well.
    #[cfg(test)]
    fn check_own(&self, call: &Call, shape: &str, answer: &Answer) {
        if let Payload::Json(body) = &answer.body
            && answer.status < 300
            && call.faults.is_empty()
        {
            let checked = self.discovery.check(shape, body, "answers");
            assert!(checked.is_ok(), "{} {}: {checked:?} {body:#}", call.method, call.path);
        }
    }

    /// The method that a path is, when it is one of Compute Engine.
    fn method(&self, http: &str, parts: &[&str]) -> Option<Method<'_>> {
        let ["compute", "v1", inner @ ..] = parts else { return None };
        self.discovery.find(http, inner)
    }

    fn zone_and_operation(&self, call: &Call) -> Option<(Option<String>, String)> {
        let parts = segments(&call.path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let method =
            self.method(&call.method, &parts).filter(|method| method.operation == "wait_operation")?;
        let zone = Some(method.name("zone").to_owned()).filter(|zone| !zone.is_empty());
        Some((zone, method.name("operation").to_owned()))
    }
}

impl Emulator for GcpCloud {
    fn cloud(&self) -> &'static str {
        "gcp"
    }

    fn operation(&self, method: &str, path: &str) -> &'static str {
        let parts = segments(path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        self.method(method, &parts).map_or_else(|| other(method, &parts).0, |found| found.operation)
    }

    fn account(&self, headers: &HeaderMap) -> Option<String> {
        let value = headers.get("authorization")?.to_str().ok()?;
        self.bearer(value).ok().map(|(account, _)| account)
    }

    fn answer(&self, call: &Call) -> Answer {
        let parts = segments(&call.path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        // Google's front end answers a POST that does not say how long it is with 411 and a page for people
        // (https://github.com/googleworkspace/cli/issues/183). HTTP/2, which has no Host header, needs no length.
        let silent = call.header("content-length").is_empty() && call.header("transfer-encoding").is_empty();
        if silent
            && matches!(call.method.as_str(), "POST" | "PATCH" | "PUT")
            && !call.header("host").is_empty()
        {
            return Answer::text(
                411,
                "text/html",
                "<!DOCTYPE html><title>Error 411 (Length Required)!!1</title>",
            )
            .rejecting("no Content-Length");
        }
        let Some(method) = self.method(&call.method, &parts) else {
            let (operation, name) = other(&call.method, &parts);
            return self.beside(call, operation, name);
        };
        #[cfg(test)]
        let shape = method.response().to_owned();
        let mut answer = self.guarded(call, method).unwrap_or_else(|refused| *refused);
        #[cfg(test)]
        self.check_own(call, &shape, &answer);
        answer = failure(call, When::After).filter(|_| answer.status < 300).unwrap_or(answer);
        if answer.status >= 400 {
            return if self.guesses().bare_errors { errors::bare(answer) } else { answer };
        }
        let fields = call.pairs().into_iter().find(|(name, _)| name == "fields").map(|(_, value)| value);
        if let (Payload::Json(body), Some(fields)) = (&mut answer.body, fields) {
            match mask::cut(&fields, body) {
                Ok(kept) => *body = kept,
                Err(why) => return fail(400, "invalidParameter", &why).rejecting(why),
            }
        }
        answer
    }

    fn hold(&self, call: &Call, held: Duration) -> Duration {
        let options = &self.shared.options;
        if self.guesses().wait_at_once || options.clock == ClockMode::Step || held >= options.gcp_hold {
            return Duration::ZERO;
        }
        let running =
            self.zone_and_operation(call).is_some_and(|(zone, name)| self.is_running(zone.as_deref(), &name));
        if running { LOOK } else { Duration::ZERO }
    }

    fn problem(&self, status: u16, detail: &str) -> Answer {
        errors::problem(status, detail)
    }

    fn tick(&self) {
        lock(&self.state).tick(&self.shared);
    }

    fn busy(&self) -> bool {
        let state = lock(&self.state);
        state.instances.iter().any(|one| one.machine.as_ref().is_some_and(|machine| machine.busy()))
    }

    fn halt(&self) {
        lock(&self.state).instances.clear();
    }

    fn swap_host_key(&self, id: &str) -> bool {
        let state = lock(&self.state);
        let machine = state.instances.iter().find(|one| one.id == id).and_then(|one| one.machine.as_ref());
        machine.inspect(|machine| machine.swap_host_key()).is_some()
    }

    fn home(&self, id: &str) -> Option<PathBuf> {
        let state = lock(&self.state);
        let machine = state.instances.iter().find(|one| one.id == id)?.machine.as_ref()?;
        Some(machine.home().to_owned())
    }

    fn control(&self, method: &str, parts: &[&str], body: Value) -> Option<Answer> {
        self.handle(method, parts, body)
    }
}
