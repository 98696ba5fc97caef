//! What goes into a create beside the offer.

use super::machine::MachineName;
use super::secret::Secret;
use super::want::{Cluster, PortWant};

/// Everything about the machine that its owner chose and that the offer does not say.
#[derive(Clone, Debug)]
pub struct MachineSpec {
    /// The machine's name, also its host name where the cloud takes one.
    pub name: MachineName,
    /// The public key that must be able to log in, one `authorized_keys` line.
    pub public_key: String,
    /// A container image in place of ours.
    pub image: Option<String>,
    /// Environment: on containers it goes into the create too; on every cloud it is written over ssh after the first login.
    pub env: Vec<(String, Secret)>,
    /// Ports to open.
    pub ports: Vec<PortWant>,
    /// A cluster on the machine.
    pub cluster: Cluster,
}
