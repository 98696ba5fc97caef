//! The audit log.

use std::fs;
use std::io::Write;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::at;
use crate::model::money::Usd;
use crate::state::audit::{Audit, AuditEntry, Author, machine_costs, totals};

fn entry(second: i64, action: &str) -> AuditEntry {
    let author = Author { user: "ana".to_owned(), host: "desk".to_owned() };
    AuditEntry::new(at(second), &author, action, "created")
}

#[test]
fn a_line_is_the_stored_format() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path()).unwrap();
    assert_eq!(audit.read(None).unwrap().entries, []);
    let full = AuditEntry {
        account: Some("runpod/default".to_owned()),
        claim: Some("00ff00ff00ff00ff".parse().unwrap()),
        price_per_hour: Some(Usd::from_micros(346_850)),
        ..entry(0, "provision")
    };
    audit.append(&full).unwrap();
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    assert_eq!(text.matches('\n').count(), 1);
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({
            "version": 1, "time": "1970-01-01T00:00:00Z", "user": "ana", "host": "desk",
            "account": "runpod/default", "owner": null, "action": "provision", "name": null,
            "claim": "00ff00ff00ff00ff", "instance_type": null, "gpu": null, "gpu_count": null, "spot": null,
            "price_per_hour": 0.34685, "created_at": null, "cost": null, "outcome": "created"
        })
    );
    assert_eq!(audit.read(None).unwrap().entries, [full]);
}

#[test]
fn half_a_line_spoils_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path()).unwrap();
    audit.append(&entry(1, "provision")).unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"time\":\"1970-01-01T00:").unwrap();
    audit.append(&entry(2, "rm")).unwrap();
    file.write_all("{\"time\":\"1970-01-01T00:00:03Z\",\"user\":\"ana\",\"host\":\"\",\"action\":\"later\",\"outcome\":\"new word\",\"more\":1}\n\n\u{0}\u{ff}\n".as_bytes()).unwrap();
    let history = audit.read(None).unwrap();
    let actions: Vec<&str> = history.entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!((actions, history.unreadable), (vec!["provision", "rm", "later"], 2));
    assert_eq!(audit.read(Some(at(2))).unwrap().entries.len(), 2);
}

#[test]
fn many_writers_lose_and_mix_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let audit = Audit::open(folder.path()).unwrap();
            scope.spawn(move || {
                for n in 0..12 {
                    audit.append(&entry(writer * 100 + n, &"x".repeat(500))).unwrap();
                }
            });
        }
    });
    let history = Audit::open(folder.path()).unwrap().read(None).unwrap();
    assert_eq!((history.entries.len(), history.unreadable), (96, 0));
}

#[test]
fn files_put_aside_are_read_first() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path()).unwrap();
    for (second, aside) in [(1, "audit.jsonl.10"), (2, "audit.jsonl.2"), (3, "audit.jsonl.1")] {
        audit.append(&entry(second, "rm")).unwrap();
        fs::rename(folder.path().join("audit.jsonl"), folder.path().join(aside)).unwrap();
    }
    audit.append(&entry(4, "rm")).unwrap();
    fs::write(folder.path().join("audit.jsonl.bak"), "not ours").unwrap();
    let history = audit.read(None).unwrap();
    let seconds: Vec<i64> = history.entries.iter().map(|entry| entry.time.as_second()).collect();
    assert_eq!((seconds, history.unreadable), (vec![1, 2, 3, 4], 0));
}

#[test]
fn costs_add_up_by_account_and_owner() {
    let cost = |account: &str, owner: Option<&str>, micros| AuditEntry {
        account: Some(account.to_owned()),
        owner: owner.map(str::to_owned),
        cost: Some(Usd::from_micros(micros)),
        ..entry(0, "rm")
    };
    let entries = [
        cost("vast/lab", None, 5),
        cost("runpod/default", Some("ana"), 1),
        cost("runpod/default", Some("bo"), 2),
        cost("runpod/default", Some("ana"), 10),
        entry(0, "provision"),
    ];
    let sums: Vec<(Option<String>, i64)> =
        totals(&entries).into_iter().map(|total| (total.owner, total.cost.micros())).collect();
    assert_eq!(sums, [(Some("ana".to_owned()), 11), (Some("bo".to_owned()), 2), (None, 5)]);
}

#[test]
fn a_machine_that_took_two_removals_cost_once() {
    let removal = |second, micros, outcome: &str| AuditEntry {
        account: Some("vast/lab".to_owned()),
        name: Some("dev".to_owned()),
        claim: Some("00ff00ff00ff00ff".parse().unwrap()),
        cost: Some(Usd::from_micros(micros)),
        outcome: outcome.to_owned(),
        ..entry(second, "remove")
    };
    let entries = [removal(1, 5, "left"), entry(2, "provision"), removal(3, 9, "removed")];
    let costs = machine_costs(&entries);
    assert_eq!((costs.len(), costs[0].cost.micros(), costs[0].name.as_deref()), (1, 9, Some("dev")));
    assert_eq!(totals(&entries)[0].cost.micros(), 9);
}

#[test]
fn long_files_are_put_aside_and_no_line_is_lost_by_many_writers_and_readers() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path()).unwrap().with_length(4000);
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let audit = audit.clone();
            scope.spawn(move || {
                let mut seen = 0;
                for n in 0..15 {
                    audit.append(&entry(writer * 100 + n, &"x".repeat(300))).unwrap();
                    let now = audit.read(None).unwrap().entries.len();
                    assert!(now > seen, "a reader saw {now} lines after {seen}");
                    seen = now;
                }
            });
        }
    });
    let history = audit.read(None).unwrap();
    assert_eq!((history.entries.len(), history.unreadable), (90, 0));
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 6, "{files:?}");
    for path in files {
        assert!(fs::metadata(&path).unwrap().len() < 4600, "{}", path.display());
    }
    // Each writer's lines are in their order, over all files.
    for writer in 0..6 {
        let own = history.entries.iter().map(|entry| entry.time.as_second());
        let own: Vec<i64> = own.filter(|second| second / 100 == writer).collect();
        assert!(own.is_sorted() && own.len() == 15, "{own:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_file_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("audit.jsonl"), &bytes).unwrap();
        let audit = Audit::open(folder.path()).unwrap();
        let before = audit.read(None).unwrap().entries.len();
        audit.append(&entry(7, "rm")).unwrap();
        let after = audit.read(None).unwrap().entries;
        prop_assert_eq!(after.len(), before + 1);
        prop_assert_eq!(after.last(), Some(&entry(7, "rm")));
    }
}
