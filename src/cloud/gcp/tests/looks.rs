//! Looks at machines, and the list.

use serde_json::{Value, json};

use crate::cloud::gcp::samples::*;
use crate::cloud::{Cloud, ErrorKind, HostKeys, Look, Which};
use crate::http::canned::{Reply, json as answer};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;

const GET: &str = "GET /zones/us-central1-a/instances/gpuprov-dev-00ff00";
const KEYS: &str = "GET /zones/us-central1-a/instances/gpuprov-dev-00ff00/getGuestAttributes";
const OPERATIONS: &str = "GET /zones/us-central1-a/operations";
const RULES: &str = "GET /global/firewalls";
const MACHINES: &str = "GET /aggregated/instances";
const DISKS: &str = "GET /aggregated/disks";

async fn look(special: Vec<(&'static str, Vec<Reply>)>) -> Look {
    let server = server(special).await;
    cloud(&server.base).inspect(&handle()).await.unwrap()
}

async fn of(instance: Value) -> Look {
    look(vec![(GET, vec![good(&instance)])]).await
}

#[tokio::test]
async fn what_a_running_machine_says() {
    let look = look(vec![(GET, vec![good(&running())]), (KEYS, vec![good(&host_keys())])]).await;
    assert_eq!(look.state, MachineState::Running);
    assert_eq!((look.ssh[0].host(), look.ssh[0].port(), look.ssh[0].user()), ("203.0.113.17", 22, "ubuntu"));
    assert_eq!(
        look.host_keys,
        HostKeys::Keys(vec![format!("ssh-ed25519 {HOST_KEY}")]),
        "odd ones are left out"
    );
    assert_eq!((look.sold.spot, look.sold.gpu_count, look.sold.disk_gb), (Some(true), Some(1), Some(50)));
    assert_eq!(look.sold.gpu_raw.as_deref(), Some("nvidia-l4"));
    assert_eq!(look.sold.instance_type.as_deref(), Some("g2-standard-4"));
    assert_eq!((look.sold.region.as_deref(), look.sold.zone.as_deref()), (Some("us-central1"), Some(ZONE)));
}

#[tokio::test]
async fn states() {
    for (status, state) in [
        ("PENDING", MachineState::Creating),
        ("PROVISIONING", MachineState::Creating),
        ("STAGING", MachineState::Creating),
        ("RUNNING", MachineState::Running),
        ("REPAIRING", MachineState::Booting),
        ("STOPPING", MachineState::Stopped),
        ("TERMINATED", MachineState::Stopped),
        ("SUSPENDED", MachineState::Stopped),
        ("DEPROVISIONING", MachineState::Deleting),
        ("DREAMING", MachineState::Booting),
    ] {
        let look = of(changed(running(), json!({"status": status}))).await;
        assert_eq!(look.state, state, "{status}");
        assert!(look.words.unwrap().starts_with(status));
    }
    let look = of(changed(staging(), json!({"status": "RUNNING"}))).await;
    assert_eq!((look.state, look.ssh.len()), (MachineState::Booting, 0), "no address yet");
    let mut inside = running();
    inside["networkInterfaces"][0]["accessConfigs"][0]["natIP"] = json!("10.0.0.1\nHost *");
    let look = of(inside).await;
    assert!(look.ssh.is_empty() && look.words.unwrap().contains("RUNNING"));
    assert_eq!(of(json!({"id": ID})).await.state, MachineState::Unknown);
}

#[tokio::test]
async fn a_namesake_made_later_is_another_machine() {
    let look = of(changed(running(), json!({"id": "99"}))).await;
    assert_eq!(look.state, MachineState::Gone);
}

#[tokio::test]
async fn host_keys_come_a_little_later_or_never() {
    let server = server(vec![
        (GET, vec![good(&running())]),
        (KEYS, vec![problem(404, "notFound", "The resource 'hostkeys/' was not found"), good(&host_keys())]),
    ])
    .await;
    let cloud = cloud(&server.base);
    assert_eq!(cloud.inspect(&handle()).await.unwrap().host_keys, HostKeys::Unknown);
    for _ in 0..3 {
        assert!(matches!(cloud.inspect(&handle()).await.unwrap().host_keys, HostKeys::Keys(_)));
    }
    let asked = |server: &crate::http::canned::Canned| {
        calls(server).iter().filter(|call| call.ends_with("/getGuestAttributes")).count()
    };
    assert_eq!(asked(&server), 2);

    let server = crate::cloud::gcp::samples::server(vec![
        (GET, vec![good(&running())]),
        (
            KEYS,
            vec![problem(
                403,
                "forbidden",
                "Required 'compute.instances.getGuestAttributes' permission for 'x'",
            )],
        ),
    ])
    .await;
    let cloud = crate::cloud::gcp::samples::cloud(&server.base);
    for _ in 0..3 {
        assert_eq!(cloud.inspect(&handle()).await.unwrap().host_keys, HostKeys::Unknown);
    }
    assert_eq!(asked(&server), 1);
}

#[tokio::test]
async fn taken_away() {
    let event = json!({
        "kind": "compute#operation", "name": "systemevent-1", "operationType": "compute.instances.preempted", "user": "system",
        "status": "DONE", "statusMessage": "Instance was preempted.", "targetId": ID,
    });
    let gone = || missing("zones/us-central1-a/instances/gpuprov-dev-00ff00");
    let list = |events: Value| good(&json!({"kind": "compute#operationList", "items": events}));
    let taken = look(vec![(GET, vec![gone()]), (OPERATIONS, vec![list(json!([event]))])]).await;
    assert_eq!(taken.state, MachineState::Preempted);
    assert_eq!(taken.words.as_deref(), Some("preempted by Google (Instance was preempted)"));
    assert_eq!(taken.failed.unwrap().kind, ErrorKind::NoCapacity);
    let stopping = changed(running(), json!({"status": "STOPPING"}));
    let leaving = look(vec![(GET, vec![good(&stopping)]), (OPERATIONS, vec![list(json!([event]))])]).await;
    assert_eq!(leaving.state, MachineState::Preempted);

    let other = changed(event, json!({"targetId": "1"}));
    for answer in
        [list(json!([other])), list(json!([])), problem(403, "forbidden", "Required 'x.y' permission")]
    {
        let untold = look(vec![(GET, vec![gone()]), (OPERATIONS, vec![answer])]).await;
        assert_eq!((untold.state, untold.failed.is_none()), (MachineState::Gone, true));
    }
}

#[tokio::test]
async fn a_project_that_is_not_seen_is_no_proof() {
    for reply in [
        problem(404, "notFound", "The resource 'projects/lab-1' was not found"),
        answer(404, "{}"),
        Reply::Answer(404, "content-type: text/html\r\n".to_owned(), "<html>".to_owned()),
    ] {
        let server = server(vec![(GET, vec![reply])]).await;
        cloud(&server.base).inspect(&handle()).await.unwrap_err();
    }
    let mut elsewhere = handle();
    elsewhere.data.insert("project".to_owned(), "lab-2".into());
    let error = cloud("http://127.0.0.1:1").inspect(&elsewhere).await.unwrap_err();
    assert!(error.message.contains("lab-2"), "{error}");
}

#[tokio::test]
async fn an_end_that_google_did_not_take_is_told() {
    let mut known = known();
    known.mark.as_mut().unwrap().expires = Some(jiff::Timestamp::now());
    let handle = Handle { data: known.data(), ..Handle::new(ID) };
    let mut keeps = running();
    keeps["scheduling"]["maxRunDuration"] = json!({"seconds": "7200"});
    let server = server(vec![(GET, vec![good(&running()), good(&keeps)])]).await;
    let cloud = cloud(&server.base);
    assert!(cloud.inspect(&handle).await.unwrap().words.unwrap().contains("did not take its end"));
    assert_eq!(cloud.inspect(&handle).await.unwrap().words.as_deref(), Some("RUNNING"));
}

#[tokio::test]
async fn the_list_is_of_all_zones_with_rules_and_disks() {
    let mut tagged = running();
    tagged["tags"] = json!({"items": [RULE]});
    tagged["resourceStatus"] =
        json!({"scheduling": {"terminationTimestamp": "2026-12-01T02:00:00.000-08:00"}});
    let foreign = changed(running(), json!({"labels": {"gpuprov": "1"}, "name": "x", "id": "5"}));
    let used = changed(disk(), json!({"users": ["https://www.googleapis.com/compute/v1/x"], "id": "6"}));
    let other_rule = changed(rule(), json!({"name": "gpuprov-1234123412341234"}));
    let server = server(vec![
        (MACHINES, vec![good(&aggregated("instances", &[tagged, foreign]))]),
        (DISKS, vec![good(&aggregated("disks", &[disk(), used]))]),
        (RULES, vec![good(&json!({"items": [rule(), other_rule, {"name": "default-allow-ssh"}]}))]),
    ])
    .await;
    let cloud = cloud(&server.base);
    let found = cloud.find(&Which::AnyMarked).await.unwrap();
    let kinds: Vec<_> = found.iter().map(|found| (found.kind, found.handle.id.as_str())).collect();
    assert_eq!(
        kinds,
        [
            (ResourceKind::Machine, ID),
            (ResourceKind::Disk, "7240199231733014151"),
            (ResourceKind::Rule, RULE)
        ]
    );
    assert_eq!(found[0].mark.expires, Some("2026-12-01T10:00:00Z".parse().unwrap()), "as Google says");
    assert_eq!(found[0].handle.side.len(), 1);
    assert_eq!(found[1].look.costs_now.unwrap().micros(), 6850);
    assert!(server.lines().iter().any(|line| line.contains("filter=labels.gpuprov:%2A")));
    let claim = mark().claim;
    for (which, count) in [
        (Which::Claim("lab".parse().unwrap(), claim), 3),
        (Which::Claim("lab".parse().unwrap(), "1111111111111111".parse().unwrap()), 0),
        (Which::Installation("other".parse().unwrap()), 0),
    ] {
        assert_eq!(cloud.find(&which).await.unwrap().len(), count, "{which:?}");
    }
}

#[tokio::test]
async fn without_a_tag_nobody_looks_at_rules_and_a_refusal_is_no_failure() {
    let server_plain = server(vec![(MACHINES, vec![good(&aggregated("instances", &[running()]))])]).await;
    assert_eq!(cloud(&server_plain.base).find(&Which::AnyMarked).await.unwrap().len(), 1);
    assert!(!calls(&server_plain).iter().any(|call| call.contains("firewalls")));
    let tagged = changed(running(), json!({"tags": {"items": [RULE]}}));
    let server = server(vec![
        (MACHINES, vec![good(&aggregated("instances", &[tagged]))]),
        (RULES, vec![problem(403, "forbidden", "Required 'compute.firewalls.list' permission for 'x'")]),
    ])
    .await;
    assert_eq!(cloud(&server.base).find(&Which::AnyMarked).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_list_with_a_hole_is_an_error() {
    let whole = aggregated("instances", &[running()]);
    let silent = changed(whole.clone(), json!({"unreachables": ["zones/us-east1-b"]}));
    let mut warned = whole.clone();
    warned["items"]["zones/us-central1-b"]["warning"]["code"] = json!("UNREACHABLE");
    let no_id = aggregated("instances", &[changed(running(), json!({"id": null}))]);
    let odd = aggregated("instances", &[json!("x")]);
    let repeated = changed(whole, json!({"nextPageToken": "a"}));
    for page in [silent, warned, no_id, odd, repeated, json!({"items": 7}), json!([])] {
        let server = server(vec![(MACHINES, vec![good(&page)])]).await;
        cloud(&server.base).find(&Which::AnyMarked).await.unwrap_err();
    }
}

#[tokio::test]
async fn pages_are_followed_and_crowded_reads_wait() {
    let first = changed(aggregated("instances", &[]), json!({"nextPageToken": "next one"}));
    let server = server(vec![(
        MACHINES,
        vec![
            good(&first),
            problem(403, "rateLimitExceeded", "Rate Limit Exceeded"),
            good(&aggregated("instances", &[running()])),
        ],
    )])
    .await;
    assert_eq!(cloud(&server.base).find(&Which::AnyMarked).await.unwrap().len(), 1);
    assert!(server.lines().iter().any(|line| line.contains("pageToken=next%20one")));
}

#[tokio::test]
async fn a_number_alone_is_looked_for_among_ours() {
    let list = good(&aggregated("instances", &[running()]));
    let server = server(vec![(MACHINES, vec![list]), (GET, vec![good(&running())])]).await;
    let cloud = cloud(&server.base);
    assert_eq!(cloud.inspect(&Handle::new(ID)).await.unwrap().state, MachineState::Running);
    assert_eq!(cloud.inspect(&Handle::new("99")).await.unwrap().state, MachineState::Gone);
    assert_eq!(cloud.delete(&Handle::new("99")).await.unwrap(), crate::cloud::Deletion::Gone);
}
