//! Requests against the published API document with its corrections, and our samples too: a sample that Vast could not send
//! would prove nothing.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::samples::*;
use crate::cloud::{Cloud, Which};
use crate::http::canned::{Asked, Canned, Reply, json as answer};
use crate::model::handle::Handle;
use crate::model::offer_key::OfferKey;
use crate::model::secret::Secret;
use crate::model::spec::MachineSpec;
use crate::model::want::{Spot, Want};

/// The document as it is published, in so far as we use it.
static PUBLISHED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../tests/data/vast-openapi.json")).unwrap());

/// Where it is wrong, and why that is known.
static CORRECTIONS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../tests/data/vast-corrections.json")).unwrap()
});

const SEARCH: &str = "/paths/~1api~1v0~1bundles/post/requestBody/content/application~1json/schema";
const CREATE: &str = "/paths/~1api~1v0~1asks~1{id}/put/requestBody/content/application~1json/schema";
const MANAGE: &str = "/paths/~1api~1v0~1instances~1{id}/put/requestBody/content/application~1json/schema";
const ATTACH: &str =
    "/paths/~1api~1v0~1instances~1{id}~1ssh/post/requestBody/content/application~1json/schema";
const ONE: &str = "/paths/~1api~1v0~1instances~1{id}/get/responses/200/content/application~1json/schema";
const LIST: &str = "/paths/~1api~1v1~1instances/get/responses/200/content/application~1json/schema";
const USER: &str = "/paths/~1api~1v0~1users~1current/get/responses/200/content/application~1json/schema";

/// The corrected document.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document = PUBLISHED.clone();
    for correction in CORRECTIONS.iter() {
        let (parent, name) = correction["at"].as_str().unwrap().rsplit_once('/').unwrap();
        let name = name.replace("~1", "/").replace("~0", "~");
        match document.pointer_mut(parent).unwrap_or_else(|| panic!("{parent} is not in the document")) {
            Value::Array(list) => {
                assert_eq!(name, list.len().to_string(), "{parent}");
                list.push(correction["value"].clone());
            }
            object => object[&name] = correction["value"].clone(),
        }
    }
    // The document describes filters in words: an object of operators each.
    let operators = json!({
        "type": "object", "minProperties": 1, "additionalProperties": false,
        "properties": {"eq": {}, "neq": {}, "gt": {}, "gte": {}, "lt": {}, "lte": {}, "in": {"type": "array", "minItems": 1},
            "notin": {"type": "array", "minItems": 1}},
    });
    let filters = document.pointer_mut(&format!("{SEARCH}/properties")).unwrap().as_object_mut().unwrap();
    for filter in filters.values_mut().filter(|filter| filter["type"] == "object") {
        *filter = json!({"allOf": [filter.clone(), operators.clone()]});
    }
    document
});

fn schema(at: &str) -> Validator {
    let mut root = DOCUMENT.pointer(at).unwrap_or_else(|| panic!("{at}")).clone();
    root["components"] = DOCUMENT["components"].clone();
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&root).unwrap()
}

fn problems(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path)).collect()
}

/// Answers the whole life of a machine.
fn world(asked: &Asked) -> Reply {
    match asked.line.as_str() {
        line if line.starts_with("PUT /api/v0/asks/") => {
            answer(200, "{\"success\":true,\"new_contract\":45390642}")
        }
        line if line.contains("/ssh/") || line.starts_with("DELETE") => {
            answer(200, "{\"success\":true,\"msg\":\"x\"}")
        }
        line if line.starts_with("GET /api/v0/instances/") => answer(200, one(machine()).to_string()),
        line if line.contains("after_token") => answer(200, list(&[], None).to_string()),
        line if line.starts_with("GET /api/v1/instances/") => {
            answer(200, list(&[machine()], Some("t")).to_string())
        }
        _ => shop(asked),
    }
}

#[tokio::test]
async fn searches_are_what_the_document_takes() {
    let validator = schema(SEARCH);
    let mut all = want("A100-80GB:2,RTX5090,some new card");
    (all.secure, all.vcpus, all.ram_gb, all.spot) = (true, Some(1), Some(1), Spot::Any);
    (all.vram_gb, all.max_price) = (Some(24), Some("9".parse().unwrap()));
    all.regions = vec!["SE".parse().unwrap()];
    all.zones = vec!["machine:7".to_owned()];
    let server = Canned::start(|asked, _| shop(asked)).await;
    let cloud = cloud(&server.base);
    for want in [want("any"), want("RTX5090:8"), want_type("RTX 5090 x2"), all] {
        cloud.offers(&want).await.unwrap();
    }
    let key = OfferKey::decode(&cheapest(&want("RTX5090")).await.id).unwrap();
    cloud.recheck(&key, &want("any")).await.unwrap();
    let searches: Vec<Asked> =
        server.asked().into_iter().filter(|asked| asked.line.starts_with("POST")).collect();
    assert_eq!(searches.len(), 8);
    for search in searches {
        let body: Value = serde_json::from_str(&search.body).unwrap();
        assert_eq!(problems(&validator, &body), [""; 0], "{body}");
    }
}

#[tokio::test]
async fn create_bodies_are_what_the_document_takes() {
    let validator = schema(CREATE);
    let own = MachineSpec {
        image: Some("me/own:1".to_owned()),
        env: vec![
            ("A".to_owned(), Secret::new("b".to_owned())),
            ("C".to_owned(), Secret::new("two words".to_owned())),
        ],
        ..spec()
    };
    for want in [want("RTX5090"), Want { spot: Spot::Only, ..want("A100-80GB:2") }] {
        for spec in [spec(), own.clone()] {
            let offer = cheapest(&want).await;
            let server = Canned::start(|asked, _| world(asked)).await;
            cloud(&server.base).create(&offer, &spec, &mark(), &Notebook::default()).await.unwrap();
            let body: Value = serde_json::from_str(&server.asked()[0].body).unwrap();
            assert_eq!(problems(&validator, &body), [""; 0], "{body}");
            assert_eq!(body.get("price").is_some(), offer.spot);
        }
    }
}

#[tokio::test]
async fn a_wrong_body_is_refused() {
    let offer = cheapest(&want("RTX5090")).await;
    let good = cloud("http://127.0.0.1:1").preview(&offer, &spec(), &mark()).body;
    let validator = schema(CREATE);
    assert_eq!(problems(&validator, &good), [""; 0]);
    for change in [
        json!({"env": "-e A=b"}),
        json!({"env": {"A": 1}}),
        json!({"env": {"A": null}}),
        json!({"price": 0}),
        json!({"price": null}),
        json!({"disk": 5}),
        json!({"runtype": "ssh_direc ssh_proxy"}),
        json!({"image": null}),
        json!({"label": "x".repeat(257)}),
        json!({"cancel_unavailable": true}),
    ] {
        assert!(!validator.is_valid(&changed(good.clone(), change.clone())), "{change} went through");
    }
    let search = json!({"gpu_name": {"in": ["RTX 5090"]}, "type": "bid", "limit": 64});
    let validator = schema(SEARCH);
    assert!(validator.is_valid(&search));
    for change in [
        json!({"id": {"eq": 1}}),
        json!({"gpu_name": "RTX 5090"}),
        json!({"gpu_name": {"is": "RTX 5090"}}),
        json!({"num_gpus": {}}),
        json!({"type": "interruptible"}),
        json!({"limit": 1000}),
        json!({"gpu": {"eq": "x"}}),
    ] {
        assert!(!validator.is_valid(&changed(search.clone(), change.clone())), "{change} went through");
    }
}

#[test]
fn the_other_bodies_and_the_samples() {
    for (at, value) in [
        (MANAGE, json!({"state": "running"})),
        (ATTACH, json!({"ssh_key": KEY})),
        (ONE, one(machine())),
        (ONE, one(loading())),
        (ONE, one(Value::Null)),
        (LIST, list(&[machine(), loading()], Some("t"))),
        (USER, user()),
    ] {
        assert_eq!(problems(&schema(at), &value), [""; 0], "{at}");
    }
}

#[test]
fn every_correction_says_why_and_changes_something() {
    for correction in CORRECTIONS.iter() {
        let at = correction["at"].as_str().unwrap();
        assert!(correction["why"].as_str().unwrap().len() > 20, "{at}");
        assert_ne!(PUBLISHED.pointer(at), Some(&correction["value"]), "{at}");
        assert!(DOCUMENT.pointer(at).is_some() || at.starts_with(SEARCH), "{at}");
    }
}

#[tokio::test]
async fn every_path_and_query_exists() {
    let server = Canned::start(|asked, _| world(asked)).await;
    let cloud = cloud(&server.base);
    let offer = cloud.offers(&want("RTX5090")).await.unwrap().offers.remove(0);
    cloud.check().await.unwrap();
    let made = cloud.create(&offer, &spec(), &mark(), &Notebook::default()).await.unwrap();
    cloud.inspect(&made.handle).await.unwrap();
    cloud.find(&Which::AnyMarked).await.unwrap();
    cloud.delete(&Handle::new("45390642")).await.unwrap();
    let mut paths: Vec<String> = Vec::new();
    for line in server.lines() {
        let (method, rest) = line.split_once(' ').unwrap();
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        // The document leaves out the slash at the end that the official client sends.
        let path = path.strip_suffix('/').unwrap().replace("21348645", "{id}").replace("45390642", "{id}");
        let method = method.to_lowercase();
        let operation = &DOCUMENT["paths"][&path][&method];
        assert!(operation.is_object(), "{method} {path}");
        let known: Vec<&Value> =
            operation["parameters"].as_array().into_iter().flatten().map(|entry| &entry["name"]).collect();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            assert!(known.contains(&&json!(pair.split('=').next().unwrap())), "{pair} of {method} {path}");
        }
        paths.push(format!("{method} {path}"));
    }
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 7, "{paths:?}");
}
