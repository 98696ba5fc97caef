//! From a machine, a zone and a price to an offer.

use super::places::place;
use super::prices::{self, Price};
use super::shapes::Shape;
use crate::model::account::{AccountId, CloudKind};
use crate::model::money::Usd;
use crate::model::offer::{Offer, Traffic};
use crate::model::offer_key::OfferKey;
use crate::model::place::Continent;
use crate::model::want::{Cuda, Kind, Want};

/// The CUDA version that the driver of the GPU image (580) is for.
pub(super) const IMAGE_CUDA: Cuda = Cuda { major: 13, minor: 0 };

/// The GPU image's own size.
pub(super) const GPU_DISK_GB: u32 = 50;

/// The size of plain Ubuntu's image.
pub(super) const CPU_DISK_GB: u32 = 10;

/// A GB that leaves for the internet from North America and Europe, Premium Tier, the first TB of a month
/// (cloud.google.com/vpc/network-pricing). Other places differ.
const OUTWARD: Usd = Usd::from_micros(120_000);

/// What all rows have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) account: &'a AccountId,
    pub(super) sandbox: bool,
    /// The disk as asked for.
    pub(super) disk_gb: u32,
    /// CUDA floor, for machines with a GPU.
    pub(super) floor: Option<Cuda>,
}

/// Returns the machines that a request is about.
pub(super) fn asked<'s>(want: &Want, shapes: &'s [Shape]) -> Vec<&'s Shape> {
    let sized = want.vcpus.is_some() || want.ram_gb.is_some();
    let is_asked = |shape: &&Shape| match &want.kind {
        Kind::CpuOnly => shape.cards.is_none(),
        Kind::Gpus(gpus) => shape.cards.as_ref().is_some_and(|cards| {
            let fits = gpus.iter().any(|gpu| gpu.count == cards.count && gpu.model.matches(&cards.gpu));
            fits && shape.is_usual(sized)
        }),
        Kind::Types(types) => types.iter().any(|ty| {
            // n1 types tell no count, all others do.
            let count = if shape.is_attached() { Some(ty.count.unwrap_or(1)) } else { ty.count };
            ty.name == shape.machine_type && count.is_none_or(|count| count == shape.gpu_count())
        }),
    };
    shapes.iter().filter(is_asked).collect()
}

/// Returns the disk that a machine gets.
pub(super) fn disk_gb(shape: &Shape, asked: u32) -> u32 {
    asked.max(if shape.cards.is_some() { GPU_DISK_GB } else { CPU_DISK_GB })
}

/// Returns the offer of one machine in one zone.
pub(super) fn offer(shape: &Shape, zone: &str, spot: bool, price: &Price, frame: &Frame<'_>) -> Offer {
    let disk_gb = disk_gb(shape, frame.disk_gb);
    let parts = prices::parts(price.compute, disk_gb, spot);
    let place = place(zone);
    let card = shape.cards.as_ref().map(|cards| &cards.gpu);
    let key = OfferKey {
        account: frame.account.clone(),
        instance_type: shape.machine_type.to_owned(),
        gpu_count: shape.gpu_count(),
        zone: Some(zone.to_owned()),
        spot,
        disk_gb,
        cuda: frame.floor.filter(|_| card.is_some()),
        ram_gb: None,
        vcpus: None,
        price: parts.total(),
        own: None,
    };
    let is_near = matches!(place.continent, Some(Continent::NorthAmerica | Continent::Europe));
    Offer {
        id: key.encode(),
        account: frame.account.clone(),
        cloud: CloudKind::Gcp,
        region: place.region,
        country: place.country,
        zone: place.zone,
        host: None,
        instance_type: key.instance_type,
        gpu: card.map(|card| card.name.clone()),
        gpu_raw: card.map(|card| card.raw.clone()),
        gpu_count: shape.gpu_count(),
        vram_gb: card.and_then(|card| card.vram_gb),
        vcpus: Some(f64::from(shape.vcpus)),
        ram_gb: Some(shape.memory_gib),
        disk_gb,
        spot,
        // All of it is Google's own data centres.
        secure: true,
        price_per_hour: parts.total(),
        price_parts: parts,
        // A catalogue of somebody else's, whatever its age.
        price_estimated: true,
        price_as_of: Some(price.as_of),
        traffic_per_gb: is_near.then_some(Traffic { inward: Usd::ZERO, outward: OUTWARD }),
        continent: place.continent,
        cuda: card.map(|_| IMAGE_CUDA.to_string()),
        // Google tells none.
        stock: None,
        sandbox: frame.sandbox,
    }
}
