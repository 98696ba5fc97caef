//! What Google says about a request: refusals, operations, tokens (discovery documents of Compute v1, Security Token Service v1
//! and IAM Credentials v1).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::wire::{digits, told};
use crate::cloud::lenient::{lenient, lenient_object, lenient_objects};

/// An error body: of Compute, and of IAM Credentials.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    #[serde(deserialize_with = "lenient_object")]
    pub(super) error: Option<RefusalBody>,
}

/// What stands in an error body.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RefusalBody {
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) errors: Option<Vec<RefusalReason>>,
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) details: Option<Vec<RefusalDetail>>,
}

/// One entry of `error.errors`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RefusalReason {
    #[serde(deserialize_with = "lenient")]
    pub(super) reason: Option<String>,
}

/// One entry of `error.details`: `google.rpc.ErrorInfo`, as far as it is one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RefusalDetail {
    #[serde(deserialize_with = "lenient")]
    pub(super) reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) metadata: Option<BTreeMap<String, Value>>,
}

/// The error body of token services (RFC 6749, 5.2).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenRefusal {
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) error_description: Option<String>,
}

/// `POST /v1/token` of the Security Token Service.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StsAnswer {
    #[serde(deserialize_with = "lenient")]
    pub(super) access_token: Option<String>,
    /// Seconds.
    #[serde(deserialize_with = "lenient")]
    pub(super) expires_in: Option<f64>,
}

/// `POST ...:generateAccessToken` of IAM Credentials.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Impersonated {
    #[serde(rename = "accessToken", deserialize_with = "lenient")]
    pub(super) access_token: Option<String>,
    /// RFC 3339.
    #[serde(rename = "expireTime", deserialize_with = "lenient")]
    pub(super) expire_time: Option<String>,
}

/// A long-running operation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Operation {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) operation_type: Option<String>,
    /// `PENDING`, `RUNNING`, `DONE`.
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    /// The numeric id of what it works on: it tells a namesake made later apart.
    #[serde(deserialize_with = "digits")]
    pub(super) target_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) target_link: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status_message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) user: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) http_error_status_code: Option<u16>,
    #[serde(deserialize_with = "lenient")]
    pub(super) http_error_message: Option<String>,
    #[serde(deserialize_with = "lenient_object")]
    pub(super) error: Option<OperationErrors>,
}

impl Operation {
    /// Whether it has ended, well or not.
    pub(super) fn is_done(&self) -> bool {
        told(self.status.as_ref()) == Some("DONE")
    }

    /// Whether it ended badly.
    pub(super) fn has_failed(&self) -> bool {
        let listed = self.error.as_ref().and_then(|error| error.errors.as_ref());
        listed.is_some_and(|errors| !errors.is_empty())
            || self.http_error_status_code.is_some_and(|status| status >= 400)
    }
}

/// `error` of an operation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OperationErrors {
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) errors: Option<Vec<OperationError>>,
}

/// One error of an operation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OperationError {
    #[serde(deserialize_with = "lenient")]
    pub(super) code: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Option<String>,
    #[serde(deserialize_with = "lenient_objects")]
    pub(super) error_details: Option<Vec<OperationDetail>>,
}

/// One detail of an operation's error; each has one of the members.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OperationDetail {
    #[serde(deserialize_with = "lenient_object")]
    pub(super) error_info: Option<ErrorInfo>,
    #[serde(deserialize_with = "lenient_object")]
    pub(super) quota_info: Option<QuotaInfo>,
}

/// Why, in words for programs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorInfo {
    #[serde(deserialize_with = "lenient")]
    pub(super) metadatas: Option<BTreeMap<String, Value>>,
}

/// Which quota was exceeded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct QuotaInfo {
    /// `compute.googleapis.com/gpus_all_regions`.
    #[serde(deserialize_with = "lenient")]
    pub(super) metric_name: Option<String>,
    /// `{"region": "us-central1"}`, `{"global": "global"}`.
    #[serde(deserialize_with = "lenient")]
    pub(super) dimensions: Option<BTreeMap<String, Value>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) limit: Option<f64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_end_well_or_badly() {
        let read = |value: Value| serde_json::from_value::<Operation>(value).unwrap();
        assert!(!read(json!({"status": "RUNNING"})).is_done());
        let good = read(json!({"status": "DONE", "error": null}));
        assert!(good.is_done() && !good.has_failed());
        assert!(read(json!({"status": "DONE", "error": {"errors": [{"code": "STOCKOUT"}]}})).has_failed());
        assert!(read(json!({"status": "DONE", "httpErrorStatusCode": 503})).has_failed());
        assert!(!read(json!({"status": "DONE", "error": {"errors": []}})).has_failed());
    }
}
