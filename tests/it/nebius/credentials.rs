//! Nebius: every way to a token, and what happens when one ends.

use std::time::Duration;

use gpuprov::sandbox::{Fault, FaultKind, OidcFlaw};
use serde_json::{Value, json};

use crate::support::World;

/// A world whose config file has this table for Nebius, and no token.
async fn world(table: &str) -> World {
    let mut world = World::new().await;
    world.without_runpod();
    world.set("GPUPROV_NEBIUS_ENDPOINT", world.sandbox.nebius().endpoint());
    world.config(&format!(
        "[defaults]\nk8s = false\n[nebius]\nssh_port = {}\n{table}",
        world.sandbox.vm_ssh_port()
    ));
    world
}

/// The same with a service account's key file.
async fn with_key() -> World {
    let world = world("credentials = \"key.json\"\n").await;
    world.write(".config/gpuprov/key.json", &world.sandbox.nebius().key_file().unwrap());
    world
}

fn federated(world: &World) -> String {
    let account = world.sandbox.nebius().service_account();
    format!(
        "[defaults]\nk8s = false\n[nebius]\nssh_port = {}\nservice_account = \"{account}\"\ntoken_file = \"~/oidc.jwt\"\n",
        world.sandbox.vm_ssh_port()
    )
}

async fn life(world: &World) {
    let (code, ran) = world.json("provision --gpus H100:1 --name dev").await;
    assert_eq!(code, 0, "{ran}");
    let inside = world.run("ssh dev -- whoami").await;
    assert_eq!(inside.code, 0, "{inside:?}");
    let (code, listed) = world.json("ls").await;
    assert_eq!((code, &listed["machines"][0]["state"]), (0, &json!("running")), "{listed}");
    remove(world).await;
}

async fn remove(world: &World) {
    world.remove("dev").await;
    let left = world.sandbox.nebius().left();
    assert!(left.is_empty(), "left: {left:#?}");
}

/// Runs `offers`, which must fail, and returns the message with its hint.
async fn refused(world: &World, code: i32) -> String {
    let (got, document) = world.json("offers --gpus H100:1").await;
    assert_eq!(got, code, "{document}");
    let error = &document["error"];
    assert!(!document.to_string().contains("PRIVATE"), "{document}");
    format!("{} {}", text(&error["message"]), text(&error["hint"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_file_is_exchanged_once_for_all_commands() {
    let world = with_key().await;
    life(&world).await;
    assert_eq!(world.asked("exchange_token"), 1);
    let doctor = world.run("doctor").await;
    assert!(doctor.stdout.contains(world.sandbox.nebius().service_account()), "{doctor:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_federated_token_and_its_flaws() {
    let world = world("").await;
    world.config(&federated(&world));
    world.write("oidc.jwt", &world.sandbox.nebius().oidc_token(None).unwrap());
    life(&world).await;
    std::fs::remove_dir_all(world.home().join(".cache/gpuprov/tokens")).unwrap();
    for flaw in
        [OidcFlaw::Expired, OidcFlaw::Audience, OidcFlaw::Signature, OidcFlaw::Subject, OidcFlaw::Issuer]
    {
        let token = world.sandbox.nebius().oidc_token(Some(flaw)).unwrap();
        world.write("oidc.jwt", &token);
        let before = world.asked("exchange_token");
        let said = refused(&world, 4).await;
        assert!(said.contains("federated credentials") && !said.contains(&token), "{flaw:?}: {said}");
        assert_eq!(world.asked("exchange_token"), before + 1, "{flaw:?}: said at once");
    }
    std::fs::remove_file(world.home().join("oidc.jwt")).unwrap();
    assert!(refused(&world, 4).await.contains("oidc.jwt"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_ends_in_the_middle_is_replaced() {
    let world = with_key().await;
    let nebius = world.sandbox.nebius();
    let (code, list) = world.json("offers --gpus H100:1").await;
    assert_eq!(code, 0, "{list}");
    // Between two commands: the next one finds a token on disk that is not taken any more.
    nebius.expire_tokens();
    let (code, ran) = world.json("provision --gpus H100:1 --name dev").await;
    assert_eq!(code, 0, "{ran}");
    assert_eq!((world.asked("exchange_token"), world.sandbox.made().len()), (2, 1));
    // At every call once, the create too.
    for operation in ["create_instance", "get_instance", "get_operation", "delete_instance", "list_platforms"]
    {
        nebius.add_fault(Fault::on(operation, FaultKind::status(401)));
    }
    remove(&world).await;
    let (code, ran) = world.json("provision --gpus H100:1 --name dev").await;
    assert_eq!(code, 0, "{ran}");
    assert_eq!(world.sandbox.made().len(), 2, "nothing is bought twice");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_live_for_seconds_only() {
    let world = with_key().await;
    world.sandbox.nebius().set_token_life(Duration::from_secs(1));
    life(&world).await;
    assert!(world.asked("exchange_token") > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_given_token_that_is_over_is_said_to_be() {
    let mut world = world("").await;
    let token = world.sandbox.nebius().token().to_owned();
    world.set("NEBIUS_IAM_TOKEN", token.clone());
    let (code, ran) = world.json("provision --gpus H100:1 --name dev").await;
    assert_eq!(code, 0, "{ran}");
    world.sandbox.nebius().revoke_static_tokens();
    let said = refused(&world, 4).await;
    assert!(said.contains("get-access-token") && !said.contains(&token), "{said}");
    let ran = world.run("rm dev --yes").await;
    assert_eq!(ran.code, 6, "nothing is proven: {ran:?}");
    // With other credentials of the same tenant the machine is still ours.
    world.unset("NEBIUS_IAM_TOKEN");
    world.write(".nebius/credentials.json", &world.sandbox.nebius().key_file().unwrap());
    let ran = world.run("rm dev --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(world.sandbox.nebius().left().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nebius_clis_own_files() {
    let mut world = world("").await;
    let nebius = world.sandbox.nebius();
    let profiles = format!(
        "default: me\nprofiles:\n  me:\n    auth-type: federation\n    federation-endpoint: auth.nebius.com\n    \
         federation-id: federation-e00x\n    tenant-id: {}\n  robot:\n    auth-type: service account\n    \
         service-account-credentials-file-path: ~/robot.json\n",
        nebius.tenant()
    );
    let login = |left: i64| {
        let until = jiff::Timestamp::now().as_second() + left;
        format!(
            "tokens:\n  federation/auth.nebius.com/federation-e00x/me:\n    token: {}\n    expires_at: {until}\n",
            nebius.token()
        )
    };
    world.write(".nebius/config.yaml", &profiles);
    world.write(".nebius/credentials.yaml", &login(7200));
    world.write("robot.json", &nebius.key_file().unwrap());
    let (code, list) = world.json("offers --gpus H100:1").await;
    assert_eq!(code, 0, "{list}");
    assert_eq!(world.asked("exchange_token") + world.asked("list_tenants"), 0, "token and tenant are known");
    world.write(".nebius/credentials.yaml", &login(30));
    let said = refused(&world, 4).await;
    assert!(said.contains("nebius iam get-access-token --profile me"), "{said}");
    world.set("NEBIUS_PROFILE", "robot");
    let (code, list) = world.json("offers --gpus H100:1").await;
    assert_eq!((code, world.asked("exchange_token")), (0, 1), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_asked_for_or_named() {
    let world = with_key().await;
    let (other, _) = world.sandbox.nebius().add_account();
    let named = |tenant: &str| {
        let port = world.sandbox.vm_ssh_port();
        world.config(&format!(
            "[defaults]\nk8s = false\n[nebius]\nssh_port = {port}\ncredentials = \"key.json\"\ntenant = \"{tenant}\"\n"
        ));
    };
    named(world.sandbox.nebius().tenant());
    let (code, list) = world.json("offers --gpus H100:1").await;
    assert_eq!(code, 0, "{list}");
    assert_eq!(world.asked("list_tenants"), 0);
    named(&other);
    let (code, document) = world.json("offers --gpus H100:1").await;
    assert_ne!(code, 0, "{document}");
}
