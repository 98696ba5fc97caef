//! What refusals mean.

use std::time::Duration;

use serde_json::json;

use crate::cloud::vast::errors::{Asked, Attempt, good, is_unknown, refused};
use crate::cloud::{Error, ErrorKind, Limit, Reached};
use crate::http::{Answer, HeaderMap};

fn answer_of(status: u16, body: &str) -> Answer {
    Answer { status, headers: HeaderMap::new(), body: body.as_bytes().to_vec() }
}

fn error(status: u16, body: &str, is_create: bool, image_is_ours: bool) -> Box<Error> {
    let account = "vast/default".parse().unwrap();
    let attempt = Attempt { image: "me/own:latest".to_owned(), image_is_ours };
    let asked = Asked {
        account: &account,
        doing: "creating the machine",
        secrets: vec!["vast0123456789", "to\"ken"],
        attempt: is_create.then_some(&attempt),
    };
    refused(&answer_of(status, body), &asked)
}

fn body(word: &str, msg: &str) -> String {
    json!({"success": false, "error": word, "msg": msg}).to_string()
}

#[test]
fn a_create() {
    let gone = body("invalid_args", "error 404/3603: no_such_ask  Instance type by id 101 is not available.");
    for (status, text, kind, reached) in [
        (400, gone.as_str(), ErrorKind::NoCapacity, Reached::No),
        (404, &gone, ErrorKind::NoCapacity, Reached::No),
        (404, &body("x", "y"), ErrorKind::NoCapacity, Reached::No),
        (
            410,
            &body("no_such_ask", "error 410/3907: no longer available."),
            ErrorKind::NoCapacity,
            Reached::No,
        ),
        (200, &body("no_such_ask", "gone"), ErrorKind::NoCapacity, Reached::No),
        (404, &body("auth_error", "Invalid user key"), ErrorKind::Auth, Reached::No),
        (200, &body("auth_error", "Invalid user key"), ErrorKind::Auth, Reached::No),
        (401, &body("x", "Two Factor Authentication required"), ErrorKind::Auth, Reached::No),
        (401, "<html>", ErrorKind::Auth, Reached::Maybe),
        (
            403,
            &body("invalid_args", "error 403/3586: Offer 1 is not your own."),
            ErrorKind::Forbidden,
            Reached::No,
        ),
        (403, "<html>", ErrorKind::Unavailable, Reached::Maybe),
        (400, &body("insufficient_credit", "Your account lacks credit"), ErrorKind::Balance, Reached::No),
        (200, &body("insufficient_credit", ""), ErrorKind::Balance, Reached::No),
        (402, &body("x", "y"), ErrorKind::Balance, Reached::No),
        (400, &body("x", "spend_rate_limit exceeded"), ErrorKind::Balance, Reached::No),
        (400, &body("invalid_price", "bid too low"), ErrorKind::NoCapacity, Reached::No),
        (200, &body("resources_unavailable", "state change queued."), ErrorKind::NoCapacity, Reached::No),
        (400, &body("invalid_args", "error 400/3467: Invalid args: disk"), ErrorKind::Rejected, Reached::No),
        (422, &body("x", "y"), ErrorKind::Rejected, Reached::No),
        (429, "API requests too frequent: endpoint threshold=4.5", ErrorKind::RateLimited, Reached::No),
        (429, &body("rate_limit_exceeded", "threshold=3.0"), ErrorKind::RateLimited, Reached::No),
        (500, &body("server_error", ""), ErrorKind::Unavailable, Reached::Maybe),
        (502, "<html>Bad gateway</html>", ErrorKind::Unavailable, Reached::Maybe),
        (503, "", ErrorKind::Unavailable, Reached::Maybe),
        (408, "", ErrorKind::Timeout, Reached::Maybe),
        (404, "not here", ErrorKind::Unavailable, Reached::Maybe),
        (307, "", ErrorKind::Unavailable, Reached::Maybe),
    ] {
        let error = error(status, text, true, true);
        assert_eq!((error.kind, error.reached), (kind, reached), "{status} {text}: {error}");
    }
}

#[test]
fn what_concerns_the_whole_account() {
    for (status, word) in
        [(404, "auth_error"), (403, "x"), (400, "insufficient_credit"), (410, "deprecated_endpoint")]
    {
        let error = error(status, &body(word, "no"), false, true);
        assert_eq!(error.limit, Some(Limit::default()), "{word}");
        assert!(error.hint.is_some(), "{word}");
    }
    assert!(
        error(410, &body("deprecated_endpoint", "x"), true, true).hint.unwrap().contains("update gpuprov")
    );
    assert_eq!(error(400, &body("no_such_ask", "x"), true, true).limit, None);
    let two_factor = error(401, &body("x", "Two Factor Authentication required"), false, true);
    assert!(two_factor.hint.unwrap().contains("second factor"));
}

#[test]
fn how_long_to_wait() {
    let read = error(429, "{\"detail\":\"API requests too frequent endpoint threshold=5.5\"}", false, true);
    assert_eq!(read.retry_after, Some(Duration::from_millis(5500)));
    assert_eq!(error(429, "", false, true).retry_after, Some(Duration::from_secs(2)));
    let create = error(429, "API requests too frequent: endpoint threshold=4.5", true, true);
    assert_eq!(create.retry_after, Some(Duration::from_secs(12)));
}

#[test]
fn an_image_that_is_wrong() {
    let text = body("invalid_args", "error 400/3467: Invalid image me/own:latest");
    let theirs = error(400, &text, true, false);
    assert!(theirs.user_input && theirs.message.contains("me/own:latest"));
    let ours = error(400, &text, true, true);
    assert!(!ours.user_input && ours.hint.unwrap().contains("--image"));
    // Nobody knows whether anything was made, so that it is not over.
    let server = error(500, &body("server_error", ""), true, false);
    assert!(!server.user_input && server.hint.unwrap().contains("tag"));
}

#[test]
fn secrets_are_not_repeated() {
    for text in [
        body("x", "key vast0123456789 and to\"ken"),
        "plain vast0123456789".to_owned(),
        "{\"detail\":\"to\\\"ken\"}".to_owned(),
    ] {
        let error = error(400, &text, true, true);
        assert!(!error.message.contains("vast0123") && !error.message.contains("ken"), "{error}");
    }
}

#[test]
fn only_vast_itself_says_that_a_machine_is_gone() {
    for (status, text, unknown) in [
        (404, body("no_such_instance", "Instance 1 not found."), true),
        (404, body("not_found", "Instance not found"), true),
        (404, body("auth_error", "Invalid user key"), false),
        (404, "{\"detail\":\"Not Found\"}".to_owned(), false),
        (404, "not found".to_owned(), false),
        (410, body("no_such_instance", "x"), false),
    ] {
        assert_eq!(is_unknown(&answer_of(status, &text)), unknown, "{status} {text}");
    }
}

proptest::proptest! {
    #[test]
    fn any_answer_is_survived(status in 100_u16..600, text in "\\PC{0,60}|[{}\\[\\]\":a-z0-9,]{0,60}") {
        let account = "vast/default".parse().unwrap();
        let asked = Asked { account: &account, doing: "x", secrets: Vec::new(), attempt: None };
        let answer = answer_of(status, &text);
        let read = good(&answer, &asked);
        proptest::prop_assert!(read.is_err() || answer.is_success());
        // What is not Vast's own word never counts as proof that nothing happened.
        if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_err() && status != 429 {
            let told = ["no_such_ask", "credit", "quota", "spend", "price", "resources"];
            let plain = !told.iter().any(|word| text.contains(word));
            proptest::prop_assert!(!plain || read.is_ok_and(|_| true) || refused(&answer, &asked).reached == Reached::Maybe);
        }
    }
}
