//! `gpuprov doctor`: it finds what is wrong, says how to mend it, and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{World, ended, until};

/// Everything below a folder, with mode and time of change.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, i64)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            found.extend(tree(&path));
        }
        found.insert(path, (meta.mode(), meta.mtime(), meta.mtime_nsec()));
    }
    found
}

/// Runs it; HOME is not the tests' user's, so that one check is always wrong, and left out here.
async fn doctor(world: &World) -> Vec<Value> {
    let (code, document) = world.json("doctor").await;
    let checks = document["checks"].as_array().unwrap_or_else(|| panic!("{document}")).clone();
    assert_eq!(code == 0, checks.iter().all(|check| check["ok"] == true), "{document}");
    assert!(code == 0 || code == 1, "{document}");
    checks.into_iter().filter(|check| check["name"] != "home").collect()
}

fn wrong(checks: &[Value]) -> Vec<String> {
    let text = |check: &Value, member: &str| check[member].as_str().unwrap_or_default().to_owned();
    checks
        .iter()
        .filter(|check| check["ok"] == false)
        .map(|check| format!("{}: {} | {}", text(check, "name"), text(check, "message"), text(check, "fix")))
        .collect()
}

/// Fails unless exactly one thing is wrong, which says all of `words`.
fn only(checks: &[Value], words: &[&str]) {
    let wrong = wrong(checks);
    assert!(
        wrong.len() == 1 && words.iter().all(|word| wrong[0].contains(word)),
        "want {words:?}: {wrong:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_well_before_and_with_a_machine_and_nothing_is_changed() {
    let world = World::new().await;
    let before = tree(world.home());
    let checks = doctor(&world).await;
    assert_eq!(wrong(&checks), [""; 0]);
    let names: Vec<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    for name in [
        "ssh",
        "ssh-keygen",
        "ssh-keyscan",
        "ssh-add",
        "state",
        "data",
        "cache",
        "config",
        "key",
        "ssh config",
        "records",
        "claims",
        "certificates",
        "account",
        "clock",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert_eq!(tree(world.home()), before);

    world.provision("dev").await;
    let before = tree(world.home());
    let asked = world.sandbox.requests().len();
    // HOME of the tests is not the one that ssh reads, so that plain ssh cannot find the machine.
    let wrong = wrong(&doctor(&world).await);
    assert!(wrong.iter().all(|one| one.starts_with("ssh config: ")), "{wrong:#?}");
    assert_eq!(tree(world.home()), before);
    let more = &world.sandbox.requests()[asked..];
    assert!(more.iter().all(|request| request.method == "GET"), "{more:#?}");
    let text = world.run("doctor").await;
    assert!(
        text.stdout.lines().any(|line| line.starts_with("ok") && line.contains("ssh: OpenSSH_")),
        "{text:?}"
    );
    assert!(!text.stdout.contains(world.sandbox.runpod_key()));
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_settings() {
    let mut world = World::new().await;
    let config = world.home().join(".config/gpuprov/config.toml");
    world.write(".config/gpuprov/config.toml", "[defaults]\ndisc = 50\n");
    only(&doctor(&world).await, &["config: ", "disk", "correct"]);
    world.config("[runpod]\napi_key = \"rpa_secret\"\n");
    fs::set_permissions(&config, PermissionsExt::from_mode(0o644)).unwrap();
    let found = wrong(&doctor(&world).await);
    assert!(found.iter().any(|one| one.starts_with("config: ") && one.contains("chmod 600")), "{found:#?}");
    assert!(!found.concat().contains("rpa_secret"));
    world.config("");

    fs::create_dir_all(world.state()).unwrap();
    fs::set_permissions(world.state(), PermissionsExt::from_mode(0o755)).unwrap();
    only(&doctor(&world).await, &["state: others can enter", "chmod 700"]);
    fs::set_permissions(world.state(), PermissionsExt::from_mode(0o700)).unwrap();
    world.write("data-file", "");
    world.set("GPUPROV_DATA_DIR", world.home().join("data-file"));
    let found = wrong(&doctor(&world).await);
    assert!(
        found.iter().any(|one| one.starts_with("data: ") && one.contains("is not a directory")),
        "{found:#?}"
    );
    world.unset("GPUPROV_DATA_DIR");

    world.config("[ssh]\nkey = \"~/missing\"\n");
    only(&doctor(&world).await, &["key: ", "does not exist"]);
    world.config("");

    // A newer record, and a `provision` that was killed.
    world.write(".local/state/gpuprov/machines/newer.json", "{\"version\": 99, \"name\": \"newer\"}");
    only(&doctor(&world).await, &["records: `newer` cannot be read", "update gpuprov"]);
    fs::remove_file(world.state().join("machines/newer.json")).unwrap();
    for operation in ["catalog", "catalog_one"] {
        let sold_out = gpuprov::sandbox::FaultKind::StaleOffer;
        world.sandbox.add_fault(gpuprov::sandbox::Fault::on(operation, sold_out).always());
    }
    let mut child = world.start("provision --gpus RTX4090:1 --name dev --queue 1h");
    until("it waits", || world.state().join("machines/dev.json").exists()).await;
    assert_eq!(wrong(&doctor(&world).await), [""; 0], "what is held is not interrupted");
    child.start_kill().unwrap();
    ended(child).await;
    only(&doctor(&world).await, &["records: `dev` was interrupted", "gpuprov rm dev"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs() {
    let mut world = World::new().await;
    let programs = world.home().join("programs");
    let fake = |name: &str, words: &str| {
        world.write(&format!("programs/{name}"), &format!("#!/bin/sh\necho '{words}' >&2\n"));
        fs::set_permissions(programs.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    };
    fake("ssh", "OpenSSH_7.4p1, OpenSSL 1.0.2k-fips");
    fake("ssh-keygen", "");
    fake("ssh-add", "");
    world.set("PATH", programs.clone());
    let found = wrong(&doctor(&world).await);
    assert!(found.len() == 2 && found[0].contains("OpenSSH 7.6 or later"), "{found:#?}");
    assert!(found[1].starts_with("ssh-keyscan: there is no `ssh-keyscan` program"), "{found:#?}");
    fs::remove_file(programs.join("ssh")).unwrap();
    let found = wrong(&doctor(&world).await);
    assert!(found[0].starts_with("ssh: there is no `ssh` program"), "{found:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts() {
    let mut world = World::new().await;
    world.set("RUNPOD_API_KEY", "rpa_wrong");
    only(&doctor(&world).await, &["account: runpod/default", "RUNPOD_API_KEY"]);
    world.set("GPUPROV_RUNPOD_ENDPOINT", "http://127.0.0.1:1");
    only(&doctor(&world).await, &["account: runpod/default", "http://127.0.0.1:1"]);
    world.set("GPUPROV_RUNPOD_ENDPOINT", "http://example.com");
    only(&doctor(&world).await, &["accounts: the endpoint in GPUPROV_RUNPOD_ENDPOINT must be https"]);
    world.unset("GPUPROV_RUNPOD_ENDPOINT");
    world.unset("RUNPOD_API_KEY");
    only(&doctor(&world).await, &["accounts: no account is connected", "--sandbox"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_off() {
    let mut world = World::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.set("GPUPROV_RUNPOD_ENDPOINT", format!("http://{}", listener.local_addr().unwrap()));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
            let date = later.strftime("%a, %d %b %Y %H:%M:%S GMT");
            let body = "{\"pods\":[],\"pagination\":{}}";
            let answer = format!(
                "HTTP/1.1 200 OK\r\ndate: {date}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    only(&doctor(&world).await, &["clock: the clock of this computer is 1 h 59 m behind", "set-ntp"]);
}
