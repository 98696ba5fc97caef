//! What machines cost on demand: Nebius's list, corrected by its calculator where that answers.
//!
//! The list (`prices.json`) has a date and its sources: prices rose twice in 2026. The calculator prices a create request, so
//! what it says is the price of exactly that machine in that region. Spot prices are live only (`spot.rs`).

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::platforms::Shape;
use crate::model::money::Usd;

/// The list.
const LIST: &str = include_str!("prices.json");

/// What a platform's parts cost per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
struct Rates {
    /// One GPU; where vCPUs and memory cost nothing they are in it.
    gpu: Usd,
    /// One vCPU.
    vcpu: Usd,
    /// One GiB of memory.
    gib: Usd,
}

/// The list as the file has it.
#[derive(Debug, Deserialize)]
struct List {
    as_of: Timestamp,
    network_ssd_gib_month: Usd,
    platforms: BTreeMap<String, Rates>,
}

static READ: LazyLock<Option<List>> = LazyLock::new(|| serde_json::from_str(LIST).ok());

/// Returns the day of the list.
pub(super) fn list_date() -> Option<Timestamp> {
    READ.as_ref().map(|list| list.as_of)
}

/// Returns what a boot disk of `gib` GiB costs per hour, network SSD, whatever the machine is doing.
pub(super) fn disk(gib: u32) -> Usd {
    READ.as_ref().map(|list| list.network_ssd_gib_month.per_month_for(gib)).unwrap_or_default()
}

/// Returns the list's price of a machine; none for platforms that it does not have.
fn listed(platform: &str, shape: Shape) -> Option<Usd> {
    let rates = rates(platform)?;
    let price = rates.gpu.times(shape.gpus) + rates.vcpu.times(shape.vcpus) + rates.gib.times(shape.ram_gib);
    price.is_positive().then_some(price)
}

/// The entry for the platform itself, else for the longest part of its name that is followed by a dash: a generation has
/// several platforms.
fn rates(platform: &str) -> Option<&'static Rates> {
    let list = READ.as_ref()?;
    let mut name = platform;
    loop {
        if let Some(rates) = list.platforms.get(name) {
            return Some(rates);
        }
        name = name.rsplit_once('-')?.0;
    }
}

/// One machine type in one region.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) region: String,
    pub(super) platform: String,
    pub(super) preset: String,
}

/// What the calculator said of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Estimate {
    /// Per hour, on demand, without the disk.
    pub(super) price: Usd,
    /// When.
    pub(super) at: Timestamp,
}

/// The price of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Price {
    /// Per hour, on demand, without the disk.
    pub(super) amount: Usd,
    /// Whether it is the list's rather than the calculator's.
    pub(super) is_listed: bool,
    /// How old it is; none if it was asked for just now.
    pub(super) as_of: Option<Timestamp>,
}

/// How young an answer of the calculator is called live, in seconds.
const LIVE: i64 = 60;

/// What is known of on-demand prices.
#[derive(Clone, Debug, Default)]
pub(super) struct OnDemand(HashMap<Item, Estimate>);

impl OnDemand {
    /// Takes in what the calculator said.
    pub(super) fn new(estimates: impl IntoIterator<Item = (Item, Estimate)>) -> Self {
        OnDemand(estimates.into_iter().collect())
    }

    /// Returns the price of a machine; none where neither calculator nor list has one.
    pub(super) fn price(&self, item: &Item, shape: Shape) -> Option<Price> {
        let told = |amount: Usd, at: Timestamp| {
            let age = Timestamp::now().as_second() - at.as_second();
            Price { amount, is_listed: false, as_of: (age > LIVE).then_some(at) }
        };
        if let Some(found) = self.0.get(item) {
            return Some(told(found.price, found.at));
        }
        if let Some((amount, at)) = self.by_share(item, shape) {
            return Some(told(amount, at));
        }
        let amount = listed(&item.platform, shape)?;
        Some(Price { amount, is_listed: true, as_of: list_date() })
    }

    /// The price of a machine that has exactly so many times as much of everything as one that the calculator priced: one
    /// question is then enough for a whole row of CPU-only presets.
    fn by_share(&self, item: &Item, shape: Shape) -> Option<(Usd, Timestamp)> {
        if shape.gpus > 0 {
            return None;
        }
        self.0.iter().find_map(|(known, estimate)| {
            let other = Shape::of_name(&known.preset)?;
            let same = known.region == item.region && known.platform == item.platform && other.gpus == 0;
            let even = u64::from(other.vcpus) * u64::from(shape.ram_gib)
                == u64::from(shape.vcpus) * u64::from(other.ram_gib);
            if !same || !even || other.vcpus == 0 {
                return None;
            }
            let micros = i128::from(estimate.price.micros()) * i128::from(shape.vcpus);
            let share = micros.div_euclid(i128::from(other.vcpus));
            let up = i128::from(micros.rem_euclid(i128::from(other.vcpus)) != 0);
            Some((Usd::from_micros(i64::try_from(share + up).ok()?), estimate.at))
        })
    }
}

/// Reads a price as the billing services write it, a decimal number in a text; none unless it is above zero.
pub(super) fn decimal(text: &str) -> Option<Usd> {
    text.trim().parse::<Usd>().ok().filter(|price| price.is_positive())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(region: &str, platform: &str, preset: &str) -> (Item, Shape) {
        let shape = Shape::of_name(preset).unwrap();
        (Item { region: region.to_owned(), platform: platform.to_owned(), preset: preset.to_owned() }, shape)
    }

    fn micros(prices: &OnDemand, platform: &str, preset: &str) -> Option<i64> {
        let (item, shape) = item("eu-north1", platform, preset);
        prices.price(&item, shape).map(|price| price.amount.micros())
    }

    #[test]
    fn the_list_has_a_day_and_adds_up() {
        assert!(list_date().unwrap() > "2026-06-01T00:00:00Z".parse().unwrap());
        let list = OnDemand::default();
        for (platform, preset, dollars) in [
            ("gpu-h100-sxm", "8gpu-128vcpu-1600gb", 36.0),
            ("gpu-h200-sxm", "1gpu-16vcpu-200gb", 5.4),
            ("gpu-b200-sxm-a", "1gpu-20vcpu-224gb", 8.5),
            ("gpu-b300-sxm", "8gpu-192vcpu-2768gb", 76.0),
            ("gpu-rtx6000-a", "1gpu-24vcpu-218gb", 1.8),
            ("gpu-l40s-d", "4gpu-128vcpu-768gb", 9.1376),
            ("gpu-l40s-a", "1gpu-8vcpu-32gb", 1.5484),
            ("cpu-e2", "2vcpu-8gb", 0.066),
            ("cpu-d3", "4vcpu-16gb", 0.132),
        ] {
            let expected = Usd::from_f64(dollars).unwrap().micros();
            assert_eq!(micros(&list, platform, preset), Some(expected), "{platform} {preset}");
        }
        for none in ["gpu-z900-sxm", "gpu-h1000", "cpu-x9", "", "gpu"] {
            assert_eq!(micros(&list, none, "1gpu-16vcpu-200gb"), None, "{none}");
        }
        // $0.071 per GiB-month of 730 hours.
        assert_eq!(disk(100).micros(), 9727);
    }

    #[test]
    fn the_calculator_wins_and_is_scaled_only_where_that_is_exact() {
        let at = Timestamp::now();
        let known = |platform: &str, preset: &str, price: i64| {
            let (item, _) = item("eu-north1", platform, preset);
            (item, Estimate { price: Usd::from_micros(price), at })
        };
        let prices = OnDemand::new([
            known("gpu-b200-sxm", "1gpu-20vcpu-224gb", 7_500_000),
            known("cpu-d3", "4vcpu-16gb", 140_000),
        ]);
        assert_eq!(micros(&prices, "gpu-b200-sxm", "1gpu-20vcpu-224gb"), Some(7_500_000));
        assert_eq!(micros(&prices, "gpu-b200-sxm", "8gpu-160vcpu-1792gb"), Some(68_000_000));
        assert_eq!(micros(&prices, "cpu-d3", "32vcpu-128gb"), Some(1_120_000));
        assert_eq!(micros(&prices, "cpu-d3", "4vcpu-32gb"), Some(204_000), "more memory for each vCPU");
        assert_eq!(micros(&prices, "cpu-e2", "4vcpu-16gb"), Some(132_000));
        let (of, shape) = item("eu-north1", "gpu-b200-sxm", "1gpu-20vcpu-224gb");
        assert_eq!(prices.price(&of, shape).unwrap().as_of, None);
        let (of, shape) = item("us-central1", "gpu-b200-sxm", "1gpu-20vcpu-224gb");
        let elsewhere = prices.price(&of, shape).unwrap();
        assert_eq!((elsewhere.is_listed, elsewhere.as_of), (true, list_date()));
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal("1.87"), Some(Usd::from_micros(1_870_000)));
        for none in ["", "0", "0.0", "-1", "NaN", "1e3", "free", "1,5"] {
            assert_eq!(decimal(none), None, "{none}");
        }
    }
}
