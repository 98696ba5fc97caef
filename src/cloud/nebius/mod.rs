//! Nebius AI Cloud: a VM with root, on demand or preemptible, with or without GPUs.
//!
//! Talks gRPC (github.com/nebius/api; messages in `wire/`). What is special here:
//!
//! - Each service has a host of its own; one endpoint that the user names stands for all of them (`client.rs`).
//! - A token of some hours is exchanged for a key file or a token of another issuer, or is given as it is (`credentials.rs`,
//!   `exchange.rs`, `jwt.rs`).
//! - A tenant holds projects, each in one region. Machines are made in one project of each region and looked for in all
//!   (`scope.rs`).
//! - Quota and capacity are refused with the same code, often only in the operation: only the details tell (`errors.rs`).
//! - On-demand prices are a list with a date, corrected by the calculator; spot prices are live (`prices.rs`, `spot.rs`).
//! - Users, keys and the host key go in by cloud-init: the first login is checked (`cloud_init.rs`, `host_key.rs`).
//! - Machine, disk and address are one request and go together (`order.rs`, `create.rs`, `delete.rs`).
//! - A preemptible machine that is taken away is stopped, and its disk goes on costing (`states.rs`).

mod account;
pub(crate) mod calls;
mod check;
pub mod cli_files;
pub(crate) mod client;
mod cloud_init;
mod create;
pub mod credentials;
mod delete;
pub(crate) mod errors;
mod estimates;
mod exchange;
mod find;
mod host_key;
mod image;
mod inspect;
mod jwt;
mod marks;
mod offers;
mod order;
mod places;
mod platforms;
mod prices;
mod recheck;
mod redact;
mod rows;
pub(crate) mod scope;
mod spot;
mod states;
mod stock;
mod subnets;
mod watch;
pub(crate) mod wire;

use std::time::Duration;

use tokio::sync::OnceCell;

use self::credentials::Credentials;
use super::{Capabilities, Identity, Pace, Result, Setup, Support};
use crate::http;
use crate::model::account::CloudKind;

/// Where Nebius answers: each service has a name below this one.
pub const DEFAULT_ENDPOINT: &str = "https://api.nebius.cloud";

/// The port of sshd on Nebius's machines.
pub const SSH_PORT: u16 = 22;

/// The longest that a create may take.
pub(crate) const CREATE_TIMEOUT: Duration = Duration::from_secs(60);

/// The smallest boot disk in GiB that images take (their `min_disk_size_bytes`).
const MIN_DISK_GB: u32 = 40;

/// The largest disk in GiB (docs.nebius.com, compute, disks: network SSD).
const MOST_DISK_GB: u32 = 8192;

/// What the account's owner set for Nebius.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How tokens are got.
    pub credentials: Credentials,
    /// The tenant, where the credentials see several.
    pub tenant: Option<String>,
    /// The projects that machines are made in, by id or name; empty: one in each region.
    pub projects: Vec<String>,
    /// The port of sshd on machines, [`SSH_PORT`] unless the owner said otherwise.
    pub ssh_port: u16,
}

/// One account at Nebius.
#[derive(Debug)]
pub struct Nebius {
    pub(crate) setup: Setup,
    pub(crate) settings: Settings,
    capabilities: Capabilities,
    pub(crate) api: client::Api,
    scope: OnceCell<scope::Scope>,
    subnets: subnets::Picked,
    watch: watch::Watch,
}

impl Nebius {
    /// Returns the account. No request.
    pub fn new(setup: Setup, settings: Settings, http: http::Client) -> Nebius {
        Nebius {
            capabilities: setup.adjust(capabilities()),
            api: client::Api::new(&setup, settings.credentials.clone(), http),
            setup,
            settings,
            scope: OnceCell::new(),
            subnets: subnets::Picked::default(),
            watch: watch::Watch::default(),
        }
    }

    /// Returns the tenant and its projects, asked for once.
    pub(crate) async fn scope(&self) -> Result<&scope::Scope> {
        self.scope.get_or_try_init(|| scope::ask(&self.api, &self.settings)).await
    }

    /// Returns who the credentials are, as far as it can be told without a request.
    pub(crate) fn known_identity(&self) -> Identity {
        Identity {
            endpoint: self.setup.endpoint.clone(),
            provider: self
                .settings
                .tenant
                .clone()
                .or_else(|| self.scope.get().map(|scope| scope.tenant.clone())),
            secret_mark: self.setup.secret_mark.clone(),
            hint: self.settings.credentials.hint(),
        }
    }
}

/// Returns what Nebius can do.
pub fn capabilities() -> Capabilities {
    let pace = Duration::from_secs(3);
    Capabilities {
        cloud: CloudKind::Nebius,
        spot: Support::Yes,
        cpu_only: Support::Yes,
        image: Support::No("Nebius boots its own images"),
        ports: Support::Note("the default security group lets every port through"),
        port_cidr: Support::No("gpuprov makes no security groups at Nebius: every port is open to everybody"),
        cluster: Support::Yes,
        container: false,
        free: false,
        min_disk_gb: MIN_DISK_GB,
        max_disk_gb: Some(MOST_DISK_GB),
        reserves_env: |_| false,
        // A stopped machine costs its disk alone (docs.nebius.com, compute, pricing).
        bills_stopped: false,
        // Presets tell both.
        carries_ram_and_vcpus: false,
        boot_budget: Duration::from_secs(20 * 60),
        own_image_extra: Duration::ZERO,
        poll: Pace { first: pace, first_for: Duration::ZERO, then: pace },
        // A lost answer is settled by the machine's name, at once.
        listing_lag: Duration::from_secs(10),
        key_grace: Duration::from_secs(180),
        host_key_grace: Duration::ZERO,
    }
}
