//! The sandbox over real sockets: an HTTP client on one side, the system's ssh on the other.

mod faults;
mod gcp;
mod life;
mod nebius;
mod ssh;
mod strict;
mod vast;
mod verda;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Options, Sandbox};

/// A sandbox with a client that holds the first account's key.
struct Rig {
    sandbox: Sandbox,
    client: Client,
    scratch: TempDir,
}

impl Rig {
    async fn new() -> Rig {
        Rig::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Options)) -> Rig {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let scratch = TempDir::new().unwrap();
        let mut options = Options::for_tests(scratch.path().to_owned());
        change(&mut options);
        let sandbox = Sandbox::start(options).await.unwrap();
        let client = Client::builder().tls_certs_only([]).user_agent("gpuprov/test").build().unwrap();
        Rig { sandbox, client, scratch }
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> reqwest::Result<Response> {
        let url = format!("{}{path}", self.sandbox.runpod_endpoint());
        let request = self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), url);
        let request = request.bearer_auth(self.sandbox.runpod_key()).timeout(Duration::from_secs(10));
        match body {
            Some(body) => request.json(&body).send().await,
            None => request.send().await,
        }
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.send(method, path, body).await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, None).await
    }

    async fn create(&self, body: Value) -> Value {
        let (status, pod) = self.ask("POST", "/v2/pods", Some(body)).await;
        assert_eq!(status, 201, "{pod}");
        pod
    }

    /// Waits for `ssh.direct` and for sshd behind it; the port.
    async fn ready(&self, id: &str) -> u16 {
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            let (_, pod) = self.get(&format!("/v2/pods/{id}")).await;
            if let Some(port) = pod["ssh"]["direct"]["port"].as_u64() {
                let port = u16::try_from(port).unwrap();
                if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                    return port;
                }
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        panic!("pod {id} never became ready");
    }

    /// A key pair; path of the private half, and the public line.
    async fn key(&self, name: &str, kind: &str) -> (PathBuf, String) {
        let path = self.scratch.path().join(name);
        let made = tokio::process::Command::new("ssh-keygen")
            .args(["-q", "-t", kind, "-N", "", "-C", name, "-f"])
            .arg(&path)
            .status()
            .await
            .unwrap();
        assert!(made.success());
        let public = std::fs::read_to_string(path.with_extension("pub")).unwrap();
        (path, public.trim().to_owned())
    }
}

/// A body that gets a machine.
fn body(public: &str) -> Value {
    json!({"name": "dev", "image": "runpod/base:1.4.1-cuda1290-ubuntu2204", "cloud": "COMMUNITY",
           "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 2, "minCudaVersion": "12.9"},
           "dataCenterIds": ["EU-RO-1"], "disk": 50, "ports": ["22/tcp"],
           "env": {"PUBLIC_KEY": public, "GPUPROV_MARK": "v1:a:default:dev:0123456789abcdef::"}})
}
