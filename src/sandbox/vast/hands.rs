//! What is done to Vast from outside its API, in Rust and over the control path.
//!
//! | call | does |
//! |---|---|
//! | `POST /vast/accounts` | opens an account; answers its key and label |
//! | `POST /vast/accounts/LABEL` | `{"credit": N, "ssh_keys": [...]}` replaces what is named |
//! | `POST /vast/instances` | `{"account": KEY or LABEL, ...}` with the fields of [`InstanceSeed`]; `"foreign": true` for one without marks |
//! | `DELETE /vast/instances/ID` | as in the web console |
//! | `POST /vast/instances/ID/outbid` | somebody pays more |
//! | `POST /vast/instances/ID/resume` | the top bid again |
//! | `POST /vast/instances/ID/host-key` | another host key |

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};

use super::instance::Phase;
use super::seed::InstanceSeed;
use super::{VastCloud, state};
use crate::sandbox::faults::{Fault, FaultBook};
use crate::sandbox::plug::Plug;
use crate::sandbox::server::{Answer, Emulator, problem_json};
use crate::sandbox::{Shared, lock};

/// Vast in a [`Sandbox`](crate::sandbox::Sandbox), as [`Sandbox::vast`](crate::sandbox::Sandbox::vast) returns it.
#[derive(Debug)]
pub struct Vast {
    shared: Arc<Shared>,
    cloud: Arc<VastCloud>,
    plug: Plug,
    key: String,
    foreign: String,
}

impl Vast {
    /// Serves it, with one account that holds one instance of somebody else's.
    pub(in crate::sandbox) async fn start(shared: Arc<Shared>) -> io::Result<Vast> {
        let cloud = Arc::new(VastCloud::new(Arc::clone(&shared))?);
        let key = lock(&cloud.state).add_account();
        let foreign = cloud.put(&key, &InstanceSeed::foreign("jupyter-team"))?;
        let plug = Plug::start(cloud.clone(), Arc::clone(&shared)).await?;
        Ok(Vast { shared, cloud, plug, key, foreign })
    }

    /// For what all clouds have.
    pub(in crate::sandbox) fn emulator(&self) -> Arc<dyn Emulator> {
        self.cloud.clone()
    }

    /// Base URL; paths begin with `/api`.
    pub fn endpoint(&self) -> String {
        self.plug.endpoint()
    }

    /// API key of the first account, another one at every start.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Opens another account with no instances and returns its key.
    pub fn add_account(&self) -> String {
        lock(&self.cloud.state).add_account()
    }

    /// The label of the account with this key, as the ledger and the records have it.
    pub fn account(&self, key: &str) -> Option<String> {
        self.cloud.find_account(key)
    }

    /// Replaces the SSH keys that an account has on file, which every new instance gets.
    pub fn set_ssh_keys(&self, account: &str, ssh_keys: Vec<String>) {
        self.cloud.with_account(account, |found| found.ssh_keys = ssh_keys);
    }

    /// Replaces the US dollars that an account can spend; nothing is ever taken from them.
    pub fn set_credit(&self, account: &str, credit: f64) {
        self.cloud.with_account(account, |found| found.credit = credit);
    }

    /// Replaces an account's API key, as after a rotation; its instances stay.
    pub fn rotate_key(&self, account: &str) -> Option<String> {
        let fresh = state::new_key();
        self.cloud.with_account(account, |found| found.key.clone_from(&fresh)).map(|()| fresh)
    }

    /// Takes Vast off the network: its port refuses connections, its machines go on.
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

    /// Sets one more fault, for calls to Vast only.
    pub fn add_fault(&self, fault: Fault) {
        let book: &FaultBook = &self.shared.faults;
        book.add(fault.cloud("vast"));
    }

    /// The foreign instance that was there from the start.
    pub fn foreign_instance(&self) -> &str {
        &self.foreign
    }

    /// Puts an instance without any marks into an account: somebody else's, which must stay. Returns its id.
    ///
    /// # Errors
    ///
    /// When no account has this key or label.
    pub fn set_foreign_instance(&self, account: &str, label: &str) -> io::Result<String> {
        self.add_instance(account, &InstanceSeed::foreign(label))
    }

    /// Puts an instance into an account as if another computer had made it. Returns its id.
    ///
    /// # Errors
    ///
    /// When no account has this key or label, there is no such GPU, or its machine cannot be made.
    pub fn add_instance(&self, account: &str, seed: &InstanceSeed) -> io::Result<String> {
        let _inside = self.shared.runtime.enter();
        self.cloud.put(account, seed)
    }

    /// Removes an instance as if in the web console. False when there is none with this id.
    pub fn remove_instance(&self, id: &str) -> bool {
        self.cloud.remove(id)
    }

    /// Stops an instance because somebody pays more; its disk goes on costing. False when there is none.
    pub fn outbid(&self, id: &str) -> bool {
        self.cloud.outbid(id)
    }

    /// Lets an instance that was outbid run again, as when it is the top bid once more. False when there is none.
    pub fn resume(&self, id: &str) -> bool {
        let _inside = self.shared.runtime.enter();
        self.cloud.resume(id)
    }
}

impl VastCloud {
    /// Label of the account with this API key or label.
    pub(super) fn find_account(&self, name: &str) -> Option<String> {
        let state = lock(&self.state);
        let found = state.accounts.iter().find(|account| account.key == name || account.label == name)?;
        Some(found.label.clone())
    }

    fn with_account(&self, name: &str, change: impl FnOnce(&mut state::Account)) -> Option<()> {
        let label = self.find_account(name)?;
        lock(&self.state).account(&label).map(change)
    }

    fn remove(&self, id: &str) -> bool {
        self.with_instance(id, |one, _| state::end(&self.shared, one))
    }

    fn outbid(&self, id: &str) -> bool {
        self.with_instance(id, |one, _| one.outbid())
    }

    fn resume(&self, id: &str) -> bool {
        self.with_instance(id, |one, now| {
            one.stopped = false;
            one.started = now;
            one.min_bid = one.min_bid.min(one.dph_base);
            // Without a machine it shows as running, and nobody gets in.
            let _ = self.reserve_machine(one);
        })
    }

    fn with_instance(
        &self,
        id: &str,
        change: impl FnOnce(&mut super::instance::Instance, std::time::Duration),
    ) -> bool {
        let now = self.shared.clock.now();
        let mut state = lock(&self.state);
        let slow = state.slow;
        let found = state.instances.iter_mut().find(|one| one.id.to_string() == id);
        found
            .filter(|one| !matches!(one.phase(now, slow), Phase::Unloaded | Phase::Gone))
            .map(|one| change(one, now))
            .is_some()
    }

    /// The control path below `/vast`.
    pub(super) fn handle(&self, method: &str, parts: &[&str], body: Value) -> Option<Answer> {
        let done = |found: bool| {
            if found { Answer::empty(204) } else { refuse(404, "no such instance") }
        };
        Some(match (method, parts) {
            ("POST", ["accounts"]) => {
                let key = lock(&self.state).add_account();
                Answer::json(201, json!({"key": key, "label": self.find_account(&key)}))
            }
            ("POST", ["accounts", name]) => {
                let changed = self.with_account(name, |found| {
                    found.credit = body.get("credit").and_then(Value::as_f64).unwrap_or(found.credit);
                    if let Some(keys) = body.get("ssh_keys").and_then(Value::as_array) {
                        found.ssh_keys = keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                    }
                });
                if changed.is_some() { Answer::empty(204) } else { refuse(404, "no such account") }
            }
            ("POST", ["instances"]) => self.add(body),
            ("DELETE", ["instances", id]) => done(self.remove(id)),
            ("POST", ["instances", id, "outbid"]) => done(self.outbid(id)),
            ("POST", ["instances", id, "resume"]) => done(self.resume(id)),
            ("POST", ["instances", id, "host-key"]) => done(self.swap_host_key(id)),
            _ => return None,
        })
    }

    fn add(&self, mut body: Value) -> Answer {
        let Some(fields) = body.as_object_mut() else { return refuse(400, "want an object") };
        let account = fields.remove("account").and_then(|value| value.as_str().map(str::to_owned));
        let foreign = fields.remove("foreign") == Some(Value::Bool(true));
        let mut seed: InstanceSeed = match serde_json::from_value(body) {
            Ok(seed) => seed,
            Err(error) => return refuse(400, &error.to_string()),
        };
        if foreign {
            seed.env = InstanceSeed::foreign("").env;
        }
        match self.put(account.as_deref().unwrap_or("vast-1"), &seed) {
            Ok(id) => Answer::json(201, json!({"id": id})),
            Err(error) => refuse(400, &error.to_string()),
        }
    }
}

fn refuse(status: u16, detail: &str) -> Answer {
    Answer::json(status, problem_json("control", status, detail))
}
