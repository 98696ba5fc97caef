//! gRPC over the HTTP side that all emulators share: frames, trailers, and how faults on the wire look here.
//!
//! Written from <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>. Calls have one message each way, and
//! nothing is compressed. It knows no message: bodies are bytes.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::faults::Junk;
use super::server::{Answer, Payload};

/// The content type of everything.
pub(super) const CONTENT_TYPE: &str = "application/grpc";

/// A status code of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(pub(super) u32);

impl Code {
    pub(super) const OK: Code = Code(0);
    pub(super) const UNKNOWN: Code = Code(2);
    pub(super) const INVALID_ARGUMENT: Code = Code(3);
    pub(super) const NOT_FOUND: Code = Code(5);
    pub(super) const ALREADY_EXISTS: Code = Code(6);
    pub(super) const PERMISSION_DENIED: Code = Code(7);
    pub(super) const RESOURCE_EXHAUSTED: Code = Code(8);
    pub(super) const FAILED_PRECONDITION: Code = Code(9);
    pub(super) const ABORTED: Code = Code(10);
    pub(super) const UNIMPLEMENTED: Code = Code(12);
    pub(super) const INTERNAL: Code = Code(13);
    pub(super) const UNAVAILABLE: Code = Code(14);
    pub(super) const UNAUTHENTICATED: Code = Code(16);

    /// The HTTP status that means the same, for records; on the wire it is always 200.
    pub(super) fn http(self) -> u16 {
        match self.0 {
            0 => 200,
            1 => 499,
            3 | 9 | 11 => 400,
            4 => 504,
            5 => 404,
            6 | 10 => 409,
            7 => 403,
            8 => 429,
            12 => 501,
            14 => 503,
            16 => 401,
            _ => 500,
        }
    }

    /// The code that means the same as an HTTP status.
    pub(super) fn of_http(status: u16) -> Code {
        match status {
            200..300 => Code::OK,
            401 => Code::UNAUTHENTICATED,
            402 | 403 => Code::PERMISSION_DENIED,
            404 => Code::NOT_FOUND,
            408 | 504 => Code(4),
            409 => Code::ABORTED,
            412 => Code::FAILED_PRECONDITION,
            429 => Code::RESOURCE_EXHAUSTED,
            499 => Code(1),
            400..500 => Code::INVALID_ARGUMENT,
            500 => Code::INTERNAL,
            501 => Code::UNIMPLEMENTED,
            502 | 503 => Code::UNAVAILABLE,
            _ => Code::UNKNOWN,
        }
    }
}

/// What goes back on a call.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    /// Frames as sent.
    pub(super) frames: Vec<u8>,
    pub(super) code: Code,
    pub(super) message: String,
    /// A `google.rpc.Status`.
    pub(super) details: Option<Vec<u8>>,
    /// Whether an error comes in trailers after headers; otherwise in the headers, which are all there is then.
    pub(super) late: bool,
}

impl Reply {
    /// A message.
    pub(super) fn ok(message: &[u8]) -> Reply {
        let frames = frame(message);
        Reply { frames, code: Code::OK, message: String::new(), details: None, late: false }
    }

    /// An error.
    pub(super) fn error(code: Code, message: &str, details: Option<Vec<u8>>, late: bool) -> Reply {
        Reply { frames: Vec::new(), code, message: message.to_owned(), details, late }
    }

    fn status(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        map.insert("grpc-status", HeaderValue::from(self.code.0));
        if let Ok(text) = HeaderValue::from_str(&percent(&self.message))
            && !self.message.is_empty()
        {
            map.insert("grpc-message", text);
        }
        if let Some(details) = &self.details
            && let Ok(text) = HeaderValue::from_str(&STANDARD_NO_PAD.encode(details))
        {
            map.insert("grpc-status-details-bin", text);
        }
        map
    }

    /// As an HTTP response.
    pub(super) fn into_response(self) -> Response<Body> {
        let status = self.status();
        let alone = self.code != Code::OK && !self.late && self.frames.is_empty();
        let mut response = if alone {
            let mut response = Response::new(Body::empty());
            response.headers_mut().extend(status);
            response
        } else {
            let data = Some(Frame::data(Bytes::from(self.frames)));
            let parts = data.into_iter().chain([Frame::trailers(status)]).map(Ok::<_, Infallible>);
            Response::new(Body::new(StreamBody::new(stream::iter(parts))))
        };
        let kind = HeaderValue::from_static(CONTENT_TYPE);
        response.headers_mut().insert(axum::http::header::CONTENT_TYPE, kind);
        response
    }
}

/// An answer with this reply.
pub(super) fn answer(reply: Reply) -> Answer {
    Answer { status: reply.code.http(), headers: Vec::new(), body: Payload::Grpc(reply), rejected: None }
}

fn frame(message: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend(u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(message);
    out
}

/// The one message of a request body.
pub(super) fn unframe(body: &[u8]) -> Result<&[u8], &'static str> {
    let Some((head, message)) = body.split_at_checked(5) else { return Err("body holds no whole frame") };
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    match head[0] {
        0 => {}
        1 => return Err("message is compressed, and no encoding was announced"),
        _ => return Err("frame has an unknown flag"),
    }
    if usize::try_from(length).ok() != Some(message.len()) {
        return Err("body is not one frame of the length that it tells");
    }
    Ok(message)
}

/// Text of a `grpc-message` header.
fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | 0..0x20 | 0x7f.. => out.push_str(&format!("%{byte:02X}")),
            _ => out.push(char::from(byte)),
        }
    }
    out
}

/// The answer with another body than was promised: a page of a proxy, no message at all, a message that cannot be read,
/// or one that stops in the middle.
pub(super) fn garbage(body: Junk, answer: Answer) -> Answer {
    let Payload::Grpc(mut reply) = answer.body else { return answer };
    let whole = std::mem::take(&mut reply.frames);
    reply.code = Code::OK;
    match body {
        Junk::Html => {
            return Answer::text(502, "text/html", "<html><body><h1>502 Bad Gateway</h1></body></html>");
        }
        Junk::Empty => {}
        // Tag 0 is no tag, and wire type 7 does not exist.
        Junk::WrongType => reply.frames = frame(&[0x07, 0xff, 0xff, 0xff]),
        Junk::Torn => {
            reply.frames = frame(&[0x0a, 0x40, b'c', b'o', b'm', b'p', b'u', b't', b'e']);
            reply.frames.truncate(whole.len().clamp(6, 12));
        }
    }
    Answer { status: 200, headers: answer.headers, body: Payload::Grpc(reply), rejected: answer.rejected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_judged() {
        assert_eq!(unframe(&frame(b"abc")), Ok(&b"abc"[..]));
        assert_eq!(unframe(&frame(b"")), Ok(&b""[..]));
        for bad in
            [&b""[..], b"\0\0\0\0", b"\x01\0\0\0\x01a", b"\0\0\0\0\x02a", b"\0\0\0\0\x01ab", b"\x80\0\0\0\0"]
        {
            assert!(unframe(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn messages_are_escaped() {
        assert_eq!(percent("50 % über\n"), "50 %25 %C3%BCber%0A");
    }

    #[test]
    fn codes_and_statuses_agree() {
        for code in [3, 5, 7, 10, 13, 14, 16, 4, 1, 12] {
            let http = Code(code).http();
            assert_eq!(Code::of_http(http), Code(code), "{code}");
        }
    }
}
