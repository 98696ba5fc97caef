//! Looks at what is there before anything is made: the project, regions, zones, machine types, GPUs, images, networks, advice.

use serde_json::{Value, json};

use super::names::region_of;
use super::operation::LINKS;
use super::shapes::{Accelerator, Image, Shape};
use super::trouble::GcpFault;
use super::{GcpCloud, fail, not_found, quota};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

/// Since when the unchanging resources are there.
const OLD: &str = "1969-12-31T16:00:00.000-08:00";

/// A number for something that has only a name.
fn number(name: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    let bytes = digest.as_ref().iter().take(4).fold(0_u64, |sum, byte| sum * 256 + u64::from(*byte));
    (1000 + bytes).to_string()
}

impl GcpCloud {
    /// `GET projects/{project}`.
    pub(super) fn show_project(&self, call: &Call, account: &str) -> Answer {
        let state = lock(&self.state);
        let Some(owner) = state.account(account) else { return not_found("", "") };
        let items: Vec<Value> =
            owner.metadata.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
        let mut metadata = json!({"kind": "compute#metadata", "fingerprint": Self::still("project")});
        if !items.is_empty() {
            metadata["items"] = json!(items);
        }
        let mut shown = json!({
            "kind": "compute#project", "id": owner.number, "name": owner.project, "creationTimestamp": OLD,
            "commonInstanceMetadata": metadata, "quotas": quota::shown(&state, account, ""),
            "defaultServiceAccount": format!("{}-compute@developer.gserviceaccount.com", owner.number),
            "xpnProjectStatus": "UNSPECIFIED_XPN_PROJECT_STATUS", "defaultNetworkTier": "PREMIUM",
            "vmDnsSetting": "ZONAL_ONLY", "cloudArmorTier": "CA_STANDARD",
            "selfLink": format!("{LINKS}/{}", owner.project),
        });
        if call.faults.contains(&FaultKind::Gcp(GcpFault::QuotasHidden)) {
            shown["quotas"] = json!([]);
        }
        Answer::json(200, shown)
    }

    /// `GET .../regions/{region}`.
    pub(super) fn region(&self, call: &Call, account: &str, region: &str) -> Answer {
        let project = self.project_of(account);
        if !self.shapes.regions().contains(&region) {
            return not_found(&format!("regions/{region}"), &project);
        }
        Answer::json(200, self.show_region(call, account, &project, region))
    }

    fn show_region(&self, call: &Call, account: &str, project: &str, region: &str) -> Value {
        let zones = self.shapes.zones.iter().filter(|zone| region_of(zone) == region);
        let zones: Vec<String> = zones.map(|zone| format!("{LINKS}/{project}/zones/{zone}")).collect();
        let mut shown = json!({
            "kind": "compute#region", "id": number(region), "creationTimestamp": OLD, "name": region,
            "description": region, "status": "UP", "zones": zones,
            "quotas": quota::shown(&lock(&self.state), account, region), "supportsPzs": false,
            "selfLink": format!("{LINKS}/{project}/regions/{region}"),
        });
        if call.faults.contains(&FaultKind::Gcp(GcpFault::QuotasHidden)) {
            shown["quotas"] = json!([]);
            shown["quotaStatusWarning"] = json!({"code": "QUOTA_INFO_UNAVAILABLE",
                "message": "Quota information is temporarily unavailable."});
        }
        shown
    }

    /// `GET .../regions`.
    pub(super) fn regions(&self, call: &Call, account: &str) -> Answer {
        let project = self.project_of(account);
        let regions = self.shapes.regions();
        let shown = regions.iter().map(|region| self.show_region(call, account, &project, region)).collect();
        self.list(call, "region", shown, "regions", account)
    }

    fn show_zone(project: &str, zone: &str) -> Value {
        json!({"kind": "compute#zone", "id": number(zone), "creationTimestamp": OLD, "name": zone, "description": zone,
               "status": "UP", "region": format!("{LINKS}/{project}/regions/{}", region_of(zone)),
               "availableCpuPlatforms": ["Intel Cascade Lake", "Intel Sapphire Rapids", "AMD Milan"], "supportsPzs": false,
               "selfLink": format!("{LINKS}/{project}/zones/{zone}")})
    }

    /// `GET .../zones/{zone}`.
    pub(super) fn zone(&self, account: &str, zone: &str) -> Answer {
        Answer::json(200, Self::show_zone(&self.project_of(account), zone))
    }

    /// `GET .../zones`.
    pub(super) fn zones(&self, call: &Call, account: &str) -> Answer {
        let project = self.project_of(account);
        let shown = self.shapes.zones.iter().map(|zone| Self::show_zone(&project, zone)).collect();
        self.list(call, "zone", shown, "zones", account)
    }

    fn show_type(project: &str, zone: &str, shape: &Shape) -> Value {
        let gib = shape.mib / 1024;
        let mut shown = json!({
            "kind": "compute#machineType", "id": number(&shape.name), "creationTimestamp": OLD, "name": shape.name,
            "description": format!("{} vCPUs, {gib} GB RAM", shape.vcpus), "guestCpus": shape.vcpus,
            "memoryMb": shape.mib, "imageSpaceGb": 0, "maximumPersistentDisks": 128,
            "maximumPersistentDisksSizeGb": "263168", "zone": zone, "isSharedCpu": false, "architecture": "X86_64",
            "selfLink": format!("{LINKS}/{project}/zones/{zone}/machineTypes/{}", shape.name),
        });
        if let Some(bundle) = &shape.bundle {
            shown["accelerators"] =
                json!([{"guestAcceleratorType": bundle.accelerator, "guestAcceleratorCount": bundle.count}]);
        }
        if shape.ssds > 0 {
            shown["bundledLocalSsds"] = json!({"partitionCount": shape.ssds, "defaultInterface": "NVME"});
        }
        shown
    }

    /// `GET .../machineTypes/{machineType}`.
    pub(super) fn machine_type(&self, call: &Call, account: &str, zone: &str, name: &str) -> Answer {
        let project = self.project_of(account);
        match self.shapes.there(name, zone).filter(|_| !call.faults.contains(&FaultKind::StaleOffer)) {
            Some(shape) => Answer::json(200, Self::show_type(&project, zone, shape)),
            None => not_found(&format!("zones/{zone}/machineTypes/{name}"), &project),
        }
    }

    /// `GET .../machineTypes`, of one zone or of all.
    pub(super) fn machine_types(&self, call: &Call, account: &str, zone: Option<&str>) -> Answer {
        let project = self.project_of(account);
        let here = |zone: &str| -> Vec<Value> {
            let there =
                self.shapes.all.values().filter(|shape| shape.zones.iter().any(|known| known == zone));
            there.map(|shape| Self::show_type(&project, zone, shape)).collect()
        };
        match zone {
            Some(zone) => {
                self.list(call, "machineType", here(zone), &format!("zones/{zone}/machineTypes"), account)
            }
            None => {
                let zones = self.shapes.zones.iter();
                let all = zones.flat_map(|zone| here(zone).into_iter().map(|shown| (zone.clone(), shown)));
                self.list_everywhere(call, "machineType", all.collect(), account)
            }
        }
    }

    fn show_accelerator(project: &str, zone: &str, one: &Accelerator) -> Value {
        json!({"kind": "compute#acceleratorType", "id": number(&one.name), "creationTimestamp": OLD, "name": one.name,
               "description": one.description, "maximumCardsPerInstance": one.most,
               "zone": format!("{LINKS}/{project}/zones/{zone}"),
               "selfLink": format!("{LINKS}/{project}/zones/{zone}/acceleratorTypes/{}", one.name)})
    }

    /// `GET .../acceleratorTypes/{acceleratorType}`.
    pub(super) fn accelerator_type(&self, call: &Call, account: &str, zone: &str, name: &str) -> Answer {
        let project = self.project_of(account);
        let found = self.shapes.accelerator(name).filter(|one| one.zones.iter().any(|known| known == zone));
        match found.filter(|_| !call.faults.contains(&FaultKind::StaleOffer)) {
            Some(one) => Answer::json(200, Self::show_accelerator(&project, zone, one)),
            None => not_found(&format!("zones/{zone}/acceleratorTypes/{name}"), &project),
        }
    }

    /// `GET .../acceleratorTypes`, of one zone or of all.
    pub(super) fn accelerator_types(&self, call: &Call, account: &str, zone: Option<&str>) -> Answer {
        let project = self.project_of(account);
        let here = |zone: &str| -> Vec<Value> {
            let there =
                self.shapes.accelerators.iter().filter(|one| one.zones.iter().any(|known| known == zone));
            there.map(|one| Self::show_accelerator(&project, zone, one)).collect()
        };
        match zone {
            Some(zone) => self.list(
                call,
                "acceleratorType",
                here(zone),
                &format!("zones/{zone}/acceleratorTypes"),
                account,
            ),
            None => {
                let zones = self.shapes.zones.iter();
                let all = zones.flat_map(|zone| here(zone).into_iter().map(|shown| (zone.clone(), shown)));
                self.list_everywhere(call, "acceleratorType", all.collect(), account)
            }
        }
    }

    fn show_image(image: &Image) -> Value {
        let base = format!("{LINKS}/{}/global", image.project);
        let mut shown = json!({
            "kind": "compute#image", "id": number(&image.name), "creationTimestamp": image.created, "name": image.name,
            "description": image.family, "sourceType": "RAW", "status": "READY", "family": image.family,
            "archiveSizeBytes": "14852123456", "diskSizeGb": image.gb.to_string(), "architecture": "X86_64",
            "guestOsFeatures": [{"type": "VIRTIO_SCSI_MULTIQUEUE"}, {"type": "UEFI_COMPATIBLE"}, {"type": "GVNIC"}],
            "storageLocations": ["us"], "selfLink": format!("{base}/images/{}", image.name),
        });
        if let Some(state) = &image.deprecated {
            shown["deprecated"] = json!({"state": state});
        }
        shown
    }

    /// `GET projects/{project}/global/images/{image}`.
    pub(super) fn image(&self, project: &str, name: &str) -> Answer {
        match self.shapes.image(project, name) {
            Some(image) => Answer::json(200, Self::show_image(image)),
            None => not_found(&format!("global/images/{name}"), project),
        }
    }

    /// `GET projects/{project}/global/images/family/{family}`.
    pub(super) fn image_family(&self, project: &str, family: &str) -> Answer {
        match self.shapes.family(project, family).filter(|_| !self.is_retired(family)) {
            Some(image) => Answer::json(200, Self::show_image(image)),
            None => not_found(&format!("global/images/family/{family}"), project),
        }
    }

    /// `GET projects/{project}/global/images`.
    pub(super) fn images(&self, call: &Call, account: &str, project: &str) -> Answer {
        let mine = self.shapes.images.iter().filter(|image| image.project == project);
        self.list(call, "image", mine.map(Self::show_image).collect(), "global/images", account)
    }

    /// `GET .../networks/{network}`.
    pub(super) fn network(&self, account: &str, name: &str) -> Answer {
        let state = lock(&self.state);
        let project = state.project(account);
        let Some(network) = state.account(account).and_then(|owner| owner.network(name)) else {
            return not_found(&format!("global/networks/{name}"), &project);
        };
        let subnetworks = self.subnetworks_of(network);
        let links = subnetworks
            .iter()
            .map(|(region, name)| format!("{LINKS}/{project}/regions/{region}/subnetworks/{name}"));
        let shown = json!({
            "kind": "compute#network", "id": network.id, "creationTimestamp": OLD, "name": network.name,
            "autoCreateSubnetworks": network.auto, "subnetworks": links.collect::<Vec<_>>(),
            "routingConfig": {"routingMode": "REGIONAL"}, "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
            "selfLink": format!("{LINKS}/{project}/global/networks/{name}"),
        });
        Answer::json(200, shown)
    }

    /// Subnetworks of a network: region and name.
    pub(super) fn subnetworks_of(&self, network: &super::account::Network) -> Vec<(String, String)> {
        if !network.auto {
            return network.subnetworks.clone();
        }
        self.shapes.regions().iter().map(|region| ((*region).to_owned(), network.name.clone())).collect()
    }

    /// `GET .../subnetworks`, or one of them.
    pub(super) fn subnetworks(&self, call: &Call, account: &str, region: &str, only: Option<&str>) -> Answer {
        let project = self.project_of(account);
        if !self.shapes.regions().contains(&region) {
            return not_found(&format!("regions/{region}"), &project);
        }
        let networks =
            lock(&self.state).account(account).map(|owner| owner.networks.clone()).unwrap_or_default();
        let mut shown = Vec::new();
        for network in &networks {
            for (_, name) in self.subnetworks_of(network).iter().filter(|(place, _)| place == region) {
                let base = format!("{LINKS}/{project}");
                shown.push(json!({
                    "kind": "compute#subnetwork", "id": number(&format!("{region}{name}")), "creationTimestamp": OLD,
                    "name": name, "network": format!("{base}/global/networks/{}", network.name),
                    "ipCidrRange": "10.128.0.0/20", "gatewayAddress": "10.128.0.1", "purpose": "PRIVATE",
                    "stackType": "IPV4_ONLY", "privateIpGoogleAccess": false, "fingerprint": Self::still(name),
                    "region": format!("{base}/regions/{region}"),
                    "selfLink": format!("{base}/regions/{region}/subnetworks/{name}"),
                }));
            }
        }
        match only {
            None => self.list(call, "subnetwork", shown, &format!("regions/{region}/subnetworks"), account),
            Some(name) => match shown.into_iter().find(|one| one["name"] == name) {
                Some(one) => Answer::json(200, one),
                None => not_found(&format!("regions/{region}/subnetworks/{name}"), &project),
            },
        }
    }

    /// `POST .../advice/capacity` and `capacityHistory`.
    pub(super) fn advice(&self, account: &str, id: &str, body: &Value) -> Answer {
        let project = self.project_of(account);
        if self.guesses().advice_refused {
            return fail(
                403,
                "forbidden",
                &format!("Required 'compute.advice.calendarMode' permission for 'projects/{project}'"),
            );
        }
        if id == "advice.capacity" {
            let wanted = body["instanceFlexibilityPolicy"]["instanceSelections"].as_object();
            let kind =
                wanted.and_then(|wanted| wanted.values().next()).map(|one| one["machineTypes"][0].clone());
            let kind = kind.unwrap_or_default();
            let zones = body["distributionPolicy"]["zones"].as_array().cloned().unwrap_or_default();
            let Some(zone) = zones.first().and_then(|zone| zone["zone"].as_str()).map(super::names::last)
            else {
                return fail(
                    400,
                    "required",
                    "Required field 'resource.distributionPolicy.zones' not specified",
                );
            };
            let shard = json!({"zone": format!("{LINKS}/{project}/zones/{zone}"), "machineType": kind, "instanceCount": 1,
                               "provisioningModel": "SPOT"});
            return Answer::json(
                200,
                json!({"recommendations": [{"scores": {"obtainability": 0.8, "estimatedUptime": "14400s"},
                                                                "shards": [shard]}]}),
            );
        }
        let kind = body["instanceProperties"]["machineType"].as_str().unwrap_or_default();
        let place = body["locationPolicy"]["location"].as_str().unwrap_or_default();
        let zone = super::names::last(place);
        if self.shapes.there(kind, zone).is_none() {
            return not_found(&format!("zones/{zone}/machineTypes/{kind}"), &project);
        }
        let price = self.prices.of(kind, zone, None, true);
        let units = price.trunc();
        let nanos = format!("{:.0}", (price - units) * 1e9).parse::<u32>().unwrap_or(0);
        let price = json!({"currencyCode": "USD", "units": format!("{units:.0}"), "nanos": nanos});
        let now = self.date(self.shared.clock.now());
        let record = json!({"interval": {"startTime": OLD, "endTime": now}, "listPrice": price});
        Answer::json(200, json!({"machineType": kind, "location": place, "priceHistory": [record]}))
    }
}
