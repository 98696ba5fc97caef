//! From rows to offers. Filters are not always honoured by the server, so every row is held against the request again
//! (github.com/browser-use/browser-harness/issues/617).

use super::Settings;
use super::image::{self, Choice};
use super::instance::{InstanceType, Slot};
use super::places::{machine_word, place};
use super::prices::{price, traffic};
use super::search::{Class, What};
use super::wire::Ask;
use crate::model::account::{AccountId, CloudKind};
use crate::model::gpu::Gpu;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::want::Cuda;

/// What all rows of one answer have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) account: &'a AccountId,
    pub(super) sandbox: bool,
    pub(super) settings: &'a Settings,
    pub(super) choice: &'a Choice,
    pub(super) class: Class,
    pub(super) count: u32,
    pub(super) disk_gb: u32,
    /// The CUDA that was asked for; it goes into the id.
    pub(super) cuda: Option<Cuda>,
}

/// What a row is.
#[derive(Debug)]
pub(super) enum Row {
    /// An offer; whether the row's own total is another price.
    Offer(Box<Offer>, bool),
    /// One without a usable price.
    Unpriced,
    /// Not what was asked for.
    Other(&'static str),
}

/// Returns the card of a row; none if it names none.
pub(super) fn card(ask: &Ask) -> Option<Gpu> {
    let name = ask.gpu_name.as_deref().filter(|name| !name.trim().is_empty())?;
    Some(Gpu::identify(name, ask.gpu_ram.map(|mb| mb / 1024.0)))
}

/// Whether one of the things asked for is this card.
pub(super) fn is_asked(card: &Gpu, whats: &[What]) -> bool {
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    whats.iter().any(|what| match what {
        What::Model(model) => model.matches(card),
        What::Exact(name) => fold(name) == fold(&card.raw),
    })
}

/// Reads a row; `whats` is what was asked for, none at a re-check.
pub(super) fn row(ask: &Ask, whats: Option<&[What]>, frame: &Frame<'_>) -> Row {
    let (Some(id), Some(machine), Some(card)) = (ask.ask(), ask.machine_id, card(ask)) else {
        return Row::Other("it names no ask, machine or GPU");
    };
    if let Some(why) = misses(ask, frame) {
        return Row::Other(why);
    }
    if whats.is_some_and(|whats| !is_asked(&card, whats)) {
        return Row::Other("another GPU");
    }
    let Some(price) = price(ask, frame.disk_gb, frame.class.is_spot()) else { return Row::Unpriced };
    let place = place(ask.geolocation.as_deref());
    let instance = InstanceType { gpu: card.raw.clone(), count: frame.count };
    let key = OfferKey {
        account: frame.account.clone(),
        instance_type: instance.to_string(),
        gpu_count: frame.count,
        zone: place.zone.clone(),
        spot: frame.class.is_spot(),
        disk_gb: frame.disk_gb,
        cuda: frame.cuda,
        ram_gb: None,
        vcpus: None,
        price: price.parts.total(),
        own: Some(Slot { ask: id, machine }.to_string()),
    };
    let tenth = |figure: f64| (figure * 10.0).round() / 10.0;
    let positive = |figure: Option<f64>| figure.filter(|figure| *figure > 0.0);
    let offer = Offer {
        id: encoded(key.clone()),
        account: frame.account.clone(),
        cloud: CloudKind::Vast,
        region: place.region,
        country: place.country,
        zone: place.zone,
        host: Some(machine_word(machine)),
        instance_type: key.instance_type,
        gpu: Some(card.name),
        gpu_raw: Some(card.raw),
        gpu_count: frame.count,
        vram_gb: card.vram_gb,
        vcpus: positive(ask.cpu_cores_effective).map(tenth),
        ram_gb: positive(ask.cpu_ram)
            .zip(positive(ask.gpu_frac))
            .map(|(mb, part)| tenth(mb * part.min(1.0) / 1000.0)),
        disk_gb: frame.disk_gb,
        spot: key.spot,
        secure: is_datacenter(ask) && is_verified(ask),
        price_per_hour: price.parts.total(),
        price_parts: price.parts,
        price_estimated: false,
        price_as_of: None,
        traffic_per_gb: traffic(ask),
        continent: place.continent,
        cuda: image::cuda(ask.cuda_max_good).map(|cuda| cuda.to_string()),
        stock: None,
        sandbox: frame.sandbox,
    };
    Row::Offer(Box::new(offer), price.is_disputed)
}

/// Writes the id; the place in it is for people, and goes where an id would be too long.
fn encoded(mut key: OfferKey) -> String {
    let id = key.encode();
    if id.len() <= LONGEST_ID {
        return id;
    }
    key.zone = None;
    key.encode()
}

/// What `--offer` takes.
const LONGEST_ID: usize = 200;

fn is_verified(ask: &Ask) -> bool {
    ask.verification.as_deref() == Some("verified")
}

fn is_datacenter(ask: &Ask) -> bool {
    ask.hosting_type == Some(1.0)
}

/// The first condition that a row does not meet. What a row does not tell was left to the server, but for what must be
/// certain.
fn misses(ask: &Ask, frame: &Frame<'_>) -> Option<&'static str> {
    let Frame { settings, choice, .. } = frame;
    let below = |figure: Option<f64>, least: f64| figure.is_some_and(|figure| figure < least);
    let reliability = ask.reliability2.or(ask.reliability);
    let cuda = image::cuda(ask.cuda_max_good);
    let checks = [
        (ask.num_gpus != Some(frame.count), "another number of GPUs"),
        (ask.rentable == Some(false) || ask.rented == Some(true), "it is rented"),
        (ask.external == Some(true), "it is an external host"),
        (settings.verified && !is_verified(ask), "the host is not verified"),
        (settings.datacenter && !is_datacenter(ask), "the host is in no data centre"),
        (reliability.is_none_or(|has| has < settings.min_reliability), "the host is not reliable enough"),
        (below(ask.disk_space, f64::from(frame.disk_gb)), "it has not so much disk"),
        (below(ask.direct_port_count, 1.0), "it has no port to spare for ssh"),
        (below(ask.duration, 86_400.0), "the host takes it back within a day"),
        (cuda.is_some_and(|has| has < choice.floor), "its driver is too old"),
        (cuda.is_none() && frame.cuda.is_some(), "it does not tell its CUDA version"),
        (choice.is_ours && ask.gpu_arch.as_deref().is_some_and(|arch| arch != "nvidia"), "it has no CUDA"),
        (
            choice.is_ours && ask.cpu_arch.as_deref().is_some_and(|arch| arch != "amd64"),
            "our image is not for its CPU",
        ),
    ];
    checks.into_iter().find(|(missed, _)| *missed).map(|(_, why)| why)
}
