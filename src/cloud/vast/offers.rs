//! Asking for offers: each class and count at once, and who the key belongs to beside them.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{join, join_all};

use super::Vast;
use super::rows::{Frame, Row, card, row};
use super::search::{Class, Found, Question, What, asks, classes, question, search, shown};
use crate::cloud::{Error, ErrorKind, OfferBatch, Result};
use crate::model::offer::Offer;
use crate::model::want::{Spot, Want};

/// Returns the live offers.
pub(super) async fn offers(cloud: &Vast, want: &Want) -> Result<OfferBatch> {
    let asks = asks(want);
    let choice = cloud.choose(want.image.as_deref(), want.cuda, None);
    let questions: Vec<Question> = asks
        .iter()
        .flat_map(|(count, whats)| {
            classes(want).iter().map(|class| question(cloud, want, &choice, *class, *count, whats))
        })
        .collect();
    let searches = join_all(questions.iter().map(|question| search(cloud, question)));
    let (answers, credit) = join(searches, who(cloud)).await;
    let credit = credit?;
    let mut list = List { batch: OfferBatch::default(), disputed: 0, unpriced: 0 };
    let (mut answered, mut failed) = (Vec::new(), Vec::new());
    for (question, answer) in questions.iter().zip(answers) {
        match answer {
            Ok(found) => answered.push((question, found)),
            Err(error) => failed.push((question, error)),
        }
    }
    if answered.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    let mut by_class: BTreeMap<Class, Vec<Offer>> = BTreeMap::new();
    for (question, found) in &answered {
        let frame = Frame {
            account: &cloud.setup.account,
            sandbox: cloud.setup.loopback,
            settings: &cloud.settings,
            choice: &choice,
            class: question.class,
            count: question.count,
            disk_gb: super::disk_gb(want.disk_gb),
            cuda: want.cuda,
        };
        let whats = asks.get(&question.count).map(Vec::as_slice).unwrap_or_default();
        let shows = question.class.is_spot() == (want.spot == Spot::Only) || want.spot == Spot::Any;
        let offers = list.take(found, whats, &frame, shows);
        if found.is_cut && shows {
            list.batch.notes.push(cut_note(question, whats));
        }
        by_class.entry(question.class).or_default().extend(offers);
    }
    let on_demand = by_class.remove(&Class::OnDemand).unwrap_or_default();
    let spot = by_class.remove(&Class::Bid).unwrap_or_default();
    let spot: Vec<Offer> = spot.into_iter().filter(|spot| !is_pointless(spot, &on_demand)).collect();
    if want.spot != Spot::Only {
        list.batch.offers.extend(on_demand);
    }
    list.batch.offers.extend(spot);
    list.batch.notes.extend(failed.iter().map(|(question, error)| missing_note(question, error)));
    list.finish(cloud, &asks, credit)
}

/// Asks who the key belongs to, once in a process. A key that may not tell is still good for the rest; one that is wrong is
/// not, and searches work without any.
async fn who(cloud: &Vast) -> Result<Option<f64>> {
    if cloud.user.get().is_some() {
        return Ok(None);
    }
    match cloud.learn_user().await {
        Ok(credit) => Ok(credit),
        Err(error) if error.kind == ErrorKind::Auth => Err(error),
        Err(_) => Ok(None),
    }
}

impl Vast {
    /// Makes sure, as far as it can be told, that it is known who the key belongs to.
    pub(super) async fn know_user(&self) -> Result<()> {
        who(self).await.map(drop)
    }
}

/// A bid that reaches the price on demand buys less for the same: no offer.
fn is_pointless(spot: &Offer, on_demand: &[Offer]) -> bool {
    on_demand.iter().any(|other| {
        other.host == spot.host
            && other.instance_type == spot.instance_type
            && other.price_parts.compute <= spot.price_parts.compute
    })
}

struct List {
    batch: OfferBatch,
    disputed: usize,
    unpriced: usize,
}

impl List {
    /// Reads the rows of one answer; `shows` says whether its offers are shown.
    fn take(&mut self, found: &Found, whats: &[What], frame: &Frame<'_>, shows: bool) -> Vec<Offer> {
        let mut offers = Vec::new();
        for ask in found.asks() {
            self.batch.known_gpus.extend(card(&ask).map(|card| card.name));
            match row(&ask, Some(whats), frame) {
                Row::Offer(offer, is_disputed) => {
                    self.disputed += usize::from(is_disputed && shows);
                    self.batch.known_places.extend(offer.zone.clone());
                    self.batch.known_places.extend(offer.host.clone());
                    offers.push(*offer);
                }
                Row::Unpriced => self.unpriced += usize::from(shows),
                Row::Other(why) => {
                    tracing::debug!(target: "gpuprov::vast", ask = ask.ask(), why, "a row is left out");
                }
            }
        }
        offers
    }

    fn finish(
        mut self,
        cloud: &Vast,
        asks: &BTreeMap<u32, Vec<What>>,
        credit: Option<f64>,
    ) -> Result<OfferBatch> {
        let batch = &mut self.batch;
        for names in [&mut batch.known_gpus, &mut batch.known_places] {
            *names = std::mem::take(names).into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        }
        if self.unpriced > 0 {
            batch.notes.push(format!("{} without a usable price left out", offers_word(self.unpriced)));
        }
        if self.disputed > 0 {
            batch.notes.push(format!(
                "{} with a total of the server's that its parts do not add up to; shown is the sum of the parts",
                offers_word(self.disputed)
            ));
        }
        let cheapest = batch.offers.iter().map(|offer| offer.price_per_hour).min();
        match (cheapest, credit) {
            (Some(price), Some(credit)) if credit < price.as_f64() => batch.notes.push(format!(
                "the account has ${credit:.2} of credit, less than an hour of the cheapest offer"
            )),
            (None, _) if !asks.is_empty() => batch.notes.push(filters_note(cloud)),
            _ => {}
        }
        Ok(self.batch)
    }
}

fn offers_word(count: usize) -> String {
    if count == 1 { "1 offer".to_owned() } else { format!("{count} offers") }
}

/// Tools that hide these filters have people ask why the web page shows more (github.com/vast-ai/vast-cli/issues/268).
fn filters_note(cloud: &Vast) -> String {
    let settings = &cloud.settings;
    let mut kinds = vec![format!("reliability from {}", settings.min_reliability)];
    if settings.verified {
        kinds.insert(0, "verified".to_owned());
    }
    if settings.datacenter {
        kinds.push("in data centres".to_owned());
    }
    format!(
        "nothing fits; only hosts that are {} are asked for (see `[vast]` in the configuration)",
        kinds.join(", ")
    )
}

fn cut_note(question: &Question, whats: &[What]) -> String {
    if question.is_any {
        "the list is cut: only the cheapest offers of any GPU are in it; name GPUs to see theirs".to_owned()
    } else {
        let spot = if question.class.is_spot() { "spot " } else { "" };
        format!(
            "the list is cut: only the cheapest {spot}offers with {} {} are in it",
            question.count,
            shown(whats)
        )
    }
}

fn missing_note(question: &Question, error: &Error) -> String {
    let what = match question.class {
        Class::Bid => "spot offers",
        Class::OnDemand => "on-demand offers",
    };
    format!("the list is not complete, {what} with {} GPU are missing: {}", question.count, error.message)
}
