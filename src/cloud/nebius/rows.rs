//! From platforms, stock, quotas and prices to offers.
//!
//! One offer is a preset of a platform in one region, on demand or spot. What is listed is no reservation.

use std::collections::BTreeSet;

use super::MIN_DISK_GB;
use super::image::{CUDA, SAFE_DISK_GB};
use super::places::place;
use super::platforms::{Shape, card, gpu_quota, is_arm, is_listed, read_type, type_name};
use super::prices::{Item, OnDemand, disk};
use super::scope::Project;
use super::spot::SpotPrices;
use super::stock::{MACHINES, PREEMPTIBLE, Quotas, Seen, Stocks, VCPUS};
use super::wire::{Platform, Preset};
use crate::model::account::{AccountId, CloudKind};
use crate::model::gpu::Gpu;
use crate::model::money::Usd;
use crate::model::offer::{Offer, PriceParts};
use crate::model::offer_key::OfferKey;
use crate::model::want::{Cuda, Kind, Spot, Want};

/// Returns the size of the boot disk for what is asked for. Below [`SAFE_DISK_GB`] boot disks were seen to hang without a word
/// (github.com/fllstck/nebius-alchemy, notes on instances): whoever did not ask for a size gets at least so much.
pub(super) fn disk_gb(want: &Want) -> u32 {
    want.disk_gb.max(if want.disk_given { MIN_DISK_GB } else { SAFE_DISK_GB })
}

/// What all rows have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) account: &'a AccountId,
    pub(super) sandbox: bool,
    /// In GiB.
    pub(super) disk_gb: u32,
    /// CUDA floor, for types with a GPU.
    pub(super) floor: Option<Cuda>,
    pub(super) on_demand: &'a OnDemand,
    /// What the machine was shown to cost on demand, without the disk: a list's price may be higher, never lower.
    pub(super) shown: Option<Usd>,
    /// None where they are not asked for or did not come.
    pub(super) spot: Option<&'a SpotPrices>,
    pub(super) stocks: &'a Stocks,
    pub(super) quotas: &'a Quotas,
}

/// The rows of one or more regions.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) offers: Vec<Offer>,
    /// Rows whose price nobody tells.
    pub(super) unpriced: usize,
    /// What is left out for a quota of zero: `B200 in us-central1`.
    pub(super) no_quota: BTreeSet<String>,
    /// GPUs of all platforms, in stock or not.
    pub(super) cards: BTreeSet<String>,
    /// All types, in stock or not.
    pub(super) types: BTreeSet<String>,
}

/// One preset of a platform.
pub(super) struct Type<'a> {
    pub(super) platform: &'a Platform,
    pub(super) name: &'a str,
    pub(super) preset: &'a str,
    pub(super) shape: Shape,
    pub(super) card: Option<Gpu>,
}

impl<'a> Type<'a> {
    /// None for what cannot be read, or cannot run our images.
    pub(super) fn of(platform: &'a Platform, preset: &'a Preset) -> Option<Self> {
        let name = platform.metadata.as_ref().map(|metadata| metadata.name.as_str())?;
        if is_arm(name) || read_type(&type_name(name, &preset.name)).is_none() {
            return None;
        }
        let figure = |figure: i32| u32::try_from(figure).ok();
        let told = preset.resources.as_ref().and_then(|resources| {
            Some(Shape {
                gpus: figure(resources.gpu_count)?,
                vcpus: figure(resources.vcpu_count).filter(|count| *count > 0)?,
                ram_gib: figure(resources.memory_gibibytes).filter(|gib| *gib > 0)?,
            })
        });
        let shape = told.or_else(|| Shape::of_name(&preset.name))?;
        let spec = platform.spec.as_ref();
        let memory = spec.map(|spec| spec.gpu_memory_gigabytes.max(spec.gpu_memory_gibibytes));
        let card = card(name, memory.filter(|memory| *memory > 0).map(f64::from));
        // A card without a count, or the other way round, is something that we do not understand.
        (card.is_some() == (shape.gpus > 0)).then_some(Type {
            platform,
            name,
            preset: &preset.name,
            shape,
            card,
        })
    }

    /// Returns every preset of the platforms.
    pub(super) fn all(platforms: &'a [Platform]) -> impl Iterator<Item = Type<'a>> {
        platforms.iter().flat_map(|platform| {
            let presets = platform.spec.as_ref().map(|spec| spec.presets.as_slice()).unwrap_or_default();
            presets.iter().filter_map(move |preset| Type::of(platform, preset))
        })
    }

    fn is_asked(&self, kind: &Kind) -> bool {
        match kind {
            Kind::CpuOnly => self.card.is_none(),
            Kind::Gpus(gpus) => self.card.as_ref().is_some_and(|card| {
                is_listed(self.name, self.shape.gpus)
                    && gpus.iter().any(|gpu| gpu.count == self.shape.gpus && gpu.model.matches(card))
            }),
            Kind::Types(types) => types.iter().any(|ty| {
                read_type(&ty.name) == Some((self.name, self.preset))
                    && ty.count.is_none_or(|count| count == self.shape.gpus)
            }),
        }
    }

    pub(super) fn item(&self, region: &str) -> Item {
        Item { region: region.to_owned(), platform: self.name.to_owned(), preset: self.preset.to_owned() }
    }

    /// Whether it may be had at the spot price at all; a platform that does not tell is believed to.
    fn may_be_spot(&self) -> bool {
        self.card.is_some()
            && self.platform.status.as_ref().is_none_or(|status| status.allowed_for_preemptibles)
    }

    /// The quota of zero that a machine of this type would meet.
    fn zero_quota(&self, region: &str, spot: bool, quotas: &Quotas) -> bool {
        let told = self.platform.spec.as_ref().map(|spec| spec.gpu_count_quota_type.clone());
        let own = match (self.card.is_some(), spot) {
            (false, _) => Some(VCPUS.to_owned()),
            // Whether preemptible GPUs count against the quota of their model is told both ways.
            (true, true) => Some(PREEMPTIBLE.to_owned()),
            (true, false) => told.filter(|name| !name.is_empty()).or_else(|| gpu_quota(self.name)),
        };
        quotas.is_zero(MACHINES, region) || own.is_some_and(|name| quotas.is_zero(&name, region))
    }
}

/// Whether machines are asked for on demand, and at the spot price.
pub(super) fn kinds(spot: Spot) -> impl Iterator<Item = bool> {
    let kinds: &[bool] = match spot {
        Spot::No => &[false],
        Spot::Only => &[true],
        Spot::Any => &[false, true],
    };
    kinds.iter().copied()
}

/// Takes in the rows of one region that `want` asks for.
pub(super) fn add(rows: &mut Rows, home: &Project, platforms: &[Platform], want: &Want, frame: &Frame<'_>) {
    for ty in Type::all(platforms) {
        rows.cards.extend(ty.card.as_ref().map(|card| card.name.clone()));
        rows.types.insert(type_name(ty.name, ty.preset));
        if !ty.is_asked(&want.kind) {
            continue;
        }
        for spot in kinds(want.spot) {
            if spot && !ty.may_be_spot() {
                continue;
            }
            if ty.zero_quota(&home.region, spot, frame.quotas) {
                let what = ty.card.as_ref().map_or("machines without a GPU", |card| card.name.as_str());
                rows.no_quota.insert(format!("{what} in {}", home.region));
                continue;
            }
            if frame.stocks.seen(&home.region, ty.name, ty.preset, spot) == Seen::Out {
                continue;
            }
            match offer(&ty, home, spot, frame) {
                Some(offer) => rows.offers.push(offer),
                // No spot price is no spot offer.
                None if spot => {}
                None => rows.unpriced += 1,
            }
        }
    }
}

/// Returns the types that on-demand prices are needed of. Of those without a GPU the first of each platform is enough: prices
/// there go by the vCPU and the memory.
pub(super) fn to_price(home: &Project, platforms: &[Platform], want: &Want) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for ty in Type::all(platforms).filter(|ty| ty.is_asked(&want.kind)) {
        let item = ty.item(&home.region);
        let has_one = || items.iter().any(|known| known.platform == item.platform);
        if ty.card.is_none() && want.is_cpu_only() && has_one() {
            continue;
        }
        items.push(item);
    }
    items
}

/// Returns the offer of one type in one region, whether in stock or not; none without a price.
pub(super) fn offer(ty: &Type<'_>, home: &Project, spot: bool, frame: &Frame<'_>) -> Option<Offer> {
    let price = frame.on_demand.price(&ty.item(&home.region), ty.shape);
    let (compute, is_listed, as_of) = if spot {
        let live = frame.spot?.of_gpu(&home.region, ty.name)?.times(ty.shape.gpus);
        // Nebius never bills more than on demand.
        (price.map_or(live, |price| if price.is_listed { live } else { live.min(price.amount) }), false, None)
    } else {
        match (price, frame.shown) {
            (Some(price), Some(shown)) if price.is_listed => (price.amount.max(shown), true, price.as_of),
            (Some(price), _) => (price.amount, price.is_listed, price.as_of),
            (None, shown) => (shown?, true, None),
        }
    };
    if compute == Usd::ZERO {
        return None;
    }
    let parts = PriceParts { compute, disk: disk(frame.disk_gb), address: None };
    let place = place(&home.region);
    let floor = frame.floor.filter(|_| ty.shape.gpus > 0);
    let key = OfferKey {
        account: frame.account.clone(),
        instance_type: type_name(ty.name, ty.preset),
        gpu_count: ty.shape.gpus,
        zone: place.zone.clone(),
        spot,
        disk_gb: frame.disk_gb,
        cuda: floor,
        ram_gb: None,
        vcpus: None,
        price: parts.total(),
        // Which of the region's projects, so that the id works by itself.
        own: Some(home.id.clone()),
    };
    let stock = match frame.stocks.seen(&home.region, ty.name, ty.preset, spot) {
        Seen::There(stock) => stock,
        Seen::Out | Seen::Unknown => None,
    };
    Some(Offer {
        id: key.encode(),
        account: frame.account.clone(),
        cloud: CloudKind::Nebius,
        region: place.region,
        country: place.country,
        zone: place.zone,
        host: None,
        instance_type: key.instance_type,
        gpu: ty.card.as_ref().map(|card| card.name.clone()),
        gpu_raw: ty.card.as_ref().map(|card| card.raw.clone()),
        gpu_count: ty.shape.gpus,
        vram_gb: ty.card.as_ref().and_then(|card| card.vram_gb),
        vcpus: Some(f64::from(ty.shape.vcpus)),
        ram_gb: Some(f64::from(ty.shape.ram_gib)),
        disk_gb: frame.disk_gb,
        spot,
        // All of Nebius is Nebius's own data centres.
        secure: true,
        price_per_hour: parts.total(),
        price_parts: parts,
        price_estimated: is_listed,
        price_as_of: as_of,
        traffic_per_gb: None,
        continent: place.continent,
        cuda: (ty.shape.gpus > 0).then(|| CUDA.to_string()),
        stock,
        sandbox: frame.sandbox,
    })
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
