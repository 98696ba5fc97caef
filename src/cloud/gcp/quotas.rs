//! The account's limits, as far as they can be read: a machine that a limit certainly forbids is not offered.
//!
//! A metric that is not told is unknown, not zero: those of H100, H200 and B200 are in no answer
//! (github.com/dstackai/dstack, `_has_gpu_quota`), and an answer may carry a warning and no quotas at all.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::shapes::Shape;
use crate::cloud::lenient::{lenient, lenient_objects};

/// Projects' and regions' answers, cut to what is read.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Answer {
    #[serde(default, deserialize_with = "lenient_objects")]
    quotas: Option<Vec<Row>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Row {
    #[serde(default, deserialize_with = "lenient")]
    metric: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    limit: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<f64>,
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quota {
    limit: f64,
    usage: f64,
}

/// The limits of one project or region.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Limits(BTreeMap<String, Quota>);

impl Limits {
    /// Takes what an answer tells; of no answer nothing is known.
    pub(super) fn new(answer: Option<Answer>) -> Self {
        let rows = answer.and_then(|answer| answer.quotas).unwrap_or_default().into_iter();
        let told = rows.filter_map(|row| {
            // Less than nothing stands for no limit.
            let limit = row.limit.filter(|limit| limit.is_finite() && *limit >= 0.0)?;
            Some((row.metric?, Quota { limit, usage: row.usage.unwrap_or(0.0).max(0.0) }))
        });
        Limits(told.collect())
    }
}

/// The limits of the account.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas {
    /// Over all regions.
    pub(super) project: Limits,
    /// By region; one that is missing is unknown.
    pub(super) regions: BTreeMap<String, Limits>,
}

/// What a machine needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need<'a> {
    pub(super) shape: &'a Shape,
    pub(super) region: &'a str,
    pub(super) spot: bool,
    pub(super) disk_gb: u32,
}

/// A limit that does not let a machine through.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Short {
    /// Google's name of it.
    pub(super) metric: String,
    /// Where; none for a limit over all regions.
    pub(super) region: Option<String>,
    limit: f64,
    usage: f64,
}

impl Short {
    /// Says it in words.
    pub(super) fn words(&self) -> String {
        let place = self.region.as_deref().unwrap_or("all regions");
        format!("the quota {} of {place} is {}, of which {} are in use", self.metric, self.limit, self.usage)
    }
}

/// How much of a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// All of it.
    Limit,
    /// What is not in use.
    Rest,
}

impl Quotas {
    /// Returns the limit that forbids a machine whatever is running: too few GPUs are allowed, or none of something else.
    pub(super) fn forbids(&self, need: &Need<'_>) -> Option<Short> {
        // Whether vCPUs of a family count against a limit of all of them is not certain enough to hide an offer by their
        // number; nothing at all is.
        self.first(need, Of::Limit, |metric, amount| if metric.contains("GPUS") { amount } else { 1.0 })
    }

    /// Whether no GPU may be used anywhere, as in every new project.
    pub(super) fn allows_no_gpu(&self) -> bool {
        self.project.0.get("GPUS_ALL_REGIONS").is_some_and(|quota| quota.limit < 1.0)
    }

    /// Returns the limit that has no room for a machine now.
    pub(super) fn lacks_room(&self, need: &Need<'_>) -> Option<Short> {
        self.first(need, Of::Rest, |_, amount| amount)
    }

    fn first(&self, need: &Need<'_>, of: Of, amount: impl Fn(&str, f64) -> f64) -> Option<Short> {
        let nowhere = Limits::default();
        let region = self.regions.get(need.region).unwrap_or(&nowhere);
        let shape = need.shape;
        let gpus = f64::from(shape.gpu_count());
        let vcpus = f64::from(shape.vcpus);
        let short = |limits: &Limits, metric: &str, wanted: f64, at: Option<&str>| {
            let quota = limits.0.get(metric)?;
            let has = if of == Of::Limit { quota.limit } else { quota.limit - quota.usage };
            (has < amount(metric, wanted)).then(|| Short {
                metric: metric.to_owned(),
                region: at.map(str::to_owned),
                limit: quota.limit,
                usage: quota.usage,
            })
        };
        let here = |metric: &str, wanted: f64| short(region, metric, wanted, Some(need.region));
        // Spot has a limit of its own; where that is 0 the usual one counts.
        let either = |metric: &str, wanted: f64| {
            let own = format!("PREEMPTIBLE_{metric}");
            let has_own = region.0.get(&own).is_some_and(|quota| quota.limit > 0.0);
            let unknown = !region.0.contains_key(&own);
            match (need.spot, has_own) {
                (true, true) => here(&own, wanted),
                (true, false) if unknown => None,
                _ => here(metric, wanted),
            }
        };
        let over_all = |metric: &str, wanted: f64| short(&self.project, metric, wanted, None);
        let mut found = None;
        if gpus > 0.0 {
            found = over_all("GPUS_ALL_REGIONS", gpus);
            found = found.or_else(|| shape.quota.and_then(|metric| either(metric, gpus)));
        }
        let disk = if shape.boot_disk == "pd-balanced" { "SSD_TOTAL_GB" } else { "HDB_TOTAL_GB" };
        found
            .or_else(|| over_all("CPUS_ALL_REGIONS", vcpus))
            .or_else(|| self.cpus(need, region).and_then(|metric| here(metric, vcpus)))
            .or_else(|| here(disk, f64::from(need.disk_gb)))
            .or_else(|| here("IN_USE_ADDRESSES", 1.0))
            .or_else(|| here("INSTANCES", 1.0))
    }

    /// The metric that vCPUs count against; none where it is not known.
    fn cpus(&self, need: &Need<'_>, region: &Limits) -> Option<&'static str> {
        if need.spot && region.0.get("PREEMPTIBLE_CPUS").is_some_and(|quota| quota.limit > 0.0) {
            return Some("PREEMPTIBLE_CPUS");
        }
        match (need.shape.cards.as_ref(), need.shape.family()) {
            (None, _) => need.shape.quota,
            (Some(_), "n1") => Some("CPUS"),
            (Some(_), "a2") => Some("A2_CPUS"),
            (Some(_), _) => None,
        }
    }
}

/// What limits left out, for one note.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut {
    offers: usize,
    limits: BTreeMap<String, (f64, BTreeSet<String>)>,
}

impl LeftOut {
    /// Counts an offer.
    pub(super) fn count(&mut self, short: Short) {
        self.offers += 1;
        let (limit, regions) = self.limits.entry(short.metric).or_default();
        *limit = short.limit;
        regions.extend(short.region);
    }

    /// Returns the note; none if nothing was left out.
    pub(super) fn note(&self, project: &str) -> Option<String> {
        let limits: Vec<String> = self
            .limits
            .iter()
            .map(|(metric, (limit, regions))| {
                let regions: Vec<&str> = regions.iter().map(String::as_str).collect();
                let place = if regions.is_empty() {
                    "over all regions".to_owned()
                } else {
                    format!("in {}", regions.join(", "))
                };
                format!("{metric} {limit} {place}")
            })
            .collect();
        let word = if self.offers == 1 { "offer" } else { "offers" };
        (self.offers > 0).then(|| {
            format!(
                "{} {word} left out for the project's quota ({}); more can be asked for at \
                 https://console.cloud.google.com/iam-admin/quotas?project={project}",
                self.offers,
                limits.join("; ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::shapes::find;
    use super::*;

    fn limits(rows: &[(&str, f64, f64)]) -> Limits {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(metric, limit, usage)| json!({"metric": metric, "limit": limit, "usage": usage}))
            .collect();
        Limits::new(serde_json::from_value(json!({"quotas": rows})).unwrap())
    }

    fn quotas(project: &[(&str, f64, f64)], region: &[(&str, f64, f64)]) -> Quotas {
        let regions = [("us-central1".to_owned(), limits(region))].into();
        Quotas { project: limits(project), regions }
    }

    fn need(ty: &str, gpus: u32, spot: bool) -> Need<'static> {
        Need { shape: find(ty, gpus).unwrap(), region: "us-central1", spot, disk_gb: 50 }
    }

    fn metric(short: Option<Short>) -> Option<String> {
        short.map(|short| short.metric)
    }

    #[test]
    fn nothing_told_forbids_nothing() {
        let unknown = Quotas::default();
        for spot in [false, true] {
            assert_eq!(unknown.forbids(&need("g2-standard-4", 1, spot)), None);
            assert_eq!(unknown.lacks_room(&need("a3-highgpu-8g", 8, spot)), None);
        }
        for odd in
            [json!({}), json!({"quotas": null}), json!({"quotas": [7, {"metric": "CPUS"}, {"limit": 0}]})]
        {
            assert_eq!(Limits::new(serde_json::from_value(odd).unwrap()), Limits::default());
        }
        assert_eq!(limits(&[("CPUS", -1.0, 0.0)]), Limits::default(), "no limit");
    }

    #[test]
    fn the_limit_over_all_regions_is_looked_at_first() {
        let new = quotas(&[("GPUS_ALL_REGIONS", 0.0, 0.0)], &[("NVIDIA_L4_GPUS", 1.0, 0.0)]);
        let short = new.forbids(&need("g2-standard-4", 1, false)).unwrap();
        assert_eq!((short.metric.as_str(), short.region.as_deref()), ("GPUS_ALL_REGIONS", None));
        assert_eq!(new.forbids(&need("e2-standard-4", 0, false)), None);
        assert!(new.forbids(&need("a3-highgpu-8g", 8, true)).is_some());
    }

    #[test]
    fn spot_has_a_limit_of_its_own_and_falls_back_to_the_usual_one() {
        let l4 = need("g2-standard-4", 1, true);
        let of = |own: f64, usual: f64| {
            quotas(&[], &[("PREEMPTIBLE_NVIDIA_L4_GPUS", own, 0.0), ("NVIDIA_L4_GPUS", usual, 0.0)])
        };
        assert_eq!(of(1.0, 0.0).forbids(&l4), None);
        assert_eq!(of(0.0, 1.0).forbids(&l4), None);
        assert_eq!(metric(of(0.0, 0.0).forbids(&l4)).as_deref(), Some("NVIDIA_L4_GPUS"));
        let four = need("g2-standard-48", 4, true);
        assert_eq!(metric(of(1.0, 8.0).forbids(&four)).as_deref(), Some("PREEMPTIBLE_NVIDIA_L4_GPUS"));
        assert_eq!(quotas(&[], &[("NVIDIA_L4_GPUS", 0.0, 0.0)]).forbids(&l4), None, "its own is not told");
    }

    #[test]
    fn what_is_in_use_counts_at_the_re_check_alone() {
        let used = quotas(&[("CPUS_ALL_REGIONS", 32.0, 30.0)], &[("NVIDIA_L4_GPUS", 1.0, 1.0)]);
        let l4 = need("g2-standard-4", 1, false);
        assert_eq!(used.forbids(&l4), None);
        assert_eq!(
            used.lacks_room(&l4).unwrap().words(),
            "the quota NVIDIA_L4_GPUS of us-central1 is 1, of which 1 are in use"
        );
        assert_eq!(
            metric(used.lacks_room(&need("e2-standard-4", 0, false))).as_deref(),
            Some("CPUS_ALL_REGIONS")
        );
        assert_eq!(used.forbids(&need("e2-standard-32", 0, false)), None, "as its vCPUs may count elsewhere");
    }

    #[test]
    fn each_kind_of_machine_has_its_own_limits() {
        let case = |told: &str, ty: &str, gpus: u32, spot: bool| {
            metric(quotas(&[], &[(told, 0.0, 0.0)]).lacks_room(&need(ty, gpus, spot))).is_some()
        };
        for (told, ty, gpus) in [
            ("N2_CPUS", "n2-standard-2", 0),
            ("N2D_CPUS", "n2d-standard-2", 0),
            ("C3_CPUS", "c3-standard-4", 0),
            ("CPUS", "e2-standard-2", 0),
            ("CPUS", "n1-standard-4", 1),
            ("A2_CPUS", "a2-highgpu-1g", 1),
            ("NVIDIA_T4_GPUS", "n1-standard-4", 1),
            ("SSD_TOTAL_GB", "e2-standard-2", 0),
            ("IN_USE_ADDRESSES", "e2-standard-2", 0),
            ("INSTANCES", "e2-standard-2", 0),
        ] {
            assert!(case(told, ty, gpus, false), "{told} {ty}");
        }
        assert!(case("HDB_TOTAL_GB", "a4-highgpu-8g", 8, true));
        assert!(!case("SSD_TOTAL_GB", "a4-highgpu-8g", 8, true));
        assert!(!case("CPUS", "n2-standard-2", 0, false));
        assert!(!case("CPUS", "g2-standard-4", 1, false));
        assert!(!case("PREEMPTIBLE_CPUS", "n2-standard-2", 0, true), "0 is not counted against");
    }

    #[test]
    fn one_note_for_all() {
        let mut left_out = LeftOut::default();
        assert_eq!(left_out.note("p"), None);
        for region in ["us-east1", "us-central1", "us-central1"] {
            let short = Short {
                metric: "NVIDIA_A100_GPUS".to_owned(),
                region: Some(region.to_owned()),
                limit: 0.0,
                usage: 0.0,
            };
            left_out.count(short);
        }
        let note = left_out.note("my-proj").unwrap();
        assert!(
            note.starts_with(
                "3 offers left out for the project's quota (NVIDIA_A100_GPUS 0 in us-central1, us-east1)"
            ),
            "{note}"
        );
        assert!(note.ends_with("project=my-proj"), "{note}");
    }
}
