//! One account: a tenant with its projects, quotas and prices, a service account with its key, and access tokens.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::catalog::Catalog;
use crate::sandbox::machine::{hex, random};
use crate::sandbox::oidc::Issuer;

/// A project, which has one region.
#[derive(Debug, Clone)]
pub(super) struct Project {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) region: String,
    /// Word of `nebius.iam.v2.ProjectStatus.ProjectState`.
    pub(super) state: &'static str,
    pub(super) subnets: Vec<Subnet>,
}

/// A subnet.
#[derive(Debug, Clone)]
pub(super) struct Subnet {
    pub(super) id: String,
    pub(super) name: String,
    /// Word of `nebius.vpc.v1.SubnetStatus.State`.
    pub(super) state: &'static str,
    /// Whether it has public addresses.
    pub(super) public: bool,
}

/// A quota of a tenant.
#[derive(Debug, Clone)]
pub(super) struct Quota {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) region: String,
    pub(super) limit: Option<u64>,
}

/// What the advice service says about a platform in a region, where that is not what the catalogue has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Advice {
    pub(super) on_demand: u32,
    pub(super) preemptible: u32,
    pub(super) fresh: bool,
}

/// One account.
#[derive(Debug)]
pub(super) struct Account {
    /// Label in records and in the ledger.
    pub(super) label: String,
    pub(super) tenant: String,
    pub(super) service_account: String,
    pub(super) public_key: String,
    pub(super) issuer: Issuer,
    /// The token that never expires by itself.
    pub(super) token: String,
    pub(super) projects: Vec<Project>,
    pub(super) quotas: Vec<Quota>,
    /// By platform and region.
    pub(super) advice: HashMap<(String, String), Advice>,
    /// Spot prices that are not the catalogue's, by platform and region; nothing is no price.
    pub(super) spot: HashMap<(String, String), Option<f64>>,
    /// Prices on demand that are not the catalogue's: factors by platform.
    pub(super) factors: HashMap<String, f64>,
}

impl Account {
    /// A project by its id.
    pub(super) fn project(&self, id: &str) -> Option<&Project> {
        self.projects.iter().find(|project| project.id == id)
    }

    /// The first project of a region that is in use.
    pub(super) fn in_region(&self, region: &str) -> Option<&Project> {
        self.projects.iter().find(|project| project.region == region && project.state == "ACTIVE")
    }

    /// A limit; none where there is no such quota.
    pub(super) fn limit(&self, name: &str, region: &str) -> Option<u64> {
        let found = self.quotas.iter().find(|quota| quota.name == name && quota.region == region);
        found.and_then(|quota| quota.limit)
    }

    /// The key file that service accounts have.
    pub(super) fn key_file(&self, pem: &str) -> Value {
        json!({"subject-credentials": {
            "type": "JWT", "alg": "RS256", "private-key": pem, "kid": self.public_key, "iss": self.service_account,
            "sub": self.service_account,
        }})
    }
}

/// An access token that is out.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) account: String,
    /// Absent for tokens that do not expire.
    pub(super) expires: Option<Duration>,
    /// Whether it is a person's, not the service account's.
    pub(super) person: bool,
}

/// A new access token.
pub(super) fn token_text() -> String {
    format!("ne1{}", hex(&random::<24>()))
}

/// Quotas that every region has.
const GENERAL: [(&str, u64); 7] = [
    ("compute.instance.count", 24),
    ("compute.instance.preemptible.count", 16),
    ("compute.instance.non-gpu.vcpu", 200),
    ("compute.disk.count", 48),
    ("compute.disk.size.network-ssd", 20 << 40),
    ("vpc.allocation.count", 64),
    ("vpc.ipv4-address.public.count", 32),
];

/// A new tenant: one default project for each region, one more where there are two, and one that is going.
pub(super) fn open(label: &str, catalog: &Catalog, mut id: impl FnMut(&str, &str) -> String) -> Account {
    let mut projects = Vec::new();
    let subnet = |id: String, name: String| Subnet { id, name, state: "READY", public: true };
    for region in &catalog.regions {
        let network = id("vpcsubnet", region);
        let tail = network.chars().rev().take(6).collect::<String>();
        let mut subnets = vec![subnet(network, format!("default-subnet-{tail}"))];
        if region == "us-central1" {
            let inner = Subnet { public: false, ..subnet(id("vpcsubnet", region), "a-inner".into()) };
            let fresh =
                Subnet { state: "CREATING", ..subnet(id("vpcsubnet", region), "default-subnet-new".into()) };
            subnets.insert(0, fresh);
            subnets.insert(0, inner);
        }
        let name = format!("default-project-{region}");
        projects.push(Project {
            id: id("project", region),
            name,
            region: region.clone(),
            state: "ACTIVE",
            subnets,
        });
    }
    let more = |id: String, name: &str, region: &str, state| Project {
        id,
        name: name.to_owned(),
        region: region.to_owned(),
        state,
        subnets: Vec::new(),
    };
    projects.push(more(id("project", "eu-west1"), "research", "eu-west1", "ACTIVE"));
    projects.push(more(id("project", "us-central1"), "default-project-old", "us-central1", "PURGING"));
    let mut quotas = Vec::new();
    let mut put = |name: &str, region: &str, limit: u64, id: String| {
        quotas.push(Quota { id, name: name.to_owned(), region: region.to_owned(), limit: Some(limit) });
    };
    for region in &catalog.regions {
        for (name, limit) in GENERAL {
            put(name, region, limit, id("quotaallowance", region));
        }
        let mut known: Vec<&str> = Vec::new();
        for platform in catalog.platforms.iter().filter(|platform| platform.usd_gpu > 0.0) {
            let Some(site) = platform.site(region) else { continue };
            if !known.contains(&platform.quota.as_str()) {
                known.push(&platform.quota);
                put(&platform.quota, region, site.quota, id("quotaallowance", region));
            }
        }
    }
    let service_account = id("serviceaccount", "eu-north1");
    Account {
        label: label.to_owned(),
        tenant: id("tenant", "eu-north1"),
        public_key: id("publickey", "eu-north1"),
        issuer: Issuer {
            url: "https://token.ci.example.com".into(),
            kid: format!("ci-{label}"),
            subject: format!("repo:team/llama:{label}"),
            audience: "nebius".into(),
        },
        service_account,
        token: token_text(),
        projects,
        quotas,
        advice: HashMap::new(),
        spot: HashMap::new(),
        factors: HashMap::new(),
    }
}
