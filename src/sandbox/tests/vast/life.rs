//! From a search to gone.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{FIVE, PLAIN, Rig, body, direct, login, proxy, with};
use crate::sandbox::{ClockMode, InstanceSeed, VastGuesses};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_life() {
    let rig = Rig::new().await;
    let (key, public) = rig.key("id_vast", "ed25519").await;
    let query = json!({
        "verified": {"eq": true}, "external": {"eq": false}, "rentable": {"eq": true}, "rented": {"eq": false},
        "gpu_name": {"in": ["RTX 5090"]}, "num_gpus": {"eq": "1"}, "gpu_ram": {"gte": 30000.0},
        "direct_port_count": {"gte": 1}, "reliability": {"gte": 0.95}, "cuda_max_good": {"gte": 12.8},
        "compute_cap": {"gte": 700}, "duration": {"gte": 86400}, "geolocation": {"in": ["US", "CA"]},
        "type": "on-demand", "allocated_storage": 100, "order": [["dph_total", "asc"]], "limit": 64
    });
    let offers = rig.search(query).await;
    let total: Vec<_> = offers.iter().map(|row| row["dph_total"].as_f64().unwrap()).collect();
    assert_eq!((offers[0]["id"].as_u64(), total.len()), (Some(FIVE), 2));
    assert!((total[0] - 0.3808333333).abs() < 1e-9, "{total:?}");
    let one = rig.search(json!({"ask_contract_id": {"eq": FIVE}, "limit": 1})).await;
    assert_eq!(one[0]["machine_id"], 37228);
    assert!(rig.search(json!({"id": {"eq": FIVE}})).await.is_empty());

    let id = rig.rent(FIVE, body()).await;
    let path = format!("instances/{id}/ssh/");
    let early = rig.ask_vast("POST", &path, Some(json!({"ssh_key": public}))).await;
    assert_eq!((early.0, &early.1["error"]), (404, &json!("no_such_instance")));
    let first = rig.instance(id).await;
    assert_eq!(
        (first["actual_status"].is_null(), first["intended_status"].as_str()),
        (true, Some("running"))
    );
    rig.attach(id, &public).await;
    let one = rig.running(id).await;
    assert_eq!(one["public_ipaddr"], "127.0.0.1\n");
    assert_eq!(one["extra_env"], json!([["GPUPROV_MARK", "v1:a"], ["-p 8000:8000", "1"]]));
    assert_eq!(one["image_uuid"], "vastai/base-image:cuda-13.0.3-auto");
    assert!(one["ports"]["8000/tcp"].is_array() && one["is_bid"] == false);
    for port in [direct(&one), proxy(&one)] {
        let (code, out, err) =
            login(&key, port, "nvidia-smi -L; echo /$GPUPROV_MARK/; test -f onstart.sh && pwd").await;
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("RTX 5090") && out.contains("\n//\n"), "{out}");
        assert!(out.trim().ends_with(&format!("vast-{id}")), "{out}");
    }
    let (_, list) =
        rig.ask_vast("GET", &format!("v1/instances/?select_filters={{\"id\":{{\"eq\":{id}}}}}"), None).await;
    assert_eq!((list["instances_found"].as_u64(), &list["instances"][0]["ports"]), (Some(1), &one["ports"]));
    let ledger = rig.sandbox.alive();
    assert_eq!((ledger.len(), ledger[0].cloud, ledger[0].account.as_str()), (1, "vast", "vast-1"));
    assert_eq!(ledger[0].env["GPUPROV_MARK"], "v1:a");
    assert!((ledger[0].price_per_hour - 0.3808333333).abs() < 1e-9);

    let (status, answer) = rig.ask_vast("DELETE", &format!("instances/{id}/"), Some(json!({}))).await;
    assert_eq!((status, &answer["success"]), (200, &json!(true)));
    assert!(rig.sandbox.alive().is_empty());
    assert_eq!(rig.ask_vast("DELETE", &format!("instances/{id}/"), None).await.0, 404);
    let until = Instant::now() + Duration::from_secs(5);
    while !rig.instance(id).await.is_null() {
        assert!(Instant::now() < until, "never gone");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert!(rig.sandbox.rejected().is_empty(), "{:?}", rig.sandbox.rejected());
    assert!(
        rig.sandbox
            .ledger()
            .iter()
            .any(|entry| entry.alive && entry.id == rig.sandbox.vast().foreign_instance())
    );
}

#[tokio::test]
async fn by_steps() {
    let rig = Rig::with(|options| {
        options.clock = ClockMode::Step;
        options.boot = (Duration::from_secs(8), Duration::from_secs(8));
        options.listing_lag = Duration::from_secs(3);
        options.slow_delete = Duration::from_secs(1);
    })
    .await;
    let id = rig.rent(PLAIN, body()).await;
    let listed = |list: serde_json::Value| list["total_instances"].as_u64();
    assert_eq!(listed(rig.ask_vast("GET", "v1/instances/", None).await.1), Some(1), "the list lags");
    rig.sandbox.step(Duration::from_secs(3));
    assert_eq!(listed(rig.ask_vast("GET", "v1/instances/", None).await.1), Some(2));
    let one = rig.instance(id).await;
    assert_eq!((one["actual_status"].as_str(), &one["ports"]), (Some("loading"), &json!({})));
    rig.sandbox.step(Duration::from_secs(3));
    let one = rig.instance(id).await;
    assert_eq!(one["status_msg"], "success, running vastai/base-image_cuda-13.0.3-auto/ssh\n");
    for port in [direct(&one), proxy(&one)] {
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "the address comes before sshd");
    }
    rig.sandbox.step(Duration::from_secs(2));
    for port in [direct(&one), proxy(&one)] {
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    }
    let path = format!("instances/{id}/");
    assert_eq!(rig.ask_vast("PUT", &path, Some(json!({"state": "stopped", "label": "x"}))).await.0, 200);
    let one = rig.instance(id).await;
    assert_eq!(
        (one["cur_state"].as_str(), one["actual_status"].as_str(), one["label"].as_str()),
        (Some("stopped"), Some("exited"), Some("x"))
    );
    assert_eq!(rig.sandbox.alive().len(), 1, "its disk costs money");
    assert_eq!(rig.ask_vast("PUT", &path, Some(json!({"state": "running"}))).await.0, 200);
    rig.sandbox.step(Duration::from_secs(8));
    assert!(std::net::TcpStream::connect(("127.0.0.1", direct(&rig.instance(id).await))).is_ok());
    assert_eq!(rig.ask_vast("DELETE", &path, None).await.0, 200);
    assert_eq!(rig.instance(id).await["cur_state"], "unloaded");
    rig.sandbox.step(Duration::from_secs(1));
    assert!(rig.instance(id).await.is_null());
}

#[tokio::test]
async fn pages_and_accounts() {
    let rig = Rig::new().await;
    let vast = rig.sandbox.vast();
    for index in 0..30 {
        let seed = InstanceSeed { age: Duration::from_secs(index), ..InstanceSeed::marked("x", "v1:other") };
        vast.add_instance(vast.key(), &seed).unwrap();
    }
    let order = "order_by=[{\"col\":\"id\",\"dir\":\"asc\"}]";
    let (_, page) = rig.ask_vast("GET", &format!("v1/instances/?limit=100&{order}"), None).await;
    assert_eq!((page["instances_found"].as_u64(), page["total_instances"].as_u64()), (Some(25), Some(31)));
    assert_eq!(page["label_counts"], json!({"jupyter-team": 1, "x": 30}));
    let token = page["next_token"].as_str().unwrap();
    let (_, rest) = rig.ask_vast("GET", &format!("v1/instances/?{order}&after_token={token}"), None).await;
    assert_eq!((rest["instances_found"].as_u64(), rest["next_token"].is_null()), (Some(6), true));
    assert!(rest["instances"][0]["id"].as_u64() > page["instances"][24]["id"].as_u64());
    let (_, some) = rig
        .ask_vast(
            "GET",
            "v1/instances/?select_filters={\"label\":{\"in\":[\"x\"]}}&select_cols=[\"id\"]",
            None,
        )
        .await;
    assert_eq!(some["total_instances"], 30);
    assert_eq!(some["instances"][0].as_object().unwrap().len(), 1);
    let url = format!("{}/api/v1/instances/", vast.endpoint());
    let other = vast.add_account();
    let fresh = vast.rotate_key(&other).unwrap();
    let get = |key: String| rig.client.get(&url).bearer_auth(key).send();
    assert_eq!(get(other).await.unwrap().status(), 404);
    let mine: serde_json::Value = get(fresh.clone()).await.unwrap().json().await.unwrap();
    assert_eq!(mine["total_instances"], 0);
    assert_eq!(vast.account(&fresh).as_deref(), Some("vast-2"));
    vast.unplug();
    assert!(get(fresh.clone()).await.is_err());
    tokio::time::sleep(Duration::from_millis(20)).await;
    let address = vast.endpoint().replace("http://", "");
    assert!(std::net::TcpListener::bind(&address).is_err(), "nobody else is given the port");
    vast.plug().await.unwrap();
    assert_eq!(get(fresh).await.unwrap().status(), 200);
    assert!(vast.remove_instance(vast.foreign_instance()) && !vast.remove_instance("1"));
}

#[tokio::test]
async fn bids() {
    let rig = Rig::new().await;
    let vast = rig.sandbox.vast();
    let rows =
        rig.search(json!({"ask_contract_id": {"eq": FIVE}, "type": "bid", "allocated_storage": 100})).await;
    assert_eq!((rows[0]["is_bid"].as_bool(), rows[0]["dph_base"].as_f64()), (Some(true), Some(0.16)));
    let id = rig.rent(FIVE, with(json!({"price": 0.184}))).await;
    let one = rig.running(id).await;
    assert_eq!((one["is_bid"].as_bool(), one["dph_base"].as_f64()), (Some(true), Some(0.184)));
    assert!(vast.outbid(&id.to_string()));
    let one = rig.instance(id).await;
    let words = ["actual_status", "cur_state", "next_state", "intended_status"]
        .map(|name| one[name].as_str().unwrap());
    assert_eq!(words, ["exited", "stopped", "stopped", "stopped"]);
    assert!(one["min_bid"].as_f64() > one["dph_base"].as_f64());
    let path = format!("instances/{id}/");
    let (status, answer) = rig.ask_vast("PUT", &path, Some(json!({"state": "running"}))).await;
    assert_eq!((status, answer["error"].as_str()), (200, Some("resources_unavailable")));
    assert_eq!(rig.sandbox.alive().len(), 1);
    let bid = format!("instances/bid_price/{id}/");
    let raise = |price: f64| Some(json!({"client_id": "me", "price": price}));
    assert_eq!(rig.ask_vast("PUT", &bid, raise(33.0)).await.0, 400);
    assert_eq!(rig.ask_vast("PUT", &bid, raise(0.5)).await.0, 200);
    assert_eq!(rig.running(id).await["dph_base"].as_f64(), Some(0.5));
    assert!(vast.outbid(&id.to_string()) && vast.resume(&id.to_string()));
    rig.running(id).await;
    // An on-demand renter of all four cards pushes the bid aside.
    let four = rig.rent(FIVE + 2, body()).await;
    assert_eq!(rig.instance(id).await["cur_state"], "stopped");
    assert!(rig.search(json!({"machine_id": {"eq": 37228}, "rentable": {"eq": true}})).await.is_empty());
    assert_eq!(rig.ask_vast("DELETE", "instances/", Some(json!({"instance_ids": [id, four]}))).await.0, 200);
    assert_eq!(rig.search(json!({"machine_id": {"eq": 37228}, "rentable": {"eq": true}})).await.len(), 3);
    assert!(rig.sandbox.alive().is_empty());
}

#[tokio::test]
async fn the_other_way_round() {
    let rig = Rig::with(|options| options.vast_guesses = VastGuesses::flipped()).await;
    let id = rig.rent(PLAIN, body()).await;
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti me";
    rig.attach(id, key).await;
    let again = rig.ask_vast("POST", &format!("instances/{id}/ssh/"), Some(json!({"ssh_key": key}))).await;
    assert!(again.0 == 400 && again.1["msg"].as_str().unwrap().contains("already"), "{again:?}");
    let until = Instant::now() + Duration::from_secs(10);
    while rig.instance(id).await["actual_status"] != "running" {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert!(rig.instance(id).await.get("ports").is_none());
    assert_eq!(rig.ask_vast("GET", "instances/", None).await.0, 200);
    let path = format!("instances/{id}/");
    assert_eq!(rig.ask_vast("DELETE", &path, None).await.0, 200);
    assert_eq!(rig.ask_vast("GET", &path, None).await.0, 404);
    rig.sandbox.vast().set_credit("vast-1", 0.0);
    assert_eq!(rig.ask_vast("PUT", &format!("asks/{PLAIN}/"), Some(body())).await.0, 402);
}

#[tokio::test]
async fn keys_and_logs() {
    let rig = Rig::new().await;
    let vast = rig.sandbox.vast();
    let (key, public) = rig.key("id_account", "ed25519").await;
    vast.set_ssh_keys(vast.key(), vec![public.clone()]);
    assert_eq!(rig.ask_vast("GET", "ssh/", None).await.1[0]["key"], json!(public));
    let id = rig.rent(PLAIN, body()).await;
    let one = rig.running(id).await;
    assert_eq!(login(&key, direct(&one), "true").await.0, 0, "the account's keys are put in at the create");
    let (_, mine) = rig.key("id_mine", "ed25519").await;
    rig.attach(id, &mine).await;
    let keys = rig.ask_vast("GET", &format!("instances/{id}/ssh/"), None).await.1;
    let keys: serde_json::Value = serde_json::from_str(keys["ssh_keys"].as_str().unwrap()).unwrap();
    assert_eq!(keys[0]["public_key"], json!(mine));
    let path = format!("instances/{id}/ssh/{}/", keys[0]["id"]);
    assert_eq!(rig.ask_vast("DELETE", &path, None).await.0, 200);
    assert_eq!(rig.ask_vast("DELETE", &path, None).await.0, 404);
    vast.set_ssh_keys("vast-1", Vec::new());
    assert_eq!(rig.ask_vast("GET", "ssh/", None).await.0, 404, "none is 404");

    let logs = format!("instances/request_logs/{id}/");
    let (_, answer) = rig.ask_vast("PUT", &logs, Some(json!({"tail": "5"}))).await;
    let url = answer["result_url"].as_str().unwrap().to_owned();
    assert_eq!(rig.client.get(&url).send().await.unwrap().status(), 404, "not at once");
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let answer = rig.client.get(&url).send().await.unwrap();
        if answer.status() == 200 {
            assert!(answer.text().await.unwrap().contains("Server listening"));
            break;
        }
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(rig.client.get(&url).bearer_auth(vast.key()).send().await.unwrap().status(), 400);
    assert_eq!(rig.ask_vast("PUT", &logs, Some(json!({"tail": 5}))).await.0, 400);
    assert_eq!(rig.sandbox.rejected().len(), 2);
}
