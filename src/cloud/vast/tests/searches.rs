//! What is asked, how often, and what is kept.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cloud::vast::samples::*;
use crate::cloud::{Cloud, ErrorKind, Limit};
use crate::http::canned::{Asked, Canned, Reply, json as answer};
use crate::model::want::{Spot, Want};

/// The bodies of the searches.
fn searches(server: &Canned) -> Vec<Value> {
    let asked = server.asked().into_iter().filter(|asked| asked.line == "POST /api/v0/bundles/");
    asked.map(|asked| serde_json::from_str(&asked.body).unwrap()).collect()
}

async fn body_of(want: &Want) -> Value {
    let server = Canned::start(|asked, _| shop(asked)).await;
    cloud(&server.base).offers(want).await.unwrap();
    searches(&server).remove(0)
}

#[tokio::test]
async fn a_search_says_everything_that_narrows_it() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    cloud(&server.base).offers(&want("RTX5090")).await.unwrap();
    let asked = server.asked();
    let search = asked.iter().find(|asked| asked.line.starts_with("POST")).unwrap();
    assert_eq!(search.header("authorization"), Some("Bearer vast0123456789"));
    assert!(search.header("user-agent").unwrap().starts_with("gpuprov/"));
    assert_eq!(
        searches(&server),
        [json!({
            "external": {"eq": false}, "rentable": {"eq": true}, "rented": {"eq": false}, "num_gpus": {"eq": 1},
            "disk_space": {"gte": 100}, "direct_port_count": {"gte": 1}, "reliability": {"gte": 0.95},
            "cuda_max_good": {"gte": 12.1}, "compute_cap": {"gte": 500}, "inet_down": {"gte": 100},
            "duration": {"gte": 86400}, "type": "on-demand", "allocated_storage": 100,
            "order": [["dph_total", "asc"]], "limit": 64, "verified": {"eq": true}, "gpu_arch": {"eq": "nvidia"},
            "cpu_arch": {"eq": "amd64"}, "gpu_name": {"in": ["RTX 5090"]},
        })]
    );
}

#[tokio::test]
async fn wishes_go_into_the_search() {
    let mut wishes = want("A100-80GB:2");
    wishes.regions = vec!["SE".parse().unwrap(), "US".parse().unwrap()];
    wishes.zones = vec!["machine:41777".to_owned()];
    (wishes.secure, wishes.vcpus, wishes.ram_gb) = (true, Some(16), Some(64));
    (wishes.cuda, wishes.disk_gb) = (Some("12.8".parse().unwrap()), 3);
    wishes.max_price = Some("2.5".parse().unwrap());
    let body = body_of(&wishes).await;
    assert_eq!(body["geolocation"], json!({"in": ["SE", "US"]}));
    assert_eq!(body["machine_id"], json!({"in": [41777]}));
    assert_eq!((&body["datacenter"], &body["verified"]), (&json!({"eq": true}), &json!({"eq": true})));
    assert_eq!(
        (&body["cuda_max_good"], &body["cpu_cores_effective"]),
        (&json!({"gte": 12.8}), &json!({"gte": 16}))
    );
    assert_eq!(body["cpu_ram"], json!({"gte": 57600.0}));
    assert_eq!((&body["disk_space"], &body["allocated_storage"]), (&json!({"gte": 8}), &json!(8)));
    assert_eq!(body["gpu_ram"], json!({"gte": 70400.0, "lte": 93091.0}));
    assert_eq!(body["dph_total"], json!({"lte": 2.500001}));
    // A continent is ours to judge.
    let body = body_of(&Want { regions: vec!["europe".parse().unwrap()], ..want("RTX5090") }).await;
    assert!(body.get("geolocation").is_none());
    let body = body_of(&want_type("rtx 5090:4")).await;
    assert_eq!((&body["gpu_name"], &body["num_gpus"]), (&json!({"in": ["RTX 5090"]}), &json!({"eq": 4})));
    let body = body_of(&want_type("RTX 5090 x2")).await;
    assert_eq!((&body["gpu_name"], &body["num_gpus"]), (&json!({"in": ["RTX 5090"]}), &json!({"eq": 2})));
    assert!(body_of(&want("any")).await.get("gpu_name").is_none());
}

#[tokio::test]
async fn settings_go_into_the_search() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    let loose = cloud_with(&server.base, |_, settings| {
        (settings.verified, settings.min_reliability, settings.datacenter) = (false, 0.5, true);
        settings.image = Some("me/own:cuda12.9".to_owned());
    });
    loose.offers(&want("GH200")).await.unwrap();
    let body = searches(&server).remove(0);
    assert!(body.get("verified").is_none() && body.get("cpu_arch").is_none());
    assert_eq!((&body["reliability"], &body["datacenter"]), (&json!({"gte": 0.5}), &json!({"eq": true})));
    assert_eq!(body["cuda_max_good"], json!({"gte": 12.9}));
}

#[tokio::test]
async fn one_search_for_each_class_and_count() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    let cloud = cloud(&server.base);
    cloud.offers(&want("RTX5090,RTX4090,A100-80GB:2")).await.unwrap();
    assert_eq!(searches(&server).len(), 2);
    cloud.offers(&Want { spot: Spot::Only, ..want("RTX5090") }).await.unwrap();
    let classes: Vec<Value> = searches(&server)[2..].iter().map(|body| body["type"].clone()).collect();
    assert_eq!(classes.len(), 2);
    assert!(classes.contains(&json!("bid")) && classes.contains(&json!("on-demand")));
    // Who the key belongs to is asked once.
    assert_eq!(server.lines().iter().filter(|line| line.contains("users/current")).count(), 1);
}

/// A market of so many rows, 64 at a time, by price.
fn market(rows: u64) -> impl Fn(&Asked, usize) -> Reply {
    move |asked, _| {
        if asked.line.starts_with("GET") {
            return shop(asked);
        }
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let least = body["dph_total"]["gte"].as_f64().unwrap_or_default();
        let row = |at: u64| {
            let price = 0.1 + at as f64 / 1000.0;
            let total = json!({"id": at, "ask_contract_id": at, "dph_base": price, "dph_total": price, "storage_cost": 0.0});
            changed(ask(), total)
        };
        let page = (1..=rows).map(row).filter(|row| row["dph_total"].as_f64().unwrap() >= least).take(64);
        answer(200, json!({"offers": page.collect::<Vec<_>>()}).to_string())
    }
}

#[tokio::test]
async fn full_pages_go_on_by_price() {
    for (rows, pages, offers, is_cut) in
        [(63, 1, 63, false), (65, 2, 65, false), (130, 3, 130, false), (900, 4, 253, true)]
    {
        let server = Canned::start(market(rows)).await;
        let batch = cloud(&server.base).offers(&want("RTX5090")).await.unwrap();
        assert_eq!((searches(&server).len(), batch.offers.len()), (pages, offers), "{rows}");
        assert_eq!(batch.notes.iter().any(|note| note.contains("the list is cut")), is_cut, "{rows}");
    }
    let server = Canned::start(market(200)).await;
    let batch = cloud(&server.base).offers(&want("any")).await.unwrap();
    assert_eq!((searches(&server).len(), batch.offers.len()), (1, 64));
    assert!(batch.notes[0].contains("name GPUs"), "{:?}", batch.notes);
}

#[tokio::test]
async fn a_search_is_kept_for_a_minute_but_never_for_a_recheck() {
    let folder = tempfile::tempdir().unwrap();
    let server = Canned::start(|asked, _| shop(asked)).await;
    let kept = || cloud_with(&server.base, |setup, _| setup.cache = Some(folder.path().to_owned()));
    let first = kept().offers(&want("RTX5090")).await.unwrap().offers;
    let again = kept().offers(&want("RTX5090")).await.unwrap().offers;
    assert_eq!(first, again);
    assert_eq!(searches(&server).len(), 1);
    kept().offers(&Want { disk_gb: 50, ..want("RTX5090") }).await.unwrap();
    assert_eq!(searches(&server).len(), 2, "another question");
    let key = crate::model::offer_key::OfferKey::decode(&first[0].id).unwrap();
    kept().recheck(&key, &want("RTX5090")).await.unwrap();
    assert_eq!(searches(&server).len(), 3);
    let other_key = cloud_with(&server.base, |setup, _| {
        setup.cache = Some(folder.path().to_owned());
        setup.secret_mark = "fedcba9876543210".to_owned();
    });
    other_key.offers(&want("RTX5090")).await.unwrap();
    assert_eq!(searches(&server).len(), 4, "another account");
    // What is gone must not be shown again.
    let stale = crate::model::offer_key::OfferKey { own: Some("1.1".to_owned()), ..key };
    kept().recheck(&stale, &want("RTX5090")).await.unwrap();
    kept().offers(&want("RTX5090")).await.unwrap();
    assert_eq!(searches(&server).len(), 6);
    for file in std::fs::read_dir(folder.path().join("vast")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("vast0123456789"));
    }
}

#[tokio::test]
async fn a_failure_is_never_an_empty_list() {
    for (reply, kind) in [
        (answer(200, "{\"success\":false,\"error\":\"x\",\"msg\":\"no\"}"), ErrorKind::Rejected),
        (answer(200, "{}"), ErrorKind::Unreadable),
        (answer(200, "{\"offers\":{}}"), ErrorKind::Unreadable),
        (answer(200, "[]"), ErrorKind::Unreadable),
        (answer(200, "<html>"), ErrorKind::Unreadable),
        (
            answer(400, "{\"error\":\"invalid_request\",\"msg\":\"0 is not a valid search op\"}"),
            ErrorKind::Rejected,
        ),
        (
            answer(410, "{\"success\":false,\"error\":\"deprecated_endpoint\",\"msg\":\"use v1\"}"),
            ErrorKind::Rejected,
        ),
    ] {
        let server = Canned::start(
            move |asked, _| if asked.line.starts_with("POST") { reply.clone() } else { shop(asked) },
        )
        .await;
        let error = cloud(&server.base).offers(&want("RTX5090")).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert_eq!(searches(&server).len(), 1);
    }
    let server = Canned::start(|asked, _| {
        if asked.line.starts_with("POST") { answer(200, "{\"offers\":[]}") } else { shop(asked) }
    })
    .await;
    assert!(cloud(&server.base).offers(&want("RTX5090")).await.unwrap().offers.is_empty());
}

#[tokio::test]
async fn a_class_that_fails_is_named_beside_the_other() {
    let server = Canned::start(|asked, _| {
        if asked.body.contains("\"bid\"") {
            answer(400, "{\"error\":\"x\",\"msg\":\"no bids\"}")
        } else {
            shop(asked)
        }
    })
    .await;
    let batch = cloud(&server.base).offers(&Want { spot: Spot::Any, ..want("RTX5090") }).await.unwrap();
    assert_eq!(batch.offers.len(), 1);
    assert_eq!(batch.notes, ["the list is not complete, spot offers with 1 GPU are missing: no bids"]);
}

#[tokio::test]
async fn a_spent_quota_is_not_asked_again() {
    let spent = Reply::Answer(
        429,
        "content-type: application/json\r\nx-ratelimit-reset: 1796083200\r\n".to_owned(),
        "{\"success\":false,\"error\":\"search_quota_exceeded\",\"msg\":\"daily search quota exceeded\"}"
            .to_owned(),
    );
    let server = Canned::start(
        move |asked, _| if asked.line.starts_with("POST") { spent.clone() } else { shop(asked) },
    )
    .await;
    let error = cloud(&server.base).offers(&want("RTX5090")).await.unwrap_err();
    assert_eq!((error.kind, error.limit.clone()), (ErrorKind::Quota, Some(Limit::default())));
    assert!(error.message.contains("2026-12-01T00:00:00Z"), "{error}");
    assert_eq!(searches(&server).len(), 1);
}

#[tokio::test]
async fn too_many_requests_are_waited_out() {
    let plain = Reply::Answer(
        429,
        "content-type: text/plain\r\n".to_owned(),
        "API requests too frequent: endpoint threshold=4.5".to_owned(),
    );
    let timed = Reply::Answer(
        429,
        "retry-after: 0\r\n".to_owned(),
        "{\"detail\":\"API requests too frequent endpoint threshold=4.5\"}".to_owned(),
    );
    for reply in [plain, timed] {
        let server = Canned::start(move |asked, before| {
            let early = asked.line.starts_with("POST") && before < 3;
            if early { reply.clone() } else { shop(asked) }
        })
        .await;
        let offers = cloud(&server.base).offers(&want("RTX5090")).await.unwrap().offers;
        assert_eq!(offers.len(), 1);
        assert!((2..=4).contains(&searches(&server).len()));
    }
}

#[tokio::test]
async fn ten_searches_in_a_minute_are_not_slowed() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    let cloud = cloud_with(&server.base, |setup, _| setup.poll = None);
    let started = std::time::Instant::now();
    for count in 1..=10 {
        cloud.offers(&want(&format!("RTX5090:{count}"))).await.unwrap();
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}
