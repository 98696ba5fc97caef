//! From `provision` to `rm`.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{calls, count, fault, home, k8s, mend, provision, remove, unit, world};
use crate::support::{World, ended, until};

async fn until_ready(world: &World) -> Value {
    let begun = Instant::now();
    loop {
        let status = k8s(world).await;
        if status["state"] == "ready" {
            return status;
        }
        assert!(status["state"] == "installing" && begun.elapsed() < Duration::from_secs(30), "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn provision_starts_it_and_returns() {
    let world = world().await;
    // So slow that it cannot be over when `provision` is.
    fault(&world, "slow", 1000);
    let ran = provision(&world, "").await;
    assert!(!ran.stderr.contains("step"), "{}", ran.stderr);
    let (_, listed) = world.json("ls").await;
    let shown = &listed["machines"][0];
    assert_eq!(
        (&shown["state"], &shown["k8s"]["version"]),
        (&json!("running"), &json!("v1.36.4+k3s1")),
        "{listed}"
    );
    assert_eq!(shown["k8s"]["state"], "installing", "{listed}");
    mend(&world);
    let status = until_ready(&world).await;
    assert_eq!((&status["message"], &status["steps"]), (&json!("one node"), &json!(10)), "{status}");
    let table = world.run("ls").await;
    assert!(table.stdout.contains("K8S") && table.stdout.contains("ready"), "{table:?}");
    assert_eq!(world.record("dev").unwrap()["k8s"]["state"], "ready");
    let (_, local) = world.json("ls --local").await;
    assert_eq!(local["machines"][0]["k8s"]["state"], "ready");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_run_on_the_machine() {
    let world = world().await;
    provision(&world, "--wait k8s").await;
    let calls = calls(&world);
    let at = |what: &str| {
        calls.lines().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {calls}"))
    };
    // The rules before the start, the toolkit before k3s, the start without a wait.
    let order = [
        "systemd-run --quiet --collect --unit=gpuprov-k3s",
        "systemctl stop unattended-upgrades.service",
        "systemctl enable gpuprov-firewall.service",
        "nft -f ",
        "apt-get -q -o DPkg::Lock::Timeout=1 -o Acquire::Retries=3 install -y --no-install-recommends nvidia-container-toolkit",
        "sha256sum -c -",
        "INSTALL_K3S_SKIP_START=true",
        "systemctl restart --no-block k3s",
        "--raw=/readyz",
        "allocatable.nvidia",
    ];
    let places: Vec<usize> = order.iter().map(|what| at(what)).collect();
    assert!(places.is_sorted(), "{places:?} {calls}");
    assert_eq!(count(&calls, "INSTALL_K3S_SKIP_DOWNLOAD=true"), 1);
    assert_eq!(count(&calls, "upgrade -y"), 0, "drivers stay as they are");

    let read = |path: &str| std::fs::read_to_string(home(&world).join(path)).unwrap();
    let config = read("etc/rancher/k3s/config.yaml");
    for line in [
        "node-name: dev",
        "flannel-backend: wireguard-native",
        "disable: [traefik, servicelb]",
        "write-kubeconfig-mode: \"0600\"",
        "default-runtime: nvidia",
    ] {
        assert!(config.lines().any(|have| have == line), "{line}: {config}");
    }
    let token = read("etc/rancher/k3s/gpuprov-agent-token");
    assert!(token.len() == 32 && !config.contains(&token), "no secret in a file that others read");
    use std::os::unix::fs::PermissionsExt;
    for secret in ["config.yaml", "gpuprov-agent-token", "k3s.yaml"] {
        let path = home(&world).join("etc/rancher/k3s").join(secret);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{secret}");
    }
    // Again: nothing is downloaded, installed or restarted, and the token stays.
    let before = calls.lines().count();
    let again = world.run("k8s setup dev").await;
    assert_eq!((again.code, again.stdout.as_str()), (0, "dev\n"), "{again:?}");
    let more: Vec<String> = super::calls(&world).lines().skip(before).map(str::to_owned).collect();
    for what in ["curl", "apt-get", "INSTALL_", "restart", "daemon-reload", "nft -f"] {
        assert!(!more.iter().any(|line| line.contains(what)), "{what}: {more:#?}");
    }
    assert_eq!(read("etc/rancher/k3s/gpuprov-agent-token"), token);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_tells_every_step_and_the_record_says_so() {
    let world = world().await;
    let (code, made) = world.json("provision --gpus H100:1 --region FI --name dev --k8s").await;
    assert_eq!(code, 0, "{made}");
    assert_eq!(made["machines"][0]["k8s"]["state"], "ready", "{made}");
    remove(&world).await;
    let ran = provision(&world, "--k8s").await;
    let steps = ran.stderr.lines().filter(|line| line.starts_with("cluster: step ")).count();
    assert!(steps >= 10 && ran.stderr.contains("waiting for the cluster"), "{}", ran.stderr);
    assert!(ran.stderr.contains("cluster: one node"), "{}", ran.stderr);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gpu_there_is_no_runtime() {
    let world = world().await;
    let ran = world.run("provision --cpu-only --name dev --wait k8s").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let config = std::fs::read_to_string(home(&world).join("etc/rancher/k3s/config.yaml")).unwrap();
    assert!(!config.contains("nvidia"), "{config}");
    assert!(!calls(&world).contains("apt-get"));
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_left_out_and_set_up_later() {
    let world = world().await;
    provision(&world, "--no-k8s").await;
    assert!(!calls(&world).contains("systemd-run"));
    let (_, listed) = world.json("ls").await;
    assert_eq!(listed["machines"][0]["k8s"], Value::Null);
    for words in ["k8s status dev", "kubeconfig dev", "k8s tunnel dev"] {
        let ran = world.run(words).await;
        assert!(ran.code == 2 && ran.stderr.contains("gpuprov k8s setup dev"), "{words}: {ran:?}");
    }
    let (code, set_up) = world.json("k8s setup dev").await;
    assert_eq!(
        (code, &set_up["k8s"]["state"], &set_up["name"]),
        (0, &json!("ready"), &json!("dev")),
        "{set_up}"
    );
    remove(&world).await;

    let port = world.sandbox.vm_ssh_port();
    world.config(&format!("[defaults]\nk8s = false\n[verda]\nssh_port = {port}\n"));
    provision(&world, "").await;
    assert_eq!(world.record("dev").unwrap()["k8s"], Value::Null);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_every_cloud_of_virtual_machines() {
    for (cloud, is_open) in [("gcp", false), ("nebius", true)] {
        let world = match cloud {
            "gcp" => crate::gcp::world().await,
            _ => crate::nebius::world().await,
        };
        world.config(&format!("[{cloud}]\nssh_port = {}\n", world.sandbox.vm_ssh_port()));
        let ran = world.run("provision --gpus L4,L40S,H100 --name dev --k8s").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{cloud}: {ran:?}");
        let calls = calls(&world);
        assert_eq!(
            calls.contains("nft -f "),
            is_open,
            "rules of the machine's own where no firewall stands in front"
        );
        assert_eq!(home(&world).join("etc/systemd/system/k3s.service.d").exists(), is_open);
        assert_eq!(k8s(&world).await["state"], "ready");
        let inside = world.words(&["ssh", "dev", "sudo k3s kubectl get nodes"]).await;
        assert!(inside.stdout.contains("Ready"), "{cloud}: {inside:?}");
        assert_eq!(world.run("kubeconfig dev").await.code, 0);
        remove(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_have_none() {
    let world = World::new().await;
    let ran = world.provision("dev").await;
    assert!(ran.stderr.contains("no Kubernetes on RunPod"), "{}", ran.stderr);
    let requests = world.requests();
    let refused = world.run("k8s setup dev").await;
    assert!(refused.code == 2 && refused.stderr.contains("systemd"), "{refused:?}");
    assert_eq!(world.run("provision --gpus RTX4090 --name x --wait k8s").await.code, 2);
    assert_eq!(world.requests(), requests);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_do_not_go_together() {
    let world = world().await;
    for words in ["--wait k8s --no-k8s", "--k8s --no-k8s", "--wait k9s"] {
        assert_eq!(world.run(&format!("provision --gpus H100:1 {words}")).await.code, 2, "{words}");
    }
    for words in [
        "k8s setup nobody",
        "k8s status nobody",
        "kubeconfig nobody",
        "kubectl nobody -- get pods",
        "kubectl",
    ] {
        assert_eq!(world.run(words).await.code, 2, "{words}");
    }
    let (code, document) = world.json("k8s status nobody").await;
    assert_eq!((code, &document["k8s"], &document["error"]["kind"]), (2, &Value::Null, &json!("refused")));
    assert!(world.made().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_startup_script_comes_first() {
    let world = world().await;
    world.write("start.sh", "systemctl is-active gpuprov-k3s >\"$HOME/was\"; exit 3\n");
    let ran = world
        .run("provision --gpus H100:1 --region FI --name dev --startup-script start.sh --wait k8s")
        .await;
    // It failed, the cluster did not.
    assert!(ran.code == 7 && ran.stderr.contains("the startup script ended with 3"), "{ran:?}");
    assert!(!ran.stderr.contains("takes the cluster up again"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(home(&world).join("was")).unwrap(), "inactive\n");
    assert_eq!(world.record("dev").unwrap()["k8s"]["state"], "ready");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_here_it_goes_on_there() {
    let world = world().await;
    fault(&world, "slow", 1000);
    let mut child = world.start("provision --gpus H100:1 --region FI --name dev --k8s");
    until("the wait", || world.record("dev").is_some_and(|record| record["state"] == "running")).await;
    child.kill().await.unwrap();
    assert_eq!(world.record("dev").unwrap()["state"], "running", "whatever becomes of the process");
    mend(&world);
    let status = until_ready(&world).await;
    assert_eq!(status["message"], "one node");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_there_it_is_told_and_taken_up_again() {
    let world = world().await;
    for at in ["install -y", "-o ", "show k3s", "allocatable"] {
        for what in ["hangs", "gpu-none"] {
            fault(&world, what, 1000);
        }
        provision(&world, "").await;
        if at == "allocatable" {
            std::fs::remove_file(world.home().join("machines/.k8s-faults/hangs")).unwrap();
        }
        until(at, || calls(&world).contains(at)).await;
        killpg(Pid::from_raw(unit(&world).unwrap()), Signal::SIGKILL).unwrap();
        let status = k8s(&world).await;
        assert_eq!(status["state"], "failed", "{at}: {status}");
        assert!(status["message"].as_str().unwrap().contains("cut off"), "{status}");
        let listed = world.run("ls").await;
        assert!(listed.code == 0 && listed.stderr.contains("gpuprov k8s setup dev"), "{listed:?}");
        mend(&world);
        let again = world.run("k8s setup dev").await;
        assert_eq!(again.code, 0, "{at}: {again:?}");
        remove(&world).await;
    }
}

/// Puts a script around ssh that counts in `n` and does `what` before a login; returns the PATH as it was.
async fn wrap(world: &mut World, what: &str) -> String {
    let real = world.program("sh").arg("-c").arg("command -v ssh").output().await.unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *' -G '*) exec REAL \"$@\" ;; esac\n\
         n=$(cat \"$HOME/n\" 2>/dev/null || echo 0); echo $((n + 1)) >\"$HOME/n\"\n{what}\nexec REAL \"$@\"\n"
    );
    world.write("bin/ssh", &script.replace("REAL", real.trim()));
    let folder = world.home().join("bin");
    std::fs::set_permissions(folder.join("ssh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let all = std::env::var("PATH").unwrap();
    world.set("PATH", format!("{}:{all}", folder.display()));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_started_in_the_login_that_there_is_already() {
    let mut world = world().await;
    wrap(&mut world, "echo \"$*\" >>\"$HOME/logins\"").await;
    let mut logins = Vec::new();
    for flags in ["--no-k8s", ""] {
        let _ = std::fs::remove_file(world.home().join("logins"));
        provision(&world, flags).await;
        let lines = std::fs::read_to_string(world.home().join("logins")).unwrap();
        // One that came before sshd let us in may be among them.
        logins.push(lines.lines().filter(|line| line.ends_with("sh -s")).count());
        assert_eq!(calls(&world).contains("systemd-run"), flags.is_empty());
        remove(&world).await;
    }
    assert!(logins.iter().all(|count| (1..=2).contains(count)), "{logins:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_changes_nothing() {
    let mut world = world().await;
    // Every third connection breaks off after a while.
    let all = wrap(&mut world, "[ $((n % 3)) != 2 ] || exec timeout -s KILL 0.1 REAL \"$@\"").await;
    let ran = provision(&world, "--k8s").await;
    assert!(ran.stderr.contains("cluster: one node"), "{}", ran.stderr);
    world.set("PATH", all);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_a_wait_gets_what_the_code_says() {
    let world = world().await;
    fault(&world, "slow", 1000);
    let child = world.start("provision --gpus H100:1 --region FI --name dev --k8s");
    // The record says that it runs before the wait begins.
    until("the wait", || world.record("dev").is_some_and(|record| record["state"] == "running")).await;
    crate::interrupt::signal(&child, Signal::SIGINT);
    let ran = ended(child).await;
    assert_eq!(ran.code, 130, "{ran:?}");
    world.assert_empty();

    fault(&world, "slow", 1000);
    provision(&world, "").await;
    let child = world.start("k8s setup dev");
    let asked = || count(&calls(&world), "is-active --quiet gpuprov-k3s");
    until("the second start", || asked() >= 2).await;
    crate::interrupt::signal(&child, Signal::SIGINT);
    let ran = ended(child).await;
    assert!(ran.code == 130 && ran.stderr.contains("goes on there"), "{ran:?}");
    assert_eq!(world.sandbox.alive().len(), 1);
    remove(&world).await;
}
