//! What no document settles about Google Cloud: each guess as a switch, so that a client can be tried both ways.

/// The open points. [`Default`] is what is held to be likelier.
///
/// | switch | off | on |
/// |---|---|---|
/// | `quota_at_once` | a used-up quota shows in the operation | the insert is refused with 403 `quotaExceeded` |
/// | `quota_with_details` | its code there is `QUOTA_EXCEEDED` | it is `QUOTA_EXCEEDED_WITH_DETAILS` |
/// | `spot_quota_stands_alone` | a preemptible metric of 0 falls back to the standard one | it refuses |
/// | `spot_only_refused` | an on-demand insert of a spot-only shape runs out of capacity | it is refused with 400 |
/// | `unknown_type_is_400` | a machine type that is not in the zone is 404 | it is 400 `invalid` |
/// | `bundled_unseen` | machines with GPUs built in show `guestAccelerators` | they do not |
/// | `wait_at_once` | `wait` holds the call until the operation is done, or for a while | it answers at once |
/// | `bare_errors` | errors have `errors` with a reason | they have `status` and `details` only |
/// | `no_target_filter` | operations can be filtered by `targetId` | such a filter is refused |
/// | `advice_refused` | `advice` answers | it is 403 |
/// | `preempted_stops` | a preempted machine is 404 at once | it is `STOPPING` for a while |
/// | `early_address` | `natIP` is told from `RUNNING` on | it is told from `STAGING` on |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent open point")]
pub struct GcpGuesses {
    /// A used-up quota refuses the insert itself.
    pub quota_at_once: bool,
    /// The code of a used-up quota has details in its name.
    pub quota_with_details: bool,
    /// A preemptible metric of 0 refuses, whatever the standard one says.
    pub spot_quota_stands_alone: bool,
    /// An on-demand insert of a spot-only shape is 400.
    pub spot_only_refused: bool,
    /// A machine type that is not in the zone is 400.
    pub unknown_type_is_400: bool,
    /// Machines with GPUs built in do not show them.
    pub bundled_unseen: bool,
    /// `wait` answers at once.
    pub wait_at_once: bool,
    /// Errors have no list of reasons.
    pub bare_errors: bool,
    /// A filter of operations by `targetId` is refused.
    pub no_target_filter: bool,
    /// `advice` is 403.
    pub advice_refused: bool,
    /// A preempted machine is `STOPPING` for a while.
    pub preempted_stops: bool,
    /// The address is told from `STAGING` on.
    pub early_address: bool,
}

impl GcpGuesses {
    /// Everything the other way round.
    pub fn flipped() -> GcpGuesses {
        GcpGuesses {
            quota_at_once: true,
            quota_with_details: true,
            spot_quota_stands_alone: true,
            spot_only_refused: true,
            unknown_type_is_400: true,
            bundled_unseen: true,
            wait_at_once: true,
            bare_errors: true,
            no_target_filter: true,
            advice_refused: true,
            preempted_stops: true,
            early_address: true,
        }
    }
}
