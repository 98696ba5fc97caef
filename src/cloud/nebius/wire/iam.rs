//! Tokens, who one is, tenants and projects.

use super::common::ResourceMetadata;

/// `nebius.iam.v1.ExchangeTokenRequest`: asks for an access token (RFC 8693).
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct ExchangeTokenRequest {
    #[prost(string, tag = "1")]
    pub(crate) grant_type: String,
    #[prost(string, tag = "2")]
    pub(crate) requested_token_type: String,
    #[prost(string, tag = "3")]
    pub(crate) subject_token: String,
    #[prost(string, tag = "4")]
    pub(crate) subject_token_type: String,
    #[prost(string, repeated, tag = "5")]
    pub(crate) scopes: Vec<String>,
    #[prost(string, tag = "6")]
    pub(crate) audience: String,
    #[prost(string, tag = "7")]
    pub(crate) actor_token: String,
    #[prost(string, tag = "8")]
    pub(crate) actor_token_type: String,
    #[prost(string, repeated, tag = "9")]
    pub(crate) resource: Vec<String>,
}

/// Shows no secret.
impl std::fmt::Debug for ExchangeTokenRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExchangeTokenRequest").finish_non_exhaustive()
    }
}

/// `nebius.iam.v1.CreateTokenResponse`: an access token.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct CreateTokenResponse {
    #[prost(string, tag = "1")]
    pub(crate) access_token: String,
    #[prost(string, tag = "2")]
    pub(crate) issued_token_type: String,
    #[prost(string, tag = "3")]
    pub(crate) token_type: String,
    /// In seconds from now.
    #[prost(int64, tag = "4")]
    pub(crate) expires_in: i64,
}

/// Shows no secret.
impl std::fmt::Debug for CreateTokenResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateTokenResponse").finish_non_exhaustive()
    }
}

/// `nebius.iam.v1.GetProfileRequest`: asks who one is.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetProfileRequest {}

/// `nebius.iam.v1.GetProfileResponse`: who one is: one of the three.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetProfileResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) user_profile: Option<UserProfile>,
    #[prost(message, optional, tag = "2")]
    pub(crate) service_account_profile: Option<ServiceAccountProfile>,
    /// The token is not taken.
    #[prost(message, optional, tag = "3")]
    pub(crate) anonymous_profile: Option<AnonymousAccount>,
}

/// `nebius.iam.v1.UserProfile`: a person.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UserProfile {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) tenants: Vec<UserTenantInfo>,
}

/// `nebius.iam.v1.UserTenantInfo`: a tenant that a person belongs to.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UserTenantInfo {
    #[prost(string, tag = "1")]
    pub(crate) tenant_id: String,
    #[prost(string, tag = "2")]
    pub(crate) tenant_user_account_id: String,
    #[prost(enumeration = "TenantUserState", tag = "3")]
    pub(crate) tenant_user_account_state: i32,
}

/// `nebius.iam.v1.TenantUserAccountStatus.State`: whether a person may work in a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum TenantUserState {
    Unspecified = 0,
    Active = 1,
    Inactive = 2,
    Blocked = 3,
}

/// `nebius.iam.v1.ServiceAccountProfile`: a service account.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServiceAccountProfile {
    #[prost(message, optional, tag = "1")]
    pub(crate) info: Option<ServiceAccount>,
}

/// `nebius.iam.v1.ServiceAccount`: a service account.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServiceAccount {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<ServiceAccountStatus>,
}

/// `nebius.iam.v1.ServiceAccountStatus`: whether it may be used.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServiceAccountStatus {
    #[prost(bool, tag = "1")]
    pub(crate) active: bool,
}

/// `nebius.iam.v1.AnonymousAccount`: nobody.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AnonymousAccount {}

/// `nebius.iam.v2.ListTenantsRequest`: asks for the tenants that one sees.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListTenantsRequest {
    /// 10 unless it says more.
    #[prost(int64, tag = "1")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "2")]
    pub(crate) page_token: String,
}

/// `nebius.iam.v2.ListTenantsResponse`: one page of tenants.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListTenantsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<Tenant>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
}

/// `nebius.iam.v2.Tenant`: a customer.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Tenant {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<TenantStatus>,
}

/// `nebius.iam.v2.TenantStatus`: what it is doing.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TenantStatus {
    #[prost(enumeration = "TenantState", tag = "1")]
    pub(crate) tenant_state: i32,
}

/// `nebius.iam.v2.TenantStatus.TenantState`: what a tenant is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum TenantState {
    Unspecified = 0,
    Creating = 1,
    Active = 2,
    Created = 3,
    Activating = 4,
    Parking = 5,
    Parked = 6,
}

/// `nebius.iam.v2.ListProjectsRequest`: asks for the projects of a tenant.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListProjectsRequest {
    /// The tenant.
    #[prost(string, tag = "1")]
    pub(crate) parent_id: String,
    /// 10 unless it says more.
    #[prost(int64, tag = "2")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "3")]
    pub(crate) page_token: String,
}

/// `nebius.iam.v2.ListProjectsResponse`: one page of projects.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListProjectsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<Project>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
}

/// `nebius.iam.v2.Project`: a project, which lies in one region.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Project {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<ProjectSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<ProjectStatus>,
}

/// `nebius.iam.v2.ProjectSpec`: where it lies.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ProjectSpec {
    #[prost(string, tag = "1")]
    pub(crate) region: String,
}

/// `nebius.iam.v2.ProjectStatus`: what it is doing.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ProjectStatus {
    #[prost(enumeration = "ProjectState", tag = "1")]
    pub(crate) project_state: i32,
}

/// `nebius.iam.v2.ProjectStatus.ProjectState`: what a project is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ProjectState {
    Unspecified = 0,
    Creating = 1,
    Active = 2,
    Purging = 3,
    Created = 4,
    Activating = 5,
    Parking = 6,
    Parked = 7,
}
