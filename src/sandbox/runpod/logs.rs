//! `GET /v2/pods/{id}/logs`: a server-sent event stream that stays open and says nothing until a line exists.
//!
//! The container log of the official images prints the host keys' fingerprints at boot
//! (<https://github.com/runpod/containers>, `container-template/start.sh`), so a client can learn them over the
//! API. The system log tells what the container runtime does.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use jiff::Timestamp;
use serde_json::json;

use super::pods::{Phase, Pod};
use super::{RunPod, invalid, not_found, problem};
use crate::sandbox::scripts::Script;
use crate::sandbox::server::{Answer, Call, Payload};
use crate::sandbox::{Shared, lock};

/// Longest life of one stream.
const MOST: Duration = Duration::from_secs(600);
/// How often new lines are looked for.
const PACE: Duration = Duration::from_millis(50);

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    at: Duration,
    source: &'static str,
    text: String,
}

/// What a stream was asked for.
#[derive(Debug, Clone)]
struct Wanted {
    source: Option<String>,
    tail: usize,
    since: Option<Timestamp>,
}

impl RunPod {
    /// Opens a stream.
    pub(super) fn logs(&self, call: &Call, account: &str, id: &str) -> Answer {
        let pairs = call.pairs();
        let get = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let bad = |name: &str| invalid(&[format!("query parameter '{name}' is not valid")]);
        let source = get("source");
        if source.as_deref().is_some_and(|word| !matches!(word, "container" | "system")) {
            return bad("source");
        }
        let tail = match get("tail").map(|text| text.parse::<usize>()) {
            None => 100,
            Some(Ok(tail)) if tail <= 5000 => tail,
            Some(_) => return bad("tail"),
        };
        let since = match get("since").map(|text| text.parse::<Timestamp>()) {
            None => None,
            Some(Ok(since)) => Some(since),
            Some(Err(_)) => return bad("since"),
        };
        if lock(&self.state).visible(&self.shared, account, id).is_none() {
            return not_found();
        }
        if self.guesses().silent_logs {
            return problem(403, "access denied");
        }
        let resume = call.header("last-event-id").rsplit('/').next().and_then(|text| text.parse().ok());
        let wanted = Wanted { source, tail, since };
        let body = self.follow(account, id, wanted, resume);
        Answer {
            status: 200,
            headers: Vec::new(),
            body: Payload::Stream("text/event-stream", body),
            rejected: None,
        }
    }

    fn follow(&self, account: &str, id: &str, wanted: Wanted, resume: Option<usize>) -> Body {
        let look = {
            let (shared, state) = (Arc::clone(&self.shared), Arc::clone(&self.state));
            let (account, id) = (account.to_owned(), id.to_owned());
            move || {
                let mut state = lock(&state);
                let (pod, phase) = state.visible(&shared, &account, &id)?;
                (phase != Phase::Terminated).then(|| lines(pod, shared.clock.now()))
            }
        };
        let shared = Arc::clone(&self.shared);
        let opened = std::time::Instant::now();
        let start = (resume.unwrap_or(0), resume.is_none());
        Body::from_stream(stream::unfold((look, start), move |(look, (mut sent, first))| {
            let (shared, wanted) = (Arc::clone(&shared), wanted.clone());
            async move {
                while opened.elapsed() < MOST {
                    let all = look()?;
                    if first {
                        // Of what is there already, only the tail of the wanted source.
                        let older = all.iter().enumerate().rev();
                        let mut mine = older.filter(|(_, line)| wanted.takes(&shared, line));
                        let first = match wanted.tail {
                            0 => all.len(),
                            tail => mine.nth(tail - 1).map_or(0, |(index, _)| index),
                        };
                        sent = sent.max(first);
                    }
                    let text: String = (sent..all.len())
                        .filter(|index| wanted.takes(&shared, &all[*index]))
                        .map(|index| event(&shared, index, &all[index]))
                        .collect();
                    let sent = all.len().max(sent);
                    if !text.is_empty() {
                        return Some((Ok::<Bytes, Infallible>(Bytes::from(text)), (look, (sent, false))));
                    }
                    tokio::time::sleep(PACE).await;
                }
                None
            }
        }))
    }
}

impl Wanted {
    fn takes(&self, shared: &Shared, line: &Line) -> bool {
        self.source.as_deref().is_none_or(|source| source == line.source)
            && self.since.is_none_or(|since| shared.clock.date(line.at) >= since)
    }
}

fn event(shared: &Shared, index: usize, line: &Line) -> String {
    let at = shared.clock.date(line.at);
    let data = json!({"ts": at.to_string(), "source": line.source, "line": line.text});
    format!("id: {at}/{:012}\ndata: {data}\n\n", index + 1)
}

/// All lines of a pod up to now, oldest first. Lines are only ever added.
pub(super) fn lines(pod: &Pod, now: Duration) -> Vec<Line> {
    let mut out = Vec::new();
    let mut at = |part: u32, source: &'static str, text: String| {
        let due = pod.started + pod.boot * part / 8;
        if due <= now {
            out.push(Line { at: due, source, text });
        }
    };
    at(1, "system", format!("create container {}", pod.image));
    at(2, "system", "1.4.1: Pulling from runpod/base".into());
    at(3, "system", "5f70bf18a086 Extracting".into());
    at(4, "system", format!("start container for {}: begin", pod.image));
    if pod.script == Some(Script::CudaMismatch) {
        let wants = if pod.image.contains("cuda13") { "13.0" } else { "12.9" };
        at(
            5,
            "system",
            format!(
                "error starting container: Error response from daemon: failed to create task for container: \
                 nvidia-container-cli: requirement error: unsatisfied condition: cuda>={wants}, please update \
                 your driver to a newer version, or use an earlier cuda container"
            ),
        );
        return out;
    }
    if matches!(pod.script, Some(Script::NeverReady { .. })) {
        return out;
    }
    let Some(machine) = &pod.machine else { return out };
    at(5, "container", "Pod Started".into());
    at(6, "container", "Setting up SSH...".into());
    let key = machine.fingerprint();
    let id = &pod.id;
    at(8, "container", "ED25519 key fingerprint:".into());
    at(8, "container", format!("256 {key} root@{id} (ED25519)"));
    at(8, "container", "SSH host keys:".into());
    at(8, "container", format!("256 {key} root@{id} (ED25519)"));
    at(8, "container", "Start script(s) finished, Pod is ready to use.".into());
    out
}
