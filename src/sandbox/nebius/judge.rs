//! Whether a create may be: what the wire table's rules do not say.

use serde_json::{Map, Value};

use super::NebiusCloud;
use super::account::Project;
use super::catalog::{Image, Platform, Preset};
use super::cloud_init;
use super::disk::gib;
use super::instance::Stage;
use super::rules::bad_label;
use super::state::State;
use super::status::{Outcome, Trouble};
use crate::sandbox::grpc::Code;

/// A managed boot disk smaller than this hangs the boot, in GiB: one project's measurement
/// (<https://github.com/fllstck/nebius-alchemy>).
pub(super) const HANGS_BELOW: i64 = 64;
/// Largest network SSD, in GiB.
const LARGEST: i64 = 8192;

/// What a create comes down to.
pub(super) struct Plan<'a> {
    pub(super) project: Project,
    pub(super) name: String,
    pub(super) platform: &'a Platform,
    pub(super) preset: &'a Preset,
    pub(super) spot: bool,
    /// Absent for a blank disk, which boots nothing.
    pub(super) image: Option<&'a Image>,
    /// Size of the boot disk.
    pub(super) gib: i64,
    pub(super) public: bool,
}

/// Text at a pointer, empty when there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn labels(value: &Value, pointer: &str) -> Outcome<()> {
    let empty = Map::new();
    let labels = value.pointer(pointer).and_then(Value::as_object).unwrap_or(&empty);
    match bad_label(labels) {
        Some(key) => {
            Err(Trouble::invalid(&pointer[1..].replace('/', "."), &format!("label {key} is malformed")))
        }
        None => Ok(()),
    }
}

impl NebiusCloud {
    /// A project of this account that can be worked in.
    pub(super) fn project(&self, state: &State, account: &str, id: &str) -> Outcome<Project> {
        let owner = state.account(account).ok_or_else(|| Trouble::denied(id))?;
        let project = owner.project(id).ok_or_else(|| Trouble::denied(id))?;
        match project.state {
            "ACTIVE" => Ok(project.clone()),
            _ => Err(Trouble::state(id, "project is not active")),
        }
    }

    /// Judges a `CreateInstanceRequest` that is well-formed.
    pub(super) fn judge(&self, state: &State, account: &str, body: &Value) -> Outcome<Plan<'_>> {
        let parent = text(body, "/metadata/parent_id");
        if parent.is_empty() {
            return Err(Trouble::invalid("metadata.parent_id", "value is required"));
        }
        let Some(spec) = body.get("spec") else { return Err(Trouble::invalid("spec", "value is required")) };
        // To look into a closed project is no mistake; to make something there is.
        let project = self.project(state, account, parent).map_err(|trouble| match trouble.code {
            Code::FAILED_PRECONDITION => trouble.rejecting(),
            _ => trouble,
        })?;
        labels(body, "/metadata/labels")?;
        labels(spec, "/boot_disk/managed_disk/labels")?;
        let name = text(body, "/metadata/name").to_owned();
        if name.is_empty() {
            return Err(Trouble::invalid("metadata.name", "the sandbox wants a name"));
        }
        let taken = state.instances.iter().find(|one| {
            one.project == project.id && one.name == name && self.stage(state, one) != Stage::Gone
        });
        if let Some(taken) = taken {
            return Err(Trouble::exists(&name, &taken.id));
        }
        let platform = self.catalog.platform(text(spec, "/resources/platform"));
        let platform = platform.filter(|platform| platform.site(&project.region).is_some());
        let Some(platform) = platform else {
            return Err(Trouble::invalid("spec.resources.platform", "platform is not in this region"));
        };
        let preset = platform.preset(text(spec, "/resources/preset"));
        let preset = preset.ok_or_else(|| Trouble::invalid("spec.resources.preset", "no such preset"))?;
        let spot = self.pricing(spec, platform)?;
        let (image, gib) = self.boot_disk(state, account, spec, platform, &project)?;
        let public = self.network(spec, &project)?;
        if let Some(why) = cloud_init::objection(text(spec, "/cloud_init_user_data")) {
            return Err(Trouble::invalid("spec.cloud_init_user_data", why));
        }
        for (field, what) in
            [("secondary_disks", "disks"), ("filesystems", "filesystems"), ("gpu_cluster", "clusters")]
        {
            if spec.get(field).is_some() {
                let message = format!("the sandbox has no {what}");
                return Err(Trouble::plain(Code::UNIMPLEMENTED, message).rejecting());
            }
        }
        if spec.get("stopped") == Some(&Value::Bool(true)) {
            return Err(
                Trouble::plain(Code::UNIMPLEMENTED, "the sandbox makes running instances only").rejecting()
            );
        }
        Ok(Plan { project, name, platform, preset, spot, image, gib, public })
    }

    /// Whether it is preemptible; both parts must fit together
    /// (<https://docs.nebius.com/compute/virtual-machines/preemptible>).
    pub(super) fn pricing(&self, spec: &Value, platform: &Platform) -> Outcome<bool> {
        let preemptible = spec.get("preemptible").is_some();
        let arm =
            ["follows_spot_price", "spot_pricing_policy"].into_iter().find(|arm| spec.get(*arm).is_some());
        match (preemptible, arm) {
            (true, None) => {
                let message = "pricing model must be specified for a preemptible instance";
                return Err(Trouble::invalid("spec.pricing_model", message));
            }
            (false, Some(_)) => {
                let message = "spot-pricing-policy pricing requires a preemptible instance";
                return Err(Trouble::invalid("spec.pricing_model", message));
            }
            (true, Some("spot_pricing_policy")) => {
                return Err(Trouble::not_found(text(spec, "/spot_pricing_policy/id")).rejecting());
            }
            _ => {}
        }
        if preemptible && !platform.preemptible {
            return Err(Trouble::invalid(
                "spec.preemptible",
                "platform does not allow preemptible instances",
            ));
        }
        let reserves = spec.get("reservation_policy").is_some();
        if preemptible && reserves && !self.shared.options.nebius_guesses.reservations_on_spot {
            let message = "reservations are not supported for preemptible instances";
            return Err(Trouble::invalid("spec.reservation_policy", message));
        }
        if preemptible && text(spec, "/recovery_policy") == "ALWAYS" {
            return Err(Trouble::invalid("spec.recovery_policy", "not for preemptible instances"));
        }
        Ok(preemptible)
    }

    fn boot_disk<'a>(
        &'a self,
        state: &State,
        account: &str,
        spec: &Value,
        platform: &Platform,
        project: &Project,
    ) -> Outcome<(Option<&'a Image>, i64)> {
        let place = "spec.boot_disk.managed_disk";
        if text(spec, "/boot_disk/attach_mode") != "READ_WRITE" {
            return Err(Trouble::invalid(
                "spec.boot_disk.attach_mode",
                "a boot disk is attached for writing",
            ));
        }
        let Some(managed) = spec.pointer("/boot_disk/managed_disk") else {
            return Err(Trouble::plain(Code::UNIMPLEMENTED, "the sandbox has managed disks only").rejecting());
        };
        if text(managed, "/spec/type") != "NETWORK_SSD" {
            return Err(Trouble::plain(Code::UNIMPLEMENTED, "the sandbox has NETWORK_SSD only").rejecting());
        }
        let size = managed.get("spec").and_then(gib);
        let Some(size) = size.filter(|size| *size <= LARGEST) else {
            return Err(Trouble::invalid(&format!("{place}.spec.size"), "size is out of range"));
        };
        let name = text(managed, "/name");
        let now = self.shared.clock.now();
        let taken = state.disks.iter().find(|disk| {
            disk.project == project.id && disk.name == name && disk.account == account && disk.exists(now)
        });
        if let Some(taken) = taken {
            return Err(Trouble::exists(name, &taken.id));
        }
        let family = text(managed, "/spec/source_image_family/image_family");
        let id = text(managed, "/spec/source_image_id");
        if family.is_empty() && id.is_empty() {
            return Ok((None, size));
        }
        let named = if family.is_empty() { id } else { family };
        let Some(image) = self.catalog.image(family, id) else {
            return Err(Trouble::not_found(named).rejecting());
        };
        if size < image.min_gib {
            let message = format!("disk is smaller than the image's minimum of {} GiB", image.min_gib);
            return Err(Trouble::invalid(&format!("{place}.spec.size"), &message));
        }
        if image.unsupported.contains(&platform.name) || platform.arm {
            let message = format!("image does not support platform {}", platform.name);
            return Err(Trouble::invalid(&format!("{place}.spec.source_image_family"), &message));
        }
        Ok((Some(image), size))
    }

    /// Whether it gets a public address.
    fn network(&self, spec: &Value, project: &Project) -> Outcome<bool> {
        let ports = spec.get("network_interfaces").and_then(Value::as_array);
        let Some([port]) = ports.map(Vec::as_slice) else {
            return Err(Trouble::invalid("spec.network_interfaces", "the sandbox wants exactly one"));
        };
        let id = text(port, "/subnet_id");
        let Some(subnet) = project.subnets.iter().find(|subnet| subnet.id == id) else {
            return Err(Trouble::not_found(id).rejecting());
        };
        if subnet.state != "READY" {
            return Err(Trouble::state(id, "subnet is not ready").rejecting());
        }
        let Some(public) = port.get("public_ip_address") else { return Ok(false) };
        if !subnet.public {
            return Err(Trouble::invalid(
                "spec.network_interfaces[0].public_ip_address",
                "subnet has no public pool",
            ));
        }
        if !text(public, "/allocation_id").is_empty() || !text(port, "/ip_address/allocation_id").is_empty() {
            return Err(Trouble::not_found("allocation").rejecting());
        }
        Ok(true)
    }

    /// The quota that a new instance does not fit into, if there is one: name, limit, wanted.
    pub(super) fn over_quota(
        &self,
        state: &State,
        account: &str,
        plan: &Plan<'_>,
    ) -> Option<(String, u64, u64)> {
        let owner = state.account(account)?;
        let region = &plan.project.region;
        let now = self.shared.clock.now();
        let mine = || {
            state.instances.iter().filter(move |one| {
                one.account == account && one.region == *region && self.stage(state, one) != Stage::Gone
            })
        };
        let disks = || {
            let mine = state.disks.iter().filter(|disk| disk.account == account && disk.region == *region);
            mine.filter(|disk| disk.exists(now))
        };
        let counts = |spot: bool| !spot || state.guesses.spot_counts;
        let Preset(_, gpus, vcpus, _) = plan.preset;
        let mut wanted: Vec<(&str, u64)> = vec![
            ("compute.instance.count", mine().count() as u64 + 1),
            ("compute.disk.count", disks().count() as u64 + 1),
        ];
        let gib: i64 = disks().map(|disk| disk.gib).sum();
        wanted.push((
            "compute.disk.size.network-ssd",
            u64::try_from((gib + plan.gib) << 30).unwrap_or(u64::MAX),
        ));
        if plan.spot {
            let spots = mine().filter(|one| one.spot).count() as u64;
            wanted.push(("compute.instance.preemptible.count", spots + 1));
        }
        if *gpus == 0 {
            let used: u64 = mine().filter(|one| one.preset.1 == 0).map(|one| u64::from(one.preset.2)).sum();
            wanted.push(("compute.instance.non-gpu.vcpu", used + u64::from(*vcpus)));
        } else if counts(plan.spot) {
            let same = mine().filter(|one| one.platform.quota == plan.platform.quota && counts(one.spot));
            let used: u64 = same.map(|one| u64::from(one.preset.1)).sum();
            wanted.push((&plan.platform.quota, used + u64::from(*gpus)));
        }
        wanted.into_iter().find_map(|(name, wanted)| {
            let limit = owner.limit(name, region)?;
            (wanted > limit).then(|| (name.to_owned(), limit, wanted))
        })
    }
}
