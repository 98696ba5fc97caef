//! What is for sale, and what filters do.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{FIVE, Rig, body};
use crate::sandbox::{Fault, FaultKind, VastFault};

fn ids(rows: &[Value]) -> Vec<u64> {
    rows.iter().map(|row| row["id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn pages_by_price() {
    let rig = Rig::new().await;
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    let mut from = 0.0;
    for page in 0..4 {
        let rows = rig
            .search(json!({"gpu_name": {"eq": "RTX 4090"}, "num_gpus": {"eq": 1}, "limit": 3000,
                           "allocated_storage": 50, "dph_total": {"gte": from}, "order": [["dph_total", "asc"]]}))
            .await;
        assert!(rows.len() <= 64);
        let prices: Vec<f64> = rows.iter().map(|row| row["dph_total"].as_f64().unwrap()).collect();
        assert!(prices.is_sorted() && prices[0] >= from);
        let fresh = ids(&rows).into_iter().filter(|id| seen.insert(*id)).count();
        from = *prices.last().unwrap();
        if rows.len() < 64 {
            assert!(page == 1 && fresh > 0 && fresh < rows.len(), "equal prices across the edge");
            break;
        }
    }
    assert_eq!(seen.len(), 68);
}

#[tokio::test]
async fn filters_and_traps() {
    let rig = Rig::new().await;
    let only = |field: &str, filter: Value| {
        let mut query = json!({"limit": 64, "order": [["dph_total", "asc"]]});
        query[field] = filter;
        rig.search(query)
    };
    assert!(only("gpu_name", json!({"eq": "RTX_4090"})).await.is_empty(), "blanks, not underscores");
    let rams: BTreeSet<_> = only("gpu_name", json!({"eq": "A100 SXM4"}))
        .await
        .iter()
        .map(|row| row["gpu_ram"].as_u64())
        .collect();
    assert_eq!(rams.len(), 2);
    assert_eq!(only("cpu_arch", json!({"neq": "amd64"})).await[0]["gpu_name"], "GH200 SXM");
    assert_eq!(only("gpu_arch", json!({"eq": "amd"})).await.len(), 1);
    let broken = only("machine_id", json!({"gte": 50001, "lte": 50011})).await;
    assert_eq!(broken.len(), 11);
    assert!(broken.last().unwrap()["dph_total"].is_null(), "null is last");
    assert!(broken.iter().any(|row| row["gpu_name"].is_null()));
    let named = only("gpu_name", json!({"eq": "RTX 3080"})).await;
    assert_eq!(named.len(), 10);
    for (field, filter, left) in [
        ("verified", json!({"eq": true}), 7),
        ("external", json!({"eq": false}), 9),
        ("reliability2", json!({"gte": 0.95}), 9),
        ("duration", json!({"gte": 86400}), 9),
        ("direct_port_count", json!({"gte": 1}), 9),
        ("datacenter", json!({"eq": true}), 1),
        ("driver_version", json!({"gte": 580_000_000}), 10),
        ("cuda_max_good", json!({"gte": "12.8"}), 10),
    ] {
        let mut query = json!({"gpu_name": {"eq": "RTX 3080"}});
        query[field] = filter;
        assert_eq!(rig.search(query).await.len(), left, "{field}");
    }
    let small =
        json!({"gpu_name": {"eq": "RTX A5000"}, "num_gpus": {"eq": 1}, "order": [["dph_total", "asc"]]});
    let with = |gb: u32| {
        let mut query = small.clone();
        query["allocated_storage"] = json!(gb);
        rig.search(query)
    };
    let (ten, much) = (with(10).await, with(400).await);
    assert_eq!((ten.len(), much.len()), (3, 2), "the disk that is asked for must be there");
    assert_eq!((ids(&ten)[1], ids(&much)[0]), (ids(&much)[1], ids(&ten)[2]), "and turns the order round");
    let germany = only("geolocation", json!({"in": ["DE"]})).await;
    assert!(germany.iter().all(|row| row["geolocation"] == "Germany, DE") && !germany.is_empty());
    let types = rig.ask_vast("GET", "gpu_types/?status=active", None).await.1;
    assert!(types["gpu_types"].as_array().unwrap().iter().any(|one| one["gpu_ram_mb"].is_null()));
    assert_eq!(types["count"].as_u64().unwrap() as usize, types["gpu_types"].as_array().unwrap().len());
}

#[tokio::test]
async fn asks_share_cards() {
    let rig = Rig::new().await;
    let left = || async {
        ids(&rig
            .search(json!({"machine_id": {"eq": 37228}, "rentable": {"eq": true}, "order": [["id", "asc"]]}))
            .await)
    };
    assert_eq!(left().await, [FIVE, FIVE + 1, FIVE + 2]);
    rig.rent(FIVE, body()).await;
    assert_eq!(left().await, [FIVE + 1], "three of four cards are left, and the same ask is not sold twice");
    let (status, answer) = rig.ask_vast("PUT", &format!("asks/{FIVE}/"), Some(body())).await;
    assert_eq!(
        (status, answer["error"].as_str(), answer["ask_id"].as_u64()),
        (400, Some("invalid_args"), Some(FIVE))
    );
    assert!(answer["msg"].as_str().unwrap().contains("no_such_ask"));
    rig.rent(FIVE + 1, body()).await;
    assert!(left().await.is_empty());
    assert_eq!(rig.search(json!({"machine_id": {"eq": 37228}})).await.len(), 3, "they are shown as rented");
}

#[tokio::test]
async fn faults_of_a_search() {
    let rig = Rig::new().await;
    let vast = rig.sandbox.vast();
    let query = json!({"ask_contract_id": {"eq": FIVE}, "allocated_storage": 100});
    vast.add_fault(Fault::on("search", FaultKind::PriceFactor { factor: 2.0 }));
    assert_eq!(rig.search(query.clone()).await[0]["dph_base"].as_f64(), Some(0.72));
    vast.add_fault(Fault::on("search", FaultKind::StaleOffer));
    assert!(rig.search(query.clone()).await.is_empty());
    vast.add_fault(Fault::on("search", VastFault::StorageIgnored.into()));
    assert!(rig.search(query.clone()).await[0]["dph_total"].as_f64() < Some(0.37));
    vast.add_fault(Fault::on("search", VastFault::LeakyFilter { field: "num_gpus".into() }.into()));
    let wrong = rig.search(json!({"machine_id": {"eq": 37228}, "num_gpus": {"eq": 3}})).await;
    assert_eq!(wrong.len(), 3);
    vast.add_fault(Fault::on("search", VastFault::QuotaExceeded { resets_in: 60 }.into()));
    let answer = rig.vast("POST", "bundles/", Some(query.clone())).await;
    assert_eq!(answer.status(), 429);
    let reset: i64 = answer.headers()["x-ratelimit-reset"].to_str().unwrap().parse().unwrap();
    assert!(reset > jiff::Timestamp::now().as_second());
    assert_eq!(answer.json::<Value>().await.unwrap()["error"], "search_quota_exceeded");
    // The same word at another cloud is another call.
    vast.add_fault(Fault::on("logs", FaultKind::status(500)));
    assert_eq!(rig.get("/v2/pods/none/logs").await.0, 404);
    assert_eq!(rig.sandbox.faults().len(), 1);
    let (status, answer) =
        rig.ask_vast("GET", "bundles/?q={\"num_gpus\":{\"eq\":1},\"limit\":2}", None).await;
    assert_eq!((status, answer["offers"].as_array().unwrap().len()), (200, 2));
}
