//! Nebius over real sockets.

mod faults;
mod life;
mod sale;
mod strict;
mod token;

use std::time::{Duration, Instant};

use prost::bytes::{Buf, BufMut};
use serde_json::{Value, json};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};

use super::Rig;
use crate::sandbox::nebius::probe::{detail, read, write};

/// Bytes as they are.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = tonic::Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), tonic::Status> {
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = tonic::Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, tonic::Status> {
        let length = from.remaining();
        Ok(Some(from.copy_to_bytes(length).to_vec()))
    }
}

/// An error as the client sees it.
#[derive(Debug)]
struct Failed {
    code: i32,
    message: String,
    /// The `ServiceError`, or null.
    detail: Value,
}

/// A client of the emulator.
struct Client {
    channel: Channel,
    token: Option<String>,
    key: Option<String>,
}

const INSTANCES: &str = "/nebius.compute.v1.InstanceService";
const DISKS: &str = "/nebius.compute.v1.DiskService";
const OPERATIONS: &str = "/nebius.common.v1.OperationService";

impl Rig {
    /// A client with the first account's static token.
    async fn nebius(&self) -> Client {
        let endpoint = Endpoint::from_shared(self.sandbox.nebius().endpoint()).unwrap();
        let channel = endpoint.user_agent("gpuprov/test").unwrap().connect().await.unwrap();
        Client { channel, token: Some(self.sandbox.nebius().token().to_owned()), key: None }
    }

    /// A create's message: the smallest CPU-only machine, with this public key.
    fn nebius_body(&self, name: &str, public: &str) -> Value {
        let region = "eu-north1";
        let project = self.sandbox.nebius().project(region).unwrap();
        let user = json!({
            "users": [{"name": "ubuntu", "sudo": "ALL=(ALL) NOPASSWD:ALL", "shell": "/bin/bash",
                       "ssh_authorized_keys": [public]}],
            "write_files": [{"path": "/etc/ssh/sshd_config.d/10-forward.conf", "content": "AllowTcpForwarding yes\n"}],
        });
        json!({
            "metadata": {"parent_id": project, "name": name, "labels": {"managed-by": "gpuprov"}},
            "spec": {
                "resources": {"platform": "cpu-d3", "preset": "4vcpu-16gb"},
                "boot_disk": {"attach_mode": "READ_WRITE", "managed_disk": {
                    "name": format!("{name}-boot"), "labels": {"managed-by": "gpuprov"},
                    "spec": {"type": "NETWORK_SSD", "size_gibibytes": 64,
                             "source_image_family": {"image_family": "ubuntu24.04-driverless"}},
                }},
                "network_interfaces": [{"name": "eth0", "subnet_id": self.nebius_subnet(region), "ip_address": {},
                                        "public_ip_address": {}}],
                "cloud_init_user_data": format!("#cloud-config\n{user}\n"), "hostname": name,
            },
        })
    }

    /// The same with an H100 that can be taken away.
    fn nebius_spot(&self, name: &str, public: &str) -> Value {
        let mut body = self.nebius_body(name, public);
        let spec = &mut body["spec"];
        spec["resources"] = json!({"platform": "gpu-h100-sxm", "preset": "1gpu-16vcpu-200gb"});
        spec["boot_disk"]["managed_disk"]["spec"]["source_image_family"]["image_family"] =
            json!("ubuntu24.04-cuda13.0");
        spec["recovery_policy"] = json!("FAIL");
        spec["preemptible"] = json!({"on_preemption": "STOP"});
        spec["follows_spot_price"] = json!({});
        body
    }

    fn nebius_subnet(&self, region: &str) -> String {
        self.sandbox.nebius().subnet(region).unwrap()
    }
}

impl Client {
    /// One call.
    async fn ask(&self, path: &str, message: Value) -> Result<Value, Failed> {
        self.send(path, write(path, &message)).await
    }

    /// One call with these bytes.
    async fn send(&self, path: &str, message: Vec<u8>) -> Result<Value, Failed> {
        self.raw(path, message).await.map(|answer| read(path, &answer).unwrap())
    }

    /// A look at an instance that may be unreadable.
    async fn get_raw(&self, id: &str) -> Result<Value, String> {
        let path = format!("{INSTANCES}/Get");
        read(&path, &self.raw(&path, write(&path, &json!({"id": id}))).await.unwrap())
    }

    async fn raw(&self, path: &str, message: Vec<u8>) -> Result<Vec<u8>, Failed> {
        let mut request = tonic::Request::new(message);
        let metadata = request.metadata_mut();
        if let Some(token) = &self.token {
            metadata.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        if let Some(key) = &self.key {
            metadata.insert("x-idempotency-key", key.parse().unwrap());
        }
        let mut grpc = tonic::client::Grpc::new(self.channel.clone());
        grpc.ready().await.unwrap();
        let call = grpc.unary(request, path.parse().unwrap(), Raw);
        let answer = tokio::time::timeout(Duration::from_secs(10), call).await.unwrap();
        match answer {
            Ok(answer) => Ok(answer.into_inner()),
            Err(status) => {
                let (code, message) = (status.code() as i32, status.message().to_owned());
                Err(Failed { code, message, detail: detail(status.details()) })
            }
        }
    }

    /// A create with a key of its own; the operation.
    async fn create(&mut self, key: &str, body: &Value) -> Result<Value, Failed> {
        self.key = Some(key.to_owned());
        let made = self.ask(&format!("{INSTANCES}/Create"), body.clone()).await;
        self.key = None;
        made
    }

    async fn get(&self, id: &str) -> Result<Value, Failed> {
        self.ask(&format!("{INSTANCES}/Get"), json!({"id": id})).await
    }

    async fn delete(&self, id: &str) -> Result<Value, Failed> {
        self.ask(&format!("{INSTANCES}/Delete"), json!({"id": id})).await
    }

    async fn operation(&self, id: &str) -> Result<Value, Failed> {
        self.ask(&format!("{OPERATIONS}/Get"), json!({"id": id})).await
    }

    /// Waits until an instance looks like that; what it looked like, and all states on the way.
    async fn becomes(&self, id: &str, like: impl Fn(&Value) -> bool) -> (Value, Vec<String>) {
        let until = Instant::now() + Duration::from_secs(10);
        let mut states: Vec<String> = Vec::new();
        let mut last = Value::Null;
        while Instant::now() < until {
            last = self.get(id).await.unwrap();
            let state = last["status"]["state"].as_str().unwrap_or("none").to_owned();
            if states.last() != Some(&state) {
                states.push(state);
            }
            if like(&last) {
                return (last, states);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{id} never looked so: {last}");
    }

    /// Waits until an operation is finished.
    async fn finished(&self, id: &str) -> Value {
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            let shown = self.operation(id).await.unwrap();
            if shown.get("finished_at").is_some() {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{id} never finished");
    }
}

fn is_running(instance: &Value) -> bool {
    instance["status"]["state"] == "RUNNING" && !address(instance).is_empty()
}

/// The public address, without its mask.
fn address(instance: &Value) -> String {
    let told = instance.pointer("/status/network_interfaces/0/public_ip_address/address");
    told.and_then(Value::as_str).unwrap_or_default().trim_end_matches("/32").to_owned()
}
