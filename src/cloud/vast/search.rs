//! Searches: few, narrow, paged by price, and kept for a minute.
//!
//! Ten searches in a minute and a number that is not published in a day are allowed. At most 64 rows come back whatever is
//! asked for, so a search names the cards and the count, and goes on by price where 64 came
//! (github.com/dstackai/gpuhunt/issues/142).

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Vast;
use super::image::Choice;
use super::names::{Cards, cards, is_amd, is_arm, spelling};
use super::places::{countries, pinned_machine};
use super::wire::Ask;
use crate::cloud::{Result, Setup};
use crate::model::gpu::GpuModel;
use crate::model::want::{Kind, Spot, Want};

/// Rows of one answer at most.
const ROWS: usize = 64;

/// Pages of one search at most: each costs a search.
const MOST_PAGES: usize = 4;

/// A card, its parts and drivers in megabytes lie below the nominal size by up to so much.
const SLACK: f64 = 0.88;

/// Hosts below this many Mbit/s take an hour to pull an image.
const LEAST_DOWNLOAD: u32 = 100;

/// A host that takes its machine back within a day is none to rent.
const LEAST_SECONDS: u32 = 86_400;

/// How Vast rents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Class {
    /// At the host's price, until the owner gives it back.
    OnDemand,
    /// At our bid, until somebody bids more or rents it on demand.
    Bid,
}

impl Class {
    /// The word of the API; the official client sends `on-demand`, which the published document does not list.
    pub(super) fn wire(self) -> &'static str {
        match self {
            Class::OnDemand => "on-demand",
            Class::Bid => "bid",
        }
    }

    /// Whether its machines are spot machines.
    pub(super) fn is_spot(self) -> bool {
        self == Class::Bid
    }
}

/// One thing that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// A model.
    Model(GpuModel),
    /// A GPU as Vast spells it.
    Exact(String),
}

/// Returns what `want` asks for, by count.
pub(super) fn asks(want: &Want) -> BTreeMap<u32, Vec<What>> {
    let mut asks: BTreeMap<u32, Vec<What>> = BTreeMap::new();
    match &want.kind {
        Kind::CpuOnly => {}
        Kind::Gpus(gpus) => {
            for gpu in gpus {
                asks.entry(gpu.count).or_default().push(What::Model(gpu.model.clone()));
            }
        }
        Kind::Types(types) => {
            for ty in types {
                let whole = super::instance::InstanceType::parse(&ty.name);
                let (name, count) = match (whole, ty.count) {
                    // `RTX 4090 x2` and `RTX 4090 x2:2` are the whole type, `RTX 4090:2` is a GPU and a count.
                    (Some(whole), count) if count.is_none_or(|count| count == whole.count) => {
                        (whole.gpu, whole.count)
                    }
                    (_, count) => (ty.name.clone(), count.unwrap_or(1)),
                };
                asks.entry(count).or_default().push(What::Exact(spelling(&name)));
            }
        }
    }
    asks
}

/// Which searches a request needs. For spot the on-demand prices are needed too: a bid that reaches them is no offer.
pub(super) fn classes(want: &Want) -> &'static [Class] {
    match want.spot {
        Spot::No => &[Class::OnDemand],
        Spot::Only | Spot::Any => &[Class::OnDemand, Class::Bid],
    }
}

/// One search without its page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    /// The class.
    pub(super) class: Class,
    /// How many GPUs.
    pub(super) count: u32,
    /// The body; its limit and order are in it.
    pub(super) body: Value,
    /// Whether every card is asked for, so that the list is cut after one page.
    pub(super) is_any: bool,
}

/// Returns the search for `count` GPUs.
pub(super) fn question(
    cloud: &Vast,
    want: &Want,
    choice: &Choice,
    class: Class,
    count: u32,
    whats: &[What],
) -> Question {
    let models = whats.iter().filter_map(|what| match what {
        What::Model(model) => Some(model),
        What::Exact(_) => None,
    });
    let mut cards = cards(models);
    let is_any = whats.contains(&What::Model(GpuModel::Any));
    let exact = whats.iter().filter_map(|what| match what {
        What::Exact(name) => Some(name.clone()),
        What::Model(_) => None,
    });
    if !is_any {
        let before = cards.names.len();
        cards.names.extend(exact);
        if cards.names.len() > before {
            cards.sizes = None;
        }
    }
    let settings = &cloud.settings;
    let disk = super::disk_gb(want.disk_gb);
    let mut body = json!({
        "external": {"eq": false}, "rentable": {"eq": true}, "rented": {"eq": false},
        "num_gpus": {"eq": count},
        "disk_space": {"gte": disk},
        "direct_port_count": {"gte": 1},
        "reliability": {"gte": settings.min_reliability},
        // Without a compute capability beside it the CUDA floor once hid cards (github.com/dstackai/gpuhunt/issues/142).
        "cuda_max_good": {"gte": f64::from(choice.floor.major) + f64::from(choice.floor.minor) / 10.0},
        "compute_cap": {"gte": 500},
        "inet_down": {"gte": LEAST_DOWNLOAD},
        "duration": {"gte": LEAST_SECONDS},
        "type": class.wire(),
        "allocated_storage": disk,
        "order": [["dph_total", "asc"]],
        "limit": ROWS,
    });
    if settings.verified || want.secure {
        body["verified"] = json!({"eq": true});
    }
    if settings.datacenter || want.secure {
        body["datacenter"] = json!({"eq": true});
    }
    let own_image = !choice.is_ours;
    if !(own_image && cards.names.iter().any(|name| is_amd(name))) {
        body["gpu_arch"] = json!({"eq": "nvidia"});
    }
    if !(own_image && cards.names.iter().any(|name| is_arm(name))) {
        body["cpu_arch"] = json!({"eq": "amd64"});
    }
    match cards.names.as_slice() {
        [] => {}
        names => body["gpu_name"] = json!({"in": names}),
    }
    if let Some(range) = gpu_ram(&cards, want.vram_gb) {
        body["gpu_ram"] = range;
    }
    if let Some(codes) = countries(&want.regions) {
        body["geolocation"] = json!({"in": codes});
    }
    let machines: Option<Vec<u64>> = want.zones.iter().map(|zone| pinned_machine(zone)).collect();
    if let Some(machines) = machines.filter(|machines| !machines.is_empty()) {
        body["machine_id"] = json!({"in": machines});
    }
    if let Some(ram) = want.ram_gb {
        // Of the whole machine, so that it can only leave out what is too small in any case.
        body["cpu_ram"] = json!({"gte": f64::from(ram) * 1000.0 * 0.9});
    }
    if let Some(vcpus) = want.vcpus {
        body["cpu_cores_effective"] = json!({"gte": vcpus});
    }
    if let Some(most) = want.max_price {
        body["dph_total"] = json!({"lte": most.as_f64() + 1e-6});
    }
    Question { class, count, body, is_any }
}

/// Megabytes of one card, with the slack of drivers.
fn gpu_ram(cards: &Cards, vram_gb: Option<u32>) -> Option<Value> {
    let (least, most) = match cards.sizes {
        Some((least, most)) => (Some(least), Some(most)),
        None => (None, None),
    };
    let least = least.max(vram_gb)?;
    let mut range = json!({"gte": (f64::from(least) * 1000.0 * SLACK).round()});
    if let Some(most) = most {
        range["lte"] = json!((f64::from(most) * 1024.0 / SLACK).round());
    }
    Some(range)
}

/// What a search brought.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Found {
    /// The rows as they came, each ask once.
    rows: Vec<Value>,
    /// Whether there may be more.
    pub(super) is_cut: bool,
}

impl Found {
    /// Reads the rows; what is none is left out.
    pub(super) fn asks(&self) -> Vec<Ask> {
        self.rows.iter().filter_map(|row| serde_json::from_value(row.clone()).ok()).collect()
    }
}

/// Searches, or takes what the same search brought less than a minute ago.
pub(super) async fn search(cloud: &Vast, question: &Question) -> Result<Found> {
    // The key is in it as its mark: another key may see other offers.
    let Setup { endpoint, secret_mark, .. } = &cloud.setup;
    let name = format!("{endpoint} {secret_mark} {}", question.body);
    if let Some(found) = cloud.searches.get(&name) {
        return Ok(found);
    }
    let found = pages(cloud, question).await?;
    cloud.searches.put(&name, &found);
    Ok(found)
}

async fn pages(cloud: &Vast, question: &Question) -> Result<Found> {
    let most = if question.is_any { 1 } else { MOST_PAGES };
    let mut body = question.body.clone();
    let (mut found, mut seen) = (Found::default(), HashSet::new());
    for page in 1..=most {
        let rows = cloud.api.search(&body, "listing offers").await?;
        let is_full = rows.len() >= ROWS;
        let last = rows.iter().filter_map(|row| row["dph_total"].as_f64()).reduce(f64::max);
        let before = found.rows.len();
        found.rows.extend(rows.into_iter().filter(|row| seen.insert(ask_of(row))));
        match (is_full, last) {
            (false, _) => return Ok(found),
            // A full page of nothing new at one price cannot be gone beyond.
            (true, Some(last)) if page < most && found.rows.len() > before => {
                body["dph_total"]["gte"] = json!(last)
            }
            _ => break,
        }
    }
    found.is_cut = true;
    Ok(found)
}

/// Returns the names of GPUs that the request is about, for notes.
pub(super) fn shown(whats: &[What]) -> String {
    let names: BTreeSet<String> = whats
        .iter()
        .map(|what| match what {
            What::Model(model) => model.to_string(),
            What::Exact(name) => name.clone(),
        })
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// What tells rows of one search apart.
fn ask_of(row: &Value) -> String {
    let id = [&row["ask_contract_id"], &row["id"]].into_iter().find(|id| !id.is_null());
    id.unwrap_or(row).to_string()
}
