//! The control path: what a test or a script does to the sandbox from outside, as HTTP and JSON.
//!
//! | call | does |
//! |---|---|
//! | `GET /ledger` | every machine ever made |
//! | `GET /requests` | every request so far; `?rejected=1` only those a correct client never sends |
//! | `GET`, `POST`, `DELETE /faults` | lists, adds (one or a list of [`Fault`]), clears |
//! | `POST /step` | `{"ms": N}` moves the clock ahead |
//! | `POST /pods` | `{"account": KEY or LABEL, ...}` with the fields of [`PodSeed`]; `"foreign": true` for one without marks |
//! | `DELETE /pods/ID` | as in the web console |
//! | `POST /pods/ID/host-key` | another host key |
//! | `POST /accounts` | opens an account; answers its key and label |
//! | `... /vast/...` | the same for another cloud, see `vast/hands.rs` |
//! | `... /verda/...` | see `verda/control.rs` |
//! | `... /gcp/...` | see `gcp/control.rs` |
//! | `... /nebius/...` | see `nebius/control.rs` |
//!
//! It has a port of its own, so no client of a cloud can reach it by mistake. Its base URL ends in a random
//! part: who may open accounts and make machines here gets a shell as the user that runs the sandbox.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use super::Shared;
use super::faults::Fault;
use super::machine::{hex, random};
use super::runpod::RunPod;
use super::seed::PodSeed;
use super::server::{Answer, Emulator, Service, problem_json, segments};

/// The served control path.
#[derive(Debug)]
pub(super) struct Control {
    service: Service,
    secret: String,
}

impl Control {
    /// Serves it on a free port of 127.0.0.1.
    pub(super) async fn start(
        shared: Arc<Shared>,
        runpod: Arc<RunPod>,
        emulators: Vec<Arc<dyn Emulator>>,
    ) -> io::Result<Control> {
        let secret = hex(&random::<16>());
        let expected = secret.clone();
        let service = Service::listen(None, None, move |request, _line| {
            let (shared, runpod, secret) = (Arc::clone(&shared), Arc::clone(&runpod), expected.clone());
            let emulators = emulators.clone();
            async move { answer(request, &secret, &shared, &runpod, &emulators).await.into_response() }
        })
        .await?;
        Ok(Control { service, secret })
    }

    /// Base URL, the secret part included.
    pub(super) fn endpoint(&self) -> String {
        format!("http://{}/{}", self.service.address(), self.secret)
    }
}

async fn answer(
    request: Request<hyper::body::Incoming>,
    secret: &str,
    shared: &Shared,
    runpod: &RunPod,
    emulators: &[Arc<dyn Emulator>],
) -> Answer {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(Body::new(body), 1 << 20).await else {
        return refuse(413, "body too large");
    };
    // A web page cannot send this without asking first, so none can steer the sandbox.
    if head.headers.contains_key("origin") {
        return refuse(403, "not for web pages");
    }
    let body: Value = if body.is_empty() {
        Value::Null
    } else {
        match serde_json::from_slice(&body) {
            Ok(value) => value,
            Err(error) => return refuse(400, &error.to_string()),
        }
    };
    let parts = segments(head.uri.path());
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let Some((_, parts)) = parts.split_first().filter(|(first, _)| **first == secret) else {
        return refuse(404, "no such control call");
    };
    match (head.method.as_str(), parts) {
        ("GET", ["ledger"]) => Answer::json(200, json!(shared.ledger.all())),
        ("GET", ["requests"]) => {
            let only = head.uri.query().is_some_and(|query| query.contains("rejected=1"));
            let all = shared.records.all();
            let shown: Vec<_> = all.into_iter().filter(|record| !only || record.rejected.is_some()).collect();
            Answer::json(200, json!(shown))
        }
        ("GET", ["faults"]) => Answer::json(200, json!(shared.faults.all())),
        ("POST", ["faults"]) => add_faults(body, shared),
        ("DELETE", ["faults"]) => {
            shared.faults.clear();
            Answer::empty(204)
        }
        ("POST", ["step"]) => match body.get("ms").and_then(Value::as_u64) {
            Some(ms) => {
                shared.clock.step(Duration::from_millis(ms));
                emulators.iter().for_each(|emulator| emulator.tick());
                Answer::empty(204)
            }
            None => refuse(400, "want {\"ms\": N}"),
        },
        ("POST", ["pods"]) => add_pod(body, runpod),
        ("DELETE", ["pods", id]) => done(runpod.remove(id)),
        ("POST", ["pods", id, "host-key"]) => done(Emulator::swap_host_key(runpod, id)),
        ("POST", ["accounts"]) => {
            let key = runpod.add_account();
            let label = runpod.label(&key);
            Answer::json(201, json!({"key": key, "label": label}))
        }
        (method, [cloud, rest @ ..]) => emulators
            .iter()
            .find(|emulator| emulator.cloud() == *cloud)
            .and_then(|emulator| emulator.control(method, rest, body))
            .unwrap_or_else(|| refuse(404, "no such control call")),
        _ => refuse(404, "no such control call"),
    }
}

fn add_faults(body: Value, shared: &Shared) -> Answer {
    let list = if body.is_array() { body } else { json!([body]) };
    match serde_json::from_value::<Vec<Fault>>(list) {
        Ok(faults) => {
            faults.into_iter().for_each(|fault| shared.faults.add(fault));
            Answer::empty(204)
        }
        Err(error) => refuse(400, &error.to_string()),
    }
}

fn add_pod(mut body: Value, runpod: &RunPod) -> Answer {
    let Some(fields) = body.as_object_mut() else { return refuse(400, "want an object") };
    let account = fields.remove("account").and_then(|value| value.as_str().map(str::to_owned));
    let foreign = fields.remove("foreign") == Some(Value::Bool(true));
    let mut seed: PodSeed = match serde_json::from_value(body) {
        Ok(seed) => seed,
        Err(error) => return refuse(400, &error.to_string()),
    };
    if foreign {
        seed.env = PodSeed::foreign(&seed.name).env;
    }
    match runpod.add_pod(account.as_deref().unwrap_or("account-1"), &seed) {
        Ok(id) => Answer::json(201, json!({"id": id})),
        Err(error) => refuse(400, &error.to_string()),
    }
}

fn done(found: bool) -> Answer {
    if found { Answer::empty(204) } else { refuse(404, "no such pod") }
}

fn refuse(status: u16, detail: &str) -> Answer {
    Answer::json(status, problem_json("control", status, detail))
}
