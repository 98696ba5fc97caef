use serde_json::json;

use super::*;
use crate::http::HeaderMap;

const SECRET: &str = "s3cret-0123";

fn answer(status: u16, body: &str) -> Answer {
    Answer { status, headers: HeaderMap::new(), body: body.as_bytes().to_vec() }
}

fn problem(code: &str, message: &str) -> String {
    json!({"code": code, "message": message}).to_string()
}

fn attempt() -> Attempt {
    Attempt {
        instance_type: "1H100.80S.32V".to_owned(),
        location: "FIN-03".to_owned(),
        spot: true,
        image: "24.04.cuda13.2.docker".to_owned(),
    }
}

fn error(status: u16, body: &str, attempt: Option<&Attempt>) -> Box<Error> {
    let account = "verda/default".parse().unwrap();
    let secret = Secret::trimmed(SECRET);
    refused(
        &answer(status, body),
        &Asked { account: &account, doing: "creating the machine", secret: &secret, attempt },
    )
}

fn create(status: u16, body: &str) -> Box<Error> {
    error(status, body, Some(&attempt()))
}

#[test]
fn statuses() {
    let json = |status, code: &str, message: &str| *create(status, &problem(code, message));
    for (error, kind, reached) in [
        (json(503, "service_unavailable", "No capacity available"), ErrorKind::NoCapacity, Reached::No),
        (
            json(503, "x", "Not enough resources to deploy a 1 GPU instance type 1V100.6V in FIN-03"),
            ErrorKind::NoCapacity,
            Reached::No,
        ),
        (*error(503, &problem("service_unavailable", "later"), None), ErrorKind::Unavailable, Reached::Maybe),
        (*create(503, "<html>"), ErrorKind::Unavailable, Reached::Maybe),
        (*create(503, "No capacity available"), ErrorKind::Unavailable, Reached::Maybe),
        (
            json(400, "invalid_request", "Operating system is not valid for this instance type"),
            ErrorKind::Rejected,
            Reached::No,
        ),
        (json(400, "invalid_request", "hostname must be a string"), ErrorKind::Rejected, Reached::No),
        (json(400, "invalid_request", "Volume limit exceeded"), ErrorKind::Quota, Reached::No),
        (json(403, "forbidden_action", "GPU quota is used up"), ErrorKind::Quota, Reached::No),
        (json(401, "unauthorized_request", "x"), ErrorKind::Auth, Reached::No),
        (*create(401, "nope"), ErrorKind::Auth, Reached::Maybe),
        (json(402, "insufficient_funds", "Not enough funds"), ErrorKind::Balance, Reached::No),
        (json(400, "insufficient_funds", "Not enough funds"), ErrorKind::Balance, Reached::No),
        (json(403, "forbidden_action", "Insufficient scope"), ErrorKind::Forbidden, Reached::No),
        (json(404, "not_found", "Instance type not found"), ErrorKind::Rejected, Reached::No),
        (*error(404, &problem("not_found", "x"), None), ErrorKind::NotFound, Reached::No),
        (json(409, "conflict", "x"), ErrorKind::Conflict, Reached::No),
        (json(429, "rate_limit_exceeded", "Too many requests"), ErrorKind::RateLimited, Reached::No),
        (json(500, "server_error", "Internal server error"), ErrorKind::Unavailable, Reached::Maybe),
        (json(418, "tea", "x"), ErrorKind::Rejected, Reached::No),
        (*create(400, "<html>"), ErrorKind::Unavailable, Reached::Maybe),
        (*create(307, ""), ErrorKind::Unavailable, Reached::Maybe),
        (*create(500, "[]"), ErrorKind::Unavailable, Reached::Maybe),
    ] {
        assert_eq!((error.kind, error.reached), (kind, reached), "{error}");
    }
}

#[test]
fn limits_and_hints() {
    let of_type = Some(attempt().limit());
    let quota = create(400, &problem("invalid_request", "Storage limit exceeded"));
    assert_eq!(quota.limit, Some(Limit::default()));
    assert!(quota.hint.as_deref().unwrap().contains("trash"));
    assert_eq!(create(400, &problem("invalid_request", "Spot GPU limit exceeded")).limit, of_type);
    assert_eq!(create(402, &problem("insufficient_funds", "x")).limit, Some(Limit::default()));
    let image =
        create(400, &problem("invalid_request", "Operating system is not valid for this instance type"));
    assert!(is_wrong_image(&image) && image.message.ends_with("(image `24.04.cuda13.2.docker`)"), "{image}");
    assert_eq!(image.limit, of_type);
    let other = create(400, &problem("invalid_request", "hostname is wrong"));
    assert!(!is_wrong_image(&other) && other.limit.is_none());
    let gone = create(503, &problem("service_unavailable", "No capacity available"));
    assert_eq!(gone.message, "No capacity available (asked: 1H100.80S.32V, spot, FIN-03)");
    assert_eq!(create(429, "").retry_after, Some(Duration::from_secs(60)));
}

#[test]
fn what_does_not_exist() {
    for (status, body, unknown) in [
        (404, problem("not_found", "Invalid instance id"), true),
        (404, problem("not_found", "x"), true),
        (400, problem("invalid_request", "Invalid instance id"), true),
        (404, problem("not_found", "Cannot GET /v1/instances"), false),
        (400, problem("invalid_request", "x"), false),
        (404, "<html>".to_owned(), false),
        (404, String::new(), false),
        (404, "{}".to_owned(), false),
        (403, problem("not_found", "Invalid instance id"), false),
    ] {
        assert_eq!(is_unknown(&answer(status, &body)), unknown, "{status} {body}");
    }
}

#[test]
fn words_of_a_refused_delete() {
    for (status, words, meaning) in [
        (403, "Can't discontinue a provisioning instance", Refusal::NotYet),
        (403, "Can't discontinue a discontinued instance", Refusal::Gone),
        (400, "Invalid instance id", Refusal::Gone),
        (404, "x", Refusal::Gone),
        (403, "an unknown sentence", Refusal::NotYet),
        (403, "Insufficient scope", Refusal::Other),
        (400, "volume_ids must be an array", Refusal::Other),
    ] {
        assert_eq!(refusal(status, words), meaning, "{words}");
    }
    assert_eq!(late_kind("GPU_QUOTA_EXCEEDED"), ErrorKind::Quota);
    assert_eq!(late_kind("host is broken"), ErrorKind::NoCapacity);
}

#[test]
fn no_secret_is_shown() {
    let body = problem("x", &format!("bad {SECRET} and Bearer eyJhbGci.eyJzdWI-_.c2ln and\n\u{1b}[31mmore"));
    let error = create(400, &body);
    assert_eq!(error.message, "bad … and Bearer … and [31mmore");
    let raw = create(502, &format!("upstream {SECRET}"));
    assert_eq!(raw.message, "status 502: upstream …");
    assert_eq!(create(502, "<html>x").message, "status 502 with a web page, from something in between");
}

proptest::proptest! {
    #[test]
    fn any_body_is_survived_and_hides_the_secret(before in "\\PC{0,40}", after in "\\PC{0,40}", status in 300_u16..600) {
        for body in [format!("{before}{SECRET}{after}"), problem(&before, &format!("{SECRET}{after}"))] {
            let error = create(status, &body);
            let shown = format!("{error} {error:?}");
            proptest::prop_assert!(!shown.contains(SECRET));
        }
    }
}
