//! The life of machines, lists that come in parts, and create answers that are lost.

use gpuprov::sandbox::{FaultKind, Junk, When};
use serde_json::json;

use super::{always, fault, nothing_is_left, provision, remove, warnings, world};

#[tokio::test(flavor = "multi_thread")]
async fn the_main_life() {
    let world = world().await;
    let (code, list) = world.json("offers --gpus H100:1 --region FI --spot=any").await;
    assert_eq!(code, 0, "{list}");
    let offers = list["offers"].as_array().unwrap();
    assert_eq!(offers.len(), 2, "{list:#}");
    assert_eq!((&offers[0]["spot"], &offers[1]["spot"]), (&json!(true), &json!(false)));
    for offer in offers {
        assert_eq!(offer["instance_type"], "gpu-h100-sxm 1gpu-16vcpu-200gb");
        assert_eq!((&offer["region"], &offer["country"]), (&json!("eu-north1"), &json!("FI")));
        assert_eq!((&offer["disk_gb"], &offer["cuda"]), (&json!(64), &json!("13.0")));
    }
    assert_eq!(offers[1]["price_parts"]["compute"], json!(4.5));

    let ran = world.run("provision --gpus H100:1 --name dev --port 8080 --env A=b").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    let inside = world.run("ssh dev -- echo $A; nvidia-smi --query-gpu=name --format=csv,noheader").await;
    assert!(inside.code == 0 && inside.stdout.starts_with("b\n"), "{inside:?}");
    let config = std::fs::read_dir(world.home().join(".ssh/gpuprov")).unwrap();
    let text: String = config
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "conf"))
        .map(|entry| std::fs::read_to_string(entry.path()).unwrap())
        .collect();
    assert!(text.contains("StrictHostKeyChecking yes"), "the first contact was not checked: {text}");
    let (_, listed) = world.json("ls").await;
    let machine = &listed["machines"][0];
    assert_eq!((&machine["state"], &machine["spot"]), (&json!("running"), &json!(false)), "{listed}");
    assert_eq!((&machine["gpu_check"], &machine["ssh"]["user"]), (&json!("ok"), &json!("ubuntu")));
    assert_eq!(listed["left_over"], json!([]));
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spot_and_without_a_gpu() {
    let world = world().await;
    for (words, gpus) in [("--gpus H100:1 --spot", 1), ("--cpu-only", 0), ("--gpus L40S:1 --disk 70", 1)] {
        let ran = provision(&world, words).await;
        assert_eq!(ran["machines"][0]["gpu_count"], json!(gpus), "{ran}");
        remove(&world).await;
    }
    let (code, list) = world.json("offers --gpus L40S:1 --spot").await;
    assert_eq!((code, &list["offers"]), (0, &json!([])), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_what_is_only_helpful_the_list_is_made_all_the_same() {
    let world = world().await;
    for operation in ["list_advice", "list_quotas", "estimate"] {
        always(&world, operation, FaultKind::status(403));
    }
    let (code, list) = world.json("offers --gpus H100:1").await;
    assert_eq!(code, 0, "{list}");
    let offers = list["offers"].as_array().unwrap();
    assert!(!offers.is_empty());
    assert!(
        offers.iter().all(|offer| offer["price_estimated"] == true && offer["stock"].is_null()),
        "{list}"
    );
    assert!(warnings(&list).contains("what is in stock is not known"), "{list}");
    world.sandbox.clear_faults();
    always(&world, "list_spot_prices", FaultKind::status(503));
    let (code, list) =
        world.json("offers --gpus H100:1 --spot=any --region US --region CA --region FI").await;
    assert_eq!(code, 0, "{list}");
    assert!(warnings(&list).contains("spot offers are missing"), "{list}");
    let (code, list) = world.json("offers --gpus H100:1 --spot").await;
    assert_eq!(code, 1, "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_makes_no_second_machine() {
    for what in [
        FaultKind::Reset { when: When::After },
        FaultKind::Reset { when: When::Before },
        FaultKind::CutBody,
        FaultKind::Garbage { body: Junk::Html },
        FaultKind::Garbage { body: Junk::Empty },
        FaultKind::status_after(503),
        FaultKind::status(503),
        FaultKind::status(429),
    ] {
        let world = world().await;
        fault(&world, "create_instance", what.clone());
        let (code, ran) = world.json("provision --gpus H100:1 --name dev").await;
        assert_eq!(code, 0, "{what:?}: {ran}");
        assert_eq!(world.sandbox.alive().len(), 1, "{what:?}");
        assert_eq!(world.sandbox.made().len(), 1, "{what:?}");
        remove(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_pages_hide_nothing() {
    let world = world().await;
    for operation in [
        "list_projects",
        "list_platforms",
        "list_advice",
        "list_quotas",
        "list_spot_prices",
        "list_instances",
        "list_disks",
    ] {
        always(&world, operation, FaultKind::PageSize { size: 1 });
    }
    provision(&world, "--gpus H100:1 --spot").await;
    let (code, listed) = world.json("ls").await;
    assert_eq!((code, listed["machines"].as_array().unwrap().len()), (0, 1), "{listed}");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_a_record_is_found_and_removed() {
    let world = world().await;
    provision(&world, "--gpus H100:1").await;
    for entry in std::fs::read_dir(world.state().join("machines")).unwrap().flatten() {
        std::fs::remove_file(entry.path()).unwrap();
    }
    let (code, listed) = world.json("ls").await;
    assert_eq!(code, 0, "{listed}");
    let machine = &listed["machines"][0];
    assert_eq!((&machine["name"], &machine["recorded"]), (&json!("dev"), &json!(false)), "{listed}");
    assert_eq!(machine["region"], "eu-north1");
    let ran = world.run("rm dev --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_honoured_is_refused_or_noted() {
    let world = world().await;
    for words in ["--port 80@10.0.0.0/8", "--image ubuntu", "--cuda 13.1"] {
        let ran = world.run(&format!("provision --gpus H100:1 --name dev {words}")).await;
        assert!(ran.code == 2 || ran.code == 3, "{words}: {ran:?}");
    }
    nothing_is_left(&world);
    let (code, dry) = world.json("provision --gpus H100:1 --name dev --spot --dry-run").await;
    assert_eq!(code, 0, "{dry}");
    let request = &dry["request"];
    assert!(request["method"].as_str().unwrap().ends_with("InstanceService/Create"), "{dry}");
    assert_eq!(request["body"]["spec"]["follows_spot_price"], json!({}), "{dry}");
    assert!(!dry.to_string().contains("PRIVATE KEY"));
}
