//! The image: the user's, or Vast's base image with the newest CUDA that the host supports.

use crate::model::image::cuda_of;
use crate::model::want::Cuda;

/// Vast's base image; the server puts in the newest tag whose CUDA the machine supports
/// (docs.vast.ai, templates; the default of the create).
const AUTOMATIC: &str = "vastai/base-image:@vastai-automatic-tag";

/// Tags by CUDA, for when the automatic one is refused; they move to builds that Vast has tested
/// (github.com/vast-ai/base-image, `configs/base-image.json`).
const TAGS: [(Cuda, &str); 10] = [
    (Cuda { major: 11, minor: 8 }, "cuda-11.8.0-auto"),
    (Cuda { major: 12, minor: 1 }, "cuda-12.1.1-auto"),
    (Cuda { major: 12, minor: 4 }, "cuda-12.4.1-auto"),
    (Cuda { major: 12, minor: 6 }, "cuda-12.6.3-auto"),
    (Cuda { major: 12, minor: 8 }, "cuda-12.8.1-auto"),
    (Cuda { major: 12, minor: 9 }, "cuda-12.9.2-auto"),
    (Cuda { major: 13, minor: 0 }, "cuda-13.0.3-auto"),
    (Cuda { major: 13, minor: 1 }, "cuda-13.1.2-auto"),
    (Cuda { major: 13, minor: 2 }, "cuda-13.2.1-auto"),
    (Cuda { major: 13, minor: 3 }, "cuda-13.3.1-auto"),
];

/// The least that a host must support where nobody asks for more: older ones run nothing of today.
const LEAST: Cuda = Cuda { major: 12, minor: 1 };

/// An image and the CUDA that the host must at least have for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The image reference.
    pub(super) image: String,
    /// What to take when `image` is refused.
    pub(super) instead: Option<String>,
    /// Whether it is ours, rather than given by the user.
    pub(super) is_ours: bool,
    /// The floor.
    pub(super) floor: Cuda,
}

/// Chooses the image: the user's if there is one. `asked` is the CUDA asked for, `host` what the host has.
pub(super) fn choose(given: Option<&str>, asked: Option<Cuda>, host: Option<Cuda>) -> Choice {
    match given {
        Some(image) => Choice {
            image: image.to_owned(),
            instead: None,
            is_ours: false,
            // A container whose CUDA is newer than the host's never starts
            // (github.com/dizcza/docker-hashcat/issues/21).
            floor: asked.max(cuda_of(image)).unwrap_or(LEAST),
        },
        None => Choice {
            image: AUTOMATIC.to_owned(),
            instead: host.and_then(tag).map(|tag| format!("vastai/base-image:{tag}")),
            is_ours: true,
            floor: asked.unwrap_or(LEAST),
        },
    }
}

/// Whether this is an image that we choose.
pub(super) fn is_ours(image: &str) -> bool {
    image.starts_with("vastai/base-image:")
}

/// Returns the newest tag that a host with this CUDA runs.
fn tag(host: Cuda) -> Option<&'static str> {
    TAGS.iter().rev().find(|(cuda, _)| *cuda <= host).map(|(_, tag)| *tag)
}

/// Returns the CUDA version that a row names as a number, `12.8`.
pub(super) fn cuda(figure: Option<f64>) -> Option<Cuda> {
    let figure = figure.filter(|figure| (1.0..100.0).contains(figure))?;
    format!("{figure:.1}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Option<Cuda> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn ours_by_the_hosts_cuda() {
        for (host, tag) in [
            ("12.0", Some("cuda-11.8.0-auto")),
            ("12.8", Some("cuda-12.8.1-auto")),
            ("12.7", Some("cuda-12.6.3-auto")),
            ("13.0", Some("cuda-13.0.3-auto")),
            ("14.1", Some("cuda-13.3.1-auto")),
            ("11.4", None),
        ] {
            let choice = choose(None, None, version(host));
            assert_eq!(choice.image, AUTOMATIC);
            assert_eq!(choice.instead, tag.map(|tag| format!("vastai/base-image:{tag}")), "{host}");
        }
        assert_eq!(choose(None, None, None).floor, LEAST);
        assert_eq!(choose(None, version("12.8"), None).floor.to_string(), "12.8");
    }

    #[test]
    fn the_users_needs_what_its_tag_says() {
        let own = choose(Some("pytorch/pytorch:2.8.0-cuda12.9-cudnn9-runtime"), version("12.4"), None);
        assert_eq!((own.is_ours, own.instead, own.floor.to_string().as_str()), (false, None, "12.9"));
        assert_eq!(choose(Some("me/own"), None, None).floor, LEAST);
    }

    #[test]
    fn figures_of_rows() {
        assert_eq!(cuda(Some(12.8)), version("12.8"));
        assert_eq!(cuda(Some(13.0)), version("13"));
        for none in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(1e9)] {
            assert_eq!(cuda(none), None);
        }
    }
}
