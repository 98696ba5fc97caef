//! From types, stock, locations and the price of disks to offers.
//!
//! One offer is a type that a location has in stock now, on demand or spot. There is no stock level; being listed is not a
//! reservation. Types are described by their fields, never by their names.

use super::image::candidates_of_names;
use super::places::Places;
use super::states::card;
use super::wire::{Stock, TypeRow, told};
use super::{MIN_DISK_GB, prices::DiskPrice};
use crate::model::account::{AccountId, CloudKind};
use crate::model::gpu::Gpu;
use crate::model::money::Usd;
use crate::model::offer::{Offer, PriceParts};
use crate::model::offer_key::OfferKey;
use crate::model::want::{Cuda, Kind, Want};

/// Confidential computing: ordinary CUDA does not start there (`cuInit` fails with 802), and it is 2 % dearer.
const CONFIDENTIAL: &str = ".CC";

/// Models whose host is an ARM64 machine; the API does not tell the architecture.
const ARM: [&str; 2] = ["GB200", "GB300"];

/// What all rows have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) account: &'a AccountId,
    pub(super) sandbox: bool,
    pub(super) places: &'a Places,
    pub(super) disk: DiskPrice,
    pub(super) disk_gb: u32,
    /// CUDA floor, for types with a GPU.
    pub(super) floor: Option<Cuda>,
}

/// The rows of all answers.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) offers: Vec<Offer>,
    /// Rows in stock whose price is no price.
    pub(super) unpriced: usize,
    /// Rows in stock of types that have no image with the CUDA floor.
    pub(super) without_image: usize,
    /// GPUs of all types, in stock or not.
    pub(super) cards: Vec<String>,
}

/// Returns the rows that `want` asks for, out of the stock of one kind (spot or on demand).
pub(super) fn rows(types: &[TypeRow], stock: &[Stock], spot: bool, want: &Want, frame: &Frame<'_>) -> Rows {
    let mut rows = Rows::default();
    for row in types {
        let Some(shape) = Shape::of(row) else { continue };
        rows.cards.extend(shape.card.as_ref().map(|card| card.name.clone()));
        if !shape.is_asked(&want.kind) {
            continue;
        }
        let mut locations: Vec<&str> = stock
            .iter()
            .filter(|stock| stock.availabilities.iter().flatten().any(|name| name == shape.name))
            .filter_map(|stock| told(stock.location_code.as_ref()))
            .collect();
        locations.sort_unstable();
        locations.dedup();
        if locations.is_empty() {
            continue;
        }
        if shape.cuda(frame).is_err() {
            rows.without_image += locations.len();
            continue;
        }
        for location in locations {
            match offer(&shape, location, spot, frame) {
                Some(offer) => rows.offers.push(offer),
                None => rows.unpriced += 1,
            }
        }
    }
    rows
}

/// Returns the offer of one type in one location, whether in stock or not; none without a usable price.
pub(super) fn row_in(row: &TypeRow, location: &str, spot: bool, frame: &Frame<'_>) -> Option<Offer> {
    offer(&Shape::of(row)?, location, spot, frame)
}

/// What a type is.
struct Shape<'a> {
    row: &'a TypeRow,
    name: &'a str,
    count: u32,
    card: Option<Gpu>,
}

impl<'a> Shape<'a> {
    /// None for a row that cannot be read.
    fn of(row: &'a TypeRow) -> Option<Self> {
        let name = told(row.instance_type.as_ref())?;
        let gpus = row.gpu.as_ref()?;
        let count = gpus.number_of_gpus?;
        let card = (count > 0).then(|| {
            let raw = card(gpus).or(told(row.name.as_ref())).or(told(row.model.as_ref())).unwrap_or(name);
            // The memory is that of all of them.
            let all = row.gpu_memory.as_ref().and_then(|memory| memory.size_in_gigabytes);
            Gpu::identify(raw, all.map(|all| all / f64::from(count)))
        });
        Some(Shape { row, name, count, card })
    }

    fn is_asked(&self, kind: &Kind) -> bool {
        match kind {
            Kind::CpuOnly => self.count == 0,
            Kind::Gpus(gpus) => self.card.as_ref().is_some_and(|card| {
                self.is_ordinary(card)
                    && gpus.iter().any(|gpu| gpu.count == self.count && gpu.model.matches(card))
            }),
            Kind::Types(types) => types
                .iter()
                .any(|ty| ty.name == self.name && ty.count.is_none_or(|count| count == self.count)),
        }
    }

    /// Whether ordinary CUDA images run on it; others are offered to those who name the type.
    fn is_ordinary(&self, card: &Gpu) -> bool {
        let is_arm = ARM.iter().any(|model| card.name.starts_with(model));
        let is_amd = self.row.manufacturer.as_deref() == Some("AMD");
        !self.name.ends_with(CONFIDENTIAL) && !is_arm && !is_amd
    }

    /// The CUDA of the image that a create would take first; an error if no image has what is asked for.
    fn cuda(&self, frame: &Frame<'_>) -> Result<Option<Cuda>, ()> {
        let names = self.row.supported_os.as_deref().unwrap_or_default();
        if self.count == 0 || names.is_empty() {
            return Ok(None);
        }
        match candidates_of_names(names, true, frame.floor).first() {
            Some(first) => Ok(first.cuda),
            None if frame.floor.is_some() => Err(()),
            None => Ok(None),
        }
    }

    fn price(&self, spot: bool) -> Option<Usd> {
        let price = if spot { self.row.spot_price } else { self.row.price_per_hour };
        let in_dollars = self.row.currency.as_deref().is_none_or(|word| word.eq_ignore_ascii_case("usd"));
        price.filter(|price| in_dollars && price.is_positive())
    }
}

fn offer(shape: &Shape<'_>, location: &str, spot: bool, frame: &Frame<'_>) -> Option<Offer> {
    let compute = shape.price(spot)?;
    let disk_gb = frame.disk_gb.max(MIN_DISK_GB);
    let parts = PriceParts { compute, disk: frame.disk.per_gb_month.per_month_for(disk_gb), address: None };
    let place = frame.places.place(location);
    let key = OfferKey {
        account: frame.account.clone(),
        instance_type: shape.name.to_owned(),
        gpu_count: shape.count,
        zone: place.zone.clone(),
        spot,
        disk_gb,
        cuda: frame.floor.filter(|_| shape.count > 0),
        ram_gb: None,
        vcpus: None,
        price: parts.total(),
        own: None,
    };
    let positive = |figure: Option<f64>| figure.filter(|figure| *figure > 0.0);
    Some(Offer {
        id: key.encode(),
        account: frame.account.clone(),
        cloud: CloudKind::Verda,
        region: place.region,
        country: place.country,
        zone: place.zone,
        host: None,
        instance_type: key.instance_type,
        gpu: shape.card.as_ref().map(|card| card.name.clone()),
        gpu_raw: shape.card.as_ref().map(|card| card.raw.clone()),
        gpu_count: shape.count,
        vram_gb: shape.card.as_ref().and_then(|card| card.vram_gb),
        vcpus: positive(shape.row.cpu.as_ref().and_then(|cpu| cpu.number_of_cores)),
        ram_gb: positive(shape.row.memory.as_ref().and_then(|memory| memory.size_in_gigabytes)),
        disk_gb,
        spot,
        // All of Verda is Verda's own data centres.
        secure: true,
        price_per_hour: parts.total(),
        price_parts: parts,
        price_estimated: frame.disk.is_estimated,
        price_as_of: None,
        traffic_per_gb: None,
        continent: place.continent,
        cuda: shape.cuda(frame).ok().flatten().map(|cuda| cuda.to_string()),
        stock: None,
        sandbox: frame.sandbox,
    })
}
