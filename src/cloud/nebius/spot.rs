//! Live spot prices: one question without credentials tells those of all regions, in dollars for a GPU and an hour. A platform
//! without a price there has no spot offers.

use std::collections::HashMap;

use super::prices::decimal;
use super::wire::SpotPrice;
use crate::model::money::Usd;

/// The spot prices, by region and platform.
#[derive(Clone, Debug, Default)]
pub(super) struct SpotPrices {
    by_place: HashMap<(String, String), Usd>,
    /// Rows whose price cannot be read, or is not in dollars for a GPU.
    pub(super) unread: usize,
}

impl SpotPrices {
    /// Takes in the rows.
    pub(super) fn new(rows: &[SpotPrice]) -> Self {
        let mut prices = SpotPrices::default();
        for row in rows {
            let platform = row.compute_instance.as_ref().map(|machine| machine.platform.as_str());
            let Some(platform) = platform.filter(|platform| !platform.is_empty()) else { continue };
            match price(row) {
                Some(price) => {
                    prices.by_place.insert((row.region.clone(), platform.to_owned()), price);
                }
                None => prices.unread += 1,
            }
        }
        prices
    }

    /// Returns the price of one GPU.
    pub(super) fn of_gpu(&self, region: &str, platform: &str) -> Option<Usd> {
        self.by_place.get(&(region.to_owned(), platform.to_owned())).copied()
    }
}

fn price(row: &SpotPrice) -> Option<Usd> {
    let price = row.price.as_ref()?;
    let is = |text: &str, expected: &str| text.is_empty() || text.eq_ignore_ascii_case(expected);
    let for_a_gpu = price.unit_title.is_empty() || price.unit_title.to_ascii_lowercase().contains("gpu");
    decimal(&price.value).filter(|_| is(&price.currency, "usd") && for_a_gpu)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::wire::{SpotPriceComputeInstance, SpotPriceValue};
    use super::*;

    pub(in crate::cloud::nebius) fn row(region: &str, platform: &str, value: &str) -> SpotPrice {
        SpotPrice {
            region: region.to_owned(),
            compute_instance: Some(SpotPriceComputeInstance { platform: platform.to_owned() }),
            price: Some(SpotPriceValue {
                value: value.to_owned(),
                currency: "usd".to_owned(),
                unit_title: "GPU hour".to_owned(),
            }),
            ..SpotPrice::default()
        }
    }

    #[test]
    fn prices_are_of_a_gpu_in_dollars() {
        let mut euros = row("eu-north1", "a", "1.0");
        euros.price.as_mut().unwrap().currency = "eur".to_owned();
        let mut cores = row("eu-north1", "b", "1.0");
        cores.price.as_mut().unwrap().unit_title = "vCPU hour".to_owned();
        let rows = [
            row("eu-north1", "gpu-h100-sxm", "1.87"),
            row("eu-north1", "gpu-l40s-a", "0"),
            row("eu-north1", "gpu-b200-sxm", "soon"),
            euros,
            cores,
            SpotPrice::default(),
            SpotPrice { price: None, ..row("eu-north1", "c", "1") },
        ];
        let prices = SpotPrices::new(&rows);
        assert_eq!(prices.of_gpu("eu-north1", "gpu-h100-sxm"), Some(Usd::from_micros(1_870_000)));
        assert_eq!(prices.of_gpu("us-central1", "gpu-h100-sxm"), None);
        assert_eq!((prices.by_place.len(), prices.unread), (1, 5));
    }
}
