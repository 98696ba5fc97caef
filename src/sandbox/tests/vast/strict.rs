//! What is refused, and how.

use serde_json::{Value, json};

use super::{PLAIN, Rig, body, with};

#[tokio::test]
async fn keys_and_paths() {
    let rig = Rig::new().await;
    let base = rig.sandbox.vast().endpoint();
    let me = format!("{base}/api/v0/users/current/");
    assert_eq!(rig.client.get(&me).send().await.unwrap().status(), 403);
    let answer = rig.client.get(&me).bearer_auth("nope").send().await.unwrap();
    assert_eq!(answer.status(), 404, "a wrong key is not 401");
    assert_eq!(answer.json::<Value>().await.unwrap()["error"], "auth_error");
    let search = format!("{base}/api/v0/bundles/");
    let answer = rig.client.post(&search).json(&json!({})).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    assert_eq!(
        rig.client.post(&search).bearer_auth("nope").json(&json!({})).send().await.unwrap().status(),
        404
    );
    for path in ["users/current", "users/current/"] {
        let user = rig.ask_vast("GET", path, None).await.1;
        assert_eq!((user["credit"].as_f64(), user["balance"].as_f64()), (Some(25.0), Some(0.0)));
    }
    assert_eq!(rig.sandbox.rejected().len(), 0);
    for (method, path, status) in [
        ("POST", "bundles", 404),
        ("GET", "instances/5", 404),
        ("GET", "nothing/", 404),
        ("GET", "instances/", 410),
        ("POST", "ssh/", 400),
        ("GET", "users/current/?api_key=x", 400),
    ] {
        assert_eq!(rig.ask_vast(method, path, None).await.0, status, "{method} {path}");
    }
    assert_eq!(rig.sandbox.rejected().len(), 6);
    let (status, gone) = rig.ask_vast("GET", "instances/5/", None).await;
    assert_eq!((status, gone), (200, json!({"instances": null})));
    for (method, path) in
        [("DELETE", "instances/5/"), ("PUT", "instances/bid_price/5/"), ("GET", "instances/5/ssh/")]
    {
        let (status, answer) = rig.ask_vast(method, path, Some(json!({"client_id": "me", "price": 1}))).await;
        assert_eq!((status, answer["error"].as_str()), (404, Some("no_such_instance")), "{path}");
    }
    assert_eq!(rig.sandbox.rejected().len(), 6);
}

#[tokio::test]
async fn searches() {
    let rig = Rig::new().await;
    for query in [
        json!({"num_gpus": 1}),
        json!({"num_gpus": {"equals": 1}}),
        json!({"gpu_name": {"in": "RTX 4090"}}),
        json!({"colour": {"eq": "red"}}),
        json!({"geolocation": {"in": ["Germany"]}}),
        json!({"type": "spot"}),
        json!({"order": ["dph_total", "asc"]}),
        json!({"limit": 0}),
        json!({"allocated_storage": "much"}),
        json!([1]),
    ] {
        let (status, answer) = rig.ask_vast("POST", "bundles/", Some(query.clone())).await;
        assert_eq!((status, answer["error"].as_str()), (400, Some("invalid_request")), "{query}");
    }
    assert_eq!(rig.sandbox.rejected().len(), 10);
}

#[tokio::test]
async fn creates() {
    let rig = Rig::new().await;
    let path = format!("asks/{PLAIN}/");
    let long = "x".repeat(300);
    for (change, status, error) in [
        (json!({"env": "-e A=b"}), 400, "invalid_args"),
        (json!({"env": {"A": 1}}), 400, "invalid_args"),
        (json!({"env": {"-p 8000-8010:8000-8010": "1"}}), 400, "invalid_args"),
        (json!({"image": null}), 400, "invalid_args"),
        (json!({"disk": 7}), 400, "invalid_args"),
        (json!({"disk": 100_000}), 400, "invalid_args"),
        (json!({"label": long}), 400, "invalid_args"),
        (json!({"runtype": "ssh direct"}), 400, "invalid_args"),
        (json!({"target_state": "started"}), 400, "invalid_args"),
        (json!({"price": 0.0}), 400, "invalid_price"),
        (json!({"price": "0.2"}), 400, "invalid_price"),
        (json!({"colour": "red"}), 400, "invalid_args"),
        (json!({"vm": true}), 400, "no_ssh_key_for_vm"),
    ] {
        let (code, answer) = rig.ask_vast("PUT", &path, Some(with(change.clone()))).await;
        assert_eq!((code, answer["error"].as_str()), (status, Some(error)), "{change}");
        assert!(answer["new_contract"].is_null());
    }
    assert_eq!(rig.sandbox.rejected().len(), 13);
    assert_eq!(rig.ask_vast("PUT", &path, Some(with(json!({"image": "me/mine"})))).await.0, 500);
    assert_eq!(rig.ask_vast("PUT", "asks/5/", Some(body())).await.0, 400);
    assert!(rig.sandbox.alive().is_empty());
    // The form of the official client.
    let client = json!({"client_id": "me", "image": "ubuntu:24.04", "env": {"A": "b", "-p 8000:8000": "1"}, "price": null,
        "disk": 50.0, "label": "dev", "extra": null, "onstart": "X", "image_login": null, "python_utf8": false,
        "lang_utf8": false, "use_jupyter_lab": false, "jupyter_dir": null, "force": false, "cancel_unavail": true,
        "template_hash_id": null, "user": null, "runtype": "ssh_direc ssh_proxy"});
    let id = rig.rent(PLAIN, client).await;
    assert_eq!(rig.running(id).await["image_runtype"], "ssh_direc ssh_proxy");
    for (method, path, bad) in [
        ("PUT", format!("instances/{id}/"), json!({"state": "frozen"})),
        ("PUT", format!("instances/{id}/"), json!({})),
        ("POST", format!("instances/{id}/ssh/"), json!({"ssh_key": "/root/.ssh/id_ed25519.pub"})),
        ("PUT", format!("instances/bid_price/{id}/"), json!({"client_id": "me", "price": 0.2})),
        ("GET", "v1/instances/?after_token=bm9wZQ==".into(), Value::Null),
        ("GET", "v1/instances/?select_filters={\"dph_total\":{\"lt\":1}}".into(), Value::Null),
        ("GET", "v1/instances/?order_by=[{\"col\":\"num_gpus\"}]".into(), Value::Null),
    ] {
        let body = (!bad.is_null()).then_some(bad);
        assert_eq!(rig.ask_vast(method, &path, body).await.0, 400, "{path}");
    }
    assert_eq!(rig.sandbox.rejected().len(), 20);
}

#[tokio::test]
async fn too_early() {
    let rig = Rig::with(|options| options.rate_limits = true).await;
    let mut shapes = Vec::new();
    for call in 0..4 {
        let answer = rig.vast("GET", "instances/5/", None).await;
        assert_eq!(answer.status().as_u16(), if call == 0 { 200 } else { 429 });
        let header = answer.headers().get("retry-after").is_some();
        shapes.push((header, answer.text().await.unwrap()));
    }
    assert!(shapes[1].1.starts_with("{\"detail\":") && !shapes[1].0);
    assert!(shapes[2].1.contains("rate_limit_exceeded") && shapes[2].0);
    assert!(shapes[3].1.starts_with("API requests too frequent") && shapes[3].1.contains("threshold=2.0"));
    assert_eq!(
        rig.ask_vast("DELETE", "instances/5/", None).await.0,
        404,
        "another call has its own interval"
    );
    assert!(rig.sandbox.rejected().is_empty());
}
