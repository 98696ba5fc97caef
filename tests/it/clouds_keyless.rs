//! Accounts without keys: `clouds set` tries the whole exchange at once, and tells what the provider objects to.

use std::io::{Read, Write};
use std::net::TcpListener;

use gpuprov::sandbox::OidcFlaw;
use serde_json::{Value, json};

use crate::support::{Ran, World};

const FLAWS: [OidcFlaw; 5] =
    [OidcFlaw::Expired, OidcFlaw::Signature, OidcFlaw::Audience, OidcFlaw::Subject, OidcFlaw::Issuer];

/// A world with endpoints of Google and Nebius and nothing else.
async fn world() -> World {
    let mut world = World::new().await;
    world.without_runpod();
    world.set("GPUPROV_GCP_ENDPOINT", world.sandbox.gcp().endpoint());
    world.set("GPUPROV_NEBIUS_ENDPOINT", world.sandbox.nebius().endpoint());
    let port = world.sandbox.vm_ssh_port();
    // The tables say nothing of credentials, so that what is used was connected.
    world.config(&format!("[gcp]\nssh_port = {port}\n[nebius]\nssh_port = {port}\n"));
    world
}

fn google(world: &World, token: &str) -> Vec<String> {
    let gcp = world.sandbox.gcp();
    let provider = gcp.audience().trim_start_matches("//iam.googleapis.com/").to_owned();
    let words = format!(
        "clouds set gcp --project {} --service-account {} --workload-identity-provider {provider} {token}",
        gcp.project(),
        gcp.service_account()
    );
    words.split_whitespace().map(str::to_owned).collect()
}

fn nebius(world: &World, token: &str) -> Vec<String> {
    let nebius = world.sandbox.nebius();
    let words = format!(
        "clouds set nebius --tenant-id {} --service-account-id {} {token}",
        nebius.tenant(),
        nebius.service_account()
    );
    words.split_whitespace().map(str::to_owned).collect()
}

async fn life(world: &World, words: &str) {
    let (code, ran) = world.json(&format!("provision {words} --no-k8s --name dev")).await;
    assert_eq!(code, 0, "{ran:#}");
    let inside = world.run("ssh dev -- true").await;
    assert_eq!(inside.code, 0, "{inside:?}");
    world.remove("dev").await;
}

/// Fails unless the command was refused with words of the provider, and the token is in none of them.
fn assert_refused(ran: &Ran, token: &str, flaw: OidcFlaw) {
    assert_eq!(ran.code, 4, "{flaw:?}: {ran:?}");
    assert!(ran.stderr.contains("nothing was kept"), "{flaw:?}: {ran:?}");
    assert!(!format!("{ran:?}").contains(token.trim()), "{flaw:?}: {ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn google_by_a_token_file() {
    let world = world().await;
    let words = google(&world, "--token-file oidc.jwt");
    for flaw in FLAWS {
        let token = world.sandbox.gcp().oidc_token(Some(flaw)).unwrap();
        world.write("oidc.jwt", &token);
        let ran = world.args(&words).await;
        assert_refused(&ran, &token, flaw);
        assert_eq!(world.json("clouds check gcp").await.0, 4);
    }
    world.write("oidc.jwt", &world.sandbox.gcp().oidc_token(None).unwrap());
    let (code, set) = world.json_args(&words.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(code, 0, "{set:#}");
    let one = &set["accounts"][0];
    assert_eq!(
        (&one["identity"], &one["used"]),
        (&json!(world.sandbox.gcp().project()), &json!(true)),
        "{set:#}"
    );
    assert!(one["hint"].as_str().unwrap().contains("(federated)"), "{set:#}");
    life(&world, "--gpus L4:1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nebius_by_a_token_file_and_by_a_command() {
    let world = world().await;
    let words = nebius(&world, "--token-file oidc.jwt");
    for flaw in FLAWS {
        let token = world.sandbox.nebius().oidc_token(Some(flaw)).unwrap();
        world.write("oidc.jwt", &token);
        assert_refused(&world.args(&words).await, &token, flaw);
    }
    world.write("oidc.jwt", &world.sandbox.nebius().oidc_token(None).unwrap());
    let ran = world.args(&words).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let (_, list) = world.json("clouds").await;
    assert_eq!(list["accounts"][0]["identity"], json!(world.sandbox.nebius().tenant()), "{list:#}");
    life(&world, "--gpus H100:1").await;

    let mut words = nebius(&world, "--name by-command");
    words.extend(["--token-command".to_owned(), format!("cat {}/oidc.jwt", world.home().display())]);
    assert_eq!(world.args(&words).await.code, 2, "a command needs a word for it");
    words.push("--allow-command".to_owned());
    let ran = world.args(&words).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    // Both are one account there, and both know it.
    assert!(ran.stderr.contains("nebius/default"), "{ran:?}");
    assert_eq!(world.json("clouds check").await.0, 0);
}

/// GitHub's issuer as a job sees it: gives `token` to whoever has the right header. Returns its URL.
fn issuer(token: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/token?api-version=2", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let right = head.contains("authorization: bearer job-s3cret");
            let body = if right { json!({"value": token, "count": 1}) } else { json!({"message": "no"}) }
                .to_string();
            let status = if right { "200 OK" } else { "401 Unauthorized" };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn both_by_the_token_of_a_github_job() {
    let mut world = world().await;
    let without = world.args(google(&world, "--token-github")).await;
    assert!(without.code == 2 && without.stderr.contains("id-token: write"), "{without:?}");
    world.set("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "job-S3cret");
    for (words, token, gpus) in [
        (google(&world, "--token-github"), world.sandbox.gcp().oidc_token(None).unwrap(), "L4:1"),
        (nebius(&world, "--token-github"), world.sandbox.nebius().oidc_token(None).unwrap(), "H100:1"),
    ] {
        world.set("ACTIONS_ID_TOKEN_REQUEST_URL", issuer(token.clone()));
        let ran = world.args(&words).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(!format!("{ran:?}").contains("S3cret"), "{ran:?}");
        let (code, offers) = world.json(&format!("offers --gpus {gpus} --cloud {}", words[2])).await;
        assert_eq!(code, 0, "{offers:#}");
    }
    // Outside of the job the accounts are told, not used, and not replaced by anything.
    world.unset("ACTIONS_ID_TOKEN_REQUEST_URL");
    world.unset("ACTIONS_ID_TOKEN_REQUEST_TOKEN");
    let (_, list) = world.json("clouds").await;
    let used: Vec<&Value> = list["accounts"].as_array().unwrap().iter().map(|one| &one["used"]).collect();
    assert_eq!(used, [&json!(false), &json!(false)], "{list:#}");
    assert!(list["warnings"].to_string().contains("GitHub Actions"), "{list:#}");
}
