//! Asking for one offer again, right before a create: that the platform still has the preset, the stock, and the price past
//! every cache. Not a reservation: the create may still fail, early or late.

use futures_util::future::{OptionFuture, join5};
use tokio::time::timeout;

use super::estimates::{Question, ask};
use super::image::family;
use super::offers::patience;
use super::platforms::read_type;
use super::prices::{Estimate, Item, OnDemand, disk};
use super::rows::{Frame, Type, offer};
use super::scope::Project;
use super::spot::SpotPrices;
use super::stock::{Quotas, Seen, Stocks};
use super::wire::Platform;
use super::{MIN_DISK_GB, MOST_DISK_GB, Nebius};
use crate::cloud::{Recheck, Result};
use crate::model::offer_key::OfferKey;

/// What this is called in messages.
const CHECKING: &str = "checking the offer again";

/// Asks for the offer that `key` names. Its wishes are those of the key: the id is complete.
pub(super) async fn recheck(cloud: &Nebius, key: &OfferKey) -> Result<Recheck> {
    let gone = |why: &str| {
        let kind = if key.spot { "preemptible" } else { "on demand" };
        let region = key.zone.as_deref().unwrap_or("no region");
        Ok(Recheck::Gone(format!("{why}: {}, {kind}, {region}", key.instance_type)))
    };
    let (Some(home), Some((platform, preset))) = (home(key), read_type(&key.instance_type)) else {
        return gone("the offer does not say what and where");
    };
    let item = Item { region: home.region.clone(), platform: platform.to_owned(), preset: preset.to_owned() };
    let question = Question { item: item.clone(), project: home.id.clone() };
    let scope = cloud.scope().await?;
    let is_there = |project: &Project| project.id == home.id && project.region == home.region;
    if !scope.open.iter().any(is_there) {
        return gone("its project is not one of the tenant's any more");
    }
    let spot = OptionFuture::from(key.spot.then(|| cloud.api.spot_prices(CHECKING)));
    let (found, smallest, stocks, live, price) = join5(
        cloud.api.platform(&home.id, platform),
        smallest_disk(cloud, key.gpu_count > 0),
        stocks(cloud, &scope.tenant),
        spot,
        timeout(patience(cloud), ask(cloud, &question)),
    )
    .await;
    let Some(found) = found? else { return gone("Nebius does not list the platform there any more") };
    let Some(ty) = of_name(&found, preset) else { return gone("Nebius does not list the preset any more") };
    if stocks.seen(&home.region, platform, preset, key.spot) == Seen::Out {
        return gone("not in stock any more");
    }
    let live = live.transpose()?.map(|prices| SpotPrices::new(&prices));
    // Without an answer of the calculator the machine costs what it was shown to cost, or more by the list.
    let price = price.ok().and_then(std::result::Result::ok);
    let shown = (!key.spot && price.is_none()).then(|| key.price - disk(key.disk_gb));
    let told = price.map(|price| (item, Estimate { price, at: jiff::Timestamp::now() }));
    let frame = Frame {
        account: &cloud.setup.account,
        sandbox: cloud.setup.loopback,
        disk_gb: key.disk_gb.max(smallest),
        floor: key.cuda,
        on_demand: &OnDemand::new(told),
        shown: shown.filter(|shown| shown.is_positive()),
        spot: live.as_ref(),
        stocks: &stocks,
        quotas: &Quotas::default(),
    };
    match offer(&ty, &home, key.spot, &frame) {
        Some(offer) => Ok(Recheck::Offered(Box::new(offer))),
        None => gone("without a price now"),
    }
}

/// Returns the project that an offer is of.
pub(super) fn home(key: &OfferKey) -> Option<Project> {
    let (id, region) = (key.own.clone()?, key.zone.clone()?);
    Some(Project { id, name: String::new(), region })
}

/// The platform that was asked for may come without its name.
fn of_name<'a>(platform: &'a Platform, preset: &str) -> Option<Type<'a>> {
    let presets = platform.spec.as_ref().map(|spec| spec.presets.as_slice()).unwrap_or_default();
    Type::of(platform, presets.iter().find(|known| known.name == preset)?)
}

/// The smallest disk that the image takes now, in GiB; without an answer in time the one that is built in.
async fn smallest_disk(cloud: &Nebius, has_gpu: bool) -> u32 {
    let asked = timeout(patience(cloud), cloud.api.image_latest(family(has_gpu))).await;
    let image = asked.ok().and_then(Result::ok).flatten();
    let bytes = image.and_then(|image| Some(image.status?.min_disk_size_bytes)).unwrap_or_default();
    let gib = bytes.max(0).unsigned_abs().div_ceil(1 << 30);
    u32::try_from(gib).unwrap_or(MIN_DISK_GB).clamp(MIN_DISK_GB, MOST_DISK_GB)
}

/// What is in stock; nothing is known where that is not told in time.
async fn stocks(cloud: &Nebius, tenant: &str) -> Stocks {
    match timeout(patience(cloud), cloud.api.advice(tenant, CHECKING)).await {
        Ok(Ok(rows)) => Stocks::new(&rows),
        Ok(Err(_)) | Err(_) => Stocks::default(),
    }
}
