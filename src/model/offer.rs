//! One priced row of a cloud's live stock, in the form that JSON output and records have it.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::account::{AccountId, CloudKind};
use super::gpu::Gpu;
use super::money::Usd;
use super::offer_key::OfferKey;
use super::place::{Continent, Country, Place};

/// How much of it there is, where the cloud tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stock {
    /// Plenty.
    High,
    /// Some.
    Medium,
    /// Little; a create often fails.
    Low,
}

/// The parts of the price per hour, whole machine. `price_per_hour` is their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceParts {
    /// GPUs, CPUs, memory.
    pub compute: Usd,
    /// The disk that was asked for.
    pub disk: Usd,
    /// The public address, where it is billed apart (Google).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Usd>,
}

impl PriceParts {
    /// Returns the sum of all parts.
    pub fn total(&self) -> Usd {
        self.compute + self.disk + self.address.unwrap_or_default()
    }
}

/// What traffic costs per GB, where the cloud bills it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Into the machine.
    #[serde(rename = "in")]
    pub inward: Usd,
    /// Out of it.
    #[serde(rename = "out")]
    pub outward: Usd,
}

/// One offer. Its field names are those of the JSON output and of the records on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// The opaque id that `--offer` takes ([`super::offer_key::OfferKey`]).
    pub id: String,
    /// The account that would pay.
    pub account: AccountId,
    /// The cloud's word.
    #[serde(with = "cloud_word")]
    pub cloud: CloudKind,
    /// The cloud's own region word.
    pub region: Option<String>,
    /// ISO country.
    pub country: Option<Country>,
    /// Zone or data centre.
    pub zone: Option<String>,
    /// The one physical machine, where the cloud tells it: `machine:ID` at Vast. `--zone` takes it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The cloud's exact type.
    pub instance_type: String,
    /// The GPU in our one spelling; none for CPU-only.
    pub gpu: Option<String>,
    /// The GPU as the cloud spells it.
    pub gpu_raw: Option<String>,
    /// How many GPUs; 0 for CPU-only.
    pub gpu_count: u32,
    /// Nominal memory of one GPU in GB.
    pub vram_gb: Option<f64>,
    /// vCPUs of the whole machine.
    pub vcpus: Option<f64>,
    /// Memory of the whole machine in GB.
    pub ram_gb: Option<f64>,
    /// The disk that the cloud is sent.
    pub disk_gb: u32,
    /// Spot or on demand.
    pub spot: bool,
    /// In a data centre of the cloud or of partners that it vouches for.
    pub secure: bool,
    /// Per hour, whole machine, disk included.
    pub price_per_hour: Usd,
    /// What it is made of.
    pub price_parts: PriceParts,
    /// Whether the price is from a catalogue rather than from the cloud.
    pub price_estimated: bool,
    /// How old the price is; none if it is live.
    pub price_as_of: Option<Timestamp>,
    /// Traffic prices.
    pub traffic_per_gb: Option<Traffic>,
    /// Continent.
    pub continent: Option<Continent>,
    /// CUDA that the machine has or must at least have.
    pub cuda: Option<String>,
    /// Stock, where told.
    pub stock: Option<Stock>,
    /// Whether it comes from a loopback endpoint, so that nobody believes its price.
    pub sandbox: bool,
}

impl Offer {
    /// Returns what an offer's id alone tells of it; the re-check tells the rest.
    pub fn of_key(id: &str, key: &OfferKey) -> Self {
        Offer {
            id: id.to_owned(),
            account: key.account.clone(),
            cloud: key.account.cloud(),
            region: None,
            country: None,
            zone: key.zone.clone(),
            host: None,
            instance_type: key.instance_type.clone(),
            gpu: None,
            gpu_raw: None,
            gpu_count: key.gpu_count,
            vram_gb: None,
            vcpus: None,
            ram_gb: None,
            disk_gb: key.disk_gb,
            spot: key.spot,
            secure: false,
            price_per_hour: key.price,
            price_parts: PriceParts { compute: key.price, disk: Usd::ZERO, address: None },
            price_estimated: false,
            price_as_of: None,
            traffic_per_gb: None,
            continent: None,
            cuda: key.cuda.map(|cuda| cuda.to_string()),
            stock: None,
            sandbox: false,
        }
    }

    /// Returns the GPU; none for CPU-only.
    pub fn card(&self) -> Option<Gpu> {
        self.gpu_raw.as_deref().map(|raw| Gpu::identify(raw, self.vram_gb))
    }

    /// Returns the place.
    pub fn place(&self) -> Place {
        Place {
            region: self.region.clone(),
            continent: self.continent,
            country: self.country,
            zone: self.zone.clone(),
        }
    }

    /// The total order of offers: price, account, zone, instance type, id.
    pub fn order(&self, other: &Offer) -> Ordering {
        self.price_per_hour
            .cmp(&other.price_per_hour)
            .then_with(|| self.account.cmp(&other.account))
            .then_with(|| self.zone.cmp(&other.zone))
            .then_with(|| self.instance_type.cmp(&other.instance_type))
            .then_with(|| self.id.cmp(&other.id))
    }
}

mod cloud_word {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::model::account::CloudKind;

    pub(super) fn serialize<S: Serializer>(cloud: &CloudKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(cloud.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CloudKind, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
