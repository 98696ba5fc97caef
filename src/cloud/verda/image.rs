//! Which of Verda's images a type is booted from: Ubuntu 24.04 first, newest CUDA.
//!
//! Two naming schemes live side by side, `ubuntu-24.04-cuda-13.0-open-docker` and `24.04.cuda13.2.docker`. Names that are not
//! one of these two as a whole are for something else: `*-cluster`, `*.cc`, `*.kubernetes-*`, `*.verda-gpureset`, `debian-12`.
//! A wrong image is a refusal of its own ("Operating system is not valid for this instance type"), so there is an order of
//! them rather than one (github.com/dstackai/dstack/issues/3067).

use std::cmp::Reverse;

use super::wire::{Image, told};
use crate::model::want::Cuda;

/// The Ubuntu that is taken where it can be had.
const RELEASE: Release = Release { year: 24, month: 4 };

/// How many images are tried for one machine.
pub(super) const MOST_IMAGES: usize = 3;

/// The image that was the only one with a driver on V100 machines in 2026-10; it tells no CUDA version.
const LAST_RESORT: &str = "jupyter";

/// `24.04`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release {
    year: u16,
    month: u16,
}

/// What a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    release: Release,
    cuda: Option<Cuda>,
    docker: bool,
    newer_scheme: bool,
}

impl Named {
    /// Lower is better: the release, then the CUDA version; Docker with NVIDIA's toolkit costs nothing.
    fn order(&self) -> impl Ord + use<> {
        let release = match self.release {
            RELEASE => (0, Reverse(RELEASE)),
            newer if newer > RELEASE => (1, Reverse(newer)),
            older => (2, Reverse(older)),
        };
        (release, Reverse(self.cuda), !self.docker, !self.newer_scheme)
    }
}

/// An image that may be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The image type, as a create takes it.
    pub(super) image: String,
    /// The CUDA version that its name tells.
    pub(super) cuda: Option<Cuda>,
}

/// Returns the images to try for a machine, the best first. With a CUDA floor only those that are known to have it.
pub(super) fn candidates(images: &[Image], has_gpu: bool, floor: Option<Cuda>) -> Vec<Candidate> {
    let usable = images.iter().filter(|image| image.is_cluster != Some(true));
    let usable: Vec<(&str, bool)> = usable
        .filter_map(|image| Some((told(image.image_type.as_ref())?, image.is_default == Some(true))))
        .collect();
    let mut named: Vec<(&str, Named)> = usable
        .iter()
        .filter_map(|(name, _)| Some((*name, read(name)?)))
        .filter(|(_, named)| named.cuda.is_some() == has_gpu)
        .filter(|(_, named)| !has_gpu || floor.is_none_or(|floor| named.cuda >= Some(floor)))
        .collect();
    // On CPU types an image with NVIDIA's toolkit breaks Docker (github.com/dstackai/dstack/issues/1514), and Docker is not
    // what a plain machine was asked for.
    named.sort_by_key(|(name, named)| (!has_gpu && named.docker, named.order(), *name));
    let mut list: Vec<Candidate> = named
        .into_iter()
        .map(|(name, named)| Candidate { image: name.to_owned(), cuda: named.cuda })
        .collect();
    if has_gpu && floor.is_none() {
        let last = usable.iter().filter(|(name, _)| *name == LAST_RESORT);
        let default = usable.iter().filter(|(name, default)| *default && *name != LAST_RESORT);
        for (name, _) in last.chain(default) {
            if !list.iter().any(|known| known.image == *name) {
                list.push(Candidate { image: (*name).to_owned(), cuda: None });
            }
        }
    }
    list
}

/// Returns the candidates among the names that a type lists as `supported_os`.
pub(super) fn candidates_of_names(names: &[String], has_gpu: bool, floor: Option<Cuda>) -> Vec<Candidate> {
    let image = |name: &String| Image { image_type: Some(name.clone()), ..Image::default() };
    candidates(&names.iter().map(image).collect::<Vec<_>>(), has_gpu, floor)
}

fn read(name: &str) -> Option<Named> {
    match name.strip_prefix("ubuntu-") {
        Some(rest) => older_scheme(rest),
        None => newer_scheme(name),
    }
}

/// `24.04[-cuda-13.0[-open]][-docker]`, without its `ubuntu-`.
fn older_scheme(rest: &str) -> Option<Named> {
    let mut words = rest.split('-');
    let release = release(words.next()?)?;
    let mut words = words.peekable();
    let mut cuda = None;
    if words.next_if_eq(&"cuda").is_some() {
        cuda = Some(version(words.next()?)?);
        words.next_if_eq(&"open");
    }
    let docker = words.next_if_eq(&"docker").is_some();
    words.next().is_none().then_some(Named { release, cuda, docker, newer_scheme: false })
}

/// `24.04.base`, `24.04.cuda13.2[.docker]`.
fn newer_scheme(name: &str) -> Option<Named> {
    let release_text = name.get(..5)?;
    let rest = name.get(5..)?.strip_prefix('.')?;
    let release = release(release_text)?;
    if rest == "base" {
        return Some(Named { release, cuda: None, docker: false, newer_scheme: true });
    }
    let rest = rest.strip_prefix("cuda")?;
    let (text, docker) = match rest.strip_suffix(".docker") {
        Some(text) => (text, true),
        None => (rest, false),
    };
    Some(Named { release, cuda: Some(version(text)?), docker, newer_scheme: true })
}

fn release(text: &str) -> Option<Release> {
    let (year, month) = text.split_once('.')?;
    let number = |digits: &str| {
        let plain = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    };
    Some(Release { year: number(year)?, month: number(month)? })
}

/// A version with both numbers.
fn version(text: &str) -> Option<Cuda> {
    text.contains('.').then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(names: &[&str]) -> Vec<Image> {
        let image = |name: &&str| {
            let (name, is_default) = match name.strip_suffix('*') {
                Some(name) => (name, true),
                None => (*name, false),
            };
            let is_cluster = name.ends_with("-cluster");
            Image {
                image_type: Some(name.to_owned()),
                is_default: Some(is_default),
                is_cluster: Some(is_cluster),
            }
        };
        names.iter().map(image).collect()
    }

    fn order(names: &[&str], has_gpu: bool, floor: Option<&str>) -> Vec<String> {
        let floor = floor.map(|floor| floor.parse().unwrap());
        candidates(&images(names), has_gpu, floor).into_iter().map(|candidate| candidate.image).collect()
    }

    const SEEN: [&str; 24] = [
        "26.04.cuda13.2.docker",
        "26.04.cuda13.2",
        "26.04.base",
        "24.04.cuda13.0",
        "24.04.cuda13.2",
        "24.04.cuda13.2.docker",
        "24.04.cuda12.9.docker",
        "24.04.base",
        "24.04.cuda13.2.cc",
        "24.04.cuda13.2.kubernetes-1.34",
        "24.04.cuda13.0.verda-gpureset",
        "ubuntu-24.04",
        "ubuntu-24.04-cuda-13.0-open",
        "ubuntu-24.04-cuda-13.0-open-docker*",
        "ubuntu-24.04-cuda-12.8-open-docker",
        "ubuntu-24.04-cuda-12.6",
        "ubuntu-24.04-cuda-12.6-docker",
        "ubuntu-22.04-cuda-12.4-docker",
        "ubuntu-24.04-cuda-13.0-cluster",
        "jupyter",
        "jupyter.cuda.13.2",
        "fastai",
        "debian-12",
        "ubuntu-24.04-docker",
    ];

    #[test]
    fn the_newest_cuda_on_24_04_first_and_both_schemes() {
        assert_eq!(
            order(&SEEN, true, None),
            [
                "24.04.cuda13.2.docker",
                "24.04.cuda13.2",
                "ubuntu-24.04-cuda-13.0-open-docker",
                "24.04.cuda13.0",
                "ubuntu-24.04-cuda-13.0-open",
                "24.04.cuda12.9.docker",
                "ubuntu-24.04-cuda-12.8-open-docker",
                "ubuntu-24.04-cuda-12.6-docker",
                "ubuntu-24.04-cuda-12.6",
                "26.04.cuda13.2.docker",
                "26.04.cuda13.2",
                "ubuntu-22.04-cuda-12.4-docker",
                "jupyter",
            ]
        );
    }

    #[test]
    fn a_floor_keeps_what_has_it() {
        let above = order(&SEEN, true, Some("13.1"));
        assert_eq!(
            above,
            ["24.04.cuda13.2.docker", "24.04.cuda13.2", "26.04.cuda13.2.docker", "26.04.cuda13.2"]
        );
        assert!(order(&SEEN, true, Some("13.10")).is_empty());
        assert!(order(&["jupyter", "fastai*"], true, Some("12.0")).is_empty());
    }

    #[test]
    fn without_a_gpu_plain_ubuntu() {
        assert_eq!(
            order(&SEEN, false, Some("13.0")),
            ["24.04.base", "ubuntu-24.04", "26.04.base", "ubuntu-24.04-docker"]
        );
    }

    #[test]
    fn the_last_resort() {
        assert_eq!(order(&["debian-12*", "jupyter", "24.04.base"], true, None), ["jupyter", "debian-12"]);
        assert_eq!(order(&["debian-12"], true, None), [""; 0]);
        assert_eq!(order(&["24.04.cuda13.2*"], true, None), ["24.04.cuda13.2"]);
    }

    #[test]
    fn names_are_read_whole_or_not_at_all() {
        for odd in [
            "",
            "24.04",
            "24.04.",
            "24.04.cuda",
            "24.04.cuda13",
            "24.04.cuda13.2.docker.x",
            "24.4.cuda13.2",
            "ubuntu-",
            "ubuntu-24.04-cuda",
            "ubuntu-24.04-cuda-13",
            "ubuntu-24.04-cuda-13.0-docker-open",
            "Ubuntu-24.04",
            "ü4.04.base",
        ] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_survived(name in "\\PC{0,30}|(ubuntu-)?[0-9.]{0,6}[-.a-z0-9]{0,20}") {
            let list = candidates_of_names(std::slice::from_ref(&name), true, None);
            proptest::prop_assert!(list.is_empty() || list[0].image == name.trim());
        }
    }
}
