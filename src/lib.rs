//! One live list of GPU offers over one's own cloud accounts, one command to get a machine, and `ssh NAME`.
//!
//! The one thing that must never happen is a machine that costs money and that nobody sees. So a record is synced before
//! every request that may create something, every machine carries marks by which it is found again, a create without a clear
//! answer is looked for and never sent twice, and a record is dropped only when the cloud says that the machine is gone.
//!
//! # Map
//!
//! ```text
//!             cli          args, printing, prompts, signals, exit codes
//!              |
//!          provision       plan, re-check, journal, create, wait, login, set-up, ready; and remove
//!         /   |   |   \
//!      plan cloud state ssh
//!         \   |   |   /
//!             model        plain words
//! ```
//!
//! Imports go down only; `tests/it/imports.rs` holds that.
//!
//! - [`model`]: GPU names, places, money, offers, machines, marks, secrets. No input, no output.
//! - [`plan`]: what to try and in which order. Pure functions.
//! - [`cloud`]: the trait [`cloud::Cloud`], one value per account, and one folder per cloud, the only place that knows its
//!   wire format. How to add one stands there.
//! - [`http`], [`grpc`]: requests, the same for every cloud.
//! - [`state`]: records, locks, journal, audit log, configuration, paths, variables.
//! - [`ssh`]: keys, configuration files, host keys, and the system's ssh.
//! - [`cluster`]: k3s on a machine, set up by a unit of its own there, and the way to it.
//! - [`accounts`]: where credentials are and where they may be sent; the only list of the clouds.
//! - [`provision`]: the one orchestrator. It reads no environment, no terminal and no signal, so a server could stand on it.
//! - [`cli`]: one file per command; the only part that meets the world.
//! - `sandbox` (feature `sandbox`, on by default): an emulator of the clouds on loopback. It imports nothing of the others.
//!
//! The binary is the interface. This crate is a library only so that tests and benchmarks can reach it; its Rust interface
//! promises nothing.

pub mod accounts;
pub mod cli;
pub mod cloud;
pub mod cluster;
pub mod grpc;
pub mod http;
pub mod model;
pub mod plan;
pub mod provision;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod ssh;
pub mod state;
