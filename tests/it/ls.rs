//! What `ls` shows: records and clouds merged, and nothing dropped because something was silent.

use gpuprov::sandbox::{Fault, FaultKind, PodSeed, Script};
use serde_json::{Value, json};

use crate::support::World;

fn states(list: &Value) -> Vec<(&str, &str)> {
    let machines = list["machines"].as_array().unwrap();
    machines.iter().map(|one| (one["name"].as_str().unwrap(), one["state"].as_str().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_and_clouds_are_merged() {
    let world = World::new().await;
    let (code, empty) = world.json("ls").await;
    assert_eq!((code, &empty["machines"], &empty["error"]), (0, &json!([]), &Value::Null));
    world.provision("one").await;
    world.provision("two").await;
    let key = world.sandbox.runpod_key().to_owned();
    let mark = "v1:somebody:default:theirs:00112233445566aa::bob";
    world.sandbox.add_pod(&key, &PodSeed::marked("gpuprov-theirs-001122", mark)).unwrap();
    let (_, list) = world.json("ls").await;
    assert_eq!(states(&list), [("one", "running"), ("two", "running")]);
    assert_eq!(list["failed"], json!([]));
    let (_, named) = world.json("ls two").await;
    assert_eq!(states(&named), [("two", "running")]);
    let unknown = world.run("ls two three").await;
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.stderr.contains("`three`") && unknown.stdout.contains("two"), "{unknown:?}");
    let (_, all) = world.json("ls --all").await;
    assert_eq!(states(&all).len(), 3, "{all}");
    let theirs = all["machines"].as_array().unwrap().iter().find(|one| one["name"] == "theirs").unwrap();
    assert_eq!(
        (&theirs["installation"], &theirs["owner"], &theirs["recorded"]),
        (&json!("somebody"), &json!("bob"), &json!(false))
    );
    let table = world.run("ls --all").await.stdout;
    let sum = 2.0 * 0.34 + 0.4;
    let told: f64 = table
        .lines()
        .last()
        .unwrap()
        .trim_start_matches("together $")
        .trim_end_matches("/h")
        .parse()
        .unwrap();
    assert!((told - sum).abs() < 0.06, "{table}");
    assert!(table.contains("somebody") && table.contains("bob"), "{table}");

    let before = world.sandbox.requests().len();
    let (code, local) = world.json("ls --local").await;
    assert_eq!((code, states(&local).len()), (0, 2));
    assert_eq!(world.sandbox.requests().len(), before);
    let all = world.run("rm --all --yes").await;
    assert_eq!(all.code, 0, "{all:?}");
    assert_eq!(world.only().name, "gpuprov-theirs-001122");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_was_removed_in_the_console_is_gone_and_rm_is_well() {
    let world = World::new().await;
    world.provision("dev").await;
    assert!(world.sandbox.remove_pod(&world.only().id));
    let (code, list) = world.json("ls").await;
    assert_eq!((code, states(&list)), (0, vec![("dev", "gone")]), "{list}");
    assert_eq!(list["machines"][0]["costs_now_per_hour"], 0.0);
    assert!(world.record("dev").is_some());
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    let (_, list) = world.json("ls").await;
    assert_eq!(states(&list), [("dev", "gone")]);
    world.remove("dev").await;
    let (_, list) = world.json("ls").await;
    assert_eq!(states(&list), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_unknown_and_drops_nothing() {
    let world = World::new().await;
    world.provision("dev").await;
    world.sandbox.unplug_runpod();
    let (code, list) = world.json("ls").await;
    assert_eq!((code, states(&list)), (1, vec![("dev", "unknown")]), "{list}");
    assert_eq!(list["failed"][0]["account"], "runpod/default");
    assert!(list["machines"][0]["message"].as_str().unwrap().contains("did not answer"));
    world.sandbox.plug_runpod().await.unwrap();
    for fault in [
        FaultKind::status(500),
        FaultKind::status(404),
        FaultKind::Garbage { body: gpuprov::sandbox::Junk::Html },
    ] {
        world.sandbox.add_fault(Fault::on("list_pods", fault.clone()).always());
        let (_, list) = world.json("ls --cloud-timeout 1s").await;
        assert_eq!(states(&list).len(), 1, "{fault:?}: {list}");
        assert_eq!(list["machines"][0]["recorded"], true);
        world.sandbox.clear_faults();
    }
    // A list that does not show it proves nothing; the look at the machine itself does.
    world.sandbox.add_fault(
        Fault::on("list_pods", FaultKind::Garbage { body: gpuprov::sandbox::Junk::Empty }).always(),
    );
    let (_, list) = world.json("ls").await;
    assert_eq!(states(&list), [("dev", "unknown")]);
    world.sandbox.clear_faults();
    let (_, list) = world.json("ls").await;
    assert_eq!(states(&list), [("dev", "running")]);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_machine_is_stopped() {
    let world = World::new().await;
    world.script(Script::GoesExited { ms: 2500 });
    world.provision("dev").await;
    crate::support::until("its end", || true).await;
    for _ in 0..40 {
        let (_, list) = world.json("ls").await;
        if states(&list) == [("dev", "stopped")] {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let (_, list) = world.json("ls").await;
    assert_eq!(states(&list), [("dev", "stopped")], "{list}");
    let ssh = world.run("ssh dev true").await;
    assert_eq!(ssh.code, 255, "{ssh:?}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_machines_come_in_pages() {
    let world = World::new().await;
    world.provision("dev").await;
    let installation = world.record("dev").unwrap()["installation"].as_str().unwrap().to_owned();
    let key = world.sandbox.runpod_key().to_owned();
    for at in 0..5 {
        let mark = format!("v1:{installation}:default:m{at}x:00000000000000a{at}::");
        world.sandbox.add_pod(&key, &PodSeed::marked("x", &mark)).unwrap();
    }
    world.sandbox.add_fault(Fault::on("list_pods", FaultKind::PageSize { size: 2 }).always());
    let (_, list) = world.json("ls").await;
    assert_eq!(states(&list).len(), 6, "{list}");
    let all = world.run("rm --all --yes").await;
    assert_eq!((all.code, all.stdout.lines().count()), (0, 6), "{all:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_listed_and_never_touched() {
    let world = World::new().await;
    world.provision("dev").await;
    let path = world.state().join("machines/dev.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let newer = good.replacen("\"version\": 1", "\"version\": 2", 1);
    assert_ne!(newer, good);
    for bad in [newer.as_str(), &good[..good.len() / 2], "", "[]"] {
        std::fs::write(&path, bad).unwrap();
        let (_, list) = world.json("ls").await;
        let rows = states(&list);
        assert!(rows.contains(&("dev", "unknown")), "{list}");
        assert_eq!(world.run("provision --gpus RTX4090 --name dev").await.code, 2);
        let rm = world.run("rm dev --yes").await;
        assert_eq!(rm.code, 6, "{rm:?}");
        if bad == newer {
            assert!(rm.stderr.contains("update gpuprov"), "{}", rm.stderr);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), bad);
        assert_eq!(world.run("ssh dev true").await.code, 255);
    }
    // The last way out is audited too.
    let forgotten = world.run("rm --forget dev --yes").await;
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    assert!(forgotten.stderr.contains("may still cost money"), "{}", forgotten.stderr);
    assert_eq!(world.audit().last().unwrap()["action"], "forget");
    // What it spoke of is found by its marks.
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_only_called_missing_when_every_account_answered() {
    let world = World::new().await;
    world.provision("dev").await;
    let ran = world.run("ls other").await;
    assert!(ran.code == 1 && ran.stderr.contains("there is no machine `other`"), "{ran:?}");
    world.sandbox.unplug_runpod();
    let ran = world.run("ls other --cloud-timeout 500ms").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let words = "`other` was not found, and runpod/default did not answer";
    assert!(ran.stderr.contains(words) && ran.stderr.contains("warning:"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("there is no machine"), "{}", ran.stderr);
    world.sandbox.plug_runpod().await.unwrap();
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_shown_without_the_id_that_they_were_made_under() {
    let mut world = World::new().await;
    world.set("GPUPROV_INSTALLATION", "team-ci");
    world.provision("dev").await;
    world.unset("GPUPROV_INSTALLATION");
    let (code, list) = world.json("ls").await;
    assert_eq!((code, states(&list)), (0, vec![("dev", "running")]), "{list}");
    assert_eq!(list["machines"][0]["installation"], "team-ci");
    assert!(!world.state().join("installation").exists(), "looking makes no id");
    let (_, list) = world.json("ls --all").await;
    assert_eq!(states(&list).len(), 1, "{list}");
    world.remove("dev").await;
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_two_accounts_list_is_one() {
    let world = World::new().await;
    let key = world.sandbox.runpod_key().to_owned();
    world.config(&format!("[account.\"runpod/twin\"]\napi_key = \"{key}\"\n"));
    let made = world.run("provision --gpus RTX4090 --name dev --cloud runpod/twin").await;
    assert_eq!(made.code, 0, "{made:?}");
    std::fs::remove_file(world.state().join("machines/dev.json")).unwrap();
    let (_, list) = world.json("ls --all").await;
    assert_eq!(
        (states(&list).len(), list["machines"][0]["account"].as_str()),
        (1, Some("runpod/twin")),
        "{list}"
    );
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_cannot_be_opened_did_not_answer() {
    let world = World::new().await;
    let set = world.run("clouds set runpod --name a").await;
    assert_eq!(set.code, 0, "{set:?}");
    let file = world.home().join(".local/share/gpuprov/accounts/runpod/a.json");
    std::fs::File::options().write(true).open(&file).unwrap().set_len(40).unwrap();
    for words in ["rm --all --yes", "rm --expired --yes", "rm nobody --yes --ignore-not-found"] {
        let ran = world.run(words).await;
        assert_eq!(ran.code, 6, "{words}: {ran:?}");
    }
    let (code, list) = world.json("ls").await;
    assert_eq!((code, list["failed"][0]["account"].as_str()), (0, Some("runpod/a")), "{list}");
}
