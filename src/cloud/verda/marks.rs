//! How our things are told from others': tags on machines and volumes, whole names of keys and volumes, and what a handle
//! carries so that all of them are found again.

use serde_json::{Map, Value};

use super::wire::{Tag, Volume, told};
use crate::model::handle::{Handle, Resource, ResourceKind};
use crate::model::mark::{Claim, Installation, Mark};

/// In a handle's data: what it is, where that is not a machine.
const KIND: &str = "kind";

/// In a handle's data: the mark of the machine in its one-line form.
const MARK: &str = "mark";

/// Returns the name of everything that belongs to one attempt and needs a name: `gpuprov-INSTALLATION-CLAIM`.
pub(super) fn whole_name(mark: &Mark) -> String {
    format!("gpuprov-{}-{}", mark.installation, mark.claim)
}

/// Reads a name made by [`whole_name`]; none if it is something else.
pub(super) fn read_name(name: &str) -> Option<(Installation, Claim)> {
    let (installation, claim) = name.strip_prefix("gpuprov-")?.rsplit_once('-')?;
    Some((installation.parse().ok()?, claim.parse().ok()?))
}

/// Reads the mark in a list of tags; none if they are not ours.
pub(super) fn read_tags(tags: &[Tag]) -> Option<Mark> {
    Mark::from_labels(|name| {
        let tag = tags.iter().find(|tag| tag.key.as_deref() == Some(name))?;
        tag.value.as_deref()
    })
}

/// Returns the tags of a mark, as a create takes them.
pub(super) fn tags(mark: &Mark) -> Value {
    let tag = |(key, value): (&str, String)| serde_json::json!({"key": key, "value": value});
    mark.labels().into_iter().map(tag).collect()
}

/// Whether a volume is that of the attempt with this mark: by its tags, or by its whole name where it has none of ours.
pub(super) fn is_volume_of(volume: &Volume, mark: &Mark) -> bool {
    let tagged = read_tags(volume.tags.as_deref().unwrap_or_default());
    match tagged {
        Some(found) => {
            found.claim == mark.claim
                && found.installation == mark.installation
                && found.account == mark.account
        }
        None => told(volume.name.as_ref()) == Some(&whole_name(mark)),
    }
}

/// Returns the handle of a machine.
pub(super) fn machine(id: &str, mark: &Mark) -> Handle {
    Handle { data: machine_data(mark), ..Handle::new(id) }
}

/// Returns what the handle of a machine carries.
pub(super) fn machine_data(mark: &Mark) -> Map<String, Value> {
    Map::from_iter([(MARK.to_owned(), Value::from(mark.to_text()))])
}

/// Returns what the handle of a side resource carries.
pub(super) fn side_data(kind: ResourceKind) -> Map<String, Value> {
    Map::from_iter([(KIND.to_owned(), Value::from(kind.as_str()))])
}

/// Returns an ssh key object as a side resource.
pub(super) fn key(id: &str) -> Resource {
    Resource { kind: ResourceKind::Key, id: id.to_owned(), data: side_data(ResourceKind::Key) }
}

/// Returns what a handle stands for.
pub(super) fn kind_of(handle: &Handle) -> ResourceKind {
    let word = handle.data.get(KIND).and_then(Value::as_str);
    let kinds = [ResourceKind::Key, ResourceKind::Disk];
    kinds.into_iter().find(|kind| word == Some(kind.as_str())).unwrap_or(ResourceKind::Machine)
}

/// Returns the mark of the machine that a handle stands for.
pub(super) fn mark_of(handle: &Handle) -> Option<Mark> {
    handle.data.get(MARK).and_then(Value::as_str).and_then(Mark::from_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Mark {
        Mark::from_text("v1:team-ci-7:lab:dev:00ff00ff00ff00ff::ana").unwrap()
    }

    #[test]
    fn names_are_read_back_whole() {
        let name = whole_name(&mark());
        assert_eq!(name, "gpuprov-team-ci-7-00ff00ff00ff00ff");
        assert_eq!(read_name(&name), Some((mark().installation, mark().claim)));
        for other in
            ["", "gpuprov-", "gpuprov-dev-00ff00", "gpuprov-00ff00ff00ff00ff", "x-gpuprov-a-00ff00ff00ff00ff"]
        {
            assert_eq!(read_name(other), None, "{other}");
        }
    }

    #[test]
    fn handles_carry_what_finds_all_of_it() {
        let handle = machine("i-1234", &mark());
        assert_eq!((kind_of(&handle), mark_of(&handle)), (ResourceKind::Machine, Some(mark())));
        let key = key("k-1234");
        let handle = Handle { data: key.data, ..Handle::new(key.id) };
        assert_eq!((kind_of(&handle), mark_of(&handle)), (ResourceKind::Key, None));
        // The stored format.
        assert_eq!(
            serde_json::to_string(&machine("i-1234", &mark())).unwrap(),
            r#"{"id":"i-1234","data":{"mark":"v1:team-ci-7:lab:dev:00ff00ff00ff00ff::ana"}}"#
        );
    }

    #[test]
    fn a_volume_is_ours_by_its_tags_and_without_tags_by_its_whole_name() {
        let tag = |(key, value): (&str, String)| Tag { key: Some(key.to_owned()), value: Some(value) };
        let volume = |name: &str, mark: Option<&Mark>| Volume {
            name: Some(name.to_owned()),
            tags: mark.map(|mark| mark.labels().into_iter().map(tag).collect()),
            ..Volume::default()
        };
        let twin = Mark { account: "other".to_owned(), ..mark() };
        assert!(is_volume_of(&volume("x", Some(&mark())), &mark()));
        assert!(is_volume_of(&volume(&whole_name(&mark()), None), &mark()));
        assert!(!is_volume_of(&volume(&whole_name(&mark()), Some(&twin)), &mark()));
        assert!(!is_volume_of(&volume("gpuprov-dev-00ff00", None), &mark()));
        assert_eq!(tags(&mark()).as_array().unwrap().len(), 6);
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_survived(name in "\\PC{0,40}|gpuprov-[a-z0-9-]{0,60}") {
            if let Some((installation, claim)) = read_name(&name) {
                proptest::prop_assert_eq!(format!("gpuprov-{installation}-{claim}"), name);
            }
        }
    }
}
