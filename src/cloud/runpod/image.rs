//! Our images, and the CUDA floor that an image needs.
//!
//! The host's CUDA must be at least the image's, else the container never starts: `requirement error: unsatisfied condition:
//! cuda>=12.9` (github.com/runpod/containers/issues/98, github.com/skypilot-org/skypilot/issues/8408).

use crate::model::image::cuda_of;
use crate::model::want::Cuda;

/// Release of `runpod/base` that ours are taken from. Tags are `<release>-cuda<MMmp>-ubuntu<version>`
/// (github.com/runpod/containers, `official-templates/base/docker-bake.hcl`).
const OURS: [(Cuda, &str); 3] = [
    (Cuda { major: 12, minor: 8 }, "runpod/base:1.4.1-cuda1281-ubuntu2204"),
    (Cuda { major: 12, minor: 9 }, "runpod/base:1.4.1-cuda1290-ubuntu2204"),
    (Cuda { major: 13, minor: 0 }, "runpod/base:1.4.1-cuda1300-ubuntu2404"),
];

/// The one that is taken when nobody asks for a CUDA version.
const USUAL: usize = 1;

/// The lowest floor that an image of ours can have; `--cuda 12.8` shows offers that the usual image hides.
pub(super) const LOWEST: Cuda = OURS[0].0;

/// An image and the CUDA that the host must at least have for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The image reference.
    pub(super) image: String,
    /// Whether it is one of ours, rather than given by the user.
    pub(super) is_ours: bool,
    /// The floor; none if nothing is known about an image of the user's and no version was asked for.
    pub(super) floor: Option<Cuda>,
}

/// Chooses the image: the user's if there is one, else ours for `cuda`. The floor is what the user asks for or what the image
/// needs, whichever is higher.
pub(super) fn choose(given: Option<&str>, cuda: Option<Cuda>) -> Choice {
    if let Some(image) = given {
        return Choice { image: image.to_owned(), is_ours: false, floor: cuda.max(cuda_of(image)) };
    }
    let fitting = match cuda {
        None => OURS[USUAL],
        // Above the newest: the newest image on a host that has more.
        Some(cuda) => OURS.into_iter().find(|(has, _)| *has >= cuda).unwrap_or(OURS[OURS.len() - 1]),
    };
    Choice { image: fitting.1.to_owned(), is_ours: true, floor: cuda.max(Some(fitting.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuda(text: &str) -> Option<Cuda> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn ours_by_cuda() {
        for (asked, tag, floor) in [
            (None, "cuda1290-ubuntu2204", "12.9"),
            (cuda("11.8"), "cuda1281-ubuntu2204", "12.8"),
            (cuda("12.8"), "cuda1281-ubuntu2204", "12.8"),
            (cuda("12.9"), "cuda1290-ubuntu2204", "12.9"),
            (cuda("13"), "cuda1300-ubuntu2404", "13.0"),
            (cuda("13.2"), "cuda1300-ubuntu2404", "13.2"),
        ] {
            let choice = choose(None, asked);
            assert_eq!(choice.image, format!("runpod/base:1.4.1-{tag}"));
            assert_eq!((choice.is_ours, choice.floor), (true, cuda(floor)), "{asked:?}");
        }
    }

    #[test]
    fn an_image_of_the_users() {
        let image = "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime";
        assert_eq!(choose(Some(image), None).floor, cuda("12.1"));
        assert_eq!(choose(Some(image), cuda("12.8")).floor, cuda("12.8"));
        assert_eq!(choose(Some(image), cuda("11.8")).floor, cuda("12.1"));
        assert_eq!(choose(Some("me/own"), None).floor, None);
        assert_eq!(choose(Some("me/own"), cuda("12.8")).floor, cuda("12.8"));
    }
}
