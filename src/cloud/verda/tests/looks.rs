//! Looking at machines and finding what is ours.

use serde_json::{Value, json};

use crate::cloud::verda::samples::*;
use crate::cloud::{Cloud, ErrorKind, Look, Which};
use crate::http::canned::{Reply, json as answer};
use crate::model::handle::{Handle, ResourceKind};
use crate::model::machine::MachineState;
use crate::model::mark::Mark;

fn one() -> &'static str {
    Box::leak(format!("GET /v1/instances/{ID}").into_boxed_str())
}

fn journal() -> &'static str {
    Box::leak(format!("GET /v1/journal/compute/{ID}").into_boxed_str())
}

async fn look_at(instance: Value) -> Look {
    look(vec![(one(), vec![good(&instance)])]).await.unwrap()
}

async fn look(special: Vec<(&'static str, Vec<Reply>)>) -> crate::cloud::Result<Look> {
    let server = server(special).await;
    cloud(&server.base).inspect(&handle()).await
}

#[tokio::test]
async fn states() {
    for (status, state, failed) in [
        ("new", MachineState::Booting, false),
        ("ordered", MachineState::Booting, false),
        ("validating", MachineState::Booting, false),
        ("provisioning", MachineState::Booting, false),
        ("pending", MachineState::Booting, false),
        ("restoring", MachineState::Booting, false),
        ("validating2", MachineState::Booting, false),
        ("running", MachineState::Booting, false),
        ("unknown", MachineState::Unknown, false),
        ("offline", MachineState::Stopped, false),
        ("no_capacity", MachineState::Failed, true),
        ("error", MachineState::Failed, true),
        ("installation_failed", MachineState::Failed, true),
        ("deleting", MachineState::Deleting, false),
        ("discontinued", MachineState::Gone, false),
        ("notfound", MachineState::Gone, false),
    ] {
        let look = look_at(changed(starting(), json!({"status": status}))).await;
        assert_eq!((look.state, look.failed.is_some()), (state, failed), "{status}");
        assert!(look.ssh.is_empty(), "{status}");
        if state != MachineState::Gone {
            assert!(look.words.unwrap().starts_with(status), "{status}");
        }
    }
}

#[tokio::test]
async fn a_machine_that_is_ready() {
    for ready in [ready(), json!([ready()])] {
        let look = look_at(ready).await;
        let [ssh] = look.ssh.as_slice() else { panic!("{:?}", look.ssh) };
        assert_eq!((ssh.host(), ssh.port(), ssh.user()), ("203.0.113.10", 22, "root"));
        assert_eq!((look.state, look.costs_now), (MachineState::Running, None));
        let sold = look.sold;
        assert_eq!(
            (sold.price_per_hour.unwrap().micros(), sold.price_has_disk, sold.spot),
            (982_000, Some(false), Some(true))
        );
        assert_eq!((sold.gpu_raw.as_deref(), sold.gpu_count), (Some("RTX PRO 6000 96GB"), Some(1)));
        assert_eq!((sold.ram_gb, sold.vcpus, sold.zone.as_deref()), (Some(90.0), Some(30.0), Some("FIN-03")));
        assert_eq!(sold.instance_type.as_deref(), Some("1RTXPRO6000.30V"));
    }
    let server = server(vec![(one(), vec![good(&ready())])]).await;
    let other = cloud_with(&server.base, |_, settings| settings.ssh_port = 2222);
    assert_eq!(other.inspect(&handle()).await.unwrap().ssh[0].port(), 2222);
}

#[tokio::test]
async fn a_price_is_trusted_for_one_gpu_alone() {
    for (count, price) in [(1, Some(982_000)), (8, None), (0, None)] {
        let look =
            look_at(changed(ready(), json!({"gpu": {"description": "", "number_of_gpus": count}}))).await;
        assert_eq!(look.sold.price_per_hour.map(|price| price.micros()), price, "{count}");
        assert_eq!(look.costs_now, None, "{count}: the disk is not counted");
    }
    let off = look_at(changed(ready(), json!({"status": "offline"}))).await;
    assert_eq!((off.state, off.costs_now), (MachineState::Stopped, None));
    assert!(crate::cloud::verda::capabilities().bills_stopped);
    assert!(off.ssh.is_empty());
}

#[tokio::test]
async fn an_address_that_is_none_is_not_an_address() {
    for ip in [
        json!(null),
        json!(""),
        json!(7),
        json!("10.0.0.1"),
        json!("100.64.1.1"),
        json!("a b"),
        json!("-oProxyCommand=x.y"),
    ] {
        let look = look_at(changed(ready(), json!({"ip": ip}))).await;
        assert_eq!(
            (look.state, look.ssh.is_empty(), look.failed.is_none()),
            (MachineState::Booting, true, true),
            "{ip}"
        );
    }
}

#[tokio::test]
async fn the_reason_of_a_failure_comes_from_the_journal() {
    let failed = good(&changed(starting(), json!({"status": "error"})));
    for (events, kind) in [
        (json!([event("error", json!({"error_message": "GPU_QUOTA_EXCEEDED"}))]), ErrorKind::Quota),
        (json!([event("error", json!({"error_message": "host is broken"}))]), ErrorKind::NoCapacity),
        (json!([]), ErrorKind::NoCapacity),
    ] {
        let failed = look(vec![(one(), vec![failed.clone()]), (journal(), vec![good(&events)])])
            .await
            .unwrap()
            .failed
            .unwrap();
        assert_eq!(failed.kind, kind, "{failed}");
    }
    let silent = look(vec![(one(), vec![failed]), (journal(), vec![answer(404, "<html>")])]).await.unwrap();
    assert!(silent.failed.is_some());
}

#[tokio::test]
async fn gone_is_a_state_but_only_when_the_list_says_so_too() {
    let state = async |special| look(special).await.map(|look| look.state);
    assert_eq!(state(vec![]).await.unwrap(), MachineState::Gone);
    let invalid = problem(400, "invalid_request", "Invalid instance id");
    assert_eq!(state(vec![(one(), vec![invalid])]).await.unwrap(), MachineState::Gone);
    let listed = ("GET /v1/instances", vec![good(&json!([starting()]))]);
    assert_eq!(state(vec![(one(), vec![no_machine()]), listed]).await.unwrap(), MachineState::Booting);
    for broken in [
        vec![(one(), vec![answer(404, "<html>")])],
        vec![(one(), vec![problem(404, "not_found", "Cannot GET /v1/instances/x")])],
        vec![("GET /v1/instances", vec![problem(404, "not_found", "Cannot GET /v1/instances")])],
        vec![("GET /v1/instances", vec![good(&json!({}))])],
        vec![(one(), vec![answer(200, "no json")])],
    ] {
        assert!(look(broken.clone()).await.is_err(), "{broken:?}");
    }
    for bad in ["", ".", "..", "a/b", "a?b"] {
        let error = cloud("http://127.0.0.1:1").inspect(&Handle::new(bad)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected, "{bad}");
    }
}

#[tokio::test]
async fn a_machine_that_was_taken_away_is_told_from_one_that_was_removed() {
    let evicted = json!([event("delete", json!({"properties": {"delete_reason": "evicted_by_on_demand"}}))]);
    let removed =
        json!([event("delete", json!({"actor_id": "7dfc2631-0158", "request_origin": "console-web"}))]);
    let discontinued = good(&changed(ready(), json!({"status": "discontinued"})));
    for gone in [no_machine(), discontinued] {
        let look_with = async |events: &Value, volumes: Value| {
            look(vec![
                (one(), vec![gone.clone()]),
                (journal(), vec![good(events)]),
                ("GET /v1/volumes", vec![good(&volumes)]),
            ])
            .await
            .unwrap()
        };
        let taken = look_with(&evicted, json!([])).await;
        assert_eq!((taken.state, taken.costs_now.unwrap().micros()), (MachineState::Preempted, 0));
        assert!(taken.words.unwrap().contains("evicted_by_on_demand"));
        assert_eq!(taken.failed.unwrap().kind, ErrorKind::NoCapacity);
        let with_disk = look_with(&evicted, json!([volume()])).await;
        assert_eq!(with_disk.costs_now.unwrap().micros(), 27_397);
        let gone = look_with(&removed, json!([])).await;
        assert_eq!((gone.state, gone.failed.is_none()), (MachineState::Gone, true));
    }
    let silent =
        look(vec![(journal(), vec![problem(403, "forbidden_action", "Insufficient scope")])]).await.unwrap();
    assert_eq!((silent.state, silent.failed.is_none()), (MachineState::Gone, true));
}

#[tokio::test]
async fn everything_of_ours_is_found() {
    let other = Mark { account: "lab".to_owned(), claim: "1111111111111111".parse().unwrap(), ..mark() };
    let foreign = json!([{"id": "tag_1", "key": "gpuprov-claim", "value": "00ff00ff00ff00ff"}]);
    let tags_of = |mark: &Mark| -> Value {
        mark.labels().into_iter().map(|(key, value)| json!({"id": "t", "key": key, "value": value})).collect()
    };
    let special = || {
        vec![
            (
                "GET /v1/instances",
                vec![good(&json!([
                    ready(),
                    changed(ready(), json!({"id": "twin-0001", "tags": tags_of(&other)})),
                    changed(ready(), json!({"id": "foreign-0001", "tags": foreign})),
                    changed(
                        ready(),
                        json!({"id": "foreign-0002", "tags": [], "description": "gpuprov-like"})
                    ),
                    changed(ready(), json!({"id": "foreign-0003", "tags": null, "description": "jupyter"})),
                ]))],
            ),
            (
                "GET /v1/volumes",
                vec![good(&json!([
                    changed(volume(), json!({"status": "attached", "id": "attached-0001"})),
                    changed(
                        volume(),
                        json!({"tags": tags_of(&Mark { claim: "2222222222222222".parse().unwrap(), ..mark() })})
                    ),
                    changed(
                        volume(),
                        json!({"id": "untagged-0001", "tags": null, "name": "gpuprov-lab-3333333333333333"})
                    ),
                    changed(volume(), json!({"id": "foreign-0004", "tags": [], "name": "data"})),
                ]))],
            ),
            (
                "GET /v1/volumes/trash",
                vec![good(&json!([
                    changed(trashed(), json!({"id": "trash-0001"})),
                    changed(trashed(), json!({"id": "gone-0001", "is_permanently_deleted": true})),
                ]))],
            ),
            (
                "GET /v1/ssh-keys",
                vec![good(&json!([
                    key_row(KEY_ID, WHOLE_NAME),
                    key_row("twin-key-0001", "gpuprov-lab-1111111111111111"),
                    key_row("lost-key-0001", "gpuprov-lab-4444444444444444"),
                    key_row("their-key-0001", "gpuprov-another-5555555555555555"),
                    key_row("foreign-0005", "laptop"),
                ]))],
            ),
        ]
    };
    let find = async |which: Which| {
        let server = server(special()).await;
        let mut found = cloud(&server.base).find(&which).await.unwrap();
        found.sort_by(|one, two| one.handle.id.cmp(&two.handle.id));
        found
    };
    let ids = |found: &[crate::cloud::Found]| -> Vec<(String, &'static str)> {
        found.iter().map(|found| (found.handle.id.clone(), found.kind.as_str())).collect()
    };
    let pair = |id: &str, kind: &'static str| (id.to_owned(), kind);
    let claim = find(Which::Claim(mark().installation, mark().claim)).await;
    assert_eq!(ids(&claim), [pair(ID, "machine"), pair(KEY_ID, "key"), pair("trash-0001", "disk")]);
    assert!(
        claim.iter().all(|found| found.mark == mark()),
        "a name alone tells less, the machine tells the rest"
    );
    assert_eq!(claim[0].handle, super::super::marks::machine(ID, &mark()));
    assert_eq!(claim[0].since.unwrap().to_string(), "2026-11-30T09:10:26.654Z");
    let mine = find(Which::Installation(mark().installation)).await;
    assert_eq!(
        ids(&mine),
        [
            pair(ID, "machine"),
            pair(KEY_ID, "key"),
            pair(VOLUME_ID, "disk"),
            pair("lost-key-0001", "key"),
            pair("trash-0001", "disk"),
            pair("untagged-0001", "disk"),
        ],
        "the other account's machine and key are not touched"
    );
    assert_eq!(mine[2].look.costs_now.unwrap().micros(), 27_397);
    assert_eq!(mine[4].look.costs_now.unwrap().micros(), 0);
    let any = find(Which::AnyMarked).await;
    assert_eq!(any.len(), 9);
    assert!(any.iter().all(|found| !found.handle.id.starts_with("foreign")));
    assert_eq!(any.iter().filter(|found| found.kind == ResourceKind::Machine).count(), 2);
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_no_empty_list() {
    for (path, list) in [
        // Its key is not in the list.
        ("GET /v1/instances", json!([changed(ready(), json!({"tags": null}))])),
        ("GET /v1/instances", json!([changed(ready(), json!({"id": null}))])),
        ("GET /v1/volumes", json!([changed(volume(), json!({"id": 7}))])),
        ("GET /v1/instances", json!({"instances": []})),
        ("GET /v1/ssh-keys", json!(null)),
    ] {
        let server = server(vec![(path, vec![good(&list)])]).await;
        let error = cloud(&server.base).find(&Which::AnyMarked).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreadable, "{path} {list}");
    }
}

#[tokio::test]
async fn a_machine_without_its_tags_is_told_by_its_key_and_our_description() {
    let find = async |change: Value, tags: &Value| {
        let bare = changed(changed(ready(), json!({"tags": tags})), change);
        let server = server(vec![
            ("GET /v1/instances", vec![good(&json!([bare]))]),
            ("GET /v1/volumes", vec![good(&json!([changed(volume(), json!({"tags": tags}))]))]),
            ("GET /v1/ssh-keys", vec![good(&json!([key_row(KEY_ID, WHOLE_NAME)]))]),
        ])
        .await;
        let which = Which::Claim(mark().installation, mark().claim);
        cloud(&server.base).find(&which).await.unwrap()
    };
    for tags in [json!([]), json!(null)] {
        let found = find(json!({}), &tags).await;
        let kinds: Vec<ResourceKind> = found.iter().map(|found| found.kind).collect();
        assert_eq!(kinds, [ResourceKind::Machine, ResourceKind::Disk, ResourceKind::Key]);
        assert!(found.iter().all(|found| found.mark.name == "dev" && found.mark.account == "default"));
    }
    // Somebody chose our key for a machine of their own.
    for theirs in [
        json!({"description": "training", "hostname": "train"}),
        json!({"description": "gpuprov-dev-111111"}),
        json!({"hostname": "dev2"}),
        json!({"ssh_key_ids": [KEY_ID, "other-key-0001"]}),
    ] {
        let found = find(theirs.clone(), &json!([])).await;
        assert!(found.iter().all(|found| found.kind != ResourceKind::Machine), "{theirs}");
    }
}
