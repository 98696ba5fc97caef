//! Offers: every machine that was asked for, in every zone of the account, at the catalogues' prices, but for what the
//! account's limits forbid. Catalogues, project and regions are asked at once.

use std::collections::BTreeSet;

use futures_util::future::{join, join_all};

use super::Gcp;
use super::places::{DEFAULT_ZONES, place, region_of};
use super::prices::{Answer, Prices};
use super::quotas::{self, LeftOut, Limits, Need, Quotas};
use super::rows::{CPU_DISK_GB, Frame, GPU_DISK_GB, asked, disk_gb, offer};
use super::shapes::{Shape, shapes};
use crate::cloud::{Error, ErrorKind, OfferBatch, Reached, Result};
use crate::model::gpu::GpuModel;
use crate::model::want::{Kind, Spot, Want};

/// What the questions are called in messages.
const LISTING: &str = "listing offers";

/// The right that reading the project's limits needs.
const READ_PROJECT: &str = "compute.projects.get";

/// Returns the offers.
pub(super) async fn offers(cloud: &Gcp, want: &Want) -> Result<OfferBatch> {
    let machines = asked(want, shapes());
    let (zones, mut notes) = cloud.zones();
    let regions: BTreeSet<&str> =
        zones.iter().filter(|zone| is_asked(zone, want)).filter_map(|zone| region_of(zone)).collect();
    let (quotas, prices) = join(cloud.quotas(regions, LISTING), cloud.prices.prices(&machines)).await;
    let (quotas, quota_note) = quotas?;
    if let Some(why) = prices.missing().filter(|_| !machines.is_empty()) {
        let account = &cloud.setup.account;
        return Err(Box::new(Error::new(ErrorKind::Unavailable, account, LISTING, why, Reached::No)));
    }
    let frame = Frame {
        account: &cloud.setup.account,
        sandbox: cloud.setup.loopback,
        disk_gb: want.disk_gb,
        floor: want.cuda,
    };
    let mut list = List::default();
    for shape in &machines {
        for zone in &zones {
            list.add(shape, zone, want, &prices, &quotas, &frame);
        }
    }
    notes.extend(prices.notes);
    notes.extend(quota_note);
    notes.extend(list.notes(want, &machines, &cloud.settings.project));
    Ok(OfferBatch {
        offers: list.offers,
        notes,
        known_gpus: known(|shape| shape.cards.as_ref().map(|cards| cards.gpu.name.clone())),
        known_types: Some(known(|shape| Some(shape.machine_type.to_owned()))),
        known_places: places(&zones),
    })
}

/// Whether a zone is one that the request is about; others are only listed so that it can be said what they would have had.
fn is_asked(zone: &str, want: &Want) -> bool {
    let place = place(zone);
    (want.zones.is_empty() || want.zones.iter().any(|asked| place.in_zone(asked)))
        && (want.regions.is_empty() || want.regions.iter().any(|region| region.matches(&place)))
}

fn known(name: impl Fn(&Shape) -> Option<String>) -> Vec<String> {
    shapes().iter().filter_map(name).collect::<BTreeSet<_>>().into_iter().collect()
}

fn places(zones: &[String]) -> Vec<String> {
    let regions = zones.iter().filter_map(|zone| region_of(zone)).map(str::to_owned);
    regions.chain(zones.iter().cloned()).collect::<BTreeSet<_>>().into_iter().collect()
}

#[derive(Default)]
struct List {
    offers: Vec<crate::model::offer::Offer>,
    unusable: usize,
    listed: BTreeSet<String>,
    left_out: LeftOut,
    raised: Option<u32>,
}

impl List {
    fn add(
        &mut self,
        shape: &Shape,
        zone: &str,
        want: &Want,
        prices: &Prices,
        quotas: &Quotas,
        frame: &Frame<'_>,
    ) {
        let Some(region) = region_of(zone) else { return };
        for spot in kinds(want.spot) {
            let price = match prices.of(shape, zone, *spot) {
                Answer::Price(price) => price,
                Answer::NotSold => continue,
                Answer::Unusable => {
                    self.unusable += usize::from(is_asked(zone, want));
                    continue;
                }
            };
            let disk_gb = disk_gb(shape, want.disk_gb);
            if let Some(short) = quotas.forbids(&Need { shape, region, spot: *spot, disk_gb }) {
                if is_asked(zone, want) {
                    self.left_out.count(short);
                }
                continue;
            }
            if price.is_listed && is_asked(zone, want) {
                let name = shape.cards.as_ref().map_or(shape.machine_type, |cards| cards.gpu.name.as_str());
                self.listed.insert(name.to_owned());
            }
            self.raised = self.raised.or(Some(disk_gb).filter(|disk| *disk > want.disk_gb));
            self.offers.push(offer(shape, zone, *spot, &price, frame));
        }
    }

    fn notes(&self, want: &Want, machines: &[&Shape], project: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unusable > 0 {
            let word = if self.unusable == 1 { "offer" } else { "offers" };
            notes.push(format!("{} {word} without a usable price left out", self.unusable));
        }
        if !self.listed.is_empty() {
            let names: Vec<&str> = self.listed.iter().map(String::as_str).collect();
            notes.push(format!(
                "the catalogue's on-demand price of {} cannot be right; Google's list price of 2026-11-30 stands in for it",
                names.join(", ")
            ));
        }
        notes.extend(self.left_out.note(project));
        notes.extend(spot_only(want, machines));
        if want.cuda.is_some() && want.kind == Kind::CpuOnly {
            notes.push("`--cuda` means nothing without a GPU".to_owned());
        }
        if let Some(disk) = self.raised.filter(|_| want.disk_given) {
            let whose = if disk == GPU_DISK_GB { "with a GPU" } else { "without a GPU" };
            debug_assert!([GPU_DISK_GB, CPU_DISK_GB].contains(&disk));
            notes.push(format!("the disk is raised to {disk} GB, the least of a machine {whose}"));
        }
        notes
    }
}

/// Says which of the named GPUs can only be had as spot.
fn spot_only(want: &Want, machines: &[&Shape]) -> Option<String> {
    let Kind::Gpus(gpus) = &want.kind else { return None };
    if want.spot != Spot::No {
        return None;
    }
    let only = |gpu: &&crate::model::gpu::GpuWant| {
        let mut of = machines.iter().filter(|shape| {
            let fits =
                |cards: &super::shapes::Cards| cards.count == gpu.count && gpu.model.matches(&cards.gpu);
            shape.cards.as_ref().is_some_and(fits)
        });
        gpu.model != GpuModel::Any && of.clone().next().is_some() && of.all(|shape| !shape.on_demand)
    };
    let names: Vec<String> = gpus.iter().filter(only).map(ToString::to_string).collect();
    (!names.is_empty()).then(|| format!("Google sells {} as spot only (`--spot`)", names.join(", ")))
}

fn kinds(spot: Spot) -> &'static [bool] {
    match spot {
        Spot::No => &[false],
        Spot::Only => &[true],
        Spot::Any => &[false, true],
    }
}

impl Gcp {
    /// Returns the zones that are looked at, and a note on those that are none.
    pub(super) fn zones(&self) -> (Vec<String>, Vec<String>) {
        let own = &self.settings.zones;
        if own.is_empty() {
            return (DEFAULT_ZONES.map(str::to_owned).to_vec(), Vec::new());
        }
        let (zones, odd): (Vec<&String>, Vec<&String>) =
            own.iter().partition(|zone| region_of(zone).is_some());
        let note = odd.iter().map(|zone| {
            let zone = crate::model::words::one_line(zone, 60);
            format!("`{zone}` under `zones` is no zone of Google's, which are such as us-central1-a")
        });
        let zones: BTreeSet<String> = zones.into_iter().cloned().collect();
        (zones.into_iter().collect(), note.collect())
    }

    /// Reads the account's limits. That the project cannot be asked at all is an error: its credentials are not good for
    /// anything then. Limits that these credentials may not read are unknown, as are those of a region that does not answer.
    pub(super) async fn quotas(
        &self,
        regions: BTreeSet<&str>,
        doing: &'static str,
    ) -> Result<(Quotas, Option<String>)> {
        let project = self.api.get_json::<quotas::Answer>("", doing);
        let asked = regions.into_iter().map(async |region| {
            let path = format!("regions/{region}");
            (region.to_owned(), self.api.get_json::<quotas::Answer>(&path, doing).await)
        });
        let (project, answers) = join(project, join_all(asked)).await;
        let mut quotas = Quotas::default();
        let mut unread = BTreeSet::new();
        match project {
            Ok(Some(answer)) => quotas.project = Limits::new(Some(answer)),
            Ok(None) => {
                let message = format!("there is no project `{}`", self.settings.project);
                let account = &self.setup.account;
                return Err(Box::new(Error::new(ErrorKind::NotFound, account, doing, message, Reached::No)));
            }
            // Any other refusal (the API is off, no such project) is of everything.
            Err(error) if error.kind == ErrorKind::Forbidden && error.message.contains(READ_PROJECT) => {
                unread.insert(error.message.clone());
            }
            Err(error) => return Err(error),
        }
        for (region, answer) in answers {
            match answer {
                Ok(answer) => {
                    quotas.regions.insert(region, Limits::new(answer));
                }
                Err(error) if error.kind == ErrorKind::Auth => return Err(error),
                Err(error) => {
                    unread.insert(error.message.clone());
                }
            }
        }
        let note = unread.first().map(|why| format!("quotas are not known everywhere: {why}"));
        Ok((quotas, note))
    }
}
