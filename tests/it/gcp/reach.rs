//! The first login: host keys that Google tells, late, never, or wrong, and networks that let nobody in.

use gpuprov::sandbox::{GcpPolicy, GcpScript};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_first_contact_is_a_checked_one() {
    let world = world().await;
    script(&world, GcpScript::LateHostKeys { ms: 1500 });
    provision(&world, "--gpus L4:1").await;
    assert!(ssh_files(&world).contains("StrictHostKeyChecking yes"));
    remove(&world).await;
    script(&world, GcpScript::LateAddress { ms: 500 });
    provision(&world, "--gpus L4:1").await;
    remove(&world).await;
    script(&world, GcpScript::BootsAs { word: "DREAMING".to_owned() });
    provision(&world, "--gpus L4:1").await;
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_key_that_differs_is_refused() {
    let world = world().await;
    always(
        &world,
        "insert_instance",
        gpuprov::sandbox::FaultKind::Script { script: GcpScript::OtherHostKey.into() },
    );
    let ran = world.run("provision --gpus L4:1 --name dev --boot-timeout 4s --attempts 1").await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.to_lowercase().contains("host key"), "{ran:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_host_keys_the_first_contact_is_trusted_and_pinned() {
    let world = world().await;
    let project = world.sandbox.gcp().project().to_owned();
    world.sandbox.gcp().set_policy(&project, GcpPolicy::NoGuestAttributes, true);
    let ran = world.run("provision --gpus L4:1 --name dev").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("forbids guest attributes"), "{ran:?}");
    assert!(ssh_files(&world).contains("StrictHostKeyChecking accept-new"));
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_lets_no_ssh_in_is_told_with_the_command() {
    let world = world().await;
    let project = world.sandbox.gcp().project().to_owned();
    assert!(world.sandbox.gcp().remove_rule(&project, "default-allow-ssh"));
    let ran = world.run("provision --gpus L4:1 --name dev --boot-timeout 6s --attempts 1").await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("gcloud compute firewall-rules create"), "{ran:?}");
    nothing_of_ours_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_with_os_login_lets_our_key_in_all_the_same() {
    let world = world().await;
    let project = world.sandbox.gcp().project().to_owned();
    world.sandbox.gcp().set_project_metadata(&project, "enable-oslogin", "TRUE");
    provision(&world, "--gpus L4:1").await;
    remove(&world).await;
}
