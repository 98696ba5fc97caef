//! Images: the tag that Vast picks by itself, and the CUDA version that a tag names.
//!
//! The table is `vast-ai/base-image configs/base-image.json` of August 2026.

/// Tags of `vastai/base-image` by the least CUDA version of the host's driver.
const TAGS: [((u32, u32), &str); 10] = [
    ((11, 8), "cuda-11.8.0-auto"),
    ((12, 1), "cuda-12.1.1-auto"),
    ((12, 4), "cuda-12.4.1-auto"),
    ((12, 6), "cuda-12.6.3-auto"),
    ((12, 8), "cuda-12.8.1-auto"),
    ((12, 9), "cuda-12.9.2-auto"),
    ((13, 0), "cuda-13.0.3-auto"),
    ((13, 1), "cuda-13.1.2-auto"),
    ((13, 2), "cuda-13.2.1-auto"),
    ((13, 3), "cuda-13.3.1-auto"),
];

/// What stands for the newest tag that the host can run.
const AUTOMATIC: &str = "@vastai-automatic-tag";

/// The image that is really run on a host with this CUDA version.
pub(super) fn resolve(image: &str, cuda: (u32, u32)) -> String {
    let Some(name) = image.strip_suffix(AUTOMATIC) else { return image.to_owned() };
    let tag = TAGS.iter().rev().find(|(least, _)| *least <= cuda).map_or(TAGS[0].1, |(_, tag)| tag);
    format!("{name}{tag}")
}

/// Whether the image names a tag or a digest.
pub(super) fn tagged(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split_once([':', '@']).is_some_and(|(_, tag)| !tag.is_empty())
}

/// CUDA version in a tag: `cuda-12.8.1-auto`, `2.8.0-cuda12.8-cudnn9-runtime`, `nvidia/cuda:12.8.1-base-ubuntu24.04`.
pub(super) fn cuda_of(image: &str) -> Option<(u32, u32)> {
    let tag = image.rsplit_once(':')?.1;
    let named = tag.split_once("cuda").map(|(_, rest)| rest.trim_start_matches('-'));
    let text = named.or_else(|| image.contains("cuda:").then_some(tag))?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// A CUDA version such as 12.8 in two parts.
pub(super) fn version(cuda: f64) -> (u32, u32) {
    let text = format!("{cuda:.1}");
    let (major, minor) = text.split_once('.').unwrap_or((&text, "0"));
    (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags() {
        let auto = "vastai/base-image:@vastai-automatic-tag";
        assert_eq!(resolve(auto, version(12.8)), "vastai/base-image:cuda-12.8.1-auto");
        assert_eq!(resolve(auto, version(12.2)), "vastai/base-image:cuda-12.1.1-auto");
        assert_eq!(cuda_of("vastai/base-image:cuda-13.0.3-auto"), Some((13, 0)));
        assert_eq!(cuda_of("pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime"), Some((12, 8)));
        assert_eq!(cuda_of("nvidia/cuda:12.4.1-base-ubuntu22.04"), Some((12, 4)));
        assert_eq!(cuda_of("ubuntu:24.04"), None);
        assert!(tagged("a.example:5000/x/y:1") && !tagged("a.example:5000/x/y") && !tagged("x:"));
    }
}
