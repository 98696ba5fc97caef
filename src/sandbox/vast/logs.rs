//! `PUT /instances/request_logs/{id}/`: a log is asked for, and is a moment later to be had at an address of its own.

use std::time::Duration;

use serde_json::{Value, json};

use super::calls::number;
use super::instance::{Instance, Phase};
use super::{VastCloud, refusal};
use crate::sandbox::lock;
use crate::sandbox::machine::{hex, random};
use crate::sandbox::scripts::Script;
use crate::sandbox::server::{Answer, Call};

/// Time from the request to the file.
const LAG: Duration = Duration::from_millis(300);

impl VastCloud {
    /// Asks for a log.
    pub(super) fn request_logs(&self, call: &Call, account: &str, id: &str, body: &Value) -> Answer {
        let text = |name: &str| body.get(name).filter(|value| !value.is_null());
        let strings =
            ["tail", "filter", "daemon_logs"].iter().all(|name| text(name).is_none_or(Value::is_string));
        let tail: Option<usize> = text("tail").map_or(Some(1000), |tail| tail.as_str()?.parse().ok());
        let Some(tail) = tail.filter(|_| strings) else {
            return refusal(400, "invalid_args", "tail must be a string of digits")
                .rejecting("tail is not a string");
        };
        let daemon = text("daemon_logs").and_then(Value::as_str) == Some("true");
        let now = self.shared.clock.now();
        let mut state = lock(&self.state);
        let Some((one, phase)) = state.visible(&self.shared, account, number(id)) else {
            return refusal(404, "invalid_id", "Invalid instance id.");
        };
        let lines = if daemon { daemon_lines(one) } else { container_lines(one, phase) };
        let filter = text("filter").and_then(Value::as_str).unwrap_or_default();
        let mut lines: Vec<String> = lines.into_iter().filter(|line| line.contains(filter)).collect();
        let skip = lines.len().saturating_sub(tail);
        let log = lines.split_off(skip).join("\n") + "\n";
        let path = format!("/logs/{}.log", hex(&random::<16>()));
        state.logs.insert(path.clone(), (now + LAG, log));
        let scheme = if self.shared.options.tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}{path}", call.header("host"));
        Answer::json(200, json!({"success": true, "result_url": url}))
    }

    /// The file, which is public: who sends a key along gives it away.
    pub(super) fn log_file(&self, call: &Call) -> Answer {
        if !call.header("authorization").is_empty() {
            return Answer::text(400, "application/xml", "<Error><Code>InvalidArgument</Code></Error>")
                .rejecting("the key sent to the store of the logs");
        }
        let now = self.shared.clock.now();
        match lock(&self.state).logs.get(&call.path).filter(|(from, _)| now >= *from) {
            Some((_, text)) => Answer::text(200, "text/plain", text),
            None => Answer::text(404, "application/xml", "<Error><Code>NoSuchKey</Code></Error>"),
        }
    }
}

fn container_lines(one: &Instance, phase: Phase) -> Vec<String> {
    let mut lines = Vec::new();
    if phase == Phase::Up {
        lines.push("Vast.ai: setting up sshd".to_owned());
        lines.extend(one.onstart.as_ref().map(|_| "onstart.sh (not run by the sandbox)".to_owned()));
        lines.push("Server listening on 0.0.0.0 port 22.".to_owned());
    }
    lines
}

fn daemon_lines(one: &Instance) -> Vec<String> {
    let mut lines = vec![format!("docker pull {}", one.image), format!("docker create C.{}", one.id)];
    if one.script == Some(Script::CudaMismatch) {
        lines.push(one.cuda_error());
    }
    lines
}
