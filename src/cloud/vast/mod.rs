//! Vast: a container on one rented host of a marketplace, with ssh as root.
//!
//! Talks to the REST API (docs.vast.ai/api-reference; the published document is wrong in places, `tests/data/vast-corrections.json`
//! lists where). What is special here:
//!
//! - An offer is one slice of one machine (an "ask"), to be had once, and gone the next second. So the id of an offer holds
//!   ask and machine, and the create itself is the real test (`cancel_unavail`).
//! - Searches are counted: ten in a minute and a number a day. They are narrowed to the names asked for, paged by price, and
//!   kept for a minute on disk (`search.rs`); filters are not always honoured, so every row is looked at again (`rows.rs`).
//! - A bid that is sent without its price becomes an on-demand machine without a word (github.com/vast-ai/vast-cli/pull/403):
//!   the price goes into every create of a spot offer, and what was made is compared with what was agreed.
//! - Failing answers can carry a new contract, a stopped machine whose disk is billed; good ones can say `success: false`; a
//!   wrong key is a 404 (`errors.rs`, `create.rs`).
//! - There are no tags: our mark is one environment variable, which the list returns, and the label (`find.rs`).
//! - There is no idempotency key: a create whose answer is lost is looked for in the list. The old list is retired and
//!   answers as if there were nothing (github.com/skypilot-org/skypilot/issues/10517); only the new one is asked.
//! - The public key is attached to the machine over the API; the account's own keys are never touched.

mod addresses;
#[cfg(test)]
mod bodies;
mod client;
mod create;
pub mod credentials;
mod delete;
mod env;
mod errors;
mod find;
mod image;
mod inspect;
mod instance;
mod names;
mod offers;
mod places;
mod prices;
mod recheck;
mod rows;
#[cfg(test)]
mod samples;
mod search;
mod states;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Capabilities, Cloud, Created, Deletion, ErrorKind, Found, Identity, Journal, Lack, Look, OfferBatch,
    Pace, Preview, Recheck, Result, Setup, Support, Which,
};
use crate::http;
use crate::http::cache::Cache;
use crate::model::account::{AccountId, CloudKind};
use crate::model::handle::Handle;
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::secret::Secret;
use crate::model::spec::MachineSpec;
use crate::model::want::{Cuda, Want};

/// Where Vast answers, without `/api`.
pub const DEFAULT_ENDPOINT: &str = "https://console.vast.ai";

/// Smallest disk in GB (docs.vast.ai/api-reference, `createInstance`).
const MIN_DISK_GB: u32 = 8;

/// How long one answer to a create may take.
const CREATE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a search is kept on disk.
const SEARCH_KEPT: Duration = Duration::from_secs(60);

/// Images of the user's are in no host's cache, and many hosts have slow links: 10 to 60 minutes were seen
/// (docs.vast.ai, instances FAQ).
const OWN_IMAGE_EXTRA: Duration = Duration::from_secs(15 * 60);

/// What the account's owner set for Vast.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The API key.
    pub key: Secret,
    /// The image in place of ours, from `[vast] image`, else from `defaults.image`. The `--image` of one command comes with
    /// the request and wins over this one.
    pub image: Option<String>,
    /// The least reliability of a host, 0 to 1.
    pub min_reliability: f64,
    /// Whether only verified hosts are taken.
    pub verified: bool,
    /// Whether only hosts in data centres are taken.
    pub datacenter: bool,
}

impl Settings {
    /// Returns the settings of an account whose owner chose nothing but the key.
    pub fn new(key: Secret) -> Self {
        Settings { key, image: None, min_reliability: 0.95, verified: true, datacenter: false }
    }
}

/// One account at Vast.
#[derive(Debug)]
pub struct Vast {
    setup: Setup,
    settings: Settings,
    capabilities: Capabilities,
    api: client::Api,
    searches: Cache,
    /// Vast's own id of the user, once it was told.
    user: OnceLock<String>,
    watch: inspect::Watch,
}

impl Vast {
    /// Returns the account. No request.
    pub fn new(setup: Setup, settings: Settings, http: http::Client) -> Vast {
        let mut capabilities = setup.adjust(capabilities());
        if settings.image.is_some() {
            capabilities.boot_budget = capabilities.boot_budget.saturating_add(capabilities.own_image_extra);
            capabilities.own_image_extra = Duration::ZERO;
        }
        let folder = setup.cache.as_ref().map(|cache| cache.join("vast"));
        Vast {
            capabilities,
            api: client::Api::new(&setup, settings.key.clone(), http),
            searches: Cache::new(folder, SEARCH_KEPT),
            setup,
            settings,
            user: OnceLock::new(),
            watch: inspect::Watch::default(),
        }
    }
}

/// Returns what Vast can do.
pub fn capabilities() -> Capabilities {
    Capabilities {
        cloud: CloudKind::Vast,
        spot: Support::Yes,
        cpu_only: Support::No("Vast rents GPU machines only"),
        image: Support::Yes,
        ports: Support::No("public ports are random at Vast"),
        port_cidr: Support::No("public ports are random at Vast"),
        cluster: Support::No("a container has no systemd"),
        container: true,
        free: false,
        min_disk_gb: MIN_DISK_GB,
        max_disk_gb: None,
        reserves_env: create::reserves,
        bills_stopped: false,
        carries_ram_and_vcpus: false,
        boot_budget: Duration::from_secs(15 * 60),
        own_image_extra: OWN_IMAGE_EXTRA,
        poll: Pace { first: Duration::from_secs(5), first_for: Duration::ZERO, then: Duration::from_secs(5) },
        listing_lag: CREATE_TIMEOUT.saturating_add(Duration::from_secs(60)),
        key_grace: Duration::from_secs(5 * 60),
        host_key_grace: Duration::ZERO,
    }
}

#[async_trait]
impl Cloud for Vast {
    fn account(&self) -> &AccountId {
        &self.setup.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn is_roomy(&self) -> bool {
        true
    }

    fn identity(&self) -> Identity {
        Identity {
            endpoint: self.setup.endpoint.clone(),
            provider: self.user.get().cloned(),
            secret_mark: self.setup.secret_mark.clone(),
            hint: self.settings.key.hint(),
        }
    }

    async fn check(&self) -> Result<Identity> {
        self.learn_user().await?;
        Ok(self.identity())
    }

    async fn lacks(&self) -> Result<Vec<Lack>> {
        let credit = self.learn_user().await?.filter(|credit| *credit <= 0.0);
        let lack = credit.map(|credit| Lack {
            kind: ErrorKind::Balance,
            message: format!("the account has ${credit:.2} of credit, so that nothing can be rented"),
            fix: "add credit at https://cloud.vast.ai/billing/".to_owned(),
        });
        Ok(lack.into_iter().collect())
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

    async fn readmit(&self, handle: &Handle, public_key: &str) -> Result<()> {
        self.api.attach(&handle.id, public_key).await
    }

    async fn find(&self, which: &Which) -> Result<Vec<Found>> {
        find::find(self, which).await
    }

    async fn delete(&self, handle: &Handle) -> Result<Deletion> {
        delete::delete(self, handle).await
    }
}

/// Returns the disk that Vast is sent.
fn disk_gb(wanted: u32) -> u32 {
    wanted.max(MIN_DISK_GB)
}

impl Vast {
    /// Chooses the image: that of the request, that of the settings, or ours.
    fn choose(&self, image: Option<&str>, cuda: Option<Cuda>, host: Option<Cuda>) -> image::Choice {
        image::choose(image.or(self.settings.image.as_deref()), cuda, host)
    }

    /// Asks who the key belongs to; remembers the user's id. Returns the credit in dollars, where it is told.
    async fn learn_user(&self) -> Result<Option<f64>> {
        let user = self.api.user().await?;
        if let Some(id) = user.id {
            let _ = self.user.set(id);
        }
        Ok(user.credit)
    }
}
