//! A cluster of one machine: k3s on a rented virtual machine, with its GPUs schedulable.
//!
//! It stands beside the orchestrator, which starts the set-up in the first login, and under the command line, which asks how
//! far it is, takes it up again and opens a way to it. It knows no cloud: what it needs to know of one is in [`Plan`].
//!
//! - [`script`]: what is put on the machine (`assets/`, readable files) and started there as a unit of its own; `pins` the
//!   versions and checksums
//! - [`status`], [`follow`]: how far it is, and waiting for it
//! - [`kubeconfig`], [`access`]: credentials of the cluster, and a tunnel to it; TLS is verified, no port is open to the world
//!
//! The set-up goes on when the login ends, so a lost connection and a killed `gpuprov` change nothing. Its state is a file on the
//! machine, every step can be repeated, and every wait has an end.

pub mod access;
pub mod follow;
pub mod kubeconfig;
pub mod pins;
pub mod script;
pub mod status;

pub use script::Plan;
pub use status::{State, Status};

/// Port of the cluster's interface on the machine's loopback.
pub const API_PORT: u16 = 6443;
