//! What RunPod's refusals mean. Only this file reads status codes and error bodies.
//!
//! Errors are RFC 9457 (`application/problem+json`) without a machine-readable code; the text alone tells no capacity from a
//! wrong request (docs.runpod.io/api-reference-v2, `createPod`). What is no JSON comes from the edge in front of RunPod.

use std::time::Duration;

use serde_json::Value;

use super::wire::Problem;
use crate::cloud::{Error, ErrorKind, Limit, Reached};
use crate::http::Answer;
use crate::model::account::AccountId;
use crate::model::words::one_line;

/// The longest text of somebody else's that we show, in characters.
const LONGEST: usize = 300;

/// Sentences that mean "not to be had now", in lower case. Recorded from live answers, in
/// github.com/runpod/runpod-python/issues/297 and /168, github.com/runpod/runpodctl/issues/189.
const NO_CAPACITY: [&str; 8] = [
    "no longer any instances",
    "no instances available",
    "no instances are available",
    "no instances currently available",
    "no instances are currently available",
    "does not have the resources to deploy",
    "not enough free gpus",
    "try a different machine",
];

/// More of them, that need no exact sentence.
const NO_CAPACITY_TOO: [&str; 1] = ["out of stock"];

/// What was asked for with a create.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The GPU in our spelling.
    pub(super) gpu: Option<String>,
    /// The tier.
    pub(super) secure: bool,
    /// The constraints that were sent, as a phrase: the refusal never names the one that was not met.
    pub(super) constraints: String,
    /// The image.
    pub(super) image: String,
    /// Whether the image is ours.
    pub(super) image_is_ours: bool,
}

/// The circumstances of a refusal.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    /// The account.
    pub(super) account: &'a AccountId,
    /// What was being done.
    pub(super) doing: &'static str,
    /// Texts that must not be shown, whoever repeats them.
    pub(super) secrets: Vec<&'a str>,
    /// The create, if it was one.
    pub(super) attempt: Option<&'a Attempt>,
}

/// Returns the error that an answer with a status other than 2xx means.
pub(super) fn refused(answer: &Answer, asked: &Asked<'_>) -> Box<Error> {
    let read = Read::new(answer, asked);
    let (kind, reached) = match kind(answer.status, &read) {
        // Of a create it says that something which the request names is not there.
        (ErrorKind::NotFound, reached) if asked.attempt.is_some() => (ErrorKind::Rejected, reached),
        known => known,
    };
    let mut error = Error::new(kind, asked.account, asked.doing, read.message(answer.status), reached);
    match answer.status {
        400 | 404 | 422 if error.kind == ErrorKind::Rejected => {
            if let Some(attempt) = asked.attempt {
                blame_image(&mut error, attempt, &read);
            }
        }
        401 => {
            error.hint =
                Some("check the key, or make a new one under Settings, API Keys at RunPod".to_owned())
        }
        402 => error.limit = Some(Limit::default()),
        403 if read.is_blocked() => {
            error.message = "RunPod's edge blocked the request (error code 1010)".to_owned();
            error.hint =
                Some("a proxy on the way may change the User-Agent; otherwise update gpuprov".to_owned());
            error.limit = Some(Limit::default());
        }
        403 if error.kind == ErrorKind::Forbidden => {
            error.hint = Some(
                "the key may lack a right, or the account may have no money: RunPod says the same".to_owned(),
            );
            error.limit = Some(match asked.attempt {
                Some(attempt) => {
                    Limit { gpu: attempt.gpu.clone(), secure: Some(attempt.secure), ..Limit::default() }
                }
                None => Limit::default(),
            });
        }
        410 => {
            error.message = "RunPod has retired this API version".to_owned();
            error.hint = Some("update gpuprov".to_owned());
            error.limit = Some(Limit::default());
        }
        413 => {
            error.user_input = asked.attempt.is_some();
            error.hint = Some("give fewer or shorter `--env` values".to_owned());
        }
        429 => error.retry_after = Some(answer.retry_after().unwrap_or(Duration::from_secs(60))),
        _ => {}
    }
    if let (ErrorKind::NoCapacity, Some(attempt)) = (error.kind, asked.attempt) {
        error.message = format!("{} (asked: {})", error.message, attempt.constraints);
    }
    Box::new(error)
}

/// Returns an error for an answer that cannot be read.
pub(super) fn unreadable(asked: &Asked<'_>, what: &str, reached: Reached) -> Box<Error> {
    let message = format!("RunPod's answer cannot be read: {what}");
    Box::new(Error::new(ErrorKind::Unreadable, asked.account, asked.doing, message, reached))
}

fn kind(status: u16, read: &Read) -> (ErrorKind, Reached) {
    let no_capacity = read.is_no_capacity();
    match (status, read.problem.is_some()) {
        (401, true) => (ErrorKind::Auth, Reached::No),
        (401, false) => (ErrorKind::Auth, Reached::Maybe),
        (403, false) if read.is_blocked() => (ErrorKind::Rejected, Reached::No),
        (410, json) => (ErrorKind::Rejected, if json { Reached::No } else { Reached::Maybe }),
        (429, _) => (ErrorKind::RateLimited, Reached::No),
        (400..=499, true) if no_capacity => (ErrorKind::NoCapacity, Reached::No),
        (402, true) => (ErrorKind::Balance, Reached::No),
        (403, true) => (ErrorKind::Forbidden, Reached::No),
        (404, true) => (ErrorKind::NotFound, Reached::No),
        (409, true) => (ErrorKind::Conflict, Reached::No),
        (408, true) => (ErrorKind::Timeout, Reached::Maybe),
        (413, json) => (ErrorKind::Rejected, if json { Reached::No } else { Reached::Maybe }),
        (400..=499, true) => (ErrorKind::Rejected, Reached::No),
        // 5xx with a capacity text were seen; whether nothing was made then is not certain.
        (500..=599, true) if no_capacity => (ErrorKind::NoCapacity, Reached::Maybe),
        _ => (ErrorKind::Unavailable, Reached::Maybe),
    }
}

/// An image that its registry does not have is a 422 with a sentence and no `errors`
/// (docs.runpod.io/api-reference-v2, `createPod`).
fn blame_image(error: &mut Error, attempt: &Attempt, read: &Read) {
    if !read.names_image(&attempt.image) {
        return;
    }
    error.message = format!("{} (image `{}`)", error.message, attempt.image);
    if attempt.image_is_ours {
        error.limit = Some(Limit::default());
        error.hint = Some("choose another image with `--image`".to_owned());
    } else {
        error.user_input = true;
        error.hint = Some("check the image's name and tag, and that it is public".to_owned());
    }
}

/// An error body, read and without secrets.
struct Read {
    problem: Option<Problem>,
    /// All texts of it, or the body itself, in lower case.
    lower: String,
    /// What to show.
    shown: String,
}

impl Read {
    fn new(answer: &Answer, asked: &Asked<'_>) -> Self {
        let body = answer.text();
        let problem = Problem::of(answer.status, &answer.body);
        let text = match &problem {
            Some(problem) => sentence(problem),
            None => body,
        };
        let shown = one_line(&redact(&text, &asked.secrets), LONGEST);
        Read { problem, lower: text.to_lowercase(), shown }
    }

    fn message(&self, status: u16) -> String {
        match (&self.problem, self.shown.as_str()) {
            (Some(_), "") => format!("RunPod answered with status {status}"),
            (Some(_), shown) => shown.to_owned(),
            (None, "") => format!("status {status} without a word"),
            (None, _) if self.lower.trim_start().starts_with('<') => {
                format!("status {status} with a web page, from something in between")
            }
            (None, shown) => format!("status {status}: {shown}"),
        }
    }

    fn is_no_capacity(&self) -> bool {
        NO_CAPACITY.iter().chain(&NO_CAPACITY_TOO).any(|sentence| self.lower.contains(sentence))
    }

    /// Cloudflare's refusal of an unwelcome User-Agent.
    fn is_blocked(&self) -> bool {
        self.problem.is_none() && self.lower.contains("error code: 1010")
    }

    fn names_image(&self, image: &str) -> bool {
        let name = image.split(['@', ':']).next().unwrap_or(image).to_lowercase();
        let missing = [
            "not found",
            "does not exist",
            "not exist",
            "manifest",
            "registry",
            "pull",
            "could not be found",
        ];
        (!name.is_empty() && self.lower.contains(&name))
            || self.lower.contains("$.image")
            || (self.lower.contains("image") && missing.iter().any(|word| self.lower.contains(word)))
    }
}

/// Puts a problem into one sentence. One missing property makes the validator report valid ones as unknown too, so the
/// missing ones come first.
fn sentence(problem: &Problem) -> String {
    let told = [&problem.detail, &problem.title].into_iter().flatten().find(|text| !text.trim().is_empty());
    let mut sentence = told.cloned().unwrap_or_default();
    let mut errors: Vec<&str> = problem.errors.iter().flatten().map(String::as_str).collect();
    errors.sort_by_key(|error| !error.contains("missing propert"));
    for error in errors.into_iter().take(5) {
        sentence.push_str(if sentence.is_empty() { "" } else { "; " });
        sentence.push_str(error);
    }
    sentence
}

fn redact(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    // Anything shorter is a figure or a word that would black out half the message.
    for secret in secrets.iter().filter(|secret| secret.chars().count() >= 4) {
        let quoted = Value::from(*secret).to_string();
        text = text.replace(*secret, "…").replace(quoted.trim_matches('"'), "…");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HeaderMap;

    const GONE: &str = "There are no longer any instances available with the requested specifications. Please refresh and try again.";

    fn attempt(image_is_ours: bool) -> Attempt {
        Attempt {
            gpu: Some("H100".to_owned()),
            secure: true,
            constraints: "8 x NVIDIA H100 PCIe, secure, EU-RO-1, CUDA 12.9".to_owned(),
            image: "acme/train:cu128".to_owned(),
            image_is_ours,
        }
    }

    fn create(status: u16, body: &str) -> Box<Error> {
        answer_to(status, body, Some(&attempt(true)))
    }

    fn answer_to(status: u16, body: &str, attempt: Option<&Attempt>) -> Box<Error> {
        let account = "runpod/default".parse().unwrap();
        let answer = Answer { status, headers: HeaderMap::new(), body: body.as_bytes().to_vec() };
        let secrets = vec!["rpa_0123456789", "to\"ken"];
        refused(&answer, &Asked { account: &account, doing: "creating the pod", secrets, attempt })
    }

    fn problem(status: u16, detail: &str) -> String {
        serde_json::json!({"title": "T", "status": status, "detail": detail}).to_string()
    }

    #[test]
    fn statuses() {
        let json = |status, detail: &str| *create(status, &problem(status, detail));
        for (error, kind, reached) in [
            (json(400, GONE), ErrorKind::NoCapacity, Reached::No),
            (
                json(
                    400,
                    "This machine does not have the resources to deploy your pod. Please try a different machine",
                ),
                ErrorKind::NoCapacity,
                Reached::No,
            ),
            (
                json(400, "There are no longer any instances available with enough disk space."),
                ErrorKind::NoCapacity,
                Reached::No,
            ),
            (json(500, GONE), ErrorKind::NoCapacity, Reached::Maybe),
            (json(400, "objectMounts is not defined"), ErrorKind::Rejected, Reached::No),
            (json(401, "missing bearer token"), ErrorKind::Auth, Reached::No),
            (json(402, "Insufficient balance"), ErrorKind::Balance, Reached::No),
            (json(403, "access denied"), ErrorKind::Forbidden, Reached::No),
            (json(404, "resource not found"), ErrorKind::Rejected, Reached::No),
            (*answer_to(404, &problem(404, "resource not found"), None), ErrorKind::NotFound, Reached::No),
            (json(409, "pod belongs to a cluster"), ErrorKind::Conflict, Reached::No),
            (json(418, "tea"), ErrorKind::Rejected, Reached::No),
            (json(429, "rate limit exceeded for the minute window"), ErrorKind::RateLimited, Reached::No),
            (json(503, "later"), ErrorKind::Unavailable, Reached::Maybe),
            (*create(502, "<html>Bad gateway</html>"), ErrorKind::Unavailable, Reached::Maybe),
            (*create(403, "<html>Forbidden</html>"), ErrorKind::Unavailable, Reached::Maybe),
            (*create(403, "error code: 1010"), ErrorKind::Rejected, Reached::No),
            (*create(404, "not here"), ErrorKind::Unavailable, Reached::Maybe),
            (*create(404, "{}"), ErrorKind::Unavailable, Reached::Maybe),
            (*create(404, "{\"message\":\"no route\"}"), ErrorKind::Unavailable, Reached::Maybe),
            (*create(400, "{\"detail\":\"Bad Request\"}"), ErrorKind::Unavailable, Reached::Maybe),
            (*create(422, &problem(400, "x")), ErrorKind::Unavailable, Reached::Maybe),
            (*create(409, "[\"x\", 409, \"y\"]"), ErrorKind::Unavailable, Reached::Maybe),
            (*create(413, "<html>too large</html>"), ErrorKind::Rejected, Reached::Maybe),
            (*create(307, ""), ErrorKind::Unavailable, Reached::Maybe),
            (*create(410, "gone"), ErrorKind::Rejected, Reached::Maybe),
        ] {
            assert_eq!((error.kind, error.reached), (kind, reached), "{error}");
        }
    }

    #[test]
    fn no_capacity_says_what_was_asked_for() {
        let error = create(400, &problem(400, GONE));
        assert!(
            error.message.ends_with("(asked: 8 x NVIDIA H100 PCIe, secure, EU-RO-1, CUDA 12.9)"),
            "{error}"
        );
    }

    #[test]
    fn limits() {
        assert_eq!(create(402, &problem(402, "x")).limit, Some(Limit::default()));
        let forbidden = create(403, &problem(403, "Access to the requested resource was denied."));
        let limit = Limit { gpu: Some("H100".to_owned()), secure: Some(true), ..Limit::default() };
        assert_eq!(forbidden.limit, Some(limit));
        assert_eq!(answer_to(403, &problem(403, "x"), None).limit, Some(Limit::default()));
        let retired = create(410, "");
        assert!(retired.message.contains("retired") && retired.hint.as_deref() == Some("update gpuprov"));
        assert_eq!(create(429, "").retry_after, Some(Duration::from_secs(60)));
    }

    #[test]
    fn an_image_that_does_not_exist() {
        let body = problem(422, "image acme/train:cu128 was not found in its registry");
        let ours = create(422, &body);
        assert_eq!((ours.limit.clone(), ours.user_input), (Some(Limit::default()), false));
        assert!(ours.hint.as_deref().unwrap().contains("--image"));
        let theirs = answer_to(422, &body, Some(&attempt(false)));
        assert!(theirs.user_input && theirs.message.contains("acme/train:cu128"));
        let other = create(422, &problem(422, "Request validation failed."));
        assert_eq!((other.limit.clone(), other.user_input), (None, false));
    }

    #[test]
    fn the_missing_property_comes_first() {
        let body = r#"{"title":"Unprocessable Entity","status":422,"detail":"Request validation failed.",
            "errors":["$: additional properties 'imageName' not allowed","$: missing property 'name'"]}"#;
        let message = create(422, body).message;
        assert_eq!(
            message,
            "Request validation failed.; $: missing property 'name'; $: additional properties 'imageName' not allowed"
        );
    }

    #[test]
    fn secrets_are_not_repeated() {
        for body in [
            problem(400, "key rpa_0123456789 and env to\"ken"),
            "plain rpa_0123456789 {\"env\":\"to\\\"ken\"}".to_owned(),
        ] {
            let error = create(400, &body);
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("0123456789") && !shown.contains("ken\""), "{shown}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_survived(status in 100_u16..1000, body in "\\PC{0,80}", image in "\\PC{0,10}") {
            let attempt = Attempt { image, ..attempt(false) };
            let error = answer_to(status, &body, Some(&attempt));
            proptest::prop_assert!(error.message.chars().count() < 600);
            proptest::prop_assert!(!error.message.contains('\n'));
        }
    }
}
