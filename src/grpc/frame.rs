//! What goes over the wire (github.com/grpc/grpc, `doc/PROTOCOL-HTTP2.md`): one message in a frame of five bytes and its
//! length, and a status in the trailers.

use std::time::Duration;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use http::HeaderMap;
use tonic::Code;

use super::error::{Status, Via};

/// Flag and length.
const HEAD: usize = 5;

/// Base64 as servers write it: with padding or without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns `message` as one frame, not compressed.
pub(crate) fn frame(message: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD + message.len());
    frame.push(0);
    frame.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend_from_slice(message);
    frame
}

/// Returns the one message of a body, or what is wrong with it.
pub(crate) fn unframe(body: &[u8]) -> Result<&[u8], String> {
    let Some((head, rest)) = body.split_at_checked(HEAD) else {
        return Err(if body.is_empty() {
            "it holds no message".to_owned()
        } else {
            "half a frame".to_owned()
        });
    };
    let length = head[1..].iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    match head[0] {
        0 => {}
        1 => return Err("it is compressed, which was not asked for".to_owned()),
        _ => return Err("no frame of gRPC".to_owned()),
    }
    match rest.len() {
        got if got == length => Ok(rest),
        got if got < length => Err(format!("a frame of {length} bytes ends after {got}")),
        _ => Err("more than one message".to_owned()),
    }
}

/// Returns a time limit as `grpc-timeout` writes it: at most eight digits and a unit.
pub(super) fn timeout(limit: Duration) -> String {
    match limit.as_millis() {
        ms @ 0..=99_999_999 => format!("{}m", ms.max(1)),
        ms => format!("{}S", (ms / 1000).min(99_999_999)),
    }
}

/// Returns the status in trailers (or in the headers of an answer without a message), none if there is none. `headers` are
/// those of the answer: they hold the ids of the request.
pub(super) fn status(trailers: &HeaderMap, headers: &HeaderMap) -> Option<Status> {
    let code = trailers.get("grpc-status")?.as_bytes();
    // A word in place of the number is no success.
    let code = std::str::from_utf8(code).ok().and_then(|code| code.trim().parse().ok());
    let details = trailers.get("grpc-status-details-bin").map(|text| text.as_bytes());
    Some(Status {
        code: code.map_or(Code::Unknown, Code::from_i32),
        message: trailers.get("grpc-message").map(|text| unescape(text.as_bytes())).unwrap_or_default(),
        details: details.and_then(|text| LENIENT.decode(text).ok()).unwrap_or_default(),
        via: Via::Service,
        request_id: id(headers, trailers, "x-request-id"),
        trace_id: id(headers, trailers, "x-trace-id"),
    })
}

/// Returns the status that an answer of plain HTTP stands for (`doc/http-grpc-status-mapping.md`).
pub(super) fn edge(http: u16, headers: &HeaderMap) -> Status {
    let code = match http {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let body = if kind.starts_with("text/html") { " with a web page" } else { "" };
    Status {
        code,
        message: format!("status {http}{body}, from something in between"),
        details: Vec::new(),
        via: Via::Edge(http),
        request_id: id(headers, headers, "x-request-id"),
        trace_id: id(headers, headers, "x-trace-id"),
    }
}

/// Ids are shown to people; what does not look like one is left out.
fn id(headers: &HeaderMap, trailers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name).or_else(|| trailers.get(name))?.to_str().ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    (!text.is_empty() && text.len() <= 100 && text.bytes().all(plain)).then(|| text.to_owned())
}

/// Undoes percent-encoding; what is no encoding stays as it is.
fn unescape(text: &[u8]) -> String {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_there_and_back() {
        for message in [&b""[..], b"x", &[7; 300]] {
            assert_eq!(unframe(&frame(message)), Ok(message));
        }
        for (body, part) in [
            (&b""[..], "no message"),
            (b"\0\0\0", "half a frame"),
            (b"\0\0\0\0\x05ab", "ends after 2"),
            (b"\0\0\0\0\0\0\0\0\0\0", "more than one"),
            (b"\x01\0\0\0\0", "compressed"),
            (b"<html>", "no frame of gRPC"),
        ] {
            assert!(unframe(body).unwrap_err().contains(part), "{body:?}");
        }
    }

    #[test]
    fn timeouts_have_at_most_eight_digits() {
        for (limit, text) in [
            (Duration::from_millis(1500), "1500m"),
            (Duration::ZERO, "1m"),
            (Duration::from_secs(200_000), "200000S"),
        ] {
            assert_eq!(timeout(limit), text);
        }
        assert_eq!(timeout(Duration::MAX), "99999999S");
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_status_is_read_whatever_it_holds() {
        let answer = headers(&[("x-request-id", "abc-1"), ("x-trace-id", "no id")]);
        let trailers = headers(&[
            ("grpc-status", "8"),
            ("grpc-message", "50%25 of %C3%BC %zz"),
            ("grpc-status-details-bin", "CAg"),
        ]);
        let read = status(&trailers, &answer).unwrap();
        assert_eq!((read.code, read.message.as_str()), (Code::ResourceExhausted, "50% of ü %zz"));
        assert_eq!((read.details.as_slice(), read.request_id.as_deref()), (&[8, 8][..], Some("abc-1")));
        assert_eq!(read.trace_id, None);
        let odd = headers(&[("grpc-status", "soon"), ("grpc-status-details-bin", "*no base64*")]);
        let read = status(&odd, &answer).unwrap();
        assert_eq!((read.code, read.details.len()), (Code::Unknown, 0));
        assert_eq!(status(&headers(&[]), &answer), None);
        assert_eq!(status(&headers(&[("grpc-status", "0")]), &answer).unwrap().code, Code::Ok);
        assert_eq!(status(&headers(&[("grpc-status", "77")]), &answer).unwrap().code, Code::Unknown);
    }

    #[test]
    fn plain_http_stands_for_a_status() {
        let page = edge(502, &headers(&[("content-type", "text/html; charset=utf-8")]));
        assert_eq!((page.code, page.via), (Code::Unavailable, Via::Edge(502)));
        assert!(page.message.contains("web page"), "{}", page.message);
        assert_eq!(edge(401, &HeaderMap::new()).code, Code::Unauthenticated);
        assert_eq!(edge(301, &HeaderMap::new()).code, Code::Unknown);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(body in proptest::collection::vec(proptest::num::u8::ANY, 0..40), text in "[ -~]{0,40}") {
            let _ = unframe(&body);
            let _ = unescape(&body);
            let _ = status(&headers(&[("grpc-status", &text), ("grpc-message", &text), ("grpc-status-details-bin", &text)]), &HeaderMap::new());
        }
    }
}
