//! The switches of accounts.

use std::fs;
use std::sync::Mutex;

use crate::model::account::AccountId;
use crate::model::want::{Kind, TypeWant, Want};
use crate::state::switches::{Board, Side, Switch};

fn id(text: &str) -> AccountId {
    text.parse().unwrap()
}

fn board() -> (tempfile::TempDir, Board) {
    let folder = tempfile::tempdir().unwrap();
    let board = Board::open(&folder.path().join("state")).unwrap();
    (folder, board)
}

#[test]
fn both_are_on_until_one_is_switched_off() {
    let (folder, board) = board();
    assert_eq!(board.read().unwrap().of(&id("vast/lab")), Switch::ON);
    assert!(!folder.path().join("state").exists(), "reading made something");
    let changes = Mutex::new(Vec::new());
    let note = |account: &AccountId, side: Side| changes.lock().unwrap().push((account.to_string(), side));
    let lab = [id("vast/lab"), id("vast/default")];
    board.turn(&lab[..1], Side::Cpu, false, note).unwrap();
    board.turn(&lab, Side::Both, false, note).unwrap();
    board.turn(&lab, Side::Both, false, note).unwrap();
    board.turn(&lab[..1], Side::Gpu, true, note).unwrap();
    let expected = [
        ("vast/lab".to_owned(), Side::Cpu),
        ("vast/lab".to_owned(), Side::Gpu),
        ("vast/default".to_owned(), Side::Both),
        ("vast/lab".to_owned(), Side::Gpu),
    ];
    assert_eq!(*changes.lock().unwrap(), expected);
    let now = board.read().unwrap();
    assert_eq!(now.of(&lab[0]), Switch { gpu: true, cpu: false });
    assert_eq!(now.of(&lab[1]), Switch { gpu: false, cpu: false });
    assert_eq!(now.of(&id("runpod")), Switch::ON);
    board.forget(&lab[1]).unwrap();
    board.forget(&lab[1]).unwrap();
    assert_eq!(board.read().unwrap().of(&lab[1]), Switch::ON);
}

#[test]
fn what_a_switch_lets_through() {
    let cpu_off = Switch { gpu: true, cpu: false };
    let gpu_off = Switch { gpu: false, cpu: true };
    let want = |kind| Want::new(kind, 50);
    let gpus = want(Kind::Gpus(vec!["RTX4090".parse().unwrap()]));
    let types = want(Kind::Types(vec![TypeWant { name: "x".to_owned(), count: None }]));
    assert!(cpu_off.serves(&gpus) && !gpu_off.serves(&gpus));
    assert!(!cpu_off.serves(&want(Kind::CpuOnly)) && gpu_off.serves(&want(Kind::CpuOnly)));
    assert!(cpu_off.serves(&types) && gpu_off.serves(&types));
    assert!(!Switch { gpu: false, cpu: false }.serves(&types));
    assert!(cpu_off.admits(1) && !cpu_off.admits(0) && gpu_off.admits(0) && !gpu_off.admits(8));
}

#[test]
fn what_cannot_be_read_is_told_and_left() {
    let (folder, board) = board();
    board.turn(&[id("vast/lab")], Side::Both, false, |_, _| ()).unwrap();
    let path = folder.path().join("state/switches.json");
    let good = fs::read_to_string(&path).unwrap();
    for bad in [
        "",
        "{",
        "{\"version\": 2, \"accounts\": {}}",
        "[]",
        "{\"version\":1,\"accounts\":{\"a\":{\"gpu\":1}}}",
    ] {
        fs::write(&path, bad).unwrap();
        let error = board.read().unwrap_err().to_string();
        assert!(error.contains("switches.json"), "{error}");
        assert!(board.turn(&[id("vast/lab")], Side::Both, true, |_, _| panic!("it changed")).is_err());
        assert!(board.forget(&id("vast/lab")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
    // Fields of a later version of the same format stay.
    let more = good
        .replace("\"version\": 1", "\"version\": 1, \"more\": [1]")
        .replace("\"gpu\"", "\"later\": 7, \"gpu\"");
    fs::write(&path, more).unwrap();
    board.turn(&[id("vast/lab")], Side::Gpu, true, |_, _| ()).unwrap();
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept.contains("\"more\"") && kept.contains("\"later\": 7"), "{kept}");
}

#[test]
fn many_writers_lose_nothing() {
    let (_folder, board) = board();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let board = board.clone();
            scope.spawn(move || {
                for n in 0..6 {
                    let account = id(&format!("vast/w{writer}-{n}"));
                    board.turn(&[account], Side::Gpu, false, |_, _| ()).unwrap();
                }
            });
        }
    });
    assert_eq!(board.read().unwrap().accounts().count(), 48);
}
