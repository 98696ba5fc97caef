//! RunPod: a pod is a GPU container with ssh as root.
//!
//! Talks to the REST API v2 (docs.runpod.io/api-reference-v2/overview; the document itself is at
//! `api.runpod.io/v2/openapi.json`). What is special here:
//!
//! - An offer is a GPU, a tier and a data centre that has it in stock now. The catalogue is asked once for each tier, GPU
//!   count and CUDA floor (`offers.rs`, `rows.rs`).
//! - The host's CUDA must not be older than the image's, or the container never starts and bills all the same
//!   (github.com/runpod/containers/issues/98). So the floor goes into every request (`image.rs`).
//! - There are no tags: our mark is one environment variable of the pod, which the list returns (`find.rs`).
//! - There is no idempotency key: a create whose answer is lost is looked for in the list.
//! - Only `ssh.direct` is an address. The proxy takes no commands and no files; a host without a public address never gets
//!   `ssh.direct` (`states.rs`).
//! - The host key's fingerprints stand in the container's log (`host_keys.rs`).
//! - The account's list of ssh keys is read, never written: the API can only replace it as a whole (`account_keys.rs`).

mod account_keys;
#[cfg(test)]
mod bodies;
mod client;
mod create;
pub mod credentials;
mod delete;
mod errors;
mod find;
mod host_keys;
mod image;
mod inspect;
mod instance;
mod offers;
mod places;
mod recheck;
mod rows;
#[cfg(test)]
mod samples;
mod states;
#[cfg(test)]
mod tests;
mod wire;

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OnceCell;

pub use self::instance::Tier;

use super::{
    Capabilities, Cloud, Created, Deletion, Found, Identity, Journal, Look, OfferBatch, Pace, Preview,
    Recheck, Result, Setup, Support, Which,
};
use crate::http;
use crate::model::account::{AccountId, CloudKind};
use crate::model::handle::Handle;
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::secret::Secret;
use crate::model::spec::MachineSpec;
use crate::model::want::Want;

/// Where RunPod answers, without `/v2`.
pub const DEFAULT_ENDPOINT: &str = "https://api.runpod.io";

/// The longest that RunPod may take to place a pod; its own samples wait as long (docs.runpod.io/api-reference-v2).
const CREATE_TIMEOUT: Duration = Duration::from_secs(60);

/// What the account's owner set for RunPod.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The API key.
    pub key: Secret,
    /// The image in place of ours, from `[runpod] image`, else from `defaults.image`. The `--image` of one command comes with
    /// the request and wins over this one.
    pub image: Option<String>,
    /// Which tiers to ask; both unless the owner narrowed it.
    pub tiers: Vec<Tier>,
    /// Whether the keys registered on the account may log in too.
    pub account_keys: bool,
}

/// One account at RunPod.
#[derive(Debug)]
pub struct RunPod {
    setup: Setup,
    settings: Settings,
    capabilities: Capabilities,
    api: client::Api,
    account_keys: OnceCell<account_keys::AccountKeys>,
    places: OnceCell<places::Places>,
    no_places: places::Places,
    watch: inspect::Watch,
}

impl RunPod {
    /// Returns the account. No request.
    pub fn new(setup: Setup, settings: Settings, http: http::Client) -> RunPod {
        RunPod {
            capabilities: setup.adjust(capabilities()),
            api: client::Api::new(&setup, settings.key.clone(), http),
            setup,
            settings,
            account_keys: OnceCell::new(),
            places: OnceCell::new(),
            no_places: places::Places::default(),
            watch: inspect::Watch::default(),
        }
    }
}

/// Returns what RunPod can do.
pub fn capabilities() -> Capabilities {
    Capabilities {
        cloud: CloudKind::Runpod,
        spot: Support::No("RunPod's API has no interruptible pods"),
        cpu_only: Support::No("gpuprov rents no GPU-less pods at RunPod"),
        image: Support::Yes,
        ports: Support::No("published ports are random at RunPod"),
        port_cidr: Support::No("published ports are random at RunPod"),
        cluster: Support::No("a container has no systemd"),
        container: true,
        free: false,
        min_disk_gb: 1,
        max_disk_gb: None,
        reserves_env: create::reserves,
        bills_stopped: false,
        carries_ram_and_vcpus: true,
        boot_budget: Duration::from_secs(15 * 60),
        own_image_extra: Duration::ZERO,
        poll: Pace {
            first: Duration::from_secs(2),
            first_for: Duration::from_secs(30),
            then: Duration::from_secs(5),
        },
        listing_lag: client::CREATE_WITHIN + Duration::from_secs(60),
        key_grace: Duration::from_secs(60),
        host_key_grace: Duration::ZERO,
    }
}

#[async_trait]
impl Cloud for RunPod {
    fn account(&self) -> &AccountId {
        &self.setup.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn is_roomy(&self) -> bool {
        self.api.is_roomy()
    }

    fn identity(&self) -> Identity {
        Identity {
            endpoint: self.setup.endpoint.clone(),
            // The API tells nothing about who a key is.
            provider: None,
            secret_mark: self.setup.secret_mark.clone(),
            hint: self.settings.key.hint(),
        }
    }

    async fn check(&self) -> Result<Identity> {
        self.api.check().await?;
        Ok(self.identity())
    }

    async fn offers(&self, want: &Want) -> Result<OfferBatch> {
        offers::offers(self, want).await
    }

    async fn recheck(&self, key: &OfferKey, want: &Want) -> Result<Recheck> {
        recheck::recheck(self, key, want).await
    }

    async fn create(
        &self,
        offer: &Offer,
        spec: &MachineSpec,
        mark: &Mark,
        journal: &dyn Journal,
    ) -> Result<Created> {
        create::create(self, offer, spec, mark, journal).await
    }

    fn preview(&self, offer: &Offer, spec: &MachineSpec, mark: &Mark) -> Preview {
        create::preview(self, offer, spec, mark)
    }

    async fn inspect(&self, handle: &Handle) -> Result<Look> {
        inspect::inspect(self, handle).await
    }

    async fn find(&self, which: &Which) -> Result<Vec<Found>> {
        find::find(self, which).await
    }

    async fn delete(&self, handle: &Handle) -> Result<Deletion> {
        delete::delete(self, handle).await
    }
}
