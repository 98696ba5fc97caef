//! The calls, each with its host, path, request and answer.

use std::fmt;
use std::marker::PhantomData;

use super::{
    CreateInstanceRequest, CreateTokenResponse, DeleteDiskRequest, DeleteInstanceRequest, Disk,
    EstimateRequest, EstimateResponse, ExchangeTokenRequest, GetByNameRequest, GetDiskRequest,
    GetImageLatestByFamilyRequest, GetInstanceRequest, GetOperationRequest, GetProfileRequest,
    GetProfileResponse, Image, Instance, ListDisksRequest, ListDisksResponse, ListInstancesRequest,
    ListInstancesResponse, ListOperationsRequest, ListOperationsResponse, ListPlatformsRequest,
    ListPlatformsResponse, ListProjectsRequest, ListProjectsResponse, ListQuotaAllowancesRequest,
    ListQuotaAllowancesResponse, ListResourceAdviceRequest, ListResourceAdviceResponse,
    ListSpotPricesRequest, ListSpotPricesResponse, ListSubnetsRequest, ListSubnetsResponse,
    ListTenantsRequest, ListTenantsResponse, Operation, Platform,
};

/// One call.
pub(crate) struct Method<Req, Res> {
    /// What stands before `.api.nebius.cloud` in the name of its host.
    pub(crate) host: &'static str,
    /// Its path.
    pub(crate) path: &'static str,
    types: PhantomData<fn(&Req) -> Res>,
}

impl<Req, Res> Method<Req, Res> {
    const fn new(host: &'static str, path: &'static str) -> Self {
        Method { host, path, types: PhantomData }
    }
}

impl<Req, Res> fmt::Debug for Method<Req, Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)
    }
}

/// `nebius.iam.v1.TokenExchangeService`: exchanges credentials for an access token. Needs no token.
pub(crate) const EXCHANGE: Method<ExchangeTokenRequest, CreateTokenResponse> =
    Method::new("tokens.iam", "/nebius.iam.v1.TokenExchangeService/Exchange");

/// `nebius.iam.v1.ProfileService`: tells who one is.
pub(crate) const PROFILE: Method<GetProfileRequest, GetProfileResponse> =
    Method::new("cpl.iam", "/nebius.iam.v1.ProfileService/Get");

/// `nebius.iam.v2.TenantService`: lists the tenants that one sees.
pub(crate) const LIST_TENANTS: Method<ListTenantsRequest, ListTenantsResponse> =
    Method::new("cpl.iam", "/nebius.iam.v2.TenantService/List");

/// `nebius.iam.v2.ProjectService`: lists the projects of a tenant.
pub(crate) const LIST_PROJECTS: Method<ListProjectsRequest, ListProjectsResponse> =
    Method::new("cpl.iam", "/nebius.iam.v2.ProjectService/List");

/// `nebius.compute.v1.PlatformService`: lists the platforms of a project's region.
pub(crate) const LIST_PLATFORMS: Method<ListPlatformsRequest, ListPlatformsResponse> =
    Method::new("compute", "/nebius.compute.v1.PlatformService/List");

/// `nebius.compute.v1.PlatformService`: returns one platform.
pub(crate) const PLATFORM_BY_NAME: Method<GetByNameRequest, Platform> =
    Method::new("compute", "/nebius.compute.v1.PlatformService/GetByName");

/// `nebius.compute.v1.ImageService`: returns the newest image of a family.
pub(crate) const IMAGE_LATEST: Method<GetImageLatestByFamilyRequest, Image> =
    Method::new("compute", "/nebius.compute.v1.ImageService/GetLatestByFamily");

/// `nebius.compute.v1.InstanceService`: makes a machine.
pub(crate) const CREATE_INSTANCE: Method<CreateInstanceRequest, Operation> =
    Method::new("compute", "/nebius.compute.v1.InstanceService/Create");

/// `nebius.compute.v1.InstanceService`: returns one machine.
pub(crate) const GET_INSTANCE: Method<GetInstanceRequest, Instance> =
    Method::new("compute", "/nebius.compute.v1.InstanceService/Get");

/// `nebius.compute.v1.InstanceService`: returns one machine by its name.
pub(crate) const INSTANCE_BY_NAME: Method<GetByNameRequest, Instance> =
    Method::new("compute", "/nebius.compute.v1.InstanceService/GetByName");

/// `nebius.compute.v1.InstanceService`: lists the machines of a project.
pub(crate) const LIST_INSTANCES: Method<ListInstancesRequest, ListInstancesResponse> =
    Method::new("compute", "/nebius.compute.v1.InstanceService/List");

/// `nebius.compute.v1.InstanceService`: deletes a machine and its managed disks.
pub(crate) const DELETE_INSTANCE: Method<DeleteInstanceRequest, Operation> =
    Method::new("compute", "/nebius.compute.v1.InstanceService/Delete");

/// `nebius.compute.v1.DiskService`: lists the disks of a project.
pub(crate) const LIST_DISKS: Method<ListDisksRequest, ListDisksResponse> =
    Method::new("compute", "/nebius.compute.v1.DiskService/List");

/// `nebius.compute.v1.DiskService`: returns one disk.
pub(crate) const GET_DISK: Method<GetDiskRequest, Disk> =
    Method::new("compute", "/nebius.compute.v1.DiskService/Get");

/// `nebius.compute.v1.DiskService`: deletes a disk.
pub(crate) const DELETE_DISK: Method<DeleteDiskRequest, Operation> =
    Method::new("compute", "/nebius.compute.v1.DiskService/Delete");

/// `nebius.common.v1.OperationService`: returns one operation of the compute services, which are the only ones that are asked for changes here.
pub(crate) const GET_OPERATION: Method<GetOperationRequest, Operation> =
    Method::new("compute", "/nebius.common.v1.OperationService/Get");

/// `nebius.common.v1.OperationService`: lists the operations of one resource of the compute services.
pub(crate) const LIST_OPERATIONS: Method<ListOperationsRequest, ListOperationsResponse> =
    Method::new("compute", "/nebius.common.v1.OperationService/List");

/// `nebius.vpc.v1.SubnetService`: lists the subnets of a project.
pub(crate) const LIST_SUBNETS: Method<ListSubnetsRequest, ListSubnetsResponse> =
    Method::new("vpc", "/nebius.vpc.v1.SubnetService/List");

/// `nebius.quotas.v1.QuotaAllowanceService`: lists the quotas of a tenant or project.
pub(crate) const LIST_QUOTAS: Method<ListQuotaAllowancesRequest, ListQuotaAllowancesResponse> =
    Method::new("quota-dispatcher.billing-cpl", "/nebius.quotas.v1.QuotaAllowanceService/List");

/// `nebius.capacity.v1.ResourceAdviceService`: lists what can be started.
pub(crate) const LIST_ADVICE: Method<ListResourceAdviceRequest, ListResourceAdviceResponse> =
    Method::new("capacity-advisor.billing-cpl", "/nebius.capacity.v1.ResourceAdviceService/List");

/// `nebius.billing.v1alpha1.CalculatorService`: tells what something would cost; makes nothing.
pub(crate) const ESTIMATE: Method<EstimateRequest, EstimateResponse> =
    Method::new("api.calculator.billing-data-plane", "/nebius.billing.v1alpha1.CalculatorService/Estimate");

/// `nebius.billing.v1alpha1.SpotPriceService`: lists the spot prices of all regions. Needs no token.
pub(crate) const LIST_SPOT_PRICES: Method<ListSpotPricesRequest, ListSpotPricesResponse> =
    Method::new("pricing-policies.billing-cpl", "/nebius.billing.v1alpha1.SpotPriceService/List");
