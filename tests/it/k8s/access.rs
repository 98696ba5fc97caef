//! The way to the cluster: `kubectl`, `kubeconfig`, `k8s tunnel`. TLS is verified, nothing is left, nothing of the user's is
//! touched.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gpuprov::sandbox::{Fault, FaultKind, Script};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::{fault, home, mend, provision, remove, world};
use crate::support::{World, ended, until};

/// Puts a stand-in for kubectl into PATH: it writes down what it was given, waits for a word, and ends with 5.
fn kubectl(world: &mut World) {
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$HOME/words\"\nenv >\"$HOME/env\"\n\
        cp \"$KUBECONFIG\" \"$HOME/given\"; stat -c %a \"$KUBECONFIG\" >\"$HOME/mode\"; mv \"$HOME/mode\" \"$HOME/started\"\n\
        echo a result\nn=0; while [ ! -e \"$HOME/go\" ] && [ $n -lt 500 ]; do sleep 0.02; n=$((n + 1)); done\nexit 5\n";
    world.write("bin/kubectl", script);
    let folder = world.home().join("bin");
    std::fs::set_permissions(folder.join("kubectl"), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.set("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
}

/// Asks the cluster through a kubeconfig, with its authority alone and its client certificate.
async fn ask(kubeconfig: &Path, path: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(kubeconfig).map_err(|error| error.to_string())?;
    let config: Value = serde_norway::from_str(&text).unwrap();
    let pem = |place: &Value| STANDARD.decode(place.as_str().unwrap()).unwrap();
    let cluster = &config["clusters"][0]["cluster"];
    let user = &config["users"][0]["user"];
    let mut identity = pem(&user["client-certificate-data"]);
    identity.extend(pem(&user["client-key-data"]));
    let authority = reqwest::Certificate::from_pem(&pem(&cluster["certificate-authority-data"])).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .tls_certs_only([authority])
        .identity(reqwest::Identity::from_pem(&identity).unwrap())
        .no_proxy()
        .timeout(Duration::from_secs(10))
        .build()
        .unwrap();
    let server = cluster["server"].as_str().unwrap();
    assert!(server.starts_with("https://127.0.0.1:"), "{server}");
    let answer = client.get(format!("{server}{path}")).send().await.map_err(|error| format!("{error:?}"))?;
    answer.json().await.map_err(|error| format!("{error:?}"))
}

fn port_of(kubeconfig: &Path) -> u16 {
    let config: Value = serde_norway::from_str(&std::fs::read_to_string(kubeconfig).unwrap()).unwrap();
    config["clusters"][0]["cluster"]["server"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap()
}

async fn is_open(port: u16) -> bool {
    tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
}

async fn closes(port: u16) {
    for _ in 0..100 {
        if !is_open(port).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{port} is still open");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_through_a_tunnel_of_its_own() {
    let mut world = world().await;
    kubectl(&mut world);
    provision(&world, "--k8s").await;
    let child = world.start("kubectl dev -- get pods -A --v=8 -- x");
    until("kubectl", || world.home().join("started").exists()).await;
    let given = world.home().join("given");
    let nodes = ask(&given, "/api/v1/nodes").await.unwrap();
    let node = &nodes["items"][0];
    assert_eq!(node["metadata"]["name"], "dev", "{nodes}");
    assert_eq!(node["status"]["allocatable"]["nvidia.com/gpu"], "1", "as many as were rented: {nodes}");
    let port = port_of(&given);
    std::fs::write(world.home().join("go"), "").unwrap();
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (5, "a result\n", ""), "{ran:?}");
    let words = std::fs::read_to_string(world.home().join("words")).unwrap();
    assert_eq!(words, "get\npods\n-A\n--v=8\n--\nx\n");
    assert_eq!(std::fs::read_to_string(world.home().join("started")).unwrap(), "600\n");
    let env = std::fs::read_to_string(world.home().join("env")).unwrap();
    assert!(!env.contains("VERDA_CLIENT_SECRET"), "no cloud's credential goes to other programs");
    closes(port).await;
    let text = std::fs::read_to_string(&given).unwrap();
    assert!(text.contains("current-context: gpuprov-dev") && !text.contains("insecure"), "{text}");
    assert!(!world.home().join(".kube").exists());
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_ends_with_its_command_however_that_ends() {
    let mut world = world().await;
    kubectl(&mut world);
    provision(&world, "--k8s").await;
    let mut child = world.start("kubectl dev get nodes");
    until("kubectl", || world.home().join("started").exists()).await;
    let port = port_of(&world.home().join("given"));
    assert!(is_open(port).await);
    child.kill().await.unwrap();
    closes(port).await;
    std::fs::write(world.home().join("go"), "").unwrap();
    // What the killed one left goes with the machine: `remove` looks.
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_for_other_programs_and_its_tunnel() {
    let world = world().await;
    provision(&world, "--k8s").await;
    let wrote = world.run("kubeconfig dev").await;
    let file = world.home().join(".local/share/gpuprov/kube/dev.yaml");
    assert_eq!((wrote.code, wrote.stdout.trim()), (0, file.to_str().unwrap()), "{wrote:?}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(ask(&file, "/version").await.is_err(), "no tunnel yet");
    let tunnel = world.start("k8s tunnel dev");
    let port = port_of(&file);
    for _ in 0..200 {
        if is_open(port).await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ask(&file, "/version").await.unwrap()["gitVersion"], "v1.36.4+k3s1");
    // Written again it keeps the port that the tunnel has.
    assert_eq!(world.run("kubeconfig dev").await.code, 0);
    assert_eq!(ask(&file, "/api/v1/nodes").await.unwrap()["items"][0]["metadata"]["name"], "dev");
    crate::interrupt::signal(&tunnel, Signal::SIGINT);
    let ran = ended(tunnel).await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, file.to_str().unwrap()), "{ran:?}");
    closes(port).await;
    for text in [&wrote.stdout, &wrote.stderr, &ran.stderr] {
        assert!(!text.contains("client-key") && !text.contains("PRIVATE"), "{text}");
    }

    // Where the port is taken the file follows.
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let tunnel = world.start("k8s tunnel dev");
    until("another port", || port_of(&file) != port).await;
    assert!(ask(&file, "/version").await.is_ok());
    crate::interrupt::signal(&tunnel, Signal::SIGTERM);
    assert_eq!(ended(tunnel).await.code, 0);
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_behind_the_port_is_not_trusted() {
    let world = world().await;
    provision(&world, "--k8s").await;
    let file = world.run("kubeconfig dev").await.stdout;
    let first = std::fs::read_to_string(file.trim()).unwrap();
    remove(&world).await;
    // The same name, another machine, another authority.
    provision(&world, "--k8s").await;
    let tunnel = world.start("k8s tunnel dev");
    let now = world.home().join(".local/share/gpuprov/kube/dev.yaml");
    until("the tunnel", || now.exists()).await;
    assert!(ask(&now, "/version").await.is_ok());
    let old = world.home().join("old.yaml");
    let server = |text: &str| text.lines().find(|line| line.contains("server:")).unwrap().to_owned();
    let text = std::fs::read_to_string(&now).unwrap();
    std::fs::write(&old, first.replace(&server(&first), &server(&text))).unwrap();
    let refused = ask(&old, "/version").await.unwrap_err();
    assert!(refused.contains("InvalidCertificate"), "{refused}");
    crate::interrupt::signal(&tunnel, Signal::SIGINT);
    ended(tunnel).await;
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_kubectl_and_before_it_is_ready() {
    let mut world = world().await;
    fault(&world, "slow", 1000);
    provision(&world, "").await;
    let ran = world.run("kubeconfig dev").await;
    assert!(ran.code == 1 && ran.stderr.contains("gpuprov k8s setup dev"), "{ran:?}");
    mend(&world);
    assert_eq!(world.run("k8s setup dev").await.code, 0);
    // A PATH with ssh, and without kubectl.
    let all = std::env::var("PATH").unwrap();
    let folder = world.home().join("few");
    std::fs::create_dir(&folder).unwrap();
    for name in ["ssh", "ssh-keygen"] {
        let found = std::env::split_paths(&all).map(|dir| dir.join(name)).find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(found, folder.join(name)).unwrap();
    }
    world.set("PATH", folder.into_os_string());
    let ran = world.run("kubectl dev -- get nodes").await;
    assert!(ran.code == 2 && ran.stderr.contains("sudo k3s kubectl"), "{ran:?}");
    world.set("PATH", all);
    let inside = world.words(&["ssh", "dev", "k3s kubectl get nodes"]).await;
    assert!(inside.code == 0 && inside.stdout.contains("Ready"), "{inside:?}");
    remove(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sshd_that_forbids_forwarding_is_told_to_allow_it() {
    let world = world().await;
    let script = Script::NoForwarding;
    world.sandbox.verda().add_fault(Fault::on("create_instance", FaultKind::Script { script }));
    provision(&world, "--k8s").await;
    assert!(home(&world).join("etc/ssh/sshd_config.d/10-gpuprov.conf").exists());
    let tunnel = world.start("k8s tunnel dev");
    let file = world.home().join(".local/share/gpuprov/kube/dev.yaml");
    until("the tunnel", || file.exists()).await;
    assert!(ask(&file, "/version").await.is_ok());
    crate::interrupt::signal(&tunnel, Signal::SIGINT);
    ended(tunnel).await;
    remove(&world).await;
}
