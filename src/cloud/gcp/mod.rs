//! Google Cloud (Compute Engine): a VM with root through `sudo`, on demand or spot, with or without GPUs.
//!
//! Talks to the Compute API v1 (discovery document at `compute.googleapis.com/$discovery/rest?version=v1`). What is special
//! here:
//!
//! - A service account's key signs its own tokens; workload identity federation exchanges one (`credentials/`).
//! - There is no list of what is in stock, and no price in the API: offers are machine types by zones, with the prices of two
//!   public catalogues (`offers.rs`, `prices/`).
//! - A create is answered with an operation. That nothing can be had, and most other refusals, comes with the operation some
//!   seconds later (`inspect.rs`, `faults.rs`).
//! - The same request id is the same create, and names are unique in a zone: a lost answer is settled at once (`create.rs`).
//! - Machine and boot disk carry our marks as labels, firewall rules in their description (`marks.rs`, `find.rs`).
//! - The machine publishes its host keys, so that the first login is a verified one (`inspect.rs`).
//! - A spot machine that is taken away deletes itself; only a system operation tells why (`inspect.rs`).
//! - Ports are closed: a firewall rule opens those that were asked for, for this machine alone (`ports.rs`).

mod client;
mod create;
pub mod credentials;
mod delete;
mod errors;
mod faults;
mod find;
mod image;
mod inspect;
mod lists;
mod marks;
mod mend;
mod names;
mod offers;
mod order;
mod places;
mod ports;
mod prices;
mod quotas;
mod recheck;
mod rows;
#[cfg(test)]
mod samples;
mod shapes;
mod states;
#[cfg(test)]
mod tests;
mod verdicts;
mod watch;
mod wire;

use std::time::Duration;

use async_trait::async_trait;

use self::credentials::Credentials;
use super::{
    Capabilities, Cloud, Created, Deletion, ErrorKind, Found, Identity, Journal, Lack, Look, OfferBatch,
    Pace, Preview, Reached, Recheck, Result, Setup, Support, Which,
};
use crate::http;
use crate::model::account::{AccountId, CloudKind};
use crate::model::handle::Handle;
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;
use crate::model::want::Want;

/// Where Compute answers, without `/compute/v1`.
pub const DEFAULT_ENDPOINT: &str = "https://compute.googleapis.com";

/// The port of sshd on Google's machines.
pub const SSH_PORT: u16 = 22;

/// The network of machines.
pub const NETWORK: &str = "default";

/// The longest that one try of a create may take. The answer is an operation, which takes a second or two.
const CREATE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a create whose answers were all lost is looked for. Each was sent again under its request id before, and settled
/// by name; this is for a server that is behind the others.
const LISTING_LAG: Duration = Duration::from_secs(60);

/// The smallest boot disk: that of Ubuntu's image.
const MIN_DISK_GB: u32 = 10;

/// The largest disk of pd-balanced and hyperdisk-balanced, in GiB (cloud.google.com/compute/docs/disks).
const MOST_DISK_GB: u32 = 65_536;

/// What the account's owner set for Google.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who asks.
    pub credentials: Credentials,
    /// The project that pays.
    pub project: String,
    /// The zones that are asked; the default ones if empty.
    pub zones: Vec<String>,
    /// The network of machines, [`NETWORK`] unless the owner said otherwise.
    pub network: String,
    /// The port of sshd on machines, [`SSH_PORT`] unless the owner said otherwise.
    pub ssh_port: u16,
}

/// One account at Google: a project.
#[derive(Debug)]
pub struct Gcp {
    setup: Setup,
    settings: Settings,
    capabilities: Capabilities,
    api: client::Api,
    images: image::Images,
    prices: prices::Catalogues,
    watch: watch::Watch,
}

impl Gcp {
    /// Returns the account. No request.
    pub fn new(setup: Setup, settings: Settings, http: http::Client) -> Gcp {
        // Of another endpoint than Google's own the price catalogues are below it too.
        let elsewhere = (setup.endpoint != DEFAULT_ENDPOINT).then_some(setup.endpoint.as_str());
        Gcp {
            capabilities: setup.adjust(capabilities()),
            prices: prices::Catalogues::new(&setup, elsewhere, &http),
            api: client::Api::new(&setup, &settings, http),
            images: image::Images::new(&setup),
            setup,
            settings,
            watch: watch::Watch::default(),
        }
    }

    /// Returns what machines are read with.
    fn frame(&self) -> states::Frame {
        states::Frame { loopback: self.setup.loopback, ssh_port: self.settings.ssh_port }
    }
}

/// Whether a text can be a zone (`us-central1-a`).
pub fn is_zone(text: &str) -> bool {
    names::is_zone(text)
}

/// Whether a text can be the id of a project; an old one may have its domain before it (`example.com:my-project`).
pub fn is_project(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.:".contains(&b))
}

/// Whether a text can be a network: its name, or its path in a project that shares it (`projects/P/global/networks/N`).
pub fn is_network(text: &str) -> bool {
    match text.split('/').collect::<Vec<_>>()[..] {
        [name] | ["global", "networks", name] => names::is_name(name),
        ["projects", project, "global", "networks", name] => is_project(project) && names::is_name(name),
        _ => false,
    }
}

/// Returns what Google can do.
pub fn capabilities() -> Capabilities {
    let pace = Duration::from_secs(2);
    Capabilities {
        cloud: CloudKind::Gcp,
        spot: Support::Yes,
        cpu_only: Support::Yes,
        image: Support::No("Google's machines boot images of ours"),
        ports: Support::Yes,
        port_cidr: Support::Yes,
        cluster: Support::Yes,
        container: false,
        free: false,
        min_disk_gb: MIN_DISK_GB,
        max_disk_gb: Some(MOST_DISK_GB),
        reserves_env: |_| false,
        // Only the disk and a static address are.
        bills_stopped: false,
        // Types tell both.
        carries_ram_and_vcpus: false,
        boot_budget: Duration::from_secs(10 * 60),
        own_image_extra: Duration::ZERO,
        poll: Pace { first: pace, first_for: Duration::ZERO, then: pace },
        listing_lag: LISTING_LAG,
        key_grace: Duration::from_secs(60),
        // The guest agent publishes them a little after sshd is up.
        host_key_grace: Duration::from_secs(20),
    }
}

#[async_trait]
impl Cloud for Gcp {
    fn account(&self) -> &AccountId {
        &self.setup.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn is_roomy(&self) -> bool {
        // Windows are of hundreds of requests a minute, and no header tells of them.
        true
    }

    fn identity(&self) -> Identity {
        Identity {
            endpoint: self.setup.endpoint.clone(),
            provider: Some(self.settings.project.clone()),
            secret_mark: self.setup.secret_mark.clone(),
            hint: self.settings.credentials.hint(),
        }
    }

    async fn check(&self) -> Result<Identity> {
        const CHECKING: &str = "checking the credentials";
        let found: Option<serde_json::Value> = self.api.get_json("?fields=name", CHECKING).await?;
        match found {
            Some(_) => Ok(self.identity()),
            None => {
                let message =
                    format!("there is no project `{}` for these credentials", self.settings.project);
                Err(self.api.asked(CHECKING).error(ErrorKind::Forbidden, message, Reached::No))
            }
        }
    }

    async fn lacks(&self) -> Result<Vec<Lack>> {
        let project = self.api.get_json::<quotas::Answer>("", "looking at the quotas").await?;
        let quotas = quotas::Quotas { project: quotas::Limits::new(project), ..quotas::Quotas::default() };
        let project = &self.settings.project;
        let lack = quotas.allows_no_gpu().then(|| Lack {
            kind: ErrorKind::Quota,
            message: format!(
                "the quota GPUS_ALL_REGIONS of the project `{project}` is 0, so that no GPU can be had"
            ),
            fix: format!(
                "ask Google for more at https://console.cloud.google.com/iam-admin/quotas?project={project}"
            ),
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

    async fn find(&self, which: &Which) -> Result<Vec<Found>> {
        find::find(self, which).await
    }

    async fn delete(&self, handle: &Handle) -> Result<Deletion> {
        delete::delete(self, handle).await
    }
}
