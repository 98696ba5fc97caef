//! Asking for types, stock, locations and the price of disks, all at once.

use std::collections::BTreeSet;

use futures_util::future::{OptionFuture, join, join3};

use super::Verda;
use super::places::Places;
use super::prices::DiskPrice;
use super::rows::{Frame, Rows, rows};
use super::wire::Stock;
use crate::cloud::{OfferBatch, Result};
use crate::model::want::{Kind, Spot, Want};

/// Returns the live offers.
pub(super) async fn offers(cloud: &Verda, want: &Want) -> Result<OfferBatch> {
    let kinds = match want.spot {
        Spot::No => [Some(false), None],
        Spot::Only => [Some(true), None],
        Spot::Any => [Some(false), Some(true)],
    };
    let with_token = async {
        // Once, before the others would all ask for it.
        cloud.api.log_in().await?;
        let [first, second] = kinds.map(|kind| {
            OptionFuture::from(kind.map(|spot| async move { (spot, cloud.api.stock(spot).await) }))
        });
        Result::Ok(join3(first, second, cloud.places()).await)
    };
    let (answers, (types, disk)) =
        join(with_token, join(cloud.api.types("listing offers"), cloud.disk_price())).await;
    let (first, second, (places, place_note)) = answers?;
    let types = types?;
    let (disk, disk_note) = disk;

    let mut batch = OfferBatch::default();
    let frame = Frame {
        account: &cloud.setup.account,
        sandbox: cloud.setup.loopback,
        places: &places,
        disk,
        disk_gb: want.disk_gb,
        floor: want.cuda,
    };
    let mut all = Rows::default();
    let mut failed = Vec::new();
    let mut locations: BTreeSet<String> = places.codes().collect();
    let mut answered = false;
    for (spot, stock) in [first, second].into_iter().flatten() {
        match stock {
            Ok(stock) => {
                answered = true;
                locations.extend(stock.iter().filter_map(|stock: &Stock| stock.location_code.clone()));
                let found = rows(&types, &stock, spot, want, &frame);
                all.offers.extend(found.offers);
                all.unpriced += found.unpriced;
                all.without_image += found.without_image;
                all.cards.extend(found.cards);
            }
            Err(error) => failed.push((spot, error)),
        }
    }
    for (spot, error) in failed {
        if !answered {
            return Err(error);
        }
        let kind = if spot { "spot" } else { "on-demand" };
        batch.notes.push(format!("the list is not complete, {kind} offers are missing: {}", error.message));
    }
    batch.notes.extend(notes(want, &all));
    batch.notes.extend([place_note, disk_note].into_iter().flatten());
    batch.offers = all.offers;
    batch.known_gpus = all.cards.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    batch.known_places = locations.into_iter().collect();
    Ok(batch)
}

fn notes(want: &Want, rows: &Rows) -> Vec<String> {
    let word = |count: usize| if count == 1 { "offer" } else { "offers" };
    let mut notes = Vec::new();
    if rows.unpriced > 0 {
        notes.push(format!("{} {} without a usable price left out", rows.unpriced, word(rows.unpriced)));
    }
    if let Some(floor) = want.cuda.filter(|_| rows.without_image > 0) {
        notes.push(format!(
            "{} {} left out, whose types have no image with CUDA {floor} or newer",
            rows.without_image,
            word(rows.without_image)
        ));
    }
    if want.cuda.is_some() && want.kind == Kind::CpuOnly {
        notes.push("`--cuda` means nothing without a GPU".to_owned());
    }
    if want.disk_given && want.disk_gb < super::MIN_DISK_GB {
        notes.push(format!("the disk is raised to {} GB, its minimum", super::MIN_DISK_GB));
    }
    notes
}

impl Verda {
    /// Returns the locations, asked for once in a process; without an answer none, and a note.
    pub(super) async fn places(&self) -> (Places, Option<String>) {
        let asked =
            self.places.get_or_try_init(async || self.api.locations().await.map(|list| Places::new(&list)));
        match asked.await {
            Ok(places) => (places.clone(), None),
            Err(error) => {
                let note = format!("the countries of its locations are not known: {}", error.message);
                (Places::default(), Some(note))
            }
        }
    }

    /// Returns the price of disks, asked for once in a process; without an answer the list price, and a note.
    pub(super) async fn disk_price(&self) -> (DiskPrice, Option<String>) {
        if let Some(price) = self.disk_price.get() {
            return (*price, None);
        }
        let why = match self.api.volume_types().await {
            Ok(types) => match DiskPrice::read(&types) {
                Some(price) => return (*self.disk_price.get_or_init(async || price).await, None),
                None => "the price of NVMe volumes is missing".to_owned(),
            },
            Err(error) => error.message.clone(),
        };
        (DiskPrice::LIST, Some(format!("the price of the disk is the list price: {why}")))
    }
}
