//! From create to gone, and what becomes of volumes.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Rig;
use super::super::ssh::{run, ssh};
use super::{body, delete, plain};
use crate::sandbox::{ClockMode, LeftKind, VerdaGuesses, VerdaSeed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_life() {
    let rig = Rig::new().await;
    let token = rig.verda_token().await;
    let (file, public) = rig.key("id_test", "ed25519").await;
    let key = rig.verda_key(&token, &public).await;
    let id = rig.deploy(&token, body(&key)).await;
    let early = rig.ask_verda(&token, "GET", &format!("instances/{id}"), None).await.1;
    assert_eq!(
        (&early["ip"], &early["os_volume_id"], &early["volume_ids"]),
        (&json!(null), &json!(null), &json!([]))
    );
    let one = rig.becomes(&token, &id, "running").await;
    assert_eq!(
        (&one["price_per_hour"], &one["is_spot"], &one["contract"]),
        (&json!(0.982), &json!(true), &json!("SPOT"))
    );
    assert_eq!((&one["tags"][0]["key"], &one["tags"][1]["value"]), (&json!("gpuprov"), &json!("")));
    let ip = one["ip"].as_str().unwrap().to_owned();
    assert!(ip.starts_with("127.0.") && ip != "127.0.0.1", "{ip}");
    let port = rig.sandbox.vm_ssh_port();
    let mut last = (-1, String::new(), String::new());
    for _ in 0..40 {
        last = run(ssh(&file, port).args([&format!("root@{ip}"), "nvidia-smi -L"])).await;
        if last.0 != 255 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(last.0, 0, "{last:?}");
    assert!(last.1.contains("RTX PRO 6000 96GB"), "{last:?}");
    for (query, count) in [
        ("tag=gpuprov", 1),
        ("tag=gpuprov%3Da%3Db", 1),
        ("tag=gpuprov%3Da", 0),
        ("tag=free&tag=gpuprov", 1),
        ("tag=free&tag=no", 0),
        ("status=running&tag=free", 1),
    ] {
        let list = rig.ask_verda(&token, "GET", &format!("instances?{query}"), None).await.1;
        assert_eq!(list.as_array().unwrap().len(), count, "{query}");
    }
    let kinds = [LeftKind::Instance, LeftKind::Attached, LeftKind::Attached, LeftKind::SshKey];
    assert_eq!(rig.kinds(), kinds);
    // One volume for good, the other stays and costs.
    let answer =
        rig.ask_verda(&token, "PUT", "instances", Some(delete(&id, &json!([one["os_volume_id"]])))).await;
    assert_eq!(answer, (202, json!([{"instanceId": id, "action": "delete", "status": "success"}])));
    assert!(rig.sandbox.alive().is_empty());
    assert_eq!(rig.kinds(), [LeftKind::Detached, LeftKind::SshKey]);
    assert_eq!(rig.ask_verda(&token, "PUT", "instances", Some(delete(&id, &json!([])))).await.0, 204);
    rig.becomes(&token, &id, "discontinued").await;
    let again = rig.ask_verda(&token, "PUT", "instances", Some(delete(&id, &json!([])))).await;
    assert_eq!((again.0, &again.1["message"]), (403, &json!("Can't discontinue a discontinued instance")));
    let data = rig.ask_verda(&token, "GET", "volumes?status=detached", None).await.1;
    assert_eq!((&data[0]["name"], data.as_array().unwrap().len()), (&json!("data"), 1));
    let path = format!("volumes/{}", data[0]["id"].as_str().unwrap());
    assert_eq!(rig.ask_verda(&token, "DELETE", &path, None).await.0, 202);
    assert_eq!(rig.kinds(), [LeftKind::Trash, LeftKind::SshKey]);
    assert_eq!(rig.ask_verda(&token, "GET", "volumes/trash", None).await.1[0]["status"], "deleted");
    let forever = Some(json!({"is_permanent": true}));
    assert_eq!(rig.ask_verda(&token, "DELETE", &path, forever.clone()).await.0, 202);
    assert_eq!(rig.ask_verda(&token, "DELETE", &path, forever).await.0, 204);
    assert_eq!(rig.ask_verda(&token, "GET", &path, None).await.1["is_permanently_deleted"], true);
    let body = Some(json!({"keys": [key]}));
    assert_eq!(rig.ask_verda(&token, "DELETE", "sshkeys", body).await.0, 200);
    assert_eq!((rig.kinds(), rig.sandbox.verda().harmed()), (vec![], vec![]));
    assert!(rig.sandbox.rejected().is_empty(), "{:#?}", rig.sandbox.rejected());
}

#[tokio::test]
async fn by_steps() {
    let rig = Rig::with(|options| {
        options.clock = ClockMode::Step;
        options.boot = (Duration::from_secs(40), Duration::from_secs(40));
    })
    .await;
    let token = rig.verda_token().await;
    let id = rig.deploy(&token, plain_without_key()).await;
    let path = format!("instances/{id}");
    let mut words = Vec::new();
    for _ in 0..8 {
        let one = rig.ask_verda(&token, "GET", &path, None).await.1;
        words.push(one["status"].as_str().unwrap().to_owned());
        let early =
            rig.ask_verda(&token, "PUT", "instances", Some(json!({"action": "shutdown", "id": id}))).await;
        assert_eq!(early.0, 403);
        if words.last().unwrap() == "provisioning" {
            let (status, refusal) =
                rig.ask_verda(&token, "PUT", "instances", Some(delete(&id, &json!([])))).await;
            assert_eq!(
                (status, &refusal["message"]),
                (403, &json!("Can't discontinue a provisioning instance"))
            );
            assert_eq!(refusal["code"], "forbidden_action");
        }
        rig.sandbox.step(Duration::from_secs(4));
    }
    assert_eq!(words[..3], ["new", "ordered", "validating"]);
    assert!(words[3..].iter().all(|word| word == "provisioning"), "{words:?}");
    let one = rig.ask_verda(&token, "GET", &path, None).await.1;
    assert_eq!(one["status"], "running");
    let address = (one["ip"].as_str().unwrap().to_owned(), rig.sandbox.vm_ssh_port());
    assert!(std::net::TcpStream::connect(&address).is_err(), "the address comes before sshd");
    rig.sandbox.step(Duration::from_secs(8));
    assert!(std::net::TcpStream::connect(&address).is_ok());
    let journal = rig.ask_verda(&token, "GET", &format!("journal/compute/{id}?pageSize=100"), None).await.1;
    let codes: Vec<&str> =
        journal.as_array().unwrap().iter().map(|event| event["action_code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["running", "provisioning", "validating", "create"]);
    // Stopped is billed; a delete without ids leaves the OS volume.
    assert_eq!(
        rig.ask_verda(&token, "PUT", "instances", Some(json!({"action": "shutdown", "id": id}))).await.0,
        202
    );
    assert_eq!(rig.ask_verda(&token, "GET", &path, None).await.1["status"], "offline");
    assert_eq!(rig.sandbox.alive().len(), 1);
    // Its sshd lets go of the address in a moment.
    for _ in 0..100 {
        if std::net::TcpStream::connect(&address).is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(std::net::TcpStream::connect(&address).is_err(), "a stopped machine still answers");
    let bare = json!({"action": "delete", "id": [id], "volume_ids": null, "delete_permanently": true});
    assert_eq!(rig.ask_verda(&token, "PUT", "instances", Some(bare)).await.0, 202);
    assert_eq!(rig.kinds(), [LeftKind::Detached]);
    let volume = rig.sandbox.verda().left()[0].id.clone();
    assert_eq!(
        rig.ask_verda(&token, "PUT", "volumes", Some(json!({"id": volume, "action": "delete"}))).await.0,
        202
    );
    rig.sandbox.step(Duration::from_secs(95 * 3600));
    assert_eq!(rig.kinds(), [LeftKind::Trash]);
    rig.sandbox.step(Duration::from_secs(2 * 3600));
    assert!(rig.kinds().is_empty(), "the trash keeps 96 hours");
}

fn plain_without_key() -> Value {
    let mut body = plain("");
    body["ssh_key_ids"] = json!(null);
    body
}

#[tokio::test]
async fn eviction_and_what_stays() {
    let rig = Rig::new().await;
    let token = rig.verda_token().await;
    let verda = rig.sandbox.verda();
    let mut request = body("");
    request["ssh_key_ids"] = json!([]);
    let id = rig.deploy(&token, request).await;
    assert!(!verda.evict(verda.foreign_instance()), "not spot");
    assert!(verda.evict(&id) && !verda.evict(&id));
    assert_eq!(rig.kinds(), [LeftKind::Detached], "the OS volume was to go, the data volume was not");
    let one = rig.ask_verda(&token, "GET", &format!("instances/{id}"), None).await.1;
    assert_eq!((&one["status"], &one["ip"]), (&json!("discontinued"), &json!(null)));
    let journal =
        rig.ask_verda(&token, "GET", &format!("journal/compute/{id}?page=1&pageSize=20"), None).await.1;
    let event = journal.as_array().unwrap().iter().find(|event| event["action_code"] == "delete").unwrap();
    assert_eq!(
        (&event["actor_id"], &event["properties"]["delete_reason"]),
        (&json!(null), &json!("evicted_by_on_demand"))
    );
    let seed = VerdaSeed::tagged("elsewhere", &[("gpuprov", "x")]);
    let id = verda.add_instance(verda.client_id(), &seed).unwrap();
    let list = rig.ask_verda(&token, "GET", "instances?tag=gpuprov%3Dx", None).await.1;
    assert_eq!((&list[0]["id"], &list[0]["status"]), (&json!(id), &json!("running")));
    assert!(verda.remove_instance_only(&id));
    assert_eq!(rig.kinds(), [LeftKind::Detached, LeftKind::Detached]);
    let journal =
        rig.ask_verda(&token, "GET", &format!("journal?compute_id={id}&action_code=delete"), None).await.1;
    assert_eq!(journal[0]["request_origin"], "console-instances");
    assert!(verda.harmed().is_empty());
    assert!(verda.remove_instance(verda.foreign_instance()));
    assert_eq!(verda.harmed().len(), 2, "the instance and its volume");
}

#[tokio::test]
async fn the_other_guesses() {
    let rig = Rig::with(|options| options.verda_guesses = VerdaGuesses::flipped()).await;
    let token = rig.verda_token().await;
    let (_, public) = rig.key("id_test", "ed25519").await;
    let body = json!({"name": "x", "key": public});
    let answer = rig.send_verda("POST", "ssh-keys", Some(&token), Some(body)).await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    let key = answer.json::<String>().await.unwrap();
    let shown = rig.ask_verda(&token, "GET", &format!("ssh-keys/{key}"), None).await.1;
    assert_eq!(shown["name"], "x");
    assert_eq!(shown["fingerprint"].as_str().unwrap().len(), 47);
    let id = rig.deploy(&token, plain(&key)).await;
    let one = rig.becomes(&token, &id, "running").await;
    assert_eq!((one["os_volume_id"].is_string(), &one["volume_ids"]), (true, &json!([])));
    let bare = json!({"action": "delete", "id": id});
    assert_eq!(rig.ask_verda(&token, "PUT", "instances", Some(bare)).await.0, 202);
    assert_eq!(rig.kinds(), [LeftKind::Trash, LeftKind::SshKey]);
    tokio::time::sleep(Duration::from_millis(320)).await;
    let gone = rig.ask_verda(&token, "GET", &format!("instances/{id}"), None).await;
    assert_eq!((gone.0, &gone.1["message"]), (400, &json!("Invalid instance id")));
    let there = rig.ask_verda(&token, "GET", "instance-availability/1H100.80S.32V?is_spot=true", None).await;
    assert_eq!(there, (200, json!("true")));
}
