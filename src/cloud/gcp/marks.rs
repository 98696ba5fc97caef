//! How our things are told from others': labels on machines and disks, the description of firewall rules, and what a handle
//! carries so that all of them are found again.
//!
//! A handle's id is the number that Google gave: a machine of the same name that was made later is another one.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::errors::Attempt;
use super::names::{is_name, is_zone};
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::model::mark::{Claim, Mark};

/// In a handle's data: what it is, where that is not a machine.
const KIND: &str = "kind";

/// The filter for lists: everything that has the label of our marks' format. The form for "the label exists" is the documented
/// one; whether an unquoted number matches a label's text is not written anywhere.
pub(super) const OURS: &str = "labels.gpuprov:*";

/// What is known of a machine or disk beside its number. A stored format: every field is optional when it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) project: String,
    pub(super) zone: String,
    pub(super) name: String,
    /// The operation of the create, by its name.
    pub(super) operation: Option<String>,
    pub(super) mark: Option<Mark>,
    pub(super) instance_type: Option<String>,
    /// The GPU in our spelling.
    pub(super) gpu: Option<String>,
    pub(super) spot: Option<bool>,
}

impl Known {
    /// Reads a handle's data; none if it does not say where the thing is.
    pub(super) fn read(data: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Known {
            project: text("project")?,
            zone: text("zone").filter(|zone| is_zone(zone))?,
            name: text("name").filter(|name| is_name(name))?,
            operation: text("operation").filter(|name| is_name(name)),
            mark: text("mark").and_then(|mark| Mark::from_text(&mark)),
            instance_type: text("type"),
            gpu: text("gpu"),
            spot: data.get("spot").and_then(Value::as_bool),
        })
    }

    /// Writes a handle's data.
    pub(super) fn data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                data.insert(name.to_owned(), value);
            }
        };
        put("project", Some(self.project.clone().into()));
        put("zone", Some(self.zone.clone().into()));
        put("name", Some(self.name.clone().into()));
        put("operation", self.operation.clone().map(Value::from));
        put("mark", self.mark.as_ref().map(|mark| mark.to_text().into()));
        put("type", self.instance_type.clone().map(Value::from));
        put("gpu", self.gpu.clone().map(Value::from));
        put("spot", self.spot.map(Value::from));
        data
    }

    /// Returns what was asked for, for the errors of its operation.
    pub(super) fn attempt(&self) -> Attempt {
        Attempt {
            instance_type: self.instance_type.clone().unwrap_or_default(),
            zone: self.zone.clone(),
            spot: self.spot.unwrap_or_default(),
            gpu: self.gpu.clone(),
        }
    }
}

/// Returns the network tag that ties a machine to its firewall rules, which is the first rule's name too.
pub(super) fn tag(claim: Claim) -> String {
    format!("gpuprov-{claim}")
}

/// Returns the name of the rule number `place` (from 0) of an attempt.
pub(super) fn rule_name(claim: Claim, place: usize) -> String {
    if place == 0 { tag(claim) } else { format!("{}-{}", tag(claim), place + 1) }
}

/// Whether a rule of this name belongs to the attempt.
pub(super) fn is_rule_of(name: &str, claim: Claim) -> bool {
    let rest = name.strip_prefix(&tag(claim));
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(is_count))
}

fn is_count(text: &str) -> bool {
    (1..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the labels of a mark, as a create takes them.
pub(super) fn labels(mark: &Mark) -> Value {
    Value::Object(mark.labels().into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect())
}

/// Reads the mark in labels; none if they are not ours.
pub(super) fn read_labels(labels: Option<&BTreeMap<String, Value>>) -> Option<Mark> {
    let labels = labels?;
    Mark::from_labels(|name| labels.get(name).and_then(Value::as_str))
}

/// Returns a firewall rule as a side resource.
pub(super) fn rule(name: &str, project: &str) -> Resource {
    let data = [(KIND, ResourceKind::Rule.as_str()), ("project", project)];
    let data = data.map(|(key, value)| (key.to_owned(), Value::from(value)));
    Resource { kind: ResourceKind::Rule, id: name.to_owned(), data: Map::from_iter(data) }
}

/// Returns the data of a disk's handle.
pub(super) fn disk_data(known: &Known) -> Map<String, Value> {
    let mut data = known.data();
    data.insert(KIND.to_owned(), ResourceKind::Disk.as_str().into());
    data
}

/// Returns what a handle stands for.
pub(super) fn kind_of(handle: &Handle) -> ResourceKind {
    let word = handle.data.get(KIND).and_then(Value::as_str);
    let kinds = [ResourceKind::Rule, ResourceKind::Disk];
    kinds.into_iter().find(|kind| word == Some(kind.as_str())).unwrap_or(ResourceKind::Machine)
}

/// Returns the names of the firewall rules that go with a machine.
pub(super) fn rules_of(handle: &Handle) -> Vec<String> {
    let rules = handle.side.iter().filter(|side| side.kind == ResourceKind::Rule);
    rules.map(|side| side.id.clone()).filter(|name| is_name(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Mark {
        Mark::from_text("v1:team-ci-7:lab:dev:00ff00ff00ff00ff:1796000000:ana").unwrap()
    }

    #[test]
    fn handles_carry_what_finds_all_of_it() {
        let known = Known {
            project: "lab-1".to_owned(),
            zone: "us-central1-a".to_owned(),
            name: "gpuprov-dev-00ff00".to_owned(),
            operation: Some("operation-1".to_owned()),
            mark: Some(mark()),
            instance_type: Some("g2-standard-4".to_owned()),
            gpu: Some("L4".to_owned()),
            spot: Some(true),
        };
        assert_eq!(Known::read(&known.data()), Some(known.clone()));
        // The stored format.
        assert_eq!(
            serde_json::to_string(&known.data()).unwrap(),
            r#"{"project":"lab-1","zone":"us-central1-a","name":"gpuprov-dev-00ff00","operation":"operation-1","mark":"v1:team-ci-7:lab:dev:00ff00ff00ff00ff:1796000000:ana","type":"g2-standard-4","gpu":"L4","spot":true}"#
        );
        let handle =
            Handle { data: known.data(), side: vec![rule("gpuprov-1", "lab-1")], ..Handle::new("7240") };
        assert_eq!(
            (kind_of(&handle), rules_of(&handle)),
            (ResourceKind::Machine, vec!["gpuprov-1".to_owned()])
        );
        let disk = Handle { data: disk_data(&known), ..Handle::new("7241") };
        assert_eq!(kind_of(&disk), ResourceKind::Disk);
        let rule = rule("gpuprov-1", "lab-1");
        assert_eq!(kind_of(&Handle { data: rule.data, ..Handle::new(rule.id) }), ResourceKind::Rule);
    }

    #[test]
    fn a_handle_that_could_address_something_else_says_nothing() {
        for (key, value) in [("zone", "../x"), ("zone", ""), ("name", "a/b"), ("name", "Dev")] {
            let mut data = Known {
                project: "p".to_owned(),
                zone: "us-central1-a".to_owned(),
                name: "gpuprov-dev-00ff00".to_owned(),
                ..Known::default()
            }
            .data();
            data.insert(key.to_owned(), value.into());
            assert_eq!(Known::read(&data), None, "{key} {value}");
        }
    }

    #[test]
    fn labels_and_rules_are_read_back() {
        let Value::Object(written) = labels(&mark()) else { panic!() };
        let read: BTreeMap<String, Value> = written.into_iter().collect();
        assert_eq!(read_labels(Some(&read)), Some(mark()));
        let fits = |text: &str| {
            text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b))
        };
        assert!(read.iter().all(|(key, value)| fits(key) && fits(value.as_str().unwrap())));
        assert_eq!(read_labels(None), None);
        let claim = mark().claim;
        for (name, is) in [
            ("gpuprov-00ff00ff00ff00ff", true),
            ("gpuprov-00ff00ff00ff00ff-2", true),
            ("gpuprov-00ff00ff00ff00ff-x", false),
            ("gpuprov-00ff00ff00ff00ffa", false),
            ("gpuprov-dev-00ff00", false),
        ] {
            assert_eq!(is_rule_of(name, claim), is, "{name}");
        }
        assert_eq!(
            (rule_name(claim, 0), rule_name(claim, 2)),
            (tag(claim), "gpuprov-00ff00ff00ff00ff-3".to_owned())
        );
    }
}
