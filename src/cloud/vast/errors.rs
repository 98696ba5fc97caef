//! What Vast's refusals mean. Only this file reads status codes and error bodies.
//!
//! Bodies have several shapes: JSON with any of `error` (a word), `msg`, `message`, `detail`; plain text; a web page. The
//! status says little: a wrong key is a 404, an offer that is gone mostly a 400, and a 200 may say `success: false`
//! (github.com/jhammant/AIonDemandCluster/pull/1, docs.vast.ai/api-reference/rate-limits-and-errors).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::cloud::{Error, ErrorKind, Limit, Reached};
use crate::http::Answer;
use crate::model::account::AccountId;
use crate::model::words::one_line;

/// The longest text of somebody else's that we show, in characters.
const LONGEST: usize = 300;

/// After a create that came too early Vast wants so long a pause (the "penalty" of its rate limits).
const CREATE_PENALTY: Duration = Duration::from_secs(12);

/// What was asked for with a create.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
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

/// Returns the JSON object of an answer that is good: a status of 2xx, and no `success: false`.
pub(super) fn good(answer: &Answer, asked: &Asked<'_>) -> Result<Map<String, Value>, Box<Error>> {
    let body = answer.json::<Value>();
    let says_no = body.as_ref().is_ok_and(|body| body.get("success") == Some(&Value::Bool(false)));
    if !answer.is_success() || says_no {
        return Err(refused(answer, asked));
    }
    match body {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(unreadable(asked, "it is not an object", Reached::Maybe)),
        // Only the place: the text of the error could quote the body.
        Err(error) => {
            let what = format!("no such JSON as expected (line {}, column {})", error.line(), error.column());
            Err(unreadable(asked, &what, Reached::Maybe))
        }
    }
}

/// Returns an error for an answer that cannot be read.
pub(super) fn unreadable(asked: &Asked<'_>, what: &str, reached: Reached) -> Box<Error> {
    let message = format!("Vast's answer cannot be read: {what}");
    Box::new(Error::new(ErrorKind::Unreadable, asked.account, asked.doing, message, reached))
}

/// Whether Vast itself says that the machine does not exist.
pub(super) fn is_unknown(answer: &Answer) -> bool {
    let read = Read::new(answer, &[]);
    let says_so = read.has("no_such_instance")
        || read.has("not_found")
        || (read.has("instance") && read.has("not found"));
    answer.status == 404 && read.is_json && says_so && !read.is_bad_key() && !read.has("deprecated_endpoint")
}

/// Whether a refusal is about the image.
pub(super) fn is_about_image(answer: &Answer, image: &str) -> bool {
    Read::new(answer, &[]).names_image(image)
}

/// Whether an answer says that the searches of the day are used up: asking again does not help.
pub(super) fn is_quota_spent(answer: &Answer) -> bool {
    Read::new(answer, &[]).has("search_quota_exceeded")
}

/// What a refusal means.
struct Verdict {
    kind: ErrorKind,
    reached: Reached,
    limit: Option<Limit>,
    hint: Option<&'static str>,
}

impl Verdict {
    fn of(kind: ErrorKind, reached: Reached) -> Self {
        Verdict { kind, reached, limit: None, hint: None }
    }

    /// The whole account is concerned.
    fn account(kind: ErrorKind, hint: Option<&'static str>) -> Self {
        Verdict { kind, reached: Reached::No, limit: Some(Limit::default()), hint }
    }
}

/// Returns the error that an answer means which is not [`good`].
pub(super) fn refused(answer: &Answer, asked: &Asked<'_>) -> Box<Error> {
    let read = Read::new(answer, &asked.secrets);
    let mut verdict = verdict(answer.status, &read, asked.attempt.is_some());
    // A refusal in other words than Vast's comes from something in between, which knows nothing of what was made.
    if asked.attempt.is_some() && !read.is_own && answer.status != 429 && verdict.reached == Reached::No {
        verdict.reached = Reached::Maybe;
        if verdict.kind == ErrorKind::NoCapacity {
            verdict.kind = ErrorKind::Unavailable;
        }
    }
    let mut error =
        Error::new(verdict.kind, asked.account, asked.doing, read.message(answer.status), verdict.reached);
    error.limit = verdict.limit;
    error.hint = verdict.hint.map(str::to_owned);
    match error.kind {
        ErrorKind::Quota if read.has("search_quota_exceeded") => {
            let at = answer.header("x-ratelimit-reset").and_then(|text| text.trim().parse().ok());
            let at = at.and_then(|seconds: i64| Timestamp::from_second(seconds).ok());
            let until = at.map_or_else(|| "midnight UTC".to_owned(), |at| at.to_string());
            error.message = format!("{}; Vast counts searches by the day, until {until}", error.message);
        }
        ErrorKind::RateLimited => {
            let least = if asked.attempt.is_some() { CREATE_PENALTY } else { read.threshold() };
            error.retry_after = Some(answer.retry_after().unwrap_or_default().max(least));
        }
        ErrorKind::Rejected | ErrorKind::Unavailable => {
            if let Some(attempt) = asked.attempt {
                blame_image(&mut error, attempt, &read);
            }
        }
        _ => {}
    }
    Box::new(error)
}

fn verdict(status: u16, read: &Read, is_create: bool) -> Verdict {
    let no = |kind| Verdict::of(kind, Reached::No);
    match status {
        _ if read.is_bad_key() => bad_key(read),
        401 if read.is_json => bad_key(read),
        // Something in between asks for a login.
        401 => Verdict::of(ErrorKind::Auth, Reached::Maybe),
        _ if read.has("deprecated_endpoint") => {
            Verdict::account(ErrorKind::Rejected, Some("this endpoint is retired at Vast: update gpuprov"))
        }
        403 if read.is_json => Verdict::account(
            ErrorKind::Forbidden,
            Some("the key may lack a right: it needs misc, user_read, instance_read and instance_write"),
        ),
        _ if read.has("no_such_ask") => no(ErrorKind::NoCapacity),
        404 | 410 if is_create && read.is_json => no(ErrorKind::NoCapacity),
        410 if read.is_json => {
            Verdict::account(ErrorKind::Rejected, Some("this endpoint is retired at Vast: update gpuprov"))
        }
        _ if read.is_spend_limit() => Verdict::account(
            ErrorKind::Balance,
            Some("Vast limits what new accounts spend: verify the e-mail address there, or wait"),
        ),
        _ if read.is_no_money() || (status == 402 && read.is_json) => {
            Verdict::account(ErrorKind::Balance, Some("add credit at Vast"))
        }
        _ if read.has("search_quota_exceeded") => Verdict::account(ErrorKind::Quota, None),
        429 => no(ErrorKind::RateLimited),
        _ if (200..300).contains(&status) && read.has("rate_limit_exceeded") => no(ErrorKind::RateLimited),
        408 => Verdict::of(ErrorKind::Timeout, Reached::Maybe),
        500..=599 => Verdict::of(ErrorKind::Unavailable, Reached::Maybe),
        // The host has no GPU free, or our bid is not enough any more.
        _ if read.has("resources_unavailable") || read.has("invalid_price") => no(ErrorKind::NoCapacity),
        404 if read.is_json => no(ErrorKind::NotFound),
        409 if read.is_json => no(ErrorKind::Conflict),
        200..=299 | 400..=499 if read.is_json => no(ErrorKind::Rejected),
        _ => Verdict::of(ErrorKind::Unavailable, Reached::Maybe),
    }
}

fn bad_key(read: &Read) -> Verdict {
    let hint = if read.has("two factor") {
        "the key wants a second factor: make an API key under Keys at Vast that needs none"
    } else {
        "check the key, or make a new one under Keys at Vast"
    };
    Verdict::account(ErrorKind::Auth, Some(hint))
}

/// An image without a tag, or with one that does not exist, fails in many words, a bare `server_error` among them
/// (docs.vast.ai, troubleshooting).
fn blame_image(error: &mut Error, attempt: &Attempt, read: &Read) {
    if !read.names_image(&attempt.image) {
        return;
    }
    error.message = format!("{} (image `{}`)", error.message, attempt.image);
    if attempt.image_is_ours {
        error.hint = Some("choose another image with `--image`".to_owned());
    } else {
        error.user_input = error.reached == Reached::No;
        error.hint = Some("check the image's name and tag, and that it is public".to_owned());
    }
}

/// An error body, read and without secrets.
struct Read {
    is_json: bool,
    /// Whether it has the form of Vast's own: no success, or a word and a sentence.
    is_own: bool,
    /// All texts of it, or the body itself, in lower case.
    lower: String,
    /// What to show.
    shown: String,
}

impl Read {
    fn new(answer: &Answer, secrets: &[&str]) -> Self {
        let body = answer.text();
        let object = serde_json::from_str::<Map<String, Value>>(&body).ok();
        let (text, lower) = match &object {
            Some(map) => {
                let texts = |names: &[&str]| {
                    let told = names.iter().filter_map(|name| map.get(*name)?.as_str());
                    told.filter(|text| !text.trim().is_empty()).map(str::to_owned).collect::<Vec<_>>()
                };
                let shown = texts(&["msg", "message", "detail"]).into_iter().next();
                let all = texts(&["error", "msg", "message", "detail"]);
                (shown.or_else(|| all.first().cloned()).unwrap_or_default(), all.join(" ").to_lowercase())
            }
            None => (body.clone(), body.to_lowercase()),
        };
        let is_own = object.as_ref().is_some_and(|map| {
            let told =
                |name: &str| map.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            map.get("success") == Some(&Value::Bool(false)) || (told("error") && told("msg"))
        });
        Read { is_json: object.is_some(), is_own, lower, shown: one_line(&redact(&text, secrets), LONGEST) }
    }

    fn has(&self, word: &str) -> bool {
        self.lower.contains(word)
    }

    fn is_bad_key(&self) -> bool {
        self.is_json && (self.has("auth_error") || self.has("invalid user key"))
    }

    fn is_spend_limit(&self) -> bool {
        self.has("spend_rate_limit") || self.has("spend rate limit")
    }

    fn is_no_money(&self) -> bool {
        ["insufficient_credit", "insufficient credit", "add credit", "lacks credit"]
            .iter()
            .any(|word| self.has(word))
    }

    fn names_image(&self, image: &str) -> bool {
        let name = image.split(['@', ':']).next().unwrap_or(image).to_lowercase();
        (!name.is_empty() && self.has(&name))
            || self.has("error 400/3467: invalid image")
            || ["image", "manifest", "automatic-tag"].iter().any(|word| self.has(word))
            || self.has("server_error")
    }

    /// The seconds between two calls that a refusal names, `threshold=4.5`.
    fn threshold(&self) -> Duration {
        let after = self.lower.split("threshold=").nth(1).unwrap_or_default();
        let digits: String = after.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let seconds = digits.parse::<f64>().ok().filter(|seconds| (0.0..=60.0).contains(seconds));
        Duration::from_secs_f64(seconds.unwrap_or(2.0))
    }

    fn message(&self, status: u16) -> String {
        match (self.is_json, self.shown.as_str()) {
            (true, "") if (200..300).contains(&status) => "Vast says that it failed, but not why".to_owned(),
            (true, "") => format!("Vast answered with status {status}"),
            (true, shown) => shown.to_owned(),
            (false, "") => format!("status {status} without a word"),
            (false, _) if self.lower.trim_start().starts_with('<') => {
                format!("status {status} with a web page, from something in between")
            }
            (false, shown) => format!("status {status}: {shown}"),
        }
    }
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
