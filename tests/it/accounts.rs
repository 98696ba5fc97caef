//! Whose account: sources in their order, several accounts, endpoints that get no key of another place.

use crate::support::World;

/// Which account answered, and the code.
async fn accounts(world: &World, flags: &str) -> (i32, Vec<String>) {
    let (code, document) = world.json(&format!("offers --gpus RTX4090 {flags}")).await;
    let offers = document["offers"].as_array().unwrap();
    let mut ids: Vec<String> =
        offers.iter().map(|offer| offer["account"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids.dedup();
    (code, ids)
}

/// The labels of the accounts whose keys were sent, each once.
fn paid_by(world: &World) -> Vec<String> {
    let mut labels: Vec<String> =
        world.sandbox.requests().into_iter().map(|request| request.account.unwrap_or_default()).collect();
    labels.sort();
    labels.dedup();
    labels
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_then_config_then_runpods_own_file() {
    let mut world = World::new().await;
    world.unset("RUNPOD_API_KEY");
    let (code, document) = world.json("offers").await;
    assert_eq!((code, document["error"]["kind"].as_str()), (4, Some("no_account")), "{document:#}");
    assert!(document["error"]["hint"].as_str().unwrap().contains("RUNPOD_API_KEY"));
    assert_eq!(world.requests(), 0);

    let keys: Vec<String> = (0..4).map(|_| world.sandbox.add_runpod_account()).collect();
    let label = |key: &str| world.sandbox.runpod_account(key).unwrap();
    let mut expected = Vec::new();
    // runpodctl's form, in its lower case and by hand; then both forms in one file: the table wins.
    world.write(".runpod/config.toml", &format!("apiKey = '{}'\napiurl = 'https://example.com'\n", keys[0]));
    assert_eq!(accounts(&world, "").await, (0, vec!["runpod/default".to_owned()]));
    expected.push(label(&keys[0]));
    assert_eq!(paid_by(&world), expected);
    world.write(
        ".runpod/config.toml",
        &format!("apikey = '{}'\n[default]\napi_key = \"{}\"\n", keys[0], keys[1]),
    );
    assert_eq!(accounts(&world, "").await.0, 0);
    expected.push(label(&keys[1]));
    world.config(&format!("[runpod]\napi_key = \"{}\"\n", keys[2]));
    assert_eq!(accounts(&world, "").await.0, 0);
    expected.push(label(&keys[2]));
    let variable = label(&keys[3]);
    let key = format!(" {}\n", keys[3]);
    expected.push(variable);
    expected.sort();
    world.set("RUNPOD_API_KEY", key);
    assert_eq!(accounts(&world, "").await.0, 0);
    assert_eq!(paid_by(&world), expected);
    // The file is group readable in a fresh test HOME or not; a secret that others can read is warned about.
    use std::os::unix::fs::PermissionsExt;
    let config = world.home().join(".config/gpuprov/config.toml");
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ran = world.run("offers --gpus RTX4090").await;
    assert!(ran.stderr.contains("chmod 600") && !ran.stderr.contains(&keys[2]), "{}", ran.stderr);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_accounts_of_one_cloud() {
    let world = World::new().await;
    let lab = world.sandbox.add_runpod_account();
    world.config(&format!(
        "[account.\"runpod/lab\"]\napi_key = \"{lab}\"\n[account.\"runpod/idle\"]\nimage = \"x\"\n"
    ));
    let both = vec!["runpod/default".to_owned(), "runpod/lab".to_owned()];
    let one = |name: &str| vec![format!("runpod/{name}")];
    assert_eq!(accounts(&world, "").await, (0, both.clone()));
    assert_eq!(accounts(&world, "--cloud runpod").await, (0, both.clone()));
    assert_eq!(accounts(&world, "--cloud runpod/lab,runpod/default").await, (0, both.clone()));
    assert_eq!(accounts(&world, "--cloud runpod/lab --cloud runpod").await, (0, both));
    assert_eq!(accounts(&world, "--cloud runpod/lab").await, (0, one("lab")));
    assert_eq!(accounts(&world, "--cloud runpod/default").await, (0, one("default")));
    let (_, document) = world.json("offers --gpus RTX4090").await;
    assert_eq!(
        (document["skipped"][0]["account"].as_str(), document["skipped"][0]["reason"].as_str()),
        (Some("runpod/idle"), Some("not_connected"))
    );
    for (flags, code, kind) in [
        ("--cloud runpod/nobody", 4, "no_account"),
        ("--cloud gcp", 4, "no_account"),
        ("--cloud runpod,gcp", 4, "no_account"),
        ("--cloud nebius/lab", 4, "no_account"),
        ("--cloud aws", 2, "usage"),
    ] {
        for command in ["offers", "provision --name dev"] {
            let (got, document) = world.json(&format!("{command} --gpus RTX4090 {flags}")).await;
            assert_eq!((got, document["error"]["kind"].as_str()), (code, Some(kind)), "{command} {flags}");
        }
    }
    let made = world.run("provision --gpus RTX4090 --name dev --cloud runpod/lab").await;
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.stderr.contains("paid by runpod/lab (…"), "{}", made.stderr);
    let alive = world.sandbox.alive();
    assert_eq!(Some(alive[0].account.clone()), world.sandbox.runpod_account(&lab));
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints() {
    let mut world = World::new().await;
    let endpoint = world.sandbox.runpod_endpoint();
    for tail in ["/", "/v2", "/v2/"] {
        world.set("GPUPROV_RUNPOD_ENDPOINT", format!("{endpoint}{tail}"));
        let ran = world.run("offers --gpus RTX4090").await;
        assert_eq!(ran.code, 0, "{tail}: {ran:?}");
        assert!(ran.stderr.contains(&format!("runpod/default answers at {endpoint}\n")), "{}", ran.stderr);
    }
    let asked = world.requests();
    for refused in [
        "http://203.0.113.1",
        "http://localhost.example.com",
        "ftp://127.0.0.1",
        "https://user:S3CRET@127.0.0.1",
        "https://127.0.0.1/?S3CRET",
        "S3CRET",
    ] {
        world.set("GPUPROV_RUNPOD_ENDPOINT", refused);
        for command in ["offers", "ls", "provision --gpus L4 --name dev", "rm --all --yes"] {
            let ran = world.run(command).await;
            assert!(ran.code == 2 && ran.stderr.contains("GPUPROV_RUNPOD_ENDPOINT"), "{refused}: {ran:?}");
            assert!(!ran.stderr.contains("S3CRET"), "{refused}: {ran:?}");
        }
    }
    // A variable alone must not carry off the key in a file, nor a file the key in a variable.
    world.set("GPUPROV_RUNPOD_ENDPOINT", "https://api.example.com");
    let key = world.sandbox.runpod_key().to_owned();
    world.unset("RUNPOD_API_KEY");
    world.config(&format!("[runpod]\napi_key = \"{key}\"\n"));
    let ran = world.run("offers").await;
    assert!(ran.code == 2 && ran.stderr.contains("same place") && !ran.stderr.contains(&key), "{ran:?}");
    world.config("");
    world.write(".runpod/config.toml", &format!("apikey = '{key}'\n"));
    assert_eq!(world.run("offers").await.code, 2);
    world.unset("GPUPROV_RUNPOD_ENDPOINT");
    world.set("RUNPOD_API_KEY", key.clone());
    world.config("[runpod]\nendpoint = \"https://api.example.com\"\n");
    assert_eq!(world.run("offers").await.code, 2);
    // A loopback endpoint in the config takes any key; the key is never shown.
    world.config(&format!("[runpod]\nendpoint = \"{endpoint}\"\n"));
    let ran = world.run("-vv offers --gpus RTX4090").await;
    assert!(ran.code == 0 && !ran.stderr.contains(&key), "{ran:?}");
    assert!(world.requests() > asked);
    // An endpoint that cannot be read is no reason to take the key to the real one.
    use std::os::unix::ffi::OsStringExt;
    world.config("");
    world.set("GPUPROV_RUNPOD_ENDPOINT", std::ffi::OsString::from_vec(vec![b'h', 0xff]));
    let ran = world.run("offers").await;
    assert!(ran.code == 2 && ran.stderr.contains("GPUPROV_RUNPOD_ENDPOINT"), "{ran:?}");
}
