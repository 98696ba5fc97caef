//! Vast: the main life, and the traps of a market of strangers' hosts.

mod hosts;
mod market;

use gpuprov::sandbox::{Fault, FaultKind, Options, VastScript};
use serde_json::Value;

use crate::support::World;

/// A world with an account at Vast alone.
pub async fn world() -> World {
    world_with(|_| {}).await
}

pub async fn world_with(change: impl FnOnce(&mut Options)) -> World {
    let mut world = World::with(change).await;
    world.unset("RUNPOD_API_KEY");
    world.unset("GPUPROV_RUNPOD_ENDPOINT");
    world.set("GPUPROV_VAST_ENDPOINT", world.sandbox.vast().endpoint());
    world.set("VAST_API_KEY", world.sandbox.vast().key().to_owned());
    world
}

/// Plays a fault on the next call to Vast.
pub fn fault(world: &World, operation: &str, what: impl Into<FaultKind>) {
    world.sandbox.vast().add_fault(Fault::on(operation, what.into()));
}

/// Lets the next machine behave so.
pub fn script(world: &World, script: VastScript) {
    fault(world, "create", FaultKind::Script { script: script.into() });
}

/// The bodies of all requests of one operation.
pub fn bodies(world: &World, operation: &str) -> Vec<Value> {
    let requests = world.sandbox.requests();
    requests
        .iter()
        .filter(|one| one.operation == operation)
        .map(|one| one.body.clone().unwrap_or_default())
        .collect()
}

/// Machines that were made, living or not.
pub fn made(world: &World) -> usize {
    world.sandbox.ledger().iter().filter(|entry| entry.created_by_request.is_some()).count()
}

pub fn messages(document: &Value) -> String {
    document["tried"].to_string()
}
