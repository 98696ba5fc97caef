//! What is refused, and how; what is for sale.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Rig;
use super::{body, plain, with};
use crate::sandbox::VerdaQuota;

#[tokio::test]
async fn tokens() {
    let rig = Rig::new().await;
    let verda = rig.sandbox.verda();
    verda.set_token_life(Duration::from_millis(400));
    let (id, secret) = (verda.client_id(), verda.client_secret());
    assert!(id.starts_with("sandbox-") && secret.starts_with("sandbox-"));
    let full = json!({"grant_type": "client_credentials", "client_id": id, "client_secret": secret});
    for (body, status) in [
        (json!({"grant_type": "password", "client_id": id, "client_secret": secret}), 400),
        (json!({"client_id": id, "client_secret": secret}), 400),
        (json!({"grant_type": "client_credentials", "client_id": id, "client_secret": "no"}), 401),
        (
            json!({"grant_type": "client_credentials", "client_id": id, "client_secret": secret, "scope": "x"}),
            400,
        ),
        (json!({"grant_type": "refresh_token", "refresh_token": "no"}), 401),
        (full.clone(), 200),
    ] {
        let answer = rig.send_verda("POST", "oauth2/token", None, Some(body.clone())).await;
        assert_eq!(answer.status(), status, "{body}");
    }
    let pair: Value = rig.send_verda("POST", "oauth2/token", None, Some(full)).await.json().await.unwrap();
    assert_eq!((&pair["token_type"], &pair["expires_in"]), (&json!("Bearer"), &json!(1)));
    let token = pair["access_token"].as_str().unwrap();
    assert_eq!(rig.ask_verda(token, "GET", "locations", None).await.0, 200);
    tokio::time::sleep(Duration::from_millis(420)).await;
    let (status, refusal) = rig.ask_verda(token, "GET", "locations", None).await;
    assert_eq!((status, &refusal["code"]), (401, &json!("unauthorized_request")));
    let refresh = json!({"grant_type": "refresh_token", "refresh_token": pair["refresh_token"]});
    let answer = rig.send_verda("POST", "oauth2/token", None, Some(refresh.clone())).await;
    let fresh: Value = answer.json().await.unwrap();
    assert_eq!(rig.ask_verda(fresh["access_token"].as_str().unwrap(), "GET", "locations", None).await.0, 200);
    assert_eq!(rig.send_verda("POST", "oauth2/token", None, Some(refresh)).await.status(), 401, "used up");
    verda.expire_tokens();
    assert_eq!(rig.ask_verda(fresh["access_token"].as_str().unwrap(), "GET", "balance", None).await.0, 401);
    let (other, secret) = verda.add_account();
    assert_eq!((verda.account(&other).as_deref(), secret.is_empty()), (Some("verda-2"), false));
    let seen = format!("{:?}", rig.sandbox.requests().iter().map(|one| &one.account).collect::<Vec<_>>());
    assert!(!seen.contains("sandbox-"), "{seen}");
}

#[tokio::test]
async fn doors() {
    let rig = Rig::new().await;
    let token = rig.verda_token().await;
    for path in ["instance-types?currency=usd", "volume-types"] {
        assert_eq!(rig.send_verda("GET", path, None, None).await.status(), 200, "{path}");
    }
    for path in
        ["locations", "images", "instance-availability", "instances", "volumes", "ssh-keys", "balance"]
    {
        assert_eq!(rig.send_verda("GET", path, None, None).await.status(), 401, "{path}");
    }
    assert!(rig.sandbox.rejected().is_empty());
    let answer = rig.send_verda("GET", "instances", Some(&token), None).await;
    assert_eq!(answer.headers()["ratelimit-policy"], "\"project\";q=500;w=60, \"endpoint\";q=120;w=60");
    assert!(answer.headers()["ratelimit"].to_str().unwrap().contains("\"endpoint\";r=120;t="));
    let bare = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
    let url = format!("{}/v1/instances", rig.sandbox.verda().endpoint());
    assert_eq!(bare.get(&url).bearer_auth(&token).send().await.unwrap().status(), 200);
    let answer =
        bare.put(&url).bearer_auth(&token).json(&json!({"action": "delete", "id": "x"})).send().await;
    assert_eq!(answer.unwrap().status(), 400, "no User-Agent");
    let (status, refusal) = rig.ask_verda(&token, "GET", "clusters/secret", None).await;
    assert_eq!((status, &refusal["message"]), (403, &json!("Insufficient scope")));
    assert_eq!(rig.ask_verda(&token, "GET", "instances/", None).await.0, 403);
    assert_eq!(rig.ask_verda(&token, "GET", "instances?status=RUNNING", None).await.0, 400);
    let (status, refusal) = rig.ask_verda(&token, "GET", "instances/no-such", None).await;
    assert_eq!((status, &refusal["message"]), (404, &json!("Invalid instance id")));
    assert_eq!(rig.sandbox.rejected().len(), 4);
    let private = json!({"name": "x", "key": "-----BEGIN OPENSSH PRIVATE KEY-----"});
    for (method, path, body, status) in [
        ("POST", "ssh-keys", private, 400),
        ("POST", "ssh-keys", json!({"name": "x", "key": "ssh-ed25519 nonsense"}), 400),
        ("DELETE", "ssh-keys", json!({"keys": ["no"]}), 404),
        ("DELETE", "ssh-keys/no", json!({}), 404),
        ("DELETE", "volumes/no", json!({"is_permanent": true}), 404),
        ("POST", "volumes", json!({"type": "HDD", "location_code": "FIN-01", "size": 10, "name": "x"}), 400),
        ("POST", "volumes", json!({"type": "NVMe", "location_code": "FIN-01", "size": 10, "name": "x"}), 202),
        ("POST", "scripts", json!({"name": "x", "script": "echo"}), 201),
    ] {
        assert_eq!(rig.ask_verda(&token, method, path, Some(body)).await.0, status, "{method} {path}");
    }
    let answer = rig.send_verda("GET", "scripts?pageSize=1", Some(&token), None).await;
    assert_eq!(
        (&answer.headers()["x-page"], &answer.headers()["x-total-count"]),
        (&"1".parse().unwrap(), &"1".parse().unwrap())
    );
    assert_eq!(rig.ask_verda(&token, "GET", "scripts?pageSize=101", None).await.0, 400);
}

#[tokio::test]
async fn for_sale() {
    let rig = Rig::new().await;
    let token = rig.verda_token().await;
    let types = rig.ask_verda(&token, "GET", "instance-types", None).await.1;
    let row = |code: &str| {
        types.as_array().unwrap().iter().find(|row| row["instance_type"] == code).unwrap().clone()
    };
    let eight = row("8A100.176V");
    assert_eq!(
        (&eight["price_per_hour"], &eight["gpu_memory"]["size_in_gigabytes"]),
        (&json!("10.32"), &json!(640))
    );
    assert_eq!(
        (&eight["gpu"]["description"], &eight["cpu"]["model"]),
        (&json!("8x A100 SXM4 80GB"), &json!("AMD Genoa"))
    );
    assert_eq!(
        (&row("CPU.4V.16G")["gpu"]["description"], &row("CPU.4V.16G")["gpu"]["number_of_gpus"]),
        (&json!(""), &json!(0))
    );
    let stock = async |query: &str| {
        let list = rig.ask_verda(&token, "GET", &format!("instance-availability?{query}"), None).await.1;
        let has = |place: &Value, code: &str| {
            place["availabilities"].as_array().unwrap().iter().any(|one| one == code)
        };
        let list = list.as_array().unwrap().clone();
        let places = |code: &str| -> Vec<String> {
            list.iter()
                .filter(|place| has(place, code))
                .map(|place| place["location_code"].as_str().unwrap().to_owned())
                .collect()
        };
        (list.len(), places("1B200.30V"), places("1H200.141S.44V"))
    };
    assert_eq!(stock("is_spot=true").await, (4, vec!["FIN-03".into()], vec!["FIN-02".into()]));
    assert_eq!(stock("isSpot=false").await, (4, vec![], vec!["FIN-02".into(), "SWE-01".into()]));
    assert_eq!(stock("locationCode=FIN-02").await, (1, vec![], vec!["FIN-02".into()]));
    let locations = rig.ask_verda(&token, "GET", "locations", None).await.1;
    assert_eq!((locations.as_array().unwrap().len(), &locations[2]["country_code"]), (3, &json!("FI")));
    for (path, answer) in [
        ("instance-availability/1B200.30V?is_spot=true&location_code=FIN-03", (200, json!(true))),
        ("instance-availability/1B200.30V", (200, json!(false))),
    ] {
        assert_eq!(rig.ask_verda(&token, "GET", path, None).await, answer, "{path}");
    }
    assert_eq!(rig.ask_verda(&token, "GET", "instance-availability/9Z9", None).await.0, 404);
    assert_eq!(
        rig.ask_verda(&token, "GET", "images?instance_type=9Z9", None).await.1["message"],
        "Instance type not found"
    );
    let images = rig.ask_verda(&token, "GET", "images?instance_type=1RTXPRO6000.30V", None).await.1;
    assert_eq!(
        (&images[0]["image_type"], &images[2]["name"]),
        (&json!("26.04.cuda13.2"), &json!("Ubuntu 24.04 + CUDA 13.2 + Docker"))
    );
    let euros = rig.ask_verda(&token, "GET", "instance-types?currency=eur", None).await.1;
    assert_eq!(euros[0]["currency"], "eur");
    assert_eq!(rig.ask_verda(&token, "GET", "instance-types?currency=gbp", None).await.0, 400);
}

#[tokio::test]
async fn bodies() {
    let rig = Rig::new().await;
    let token = rig.verda_token().await;
    let (_, public) = rig.key("id_test", "ed25519").await;
    let key = rig.verda_key(&token, &public).await;
    let tag = |key: &str, value: &str| json!([{"key": key, "value": value}]);
    let many: Vec<Value> = (0..11).map(|index| json!({"key": format!("k{index}")})).collect();
    let volume = json!({"type": "NVMe", "location_code": "FIN-03", "size": 10, "name": "x"});
    let volume = rig.ask_verda(&token, "POST", "volumes", Some(volume)).await.1;
    let image = "Operating system is not valid for this instance type";
    for (changes, status, text) in [
        (json!({"location_code": null}), 400, "location_code is required"),
        (json!({"image": null}), 400, "image is required"),
        (json!({"firewall": []}), 400, "unknown field"),
        (json!({"hostname": "-dev"}), 400, "hyphen"),
        (json!({"hostname": "123"}), 400, "letter"),
        (json!({"hostname": "my_box"}), 400, "letters"),
        (json!({"instance_type": "9Z9"}), 400, "Invalid instance type"),
        (json!({"location_code": "ICE-01"}), 400, "Invalid location"),
        (json!({"ssh_key_ids": ["no"]}), 400, "Invalid ssh key id"),
        (json!({"ssh_key_ids": key, "startup_script_id": "no"}), 400, "startup script"),
        (json!({"image": "ubuntu-24.04"}), 400, image),
        (json!({"is_spot": false}), 400, "contract"),
        (json!({"is_spot": false, "contract": "PAY_AS_YOU_GO"}), 400, "on_spot_discontinue"),
        (json!({"contract": "LONG_TERM"}), 400, "contract"),
        (json!({"pricing": "DYNAMIC_PRICE"}), 400, "pricing"),
        (json!({"os_volume": {"name": "x", "size": 20}}), 400, "50 GB"),
        (json!({"os_volume": {"name": "x", "size": "100"}}), 400, "invalid type"),
        (json!({"os_volume": {"name": "x", "size": 100, "tags": tag("", "")}}), 400, "tag key"),
        (json!({"volumes": [{"name": "x", "size": 10, "type": "HDD"}]}), 400, "HDD"),
        (json!({"existing_volumes": ["no"]}), 400, "Invalid volume id"),
        (json!({"tags": many}), 400, "10"),
        (json!({"tags": tag(&"k".repeat(64), "")}), 400, "63"),
        (json!({"tags": tag("k", &"v".repeat(128))}), 400, "127"),
        (json!({"tags": [{"key": "A"}, {"key": "a"}]}), 400, "twice"),
        (json!({"location_code": "FIN-02"}), 503, "No capacity available"),
        (
            json!({"instance_type": "1B200.30V", "is_spot": false, "contract": null, "os_volume": null}),
            503,
            "No capacity",
        ),
        (
            json!({"instance_type": "1V100.6V", "image": "jupyter", "is_spot": false, "contract": null, "os_volume": null}),
            503,
            "Not enough resources to deploy a 1 GPU instance type 1V100.6V in FIN-03",
        ),
        (json!({"instance_type": "1A6000.10V", "location_code": "FIN-01"}), 400, image),
    ] {
        let (got, answer) =
            rig.ask_verda(&token, "POST", "instances", Some(with(&key, changes.clone()))).await;
        assert_eq!(got, status, "{changes} {answer}");
        assert!(answer["message"].as_str().unwrap().contains(text), "{changes} {answer}");
    }
    assert!(rig.sandbox.alive().is_empty());
    // The account's own limits.
    let verda = rig.sandbox.verda();
    verda.set_balance(verda.client_id(), 0.0);
    let (status, answer) = rig.ask_verda(&token, "POST", "instances", Some(body(&key))).await;
    assert_eq!((status, &answer["code"]), (402, &json!("insufficient_funds")));
    verda.set_balance("verda-1", 5.0);
    for (quota, text) in [
        (VerdaQuota { spot_gpus: 0, ..VerdaQuota::default() }, "Spot GPU limit exceeded"),
        (VerdaQuota { storage: 150, ..VerdaQuota::default() }, "Storage limit exceeded"),
        (VerdaQuota { volumes: 3, ..VerdaQuota::default() }, "Volume limit exceeded"),
    ] {
        verda.set_quota("verda-1", quota);
        let (status, answer) = rig.ask_verda(&token, "POST", "instances", Some(body(&key))).await;
        assert_eq!((status, &answer["message"]), (400, &json!(text)));
    }
    verda.set_quota("verda-1", VerdaQuota::default());
    // All that the official Python client sends, nulls and all.
    let sent = json!({"instance_type": "CPU.4V.16G", "image": "24.04.base", "ssh_key_ids": [key], "startup_script_id": null,
        "hostname": "cpu", "description": "x", "location_code": "FIN-03", "os_volume": {"name": "o", "size": 50, "on_spot_discontinue": null},
        "volumes": [], "existing_volumes": [volume], "is_spot": false, "coupon": null});
    let id = rig.deploy(&token, sent).await;
    assert_eq!(rig.sandbox.alive()[0].count, 0);
    let one = rig.becomes(&token, &id, "running").await;
    assert_eq!(one["volume_ids"].as_array().unwrap().len(), 2);
    assert_eq!(
        rig.ask_verda(&token, "DELETE", &format!("volumes/{}", volume.as_str().unwrap()), None).await.0,
        403
    );
    // A detached OS volume boots, and then there is no other.
    let bare = json!({"action": "delete", "id": id, "volume_ids": []});
    assert_eq!(rig.ask_verda(&token, "PUT", "instances", Some(bare)).await.0, 202);
    let disk = &one["os_volume_id"];
    let again = with(
        &key,
        json!({"instance_type": "CPU.4V.16G", "image": disk, "is_spot": false, "contract": null, "volumes": null}),
    );
    let mut refused = again.clone();
    refused["os_volume"] = json!({"name": "x", "size": 50});
    assert_eq!(rig.ask_verda(&token, "POST", "instances", Some(refused)).await.0, 400);
    let mut good = again;
    good["os_volume"] = json!(null);
    let id = rig.deploy(&token, good).await;
    assert_eq!(&rig.becomes(&token, &id, "running").await["os_volume_id"], disk);
    assert_eq!(rig.ask_verda(&token, "POST", "instances", Some(plain("no"))).await.0, 400);
}

#[tokio::test]
async fn rate_windows() {
    let rig = Rig::with(|options| options.rate_limits = true).await;
    let token = rig.verda_token().await;
    for _ in 0..60 {
        assert_eq!(rig.send_verda("GET", "locations", Some(&token), None).await.status(), 200);
    }
    let answer = rig.send_verda("GET", "locations", Some(&token), None).await;
    assert_eq!(answer.status(), 429);
    assert!(answer.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() <= 60);
    assert_eq!(answer.json::<Value>().await.unwrap()["code"], "rate_limit_exceeded");
    assert_eq!(rig.send_verda("GET", "images", Some(&token), None).await.status(), 200, "another window");
}
