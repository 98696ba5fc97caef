//! What is refused, and how.

use reqwest::header::USER_AGENT;
use serde_json::{Value, json};

use super::{Rig, body};

#[tokio::test]
async fn edge_and_keys() {
    let rig = Rig::new().await;
    let url = format!("{}/v2/pods", rig.sandbox.runpod_endpoint());
    let bare = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
    let answer = bare.get(&url).bearer_auth(rig.sandbox.runpod_key()).send().await.unwrap();
    assert_eq!(answer.status(), 403);
    assert_eq!(answer.text().await.unwrap(), "error code: 1010");
    let answer = bare.get(&url).header(USER_AGENT, "Python-urllib/3.12").send().await.unwrap();
    assert_eq!(answer.status(), 403);
    let answer = rig.client.get(&url).send().await.unwrap();
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    assert!(answer.headers().get("ratelimit").is_none());
    assert!(answer.headers().get("x-request-id").is_some());
    assert_eq!(answer.json::<Value>().await.unwrap()["detail"], "missing bearer token");
    assert_eq!(rig.client.get(&url).bearer_auth("nope").send().await.unwrap().status(), 401);
    let answer = rig.send("GET", "/v2/pods", None).await.unwrap();
    let policy = answer.headers()["ratelimit-policy"].to_str().unwrap();
    assert_eq!(policy, r#""minute";q=180;w=60, "hour";q=7200;w=3600, "day";q=86400;w=86400"#);
    assert_eq!(rig.sandbox.rejected().len(), 2);
}

#[tokio::test]
async fn paths_and_methods() {
    let rig = Rig::new().await;
    assert_eq!(rig.get("/v2/nothing").await.1["detail"], "The requested path was not found.");
    assert_eq!(rig.get("/v1/pods").await.0, 410);
    assert_eq!(rig.ask("DELETE", "/v2/pods/", None).await.0, 404);
    let answer = rig.send("DELETE", "/v2/pods", None).await.unwrap();
    assert_eq!(answer.status(), 405);
    assert_eq!(answer.headers()["allow"], "GET, POST");
    assert_eq!(rig.ask("PUT", "/v2/account/ssh-keys", Some(json!({"keys": []}))).await.0, 403);
    assert_eq!(rig.sandbox.rejected().len(), 5);
    let keys = rig.get("/v2/account/ssh-keys").await.1;
    assert!(keys["keys"][0].as_str().unwrap().starts_with("ssh-ed25519 "));
    assert_eq!(rig.get("/v2/catalog/datacenters/EU-RO-1").await.1["region"], "EUROPE");
    assert_eq!(rig.get("/v2/catalog/datacenters?regions=MARS").await.0, 422);
    let asia = rig.get("/v2/catalog/datacenters?regions=ASIA&include=GPU_AVAILABILITY").await.1;
    assert_eq!(asia["dataCenters"].as_array().unwrap().len(), 3);
    assert!(asia["dataCenters"][0]["gpuAvailability"].is_array());
    assert_eq!(rig.get("/v2/pods/nosuchpod").await.0, 404);
    assert_eq!(rig.sandbox.rejected().len(), 6);
}

#[tokio::test]
async fn catalogue_queries() {
    let rig = Rig::new().await;
    let good = "/v2/catalog/gpus?include=AVAILABILITY&product=POD";
    for (query, status) in [
        ("/v2/catalog/gpus", 200),
        ("/v2/catalog/gpus?include=AVAILABILITY", 400),
        ("/v2/catalog/gpus?product=POD", 400),
        ("/v2/catalog/gpus?count=2", 400),
        (&format!("{good}&cudaVersions=12.8&minCudaVersion=12.8"), 400),
        (&format!("{good}&count=0"), 422),
        (&format!("{good}&cloud=secure"), 422),
        (&format!("{good}&countryCodes=ro"), 422),
        (&format!("{good}&minCudaVersion=twelve"), 422),
        (&format!("{good}&minCudaVersion=12"), 200),
        (&format!("{good}&cudaVersions=13.0,13.2"), 200),
    ] {
        assert_eq!(rig.get(query).await.0, status, "{query}");
    }
    let list = rig.get(&format!("{good}&cloud=COMMUNITY&minCudaVersion=12.9")).await.1;
    let gpu = |id: &str| list["gpus"].as_array().unwrap().iter().find(|g| g["id"] == id).unwrap().clone();
    let places = |gpu: &Value| -> Vec<(String, String)> {
        let all = gpu["dataCenters"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        all.iter().map(|dc| (text(&dc["id"]), text(&dc["availability"]))).collect()
    };
    let pair = |id: &str, stock: &str| (id.to_owned(), stock.to_owned());
    let cheap = gpu("NVIDIA GeForce RTX 4090");
    assert_eq!(
        places(&cheap),
        [pair("EU-RO-1", "HIGH"), pair("EUR-IS-2", "NONE"), pair("US-IL-1", "LOW")],
        "12.8 hosts are hidden by the floor"
    );
    let nowhere = gpu("NVIDIA GeForce RTX 3080");
    assert_eq!((nowhere["availability"].as_str(), nowhere.get("dataCenters")), (Some("LOW"), None));
    assert_eq!(gpu("NVIDIA GeForce RTX 3080 Ti")["availability"], "NONE");
    assert!(gpu("NVIDIA A30")["price"]["secure"].is_null());
    let one = rig.get("/v2/catalog/gpus/NVIDIA%20%20A30?include=AVAILABILITY&product=POD").await;
    assert_eq!((one.0, one.1["id"].as_str()), (200, Some("NVIDIA  A30")));
    let romania = rig.get(&format!("{good}&countryCodes=RO")).await.1;
    assert!(romania["gpus"].as_array().unwrap().iter().all(|gpu| {
        gpu["dataCenters"].as_array().is_none_or(|all| all.iter().all(|dc| dc["id"] == "EU-RO-1"))
    }));
}

#[tokio::test]
async fn create_bodies() {
    let rig = Rig::new().await;
    let change = |at: &str, value: Value| {
        let mut body = body("ssh-ed25519 AAAA");
        match value {
            Value::String(word) if word == "absent" => {
                let (parent, key) = at.rsplit_once('/').unwrap();
                body.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
            }
            value => {
                let (parent, key) = at.rsplit_once('/').unwrap();
                body.pointer_mut(parent).unwrap()[key] = value;
            }
        }
        body
    };
    let gone = json!("absent");
    for (body, status) in [
        (change("/interruptible", json!(true)), 422),
        (change("/gpu/gpuCount", json!(1)), 422),
        (change("/mounts", json!({"volume": 1})), 422),
        (change("/name", gone.clone()), 422),
        (change("/name", json!("")), 422),
        (change("/image", gone.clone()), 422),
        (change("/image", json!("runpod/does-not-exist:1")), 422),
        (change("/cloud", json!("secure")), 422),
        (change("/disk", json!(0)), 422),
        (change("/disk", json!("50")), 422),
        (change("/ports", json!(["22"])), 422),
        (change("/env/N", json!(5)), 422),
        (change("/gpu/minRamPerGpu", Value::Null), 422),
        (change("/gpu/minCudaVersion", json!("12")), 422),
        (change("/gpu/allowedCudaVersions", json!(["13.0"])), 400),
        (change("/gpu", gone.clone()), 400),
        (change("/cpu", json!({"id": "cpu5c", "vcpuCount": 2})), 400),
        (change("/gpu/count", gone.clone()), 400),
        (change("/gpu/count", json!(7)), 400),
        (change("/gpu/id", json!("NVIDIA GeForce RTX 9999")), 400),
        (change("/gpu/minRamPerGpu", json!(500)), 400),
        (change("/gpu/minVcpuCountPerGpu", json!(64)), 400),
        (change("/dataCenterIds", json!(["EU-CZ-1"])), 400),
        (change("/dataCenterIds", json!(["eu-ro-1"])), 400),
        (change("/disk", json!(5000)), 400),
        (change("/templateId", json!("nope")), 404),
        (change("/env/BIG", json!("x".repeat(110_000))), 413),
    ] {
        let (got, answer) = rig.ask("POST", "/v2/pods", Some(body.clone())).await;
        assert_eq!(got, status, "{body} {answer}");
    }
    assert_eq!(rig.ask("POST", "/v2/pods", Some(json!({"name": "x", "bogus": 1}))).await.0, 422);
    let url = format!("{}/v2/pods", rig.sandbox.runpod_endpoint());
    let plain = rig.client.post(&url).bearer_auth(rig.sandbox.runpod_key()).body("{}").send().await.unwrap();
    assert_eq!(plain.status(), 415);
    assert!(rig.sandbox.alive().is_empty(), "only the foreign pod");
}

#[tokio::test]
async fn rate_windows() {
    let rig = Rig::with(|options| options.rate_limits = true).await;
    for _ in 0..180 {
        assert_eq!(rig.send("GET", "/v2/catalog/datacenters", None).await.unwrap().status(), 200);
    }
    let answer = rig.send("GET", "/v2/catalog/datacenters", None).await.unwrap();
    assert_eq!(answer.status(), 429);
    assert!(answer.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() <= 60);
    assert!(answer.headers()["ratelimit"].to_str().unwrap().starts_with("\"minute\";r=0;t="));
}

#[tokio::test]
async fn over_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let rig = Rig::with(|options| options.tls = Some(std::sync::Arc::new(config))).await;
    let url = format!("{}/v2/pods", rig.sandbox.runpod_endpoint());
    assert!(url.starts_with("https://"));
    assert!(rig.client.get(&url).send().await.is_err(), "an authority that nobody knows");
    let trusted = reqwest::Certificate::from_der(made.cert.der()).unwrap();
    let client =
        reqwest::Client::builder().tls_certs_only([trusted]).user_agent("gpuprov/test").build().unwrap();
    let answer = client.get(&url).bearer_auth(rig.sandbox.runpod_key()).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    assert_eq!(rig.sandbox.requests().len(), 1);
}
