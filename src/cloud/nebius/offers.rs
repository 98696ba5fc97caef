//! Asking for projects, platforms, stock, quotas and prices; whatever does not need another's answer at once.
//!
//! Of the projects' platforms at least one must answer, and the spot prices if only spot machines are asked for. Stock, quotas
//! and the calculator are helpful: without them more is listed than can be had, or at the list's price, with a note.

use std::time::Duration;

use futures_util::future::{OptionFuture, join, join_all, join3};
use tokio::time::timeout;

use super::Nebius;
use super::estimates::{Question, estimates};
use super::image::{CUDA, SAFE_DISK_GB};
use super::places::place;
use super::prices::{Item, OnDemand, list_date};
use super::rows::{self, Frame, Rows, disk_gb, kinds, to_price};
use super::scope::Project;
use super::spot::SpotPrices;
use super::stock::{Quotas, Stocks};
use super::wire::Platform;
use crate::cloud::{Error, ErrorKind, OfferBatch, Reached, Result};
use crate::model::want::{Kind, Spot, Want};

/// What this is called in messages.
pub(super) const LISTING: &str = "listing offers";

/// Returns the live offers.
pub(super) async fn offers(cloud: &Nebius, want: &Want) -> Result<OfferBatch> {
    let wants_spot = kinds(want.spot).any(|spot| spot) && !want.is_cpu_only();
    let live = OptionFuture::from(wants_spot.then(|| cloud.api.spot_prices(LISTING)));
    let (live, told) = join(live, ask(cloud, want)).await;
    let told = told?;
    let mut notes = told.notes;
    let spot = match live {
        None => None,
        Some(Ok(prices)) => Some(SpotPrices::new(&prices)),
        Some(Err(error)) if want.spot == Spot::Only => return Err(error),
        Some(Err(error)) => {
            notes.push(format!("the list is not complete, spot offers are missing: {}", error.message));
            None
        }
    };
    let frame = Frame {
        account: &cloud.setup.account,
        sandbox: cloud.setup.loopback,
        disk_gb: disk_gb(want),
        floor: want.cuda,
        on_demand: &told.on_demand,
        shown: None,
        spot: spot.as_ref(),
        stocks: &told.stocks,
        quotas: &told.quotas,
    };
    let mut rows = Rows::default();
    for (home, platforms) in &told.platforms {
        rows::add(&mut rows, home, platforms, want, &frame);
    }
    if want.cuda.is_some_and(|floor| floor > CUDA) {
        // Their driver is older than that.
        rows.offers.retain(|offer| offer.gpu_count == 0);
    }
    notes.extend(words(want, &rows, spot.as_ref()));
    Ok(OfferBatch {
        offers: rows.offers,
        notes,
        known_gpus: rows.cards.into_iter().collect(),
        known_types: Some(rows.types.into_iter().collect()),
        known_places: told.places,
    })
}

/// The answers but for spot prices.
struct Told {
    platforms: Vec<(Project, Vec<Platform>)>,
    stocks: Stocks,
    quotas: Quotas,
    on_demand: OnDemand,
    /// Regions of all projects.
    places: Vec<String>,
    notes: Vec<String>,
}

async fn ask(cloud: &Nebius, want: &Want) -> Result<Told> {
    let scope = cloud.scope().await?;
    let mut notes = scope.notes.clone();
    if scope.projects.is_empty() {
        let words = match notes.is_empty() {
            true => "the tenant has no project in use".to_owned(),
            false => notes.join("; "),
        };
        return Err(cloud.api.asked(LISTING).error(ErrorKind::Rejected, words, Reached::No));
    }
    let places = scope.open.iter().map(|project| project.region.clone()).collect();
    let homes: Vec<Project> = scope.projects.iter().filter(|home| is_wanted(home, want)).cloned().collect();
    let asked = homes.iter().map(|home| cloud.api.platforms(&home.id));
    let tenant = &scope.tenant;
    let (answers, stocks, quotas) = join3(
        join_all(asked),
        helpful(cloud, cloud.api.advice(tenant, LISTING)),
        helpful(cloud, cloud.api.quotas(tenant)),
    )
    .await;
    let stocks = stocks.map(|rows| Stocks::new(&rows)).unwrap_or_else(|why| {
        notes.push(format!("what is in stock is not known: {why}"));
        Stocks::default()
    });
    let quotas = quotas.map(|rows| Quotas::new(&rows)).unwrap_or_else(|why| {
        notes.push(format!("quotas are not known: {why}"));
        Quotas::default()
    });
    let platforms = read(homes, answers, &mut notes)?;
    let questions: Vec<Question> = platforms
        .iter()
        .flat_map(|(home, platforms)| {
            let project = &home.id;
            let question = |item: Item| Question { item, project: project.clone() };
            to_price(home, platforms, want).into_iter().map(question)
        })
        .collect();
    let (on_demand, why) = estimates(cloud, questions).await;
    notes.extend(why.filter(|_| want.spot != Spot::Only).map(|why| {
        let date = list_date().map(|date| date.strftime("%Y-%m-%d").to_string()).unwrap_or_default();
        format!("some on-demand prices are those of Nebius's list of {date}: its calculator did not tell them ({why})")
    }));
    Ok(Told { platforms, stocks, quotas, on_demand, places, notes })
}

/// Waits for an answer without which the list can be made too: not long, and no failure.
async fn helpful<T>(
    cloud: &Nebius,
    asked: impl Future<Output = Result<Vec<T>>>,
) -> std::result::Result<Vec<T>, String> {
    match timeout(patience(cloud), asked).await {
        Ok(Ok(rows)) => Ok(rows),
        Ok(Err(error)) => Err(error.message.clone()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

/// How long is waited for what is only helpful.
pub(super) fn patience(cloud: &Nebius) -> Duration {
    cloud.setup.timeout / 3
}

/// Keeps the platforms of the projects that answered; an error if none did.
fn read(
    homes: Vec<Project>,
    answers: Vec<Result<Vec<Platform>>>,
    notes: &mut Vec<String>,
) -> Result<Vec<(Project, Vec<Platform>)>> {
    let mut platforms = Vec::new();
    let mut failed: Vec<(Project, Box<Error>)> = Vec::new();
    for (home, answer) in homes.into_iter().zip(answers) {
        match answer {
            Ok(found) => platforms.push((home, found)),
            Err(error) => failed.push((home, error)),
        }
    }
    if platforms.is_empty()
        && let Some((_, error)) = failed.pop()
    {
        return Err(error);
    }
    for (home, error) in failed {
        let region = &home.region;
        notes.push(format!("the list is not complete, offers in {region} are missing: {}", error.message));
    }
    Ok(platforms)
}

/// Whether the region can have what is asked for; the others need not be asked.
fn is_wanted(home: &Project, want: &Want) -> bool {
    let place = place(&home.region);
    let in_region = want.regions.is_empty() || want.regions.iter().any(|region| region.matches(&place));
    let in_zone = want.zones.is_empty() || want.zones.iter().any(|zone| place.in_zone(zone));
    in_region && in_zone
}

fn words(want: &Want, rows: &Rows, spot: Option<&SpotPrices>) -> Vec<String> {
    let mut notes = Vec::new();
    let word = |count: usize| if count == 1 { "offer" } else { "offers" };
    if rows.unpriced > 0 {
        let count = rows.unpriced;
        notes.push(format!("{count} {} left out, whose price Nebius does not tell", word(count)));
    }
    if !rows.no_quota.is_empty() {
        let what: Vec<&str> = rows.no_quota.iter().map(String::as_str).collect();
        notes.push(format!("left out, as the quota is zero: {}", what.join(", ")));
    }
    if let Some(unread) = spot.map(|spot| spot.unread).filter(|unread| *unread > 0) {
        notes.push(format!("{unread} spot prices cannot be read"));
    }
    if let Some(floor) = want.cuda.filter(|floor| *floor > CUDA) {
        notes.push(format!("Nebius's image has CUDA {CUDA}: nothing is left for {floor}"));
    }
    if want.cuda.is_some() && want.kind == Kind::CpuOnly {
        notes.push("`--cuda` means nothing without a GPU".to_owned());
    }
    if want.is_cpu_only() && want.spot != Spot::No {
        notes.push("machines without a GPU are on demand only".to_owned());
    }
    let disk = disk_gb(want);
    if want.disk_given && want.disk_gb < disk {
        notes.push(format!("the disk is raised to {disk} GB, its minimum"));
    } else if want.disk_given && disk < SAFE_DISK_GB {
        notes.push(format!("boot disks below {SAFE_DISK_GB} GB were seen to hang at Nebius"));
    } else if want.disk_gb < disk {
        notes.push(format!(
            "the disk is raised to {disk} GB, as smaller ones were seen to hang; `--disk` takes less"
        ));
    }
    notes
}
