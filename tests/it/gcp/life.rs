//! The main life: on demand, spot, without a GPU, with an end.

use gpuprov::sandbox::{GcpFault, GcpGuesses, GcpScript};
use serde_json::{Value, json};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_main_life() {
    let world = world().await;
    let (code, list) = world.json("offers --gpus L4:1 --zone us-central1-a").await;
    assert_eq!(code, 0, "{list:#}");
    let first = &list["offers"][0];
    assert_eq!((&first["instance_type"], &first["gpu"]), (&json!("g2-standard-4"), &json!("L4")), "{list:#}");
    assert_eq!((&first["region"], &first["country"]), (&json!("us-central1"), &json!("US")));
    assert_eq!((&first["secure"], &first["price_estimated"]), (&json!(true), &json!(true)));
    assert!(first["price_as_of"].is_string() && first["price_parts"]["disk"].is_number());

    let ran = world.run("provision --gpus L4:1 --zone us-central1-a --name dev --env A=b").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    let body = bodies(&world, "insert_instance").remove(0);
    assert_eq!(body["labels"]["gpuprov-name"], json!("dev"), "{body:#}");
    let inside = world.run("ssh dev -- echo $A; nvidia-smi --query-gpu=name --format=csv,noheader").await;
    assert!(inside.code == 0 && inside.stdout.starts_with("b\n"), "{inside:?}");
    let plain = crate::support::finish({
        let mut ssh = world.program("ssh");
        ssh.args(["-F", world.home().join(".ssh/config").to_str().unwrap(), "dev", "whoami"]);
        ssh
    })
    .await;
    assert_eq!(plain.code, 0, "{plain:?}");
    assert!(ssh_files(&world).contains("StrictHostKeyChecking yes"), "the first contact was not checked");
    let (_, listed) = world.json("ls").await;
    let machine = &listed["machines"][0];
    assert_eq!((&machine["state"], &machine["spot"]), (&json!("running"), &json!(false)), "{listed:#}");
    assert_eq!((&machine["gpu_check"], &machine["ssh"]["user"]), (&json!("ok"), &json!("ubuntu")));
    assert_eq!(listed["left_over"], json!([]));
    remove(&world).await;
    assert_eq!(world.asked("oauth_token") + world.asked("sts_token"), 0, "a key asks nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_documents_leave_open_the_life_is_the_same() {
    let world = world_with(|options| options.gcp_guesses = GcpGuesses::flipped()).await;
    for (words, gpus) in [("--gpus L4:1 --spot", 1), ("--gpus T4:2", 2), ("--cpu-only --vcpus 4", 0)] {
        let ran = provision(&world, words).await;
        assert_eq!(ran["machines"][0]["gpu_count"], json!(gpus), "{ran:#}");
        remove(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gpu_and_with_the_newest() {
    let world = world().await;
    let ran = provision(&world, "--cpu-only --vcpus 8 --disk 10").await;
    assert_eq!(ran["machines"][0]["gpu"], Value::Null, "{ran:#}");
    let image = &bodies(&world, "insert_instance")[0]["disks"][0]["initializeParams"]["sourceImage"];
    assert!(image.as_str().unwrap().starts_with("projects/ubuntu-os-cloud/"), "{image}");
    remove(&world).await;
    provision(&world, "--gpus B200:8 --spot").await;
    let body = bodies(&world, "insert_instance").remove(1);
    let disk = body["disks"][0]["initializeParams"]["diskType"].as_str().unwrap();
    assert!(disk.ends_with("/hyperdisk-balanced"), "{body:#}");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spot_and_what_becomes_of_it() {
    for flipped in [false, true] {
        let world = world_with(|options| options.gcp_guesses.preempted_stops = flipped).await;
        let ran = provision(&world, "--gpus L4:1 --spot").await;
        let machine = &ran["machines"][0];
        assert_eq!(machine["spot"], json!(true), "{ran:#}");
        let scheduling = &bodies(&world, "insert_instance")[0]["scheduling"];
        assert_eq!(scheduling["instanceTerminationAction"], json!("DELETE"));
        assert!(world.sandbox.gcp().preempt(machine["id"].as_str().unwrap()));
        let mut listed = Value::Null;
        for _ in 0..50 {
            listed = world.json("ls").await.1;
            if listed["machines"][0]["state"] == json!("preempted") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let machine = &listed["machines"][0];
        assert_eq!(machine["state"], json!("preempted"), "{listed:#}");
        assert!(machine["message"].as_str().unwrap().contains("preempted by Google"), "{listed:#}");
        remove(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_away_while_it_starts_the_next_offer_is_tried() {
    let world = world().await;
    script(&world, GcpScript::Preempted { ms: 50 });
    let ran = provision(&world, "--gpus L4:1 --spot").await;
    assert_eq!(ran["tried"].as_array().unwrap().len(), 2, "{ran:#}");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_is_kept_by_google() {
    let world = world().await;
    let ran = provision(&world, "--gpus L4:1 --ttl 2h").await;
    assert!(ran["warnings"].to_string().contains("the cloud deletes it by itself"), "{ran:#}");
    assert!(ran["machines"][0]["expires_at"].is_string(), "{ran:#}");
    let scheduling = &bodies(&world, "insert_instance")[0]["scheduling"];
    let seconds: i64 = scheduling["maxRunDuration"]["seconds"].as_str().unwrap().parse().unwrap();
    assert!((7190..=7200).contains(&seconds), "{scheduling}");
    assert_eq!(scheduling["instanceTerminationAction"], json!("DELETE"));
    remove(&world).await;
    let ran = world.run("provision --gpus L4:1 --name dev --ttl 121d").await;
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("120 days"), "{ran:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_computer_finds_and_removes_it() {
    let mut world = world().await;
    world.set("GPUPROV_INSTALLATION", "team");
    provision(&world, "--gpus L4:1 --port 8080").await;
    world.set("GPUPROV_STATE_DIR", world.home().join("elsewhere").into_os_string());
    let (_, listed) = world.json("ls").await;
    let machine = &listed["machines"][0];
    assert_eq!((&machine["name"], &machine["recorded"]), (&json!("dev"), &json!(false)), "{listed:#}");
    assert_eq!(listed["left_over"], json!([]), "its rule belongs to it");
    let removed = world.run("rm dev --yes").await;
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "dev\n"), "{removed:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_that_does_not_answer_hides_nothing() {
    let world = world().await;
    provision(&world, "--gpus L4:1").await;
    always(&world, "list_instances", GcpFault::Unreachable { zone: "us-east4-a".to_owned() });
    let (_, listed) = world.json("ls").await;
    assert!(listed["failed"][0]["message"].as_str().unwrap().contains("us-east4-a"), "{listed:#}");
    world.sandbox.clear_faults();
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_in_the_console_and_a_disk_that_stays() {
    let world = world().await;
    let ran = provision(&world, "--gpus L4:1").await;
    assert!(world.sandbox.gcp().remove_instance(ran["machines"][0]["id"].as_str().unwrap()));
    let (_, listed) = world.json("ls").await;
    assert_eq!(listed["machines"][0]["state"], json!("gone"), "{listed:#}");
    remove(&world).await;

    for what in [GcpFault::DiskStays, GcpFault::NoEffect, GcpFault::OperationLost, GcpFault::not_ready()] {
        provision(&world, "--gpus L4:1 --port 8080").await;
        fault(&world, "delete_instance", what);
        remove_unseen(&world).await;
    }
    provision(&world, "--gpus L4:1 --port 8080").await;
    fault(&world, "delete_instance", GcpFault::DiskStays);
    fault(&world, "delete_disk", GcpFault::NoEffect);
    fault(&world, "delete_firewall", GcpFault::NoEffect);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_left_over_is_listed_and_goes_by_its_id() {
    let world = world().await;
    provision(&world, "--gpus L4:1").await;
    fault(&world, "delete_instance", GcpFault::DiskStays);
    always(
        &world,
        "delete_disk",
        GcpFault::failure(403, "forbidden", "Required 'compute.disks.delete' permission for 'x'"),
    );
    let ran = world.run("rm dev --yes").await;
    assert_eq!(ran.code, 6, "{ran:?}");
    world.sandbox.clear_faults();
    let forgotten = world.run("rm --forget dev --yes").await;
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    let (_, listed) = world.json("ls").await;
    let left = &listed["left_over"][0];
    assert_eq!(left["kind"], json!("disk"), "{listed:#}");
    assert!(left["costs_now_per_hour"].as_f64().unwrap() > 0.0, "{listed:#}");
    let removed = world.run(&format!("rm gcp/default:{} --yes", left["id"].as_str().unwrap())).await;
    assert_eq!(removed.code, 0, "{removed:?}");
    nothing_is_left(&world);
}
