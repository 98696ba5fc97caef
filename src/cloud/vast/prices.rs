//! What Vast asks for: the GPU part, the disk, and the bid of a spot machine.

use super::wire::{Ask, Instance};
use crate::model::money::Usd;
use crate::model::offer::{PriceParts, Traffic};

/// Hours of a month by which Vast divides the price of storage; checked against the sample of the API reference
/// (0.9333 per GB-month x 8 GB / 720 = 0.01037 per hour).
const HOURS: i64 = 720;

/// Lowest and highest bid that the create takes, in micro-dollars (docs.vast.ai/api-reference, `createInstance`).
const BIDS: std::ops::RangeInclusive<i64> = 1_000..=128_000_000;

/// Returns what `gb` of disk cost per hour when `per_month` is the price of one for a month; rounded up.
pub(super) fn disk(per_month: Usd, gb: u32) -> Usd {
    let month = per_month.micros().saturating_mul(i64::from(gb));
    Usd::from_micros(month.div_euclid(HOURS) + i64::from(month.rem_euclid(HOURS) != 0))
}

/// Returns the bid that goes with a minimum bid: 1.15 times it, rounded up to four decimals; none if no bid can be that.
pub(super) fn bid(least: Usd) -> Option<Usd> {
    let hundreds = i128::from(least.micros()) * 115;
    let up = hundreds.div_euclid(10_000) + i128::from(hundreds.rem_euclid(10_000) != 0);
    let micros = i64::try_from(up * 100).ok()?.max(*BIDS.start());
    (least.is_positive() && BIDS.contains(&micros)).then_some(Usd::from_micros(micros))
}

/// The price of a row, per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Price {
    /// What it is made of.
    pub(super) parts: PriceParts,
    /// Whether the total that the row itself names is another one by more than 1 %.
    pub(super) is_disputed: bool,
}

fn usd(figure: Option<f64>) -> Option<Usd> {
    figure.and_then(Usd::from_f64).filter(|price| price.micros() >= 0)
}

/// Returns the price of a row with `gb` of disk; none if it has no usable one. For spot that is our bid.
pub(super) fn price(ask: &Ask, gb: u32, spot: bool) -> Option<Price> {
    let base = usd(ask.dph_base).filter(|price| price.is_positive());
    let total = usd(ask.dph_total).filter(|price| price.is_positive());
    let disk = match (usd(ask.storage_cost), base, total) {
        (Some(per_month), ..) => disk(per_month, gb),
        // The search names the total with the disk that was asked for.
        (None, Some(base), Some(total)) if total >= base => total - base,
        _ => return None,
    };
    if spot {
        // In a search for bids the base price is the minimum bid.
        let compute = bid(usd(ask.min_bid).filter(|bid| bid.is_positive()).or(base)?)?;
        return Some(Price { parts: PriceParts { compute, disk, address: None }, is_disputed: false });
    }
    let compute = base.or_else(|| total.map(|total| total - disk)).filter(|price| price.is_positive())?;
    let parts = PriceParts { compute, disk, address: None };
    let off = total.map(|total| (total - parts.total()).micros().abs());
    let is_disputed = off.is_some_and(|off| off > parts.total().micros() / 100);
    Some(Price { parts, is_disputed })
}

/// Returns what traffic costs. Both directions are billed, the image too.
pub(super) fn traffic(ask: &Ask) -> Option<Traffic> {
    let (inward, outward) = (usd(ask.inet_down_cost)?, usd(ask.inet_up_cost)?);
    Some(Traffic { inward, outward })
}

/// Returns what the disk of a machine costs per hour, running or not.
pub(super) fn disk_of(instance: &Instance) -> Option<Usd> {
    let told = usd(instance.storage_total_cost).filter(|price| price.is_positive());
    told.or_else(|| {
        let gb = instance.disk_space.filter(|gb| (1.0..1e6).contains(gb))?;
        Some(disk(usd(instance.storage_cost)?, gb.ceil() as u32))
    })
}

/// Returns what a machine costs per hour while it runs, with its disk.
pub(super) fn whole_of(instance: &Instance) -> Option<Usd> {
    let told = usd(instance.dph_total).filter(|price| price.is_positive());
    told.or_else(|| {
        let base = usd(instance.dph_base).filter(|price| price.is_positive())?;
        Some(base + disk_of(instance)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(dollars: f64) -> Usd {
        Usd::from_f64(dollars).unwrap()
    }

    #[test]
    fn bids() {
        for (least, expected) in
            [(0.16, 0.184), (0.81, 0.9315), (0.0442, 0.0509), (0.1, 0.115), (0.000_1, 0.001), (0.25, 0.2875)]
        {
            assert_eq!(bid(micros(least)), Some(micros(expected)), "{least}");
        }
        for none in [0.0, -1.0, 120.0] {
            assert_eq!(bid(micros(none)), None, "{none}");
        }
    }

    #[test]
    fn rows_of_the_api_reference() {
        let ask = Ask {
            dph_base: Some(0.36),
            dph_total: Some(0.380_833_333_3),
            storage_cost: Some(0.15),
            min_bid: Some(0.16),
            ..Ask::default()
        };
        let on_demand = price(&ask, 100, false).unwrap();
        assert_eq!((on_demand.parts.total().micros(), on_demand.is_disputed), (380_834, false));
        let spot = price(&ask, 100, true).unwrap();
        assert_eq!((spot.parts.compute.micros(), spot.parts.disk.micros()), (184_000, 20_834));
        // The server priced another disk.
        let other = price(&ask, 1000, false).unwrap();
        assert_eq!((other.parts.disk.micros(), other.is_disputed), (208_334, true));
    }

    #[test]
    fn prices_that_are_not_whole() {
        let row = |base, total, storage| Ask {
            dph_base: base,
            dph_total: total,
            storage_cost: storage,
            ..Ask::default()
        };
        let total = |ask: &Ask, spot| price(ask, 100, spot).map(|price| price.parts.total().micros());
        assert_eq!(total(&row(Some(0.3), Some(0.32), None), false), Some(320_000));
        assert_eq!(total(&row(None, Some(0.32), Some(0.144)), false), Some(320_000));
        assert_eq!(total(&row(Some(0.1), None, Some(0.0)), true), Some(115_000));
        for none in [
            row(None, None, Some(0.1)),
            row(Some(0.0), Some(0.0), Some(0.1)),
            row(Some(-1.0), None, Some(0.1)),
            row(Some(f64::INFINITY), None, Some(0.1)),
            row(Some(0.3), None, None),
        ] {
            assert_eq!(total(&none, false), None, "{none:?}");
            assert_eq!(
                total(&none, true).is_some(),
                none.dph_base == Some(0.3) && none.storage_cost.is_some()
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn a_bid_is_never_below_its_rule(least in 1_i64..111_000_000) {
            let bid = bid(Usd::from_micros(least)).unwrap().micros();
            proptest::prop_assert!(bid * 100 >= least * 115 && bid % 100 == 0);
            proptest::prop_assert!(bid == 1_000 || (bid - 100) * 100 < least * 115);
        }
    }
}
