//! What is found again: lost answers, killed runs, broken records, broken disks, clocks, other processes.

use std::path::PathBuf;
use std::time::Duration;

use gpuprov::sandbox::{Fault, FaultKind, When};
use serde_json::{Value, json};

use crate::support::{Ran, World, ended, finish, until};

pub const DEV: &str = "provision --gpus RTX4090:1 --name dev --cloud-timeout 1s";

pub fn record_path(world: &World, name: &str) -> PathBuf {
    world.state().join(format!("machines/{name}.json"))
}

pub fn audit(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(world.state().join("audit.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn rows(list: &Value) -> Vec<(String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap_or("null").to_owned();
    let row = |row: &Value| (text(&row["name"]), text(&row["state"]), row["recorded"] == true);
    list["machines"].as_array().unwrap().iter().map(row).collect()
}

pub fn row<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["machines"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()
}

/// Leaves a `provision` killed when its create had taken effect and its answer had not come.
pub async fn killed_after_the_create(world: &World, name: &str) {
    let before = world.sandbox.alive().len();
    world.sandbox.add_fault(Fault::on("create_pod", FaultKind::hang(When::After)));
    let mut child = world.start(&DEV.replace("dev", name));
    until("a machine", || world.sandbox.alive().len() > before).await;
    child.start_kill().unwrap();
    ended(child).await;
    world.sandbox.clear_faults();
    world.sandbox.step(Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_appears_90_s_after_its_lost_answer() {
    // What comes next finds and deletes it: the removal of the machine that was had instead, or a provision of any name.
    for next in ["rm dev --yes", "provision --gpus RTX4090:1 --name other", "rm runpod/default:ID --yes"] {
        let world = World::new().await;
        world.sandbox.add_fault(Fault::on("create_pod", FaultKind::AppearLater { ms: 90_000 }));
        let (code, made) = world.json(DEV).await;
        assert_eq!((code, &made["tried"][0]["outcome"]), (0, &json!("unknown")), "{made}");
        assert_eq!(made["tried"][1]["outcome"], "created", "{made}");
        let claims: Vec<PathBuf> = std::fs::read_dir(world.state().join("abandoned"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(claims.len(), 1, "{claims:?}");
        let claim = claims[0].file_stem().unwrap().to_str().unwrap().to_owned();
        assert_eq!(rows(&world.json("ls").await.1).len(), 1);

        world.sandbox.step(Duration::from_secs(91));
        let list = world.json("ls").await.1;
        assert_eq!(rows(&list).len(), 2, "{list}");
        let late = list["machines"].as_array().unwrap().iter().find(|row| row["recorded"] == false).unwrap();
        assert_eq!(late["claim"], claim.as_str());
        assert!(late["message"].as_str().unwrap().contains("turned up"), "{late}");
        assert_eq!(world.sandbox.alive().len(), 2);

        let ran = world.run(&next.replace("ID", late["id"].as_str().unwrap())).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        if next != "rm dev --yes" {
            let login = world.run("ssh dev true").await;
            assert_eq!(login.code, 0, "the machine that was had instead: {login:?}");
        }
        let lost = world
            .sandbox
            .ledger()
            .into_iter()
            .find(|entry| entry.env.get("GPUPROV_MARK").is_some_and(|mark| mark.contains(&claim)));
        assert!(!lost.unwrap().alive, "{next} left it");
        let told = audit(&world).into_iter().any(|line| {
            line["claim"] == claim.as_str() && line["action"] == "remove" && line["outcome"] == "removed"
        });
        assert!(told, "{:?}", audit(&world));
        assert_eq!(world.run("rm --all --yes").await.code, 0);
        world.assert_empty();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_after_a_slow_start_is_not_bought_twice() {
    let world = World::new().await;
    // The call before the create takes as long as the grace: the search must not be over before it begins.
    world.sandbox.add_fault(Fault::on("ssh_keys", FaultKind::Hang { when: When::Before, ms: 1100 }));
    world.sandbox.add_fault(Fault::on("create_pod", FaultKind::Reset { when: When::After }));
    let (code, made) = world.json(DEV).await;
    assert_eq!(code, 0, "{made}");
    assert_eq!(made["tried"].as_array().unwrap().len(), 1, "{made}");
    assert_eq!(world.creates(), 1);
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unconfirmed_removal_ends_in_time() {
    let world = World::new().await;
    world.provision("dev").await;
    world.sandbox.add_fault(Fault::on("get_pod", FaultKind::Reset { when: When::After }).always());
    let begun = std::time::Instant::now();
    let (code, removed) = world.json("rm dev --yes --cloud-timeout 1s").await;
    assert_eq!((code, &removed["failed"][0]["kind"]), (6, &json!("left_running")), "{removed}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    world.sandbox.clear_faults();
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_is_told_from_a_living_one() {
    let world = World::new().await;
    world.sandbox.add_fault(Fault::on("create_pod", FaultKind::hang(When::After)));
    let mut child = world.start(DEV);
    until("a machine", || !world.sandbox.alive().is_empty()).await;
    for words in ["ls", "ls --local"] {
        let list = world.json(words).await.1;
        let row = row(&list, "dev");
        assert_eq!((&row["state"], &row["message"]), (&json!("creating"), &Value::Null), "{words}: {row}");
    }
    let second = world.run(DEV).await;
    assert_eq!(second.code, 2, "{second:?}");
    child.start_kill().unwrap();
    ended(child).await;
    world.sandbox.clear_faults();
    world.sandbox.step(Duration::from_secs(1));
    for words in ["ls", "ls --local"] {
        let list = world.json(words).await.1;
        let row = row(&list, "dev");
        assert!(row["message"].as_str().is_some_and(|words| words.contains("interrupted")), "{words}: {row}");
    }
    assert_eq!(world.json("ls").await.1["machines"][0]["id"], world.sandbox.alive()[0].id.as_str());
    let removed = world.run("rm dev --yes").await;
    assert_eq!(removed.code, 0, "{removed:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_by_the_clouds_own_id() {
    let world = World::new().await;
    killed_after_the_create(&world, "dev").await;
    let id = world.sandbox.alive()[0].id.clone();
    let removed = world.run(&format!("rm runpod/default:{id} --yes")).await;
    assert_eq!(removed.code, 0, "{removed:?}");
    // Its record goes with it.
    assert!(!record_path(&world, "dev").exists());
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_cannot_be_read_are_kept_and_hide_nothing() {
    let world = World::new().await;
    world.provision("good").await;
    world.provision("dev").await;
    let path = record_path(&world, "dev");
    let whole = std::fs::read_to_string(&path).unwrap();
    let newer = whole.replacen("\"version\": 1", "\"version\": 99", 1);
    assert_ne!(newer, whole);
    let cases = [
        (newer.as_str(), "update gpuprov"),
        (&whole[..whole.len() / 2], "cannot be read"),
        ("", "cannot be read"),
    ];
    for (text, why) in cases {
        std::fs::write(&path, text).unwrap();
        let list = world.json("ls").await;
        assert_eq!(list.0, 0);
        let unknown = list.1["machines"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| {
                row["name"] == "dev" && row["recorded"] == true
                    || row["message"].as_str().is_some_and(|words| words.contains(why))
            })
            .unwrap_or_else(|| panic!("{}", list.1));
        assert_eq!(unknown["state"], "unknown", "{unknown}");
        assert!(unknown["message"].as_str().unwrap().contains(why), "{unknown}");
        assert_eq!(row(&list.1, "good")["state"], "running");
        let again = world.run(DEV).await;
        assert_eq!(again.code, 2, "{again:?}");
        let removed = world.run("rm dev --yes").await;
        assert_eq!(removed.code, 6, "{removed:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "it was touched");
        assert_eq!(world.sandbox.alive().len(), 2);
    }
    let all = world.run("rm --all --yes").await;
    assert_eq!(all.code, 6, "{all:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    let forgotten = world.run("rm dev --forget --yes").await;
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    world.assert_empty();
}

/// Runs the program so that it can write no byte to any file, as on a full disk.
async fn on_a_full_disk(world: &World, words: &str) -> Ran {
    finish(limited(world, "ulimit -f 0", words)).await
}

fn limited(world: &World, before: &str, words: &str) -> tokio::process::Command {
    let mut command = world.program("sh");
    // Too large a file is an error then, as a full disk is, and not a signal.
    command.args([
        "-c",
        &format!("trap '' XFSZ; {before}; exec \"$@\""),
        "sh",
        env!("CARGO_BIN_EXE_gpuprov"),
    ]);
    command.args(words.split_whitespace());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_seen_before_the_create_and_does_not_stop_a_removal() {
    let world = World::new().await;
    world.provision("good").await;
    let refused = on_a_full_disk(&world, DEV).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(world.creates(), 1);
    let list = on_a_full_disk(&world, "ls").await;
    assert!(list.code == 0 && list.stdout.contains("good"), "{list:?}");
    let removed = on_a_full_disk(&world, "rm good --yes").await;
    assert_eq!(removed.code, 0, "{removed:?}");
    world.assert_empty();
    assert_eq!(world.json("ls").await.1["machines"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_during_the_create() {
    for (when, kind) in [
        ("its answer comes", FaultKind::Delay { ms: 700 }),
        ("it hangs", FaultKind::Hang { when: When::After, ms: 700 }),
    ] {
        let world = World::new().await;
        world.sandbox.add_fault(Fault::on("create_pod", kind));
        let child = limited(&world, ":", &format!("{DEV} --attempts 1")).spawn().unwrap();
        until("a machine", || !world.sandbox.alive().is_empty()).await;
        let pid = child.id().unwrap().to_string();
        let full = world.program("prlimit").args(["--pid", &pid, "--fsize=0"]).output().await;
        assert!(full.is_ok_and(|output| output.status.success()), "prlimit");
        let ran = ended(child).await;
        if ran.code == 6 {
            assert!(record_path(&world, "dev").exists(), "{when}: {ran:?}");
        } else {
            assert_eq!(ran.code, 1, "{when}: {ran:?}");
            world.assert_empty();
        }
        world.sandbox.step(Duration::from_secs(1));
        let alive: Vec<Value> = world.sandbox.alive().iter().map(|entry| json!(entry.id)).collect();
        let list = world.json("ls").await.1;
        let shown: Vec<Value> =
            list["machines"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
        assert_eq!(shown, alive, "{when}: {list}");
        assert_eq!(world.run("rm --all --yes").await.code, 0);
        world.assert_empty();
    }
}

/// Runs the program where its state directory cannot be written to; none where that cannot be had here.
async fn read_only(world: &World, words: &str) -> Option<Ran> {
    use std::os::unix::fs::PermissionsExt;
    let state = world.state();
    if !nix::unistd::geteuid().is_root() {
        let set = |mode| {
            for folder in [&state, &state.join("machines")] {
                std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
            }
        };
        set(0o500);
        let ran = world.run(words).await;
        set(0o700);
        return Some(ran);
    }
    // Modes do not bind root; a mount that nobody else sees does.
    let mut command = world.program("unshare");
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" || exit 99; exec \"$@\"";
    command.args(["-m", "sh", "-c", script]).arg(&state).arg(env!("CARGO_BIN_EXE_gpuprov"));
    command.args(words.split_whitespace());
    let ran = finish(command).await;
    (ran.code != 99 && !ran.stderr.contains("unshare failed")).then_some(ran)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_state_directory() {
    let world = World::new().await;
    world.provision("good").await;
    let Some(refused) = read_only(&world, DEV).await else {
        eprintln!("skipped: no read-only mount can be made here");
        return;
    };
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(world.creates(), 1);
    let list = read_only(&world, "ls").await.unwrap();
    assert!(list.code == 0 && list.stdout.contains("running"), "{list:?}");
    // Nothing is removed that could not be written down; the machine is named.
    let kept = read_only(&world, "rm good --yes").await.unwrap();
    assert_eq!(kept.code, 6, "{kept:?}");
    assert!(kept.stderr.contains("good"), "{kept:?}");
    assert_eq!(world.run("rm good --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn records_from_the_future() {
    // The clock was a day ahead when they were written.
    let ahead = |world: &World, name: &str| {
        let path = record_path(world, name);
        let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let shift = |value: &mut Value| {
            if let Some(at) = value.as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok()) {
                *value = json!(at + jiff::SignedDuration::from_hours(24));
            }
        };
        shift(&mut record["created_at"]);
        shift(&mut record["machine_at"]);
        shift(&mut record["attempts"][0]["started_at"]);
        std::fs::write(&path, record.to_string()).unwrap();
    };
    let world = World::new().await;
    killed_after_the_create(&world, "dev").await;
    ahead(&world, "dev");
    world.provision("good").await;
    ahead(&world, "good");
    let (code, list) = world.json("ls").await;
    assert_eq!((code, rows(&list).len()), (0, 2), "{list}");
    assert_eq!(row(&list, "good")["state"], "running");
    assert!(row(&list, "good")["age_seconds"].as_i64().is_none_or(|age| age >= 0), "{list}");
    assert!(row(&list, "good")["cost_so_far"].as_f64().is_none_or(|cost| cost >= 0.0), "{list}");
    let removed = world.run("rm dev good --yes").await;
    assert_eq!(removed.code, 0, "{removed:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_for_one_name() {
    let world = World::new().await;
    let (one, two) = tokio::join!(world.run(DEV), world.run(DEV));
    let mut codes = [one.code, two.code];
    codes.sort_unstable();
    assert_eq!(codes, [0, 2], "{one:?} {two:?}");
    assert_eq!((world.creates(), world.sandbox.alive().len()), (1, 1));
    // Two removals at once: one does it, the other finds it done.
    let (one, two) = tokio::join!(world.run("rm dev --yes"), world.run("rm dev --yes"));
    assert_eq!((one.code, two.code), (0, 0), "{one:?} {two:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_at_once() {
    let world = World::new().await;
    let names = ["dev", "dev", "dev", "dev", "one", "two", "three", "four"];
    let lines = names.map(|name| format!("provision --gpus RTX4090:1 --name {name}"));
    let all = futures_util::future::join_all(lines.iter().map(|words| world.run(words))).await;
    let won =
        |name: &str| names.iter().zip(&all).filter(|(other, ran)| **other == name && ran.code == 0).count();
    for name in ["dev", "one", "two", "three", "four"] {
        assert_eq!(won(name), 1, "{name}: {all:?}");
    }
    assert!(all.iter().all(|ran| matches!(ran.code, 0 | 2)), "{all:?}");
    assert_eq!((world.creates(), world.sandbox.alive().len()), (5, 5));
    let list = world.json("ls").await.1;
    assert!(rows(&list).iter().all(|(_, state, recorded)| state == "running" && *recorded), "{list}");
    let lines: [&str; 8] = [
        "rm --all --yes",
        "ls",
        "rm dev --yes --ignore-not-found",
        "ls",
        "rm --all --yes",
        "ls --local",
        "rm one two --yes --ignore-not-found",
        "ls",
    ];
    let all = futures_util::future::join_all(lines.iter().map(|words| world.run(words))).await;
    assert!(all.iter().all(|ran| ran.code == 0), "{all:?}");
    world.assert_empty();
    for line in std::fs::read_to_string(world.state().join("audit.jsonl")).unwrap().lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_machine_that_stays_is_named_beside_the_one_that_is_ready() {
    let world = World::new().await;
    world.sandbox.add_fault(Fault::on("create_pod", FaultKind::AppearLater { ms: 90_000 }));
    assert_eq!(world.run(DEV).await.code, 0);
    let first = world.record("dev").unwrap()["attempts"][0]["handle"]["id"].clone();
    std::fs::remove_file(world.home().join(".ssh/config")).unwrap();
    world.sandbox.step(Duration::from_secs(91));
    world.sandbox.add_fault(Fault::on("delete_pod", FaultKind::status(403)).always());
    let (code, made) =
        world.json("provision --gpus RTX4090:1 --name other --ttl 1h --cloud-timeout 1s").await;
    assert_eq!((code, &made["error"]["kind"]), (6, &json!("left_running")), "{made}");
    let machines = made["machines"].as_array().unwrap();
    assert_eq!(machines.len(), 2, "{made}");
    assert_eq!((&machines[0]["name"], &machines[0]["state"]), (&json!("other"), &json!("running")));
    assert_eq!((&machines[1]["name"], &machines[1]["account"]), (&json!("dev"), &json!("runpod/default")));
    assert!(machines[1]["id"].is_string() && machines[1]["id"] != first, "{made}");
    // What belongs to the machine that is ready is done and told all the same.
    assert!(world.home().join(".ssh/config").exists());
    assert!(made["warnings"].to_string().contains("is to end in"), "{made}");
    world.sandbox.clear_faults();
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    world.assert_empty();
}
