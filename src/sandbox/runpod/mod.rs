//! RunPod, API v2, as far as renting GPU pods goes.
//!
//! Owns accounts, pods and the answers of `/v2/pods`, `/v2/catalog` and `/v2/account/ssh-keys`. It is as strict
//! as the service, and in places stricter: an unknown field, a wrong method or a missing User-Agent is refused
//! and noted as rejected. Sources are the OpenAPI document and the guides at `docs.runpod.io`; what was only
//! seen in bug reports names the report.
//!
//! Not played: CPU pods, templates, clusters, volumes, PATCH, serverless, billing, GraphQL. API v1 answers 410.
//!
//! `wire.rs` requests, `catalog.rs` and `places.rs` what is for sale and where, `pods.rs` one pod, `state.rs` all pods and accounts,
//! `create.rs` and `list.rs` those two calls, `logs.rs` the log stream, `limits.rs` the rate limits, `hands.rs` what is done
//! to it from outside, `guesses.rs` what no document settles.

mod catalog;
mod create;
pub(in crate::sandbox) mod guesses;
mod hands;
mod limits;
mod list;
mod logs;
mod places;
mod pods;
mod state;
mod wire;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::http::HeaderMap;
use serde_json::{Value, json};

use self::catalog::{Ask, BadQuery, Catalog};
use self::guesses::RunPodGuesses;
use self::places::PlaceQuery;
use self::pods::{Phase, Pod};
use self::state::State;
use self::wire::{Action, Cloud, PodAction, Refusal};
use super::faults::FaultKind;
use super::server::{Answer, Call, Emulator, problem_json, segments};
use super::{Shared, lock};

/// The emulator.
#[derive(Debug)]
pub(super) struct RunPod {
    shared: Arc<Shared>,
    catalog: Catalog,
    state: Arc<Mutex<State>>,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Route {
    Pods,
    Pod(String),
    Action(String),
    Logs(String),
    Gpus,
    Gpu(String),
    DataCenters,
    DataCenter(String),
    SshKeys,
    Retired,
    Unknown,
}

impl Route {
    fn of(path: &str) -> Route {
        let parts = segments(path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            [.., ""] => Route::Unknown,
            ["v2", "pods"] => Route::Pods,
            ["v2", "pods", id] => Route::Pod((*id).to_owned()),
            ["v2", "pods", id, "action"] => Route::Action((*id).to_owned()),
            ["v2", "pods", id, "logs"] => Route::Logs((*id).to_owned()),
            ["v2", "catalog", "gpus"] => Route::Gpus,
            ["v2", "catalog", "gpus", id] => Route::Gpu((*id).to_owned()),
            ["v2", "catalog", "datacenters"] => Route::DataCenters,
            ["v2", "catalog", "datacenters", id] => Route::DataCenter((*id).to_owned()),
            ["v2", "account", "ssh-keys"] => Route::SshKeys,
            ["v1", ..] => Route::Retired,
            _ => Route::Unknown,
        }
    }

    fn methods(&self) -> &'static [&'static str] {
        match self {
            Route::Pods => &["GET", "POST"],
            Route::Pod(_) => &["GET", "PATCH", "DELETE"],
            Route::Action(_) => &["POST"],
            Route::SshKeys => &["GET", "PUT"],
            _ => &["GET"],
        }
    }
}

/// An error in RunPod's form (RFC 9457).
fn problem(status: u16, detail: &str) -> Answer {
    let title = axum::http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason());
    Answer::json(status, problem_json(title.unwrap_or("Error"), status, detail))
        .with("content-type", "application/problem+json")
}

fn invalid(errors: &[String]) -> Answer {
    let detail = "Request validation failed.";
    let mut body = problem_json("Unprocessable Entity", 422, detail);
    body["errors"] = json!(errors);
    Answer::json(422, body).with("content-type", "application/problem+json").rejecting(errors.join("; "))
}

fn refused(refusal: &Refusal) -> Answer {
    match refusal {
        Refusal::Schema(errors) => invalid(errors),
        Refusal::Rule(detail) => problem(400, detail).rejecting(*detail),
        Refusal::CountMissing => problem(400, catalog::NO_CAPACITY).rejecting("gpu.count is missing"),
    }
}

fn bad_query(refusal: &BadQuery) -> Answer {
    match refusal {
        BadQuery::Rule(detail) => problem(400, detail).rejecting(*detail),
        BadQuery::Schema(text) => invalid(std::slice::from_ref(text)),
    }
}

fn not_found() -> Answer {
    problem(404, "resource not found")
}

impl RunPod {
    /// An emulator with one account, which holds one pod of somebody else's.
    pub(super) fn new(shared: Arc<Shared>) -> io::Result<RunPod> {
        let state = Arc::new(Mutex::new(State::new(shared.options.seed)));
        Ok(RunPod { shared, catalog: Catalog::load()?, state })
    }

    /// The guarded part of every call: who may, how often, then what.
    fn guarded(&self, call: &Call, route: &Route) -> Answer {
        let bearer = call.header("authorization");
        if bearer.is_empty() {
            return problem(401, "missing bearer token");
        }
        let Some(account) = call.account.clone() else { return problem(401, "invalid bearer token") };
        let verdict = lock(&self.state).count_call(&account, self.shared.options.rate_limits);
        if let Some((window, wait)) = verdict.over() {
            let detail = format!("rate limit exceeded for the {window} window");
            return verdict.on(problem(429, &detail).with("retry-after", wait.to_string()));
        }
        verdict.on(self.carry_out(call, &account, route))
    }

    fn carry_out(&self, call: &Call, account: &str, route: &Route) -> Answer {
        let typed = call.header("content-type").starts_with("application/json");
        if matches!(call.method.as_str(), "POST" | "PATCH" | "PUT") && !typed {
            return problem(415, "content type must be application/json").rejecting("not sent as JSON");
        }
        self.advance();
        match (call.method.as_str(), route) {
            ("GET", Route::Pods) => self.list(call, account),
            ("POST", Route::Pods) => self.create(call, account),
            ("GET", Route::Pod(id)) => self.get(call, account, id),
            ("DELETE", Route::Pod(id)) => self.delete(account, id),
            ("POST", Route::Action(id)) => self.action(call, account, id),
            ("GET", Route::Logs(id)) => self.logs(call, account, id),
            ("GET", Route::Gpus | Route::Gpu(_)) => self.gpus(call, route),
            ("GET", Route::DataCenters | Route::DataCenter(_)) => self.places(call, route),
            ("GET", Route::SshKeys) => {
                let keys = lock(&self.state).account(account).map(|found| found.ssh_keys.clone());
                Answer::json(200, json!({"keys": keys.unwrap_or_default()}))
            }
            ("PUT", Route::SshKeys) => {
                problem(403, "access denied").rejecting("the account's SSH keys must never be replaced")
            }
            _ => problem(501, "not played by the sandbox").rejecting("a call that the sandbox does not play"),
        }
    }

    fn gpus(&self, call: &Call, route: &Route) -> Answer {
        let ask = match Ask::read(&call.pairs()) {
            Ok(ask) => ask,
            Err(refusal) => return bad_query(&refusal),
        };
        let Route::Gpu(id) = route else {
            return Answer::json(200, self.catalog.list(ask.as_ref(), &call.faults, self.guesses()));
        };
        match self.catalog.gpu(id) {
            Some(gpu) => {
                Answer::json(200, self.catalog.show(gpu, ask.as_ref(), &call.faults, self.guesses()))
            }
            None => not_found(),
        }
    }

    fn places(&self, call: &Call, route: &Route) -> Answer {
        let query = match PlaceQuery::read(&call.pairs()) {
            Ok(query) => query,
            Err(refusal) => return bad_query(&refusal),
        };
        let Route::DataCenter(id) = route else { return Answer::json(200, self.catalog.places(&query)) };
        match self.catalog.data_centers.iter().find(|dc| dc.id == *id) {
            Some(dc) => Answer::json(200, self.catalog.show_place(dc, &query)),
            None => not_found(),
        }
    }

    fn get(&self, call: &Call, account: &str, id: &str) -> Answer {
        let mut state = lock(&self.state);
        match state.visible(&self.shared, account, id) {
            Some((pod, phase)) => {
                pod.looks = pod.looks.saturating_add(1);
                Answer::json(200, self.show(pod, phase, &call.faults))
            }
            None => not_found(),
        }
    }

    /// A pod as JSON, with the faults of meaning that this call gets.
    fn show(&self, pod: &Pod, phase: Phase, faults: &[FaultKind]) -> Value {
        let clock = &self.shared.clock;
        let mut shown = pod.show(phase, clock.now(), |at| clock.date(at));
        let guesses = self.guesses();
        if guesses.running_at_once && matches!(phase, Phase::Provisioning | Phase::Starting) {
            shown["status"] = json!("RUNNING");
        }
        if guesses.community_place_hidden && pod.cloud == Cloud::Community {
            shown["dataCenterId"] = Value::Null;
        }
        if guesses.empty_runtime && shown["runtime"].is_null() {
            shown["runtime"] = json!({});
        }
        for fault in faults {
            if let FaultKind::StatusWord { word } = fault {
                shown["status"] = json!(word);
            }
        }
        shown
    }

    fn delete(&self, account: &str, id: &str) -> Answer {
        let mut state = lock(&self.state);
        match state.visible(&self.shared, account, id) {
            Some((_, Phase::Terminated)) | None => not_found(),
            Some((_, Phase::Provisioning)) if self.guesses().delete_waits => {
                problem(409, "action not valid for current pod status")
            }
            Some((pod, _)) => {
                state::end(&self.shared, pod);
                Answer::empty(204)
            }
        }
    }

    fn guesses(&self) -> RunPodGuesses {
        self.shared.options.runpod_guesses
    }

    fn action(&self, call: &Call, account: &str, id: &str) -> Answer {
        let action = match wire::read::<PodAction>(&call.body) {
            Ok(body) => body.action,
            Err(refusal) => return refused(&refusal),
        };
        let mut state = lock(&self.state);
        let Some((pod, phase)) = state.visible(&self.shared, account, id) else { return not_found() };
        let word = match action {
            Action::Start => "start",
            Action::Stop => "stop",
            Action::Restart => "restart",
            Action::Terminate => "terminate",
        };
        if !Pod::actions(phase).contains(&word) {
            return problem(409, "action not valid for current pod status");
        }
        if action == Action::Terminate {
            state::end(&self.shared, pod);
            return Answer::empty(204);
        }
        // The container disk is wiped, and the next run has another port and host key.
        pod.machine = None;
        pod.stopped = action == Action::Stop;
        if !pod.stopped {
            pod.script = None;
            pod.started = self.shared.clock.now();
            if let Err(error) = self.reserve_machine(pod) {
                return problem(500, &error.to_string());
            }
        }
        let phase = pod.phase(self.shared.clock.now(), self.shared.options.slow_delete);
        Answer::json(200, self.show(pod, phase, &call.faults))
    }

    /// Lets happen what is due.
    fn advance(&self) {
        lock(&self.state).tick(&self.shared);
    }
}

impl Emulator for RunPod {
    fn cloud(&self) -> &'static str {
        "runpod"
    }

    fn operation(&self, method: &str, path: &str) -> &'static str {
        match (method, Route::of(path)) {
            ("GET", Route::Pods) => "list_pods",
            ("POST", Route::Pods) => "create_pod",
            ("GET", Route::Pod(_)) => "get_pod",
            ("DELETE", Route::Pod(_)) => "delete_pod",
            ("PATCH", Route::Pod(_)) => "update_pod",
            ("POST", Route::Action(_)) => "pod_action",
            ("GET", Route::Logs(_)) => "logs",
            ("GET", Route::Gpus) => "catalog",
            ("GET", Route::Gpu(_)) => "catalog_one",
            ("GET", Route::DataCenters) => "datacenters",
            ("GET", Route::DataCenter(_)) => "datacenter",
            ("GET", Route::SshKeys) => "ssh_keys",
            ("PUT", Route::SshKeys) => "put_ssh_keys",
            _ => "unknown",
        }
    }

    fn account(&self, headers: &HeaderMap) -> Option<String> {
        let value = headers.get("authorization")?.to_str().ok()?;
        let key = value.strip_prefix("Bearer ")?;
        lock(&self.state).accounts.iter().find(|account| account.key == key).map(|found| found.label.clone())
    }

    fn answer(&self, call: &Call) -> Answer {
        let id = format!("req-{:06}", call.index);
        let agent = call.header("user-agent");
        // Cloudflare's answer to library defaults: https://github.com/lumpenspace/raft/issues/14
        if agent.is_empty() || agent.starts_with("Python-urllib") {
            return Answer::text(403, "text/plain", "error code: 1010").rejecting("no User-Agent");
        }
        let route = Route::of(&call.path);
        let answer = if route == Route::Retired {
            problem(410, "This API version has been retired.").rejecting("a call of API v1")
        } else if route == Route::Unknown {
            problem(404, "The requested path was not found.").rejecting("unknown path")
        } else if !route.methods().contains(&call.method.as_str()) {
            problem(405, "method not allowed")
                .with("allow", route.methods().join(", "))
                .rejecting("wrong method")
        } else if call.body.len() > wire::MOST_BODY {
            problem(413, "request body exceeds 102400 bytes").rejecting("body too large")
        } else {
            self.guarded(call, &route)
        };
        answer.with("x-request-id", id)
    }

    fn problem(&self, status: u16, detail: &str) -> Answer {
        problem(status, detail)
    }

    fn tick(&self) {
        self.advance();
    }

    fn busy(&self) -> bool {
        self.running_something()
    }

    fn halt(&self) {
        lock(&self.state).pods.clear();
    }

    fn swap_host_key(&self, id: &str) -> bool {
        self.another_host_key(id)
    }

    fn home(&self, id: &str) -> Option<PathBuf> {
        self.home_of(id)
    }
}
