//! Whether an insert is good: names, machine type, GPUs, disks, network, scheduling, metadata, policies. Nothing is changed here.
//!
//! Schema errors have been found before. Rules: the pages of `instances.insert`, of GPUs
//! (<https://cloud.google.com/compute/docs/gpus/create-vm-with-gpus>), of Spot VMs
//! (<https://cloud.google.com/compute/docs/instances/create-use-spot>) and of labels.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::account::{Account, GcpPolicy};
use super::names::{after, is_name, last, region_of};
use super::new_disk::NewDisk;
use super::parts::{Verdict, bad, labels, metadata, required, scheduling};
use super::shapes::Shape;
use super::state::State;
use super::{GcpCloud, fail, not_found};

/// An insert that has been found good.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) gpus: Option<(String, u32)>,
    pub(super) disks: Vec<NewDisk>,
    pub(super) network: String,
    pub(super) subnetwork: String,
    pub(super) external: Option<String>,
    pub(super) scheduling: Map<String, Value>,
    pub(super) spot: bool,
    pub(super) lasts: Option<Duration>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) metadata: Vec<(String, String)>,
    pub(super) tags: Vec<String>,
}

fn yes(word: &str) -> bool {
    matches!(word.to_ascii_lowercase().as_str(), "true" | "yes" | "y" | "1")
}

impl GcpCloud {
    /// Finds an insert good, or says why not.
    pub(super) fn judge(&self, state: &State, owner: &Account, zone: &str, body: &Value) -> Verdict<Plan> {
        let name = body["name"].as_str().unwrap_or_default().to_owned();
        let Some(kind) = body["machineType"].as_str().filter(|text| !text.is_empty()) else {
            return required("resource.machineType");
        };
        let nothing = |field: &str| body[field].as_array().is_none_or(Vec::is_empty);
        if nothing("disks") {
            return required("resource.disks");
        }
        if nothing("networkInterfaces") {
            return required("resource.networkInterfaces");
        }
        let shape = self.shape(owner, zone, kind)?;
        let gpus = self.gpus(owner, zone, &shape, &body["guestAccelerators"])?;
        let labels = labels(&body["labels"], "resource.labels")?;
        let metadata = metadata(&body["metadata"])?;
        let tags: Vec<String> = body["tags"]["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if let Some(tag) = tags.iter().find(|tag| !is_name(tag)) {
            return bad(&format!(
                "Invalid value for field 'resource.tags.items[0]': '{tag}'. Must be a match of regex '(?:[a-z](?:[-a-z0-9]{{0,61}}[a-z0-9])?)'"
            ));
        }
        let (scheduling, spot, lasts) = scheduling(&body["scheduling"], gpus.is_some())?;
        let (network, subnetwork, external) = self.nic(owner, zone, &body["networkInterfaces"])?;
        let disks = self.new_disks(state, owner, zone, &name, &shape, &body["disks"])?;
        self.policies(owner, zone, &name, body, external.is_some(), &metadata)?;
        if !nothing("serviceAccounts") && owner.denied.contains("iam.serviceAccounts.actAs") {
            let account = body["serviceAccounts"][0]["email"].as_str().unwrap_or("default");
            let text = format!(
                "The user does not have access to service account '{account}'.  User: '{}'.  Ask a project owner to grant you the iam.serviceAccountUser role on the service account",
                owner.email
            );
            return Err(Box::new(fail(400, "SERVICE_ACCOUNT_ACCESS_DENIED", &text)));
        }
        Ok(Plan {
            name,
            shape,
            gpus,
            disks,
            network,
            subnetwork,
            external,
            scheduling,
            spot,
            lasts,
            labels,
            metadata,
            tags,
        })
    }

    fn shape(&self, owner: &Account, zone: &str, link: &str) -> Verdict<Shape> {
        let name = last(link);
        let place = after(link, "zones");
        if place != Some(zone) || after(link, "machineTypes") != Some(name) {
            return bad(&format!(
                "Invalid value for field 'resource.machineType': '{link}'. The URL is malformed."
            ));
        }
        match self.shapes.there(name, zone) {
            Some(shape) => Ok(shape.clone()),
            None if self.guesses().unknown_type_is_400 => {
                let text = format!(
                    "Invalid value for field 'resource.machineType': '{link}'. Machine type with name '{name}' does not exist in zone '{zone}'."
                );
                Err(Box::new(fail(400, "invalid", &text)))
            }
            None => Err(Box::new(not_found(&format!("zones/{zone}/machineTypes/{name}"), &owner.project))),
        }
    }

    fn gpus(
        &self,
        owner: &Account,
        zone: &str,
        shape: &Shape,
        sent: &Value,
    ) -> Verdict<Option<(String, u32)>> {
        let sent = sent.as_array().cloned().unwrap_or_default();
        if let Some(bundle) = &shape.bundle {
            if !sent.is_empty() {
                return bad(&format!(
                    "Invalid value for field 'resource.guestAccelerators': machine type {} has its accelerators built in.",
                    shape.name
                ));
            }
            return Ok(Some((bundle.accelerator.clone(), bundle.count)));
        }
        let [one] = sent.as_slice() else {
            return if sent.is_empty() { Ok(None) } else { bad("at most one kind of accelerator") };
        };
        let link = one["acceleratorType"].as_str().unwrap_or_default();
        let count = one["acceleratorCount"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        let name = last(link);
        if after(link, "zones").is_some_and(|place| place != zone)
            || after(link, "acceleratorTypes") != Some(name)
        {
            return bad(&format!(
                "Invalid value for field 'resource.guestAccelerators[0].acceleratorType': '{link}'. The URL is malformed."
            ));
        }
        let known =
            self.shapes.accelerator(name).filter(|known| known.zones.iter().any(|place| place == zone));
        if known.is_none() {
            return Err(Box::new(not_found(
                &format!("zones/{zone}/acceleratorTypes/{name}"),
                &owner.project,
            )));
        }
        if !self.shapes.attaches(&shape.name, name, count) {
            return bad(&format!(
                "[{}, {name}:{count}] features are not compatible for creating instance.",
                shape.name
            ));
        }
        Ok(Some((name.to_owned(), count)))
    }

    /// Network, subnetwork, and the tier of the external address.
    fn nic(&self, owner: &Account, zone: &str, sent: &Value) -> Verdict<(String, String, Option<String>)> {
        let nics = sent.as_array().cloned().unwrap_or_default();
        let [nic] = nics.as_slice() else { return bad("the sandbox plays one network interface") };
        let sub = nic["subnetwork"].as_str().filter(|text| !text.is_empty());
        let named = nic["network"].as_str().filter(|text| !text.is_empty());
        let of_sub = sub.map(last).and_then(|sub| {
            owner.networks.iter().find(|network| {
                self.subnetworks_of(network)
                    .iter()
                    .any(|(region, name)| region == region_of(zone) && name == sub)
            })
        });
        if let Some(sub) = sub.filter(|_| of_sub.is_none()) {
            return Err(Box::new(not_found(
                &format!("regions/{}/subnetworks/{}", region_of(zone), last(sub)),
                &owner.project,
            )));
        }
        let name = named.map_or_else(|| of_sub.map_or("default", |network| network.name.as_str()), last);
        let Some(network) = owner.network(name) else {
            return Err(Box::new(not_found(&format!("global/networks/{name}"), &owner.project)));
        };
        if sub.is_none() && !network.auto {
            return bad(
                "Invalid value for field 'resource.networkInterfaces[0]': Network interface must specify a subnet if the network resource is in custom subnet mode.",
            );
        }
        let access = nic["accessConfigs"].as_array().cloned().unwrap_or_default();
        let external = match access.as_slice() {
            [] => None,
            [one] => {
                if one["type"].as_str().is_some_and(|kind| kind != "ONE_TO_ONE_NAT")
                    || one["natIP"].is_string()
                {
                    return bad("the sandbox plays ephemeral addresses of type ONE_TO_ONE_NAT only");
                }
                Some(one["networkTier"].as_str().unwrap_or("PREMIUM").to_owned())
            }
            _ => return bad("At most one access config currently supported."),
        };
        Ok((network.name.clone(), sub.map_or(network.name.as_str(), last).to_owned(), external))
    }

    fn policies(
        &self,
        owner: &Account,
        zone: &str,
        name: &str,
        body: &Value,
        external: bool,
        metadata: &[(String, String)],
    ) -> Verdict<()> {
        let value =
            |key: &str| metadata.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
        let shielded = &body["shieldedInstanceConfig"];
        let instance = format!("projects/{}/zones/{zone}/instances/{name}", owner.project);
        for policy in &owner.policies {
            let more = match policy {
                GcpPolicy::NoExternalAddress if external => {
                    format!(" Add instance {instance} to the constraint to use external IP with it.")
                }
                GcpPolicy::OsLogin if value("enable-oslogin").is_some_and(|word| !yes(word)) => {
                    " Instance metadata value enable-oslogin must not be FALSE.".to_owned()
                }
                GcpPolicy::NoGuestAttributes if value("enable-guest-attributes").is_some_and(yes) => {
                    " Instance metadata value enable-guest-attributes must not be TRUE.".to_owned()
                }
                GcpPolicy::ShieldedVm
                    if shielded["enableVtpm"] == false
                        || shielded["enableIntegrityMonitoring"] == false
                        || !shielded.is_object() =>
                {
                    " vTPM and integrity monitoring must be enabled in the shielded_instance_config field."
                        .to_owned()
                }
                _ => continue,
            };
            let text = format!(
                "Constraint constraints/{} violated for project {}.{more}",
                policy.constraint(),
                owner.number
            );
            return Err(Box::new(fail(412, "conditionNotMet", &text)));
        }
        Ok(())
    }
}
