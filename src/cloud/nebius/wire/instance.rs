//! Machines.

use std::collections::BTreeMap;

use super::common::ResourceMetadata;
use super::compute::DiskSpec;

/// `nebius.compute.v1.CreateInstanceRequest`: asks for a machine; its estimate is asked for with the same message.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CreateInstanceRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<InstanceSpec>,
}

/// `nebius.compute.v1.GetInstanceRequest`: asks for one machine.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetInstanceRequest {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

/// `nebius.compute.v1.ListInstancesRequest`: asks for the machines of a project.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListInstancesRequest {
    /// The project.
    #[prost(string, tag = "1")]
    pub(crate) parent_id: String,
    #[prost(int64, tag = "2")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "3")]
    pub(crate) page_token: String,
}

/// `nebius.compute.v1.ListInstancesResponse`: one page of machines.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListInstancesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<Instance>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
}

/// `nebius.compute.v1.DeleteInstanceRequest`: deletes a machine with its managed disks.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeleteInstanceRequest {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

/// `nebius.compute.v1.Instance`: a machine.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Instance {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<InstanceSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<InstanceStatus>,
}

/// `nebius.compute.v1.InstanceSpec`: what a machine should be.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct InstanceSpec {
    /// None: the machine gets no rights.
    #[prost(string, tag = "1")]
    pub(crate) service_account_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) resources: Option<ResourcesSpec>,
    /// 1 to 8.
    #[prost(message, repeated, tag = "4")]
    pub(crate) network_interfaces: Vec<NetworkInterfaceSpec>,
    #[prost(message, optional, tag = "5")]
    pub(crate) boot_disk: Option<AttachedDiskSpec>,
    /// A secret, at most 32 KiB.
    #[prost(string, tag = "8")]
    pub(crate) cloud_init_user_data: String,
    #[prost(bool, tag = "13")]
    pub(crate) stopped: bool,
    #[prost(enumeration = "RecoveryPolicy", tag = "15")]
    pub(crate) recovery_policy: i32,
    /// Present: may be taken away, and then a pricing model must be present too.
    #[prost(message, optional, tag = "19")]
    pub(crate) preemptible: Option<PreemptibleSpec>,
    #[prost(string, tag = "20")]
    pub(crate) hostname: String,
    #[prost(message, optional, tag = "23")]
    pub(crate) reservation_policy: Option<ReservationPolicy>,
    /// Pricing model, the usual one.
    #[prost(message, optional, tag = "25")]
    pub(crate) on_demand: Option<OnDemandSpec>,
    /// Pricing model: the spot price of the moment, never above on demand.
    #[prost(message, optional, tag = "26")]
    pub(crate) follows_spot_price: Option<FollowsSpotPriceSpec>,
    /// Pricing model: the spot price up to a cap.
    #[prost(message, optional, tag = "27")]
    pub(crate) spot_pricing_policy: Option<SpotPricingPolicySpec>,
}

/// Shows no secret.
impl std::fmt::Debug for InstanceSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InstanceSpec").finish_non_exhaustive()
    }
}

/// `nebius.compute.v1.InstanceRecoveryPolicy`: what becomes of a machine that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum RecoveryPolicy {
    Recover = 0,
    Fail = 1,
    Always = 2,
}

/// `nebius.compute.v1.ResourcesSpec`: the type of a machine.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourcesSpec {
    /// `gpu-h100-sxm`.
    #[prost(string, tag = "1")]
    pub(crate) platform: String,
    /// `1gpu-16vcpu-200gb`.
    #[prost(string, optional, tag = "2")]
    pub(crate) preset: Option<String>,
}

/// `nebius.compute.v1.NetworkInterfaceSpec`: a network card.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NetworkInterfaceSpec {
    #[prost(string, tag = "1")]
    pub(crate) subnet_id: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    /// Must be there, also empty.
    #[prost(message, optional, tag = "3")]
    pub(crate) ip_address: Option<IpAddress>,
    /// There, also empty: an address is given; absent: none.
    #[prost(message, optional, tag = "4")]
    pub(crate) public_ip_address: Option<PublicIpAddress>,
    /// None: the default group of the network.
    #[prost(message, repeated, tag = "7")]
    pub(crate) security_groups: Vec<SecurityGroup>,
}

/// `nebius.compute.v1.IPAddress`: an address inside.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct IpAddress {
    #[prost(string, tag = "1")]
    pub(crate) allocation_id: String,
}

/// `nebius.compute.v1.PublicIPAddress`: an address outside.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PublicIpAddress {
    #[prost(string, optional, tag = "1")]
    pub(crate) allocation_id: Option<String>,
    /// Kept while the machine is stopped.
    #[prost(bool, tag = "3")]
    pub(crate) r#static: bool,
}

/// `nebius.compute.v1.SecurityGroup`: a security group by its id.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SecurityGroup {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

/// `nebius.compute.v1.AttachedDiskSpec`: a disk of a machine.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AttachedDiskSpec {
    #[prost(enumeration = "AttachMode", tag = "1")]
    pub(crate) attach_mode: i32,
    /// Stays when the machine goes.
    #[prost(message, optional, tag = "2")]
    pub(crate) existing_disk: Option<ExistingDisk>,
    #[prost(string, tag = "3")]
    pub(crate) device_id: String,
    /// Is made and goes with the machine.
    #[prost(message, optional, tag = "4")]
    pub(crate) managed_disk: Option<ManagedDisk>,
}

/// `nebius.compute.v1.AttachedDiskSpec.AttachMode`: what a machine may do with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum AttachMode {
    Unspecified = 0,
    ReadOnly = 1,
    ReadWrite = 2,
}

/// `nebius.compute.v1.ExistingDisk`: a disk by its id.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExistingDisk {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

/// `nebius.compute.v1.ManagedDisk`: a disk that is made with its machine.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ManagedDisk {
    /// Unique in the project.
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) labels: BTreeMap<String, String>,
    #[prost(message, optional, tag = "4")]
    pub(crate) spec: Option<DiskSpec>,
}

/// `nebius.compute.v1.PreemptibleSpec`: that a machine may be taken away.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PreemptibleSpec {
    #[prost(enumeration = "PreemptionPolicy", tag = "1")]
    pub(crate) on_preemption: i32,
}

/// `nebius.compute.v1.PreemptibleSpec.PreemptionPolicy`: what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum PreemptionPolicy {
    Unspecified = 0,
    Stop = 1,
}

/// `nebius.compute.v1.ReservationPolicy`: whether reserved capacity may be used.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReservationPolicy {
    #[prost(enumeration = "Reservations", tag = "1")]
    pub(crate) policy: i32,
}

/// `nebius.compute.v1.ReservationPolicy.Policy`: whether reserved capacity may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Reservations {
    Auto = 0,
    Forbid = 1,
    Strict = 2,
}

/// `nebius.compute.v1.OnDemandSpec`: the usual price.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OnDemandSpec {}

/// `nebius.compute.v1.FollowsSpotPriceSpec`: the spot price of the moment.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FollowsSpotPriceSpec {}

/// `nebius.compute.v1.SpotPricingPolicySpec`: a cap by its id.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SpotPricingPolicySpec {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

/// `nebius.compute.v1.InstanceStatus`: what a machine is doing.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InstanceStatus {
    #[prost(enumeration = "InstanceState", tag = "1")]
    pub(crate) state: i32,
    #[prost(message, repeated, tag = "2")]
    pub(crate) network_interfaces: Vec<NetworkInterfaceStatus>,
    /// Something is still being done to it: stopped is then no end.
    #[prost(bool, tag = "5")]
    pub(crate) reconciling: bool,
    #[prost(string, tag = "7")]
    pub(crate) maintenance_event_id: String,
    #[prost(string, tag = "12")]
    pub(crate) reservation_id: String,
    #[prost(message, repeated, tag = "13")]
    pub(crate) disk_attachments: Vec<DiskAttachmentStatus>,
}

/// `nebius.compute.v1.InstanceStatus.InstanceState`: what a machine is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum InstanceState {
    Unspecified = 0,
    Creating = 1,
    Updating = 2,
    Starting = 3,
    Running = 4,
    Stopping = 5,
    Stopped = 6,
    Deleting = 7,
    Error = 8,
}

/// `nebius.compute.v1.NetworkInterfaceStatus`: a network card as it is.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NetworkInterfaceStatus {
    #[prost(int32, tag = "1")]
    pub(crate) index: i32,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) ip_address: Option<IpAddressStatus>,
    #[prost(message, optional, tag = "4")]
    pub(crate) public_ip_address: Option<PublicIpAddressStatus>,
    #[prost(string, tag = "9")]
    pub(crate) fqdn: String,
}

/// `nebius.compute.v1.IPAddressStatus`: an address inside.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct IpAddressStatus {
    /// With `/32` behind it.
    #[prost(string, tag = "1")]
    pub(crate) address: String,
    #[prost(string, tag = "2")]
    pub(crate) allocation_id: String,
}

/// `nebius.compute.v1.PublicIPAddressStatus`: an address outside.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PublicIpAddressStatus {
    /// With `/32` behind it.
    #[prost(string, tag = "1")]
    pub(crate) address: String,
    #[prost(string, tag = "2")]
    pub(crate) allocation_id: String,
    #[prost(bool, tag = "3")]
    pub(crate) r#static: bool,
}

/// `nebius.compute.v1.DiskAttachmentStatus`: a disk that hangs on a machine.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DiskAttachmentStatus {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    /// It goes with the machine.
    #[prost(bool, tag = "3")]
    pub(crate) is_managed: bool,
}
