//! Machines that fail late, are taken away, or do not go at once; answers that are missing in the middle.

use gpuprov::sandbox::{Fault, FaultKind, LateCause, NebiusFault, NebiusScript};
use serde_json::{Value, json};

use super::{always, fault, nothing_is_left, provision, remove, warnings, world};
use crate::support::World;
use crate::support::machines::outcomes;

/// Lets the next machine behave so.
fn script(world: &World, script: NebiusScript) {
    fault(world, "create_instance", FaultKind::Script { script: script.into() });
}

fn id(ran: &Value) -> String {
    ran["machines"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_fails_late_goes_on_with_the_next_offer_and_leaves_nothing() {
    for (cause, kind) in [
        (LateCause::Capacity, "no_capacity"),
        (LateCause::Quota, "quota"),
        (LateCause::QuotaText, "quota"),
        (LateCause::Silent, "no_capacity"),
        (LateCause::Internal, "unavailable"),
    ] {
        let world = world().await;
        script(&world, NebiusScript::LateFailure { ms: 150, cause });
        let ran = provision(&world, "--gpus H200:1").await;
        let tried = ran["tried"].as_array().unwrap();
        assert_eq!(outcomes(&ran), ["not_ready", "created"], "{cause:?}: {ran:#}");
        assert_eq!(tried[0]["kind"], kind, "{cause:?}: {ran:#}");
        assert_ne!(tried[0]["offer"], tried[1]["offer"], "{ran:#}");
        assert_eq!((world.sandbox.made().len(), world.sandbox.alive().len()), (2, 1), "{cause:?}");
        remove(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_that_only_the_details_name_leaves_out_its_region_and_gpu() {
    let world = world().await;
    fault(&world, "create_instance", NebiusFault::quota("compute.instance.gpu.h200").into());
    let ran = provision(&world, "--gpus H200:1").await;
    assert_eq!(outcomes(&ran), ["refused", "created"], "{ran:#}");
    let first = &ran["tried"][0];
    assert_eq!(first["kind"], "quota");
    assert!(first["message"].as_str().unwrap().contains("compute.instance.gpu.h200"), "{ran:#}");
    assert_eq!(world.sandbox.made().len(), 1, "nothing was made for the first");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_away_it_costs_its_disk_until_it_is_removed() {
    let world = world().await;
    let ran = provision(&world, "--gpus H100:1 --spot --disk 100").await;
    world.sandbox.nebius().preempt(&id(&ran));
    let mut machine = Value::Null;
    for _ in 0..50 {
        let (code, listed) = world.json("ls").await;
        assert_eq!(code, 0, "{listed}");
        machine = listed["machines"][0].clone();
        if machine["state"] == "preempted" {
            break;
        }
    }
    assert_eq!(machine["state"], "preempted", "{machine:#}");
    // 100 GiB at $0.071 for a month of 730 hours.
    assert_eq!(machine["costs_now_per_hour"], json!(0.009_727), "{machine:#}");
    assert!(!world.sandbox.nebius().left().is_empty());
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_lost_does_not_stop_a_machine() {
    let world = world().await;
    world.sandbox.nebius().add_fault(Fault::on("get_operation", NebiusFault::OperationLost.into()).always());
    provision(&world, "--gpus H100:1").await;
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_go_at_once_goes_in_the_end() {
    let world = world().await;
    script(&world, NebiusScript::RefusesDelete { times: 2 });
    provision(&world, "--gpus H100:1").await;
    remove(&world).await;
    provision(&world, "--gpus H100:1").await;
    fault(&world, "delete_instance", NebiusFault::DiskStays.into());
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_for_ever_end_a_removal_that_says_what_may_still_run() {
    for operation in ["delete_instance", "get_instance"] {
        let world = world().await;
        provision(&world, "--gpus H100:1").await;
        always(&world, operation, NebiusFault::code(8, "").into());
        let begun = std::time::Instant::now();
        let ran = world.run("rm dev --yes").await;
        assert_eq!(ran.code, 6, "{operation}: {ran:?}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{operation}: {:?}", begun.elapsed());
        assert!(world.record("dev").is_some() && world.sandbox.alive().len() == 1, "{operation}");
        world.sandbox.clear_faults();
        remove(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_fails_once_is_asked_again_and_for_ever_is_no_short_list() {
    let world = world().await;
    provision(&world, "--gpus H100:1").await;
    world.sandbox.nebius().set_page_size(Some(1));
    fault(&world, "list_projects", FaultKind::status(503));
    let (code, listed) = world.json("ls").await;
    assert_eq!((code, listed["machines"].as_array().unwrap().len()), (0, 1), "{listed}");
    world.sandbox.nebius().add_fault(Fault::on("list_projects", FaultKind::status(503)).nth(2).always());
    let (code, listed) = world.json("ls --all").await;
    assert_eq!(code, 1, "{listed}");
    assert_eq!(listed["failed"][0]["account"], "nebius/default", "{listed}");
    world.sandbox.clear_faults();
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spot_price_that_is_gone_or_dearer_is_not_bought() {
    let world = world().await;
    let (_, list) = world.json("offers --gpus H100:1 --spot").await;
    let offer = list["offers"][0]["id"].as_str().unwrap().to_owned();
    world.sandbox.nebius().set_spot_price("gpu-h100-sxm", "eu-north1", Some(3.3));
    let (code, ran) = world.json(&format!("provision --name dev --offer {offer}")).await;
    assert_eq!((code, outcomes(&ran)), (3, vec!["dearer"]), "{ran:#}");
    world.sandbox.nebius().set_spot_price("gpu-h100-sxm", "eu-north1", None);
    let (code, ran) = world.json(&format!("provision --name dev --offer {offer}")).await;
    assert_eq!((code, outcomes(&ran)), (3, vec!["gone"]), "{ran:#}");
    assert!(world.sandbox.made().is_empty());
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calculator_corrects_the_list_for_an_hour() {
    let world = world().await;
    world.sandbox.nebius().set_price_factor("gpu-h100-sxm", 1.2);
    for _ in 0..2 {
        let (code, list) = world.json("offers --gpus H100:1").await;
        assert_eq!(code, 0, "{list}");
        let offer = &list["offers"][0];
        assert_eq!(offer["price_parts"]["compute"], json!(5.4), "{list:#}");
        assert_eq!(offer["price_estimated"], false, "{list:#}");
    }
    assert_eq!(world.asked("estimate"), 1, "the answer was kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_zero_leaves_its_region_out() {
    let world = world().await;
    let (_, before) = world.json("offers --gpus H200:1").await;
    let regions = |list: &Value| -> Vec<String> {
        let offers = list["offers"].as_array().unwrap();
        offers.iter().map(|offer| offer["region"].as_str().unwrap().to_owned()).collect()
    };
    let first = regions(&before).remove(0);
    let tenant = world.sandbox.nebius().tenant().to_owned();
    world.sandbox.nebius().set_quota(&tenant, "compute.instance.gpu.h200", &first, Some(0));
    let (_, after) = world.json("offers --gpus H200:1").await;
    assert!(!regions(&after).contains(&first), "{first}: {after:#}");
    assert!(warnings(&after).contains(&format!("H200 in {first}")), "{after:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_disk_is_asked_for_at_one_s_own_risk() {
    let world = world().await;
    let words = "provision --gpus H100:1 --name dev --disk 45 --attempts 1 --boot-timeout 4s";
    let ran = world.run(words).await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("seen to hang"), "{}", ran.stderr);
    assert!(ran.stderr.contains("security groups"), "{}", ran.stderr);
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_ends_is_renewed_in_the_middle() {
    let mut world = world().await;
    world.unset("NEBIUS_IAM_TOKEN");
    world.write("key.json", &world.sandbox.nebius().key_file().unwrap());
    let port = world.sandbox.vm_ssh_port();
    let file = world.home().join("key.json").display().to_string();
    world
        .config(&format!("[defaults]\nk8s = false\n[nebius]\nssh_port = {port}\ncredentials = \"{file}\"\n"));
    provision(&world, "--gpus H100:1").await;
    world.sandbox.nebius().expire_tokens();
    let (code, listed) = world.json("ls").await;
    assert_eq!((code, &listed["machines"][0]["state"]), (0, &json!("running")), "{listed}");
    world.sandbox.nebius().expire_tokens();
    remove(&world).await;
}
