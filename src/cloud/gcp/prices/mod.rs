//! What machines cost: two public catalogues, because Google's own needs another API switched on in the project.
//!
//! - [`source`]: one catalogue, fetched at most once an hour, refused where it does not fit, kept with its time;
//! - [`gpuhunt`], [`skypilot`]: their formats; [`archive`], [`fields`]: zip and CSV within bounds; [`table`]: what is taken;
//! - [`guard`]: prices that cannot be right;
//! - [`mod@parts`]: disk, address, local SSD.
//!
//! Machines with GPUs go by gpuhunt's, those without by SkyPilot's; the other one stands in where a machine is not in the
//! first or the first cannot be had. All of these prices are estimates: they are a catalogue's, not the cloud's.

mod archive;
mod fields;
mod gpuhunt;
mod guard;
mod parts;
mod skypilot;
mod source;
mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures_util::future::{OptionFuture, join};
use jiff::Timestamp;

use self::guard::{Judged, LIST_DATE};
pub(super) use self::parts::parts;
use self::source::{Got, KEPT, Source, Which};
use super::shapes::Shape;
use crate::cloud::Setup;
use crate::http::Client;
use crate::http::cache::Cache;
use crate::model::duration::show;
use crate::model::money::Usd;

#[cfg(test)]
pub(super) use self::archive::tests::packed;
#[cfg(test)]
pub(super) use self::tests::{SAMPLE, hunted, hunted_row};

/// A catalogue whose own prices are older than this has been left by its makers.
const OLD: Duration = Duration::from_secs(48 * 3600);

/// Both catalogues.
#[derive(Debug)]
pub(super) struct Catalogues {
    gpuhunt: Source,
    skypilot: Source,
}

impl Catalogues {
    /// Returns the catalogues for an account; nothing is read yet. They are asked at `base` where it is an emulator's.
    pub(super) fn new(setup: &Setup, base: Option<&str>, http: &Client) -> Self {
        let cache = Cache::new(setup.cache.as_ref().map(|cache| cache.join("gcp-prices")), KEPT);
        // One that does not answer must leave time for the other, or for the last good copy.
        let within = setup.timeout.mul_f64(0.45);
        let source = |which| Source::new(which, base, http.clone(), cache.clone(), within);
        Catalogues { gpuhunt: source(Which::Gpuhunt), skypilot: source(Which::Skypilot) }
    }

    /// Returns the prices for machines of these shapes. The catalogues that are needed are asked for at once; the other one
    /// only when the first cannot be had.
    pub(super) async fn prices(&self, shapes: &[&Shape]) -> Prices {
        let of = |which| shapes.iter().any(|shape| needs(shape) == which);
        let (mut gpuhunt, mut skypilot) = join(
            OptionFuture::from(of(Which::Gpuhunt).then(|| self.gpuhunt.get())),
            OptionFuture::from(of(Which::Skypilot).then(|| self.skypilot.get())),
        )
        .await;
        match (&gpuhunt, &skypilot) {
            (Some(Err(_)), None) => skypilot = Some(self.skypilot.get().await),
            (None, Some(Err(_))) => gpuhunt = Some(self.gpuhunt.get().await),
            _ => {}
        }
        let mut prices = Prices::default();
        prices.take(Which::Gpuhunt, gpuhunt);
        prices.take(Which::Skypilot, skypilot);
        prices
    }
}

/// Which catalogue tells the price of a machine, if it can be had.
fn needs(shape: &Shape) -> Which {
    match &shape.cards {
        Some(cards) if cards.gpu.name != "H200" => Which::Gpuhunt,
        _ => Which::Skypilot,
    }
}

/// What one machine costs per hour, without boot disk and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Price {
    /// GPUs, vCPUs, memory, local SSD.
    pub(super) compute: Usd,
    /// How old the price is.
    pub(super) as_of: Timestamp,
    /// Whether it is of our list, because the catalogue's cannot be right.
    pub(super) is_listed: bool,
}

/// The answer to a question for a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It costs so much.
    Price(Price),
    /// It is not sold there, or not so.
    NotSold,
    /// It is, but at a price that cannot be right.
    Unusable,
}

/// The prices of the catalogues that could be had.
#[derive(Debug, Default)]
pub(super) struct Prices {
    gpuhunt: Option<Got>,
    skypilot: Option<Got>,
    /// What the user should know: copies that are old, catalogues that could not be had.
    pub(super) notes: Vec<String>,
}

impl Prices {
    /// Returns what a machine costs in a zone.
    pub(super) fn of(&self, shape: &Shape, zone: &str, spot: bool) -> Answer {
        let (first, second) = match needs(shape) {
            Which::Gpuhunt => (&self.gpuhunt, &self.skypilot),
            Which::Skypilot => (&self.skypilot, &self.gpuhunt),
        };
        let has = |got: &&Got| got.copy.table.has(shape);
        let Some(got) = first.as_ref().filter(has).or(second.as_ref().filter(has)) else {
            return Answer::NotSold;
        };
        let Some(cell) = got.copy.table.get(shape, zone) else { return Answer::NotSold };
        let Judged { on_demand, spot: as_spot, is_refused } = guard::judge(shape, zone, cell);
        let price = if spot { as_spot.map(|price| (price, false)) } else { on_demand };
        match price {
            Some((compute, is_listed)) => {
                let as_of = if is_listed { LIST_DATE } else { got.copy.as_of };
                Answer::Price(Price { compute, as_of, is_listed })
            }
            None if is_refused[usize::from(spot)] => Answer::Unusable,
            None => Answer::NotSold,
        }
    }

    fn take(&mut self, which: Which, asked: Option<Result<Got, String>>) {
        let title = which.title();
        let got = match asked {
            None => return,
            Some(Ok(got)) => got,
            Some(Err(why)) => {
                self.notes.push(format!("{title}'s catalogue of Google's prices cannot be had: {why}"));
                return;
            }
        };
        let age = Duration::try_from(Timestamp::now().duration_since(got.copy.as_of)).unwrap_or_default();
        match &got.stale {
            Some(why) => self.notes.push(format!(
                "Google's prices are of {} ago, from the last good copy of {title}'s catalogue: {why}",
                show(age)
            )),
            None if age > OLD => {
                self.notes.push(format!("{title}'s catalogue of Google's prices is {} old", show(age)));
            }
            None => {}
        }
        let slot = match which {
            Which::Gpuhunt => &mut self.gpuhunt,
            Which::Skypilot => &mut self.skypilot,
        };
        *slot = Some(got);
    }

    /// Says why there is no catalogue at all; none if there is one.
    pub(super) fn missing(&self) -> Option<String> {
        (self.gpuhunt.is_none() && self.skypilot.is_none()).then(|| self.notes.join("; "))
    }
}
