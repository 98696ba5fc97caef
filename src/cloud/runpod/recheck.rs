//! Asking for one offer again, right before a create. Not a reservation: the create may still fail.

use super::RunPod;
use super::client::StockQuery;
use super::instance::InstanceType;
use super::rows::{Frame, Wishes, row_in};
use crate::cloud::{Recheck, Result};
use crate::model::offer_key::OfferKey;
use crate::model::want::Want;

/// Asks for the offer that `key` names. Its wishes are those of the key, not of `want`: the id is complete.
pub(super) async fn recheck(cloud: &RunPod, key: &OfferKey, want: &Want) -> Result<Recheck> {
    let Some(instance) = InstanceType::parse(&key.instance_type) else {
        return Ok(Recheck::Gone(format!("`{}` is no instance type of RunPod", key.instance_type)));
    };
    let wishes = Wishes {
        disk_gb: key.disk_gb,
        floor: cloud.floor(want.image.as_deref(), key),
        ram_gb: key.ram_gb,
        vcpus: key.vcpus,
    };
    let query = StockQuery { floor: wishes.floor, ..StockQuery::from(&instance) };
    let (gpu, (places, _)) =
        futures_util::future::join(cloud.api.gpu(&instance.gpu_id, &query), cloud.places()).await;
    let Some(gpu) = gpu? else {
        return Ok(Recheck::Gone(format!("RunPod does not know a GPU `{}` any more", instance.gpu_id)));
    };
    let frame = Frame {
        account: &cloud.setup.account,
        sandbox: cloud.setup.loopback,
        places: &places,
        regions: &want.regions,
        tier: instance.tier,
        count: instance.count,
        wishes,
    };
    Ok(match row_in(&gpu, &instance.gpu_id, key.zone.as_deref(), &frame) {
        Some(offer) => Recheck::Offered(Box::new(offer)),
        None => Recheck::Gone(format!("not in stock any more: {}", constraints(&instance, key, &wishes))),
    })
}

/// Returns the constraints of an offer as a phrase: a refusal never says which of them was not met.
pub(super) fn constraints(instance: &InstanceType, key: &OfferKey, wishes: &Wishes) -> String {
    let mut parts = vec![
        format!("{} x {}", instance.count, instance.gpu_id),
        instance.tier.to_string(),
        key.zone.clone().unwrap_or_else(|| "any data centre".to_owned()),
    ];
    parts.extend(wishes.floor.map(|floor| format!("CUDA {floor} or newer")));
    parts.extend(wishes.ram_gb.map(|ram| format!("{ram} GB of memory")));
    parts.extend(wishes.vcpus.map(|vcpus| format!("{vcpus} vCPUs")));
    parts.push(format!("{} GB of disk", wishes.disk_gb));
    parts.join(", ")
}

impl RunPod {
    /// Returns the CUDA floor of an offer with an image: the offer's own, or what the image needs if that is more.
    pub(super) fn floor(&self, image: Option<&str>, key: &OfferKey) -> Option<crate::model::want::Cuda> {
        key.cuda.max(self.choose(image, key.cuda).floor)
    }
}
