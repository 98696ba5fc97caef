//! Replacing credentials: a rotated key is welcome, another account's is not while there are machines.

use serde_json::{Value, json};

use crate::support::{Ran, World, finish_with};

async fn set(world: &World, words: &str, key: &str) -> Ran {
    finish_with(world.gpuprov(format!("clouds set {words}").split_whitespace()), key.as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_runpod_key_is_proven_by_what_it_shows() {
    let mut world = World::new().await;
    world.unset("RUNPOD_API_KEY");
    let key = world.sandbox.runpod_key().to_owned();
    let other = world.sandbox.add_runpod_account();
    assert_eq!(set(&world, "runpod --api-key -", &key).await.code, 0);
    for name in ["dev", "gone"] {
        world.provision(name).await;
    }
    let refused = set(&world, "runpod --api-key -", &other).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("dev") && refused.stderr.contains("gone"), "{refused:?}");
    assert!(!refused.stderr.contains(&other));
    assert_eq!(set(&world, "runpod --api-key - --no-check", &other).await.code, 2);
    // Under another name it is welcome.
    assert_eq!(set(&world, "runpod --name lab --api-key -", &other).await.code, 0);
    // The same key again is the same account.
    assert_eq!(set(&world, "runpod --api-key -", &key).await.code, 0);

    let rotated = world.sandbox.rotate_runpod_key(&key).unwrap();
    assert_eq!(set(&world, "runpod --api-key -", &rotated).await.code, 0);
    // From now on the new key proves by itself that a machine is gone.
    let id = world.record("gone").unwrap()["attempts"][0]["handle"]["id"].as_str().unwrap().to_owned();
    world.sandbox.remove_pod(&id);
    world.sandbox.step(std::time::Duration::from_secs(5));
    for name in ["gone", "dev"] {
        let ran = world.run(&format!("rm {name} --yes")).await;
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    world.assert_empty();
    // Without machines any account may take its place.
    assert_eq!(set(&world, "runpod --api-key -", &other).await.code, 0);
    let replaced = world.audit().iter().filter(|line| line["outcome"] == "replaced").count();
    assert_eq!(replaced, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_vast_key_is_proven_by_who_it_is() {
    let mut world = World::new().await;
    world.without_runpod();
    world.with_vast();
    world.unset("VAST_API_KEY");
    let (key, other) = (world.sandbox.vast().key().to_owned(), world.sandbox.vast().add_account());
    assert_eq!(set(&world, "vast --api-key -", &key).await.code, 0);
    let twin = set(&world, "vast --name twin --api-key -", &key).await;
    assert!(twin.code == 0 && twin.stderr.contains("vast/default"), "{twin:?}");
    let (_, list) = world.json("clouds").await;
    let same: Vec<&Value> = list["accounts"].as_array().unwrap().iter().map(|one| &one["same_as"]).collect();
    assert_eq!(same, [&json!(["vast/twin"]), &json!(["vast/default"])], "{list:#}");
    let made = world.run("provision --gpus RTX5090:1 --name dev --cloud vast/default").await;
    assert_eq!(made.code, 0, "{made:?}");
    // Each twin keeps its own, also where the key shows both.
    let (_, list) = world.json("clouds").await;
    assert_eq!((&list["accounts"][0]["machines"], &list["accounts"][1]["machines"]), (&json!(1), &json!(0)));
    assert_eq!(world.run("clouds rm vast/twin").await.code, 0);
    assert_eq!(set(&world, "vast --api-key -", &other).await.code, 2);
    let rotated = world.sandbox.vast().rotate_key(&key).unwrap();
    assert_eq!(set(&world, "vast --api-key -", &rotated).await.code, 0);
    world.remove("dev").await;
}
