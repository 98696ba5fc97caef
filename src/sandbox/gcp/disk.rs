//! Disks: one of each, and the calls about them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::operation::LINKS;
use super::state::Order;
use super::trouble::GcpFault;
use super::{GcpCloud, fail, not_found};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

/// One disk.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) project: String,
    pub(super) zone: String,
    pub(super) name: String,
    pub(super) gb: u64,
    pub(super) kind: String,
    pub(super) image: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) foreign: bool,
    pub(super) created: Duration,
    pub(super) hidden_until: Duration,
    /// Id and name of the instance that it is attached to.
    pub(super) user: Option<(String, String)>,
    pub(super) boot: bool,
    pub(super) auto_delete: bool,
    /// Its name as the guest sees it.
    pub(super) device: String,
}

impl Disk {
    /// As one of an instance's disks.
    pub(super) fn attached(&self, index: usize) -> Value {
        let (project, zone) = (&self.project, &self.zone);
        json!({"kind": "compute#attachedDisk", "type": "PERSISTENT", "mode": "READ_WRITE", "boot": self.boot,
               "autoDelete": self.auto_delete, "index": index, "deviceName": self.device, "interface": "NVME",
               "diskSizeGb": self.gb.to_string(),
               "source": format!("{LINKS}/{project}/zones/{zone}/disks/{}", self.name)})
    }

    fn show(&self, cloud: &GcpCloud) -> Value {
        let base = format!("{LINKS}/{}", self.project);
        let zone = &self.zone;
        let mut shown = json!({
            "kind": "compute#disk", "id": self.id, "name": self.name, "sizeGb": self.gb.to_string(), "status": "READY",
            "creationTimestamp": cloud.date(self.created), "zone": format!("{base}/zones/{zone}"),
            "type": format!("{base}/zones/{zone}/diskTypes/{}", self.kind),
            "selfLink": format!("{base}/zones/{zone}/disks/{}", self.name),
            "labelFingerprint": super::instance::fingerprint(&json!(self.labels)),
            "physicalBlockSizeBytes": "4096",
        });
        if let Some(image) = &self.image {
            shown["sourceImage"] = json!(format!("{LINKS}/{image}"));
        }
        if !self.labels.is_empty() {
            shown["labels"] = json!(self.labels);
        }
        if let Some((_, name)) = &self.user {
            shown["users"] = json!([format!("{base}/zones/{zone}/instances/{name}")]);
        }
        shown
    }
}

impl GcpCloud {
    /// Disks of an account that can be seen, as JSON with their zones.
    pub(super) fn shown_disks(&self, account: &str) -> Vec<(String, Value)> {
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        let mine = state.disks.iter().filter(|disk| disk.account == account && now >= disk.hidden_until);
        mine.map(|disk| (disk.zone.clone(), disk.show(self))).collect()
    }

    /// `GET .../disks/{disk}`.
    pub(super) fn disk(&self, account: &str, zone: &str, name: &str) -> Answer {
        let now = self.shared.clock.now();
        let state = lock(&self.state);
        let found = state.disk(account, zone, name).map(|index| &state.disks[index]);
        match found.filter(|disk| now >= disk.hidden_until) {
            Some(disk) => Answer::json(200, disk.show(self)),
            None => not_found(&format!("zones/{zone}/disks/{name}"), &state.project(account)),
        }
    }

    /// `DELETE .../disks/{disk}`: gone at once, and the operation ends a little later.
    pub(super) fn delete_disk(
        &self,
        call: &Call,
        account: &str,
        zone: &str,
        name: &str,
        request: Option<String>,
    ) -> Answer {
        let mut state = lock(&self.state);
        let Some(index) = state.disk(account, zone, name) else {
            return not_found(&format!("zones/{zone}/disks/{name}"), &state.project(account));
        };
        let disk = state.disks[index].clone();
        if let Some((_, user)) = &disk.user {
            let project = &disk.project;
            let text = format!(
                "The disk resource 'projects/{project}/zones/{zone}/disks/{name}' is already being used by 'projects/{project}/zones/{zone}/instances/{user}'"
            );
            return fail(400, "resourceInUseByAnotherResource", &text);
        }
        let faults = &call.faults;
        let late = late(faults);
        if late.is_none() && !faults.contains(&FaultKind::Gcp(GcpFault::NoEffect)) {
            state.disks.remove(index);
        }
        let order = Order {
            account,
            zone: Some(zone.to_owned()),
            kind: "delete",
            target: format!("zones/{zone}/disks/{name}"),
            target_id: disk.id,
            request: request.map(|id| (id, format!("{} {}", call.method, call.path))),
            takes: self.shared.options.slow_delete / 2,
        };
        let operation = state.order(&self.shared, order, faults);
        drop(state);
        Answer::json(200, self.show_operation(&operation))
    }
}

/// The error that a fault puts at the end of a call's operation.
pub(super) fn late(faults: &[FaultKind]) -> Option<super::trouble::GcpOperationError> {
    faults.iter().find_map(|fault| match fault {
        FaultKind::Gcp(GcpFault::Late { error }) => Some(error.clone()),
        _ => None,
    })
}
