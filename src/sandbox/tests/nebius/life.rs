//! From a create to the end of it, by the rules.

use std::net::Ipv4Addr;
use std::time::Duration;

use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;
use serde_json::json;

use super::{DISKS, INSTANCES, OPERATIONS, address, is_running};
use crate::sandbox::tests::Rig;
use crate::sandbox::{ClockMode, NebiusGuesses, NebiusLeftKind, NebiusSeed};

/// What the system's ssh says, with a known host key or none.
async fn ssh(
    rig: &Rig,
    key: &std::path::Path,
    host: &str,
    known: Option<&str>,
    more: &[&str],
) -> (bool, String) {
    let port = rig.sandbox.vm_ssh_port().to_string();
    let file = rig.scratch.path().join("known");
    let line = known.map(|known| format!("[{host}]:{port} {known}\n{host} {known}\n")).unwrap_or_default();
    std::fs::write(&file, line).unwrap();
    let strict = if known.is_some() { "yes" } else { "no" };
    let ran = tokio::process::Command::new("ssh")
        .args([
            "-F",
            "/dev/null",
            "-o",
            "BatchMode=yes",
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "ConnectTimeout=5",
        ])
        .args([
            "-o",
            &format!("StrictHostKeyChecking={strict}"),
            "-o",
            &format!("UserKnownHostsFile={}", file.display()),
        ])
        .args(["-o", "ExitOnForwardFailure=yes", "-p", &port, "-i"])
        .arg(key)
        .args(more)
        .arg(format!("ubuntu@{host}"))
        .arg("whoami; echo $USER; nvidia-smi -L | wc -l")
        .output()
        .await
        .unwrap();
    (ran.status.success(), String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[tokio::test]
async fn a_machine_is_made_and_goes_with_its_disk() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    let (key, public) = rig.key("id", "ed25519").await;
    let made = client.create("k-1", &rig.nebius_spot("dev", &public)).await.unwrap();
    assert!(made.get("status").is_none(), "{made}");
    let id = made["resource_id"].as_str().unwrap().to_owned();
    let (shown, states) = client.becomes(&id, is_running).await;
    assert!(states.contains(&"STARTING".to_owned()), "{states:?}");
    let early = ["CREATING", "STOPPED", "STARTING", "RUNNING"];
    assert!(states.iter().all(|state| early.contains(&state.as_str())), "{states:?}");
    let done = client.finished(made["id"].as_str().unwrap()).await;
    assert_eq!(done["status"], json!({}));
    assert_eq!(shown["metadata"]["labels"]["managed-by"], "gpuprov");
    assert_eq!(shown["status"]["disk_attachments"][0]["is_managed"], true);
    let host: Ipv4Addr = address(&shown).parse().unwrap();
    assert_eq!(host.octets()[..2], [127, 0]);
    assert_eq!(rig.sandbox.alive().len(), 1);
    assert!((rig.sandbox.alive()[0].price_per_hour - 1.87).abs() < 1e-9);
    let mut said = (false, String::new());
    for _ in 0..40 {
        said = ssh(&rig, &key, &host.to_string(), None, &[]).await;
        if said.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(said.0 && said.1.ends_with("ubuntu\n1\n"), "{said:?}");
    let gone = client.delete(&id).await.unwrap();
    assert!(rig.sandbox.alive().is_empty());
    assert!(rig.sandbox.nebius().left().is_empty(), "{:?}", rig.sandbox.nebius().left());
    let again = client.delete(&id).await.unwrap();
    assert_eq!(again["id"], gone["id"]);
    client.finished(gone["id"].as_str().unwrap()).await;
    assert_eq!(client.get(&id).await.unwrap_err().code, 5);
    assert_eq!(client.delete(&id).await.unwrap_err().code, 5);
    let all = client.ask(&format!("{OPERATIONS}/List"), json!({"resource_id": id})).await.unwrap();
    assert_eq!(all["operations"].as_array().unwrap().len(), 2);
    assert!(rig.sandbox.nebius().harmed().is_empty());
    assert!(rig.sandbox.rejected().is_empty(), "{:?}", rig.sandbox.rejected());
}

#[tokio::test]
async fn the_host_key_is_the_one_that_was_put_in() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    let (key, public) = rig.key("id", "ed25519").await;
    let own = PrivateKey::from(Ed25519Keypair::from_seed(&[9; 32]));
    let half = own.public_key().to_openssh().unwrap();
    let user = json!({
        "users": [{"name": "ubuntu", "ssh_authorized_keys": [public]}], "ssh_deletekeys": true,
        "ssh_keys": {"ed25519_private": own.to_openssh(LineEnding::LF).unwrap().to_string(), "ed25519_public": half},
    });
    let mut body = rig.nebius_body("dev", &public);
    body["spec"]["cloud_init_user_data"] = json!(format!("#cloud-config\n{user}\n"));
    let made = client.create("k-1", &body).await.unwrap();
    let (shown, _) = client.becomes(made["resource_id"].as_str().unwrap(), is_running).await;
    let host = address(&shown);
    let mut said = (false, String::new());
    for _ in 0..40 {
        said = ssh(&rig, &key, &host, Some(&half), &[]).await;
        if said.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(said.0, "{said:?}");
    // Nothing allows forwarding here.
    let other = PrivateKey::from(Ed25519Keypair::from_seed(&[10; 32])).public_key().to_openssh().unwrap();
    assert!(!ssh(&rig, &key, &host, Some(&other), &[]).await.0);
}

#[tokio::test]
async fn a_key_makes_a_create_once() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    let body = rig.nebius_body("dev", "ssh-ed25519 AAAA");
    let made = client.create("k-1", &body).await.unwrap();
    let again = client.create("k-1", &body).await.unwrap();
    assert_eq!(made["id"], again["id"]);
    assert_eq!(rig.sandbox.made().len(), 1);
    let other = rig.nebius_body("dev2", "ssh-ed25519 AAAA");
    assert_eq!(client.create("k-1", &other).await.unwrap_err().code, 3);
    let taken = client.create("k-2", &body).await.unwrap_err();
    assert_eq!((taken.code, taken.detail["code"].as_str()), (6, Some("ResourceAlreadyExists")));
    assert_eq!(taken.detail["resource_already_exists"]["resource_id"], made["resource_id"]);
    let by_name = json!({"parent_id": body["metadata"]["parent_id"], "name": "dev"});
    let found = client.ask(&format!("{INSTANCES}/GetByName"), by_name).await.unwrap();
    assert_eq!(found["metadata"]["id"], made["resource_id"]);
}

#[tokio::test]
async fn preempted_it_keeps_its_disk_and_loses_its_address() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    let made = client.create("k-1", &rig.nebius_spot("dev", "ssh-ed25519 AAAA")).await.unwrap();
    let id = made["resource_id"].as_str().unwrap();
    client.becomes(id, is_running).await;
    assert!(rig.sandbox.nebius().preempt(id));
    let (stopped, _) = client.becomes(id, |shown| shown["status"]["state"] == "STOPPED").await;
    assert_eq!(address(&stopped), "");
    assert!(stopped["status"].get("reconciling").is_none());
    let kinds: Vec<NebiusLeftKind> = rig.sandbox.nebius().left().into_iter().map(|left| left.kind).collect();
    assert_eq!(kinds, [NebiusLeftKind::Instance, NebiusLeftKind::Disk]);
    client.delete(id).await.unwrap();
    assert!(rig.sandbox.nebius().left().is_empty());
}

#[tokio::test]
async fn a_stop_and_a_start_give_another_address() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    let made = client.create("k-1", &rig.nebius_body("dev", "ssh-ed25519 AAAA")).await.unwrap();
    let id = made["resource_id"].as_str().unwrap();
    client.becomes(id, is_running).await;
    client.ask(&format!("{INSTANCES}/Stop"), json!({"id": id})).await.unwrap();
    client.becomes(id, |shown| shown["status"]["state"] == "STOPPED").await;
    client.ask(&format!("{INSTANCES}/Start"), json!({"id": id})).await.unwrap();
    client.becomes(id, is_running).await;
    client.delete(id).await.unwrap();
}

#[tokio::test]
async fn small_disks_hang_unless_the_guess_is_flipped() {
    for (flipped, listens) in [(false, false), (true, true)] {
        let rig = Rig::with(|options| {
            options.clock = ClockMode::Step;
            options.nebius_guesses = NebiusGuesses { small_disks_boot: flipped, ..NebiusGuesses::default() };
        })
        .await;
        let mut client = rig.nebius().await;
        let mut body = rig.nebius_body("dev", "ssh-ed25519 AAAA");
        body["spec"]["boot_disk"]["managed_disk"]["spec"]["size_gibibytes"] = json!(40);
        let made = client.create("k-1", &body).await.unwrap();
        rig.sandbox.step(Duration::from_secs(60));
        let shown = client.get(made["resource_id"].as_str().unwrap()).await.unwrap();
        assert_eq!(shown["status"]["state"], "RUNNING");
        let at = (address(&shown), rig.sandbox.vm_ssh_port());
        assert_eq!(tokio::net::TcpStream::connect(at).await.is_ok(), listens);
    }
}

#[tokio::test]
async fn a_delete_ends_a_create_that_is_under_way() {
    let rig = Rig::with(|options| options.clock = ClockMode::Step).await;
    let mut client = rig.nebius().await;
    let made = client.create("k-1", &rig.nebius_body("dev", "ssh-ed25519 AAAA")).await.unwrap();
    client.delete(made["resource_id"].as_str().unwrap()).await.unwrap();
    let ended = client.operation(made["id"].as_str().unwrap()).await.unwrap();
    assert_eq!(ended["status"]["code"], 10);
    assert!(rig.sandbox.nebius().left().is_empty());
}

#[tokio::test]
async fn what_is_put_there_shows() {
    let rig = Rig::new().await;
    let client = rig.nebius().await;
    let nebius = rig.sandbox.nebius();
    let seed =
        NebiusSeed { stopped: true, spot: true, ..NebiusSeed::labelled("old", &[("managed-by", "gpuprov")]) };
    let id = nebius.add_instance("nebius-1", &seed).unwrap();
    let disk =
        nebius.add_disk("nebius-1", &NebiusSeed::labelled("rest", &[("managed-by", "gpuprov")])).unwrap();
    let project = nebius.project("eu-north1").unwrap();
    let all = client.ask(&format!("{INSTANCES}/List"), json!({"parent_id": project})).await.unwrap();
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    let shown = client.get(&id).await.unwrap();
    assert_eq!(shown["status"]["state"], "STOPPED");
    let disks = client.ask(&format!("{DISKS}/List"), json!({"parent_id": project})).await.unwrap();
    assert_eq!(disks["items"].as_array().unwrap().len(), 4);
    client.ask(&format!("{DISKS}/Delete"), json!({"id": disk})).await.unwrap();
    client.delete(&id).await.unwrap();
    assert!(nebius.left().is_empty());
    assert!(nebius.harmed().is_empty());
    client.delete(nebius.foreign_instance()).await.unwrap();
    assert_eq!(nebius.harmed().len(), 2);
}
