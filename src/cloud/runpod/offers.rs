//! Asking the catalogue: both tiers, every count, the data centres, and what our image hides, all at once.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::{Either, join, join_all, select};

use super::RunPod;
use super::client::StockQuery;
use super::image::{self, Choice};
use super::instance::{InstanceType, Tier};
use super::places::{Places, country_codes};
use super::rows::{Ask, Frame, Rows, Wishes, asks, rows};
use super::wire::GpuType;
use crate::cloud::{Error, OfferBatch, Result};
use crate::http::Retry;
use crate::model::gpu::Gpu;
use crate::model::offer::Offer;
use crate::model::want::{Kind, Want};

/// How much longer than the offers themselves the question about hidden ones may take.
const HIDDEN_PATIENCE: Duration = Duration::from_millis(500);

/// Disks below this many GB were refused on some hosts.
const SMALL_DISK_GB: u32 = 20;

/// An answer to one question, or why there is none.
type Answered = (StockQuery, Result<Vec<GpuType>>);

/// Returns the live offers.
pub(super) async fn offers(cloud: &RunPod, want: &Want) -> Result<OfferBatch> {
    let asks = asks(want);
    let queries = queries(cloud, want, &asks);
    if queries.is_empty() {
        let reason = "the tiers of the configuration leave nothing to ask for";
        let notes = if asks.is_empty() { Vec::new() } else { vec![reason.to_owned()] };
        return Ok(OfferBatch { notes, ..OfferBatch::default() });
    }
    let choice = cloud.choose(want.image.as_deref(), want.cuda);
    let shown = ask(cloud, &queries, choice.floor, Retry::Safe);
    let hidden_queries = if may_hide(&choice, want) { queries.as_slice() } else { &[] };
    let hidden = ask(cloud, hidden_queries, Some(image::LOWEST), Retry::Never);
    let main = join(shown, cloud.places());
    // Whatever becomes of the question about hidden offers, it holds up nothing.
    let ((shown, (places, place_note)), hidden) = match select(Box::pin(main), Box::pin(hidden)).await {
        Either::Left((main, hidden)) => {
            (main, tokio::time::timeout(HIDDEN_PATIENCE, hidden).await.unwrap_or_default())
        }
        Either::Right((hidden, main)) => (main.await, hidden),
    };

    let frame = Context { cloud, want, choice: &choice, asks: &asks, places: &places };
    let mut batch = assemble(&frame, shown)?;
    batch.notes.extend(place_note);
    batch.notes.extend(frame.hidden_note(&batch.offers, hidden));
    batch.notes.extend(small_disk_note(want));
    batch.known_places = places.words().collect::<BTreeSet<_>>().into_iter().collect();
    Ok(batch)
}

/// Returns the questions: each tier with each count, without the floor.
fn queries(cloud: &RunPod, want: &Want, asks: &[Ask]) -> Vec<StockQuery> {
    let counts: BTreeSet<u32> = asks.iter().map(|ask| ask.count).collect();
    let tiers = cloud.settings.tiers.iter().copied().collect::<BTreeSet<_>>();
    let tiers: Vec<Tier> = tiers.into_iter().filter(|tier| !want.secure || *tier == Tier::Secure).collect();
    let query =
        |tier, count| StockQuery { count, tier, floor: None, countries: country_codes(&want.regions) };
    counts.iter().flat_map(|count| tiers.iter().map(move |tier| query(*tier, *count))).collect()
}

async fn ask(
    cloud: &RunPod,
    queries: &[StockQuery],
    floor: Option<crate::model::want::Cuda>,
    retry: Retry,
) -> Vec<Answered> {
    let one = |query: &StockQuery| {
        let query = StockQuery { floor, ..query.clone() };
        async move {
            let answer = cloud.api.gpus(&query, retry).await;
            (query, answer)
        }
    };
    join_all(queries.iter().map(one)).await
}

/// Whether our image's floor may hide offers that `--cuda 12.8` would show: only where the user chose neither.
fn may_hide(choice: &Choice, want: &Want) -> bool {
    choice.is_ours && want.cuda.is_none() && choice.floor > Some(image::LOWEST)
}

struct Context<'a> {
    cloud: &'a RunPod,
    want: &'a Want,
    choice: &'a Choice,
    asks: &'a [Ask],
    places: &'a Places,
}

/// Puts the answers together. Fails only if none came; a missing one is noted, for the list is then not complete.
fn assemble(context: &Context<'_>, answers: Vec<Answered>) -> Result<OfferBatch> {
    let mut batch = OfferBatch::default();
    let (mut seen, mut failed) = (Vec::new(), Vec::new());
    let mut unpriced = 0;
    for (query, answer) in answers {
        match answer {
            Ok(gpus) => {
                let found = context.rows(&query, &gpus);
                batch.offers.extend(found.offers);
                unpriced += found.unpriced;
                seen.extend(gpus);
            }
            Err(error) => failed.push((query, error)),
        }
    }
    if seen.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    batch.notes.extend(failed.iter().map(|(query, error)| missing_note(query, error)));
    if unpriced > 0 {
        batch.notes.push(format!("{unpriced} {} without a usable price left out", offers_word(unpriced)));
    }
    let cards: Vec<Gpu> =
        seen.iter().filter_map(|gpu| Some(Gpu::identify(gpu.id.as_deref()?, gpu.memory))).collect();
    batch.notes.extend(a100_note(context.want, &cards));
    batch.known_types = Some(known_types(context.want, &seen));
    batch.known_gpus = cards.into_iter().map(|card| card.name).collect::<BTreeSet<_>>().into_iter().collect();
    Ok(batch)
}

impl Context<'_> {
    fn rows(&self, query: &StockQuery, gpus: &[GpuType]) -> Rows {
        let frame = Frame {
            account: &self.cloud.setup.account,
            sandbox: self.cloud.setup.loopback,
            places: self.places,
            regions: &self.want.regions,
            tier: query.tier,
            count: query.count,
            wishes: Wishes::of(self.want, self.choice),
        };
        rows(gpus, self.asks, !self.choice.is_ours, &frame)
    }

    /// Returns how many offers the floor of our image hides, of those that were asked for.
    fn hidden_note(&self, shown: &[Offer], answers: Vec<Answered>) -> Option<String> {
        let shown: BTreeSet<_> = shown.iter().map(|offer| (&offer.instance_type, &offer.zone)).collect();
        let more: usize = answers
            .into_iter()
            .filter_map(|(query, answer)| Some(self.rows(&query, &answer.ok()?).offers))
            .flatten()
            .filter(|offer| {
                !shown.contains(&(&offer.instance_type, &offer.zone)) && narrows(self.want, offer)
            })
            .count();
        let floor = self.choice.floor?;
        (more > 0).then(|| {
            format!(
                "{more} {} hidden because our image needs CUDA {floor}: `--cuda {}` shows them",
                if more == 1 { "offer is" } else { "offers are" },
                image::LOWEST
            )
        })
    }
}

/// Whether the plan would keep this offer, as far as place, memory and price go.
fn narrows(want: &Want, offer: &Offer) -> bool {
    let place = offer.place();
    let region = want.regions.is_empty() || want.regions.iter().any(|region| region.matches(&place));
    let zone = want.zones.is_empty() || want.zones.iter().any(|zone| place.in_zone(zone));
    let price = want.max_price.is_none_or(|most| offer.price_per_hour <= most);
    let memory = want.vram_gb.is_none_or(|least| offer.vram_gb.is_some_and(|gb| gb >= f64::from(least)));
    region && zone && price && memory
}

fn offers_word(count: usize) -> &'static str {
    if count == 1 { "offer" } else { "offers" }
}

fn missing_note(query: &StockQuery, error: &Error) -> String {
    format!(
        "the list is not complete, {} offers with {} GPU are missing: {}",
        query.tier, query.count, error.message
    )
}

/// Returns the GPU ids, and of the whole instance types that were asked for those with such an id.
fn known_types(want: &Want, seen: &[GpuType]) -> Vec<String> {
    let ids: BTreeSet<&str> = seen.iter().filter_map(|gpu| gpu.id.as_deref()).collect();
    let mut known: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    if let Kind::Types(types) = &want.kind {
        let whole = |name: &String| {
            InstanceType::parse(name).is_some_and(|whole| ids.contains(whole.gpu_id.as_str()))
        };
        known.extend(types.iter().map(|ty| ty.name.clone()).filter(whole));
    }
    known
}

/// RunPod has no 40 GB card, which is what plain `A100` means.
fn a100_note(want: &Want, cards: &[Gpu]) -> Option<String> {
    let Kind::Gpus(gpus) = &want.kind else { return None };
    let bare = gpus.iter().find(|gpu| gpu.model.to_string() == "A100")?;
    let none = !cards.iter().any(|card| bare.model.matches(card));
    let larger = cards.iter().any(|card| card.name == "A100-80GB");
    (none && larger).then(|| "RunPod has the A100 with 80 GB only: ask for `A100-80GB`".to_owned())
}

fn small_disk_note(want: &Want) -> Option<String> {
    (want.disk_given && want.disk_gb < SMALL_DISK_GB).then(|| {
        format!("some hosts refuse a disk under {SMALL_DISK_GB} GB, and the image itself takes several")
    })
}

impl RunPod {
    /// Chooses the image: that of the request, that of the settings, or ours.
    pub(super) fn choose(&self, image: Option<&str>, cuda: Option<crate::model::want::Cuda>) -> Choice {
        image::choose(image.or(self.settings.image.as_deref()), cuda)
    }

    /// Returns the data centres, asked for once in a process; without an answer what their ids tell, and a note.
    pub(super) async fn places(&self) -> (Places, Option<String>) {
        let asked = self
            .places
            .get_or_try_init(async || self.api.data_centers().await.map(|centers| Places::new(&centers)));
        match asked.await {
            Ok(places) => (places.clone(), None),
            Err(error) => {
                let note = format!("continents are taken from the data centres' names: {}", error.message);
                (Places::default(), Some(note))
            }
        }
    }
}
