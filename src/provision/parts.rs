//! Side resources of an attempt that has no machine: a key that was made before its machine, a disk that stayed.

use std::sync::Arc;

use crate::cloud::{Cloud, Found};
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::provision::Context;
use crate::provision::cancel::Cancel;
use crate::provision::events::{Event, Events};
use crate::provision::rollback::{Patience, Undone, delete_until_gone};

/// Deletes what the list shows of an attempt and what its record names, each by itself, until the cloud confirms; why
/// something may be left otherwise.
pub async fn delete_parts(
    context: &Context,
    cloud: &Arc<dyn Cloud>,
    found: &[Found],
    noted: &[Resource],
    events: &dyn Events,
    cancel: &Cancel,
) -> Result<(), String> {
    let listed = found.iter().filter(|found| found.kind != ResourceKind::Machine);
    let mut parts: Vec<(ResourceKind, Handle)> =
        listed.map(|found| (found.kind, found.handle.clone())).collect();
    for resource in noted {
        if !parts.iter().any(|(_, part)| part.id == resource.id) {
            let handle = Handle { data: resource.data.clone(), ..Handle::new(&resource.id) };
            parts.push((resource.kind, handle));
        }
    }
    // The newest first, as they were made one for the other.
    for (kind, handle) in parts.iter().rev() {
        let what = format!("{} {}", kind.as_str(), handle.id);
        events.event(Event::Step(format!("{}: no machine; removing its {what}", cloud.account())));
        let patience = Patience::of_roll_back(context);
        if let Undone::Left(left) = delete_until_gone(cloud, handle, patience, events, cancel, false).await {
            return Err(format!("its {what} could not be removed: {}", left.why));
        }
    }
    Ok(())
}
