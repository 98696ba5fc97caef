//! Puts instances into a project that no request made.

use std::io;
use std::time::Duration;

use serde_json::json;

use super::GcpCloud;
use super::disk::Disk;
use super::insert::ledger;
use super::instance::Instance;
use super::seed::GcpSeed;
use crate::sandbox::addresses::NOWHERE;
use crate::sandbox::lock;

impl GcpCloud {
    /// Puts an instance into a project. Returns its id.
    pub(super) fn put(&self, account: &str, seed: &GcpSeed) -> io::Result<String> {
        let mut state = lock(&self.state);
        let owner = state.account(account).ok_or_else(|| io::Error::other("no such project"))?;
        let (account, project) = (owner.label.clone(), owner.project.clone());
        let shape = self.shapes.there(&seed.machine_type, &seed.zone);
        let shape = shape.ok_or_else(|| io::Error::other("no such machine type in this zone"))?.clone();
        if state.instance(&account, &seed.zone, &seed.name).is_some() {
            return Err(io::Error::other("an instance of this name exists"));
        }
        let now = self.shared.clock.now();
        let (id, disk) = (state.id(), state.id());
        let attached = Some(seed.t4).filter(|count| *count > 0);
        let gpus = match &shape.bundle {
            Some(bundle) => Some((bundle.accelerator.clone(), bundle.count)),
            None => attached.map(|count| ("nvidia-tesla-t4".to_owned(), count)),
        };
        let metrics =
            gpus.as_ref().and_then(|(kind, _)| self.shapes.accelerator(kind)).map(|one| one.metrics.clone());
        let mut scheduling = json!({"onHostMaintenance": "TERMINATE", "automaticRestart": !seed.spot, "preemptible": seed.spot,
                                    "provisioningModel": if seed.spot { "SPOT" } else { "STANDARD" }});
        if seed.spot {
            scheduling["instanceTerminationAction"] = json!("DELETE");
        }
        let keys: Vec<String> = seed.keys.lines().map(|line| format!("ubuntu:{line}")).collect();
        let mut one = Instance {
            id: id.clone(),
            account: account.clone(),
            project: project.clone(),
            zone: seed.zone.clone(),
            name: seed.name.clone(),
            description: Some(seed.description.clone()).filter(|text| !text.is_empty()),
            labels: seed.labels.clone(),
            metadata: vec![
                ("ssh-keys".to_owned(), keys.join("\n")),
                ("enable-guest-attributes".to_owned(), "TRUE".to_owned()),
            ],
            tags: seed.tags.clone(),
            scheduling: scheduling.as_object().cloned().unwrap_or_default(),
            network: "default".into(),
            subnetwork: "default".into(),
            external: Some("PREMIUM".into()),
            deletion_protection: false,
            price: self.prices.of(&shape.name, &seed.zone, attached, seed.spot),
            shape,
            gpus,
            gpu_metrics: metrics.unwrap_or_default(),
            spot: seed.spot,
            foreign: seed.foreign,
            script: seed.script.clone(),
            born: now,
            age: seed.age,
            boot: Duration::ZERO,
            hidden_until: Duration::ZERO,
            listed_from: Duration::ZERO,
            settled_at: now,
            doom: None,
            expires: None,
            stopped: seed.stopped,
            going: None,
            gone: false,
            refused: 0,
            host_keys: Vec::new(),
            address: NOWHERE,
            machine: None,
        };
        if seed.live {
            self.reserve_machine(&state, &mut one)?;
        }
        ledger(&self.shared, &one, None);
        state.disks.push(Disk {
            id: disk,
            account,
            project,
            zone: seed.zone.clone(),
            name: seed.name.clone(),
            gb: 50,
            kind: one.shape.disk.clone(),
            image: None,
            labels: seed.labels.clone(),
            foreign: seed.foreign,
            created: now,
            hidden_until: Duration::ZERO,
            user: Some((id.clone(), seed.name.clone())),
            boot: true,
            auto_delete: true,
            device: "persistent-disk-0".into(),
        });
        state.instances.push(one);
        state.tick(&self.shared);
        Ok(id)
    }
}
