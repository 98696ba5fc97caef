//! Disks, platforms and images.

use super::common::ResourceMetadata;

/// `nebius.compute.v1.DiskSpec`: what a disk should be.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DiskSpec {
    #[prost(int64, optional, tag = "1")]
    pub(crate) size_bytes: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) size_kibibytes: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) size_mebibytes: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub(crate) size_gibibytes: Option<i64>,
    #[prost(int64, tag = "5")]
    pub(crate) block_size_bytes: i64,
    #[prost(enumeration = "DiskType", tag = "6")]
    pub(crate) r#type: i32,
    #[prost(string, optional, tag = "8")]
    pub(crate) source_image_id: Option<String>,
    #[prost(message, optional, tag = "10")]
    pub(crate) source_image_family: Option<SourceImageFamily>,
    #[prost(bool, tag = "12")]
    pub(crate) forbid_deletion: bool,
}

/// `nebius.compute.v1.DiskSpec.DiskType`: kinds of disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum DiskType {
    Unspecified = 0,
    NetworkSsd = 1,
    NetworkHdd = 2,
    NetworkSsdNonReplicated = 3,
    NetworkSsdIoM3 = 4,
}

/// `nebius.compute.v1.SourceImageFamily`: the newest image of a family.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SourceImageFamily {
    #[prost(string, tag = "1")]
    pub(crate) image_family: String,
    /// None: the public images of the region.
    #[prost(string, tag = "2")]
    pub(crate) parent_id: String,
}

/// `nebius.compute.v1.ListDisksRequest`: asks for the disks of a project.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListDisksRequest {
    /// The project.
    #[prost(string, tag = "1")]
    pub(crate) parent_id: String,
    #[prost(int64, tag = "2")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "3")]
    pub(crate) page_token: String,
}

/// `nebius.compute.v1.ListDisksResponse`: one page of disks.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListDisksResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<Disk>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
}

/// `nebius.compute.v1.GetDiskRequest`: asks for one disk.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetDiskRequest {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

/// `nebius.compute.v1.DeleteDiskRequest`: deletes a disk.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeleteDiskRequest {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

/// `nebius.compute.v1.Disk`: a disk.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Disk {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<DiskSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<DiskStatus>,
}

/// `nebius.compute.v1.DiskStatus`: what a disk is doing.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DiskStatus {
    #[prost(enumeration = "DiskState", tag = "1")]
    pub(crate) state: i32,
    #[prost(string, tag = "2")]
    pub(crate) state_description: String,
    /// The machine that writes to it.
    #[prost(string, tag = "3")]
    pub(crate) read_write_attachment: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) read_only_attachments: Vec<String>,
    #[prost(int64, tag = "6")]
    pub(crate) size_bytes: i64,
    #[prost(bool, tag = "7")]
    pub(crate) reconciling: bool,
    /// The machine that it goes with.
    #[prost(string, tag = "12")]
    pub(crate) managed_by: String,
}

/// `nebius.compute.v1.DiskStatus.State`: what a disk is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum DiskState {
    Unspecified = 0,
    Creating = 1,
    Ready = 2,
    Updating = 3,
    Deleting = 4,
    Error = 5,
    Broken = 6,
}

/// `nebius.compute.v1.ListPlatformsRequest`: asks for the platforms of a project's region.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListPlatformsRequest {
    #[prost(int64, tag = "1")]
    pub(crate) page_size: i64,
    #[prost(string, tag = "2")]
    pub(crate) page_token: String,
    /// The project.
    #[prost(string, tag = "3")]
    pub(crate) parent_id: String,
}

/// `nebius.compute.v1.ListPlatformsResponse`: one page of platforms.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListPlatformsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<Platform>,
    #[prost(string, tag = "2")]
    pub(crate) next_page_token: String,
}

/// `nebius.compute.v1.Platform`: a kind of host; its name is in the metadata.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Platform {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<PlatformSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<PlatformStatus>,
}

/// `nebius.compute.v1.PlatformSpec`: what can be had of it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PlatformSpec {
    #[prost(message, repeated, tag = "1")]
    pub(crate) presets: Vec<Preset>,
    /// The name of its quota.
    #[prost(string, tag = "3")]
    pub(crate) gpu_count_quota_type: String,
    #[prost(string, tag = "4")]
    pub(crate) human_readable_name: String,
    #[prost(string, tag = "10")]
    pub(crate) short_human_readable_name: String,
    /// Of one GPU; replaced by the next.
    #[prost(int32, tag = "11")]
    pub(crate) gpu_memory_gibibytes: i32,
    /// Of one GPU.
    #[prost(int32, tag = "12")]
    pub(crate) gpu_memory_gigabytes: i32,
}

/// `nebius.compute.v1.PlatformStatus`: what is allowed on it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PlatformStatus {
    #[prost(bool, tag = "3")]
    pub(crate) allowed_for_preemptibles: bool,
}

/// `nebius.compute.v1.Preset`: a size.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Preset {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) resources: Option<PresetResources>,
    #[prost(bool, tag = "3")]
    pub(crate) allow_gpu_clustering: bool,
}

/// `nebius.compute.v1.PresetResources`: what a size has, whole machine.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PresetResources {
    #[prost(int32, tag = "1")]
    pub(crate) vcpu_count: i32,
    #[prost(int32, tag = "3")]
    pub(crate) memory_gibibytes: i32,
    #[prost(int32, tag = "4")]
    pub(crate) gpu_count: i32,
    #[prost(int32, tag = "6")]
    pub(crate) gpu_memory_gibibytes: i32,
}

/// `nebius.compute.v1.GetImageLatestByFamilyRequest`: asks for the newest image of a family.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetImageLatestByFamilyRequest {
    #[prost(string, tag = "1")]
    pub(crate) image_family: String,
    /// None: the public images.
    #[prost(string, tag = "2")]
    pub(crate) parent_id: String,
}

/// `nebius.compute.v1.Image`: an image.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Image {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ResourceMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<ImageSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<ImageStatus>,
}

/// `nebius.compute.v1.ImageSpec`: what it is.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ImageSpec {
    #[prost(string, tag = "2")]
    pub(crate) image_family: String,
    #[prost(string, tag = "3")]
    pub(crate) version: String,
    #[prost(enumeration = "CpuArchitecture", tag = "6")]
    pub(crate) cpu_architecture: i32,
    #[prost(string, repeated, tag = "8")]
    pub(crate) recommended_platforms: Vec<String>,
}

/// `nebius.compute.v1.ImageSpec.CPUArchitecture`: what it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum CpuArchitecture {
    Unspecified = 0,
    Amd64 = 1,
    Arm64 = 2,
}

/// `nebius.compute.v1.ImageStatus`: whether it can be used.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ImageStatus {
    #[prost(enumeration = "ImageState", tag = "1")]
    pub(crate) state: i32,
    #[prost(int64, tag = "4")]
    pub(crate) min_disk_size_bytes: i64,
}

/// `nebius.compute.v1.ImageStatus.State`: whether an image can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ImageState {
    Unspecified = 0,
    Creating = 1,
    Ready = 2,
    Updating = 3,
    Deleting = 4,
    Error = 5,
}
