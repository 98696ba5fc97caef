//! Google Cloud over real sockets.

mod auth;
mod faults;
mod life;
mod looks;
mod strict;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::Rig;
use crate::sandbox::GcpLeftKind;
use crate::sandbox::oidc::RsaKey;

const ZONE: &str = "zones/us-central1-a";

impl Rig {
    /// A token that the first project's service account has signed itself.
    fn google_token(&self) -> String {
        self.google_signed(&json!({"scope": "https://www.googleapis.com/auth/cloud-platform", "aud": null}))
    }

    /// The same with these claims changed.
    fn google_signed(&self, changes: &Value) -> String {
        let file: Value = serde_json::from_str(&self.sandbox.gcp().key_file()).unwrap();
        let now = Timestamp::now().as_second();
        let mut claims = json!({"iss": file["client_email"], "sub": file["client_email"], "iat": now - 10, "exp": now + 3600});
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        RsaKey::shared().unwrap().sign(file["private_key_id"].as_str().unwrap(), &claims).unwrap()
    }

    async fn send_google(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Response {
        let gcp = self.sandbox.gcp();
        let url = format!("{}/compute/v1/projects/{}/{path}", gcp.endpoint(), gcp.project());
        let mut request =
            self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), url.trim_end_matches('/'));
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        request = match body {
            Some(body) => request.json(&body),
            None if method == "POST" => request.header("content-length", "0"),
            None => request,
        };
        request.timeout(Duration::from_secs(10)).send().await.unwrap()
    }

    async fn google(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.send_google(&self.google_token(), method, path, body).await;
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Inserts, and waits for the operation; the operation at its end.
    async fn insert(&self, body: Value) -> Value {
        let zone = body["machineType"].as_str().unwrap().split('/').nth(1).unwrap().to_owned();
        let (status, operation) = self.google("POST", &format!("zones/{zone}/instances"), Some(body)).await;
        assert_eq!(status, 200, "{operation}");
        self.done(&operation).await
    }

    /// Waits for an operation.
    async fn done(&self, operation: &Value) -> Value {
        let name = operation["name"].as_str().unwrap();
        let place = operation["zone"]
            .as_str()
            .map_or("global".to_owned(), |zone| format!("zones/{}", zone.rsplit('/').next().unwrap()));
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            let (status, now) = self.google("POST", &format!("{place}/operations/{name}/wait"), None).await;
            assert_eq!(status, 200, "{now}");
            if now["status"] == "DONE" {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{name} never ends");
    }

    /// Waits for a status of an instance.
    async fn turns(&self, name: &str, word: &str) -> Value {
        let until = Instant::now() + Duration::from_secs(10);
        let mut last = Value::Null;
        while Instant::now() < until {
            last = self.google("GET", &format!("{ZONE}/instances/{name}"), None).await.1;
            if last["status"] == word {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        panic!("{name} never became {word}: {last}");
    }

    fn google_kinds(&self) -> Vec<GcpLeftKind> {
        self.sandbox.gcp().left().into_iter().map(|left| left.kind).collect()
    }
}

/// A body that gets a spot machine with an L4.
fn body(public: &str) -> Value {
    json!({
        "name": "dev", "description": "a machine", "machineType": format!("{ZONE}/machineTypes/g2-standard-4"),
        "labels": {"gpuprov": "1", "gpuprov-name": "dev"},
        "disks": [{"boot": true, "autoDelete": true, "type": "PERSISTENT", "mode": "READ_WRITE", "initializeParams": {
            "sourceImage": "projects/deeplearning-platform-release/global/images/common-cu129-ubuntu-2204-nvidia-580-v20261001",
            "diskSizeGb": "50", "diskType": format!("{ZONE}/diskTypes/pd-balanced"), "labels": {"gpuprov": "1"}}}],
        "networkInterfaces": [{"network": "global/networks/default", "stackType": "IPV4_ONLY",
            "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "External NAT", "networkTier": "PREMIUM"}]}],
        "scheduling": {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE", "automaticRestart": false,
            "onHostMaintenance": "TERMINATE"},
        "metadata": {"items": [{"key": "ssh-keys", "value": format!("ubuntu:{public}")},
            {"key": "block-project-ssh-keys", "value": "TRUE"}, {"key": "enable-oslogin", "value": "FALSE"},
            {"key": "enable-guest-attributes", "value": "TRUE"}]},
        "tags": {"items": ["gpuprov-7f3a9c"]},
        "shieldedInstanceConfig": {"enableSecureBoot": false, "enableVtpm": true, "enableIntegrityMonitoring": true},
    })
}

/// The same on demand.
fn on_demand(changes: &Value) -> Value {
    let scheduling =
        json!({"provisioningModel": "STANDARD", "onHostMaintenance": "TERMINATE", "automaticRestart": true});
    changed(&changed_of(body(""), &json!({"scheduling": scheduling})), changes)
}

fn with(changes: &Value) -> Value {
    changed_of(body(""), changes)
}

fn changed(body: &Value, changes: &Value) -> Value {
    changed_of(body.clone(), changes)
}

fn changed_of(mut body: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}
