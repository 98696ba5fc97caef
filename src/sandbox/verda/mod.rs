//! Verda, as far as renting virtual machines goes.
//!
//! Owns accounts, instances, volumes, SSH keys, scripts, the journal and the answers of `/v1`. It is as strict as
//! the service, and in places stricter; what the service would call malformed is noted as rejected. Sources are the
//! OpenAPI document at `api.verda.com/v1/docs`, the official clients `verda` 1.25.0 (Python) and verda-cli 1.7, and
//! bug reports where they are named.
//!
//! Not played: clusters, containers, long-term contracts, shared file systems, cloning and exporting volumes, what a
//! startup script does, what is on a volume (a machine that is started again is empty), Jupyter.
//!
//! A machine is an address alone, see `addresses.rs` above.
//!
//! `catalog.rs` what is for sale, `create.rs`, `judge.rs` and `wire.rs` renting, `instance.rs` and `volume.rs` one of each,
//! `state.rs` all of them and the accounts, `token.rs` who may, `act.rs`, `look.rs`, `volumes.rs`, `keys.rs`,
//! `journal.rs` the calls, `limits.rs` the rate limits, `trouble.rs` what goes wrong here only, `hands.rs` and `control.rs` what is
//! done to it from outside, `left.rs` what is left, `guesses.rs` what no document settles, `seed.rs` instances that were there.

mod act;
mod catalog;
mod control;
mod create;
mod guesses;
mod hands;
mod instance;
mod journal;
mod judge;
mod keys;
mod left;
mod limits;
mod look;
mod seed;
mod state;
mod token;
mod trouble;
mod volume;
mod volumes;
mod wire;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::http::HeaderMap;
use serde_json::{Value, json};

pub use self::guesses::VerdaGuesses;
pub use self::hands::Verda;
pub use self::left::{Left, LeftKind};
pub use self::seed::VerdaSeed;
pub use self::state::VerdaQuota;
pub use self::trouble::{VerdaFault, VerdaScript};

use self::catalog::Catalog;
use self::state::State;
use super::faults::{FaultKind, When};
use super::server::{Answer, Call, Emulator, segments};
use super::{Shared, lock};

/// Recorded: <https://github.com/dstackai/dstack/issues/3067>.
const WRONG_IMAGE: &str = "Operating system is not valid for this instance type";
/// Recorded: <https://github.com/dstackai/dstack/issues/3790>.
const STILL_PROVISIONING: &str = "Can't discontinue a provisioning instance";

/// The emulator.
#[derive(Debug)]
struct VerdaCloud {
    shared: Arc<Shared>,
    catalog: Catalog,
    state: Mutex<State>,
}

/// Operation and the ids in the path; `unknown` where none fits.
fn route<'a>(method: &str, parts: &[&'a str]) -> (&'static str, [&'a str; 2]) {
    let ["v1", inner @ ..] = parts else { return ("unknown", [""; 2]) };
    // The old names of two resources have the same shapes.
    let inner: Vec<&str> =
        inner.iter().map(|part| if *part == "sshkeys" { "ssh-keys" } else { part }).collect();
    let none = [""; 2];
    match (method, inner.as_slice()) {
        (_, [.., ""]) => ("unknown", none),
        ("POST", ["oauth2", "token"]) => ("token", none),
        ("GET", ["instance-types"]) => ("list_types", none),
        ("GET", ["instance-availability"]) => ("availability", none),
        ("GET", ["instance-availability", kind]) => ("availability_one", [*kind, ""]),
        ("GET", ["locations"]) => ("locations", none),
        ("GET", ["images"]) => ("images", none),
        ("GET", ["volume-types"]) => ("volume_types", none),
        ("GET", ["balance"]) => ("balance", none),
        ("GET", ["instances"]) => ("list_instances", none),
        ("POST", ["instances"]) => ("create_instance", none),
        ("PUT", ["instances"]) => ("instance_action", none),
        ("GET", ["instances", id]) => ("get_instance", [*id, ""]),
        ("POST", [what @ ("instances" | "volumes"), id, "tags"]) => ("add_tag", [*what, *id]),
        ("DELETE", [what @ ("instances" | "volumes"), id, "tags", _]) => ("delete_tag", [*what, *id]),
        ("GET", ["volumes"]) => ("list_volumes", none),
        ("GET", ["volumes", "trash"]) => ("list_trash", none),
        ("GET", ["volumes", id]) => ("get_volume", [*id, ""]),
        ("POST", ["volumes"]) => ("create_volume", none),
        ("PUT", ["volumes"]) => ("volume_action", none),
        ("DELETE", ["volumes", id]) => ("delete_volume", [*id, ""]),
        ("GET", ["ssh-keys"]) => ("list_keys", none),
        ("POST", ["ssh-keys"]) => ("create_key", none),
        ("DELETE", ["ssh-keys"]) => ("delete_keys", none),
        ("GET", ["ssh-keys", id]) => ("get_key", [*id, ""]),
        ("DELETE", ["ssh-keys", id]) => ("delete_key", [*id, ""]),
        ("GET", ["scripts"]) => ("list_scripts", none),
        ("POST", ["scripts"]) => ("create_script", none),
        ("DELETE", ["scripts"]) => ("delete_scripts", none),
        ("GET", ["scripts", id]) => ("get_script", [*id, ""]),
        ("DELETE", ["scripts", id]) => ("delete_script", [*id, ""]),
        ("GET", ["journal"]) => ("journal", none),
        ("GET", ["journal", "compute" | "volume", id]) => ("journal", [*id, ""]),
        _ => ("unknown", none),
    }
}

/// An error in Verda's form.
fn error(status: u16, code: &str, message: &str) -> Answer {
    Answer::json(status, json!({"code": code, "message": message}))
}

/// A 400 that no correct client gets.
fn invalid(message: &str) -> Answer {
    error(400, "invalid_request", message).rejecting(message)
}

/// The same, for who hands it on.
fn refuse(message: &str) -> Box<Answer> {
    Box::new(invalid(message))
}

fn no_type() -> Box<Answer> {
    Box::new(error(404, "not_found", "Instance type not found"))
}

/// Whether the call is only to look as if it were carried out.
fn no_effect(call: &Call) -> bool {
    call.faults.contains(&FaultKind::Verda(VerdaFault::NoEffect))
}

/// The error that a fault puts in place of the answer.
fn failure(call: &Call, at: When) -> Option<Answer> {
    call.faults.iter().find_map(|fault| match fault {
        FaultKind::Verda(VerdaFault::Failure { status, code, message, when }) if *when == at => {
            Some(error(*status, code, message))
        }
        _ => None,
    })
}

impl VerdaCloud {
    /// An emulator without accounts.
    fn new(shared: Arc<Shared>) -> io::Result<VerdaCloud> {
        let state = Mutex::new(State::new(shared.options.seed, shared.options.verda_token_life));
        Ok(VerdaCloud { shared, catalog: Catalog::load()?, state })
    }

    /// Who may, how often, then what.
    fn guarded(&self, call: &Call, operation: &'static str, ids: [&str; 2]) -> Answer {
        let open = matches!(operation, "token" | "list_types" | "volume_types");
        let Some(account) = call.account.as_deref() else {
            let bearer = !call.header("authorization").is_empty();
            return match operation {
                // A public list is no place to find out that a token is dead.
                _ if open => {
                    failure(call, When::Before).unwrap_or_else(|| self.carry_out(call, "", operation, ids))
                }
                _ if bearer => error(401, "unauthorized_request", "Invalid or expired access token"),
                _ => error(401, "unauthorized_request", "Access token is missing"),
            };
        };
        let enforce = self.shared.options.rate_limits;
        let verdict = lock(&self.state)
            .account(account)
            .map(|owner| owner.windows.count(&call.method, &call.path, enforce));
        let Some(verdict) = verdict else { return error(404, "not_found", "no such project") };
        if let Some(refused) = verdict.refusal() {
            return verdict.on(refused);
        }
        if let Some(instead) = failure(call, When::Before) {
            return verdict.on(instead);
        }
        lock(&self.state).tick(&self.shared);
        let answer = self.carry_out(call, account, operation, ids);
        let answer = failure(call, When::After).filter(|_| answer.status < 300).unwrap_or(answer);
        verdict.on(answer)
    }

    fn carry_out(&self, call: &Call, account: &str, operation: &'static str, ids: [&str; 2]) -> Answer {
        let [id, second] = ids;
        match operation {
            "token" => self.token(call),
            "list_types" | "volume_types" | "images" | "availability" | "availability_one" => {
                self.sale(call, operation, id).unwrap_or_else(|refused| *refused)
            }
            "locations" => Answer::json(200, self.catalog.show_locations()),
            "balance" => {
                let amount = lock(&self.state).account(account).map(|owner| owner.balance);
                Answer::json(200, json!({"amount": amount, "currency": "usd"}))
            }
            "list_instances" => self.list(call, account),
            "create_instance" => self.create(call, account),
            "instance_action" => self.act(call, account),
            "get_instance" => self.get(call, account, id),
            "add_tag" => self.add_tag(call, account, id, second),
            "delete_tag" => {
                let parts = segments(&call.path);
                let tag = parts.last().map(String::as_str).unwrap_or_default();
                self.delete_tag(account, id, second, tag)
            }
            "list_volumes" => self.volumes(call, account),
            "list_trash" => self.trash(account),
            "get_volume" => self.volume(account, id),
            "create_volume" => self.create_volume(call, account),
            "volume_action" => self.volume_action(call, account),
            "delete_volume" => self.delete_volume(call, account, id),
            "list_keys" => self.keys(account),
            "create_key" => self.add_key(call, account),
            "delete_keys" => self.delete_keys(call, account, None),
            "get_key" => self.key(account, id),
            "delete_key" => self.delete_keys(call, account, Some(id)),
            "list_scripts" => self.scripts(call, account),
            "create_script" => self.add_script(call, account),
            "delete_scripts" => self.delete_scripts(call, account, None),
            "get_script" => self.script(account, id),
            "delete_script" => self.delete_scripts(call, account, Some(id)),
            "journal" => self.journal(call, account, Some(id).filter(|id| !id.is_empty())),
            // Tokens work on documented paths only since 2026-03-20.
            _ => error(403, "forbidden_action", "Insufficient scope").rejecting("unknown path or method"),
        }
    }

    /// What is for sale.
    fn sale(&self, call: &Call, operation: &str, id: &str) -> Result<Answer, Box<Answer>> {
        let pairs = call.pairs();
        let stale = call.faults.contains(&FaultKind::StaleOffer);
        let place = wire::find(&pairs, &["location_code", "locationCode"]);
        let spot = || wire::flag(&pairs, &["is_spot", "isSpot"]);
        let shown = match operation {
            "list_types" => self.catalog.show_types(wire::currency(&pairs)?, &call.faults),
            "volume_types" => self.catalog.show_volume_types(wire::currency(&pairs)?),
            "images" => {
                self.catalog.show_images(wire::find(&pairs, &["instance_type"])).ok_or_else(no_type)?
            }
            "availability" => self.catalog.availability(spot()?, place, stale),
            _ => {
                let kind = self.catalog.kind(id);
                let kind = kind.ok_or_else(no_type)?;
                let there = !stale && self.catalog.available(kind, spot()?, place);
                if self.guesses().text_availability { json!(there.to_string()) } else { json!(there) }
            }
        };
        Ok(Answer::json(200, shown))
    }

    /// The id of something new: bare text as both official clients read it, or JSON.
    fn new_id(&self, status: u16, id: &str) -> Answer {
        if self.guesses().quoted_ids {
            return Answer::json(status, Value::String(id.to_owned()));
        }
        Answer::text(status, "text/html; charset=utf-8", id)
    }

    fn guesses(&self) -> VerdaGuesses {
        self.shared.options.verda_guesses
    }
}

impl Emulator for VerdaCloud {
    fn cloud(&self) -> &'static str {
        "verda"
    }

    fn operation(&self, method: &str, path: &str) -> &'static str {
        let parts = segments(path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        route(method, &parts).0
    }

    fn account(&self, headers: &HeaderMap) -> Option<String> {
        let value = headers.get("authorization")?.to_str().ok()?;
        let token = value.strip_prefix("Bearer ")?;
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        let pair = state.tokens.iter().find(|pair| pair.access == token && now < pair.expires)?;
        Some(pair.account.clone())
    }

    fn answer(&self, call: &Call) -> Answer {
        let parts = segments(&call.path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (operation, ids) = route(&call.method, &parts);
        // The reference requires the header on exactly these.
        let named = matches!(operation, "token" | "create_instance" | "instance_action")
            || matches!(operation, "create_volume" | "volume_action" | "delete_volume");
        if named && call.header("user-agent").is_empty() {
            return invalid("user-agent header is required");
        }
        // The provider's edge adds it.
        if call.headers.contains_key("cf-connecting-ip") {
            return invalid("cf-connecting-ip is not for clients");
        }
        self.guarded(call, operation, ids)
    }

    fn problem(&self, status: u16, detail: &str) -> Answer {
        let code = match status {
            401 => "unauthorized_request",
            402 => "insufficient_funds",
            403 => "forbidden_action",
            404 => "not_found",
            409 => "conflict",
            429 => "rate_limit_exceeded",
            503 => "service_unavailable",
            500.. => "server_error",
            _ => "invalid_request",
        };
        error(status, code, detail)
    }

    fn tick(&self) {
        lock(&self.state).tick(&self.shared);
    }

    fn busy(&self) -> bool {
        lock(&self.state)
            .instances
            .iter()
            .any(|one| one.machine.as_ref().is_some_and(|machine| machine.busy()))
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
