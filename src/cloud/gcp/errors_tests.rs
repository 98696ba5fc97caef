use super::*;
use crate::http::HeaderMap;

fn answer(status: u16, body: &str) -> Answer {
    Answer { status, headers: HeaderMap::new(), body: body.as_bytes().to_vec() }
}

fn account() -> AccountId {
    "gcp/default".parse().unwrap()
}

fn asked(account: &AccountId) -> Asked<'_> {
    Asked { account, doing: "testing", project: "lab-1", network: "default", attempt: None }
}

fn body(status: u16, reason: &str, message: &str) -> Answer {
    let body = serde_json::json!({
        "error": {"code": status, "message": message, "errors": [{"message": message, "reason": reason}]},
    });
    answer(status, &body.to_string())
}

#[test]
fn what_is_not_google_is_not_certain() {
    let account = account();
    for (status, text, kind, reached) in [
        (503, "<html>busy", ErrorKind::Unavailable, Reached::Maybe),
        (502, "", ErrorKind::Unavailable, Reached::Maybe),
        (404, "not here", ErrorKind::Unavailable, Reached::Maybe),
        (401, "{}", ErrorKind::Auth, Reached::Maybe),
        (429, "slow down", ErrorKind::RateLimited, Reached::No),
        (400, "[1]", ErrorKind::Unavailable, Reached::Maybe),
    ] {
        let error = refused(&answer(status, text), &asked(&account));
        assert_eq!((error.kind, error.reached), (kind, reached), "{status} {text}");
    }
}

#[test]
fn words_win_over_the_status() {
    let account = account();
    for (status, reason, kind, reached) in [
        (403, "quotaExceeded", ErrorKind::Quota, Reached::No),
        (403, "rateLimitExceeded", ErrorKind::RateLimited, Reached::No),
        (403, "userRateLimitExceeded", ErrorKind::RateLimited, Reached::No),
        (403, "forbidden", ErrorKind::Forbidden, Reached::No),
        (403, "accessNotConfigured", ErrorKind::Forbidden, Reached::No),
        (403, "SOMETHING_NEW", ErrorKind::Forbidden, Reached::No),
        (400, "resourceNotReady", ErrorKind::Conflict, Reached::No),
        (400, "resourceInUseByAnotherResource", ErrorKind::Conflict, Reached::No),
        (409, "alreadyExists", ErrorKind::Conflict, Reached::No),
        (400, "parseError", ErrorKind::Rejected, Reached::No),
        (404, "notFound", ErrorKind::NotFound, Reached::No),
        (500, "internalError", ErrorKind::Unavailable, Reached::Maybe),
        (503, "backendError", ErrorKind::Unavailable, Reached::Maybe),
    ] {
        let error = refused(&body(status, reason, "x"), &asked(&account));
        assert_eq!((error.kind, error.reached), (kind, reached), "{status} {reason}");
        assert_eq!(error.retry_after.is_some(), kind == ErrorKind::RateLimited);
    }
}

#[test]
fn only_what_was_asked_for_can_be_missing() {
    let tail = "/gpuprov-dev-00ff00";
    let missing = |status, reason: &str, message: &str| is_missing(&body(status, reason, message), tail);
    let named =
        "The resource 'projects/lab-1/zones/us-central1-a/instances/gpuprov-dev-00ff00' was not found";
    assert!(missing(404, "notFound", named));
    assert!(missing(404, "notFound", "The resource 'hostkeys/' of type 'Guest Attribute' was not found."));
    assert!(!missing(404, "notFound", "The resource 'projects/lab-1' was not found"));
    assert!(!missing(404, "forbidden", named) && !missing(403, "notFound", named));
    assert!(!is_missing(&answer(404, "<html>"), tail));
}

#[test]
fn a_sentence_is_enough() {
    let account = account();
    let bare = |status: u16, message: &str| {
        answer(status, &serde_json::json!({"error": {"code": status, "message": message}}).to_string())
    };
    for (status, message, kind) in [
        (403, "Rate Limit Exceeded", ErrorKind::RateLimited),
        (403, "Quota 'CPUS' exceeded.  Limit: 8.0 in region us-central1.", ErrorKind::Quota),
        (403, "This API method requires billing to be enabled.", ErrorKind::Balance),
        (403, "Required 'compute.instances.get' permission for 'x'", ErrorKind::Forbidden),
        (400, "The resource 'x' is not ready", ErrorKind::Conflict),
        (400, "Invalid value for field 'resource.name'", ErrorKind::Rejected),
        (412, "Constraint constraints/compute.x violated", ErrorKind::Forbidden),
        (
            503,
            "The zone does not have enough resources available to fulfill the request.",
            ErrorKind::NoCapacity,
        ),
    ] {
        assert_eq!(refused(&bare(status, message), &asked(&account)).kind, kind, "{message}");
    }
    assert!(is_missing(&bare(404, "The resource 'projects/p/zones/z/instances/x' was not found"), "/x"));
    assert!(!is_missing(&bare(404, "The resource 'projects/p' was not found"), "/x"));
}

#[test]
fn tokens_are_never_shown() {
    for (text, shown) in [
        ("token eyJhbGciOi.eyJz-_.c2ln= is bad", "token … is bad"),
        ("[ya29.c.b0Aaek/x+y]", "[…]"),
        ("nothing to hide", "nothing to hide"),
    ] {
        assert_eq!(redact(text), shown);
    }
    let account = account();
    let error = refused(&body(400, "invalid", "Bad token eyJhbGciOi.x\u{1b}[31m"), &asked(&account));
    assert_eq!(error.message, "Bad token … [31m");
}

#[test]
fn a_token_service_has_words_of_its_own() {
    let account = account();
    let refuse = |status, body: &str| {
        not_admitted(&answer(status, body), &asked(&account), "exchanging", "look at it")
    };
    let error = refuse(400, r#"{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}"#);
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Auth, "exchanging: Invalid JWT Signature."));
    assert_eq!(error.hint.as_deref(), Some("look at it"));
    assert_eq!(refuse(500, r#"{"error": "internal_failure"}"#).kind, ErrorKind::Unavailable);
    for (status, body) in [(400, "<html>"), (503, "")] {
        assert_eq!(
            (refuse(status, body).kind, refuse(status, body).reached),
            (ErrorKind::Unavailable, Reached::No)
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_body_is_survived(status in 400_u16..600, text in "\\PC{0,80}|\\{\"error\": ?\\{[\"a-z:,\\[\\]\\{\\}]{0,30}\\}\\}") {
        let account = account();
        let _ = refused(&answer(status, &text), &asked(&account));
        let _ = redact(&text);
    }
}
