//! What can be started, as the advice and quota services tell it. Both may be denied to an account: then nothing is known, and
//! nothing is left out.
//!
//! Advice is up to some 20 minutes old and no reservation: a machine was refused for lack of resources right after "2
//! available" (github.com/nebius/nebius-physical-ai, quota guide).

use std::collections::HashMap;

use super::wire::{Availability, AvailabilityLevel, DataState, QuotaAllowance, QuotaState, ResourceAdvice};
use crate::model::offer::Stock;

/// The quota of machines, all kinds.
pub(super) const MACHINES: &str = "compute.instance.count";
/// The quota of preemptible machines.
pub(super) const PREEMPTIBLE: &str = "compute.instance.preemptible.count";
/// The quota of vCPUs of machines without a GPU.
pub(super) const VCPUS: &str = "compute.instance.non-gpu.vcpu";

/// What the advice says about one machine type in one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It will very likely not start.
    Out,
    /// It will; how much there is, where that is told.
    There(Option<Stock>),
    /// Nothing certain.
    Unknown,
}

/// Region, platform, preset.
type Item = (String, String, String);

/// The advice.
#[derive(Clone, Debug, Default)]
pub(super) struct Stocks {
    on_demand: HashMap<Item, Seen>,
    preemptible: HashMap<Item, Seen>,
}

impl Stocks {
    /// Takes in all rows: several fabrics may have the same type.
    pub(super) fn new(rows: &[ResourceAdvice]) -> Self {
        let mut stocks = Stocks::default();
        for row in rows {
            let Some(spec) = &row.spec else { continue };
            let Some(machine) = &spec.compute_instance else { continue };
            let Some(preset) = &machine.preset else { continue };
            let Some(status) = &row.status else { continue };
            let item = (spec.region.clone(), machine.platform.clone(), preset.name.clone());
            add(&mut stocks.on_demand, &item, status.on_demand.as_ref());
            add(&mut stocks.preemptible, &item, status.preemptible.as_ref());
        }
        stocks
    }

    /// Returns what is known of one type.
    pub(super) fn seen(&self, region: &str, platform: &str, preset: &str, spot: bool) -> Seen {
        let rows = if spot { &self.preemptible } else { &self.on_demand };
        let item = (region.to_owned(), platform.to_owned(), preset.to_owned());
        rows.get(&item).copied().unwrap_or(Seen::Unknown)
    }
}

fn add(rows: &mut HashMap<Item, Seen>, item: &Item, told: Option<&Availability>) {
    let seen = told.map_or(Seen::Unknown, seen);
    let merged = match (rows.get(item).copied(), seen) {
        (None, seen) => seen,
        (Some(Seen::There(one)), Seen::There(two)) => Seen::There(more(one, two)),
        (Some(there @ Seen::There(_)), _) | (_, there @ Seen::There(_)) => there,
        (Some(Seen::Unknown), _) | (_, Seen::Unknown) => Seen::Unknown,
        (Some(Seen::Out), Seen::Out) => Seen::Out,
    };
    rows.insert(item.clone(), merged);
}

fn seen(told: &Availability) -> Seen {
    if told.data_state != DataState::Fresh as i32 {
        return Seen::Unknown;
    }
    if told.available == 0 {
        return Seen::Out;
    }
    Seen::There(match AvailabilityLevel::try_from(told.availability_level) {
        Ok(AvailabilityLevel::High) => Some(Stock::High),
        Ok(AvailabilityLevel::Medium) => Some(Stock::Medium),
        Ok(AvailabilityLevel::Low) => Some(Stock::Low),
        _ => None,
    })
}

fn more(one: Option<Stock>, two: Option<Stock>) -> Option<Stock> {
    let rank = |stock: Option<Stock>| match stock {
        Some(Stock::High) => 3,
        Some(Stock::Medium) => 2,
        Some(Stock::Low) => 1,
        None => 0,
    };
    if rank(one) >= rank(two) { one } else { two }
}

/// The limits of the tenant, by name and region.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas(HashMap<(String, String), u64>);

impl Quotas {
    /// Takes in the rows that carry a limit; one without inherits, from where is not told.
    pub(super) fn new(rows: &[QuotaAllowance]) -> Self {
        let limit = |row: &QuotaAllowance| {
            let (metadata, spec) = (row.metadata.as_ref()?, row.spec.as_ref()?);
            let is_deleted =
                row.status.as_ref().is_some_and(|status| status.state == QuotaState::Deleted as i32);
            let limit = spec.limit.filter(|_| !is_deleted)?;
            Some(((metadata.name.clone(), spec.region.clone()), limit))
        };
        Quotas(rows.iter().filter_map(limit).collect())
    }

    /// Whether a quota is known to be zero in a region, or everywhere.
    pub(super) fn is_zero(&self, name: &str, region: &str) -> bool {
        let limit = |region: &str| self.0.get(&(name.to_owned(), region.to_owned())).copied();
        limit(region).or_else(|| limit("")) == Some(0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::wire::{
        AdvicePreset, ComputeInstanceDetails, QuotaAllowanceSpec, QuotaAllowanceStatus, ResourceAdviceSpec,
        ResourceAdviceStatus, ResourceMetadata,
    };
    use super::*;

    pub(in crate::cloud::nebius) fn there(available: u32, level: AvailabilityLevel) -> Availability {
        Availability {
            data_state: DataState::Fresh as i32,
            available,
            availability_level: level as i32,
            ..Availability::default()
        }
    }

    pub(in crate::cloud::nebius) fn advice(
        region: &str,
        platform: &str,
        preset: &str,
        on_demand: Option<Availability>,
        preemptible: Option<Availability>,
    ) -> ResourceAdvice {
        let preset = AdvicePreset { name: preset.to_owned(), resources: None };
        let machine = ComputeInstanceDetails {
            platform: platform.to_owned(),
            preset: Some(preset),
            gpu_memory_gigabytes: 80,
        };
        ResourceAdvice {
            metadata: None,
            spec: Some(ResourceAdviceSpec {
                region: region.to_owned(),
                fabric: String::new(),
                compute_instance: Some(machine),
            }),
            status: Some(ResourceAdviceStatus { reserved: None, on_demand, preemptible }),
        }
    }

    pub(in crate::cloud::nebius) fn quota(name: &str, region: &str, limit: Option<u64>) -> QuotaAllowance {
        QuotaAllowance {
            metadata: Some(ResourceMetadata { name: name.to_owned(), ..ResourceMetadata::default() }),
            spec: Some(QuotaAllowanceSpec { limit, region: region.to_owned() }),
            status: None,
        }
    }

    #[test]
    fn only_fresh_zeros_are_believed() {
        let stale = Availability { data_state: DataState::Stale as i32, ..Availability::default() };
        let out = there(0, AvailabilityLevel::LimitReached);
        let high = there(9, AvailabilityLevel::High);
        let odd = there(1, AvailabilityLevel::Unknown);
        let of = |rows: &[(Option<Availability>, Option<Availability>)]| {
            let rows: Vec<_> = rows
                .iter()
                .map(|(on_demand, spot)| {
                    advice("eu-north1", "gpu-h100-sxm", "1g", on_demand.clone(), spot.clone())
                })
                .collect();
            let stocks = Stocks::new(&rows);
            [false, true].map(|spot| stocks.seen("eu-north1", "gpu-h100-sxm", "1g", spot))
        };
        let low = there(1, AvailabilityLevel::Low);
        assert_eq!(of(&[(Some(low.clone()), Some(out.clone()))]), [Seen::There(Some(Stock::Low)), Seen::Out]);
        assert_eq!(of(&[(Some(stale.clone()), None)]), [Seen::Unknown; 2]);
        assert_eq!(of(&[(Some(odd), Some(stale.clone()))]), [Seen::There(None), Seen::Unknown]);
        assert_eq!(
            of(&[(Some(out.clone()), Some(out.clone())), (Some(out.clone()), Some(stale))]),
            [Seen::Out, Seen::Unknown]
        );
        assert_eq!(
            of(&[(Some(out.clone()), Some(low)), (Some(high.clone()), Some(high))]),
            [Seen::There(Some(Stock::High)), Seen::There(Some(Stock::High))]
        );
        assert_eq!(of(&[]), [Seen::Unknown; 2]);
        assert!(Stocks::new(&[ResourceAdvice::default()]).on_demand.is_empty());
    }

    #[test]
    fn zero_is_zero_and_absent_is_not() {
        let mut gone = quota("d", "r", Some(0));
        gone.status = Some(QuotaAllowanceStatus {
            state: QuotaState::Deleted as i32,
            ..QuotaAllowanceStatus::default()
        });
        let rows = [
            quota("a", "r", Some(0)),
            quota("b", "r", Some(1)),
            quota("b", "", Some(0)),
            quota("c", "r", None),
            gone,
            QuotaAllowance::default(),
        ];
        let quotas = Quotas::new(&rows);
        for (name, region, zero) in [
            ("a", "r", true),
            ("a", "s", false),
            ("b", "r", false),
            ("b", "s", true),
            ("c", "r", false),
            ("d", "r", false),
            ("e", "r", false),
        ] {
            assert_eq!(quotas.is_zero(name, region), zero, "{name} {region}");
        }
    }
}
