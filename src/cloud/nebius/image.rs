//! What machines boot: images of Nebius's by their family, and how large their disks must be.
//!
//! A family is resolved to the newest public image of the project's region. A disk without an image would come up blank and
//! never answer.

use crate::model::want::Cuda;

/// Ubuntu 24.04 with the NVIDIA driver (580) for [`CUDA`] and Docker. B300 and RTX PRO 6000 need this one.
pub(super) const GPU_FAMILY: &str = "ubuntu24.04-cuda13.0";

/// Plain Ubuntu 24.04.
pub(super) const CPU_FAMILY: &str = "ubuntu24.04-driverless";

/// The CUDA of [`GPU_FAMILY`].
pub(super) const CUDA: Cuda = Cuda { major: 13, minor: 0 };

/// The smallest boot disk in GiB with which machines were always seen to come up: below it some hang without a word before
/// cloud-init (github.com/fllstck/nebius-alchemy, notes on instances). Who asks for less gets it, with a note.
pub(super) const SAFE_DISK_GB: u32 = 64;

/// Returns the family for a machine.
pub(super) fn family(has_gpu: bool) -> &'static str {
    if has_gpu { GPU_FAMILY } else { CPU_FAMILY }
}
