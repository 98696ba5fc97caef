//! What stands in the details of a status (`nebius/common/v1/error.proto` of github.com/nebius/api).
//!
//! The members of one-ofs are plain optional fields here, as everywhere in these messages: on the wire it is the same, and an
//! answer that fills two of them is survived.

/// `nebius.common.v1.ServiceError`: why a service refused, more exactly than the gRPC code.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServiceError {
    #[prost(string, tag = "1")]
    pub(crate) service: String,
    /// `QuotaFailure`, `NotEnoughResources`, `BadRequest` and the like.
    #[prost(string, tag = "2")]
    pub(crate) code: String,
    #[prost(enumeration = "RetryType", tag = "30")]
    pub(crate) retry_type: i32,
    #[prost(message, optional, tag = "100")]
    pub(crate) bad_request: Option<BadRequest>,
    #[prost(message, optional, tag = "110")]
    pub(crate) bad_resource_state: Option<BadResourceState>,
    #[prost(message, optional, tag = "111")]
    pub(crate) resource_not_found: Option<ResourceNotFound>,
    #[prost(message, optional, tag = "112")]
    pub(crate) resource_already_exists: Option<ResourceAlreadyExists>,
    #[prost(message, optional, tag = "113")]
    pub(crate) out_of_range: Option<OutOfRange>,
    #[prost(message, optional, tag = "120")]
    pub(crate) permission_denied: Option<PermissionDenied>,
    #[prost(message, optional, tag = "130")]
    pub(crate) resource_conflict: Option<ResourceConflict>,
    #[prost(message, optional, tag = "131")]
    pub(crate) operation_aborted: Option<OperationAborted>,
    #[prost(message, optional, tag = "132")]
    pub(crate) operation_conflict: Option<OperationConflict>,
    #[prost(message, optional, tag = "140")]
    pub(crate) too_many_requests: Option<TooManyRequests>,
    #[prost(message, optional, tag = "141")]
    pub(crate) quota_failure: Option<QuotaFailure>,
    #[prost(message, optional, tag = "142")]
    pub(crate) not_enough_resources: Option<NotEnoughResources>,
    #[prost(message, optional, tag = "999")]
    pub(crate) internal_error: Option<InternalError>,
}

/// `nebius.common.v1.ServiceError.RetryType`: what may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum RetryType {
    Unspecified = 0,
    Call = 1,
    UnitOfWork = 2,
    Nothing = 3,
}

/// `nebius.common.v1.BadRequest`: fields that are not taken.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) violations: Vec<BadField>,
}

/// `nebius.common.v1.BadRequest.Violation`: one of them.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BadField {
    /// As a path, `spec.pricing_model`.
    #[prost(string, tag = "1")]
    pub(crate) field: String,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

/// `nebius.common.v1.BadResourceState`: the resource is not in a state for that.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BadResourceState {
    #[prost(string, tag = "1")]
    pub(crate) resource_id: String,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

/// `nebius.common.v1.ResourceNotFound`: there is no such resource.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceNotFound {
    #[prost(string, tag = "1")]
    pub(crate) resource_id: String,
}

/// `nebius.common.v1.ResourceAlreadyExists`: the name is taken.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceAlreadyExists {
    #[prost(string, tag = "1")]
    pub(crate) resource_id: String,
}

/// `nebius.common.v1.OutOfRange`: a figure is too large or too small.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OutOfRange {
    #[prost(string, tag = "1")]
    pub(crate) requested: String,
    #[prost(string, tag = "2")]
    pub(crate) limit: String,
}

/// `nebius.common.v1.PermissionDenied`: a right is missing.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PermissionDenied {
    #[prost(string, tag = "1")]
    pub(crate) resource_id: String,
}

/// `nebius.common.v1.ResourceConflict`: somebody else changed the resource.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceConflict {
    #[prost(string, tag = "1")]
    pub(crate) resource_id: String,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

/// `nebius.common.v1.OperationAborted`: a later operation took over.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OperationAborted {
    #[prost(string, tag = "1")]
    pub(crate) operation_id: String,
    #[prost(string, tag = "2")]
    pub(crate) aborted_by_operation_id: String,
    #[prost(string, tag = "3")]
    pub(crate) resource_id: String,
}

/// `nebius.common.v1.OperationConflict`: another operation runs on the resource.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OperationConflict {
    #[prost(string, tag = "1")]
    pub(crate) conflicting_operation_id: String,
    #[prost(string, tag = "2")]
    pub(crate) resource_id: String,
}

/// `nebius.common.v1.TooManyRequests`: a rate limit.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TooManyRequests {
    #[prost(string, tag = "1")]
    pub(crate) violation: String,
}

/// `nebius.common.v1.QuotaFailure`: quotas that would be exceeded.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct QuotaFailure {
    #[prost(message, repeated, tag = "1")]
    pub(crate) violations: Vec<QuotaViolation>,
}

/// `nebius.common.v1.QuotaFailure.Violation`: one of them.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct QuotaViolation {
    /// Its name, `compute.instance.gpu.h100`.
    #[prost(string, tag = "1")]
    pub(crate) quota: String,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(string, tag = "3")]
    pub(crate) limit: String,
    #[prost(string, tag = "4")]
    pub(crate) requested: String,
}

/// `nebius.common.v1.NotEnoughResources`: what the cloud has not enough of.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NotEnoughResources {
    #[prost(message, repeated, tag = "1")]
    pub(crate) violations: Vec<Shortage>,
}

/// `nebius.common.v1.NotEnoughResources.Violation`: one of them.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Shortage {
    #[prost(string, tag = "1")]
    pub(crate) resource_type: String,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(string, tag = "3")]
    pub(crate) requested: String,
}

/// `nebius.common.v1.InternalError`: a fault of the cloud.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InternalError {
    #[prost(string, tag = "1")]
    pub(crate) request_id: String,
    #[prost(string, tag = "2")]
    pub(crate) trace_id: String,
}
