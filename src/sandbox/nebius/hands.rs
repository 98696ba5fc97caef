//! What is done to Nebius from outside its API. `control.rs` has the same over the control path.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::NebiusCloud;
use super::account::Advice;
use super::left::NebiusLeft;
use super::seed::NebiusSeed;
use crate::sandbox::faults::Fault;
use crate::sandbox::oidc::{OidcFlaw, RsaKey};
use crate::sandbox::plug::Plug;
use crate::sandbox::server::Emulator;
use crate::sandbox::{Shared, lock};

/// Nebius in a [`Sandbox`](crate::sandbox::Sandbox), as [`Sandbox::nebius`](crate::sandbox::Sandbox::nebius) returns it.
///
/// An account is named by its tenant id or its label.
#[derive(Debug)]
pub struct Nebius {
    shared: Arc<Shared>,
    cloud: Arc<NebiusCloud>,
    plug: Plug,
    /// Label of the first account.
    first: String,
    tenant: String,
    token: String,
    service_account: String,
    foreign: String,
    /// What was there of somebody else's, from the start and since.
    theirs: Mutex<Vec<NebiusLeft>>,
}

impl Nebius {
    /// Serves it, with one account that holds an instance and a disk of somebody else's.
    pub(in crate::sandbox) async fn start(shared: Arc<Shared>) -> io::Result<Nebius> {
        let cloud = Arc::new(NebiusCloud::new(Arc::clone(&shared))?);
        let first = cloud.open_account();
        let foreign = cloud.put(&first, &NebiusSeed::foreign("jupyter-team"))?;
        cloud.put_disk(&first, &NebiusSeed::foreign("datasets"))?;
        let parts = cloud.with_account(&first, |owner| {
            (owner.tenant.clone(), owner.token.clone(), owner.service_account.clone())
        });
        let (tenant, token, service_account) = parts.unwrap_or_default();
        let plug = Plug::start(cloud.clone(), Arc::clone(&shared)).await?;
        let theirs = Mutex::new(cloud.left(true));
        Ok(Nebius { shared, cloud, plug, first, tenant, token, service_account, foreign, theirs })
    }

    /// For what all clouds have.
    pub(in crate::sandbox) fn emulator(&self) -> Arc<dyn Emulator> {
        self.cloud.clone()
    }

    /// Scheme, address and port of all services.
    pub fn endpoint(&self) -> String {
        self.plug.endpoint()
    }

    /// A token of the first account that never expires by itself, a person's; another one at every start.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Id of the first account's tenant.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Id of the first account's service account, which federated tokens are exchanged for.
    pub fn service_account(&self) -> &str {
        &self.service_account
    }

    /// Ids of the first account's projects that can be worked in, one for each region at least.
    pub fn projects(&self) -> Vec<String> {
        let active = |owner: &mut super::account::Account| {
            owner.projects.iter().filter(|one| one.state == "ACTIVE").map(|one| one.id.clone()).collect()
        };
        self.cloud.with_account(&self.first, active).unwrap_or_default()
    }

    /// The default project of a region.
    pub fn project(&self, region: &str) -> Option<String> {
        self.cloud
            .with_account(&self.first, |owner| owner.in_region(region).map(|one| one.id.clone()))
            .flatten()
    }

    /// A subnet of a region's default project that is ready and has public addresses.
    pub fn subnet(&self, region: &str) -> Option<String> {
        let find = |owner: &mut super::account::Account| {
            let subnets = &owner.in_region(region)?.subnets;
            subnets.iter().find(|one| one.state == "READY" && one.public).map(|one| one.id.clone())
        };
        self.cloud.with_account(&self.first, find).flatten()
    }

    /// The key file of the first account's service account, JSON as the official clients read it. The first call in a
    /// process takes a moment.
    ///
    /// # Errors
    ///
    /// When `ssh-keygen` cannot be run.
    pub fn key_file(&self) -> io::Result<String> {
        self.key_file_of(&self.first)
    }

    /// The same of another account.
    ///
    /// # Errors
    ///
    /// When there is no such account, or `ssh-keygen` cannot be run.
    pub fn key_file_of(&self, account: &str) -> io::Result<String> {
        let key = RsaKey::shared()?;
        let file = self.cloud.with_account(account, |owner| owner.key_file(key.pem()).to_string());
        file.ok_or_else(|| io::Error::other("no such account"))
    }

    /// A token of the OIDC issuer that the first account trusts, right but for `flaw`.
    ///
    /// # Errors
    ///
    /// When `ssh-keygen` cannot be run.
    pub fn oidc_token(&self, flaw: Option<OidcFlaw>) -> io::Result<String> {
        let issuer = self.cloud.with_account(&self.first, |owner| owner.issuer.clone());
        issuer.ok_or_else(|| io::Error::other("no such account"))?.token(flaw)
    }

    /// Opens another account with nothing in it and returns its tenant id and its token.
    pub fn add_account(&self) -> (String, String) {
        let label = self.cloud.open_account();
        self.cloud
            .with_account(&label, |owner| (owner.tenant.clone(), owner.token.clone()))
            .unwrap_or_default()
    }

    /// The label of an account, as the ledger and the records have it.
    pub fn account(&self, account: &str) -> Option<String> {
        self.cloud.with_account(account, |owner| owner.label.clone())
    }

    /// How long new tokens live, by the sandbox's clock. What is told to the client is at least a second.
    pub fn set_token_life(&self, life: Duration) {
        lock(&self.cloud.state).token_life = life;
    }

    /// Ends every token that came of an exchange, as if it had expired.
    pub fn expire_tokens(&self) {
        let mut state = lock(&self.cloud.state);
        let exchanged = state.tokens.iter_mut().filter(|token| token.expires.is_some());
        exchanged.for_each(|token| token.expires = Some(Duration::ZERO));
    }

    /// Ends the tokens that never expire by themselves.
    pub fn revoke_static_tokens(&self) {
        lock(&self.cloud.state).tokens.retain(|token| token.expires.is_some());
    }

    /// Most items on a page from now on, whatever is asked for.
    pub fn set_page_size(&self, size: Option<usize>) {
        lock(&self.cloud.state).page = size;
    }

    /// Replaces a limit, such as `compute.instance.gpu.h100` in `eu-north1`; nothing is a row without a limit.
    pub fn set_quota(&self, account: &str, name: &str, region: &str, limit: Option<u64>) {
        self.cloud.with_account(account, |owner| {
            let rows = owner.quotas.iter_mut().filter(|row| row.name == name && row.region == region);
            rows.for_each(|row| row.limit = limit);
        });
    }

    /// Replaces what is to be had of a platform in a region, in GPUs; what is not fresh is not told as figures. A create
    /// that does not fit fails late.
    pub fn set_stock(&self, platform: &str, region: &str, on_demand: u32, preemptible: u32, fresh: bool) {
        self.cloud.with_account(&self.first, |owner| {
            let key = (platform.to_owned(), region.to_owned());
            owner.advice.insert(key, Advice { on_demand, preemptible, fresh });
        });
    }

    /// Replaces a spot price, in US dollars for a GPU and an hour; nothing takes it off the list.
    pub fn set_spot_price(&self, platform: &str, region: &str, price: Option<f64>) {
        self.cloud.with_account(&self.first, |owner| {
            owner.spot.insert((platform.to_owned(), region.to_owned()), price);
        });
    }

    /// Multiplies a platform's price on demand, which the calculator tells and machines cost.
    pub fn set_price_factor(&self, platform: &str, factor: f64) {
        self.cloud.with_account(&self.first, |owner| owner.factors.insert(platform.to_owned(), factor));
    }

    /// Takes Nebius off the network: its port refuses connections, its machines go on.
    pub fn unplug(&self) {
        self.plug.unplug();
    }

    /// Puts it back on the port it had.
    ///
    /// # Errors
    ///
    /// When the port is taken by now.
    pub async fn plug(&self) -> io::Result<()> {
        self.plug.plug().await
    }

    /// Sets one more fault, for calls to Nebius only.
    pub fn add_fault(&self, fault: Fault) {
        self.shared.faults.add(fault.cloud("nebius"));
    }

    /// Everything that still exists, by kind: instances, disks on them, detached disks. What is somebody else's is not
    /// in it.
    pub fn left(&self) -> Vec<NebiusLeft> {
        self.cloud.left(false)
    }

    /// What was somebody else's and is there no more, or not as it was. Must stay empty.
    pub fn harmed(&self) -> Vec<NebiusLeft> {
        let now = self.cloud.left(true);
        lock(&self.theirs).iter().filter(|one| !now.contains(one)).cloned().collect()
    }

    /// The foreign instance that was there from the start.
    pub fn foreign_instance(&self) -> &str {
        &self.foreign
    }

    /// Puts an instance with its boot disk into an account as if another computer had made it. Returns its id.
    ///
    /// # Errors
    ///
    /// When there is no such account, region, platform or preset, or its machine cannot be made.
    pub fn add_instance(&self, account: &str, seed: &NebiusSeed) -> io::Result<String> {
        let _inside = self.shared.runtime.enter();
        let id = self.cloud.put(account, seed)?;
        self.remember();
        Ok(id)
    }

    /// Puts a detached disk with the seed's name, labels and region into an account. Returns its id.
    ///
    /// # Errors
    ///
    /// When there is no such account or region.
    pub fn add_disk(&self, account: &str, seed: &NebiusSeed) -> io::Result<String> {
        let id = self.cloud.put_disk(account, seed)?;
        self.remember();
        Ok(id)
    }

    fn remember(&self) {
        let mut theirs = lock(&self.theirs);
        for one in self.cloud.left(true) {
            if !theirs.contains(&one) {
                theirs.push(one);
            }
        }
    }

    /// Removes an instance with its disk as if in the web console. False when there is none with this id.
    pub fn remove_instance(&self, id: &str) -> bool {
        self.cloud.remove(id, false)
    }

    /// Preempts an instance: it stops, its address goes, its disk stays and is billed. False when there is none that is
    /// preemptible and runs.
    pub fn preempt(&self, id: &str) -> bool {
        self.cloud.preempt(id)
    }
}
