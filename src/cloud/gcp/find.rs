//! What carries our marks: machines and disks by their labels, over all zones, and the firewall rules of machines whose tag
//! says that they have some.

use futures_util::future::try_join;

use super::Gcp;
use super::errors::unreadable;
use super::marks::{Known, OURS, disk_data, is_rule_of, read_labels, rule, tag};
use super::names::{is_name, is_number, is_zone};
use super::states::{disk_look, ends_at, is_spot, look};
use super::wire::{Disk, Firewall, Instance, last, things, told};
use crate::cloud::{ErrorKind, Found, Look, Reached, Result, Which};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;
use crate::model::mark::Mark;
use crate::model::words::one_line;

const LISTING: &str = "listing machines";

/// Lists what `which` looks for: machines, disks that no machine uses, and firewall rules.
pub(super) async fn find(cloud: &Gcp, which: &Which) -> Result<Vec<Found>> {
    let api = &cloud.api;
    let (instances, disks) = try_join(
        api.list("aggregated/instances", OURS, "instances", LISTING),
        api.list("aggregated/disks", OURS, "disks", LISTING),
    )
    .await?;
    let asked = api.asked(LISTING);
    let odd = || unreadable(&asked, "an entry of the list is none", Reached::No);
    let mut found = Vec::new();
    let mut tagged = Vec::new();
    for instance in things::<Instance>(instances).ok_or_else(odd)? {
        let Some(mark) = read_labels(instance.labels.as_ref()) else { continue };
        if !which.admits(&mark, cloud.setup.account.name()) {
            continue;
        }
        let tags = instance.tags.as_ref().and_then(|tags| tags.items.as_ref());
        if tags.is_some_and(|tags| tags.contains(&tag(mark.claim))) {
            tagged.push(mark.claim);
        }
        found.push(machine(cloud, &instance, mark).map_err(|what| unreadable(&asked, &what, Reached::No))?);
    }
    for disk in things::<Disk>(disks).ok_or_else(odd)? {
        let Some(mark) = read_labels(disk.labels.as_ref()) else { continue };
        // One that is attached goes with its machine.
        let in_use = disk.users.as_ref().is_some_and(|users| !users.is_empty());
        if in_use || !which.admits(&mark, cloud.setup.account.name()) {
            continue;
        }
        let (name, zone) = (told(disk.name.as_ref()), told(disk.zone.as_ref()).map(last));
        let id = told(disk.id.as_ref()).filter(|id| is_number(id));
        let place = name.filter(|name| is_name(name)).zip(zone.filter(|zone| is_zone(zone)));
        let (Some(id), Some((name, zone))) = (id, place) else {
            return Err(unreadable(&asked, "a disk without id, name or zone", Reached::No));
        };
        let known = place_of(cloud, name, zone, &mark);
        let since = disk.creation_timestamp.as_deref().and_then(|at| at.parse().ok());
        let handle = Handle { data: disk_data(&known), ..Handle::new(id) };
        let (cloud_name, look) = (name.to_owned(), disk_look(&disk));
        found.push(Found { kind: ResourceKind::Disk, handle, cloud_name, mark, since, look });
    }
    if !tagged.is_empty() {
        rules(cloud, &tagged, &mut found).await?;
    }
    Ok(found)
}

fn place_of(cloud: &Gcp, name: &str, zone: &str, mark: &Mark) -> Known {
    Known {
        project: cloud.settings.project.clone(),
        zone: zone.to_owned(),
        name: name.to_owned(),
        mark: Some(mark.clone()),
        ..Known::default()
    }
}

fn machine(cloud: &Gcp, instance: &Instance, mut mark: Mark) -> std::result::Result<Found, String> {
    let name = told(instance.name.as_ref()).filter(|name| is_name(name)).ok_or("a machine without a name")?;
    let id = told(instance.id.as_ref()).filter(|id| is_number(id));
    let id = id.ok_or_else(|| format!("the id of `{}` is missing", one_line(name, 80)))?;
    let zone = told(instance.zone.as_ref()).map(last).filter(|zone| is_zone(zone));
    let zone = zone.ok_or_else(|| format!("the zone of `{}` is missing", one_line(name, 80)))?;
    let look = look(instance, &cloud.frame());
    // What Google will do counts more than what was written down.
    mark.expires = ends_at(instance).or(mark.expires);
    let known = Known {
        instance_type: look.sold.instance_type.clone(),
        spot: is_spot(instance),
        ..place_of(cloud, name, zone, &mark)
    };
    let since = instance.creation_timestamp.as_deref().and_then(|at| at.parse().ok());
    let handle = Handle { data: known.data(), ..Handle::new(id) };
    Ok(Found { kind: ResourceKind::Machine, handle, cloud_name: name.to_owned(), mark, since, look })
}

/// Adds the rules of the machines whose tags name some: to each machine, and by themselves.
async fn rules(cloud: &Gcp, tagged: &[crate::model::mark::Claim], found: &mut Vec<Found>) -> Result<()> {
    let listed = match cloud.api.list("global/firewalls", "", "", "listing firewall rules").await {
        Ok(listed) => listed,
        // Whoever may not look at rules has made none.
        Err(error) if error.kind == ErrorKind::Forbidden => return Ok(()),
        Err(error) => return Err(error),
    };
    let asked = cloud.api.asked("listing firewall rules");
    let rules: Vec<Firewall> =
        things(listed).ok_or_else(|| unreadable(&asked, "an entry of the list is none", Reached::No))?;
    for listed in &rules {
        let Some(name) = told(listed.name.as_ref()).filter(|name| is_name(name)) else { continue };
        let Some(claim) = tagged.iter().find(|claim| is_rule_of(name, **claim)) else { continue };
        let resource = rule(name, &cloud.settings.project);
        let told_mark = listed.description.as_deref().and_then(Mark::from_text);
        let Some(machine) = found.iter_mut().find(|found| found.mark.claim == *claim) else { continue };
        machine.handle.side.push(resource.clone());
        let mark = told_mark.filter(|mark| mark.claim == *claim).unwrap_or_else(|| machine.mark.clone());
        found.push(Found {
            kind: ResourceKind::Rule,
            handle: Handle { data: resource.data, ..Handle::new(resource.id) },
            cloud_name: name.to_owned(),
            mark,
            since: None,
            look: Look::of(MachineState::Unknown),
        });
    }
    Ok(())
}
