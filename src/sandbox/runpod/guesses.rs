//! What no document settles about RunPod: each guess as a switch, so that a client can be tried both ways.

/// The open points. [`Default`] is what is held to be likelier.
///
/// | switch | off | on |
/// |---|---|---|
/// | `cost_with_disk` | a pod's `cost` is the GPUs alone | it includes the container disk |
/// | `community_unlisted` | the catalogue lists data centers for COMMUNITY | it has only `availability` |
/// | `community_place_hidden` | `dataCenterId` is told | it is `null` for COMMUNITY pods |
/// | `gone_at_once` | a deleted pod is TERMINATED for a while, in lists too | it is 404 at once |
/// | `delete_waits` | DELETE works in every status | 409 while PROVISIONING |
/// | `running_at_once` | PROVISIONING, STARTING, RUNNING | RUNNING from the first look |
/// | `names_are_ids` | data centers have long names in the catalogue | the name is the id |
/// | `empty_runtime` | `runtime` is `null` until it is filled | it is `{}` |
/// | `silent_logs` | logs are for every key | 403 with a key that may do all else |
/// | `one_page` | lists carry `pagination` | they do not, and hold everything |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent open point")]
pub struct RunPodGuesses {
    /// `cost` includes the container disk.
    pub cost_with_disk: bool,
    /// No data centers are listed for COMMUNITY.
    pub community_unlisted: bool,
    /// `dataCenterId` is `null` for COMMUNITY pods.
    pub community_place_hidden: bool,
    /// No TERMINATED before the 404.
    pub gone_at_once: bool,
    /// DELETE is 409 while PROVISIONING.
    pub delete_waits: bool,
    /// RUNNING from the first look.
    pub running_at_once: bool,
    /// The name of a data center is its id.
    pub names_are_ids: bool,
    /// `runtime` is `{}` until it is filled.
    pub empty_runtime: bool,
    /// Logs answer 403.
    pub silent_logs: bool,
    /// Lists have no `pagination`.
    pub one_page: bool,
}

impl RunPodGuesses {
    /// Everything the other way round.
    pub fn flipped() -> RunPodGuesses {
        RunPodGuesses {
            cost_with_disk: true,
            community_unlisted: true,
            community_place_hidden: true,
            gone_at_once: true,
            delete_waits: true,
            running_at_once: true,
            names_are_ids: true,
            empty_runtime: true,
            silent_logs: true,
            one_page: true,
        }
    }
}
