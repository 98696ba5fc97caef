//! Refusals: at once, with the operation, and for what stands in the way of a whole project.

use gpuprov::sandbox::{GcpFault, GcpLeaves, GcpOperationError, GcpPolicy};
use serde_json::{Value, json};

use super::*;
use crate::support::machines::outcomes;

/// The zones that were tried, in their order.
fn zones(world: &World) -> Vec<String> {
    let bodies = bodies(world, "insert_instance");
    let of = |body: &Value| body["machineType"].as_str().unwrap().split('/').nth(1).unwrap().to_owned();
    bodies.iter().map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_room_in_one_zone_and_a_hint_to_another() {
    let world = world().await;
    late(&world, GcpOperationError::exhausted_but(&["us-central1-c"]));
    let ran = provision(&world, "--gpus L4:1 --region us-central1").await;
    assert_eq!(outcomes(&ran), ["refused", "created"], "{ran:#}");
    assert_eq!(ran["tried"][0]["kind"], json!("no_capacity"));
    assert_eq!(zones(&world), ["us-central1-a", "us-central1-c"]);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_refusal_counts_for_no_attempt() {
    let world = world().await;
    let exhausted = GcpFault::late(GcpOperationError::exhausted());
    world.sandbox.gcp().add_fault(Fault::on("insert_instance", exhausted.clone().into()).times(5));
    let ran = provision(&world, "--gpus L4:1 --attempts 1").await;
    assert_eq!(outcomes(&ran).len(), 6, "{ran:#}");
    remove(&world).await;
    always(&world, "insert_instance", exhausted);
    let ran = world.run("provision --gpus L4:1 --name dev").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_room_under_all_its_names() {
    let world = world().await;
    for code in [
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        "STOCKOUT",
        "UNSUPPORTED_OPERATION",
        "RESOURCE_POOL_EXHAUSTED",
        "REGION_RESOURCE_POOL_EXHAUSTED",
        "VM_MIN_COUNT_NOT_REACHED",
    ] {
        late(&world, GcpOperationError::out_of(code));
        let ran = provision(&world, "--gpus L4:1").await;
        assert_eq!(ran["tried"][0]["kind"], json!("no_capacity"), "{code}: {ran:#}");
        remove(&world).await;
    }
    fault(&world, "insert_instance", GcpFault::no_capacity());
    let ran = provision(&world, "--gpus L4:1").await;
    assert_eq!(outcomes(&ran), ["refused", "created"], "{ran:#}");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_zero_over_all_zones_ends_it() {
    let world = world().await;
    let project = world.sandbox.gcp().project().to_owned();
    world.sandbox.gcp().set_quota(&project, None, "GPUS_ALL_REGIONS", 0.0);
    let (code, ran) = world.json("provision --gpus L4:1 --name dev").await;
    assert_eq!((code, world.asked("insert_instance")), (3, 0), "{ran:#}");
    assert!(ran.to_string().contains("GPUS_ALL_REGIONS"), "{ran:#}");
    // Where it cannot be read before, one refusal is enough.
    for operation in ["get_project", "get_region"] {
        always(&world, operation, GcpFault::QuotasHidden);
    }
    let (code, ran) = world.json("provision --gpus L4:1 --name dev").await;
    assert_eq!((code, world.asked("insert_instance")), (3, 1), "{ran:#}");
    assert_eq!(ran["tried"][0]["kind"], json!("quota"), "{ran:#}");
    assert!(ran.to_string().contains("iam-admin/quotas"), "{ran:#}");
    nothing_is_left(&world);
    world.sandbox.clear_faults();
    world.sandbox.gcp().set_quota(&project, None, "GPUS_ALL_REGIONS", 16.0);

    // One region's quota leaves the others.
    late(&world, GcpOperationError::quota("NVIDIA_L4_GPUS", 1.0, Some("us-central1")));
    let before = world.asked("insert_instance");
    let ran = provision(&world, "--gpus L4:1").await;
    assert_eq!(outcomes(&ran), ["refused", "created"], "{ran:#}");
    assert!(!zones(&world)[before + 1].starts_with("us-central1"), "{:?}", zones(&world));
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_fails_and_leaves_something() {
    let world = world().await;
    for leaves in [GcpLeaves::Instance, GcpLeaves::Disk, GcpLeaves::Nothing] {
        for status in [503, 404] {
            let code = if status == 404 { "RESOURCE_NOT_FOUND" } else { "INTERNAL_ERROR" };
            let error =
                GcpOperationError { leaves, ..GcpOperationError::plain(status, code, "It went wrong.") };
            late(&world, error);
            let ran = provision(&world, "--gpus L4:1 --port 8080").await;
            let first = if leaves == GcpLeaves::Instance { "not_ready" } else { "refused" };
            assert_eq!(outcomes(&ran), [first, "created"], "{leaves:?} {ran:#}");
            assert_eq!(world.sandbox.alive().len(), 1, "{leaves:?}");
            remove(&world).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_smaller_than_the_image_is_asked_for_once() {
    let world = world().await;
    let words = "Invalid value for field 'resource.disks[0].initializeParams.diskSizeGb': '30'. Requested disk size cannot \
                 be smaller than the image size (50 GB)";
    always(&world, "insert_instance", GcpFault::failure(400, "invalid", words));
    let ran = world.run("provision --gpus L4:1 --instance-type g2-standard-4 --name dev").await;
    assert_ne!(ran.code, 0, "{ran:?}");
    world.sandbox.clear_faults();
    let (code, ran) = world.json("provision --instance-type g2-standard-4 --name dev").await;
    assert_eq!(code, 0, "{ran:#}");
    remove(&world).await;
    let before = world.asked("insert_instance");
    always(&world, "insert_instance", GcpFault::failure(400, "invalid", words));
    let (code, ran) = world.json("provision --instance-type g2-standard-4 --name dev").await;
    assert_eq!((code, world.asked("insert_instance") - before), (1, 1), "{ran:#}");
    assert!(ran.to_string().contains("image size"), "{ran:#}");
    // The wish for less is raised before.
    world.sandbox.clear_faults();
    provision(&world, "--gpus L4:1 --disk 30").await;
    let sent = bodies(&world, "insert_instance").pop().unwrap();
    assert_eq!(sent["disks"][0]["initializeParams"]["diskSizeGb"], json!("50"));
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_way_is_told_with_what_mends_it() {
    type Change = fn(&World, &str);
    let cases: [(Change, &str); 6] = [
        (
            |world, project| world.sandbox.gcp().remove_network(project, "default"),
            "gcloud compute networks create default",
        ),
        (
            |world, project| world.sandbox.gcp().set_policy(project, GcpPolicy::NoExternalAddress, true),
            "compute.vmExternalIpAccess",
        ),
        (|world, project| world.sandbox.gcp().set_policy(project, GcpPolicy::OsLogin, true), "OS Login"),
        (
            |world, project| world.sandbox.gcp().deny(project, &["compute.instances.create"]),
            "roles/compute.instanceAdmin.v1",
        ),
        (
            |world, project| world.sandbox.gcp().set_api(project, false),
            "gcloud services enable compute.googleapis.com",
        ),
        (|world, project| world.sandbox.gcp().set_billing(project, false), "billing"),
    ];
    for (change, words) in cases {
        let world = world().await;
        let project = world.sandbox.gcp().project().to_owned();
        change(&world, &project);
        let ran = world.run("provision --gpus L4:1 --name dev").await;
        assert!(ran.code == 3 || ran.code == 4, "{words}: {ran:?}");
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
        assert!(world.asked("insert_instance") <= 1, "{words}: no zone would do better");
        nothing_of_ours_is_left(&world);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_family_falls_back_to_the_next() {
    let world = world().await;
    world.sandbox.gcp().retire_family("common-cu129-ubuntu-2204-nvidia-580");
    provision(&world, "--gpus L4:1").await;
    let image = &bodies(&world, "insert_instance")[0]["disks"][0]["initializeParams"]["sourceImage"];
    assert!(image.as_str().unwrap().contains("ubuntu-accelerator-2204"), "{image}");
    remove(&world).await;
}
