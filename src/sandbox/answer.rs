//! What an emulator answers, before it is an HTTP response.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use serde_json::Value;

use super::grpc;

/// What goes back.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Payload,
    /// Set when the real service would call the request malformed, or when it must never be sent.
    pub(super) rejected: Option<String>,
}

/// The body of an [`Answer`].
pub(super) enum Payload {
    /// Nothing.
    Empty,
    /// JSON, sent as `application/json` unless the headers say otherwise.
    Json(Value),
    /// Text of a type of its own.
    Text(&'static str, String),
    /// A body that is still being written, such as a log.
    Stream(&'static str, Body),
    /// A message or an error of gRPC; on the wire its HTTP status is 200, whatever the answer's is.
    Grpc(grpc::Reply),
}

impl Answer {
    /// A JSON answer.
    pub(super) fn json(status: u16, value: Value) -> Answer {
        Answer { status, headers: Vec::new(), body: Payload::Json(value), rejected: None }
    }

    /// An answer without a body.
    pub(super) fn empty(status: u16) -> Answer {
        Answer { status, headers: Vec::new(), body: Payload::Empty, rejected: None }
    }

    /// Text.
    pub(super) fn text(status: u16, kind: &'static str, text: &str) -> Answer {
        Answer { status, headers: Vec::new(), body: Payload::Text(kind, text.to_owned()), rejected: None }
    }

    /// With one more header.
    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Answer {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Marked as something a correct client never sends.
    pub(super) fn rejecting(mut self, why: impl Into<String>) -> Answer {
        self.rejected = Some(why.into());
        self
    }

    /// As an HTTP response.
    pub(super) fn into_response(self) -> Response<Body> {
        let (kind, body) = match self.body {
            Payload::Grpc(reply) => {
                let mut response = reply.into_response();
                add(&mut response, self.headers);
                return response;
            }
            Payload::Empty => (None, Body::empty()),
            Payload::Json(value) => (Some("application/json"), Body::from(value.to_string())),
            Payload::Text(kind, text) => (Some(kind), Body::from(text)),
            Payload::Stream(kind, body) => (Some(kind), body),
        };
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(kind) = kind {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        add(&mut response, self.headers);
        response
    }
}

fn add(response: &mut Response<Body>, headers: Vec<(String, String)>) {
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value)) {
            response.headers_mut().insert(name, value);
        }
    }
}
