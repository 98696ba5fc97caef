//! What no document settles about Verda: each guess as a switch, so that a client can be tried both ways.

/// The open points. [`Default`] is what is held to be likelier, and what the official clients can live with.
///
/// | switch | off | on |
/// |---|---|---|
/// | `quoted_ids` | a new id is bare text | it is a JSON string |
/// | `single_objects` | one key or script comes as an array of one | it is an object |
/// | `os_volume_apart` | the OS volume repeats in `volume_ids` | it is in `os_volume_id` only |
/// | `text_availability` | one type's availability is a boolean | it is the string `"true"` or `"false"` |
/// | `gone_is_404` | a deleted instance answers by its id as `discontinued` | it is 404 |
/// | `unknown_id_is_400` | `Invalid instance id` is 404 | it is 400 |
/// | `price_per_gpu` | an instance's price is for the whole machine | it is for one GPU, or one vCPU |
/// | `bare_delete_trashes` | a delete without `volume_ids` leaves the OS volume detached | it goes to the trash |
/// | `early_delete_refused` | an instance can be deleted until it is `provisioning` | not before it is `running` |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent open point")]
pub struct VerdaGuesses {
    /// A new id is a JSON string.
    pub quoted_ids: bool,
    /// One key or script is an object.
    pub single_objects: bool,
    /// The OS volume is in `os_volume_id` only.
    pub os_volume_apart: bool,
    /// One type's availability is a string.
    pub text_availability: bool,
    /// A deleted instance is 404.
    pub gone_is_404: bool,
    /// `Invalid instance id` is 400.
    pub unknown_id_is_400: bool,
    /// An instance's price is for one GPU, or one vCPU.
    pub price_per_gpu: bool,
    /// A delete without `volume_ids` sends the OS volume to the trash.
    pub bare_delete_trashes: bool,
    /// An instance cannot be deleted before it is `running`.
    pub early_delete_refused: bool,
}

impl VerdaGuesses {
    /// Everything the other way round.
    pub fn flipped() -> VerdaGuesses {
        VerdaGuesses {
            quoted_ids: true,
            single_objects: true,
            os_volume_apart: true,
            text_availability: true,
            gone_is_404: true,
            unknown_id_is_400: true,
            price_per_gpu: true,
            bare_delete_trashes: true,
            early_delete_refused: true,
        }
    }
}
