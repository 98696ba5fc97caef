//! Deleting a machine with everything that was made for it.

use serde_json::{Value, json};

use crate::cloud::verda::samples::*;
use crate::cloud::{Cloud, Deletion, ErrorKind};
use crate::http::canned::{Canned, Reply, json as answer};
use crate::model::handle::Handle;
use crate::model::machine::MachineState;

const PUT: &str = "PUT /v1/instances";
const VOLUMES: &str = "GET /v1/volumes";
const TRASH: &str = "GET /v1/volumes/trash";
const KEYS: &str = "GET /v1/ssh-keys";

fn one() -> &'static str {
    Box::leak(format!("GET /v1/instances/{ID}").into_boxed_str())
}

fn the_volume() -> &'static str {
    Box::leak(format!("GET /v1/volumes/{VOLUME_ID}").into_boxed_str())
}

fn refusal(status: u16, words: &str) -> Reply {
    let item = json!([{"instanceId": ID, "action": "delete", "status": "error", "error": words, "statusCode": status}]);
    answer(207, item.to_string())
}

fn puts(server: &Canned) -> Vec<Value> {
    let asked = server.asked();
    asked
        .iter()
        .filter(|asked| asked.line == PUT)
        .map(|asked| serde_json::from_str(&asked.body).unwrap())
        .collect()
}

fn deletes(server: &Canned) -> Vec<String> {
    server.lines().into_iter().filter(|line| line.starts_with("DELETE")).collect()
}

fn pending(deletion: Deletion) -> String {
    match deletion {
        Deletion::Pending(words) => words,
        Deletion::Gone => panic!("gone"),
    }
}

#[tokio::test]
async fn machine_volumes_key_in_this_order_and_each_is_looked_at() {
    let server = server(vec![
        (one(), vec![good(&ready()), good(&changed(ready(), json!({"status": "deleting"}))), no_machine()]),
        (
            the_volume(),
            vec![good(&changed(volume(), json!({"status": "deleting"}))), problem(404, "not_found", "x")],
        ),
        (KEYS, vec![good(&json!([key_row(KEY_ID, WHOLE_NAME)])), good(&json!([]))]),
    ])
    .await;
    let cloud = cloud(&server.base);
    assert!(pending(cloud.delete(&handle()).await.unwrap()).contains("deleting"));
    assert_eq!(
        puts(&server),
        [json!({"action": "delete", "id": [ID], "volume_ids": [VOLUME_ID], "delete_permanently": true})]
    );
    assert!(deletes(&server).is_empty(), "the key goes last");
    assert_eq!(cloud.delete(&handle()).await.unwrap(), Deletion::Gone);
    assert_eq!(puts(&server).len(), 1);
    assert_eq!(deletes(&server), [format!("DELETE /v1/ssh-keys/{KEY_ID}")]);
    assert_eq!(cloud.inspect(&handle()).await.unwrap().state, MachineState::Gone);
}

#[tokio::test]
async fn a_machine_on_its_way_up_is_waited_for() {
    for reply in [
        problem(403, "forbidden_action", "Can't discontinue a provisioning instance"),
        refusal(403, "Can't discontinue a provisioning instance"),
    ] {
        let server = server(vec![(one(), vec![good(&starting())]), (PUT, vec![reply])]).await;
        let words = pending(cloud(&server.base).delete(&handle()).await.unwrap());
        assert!(words.contains("provisioning instance"), "{words}");
        assert!(deletes(&server).is_empty());
    }
}

#[tokio::test]
async fn already_gone_is_success() {
    for reply in [
        problem(403, "forbidden_action", "Can't discontinue a discontinued instance"),
        refusal(403, "Can't discontinue a discontinued instance"),
        problem(404, "not_found", "Invalid instance id"),
        text(204, ""),
    ] {
        let server = server(vec![(one(), vec![good(&ready()), no_machine()]), (PUT, vec![reply])]).await;
        assert_eq!(cloud(&server.base).delete(&handle()).await.unwrap(), Deletion::Gone);
    }
    let server = server(vec![]).await;
    assert_eq!(cloud(&server.base).delete(&handle()).await.unwrap(), Deletion::Gone);
    assert!(puts(&server).is_empty());
}

#[tokio::test]
async fn a_good_status_with_a_refusal_inside_is_no_success() {
    let server =
        server(vec![(one(), vec![good(&ready())]), (PUT, vec![refusal(500, "storage is down")])]).await;
    let error = cloud(&server.base).delete(&handle()).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Unavailable, "storage is down"));
    for (reply, kind) in [
        (problem(403, "forbidden_action", "Insufficient scope"), ErrorKind::Forbidden),
        (problem(401, "unauthorized_request", "x"), ErrorKind::Auth),
        (problem(400, "invalid_request", "volume_ids must be an array"), ErrorKind::Rejected),
        (problem(500, "server_error", "x"), ErrorKind::Unavailable),
        (answer(404, "<html>"), ErrorKind::Unavailable),
        (answer(403, "<html>"), ErrorKind::Unavailable),
    ] {
        let server =
            super::super::samples::server(vec![(one(), vec![good(&ready())]), (PUT, vec![reply])]).await;
        assert_eq!(cloud(&server.base).delete(&handle()).await.unwrap_err().kind, kind);
        assert!(deletes(&server).is_empty());
    }
}

#[tokio::test]
async fn only_own_volumes_are_named() {
    let theirs = changed(volume(), json!({"id": "theirs-0001", "name": "data", "tags": []}));
    let ours = changed(volume(), json!({"id": "ours-0001", "status": "attached"}));
    let attached =
        changed(ready(), json!({"volume_ids": [VOLUME_ID, "theirs-0001", "ours-0001", VOLUME_ID]}));
    let server = server(vec![
        (one(), vec![good(&attached), good(&changed(attached.clone(), json!({"status": "deleting"})))]),
        (VOLUMES, vec![good(&json!([theirs, ours]))]),
    ])
    .await;
    pending(cloud(&server.base).delete(&handle()).await.unwrap());
    assert_eq!(puts(&server)[0]["volume_ids"], json!([VOLUME_ID, "ours-0001"]));
}

#[tokio::test]
async fn what_a_machine_left_is_deleted_out_of_the_trash_too() {
    // Nobody told the volume's id: the machine was gone before it was looked at.
    let theirs = changed(volume(), json!({"id": "theirs-0001", "name": "data", "tags": []}));
    let bare = changed(volume(), json!({"tags": []}));
    let server = server(vec![
        (VOLUMES, vec![good(&json!([bare, theirs])), good(&json!([theirs]))]),
        (TRASH, vec![good(&json!([changed(trashed(), json!({"id": "trash-0001"}))])), good(&json!([]))]),
    ])
    .await;
    assert_eq!(cloud(&server.base).delete(&handle()).await.unwrap(), Deletion::Gone);
    let asked = server.asked();
    let volumes: Vec<_> =
        asked.iter().filter(|asked| asked.line.starts_with("DELETE /v1/volumes/")).collect();
    assert_eq!(volumes.len(), 2);
    assert!(volumes.iter().all(|asked| asked.body == "{\"is_permanent\":true}"));
    assert!(deletes(&server).contains(&"DELETE /v1/volumes/trash-0001".to_owned()));
    assert!(!deletes(&server).iter().any(|line| line.contains("theirs")));

    let stays = super::super::samples::server(vec![(TRASH, vec![good(&json!([trashed()]))])]).await;
    let words = pending(cloud(&stays.base).delete(&handle()).await.unwrap());
    assert!(words.contains(VOLUME_ID) && words.contains("deleted"), "{words}");
    assert!(!deletes(&stays).iter().any(|line| line.contains("ssh-keys")), "the key goes last");
}

#[tokio::test]
async fn a_volume_that_a_list_does_not_show_yet_is_asked_for_by_its_id() {
    let server = server(vec![
        (one(), vec![good(&ready()), no_machine()]),
        (the_volume(), vec![good(&volume()), problem(404, "not_found", "Invalid volume id")]),
    ])
    .await;
    assert_eq!(cloud(&server.base).delete(&handle()).await.unwrap(), Deletion::Gone);
    assert!(deletes(&server).contains(&format!("DELETE /v1/volumes/{VOLUME_ID}")));
}

#[tokio::test]
async fn a_key_that_stays_is_not_gone() {
    let server =
        server(vec![(KEYS, vec![good(&json!([key_row(KEY_ID, "renamed"), key_row("x-0001", "laptop")]))])])
            .await;
    assert!(pending(cloud(&server.base).delete(&handle()).await.unwrap()).contains("key"));
    assert_eq!(deletes(&server), [format!("DELETE /v1/ssh-keys/{KEY_ID}")]);
    for reply in [problem(404, "not_found", "Invalid ssh key id"), text(200, "")] {
        let path: &'static str = Box::leak(format!("DELETE /v1/ssh-keys/{KEY_ID}").into_boxed_str());
        let server = super::super::samples::server(vec![(path, vec![reply])]).await;
        assert_eq!(cloud(&server.base).delete(&handle()).await.unwrap(), Deletion::Gone);
    }
}

#[tokio::test]
async fn left_overs_go_by_themselves() {
    let part = |kind, id: &str| Handle { data: super::super::marks::side_data(kind), ..Handle::new(id) };
    let key = part(crate::model::handle::ResourceKind::Key, KEY_ID);
    let disk = part(crate::model::handle::ResourceKind::Disk, VOLUME_ID);
    let server = server(vec![
        (the_volume(), vec![good(&trashed()), problem(404, "not_found", "x")]),
        (KEYS, vec![good(&json!([key_row(KEY_ID, WHOLE_NAME)])), good(&json!([]))]),
    ])
    .await;
    let cloud = cloud(&server.base);
    assert_eq!(cloud.delete(&disk).await.unwrap(), Deletion::Gone);
    assert_eq!(cloud.inspect(&disk).await.unwrap().state, MachineState::Gone);
    pending(cloud.delete(&key).await.unwrap());
    assert_eq!(cloud.delete(&key).await.unwrap(), Deletion::Gone);
    assert_eq!(cloud.inspect(&key).await.unwrap().state, MachineState::Gone);
    assert!(puts(&server).is_empty());
}
