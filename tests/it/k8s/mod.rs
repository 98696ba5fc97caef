//! The cluster on a machine: its set-up from `provision` to `rm`, what goes wrong in it, and the way to it.
//!
//! The machine's side is played: every program that the set-up calls is written down, and nothing outside the machine's folder
//! is touched.

mod access;
mod docs;
mod failures;
mod life;
mod manifests;

use std::path::PathBuf;

use gpuprov::sandbox::Options;
use serde_json::Value;

use crate::support::{Ran, World};

/// A world with an account at Verda alone, with clusters.
async fn world() -> World {
    world_with(|_| {}).await
}

async fn world_with(change: impl FnOnce(&mut Options)) -> World {
    let mut world = World::with(change).await;
    world.without_runpod();
    world.with_verda();
    world.config(&format!("[verda]\nssh_port = {}\n", world.sandbox.vm_ssh_port()));
    world
}

/// Lets something go wrong on machines so many times; the names stand in the sandbox's `machine/vm`.
fn fault(world: &World, name: &str, times: u32) {
    let folder = world.home().join("machines/.k8s-faults");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), times.to_string()).unwrap();
}

/// Lets nothing go wrong any more.
fn mend(world: &World) {
    let _ = std::fs::remove_dir_all(world.home().join("machines/.k8s-faults"));
}

/// The folder of the only machine.
fn home(world: &World) -> PathBuf {
    world.sandbox.machine_home(&world.only().id).unwrap()
}

/// Every program that was called on the only machine, with its words.
fn calls(world: &World) -> String {
    std::fs::read_to_string(home(world).join(".sandbox/calls")).unwrap_or_default()
}

fn count(calls: &str, what: &str) -> usize {
    calls.lines().filter(|line| line.contains(what)).count()
}

/// The processes of the set-up's unit on the only machine.
fn unit(world: &World) -> Option<i32> {
    let pid = std::fs::read_to_string(home(world).join(".sandbox/k8s/gpuprov-k3s.pid")).ok()?;
    pid.trim().parse().ok()
}

async fn provision(world: &World, words: &str) -> Ran {
    let ran = world.run(&format!("provision --gpus H100:1 --region FI --name dev {words}")).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    ran
}

async fn k8s(world: &World) -> Value {
    let (_, document) = world.json("k8s status dev").await;
    document["k8s"].clone()
}

async fn remove(world: &World) {
    world.remove("dev").await;
    let left = std::fs::read_dir(world.home().join(".local/share/gpuprov/kube"));
    let left: Vec<_> = left.into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}
