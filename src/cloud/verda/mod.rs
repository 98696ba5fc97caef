//! Verda (formerly DataCrunch): a VM with root, on demand or spot, with or without GPUs.
//!
//! Talks to the public API v1 (`api.verda.com/v1/docs`; the document itself is at `api.verda.com/v1/openapi.json`). What is
//! special here:
//!
//! - Client id and secret are exchanged for a token of an hour, which is kept on disk (`client.rs`, `http/token.rs`).
//! - An offer is an instance type that a location has in stock now. On-demand and spot stock are two lists; prices are
//!   strings, GPU memory is that of all GPUs (`offers.rs`, `rows.rs`).
//! - The image depends on the type, under two naming schemes; a wrong one is refused (`image.rs`).
//! - Each machine has its own ssh key object, made before it and deleted with it (`create.rs`, `delete.rs`).
//! - Machine and OS volume carry our marks as tags, the key as its name (`marks.rs`, `find.rs`).
//! - A delete names the volumes and asks for good; what stays all the same is deleted by itself (`delete.rs`).
//! - A spot machine that is taken away is gone; only the journal tells why (`inspect.rs`).
//! - There is no firewall: every port of the public address is open.

#[cfg(test)]
mod bodies;
mod client;
mod create;
pub mod credentials;
mod delete;
mod errors;
mod find;
mod image;
mod inspect;
mod marks;
mod offers;
mod places;
mod prices;
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

use self::credentials::Credentials;
use self::wire::told;
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
use crate::model::spec::MachineSpec;
use crate::model::want::Want;

/// Where Verda answers, without `/v1`.
pub const DEFAULT_ENDPOINT: &str = "https://api.verda.com";

/// The port of sshd on Verda's machines.
pub const SSH_PORT: u16 = 22;

/// The longest that a create may take: one was seen to hang for more than 30 s (forum.verda.com/t/64).
const CREATE_TIMEOUT: Duration = Duration::from_secs(90);

/// How long after the end of a create its machine may still turn up in the list.
const LISTING_LAG: Duration = Duration::from_secs(120);

/// The smallest OS disk: the provider's own default, and what others take for its floor.
const MIN_DISK_GB: u32 = 50;

/// What the account's owner set for Verda.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Client id and secret.
    pub credentials: Credentials,
    /// The port of sshd on machines, [`SSH_PORT`] unless the owner said otherwise.
    pub ssh_port: u16,
}

/// One account at Verda.
#[derive(Debug)]
pub struct Verda {
    setup: Setup,
    settings: Settings,
    capabilities: Capabilities,
    api: client::Api,
    places: OnceCell<places::Places>,
    disk_price: OnceCell<prices::DiskPrice>,
    watch: inspect::Watch,
}

impl Verda {
    /// Returns the account. No request.
    pub fn new(setup: Setup, settings: Settings, http: http::Client) -> Verda {
        Verda {
            capabilities: setup.adjust(capabilities()),
            api: client::Api::new(&setup, settings.credentials.clone(), http),
            setup,
            settings,
            places: OnceCell::new(),
            disk_price: OnceCell::new(),
            watch: inspect::Watch::default(),
        }
    }

    /// Returns what machines are read with.
    fn frame(&self) -> states::Frame<'_> {
        states::Frame {
            account: &self.setup.account,
            loopback: self.setup.loopback,
            ssh_port: self.settings.ssh_port,
        }
    }
}

/// Returns what Verda can do.
pub fn capabilities() -> Capabilities {
    let pace = Duration::from_secs(5);
    Capabilities {
        cloud: CloudKind::Verda,
        spot: Support::Yes,
        cpu_only: Support::Yes,
        image: Support::No("Verda boots its own images"),
        ports: Support::Note("there is no firewall: every port is open"),
        port_cidr: Support::No("there is no firewall: every port is open to everybody"),
        cluster: Support::Yes,
        container: false,
        free: false,
        min_disk_gb: MIN_DISK_GB,
        max_disk_gb: Some(create::MOST_DISK_GB),
        reserves_env: |_| false,
        // Only the end of a machine ends its bill (docs.verda.com, pricing and billing).
        bills_stopped: true,
        // Types tell both.
        carries_ram_and_vcpus: false,
        boot_budget: Duration::from_secs(15 * 60),
        own_image_extra: Duration::ZERO,
        poll: Pace { first: pace, first_for: Duration::ZERO, then: pace },
        listing_lag: CREATE_TIMEOUT + LISTING_LAG,
        key_grace: Duration::from_secs(60),
        host_key_grace: Duration::ZERO,
    }
}

#[async_trait]
impl Cloud for Verda {
    fn account(&self) -> &AccountId {
        &self.setup.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn is_roomy(&self) -> bool {
        // Windows are counted for each path; there is no quicker pace that they would have to leave room for.
        true
    }

    fn identity(&self) -> Identity {
        Identity {
            endpoint: self.setup.endpoint.clone(),
            provider: None,
            secret_mark: self.setup.secret_mark.clone(),
            hint: self.settings.credentials.hint(),
        }
    }

    async fn check(&self) -> Result<Identity> {
        self.api.instances("checking the credentials").await?;
        // Credentials belong to one project, and only the journal (beta) tells which.
        let journal = self.api.journal().await.unwrap_or_default();
        let project = journal.iter().find_map(|event| told(event.project_id.as_ref()));
        let provider = project.filter(|project| client::is_id(project)).map(str::to_owned);
        Ok(Identity { provider, ..self.identity() })
    }

    async fn offers(&self, want: &Want) -> Result<OfferBatch> {
        offers::offers(self, want).await
    }

    async fn recheck(&self, key: &OfferKey, _: &Want) -> Result<Recheck> {
        recheck::recheck(self, key).await
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
