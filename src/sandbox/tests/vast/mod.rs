//! Vast over real sockets.

mod faults;
mod life;
mod search;
mod strict;

use std::time::{Duration, Instant};

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::Rig;
use super::ssh::{run, ssh};

/// An ordinary offer of one RTX 3090, and one of one RTX 5090 of a machine with four.
const PLAIN: u64 = 20_420_230;
const FIVE: u64 = 20_372_280;

impl Rig {
    async fn vast(&self, method: &str, path: &str, body: Option<Value>) -> Response {
        let url = format!("{}/api/v0/{path}", self.sandbox.vast().endpoint()).replace("/v0/v1/", "/v1/");
        let request = self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), url);
        let request = request.bearer_auth(self.sandbox.vast().key()).timeout(Duration::from_secs(10));
        match body {
            Some(body) => request.json(&body).send().await.unwrap(),
            None => request.send().await.unwrap(),
        }
    }

    async fn ask_vast(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.vast(method, path, body).await;
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn search(&self, query: Value) -> Vec<Value> {
        let (status, answer) = self.ask_vast("POST", "bundles/", Some(query)).await;
        assert_eq!(status, 200, "{answer}");
        answer["offers"].as_array().unwrap().clone()
    }

    async fn rent(&self, ask: u64, body: Value) -> u64 {
        let (status, answer) = self.ask_vast("PUT", &format!("asks/{ask}/"), Some(body)).await;
        assert_eq!((status, &answer["success"]), (200, &json!(true)), "{answer}");
        answer["new_contract"].as_u64().unwrap()
    }

    async fn instance(&self, id: u64) -> Value {
        self.ask_vast("GET", &format!("instances/{id}/"), None).await.1["instances"].clone()
    }

    /// Attaches a key, as often as it takes.
    async fn attach(&self, id: u64, public: &str) {
        for _ in 0..100 {
            let path = format!("instances/{id}/ssh/");
            if self.ask_vast("POST", &path, Some(json!({"ssh_key": public}))).await.0 == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no key for {id}");
    }

    /// Waits until it runs and is addressed.
    async fn running(&self, id: u64) -> Value {
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            let one = self.instance(id).await;
            if one["actual_status"] == "running" && one["ports"]["22/tcp"].is_array() {
                return one;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        panic!("instance {id} never ran");
    }
}

fn body() -> Value {
    json!({"client_id": "me", "image": "vastai/base-image:@vastai-automatic-tag", "disk": 100, "label": "gpuprov-dev",
           "runtype": "ssh_direct", "target_state": "running", "cancel_unavail": true, "price": null,
           "env": {"GPUPROV_MARK": "v1:a", "-p 8000:8000": "1"}, "onstart": "touch ~/.no_auto_tmux"})
}

fn with(changes: Value) -> Value {
    let mut body = body();
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn direct(one: &Value) -> u16 {
    one["ports"]["22/tcp"][0]["HostPort"].as_str().unwrap().parse().unwrap()
}

fn proxy(one: &Value) -> u16 {
    u16::try_from(one["ssh_port"].as_u64().unwrap()).unwrap()
}

/// Runs a command until the machine lets it in.
async fn login(key: &std::path::Path, port: u16, command: &str) -> (i32, String, String) {
    let mut last = (-1, String::new(), String::new());
    for _ in 0..40 {
        last = run(ssh(key, port).args(["root@127.0.0.1", command])).await;
        if last.0 != 255 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    last
}
