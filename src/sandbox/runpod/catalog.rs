//! The catalogue: GPU types, the hosts behind them, data centers, and the answers of the catalogue paths.
//!
//! The rows are `catalog/runpod.json`. A host is one kind of machine in one place: tier, data center, CUDA
//! version, stock and, for the traps, how its machines behave. Stock does not run out. The traps:
//!
//! | row | what it plays |
//! |---|---|
//! | RTX 3090, community | the cheapest 3090; every create is 400 with a sentence that nobody knows |
//! | RTX A5000, community | lists EU-SE-1, refuses it when it is named, gives a machine when none is named |
//! | RTX 3080, community | availability LOW without any data center |
//! | RTX 3070 and RTX A4000, community | machines never get a public address |
//! | RTX A4500, community | the driver is too old for the image: never ready, only the system log tells |
//! | RTX A6000, community US-IL-1 | ends in ERROR; the other community place has CUDA 12.8 only |
//! | RTX 3080 Ti, V100, some places of many types | hosts with CUDA 12.8, which a floor of 12.9 hides |
//! | A30 | a `null` price, and a community price without a community host; `A30` with two spaces is another row |
//! | RTX A2000 | price 0 with stock |
//! | B200, H200 NVL, RTX 4090 D | out of stock |
//! | A40 in EU-SE-1 | disks up to 200 GB |
//! | MI300X | AMD, no CUDA version |
//! | PRO 6000 ... MIG | slices whose names hold the whole card's |
//! | GH200, RTX 4090 D, L40 and L40S, A4000 and A40 | names that hold another's |
//! | R200 NVL144, unknown | names that no table knows |
//! | L40 | prices with the noise of 32-bit floats |
//!
//! Facts: `docs.runpod.io/api-reference-v2` (catalog) and `docs.runpod.io/references/gpu-types`.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::guesses::RunPodGuesses;
use super::places::DataCenter;
use super::wire::{Cloud, dotted, dotted_or_bare, version};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::scripts::Script;

/// How much is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Stock {
    None,
    Low,
    Medium,
    High,
}

/// The whole data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Catalog {
    pub(super) data_centers: Vec<DataCenter>,
    pub(super) gpus: Vec<Gpu>,
}

/// One GPU type.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Gpu {
    pub(super) id: String,
    pub(super) name: String,
    pool: Option<String>,
    #[serde(default = "nvidia")]
    manufacturer: String,
    memory: u64,
    /// US dollars per hour of one GPU; `null` is a trap.
    price: Map<String, Value>,
    /// Largest machine: secure, community.
    max_count: (i64, i64),
    /// RAM in GB and vCPUs of one GPU's share.
    #[serde(default = "share")]
    share: (i64, i64),
    /// Name and MiB as `nvidia-smi` has them, where they differ from the row's.
    smi: Option<(String, u64)>,
    pub(super) hosts: Vec<Host>,
}

/// One kind of machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    pub(super) cloud: Cloud,
    /// Where; absent for community hosts that are in no listed place.
    pub(super) dc: Option<String>,
    pub(super) cuda: Option<String>,
    pub(super) stock: Stock,
    /// Largest machine here, when it is smaller than the type's.
    max: Option<i64>,
    /// Largest container disk in GB.
    #[serde(default = "big_disk")]
    pub(super) disk: i64,
    /// Whether a create that names the data center gets it.
    #[serde(default = "yes")]
    pub(super) pin: bool,
    /// A 400 sentence in answer to every create.
    pub(super) refuse: Option<String>,
    /// How its machines behave.
    pub(super) behaves: Option<Script>,
}

fn nvidia() -> String {
    "NVIDIA".into()
}

fn share() -> (i64, i64) {
    (62, 16)
}

fn big_disk() -> i64 {
    2000
}

fn yes() -> bool {
    true
}

/// What a create asks of a host.
pub(super) struct Needs<'a> {
    pub(super) count: i64,
    pub(super) cloud: Cloud,
    pub(super) data_centers: &'a [String],
    pub(super) min_cuda: Option<&'a str>,
    pub(super) cuda: &'a [String],
    pub(super) ram: Option<i64>,
    pub(super) vcpus: Option<i64>,
    pub(super) disk: i64,
}

/// Why nothing was placed: the sentence of the 400.
pub(super) type NoPlace = String;

/// Recorded live: <https://github.com/runpod/runpodctl/issues/189>.
pub(super) const NO_CAPACITY: &str = "There are no longer any instances available with the requested specifications. Please refresh and try again.";
/// <https://github.com/runpod/runpod-python/issues/297>
const NO_DISK: &str = "There are no longer any instances available with enough disk space.";

impl Catalog {
    /// Reads the rows that are built in.
    pub(super) fn load() -> io::Result<Catalog> {
        serde_json::from_str(include_str!("../catalog/runpod.json")).map_err(io::Error::from)
    }

    /// A GPU type by its exact id.
    pub(super) fn gpu(&self, id: &str) -> Option<&Gpu> {
        self.gpus.iter().find(|gpu| gpu.id == id)
    }

    /// The host that a create gets, or the sentence that refuses it.
    pub(super) fn place(&self, gpu: &Gpu, needs: &Needs<'_>) -> Result<Host, NoPlace> {
        let ask = Ask {
            count: needs.count,
            cloud: needs.cloud,
            countries: Vec::new(),
            cuda: needs.cuda.to_vec(),
            min_cuda: needs.min_cuda.map(str::to_owned),
        };
        let mut fit: Vec<&Host> = gpu
            .hosts
            .iter()
            .filter(|host| gpu.serves(host, &ask) && host.stock > Stock::None)
            .filter(|host| {
                needs.data_centers.is_empty()
                    || host.pin && host.dc.as_ref().is_some_and(|dc| needs.data_centers.contains(dc))
            })
            .filter(|_| {
                needs.ram.is_none_or(|gb| gb <= gpu.share.0) && needs.vcpus.is_none_or(|n| n <= gpu.share.1)
            })
            .collect();
        if fit.is_empty() {
            return Err(NO_CAPACITY.into());
        }
        fit.retain(|host| needs.disk <= host.disk);
        let Some(host) = fit.iter().max_by_key(|host| host.stock) else { return Err(NO_DISK.into()) };
        match &host.refuse {
            Some(sentence) => Err(sentence.clone()),
            None => Ok((*host).clone()),
        }
    }

    /// `GET /v2/catalog/gpus`: every type, but those without a data center in the asked countries.
    pub(super) fn list(&self, ask: Option<&Ask>, faults: &[FaultKind], guesses: RunPodGuesses) -> Value {
        let shown = |gpu: &&Gpu| {
            ask.is_none_or(|ask| {
                ask.countries.is_empty() || gpu.hosts.iter().any(|host| self.in_country(host, ask))
            })
        };
        let gpus: Vec<Value> =
            self.gpus.iter().filter(shown).map(|gpu| self.show(gpu, ask, faults, guesses)).collect();
        json!({ "gpus": gpus })
    }

    /// One entry of the catalogue.
    pub(super) fn show(
        &self,
        gpu: &Gpu,
        ask: Option<&Ask>,
        faults: &[FaultKind],
        guesses: RunPodGuesses,
    ) -> Value {
        let factor: f64 = faults
            .iter()
            .filter_map(
                |fault| if let FaultKind::PriceFactor { factor } = fault { Some(*factor) } else { None },
            )
            .product();
        let tier = |cloud| gpu.hosts.iter().any(|host| host.cloud == cloud) || gpu.price(cloud) > 0.0;
        let mut price = gpu.price.clone();
        for value in price.values_mut() {
            if let Some(number) = value.as_f64() {
                *value = json!((number * factor * 10_000.0).round() / 10_000.0);
            }
        }
        let price = if (factor - 1.0).abs() < f64::EPSILON { gpu.price.clone() } else { price };
        let mut entry = json!({
            "id": gpu.id, "name": gpu.name, "pool": gpu.pool, "manufacturer": gpu.manufacturer,
            "memory": gpu.memory, "secure": tier(Cloud::Secure), "community": tier(Cloud::Community),
            "price": price, "maxCount": {"secure": gpu.max_count.0, "community": gpu.max_count.1},
        });
        let Some(ask) = ask else { return entry };
        let stale = faults.contains(&FaultKind::StaleOffer);
        let offered: Vec<&Host> = gpu
            .hosts
            .iter()
            .filter(|host| !stale && gpu.serves(host, ask) && self.in_country(host, ask))
            .collect();
        let stock = offered.iter().map(|host| host.stock).max().unwrap_or(Stock::None);
        entry["availability"] = json!(stock);
        let mut places: BTreeMap<&str, Stock> = BTreeMap::new();
        for host in &offered {
            if let Some(dc) = &host.dc {
                let best = places.entry(dc).or_insert(host.stock);
                *best = (*best).max(host.stock);
            }
        }
        let listed = ask.cloud == Cloud::Secure || !guesses.community_unlisted;
        if stock > Stock::None && listed && !places.is_empty() {
            let places: Vec<Value> = places
                .into_iter()
                .map(|(id, stock)| {
                    let name = if guesses.names_are_ids { id.to_owned() } else { self.place_name(id) };
                    json!({"id": id, "name": name, "availability": stock})
                })
                .collect();
            entry["dataCenters"] = Value::Array(places);
        }
        let mut versions: BTreeMap<(u32, u32), bool> = BTreeMap::new();
        for host in gpu.hosts.iter().filter(|host| host.cloud == ask.cloud) {
            if let Some(cuda) = &host.cuda {
                *versions.entry(version(cuda)).or_insert(false) |= host.stock > Stock::None;
            }
        }
        if !versions.is_empty() {
            let versions: Vec<Value> = versions
                .into_iter()
                .map(|((major, minor), free)| json!({"version": format!("{major}.{minor}"), "available": free}))
                .collect();
            entry["cudaVersions"] = Value::Array(versions);
        }
        entry
    }

    fn place_name(&self, id: &str) -> String {
        self.data_centers.iter().find(|dc| dc.id == id).map_or_else(|| id.to_owned(), |dc| dc.name.clone())
    }

    fn in_country(&self, host: &Host, ask: &Ask) -> bool {
        ask.countries.is_empty()
            || self
                .data_centers
                .iter()
                .any(|dc| host.dc.as_deref() == Some(dc.id.as_str()) && ask.countries.contains(&dc.country))
    }
}

impl Gpu {
    /// US dollars per hour of one GPU; 0 where it is not sold.
    pub(super) fn price(&self, cloud: Cloud) -> f64 {
        let key = if cloud == Cloud::Secure { "secure" } else { "community" };
        self.price.get(key).and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// RAM in GB of so many GPUs' share.
    pub(super) fn ram(&self, count: i64) -> i64 {
        self.share.0 * count
    }

    /// vCPUs of so many GPUs' share.
    pub(super) fn vcpus(&self, count: i64) -> i64 {
        self.share.1 * count
    }

    /// Name and MiB for `nvidia-smi`.
    pub(super) fn smi(&self) -> (String, u64) {
        self.smi.clone().unwrap_or_else(|| (self.id.clone(), self.memory * 1024))
    }

    fn serves(&self, host: &Host, ask: &Ask) -> bool {
        let most = if ask.cloud == Cloud::Secure { self.max_count.0 } else { self.max_count.1 };
        let cuda = host.cuda.as_deref();
        host.cloud == ask.cloud
            && ask.count <= host.max.unwrap_or(most).min(most)
            && ask.min_cuda.as_deref().is_none_or(|min| cuda.is_some_and(|has| version(has) >= version(min)))
            && (ask.cuda.is_empty() || cuda.is_some_and(|has| ask.cuda.iter().any(|want| want == has)))
    }
}

/// The availability question of the catalogue paths.
pub(super) struct Ask {
    count: i64,
    cloud: Cloud,
    countries: Vec<String>,
    cuda: Vec<String>,
    min_cuda: Option<String>,
}

/// Why a query is refused.
pub(super) enum BadQuery {
    /// 400.
    Rule(&'static str),
    /// 422.
    Schema(String),
}

impl Ask {
    /// Reads the catalogue's query; nothing when availability is not asked.
    pub(super) fn read(pairs: &[(String, String)]) -> Result<Option<Ask>, BadQuery> {
        let get = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let list = |name: &str| -> Vec<String> {
            get(name).map(|text| text.split(',').map(str::to_owned).collect()).unwrap_or_default()
        };
        let schema = |name: &str| BadQuery::Schema(format!("query parameter '{name}' is not valid"));
        if list("include").iter().any(|word| word != "AVAILABILITY") {
            return Err(schema("include"));
        }
        if list("product").iter().any(|word| !matches!(word.as_str(), "POD" | "CLUSTER" | "SERVERLESS")) {
            return Err(schema("product"));
        }
        let narrows = ["count", "cloud", "countryCodes", "cudaVersions", "minCudaVersion"];
        if get("include").is_none() {
            if get("product").is_some() || narrows.iter().any(|name| get(name).is_some()) {
                return Err(BadQuery::Rule("product and filters are valid only with include=AVAILABILITY"));
            }
            return Ok(None);
        }
        if get("product").is_none() {
            return Err(BadQuery::Rule(
                "product is required with include=AVAILABILITY; availability differs by product context",
            ));
        }
        let count = match get("count") {
            None => 1,
            Some(text) => text.parse().ok().filter(|count| *count >= 1).ok_or_else(|| schema("count"))?,
        };
        let cloud = match get("cloud") {
            None | Some("SECURE") => Cloud::Secure,
            Some("COMMUNITY") => Cloud::Community,
            Some(_) => return Err(schema("cloud")),
        };
        let countries = list("countryCodes");
        if countries.iter().any(|code| code.len() != 2 || !code.bytes().all(|b| b.is_ascii_uppercase())) {
            return Err(schema("countryCodes"));
        }
        let cuda = list("cudaVersions");
        if cuda.iter().any(|version| !dotted(version)) {
            return Err(schema("cudaVersions"));
        }
        let min_cuda = get("minCudaVersion").map(str::to_owned);
        if min_cuda.as_deref().is_some_and(|version| !dotted_or_bare(version)) {
            return Err(schema("minCudaVersion"));
        }
        if min_cuda.is_some() && !cuda.is_empty() {
            return Err(BadQuery::Rule("cudaVersions and minCudaVersion are mutually exclusive"));
        }
        Ok(Some(Ask { count, cloud, countries, cuda, min_cuda }))
    }
}
