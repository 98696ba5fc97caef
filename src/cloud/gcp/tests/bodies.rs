//! Requests against Google's discovery document, and our samples too: a sample that Google could not send would prove nothing.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::cloud::gcp::samples::*;
use crate::cloud::{Cloud, Deletion, Which};
use crate::http::canned::Asked;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../tests/data/gcp-compute-discovery.json")).unwrap()
});

/// Turns a schema of the discovery format into a JSON Schema: nothing unknown, 64-bit integers as strings, words of the list.
fn schema(discovery: &Value) -> Value {
    if let Some(name) = discovery["$ref"].as_str() {
        return json!({"$ref": format!("#/$defs/{name}")});
    }
    let mut schema = Map::new();
    match discovery["type"].as_str() {
        Some("object") => {
            schema.insert("type".to_owned(), json!("object"));
            let properties = discovery["properties"].as_object().cloned().unwrap_or_default();
            let properties: Map<String, Value> =
                properties.iter().map(|(name, property)| (name.clone(), self::schema(property))).collect();
            schema.insert("properties".to_owned(), properties.into());
            let more = &discovery["additionalProperties"];
            let more = if more.is_null() { json!(false) } else { self::schema(more) };
            schema.insert("additionalProperties".to_owned(), more);
        }
        Some("array") => {
            schema.insert("type".to_owned(), json!("array"));
            schema.insert("items".to_owned(), self::schema(&discovery["items"]));
        }
        Some("any") | None => {}
        Some(word) => {
            schema.insert("type".to_owned(), json!(word));
            if matches!(discovery["format"].as_str(), Some("int64" | "uint64")) {
                schema.insert("pattern".to_owned(), json!("^-?[0-9]+$"));
            }
            for copied in ["enum", "pattern"] {
                if let Some(value) = discovery.get(copied) {
                    schema.insert(copied.to_owned(), value.clone());
                }
            }
        }
    }
    schema.into()
}

fn validator(discovery: &Value) -> Validator {
    let schemas = DOCUMENT["schemas"].as_object().unwrap();
    let defs: Map<String, Value> = schemas.iter().map(|(name, of)| (name.clone(), schema(of))).collect();
    let root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "allOf": [schema(discovery)], "$defs": defs,
    });
    jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&root).unwrap()
}

fn named(name: &str) -> Validator {
    validator(&json!({"$ref": name}))
}

fn problems(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path)).collect()
}

/// Finds the method that a request line means.
fn method(line: &str) -> (&'static str, &'static Value, String) {
    let (verb, rest) = line.split_once(' ').unwrap();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path: Vec<&str> = path.strip_prefix("/compute/v1/").unwrap().split('/').collect();
    let fits = |known: &str| {
        let known: Vec<&str> = known.split('/').collect();
        let same =
            |(known, part): (&&str, &&str)| known == part || (known.starts_with('{') && !part.is_empty());
        known.len() == path.len() && known.iter().zip(&path).all(same)
    };
    let methods = DOCUMENT["methods"].as_object().unwrap();
    let found = methods
        .iter()
        .filter(|(_, method)| method["httpMethod"] == verb && fits(method["path"].as_str().unwrap()))
        // A fixed path wins over one with a parameter.
        .min_by_key(|(_, method)| method["path"].as_str().unwrap().matches('{').count());
    let (name, method) = found.unwrap_or_else(|| panic!("no such call: {line}"));
    (name.as_str(), method, query.to_owned())
}

/// Checks one request as a whole: path, query, headers, body.
fn check(asked: &Asked) -> String {
    let (name, method, query) = method(&asked.line);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let parameter = pair.split('=').next().unwrap();
        let known = &method["parameters"][parameter];
        // Of every method: which fields to answer with.
        assert!(known["location"] == "query" || parameter == "fields", "{parameter} of {}", asked.line);
    }
    assert!(asked.header("user-agent").is_some_and(|agent| agent.starts_with("gpuprov/")), "{}", asked.line);
    match method.get("request") {
        None => {
            assert_eq!(asked.body, "", "{}", asked.line);
            let length = (method["httpMethod"] == "POST").then_some("0");
            assert!(length.is_none() || asked.header("content-length") == length, "{}", asked.line);
        }
        Some(request) => {
            assert_eq!(asked.header("content-type"), Some("application/json"));
            let body: Value = serde_json::from_str(&asked.body).unwrap();
            assert_eq!(problems(&validator(request), &body), [""; 0], "{} {body}", asked.line);
        }
    }
    assert!(!asked.line.contains("eyJ"), "a token in an address");
    name.to_owned()
}

#[tokio::test]
async fn every_request_is_in_the_document() {
    let tagged = changed(running(), json!({"tags": {"items": [RULE]}}));
    let server = server(vec![
        (
            "GET /zones/us-central1-a/instances/gpuprov-dev-00ff00",
            vec![
                good(&running()),
                good(&running()),
                good(&running()),
                missing("zones/us-central1-a/instances/gpuprov-dev-00ff00"),
            ],
        ),
        (
            "GET /zones/us-central1-a/disks/gpuprov-dev-00ff00",
            vec![good(&disk()), missing("zones/us-central1-a/disks/gpuprov-dev-00ff00")],
        ),
        ("GET /aggregated/instances", vec![good(&aggregated("instances", &[tagged]))]),
    ])
    .await;
    let cloud = cloud(&server.base);
    cloud.check().await.unwrap();
    let spec = spec_with_ports(&["8080"]);
    let made = cloud.create(&l4(), &spec, &mark(), &Notebook::default()).await.unwrap();
    cloud.inspect(&made.handle).await.unwrap();
    for found in cloud.find(&Which::AnyMarked).await.unwrap() {
        cloud.inspect(&found.handle).await.unwrap();
    }
    assert_eq!(cloud.delete(&made.handle).await.unwrap(), Deletion::Gone);
    let fresh = crate::cloud::gcp::samples::cloud(&server.base);
    fresh.inspect(&made.handle).await.unwrap();
    let rule = &made.handle.side[0];
    let handle = crate::model::handle::Handle {
        data: rule.data.clone(),
        ..crate::model::handle::Handle::new(&rule.id)
    };
    fresh.inspect(&handle).await.unwrap();

    let used: BTreeSet<String> = server.asked().iter().map(check).collect();
    let expected = [
        "disks.aggregatedList",
        "disks.delete",
        "disks.get",
        "firewalls.delete",
        "firewalls.get",
        "firewalls.insert",
        "firewalls.list",
        "globalOperations.wait",
        "images.getFromFamily",
        "instances.aggregatedList",
        "instances.delete",
        "instances.get",
        "instances.getGuestAttributes",
        "instances.insert",
        "projects.get",
        "zoneOperations.list",
        "zoneOperations.wait",
    ];
    assert_eq!(used.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn create_bodies_are_what_the_document_takes() {
    let schema = named("Instance");
    let account = cloud("http://127.0.0.1:1");
    let mut ending = mark();
    ending.expires = Some(jiff::Timestamp::now() + std::time::Duration::from_secs(3600));
    for offer in [
        l4(),
        offer("n2-standard-8", None, 0, false),
        offer("n1-standard-8", Some("T4"), 1, true),
        offer("a3-ultragpu-8g", Some("H200"), 8, true),
    ] {
        for mark in [mark(), ending.clone()] {
            for spec in [spec(), spec_with_ports(&["8080", "9000@203.0.113.0/24"])] {
                let body = account.preview(&offer, &spec, &mark).body;
                assert_eq!(problems(&schema, &body), [""; 0], "{body}");
            }
        }
    }
}

#[test]
fn a_wrong_body_is_refused() {
    let schema = named("Instance");
    let good = cloud("http://127.0.0.1:1").preview(&l4(), &spec(), &mark()).body;
    assert!(schema.is_valid(&good));
    type Change = fn(&mut Value);
    let changes: [Change; 8] = [
        |body| body["machine_type"] = json!("x"),
        |body| body["disks"][0]["initializeParams"]["diskSizeGb"] = json!(50),
        |body| body["scheduling"]["provisioningModel"] = json!("spot"),
        |body| body["scheduling"]["maxRunDuration"] = json!({"seconds": 60}),
        |body| body["scheduling"]["maxRunDuration"] = json!({"seconds": "60s"}),
        |body| body["networkInterfaces"][0]["stackType"] = json!("IPV4"),
        |body| body["tags"] = json!(["x"]),
        |body| body["labels"] = json!({"a": 1}),
    ];
    for change in changes {
        let mut body = good.clone();
        change(&mut body);
        assert!(!schema.is_valid(&body), "{body}");
    }
}

#[test]
fn our_samples_are_what_google_could_send() {
    for (name, value) in [
        ("Operation", operation("insert", "RUNNING")),
        ("Operation", exhausted()),
        ("Instance", staging()),
        ("Instance", running()),
        ("Disk", disk()),
        ("Firewall", rule()),
        ("GuestAttributes", host_keys()),
        ("Image", image("x", "50")),
        ("InstanceAggregatedList", aggregated("instances", &[running()])),
        ("DiskAggregatedList", aggregated("disks", &[disk()])),
    ] {
        assert_eq!(problems(&named(name), &value), [""; 0], "{name} {value}");
    }
}
