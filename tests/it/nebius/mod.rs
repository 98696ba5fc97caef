//! Nebius: the main life on demand, spot and without a GPU, and what goes wrong on the way there.
//!
//! The pass mark is that nothing is left: machines, disks, addresses.

mod credentials;
mod life;
mod stories;

use gpuprov::sandbox::{Fault, FaultKind, Options};
use serde_json::Value;

use crate::support::World;

/// A world with an account at Nebius alone.
pub(super) async fn world() -> World {
    world_with(|_| {}).await
}

async fn world_with(change: impl FnOnce(&mut Options)) -> World {
    let mut world = World::with(change).await;
    world.unset("RUNPOD_API_KEY");
    world.unset("GPUPROV_RUNPOD_ENDPOINT");
    let nebius = world.sandbox.nebius();
    let (endpoint, token) = (nebius.endpoint(), nebius.token().to_owned());
    world.config(&format!("[defaults]\nk8s = false\n[nebius]\nssh_port = {}\n", world.sandbox.vm_ssh_port()));
    world.set("GPUPROV_NEBIUS_ENDPOINT", endpoint);
    world.set("NEBIUS_IAM_TOKEN", token);
    world
}

/// Plays a fault on the next call to Nebius.
pub(super) fn fault(world: &World, operation: &str, what: FaultKind) {
    world.sandbox.add_fault(Fault::on(operation, what).cloud("nebius"));
}

/// Plays a fault on every call to Nebius.
pub(super) fn always(world: &World, operation: &str, what: FaultKind) {
    world.sandbox.add_fault(Fault::on(operation, what).cloud("nebius").always());
}

/// Fails if anything of ours is left.
pub(super) fn nothing_is_left(world: &World) {
    let left = world.sandbox.nebius().left();
    assert!(left.is_empty(), "left: {left:#?}");
    assert!(world.sandbox.nebius().harmed().is_empty(), "somebody else's was harmed");
    world.assert_empty();
}

pub(super) async fn remove(world: &World) {
    world.remove("dev").await;
    nothing_is_left(world);
}

pub(super) async fn provision(world: &World, words: &str) -> Value {
    let (code, ran) = world.json(&format!("provision --name dev {words}")).await;
    assert_eq!(code, 0, "{ran}");
    ran
}

pub(super) fn warnings(answer: &Value) -> String {
    let all = answer["warnings"].as_array().unwrap();
    all.iter().map(|one| one["message"].as_str().unwrap().to_owned() + "\n").collect()
}
