//! What fails in practice, case by case: it is told, the machine goes on, and the set-up is taken up again.

use serde_json::json;

use super::{calls, count, fault, home, mend, provision, remove, world, world_with};
use crate::support::World;

/// One thing that goes wrong, in the order of the steps, and the words that tell it.
const CASES: [(&str, &str); 17] = [
    ("bus", "Failed to connect to bus"),
    ("route", "no default route"),
    ("disk", "take a larger --disk"),
    ("driver", "Driver/library version mismatch (the driver was exchanged"),
    ("nft", "the firewall rules could not be loaded; k3s was not started"),
    ("apt", "apt-get could not install"),
    ("toolkit", "no nvidia-container-runtime in PATH"),
    ("download", "could not be downloaded (curl ended with 22)"),
    ("tampered", "is not the expected one; it was thrown away"),
    ("installer", "the installer of k3s ended with 1"),
    ("hangs", "k3s did not answer within 3 s"),
    ("crashes", "k3s starts again and again; its last words: level=fatal"),
    ("runtime", "k3s did not find the NVIDIA runtime"),
    ("node", "the node dev did not get ready within 3 s"),
    ("coredns", "the cluster's name server did not start"),
    ("gpu-none", "Kubernetes has 0 of 1 GPUs after 3 s; the device plugin says: could not load NVML"),
    ("gpu-fewer", "Kubernetes has 0 of 1 GPUs"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_step_fails_and_is_taken_up_again() {
    let world = world().await;
    provision(&world, "--no-k8s").await;
    for (name, words) in CASES {
        mend(&world);
        fault(&world, name, 1000);
        let ran = world.run("k8s setup dev").await;
        assert!(ran.code == 7 && ran.stdout.is_empty(), "{name}: {ran:?}");
        assert!(ran.stderr.contains(words), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains("`gpuprov k8s setup dev` takes the set-up up again"), "{}", ran.stderr);
        let started = home(&world).join(".sandbox/k8s/k3s").exists();
        assert!(started || CASES.iter().position(|case| case.0 == name) < Some(10), "{name}");
        assert!(!started || CASES.iter().position(|case| case.0 == name) >= Some(10), "{name}");
        let (code, listed) = world.json("ls").await;
        let machine = &listed["machines"][0];
        assert_eq!(
            (code, &machine["state"], &machine["k8s"]["state"]),
            (0, &json!("running"), &json!("failed"))
        );
        assert_eq!(listed["warnings"][0]["kind"], "setup_failed", "{listed}");
        assert_eq!(world.run("ssh dev true").await.code, 0, "a working machine");
    }
    mend(&world);
    let ran = world.run("k8s setup dev").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    // What was tampered with was never run, and nothing was installed twice.
    assert_eq!(
        count(&calls(&world), "INSTALL_K3S_EXEC=server"),
        2,
        "the one that failed, and the one that did not"
    );
    assert_eq!(world.run("k8s status dev").await.code, 0);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_by_itself_is_waited_out() {
    let world = world().await;
    for name in ["apt", "node", "hangs", "gpu-none", "driver"] {
        fault(&world, name, 2);
    }
    let ran = provision(&world, "--k8s").await;
    assert!(ran.stderr.contains("try 3 of 5") || count(&calls(&world), "apt-get") >= 4, "{}", ran.stderr);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_as_it_should_be_and_stops_nothing() {
    let world = world().await;
    for name in ["cloud-init", "wireguard", "ufw"] {
        fault(&world, name, 1000);
    }
    let ran = provision(&world, "--k8s").await;
    assert!(
        ran.stderr.contains("cloud-init did not end well") && ran.stderr.contains("no WireGuard"),
        "{ran:?}"
    );
    let calls = calls(&world);
    assert!(calls.contains("ufw allow from 10.42.0.0/16") && calls.contains("ufw allow from 10.43.0.0/16"));
    let read = || std::fs::read_to_string(home(&world).join("etc/rancher/k3s/config.yaml")).unwrap();
    assert!(read().contains("flannel-backend: vxlan"));
    // A backend that nodes use already is never exchanged.
    mend(&world);
    assert_eq!(world.run("k8s setup dev").await.code, 0);
    assert!(read().contains("flannel-backend: vxlan"));
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_insists_gets_7_and_who_does_not_a_warning() {
    let world = world().await;
    for (name, flags, insists) in [
        ("bus", "", false),
        ("bus", "--k8s", true),
        ("bus", "--k8s --wait ssh", true),
        ("installer", "", false),
        ("installer", "--k8s", true),
        ("installer", "--wait k8s", true),
        ("installer", "--k8s --wait ssh", false),
    ] {
        fault(&world, name, 1000);
        let (code, made) =
            world.json(&format!("provision --gpus H100:1 --region FI --name dev {flags}")).await;
        assert_eq!(code, if insists { 7 } else { 0 }, "{name} {flags}: {made}");
        let kind = if insists { json!("setup_failed") } else { json!(null) };
        assert_eq!(
            (&made["error"]["kind"], &made["machines"][0]["state"]),
            (&kind, &json!("running")),
            "{made}"
        );
        if insists {
            assert!(made["error"]["hint"].as_str().unwrap().contains("gpuprov k8s setup dev"), "{made}");
        } else if name == "bus" {
            assert!(made["warnings"].to_string().contains("gpuprov k8s setup dev"), "{made}");
        }
        assert_eq!(world.run("ssh dev true").await.code, 0);
        mend(&world);
        remove(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_closed_before_k3s_starts() {
    let world = world().await;
    provision(&world, "--k8s").await;
    let rules = std::fs::read_to_string(home(&world).join(".sandbox/k8s/nft")).unwrap();
    super::manifests::closes_the_cluster(&rules);
    let unit =
        |path: &str| std::fs::read_to_string(home(&world).join("etc/systemd/system").join(path)).unwrap();
    assert!(unit("k3s.service.d/10-gpuprov.conf").contains("Requires=gpuprov-firewall.service"));
    let firewall = unit("gpuprov-firewall.service");
    assert!(
        firewall.contains("nft -f /etc/gpuprov/firewall.nft")
            && firewall.contains("WantedBy=multi-user.target")
    );
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_starts_again_without_its_cluster_is_told() {
    let world = world_with(|_| {}).await;
    provision(&world, "--k8s").await;
    std::fs::remove_file(home(&world).join(".sandbox/k8s/k3s")).unwrap();
    let ran = world.run("k8s status dev").await;
    assert!(ran.code == 0 && ran.stdout.starts_with("failed"), "{ran:?}");
    assert!(
        ran.stderr.contains("k3s does not run now") && ran.stderr.contains("gpuprov k8s setup dev"),
        "{ran:?}"
    );
    let (_, document) = world.json("k8s status dev").await;
    assert_eq!(document["warnings"][0]["kind"], "setup_failed", "{document}");
    assert_eq!(world.run("k8s setup dev").await.code, 0);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_cannot_be_reached() {
    let world: World = world().await;
    provision(&world, "--k8s").await;
    let config = world.home().join(".ssh/gpuprov");
    let id = std::fs::read_to_string(world.state().join("installation")).unwrap();
    let hosts = config.join(id.trim()).join("dev.known_hosts");
    std::fs::write(&hosts, "").unwrap();
    // Its host key changed: nothing is taken from it, no credential is written.
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    let alias = std::fs::read_to_string(config.join(format!("{}.conf", id.trim()))).unwrap();
    let alias = alias.lines().find_map(|line| line.trim().strip_prefix("HostKeyAlias ")).unwrap().to_owned();
    std::fs::write(&hosts, format!("{alias} {key}\n")).unwrap();
    for words in ["k8s status dev", "kubeconfig dev", "k8s tunnel dev"] {
        let ran = world.run(words).await;
        assert!(ran.code == 1 && ran.stderr.contains("host key"), "{words}: {ran:?}");
    }
    assert!(!world.home().join(".local/share/gpuprov/kube/dev.yaml").exists());
    remove(&world).await;
}
