//! Errors as Nebius tells them: a code, a sentence, and a `nebius.common.v1.ServiceError` that says what it is.
//!
//! Quota and capacity have the same code, RESOURCE_EXHAUSTED; only the detail tells them apart
//! (<https://github.com/nebius/nebius-physical-ai>, quota guide).

use serde_json::{Value, json};

use crate::sandbox::grpc::Code;

/// An error.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) code: Code,
    pub(super) message: String,
    /// The `ServiceError`, or null.
    pub(super) detail: Value,
    /// Whether a correct client never gets it.
    pub(super) rejecting: bool,
}

/// What every call ends with.
pub(super) type Outcome<T = Value> = Result<T, Box<Trouble>>;

impl Trouble {
    /// An error without details.
    pub(super) fn plain(code: Code, message: impl Into<String>) -> Box<Trouble> {
        Box::new(Trouble { code, message: message.into(), detail: Value::Null, rejecting: false })
    }

    fn of(code: Code, message: impl Into<String>, word: &str, arm: &str, detail: Value) -> Box<Trouble> {
        let retry = match word {
            "NotEnoughResources" => "UNIT_OF_WORK",
            "TooManyRequests" | "OperationConflict" => "CALL",
            _ => "NOTHING",
        };
        let mut trouble = Trouble::plain(code, message);
        trouble.detail = json!({"service": "compute", "code": word, "retry_type": retry});
        if let Value::Object(parts) = &mut trouble.detail {
            parts.insert(arm.to_owned(), detail);
        }
        trouble
    }

    /// A request against the rules, which no correct client sends.
    pub(super) fn invalid(field: &str, message: &str) -> Box<Trouble> {
        Trouble::violations(vec![json!({"field": field, "message": message})])
    }

    /// The same for several rules at once.
    pub(super) fn violations(violations: Vec<Value>) -> Box<Trouble> {
        let text = |one: &Value| {
            let part = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            format!("{} - {}", part("field"), part("message"))
        };
        let message = violations.iter().map(text).collect::<Vec<_>>().join("; ");
        let detail = json!({"violations": violations});
        let mut trouble = Trouble::of(Code::INVALID_ARGUMENT, message, "BadRequest", "bad_request", detail);
        trouble.rejecting = true;
        trouble
    }

    /// There is no such thing.
    pub(super) fn not_found(id: &str) -> Box<Trouble> {
        let detail = json!({"resource_id": id});
        let message = format!("resource {id} not found");
        Trouble::of(Code::NOT_FOUND, message, "ResourceNotFound", "resource_not_found", detail)
    }

    /// Not for this account.
    pub(super) fn denied(id: &str) -> Box<Trouble> {
        let detail = json!({"resource_id": id});
        let message = format!("permission denied for resource {id}");
        Trouble::of(Code::PERMISSION_DENIED, message, "PermissionDenied", "permission_denied", detail)
    }

    /// The name is taken.
    pub(super) fn exists(name: &str, id: &str) -> Box<Trouble> {
        let detail = json!({"resource_id": id});
        let message = format!("resource with name {name} already exists");
        Trouble::of(Code::ALREADY_EXISTS, message, "ResourceAlreadyExists", "resource_already_exists", detail)
    }

    /// No hardware.
    pub(super) fn no_capacity(platform: &str) -> Box<Trouble> {
        let violation =
            json!({"resource_type": platform, "message": "not enough resources", "requested": "1"});
        let detail = json!({"violations": [violation]});
        // Measured: <https://github.com/skypilot-org/skypilot/pull/6856>.
        let message = "VM schedule timeout, most likely due to insufficient hardware resources";
        Trouble::of(Code::RESOURCE_EXHAUSTED, message, "NotEnoughResources", "not_enough_resources", detail)
    }

    /// A quota is used up.
    pub(super) fn quota(name: &str, limit: u64, requested: u64) -> Box<Trouble> {
        let violation = json!({
            "quota": name, "message": "quota exceeded", "limit": limit.to_string(), "requested": requested.to_string(),
        });
        let detail = json!({"violations": [violation]});
        Trouble::of(Code::RESOURCE_EXHAUSTED, "Quota limit exceeded", "QuotaFailure", "quota_failure", detail)
    }

    /// Too many calls.
    pub(super) fn too_many(message: &str) -> Box<Trouble> {
        let detail = json!({"violation": "requests per minute"});
        Trouble::of(Code::RESOURCE_EXHAUSTED, message, "TooManyRequests", "too_many_requests", detail)
    }

    /// Another operation is under way.
    pub(super) fn conflict(operation: &str, resource: &str) -> Box<Trouble> {
        let detail = json!({"conflicting_operation_id": operation, "resource_id": resource});
        let message = format!("operation {operation} is in progress on {resource}");
        Trouble::of(Code::ABORTED, message, "OperationConflict", "operation_conflict", detail)
    }

    /// Another operation has put an end to this one.
    pub(super) fn aborted(operation: &str, by: &str, resource: &str) -> Box<Trouble> {
        let detail =
            json!({"operation_id": operation, "aborted_by_operation_id": by, "resource_id": resource});
        let message = format!("operation {operation} was aborted");
        Trouble::of(Code::ABORTED, message, "OperationAborted", "operation_aborted", detail)
    }

    /// Not in this state.
    pub(super) fn state(resource: &str, message: &str) -> Box<Trouble> {
        let detail = json!({"resource_id": resource, "message": message});
        let code = Code::FAILED_PRECONDITION;
        Trouble::of(code, message, "BadResourceState", "bad_resource_state", detail)
    }

    /// The service itself is at fault.
    pub(super) fn internal(message: &str) -> Box<Trouble> {
        let detail = json!({"request_id": "sandbox", "trace_id": "sandbox"});
        Trouble::of(Code::INTERNAL, message, "InternalError", "internal_error", detail)
    }

    /// Bad credentials.
    pub(super) fn unauthenticated(message: &str) -> Box<Trouble> {
        Trouble::plain(Code::UNAUTHENTICATED, message)
    }

    /// The error in this form that means the same as an HTTP status.
    pub(super) fn of_http(status: u16, message: &str) -> Box<Trouble> {
        match status {
            400 | 422 => {
                let mut trouble = Trouble::invalid("spec", message);
                message.clone_into(&mut trouble.message);
                trouble.rejecting = false;
                trouble
            }
            409 => Trouble::state("", message),
            429 => Trouble::too_many(message),
            500 => Trouble::internal(message),
            // An edge in front of the service.
            520.. => Trouble::plain(Code::UNKNOWN, format!("HTTP {status}: {message}")),
            _ => Trouble::plain(Code::of_http(status), message),
        }
    }

    /// The same with a mark that no correct client gets it.
    pub(super) fn rejecting(mut self: Box<Self>) -> Box<Trouble> {
        self.rejecting = true;
        self
    }

    /// As `google.rpc.Status`.
    pub(super) fn status(&self) -> Value {
        let mut status = json!({"code": self.code.0, "message": self.message});
        if let (Value::Object(detail), Value::Object(parts)) = (&self.detail, &mut status) {
            let mut detail = detail.clone();
            detail.insert("@type".into(), json!("nebius.common.v1.ServiceError"));
            parts.insert("details".into(), json!([detail]));
        }
        status
    }
}
