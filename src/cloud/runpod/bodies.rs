//! Requests against the published API document (with the later additions of the clients' own types), and our samples too: a
//! sample that RunPod could not send would prove nothing.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::samples::*;
use crate::cloud::Cloud;
use crate::http::canned::Canned;
use crate::model::secret::Secret;
use crate::model::spec::MachineSpec;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../tests/data/runpod-v2.openapi.json")).unwrap()
});

fn schema(name: &str) -> Validator {
    let root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": format!("#/components/schemas/{name}"),
        "components": DOCUMENT["components"],
    });
    jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&root).unwrap()
}

fn problems(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path)).collect()
}

#[tokio::test]
async fn create_bodies_are_what_the_document_takes() {
    let validator = schema("CreatePodRequest");
    let own = MachineSpec {
        image: Some("me/own".to_owned()),
        env: vec![
            ("A".to_owned(), Secret::new("b".to_owned())),
            ("C".to_owned(), Secret::new(String::new())),
        ],
        ..spec()
    };
    let mut sizes = want("A100-80GB:8");
    (sizes.ram_gb, sizes.vcpus, sizes.disk_gb) = (Some(1), Some(1), 1);
    let mut newest = want("RTX4090:2");
    newest.cuda = Some("13".parse().unwrap());
    let mut amd = want_type("AMD Instinct MI300X OAM:8");
    amd.image = own.image.clone();
    for want in [want("RTX4090"), want("H100:8"), sizes, newest, amd, want_type("NVIDIA  A30")] {
        for spec in [spec(), own.clone()] {
            for offer in offers(&want).await {
                let body = cloud("http://127.0.0.1:1").preview(&offer, &spec, &mark()).body;
                assert_eq!(problems(&validator, &body), [""; 0], "{body}");
                assert!(body["gpu"]["count"].is_u64());
                // The server wants one of both and sees to it outside the schema.
                assert!(body.get("cpu").is_none());
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_body_is_refused() {
    let validator = schema("CreatePodRequest");
    let offer = cheapest(&want("RTX4090")).await;
    let good = cloud("http://127.0.0.1:1").preview(&offer, &spec(), &mark()).body;
    assert!(validator.is_valid(&good));
    type Change = fn(&mut Value);
    let changes: [Change; 9] = [
        |body| body["interruptible"] = json!(true),
        |body| body["gpu"]["minCudaVersion"] = json!("12"),
        |body| body["gpu"]["supportPublicIp"] = json!(true),
        |body| body["gpu"]["count"] = json!(0),
        |body| body["env"]["A"] = json!(null),
        |body| body["cloud"] = json!("community"),
        |body| body["disk"] = json!(0),
        |body| body["name"] = json!(""),
        |body| body["imageName"] = json!("x"),
    ];
    for (at, change) in changes.iter().enumerate() {
        let mut body = good.clone();
        change(&mut body);
        assert!(!validator.is_valid(&body), "change {at} went through");
    }
}

#[test]
fn the_samples_are_what_the_document_promises() {
    for (name, value) in [
        ("Pod", pod("abcd1234")),
        ("Pod", ready_pod("abcd1234")),
        ("ListPodsResponse", list(&[pod("abcd1234")])),
    ] {
        assert_eq!(problems(&schema(name), &value), [""; 0], "{name}");
    }
}

/// Returns the names of a path's parameters, references resolved.
fn parameters(path: &str, method: &str) -> Vec<String> {
    let item = &DOCUMENT["paths"][path];
    let lists = [&item["parameters"], &item[method]["parameters"]];
    let named = lists.iter().filter_map(|list| list.as_array()).flatten();
    let resolve = |entry: &Value| match entry["$ref"].as_str() {
        Some(reference) => DOCUMENT.pointer(reference.trim_start_matches('#')).unwrap()["name"].clone(),
        None => entry["name"].clone(),
    };
    named.map(|entry| resolve(entry).as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_path_and_query_exists() {
    let server = Canned::start(|asked, _| match asked.line.as_str() {
        line if line.contains("/logs?") || line.contains("/v2/pods/") => {
            crate::http::canned::json(200, ready_pod("abcd1234").to_string())
        }
        line if line.starts_with("POST") => crate::http::canned::json(201, pod("abcd1234").to_string()),
        line if line.contains("cursor=") => crate::http::canned::json(200, list(&[]).to_string()),
        line if line.contains("/v2/pods?") => {
            let page = json!({"pods": [], "pagination": {"nextCursor": "c", "hasNextPage": true}});
            crate::http::canned::json(200, page.to_string())
        }
        _ => shop(asked),
    })
    .await;
    let cloud = cloud(&server.base);
    let mut want = want("RTX4090");
    want.regions = vec!["RO".parse().unwrap()];
    let offer = cloud.offers(&want).await.unwrap().offers.remove(0);
    let key = crate::model::offer_key::OfferKey::decode(&offer.id).unwrap();
    cloud.recheck(&key, &want).await.unwrap();
    cloud.check().await.unwrap();
    let made = cloud.create(&offer, &spec(), &mark(), &Notebook::default()).await.unwrap();
    cloud.inspect(&made.handle).await.unwrap();
    cloud.find(&crate::cloud::Which::AnyMarked).await.unwrap();
    cloud.delete(&made.handle).await.unwrap();

    let mut paths: Vec<String> = Vec::new();
    for line in server.lines() {
        let (method, rest) = line.split_once(' ').unwrap();
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path =
            path.replace("abcd1234", "{id}").replace("/gpus/NVIDIA%20GeForce%20RTX%204090", "/gpus/{id}");
        let method = method.to_lowercase();
        assert!(DOCUMENT["paths"][&path][&method].is_object(), "{method} {path}");
        let known = parameters(&path, &method);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split('=').next().unwrap().to_owned();
            assert!(known.contains(&name), "{name} of {method} {path}, known: {known:?}");
        }
        paths.push(format!("{method} {path}"));
    }
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 9, "{paths:?}");
}
