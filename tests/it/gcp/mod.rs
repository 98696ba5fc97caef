//! Google Cloud: the main life, and the traps of a cloud that says no some seconds after it said yes.
//!
//! The pass mark is that nothing is left: machines, disks, firewall rules, operations that run.

mod keyless;
mod life;
mod lost;
mod offers;
mod reach;
mod refused;
mod rules;

use std::os::unix::fs::PermissionsExt;

use gpuprov::sandbox::{Fault, FaultKind, GcpFault, GcpScript, Options};
use serde_json::Value;

use crate::support::World;

/// A world with an account at Google alone.
pub(super) async fn world() -> World {
    world_with(|_| {}).await
}

async fn world_with(change: impl FnOnce(&mut Options)) -> World {
    let mut world = World::with(change).await;
    world.without_runpod();
    world.config(&format!("[defaults]\nk8s = false\n[gcp]\nssh_port = {}\n", world.sandbox.vm_ssh_port()));
    world.set("GPUPROV_GCP_ENDPOINT", world.sandbox.gcp().endpoint());
    let file = world.sandbox.gcp().key_file();
    credentials(&mut world, &file);
    world
}

/// Gives the account this credentials file.
fn credentials(world: &mut World, text: &str) {
    world.write("gcp.json", text);
    let path = world.home().join("gcp.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    world.set("GOOGLE_APPLICATION_CREDENTIALS", path.into_os_string());
}

/// Plays a fault on the next call to Google.
fn fault(world: &World, operation: &str, what: impl Into<FaultKind>) {
    world.sandbox.gcp().add_fault(Fault::on(operation, what.into()));
}

/// Plays a fault on every call to Google.
fn always(world: &World, operation: &str, what: impl Into<FaultKind>) {
    world.sandbox.gcp().add_fault(Fault::on(operation, what.into()).always());
}

/// Lets the next machine behave so.
fn script(world: &World, script: GcpScript) {
    fault(world, "insert_instance", FaultKind::Script { script: script.into() });
}

/// Ends the operation of the next create so.
fn late(world: &World, error: gpuprov::sandbox::GcpOperationError) {
    fault(world, "insert_instance", GcpFault::late(error));
}

/// The bodies of all requests of one operation.
fn bodies(world: &World, operation: &str) -> Vec<Value> {
    let requests = world.sandbox.requests();
    let hits = requests.iter().filter(|one| one.operation == operation);
    hits.map(|one| one.body.clone().unwrap_or_default()).collect()
}

/// Fails if anything of ours is left.
fn nothing_of_ours_is_left(world: &World) {
    let left = world.sandbox.gcp().left();
    assert!(left.is_empty(), "left: {left:#?}");
}

/// Fails if anything of ours is left, or anything of somebody else's is not as it was.
fn nothing_is_left(world: &World) {
    nothing_of_ours_is_left(world);
    let harmed = world.sandbox.gcp().harmed();
    assert!(harmed.is_empty(), "harmed: {harmed:#?}");
    world.assert_empty();
}

/// Removes the machine, which must work and leave nothing.
async fn remove(world: &World) {
    world.remove("dev").await;
    nothing_is_left(world);
}

/// The same where an operation that nobody can see may go on for a moment.
async fn remove_unseen(world: &World) {
    let ran = world.run("rm dev --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    crate::support::until("the last operation", || world.sandbox.gcp().left().is_empty()).await;
    nothing_is_left(world);
}

async fn provision(world: &World, words: &str) -> Value {
    let (code, ran) = world.json(&format!("provision --name dev {words}")).await;
    assert_eq!(code, 0, "{ran:#}");
    ran
}

/// All files of ours that ssh reads.
fn ssh_files(world: &World) -> String {
    let files = std::fs::read_dir(world.home().join(".ssh/gpuprov")).unwrap().flatten();
    let files = files.filter(|entry| entry.path().extension().is_some_and(|end| end == "conf"));
    files.map(|entry| std::fs::read_to_string(entry.path()).unwrap()).collect()
}
