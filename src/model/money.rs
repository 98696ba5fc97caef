//! Money in whole micro-dollars, so that sums and comparisons are exact.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Hours in a month, as the clouds that quote prices per GB-month count them.
pub const HOURS_PER_MONTH: i64 = 730;

/// An amount in US dollars, without tax. As a price it is per hour and for the whole machine unless the name says otherwise.
///
/// In JSON it is a number with at most six decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(i64);

impl Usd {
    /// No money.
    pub const ZERO: Usd = Usd(0);

    /// Returns an amount of whole micro-dollars.
    pub const fn from_micros(micros: i64) -> Self {
        Usd(micros)
    }

    /// Returns the amount in whole micro-dollars.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns the amount of a price as JSON has it, rounded to a micro-dollar; none if it is not a finite number or is
    /// beyond a billion dollars.
    pub fn from_f64(dollars: f64) -> Option<Self> {
        (dollars.is_finite() && dollars.abs() <= 1e9).then(|| Usd((dollars * 1e6).round() as i64))
    }

    /// Returns the amount rounded to 4 decimals, for prices that travelled as 32-bit floats (0.34 comes as 0.3400000036).
    pub fn from_f32_wire(dollars: f64) -> Option<Self> {
        let whole = Usd::from_f64(dollars)?;
        Some(Usd((whole.0 + if whole.0 < 0 { -50 } else { 50 }) / 100 * 100))
    }

    /// Returns the amount as dollars, for JSON and for people; never calculate with it.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the amount taken `count` times.
    pub fn times(self, count: u32) -> Self {
        Usd(self.0.saturating_mul(i64::from(count)))
    }

    /// Returns what `gb` gigabytes cost per hour when this is the price of one for a month of 730 hours; rounded up.
    pub fn per_month_for(self, gb: u32) -> Self {
        let month = self.0.saturating_mul(i64::from(gb));
        Usd(month.div_euclid(HOURS_PER_MONTH) + i64::from(month.rem_euclid(HOURS_PER_MONTH) != 0))
    }

    /// Returns what `span` costs when this is the price per hour; rounded up to a micro-dollar.
    pub fn for_span(self, span: Duration) -> Self {
        let micros =
            i128::from(self.0) * i128::try_from(span.as_millis()).unwrap_or(i128::MAX / 4_000_000_000_000);
        let hour = 3_600_000;
        let up = micros.div_euclid(hour) + i128::from(micros.rem_euclid(hour) != 0);
        Usd(i64::try_from(up).unwrap_or(i64::MAX))
    }

    /// Returns the amount with four decimals and no sign of the currency, for the columns of a table.
    pub fn four_decimals(self) -> String {
        let rounded = (self.0.unsigned_abs() + 50) / 100;
        format!("{}{}.{:04}", if self.0 < 0 { "-" } else { "" }, rounded / 10_000, rounded % 10_000)
    }

    /// Whether this can be the price of an offer: above zero.
    pub fn is_positive(self) -> bool {
        self.0 > 0
    }
}

impl Add for Usd {
    type Output = Usd;
    fn add(self, other: Usd) -> Usd {
        Usd(self.0.saturating_add(other.0))
    }
}

impl Sub for Usd {
    type Output = Usd;
    fn sub(self, other: Usd) -> Usd {
        Usd(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Usd) {
        *self = *self + other;
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Usd>>(amounts: I) -> Usd {
        amounts.fold(Usd::ZERO, Add::add)
    }
}

/// Shows `$0.3469`: two decimals at least, four at most; amounts under $0.0001 that are not zero show as `<$0.0001`.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 != 0 && self.0.abs() < 50 {
            return f.pad("<$0.0001");
        }
        let text = Usd(self.0.abs()).four_decimals();
        let text = text.strip_suffix("00").unwrap_or(&text);
        f.pad(&format!("{}${text}", if self.0 < 0 { "-" } else { "" }))
    }
}

/// Why a text is no amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount in dollars, such as 0.50")]
pub struct UsdError(String);

impl FromStr for Usd {
    type Err = UsdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.trim().trim_start_matches('$');
        let digits = plain.bytes().all(|b| b.is_ascii_digit() || b == b'.') && !plain.is_empty();
        digits
            .then(|| plain.parse().ok().and_then(Usd::from_f64))
            .flatten()
            .ok_or_else(|| UsdError(text.to_owned()))
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Usd::from_f64(dollars).ok_or_else(|| serde::de::Error::custom("not an amount in dollars"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_of_fifty_gb_costs_what_the_price_page_says() {
        // $0.10 per GB-month at RunPod: 50 GB are 0.00684931... per hour.
        assert_eq!(Usd::from_micros(100_000).per_month_for(50).micros(), 6850);
        assert_eq!(Usd::from_micros(730).per_month_for(1).micros(), 1);
    }

    #[test]
    fn floats_are_rounded_once() {
        assert_eq!(Usd::from_f32_wire(f64::from(0.34_f32)).unwrap().micros(), 340_000);
        assert_eq!(Usd::from_f32_wire(f64::from(2.69_f32)).unwrap().times(8).micros(), 21_520_000);
        for bad in [f64::NAN, f64::INFINITY, 1e30] {
            assert_eq!(Usd::from_f64(bad), None);
        }
    }

    #[test]
    fn amounts_are_shown_and_read() {
        for (micros, shown) in [
            (346_850, "$0.3469"),
            (340_000, "$0.34"),
            (2_690_000, "$2.69"),
            (10, "<$0.0001"),
            (0, "$0.00"),
            (-1_500_000, "-$1.50"),
        ] {
            assert_eq!(Usd::from_micros(micros).to_string(), shown);
        }
        assert_eq!("0.5".parse::<Usd>().unwrap().micros(), 500_000);
        for bad in ["", "-1", "1e3", "NaN", "one", "1.2.3"] {
            assert!(bad.parse::<Usd>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_span_is_charged_by_the_millisecond() {
        let hour = Usd::from_micros(360_000);
        assert_eq!(hour.for_span(Duration::from_secs(10)).micros(), 1000);
        assert_eq!(hour.for_span(Duration::from_secs(36_000_000)).micros(), 3_600_000_000);
        assert!(hour.for_span(Duration::MAX) > hour);
    }

    proptest::proptest! {
        #[test]
        fn json_round_trips(micros in -1_000_000_000_000_i64..1_000_000_000_000) {
            let amount = Usd::from_micros(micros);
            let text = serde_json::to_string(&amount).unwrap();
            proptest::prop_assert_eq!(serde_json::from_str::<Usd>(&text).unwrap(), amount);
        }
    }
}
