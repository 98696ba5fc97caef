//! Nebius AI Cloud, as far as renting virtual machines goes: gRPC only, all services on one address.
//!
//! It is driven by the wire table (`table.rs`): a request is turned into JSON, judged by the table's rules, carried out,
//! and the answer is turned back. It is as strict as the service, and in places stricter: unknown fields, creates without
//! an idempotency key and names of other accounts are refused and noted as rejected. Sources are the descriptors and code
//! of the official client `nebius` 0.6.29 (<https://github.com/nebius/pysdk>), <https://docs.nebius.com>, and bug reports
//! where they are named.
//!
//! Not played: updates, filesystems, secondary and existing disks, clusters of GPUs, security groups, allocations of one's
//! own, reservations, spot price policies, the browser login, what user data run.
//!
//! A machine is an address alone, see `addresses.rs` above. It is what cloud-init makes of the user data.
//!
//! - `table.rs`, `decode.rs`, `encode.rs`, `rules.rs`, `status.rs`: messages and errors on the wire
//! - `catalog.rs`, `sale.rs`: what is for sale
//! - `account.rs`, `token.rs`: who may
//! - `judge.rs`, `create.rs`, `cloud_init.rs`, `act.rs`, `look.rs`: the calls about instances and disks
//! - `instance.rs`, `disk.rs`, `operation.rs`, `state.rs`: one of each, and all of them
//! - `guesses.rs` what no document settles, `trouble.rs` what goes wrong here only, `seed.rs` instances that were there
//! - `hands.rs` and `control.rs` what is done to it from outside, `left.rs` what is left

mod account;
mod act;
mod catalog;
mod cloud_init;
mod control;
mod create;
mod decode;
mod disk;
mod encode;
mod guesses;
mod hands;
mod instance;
mod judge;
mod left;
mod look;
mod operation;
#[cfg(test)]
pub(super) mod probe;
mod put;
mod rules;
mod sale;
mod seed;
mod state;
mod status;
mod table;
mod token;
mod trouble;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use axum::http::HeaderMap;
use serde_json::{Value, json};

pub use self::guesses::NebiusGuesses;
pub use self::hands::Nebius;
pub use self::left::{NebiusLeft, NebiusLeftKind};
pub use self::seed::NebiusSeed;
pub use self::trouble::{LateCause, NebiusFault, NebiusScript};

use self::catalog::Catalog;
use self::instance::{Instance, Stage};
use self::state::State;
use self::status::{Outcome, Trouble};
use self::table::{Method, Table};
use super::faults::{FaultKind, When};
use super::grpc::{self, Code, Reply};
use super::server::{Answer, Call, Emulator};
use super::{Shared, lock};

/// The emulator.
#[derive(Debug)]
struct NebiusCloud {
    shared: Arc<Shared>,
    table: &'static Table,
    catalog: Catalog,
    state: Mutex<State>,
}

/// A call with its message.
struct Request<'a> {
    call: &'a Call,
    operation: &'static str,
    message: Value,
}

static TABLE: OnceLock<Table> = OnceLock::new();

/// The wire table, read once for the process.
fn table() -> io::Result<&'static Table> {
    if let Some(table) = TABLE.get() {
        return Ok(table);
    }
    let table = Table::load()?;
    Ok(TABLE.get_or_init(|| table))
}

/// The error that a fault puts in place of the answer.
fn failure(call: &Call, at: When) -> Option<Box<Trouble>> {
    call.faults.iter().find_map(|fault| match fault {
        FaultKind::Nebius(NebiusFault::Failure { code, message, detail, when }) if *when == at => {
            let mut trouble = Trouble::plain(Code(*code), message.clone());
            trouble.detail = detail.clone();
            Some(trouble)
        }
        _ => None,
    })
}

/// Calls that need no token.
fn is_open(operation: &str, guesses: NebiusGuesses) -> bool {
    operation == "exchange_token" || (operation == "list_spot_prices" && !guesses.spot_prices_need_token)
}

impl NebiusCloud {
    /// An emulator without accounts.
    fn new(shared: Arc<Shared>) -> io::Result<NebiusCloud> {
        let state = State::new(shared.options.seed, shared.options.nebius_guesses);
        Ok(NebiusCloud { table: table()?, catalog: Catalog::load()?, state: Mutex::new(state), shared })
    }

    fn stage(&self, state: &State, one: &Instance) -> Stage {
        state.stage(&self.shared, one)
    }

    /// An error on the wire.
    fn refuse(&self, trouble: &Trouble) -> Answer {
        let details = match trouble.detail.is_null() {
            true => None,
            false => encode::encode(self.table, "google.rpc.Status", &trouble.status(), false).ok(),
        };
        let late = self.shared.options.nebius_guesses.errors_after_headers;
        let answer = grpc::answer(Reply::error(trouble.code, &trouble.message, details, late));
        if trouble.rejecting { answer.rejecting(trouble.message.clone()) } else { answer }
    }

    /// Who may, then what.
    fn guarded(&self, call: &Call, method: &Method) -> Outcome {
        let guesses = self.shared.options.nebius_guesses;
        let account = match &call.account {
            Some(account) => account.as_str(),
            None if is_open(method.operation, guesses) => "",
            None if method.operation == "profile" && guesses.anonymous_profile => {
                return Ok(json!({"anonymous_profile": {}}));
            }
            None if call.header("authorization").is_empty() => {
                return Err(Trouble::unauthenticated("Authorization header is missing").rejecting());
            }
            None => return Err(Trouble::unauthenticated("The token is invalid or has expired")),
        };
        let message = grpc::unframe(&call.body).map_err(|why| Trouble::invalid("body", why))?;
        let message = decode::decode(self.table, method.request, message);
        let message = message.map_err(|why| Trouble::invalid("message", &why))?;
        // The calculator takes half a spec.
        if method.operation != "estimate" {
            let violations = rules::violations(self.table, method.request, &message);
            if !violations.is_empty() {
                return Err(Trouble::violations(violations));
            }
        }
        let key = call.header("x-idempotency-key");
        if !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(Trouble::invalid("x-idempotency-key", "malformed"));
        }
        if let Some(instead) = failure(call, When::Before) {
            return Err(instead);
        }
        lock(&self.state).tick(&self.shared);
        let request = Request { call, operation: method.operation, message };
        let done = self.carry_out(&request, account)?;
        match failure(call, When::After) {
            Some(instead) => Err(instead),
            None => Ok(done),
        }
    }

    fn carry_out(&self, request: &Request<'_>, account: &str) -> Outcome {
        match request.operation {
            "exchange_token" => self.exchange(request),
            "profile" => self.profile(request, account),
            "create_instance" => self.create(request, account),
            "delete_instance" => self.delete(request, account),
            "stop_instance" => self.stop(request, account),
            "start_instance" => self.start_again(request, account),
            "delete_disk" => self.delete_disk(request, account),
            "list_spot_prices" => self.spot_prices(request, account),
            "list_platforms" | "get_platform" | "list_advice" | "list_quotas" | "get_quota" | "estimate"
            | "image_latest" | "get_image" | "list_images" => self.sale(request, account),
            _ => self.look(request, account),
        }
    }
}

impl Emulator for NebiusCloud {
    fn cloud(&self) -> &'static str {
        "nebius"
    }

    fn operation(&self, _method: &str, path: &str) -> &'static str {
        self.table.method(path).map_or("unknown", |method| method.operation)
    }

    fn account(&self, headers: &HeaderMap) -> Option<String> {
        let value = headers.get("authorization")?.to_str().ok()?;
        let text = value.strip_prefix("Bearer ")?;
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        let token = state.tokens.iter().find(|token| token.text == text)?;
        token.expires.is_none_or(|expires| now < expires).then(|| token.account.clone())
    }

    fn grpc(&self) -> bool {
        true
    }

    fn recorded(&self, path: &str, body: &[u8]) -> Option<Value> {
        let method = self.table.method(path)?;
        let mut message = decode::decode(self.table, method.request, grpc::unframe(body).ok()?).ok()?;
        if let Value::Object(fields) = &mut message {
            for field in self.table.message(method.request).iter().filter(|field| field.is("secret")) {
                fields.shift_remove(field.name);
            }
        }
        Some(message)
    }

    fn answer(&self, call: &Call) -> Answer {
        let kind = call.header("content-type");
        if call.method != "POST" || !kind.starts_with(grpc::CONTENT_TYPE) {
            return Answer::text(415, "text/plain", "gRPC only").rejecting("no gRPC call");
        }
        if call.header("te") != "trailers" || call.header("user-agent").is_empty() {
            return self.refuse(&Trouble::invalid("headers", "te: trailers and user-agent are required"));
        }
        let Some(method) = self.table.method(&call.path) else {
            return self.refuse(&Trouble::plain(Code::UNIMPLEMENTED, "unknown method").rejecting());
        };
        let extra = call.faults.contains(&FaultKind::ExtraFields);
        let answer = match self.guarded(call, method) {
            Ok(_) if call.faults.contains(&FaultKind::Nebius(NebiusFault::Hollow)) => {
                grpc::answer(Reply::ok(&[]))
            }
            Ok(message) => match encode::encode(self.table, method.response, &message, extra) {
                Ok(bytes) => grpc::answer(Reply::ok(&bytes)),
                Err(why) => {
                    let message = format!("the sandbox cannot write its answer: {why}");
                    self.refuse(&Trouble::plain(Code::INTERNAL, message).rejecting())
                }
            },
            Err(trouble) => self.refuse(&trouble),
        };
        answer.with("x-request-id", format!("request-{}", call.index)).with("x-trace-id", "sandbox")
    }

    fn problem(&self, status: u16, detail: &str) -> Answer {
        self.refuse(&Trouble::of_http(status, detail))
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
