//! How faults on the wire look: the answers that `server.rs` sends in place of the emulator's own.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use axum::http::header::{CONTENT_LENGTH, HeaderValue};
use futures_util::stream;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::faults::{FaultKind, Junk, RetryAfter};
use super::server::{Answer, Emulator, Payload};

/// What a fault answers in place of the emulator; nothing means that the connection is cut.
pub(super) async fn instead(fault: &FaultKind, emulator: &dyn Emulator) -> Option<Answer> {
    match fault {
        FaultKind::Status { code, body, content_type, headers, .. } => {
            let mut answer = match body {
                Some(body) => Answer::text(*code, "application/problem+json", body),
                None => emulator.problem(*code, "played by the sandbox"),
            };
            if let Some(kind) = content_type {
                answer = answer.with("content-type", kind.clone());
            }
            Some(headers.iter().fold(answer, |answer, (name, value)| answer.with(name, value.clone())))
        }
        FaultKind::Hang { ms, .. } => {
            // A client that leaves earlier ends this future with its connection.
            tokio::time::sleep(Duration::from_millis((*ms).min(600_000))).await;
            None
        }
        FaultKind::TooMany { retry_after } => Some(too_many(*retry_after, emulator)),
        FaultKind::Refuse { detail } => Some(emulator.problem(400, detail)),
        FaultKind::DeleteRefused => Some(emulator.problem(409, "action not valid for current pod status")),
        _ => None,
    }
}

fn too_many(form: RetryAfter, emulator: &dyn Emulator) -> Answer {
    let detail = "rate limit exceeded for the minute window";
    match form {
        RetryAfter::Seconds(seconds) => {
            emulator.problem(429, detail).with("retry-after", seconds.to_string())
        }
        RetryAfter::Date(seconds) => {
            let ahead = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(0));
            let at = Timestamp::now().checked_add(ahead).unwrap_or(Timestamp::now());
            let date = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            emulator.problem(429, detail).with("retry-after", date)
        }
        RetryAfter::Nothing => Answer::text(429, "text/plain", "API requests too frequent"),
    }
}

/// The same status with a body that is not what was promised.
pub(super) fn garbage(body: Junk, answer: Answer) -> Answer {
    let status = if answer.status == 204 { 200 } else { answer.status };
    match body {
        Junk::Html => Answer::text(status, "text/html", "<html><body><h1>502 Bad Gateway</h1></body></html>"),
        Junk::Empty => Answer::text(status, "application/json", ""),
        Junk::WrongType => Answer::json(status, json!([1, "two", null])),
        Junk::Torn => Answer::text(status, "application/json", "{\"pods\": [{\"id\": \"5xpm"),
    }
}

/// Fields that no document knows, in every object of the answer that is data of the cloud.
pub(super) fn extra(mut answer: Answer) -> Answer {
    if let Payload::Json(value) = &mut answer.body {
        sprinkle(value);
    }
    answer
}

fn sprinkle(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map.iter_mut() {
                if key != "env" {
                    sprinkle(inner);
                }
            }
            map.insert("sandboxExtra".into(), json!({"since": "tomorrow", "list": [1, null]}));
        }
        Value::Array(items) => items.iter_mut().for_each(sprinkle),
        _ => {}
    }
}

/// Announces the whole body, sends half of it, and ends the connection.
pub(super) async fn cut(answer: Answer) -> Response<Body> {
    let (mut head, body) = answer.into_response().into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let whole = bytes.len().max(40);
    let half = bytes.slice(..bytes.len() / 2);
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(whole));
    if head.status.as_u16() == 204 {
        head.status = axum::http::StatusCode::OK;
    }
    let parts = stream::unfold(0_u8, move |step| {
        let half = half.clone();
        async move {
            if step == 0 {
                return Some((Ok::<Bytes, std::io::Error>(half), 1));
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
            Some((Err(std::io::ErrorKind::ConnectionAborted.into()), 2))
        }
    });
    Response::from_parts(head, Body::from_stream(parts))
}
