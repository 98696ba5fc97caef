//! Workload identity federation: no key anywhere.

use gpuprov::sandbox::OidcFlaw;
use serde_json::json;

use super::*;

fn outside(world: &World, flaw: Option<OidcFlaw>) -> String {
    let token = world.sandbox.gcp().oidc_token(flaw).unwrap();
    world.write("token.jwt", &token);
    token
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_from_outside_is_enough() {
    let mut world = world().await;
    let token = outside(&world, None);
    let file = world.sandbox.gcp().federation_file(world.home().join("token.jwt").to_str().unwrap());
    credentials(&mut world, &file);
    provision(&world, "--gpus L4:1").await;
    let inside = world.run("ssh dev -- true").await;
    assert_eq!(inside.code, 0, "{inside:?}");
    remove(&world).await;
    assert_eq!((world.asked("sts_token"), world.asked("impersonate")), (1, 1), "one token for all commands");
    let kept =
        std::process::Command::new("grep").args(["-r", "-l", &token]).arg(world.home()).output().unwrap();
    let places = String::from_utf8(kept.stdout).unwrap();
    assert_eq!(places.lines().count(), 1, "only where it was put: {places}");

    // It is renewed when it is not taken any more.
    provision(&world, "--gpus L4:1").await;
    world.sandbox.gcp().expire_tokens();
    remove(&world).await;
    assert_eq!(world.asked("impersonate"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_only_when_it_may() {
    let mut world = world().await;
    let token = outside(&world, None);
    let printed = json!({
        "version": 1, "success": true, "token_type": "urn:ietf:params:oauth:token-type:id_token", "id_token": token,
    });
    world.write("printed.json", &printed.to_string());
    let line = format!("cat '{}'", world.home().join("printed.json").display());
    let file = world.sandbox.gcp().federation(&json!({"executable": {"command": line}}));
    credentials(&mut world, &file);
    let ran = world.run("offers --gpus L4:1 --cloud gcp").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1"), "{ran:?}");
    world.set("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1");
    let ran = world.run("offers --gpus L4:1 --cloud gcp").await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_taken_is_told_without_it() {
    let mut world = world().await;
    let file = world.sandbox.gcp().federation_file(world.home().join("token.jwt").to_str().unwrap());
    credentials(&mut world, &file);
    let token = outside(&world, Some(OidcFlaw::Expired));
    let ran = world.run("offers --gpus L4:1").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("exchanging the token") && !format!("{ran:?}").contains(&token), "{ran:?}");
    std::fs::remove_file(world.home().join("token.jwt")).unwrap();
    let ran = world.run("offers --gpus L4:1").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("token.jwt"), "{ran:?}");
}
