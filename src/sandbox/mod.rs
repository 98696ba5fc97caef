//! A loopback emulator of the clouds: for trying gpuprov without an account, for users' own scripts, for tests.
//!
//! It is a service of its own that happens to be in the same binary. It imports nothing else of this crate, its
//! wire types are its own, written from the clouds' public documents, and it is at least as strict as they are.
//! All of it listens on 127.0.0.0/8 only. A rented machine is an embedded SSH server over a scratch directory.
//!
//! - `server.rs`, `answer.rs`, `plug.rs`, `line.rs`, `wire_faults.rs`: HTTP shared by the emulators, recording, and faults on the wire
//! - `grpc.rs`: the same for the emulator that speaks gRPC
//! - `addresses.rs`: where machines stand that are an address alone
//! - `clock.rs`, `chance.rs`, `faults.rs`, `scripts.rs`, `ledger.rs`: time, luck, what goes wrong, what is remembered
//! - `oidc.rs`: signed tokens, for service accounts and for federation
//! - `control.rs`: the same from outside, as HTTP and JSON
//! - `machine/`: the SSH machines
//! - `runpod/`, `vast/`, `verda/`, `gcp/`, `nebius/`: the clouds; `catalog/` holds their rows as data
//!
//! A new cloud is one more folder with an `Emulator` (see `server.rs`), its own faults and scripts, one catalogue, and a
//! handle as [`Sandbox::vast`] returns one: what a test does with that cloud alone is there.

mod addresses;
mod answer;
mod chance;
mod clock;
mod control;
mod faults;
mod gcp;
mod grpc;
mod ledger;
mod line;
mod machine;
mod nebius;
mod oidc;
mod options;
mod plug;
mod runpod;
mod scripts;
mod seed;
mod server;
#[cfg(test)]
mod tests;
mod vast;
mod verda;
mod wire_faults;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

pub use clock::ClockMode;
pub use faults::{Fault, FaultKind, Junk, Match, RetryAfter, When};
pub use gcp::{
    GCP_FIREWALL_PERMISSIONS, Gcp, GcpFault, GcpGuesses, GcpLeaves, GcpLeft, GcpLeftKind, GcpOperationError,
    GcpPolicy, GcpPrices, GcpScript, GcpSeed, GcpSource,
};
pub use ledger::{LedgerEntry, Recorded};
pub use nebius::{
    LateCause, Nebius, NebiusFault, NebiusGuesses, NebiusLeft, NebiusLeftKind, NebiusScript, NebiusSeed,
};
pub use oidc::OidcFlaw;
pub use options::Options;
pub use runpod::guesses::RunPodGuesses;
pub use scripts::{LoginTrouble, Script};
pub use seed::PodSeed;
pub use vast::{GoneForm, InstanceSeed, Throttle, Vast, VastFault, VastGuesses, VastScript};
pub use verda::{Left, LeftKind, Verda, VerdaFault, VerdaGuesses, VerdaQuota, VerdaScript, VerdaSeed};

use addresses::Addresses;
use clock::Clock;
use control::Control;
use faults::FaultBook;
use ledger::{Ledger, Records};
use plug::Plug;
use runpod::RunPod;
use server::Emulator;

/// What all emulators of one sandbox share.
#[derive(Debug)]
struct Shared {
    options: Options,
    clock: Clock,
    faults: FaultBook,
    records: Records,
    ledger: Ledger,
    addresses: Addresses,
    runtime: Handle,
}

/// A running sandbox. Dropping it ends its machines and all their processes.
#[derive(Debug)]
pub struct Sandbox {
    shared: Arc<Shared>,
    emulators: Vec<Arc<dyn Emulator>>,
    runpod: Arc<RunPod>,
    runpod_plug: Plug,
    runpod_key: String,
    foreign: String,
    vast: Vast,
    verda: Verda,
    gcp: Gcp,
    nebius: Nebius,
    control: Option<Control>,
    ticker: JoinHandle<()>,
}

impl Sandbox {
    /// Starts it, with one account at every cloud, which holds one machine of somebody else's.
    ///
    /// # Errors
    ///
    /// When no port of 127.0.0.1 can be had, or `scratch` is no directory.
    pub async fn start(mut options: Options) -> io::Result<Sandbox> {
        if !std::fs::metadata(&options.scratch)?.is_dir() {
            return Err(io::Error::other("the scratch path is no directory"));
        }
        if options.runpod_guesses.gone_at_once {
            options.slow_delete = Duration::ZERO;
        }
        let with_control = options.control;
        let shared = Arc::new(Shared {
            clock: Clock::new(options.clock),
            addresses: Addresses::find(options.vm_ssh_port, options.seed)?,
            options,
            faults: FaultBook::default(),
            records: Records::default(),
            ledger: Ledger::default(),
            runtime: Handle::current(),
        });
        let runpod = Arc::new(RunPod::new(Arc::clone(&shared))?);
        let runpod_key = runpod.add_account();
        let foreign = runpod.add_pod(&runpod_key, &PodSeed::foreign("jupyter-team"))?;
        let runpod_plug = Plug::start(runpod.clone(), Arc::clone(&shared)).await?;
        let vast = Vast::start(Arc::clone(&shared)).await?;
        let verda = Verda::start(Arc::clone(&shared)).await?;
        let gcp = Gcp::start(Arc::clone(&shared)).await?;
        let nebius = Nebius::start(Arc::clone(&shared)).await?;
        let emulators: Vec<Arc<dyn Emulator>> =
            vec![runpod.clone(), vast.emulator(), verda.emulator(), gcp.emulator(), nebius.emulator()];
        let control = match with_control {
            true => Some(Control::start(Arc::clone(&shared), Arc::clone(&runpod), emulators.clone()).await?),
            false => None,
        };
        let ticking = emulators.clone();
        let ticker = tokio::spawn(async move {
            // Ends with the sandbox, which aborts it.
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                ticking.iter().for_each(|emulator| emulator.tick());
            }
        });
        Ok(Sandbox {
            shared,
            emulators,
            runpod,
            runpod_plug,
            runpod_key,
            foreign,
            vast,
            verda,
            gcp,
            nebius,
            control,
            ticker,
        })
    }

    /// Base URL of RunPod; paths begin with `/v2`.
    pub fn runpod_endpoint(&self) -> String {
        self.runpod_plug.endpoint()
    }

    /// API key of the first RunPod account, another one at every start.
    pub fn runpod_key(&self) -> &str {
        &self.runpod_key
    }

    /// Opens another RunPod account with no pods and returns its key.
    pub fn add_runpod_account(&self) -> String {
        self.runpod.add_account()
    }

    /// The label of the account with this key, as the ledger and the records have it.
    pub fn runpod_account(&self, key: &str) -> Option<String> {
        self.runpod.label(key)
    }

    /// Replaces the SSH keys that an account has on file.
    pub fn set_runpod_ssh_keys(&self, key: &str, ssh_keys: Vec<String>) {
        self.runpod.set_ssh_keys(key, ssh_keys);
    }

    /// Replaces an account's API key, as after a rotation; its pods stay.
    pub fn rotate_runpod_key(&self, key: &str) -> Option<String> {
        self.runpod.rotate(key)
    }

    /// Takes RunPod off the network: its port refuses connections, its machines go on.
    pub fn unplug_runpod(&self) {
        self.runpod_plug.unplug();
    }

    /// Puts RunPod back on the port it had.
    ///
    /// # Errors
    ///
    /// When the port is taken by now.
    pub async fn plug_runpod(&self) -> io::Result<()> {
        self.runpod_plug.plug().await
    }

    /// Vast: its endpoint, its accounts, its instances.
    pub fn vast(&self) -> &Vast {
        &self.vast
    }

    /// Verda: its endpoint, its accounts, its instances, and what is left of them.
    pub fn verda(&self) -> &Verda {
        &self.verda
    }

    /// Google Cloud: its endpoint, its projects, its instances, and what is left of them.
    pub fn gcp(&self) -> &Gcp {
        &self.gcp
    }

    /// Port of sshd on every machine that is an address alone (Verda, Google Cloud, Nebius): 22 where the system allows it.
    pub fn vm_ssh_port(&self) -> u16 {
        self.shared.addresses.port()
    }

    /// Nebius: its endpoint, its accounts, its instances, and what is left of them.
    pub fn nebius(&self) -> &Nebius {
        &self.nebius
    }

    /// Base URL of the control path, with a random part that keeps others out; empty when it is off.
    pub fn control_endpoint(&self) -> String {
        self.control.as_ref().map(Control::endpoint).unwrap_or_default()
    }

    /// Every machine ever made.
    pub fn ledger(&self) -> Vec<LedgerEntry> {
        self.shared.ledger.all()
    }

    /// The machines that exist now, without those of somebody else's that were there from the start.
    pub fn alive(&self) -> Vec<LedgerEntry> {
        self.made().into_iter().filter(|entry| entry.alive).collect()
    }

    /// Every machine that was made since the start, alive or not.
    pub fn made(&self) -> Vec<LedgerEntry> {
        let strangers = self.strangers();
        self.ledger().into_iter().filter(|entry| !strangers.contains(&entry.id.as_str())).collect()
    }

    /// The ids of the machines of somebody else that were there from the start, one for each cloud.
    pub fn strangers(&self) -> Vec<&str> {
        vec![
            &self.foreign,
            self.vast.foreign_instance(),
            self.verda.foreign_instance(),
            self.gcp.foreign_instance(),
            self.nebius.foreign_instance(),
        ]
    }

    /// The foreign pod that was there from the start.
    pub fn foreign_pod(&self) -> &str {
        &self.foreign
    }

    /// Every request so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.records.all()
    }

    /// The requests that a correct client never sends.
    pub fn rejected(&self) -> Vec<Recorded> {
        self.requests().into_iter().filter(|request| request.rejected.is_some()).collect()
    }

    /// Sets one more fault.
    pub fn add_fault(&self, fault: Fault) {
        self.shared.faults.add(fault);
    }

    /// Takes all faults away.
    pub fn clear_faults(&self) {
        self.shared.faults.clear();
    }

    /// Faults that can still be played.
    pub fn faults(&self) -> Vec<Fault> {
        self.shared.faults.all()
    }

    /// Moves the clock ahead and lets happen what is due then.
    pub fn step(&self, by: Duration) {
        let _inside = self.shared.runtime.enter();
        self.shared.clock.step(by);
        self.emulators.iter().for_each(|emulator| emulator.tick());
    }

    /// Puts a pod without any marks into an account: somebody else's, which must stay. Returns its id.
    ///
    /// # Errors
    ///
    /// When no account has this key or label.
    pub fn set_foreign_pod(&self, account: &str, name: &str) -> io::Result<String> {
        self.runpod.add_pod(account, &PodSeed::foreign(name))
    }

    /// Puts a pod into an account as if another computer had made it. Returns its id.
    ///
    /// # Errors
    ///
    /// When no account has this key or label, or its machine cannot be made.
    pub fn add_pod(&self, account: &str, seed: &PodSeed) -> io::Result<String> {
        let _inside = self.shared.runtime.enter();
        self.runpod.add_pod(account, seed)
    }

    /// Removes a pod as if in the web console. False when there is none with this id.
    pub fn remove_pod(&self, id: &str) -> bool {
        self.runpod.remove(id)
    }

    /// Gives a machine another host key from the next connection on. False when it has no machine.
    pub fn swap_host_key(&self, id: &str) -> bool {
        self.emulators.iter().any(|emulator| emulator.swap_host_key(id))
    }

    /// The home directory of a machine, at any cloud.
    pub fn machine_home(&self, id: &str) -> Option<PathBuf> {
        self.emulators.iter().find_map(|emulator| emulator.home(id))
    }

    /// Time since a cloud was last asked for anything; zero while anybody is connected to a machine, or left something
    /// running there.
    pub fn idle(&self) -> Duration {
        if self.emulators.iter().any(|emulator| emulator.busy()) {
            return Duration::ZERO;
        }
        let since = self.shared.records.last().unwrap_or_else(|| self.shared.clock.started());
        Duration::try_from(jiff::Timestamp::now().duration_since(since)).unwrap_or(Duration::ZERO)
    }

    /// Ends it, its machines and all their processes.
    pub async fn stop(self) {
        drop(self);
        // What was aborted gets the chance to let go of its sockets.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.ticker.abort();
        self.emulators.iter().for_each(|emulator| emulator.halt());
    }
}

/// Takes a lock; what a panicked thread left is used as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
