//! Asking the calculator for on-demand prices. Its answers are kept on disk for an hour; nothing depends on them.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::timeout;

use super::Nebius;
use super::prices::{Estimate, Item, OnDemand, decimal};
use super::wire::{CreateInstanceRequest, EstimateResponse, InstanceSpec, ResourceMetadata, ResourcesSpec};
use crate::http::cache::Cache;
use crate::model::money::Usd;

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// Questions of one command at most; what is beyond has the list's price.
const MOST: usize = 60;

/// A type and the project to ask in, which tells the region.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) item: Item,
    pub(super) project: String,
}

/// Returns what is known of the prices of `questions`, from the cache where that is young, and why some are missing.
pub(super) async fn estimates(cloud: &Nebius, questions: Vec<Question>) -> (OnDemand, Option<String>) {
    let folder = cloud.setup.cache.as_ref().map(|cache| cache.join("nebius-prices"));
    let cache = Cache::new(folder, KEPT);
    let mut known: Vec<(Item, Estimate)> = Vec::new();
    let mut open = Vec::new();
    for question in questions {
        match cache.get::<Estimate>(&title(cloud, &question.item)) {
            Some(kept) if kept.price.is_positive() => known.push((question.item, kept)),
            _ => open.push(question),
        }
    }
    open.truncate(MOST);
    // One that hangs may not cost the whole list its deadline.
    let most = cloud.setup.timeout / 3;
    let asked = open.iter().map(|question| timeout(most, ask(cloud, question)));
    let mut why = None;
    for (question, answer) in open.iter().zip(join_all(asked).await) {
        match answer.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
            Ok(price) => {
                let estimate = Estimate { price, at: Timestamp::now() };
                cache.put(&title(cloud, &question.item), &estimate);
                known.push((question.item.clone(), estimate));
            }
            Err(words) => why = Some(words),
        }
    }
    (OnDemand::new(known), why)
}

/// Asks for one price, past the cache; why there is none otherwise.
pub(super) async fn ask(cloud: &Nebius, question: &Question) -> Result<Usd, String> {
    let answer = cloud.api.estimate(request(question)).await.map_err(|error| error.message.clone())?;
    read(&answer).ok_or_else(|| "an answer without a price".to_owned())
}

fn title(cloud: &Nebius, item: &Item) -> String {
    // Prices may be a customer's own.
    let Item { region, platform, preset } = item;
    format!("nebius price {} {} {region} {platform} {preset}", cloud.setup.endpoint, cloud.setup.secret_mark)
}

/// The machine alone: no disk, whose price is a part of its own.
fn request(question: &Question) -> CreateInstanceRequest {
    let resources = ResourcesSpec {
        platform: question.item.platform.clone(),
        preset: Some(question.item.preset.clone()),
    };
    CreateInstanceRequest {
        metadata: Some(ResourceMetadata {
            parent_id: question.project.clone(),
            ..ResourceMetadata::default()
        }),
        spec: Some(InstanceSpec { resources: Some(resources), ..InstanceSpec::default() }),
    }
}

fn read(answer: &EstimateResponse) -> Option<Usd> {
    let total = answer.hourly_cost.as_ref()?.general.as_ref()?.total.as_ref()?;
    decimal(&total.cost).or_else(|| decimal(&total.cost_rounded))
}

#[cfg(test)]
mod tests {
    use super::super::wire::{CostBreakdown, GeneralTotalCost, ResourceGroupCost};
    use super::*;

    #[test]
    fn an_answer_is_read_or_left() {
        let answer = |cost: &str, rounded: &str| {
            let total = CostBreakdown { cost: cost.to_owned(), cost_rounded: rounded.to_owned() };
            let general = GeneralTotalCost { total: Some(total) };
            let hourly_cost = Some(ResourceGroupCost { general: Some(general) });
            EstimateResponse { hourly_cost, monthly_cost: None }
        };
        assert_eq!(read(&answer("4.5", "4.50")), Some(Usd::from_micros(4_500_000)));
        assert_eq!(read(&answer("", "4.50")), Some(Usd::from_micros(4_500_000)));
        for none in [answer("", ""), answer("0", "0"), answer("-1", "x"), EstimateResponse::default()] {
            assert_eq!(read(&none), None, "{none:?}");
        }
    }

    #[test]
    fn the_question_names_the_machine_and_nothing_else() {
        let item = Item {
            region: "eu-north1".to_owned(),
            platform: "gpu-h100-sxm".to_owned(),
            preset: "1gpu-16vcpu-200gb".to_owned(),
        };
        let request = request(&Question { item, project: "project-e00a".to_owned() });
        let spec = request.spec.unwrap();
        assert_eq!(request.metadata.unwrap().parent_id, "project-e00a");
        assert_eq!(spec.resources.unwrap().platform, "gpu-h100-sxm");
        assert!(spec.boot_disk.is_none() && spec.preemptible.is_none() && spec.network_interfaces.is_empty());
    }
}
