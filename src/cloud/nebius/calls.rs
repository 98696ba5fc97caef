//! One function for each call of the API.

use super::client::{Api, How, READ, found};
use super::errors::{Asked, Attempt};
use super::wire::methods;
use super::wire::*;
use crate::cloud::Result;

/// Rows asked for on one page; services may give fewer.
const PAGE: i64 = 1000;

/// The same of tenants, projects and spot prices, which refuse more.
const SMALL_PAGE: i64 = 100;

/// What a look is called in messages.
pub(crate) const LOOKING: &str = "looking at the machine";

/// What a create is called in messages.
pub(crate) const CREATING: &str = "creating the machine";

/// What a delete is called in messages.
pub(crate) const DELETING: &str = "deleting the machine";

/// Said of a machine that is not there yet.
pub(super) const MAKING: &str = "Nebius is still making it";

impl Api {
    /// Asks who one is.
    pub(crate) async fn profile(&self) -> Result<GetProfileResponse> {
        self.call(&methods::PROFILE, &GetProfileRequest {}, READ, &self.asked("checking the credentials"))
            .await
    }

    /// Lists the tenants that one sees.
    pub(crate) async fn tenants(&self) -> Result<Vec<Tenant>> {
        let request = |page_token| ListTenantsRequest { page_size: SMALL_PAGE, page_token };
        let split = |page: ListTenantsResponse| (page.items, page.next_page_token);
        self.list(&methods::LIST_TENANTS, request, split, READ, "listing tenants").await
    }

    /// Lists the projects of a tenant.
    pub(crate) async fn projects(&self, tenant: &str) -> Result<Vec<Project>> {
        let request = |page_token| ListProjectsRequest {
            parent_id: tenant.to_owned(),
            page_size: SMALL_PAGE,
            page_token,
        };
        let split = |page: ListProjectsResponse| (page.items, page.next_page_token);
        self.list(&methods::LIST_PROJECTS, request, split, READ, "listing projects").await
    }

    /// Lists the platforms of a project's region.
    pub(crate) async fn platforms(&self, project: &str) -> Result<Vec<Platform>> {
        let request =
            |page_token| ListPlatformsRequest { parent_id: project.to_owned(), page_size: PAGE, page_token };
        let split = |page: ListPlatformsResponse| (page.items, page.next_page_token);
        self.list(&methods::LIST_PLATFORMS, request, split, READ, "listing platforms").await
    }

    /// Asks for one platform by its name; none if the region does not have it.
    pub(crate) async fn platform(&self, project: &str, name: &str) -> Result<Option<Platform>> {
        let request = GetByNameRequest { parent_id: project.to_owned(), name: name.to_owned() };
        let asked = self.asked("checking the offer again");
        found(self.call(&methods::PLATFORM_BY_NAME, &request, READ, &asked).await)
    }

    /// Asks for the newest public image of a family; none if there is no such family.
    pub(crate) async fn image_latest(&self, family: &str) -> Result<Option<Image>> {
        let request =
            GetImageLatestByFamilyRequest { image_family: family.to_owned(), parent_id: String::new() };
        found(self.call(&methods::IMAGE_LATEST, &request, READ, &self.asked("looking at the image")).await)
    }

    /// Lists what can be started in the regions of a tenant. Needs a right on the tenant.
    pub(crate) async fn advice(&self, tenant: &str, doing: &'static str) -> Result<Vec<ResourceAdvice>> {
        let request = |page_token| ListResourceAdviceRequest {
            parent_id: tenant.to_owned(),
            page_size: PAGE,
            page_token,
        };
        let split = |page: ListResourceAdviceResponse| (page.items, page.next_page_token);
        self.list(&methods::LIST_ADVICE, request, split, READ, doing).await
    }

    /// Lists the spot prices of all regions. Needs no credentials.
    pub(crate) async fn spot_prices(&self, doing: &'static str) -> Result<Vec<SpotPrice>> {
        let request = |page_token| ListSpotPricesRequest { page_size: SMALL_PAGE, page_token };
        let split = |page: ListSpotPricesResponse| (page.items, page.next_page_token);
        let how = How { admitted: false, ..READ };
        self.list(&methods::LIST_SPOT_PRICES, request, split, how, doing).await
    }

    /// Lists the quotas of a tenant or project.
    pub(crate) async fn quotas(&self, parent: &str) -> Result<Vec<QuotaAllowance>> {
        let request = |page_token| ListQuotaAllowancesRequest {
            parent_id: parent.to_owned(),
            page_size: PAGE,
            page_token,
        };
        let split = |page: ListQuotaAllowancesResponse| (page.items, page.next_page_token);
        self.list(&methods::LIST_QUOTAS, request, split, READ, "listing quotas").await
    }

    /// Asks what a create would cost. Makes nothing.
    pub(crate) async fn estimate(&self, create: CreateInstanceRequest) -> Result<EstimateResponse> {
        let request = EstimateRequest {
            resource_spec: Some(ResourceSpec { compute_instance_spec: Some(create) }),
            offer_types: Vec::new(),
        };
        self.call(&methods::ESTIMATE, &request, READ, &self.asked("asking for the price")).await
    }

    /// Lists the subnets of a project.
    pub(crate) async fn subnets(&self, project: &str) -> Result<Vec<Subnet>> {
        let request =
            |page_token| ListSubnetsRequest { parent_id: project.to_owned(), page_size: PAGE, page_token };
        let split = |page: ListSubnetsResponse| (page.items, page.next_page_token);
        self.list(&methods::LIST_SUBNETS, request, split, READ, "listing subnets").await
    }

    /// Sends a create. `key` tells Nebius that the same bytes under it are the same create; it is sent again only where
    /// the first certainly had no effect.
    pub(crate) async fn create(
        &self,
        request: &CreateInstanceRequest,
        key: &str,
        attempt: &Attempt,
    ) -> Result<Operation> {
        let asked = Asked { attempt: Some(attempt), ..self.asked(CREATING) };
        let how = How { key: Some(key), create: true, ..READ };
        self.call(&methods::CREATE_INSTANCE, request, how, &asked).await
    }

    /// Asks for one machine; none if there is no such machine.
    pub(crate) async fn instance(&self, id: &str, doing: &'static str) -> Result<Option<Instance>> {
        let asked = self.asked(doing);
        let request = GetInstanceRequest { id: self.id(id, &asked)? };
        found(self.call(&methods::GET_INSTANCE, &request, READ, &asked).await)
    }

    /// Asks for one machine by its name in a project; none if there is no such machine.
    pub(crate) async fn instance_by_name(&self, project: &str, name: &str) -> Result<Option<Instance>> {
        let request = GetByNameRequest { parent_id: project.to_owned(), name: name.to_owned() };
        found(self.call(&methods::INSTANCE_BY_NAME, &request, READ, &self.asked(LOOKING)).await)
    }

    /// Lists the machines of a project.
    pub(crate) async fn instances(&self, project: &str) -> Result<Vec<Instance>> {
        let request =
            |page_token| ListInstancesRequest { parent_id: project.to_owned(), page_size: PAGE, page_token };
        let split = |page: ListInstancesResponse| (page.items, page.next_page_token);
        self.list(&methods::LIST_INSTANCES, request, split, READ, "listing machines").await
    }

    /// Deletes a machine with its managed disks; none if there is no such machine.
    pub(crate) async fn delete_instance(&self, id: &str) -> Result<Option<Operation>> {
        let asked = self.asked(DELETING);
        let request = DeleteInstanceRequest { id: self.id(id, &asked)? };
        let key = self.key(&asked)?;
        let how = How { key: Some(&key), ..READ };
        found(self.call(&methods::DELETE_INSTANCE, &request, how, &asked).await)
    }

    /// Lists the disks of a project.
    pub(crate) async fn disks(&self, project: &str) -> Result<Vec<Disk>> {
        let request =
            |page_token| ListDisksRequest { parent_id: project.to_owned(), page_size: PAGE, page_token };
        let split = |page: ListDisksResponse| (page.items, page.next_page_token);
        self.list(&methods::LIST_DISKS, request, split, READ, "listing disks").await
    }

    /// Asks for one disk; none if there is no such disk.
    pub(crate) async fn disk(&self, id: &str) -> Result<Option<Disk>> {
        let asked = self.asked("looking at a disk");
        let request = GetDiskRequest { id: self.id(id, &asked)? };
        found(self.call(&methods::GET_DISK, &request, READ, &asked).await)
    }

    /// Deletes a disk; none if there is no such disk.
    pub(crate) async fn delete_disk(&self, id: &str) -> Result<Option<Operation>> {
        let asked = self.asked("deleting a disk");
        let request = DeleteDiskRequest { id: self.id(id, &asked)? };
        let key = self.key(&asked)?;
        let how = How { key: Some(&key), ..READ };
        found(self.call(&methods::DELETE_DISK, &request, how, &asked).await)
    }

    /// Asks for an operation on a machine or disk; none if Nebius does not know it (any more).
    pub(crate) async fn operation(&self, id: &str, doing: &'static str) -> Result<Option<Operation>> {
        let asked = self.asked(doing);
        let request = GetOperationRequest { id: self.id(id, &asked)? };
        found(self.call(&methods::GET_OPERATION, &request, READ, &asked).await)
    }

    /// Lists the operations on a machine or disk.
    pub(crate) async fn operations(&self, resource: &str, doing: &'static str) -> Result<Vec<Operation>> {
        let resource_id = self.id(resource, &self.asked(doing))?;
        let request = |page_token| ListOperationsRequest {
            resource_id: resource_id.clone(),
            page_size: PAGE,
            page_token,
        };
        let split = |page: ListOperationsResponse| (page.operations, page.next_page_token);
        self.list(&methods::LIST_OPERATIONS, request, split, READ, doing).await
    }
}
