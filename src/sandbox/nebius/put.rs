//! Puts accounts and instances there that no request made, and takes them away as the web console does.

use std::io;
use std::time::Duration;

use serde_json::json;

use super::NebiusCloud;
use super::account::{self, Account, Token};
use super::create::enter;
use super::disk::Disk;
use super::instance::{Instance, Stage};
use super::seed::NebiusSeed;
use crate::sandbox::addresses::NOWHERE;
use crate::sandbox::lock;

/// GiB of a disk that is put there.
const DISK: i64 = 100;

impl NebiusCloud {
    /// Opens an account and returns its label.
    pub(super) fn open_account(&self) -> String {
        let mut state = lock(&self.state);
        let label = format!("nebius-{}", state.accounts.len() + 1);
        let owner = account::open(&label, &self.catalog, |kind, region| state.id(kind, region));
        let text = owner.token.clone();
        state.tokens.push(Token { text, account: label.clone(), expires: None, person: true });
        state.accounts.push(owner);
        label
    }

    /// Changes or reads the account with this tenant id or label.
    pub(super) fn with_account<T>(&self, name: &str, work: impl FnOnce(&mut Account) -> T) -> Option<T> {
        let mut state = lock(&self.state);
        let found = state.accounts.iter_mut().find(|owner| owner.tenant == name || owner.label == name)?;
        Some(work(found))
    }

    /// Puts an instance with its disk into an account.
    pub(super) fn put(&self, account: &str, seed: &NebiusSeed) -> io::Result<String> {
        let found = self.with_account(account, |owner| {
            owner.in_region(&seed.region).map(|project| (owner.label.clone(), project.clone()))
        });
        let (label, project) =
            found.flatten().ok_or_else(|| io::Error::other("no such account or region"))?;
        let platform = self.catalog.platform(&seed.platform);
        let platform = platform.ok_or_else(|| io::Error::other("no such platform"))?;
        let preset = platform.preset(&seed.preset).ok_or_else(|| io::Error::other("no such preset"))?;
        let now = self.shared.clock.now();
        let age = jiff::SignedDuration::try_from(seed.age).map_err(io::Error::other)?;
        let created = self.shared.clock.date(now).checked_sub(age).map_err(io::Error::other)?;
        let born = now.saturating_sub(seed.age);
        let keys: Vec<&str> = seed.keys.lines().collect();
        let user = json!({"users": [{"name": "ubuntu", "ssh_authorized_keys": keys}]});
        let mut spec = json!({
            "resources": {"platform": seed.platform, "preset": seed.preset},
            "network_interfaces": [{"name": "eth0", "ip_address": {}, "public_ip_address": {}}],
            "cloud_init_user_data": format!("#cloud-config\n{user}\n"), "recovery_policy": "FAIL",
        });
        if seed.spot {
            spec["preemptible"] = json!({"on_preemption": "STOP"});
            spec["follows_spot_price"] = json!({});
        }
        let mut state = lock(&self.state);
        let id = state.id("computeinstance", &seed.region);
        let disk = Disk {
            id: state.id("computedisk", &seed.region),
            account: label.clone(),
            project: project.id.clone(),
            region: seed.region.clone(),
            name: format!("{}-boot", seed.name),
            labels: json!(seed.labels),
            spec: json!({"type": "NETWORK_SSD", "size_gibibytes": DISK}),
            gib: DISK,
            attached: Some(id.clone()),
            managed: true,
            foreign: seed.foreign,
            created,
            hidden_until: Duration::ZERO,
            deleted: None,
        };
        let mut one = Instance {
            id: id.clone(),
            project: project.id,
            region: seed.region.clone(),
            name: seed.name.clone(),
            labels: json!(seed.labels),
            spec,
            price: self.price(&state, &label, platform, preset, seed.spot, &seed.region),
            account: label,
            platform: platform.clone(),
            preset: preset.clone(),
            spot: seed.spot,
            foreign: seed.foreign,
            script: seed.script.clone(),
            born,
            created,
            started: born,
            boot: Duration::ZERO,
            fails: None,
            hidden_until: Duration::ZERO,
            listed_from: Duration::ZERO,
            stopped: seed.stopped.then_some(Duration::ZERO),
            deleted: None,
            refused: 0,
            lost: false,
            hangs: false,
            public: true,
            address: NOWHERE,
            machine: None,
        };
        if seed.live {
            self.power_on(&mut one)?;
        }
        enter(&self.shared, &one, None);
        state.disks.push(disk);
        state.instances.push(one);
        state.tick(&self.shared);
        Ok(id)
    }

    /// Puts a detached disk of somebody else's into an account.
    pub(super) fn put_disk(&self, account: &str, seed: &NebiusSeed) -> io::Result<String> {
        let found = self.with_account(account, |owner| {
            owner.in_region(&seed.region).map(|project| (owner.label.clone(), project.clone()))
        });
        let (account, project) =
            found.flatten().ok_or_else(|| io::Error::other("no such account or region"))?;
        let mut state = lock(&self.state);
        let id = state.id("computedisk", &seed.region);
        let created = self.shared.clock.date(self.shared.clock.now());
        state.disks.push(Disk {
            id: id.clone(),
            account,
            project: project.id,
            region: seed.region.clone(),
            name: seed.name.clone(),
            labels: json!(seed.labels),
            spec: json!({"type": "NETWORK_SSD", "size_gibibytes": DISK}),
            gib: DISK,
            attached: None,
            managed: false,
            foreign: seed.foreign,
            created,
            hidden_until: Duration::ZERO,
            deleted: None,
        });
        Ok(id)
    }

    /// Where in the list an instance is that exists.
    fn find(&self, state: &super::state::State, id: &str) -> Option<usize> {
        let gone = |one: &Instance| matches!(self.stage(state, one), Stage::Deleting | Stage::Gone);
        state.instances.iter().position(|one| one.id == id && !gone(one))
    }

    /// Removes an instance as if in the web console, with its disk or without.
    pub(super) fn remove(&self, id: &str, disk_stays: bool) -> bool {
        let mut state = lock(&self.state);
        let found = self.find(&state, id);
        found.inspect(|index| state.end(&self.shared, *index, disk_stays)).is_some()
    }

    /// Stops a preemptible instance that runs.
    pub(super) fn preempt(&self, id: &str) -> bool {
        let mut state = lock(&self.state);
        let found = self.find(&state, id);
        found.is_some_and(|index| state.preempt(&self.shared, index))
    }
}
