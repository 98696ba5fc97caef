//! Sealed accounts: what is damaged, moved or without its key is told, spoils nothing else, and nothing is lost.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{World, finish_with};

/// Two accounts at RunPod, `default` and `lab`, connected.
async fn two() -> World {
    let mut world = World::new().await;
    world.unset("RUNPOD_API_KEY");
    let (key, lab) = (world.sandbox.runpod_key().to_owned(), world.sandbox.add_runpod_account());
    for (words, key) in [("clouds set runpod --api-key -", key), ("clouds set runpod/lab --api-key -", lab)] {
        let ran = finish_with(world.gpuprov(words.split_whitespace()), key.as_bytes()).await;
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    world
}

fn data(world: &World, path: &str) -> PathBuf {
    world.home().join(".local/share/gpuprov").join(path)
}

/// Fails unless `lab` is told to be broken with this word, and `default` goes on alone, also for an environment that has a key.
async fn only_default_works(world: &mut World, word: &str) {
    world.set("RUNPOD_API_KEY", world.sandbox.runpod_key().to_owned());
    let (code, offers) = world.json("offers --gpus RTX4090:1").await;
    assert_eq!(code, 0, "{offers:#}");
    let whose: Vec<&str> =
        offers["offers"].as_array().unwrap().iter().map(|offer| offer["account"].as_str().unwrap()).collect();
    assert!(!whose.is_empty() && whose.iter().all(|account| *account == "runpod/default"), "{whose:?}");
    let warned = offers["warnings"].to_string();
    assert!(warned.contains("runpod/lab") && warned.contains(word), "{warned}");
    let named = world.run("offers --gpus RTX4090:1 --cloud runpod/lab").await;
    assert!(named.code == 4 && named.stderr.contains(word), "{named:?}");
    let (code, checked) = world.json("clouds check").await;
    let lab =
        checked["accounts"].as_array().unwrap().iter().find(|one| one["account"] == "runpod/lab").unwrap();
    assert_eq!((code, &lab["ok"], &lab["used"]), (1, &json!(false), &json!(false)), "{checked:#}");
    assert!(lab["problems"][0]["fix"].as_str().unwrap().contains("--name lab"), "{checked:#}");
    world.unset("RUNPOD_API_KEY");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_flipped_bit_and_a_moved_file_are_told_and_spoil_nothing() {
    let mut world = two().await;
    let path = data(&world, "accounts/runpod/lab.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let mut value: Value = serde_json::from_str(&good).unwrap();
    let sealed = value["sealed"]["data"].as_str().unwrap().to_owned();
    let flipped = if sealed.starts_with('A') { "B" } else { "A" };
    value["sealed"]["data"] = json!(format!("{flipped}{}", &sealed[1..]));
    std::fs::write(&path, value.to_string()).unwrap();
    only_default_works(&mut world, "changed after it was sealed").await;

    let moved = std::fs::read_to_string(data(&world, "accounts/runpod/default.json")).unwrap();
    std::fs::write(&path, &moved).unwrap();
    only_default_works(&mut world, "another account").await;
    std::fs::write(&path, moved.replace("runpod/default", "runpod/lab")).unwrap();
    only_default_works(&mut world, "changed after it was sealed").await;

    // Connecting it again mends it, and what could not be read is still there.
    let key = world.sandbox.add_runpod_account();
    let words = ["clouds", "set", "runpod/lab", "--api-key", "-"];
    let ran = finish_with(world.gpuprov(words), key.as_bytes()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(path.with_file_name("lab.json.unreadable-1").exists());
    assert_eq!(world.json("clouds check").await.0, 0);
    std::fs::write(&path, good).unwrap();
    assert_eq!(world.json("clouds check").await.0, 0, "a copy that was put back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_that_cannot_be_opened_is_replaced_by_nothing() {
    let mut world = two().await;
    let key = data(&world, "seal.key");
    let bytes = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    world.set("RUNPOD_API_KEY", world.sandbox.runpod_key().to_owned());
    let before = world.requests();
    let ran = world.run("offers --gpus RTX4090:1").await;
    assert!(ran.code == 4 && ran.stderr.contains("seal.key"), "{ran:?}");
    assert_eq!(world.requests(), before, "another account was asked in its place");
    let ran = world.run("clouds set runpod --name third").await;
    assert!(ran.code == 2 && ran.stderr.contains("seal key"), "{ran:?}");
    assert!(!key.exists());
    std::fs::write(&key, bytes).unwrap();
    assert_eq!(world.run("offers --gpus RTX4090:1").await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn switches_that_cannot_be_read_let_nothing_be_bought() {
    let world = two().await;
    assert_eq!(world.run("clouds off runpod/lab").await.code, 0);
    world.provision("dev").await;
    let path = world.state().join("switches.json");
    let good = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, "{").unwrap();
    for words in
        ["offers --gpus RTX4090:1", "provision --gpus RTX4090:1 --name two", "clouds on runpod/lab", "clouds"]
    {
        let ran = world.run(words).await;
        assert!(ran.code == 2 && ran.stderr.contains("switches.json"), "{words}: {ran:?}");
    }
    assert_eq!(world.run("ls").await.code, 0);
    world.remove("dev").await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{");
    std::fs::write(&path, good).unwrap();
    assert_eq!(world.run("clouds").await.code, 0);
}
