//! What carries our marks: machines and volumes by their tags, keys by their whole names.
//!
//! A machine or volume whose tags were lost is told all the same: the volume by its whole name, the machine by its only key,
//! which was made for it and carries that name, together with our description. The key alone proves nothing: people may
//! choose it for a machine of their own.

use std::collections::HashMap;

use futures_util::future::try_join4;
use serde_json::Value;

use super::Verda;
use super::delete::is_volume_gone;
use super::errors::unreadable;
use super::marks::{machine, read_name, read_tags, side_data};
use super::states::{is_gone, look};
use super::wire::{Instance, KeyRow, Volume, told};
use crate::cloud::{Found, Look, Reached, Result, Which};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;
use crate::model::mark::{Claim, Installation, Mark};
use crate::model::words::one_line;

/// Lists what `which` looks for: machines, and the volumes and keys that belong to no living machine or to one of ours.
pub(super) async fn find(cloud: &Verda, which: &Which) -> Result<Vec<Found>> {
    const LISTING: &str = "listing machines";
    let api = &cloud.api;
    api.log_in().await?;
    // Without the tag filter: what a list leaves out for a reason that we do not see would be a machine nobody sees.
    let (instances, volumes, trash, keys) =
        try_join4(api.instances(LISTING), api.volumes(), api.trash(), api.keys()).await?;
    let asked = api.asked(LISTING);
    let mut all = Things { account: cloud.setup.account.name(), ..Things::default() };
    let ours = |key: &KeyRow| Some((key.id.clone()?, read_name(key.name.as_deref()?)?));
    let made_for: HashMap<String, (Installation, Claim)> = keys.iter().filter_map(ours).collect();
    let mut untagged = Vec::new();
    for entry in instances {
        let instance: Instance = serde_json::from_value(entry).unwrap_or_default();
        if is_gone(&instance) {
            continue;
        }
        match read_tags(instance.tags.as_deref().unwrap_or_default()) {
            Some(mark) => all.machine(cloud, &instance, mark),
            None => {
                untagged.push(instance);
                Ok(())
            }
        }
        .map_err(|what| unreadable(&asked, &what, Reached::No))?;
    }
    for instance in untagged {
        let key = match instance.ssh_key_ids.as_deref() {
            // One attempt makes one machine.
            Some([only]) => made_for.get(only).filter(|of| !all.has_machine(of)),
            _ => None,
        };
        let mark = key.map(|of| all.mark_of(of, told(instance.hostname.as_ref()).unwrap_or_default()));
        match mark.filter(|mark| told(instance.description.as_ref()) == Some(&mark.cloud_name())) {
            Some(mark) => all.machine(cloud, &instance, mark),
            None => foreign(&instance),
        }
        .map_err(|what| unreadable(&asked, &what, Reached::No))?;
    }
    for entry in volumes.into_iter().chain(trash) {
        all.volume(entry).map_err(|what| unreadable(&asked, &what, Reached::No))?;
    }
    for key in keys {
        let (Some(id), Some(name)) = (told(key.id.as_ref()), told(key.name.as_ref())) else { continue };
        if let Some(mark) = all.mark_by_name(name) {
            all.push(ResourceKind::Key, id, name, mark, None, Look::of(MachineState::Unknown));
        }
    }
    Ok(all.found.into_iter().filter(|found| which.admits(&found.mark, cloud.setup.account.name())).collect())
}

#[derive(Default)]
struct Things<'a> {
    account: &'a str,
    found: Vec<Found>,
    /// The marks read from tags: a name tells neither account nor machine.
    marks: HashMap<(Installation, Claim), Mark>,
}

impl Things<'_> {
    /// Takes in a machine of ours.
    fn machine(&mut self, cloud: &Verda, instance: &Instance, mark: Mark) -> std::result::Result<(), String> {
        let name = shown(instance);
        let id = told(instance.id.as_ref()).ok_or_else(|| format!("the id of `{name}` is missing"))?;
        cloud.watch.learn(id, instance);
        self.remember(&mark);
        let since = instance.created_at.as_deref().and_then(|at| at.parse().ok());
        let handle = machine(id, &mark);
        let look = look(instance, &cloud.frame());
        self.found.push(Found { kind: ResourceKind::Machine, handle, cloud_name: name, mark, since, look });
        Ok(())
    }

    fn volume(&mut self, entry: Value) -> std::result::Result<(), String> {
        let volume: Volume = serde_json::from_value(entry).unwrap_or_default();
        let name = one_line(volume.name.as_deref().unwrap_or_default(), 80);
        let tagged = read_tags(volume.tags.as_deref().unwrap_or_default());
        if let Some(mark) = &tagged {
            self.remember(mark);
        }
        let Some(mark) = tagged.or_else(|| self.mark_by_name(&name)) else { return Ok(()) };
        // An attached one goes with its machine; nobody could delete it apart from it.
        if is_volume_gone(&volume) || is_in_use(&volume) {
            return Ok(());
        }
        let id = told(volume.id.as_ref()).ok_or_else(|| format!("the id of volume `{name}` is missing"))?;
        let since = volume.created_at.as_deref().and_then(|at| at.parse().ok());
        self.push(ResourceKind::Disk, id, &name, mark, since, volume_look(&volume));
        Ok(())
    }

    fn push(
        &mut self,
        kind: ResourceKind,
        id: &str,
        name: &str,
        mark: Mark,
        since: Option<jiff::Timestamp>,
        look: Look,
    ) {
        let handle = Handle { data: side_data(kind), ..Handle::new(id) };
        let cloud_name = one_line(name, 80);
        self.found.push(Found { kind, handle, cloud_name, mark, since, look });
    }

    fn remember(&mut self, mark: &Mark) {
        self.marks.insert((mark.installation.clone(), mark.claim), mark.clone());
    }

    fn has_machine(&self, of: &(Installation, Claim)) -> bool {
        self.found.iter().any(|found| {
            found.kind == ResourceKind::Machine
                && (&found.mark.installation, found.mark.claim) == (&of.0, of.1)
        })
    }

    /// Returns the mark of the attempt that a whole name names.
    fn mark_by_name(&self, name: &str) -> Option<Mark> {
        Some(self.mark_of(&read_name(name)?, name))
    }

    /// Returns the mark of an attempt: that of its machine or volume where there is one, else what the claim alone tells,
    /// with this name.
    fn mark_of(&self, of: &(Installation, Claim), name: &str) -> Mark {
        self.marks.get(of).cloned().unwrap_or_else(|| Mark {
            installation: of.0.clone(),
            account: self.account.to_owned(),
            name: one_line(name, 80),
            claim: of.1,
            expires: None,
            owner: None,
        })
    }
}

/// Lets a machine of somebody else's pass. One that may be ours and cannot be told is an error: to go on would make it
/// disappear.
fn foreign(instance: &Instance) -> std::result::Result<(), String> {
    let name = shown(instance);
    match instance.tags.is_none() && name.starts_with("gpuprov-") {
        true => Err(format!("the tags of `{name}` are missing")),
        false => Ok(()),
    }
}

fn shown(instance: &Instance) -> String {
    one_line(instance.description.as_deref().unwrap_or_default(), 80)
}

fn is_in_use(volume: &Volume) -> bool {
    matches!(volume.status.as_deref(), Some("attached" | "attaching" | "detaching"))
}

/// Returns what a volume without a machine looks like.
pub(super) fn volume_look(volume: &Volume) -> Look {
    let status = one_line(volume.status.as_deref().unwrap_or_default(), 40);
    let in_trash = status == "deleted";
    let mut look = Look::of(MachineState::Unknown);
    // In the trash it costs nothing, but counts against the quota for 96 hours.
    look.costs_now = if in_trash { Some(crate::model::money::Usd::ZERO) } else { volume.base_hourly_cost };
    look.sold.price_per_hour = look.costs_now;
    look.sold.zone = told(volume.location.as_ref()).map(|location| one_line(location, 40));
    look.words = Some(if in_trash { "in the trash".to_owned() } else { status });
    look
}
