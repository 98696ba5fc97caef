//! How our things are told from others': labels on machine and managed disk, and what a handle carries.
//!
//! Keys and values of labels are kept to `a-z 0-9 - _`, at most 63 (no rule is published; github.com/dstackai/dstack keeps
//! to the same).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::host_key::{self, HostKey};
use crate::cloud::HostKeys;
use crate::model::handle::{Handle, ResourceKind};
use crate::model::mark::Mark;

/// In a handle's data: the project it is in.
const PROJECT: &str = "project";
/// In a handle's data: the region of the project.
const REGION: &str = "region";
/// In a handle's data: the operation of the create.
const OPERATION: &str = "operation";
/// In a handle's data: the mark of the machine in its one-line form.
const MARK: &str = "mark";
/// In a handle's data: the machine's name at Nebius.
const NAME: &str = "name";
/// In a handle's data: the public host key that was put on the machine.
const HOST_KEY: &str = "host_key";
/// In a handle's data: what it is, where that is not a machine.
const KIND: &str = "kind";

/// Returns the labels of machine and disk.
pub(super) fn labels(mark: &Mark, host_key: Option<&HostKey>) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> =
        mark.labels().into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    if let Some(value) = host_key.and_then(|key| host_key::label(&key.public)) {
        labels.insert(host_key::LABEL.to_owned(), value);
    }
    labels
}

/// Reads the mark in labels; none if they are not ours.
pub(super) fn read_labels(labels: &BTreeMap<String, String>) -> Option<Mark> {
    Mark::from_labels(|name| labels.get(name).map(String::as_str))
}

/// Whether labels are those of the attempt with this mark.
pub(super) fn is_of(labels: &BTreeMap<String, String>, mark: &Mark) -> bool {
    read_labels(labels).is_some_and(|found| {
        found.claim == mark.claim && found.installation == mark.installation && found.account == mark.account
    })
}

/// The names to try for a machine, the second when the first is taken. They decide nothing.
pub(super) fn names(mark: &Mark) -> [String; 2] {
    [mark.cloud_name(), format!("gpuprov-{}-{}", mark.name, &mark.claim.to_string()[..8])]
}

/// The key under which Nebius makes at most one machine however often it is asked: the claim is new for every attempt. A
/// second name is a request of its own.
pub(super) fn idempotency_key(mark: &Mark, attempt: usize) -> String {
    format!("gpuprov-{}-{}-{attempt}", mark.installation, mark.claim)
}

/// What the handle of a machine carries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carried<'a> {
    pub(super) project: &'a str,
    pub(super) region: &'a str,
    pub(super) operation: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) mark: Option<&'a Mark>,
    pub(super) host_key: Option<&'a str>,
}

impl Carried<'_> {
    /// Returns it in the form of a handle's data.
    pub(super) fn data(&self) -> Map<String, Value> {
        let text = |key: &str, value: Option<String>| {
            value.filter(|value| !value.is_empty()).map(|value| (key.to_owned(), Value::from(value)))
        };
        [
            text(PROJECT, Some(self.project.to_owned())),
            text(REGION, Some(self.region.to_owned())),
            text(OPERATION, self.operation.map(str::to_owned)),
            text(NAME, Some(self.name.to_owned())),
            text(MARK, self.mark.map(Mark::to_text)),
            text(HOST_KEY, self.host_key.map(str::to_owned)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Returns the handle of a disk that is left without its machine.
pub(super) fn disk(id: &str, project: &str) -> Handle {
    let data = [(KIND, ResourceKind::Disk.as_str()), (PROJECT, project)];
    let data = data.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect();
    Handle { data, ..Handle::new(id) }
}

/// Returns what a handle stands for.
pub(super) fn kind_of(handle: &Handle) -> ResourceKind {
    match text(handle, KIND) {
        Some(word) if word == ResourceKind::Disk.as_str() => ResourceKind::Disk,
        _ => ResourceKind::Machine,
    }
}

/// Returns the project that a handle names.
pub(super) fn project_of(handle: &Handle) -> Option<&str> {
    text(handle, PROJECT)
}

/// Returns the region that a handle names.
pub(super) fn region_of(handle: &Handle) -> Option<&str> {
    text(handle, REGION)
}

/// Returns the operation that made the machine.
pub(super) fn operation_of(handle: &Handle) -> Option<&str> {
    text(handle, OPERATION)
}

/// Returns the mark of the machine that a handle stands for.
pub(super) fn mark_of(handle: &Handle) -> Option<Mark> {
    text(handle, MARK).and_then(Mark::from_text)
}

/// Returns what is known of the machine's host key: the key itself from the handle, else the fingerprint in the label.
pub(super) fn host_keys(handle: Option<&Handle>, labels: &BTreeMap<String, String>) -> HostKeys {
    if let Some(key) = handle.and_then(|handle| text(handle, HOST_KEY)).filter(|key| host_key::is_public(key))
    {
        return HostKeys::Keys(vec![key.to_owned()]);
    }
    match labels.get(host_key::LABEL).and_then(|label| host_key::fingerprint(label)) {
        Some(fingerprint) => HostKeys::Fingerprints(vec![fingerprint]),
        None => HostKeys::Unknown,
    }
}

fn text<'a>(handle: &'a Handle, key: &str) -> Option<&'a str> {
    handle.data.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Mark {
        Mark::from_text("v1:team-ci-7:lab:dev:00ff00ff00ff00ff:1800000000:ana").unwrap()
    }

    #[test]
    fn labels_fit_and_are_read_back() {
        let key = HostKey::random().unwrap();
        let labels = labels(&mark(), Some(&key));
        assert_eq!(labels.len(), 8);
        for (name, value) in &labels {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
            assert!(
                name.len() <= 63
                    && name.starts_with(|c: char| c.is_ascii_lowercase())
                    && name.chars().all(fits)
            );
            assert!(value.len() <= 63 && value.chars().all(fits), "{name}={value}");
        }
        assert_eq!(read_labels(&labels), Some(mark()));
        assert!(is_of(&labels, &mark()));
        assert!(!is_of(&labels, &Mark { account: "other".to_owned(), ..mark() }));
        assert!(!is_of(&BTreeMap::new(), &mark()));
        let HostKeys::Fingerprints(found) = host_keys(None, &labels) else { panic!("no fingerprint") };
        assert!(found[0].starts_with("SHA256:"));
    }

    #[test]
    fn handles_carry_what_finds_all_of_it() {
        let key = HostKey::random().unwrap();
        let carried = Carried {
            project: "project-e00a",
            region: "eu-north1",
            operation: Some("computeoperation-e00o"),
            name: "gpuprov-dev-00ff00",
            mark: Some(&mark()),
            host_key: Some(&key.public),
        };
        let handle = Handle { data: carried.data(), ..Handle::new("computeinstance-e00i") };
        assert_eq!(kind_of(&handle), ResourceKind::Machine);
        assert_eq!(
            (project_of(&handle), operation_of(&handle)),
            (Some("project-e00a"), Some("computeoperation-e00o"))
        );
        assert_eq!(mark_of(&handle), Some(mark()));
        assert_eq!(host_keys(Some(&handle), &BTreeMap::new()), HostKeys::Keys(vec![key.public]));
        let disk = disk("computedisk-e00d", "project-e00a");
        assert_eq!(
            (kind_of(&disk), project_of(&disk), mark_of(&disk)),
            (ResourceKind::Disk, Some("project-e00a"), None)
        );
        // The stored format.
        let plain = Carried {
            project: "project-e00a",
            region: "eu-north1",
            name: "n",
            mark: Some(&mark()),
            ..Carried::default()
        };
        assert_eq!(
            serde_json::to_string(&Handle { data: plain.data(), ..Handle::new("computeinstance-1") })
                .unwrap(),
            r#"{"id":"computeinstance-1","data":{"project":"project-e00a","region":"eu-north1","name":"n","mark":"v1:team-ci-7:lab:dev:00ff00ff00ff00ff:1800000000:ana"}}"#
        );
    }

    #[test]
    fn a_handle_whose_host_key_is_none_falls_back() {
        let data = [("host_key", "ssh-ed25519 AAAA\nHost *")];
        let data = data.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect();
        let handle = Handle { data, ..Handle::new("x") };
        assert_eq!(host_keys(Some(&handle), &BTreeMap::new()), HostKeys::Unknown);
    }

    #[test]
    fn one_key_for_one_request() {
        let [first, second] = names(&mark());
        assert_ne!(first, second);
        assert!(first.len() < second.len());
        assert_ne!(idempotency_key(&mark(), 0), idempotency_key(&mark(), 1));
        let key = idempotency_key(&mark(), 0);
        assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
    }
}
