//! The parts of a price that no catalogue tells: disk, address, local SSD.

use crate::model::money::Usd;
use crate::model::offer::PriceParts;

/// A GB of boot disk for a month of 730 hours, pd-balanced (cloud.google.com/compute/disks-image-pricing). Hyperdisk Balanced
/// is counted the same, which is a little more than its list price.
const DISK: Usd = Usd::from_micros(100_000);

/// An ephemeral external IPv4 address for an hour, on demand and spot (cloud.google.com/vpc/network-pricing).
const ADDRESS: [Usd; 2] = [Usd::from_micros(5_000), Usd::from_micros(2_500)];

/// A GiB of local SSD for a month of 730 hours, on demand and spot (cloud.google.com/compute/disks-image-pricing).
const LOCAL_SSD: [Usd; 2] = [Usd::from_micros(80_000), Usd::from_micros(32_000)];

/// Returns the parts of the price of a machine that costs `compute`.
pub(in crate::cloud::gcp) fn parts(compute: Usd, disk_gb: u32, spot: bool) -> PriceParts {
    PriceParts { compute, disk: DISK.per_month_for(disk_gb), address: Some(pick(ADDRESS, spot)) }
}

/// Returns what so much local SSD costs per hour.
pub(super) fn local_ssd(gib: u32, spot: bool) -> Usd {
    pick(LOCAL_SSD, spot).per_month_for(gib)
}

fn pick([on_demand, as_spot]: [Usd; 2], spot: bool) -> Usd {
    if spot { as_spot } else { on_demand }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_and_address_have_their_own_parts() {
        let on_demand = parts(Usd::from_micros(706_830), 50, false);
        assert_eq!((on_demand.disk.micros(), on_demand.address.unwrap().micros()), (6_850, 5_000));
        assert_eq!((on_demand.compute + on_demand.disk).micros(), 713_680);
        assert_eq!(on_demand.total().micros(), 718_680);
        assert_eq!(parts(Usd::ZERO, 50, true).address.unwrap().micros(), 2_500);
    }

    #[test]
    fn local_ssd_is_cheaper_as_spot() {
        assert_eq!(local_ssd(750, true).micros(), 32_877);
        assert_eq!(local_ssd(375, false).micros(), 41_096);
        assert_eq!(local_ssd(0, false), Usd::ZERO);
    }
}
