//! What Nebius's refusals mean. Only this file reads codes and details.
//!
//! Quota and capacity are both `RESOURCE_EXHAUSTED`, as is a rate limit; only the `ServiceError` in the details tells them
//! apart (github.com/nebius/api, `nebius/common/v1/error.proto`), and where there is none, the words. The same status stands in
//! the operation of a create that failed late.

use std::time::Duration;

use prost::Message;

use super::redact::redact;
use super::wire::{self, RetryType, ServiceError};
use crate::cloud::{Error, ErrorKind, Limit, Reached};
use crate::grpc::{self, Code, Status, Via};
use crate::model::account::AccountId;
use crate::model::words::one_line;

/// The longest text of somebody else's that we show, in characters.
const LONGEST: usize = 300;

/// Parts of messages that mean a limit of the account, in lower case (github.com/dstackai/dstack, its Nebius backend).
const QUOTA: [&str; 3] = ["quota limit exceeded", "quota exceeded", "quotafailure"];

/// Parts that mean "not to be had now" (github.com/skypilot-org/skypilot/pull/6856).
const NO_CAPACITY: [&str; 5] = [
    "not enough resources",
    "notenoughresources",
    "insufficient hardware",
    "schedule timeout",
    "resource exhausted",
];

/// The shortest wait after a rate limit.
const RATE_WAIT: Duration = Duration::from_secs(1);

/// What was asked for with a create.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// The region.
    pub(crate) region: String,
    /// The project.
    pub(crate) project: String,
    /// Platform and preset as they are shown, `gpu-h100-sxm 1gpu-16vcpu-200gb`.
    pub(crate) instance_type: String,
    /// The GPU in our spelling; none without one.
    pub(crate) gpu: Option<String>,
    /// Preemptible or on demand.
    pub(crate) spot: bool,
}

impl Attempt {
    /// What fails with this very offer.
    fn itself(&self) -> Limit {
        Limit {
            region: Some(self.region.clone()),
            instance_type: Some(self.instance_type.clone()),
            spot: Some(self.spot),
            ..Limit::default()
        }
    }

    /// What fails when a quota is used up: the quota's name says of what.
    fn of_quota(&self, quota: &str) -> Limit {
        let region = Some(self.region.clone());
        match quota {
            "compute.instance.preemptible.count" => Limit { region, spot: Some(true), ..Limit::default() },
            // Whether preemptible machines count against it is told both ways: only this kind is ruled out.
            _ if quota.starts_with("compute.instance.gpu.") => {
                Limit { region, gpu: self.gpu.clone(), spot: Some(self.spot), ..Limit::default() }
            }
            _ if quota.starts_with("compute.instance.non-gpu.") => self.itself(),
            // Machines, disks, addresses: whatever is made there.
            _ if !quota.is_empty() => Limit { region, ..Limit::default() },
            _ => self.itself(),
        }
    }

    fn shown(&self) -> String {
        let kind = if self.spot { "preemptible" } else { "on demand" };
        format!("{}, {kind}, {}", self.instance_type, self.region)
    }
}

/// The circumstances of a refusal.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// The account.
    pub(crate) account: &'a AccountId,
    /// What was being done.
    pub(crate) doing: &'static str,
    /// The create, if it was one.
    pub(crate) attempt: Option<&'a Attempt>,
}

impl Asked<'_> {
    /// Returns an error of ours about this request.
    pub(crate) fn error(&self, kind: ErrorKind, message: impl Into<String>, reached: Reached) -> Box<Error> {
        Box::new(Error::new(kind, self.account, self.doing, message, reached))
    }
}

/// Returns the error that a failed call means.
pub(crate) fn failed(error: grpc::Error, asked: &Asked<'_>) -> Box<Error> {
    match error {
        grpc::Error::Unanswered(error) => Error::unanswered(error, asked.account, asked.doing),
        grpc::Error::Refused(status) => refused(&status, asked),
        grpc::Error::Unreadable { what, done, .. } => {
            unreadable(asked, &what, if done { Reached::Yes } else { Reached::Maybe })
        }
    }
}

/// Returns the error of an operation that ended with `status`, on a resource that was made all the same.
pub(crate) fn late(status: &wire::Status, asked: &Asked<'_>) -> Box<Error> {
    let details = service_error(&status.details);
    let read = Read { code: Code::from_i32(status.code), details, message: &status.message };
    let mut error = asked.error(read.kind(true), read.shown(), Reached::Yes);
    explain(&mut error, &read, asked);
    error
}

/// Returns an error for an answer that cannot be read.
pub(crate) fn unreadable(asked: &Asked<'_>, what: &str, reached: Reached) -> Box<Error> {
    let what = one_line(&redact(what), LONGEST);
    asked.error(ErrorKind::Unreadable, format!("Nebius's answer cannot be read: {what}"), reached)
}

/// Says whether a read that was refused may be made again, and after how long at least.
pub(crate) fn may_repeat_read(status: &Status) -> Option<Duration> {
    if let Via::Edge(http) = status.via {
        return matches!(http, 408 | 429 | 500 | 502..=504 | 520..=599).then_some(Duration::ZERO);
    }
    let read = Read::new(status);
    if let Some(hint) = read.retry_type() {
        return (hint == RetryType::Call).then(|| read.least_wait());
    }
    match status.code {
        Code::ResourceExhausted => (read.kind(false) == ErrorKind::RateLimited).then_some(RATE_WAIT),
        Code::Unavailable | Code::DeadlineExceeded | Code::Unknown | Code::Internal => Some(Duration::ZERO),
        _ => None,
    }
}

/// Says whether a create that was refused may be sent again, and after how long at least: only after a rate limit, which lets
/// nothing through.
pub(crate) fn may_repeat_create(status: &Status) -> Option<Duration> {
    match status.via {
        Via::Edge(http) => (http == 429).then_some(RATE_WAIT),
        Via::Service => {
            let read = Read::new(status);
            let limited =
                status.code == Code::ResourceExhausted && read.kind(false) == ErrorKind::RateLimited;
            (limited && read.retry_type() != Some(RetryType::Nothing)).then_some(RATE_WAIT)
        }
    }
}

/// Returns the error that a status other than `OK` means.
pub(crate) fn refused(status: &Status, asked: &Asked<'_>) -> Box<Error> {
    let read = Read::new(status);
    let (mut kind, mut reached) = match status.via {
        Via::Service => (read.kind(false), read.reached()),
        Via::Edge(401) => (ErrorKind::Auth, Reached::Maybe),
        Via::Edge(429) => (ErrorKind::RateLimited, Reached::No),
        Via::Edge(_) => (ErrorKind::Unavailable, Reached::Maybe),
    };
    if asked.attempt.is_some() {
        match kind {
            // Of a create it says that something which the request names is not there.
            ErrorKind::NotFound => kind = ErrorKind::Rejected,
            // The name may be taken by what an earlier try made.
            ErrorKind::Conflict if status.code == Code::AlreadyExists => reached = Reached::Maybe,
            // The offer was looked at a moment ago with the same token: who knows when it ended.
            ErrorKind::Auth => reached = Reached::Maybe,
            _ => {}
        }
    }
    let mut message = read.shown();
    if matches!(kind, ErrorKind::Unavailable | ErrorKind::Rejected | ErrorKind::Conflict)
        && let Some(id) = &status.request_id
    {
        message = format!("{message} (request {id})");
    }
    let mut error = asked.error(kind, message, reached);
    explain(&mut error, &read, asked);
    error
}

const CREDENTIALS_HINT: &str = "get a new token (`nebius iam get-access-token`), or give a service account's key file, \
                                which renews itself";

const RIGHTS_HINT: &str = "a service account must be in a group of the tenant with the role editor (console.nebius.com, \
                           Administration, IAM)";

fn explain(error: &mut Error, read: &Read<'_>, asked: &Asked<'_>) {
    match error.kind {
        ErrorKind::Auth => error.hint = Some(CREDENTIALS_HINT.to_owned()),
        ErrorKind::Forbidden => {
            error.hint = Some(RIGHTS_HINT.to_owned());
            if let Some(attempt) = asked.attempt
                && !error.message.contains(&attempt.project)
            {
                error.message = format!("{} (in {})", error.message, attempt.project);
            }
            let region = asked.attempt.map(|attempt| attempt.region.clone());
            error.limit = Some(Limit { region, ..Limit::default() });
        }
        ErrorKind::Quota => {
            let quota = read.quota();
            error.limit = Some(asked.attempt.map_or_else(Limit::default, |attempt| attempt.of_quota(&quota)));
            error.hint = Some(
                "ask for more at console.nebius.com, Limits and quotas, or take another offer".to_owned(),
            );
        }
        ErrorKind::NoCapacity => {
            if let Some(attempt) = asked.attempt {
                error.message = format!("{} (asked: {})", error.message, attempt.shown());
                error.limit = Some(attempt.itself());
            }
        }
        _ => {}
    }
}

/// Finds the first error of a service among the details.
fn service_error(details: &[prost_types::Any]) -> Option<ServiceError> {
    let named = details.iter().find(|detail| detail.type_url.ends_with("nebius.common.v1.ServiceError"))?;
    ServiceError::decode(named.value.as_slice()).ok()
}

/// A status, read.
struct Read<'a> {
    code: Code,
    details: Option<ServiceError>,
    message: &'a str,
}

impl<'a> Read<'a> {
    fn new(status: &'a Status) -> Self {
        let whole = wire::Status::decode(status.details.as_slice()).unwrap_or_default();
        Read { code: status.code, details: service_error(&whole.details), message: &status.message }
    }

    fn retry_type(&self) -> Option<RetryType> {
        let hint = self.details.as_ref()?.retry_type();
        (hint != RetryType::Unspecified).then_some(hint)
    }

    fn least_wait(&self) -> Duration {
        if self.code == Code::ResourceExhausted { RATE_WAIT } else { Duration::ZERO }
    }

    /// What it means. `late` says that it is the end of an operation: no rate limit ends one.
    fn kind(&self, late: bool) -> ErrorKind {
        if let Some(kind) = self.details.as_ref().and_then(detailed) {
            return kind;
        }
        let words = self.message.to_lowercase();
        let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
        match self.code {
            Code::Unauthenticated => ErrorKind::Auth,
            _ if says(&QUOTA) => ErrorKind::Quota,
            Code::PermissionDenied => ErrorKind::Forbidden,
            Code::ResourceExhausted if late || says(&NO_CAPACITY[..4]) => ErrorKind::NoCapacity,
            Code::ResourceExhausted => ErrorKind::RateLimited,
            _ if late && says(&NO_CAPACITY) => ErrorKind::NoCapacity,
            Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented => ErrorKind::Rejected,
            Code::NotFound => ErrorKind::NotFound,
            Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => ErrorKind::Conflict,
            Code::DeadlineExceeded => ErrorKind::Timeout,
            _ => ErrorKind::Unavailable,
        }
    }

    fn reached(&self) -> Reached {
        match self.code {
            Code::Unavailable
            | Code::Unknown
            | Code::Internal
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::DataLoss
            | Code::Ok => Reached::Maybe,
            _ => Reached::No,
        }
    }

    /// The name of the first quota that is used up; empty if none is named.
    fn quota(&self) -> String {
        let failure = self.details.as_ref().and_then(|details| details.quota_failure.as_ref());
        failure
            .and_then(|failure| failure.violations.first())
            .map(|one| one.quota.clone())
            .unwrap_or_default()
    }

    /// The words to show: the message, and what the details add.
    fn shown(&self) -> String {
        let mut words = one_line(&redact(self.message), LONGEST);
        let more = self.details.as_ref().map(more).unwrap_or_default();
        let more = redact(&more);
        if words.is_empty() {
            words = format!("Nebius answered with the code {:?}", self.code);
        }
        match more {
            more if more.is_empty() || words.contains(&more) => words,
            more => format!("{words}: {}", one_line(&more, LONGEST)),
        }
    }
}

/// What the details alone say, as far as they are known.
fn detailed(details: &ServiceError) -> Option<ErrorKind> {
    Some(if details.quota_failure.is_some() || details.code == "QuotaFailure" {
        ErrorKind::Quota
    } else if details.not_enough_resources.is_some() || details.code == "NotEnoughResources" {
        ErrorKind::NoCapacity
    } else if details.too_many_requests.is_some() {
        ErrorKind::RateLimited
    } else if details.permission_denied.is_some() {
        ErrorKind::Forbidden
    } else if details.bad_request.is_some() || details.out_of_range.is_some() {
        ErrorKind::Rejected
    } else if details.resource_not_found.is_some() {
        ErrorKind::NotFound
    } else if details.resource_already_exists.is_some()
        || details.bad_resource_state.is_some()
        || details.resource_conflict.is_some()
        || details.operation_conflict.is_some()
        || details.operation_aborted.is_some()
    {
        ErrorKind::Conflict
    } else {
        return None;
    })
}

/// What the details say beside the message.
fn more(details: &ServiceError) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(failure) = &details.quota_failure {
        parts.extend(failure.violations.iter().take(3).map(|one| match one.limit.as_str() {
            "" => format!("quota {}", one.quota),
            limit => format!("quota {}, limit {limit}, asked for {}", one.quota, one.requested),
        }));
    }
    if let Some(failure) = &details.not_enough_resources {
        parts.extend(failure.violations.iter().take(3).map(|one| one.resource_type.clone()));
    }
    if let Some(failure) = &details.bad_request {
        parts.extend(failure.violations.iter().take(3).map(|one| format!("{}: {}", one.field, one.message)));
    }
    if let Some(denied) = &details.permission_denied {
        parts.push(denied.resource_id.clone());
    }
    if let Some(state) = &details.bad_resource_state {
        parts.push(state.message.clone());
    }
    if let Some(conflict) = &details.operation_conflict {
        parts.push(conflict.conflicting_operation_id.clone());
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("; ")
}

#[cfg(test)]
#[path = "errors_tests.rs"]
mod tests;
