//! The request for a machine.

use serde_json::{Value, json};

use super::Nebius;
use super::calls::CREATING;
use super::cloud_init::{MOST_BYTES, shown, user_data};
use super::errors::Attempt;
use super::host_key::HostKey;
use super::image::family;
use super::marks::labels;
use super::platforms::{card, read_type};
use super::recheck::home;
use super::wire::{
    AttachMode, AttachedDiskSpec, CreateInstanceRequest, DiskSpec, DiskType, FollowsSpotPriceSpec,
    InstanceSpec, IpAddress, ManagedDisk, NetworkInterfaceSpec, PreemptibleSpec, PreemptionPolicy,
    PublicIpAddress, RecoveryPolicy, ReservationPolicy, Reservations, ResourceMetadata, ResourcesSpec,
    SourceImageFamily,
};
use super::{MIN_DISK_GB, MOST_DISK_GB};
use crate::cloud::{Error, ErrorKind, Reached, Result};
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;

/// What is asked for.
pub(super) struct Order {
    pub(super) project: String,
    pub(super) region: String,
    pub(super) disk_gb: u32,
    platform: String,
    preset: String,
    has_gpu: bool,
    spot: bool,
    instance_type: String,
}

/// What the request has beside the order.
#[derive(Clone, Copy)]
pub(super) struct With<'a> {
    pub(super) name: &'a str,
    pub(super) subnet: &'a str,
    pub(super) spec: &'a MachineSpec,
    pub(super) mark: &'a Mark,
    /// None in a preview.
    pub(super) host_key: Option<&'a HostKey>,
}

impl Order {
    pub(super) fn new(cloud: &Nebius, offer: &Offer, spec: &MachineSpec) -> Result<Self> {
        let refuse = |what: String| cloud.api.asked(CREATING).error(ErrorKind::Rejected, what, Reached::No);
        let by_user = |what: String| -> Box<Error> {
            let mut error = refuse(what);
            error.user_input = true;
            error
        };
        let key = OfferKey::decode(&offer.id).map_err(|error| refuse(error.to_string()))?;
        let home = home(&key).ok_or_else(|| refuse("the offer names no project".to_owned()))?;
        let Some((platform, preset)) = read_type(&key.instance_type) else {
            return Err(refuse("the offer names no platform and preset".to_owned()));
        };
        if spec.image.is_some() {
            return Err(refuse("Nebius boots its own images".to_owned()));
        }
        if key.disk_gb > MOST_DISK_GB {
            return Err(by_user(format!("Nebius takes disks of up to {MOST_DISK_GB} GB")));
        }
        if spec.public_key.trim().is_empty() {
            return Err(by_user("the public key is empty: nobody could log in".to_owned()));
        }
        if shown(&spec.public_key).len() > MOST_BYTES / 2 {
            return Err(by_user("the public key is too long".to_owned()));
        }
        Ok(Order {
            project: home.id,
            region: home.region,
            disk_gb: key.disk_gb.max(MIN_DISK_GB),
            platform: platform.to_owned(),
            preset: preset.to_owned(),
            has_gpu: key.gpu_count > 0,
            spot: key.spot,
            instance_type: key.instance_type,
        })
    }

    /// Returns what errors are explained with.
    pub(super) fn attempt(&self) -> Attempt {
        Attempt {
            region: self.region.clone(),
            project: self.project.clone(),
            instance_type: self.instance_type.clone(),
            gpu: card(&self.platform, None).map(|card| card.name),
            spot: self.spot,
        }
    }

    /// Returns the request. Machine and disk are one request: the disk goes with the machine, also when the create fails.
    pub(super) fn request(&self, with: With<'_>) -> CreateInstanceRequest {
        let With { name, subnet, spec, mark, host_key } = with;
        let labels = labels(mark, host_key);
        let disk = DiskSpec {
            size_gibibytes: Some(i64::from(self.disk_gb)),
            r#type: DiskType::NetworkSsd as i32,
            source_image_family: Some(SourceImageFamily {
                image_family: family(self.has_gpu).to_owned(),
                ..SourceImageFamily::default()
            }),
            ..DiskSpec::default()
        };
        let boot = AttachedDiskSpec {
            attach_mode: AttachMode::ReadWrite as i32,
            managed_disk: Some(ManagedDisk {
                name: format!("{name}-boot"),
                labels: labels.clone(),
                spec: Some(disk),
            }),
            ..AttachedDiskSpec::default()
        };
        // Both addresses are asked for by being there, though empty. The public one is released with the machine.
        let card = NetworkInterfaceSpec {
            subnet_id: subnet.to_owned(),
            name: "eth0".to_owned(),
            ip_address: Some(IpAddress::default()),
            public_ip_address: Some(PublicIpAddress::default()),
            ..NetworkInterfaceSpec::default()
        };
        // Preemptible machines know no reservations; on demand those of the user are never used up.
        let forbid = ReservationPolicy { policy: Reservations::Forbid as i32 };
        let machine = InstanceSpec {
            resources: Some(ResourcesSpec {
                platform: self.platform.clone(),
                preset: Some(self.preset.clone()),
            }),
            network_interfaces: vec![card],
            boot_disk: Some(boot),
            cloud_init_user_data: match host_key {
                Some(host_key) => user_data(&spec.public_key, host_key),
                None => shown(&spec.public_key),
            },
            hostname: spec.name.as_str().to_owned(),
            // A machine that was taken away is not to come back at another price.
            recovery_policy: if self.spot { RecoveryPolicy::Fail } else { RecoveryPolicy::Recover } as i32,
            preemptible: self
                .spot
                .then_some(PreemptibleSpec { on_preemption: PreemptionPolicy::Stop as i32 }),
            follows_spot_price: self.spot.then(FollowsSpotPriceSpec::default),
            reservation_policy: (!self.spot).then_some(forbid),
            ..InstanceSpec::default()
        };
        CreateInstanceRequest {
            metadata: Some(ResourceMetadata {
                parent_id: self.project.clone(),
                name: name.to_owned(),
                labels,
                ..ResourceMetadata::default()
            }),
            spec: Some(machine),
        }
    }
}

/// Returns a request in JSON, for showing: with the fields that are sent, as the API's own tools show them.
pub(super) fn as_json(request: &CreateInstanceRequest) -> Value {
    let metadata = request.metadata.clone().unwrap_or_default();
    let spec = request.spec.clone().unwrap_or_default();
    let resources = spec.resources.clone().unwrap_or_default();
    let boot = spec.boot_disk.clone().unwrap_or_default();
    let managed = boot.managed_disk.clone().unwrap_or_default();
    let disk = managed.spec.clone().unwrap_or_default();
    let cards: Vec<Value> = spec
        .network_interfaces
        .iter()
        .map(|card| {
            json!({
                "name": card.name,
                "subnet_id": card.subnet_id,
                "ip_address": {},
                "public_ip_address": {},
            })
        })
        .collect();
    let mut machine = json!({
        "resources": {"platform": resources.platform, "preset": resources.preset},
        "boot_disk": {
            "attach_mode": "READ_WRITE",
            "managed_disk": {
                "name": managed.name,
                "labels": managed.labels,
                "spec": {
                    "type": "NETWORK_SSD",
                    "size_gibibytes": disk.size_gibibytes,
                    "source_image_family": disk.source_image_family
                        .map(|family| json!({"image_family": family.image_family})),
                },
            },
        },
        "network_interfaces": cards,
        "cloud_init_user_data": spec.cloud_init_user_data,
        "hostname": spec.hostname,
        "recovery_policy": if spec.preemptible.is_some() { "FAIL" } else { "RECOVER" },
    });
    if spec.preemptible.is_some() {
        machine["preemptible"] = json!({"on_preemption": "STOP"});
    }
    if spec.follows_spot_price.is_some() {
        machine["follows_spot_price"] = json!({});
    }
    if spec.reservation_policy.is_some() {
        machine["reservation_policy"] = json!({"policy": "FORBID"});
    }
    json!({
        "metadata": {
            "parent_id": metadata.parent_id,
            "name": metadata.name,
            "labels": metadata.labels,
        },
        "spec": machine,
    })
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
