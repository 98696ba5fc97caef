//! What no document settles about Nebius: each guess as a switch, so that a client can be tried both ways.

/// The open points. [`Default`] is what is held to be likelier.
///
/// | switch | off | on |
/// |---|---|---|
/// | `quota_at_create` | a quota that is used up fails the operation, later | it fails the create call |
/// | `small_disks_boot` | a managed boot disk below 64 GiB hangs the boot, as one project has measured | it boots |
/// | `spot_prices_need_token` | spot prices are public, as their document says | they need a token |
/// | `spot_counts` | preemptible GPUs do not count against the GPU quota | they do |
/// | `anonymous_profile` | a token that is not accepted is UNAUTHENTICATED for `ProfileService` too | it is `anonymous_profile` |
/// | `cpu_advice` | the advice service has no rows for platforms without GPUs | it has |
/// | `delete_waits` | a delete ends a create that is under way | it is ABORTED until the create has ended |
/// | `errors_after_headers` | an error is in the headers, which are all there is | it is in trailers after headers |
/// | `starts_at_once` | a new instance is `STOPPED` and reconciling for a moment | it goes to `STARTING` at once |
/// | `estimate_is_spot` | the calculator prices a spot instance at its ceiling, the price on demand | at the spot price |
/// | `reservations_on_spot` | a reservation policy on a preemptible instance is refused | it is accepted |
/// | `project_rows` | quotas are listed for the tenant only | a project has rows too, without limits |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent open point")]
pub struct NebiusGuesses {
    /// A quota that is used up fails the create call.
    pub quota_at_create: bool,
    /// A managed boot disk below 64 GiB boots.
    pub small_disks_boot: bool,
    /// Spot prices need a token.
    pub spot_prices_need_token: bool,
    /// Preemptible GPUs count against the GPU quota.
    pub spot_counts: bool,
    /// `ProfileService` answers `anonymous_profile` for a token that is not accepted.
    pub anonymous_profile: bool,
    /// The advice service has rows for platforms without GPUs.
    pub cpu_advice: bool,
    /// A delete waits for a create that is under way.
    pub delete_waits: bool,
    /// Errors come in trailers after headers.
    pub errors_after_headers: bool,
    /// A new instance is never `STOPPED`.
    pub starts_at_once: bool,
    /// The calculator prices a spot instance at the spot price.
    pub estimate_is_spot: bool,
    /// A reservation policy on a preemptible instance is accepted.
    pub reservations_on_spot: bool,
    /// A project has quota rows without limits.
    pub project_rows: bool,
}

impl NebiusGuesses {
    /// Everything the other way round.
    pub fn flipped() -> NebiusGuesses {
        NebiusGuesses {
            quota_at_create: true,
            small_disks_boot: true,
            spot_prices_need_token: true,
            spot_counts: true,
            anonymous_profile: true,
            cpu_advice: true,
            delete_waits: true,
            errors_after_headers: true,
            starts_at_once: true,
            estimate_is_spot: true,
            reservations_on_spot: true,
            project_rows: true,
        }
    }
}
