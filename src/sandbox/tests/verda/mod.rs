//! Verda over real sockets.

mod faults;
mod life;
mod strict;

use std::time::{Duration, Instant};

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::Rig;

impl Rig {
    /// Exchanges the first account's credentials.
    async fn verda_token(&self) -> String {
        let verda = self.sandbox.verda();
        let body = json!({"grant_type": "client_credentials", "client_id": verda.client_id(),
                          "client_secret": verda.client_secret()});
        let answer = self.send_verda("POST", "oauth2/token", None, Some(body)).await;
        let pair: Value = answer.json().await.unwrap();
        pair["access_token"].as_str().unwrap().to_owned()
    }

    async fn send_verda(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: Option<Value>,
    ) -> Response {
        let url = format!("{}/v1/{path}", self.sandbox.verda().endpoint());
        let mut request = self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), url);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.timeout(Duration::from_secs(10)).send().await.unwrap()
    }

    async fn ask_verda(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.send_verda(method, path, Some(token), body).await;
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Puts a key on file; its id.
    async fn verda_key(&self, token: &str, public: &str) -> String {
        let body = json!({"name": "gpuprov-test", "key": public});
        let (status, id) = self.ask_verda(token, "POST", "ssh-keys", Some(body)).await;
        assert_eq!(status, 201, "{id}");
        id.as_str().unwrap().to_owned()
    }

    /// Rents; the id.
    async fn deploy(&self, token: &str, body: Value) -> String {
        let (status, id) = self.ask_verda(token, "POST", "instances", Some(body)).await;
        assert_eq!(status, 202, "{id}");
        id.as_str().unwrap().to_owned()
    }

    /// Waits for a status.
    async fn becomes(&self, token: &str, id: &str, word: &str) -> Value {
        let until = Instant::now() + Duration::from_secs(10);
        let mut last = Value::Null;
        while Instant::now() < until {
            last = self.ask_verda(token, "GET", &format!("instances/{id}"), None).await.1;
            if last["status"] == word {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        panic!("{id} never became {word}: {last}");
    }

    fn kinds(&self) -> Vec<super::super::LeftKind> {
        self.sandbox.verda().left().into_iter().map(|left| left.kind).collect()
    }
}

/// A body that gets a spot machine with two volumes.
fn body(key: &str) -> Value {
    json!({"instance_type": "1RTXPRO6000.30V", "image": "24.04.cuda13.2.docker", "hostname": "dev",
           "description": "gpuprov dev", "location_code": "FIN-03", "ssh_key_ids": [key],
           "os_volume": {"name": "gpuprov-dev-os", "size": 100, "on_spot_discontinue": "delete_permanently",
                         "tags": [{"key": "gpuprov", "value": "dev"}]},
           "volumes": [{"name": "data", "size": 10, "type": "NVMe"}],
           "is_spot": true, "contract": "SPOT",
           "tags": [{"key": "GPUprov", "value": "a=b"}, {"key": "free"}]})
}

/// The same on demand, with the OS volume alone.
fn plain(key: &str) -> Value {
    with(
        key,
        json!({"is_spot": false, "contract": null, "volumes": null, "os_volume": {"name": "os", "size": 50}}),
    )
}

fn with(key: &str, changes: Value) -> Value {
    let mut body = body(key);
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn delete(id: &str, volumes: &Value) -> Value {
    json!({"action": "delete", "id": [id], "volume_ids": volumes, "delete_permanently": true})
}
