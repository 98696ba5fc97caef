//! The `Cloud` trait and the clouds behind it.
//!
//! One value is one account. Each method is one step: it never waits for a machine, never prints, and everything but `create`
//! can be repeated safely. Only a cloud's own folder knows its wire format; it uses `model`, `http` and `grpc`, and never
//! another cloud.
//!
//! # How to add a cloud
//!
//! 1. A folder with the same files as `runpod/`: `mod.rs` (the type and its `impl Cloud`, each method a few lines that
//!    delegate), `credentials.rs`, `client.rs`, `wire.rs`, `offers.rs`, `create.rs`, `errors.rs`, `states.rs`.
//! 2. Its `Capabilities`: whatever cannot be honoured is refused from there, before any request that costs.
//! 3. A line in `accounts/registry.rs`, its table in `state/config.rs`, its variables in `state/env.rs`.
//! 4. An emulator in `sandbox/`, written from the official spec a second time, and its catalogue with the known traps.
//! 5. Its row in the suites under `tests/it/`, its page under `docs/clouds/`.

pub mod capabilities;
pub mod error;
pub mod gcp;
pub mod lenient;
pub mod nebius;
pub mod runpod;
pub mod vast;
pub mod verda;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use capabilities::{Capabilities, Pace, Support};
pub use error::{Error, ErrorKind, Limit, Reached, Result};

pub use crate::http::pace::patiently;

use crate::model::account::AccountId;
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::model::machine::{MachineState, SshAddress};
use crate::model::mark::{Claim, Installation, Mark};
use crate::model::money::Usd;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;
use crate::model::want::Want;

/// One account at one cloud.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Returns the account's id.
    fn account(&self) -> &AccountId;

    /// Returns what the cloud can do. No request.
    fn capabilities(&self) -> &Capabilities;

    /// Returns who the credentials are, as far as it can be told without a request.
    fn identity(&self) -> Identity;

    /// Whether the cloud's rate windows leave room for the quick pace of looks.
    fn is_roomy(&self) -> bool;

    /// Asks the cloud who the credentials are; fails with `auth` or `forbidden` when they are not taken.
    async fn check(&self) -> Result<Identity>;

    /// Asks what the account lacks for being of use: rights, money, quota. Nothing where the cloud tells none of it.
    async fn lacks(&self) -> Result<Vec<Lack>> {
        Ok(Vec::new())
    }

    /// Asks for live offers. The whole request shapes the rows (disk, count, CUDA floor, image); narrowing by it is an
    /// optimisation, as the plan filters again.
    async fn offers(&self, want: &Want) -> Result<OfferBatch>;

    /// Asks again for the one offer that `key` names, right before a create. No reservation.
    async fn recheck(&self, key: &OfferKey, want: &Want) -> Result<Recheck>;

    /// Makes the machine. Whatever an answer says was made, also a failing answer, goes to `journal` at once.
    async fn create(
        &self,
        offer: &Offer,
        spec: &MachineSpec,
        mark: &Mark,
        journal: &dyn Journal,
    ) -> Result<Created>;

    /// Returns the request that `create` would send, with secrets left out, for `--dry-run`.
    fn preview(&self, offer: &Offer, spec: &MachineSpec, mark: &Mark) -> Preview;

    /// Looks at the machine once, the create's own operation included. A machine that does not exist is a look with the
    /// state `gone`, not an error.
    async fn inspect(&self, handle: &Handle) -> Result<Look>;

    /// Gives the machine our public key once more, where a cloud may have lost it; called once, when logins are refused for
    /// longer than usual. Nothing by default.
    async fn readmit(&self, _handle: &Handle, _public_key: &str) -> Result<()> {
        Ok(())
    }

    /// Lists what carries our marks, all pages.
    async fn find(&self, which: &Which) -> Result<Vec<Found>>;

    /// Does the next step of deleting the machine and its side resources. Deleting what never was is `Gone`.
    async fn delete(&self, handle: &Handle) -> Result<Deletion>;
}

/// All accounts that a command may ask.
pub type Accounts = Vec<Arc<dyn Cloud>>;

/// Writes down what a cloud made, synced to disk before the next request goes out.
pub trait Journal: Send + Sync {
    /// Notes a machine or side resource. An error stops the create; what was made is then rolled back.
    fn made(&self, resource: &Resource) -> std::io::Result<()>;
}

/// Who some credentials are, as far as it can be told. A stored format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The base address that is asked.
    pub endpoint: String,
    /// The cloud's own id of the account, where it tells one.
    pub provider: Option<String>,
    /// 16 hexadecimal digits that the long-lived part of the credentials gives under a key of this computer.
    pub secret_mark: String,
    /// What tells the credentials apart for people, without being secret.
    pub hint: String,
}

impl Identity {
    /// Whether both are certainly one account at the provider. Everything else is unproven, never "different".
    pub fn is_same(&self, other: &Identity) -> bool {
        self.endpoint == other.endpoint
            && match (&self.provider, &other.provider) {
                (Some(one), Some(two)) => one == two,
                _ => self.secret_mark == other.secret_mark,
            }
    }
}

/// Something that an account lacks, although its credentials are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What kind of failure it will be.
    pub kind: ErrorKind,
    /// In words.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

/// The answer to a request for offers.
#[derive(Debug, Default)]
pub struct OfferBatch {
    /// The rows.
    pub offers: Vec<Offer>,
    /// What the user should know: rows without a usable price, rows hidden by a floor, a list that was cut.
    pub notes: Vec<String>,
    /// GPU names that the cloud knows, in stock or not, in our spelling: an asked name among them is no typing error.
    pub known_gpus: Vec<String>,
    /// Exact types that the cloud knows, in stock or not, as far as they can be asked for; none where it cannot tell, and then
    /// nothing is said about typing errors in types.
    pub known_types: Option<Vec<String>>,
    /// Regions and zones that the cloud knows, in stock or not.
    pub known_places: Vec<String>,
}

/// What became of an offer since it was listed.
#[derive(Debug)]
pub enum Recheck {
    /// It can be had, as this row says now; the price may differ in both directions.
    Offered(Box<Offer>),
    /// It cannot.
    Gone(String),
}

/// What a create made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// How to look at it and delete it.
    pub handle: Handle,
    /// What the user should know about it: other keys that may log in, for example.
    pub notes: Vec<String>,
}

/// The request that a create would send.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preview {
    /// HTTP method, or the name of the gRPC method.
    pub method: String,
    /// Where it goes.
    pub url: String,
    /// The body, secrets left out.
    pub body: Value,
}

/// What a machine's host key is known to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostKeys {
    /// Nothing is known: the first contact is trusted.
    #[default]
    Unknown,
    /// Public keys, `TYPE BASE64`.
    Keys(Vec<String>),
    /// Fingerprints, `SHA256:...`.
    Fingerprints(Vec<String>),
}

/// What the cloud says it made; each part only where it tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sold {
    /// Per hour, whole machine, as the cloud bills it now.
    pub price_per_hour: Option<Usd>,
    /// Whether the price counts the disk.
    pub price_has_disk: Option<bool>,
    /// Spot or on demand.
    pub spot: Option<bool>,
    /// The GPU as the cloud spells it.
    pub gpu_raw: Option<String>,
    /// How many.
    pub gpu_count: Option<u32>,
    /// Memory in GB, whole machine.
    pub ram_gb: Option<f64>,
    /// vCPUs, whole machine.
    pub vcpus: Option<f64>,
    /// Disk in GB.
    pub disk_gb: Option<u32>,
    /// The cloud's exact type.
    pub instance_type: Option<String>,
    /// The cloud's region word.
    pub region: Option<String>,
    /// The zone or data centre.
    pub zone: Option<String>,
}

/// One look at a machine.
#[derive(Debug)]
pub struct Look {
    /// What it is doing.
    pub state: MachineState,
    /// Where ssh will answer, once the cloud tells: the most preferred address first, further ones as fall-backs.
    pub ssh: Vec<SshAddress>,
    /// The cloud's own words for the state, for progress lines.
    pub words: Option<String>,
    /// What is known of its host key.
    pub host_keys: HostKeys,
    /// The create's own late failure, or the reason why it will never come up. [`Reached::No`] in it says that nothing was
    /// made after all.
    pub failed: Option<Box<Error>>,
    /// What the cloud says it made.
    pub sold: Sold,
    /// What the machine costs per hour in its present state, where the cloud tells.
    pub costs_now: Option<Usd>,
    /// When the cloud itself will delete the machine, as it says.
    pub ends_at: Option<Timestamp>,
}

impl Look {
    /// Returns a look that says nothing but a state.
    pub fn of(state: MachineState) -> Self {
        Look {
            state,
            ssh: Vec::new(),
            words: None,
            host_keys: HostKeys::Unknown,
            failed: None,
            sold: Sold::default(),
            costs_now: None,
            ends_at: None,
        }
    }
}

/// What to look for in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// One attempt of one installation.
    Claim(Installation, Claim),
    /// Everything of an installation.
    Installation(Installation),
    /// Everything that carries the marks, whoever made it.
    AnyMarked,
}

impl Which {
    /// Whether a thing with this mark is looked for in the account called `account`. The account mark counts only for one's
    /// own installation: two accounts may be one at the provider, and neither may touch the other's.
    pub fn admits(&self, mark: &Mark, account: &str) -> bool {
        match self {
            Which::Claim(installation, claim) => {
                mark.claim == *claim && mark.installation == *installation && mark.account == account
            }
            Which::Installation(installation) => {
                mark.installation == *installation && mark.account == account
            }
            Which::AnyMarked => true,
        }
    }
}

/// One thing in the cloud's list that carries our marks.
#[derive(Debug)]
pub struct Found {
    /// Machine, disk, key, script or rule.
    pub kind: ResourceKind,
    /// How to look at it and delete it.
    pub handle: Handle,
    /// The cloud's own name of it.
    pub cloud_name: String,
    /// Whose it is.
    pub mark: Mark,
    /// When it was made, as the cloud tells.
    pub since: Option<Timestamp>,
    /// What the list says about it.
    pub look: Look,
}

/// How far a delete is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Nothing of it is left, or never was.
    Gone,
    /// On its way; ask again.
    Pending(String),
}

/// What a cloud needs beside its credentials, the same for all.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The account's id.
    pub account: AccountId,
    /// The base address, without a slash at the end.
    pub endpoint: String,
    /// Whether the endpoint is on loopback: offers and machines are then labelled `sandbox`.
    pub loopback: bool,
    /// How long one answer may take.
    pub timeout: Duration,
    /// 16 hexadecimal digits standing for the credentials ([`Identity::secret_mark`]).
    pub secret_mark: String,
    /// Where answers may be kept for a while; it may be deleted at any time. None: nothing is kept.
    pub cache: Option<PathBuf>,
    /// Replaces the listing lag of the capabilities (`[wait] grace`).
    pub grace: Option<Duration>,
    /// Replaces every pace of the capabilities (`[wait] poll`).
    pub poll: Option<Duration>,
    /// Replaces the boot budget of the capabilities (`[wait] boot_timeout`, `--boot-timeout`).
    pub boot_timeout: Option<Duration>,
}

impl Setup {
    /// Applies the settings that replace every cloud's own.
    pub fn adjust(&self, mut capabilities: Capabilities) -> Capabilities {
        if let Some(grace) = self.grace {
            capabilities.listing_lag = grace;
        }
        if let Some(poll) = self.poll {
            capabilities.poll = Pace { first: poll, first_for: Duration::ZERO, then: poll };
        }
        if let Some(budget) = self.boot_timeout {
            capabilities.boot_budget = budget;
            capabilities.own_image_extra = Duration::ZERO;
        }
        capabilities
    }
}

impl fmt::Debug for dyn Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cloud({})", self.account())
    }
}
