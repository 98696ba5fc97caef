//! Records: what is written comes back, what must not be touched is not touched, reading works everywhere.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{at, identity, offer, record, records};
use crate::model::handle::{Resource, ResourceKind};
use crate::model::machine::{MachineName, MachineState};
use crate::state::abandoned::{ABANDONED_VERSION, Abandoned, Watch};
use crate::state::machines::{Entry, Registry};
use crate::state::{Open, StateError};

fn name(text: &str) -> MachineName {
    text.parse().unwrap()
}

fn names(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name().as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_record_comes_back_as_it_was_with_fields_of_later_versions(record in records()) {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::open(folder.path()).unwrap();
        let lock = registry.lock(&record.name).unwrap();
        lock.write(&record).unwrap();
        let read = lock.read().unwrap().unwrap().into_record().unwrap();
        prop_assert_eq!(&read, &record);
        lock.write(&read).unwrap();
        prop_assert_eq!(registry.list().unwrap(), vec![Entry::Record(Box::new(record))]);
    }

    #[test]
    fn any_file_is_survived_and_left_as_it_is(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::open(folder.path()).unwrap();
        let lock = registry.lock(&name("dev")).unwrap();
        let path = folder.path().join("machines/dev.json");
        fs::write(&path, &bytes).unwrap();
        prop_assert!(matches!(lock.read().unwrap(), Some(Entry::Unreadable(_))));
        prop_assert!(lock.write(&record("dev")).is_err());
        prop_assert!(lock.remove().is_err());
        prop_assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn a_torn_record_is_never_taken_for_another(cut in 0_usize..900) {
        let whole = serde_json::to_vec(&record("dev")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("machines")).unwrap();
        fs::write(folder.path().join("machines/dev.json"), &whole[..cut.min(whole.len() - 1)]).unwrap();
        let read = Registry::open(folder.path()).unwrap().read(&name("dev")).unwrap();
        prop_assert!(matches!(read, Some(Entry::Unreadable(torn)) if !torn.newer));
    }
}

#[test]
fn a_newer_record_is_listed_and_never_touched() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let lock = registry.lock(&name("dev")).unwrap();
    let path = folder.path().join("machines/dev.json");
    let newer = json!({"version": 2, "name": "dev", "nodes": []}).to_string();
    fs::write(&path, &newer).unwrap();
    let other = registry.lock(&name("box")).unwrap();
    other.write(&record("box")).unwrap();

    let entries = registry.list().unwrap();
    assert_eq!(names(&entries), ["box", "dev"]);
    assert!(matches!(&entries[1], Entry::Unreadable(unreadable) if unreadable.newer));
    assert!(registry.names_taken().unwrap().contains(&name("dev")));
    assert!(matches!(lock.write(&record("dev")), Err(StateError::Newer(_))));
    assert!(matches!(lock.remove(), Err(StateError::Newer(_))));
    assert!(matches!(Open::resume(lock), Err(StateError::Newer(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);

    registry.lock(&name("dev")).unwrap().forget().unwrap();
    assert_eq!(names(&registry.list().unwrap()), ["box"]);
}

#[test]
fn what_does_not_belong_is_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let lock = registry.lock(&name("dev")).unwrap();
    for file in ["Dev.json", ".dev.json.tmp-1", "dev.wanted", "notes.txt", "..json", "a.json"] {
        fs::write(folder.path().join("machines").join(file), "{}").unwrap();
    }
    assert_eq!(registry.list().unwrap(), []);
    // One machine's record under another's name, as after a copy by hand.
    assert!(lock.write(&record("box")).is_err());
    fs::write(folder.path().join("machines/dev.json"), serde_json::to_vec(&record("box")).unwrap()).unwrap();
    let read = registry.read(&name("dev")).unwrap();
    assert!(matches!(read, Some(Entry::Unreadable(foreign)) if foreign.why.contains("`box`")));
    // A directory in the place of a record hides nothing else.
    fs::create_dir(folder.path().join("machines/disk.json")).unwrap();
    assert_eq!(names(&registry.list().unwrap()), ["dev", "disk"]);
}

#[test]
fn files_are_the_users_alone() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let registry = Registry::open(&state).unwrap();
    registry.check_writable().unwrap();
    let open = Open::start(registry.lock(&name("dev")).unwrap(), record("dev")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("machines")), 0o700);
    assert_eq!(mode(&state.join("machines/dev.json")), 0o600);
    let files = fs::read_dir(state.join("machines")).unwrap().count();
    assert_eq!(files, 2, "the probe is gone, the record and the lock stay");
    open.close().unwrap();
}

#[test]
fn reading_works_where_nothing_can_be_written_or_is_yet() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Registry::open(&folder.path().join("missing/state")).unwrap();
    assert_eq!(missing.list().unwrap(), []);
    assert_eq!(missing.read(&name("dev")).unwrap(), None);
    assert!(!missing.is_held(&name("dev")));
    assert!(!folder.path().join("missing").exists());

    let state = folder.path().join("state");
    let registry = Registry::open(&state).unwrap();
    registry.lock(&name("dev")).unwrap().write(&record("dev")).unwrap();
    let machines = state.join("machines");
    fs::set_permissions(&machines, Permissions::from_mode(0o500)).unwrap();
    assert_eq!(names(&registry.list().unwrap()), ["dev"]);
    assert!(!registry.is_held(&name("dev")));
    // Root writes everywhere.
    if !nix::unistd::geteuid().is_root() {
        let error = registry.check_writable().unwrap_err().to_string();
        assert!(error.contains(&machines.display().to_string()), "{error}");
    }
    fs::set_permissions(&machines, Permissions::from_mode(0o700)).unwrap();

    // A file where the directory should be, which root cannot write to either.
    let blocked = folder.path().join("blocked");
    fs::create_dir(&blocked).unwrap();
    fs::write(blocked.join("machines"), "").unwrap();
    let registry = Registry::open(&blocked).unwrap();
    assert!(registry.check_writable().is_err());
    assert!(registry.lock(&name("dev")).is_err());
}

#[test]
fn the_journal_keeps_what_was_made_even_when_the_disk_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let open = Open::start(registry.lock(&name("dev")).unwrap(), record("dev")).unwrap();
    let claim = open.record().attempts[0].claim;
    let thing = |kind, id: &str| Resource { kind, id: id.to_owned(), data: serde_json::Map::new() };
    open.made(claim, &thing(ResourceKind::Key, "k1")).unwrap();
    open.made(claim, &thing(ResourceKind::Key, "k1")).unwrap();
    open.made(claim, &thing(ResourceKind::Machine, "m1")).unwrap();
    let on_disk = registry.read(&name("dev")).unwrap().unwrap().into_record().unwrap();
    assert_eq!(on_disk, open.record());
    assert_eq!(on_disk.attempts[0].side.len(), 1);
    assert_eq!(on_disk.attempts[0].handle.as_ref().unwrap().id, "m1");

    let path = folder.path().join("machines/dev.json");
    fs::write(&path, "spoilt").unwrap();
    assert!(open.made(claim, &thing(ResourceKind::Machine, "m2")).is_err());
    assert_eq!(open.record().attempts[0].handle.as_ref().unwrap().id, "m2");
    assert_eq!(fs::read_to_string(&path).unwrap(), "spoilt");
    assert!(open.close().is_err());
}

#[test]
fn work_goes_on_from_the_record_and_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let none = Open::resume(registry.lock(&name("dev")).unwrap());
    assert!(matches!(none, Err(StateError::NoRecord(_))));
    drop(Open::start(registry.lock(&name("dev")).unwrap(), record("dev")).unwrap());
    let open = Open::resume(registry.lock(&name("dev")).unwrap()).unwrap();
    open.update(|record| record.state = MachineState::Deleting).unwrap();
    drop(open);
    let open = Open::resume(registry.lock(&name("dev")).unwrap()).unwrap();
    assert_eq!(open.record().state, MachineState::Deleting);
    registry.ask(&name("dev")).unwrap();
    assert!(open.is_wanted());
    open.close().unwrap();
    let lock = registry.lock(&name("dev")).unwrap();
    assert!(!lock.is_wanted());
    assert_eq!(registry.list().unwrap(), []);
}

#[test]
fn abandoned_claims_are_looked_for_until_their_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let watch = Watch::open(&state).unwrap();
    assert_eq!(watch.list(at(0)).unwrap(), []);
    let abandoned = |claim: &str, since: i64, until: i64| Abandoned {
        version: ABANDONED_VERSION,
        claim: claim.parse().unwrap(),
        name: name("dev"),
        installation: "team-ci".parse().unwrap(),
        account: "runpod/default".parse().unwrap(),
        identity: identity(),
        offer: offer(),
        since: at(since),
        until: at(until),
        unknown: [("later".to_owned(), Value::from(1))].into(),
    };
    let late = [abandoned("00000000000000aa", 50, 200)];
    let early = abandoned("00000000000000bb", 10, 100);
    watch.add(&late[0]).unwrap();
    watch.add(&early).unwrap();
    let odd = state.join("abandoned/00000000000000cc.json");
    fs::write(&odd, "{").unwrap();
    let newer = state.join("abandoned/00000000000000dd.json");
    let value = json!({"version": ABANDONED_VERSION + 1, "until": "1970-01-01T00:00:00Z"});
    fs::write(&newer, value.to_string()).unwrap();
    assert_eq!(watch.list(at(60)).unwrap(), [early, late[0].clone()]);
    assert_eq!(watch.list(at(100)).unwrap(), late);
    assert_eq!(watch.list(at(60)).unwrap(), late, "the expired one was dropped");
    watch.remove(late[0].claim).unwrap();
    watch.remove(late[0].claim).unwrap();
    assert_eq!(watch.list(at(60)).unwrap(), []);
    assert!(odd.exists() && newer.exists());
}

#[test]
fn fields_of_later_versions_stay_at_any_depth() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    drop(Open::start(registry.lock(&name("dev")).unwrap(), record("dev")).unwrap());
    let path = folder.path().join("machines/dev.json");
    let read = || serde_json::from_slice::<Value>(&fs::read(&path).unwrap()).unwrap();
    let mut value = read();
    value["attempts"][0]["offer"]["price_parts"]["licence"] = json!(0.5);
    value["attempts"][0]["identity"]["region"] = json!("eu");
    value["later"] = json!({"a": [1, 2]});
    fs::write(&path, value.to_string()).unwrap();
    let open = Open::resume(registry.lock(&name("dev")).unwrap()).unwrap();
    open.update(|record| record.message = Some("changed".to_owned())).unwrap();
    value["message"] = json!("changed");
    assert_eq!(read(), value);
    drop(open);
    let lock = registry.lock(&name("dev")).unwrap();
    assert!(matches!(Open::start(lock, record("dev")), Err(StateError::Taken(_))));
}
