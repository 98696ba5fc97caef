//! Why nothing was found, in words that say what to change.

use std::collections::BTreeMap;

use crate::model::money::Usd;
use crate::model::offer::Offer;
use crate::plan::filter::Miss;

/// How many offers missed which wish, and the cheapest of each.
#[derive(Debug, Default)]
pub struct Misses {
    by_wish: BTreeMap<Miss, (usize, Usd, String)>,
}

impl Misses {
    /// Counts an offer that was left out.
    pub fn count(&mut self, offer: &Offer, miss: Miss) {
        let entry = self.by_wish.entry(miss).or_insert((0, offer.price_per_hour, describe(offer)));
        entry.0 += 1;
        if offer.price_per_hour < entry.1 {
            (entry.1, entry.2) = (offer.price_per_hour, describe(offer));
        }
    }

    /// Returns how many offers missed this wish.
    pub fn of(&self, miss: Miss) -> usize {
        self.by_wish.get(&miss).map_or(0, |entry| entry.0)
    }

    /// Returns the cheapest offer that only the price limit kept out.
    pub fn cheapest_above_limit(&self) -> Option<Usd> {
        self.by_wish.get(&Miss::Price).map(|entry| entry.1)
    }

    /// Whether the price limit alone kept offers out.
    pub fn only_too_dear(&self) -> bool {
        self.by_wish.contains_key(&Miss::Price)
    }

    /// Returns the nearest offers, one for each wish they missed; offers of other GPUs are not near.
    pub fn nearest(&self) -> Vec<String> {
        self.by_wish
            .iter()
            .rev()
            .filter(|(miss, _)| !matches!(miss, Miss::Kind | Miss::Unpriced))
            .map(|(miss, (count, price, what))| {
                let more = if *count > 1 { format!(" ({count} such)") } else { String::new() };
                format!("without `{}`: {what} for {price}/h{more}", miss.flag())
            })
            .collect()
    }
}

fn describe(offer: &Offer) -> String {
    let what = match &offer.gpu {
        Some(gpu) => format!("{gpu}:{}", offer.gpu_count),
        None => offer.instance_type.clone(),
    };
    let place = offer.zone.as_deref().or(offer.region.as_deref()).unwrap_or("an untold place");
    format!("{what} at {} in {place}", offer.account)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::filter::samples::offer;

    #[test]
    fn the_nearest_is_told_with_its_price() {
        let mut misses = Misses::default();
        misses.count(&offer("EU-RO-1", 500_000), Miss::Price);
        misses.count(&offer("EU-SE-1", 400_000), Miss::Price);
        misses.count(&offer("EU-SE-1", 1), Miss::Kind);
        assert_eq!(misses.cheapest_above_limit(), Some(Usd::from_micros(400_000)));
        assert_eq!(
            misses.nearest(),
            ["without `--max-price`: RTX4090:1 at runpod/default in EU-SE-1 for $0.40/h (2 such)"]
        );
    }
}
