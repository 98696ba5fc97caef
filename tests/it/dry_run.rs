//! `provision --dry-run`: what would be tried and sent, without secrets, and nothing made.

use crate::support::World;

#[tokio::test(flavor = "multi_thread")]
async fn offers_and_request_without_secrets() {
    let mut world = World::new().await;
    world.set("FROM_HERE", "S3CRET-three");
    world.write("vars", "export A=\"S3CRET-one\"\nB=S3CRET=two==\n\n# no\n");
    world.write("script", "echo S3CRET-script\n");
    let key = world.sandbox.runpod_key().to_owned();
    world.sandbox.set_runpod_ssh_keys(&key, vec!["ssh-ed25519 AAAAOTHERS other@example".to_owned()]);
    let command = "provision --dry-run --gpus RTX4090:2 --name dev --env C=S3CRET-four --env FROM_HERE --env-file vars --startup-script script --ttl 1h";
    let (code, document) = world.json(command).await;
    assert_eq!((code, document["dry_run"].as_bool()), (0, Some(true)), "{document:#}");
    let request = &document["request"];
    assert_eq!(request["method"], "POST");
    assert_eq!(request["url"], format!("{}/v2/pods", world.sandbox.runpod_endpoint()));
    let body = &request["body"];
    assert_eq!(
        (body["gpu"]["id"].as_str(), body["gpu"]["count"].as_u64()),
        (Some("NVIDIA GeForce RTX 4090"), Some(2))
    );
    let mut names: Vec<&str> = body["env"].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["A", "B", "C", "FROM_HERE", "GPUPROV_MARK", "PUBLIC_KEY"]);
    assert!(body["env"]["GPUPROV_MARK"].as_str().unwrap().contains(":default:dev:"), "{body}");
    let (_, listed) = world.json("offers --gpus RTX4090:2").await;
    assert_eq!(document["offers"], listed["offers"]);
    let plain = world.run(&format!("-vv {command}")).await;
    assert_eq!(plain.code, 0);
    for text in [document.to_string(), plain.stdout.clone(), plain.stderr] {
        assert!(!text.contains("S3CRET") && !text.contains(&key) && !text.contains("AAAAOTHERS"), "{text}");
    }
    assert!(
        plain.stdout.starts_with("$/HOUR") && plain.stdout.contains("POST http://127.0.0.1"),
        "{}",
        plain.stdout
    );
    assert_eq!(world.creates(), 0);
    assert!(world.sandbox.requests().iter().all(|request| request.method == "GET"));
    assert_eq!(world.run("ls").await.stdout, "", "no name is taken");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_by_its_id_is_asked_for_again() {
    let world = World::new().await;
    let (_, list) = world.json("offers --gpus RTX4090:1").await;
    let offer = &list["offers"][0];
    let id = offer["id"].as_str().unwrap();
    let (code, document) = world.json(&format!("provision --dry-run --offer {id}")).await;
    assert_eq!((code, &document["offers"][0]), (0, offer), "{document:#}");
    assert!(document["request"]["body"]["name"].as_str().unwrap().starts_with("gpuprov-rtx4090-1-"));
    let gone = id.replace("EU-RO-1", "EUR-IS-2");
    let (code, document) = world.json(&format!("provision --dry-run --offer {gone}")).await;
    assert_eq!((code, document["request"].is_null()), (3, true), "{document:#}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_provision_would_refuse_is_refused() {
    let world = World::new().await;
    world.provision("dev").await;
    let (code, document) = world.json("provision --dry-run --gpus RTX4090 --name dev").await;
    assert_eq!((code, document["error"]["kind"].as_str()), (2, Some("name_taken")), "{document:#}");
    let (_, document) = world.json("provision --dry-run --gpus RTX4090").await;
    assert!(document["request"]["body"]["name"].as_str().unwrap().starts_with("gpuprov-rtx4090-1-"));
    for flags in [
        "--env MISSING_HERE",
        "--env 1X=S3CRET",
        "--env-file nowhere",
        "--startup-script nowhere",
        "--ssh-key nowhere",
        "--attempts 0",
        "--ttl soon",
        "--wait k8s",
        "--name -bad",
        "--name x",
    ] {
        let ran = world.run(&format!("provision --dry-run --gpus RTX4090 {flags}")).await;
        assert!(ran.code == 2 && !ran.stderr.contains("S3CRET"), "{flags}: {ran:?}");
    }
    assert_eq!(world.creates(), 1);
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}
