//! Vast, as far as renting GPU containers goes.
//!
//! Owns accounts, instances and the answers of `/api/v0` and `/api/v1`. It is as strict as the service, and in
//! places stricter; what the service would call malformed is noted as rejected. Sources are the OpenAPI document
//! and the guides at `docs.vast.ai`, the official client `vastai` 1.9.1, and bug reports where they are named.
//!
//! Not played: templates, volumes, hosts' own calls, teams and scopes, serverless, billing, copy and snapshots,
//! `onstart` (it is written to root's home and not run: what people put there is meant for a container, and this
//! is their own computer), tmux, and the disk across a stop and a start.
//!
//! `catalog.rs` and `search.rs` what is for sale, `create.rs` and `wire.rs` renting, `instance.rs` one instance,
//! `state.rs` all of them and the accounts, `calls.rs`, `list.rs`, `keys.rs`, `logs.rs` the other calls, `limits.rs` the
//! rate limits, `trouble.rs` what goes wrong here only, `images.rs` tags, `hands.rs` what is done to it from outside,
//! `guesses.rs` what no document settles, `seed.rs` instances that were there.

mod calls;
mod catalog;
mod create;
mod guesses;
mod hands;
mod images;
mod instance;
mod keys;
mod limits;
mod list;
mod logs;
mod search;
mod seed;
mod state;
mod trouble;
mod wire;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::guesses::VastGuesses;
pub use self::hands::Vast;
pub use self::seed::InstanceSeed;
pub use self::trouble::{GoneForm, Throttle, VastFault, VastScript};

use self::catalog::Catalog;
use self::state::State;
use super::faults::{FaultKind, When};
use super::server::{Answer, Call, Emulator, segments};
use super::{Shared, lock};

/// The emulator.
#[derive(Debug)]
pub(super) struct VastCloud {
    shared: Arc<Shared>,
    catalog: Catalog,
    state: Mutex<State>,
}

/// Where a path leads; numbers in paths are kept as text until a call reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Route {
    Bundles,
    SearchAsks,
    Ask(String),
    OldInstances,
    Filters,
    Instances,
    Instance(String),
    Keys(String),
    Key(String, String),
    Bid(String),
    Logs(String),
    LogFile,
    Reboot(String),
    User,
    AccountKeys,
    GpuTypes,
    GpuNames,
    NoSlash,
    Unknown,
}

impl Route {
    fn of(path: &str) -> Route {
        let parts = segments(path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        // The official client asks for the user without a slash at the end, and for everything else with one.
        let inner = match parts.as_slice() {
            ["api", "v0", "users", "current"] => return Route::User,
            ["logs", _] => return Route::LogFile,
            ["api", inner @ .., ""] => inner,
            ["api", "v0" | "v1", ..] => return Route::NoSlash,
            _ => return Route::Unknown,
        };
        match inner {
            ["v0", "bundles"] => Route::Bundles,
            ["v0", "search", "asks"] => Route::SearchAsks,
            ["v0", "asks", id] => Route::Ask((*id).to_owned()),
            ["v0", "instances"] => Route::OldInstances,
            ["v0", "instances", "filters"] => Route::Filters,
            ["v1", "instances"] => Route::Instances,
            ["v0", "instances", id] => Route::Instance((*id).to_owned()),
            ["v0", "instances", "bid_price", id] => Route::Bid((*id).to_owned()),
            ["v0", "instances", "request_logs", id] => Route::Logs((*id).to_owned()),
            ["v0", "instances", "reboot", id] => Route::Reboot((*id).to_owned()),
            ["v0", "instances", id, "ssh"] => Route::Keys((*id).to_owned()),
            ["v0", "instances", id, "ssh", key] => Route::Key((*id).to_owned(), (*key).to_owned()),
            ["v0", "users", "current"] => Route::User,
            ["v0", "ssh"] => Route::AccountKeys,
            ["v0", "gpu_types"] => Route::GpuTypes,
            ["v0", "gpu_names", "unique"] => Route::GpuNames,
            _ => Route::Unknown,
        }
    }
}

/// An error in the form that most of Vast's have.
fn refusal(status: u16, error: &str, msg: &str) -> Answer {
    Answer::json(status, json!({"success": false, "error": error, "msg": msg}))
}

fn no_such_instance(id: &str) -> Answer {
    refusal(404, "no_such_instance", &format!("Instance {id} not found."))
}

/// A key that nobody has is 404: <https://github.com/jhammant/AIonDemandCluster/issues/1>.
fn bad_key() -> Answer {
    refusal(404, "auth_error", "Invalid user key")
}

impl VastCloud {
    /// An emulator without accounts.
    fn new(shared: Arc<Shared>) -> io::Result<VastCloud> {
        let at_once = shared.options.vast_guesses.gone_at_once;
        let slow = if at_once { Duration::ZERO } else { shared.options.slow_delete };
        let state = Mutex::new(State::new(shared.options.seed, slow));
        Ok(VastCloud { shared, catalog: Catalog::load()?, state })
    }

    /// Who may, how often, then what.
    fn guarded(&self, call: &Call, operation: &'static str, route: &Route) -> Answer {
        let open = matches!(operation, "search" | "gpu_types" | "gpu_names" | "log_file");
        let named = !call.header("authorization").is_empty();
        if named && call.account.is_none() && operation != "log_file" {
            return bad_key();
        }
        if !named && !open {
            return refusal(403, "not_authorized", "Forbidden: no API key.");
        }
        if self.shared.options.rate_limits {
            let who = call.account.as_deref().unwrap_or("");
            if let Some(refused) = lock(&self.state).pace.count(who, operation) {
                return refused;
            }
        }
        if let Some(instead) = before(call) {
            return instead;
        }
        lock(&self.state).tick(&self.shared);
        let answer = self.carry_out(call, call.account.as_deref().unwrap_or(""), route);
        after(call).filter(|_| answer.status < 300).unwrap_or(answer)
    }

    fn carry_out(&self, call: &Call, account: &str, route: &Route) -> Answer {
        let body = match read(call) {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        match (call.method.as_str(), route) {
            ("POST", Route::Bundles) => self.search(call, body),
            ("GET", Route::Bundles) => self.search(call, query(call, "q").unwrap_or_else(|| json!({}))),
            ("PUT", Route::SearchAsks) => self.search(call, body.get("q").cloned().unwrap_or(Value::Null)),
            ("PUT", Route::Ask(id)) => self.create(call, account, id, body),
            ("GET", Route::OldInstances) => self.old_list(),
            ("DELETE", Route::OldInstances) => self.delete_several(call, account, &body),
            ("GET", Route::Instances) => self.list(call, account),
            ("GET", Route::Filters) => Answer::json(200, json!({"success": true, "filters": {}})),
            ("GET", Route::Instance(id)) => self.get(call, account, id),
            ("PUT", Route::Instance(id)) => self.change(call, account, id, &body),
            ("DELETE", Route::Instance(id)) => self.delete(call, account, id),
            ("PUT", Route::Bid(id)) => self.change_bid(call, account, id, &body),
            ("PUT", Route::Reboot(id)) => self.reboot(account, id),
            ("PUT", Route::Logs(id)) => self.request_logs(call, account, id, &body),
            ("GET", Route::LogFile) => self.log_file(call),
            ("POST", Route::Keys(id)) => self.attach(call, account, id, &body),
            ("GET", Route::Keys(id)) => self.instance_keys(account, id),
            ("DELETE", Route::Key(id, key)) => self.detach(account, id, key),
            ("GET", Route::User) => self.user(account),
            ("GET", Route::AccountKeys) => self.account_keys(account),
            (_, Route::AccountKeys) => refusal(400, "team_ssh_keys_not_supported", "not for this key")
                .rejecting("the account's SSH keys must never be changed"),
            ("GET", Route::GpuTypes) => Answer::json(200, self.catalog.gpu_types()),
            ("GET", Route::GpuNames) => Answer::json(200, self.catalog.gpu_names()),
            (_, Route::NoSlash) => Answer::text(404, "text/html", "<html><body>Not Found</body></html>")
                .rejecting("no slash at the end"),
            _ => Answer::text(404, "text/html", "<html><body>Not Found</body></html>")
                .rejecting("unknown path or method"),
        }
    }

    fn guesses(&self) -> VastGuesses {
        self.shared.options.vast_guesses
    }
}

/// The body as JSON; null when there is none.
fn read(call: &Call) -> Result<Value, Box<Answer>> {
    if call.body.is_empty() {
        return Ok(Value::Null);
    }
    let refused = |msg: &str| Box::new(refusal(400, "invalid_request", msg).rejecting(msg));
    if !call.header("content-type").starts_with("application/json") {
        return Err(refused("the body is not sent as JSON"));
    }
    serde_json::from_slice(&call.body).map_err(|_| refused("the body is no JSON"))
}

/// A part of the query as JSON.
fn query(call: &Call, name: &str) -> Option<Value> {
    let pairs = call.pairs();
    let text = &pairs.iter().find(|(key, _)| key == name)?.1;
    serde_json::from_str(text).ok()
}

/// Faults that answer in place of the call.
fn before(call: &Call) -> Option<Answer> {
    call.faults.iter().find_map(|fault| match fault {
        FaultKind::Vast(VastFault::Failure { error, msg, when: When::Before }) => {
            Some(refusal(200, error, msg))
        }
        FaultKind::Vast(VastFault::Throttled { shape, retry_after }) => {
            Some(limits::throttled(*shape, 4.5, *retry_after))
        }
        FaultKind::Vast(VastFault::QuotaExceeded { resets_in }) => {
            let at = Timestamp::now().as_second() + i64::try_from(*resets_in).unwrap_or(0);
            let msg = "Daily search quota exceeded. It resets at midnight UTC.";
            Some(refusal(429, "search_quota_exceeded", msg).with("x-ratelimit-reset", at.to_string()))
        }
        _ => None,
    })
}

/// Faults that answer after the call took effect.
fn after(call: &Call) -> Option<Answer> {
    call.faults.iter().find_map(|fault| match fault {
        FaultKind::Vast(VastFault::Failure { error, msg, when: When::After }) => {
            Some(refusal(200, error, msg))
        }
        _ => None,
    })
}

/// Whether the call is only to look as if it were carried out.
fn no_effect(call: &Call) -> bool {
    call.faults.contains(&FaultKind::Vast(VastFault::NoEffect))
}

impl Emulator for VastCloud {
    fn cloud(&self) -> &'static str {
        "vast"
    }

    fn operation(&self, method: &str, path: &str) -> &'static str {
        match (method, Route::of(path)) {
            (_, Route::Bundles | Route::SearchAsks) => "search",
            ("PUT", Route::Ask(_)) => "create",
            ("GET", Route::OldInstances) => "old_list",
            ("DELETE", Route::OldInstances) => "delete_instances",
            ("GET", Route::Instances) => "list_instances",
            ("GET", Route::Filters) => "instance_filters",
            ("GET", Route::Instance(_)) => "get_instance",
            ("PUT", Route::Instance(_)) => "set_state",
            ("DELETE", Route::Instance(_)) => "delete_instance",
            ("PUT", Route::Bid(_)) => "change_bid",
            ("PUT", Route::Reboot(_)) => "reboot",
            ("PUT", Route::Logs(_)) => "logs",
            ("GET", Route::LogFile) => "log_file",
            ("POST", Route::Keys(_)) => "attach_key",
            ("GET", Route::Keys(_)) => "instance_keys",
            ("DELETE", Route::Key(..)) => "detach_key",
            ("GET", Route::User) => "current_user",
            ("GET", Route::AccountKeys) => "account_keys",
            ("GET", Route::GpuTypes) => "gpu_types",
            ("GET", Route::GpuNames) => "gpu_names",
            _ => "unknown",
        }
    }

    fn account(&self, headers: &HeaderMap) -> Option<String> {
        let value = headers.get("authorization")?.to_str().ok()?;
        let key = value.strip_prefix("Bearer ")?;
        lock(&self.state).accounts.iter().find(|account| account.key == key).map(|found| found.label.clone())
    }

    fn answer(&self, call: &Call) -> Answer {
        if call.query.contains("api_key=") {
            return refusal(400, "invalid_request", "no keys in the query").rejecting("a key in the query");
        }
        self.guarded(call, self.operation(&call.method, &call.path), &Route::of(&call.path))
    }

    fn problem(&self, status: u16, detail: &str) -> Answer {
        match status {
            401 => refusal(401, "auth_error", detail),
            402 => refusal(402, "insufficient_credit", detail),
            403 => refusal(403, "not_authorized", detail),
            404 => refusal(404, "not_found", detail),
            429 => refusal(429, "rate_limit_exceeded", detail),
            500.. => refusal(status, "server_error", detail),
            _ => refusal(status, "invalid_args", detail),
        }
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
        let machine =
            state.instances.iter().find(|one| one.id.to_string() == id).and_then(|one| one.machine.as_ref());
        machine.inspect(|machine| machine.swap_host_key()).is_some()
    }

    fn home(&self, id: &str) -> Option<PathBuf> {
        let state = lock(&self.state);
        let machine = state.instances.iter().find(|one| one.id.to_string() == id)?.machine.as_ref()?;
        Some(machine.home().to_owned())
    }

    fn control(&self, method: &str, parts: &[&str], body: Value) -> Option<Answer> {
        self.handle(method, parts, body)
    }
}
