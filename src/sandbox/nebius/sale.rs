//! What is for sale: platforms, images, stock, quotas, spot prices, and the calculator.

use serde_json::{Value, json};

use super::account::Account;
use super::catalog::{Platform, Preset, Site, decimal, resources};
use super::instance::Stage;
use super::judge::text;
use super::look::page;
use super::state::State;
use super::status::{Outcome, Trouble};
use super::{NebiusCloud, Request};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;

/// Hours that the calculator gives a month.
const MONTH: f64 = 730.0;
/// US dollars per GiB and month of NETWORK_SSD.
const DISK: f64 = 0.071;

/// The factor that a fault puts on prices.
fn factor(request: &Request<'_>) -> f64 {
    let factors = request.call.faults.iter().filter_map(|fault| match fault {
        FaultKind::PriceFactor { factor } => Some(*factor),
        _ => None,
    });
    factors.product()
}

impl NebiusCloud {
    /// Calls about what is for sale.
    pub(super) fn sale(&self, request: &Request<'_>, account: &str) -> Outcome {
        let state = lock(&self.state);
        let message = &request.message;
        let name = text(message, "/name");
        match request.operation {
            "list_platforms" | "get_platform" => {
                let project = self.project(&state, account, text(message, "/parent_id"))?;
                let mut here =
                    self.catalog.platforms.iter().filter(|one| one.site(&project.region).is_some());
                if request.operation == "get_platform" {
                    let found = here.find(|platform| platform.name == name);
                    return Ok(found.ok_or_else(|| Trouble::not_found(name))?.show());
                }
                page(request, &state, "items", here.map(Platform::show).collect(), 100)
            }
            "list_advice" => {
                let owner = self.tenant(&state, account, text(message, "/parent_id"))?;
                page(request, &state, "items", self.advice(request, &state, owner), 100)
            }
            "list_quotas" => {
                let parent = text(message, "/parent_id");
                let owner = state.account(account).ok_or_else(|| Trouble::denied(parent))?;
                let project = owner.project(parent).filter(|_| state.guesses.project_rows);
                if project.is_none() {
                    self.tenant(&state, account, parent)?;
                }
                let items =
                    self.quotas(&state, owner, parent, project.map(|project| project.region.as_str()));
                page(request, &state, "items", items, 100)
            }
            "get_quota" => {
                let parent = text(message, "/parent_id");
                let owner = self.tenant(&state, account, parent)?;
                let rows = self.quotas(&state, owner, parent, None);
                let found = rows.into_iter().find(|row| {
                    text(row, "/metadata/name") == name
                        && text(row, "/spec/region") == text(message, "/region")
                });
                found.ok_or_else(|| Trouble::not_found(name))
            }
            "estimate" => self.estimate(request, &state, account),
            "image_latest" => {
                let family = text(message, "/image_family");
                let found = self.catalog.images.iter().find(|image| image.family == family);
                Ok(found.ok_or_else(|| Trouble::not_found(family))?.show(&self.catalog))
            }
            "get_image" => {
                let id = text(message, "/id");
                let found = self.catalog.images.iter().find(|image| image.full_id() == id);
                Ok(found.ok_or_else(|| Trouble::not_found(id))?.show(&self.catalog))
            }
            _ => {
                let region = text(message, "/region");
                if !self.catalog.regions.iter().any(|one| one == region) {
                    return Err(Trouble::invalid("region", "unknown region"));
                }
                let items = self.catalog.images.iter().map(|image| image.show(&self.catalog)).collect();
                page(request, &state, "items", items, 100)
            }
        }
    }

    fn tenant<'a>(&self, state: &'a State, account: &str, id: &str) -> Outcome<&'a Account> {
        let owner = state.account(account).filter(|owner| owner.tenant == id);
        owner.ok_or_else(|| Trouble::denied(id))
    }

    /// Whether the advice is fresh, and GPUs to be had (CPU-only: machines).
    pub(super) fn stock(
        &self,
        state: &State,
        account: &str,
        platform: &Platform,
        site: &Site,
        spot: bool,
    ) -> (bool, u32) {
        let key = (platform.name.clone(), site.region.clone());
        match state.account(account).and_then(|owner| owner.advice.get(&key)) {
            Some(set) => (set.fresh, if spot { set.preemptible } else { set.on_demand }),
            None => (!site.stale, if spot { site.preemptible } else { site.on_demand }),
        }
    }

    fn advice(&self, request: &Request<'_>, state: &State, owner: &Account) -> Vec<Value> {
        let mut rows = Vec::new();
        let gone = request.call.faults.contains(&FaultKind::StaleOffer);
        let shown = |platform: &&Platform| platform.usd_gpu > 0.0 || state.guesses.cpu_advice;
        for platform in self.catalog.platforms.iter().filter(shown) {
            for site in &platform.places {
                for preset in &platform.presets {
                    let status =
                        |spot: bool| self.availability(state, owner, platform, site, preset, spot, gone);
                    let row = |fabric: &str, on_demand: Value, preemptible: Value| {
                        json!({
                            "metadata": {"parent_id": owner.tenant},
                            "spec": {"region": site.region, "fabric": fabric, "compute_instance": {
                                "platform": platform.name, "gpu_memory_gigabytes": platform.gigabytes,
                                "preset": {"name": preset.0, "resources": resources(preset)},
                            }},
                            "status": {
                                "reserved": {"data_state": "DATA_STATE_FRESH", "availability_level": "AVAILABILITY_LEVEL_LIMIT_REACHED"},
                                "on_demand": on_demand, "preemptible": preemptible,
                            },
                        })
                    };
                    if platform.name.contains("sxm") && site.region == "eu-north1" {
                        // Another fabric of the same region has nothing.
                        let none = json!({"data_state": "DATA_STATE_FRESH", "availability_level": "AVAILABILITY_LEVEL_LOW"});
                        rows.push(row("fabric-2", none.clone(), none));
                    }
                    rows.push(row("fabric-3", status(false), status(true)));
                }
            }
        }
        rows
    }

    #[expect(clippy::too_many_arguments, reason = "each is one part of what is asked")]
    fn availability(
        &self,
        state: &State,
        owner: &Account,
        platform: &Platform,
        site: &Site,
        preset: &Preset,
        spot: bool,
        gone: bool,
    ) -> Value {
        if spot && !platform.preemptible {
            return json!({"data_state": "DATA_STATE_UNKNOWN", "availability_level": "AVAILABILITY_LEVEL_UNKNOWN"});
        }
        let (fresh, stock) = self.stock(state, &owner.label, platform, site, spot);
        let gpus = u64::from(preset.1.max(1));
        let (quota, unit) = match (spot && !state.guesses.spot_counts, preset.1) {
            (true, _) => ("compute.instance.preemptible.count", 1),
            (false, 0) => ("compute.instance.non-gpu.vcpu", u64::from(preset.2)),
            (false, _) => (platform.quota.as_str(), gpus),
        };
        let limit = owner.limit(quota, &site.region).unwrap_or(0) / unit;
        let used = self.used(state, owner, quota, &site.region) / unit;
        let available = (u64::from(stock) / gpus).min(limit.saturating_sub(used));
        let available = if gone { 0 } else { available };
        let level = match available {
            _ if !fresh => "UNKNOWN",
            0 if limit <= used => "LIMIT_REACHED",
            0..2 => "LOW",
            2..8 => "MEDIUM",
            _ => "HIGH",
        };
        let state = if fresh || gone { "DATA_STATE_FRESH" } else { "DATA_STATE_STALE" };
        let at = self.shared.clock.date(self.shared.clock.now()).to_string();
        json!({
            "data_state": state, "available": if fresh { available } else { 0 }, "limit": limit,
            "availability_level": format!("AVAILABILITY_LEVEL_{level}"), "effective_at": at,
        })
    }

    /// What is used up of a quota.
    fn used(&self, state: &State, owner: &Account, quota: &str, region: &str) -> u64 {
        let now = self.shared.clock.now();
        let mine = state.instances.iter().filter(|one| {
            one.account == owner.label && one.region == region && self.stage(state, one) != Stage::Gone
        });
        let disks = state
            .disks
            .iter()
            .filter(|disk| disk.account == owner.label && disk.region == region && disk.exists(now));
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        match quota {
            "compute.instance.count" => count(mine.count()),
            "compute.instance.preemptible.count" => count(mine.filter(|one| one.spot).count()),
            "compute.instance.non-gpu.vcpu" => {
                mine.filter(|one| one.preset.1 == 0).map(|one| u64::from(one.preset.2)).sum()
            }
            "compute.disk.count" => count(disks.count()),
            "compute.disk.size.network-ssd" => {
                disks.map(|disk| u64::try_from(disk.gib << 30).unwrap_or(0)).sum()
            }
            "vpc.allocation.count" => count(mine.count() * 2),
            "vpc.ipv4-address.public.count" => count(mine.filter(|one| one.machine.is_some()).count()),
            gpus => mine
                .filter(|one| one.platform.quota == gpus && (!one.spot || state.guesses.spot_counts))
                .map(|one| u64::from(one.preset.1))
                .sum(),
        }
    }

    /// The quotas of a tenant; for a project those of its region, without limits.
    fn quotas(&self, state: &State, owner: &Account, parent: &str, region: Option<&str>) -> Vec<Value> {
        let here = owner.quotas.iter().filter(|quota| region.is_none_or(|region| region == quota.region));
        here.map(|quota| {
            let used = self.used(state, owner, &quota.name, &quota.region);
            let mut spec = json!({"region": quota.region});
            if let Some(limit) = quota.limit.filter(|_| region.is_none()) {
                spec["limit"] = json!(limit);
            }
            let unit = if quota.name.contains("size") { "byte" } else { "pcs" };
            json!({
                "metadata": {"id": quota.id, "parent_id": parent, "name": quota.name}, "spec": spec,
                "status": {
                    "state": "STATE_ACTIVE", "usage": used, "service": quota.name.split('.').next(), "unit": unit,
                    "usage_state": if used > 0 { "USAGE_STATE_USED" } else { "USAGE_STATE_NOT_USED" },
                },
            })
        })
        .collect()
    }

    /// `SpotPriceService/List`: sorted by region and SKU. Without a token it has the first account's prices.
    pub(super) fn spot_prices(&self, request: &Request<'_>, account: &str) -> Outcome {
        let state = lock(&self.state);
        let owner = state.account(account).or(state.accounts.first());
        let at = self.shared.clock.date(self.shared.clock.now()).to_string();
        let mut rows: Vec<(String, Value)> = Vec::new();
        for platform in &self.catalog.platforms {
            for site in &platform.places {
                let key = (platform.name.clone(), site.region.clone());
                let set = owner.and_then(|owner| owner.spot.get(&key)).copied();
                let Some(price) = set.unwrap_or(platform.spot) else { continue };
                let sku =
                    format!("sku-e00{}{}", site.region.replace('-', ""), platform.name.replace('-', ""));
                let row = json!({
                    "sku_id": sku, "product_title": format!("Preemptible {}", platform.short), "region": site.region,
                    "compute_instance": {"platform": platform.name}, "effective_time": at,
                    "price": {"value": decimal(price * factor(request)), "currency": "usd", "unit_title": "GPU hour"},
                });
                rows.push((format!("{} {sku}", site.region), row));
            }
        }
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        let rows = rows.into_iter().map(|(_, row)| row).collect();
        let mut shown = page(request, &state, "items", rows, 100)?;
        shown["snapshot_time"] = json!(at);
        Ok(shown)
    }

    /// `CalculatorService/Estimate`; it checks no more of a spec than names, region and pricing.
    fn estimate(&self, request: &Request<'_>, state: &State, account: &str) -> Outcome {
        let message = &request.message;
        let hourly = if let Some(create) = message.pointer("/resource_spec/compute_instance_spec") {
            let project = self.project(state, account, text(create, "/metadata/parent_id"))?;
            let platform = self.catalog.platform(text(create, "/spec/resources/platform"));
            let platform = platform.filter(|platform| platform.site(&project.region).is_some());
            let platform = platform.ok_or_else(|| {
                Trouble::invalid("spec.resources.platform", "platform is not in this region")
            })?;
            let preset = platform.preset(text(create, "/spec/resources/preset"));
            let preset = preset.ok_or_else(|| Trouble::invalid("spec.resources.preset", "no such preset"))?;
            let spot = self.pricing(create.get("spec").unwrap_or(&Value::Null), platform)?;
            let spot = spot && state.guesses.estimate_is_spot;
            self.price(state, account, platform, preset, spot, &project.region)
        } else if let Some(create) = message.pointer("/resource_spec/compute_disk_spec") {
            self.project(state, account, text(create, "/metadata/parent_id"))?;
            let gib = create.get("spec").and_then(super::disk::gib);
            let gib = gib.ok_or_else(|| Trouble::invalid("spec.size", "value is required"))?;
            f64::from(i32::try_from(gib).unwrap_or(i32::MAX)) * DISK / MONTH
        } else {
            return Err(Trouble::invalid("resource_spec", "the sandbox prices instances and disks"));
        };
        let hourly = hourly * factor(request);
        let cost = |price: f64| {
            let text = decimal(price);
            json!({"general": {"total": {"cost": text, "cost_rounded": decimal((price * 1e4).round() / 1e4)}}})
        };
        Ok(json!({"hourly_cost": cost(hourly), "monthly_cost": cost(hourly * MONTH)}))
    }
}
