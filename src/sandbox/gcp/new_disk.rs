//! The disks of an insert: whether they are good, and what is to be made.

use std::collections::BTreeMap;

use serde_json::Value;

use super::account::Account;
use super::names::{after, is_name, last};
use super::parts::{Verdict, bad, labels, required};
use super::shapes::Shape;
use super::state::State;
use super::{GcpCloud, fail, not_found};

/// A disk that is to be made.
#[derive(Debug)]
pub(super) struct NewDisk {
    pub(super) name: String,
    pub(super) gb: u64,
    pub(super) kind: String,
    pub(super) image: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) boot: bool,
    pub(super) auto_delete: bool,
    pub(super) device: String,
}

impl GcpCloud {
    /// The disks of an insert.
    pub(super) fn new_disks(
        &self,
        state: &State,
        owner: &Account,
        zone: &str,
        instance: &str,
        shape: &Shape,
        sent: &Value,
    ) -> Verdict<Vec<NewDisk>> {
        let sent = sent.as_array().cloned().unwrap_or_default();
        let mut disks: Vec<NewDisk> = Vec::new();
        for (index, disk) in sent.iter().enumerate() {
            let params = &disk["initializeParams"];
            let field = format!("resource.disks[{index}].initializeParams");
            if disk["type"] == "SCRATCH" {
                continue;
            }
            if !params.is_object() {
                return bad(&format!(
                    "Invalid value for field 'resource.disks[{index}]': the sandbox plays new disks only"
                ));
            }
            let boot = disk["boot"] == true;
            if boot != (index == 0) {
                return bad(&format!(
                    "Invalid value for field 'resource.disks[{index}].boot': the first disk must be the boot disk, and only that one"
                ));
            }
            let image = match params["sourceImage"].as_str() {
                Some(link) => Some(self.source(link)?),
                None if boot => return required(&format!("{field}.sourceImage")),
                None => None,
            };
            let least = image.as_ref().map_or(10, |(_, gb)| *gb).max(10);
            let asked = params["diskSizeGb"]
                .as_str()
                .map(str::to_owned)
                .or_else(|| params["diskSizeGb"].as_u64().map(|gb| gb.to_string()));
            let gb = asked.and_then(|text| text.parse().ok()).unwrap_or(least);
            if gb < least {
                return bad(&format!(
                    "Invalid value for field '{field}.diskSizeGb': '{gb}'. Requested disk size cannot be smaller than the image size ({least} GB)"
                ));
            }
            if gb > 65_536 {
                return bad(&format!(
                    "Invalid value for field '{field}.diskSizeGb': '{gb}'. Disk size must be at most 65536 GB"
                ));
            }
            let link = params["diskType"].as_str().unwrap_or("pd-standard");
            let kind = last(link);
            let spelt = !link.contains('/')
                || (after(link, "zones") == Some(zone) && after(link, "diskTypes") == Some(kind));
            if !spelt || (link == kind && params["diskType"].is_string()) {
                return bad(&format!(
                    "Invalid value for field '{field}.diskType': '{link}'. The URL is malformed."
                ));
            }
            if !["pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"].contains(&kind) {
                return Err(Box::new(not_found(&format!("zones/{zone}/diskTypes/{kind}"), &owner.project)));
            }
            if boot && !shape.takes(kind) {
                let text = format!(
                    "[{kind}] features and [instance_type: VIRTUAL_MACHINE machine_type: {}] InstanceTaxonomies are not compatible for creating instance.",
                    shape.name
                );
                return Err(Box::new(fail(400, "badRequest", &text).rejecting(text)));
            }
            let name = params["diskName"].as_str().map_or_else(
                || if boot { instance.to_owned() } else { format!("{instance}-{index}") },
                str::to_owned,
            );
            if !is_name(&name) {
                return bad(&format!("Invalid value for field '{field}.diskName': '{name}'."));
            }
            if state.disk(&owner.label, zone, &name).is_some() || disks.iter().any(|known| known.name == name)
            {
                let text = format!(
                    "The resource 'projects/{}/zones/{zone}/disks/{name}' already exists",
                    owner.project
                );
                return Err(Box::new(fail(409, "alreadyExists", &text)));
            }
            let labels = labels(&params["labels"], &format!("{field}.labels"))?;
            let device =
                disk["deviceName"].as_str().map_or_else(|| format!("persistent-disk-{index}"), str::to_owned);
            // The API's default is to keep the disk.
            let auto_delete = disk["autoDelete"] == true;
            disks.push(NewDisk {
                name,
                gb,
                kind: kind.to_owned(),
                image: image.map(|(link, _)| link),
                labels,
                boot,
                auto_delete,
                device,
            });
        }
        Ok(disks)
    }

    /// An image by a link to it or to its family: its full name, and its GB.
    fn source(&self, link: &str) -> Verdict<(String, u64)> {
        let project = after(link, "projects").unwrap_or_default();
        let name = last(link);
        let family = link.contains("/images/family/");
        let found = if family {
            self.shapes.family(project, name).filter(|_| !self.is_retired(name))
        } else {
            self.shapes.image(project, name)
        };
        let whole =
            if family { format!("global/images/family/{name}") } else { format!("global/images/{name}") };
        match found {
            Some(image) if image.deprecated.as_deref() == Some("OBSOLETE") => bad(&format!(
                "Invalid value for field 'resource.disks[0].initializeParams.sourceImage': '{link}'. The image is obsolete."
            )),
            Some(image) => Ok((format!("{project}/global/images/{}", image.name), image.gb)),
            None => Err(Box::new(not_found(&whole, project))),
        }
    }
}
