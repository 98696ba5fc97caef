//! Which image a machine boots: the newest of a family, the next family where one was retired (families are), and at last the
//! newest names that are known.
//!
//! With a GPU: Google's Deep Learning image, which has the driver and the CUDA toolkit
//! (cloud.google.com/deep-learning-vm/docs/images); then Canonical's with the driver alone
//! (cloud.google.com/ai-hypercomputer/docs/software-stack). Without: Ubuntu as it is. All are Ubuntu 22.04.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::client::Api;
use super::names::is_name;
use super::wire::told;
use crate::cloud::{Result, Setup};
use crate::http::cache::Cache;

/// How long a family's newest image is taken for that.
const DAY: Duration = Duration::from_secs(86_400);

/// A family, its newest image that is known, and the size of that image in GB.
struct Family {
    project: &'static str,
    family: &'static str,
    known: Option<(&'static str, u32)>,
}

const WITH_GPU: [Family; 2] = [
    Family {
        project: "deeplearning-platform-release",
        family: "common-cu129-ubuntu-2204-nvidia-580",
        known: Some(("common-cu129-ubuntu-2204-nvidia-580-v20261001", 50)),
    },
    Family {
        project: "ubuntu-os-accelerator-images",
        family: "ubuntu-accelerator-2204-amd64-with-nvidia-580",
        known: Some(("ubuntu-accelerator-2204-amd64-with-nvidia-580-v20260825", 20)),
    },
];

const PLAIN: [Family; 1] = [Family {
    project: "ubuntu-os-cloud",
    family: "ubuntu-2204-lts",
    known: Some(("ubuntu-2204-jammy-v20260427", 10)),
}];

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Picked {
    /// The project that it is in.
    pub(super) project: String,
    /// Its name.
    pub(super) name: String,
    /// The smallest disk that takes it, in GB, where that is known.
    pub(super) size_gb: Option<u32>,
}

impl Picked {
    /// Returns it as a create names it.
    pub(super) fn link(&self) -> String {
        format!("projects/{}/global/images/{}", self.project, self.name)
    }
}

/// The images that were looked for, for a day.
#[derive(Debug)]
pub(super) struct Images {
    cache: Cache,
    endpoint: String,
}

impl Images {
    /// Returns an empty memory.
    pub(super) fn new(setup: &Setup) -> Self {
        let folder = setup.cache.as_ref().map(|cache| cache.join("gcp-images"));
        Images { cache: Cache::new(folder, DAY), endpoint: setup.endpoint.clone() }
    }

    /// Returns the image to boot, the `tried` best ones left out; none if there is no other.
    pub(super) async fn pick(&self, api: &Api, has_gpu: bool, tried: &[Picked]) -> Result<Option<Picked>> {
        let families: &[Family] = if has_gpu { &WITH_GPU } else { &PLAIN };
        for family in families {
            let newest = self.newest(api, family, tried.is_empty()).await?;
            if let Some(newest) = newest.filter(|newest| !tried.contains(newest)) {
                return Ok(Some(newest));
            }
        }
        let known = families.iter().filter_map(|family| {
            let (name, size) = family.known?;
            Some(Picked { project: family.project.to_owned(), name: name.to_owned(), size_gb: Some(size) })
        });
        Ok(known.into_iter().find(|known| !tried.contains(known)))
    }

    async fn newest(&self, api: &Api, family: &Family, from_memory: bool) -> Result<Option<Picked>> {
        let question = format!("{} {}/{}", self.endpoint, family.project, family.family);
        if let Some(kept) = self.cache.get::<Picked>(&question).filter(|_| from_memory) {
            return Ok(Some(kept));
        }
        let Some(image) = api.image_of_family(family.project, family.family).await? else { return Ok(None) };
        let ready = told(image.status.as_ref()).is_none_or(|status| status == "READY");
        let Some(name) = told(image.name.as_ref()).filter(|name| is_name(name) && ready) else {
            return Ok(None);
        };
        let picked = Picked {
            project: family.project.to_owned(),
            name: name.to_owned(),
            size_gb: told(image.disk_size_gb.as_ref()).and_then(|size| size.parse().ok()),
        };
        self.cache.put(&question, &picked);
        Ok(Some(picked))
    }
}

/// Returns the family of the image, for previews, in which nothing is asked.
pub(super) fn family_of(has_gpu: bool) -> String {
    let family = if has_gpu { &WITH_GPU[0] } else { &PLAIN[0] };
    format!("projects/{}/global/images/family/{}", family.project, family.family)
}
