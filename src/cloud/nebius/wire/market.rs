//! Networks, quotas, stock and prices.

use super::common::ResourceMetadata;
use super::instance::CreateInstanceRequest;

/// `nebius.vpc.v1.ListSubnetsRequest`: asks for the subnets of a project.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListSubnetsRequest {
    /// The project.
    #[prost(string, tag = "1")]
    pub(crate) parent_id: String,
    #[prost(int64, tag = "2")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "3")]
    pub(crate) page_token: String,
}

/// `nebius.vpc.v1.ListSubnetsResponse`: one page of subnets.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListSubnetsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<Subnet>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
}

/// `nebius.vpc.v1.Subnet`: a subnet.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Subnet {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<SubnetSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<SubnetStatus>,
}

/// `nebius.vpc.v1.SubnetSpec`: where it lies.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SubnetSpec {
    #[prost(string, tag = "1")]
    pub(crate) network_id: String,
}

/// `nebius.vpc.v1.SubnetStatus`: what it is doing.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SubnetStatus {
    #[prost(enumeration = "SubnetState", tag = "1")]
    pub(crate) state: i32,
    #[prost(message, repeated, tag = "8")]
    pub(crate) ipv4_private_pools: Vec<SubnetStatusPool>,
    /// None: machines in it get no address outside.
    #[prost(message, repeated, tag = "9")]
    pub(crate) ipv4_public_pools: Vec<SubnetStatusPool>,
}

/// `nebius.vpc.v1.SubnetStatus.State`: what a subnet is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum SubnetState {
    Unspecified = 0,
    Creating = 1,
    Ready = 2,
    Deleting = 3,
}

/// `nebius.vpc.v1.SubnetStatusPool`: addresses.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SubnetStatusPool {
    #[prost(string, tag = "1")]
    pub(crate) pool_id: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) cidrs: Vec<String>,
}

/// `nebius.quotas.v1.ListQuotaAllowancesRequest`: asks for the quotas of a tenant or project.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListQuotaAllowancesRequest {
    #[prost(string, tag = "1")]
    pub(crate) parent_id: String,
    /// 1 to 1000.
    #[prost(int64, tag = "2")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "3")]
    pub(crate) page_token: String,
}

/// `nebius.quotas.v1.ListQuotaAllowancesResponse`: one page of quotas.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListQuotaAllowancesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<QuotaAllowance>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
}

/// `nebius.quotas.v1.QuotaAllowance`: a quota; its name is in the metadata.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct QuotaAllowance {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<QuotaAllowanceSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<QuotaAllowanceStatus>,
}

/// `nebius.quotas.v1.QuotaAllowanceSpec`: how much, where.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct QuotaAllowanceSpec {
    /// None: that of the parent.
    #[prost(uint64, optional, tag = "1")]
    pub(crate) limit: Option<u64>,
    #[prost(string, tag = "2")]
    pub(crate) region: String,
}

/// `nebius.quotas.v1.QuotaAllowanceStatus`: how much of it is used.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct QuotaAllowanceStatus {
    #[prost(enumeration = "QuotaState", tag = "1")]
    pub(crate) state: i32,
    #[prost(uint64, tag = "2")]
    pub(crate) usage: u64,
    #[prost(string, tag = "3")]
    pub(crate) service: String,
    #[prost(string, tag = "8")]
    pub(crate) unit: String,
    #[prost(enumeration = "UsageState", tag = "10")]
    pub(crate) usage_state: i32,
}

/// `nebius.quotas.v1.QuotaAllowanceStatus.State`: whether a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum QuotaState {
    Unspecified = 0,
    Provisioning = 1,
    Active = 2,
    Frozen = 3,
    Deleted = 10,
}

/// `nebius.quotas.v1.QuotaAllowanceStatus.UsageState`: whether the usage is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum UsageState {
    Unspecified = 0,
    Used = 1,
    NotUsed = 2,
    Unknown = 3,
    NotApplicable = 4,
}

/// `nebius.capacity.v1.ListResourceAdviceRequest`: asks what can be started.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListResourceAdviceRequest {
    /// The tenant.
    #[prost(string, tag = "1")]
    pub(crate) parent_id: String,
    #[prost(int64, tag = "2")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "3")]
    pub(crate) page_token: String,
}

/// `nebius.capacity.v1.ListResourceAdviceResponse`: one page of advice.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListResourceAdviceResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<ResourceAdvice>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
}

/// `nebius.capacity.v1.ResourceAdvice`: how many machines of one size can be started.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceAdvice {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<ResourceAdviceSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<ResourceAdviceStatus>,
}

/// `nebius.capacity.v1.ResourceAdviceSpec`: what of, and where.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceAdviceSpec {
    #[prost(string, tag = "1")]
    pub(crate) region: String,
    /// Several fabrics of one region may overlap.
    #[prost(string, tag = "2")]
    pub(crate) fabric: String,
    #[prost(message, optional, tag = "10")]
    pub(crate) compute_instance: Option<ComputeInstanceDetails>,
}

/// `nebius.capacity.v1.ComputeInstanceDetails`: what of.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ComputeInstanceDetails {
    #[prost(string, tag = "1")]
    pub(crate) platform: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) preset: Option<AdvicePreset>,
    #[prost(int32, tag = "3")]
    pub(crate) gpu_memory_gigabytes: i32,
}

/// `nebius.capacity.v1.ComputeInstanceDetails.Preset`: a size.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AdvicePreset {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) resources: Option<AdviceResources>,
}

/// `nebius.capacity.v1.ComputeInstanceDetails.Preset.Resources`: what it has.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AdviceResources {
    #[prost(int32, tag = "1")]
    pub(crate) vcpu_count: i32,
    #[prost(int32, tag = "2")]
    pub(crate) memory_gibibytes: i32,
    #[prost(int32, tag = "3")]
    pub(crate) gpu_count: i32,
}

/// `nebius.capacity.v1.ResourceAdviceStatus`: how many, by the way they are paid.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceAdviceStatus {
    #[prost(message, optional, tag = "1")]
    pub(crate) reserved: Option<Availability>,
    #[prost(message, optional, tag = "2")]
    pub(crate) on_demand: Option<Availability>,
    #[prost(message, optional, tag = "3")]
    pub(crate) preemptible: Option<Availability>,
}

/// `nebius.capacity.v1.ResourceAdviceStatus.Availability`: how many.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Availability {
    #[prost(enumeration = "DataState", tag = "1")]
    pub(crate) data_state: i32,
    /// Machines of that size, quotas counted.
    #[prost(uint32, tag = "2")]
    pub(crate) available: u32,
    /// Machines of that size that the quota allows.
    #[prost(uint32, tag = "4")]
    pub(crate) limit: u32,
    #[prost(enumeration = "AvailabilityLevel", tag = "5")]
    pub(crate) availability_level: i32,
    #[prost(message, optional, tag = "10")]
    pub(crate) effective_at: Option<prost_types::Timestamp>,
}

/// `nebius.capacity.v1.ResourceAdviceStatus.Availability.DataState`: how good the figures are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum DataState {
    Unspecified = 0,
    Fresh = 1,
    Stale = 2,
    Unknown = 10,
}

/// `nebius.capacity.v1.ResourceAdviceStatus.Availability.AvailabilityLevel`: how much there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum AvailabilityLevel {
    Unspecified = 0,
    High = 1,
    Medium = 2,
    Low = 3,
    LimitReached = 4,
    Unknown = 5,
}

/// `nebius.billing.v1alpha1.ListSpotPricesRequest`: asks for the spot prices of all regions; needs no token.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListSpotPricesRequest {
    /// 100 unless it says more.
    #[prost(int64, tag = "2")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "3")]
    pub(crate) page_token: String,
}

/// `nebius.billing.v1alpha1.ListSpotPricesResponse`: one page of spot prices.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListSpotPricesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<SpotPrice>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) snapshot_time: Option<prost_types::Timestamp>,
}

/// `nebius.billing.v1alpha1.SpotPrice`: the spot price of one platform in one region.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SpotPrice {
    #[prost(string, tag = "1")]
    pub(crate) sku_id: String,
    #[prost(string, tag = "2")]
    pub(crate) product_title: String,
    #[prost(string, tag = "3")]
    pub(crate) region: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) compute_instance: Option<SpotPriceComputeInstance>,
    #[prost(message, optional, tag = "5")]
    pub(crate) price: Option<SpotPriceValue>,
    #[prost(message, optional, tag = "6")]
    pub(crate) effective_time: Option<prost_types::Timestamp>,
}

/// `nebius.billing.v1alpha1.SpotPriceComputeInstance`: what it is the price of.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SpotPriceComputeInstance {
    #[prost(string, tag = "1")]
    pub(crate) platform: String,
}

/// `nebius.billing.v1alpha1.SpotPriceValue`: the price.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SpotPriceValue {
    /// Decimal.
    #[prost(string, tag = "1")]
    pub(crate) value: String,
    /// `usd`.
    #[prost(string, tag = "2")]
    pub(crate) currency: String,
    /// `GPU hour`.
    #[prost(string, tag = "3")]
    pub(crate) unit_title: String,
}

/// `nebius.billing.v1alpha1.EstimateRequest`: asks what something would cost; makes nothing.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EstimateRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource_spec: Option<ResourceSpec>,
    #[prost(enumeration = "OfferType", repeated, tag = "10")]
    pub(crate) offer_types: Vec<i32>,
}

/// `nebius.billing.v1alpha1.OfferType`: whose price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum OfferType {
    Unspecified = 0,
    ContractPrice = 1,
}

/// `nebius.billing.v1alpha1.ResourceSpec`: what.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceSpec {
    #[prost(message, optional, tag = "100")]
    pub(crate) compute_instance_spec: Option<CreateInstanceRequest>,
}

/// `nebius.billing.v1alpha1.EstimateResponse`: what it would cost.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EstimateResponse {
    #[prost(message, optional, tag = "10")]
    pub(crate) hourly_cost: Option<ResourceGroupCost>,
    #[prost(message, optional, tag = "20")]
    pub(crate) monthly_cost: Option<ResourceGroupCost>,
}

/// `nebius.billing.v1alpha1.ResourceGroupCost`: what a group costs.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceGroupCost {
    #[prost(message, optional, tag = "10")]
    pub(crate) general: Option<GeneralTotalCost>,
}

/// `nebius.billing.v1alpha1.GeneralTotalCost`: what it costs in sum.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GeneralTotalCost {
    #[prost(message, optional, tag = "1")]
    pub(crate) total: Option<CostBreakdown>,
}

/// `nebius.billing.v1alpha1.CostBreakdown`: a sum in US dollars.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CostBreakdown {
    /// Decimal.
    #[prost(string, tag = "2")]
    pub(crate) cost: String,
    #[prost(string, tag = "3")]
    pub(crate) cost_rounded: String,
}
