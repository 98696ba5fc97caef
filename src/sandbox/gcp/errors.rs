//! Errors in Google's form: the older one with a list of reasons, and what newer services have in its place.

use serde_json::{Value, json};

use super::auth::Stranger;
use crate::sandbox::server::{Answer, Payload};

/// An error as Compute Engine sends it.
pub(super) fn fail(status: u16, reason: &str, message: &str) -> Answer {
    let limits = matches!(
        reason,
        "quotaExceeded" | "rateLimitExceeded" | "userRateLimitExceeded" | "accessNotConfigured"
    );
    let domain = if limits { "usageLimits" } else { "global" };
    Answer::json(
        status,
        json!({"error": {"code": status, "message": message,
                         "errors": [{"message": message, "domain": domain, "reason": reason}]}}),
    )
}

/// A 400 that no correct client gets.
pub(super) fn invalid(message: &str) -> Answer {
    fail(400, "invalid", message).rejecting(message)
}

/// Something is not there; `what` is its path below the project.
pub(super) fn not_found(what: &str, project: &str) -> Answer {
    fail(404, "notFound", &format!("The resource 'projects/{project}/{what}' was not found"))
}

/// A permission is missing on a resource.
pub(super) fn forbidden(permission: &str, resource: &str) -> Answer {
    fail(403, "forbidden", &format!("Required '{permission}' permission for '{resource}'"))
}

/// Nobody that is known calls.
pub(super) fn stranger(who: Stranger) -> Answer {
    let (message, reason) = match who {
        Stranger::Nobody => (
            "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.",
            "CREDENTIALS_MISSING",
        ),
        Stranger::Expired => (INVALID, "ACCESS_TOKEN_EXPIRED"),
        Stranger::Wrong(_) => (INVALID, "ACCESS_TOKEN_TYPE_UNSUPPORTED"),
    };
    let mut answer = with_details(
        401,
        "authError",
        message,
        "UNAUTHENTICATED",
        reason,
        &json!({"service": "compute.googleapis.com"}),
    );
    if let Payload::Json(body) = &mut answer.body {
        body["error"]["errors"][0]["message"] = json!("Invalid Credentials");
        body["error"]["errors"][0]["location"] = json!("Authorization");
        body["error"]["errors"][0]["locationType"] = json!("header");
    }
    answer
}

const INVALID: &str = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.";

/// The API is switched off in the project.
pub(super) fn api_off(number: &str) -> Answer {
    let link = format!(
        "https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project={number}"
    );
    let message = format!(
        "Compute Engine API has not been used in project {number} before or it is disabled. Enable it by visiting {link} then retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry."
    );
    let metadata = json!({"service": "compute.googleapis.com", "consumer": format!("projects/{number}"), "activationUrl": link});
    with_details(403, "accessNotConfigured", &message, "PERMISSION_DENIED", "SERVICE_DISABLED", &metadata)
}

/// The project has no billing account.
pub(super) fn billing_off(number: &str) -> Answer {
    let message = format!(
        "This API method requires billing to be enabled. Please enable billing on project #{number} by visiting https://console.developers.google.com/billing/enable?project={number} then retry."
    );
    let metadata = json!({"service": "compute.googleapis.com", "consumer": format!("projects/{number}")});
    with_details(403, "forbidden", &message, "PERMISSION_DENIED", "BILLING_DISABLED", &metadata)
}

/// The token is good for less than this.
pub(super) fn scope_insufficient() -> Answer {
    let metadata = json!({"service": "compute.googleapis.com"});
    with_details(
        403,
        "insufficientPermissions",
        "Request had insufficient authentication scopes.",
        "PERMISSION_DENIED",
        "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
        &metadata,
    )
}

fn with_details(
    status: u16,
    reason: &str,
    message: &str,
    word: &str,
    detail: &str,
    metadata: &Value,
) -> Answer {
    let mut answer = fail(status, reason, message);
    if let Payload::Json(body) = &mut answer.body {
        body["error"]["status"] = json!(word);
        body["error"]["details"] = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": detail,
                                           "domain": "googleapis.com", "metadata": metadata}]);
    }
    answer
}

/// The word that goes with a status in newer services.
fn word(status: u16) -> &'static str {
    match status {
        400 | 412 => "FAILED_PRECONDITION",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ALREADY_EXISTS",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}

/// The same error without the list of reasons.
pub(super) fn bare(mut answer: Answer) -> Answer {
    if let Payload::Json(body) = &mut answer.body
        && let Some(error) = body.get_mut("error").and_then(Value::as_object_mut)
        && let Some(list) = error.remove("errors")
    {
        let reason = list[0]["reason"].as_str().unwrap_or_default().to_owned();
        error.entry("status").or_insert_with(|| json!(word(answer.status)));
        error.entry("details").or_insert_with(|| {
            json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "compute.googleapis.com"}])
        });
    }
    answer
}

/// The form that a fault's status has.
pub(super) fn problem(status: u16, detail: &str) -> Answer {
    let reason = match status {
        401 => "authError",
        403 => "forbidden",
        404 => "notFound",
        409 => "conflict",
        412 => "conditionNotMet",
        429 => "rateLimitExceeded",
        500 | 501 => "internalError",
        502.. => "backendError",
        _ => "badRequest",
    };
    let mut answer = fail(status, reason, detail);
    if let (Payload::Json(body), 401 | 429) = (&mut answer.body, status) {
        body["error"]["status"] = json!(word(status));
    }
    answer
}
