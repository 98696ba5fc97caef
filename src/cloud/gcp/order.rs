//! What a create asks for: the body of `instances.insert`.

use jiff::Timestamp;
use ring::digest;
use serde_json::{Value, json};

use super::client::CREATING;
use super::errors::Attempt;
use super::marks::{self, Known};
use super::names::is_zone;
use super::shapes::{Shape, find};
use super::states::USER;
use super::{Gcp, MOST_DISK_GB};
use crate::cloud::{Error, ErrorKind, Reached, Result};
use crate::model::mark::{Claim, Mark};
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;

/// The bounds of an end that Google keeps itself, in seconds: 30 s to 120 days
/// (cloud.google.com/compute/docs/instances/limit-vm-runtime).
const SHORTEST_RUN: i64 = 30;
const LONGEST_RUN: i64 = 120 * 86_400;

/// On machines with GPUs nothing upgrades itself: a new driver beside the loaded one makes `nvidia-smi` fail
/// (github.com/GoogleCloudPlatform/ops-agent/issues/2426), and the lock of apt is held for minutes after the first boot.
const USER_DATA: &str = "#cloud-config\npackage_update: false\npackage_upgrade: false\nbootcmd:\n  - [systemctl, mask, --now, \
                         apt-daily.timer, apt-daily-upgrade.timer, unattended-upgrades.service]\n";

/// What is asked for.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) key: OfferKey,
    pub(super) zone: String,
    pub(super) attempt: Attempt,
    network: String,
    shape: &'static Shape,
}

/// The parts of a body that can change from one try to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    /// The image, as a link.
    pub(super) image: &'a str,
    /// Disk in GB.
    pub(super) disk_gb: u32,
    /// Whether the machine may publish its host keys.
    pub(super) guest_attributes: bool,
    /// The time from which the end is counted.
    pub(super) now: Timestamp,
}

impl Order {
    pub(super) fn new(cloud: &Gcp, offer: &Offer, spec: &MachineSpec, mark: &Mark) -> Result<Self> {
        let broken = |what: String| {
            Box::new(Error::new(ErrorKind::Rejected, &cloud.setup.account, CREATING, what, Reached::No))
        };
        let of_user = |what: String| {
            let mut error = broken(what);
            error.user_input = true;
            error
        };
        let key = OfferKey::decode(&offer.id).map_err(|error| broken(error.to_string()))?;
        let zone = key.zone.clone().filter(|zone| is_zone(zone));
        let zone = zone.ok_or_else(|| broken("the offer names no zone".to_owned()))?;
        let shape = find(&key.instance_type, key.gpu_count)
            .ok_or_else(|| broken(format!("gpuprov does not know the machine type {}", key.instance_type)))?;
        if spec.image.is_some() {
            return Err(of_user("Google's machines boot images of ours".to_owned()));
        }
        if spec.public_key.split_whitespace().count() < 2 {
            return Err(of_user("the public key is empty: nobody could log in".to_owned()));
        }
        if key.disk_gb > MOST_DISK_GB {
            return Err(of_user(format!("Google takes disks of up to {MOST_DISK_GB} GB")));
        }
        if seconds_left(mark, Timestamp::now()).is_some_and(|seconds| seconds > LONGEST_RUN) {
            return Err(of_user(
                "Google ends machines by itself after at most 120 days: --ttl 120d".to_owned(),
            ));
        }
        if let Some(wide) =
            spec.ports.iter().filter_map(|port| port.cidr.as_ref()).find(|cidr| cidr.contains(':'))
        {
            return Err(of_user(format!("{wide}: machines at Google get an IPv4 address only")));
        }
        if !key.spot && !shape.on_demand {
            return Err(broken(format!("Google sells {} as spot only", key.instance_type)));
        }
        let attempt = Attempt {
            instance_type: key.instance_type.clone(),
            zone: zone.clone(),
            spot: key.spot,
            gpu: shape.cards.as_ref().map(|cards| cards.gpu.name.clone()),
        };
        Ok(Order { key, zone, attempt, network: network_link(&cloud.settings.network), shape })
    }

    /// Whether the machine has GPUs.
    pub(super) fn has_gpu(&self) -> bool {
        self.key.gpu_count > 0
    }

    /// Returns what is known of the machine to be.
    pub(super) fn known(&self, project: &str, mark: &Mark) -> Known {
        Known {
            project: project.to_owned(),
            zone: self.zone.clone(),
            name: mark.cloud_name(),
            operation: None,
            mark: Some(mark.clone()),
            instance_type: Some(self.key.instance_type.clone()),
            gpu: self.attempt.gpu.clone(),
            spot: Some(self.key.spot),
        }
    }

    /// Returns the body.
    pub(super) fn body(&self, parts: &Parts<'_>, spec: &MachineSpec, mark: &Mark) -> Value {
        let zone = &self.zone;
        let in_zone = |kind: &str, name: &str| format!("zones/{zone}/{kind}/{name}");
        let instance_type = &self.key.instance_type;
        let mut body = json!({
            "name": mark.cloud_name(),
            "description": "created by gpuprov",
            "machineType": in_zone("machineTypes", instance_type),
            "labels": marks::labels(mark),
            "disks": [{
                "boot": true,
                "autoDelete": true,
                "type": "PERSISTENT",
                "mode": "READ_WRITE",
                "initializeParams": {
                    "sourceImage": parts.image,
                    // A string on the wire.
                    "diskSizeGb": parts.disk_gb.to_string(),
                    "diskType": in_zone("diskTypes", self.shape.boot_disk),
                    "labels": marks::labels(mark),
                },
            }],
            "networkInterfaces": [{
                "network": self.network,
                "stackType": "IPV4_ONLY",
                "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "External NAT", "networkTier": "PREMIUM"}],
            }],
            "scheduling": self.scheduling(mark, parts.now),
            "metadata": {"items": self.metadata(parts, spec)},
            // Secure boot would keep the GPU's kernel modules out.
            "shieldedInstanceConfig": {
                "enableSecureBoot": false, "enableVtpm": true, "enableIntegrityMonitoring": true,
            },
        });
        if let Some(cards) = self.shape.cards.as_ref().filter(|cards| cards.attached) {
            // All others have their GPUs in them, and naming these is refused.
            body["guestAccelerators"] = json!([{
                "acceleratorType": in_zone("acceleratorTypes", &cards.gpu.raw),
                "acceleratorCount": cards.count,
            }]);
        }
        if !spec.ports.is_empty() {
            body["tags"] = json!({"items": [marks::tag(mark.claim)]});
        }
        body
    }

    fn scheduling(&self, mark: &Mark, now: Timestamp) -> Value {
        let mut scheduling = match self.key.spot {
            true => json!({
                "provisioningModel": "SPOT",
                // Else it would stay, stopped, and its disk would go on costing
                // (github.com/MozillaSecurity/FuzzManager/issues/571).
                "instanceTerminationAction": "DELETE",
                "automaticRestart": false,
                "onHostMaintenance": "TERMINATE",
            }),
            false => json!({
                "provisioningModel": "STANDARD",
                "automaticRestart": true,
                // GPUs do not move to another host.
                "onHostMaintenance": if self.has_gpu() { "TERMINATE" } else { "MIGRATE" },
            }),
        };
        if let Some(seconds) = seconds_left(mark, now) {
            scheduling["maxRunDuration"] = json!({"seconds": seconds.max(SHORTEST_RUN).to_string()});
            scheduling["instanceTerminationAction"] = json!("DELETE");
        }
        scheduling
    }

    fn metadata(&self, parts: &Parts<'_>, spec: &MachineSpec) -> Vec<Value> {
        let item = |key: &str, value: &str| json!({"key": key, "value": value});
        // cloud-init passes over lines that are not plain ASCII, and a comment of a certain form is an end of the key.
        let mut words = spec.public_key.split_whitespace();
        let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut items = vec![
            item("ssh-keys", &format!("{USER}:{kind} {key} gpuprov")),
            item("block-project-ssh-keys", "TRUE"),
            // A project with OS Login would ignore the key (github.com/skyplane-project/skyplane/pull/708).
            item("enable-oslogin", "FALSE"),
        ];
        if parts.guest_attributes {
            items.push(item("enable-guest-attributes", "TRUE"));
        }
        if self.has_gpu() {
            items.push(item("user-data", USER_DATA));
        }
        items
    }
}

/// Returns a network as requests name it; a path of another project's (`projects/P/global/networks/N`) as it is.
pub(super) fn network_link(network: &str) -> String {
    if network.contains('/') { network.to_owned() } else { format!("global/networks/{network}") }
}

fn seconds_left(mark: &Mark, now: Timestamp) -> Option<i64> {
    let left = mark.expires?.duration_since(now);
    // Whole seconds, rounded: the create takes a moment of its own.
    Some(left.as_secs() + i64::from(left.subsec_millis() >= 500))
}

/// Returns the id under which a request for this attempt may be repeated: a UUID made from the claim, so that it is on disk
/// with the claim before the first request.
pub(super) fn request_id(claim: Claim, what: &str) -> String {
    uuid(digest::digest(&digest::SHA256, format!("gpuprov {claim} {what}").as_bytes()).as_ref())
}

/// Returns a request id that was never used. A repeated one would only get the answer of the first request again.
pub(super) fn new_request_id() -> String {
    match Claim::random() {
        Ok(claim) => request_id(claim, "once"),
        // Without random numbers, the time.
        Err(_) => uuid(digest::digest(&digest::SHA256, Timestamp::now().to_string().as_bytes()).as_ref()),
    }
}

fn uuid(bytes: &[u8]) -> String {
    let mut bytes: Vec<u8> = bytes.iter().copied().take(16).collect();
    // RFC 9562: version 8, variant 10.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
