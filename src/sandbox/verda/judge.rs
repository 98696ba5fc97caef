//! Whether a create is good: the body, what is on file, funds and quotas, stock. Nothing is changed here.

use super::catalog::{Image, Kind};
use super::state::State;
use super::volume::{Place, Volume};
use super::wire::{self, Deploy, OneOrMany};
use super::{VerdaCloud, WRONG_IMAGE, error, refuse};
use crate::sandbox::server::Answer;

/// GB of the OS volume where the body names none; also the floor that clients keep to.
pub(super) const OS_DISK: u64 = 50;

/// A create whose body has been found good.
pub(super) struct Plan<'a> {
    pub(super) kind: &'a Kind,
    pub(super) image: String,
    pub(super) os_name: String,
    pub(super) hostname: String,
    pub(super) location: String,
    pub(super) spot: bool,
    /// A volume to boot from, in place of a new one.
    pub(super) boots_from: Option<String>,
}

impl VerdaCloud {
    /// The rules that are about the body and what is on file.
    pub(super) fn judge<'a>(
        &'a self,
        state: &State,
        account: &str,
        body: &Deploy,
    ) -> Result<Plan<'a>, Box<Answer>> {
        let now = self.shared.clock.now();
        let need = |part: &Option<String>, name: &str| {
            part.clone().filter(|text| !text.is_empty()).ok_or_else(|| refuse(&format!("{name} is required")))
        };
        let code = need(&body.instance_type, "instance_type")?;
        let image = need(&body.image, "image")?;
        let hostname = need(&body.hostname, "hostname")?;
        let location = need(&body.location_code, "location_code")?;
        if let Some(wrong) = wire::hostname_wrong(&hostname) {
            return Err(refuse(wrong));
        }
        let kind = self.catalog.kind(&code).ok_or_else(|| refuse("Invalid instance type"))?;
        if !self.catalog.knows_location(&location) {
            return Err(refuse("Invalid location code"));
        }
        let spot = body.is_spot.unwrap_or(false);
        let contract = match body.contract.as_deref() {
            None => true,
            Some("SPOT") => spot,
            Some("PAY_AS_YOU_GO") => !spot,
            Some(_) => false,
        };
        if !contract {
            return Err(refuse("the contract does not fit is_spot"));
        }
        if body.pricing.as_deref().is_some_and(|pricing| pricing != "FIXED_PRICE") || body.coupon.is_some() {
            return Err(refuse("this pricing or coupon cannot be had"));
        }
        let keys = body.ssh_key_ids.clone().map(OneOrMany::list).unwrap_or_default();
        let known = |id: &String| state.keys.iter().any(|key| key.id == *id && key.account == account);
        if !keys.iter().all(known) {
            return Err(refuse("Invalid ssh key id"));
        }
        if let Some(script) = &body.startup_script_id
            && !state.scripts.iter().any(|known| known.id == *script && known.account == account)
        {
            return Err(refuse("Invalid startup script id"));
        }
        judge_volumes(body, spot)?;
        for id in body.existing_volumes.iter().flatten() {
            let fits = |volume: &&Volume| {
                volume.id == *id && volume.account == account && volume.location == location
            };
            if state.volumes.iter().find(fits).is_none_or(|volume| volume.place != Place::Detached) {
                return Err(refuse("Invalid volume id"));
            }
        }
        let mut plan =
            Plan { kind, image, os_name: String::new(), hostname, location, spot, boots_from: None };
        if let Some(volume) = state.bootable(account, &plan.image, now) {
            if body.os_volume.is_some() {
                // https://github.com/skypilot-org/skypilot/issues/10481
                return Err(refuse("os_volume cannot be given when the image is a volume"));
            }
            plan.boots_from = Some(volume.id.clone());
            plan.os_name = volume.name.clone();
            return Ok(plan);
        }
        let found: &Image = self.catalog.image(kind, &plan.image).ok_or_else(wrong_image)?;
        plan.image.clone_from(&found.image_type);
        plan.os_name.clone_from(&found.name);
        Ok(plan)
    }

    /// Funds and quotas.
    pub(super) fn afford(
        &self,
        state: &mut State,
        account: &str,
        body: &Deploy,
        plan: &Plan<'_>,
    ) -> Option<Answer> {
        let now = self.shared.clock.now();
        let (gb, count) = state.stored(account, now);
        let gpus = state.gpus(account, plan.spot) + plan.kind.gpus;
        let owner = state.account(account)?;
        if owner.balance <= 0.0 {
            return Some(error(402, "insufficient_funds", "Not enough funds"));
        }
        let quota = owner.quota;
        let os = match (&plan.boots_from, &body.os_volume) {
            (Some(_), _) => None,
            (None, Some(os)) => Some(os.size),
            (None, None) => Some(OS_DISK),
        };
        let new: Vec<u64> =
            os.into_iter().chain(body.volumes.iter().flatten().map(|volume| volume.size)).collect();
        let most = if plan.spot { quota.spot_gpus } else { quota.gpus };
        let sentence = if gpus > most {
            if plan.spot { "Spot GPU limit exceeded" } else { "GPU limit exceeded" }
        } else if count + new.len() > quota.volumes {
            "Volume limit exceeded"
        } else if gb + new.iter().sum::<u64>() > quota.storage {
            "Storage limit exceeded"
        } else {
            return None;
        };
        Some(error(400, "invalid_request", sentence))
    }

    /// Stock, and what a type refuses although it lists it.
    pub(super) fn place(&self, plan: &Plan<'_>) -> Option<Answer> {
        let (kind, location) = (plan.kind, &plan.location);
        if !kind.in_stock(location, plan.spot) {
            return Some(error(503, "service_unavailable", "No capacity available"));
        }
        if kind.refuse_in.contains(location) {
            // https://github.com/verda-cloud/verda-cli/issues/4
            let text = format!(
                "Not enough resources to deploy a {} GPU instance type {} in {location}",
                kind.gpus, kind.code
            );
            return Some(error(503, "service_unavailable", &text));
        }
        kind.wrong_images.contains(&plan.image).then(|| error(400, "invalid_request", WRONG_IMAGE))
    }
}

fn wrong_image() -> Box<Answer> {
    let answer = error(400, "invalid_request", WRONG_IMAGE);
    Box::new(answer.rejecting("an image that is not in the type's list"))
}

/// The rules about volumes and tags.
fn judge_volumes(body: &Deploy, spot: bool) -> Result<(), Box<Answer>> {
    let os = body.os_volume.iter().map(|os| (&os.name, os.size, os.on_spot_discontinue, &os.tags));
    let data = body.volumes.iter().flatten();
    let data = data.map(|volume| (&volume.name, volume.size, volume.on_spot_discontinue, &volume.tags));
    for (name, _, on_spot, tags) in os.chain(data) {
        if name.is_empty() {
            return Err(refuse("a volume needs a name"));
        }
        if on_spot.is_some() && !spot {
            return Err(refuse("on_spot_discontinue is only for spot instances"));
        }
        if let Some(wrong) = tags.as_ref().and_then(|tags| wire::tags_wrong(tags)) {
            return Err(refuse(&wrong));
        }
    }
    if body.os_volume.as_ref().is_some_and(|os| os.size < OS_DISK) {
        return Err(refuse("the OS volume must be at least 50 GB"));
    }
    for volume in body.volumes.iter().flatten() {
        volume_type(&volume.kind)?;
        if volume.size == 0 {
            return Err(refuse("a volume needs a size"));
        }
    }
    match body.tags.as_ref().and_then(|tags| wire::tags_wrong(tags)) {
        Some(wrong) => Err(refuse(&wrong)),
        None => Ok(()),
    }
}

/// Only block volumes that can still be had: HDD is refused since 2026-09-21.
pub(super) fn volume_type(kind: &str) -> Result<(), Box<Answer>> {
    match kind {
        "NVMe" => Ok(()),
        "HDD" | "HDD_Shared" => Err(refuse("HDD volumes can no longer be created")),
        _ => Err(refuse("Invalid volume type")),
    }
}
