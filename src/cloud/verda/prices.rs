//! What the OS disk costs. It is always NVMe, and billed on top of the machine, spot or not.

use super::wire::{VolumeType, told};
use crate::model::money::Usd;

/// The list price of a GB-month, for when the live one cannot be had (verda.com/pricing).
const LIST_PRICE: Usd = Usd::from_micros(200_000);

/// The type of volume that OS disks are.
const TYPE: &str = "NVMe";

/// The price of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskPrice {
    /// Of one GB for a month of 730 hours.
    pub(super) per_gb_month: Usd,
    /// Whether it is the list price rather than the live one.
    pub(super) is_estimated: bool,
}

impl DiskPrice {
    /// The list price.
    pub(super) const LIST: DiskPrice = DiskPrice { per_gb_month: LIST_PRICE, is_estimated: true };

    /// Reads the live price; none if it is not among the types, or not in dollars.
    pub(super) fn read(types: &[VolumeType]) -> Option<Self> {
        let price = types.iter().find(|ty| told(ty.name.as_ref()) == Some(TYPE))?.price.as_ref()?;
        let in_dollars = price.currency.as_deref().is_none_or(|word| word.eq_ignore_ascii_case("usd"));
        let per_gb_month = price.price_per_month_per_gb.or(price.monthly_per_gb)?;
        (in_dollars && per_gb_month.is_positive()).then_some(DiskPrice { per_gb_month, is_estimated: false })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cloud::lenient::each;

    fn read(types: Value) -> Option<i64> {
        DiskPrice::read(&each(types.as_array().unwrap().clone())).map(|price| price.per_gb_month.micros())
    }

    #[test]
    fn the_live_price_under_both_names() {
        let hdd = json!({"type": "HDD", "price": {"price_per_month_per_gb": 0.05, "currency": "usd"}});
        let nvme = |price: Value| json!([hdd, {"type": "NVMe", "price": price}]);
        assert_eq!(read(nvme(json!({"price_per_month_per_gb": 0.21, "currency": "usd"}))), Some(210_000));
        assert_eq!(read(nvme(json!({"monthly_per_gb": "0.2"}))), Some(200_000));
        for none in [
            json!([hdd]),
            nvme(json!({"price_per_month_per_gb": 0.2, "currency": "eur"})),
            nvme(json!({"price_per_month_per_gb": 0})),
            nvme(json!({"price_per_month_per_gb": null})),
            nvme(json!(null)),
        ] {
            assert_eq!(read(none.clone()), None, "{none}");
        }
    }
}
