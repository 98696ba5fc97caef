//! What a correct client never sends is refused, and noted.

use serde_json::{Value, json};

use super::INSTANCES;
use crate::sandbox::nebius::probe::write;
use crate::sandbox::tests::Rig;

const CREATE: &str = "/nebius.compute.v1.InstanceService/Create";

#[tokio::test]
async fn specs_against_the_rules_are_refused() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 24] = [
        ("metadata.parent_id", |body| body["metadata"]["parent_id"] = Value::Null),
        ("metadata.labels", |body| body["metadata"]["labels"]["Upper"] = json!("x")),
        ("spec.resources", |body| body["spec"]["resources"] = Value::Null),
        ("spec.resources.size", |body| body["spec"]["resources"]["preset"] = Value::Null),
        ("spec.resources.platform", |body| body["spec"]["resources"]["platform"] = json!("gpu-b200-sxm")),
        ("spec.boot_disk", |body| body["spec"]["boot_disk"] = Value::Null),
        ("spec.boot_disk.attach_mode", |body| body["spec"]["boot_disk"]["attach_mode"] = Value::Null),
        ("spec.boot_disk.type", |body| body["spec"]["boot_disk"]["managed_disk"] = Value::Null),
        ("spec.boot_disk.managed_disk.name", |body| {
            body["spec"]["boot_disk"]["managed_disk"]["name"] = json!("")
        }),
        ("spec.boot_disk.managed_disk.spec.size", |body| {
            body["spec"]["boot_disk"]["managed_disk"]["spec"]["size_gibibytes"] = Value::Null;
        }),
        ("spec.boot_disk.managed_disk.spec.size", |body| {
            body["spec"]["boot_disk"]["managed_disk"]["spec"]["size_gibibytes"] = json!(10);
        }),
        ("spec.boot_disk.managed_disk.spec.type", |body| {
            body["spec"]["boot_disk"]["managed_disk"]["spec"]["type"] = Value::Null;
        }),
        ("spec.network_interfaces", |body| body["spec"]["network_interfaces"] = json!([])),
        ("spec.network_interfaces[0].ip_address", |body| {
            body["spec"]["network_interfaces"][0]["ip_address"] = Value::Null;
        }),
        ("spec.network_interfaces[0].name", |body| {
            body["spec"]["network_interfaces"][0]["name"] = json!("Eth 0")
        }),
        ("spec.hostname", |body| body["spec"]["hostname"] = json!("-dev")),
        ("spec.cloud_init_user_data", |body| {
            body["spec"]["cloud_init_user_data"] = json!("x".repeat(40_000))
        }),
        ("spec.cloud_init_user_data", |body| body["spec"]["cloud_init_user_data"] = json!("users: []")),
        ("spec.preemptible", |body| {
            body["spec"]["preemptible"] = json!({"on_preemption": "STOP"});
            body["spec"]["follows_spot_price"] = json!({});
        }),
        ("spec.pricing_model", |body| body["spec"]["preemptible"] = json!({"on_preemption": "STOP"})),
        ("spec.pricing_model", |body| body["spec"]["follows_spot_price"] = json!({})),
        ("spec.preemptible.on_preemption", |body| {
            body["spec"]["preemptible"] = json!({});
            body["spec"]["follows_spot_price"] = json!({});
        }),
        ("spec.preemptible.priority", |body| {
            body["spec"]["preemptible"] = json!({"on_preemption": "STOP", "priority": 3});
            body["spec"]["follows_spot_price"] = json!({});
        }),
        ("metadata.name", |body| body["metadata"]["name"] = json!("")),
    ];
    for (index, (field, change)) in cases.into_iter().enumerate() {
        let mut body = rig.nebius_body("dev", "ssh-ed25519 AAAA");
        change(&mut body);
        let refused = client.create(&format!("k-{index}"), &body).await.unwrap_err();
        let fields: Vec<&str> = refused.detail["bad_request"]["violations"]
            .as_array()
            .map(|list| list.iter().filter_map(|one| one["field"].as_str()).collect())
            .unwrap_or_default();
        assert!(refused.code == 3 && fields.contains(&field), "{field}: {refused:?}");
    }
    assert!(rig.sandbox.made().is_empty());
    assert_eq!(rig.sandbox.rejected().len(), 24);
}

#[tokio::test]
async fn malformed_messages_are_refused() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    client.key = Some("k-1".into());
    let mut bytes = write(CREATE, &rig.nebius_body("dev", "ssh-ed25519 AAAA"));
    bytes.extend([0xf8, 0x06, 0x01]);
    let refused = client.send(CREATE, bytes).await.unwrap_err();
    assert!(refused.message.contains("has no field 111"), "{}", refused.message);
    for bad in [&[0x0a, 0x50, 1][..], &[0xff; 12], &[0x0b], &[0x08, 0x01]] {
        assert_eq!(client.send(CREATE, bad.to_vec()).await.unwrap_err().code, 3, "{bad:?}");
    }
    client.key = None;
    let refused = client.ask(CREATE, rig.nebius_body("dev", "ssh-ed25519 AAAA")).await.unwrap_err();
    assert!(refused.message.contains("x-idempotency-key"), "{}", refused.message);
    let path = format!("{INSTANCES}/Update");
    let mut grpc = tonic::client::Grpc::new(client.channel.clone());
    grpc.ready().await.unwrap();
    let unknown = grpc.unary(tonic::Request::new(Vec::new()), path.parse().unwrap(), super::Raw).await;
    assert_eq!(unknown.unwrap_err().code(), tonic::Code::Unimplemented);
    assert!(rig.sandbox.made().is_empty());
}
