//! What is done to Verda from outside its API. `control.rs` has the same over the control path.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::Ed25519Keypair;

use super::VerdaCloud;
use super::create::enter;
use super::instance::{Instance, Phase};
use super::journal::Actor;
use super::left::Left;
use super::seed::VerdaSeed;
use super::state::{Account, Fate, KeyObject, VerdaQuota};
use super::volume::{Place, Volume};
use super::wire::{OnSpot, TagBody};
use crate::sandbox::addresses::NOWHERE;
use crate::sandbox::faults::Fault;
use crate::sandbox::machine::random;
use crate::sandbox::plug::Plug;
use crate::sandbox::server::Emulator;
use crate::sandbox::{Shared, lock};

/// Verda in a [`Sandbox`](crate::sandbox::Sandbox), as [`Sandbox::verda`](crate::sandbox::Sandbox::verda) returns it.
///
/// An account is named by its client id or its label.
#[derive(Debug)]
pub struct Verda {
    shared: Arc<Shared>,
    cloud: Arc<VerdaCloud>,
    plug: Plug,
    client_id: String,
    client_secret: String,
    foreign: String,
    /// What was there of somebody else's, from the start and since.
    theirs: std::sync::Mutex<Vec<Left>>,
}

impl Verda {
    /// Serves it, with one account that holds an instance, a volume and a key of somebody else's.
    pub(in crate::sandbox) async fn start(shared: Arc<Shared>) -> io::Result<Verda> {
        let cloud = Arc::new(VerdaCloud::new(Arc::clone(&shared))?);
        let client_id = lock(&cloud.state).add_account();
        let client_secret =
            cloud.with_account(&client_id, |owner| owner.client_secret.clone()).unwrap_or_default();
        let foreign = cloud.put(&client_id, &VerdaSeed::foreign("jupyter-team"))?;
        let mut pair = PrivateKey::from(Ed25519Keypair::from_seed(&random::<32>()));
        pair.set_comment("me@example.com");
        let key = pair.public_key().to_openssh().map_err(io::Error::other)?;
        cloud.put_key(&client_id, "laptop", &key, true)?;
        let plug = Plug::start(cloud.clone(), Arc::clone(&shared)).await?;
        let theirs = std::sync::Mutex::new(cloud.left(true));
        Ok(Verda { shared, cloud, plug, client_id, client_secret, foreign, theirs })
    }

    /// For what all clouds have.
    pub(in crate::sandbox) fn emulator(&self) -> Arc<dyn Emulator> {
        self.cloud.clone()
    }

    /// Scheme, address and port; paths begin with `/v1`.
    pub fn endpoint(&self) -> String {
        self.plug.endpoint()
    }

    /// Client id of the first account, another one at every start.
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Client secret of the first account.
    pub fn client_secret(&self) -> &str {
        &self.client_secret
    }

    /// Opens another account with nothing in it and returns its client id and client secret.
    pub fn add_account(&self) -> (String, String) {
        let id = lock(&self.cloud.state).add_account();
        let secret = self.cloud.with_account(&id, |owner| owner.client_secret.clone()).unwrap_or_default();
        (id, secret)
    }

    /// The label of an account, as the ledger and the records have it.
    pub fn account(&self, account: &str) -> Option<String> {
        self.cloud.with_account(account, |owner| owner.label.clone())
    }

    /// Replaces the US dollars that an account can spend; nothing is ever taken from them.
    pub fn set_balance(&self, account: &str, balance: f64) {
        self.cloud.with_account(account, |owner| owner.balance = balance);
    }

    /// Replaces what an account may have at most.
    pub fn set_quota(&self, account: &str, quota: VerdaQuota) {
        self.cloud.with_account(account, |owner| owner.quota = quota);
    }

    /// How long new tokens live. What is told to the client is at least a second.
    pub fn set_token_life(&self, life: Duration) {
        lock(&self.cloud.state).token_life = life;
    }

    /// Ends every access token that is out, as if it had expired; refresh tokens go on.
    pub fn expire_tokens(&self) {
        lock(&self.cloud.state).tokens.iter_mut().for_each(|pair| pair.expires = Duration::ZERO);
    }

    /// Takes Verda off the network: its port refuses connections, its machines go on.
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

    /// Sets one more fault, for calls to Verda only.
    pub fn add_fault(&self, fault: Fault) {
        self.shared.faults.add(fault.cloud("verda"));
    }

    /// Everything that still exists, by kind: instances, volumes (attached, detached, in the trash), keys, scripts.
    /// What is somebody else's is not in it.
    pub fn left(&self) -> Vec<Left> {
        self.cloud.left(false)
    }

    /// What was somebody else's and is there no more, or not as it was. Must stay empty.
    pub fn harmed(&self) -> Vec<Left> {
        let now = self.cloud.left(true);
        lock(&self.theirs).iter().filter(|one| !now.contains(one)).cloned().collect()
    }

    /// The foreign instance that was there from the start.
    pub fn foreign_instance(&self) -> &str {
        &self.foreign
    }

    /// Puts an instance, with its OS volume, into an account as if another computer had made it. Returns its id.
    ///
    /// # Errors
    ///
    /// When there is no such account or instance type, or its machine cannot be made.
    pub fn add_instance(&self, account: &str, seed: &VerdaSeed) -> io::Result<String> {
        let _inside = self.shared.runtime.enter();
        let id = self.cloud.put(account, seed)?;
        self.remember();
        Ok(id)
    }

    /// Puts a detached volume of somebody else's into an account, which must stay. Returns its id.
    ///
    /// # Errors
    ///
    /// When there is no such account.
    pub fn set_foreign_volume(&self, account: &str, name: &str) -> io::Result<String> {
        let id = self.cloud.put_volume(account, &VerdaSeed::foreign(name), name, Place::Detached, false)?;
        self.remember();
        Ok(id)
    }

    /// Puts an SSH key of somebody else's into an account, which must stay. Returns its id.
    ///
    /// # Errors
    ///
    /// When there is no such account.
    pub fn set_foreign_key(&self, account: &str, name: &str, key: &str) -> io::Result<String> {
        let id = self.cloud.put_key(account, name, key, true)?;
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

    /// Removes an instance and its volumes as if in the web console. False when there is none with this id.
    pub fn remove_instance(&self, id: &str) -> bool {
        self.cloud.remove(id, Fate::Permanent)
    }

    /// Removes an instance as if in the web console, where the volumes were not ticked: they stay, detached.
    pub fn remove_instance_only(&self, id: &str) -> bool {
        self.cloud.remove(id, Fate::Detach)
    }

    /// Evicts a spot instance because somebody orders its capacity on demand. False when there is none.
    pub fn evict(&self, id: &str) -> bool {
        self.cloud.evict(id)
    }
}

impl VerdaCloud {
    /// Changes or reads the account with this client id or label.
    pub(super) fn with_account<T>(&self, name: &str, work: impl FnOnce(&mut Account) -> T) -> Option<T> {
        let mut state = lock(&self.state);
        let found = state.accounts.iter_mut().find(|owner| owner.client_id == name || owner.label == name)?;
        Some(work(found))
    }

    fn owner(&self, name: &str) -> io::Result<(String, String)> {
        let found = self.with_account(name, |owner| (owner.label.clone(), owner.user.clone()));
        found.ok_or_else(|| io::Error::other("no such account"))
    }

    fn put_key(&self, account: &str, name: &str, key: &str, foreign: bool) -> io::Result<String> {
        let (account, _) = self.owner(account)?;
        let mut state = lock(&self.state);
        let id = state.uuid();
        state.keys.push(KeyObject {
            id: id.clone(),
            account,
            name: name.to_owned(),
            key: key.to_owned(),
            foreign,
        });
        Ok(id)
    }

    fn put_volume(
        &self,
        account: &str,
        seed: &VerdaSeed,
        name: &str,
        place: Place,
        is_os: bool,
    ) -> io::Result<String> {
        let (account, _) = self.owner(account)?;
        let mut state = lock(&self.state);
        let tags = state.tags(&sent(seed));
        let id = state.uuid();
        state.volumes.push(Volume {
            id: id.clone(),
            account,
            name: name.to_owned(),
            size: 100,
            kind: "NVMe".into(),
            location: seed.location.clone(),
            is_os,
            key_ids: Vec::new(),
            tags,
            on_spot: OnSpot::KeepDetached,
            foreign: seed.foreign,
            created: self.shared.clock.date(self.shared.clock.now()),
            hidden_until: Duration::ZERO,
            place,
        });
        Ok(id)
    }

    /// Puts an instance into an account that no request made.
    pub(super) fn put(&self, account: &str, seed: &VerdaSeed) -> io::Result<String> {
        let (label, user) = self.owner(account)?;
        let kind = self.catalog.kind(&seed.instance_type);
        let kind = kind.ok_or_else(|| io::Error::other("no such instance type"))?.clone();
        let now = self.shared.clock.now();
        let age = jiff::SignedDuration::try_from(seed.age).map_err(io::Error::other)?;
        let created = self.shared.clock.date(now).checked_sub(age).map_err(io::Error::other)?;
        let born = now.saturating_sub(seed.age);
        let (id, tags) = {
            let mut state = lock(&self.state);
            (state.uuid(), state.tags(&sent(seed)))
        };
        let volume = self.put_volume(&label, seed, &seed.volume, Place::Attached(id.clone()), true)?;
        let mut one = Instance {
            id: id.clone(),
            account: label,
            user,
            hostname: seed.hostname.clone(),
            description: seed.description.clone(),
            tags,
            price: kind.price(seed.spot),
            kind,
            location: seed.location.clone(),
            image: "24.04.cuda13.2.docker".into(),
            os_name: "Ubuntu 24.04 + CUDA 13.2 + Docker".into(),
            spot: seed.spot,
            startup_script: None,
            key_ids: Vec::new(),
            authorized: seed.keys.clone(),
            os_volume: Some(volume),
            foreign: seed.foreign,
            script: seed.script.clone(),
            born,
            created,
            started: born,
            boot: Duration::ZERO,
            hidden_until: Duration::ZERO,
            listed_from: Duration::ZERO,
            offline: seed.offline,
            deleted: None,
            evicted: false,
            refused: 0,
            told: Some(Phase::Running),
            address: NOWHERE,
            machine: None,
        };
        let mut state = lock(&self.state);
        if seed.live {
            self.reserve_machine(&mut one)?;
        }
        enter(&self.shared, &one, None);
        state.instances.push(one);
        state.tick(&self.shared);
        Ok(id)
    }

    pub(super) fn remove(&self, id: &str, fate: Fate) -> bool {
        let mut state = lock(&self.state);
        let found = state.instances.iter().position(|one| one.id == id && one.deleted.is_none());
        found.inspect(|index| state.end(&self.shared, *index, Actor::Console, |_| fate)).is_some()
    }

    pub(super) fn evict(&self, id: &str) -> bool {
        let mut state = lock(&self.state);
        let found = state.instances.iter().position(|one| one.id == id && one.deleted.is_none() && one.spot);
        found.inspect(|index| state.evict(&self.shared, *index)).is_some()
    }
}

fn sent(seed: &VerdaSeed) -> Vec<TagBody> {
    seed.tags.iter().map(|(key, value)| TagBody { key: key.clone(), value: Some(value.clone()) }).collect()
}
