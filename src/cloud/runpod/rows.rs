//! From the catalogue's stock to offers: which rows there are and what they cost.
//!
//! The row rule (docs.runpod.io/api-reference-v2, `GET /v2/catalog/gpus`): the tier has the type, at a price above zero, in
//! machines of that many GPUs, and the data centre has it in stock. A community host outside RunPod's data centres is listed
//! without any: one row without a zone, which no `--zone` or `--region` takes.
//!
//! A community row with a data centre is offered as it is listed, and pinned there. Such a pin was once refused everywhere
//! while a create without a pin worked (github.com/runpod/runpodctl/issues/326, about the older API); should it happen, the
//! create falls through like any other without capacity. No row without a pin is made up beside the listed ones: it would
//! promise a stock that nothing lists.

use super::image::Choice;
use super::instance::{InstanceType, Tier};
use super::places::Places;
use super::wire::{CenterStock, GpuType};
use crate::model::account::{AccountId, CloudKind};
use crate::model::gpu::{Gpu, GpuModel};
use crate::model::money::Usd;
use crate::model::offer::{Offer, PriceParts, Stock};
use crate::model::offer_key::OfferKey;
use crate::model::place::{Place, RegionWant};
use crate::model::want::{Cuda, Kind, Want};

/// Disk of the container, per GB-month (docs.runpod.io/pods/pricing).
const DISK_PER_MONTH: Usd = Usd::from_micros(100_000);

/// One thing that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask {
    what: What,
    /// How many GPUs.
    pub(super) count: u32,
    tier: Option<Tier>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Model(GpuModel),
    /// An exact id as the user typed it.
    Id(String),
}

/// Returns what `want` asks for. As an exact type a GPU id is taken, and a whole instance type as our lists show it.
pub(super) fn asks(want: &Want) -> Vec<Ask> {
    match &want.kind {
        Kind::CpuOnly => Vec::new(),
        Kind::Gpus(gpus) => gpus
            .iter()
            .map(|gpu| Ask { what: What::Model(gpu.model.clone()), count: gpu.count, tier: None })
            .collect(),
        Kind::Types(types) => types
            .iter()
            .map(|ty| match InstanceType::parse(&ty.name) {
                Some(whole) => {
                    Ask { what: What::Id(whole.gpu_id), count: whole.count, tier: Some(whole.tier) }
                }
                None => Ask { what: What::Id(ty.name.clone()), count: ty.count.unwrap_or(1), tier: None },
            })
            .collect(),
    }
}

impl Ask {
    fn takes(&self, gpu: &GpuType, id: &str, card: &Gpu, among: &[GpuType], own_image: bool) -> bool {
        match &self.what {
            // Our images are CUDA images; nothing of AMD is offered unless both type and image were named.
            What::Model(model) => is_nvidia(gpu, id) && model.matches(card),
            What::Id(asked) => {
                // Ids with two blanks exist beside ones with one: an id that is listed exactly so means itself alone.
                let listed = among.iter().any(|gpu| gpu.id.as_deref() == Some(asked));
                let same =
                    if listed { asked == id } else { collapse(asked).eq_ignore_ascii_case(&collapse(id)) };
                same && (is_nvidia(gpu, id) || own_image)
            }
        }
    }
}

fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_nvidia(gpu: &GpuType, id: &str) -> bool {
    match gpu.manufacturer.as_deref() {
        Some("NVIDIA") => true,
        Some("AMD") => false,
        // A word that we do not know, or none: the id says it.
        _ => ["NVIDIA", "Tesla"].iter().any(|maker| id.trim_start().starts_with(maker)),
    }
}

/// What all rows of one answer have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) account: &'a AccountId,
    pub(super) sandbox: bool,
    pub(super) places: &'a Places,
    pub(super) regions: &'a [RegionWant],
    pub(super) tier: Tier,
    pub(super) count: u32,
    pub(super) wishes: Wishes,
}

/// What goes from the request into the offer's id, and from there into the create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) disk_gb: u32,
    pub(super) floor: Option<Cuda>,
    pub(super) ram_gb: Option<u32>,
    pub(super) vcpus: Option<u32>,
}

impl Wishes {
    pub(super) fn of(want: &Want, choice: &Choice) -> Self {
        Wishes { disk_gb: want.disk_gb, floor: choice.floor, ram_gb: want.ram_gb, vcpus: want.vcpus }
    }
}

/// The rows of one answer.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) offers: Vec<Offer>,
    /// Rows in stock whose price is no price.
    pub(super) unpriced: usize,
}

/// Returns the rows of an answer to the question that `frame` describes, for those of `asks` that are about its count.
pub(super) fn rows(gpus: &[GpuType], asks: &[Ask], own_image: bool, frame: &Frame<'_>) -> Rows {
    let mut rows = Rows::default();
    for gpu in gpus {
        let Some(id) = gpu.id.as_deref() else { continue };
        let card = Gpu::identify(id, gpu.memory);
        let asked = asks.iter().any(|ask| {
            ask.count == frame.count
                && ask.tier.is_none_or(|tier| tier == frame.tier)
                && ask.takes(gpu, id, &card, gpus, own_image)
        });
        if !asked || !has_tier(gpu, frame) {
            continue;
        }
        let zones = zones(gpu, frame.tier);
        match price(gpu, frame) {
            None => rows.unpriced += zones.len(),
            Some(price) => {
                let offer = |zone: &Zone| offer(id, gpu.memory, price, zone, frame);
                rows.offers.extend(zones.iter().map(offer));
            }
        }
    }
    rows
}

/// Returns the row of one type in `zone`, none if it is not in stock there now.
pub(super) fn row_in(gpu: &GpuType, id: &str, zone: Option<&str>, frame: &Frame<'_>) -> Option<Offer> {
    let price = price(gpu, frame).filter(|_| has_tier(gpu, frame))?;
    let listed = match zone {
        Some(asked) => {
            let mut zones = zones(gpu, frame.tier).into_iter();
            zones.find(|zone| zone.id.as_deref().is_some_and(|id| id.eq_ignore_ascii_case(asked)))?
        }
        // Without a pin any data centre will do.
        None => Zone { id: None, stock: Availability::of(gpu.availability.as_deref()).stock()? },
    };
    Some(offer(id, gpu.memory, price, &listed, frame))
}

fn has_tier(gpu: &GpuType, frame: &Frame<'_>) -> bool {
    let (has, most) = match frame.tier {
        Tier::Secure => (gpu.secure, gpu.max_count.and_then(|most| most.secure)),
        Tier::Community => (gpu.community, gpu.max_count.and_then(|most| most.community)),
    };
    has == Some(true) && most.is_none_or(|most| most >= frame.count)
}

/// Price of all GPUs per hour; prices come as 32-bit floats for one GPU.
fn price(gpu: &GpuType, frame: &Frame<'_>) -> Option<Usd> {
    let each = match frame.tier {
        Tier::Secure => gpu.price?.secure?,
        Tier::Community => gpu.price?.community?,
    };
    Usd::from_f32_wire(each).filter(|each| each.is_positive()).map(|each| each.times(frame.count))
}

/// A place where something is in stock, with how much where we know the word.
struct Zone {
    id: Option<String>,
    stock: Option<Stock>,
}

enum Availability {
    None,
    Some(Option<Stock>),
}

impl Availability {
    /// Words that we do not know mean that there is something; no word means that there is nothing.
    fn of(word: Option<&str>) -> Self {
        match word {
            None | Some("NONE" | "") => Availability::None,
            Some("HIGH") => Availability::Some(Some(Stock::High)),
            Some("MEDIUM") => Availability::Some(Some(Stock::Medium)),
            Some("LOW") => Availability::Some(Some(Stock::Low)),
            Some(_) => Availability::Some(None),
        }
    }

    fn stock(self) -> Option<Option<Stock>> {
        match self {
            Availability::None => None,
            Availability::Some(stock) => Some(stock),
        }
    }
}

fn zones(gpu: &GpuType, tier: Tier) -> Vec<Zone> {
    let Some(whole) = Availability::of(gpu.availability.as_deref()).stock() else { return Vec::new() };
    let centers = gpu.data_centers.as_deref().unwrap_or_default();
    if centers.is_empty() {
        return match tier {
            Tier::Secure => Vec::new(),
            Tier::Community => vec![Zone { id: None, stock: whole }],
        };
    }
    let zone = |center: &CenterStock| {
        let id = center.id.as_deref().map(|id| id.trim().to_uppercase()).filter(|id| !id.is_empty())?;
        Some(Zone { id: Some(id), stock: Availability::of(center.availability.as_deref()).stock()? })
    };
    let mut zones: Vec<Zone> = centers.iter().filter_map(zone).collect();
    zones.sort_by(|one, two| one.id.cmp(&two.id));
    zones.dedup_by(|one, two| one.id == two.id);
    zones
}

fn offer(id: &str, memory: Option<f64>, compute: Usd, zone: &Zone, frame: &Frame<'_>) -> Offer {
    let card = Gpu::identify(id, memory);
    let place = match &zone.id {
        Some(zone) => frame.places.place_asked(zone, frame.regions),
        None => Place::default(),
    };
    let wishes = frame.wishes;
    let parts = PriceParts { compute, disk: DISK_PER_MONTH.per_month_for(wishes.disk_gb), address: None };
    let instance = InstanceType { gpu_id: id.to_owned(), count: frame.count, tier: frame.tier };
    let key = OfferKey {
        account: frame.account.clone(),
        instance_type: instance.to_string(),
        gpu_count: frame.count,
        zone: place.zone.clone(),
        spot: false,
        disk_gb: wishes.disk_gb,
        cuda: wishes.floor,
        ram_gb: wishes.ram_gb,
        vcpus: wishes.vcpus,
        price: parts.total(),
        own: None,
    };
    Offer {
        id: key.encode(),
        account: frame.account.clone(),
        cloud: CloudKind::Runpod,
        region: place.region,
        country: place.country,
        zone: place.zone,
        host: None,
        instance_type: key.instance_type,
        gpu: Some(card.name),
        gpu_raw: Some(card.raw),
        gpu_count: frame.count,
        vram_gb: card.vram_gb,
        // The catalogue tells neither.
        vcpus: None,
        ram_gb: None,
        disk_gb: wishes.disk_gb,
        spot: false,
        secure: frame.tier == Tier::Secure,
        price_per_hour: parts.total(),
        price_parts: parts,
        price_estimated: false,
        price_as_of: None,
        traffic_per_gb: None,
        continent: place.continent,
        cuda: wishes.floor.map(|floor| floor.to_string()),
        stock: zone.stock,
        sandbox: frame.sandbox,
    }
}
