//! What is for sale: host machines, the asks on them, and how an ask looks as a row of a search.
//!
//! The rows are `catalog/vast.json`. A machine there names only what differs from an ordinary one; any field of a
//! row can be overridden, for a machine or for one ask. Asks of one machine share its GPUs. The traps:
//!
//! | row | what it plays |
//! |---|---|
//! | RTX 4090, 66 machines alike | more rows than a page holds, with equal prices across its edge |
//! | machine 37228 | 1x, 2x and 4x of four cards: renting one takes others |
//! | A100 SXM4, A100 PCIE, A100 SXM | 40 GB and 80 GB under one name; A100X is 80 |
//! | RTX 4090D, L40 and L40S, H100 NVL and H200 NVL, RTX A4000 and A40, RTX 4500Ada | names that hold another's |
//! | GH200 SXM | an arm64 host |
//! | `Q RTX 8000`, `RTX PRO 6000 WS`, `RTX 4080S`, `RTX 3060 laptop` | names with rules of their own |
//! | InstinctMI100 | AMD |
//! | B300 | a name that no table knows |
//! | machine 50001 to 50007 | null name, name with blanks at the end, null geolocation, `, US`, a lower-case country, price null, price 0 |
//! | machine 50010 | `min_bid` equal to `dph_base` |
//! | machine 50011 | `min_bid` 0 |
//! | RTX A5000: 51001, 51002 | the dearer disk turns the order round above 100 GB or so |
//! | RTX 3080: 52001 to 52006 | low reliability, unverified, deverified, a data center that is unverified, external, few days left |
//! | RTX 3080: 52007 | a driver too old, which a filter on the driver lets through |
//! | RTX 3080: 52008 | no direct ports: the proxy is the only way |
//! | RTX 3070 | the cheapest has a driver for CUDA 12.0 only, another 13.3 |
//! | B200: 53001 | delivers an H100 |
//! | RTX A6000: 54001 to 54012 | ends of a boot: OCI error, exited, offline, unknown, stopped while loading, image refused, disk full, start lost, start queued, small disk, direct port closed, proxy closed |
//! | RTX 3060: 55001 | sold on demand although a bid was sent |
//! | RTX 3060: 55002 | outbid four seconds after the create |
//! | V100 | 16 and 32 GB; `Tesla` in the name |
//!
//! Facts: `docs.vast.ai/api-reference` (search offers) and rows seen in public records.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::images;
use crate::sandbox::scripts::Script;

/// Smallest disk in GB, and the disk of a search that names none.
pub(super) const LEAST_DISK: f64 = 8.0;

/// The whole data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The fields of a row that machines seldom differ in.
    ordinary: Map<String, Value>,
    machines: Vec<Line>,
    /// GPU types that no machine has: name, MB, compute capability.
    gpu_types: Vec<(String, Option<u64>, u64)>,
}

/// One machine of the file, or several alike.
#[derive(Debug, Clone, Deserialize)]
struct Line {
    machine_id: u64,
    gpu_name: String,
    gpu_ram: u64,
    compute_cap: u64,
    gpus: u32,
    /// CUDA version of the driver.
    #[serde(default = "usual_cuda")]
    cuda: f64,
    asks: Vec<Ask>,
    #[serde(default)]
    copies: Option<Copies>,
    #[serde(default)]
    behaves: Option<Script>,
    /// Filters that let its rows through.
    #[serde(default)]
    leaks: Vec<String>,
    /// Name and MiB as `nvidia-smi` has them, where they differ from the row's.
    #[serde(default)]
    smi: Option<(String, u64)>,
    /// Fields of the row that are not the ordinary ones.
    #[serde(flatten)]
    row: Map<String, Value>,
}

/// Machines alike, with ids that follow one another.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Copies {
    count: u32,
    /// US dollars per hour that every third one costs more.
    step: f64,
}

/// One ask on a machine.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Ask {
    #[serde(skip)]
    pub(super) id: u64,
    pub(super) gpus: u32,
    /// On-demand price of the GPUs, US dollars per hour.
    dph: f64,
    /// Least bid, US dollars per hour.
    bid: f64,
    #[serde(flatten)]
    row: Map<String, Value>,
}

/// A host machine.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) machine_id: u64,
    pub(super) gpu_name: String,
    pub(super) gpu_ram: u64,
    compute_cap: u64,
    pub(super) gpus: u32,
    pub(super) cuda: f64,
    pub(super) asks: Vec<Ask>,
    pub(super) behaves: Option<Script>,
    pub(super) leaks: Vec<String>,
    smi: Option<(String, u64)>,
    row: Map<String, Value>,
    ordinary: Arc<Map<String, Value>>,
}

fn usual_cuda() -> f64 {
    13.0
}

/// What decides how a row looks beside its machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    /// GB that the price includes.
    pub(super) storage: f64,
    /// Whether it is shown as interruptible.
    pub(super) bid: bool,
    /// Whether it can be had now.
    pub(super) rentable: bool,
    /// On all prices of GPUs.
    pub(super) factor: f64,
}

/// Everything that is for sale.
#[derive(Debug)]
pub(super) struct Catalog {
    pub(super) hosts: Vec<Host>,
    /// Names of a row's fields.
    pub(super) fields: BTreeSet<String>,
    extra_types: Vec<(String, Option<u64>, u64)>,
}

impl Catalog {
    /// Reads the rows that are built in.
    pub(super) fn load() -> io::Result<Catalog> {
        let file: File =
            serde_json::from_str(include_str!("../catalog/vast.json")).map_err(io::Error::from)?;
        let ordinary = Arc::new(file.ordinary);
        let hosts: Vec<Host> = file.machines.into_iter().flat_map(|line| line.hosts(&ordinary)).collect();
        let view = View { storage: LEAST_DISK, bid: false, rentable: true, factor: 1.0 };
        let first = hosts.first().and_then(|host| Some(host.show(host.asks.first()?, view)));
        let fields = first.into_iter().flatten().map(|(name, _)| name).collect();
        Ok(Catalog { hosts, fields, extra_types: file.gpu_types })
    }

    /// An ask by its id, with its machine.
    pub(super) fn ask(&self, id: u64) -> Option<(&Host, &Ask)> {
        self.hosts.iter().find_map(|host| Some((host, host.asks.iter().find(|ask| ask.id == id)?)))
    }

    /// A machine with this GPU, for instances that no create made.
    pub(super) fn with_gpu(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.gpu_name == name)
    }

    /// `GET /api/v0/gpu_types/`.
    pub(super) fn gpu_types(&self) -> Value {
        let mut types: BTreeMap<&str, (Option<u64>, u64)> = BTreeMap::new();
        for host in self.hosts.iter().filter(|host| !host.gpu_name.is_empty()) {
            types.entry(host.gpu_name.trim()).or_insert((Some(host.gpu_ram), host.compute_cap));
        }
        for (name, ram, cap) in &self.extra_types {
            types.entry(name).or_insert((*ram, *cap));
        }
        let shown: Vec<Value> = types
            .iter()
            .map(|(name, (ram, cap))| json!({"canonical_name": name, "gpu_ram_mb": ram, "compute_cap": cap}))
            .collect();
        json!({"success": true, "count": shown.len(), "gpu_types": shown})
    }

    /// `GET /api/v0/gpu_names/unique/`.
    pub(super) fn gpu_names(&self) -> Value {
        let types = self.gpu_types();
        let names: Vec<&Value> = types["gpu_types"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| &entry["canonical_name"])
            .collect();
        json!({"success": true, "gpu_names": names})
    }
}

impl Line {
    fn hosts(self, ordinary: &Arc<Map<String, Value>>) -> Vec<Host> {
        let copies = self.copies.unwrap_or(Copies { count: 1, step: 0.0 });
        (0..copies.count)
            .map(|copy| {
                let machine_id = self.machine_id + u64::from(copy);
                let dearer = f64::from(copy / 3) * copies.step;
                let asks = self.asks.iter().zip(0..).map(|(ask, place)| Ask {
                    id: 20_000_000 + machine_id * 10 + place,
                    dph: round(ask.dph + dearer),
                    bid: round(ask.bid + dearer / 2.0),
                    ..ask.clone()
                });
                Host {
                    machine_id,
                    gpu_name: self.gpu_name.clone(),
                    gpu_ram: self.gpu_ram,
                    compute_cap: self.compute_cap,
                    gpus: self.gpus,
                    cuda: self.cuda,
                    asks: asks.collect(),
                    behaves: self.behaves.clone(),
                    leaks: self.leaks.clone(),
                    smi: self.smi.clone(),
                    row: self.row.clone(),
                    ordinary: Arc::clone(ordinary),
                }
            })
            .collect()
    }
}

impl Host {
    /// An ask as a row of a search.
    pub(super) fn show(&self, ask: &Ask, view: View) -> Map<String, Value> {
        let mut row = self.base(ask);
        for (name, value) in self.row.iter().chain(&ask.row) {
            row.insert(name.clone(), value.clone());
        }
        let number = |name: &str| row.get(name).and_then(Value::as_f64);
        let scaled = |name: &str| number(name).map(|price| round(price * view.factor));
        let least = scaled("min_bid");
        let base = if view.bid { least } else { scaled("dph_base") };
        let disk = round(number("storage_cost").unwrap_or(0.0) * view.storage / 720.0);
        let total = base.map(|base| round(base + disk));
        let traffic = number("inet_up_cost").unwrap_or(0.0) + number("inet_down_cost").unwrap_or(0.0);
        let more = json!({
            "dph_base": base, "min_bid": least, "storage_total_cost": disk, "dph_total": total,
            "dph_total_adj": total.map(|total| round(total + traffic)), "discounted_dph_total": total,
            "search": {"gpuCostPerHour": base, "diskHour": disk, "totalHour": total,
                       "discountTotalHour": 0, "discountedTotalPerHour": total},
            "instance": {"gpuCostPerHour": 0, "diskHour": disk, "totalHour": disk,
                         "discountTotalHour": 0, "discountedTotalPerHour": disk},
            "rentable": view.rentable, "rented": !view.rentable, "is_bid": view.bid,
        });
        if let Value::Object(more) = more {
            row.extend(more);
        }
        row
    }

    /// The ordinary row.
    fn base(&self, ask: &Ask) -> Map<String, Value> {
        let share = f64::from(ask.gpus) / f64::from(self.gpus.max(1));
        let ram = self.gpu_ram;
        let driver = driver(images::version(self.cuda));
        let own = json!({
            "id": ask.id, "ask_contract_id": ask.id, "machine_id": self.machine_id,
            "host_id": self.machine_id + 61_751, "bundle_id": 1_886_000_000 + self.machine_id,
            "gpu_name": self.gpu_name, "num_gpus": ask.gpus, "gpu_ram": ram,
            "gpu_total_ram": ram * u64::from(ask.gpus), "gpu_frac": share, "compute_cap": self.compute_cap,
            "cuda_max_good": self.cuda, "driver_version": driver, "driver_vers": driver_number(driver),
            "cpu_cores": 16 * self.gpus, "cpu_cores_effective": f64::from(16 * ask.gpus),
            "cpu_ram": 64_512 * u64::from(self.gpus), "dph_base": ask.dph, "min_bid": ask.bid,
            "score": 1000.0 / (ask.dph + 1.0), "dlperf": 100.0 * f64::from(ask.gpus),
        });
        let mut base = Map::clone(&self.ordinary);
        if let Value::Object(own) = own {
            base.extend(own);
        }
        base
    }

    /// Name and MiB for `nvidia-smi`.
    pub(super) fn smi(&self) -> (String, u64) {
        let gaming =
            self.gpu_name.starts_with("RTX ") && self.gpu_name[4..].starts_with(|c: char| c.is_ascii_digit());
        let geforce = gaming && !self.gpu_name.contains("Ada");
        let maker = if geforce { "NVIDIA GeForce" } else { "NVIDIA" };
        self.smi.clone().unwrap_or_else(|| (format!("{maker} {}", self.gpu_name.trim()), self.gpu_ram))
    }
}

/// Country of a place: the last part between commas, when it is two capital letters.
pub(super) fn country(place: &str) -> Option<&str> {
    let last = place.rsplit(',').next()?.trim();
    (last.len() == 2 && last.bytes().all(|byte| byte.is_ascii_uppercase())).then_some(last)
}

/// A driver that goes up to this CUDA version.
fn driver(cuda: (u32, u32)) -> &'static str {
    match cuda {
        (13, 2..) => "595.45.04",
        (13, _) => "580.95.05",
        (12, 9..) => "575.57.08",
        (12, 8) => "570.133.20",
        (12, 4..) => "550.163.01",
        _ => "525.147.05",
    }
}

/// `580.95.05` as 580095005: every part in three digits.
pub(super) fn driver_number(text: &str) -> u64 {
    text.split('.').fold(0, |sum, part| sum * 1000 + part.parse::<u64>().unwrap_or(0))
}

/// To ten decimals, as the service shows prices.
pub(super) fn round(price: f64) -> f64 {
    (price * 1e10).round() / 1e10
}
