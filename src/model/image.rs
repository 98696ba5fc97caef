//! Container images: what their names tell.

use super::want::Cuda;

/// Returns the CUDA version that an image's tag tells; none if it tells none.
pub fn cuda_of(image: &str) -> Option<Cuda> {
    let name = image.split('@').next()?;
    let last = name.rsplit('/').next()?;
    let (repository, tag) = last.split_once(':')?;
    let tag = tag.to_ascii_lowercase();
    let told = ["cuda", "cu"].into_iter().find_map(|word| after_word(&tag, word));
    // `nvidia/cuda:12.4.1-devel-ubuntu22.04`
    told.or_else(|| (repository == "cuda").then(|| version(&tag)).flatten())
}

/// Finds `word` at the start of a part of the tag, and reads the version behind it.
fn after_word(tag: &str, word: &str) -> Option<Cuda> {
    tag.match_indices(word).find_map(|(at, _)| {
        let starts = !tag[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let rest = &tag[at + word.len()..];
        starts.then(|| version(rest.strip_prefix(['-', '_']).unwrap_or(rest))).flatten()
    })
}

/// Reads `12.4.1`, `12.4`, `12`, `1281`, `128`.
fn version(text: &str) -> Option<Cuda> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let mut parts = text[..end].split('.');
    let first = parts.next().filter(|digits| (1..=4).contains(&digits.len()))?;
    let (major, minor) = match parts.next() {
        Some(minor) => (first, minor),
        None if first.len() > 2 => (&first[..2], &first[2..3]),
        None => (first, "0"),
    };
    let cuda = Cuda { major: major.parse().ok()?, minor: minor.parse().ok()? };
    // Anything else is some other number: CUDA 9 and older run on no driver of today's hosts' age, and there is no 30.
    (9..30).contains(&cuda.major).then_some(cuda)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags() {
        for (image, floor) in [
            ("runpod/base:1.4.1-cuda1290-ubuntu2204", "12.9"),
            ("runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404", "12.8"),
            ("runpod/pytorch:1.4.0-cu1300-torch291-ubuntu2404", "13.0"),
            ("x/y:cuda12.4.1", "12.4"),
            ("x/y:CUDA-12.4", "12.4"),
            ("x/y:2.1-cu118", "11.8"),
            ("x/y:cuda12", "12.0"),
            ("nvidia/cuda:12.4.1-devel-ubuntu22.04", "12.4"),
            ("localhost:5000/x:cu128@sha256:0123", "12.8"),
        ] {
            assert_eq!(cuda_of(image), Some(floor.parse().unwrap()), "{image}");
        }
        for image in [
            "",
            ":",
            "ubuntu",
            "ubuntu:22.04",
            "x:cudnn9",
            "x:cuda",
            "x:focus12",
            "x:cu9999",
            "localhost:5000/cuda",
            "x:cu128ü",
        ] {
            let told = cuda_of(image);
            assert!(told.is_none() || image == "x:cu128ü", "{image}: {told:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_reference_is_survived(image in "\\PC{0,40}") {
            let _ = cuda_of(&image);
        }
    }
}
