//! Whose machines these are: installations, accounts, and what is never touched.

use gpuprov::sandbox::PodSeed;
use serde_json::{Value, json};

use crate::support::World;

fn wipe(world: &World) {
    std::fs::remove_dir_all(world.state()).unwrap();
    std::fs::remove_dir_all(world.home().join(".ssh")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_computer_of_the_installation_lists_and_removes() {
    let mut world = World::new().await;
    world.set("GPUPROV_INSTALLATION", "team-ci");
    let made = world.run("provision --gpus RTX4090").await;
    assert_eq!(made.stdout, "rtx4090-1\n", "{made:?}");
    let id = world.only().id;
    wipe(&world);
    let (code, list) = world.json("ls").await;
    let machine = &list["machines"][0];
    assert_eq!(
        (code, &machine["name"], &machine["recorded"]),
        (0, &json!("rtx4090-1"), &json!(false)),
        "{list}"
    );
    assert_eq!(
        (&machine["id"], &machine["gpu"], &machine["gpu_count"]),
        (&json!(id), &json!("RTX4090"), &json!(1))
    );
    assert!(machine["ssh"]["host"].is_string() && machine["ssh"]["identity_file"] == Value::Null);
    assert!(machine["price_per_hour"].is_number() && machine["cost_so_far"].is_number(), "{machine}");
    // The name is taken there too, and a made-up one goes past it.
    let taken = world.run("provision --gpus RTX4090 --name rtx4090-1").await;
    assert_eq!(taken.code, 2, "{taken:?}");
    assert!(taken.stderr.contains(&id), "{}", taken.stderr);
    let next = world.run("provision --gpus RTX4090").await;
    assert_eq!(next.stdout, "rtx4090-2\n", "{next:?}");
    wipe(&world);
    let gone = world.run("rm rtx4090-1 --yes").await;
    assert_eq!((gone.code, gone.stdout.as_str()), (0, "rtx4090-1\n"), "{gone:?}");
    let audit = world.audit();
    assert_eq!((&audit[0]["action"], &audit[0]["gpu"]), (&json!("remove"), &json!("RTX4090")), "{audit:?}");
    assert!(audit[0]["cost"].is_number() && audit[0]["price_per_hour"].is_number(), "{audit:?}");
    // By the cloud's own id.
    let id = world.only().id;
    let gone = world.run(&format!("rm runpod/default:{id} --yes")).await;
    assert_eq!((gone.code, gone.stdout.as_str()), (0, "rtx4090-2\n"), "{gone:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_made_up_installation_is_kept_and_forgotten_with_the_state() {
    let mut world = World::new().await;
    world.provision("dev").await;
    let installation = world.record("dev").unwrap()["installation"].as_str().unwrap().to_owned();
    let id = world.only().id;
    let mark = world.only().env["GPUPROV_MARK"].clone();
    assert!(mark.starts_with(&format!("v1:{installation}:default:dev:")), "{mark}");
    wipe(&world);
    let (_, list) = world.json("ls").await;
    assert_eq!(list["machines"], json!([]));
    let (_, all) = world.json("ls --all").await;
    assert_eq!(all["machines"][0]["installation"], json!(installation));
    // Somebody else's: only with --not-mine.
    let refused = world.run(&format!("rm runpod/default:{id} --yes")).await;
    assert_eq!((refused.code, world.sandbox.alive().len()), (2, 1), "{refused:?}");
    assert!(
        refused.stderr.contains(&installation) && refused.stderr.contains("--not-mine"),
        "{}",
        refused.stderr
    );
    assert_eq!(world.run("rm dev --not-mine --yes").await.code, 2);
    assert_eq!(world.run("rm dev --yes").await.code, 1);
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    assert_eq!(world.sandbox.alive().len(), 1);
    world.set("GPUPROV_INSTALLATION", installation);
    world.remove("dev").await;
    world.unset("GPUPROV_INSTALLATION");
    world.set("GPUPROV_INSTALLATION", "another");
    world.provision("dev").await;
    world.set("GPUPROV_INSTALLATION", "third");
    let id = world.only().id;
    let gone = world.run(&format!("rm runpod/default:{id} --not-mine --yes")).await;
    assert_eq!(gone.code, 0, "{gone:?}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_carries_no_mark_is_never_removed() {
    let world = World::new().await;
    let key = world.sandbox.runpod_key().to_owned();
    world.provision("dev").await;
    let installation = world.record("dev").unwrap()["installation"].as_str().unwrap().to_owned();
    // Names and prefixes count for nothing, broken marks neither.
    let mut strangers = vec![
        world.sandbox.add_pod(&key, &PodSeed::foreign("gpuprov-dev-012345")).unwrap(),
        world.sandbox.add_pod(&key, &PodSeed::marked("x", "v1:broken")).unwrap(),
        world
            .sandbox
            .add_pod(
                &key,
                &PodSeed::marked("x", &format!("v2:{installation}:default:dev:00112233445566aa::")),
            )
            .unwrap(),
        world
            .sandbox
            .add_pod(
                &key,
                &PodSeed::marked("x", &format!("v1:{installation}x:default:dev:00112233445566aa::")),
            )
            .unwrap(),
    ];
    strangers.push(world.sandbox.foreign_pod().to_owned());
    for id in &strangers {
        let ran = world.run(&format!("rm runpod/default:{id} --yes")).await;
        assert_ne!(ran.code, 0, "{ran:?}");
    }
    for id in &strangers[..3] {
        let ran = world.run(&format!("rm runpod/default:{id} --not-mine --yes")).await;
        assert_ne!(ran.code, 0, "{ran:?}");
    }
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    let alive: Vec<String> =
        world.sandbox.ledger().into_iter().filter(|one| one.alive).map(|one| one.id).collect();
    assert!(strangers.iter().all(|id| alive.contains(id)));
    world.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_one_name_are_refused_with_their_ids() {
    let mut world = World::new().await;
    world.set("GPUPROV_INSTALLATION", "team-ci");
    let key = world.sandbox.runpod_key().to_owned();
    let seed = |claim: &str| PodSeed::marked("x", &format!("v1:team-ci:default:dev:{claim}::"));
    let one = world.sandbox.add_pod(&key, &seed("00112233445566aa")).unwrap();
    let two = world.sandbox.add_pod(&key, &seed("00112233445566bb")).unwrap();
    let ran = world.run("rm dev --yes").await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains(&one) && ran.stderr.contains(&two), "{}", ran.stderr);
    assert_eq!(world.sandbox.alive().len(), 2);
    assert_eq!(world.run("ssh dev true").await.code, 255);
    let ran = world.words(&["rm", &format!("runpod/default:{one}"), "--yes"]).await;
    assert_eq!((ran.code, world.only().id), (0, two), "{ran:?}");
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn removals_can_be_narrowed_to_a_cloud() {
    let world = World::new().await;
    world.provision("dev").await;
    let ran = world.run("rm --all --cloud gcp --yes").await;
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(world.run("rm dev --cloud runpod --yes").await.code, 2);
    // A list that is given nothing narrows nothing: it is refused.
    for empty in ["", ",", " "] {
        for what in ["--all", "--expired"] {
            let ran = world.words(&["rm", what, "--cloud", empty, "--yes"]).await;
            assert_eq!(ran.code, 2, "{what} {empty:?}: {ran:?}");
        }
    }
    assert_eq!(world.sandbox.alive().len(), 1);
    let ran = world.run("rm --all --cloud runpod --yes").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    world.assert_empty();
}
