//! What all services share: metadata, operations, the status of a call.

use std::collections::BTreeMap;

/// `nebius.common.v1.ResourceMetadata`: what every resource is called and where it lies.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceMetadata {
    /// Starts with the kind (`computeinstance-`, `project-`).
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    /// The project, or the tenant of a project.
    #[prost(string, tag = "2")]
    pub(crate) parent_id: String,
    /// Unique in the parent for each kind.
    #[prost(string, tag = "3")]
    pub(crate) name: String,
    #[prost(int64, tag = "4")]
    pub(crate) resource_version: i64,
    #[prost(message, optional, tag = "5")]
    pub(crate) created_at: Option<prost_types::Timestamp>,
    #[prost(message, optional, tag = "6")]
    pub(crate) updated_at: Option<prost_types::Timestamp>,
    #[prost(btree_map = "string, string", tag = "7")]
    pub(crate) labels: BTreeMap<String, String>,
}

/// `nebius.common.v1.GetByNameRequest`: asks for one resource by its name.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetByNameRequest {
    #[prost(string, tag = "1")]
    pub(crate) parent_id: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
}

/// `google.rpc.Status`: how a call or an operation ended. Code 0 is success.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Status {
    /// A gRPC code.
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    /// For people.
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    /// Each a [`super::service_error::ServiceError`] by its type's name.
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<prost_types::Any>,
}

/// `nebius.common.v1.Operation`: what a change to a resource became.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Operation {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "2")]
    pub(crate) description: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) created_at: Option<prost_types::Timestamp>,
    #[prost(string, tag = "4")]
    pub(crate) created_by: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) finished_at: Option<prost_types::Timestamp>,
    /// What is made, changed or deleted; known from the first answer on.
    #[prost(string, tag = "7")]
    pub(crate) resource_id: String,
    /// Absent while it runs; present and empty is success.
    #[prost(message, optional, tag = "10")]
    pub(crate) status: Option<Status>,
}

/// `nebius.common.v1.GetOperationRequest`: asks for one operation, on the host of the service that gave it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetOperationRequest {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

/// `nebius.common.v1.ListOperationsRequest`: asks for the operations of one resource.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListOperationsRequest {
    #[prost(string, tag = "1")]
    pub(crate) resource_id: String,
    #[prost(int64, tag = "2")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "3")]
    pub(crate) page_token: String,
}

/// `nebius.common.v1.ListOperationsResponse`: one page of operations.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListOperationsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) operations: Vec<Operation>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
}
