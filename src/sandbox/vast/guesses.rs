//! What no document settles about Vast: each guess as a switch, so that a client can be tried both ways.

/// The open points. [`Default`] is what is held to be likelier.
///
/// | switch | off | on |
/// |---|---|---|
/// | `by_id_without_ports` | the record of `GET /instances/{id}/` has `ports` | only the list has them |
/// | `gone_is_404` | an instance that is gone is 200 with `instances: null` | it is 404 `no_such_instance` |
/// | `old_list_is_200` | `GET /api/v0/instances/` is 410 | it is 200 with `success: false` |
/// | `attach_again_refused` | a key that is there already is taken again | it is 400 with "already" in the text |
/// | `no_credit_is_402` | without credit a create is 200 with `success: false` | it is 402 |
/// | `long_env_refused` | an `env` entry may be long | more than 256 characters are 400 |
/// | `gone_at_once` | a destroyed instance is shown as `unloaded` for a while | it is gone at once |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent open point")]
pub struct VastGuesses {
    /// `ports` are in the list only.
    pub by_id_without_ports: bool,
    /// What is gone is 404.
    pub gone_is_404: bool,
    /// The old list is 200 with `success: false`.
    pub old_list_is_200: bool,
    /// Attaching the same key twice is 400.
    pub attach_again_refused: bool,
    /// No credit is 402.
    pub no_credit_is_402: bool,
    /// `env` entries longer than 256 characters are 400.
    pub long_env_refused: bool,
    /// No `unloaded` before it is gone.
    pub gone_at_once: bool,
}

impl VastGuesses {
    /// Everything the other way round.
    pub fn flipped() -> VastGuesses {
        VastGuesses {
            by_id_without_ports: true,
            gone_is_404: true,
            old_list_is_200: true,
            attach_again_refused: true,
            no_credit_is_402: true,
            long_env_refused: true,
            gone_at_once: true,
        }
    }
}
