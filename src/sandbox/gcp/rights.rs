//! Permissions: which a call needs, and on what.
//!
//! Names are those of the methods' IAM sections at <https://cloud.google.com/compute/docs/reference/rest/v1>. A role that lacks one
//! is played by [`Gcp::deny`](super::Gcp::deny).

use super::discovery::Method;

/// What `roles/compute.instanceAdmin.v1` does not hold: firewall rules cannot be made, changed or removed with it.
pub const GCP_FIREWALL_PERMISSIONS: [&str; 5] = [
    "compute.firewalls.create",
    "compute.firewalls.delete",
    "compute.firewalls.get",
    "compute.firewalls.list",
    "compute.networks.updatePolicy",
];

/// Permissions that a call needs, each with the resource that it is needed on.
pub(super) fn needed(method: &Method<'_>, project: &str, name: &str) -> Vec<(&'static str, String)> {
    let zone = method.name("zone");
    let instance = || format!("projects/{project}/zones/{zone}/instances/{name}");
    let own = |permission, resource| vec![(permission, resource)];
    let wide = || format!("projects/{project}");
    let rule = || format!("projects/{project}/global/firewalls/{name}");
    match method.id {
        "instances.insert" => {
            let subnetwork =
                format!("projects/{project}/regions/{}/subnetworks/default", super::names::region_of(zone));
            vec![
                ("compute.instances.create", instance()),
                ("compute.disks.create", format!("projects/{project}/zones/{zone}/disks/{name}")),
                ("compute.subnetworks.use", subnetwork.clone()),
                ("compute.subnetworks.useExternalIp", subnetwork),
                ("compute.instances.setMetadata", instance()),
                ("compute.instances.setLabels", instance()),
                ("compute.instances.setTags", instance()),
            ]
        }
        "instances.get" => own("compute.instances.get", instance()),
        "instances.list" | "instances.aggregatedList" => own("compute.instances.list", wide()),
        "instances.delete" => own("compute.instances.delete", instance()),
        "instances.getGuestAttributes" => own("compute.instances.getGuestAttributes", instance()),
        "instances.getSerialPortOutput" => own("compute.instances.getSerialPortOutput", instance()),
        "instances.stop" => own("compute.instances.stop", instance()),
        "instances.setLabels" => own("compute.instances.setLabels", instance()),
        "instances.setMetadata" => own("compute.instances.setMetadata", instance()),
        "instances.setScheduling" => own("compute.instances.setScheduling", instance()),
        "instances.setDiskAutoDelete" => own("compute.instances.update", instance()),
        "zoneOperations.get" | "zoneOperations.wait" => own("compute.zoneOperations.get", wide()),
        "zoneOperations.list" => own("compute.zoneOperations.list", wide()),
        "globalOperations.get" | "globalOperations.wait" => own("compute.globalOperations.get", wide()),
        "machineTypes.get" => own("compute.machineTypes.get", wide()),
        "machineTypes.list" | "machineTypes.aggregatedList" => own("compute.machineTypes.list", wide()),
        "acceleratorTypes.get" => own("compute.acceleratorTypes.get", wide()),
        "acceleratorTypes.list" | "acceleratorTypes.aggregatedList" => {
            own("compute.acceleratorTypes.list", wide())
        }
        "zones.get" => own("compute.zones.get", wide()),
        "zones.list" => own("compute.zones.list", wide()),
        "regions.get" => own("compute.regions.get", wide()),
        "regions.list" => own("compute.regions.list", wide()),
        "firewalls.insert" => vec![
            ("compute.firewalls.create", rule()),
            ("compute.networks.updatePolicy", format!("projects/{project}/global/networks/default")),
        ],
        "firewalls.get" => own("compute.firewalls.get", rule()),
        "firewalls.list" => own("compute.firewalls.list", wide()),
        "firewalls.delete" => vec![
            ("compute.firewalls.delete", rule()),
            ("compute.networks.updatePolicy", format!("projects/{project}/global/networks/default")),
        ],
        "firewalls.patch" => vec![
            ("compute.firewalls.update", rule()),
            ("compute.networks.updatePolicy", format!("projects/{project}/global/networks/default")),
        ],
        "projects.get" => own("compute.projects.get", wide()),
        "disks.get" => own("compute.disks.get", format!("projects/{project}/zones/{zone}/disks/{name}")),
        "disks.list" | "disks.aggregatedList" => own("compute.disks.list", wide()),
        "disks.delete" => {
            own("compute.disks.delete", format!("projects/{project}/zones/{zone}/disks/{name}"))
        }
        "subnetworks.list" => own("compute.subnetworks.list", wide()),
        "subnetworks.get" => own("compute.subnetworks.get", wide()),
        "networks.get" => own(
            "compute.networks.get",
            format!("projects/{project}/global/networks/{}", method.name("network")),
        ),
        // Images of public projects are for everybody.
        _ => Vec::new(),
    }
}
