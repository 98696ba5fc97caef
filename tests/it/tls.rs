//! The main line over https, under an authority of the tests; and what is said, and not sent, when the certificate is no good.

use std::sync::Arc;

use gpuprov::sandbox::Options;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

use crate::support::World;

/// A certificate authority.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Authority { pem: certificate.pem(), issuer: Issuer::new(params, key) }
    }

    /// A server's side for `name` that speaks only `protocol`.
    fn server(
        &self,
        name: &str,
        protocol: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Arc::new(config)
    }
}

/// A world that trusts `trusted` alone and whose RunPod shows what `server` says.
async fn world(trusted: &Authority, server: Arc<ServerConfig>) -> World {
    let mut world = World::with(|options: &mut Options| options.tls = Some(server)).await;
    world.write("ca.pem", &trusted.pem);
    world.set("SSL_CERT_FILE", world.home().join("ca.pem"));
    assert!(world.sandbox.runpod_endpoint().starts_with("https://127.0.0.1:"));
    world
}

async fn main_line(world: &World) {
    let (code, offers) = world.json("offers --gpus RTX4090:1").await;
    assert_eq!((code, &offers["offers"][0]["sandbox"]), (0, &true.into()), "{offers}");
    world.provision("dev").await;
    let smi = world.run("ssh dev -- nvidia-smi -L").await;
    assert!(smi.code == 0 && smi.stdout.contains("RTX 4090"), "{smi:?}");
    let (code, list) = world.json("ls").await;
    assert_eq!((code, &list["machines"][0]["state"]), (0, &"running".into()), "{list}");
    let removed = world.run("rm dev --yes").await;
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "dev\n"), "{removed:?}");
    assert_eq!(world.creates(), 1);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_main_line_over_http_1() {
    let authority = Authority::new("one");
    let mut world = world(&authority, authority.server("127.0.0.1", "http/1.1", |_| {})).await;
    main_line(&world).await;
    // A name for loopback is as good as a number, and the certificate is looked at all the same.
    let named = world.sandbox.runpod_endpoint().replace("127.0.0.1", "localhost");
    world.set("GPUPROV_RUNPOD_ENDPOINT", named);
    let ran = world.run("offers --gpus RTX4090:1").await;
    assert!(ran.code == 1 && ran.stderr.contains("its certificate is not for the name localhost"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_main_line_over_http_2() {
    let authority = Authority::new("one");
    main_line(&world(&authority, authority.server("127.0.0.1", "h2", |_| {})).await).await;
}

/// Every command says what is wrong and ends with 1 (`rm` with 6: nothing is proven), and the cloud never hears of it.
async fn refused(world: &World, why: &str) {
    for words in ["offers --gpus RTX4090:1", "provision --gpus RTX4090:1 --name dev", "ls", "ls --all"] {
        let (code, document) = world.json(words).await;
        let message = document["error"]["message"].as_str().unwrap_or_default();
        assert!(code == 1 && message.contains(why), "{words}: {code} {document}");
        assert!(message.contains("127.0.0.1"), "{words}: {message}");
    }
    let (code, document) = world.json("rm dev --yes").await;
    assert!(code == 6 && document["failed"][0]["message"].as_str().unwrap().contains(why), "{document}");
    assert_eq!(world.json("ls --local").await.1["machines"], serde_json::json!([]));
    assert_eq!(world.sandbox.requests().len(), 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_authority_is_not_trusted() {
    let (authority, other) = (Authority::new("one"), Authority::new("other"));
    let world = world(&other, authority.server("127.0.0.1", "http/1.1", |_| {})).await;
    refused(&world, "an authority that this computer does not trust").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_only_has_the_right_name_is_not_trusted() {
    let (authority, imposter) = (Authority::new("one"), Authority::new("one"));
    let world = world(&authority, imposter.server("127.0.0.1", "h2", |_| {})).await;
    refused(&world, "not signed by the authority that it names").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_not_taken() {
    let authority = Authority::new("one");
    let world = world(&authority, authority.server("api.runpod.io", "http/1.1", |_| {})).await;
    refused(&world, "its certificate is not for the name 127.0.0.1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_outside_its_time_is_not_taken() {
    let authority = Authority::new("one");
    let expired = authority.server("127.0.0.1", "h2", |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 2, 1);
    });
    refused(&world(&authority, expired).await, "its certificate has expired").await;
    let early =
        authority.server("127.0.0.1", "h2", |params| params.not_before = rcgen::date_time_ymd(2200, 1, 1));
    refused(&world(&authority, early).await, "its certificate is not valid yet").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_root_certificate_what_needs_none_works() {
    let authority = Authority::new("one");
    let mut secure = world(&authority, authority.server("127.0.0.1", "h2", |_| {})).await;
    let mut plain = World::new().await;
    plain.provision("dev").await;
    for world in [&mut secure, &mut plain] {
        world.write("none/empty.pem", "");
        std::fs::create_dir_all(world.home().join("no-roots")).unwrap();
        world.set("SSL_CERT_FILE", world.home().join("none/empty.pem"));
        world.set("SSL_CERT_DIR", world.home().join("no-roots"));
    }
    assert!(plain.run("--version").await.stdout.starts_with("gpuprov "));
    assert_eq!(plain.json("ls --local").await.1["machines"][0]["name"], "dev");
    let smi = plain.run("ssh dev -- nvidia-smi -L").await;
    assert!(smi.code == 0 && smi.stdout.contains("RTX 4090"), "{smi:?}");
    let ran = plain.run("sandbox run -- gpuprov offers --gpus RTX4090:1").await;
    assert!(ran.code == 0 && ran.stdout.contains("RTX4090"), "{ran:?}");
    assert_eq!(plain.run("rm dev --yes").await.code, 0);
    plain.assert_empty();

    let (code, document) = secure.json("offers --gpus RTX4090:1").await;
    let message = document["error"]["message"].as_str().unwrap();
    assert!(code == 1 && message.contains("no root certificates"), "{document}");
    let checks = secure.json("doctor").await.1["checks"].clone();
    let certificates =
        checks.as_array().unwrap().iter().find(|check| check["name"] == "certificates").unwrap();
    assert!(
        certificates["ok"] == false && certificates["fix"].as_str().unwrap().contains("ca-certificates"),
        "{checks}"
    );
    assert_eq!(secure.sandbox.requests().len(), 0);
}

/// A world that trusts the authority alone and has an account at Nebius, all of it over TLS.
async fn nebius(authority: &Authority, protocol: &str) -> World {
    let mut world = world(authority, authority.server("127.0.0.1", protocol, |_| {})).await;
    world.without_runpod();
    let nebius = world.sandbox.nebius();
    let (endpoint, token) = (nebius.endpoint(), nebius.token().to_owned());
    assert!(endpoint.starts_with("https://127.0.0.1:"), "{endpoint}");
    world.config(&format!("[defaults]\nk8s = false\n[nebius]\nssh_port = {}\n", world.sandbox.vm_ssh_port()));
    world.set("GPUPROV_NEBIUS_ENDPOINT", endpoint);
    world.set("NEBIUS_IAM_TOKEN", token);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_over_tls_and_alpn() {
    let authority = Authority::new("one");
    let mut world = nebius(&authority, "h2").await;
    let (code, ran) = world.json("provision --gpus H100:1 --name dev").await;
    assert_eq!(code, 0, "{ran}");
    let smi = world.run("ssh dev -- nvidia-smi -L").await;
    assert!(smi.code == 0 && smi.stdout.contains("H100"), "{smi:?}");
    // A name for loopback is as good as a number, and the certificate is looked at all the same.
    let number = world.sandbox.nebius().endpoint();
    world.set("GPUPROV_NEBIUS_ENDPOINT", number.replace("127.0.0.1", "localhost"));
    let ran = world.run("offers --gpus H100:1").await;
    assert!(ran.code == 1 && ran.stderr.contains("its certificate is not for the name localhost"), "{ran:?}");
    world.set("GPUPROV_NEBIUS_ENDPOINT", number);
    let removed = world.run("rm dev --yes").await;
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "dev\n"), "{removed:?}");
    assert!(world.sandbox.nebius().left().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_trusts_and_speaks_no_less_than_https() {
    let (authority, other) = (Authority::new("one"), Authority::new("other"));
    // No agreement on HTTP/2: nothing is sent.
    let world = nebius(&authority, "http/1.1").await;
    let (code, document) = world.json("offers --gpus H100:1").await;
    assert_eq!((code, world.requests()), (1, 0), "{document}");
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains("no secure connection to 127.0.0.1"), "{message}");

    let world = nebius(&authority, "h2").await;
    world.write("ca.pem", &other.pem);
    for words in ["offers --gpus H100:1", "provision --gpus H100:1 --name dev"] {
        let (code, document) = world.json(words).await;
        let message = document["error"]["message"].as_str().unwrap_or_default();
        assert!(code == 1 && message.contains("does not trust"), "{words}: {document}");
    }
    world.write("ca.pem", "");
    let (code, document) = world.json("offers --gpus H100:1").await;
    let message = document["error"]["message"].as_str().unwrap_or_default();
    assert!(code == 1 && message.contains("no root certificates"), "{document}");
    assert_eq!(world.requests(), 0);
}

/// A proxy that connects every `CONNECT` to `target`, and what was asked of it.
async fn proxy(target: String) -> (String, Arc<std::sync::Mutex<Vec<String>>>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (target, log) = (target.clone(), Arc::clone(&log));
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await?);
                }
                let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
                log.lock().unwrap().push(line);
                let mut cloud = tokio::net::TcpStream::connect(target).await?;
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                tokio::io::copy_bidirectional(&mut stream, &mut cloud).await
            });
        }
    });
    (address, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_goes_through_a_proxy_but_not_to_loopback() {
    let authority = Authority::new("one");
    let mut world = World::with(|options: &mut Options| {
        options.tls = Some(authority.server("nebius.example", "h2", |_| {}));
    })
    .await;
    world.without_runpod();
    world.write("ca.pem", &authority.pem);
    world.set("SSL_CERT_FILE", world.home().join("ca.pem"));
    let loopback = world.sandbox.nebius().endpoint();
    let (proxy, asked) = proxy(loopback.trim_start_matches("https://").to_owned()).await;
    world.set("HTTPS_PROXY", proxy);
    world.set("NEBIUS_IAM_TOKEN", world.sandbox.nebius().token().to_owned());
    world.set("GPUPROV_NEBIUS_ENDPOINT", "https://nebius.example");
    let (code, list) = world.json("offers --gpus H100:1").await;
    assert_eq!(code, 0, "{list}");
    assert_eq!(
        *asked.lock().unwrap(),
        ["CONNECT nebius.example:443 HTTP/1.1"],
        "one connection for all calls"
    );
    world.set("NO_PROXY", "nebius.example");
    let (code, document) = world.json("offers --gpus H100:1").await;
    let message = document["error"]["message"].as_str().unwrap_or_default();
    assert!(code == 1 && message.contains("nebius.example"), "{document}");
    world.unset("NO_PROXY");
    world.set("GPUPROV_NEBIUS_ENDPOINT", loopback);
    let (code, document) = world.json("offers --gpus H100:1").await;
    assert!(code == 1 && document.to_string().contains("not for the name 127.0.0.1"), "{document}");
    assert_eq!(asked.lock().unwrap().len(), 1);
}
