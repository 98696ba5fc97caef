//! Ports: exactly those, for exactly that machine, and gone with it.

use gpuprov::sandbox::{GCP_FIREWALL_PERMISSIONS, GcpFault};
use serde_json::json;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_opened_for_the_machine_alone_and_go_with_it() {
    let world = world().await;
    provision(&world, "--gpus L4:1 --port 8080 --port 9000@203.0.113.0/24").await;
    let rules = bodies(&world, "insert_firewall");
    assert_eq!(rules.len(), 2);
    let machine = bodies(&world, "insert_instance").remove(0);
    for rule in &rules {
        assert_eq!(rule["targetTags"], machine["tags"]["items"], "{rule}");
        assert!(rule["description"].as_str().unwrap().starts_with("v1:"), "{rule}");
    }
    let ranges: Vec<_> = rules.iter().map(|rule| rule["sourceRanges"].clone()).collect();
    assert_eq!(ranges, [json!(["0.0.0.0/0"]), json!(["203.0.113.0/24"])]);
    let (_, listed) = world.json("ls").await;
    assert_eq!(listed["left_over"], json!([]), "{listed:#}");
    remove(&world).await;
    assert_eq!(world.asked("delete_firewall"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_nothing_is_made() {
    let world = world().await;
    let project = world.sandbox.gcp().project().to_owned();
    world.sandbox.gcp().deny(&project, &GCP_FIREWALL_PERMISSIONS);
    let ran = world.run("provision --gpus L4:1 --name dev --port 8080").await;
    assert_eq!((ran.code, world.asked("insert_instance")), (4, 0), "{ran:?}");
    assert!(ran.stderr.contains("roles/compute.securityAdmin"), "{ran:?}");
    nothing_is_left(&world);
    provision(&world, "--gpus L4:1").await;
    let asked = ["insert_firewall", "get_firewall", "list_firewalls"].map(|operation| world.asked(operation));
    assert_eq!(asked[2], 0, "who opens no port needs no right to look at rules");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_refused_takes_its_rule_along() {
    let world = world().await;
    fault(&world, "insert_instance", GcpFault::no_capacity());
    provision(&world, "--gpus L4:1 --port 8080").await;
    let rules =
        world.sandbox.gcp().left().iter().filter(|left| left.to_string().contains("gpuprov-")).count();
    assert!(rules >= 1);
    remove(&world).await;
    always(&world, "insert_instance", GcpFault::no_capacity());
    let ran = world.run("provision --gpus L4:1 --name dev --port 8080").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preempted_machine_leaves_no_rule_behind() {
    let world = world().await;
    let ran = provision(&world, "--gpus L4:1 --spot --port 8080").await;
    assert!(world.sandbox.gcp().preempt(ran["machines"][0]["id"].as_str().unwrap()));
    remove(&world).await;
}
