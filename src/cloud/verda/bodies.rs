//! Requests against the published API document with our corrections, and our samples too: a sample that Verda could not send
//! would prove nothing. Each correction says why it is one.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::samples::*;
use crate::cloud::{Cloud, Deletion, Which};
use crate::http::canned::Asked;
use crate::model::offer_key::OfferKey;
use crate::model::want::{Spot, Want};

static CORRECTIONS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../tests/data/verda-corrections.json")).unwrap()
});

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document = serde_json::from_str(include_str!("../../../tests/data/verda-openapi.json")).unwrap();
    for correction in CORRECTIONS.iter() {
        let at = correction["at"].as_str().unwrap();
        let (parent, name) = at.rsplit_once('/').unwrap();
        let parent: &mut Value = Value::pointer_mut(&mut document, parent).expect(at);
        parent[name] = correction["set"].clone();
    }
    document
});

fn validator(schema: &Value) -> Validator {
    let root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "allOf": [schema],
        "components": DOCUMENT["components"],
    });
    jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&root).unwrap()
}

fn named(name: &str) -> Validator {
    validator(&json!({"$ref": format!("#/components/schemas/{name}")}))
}

fn problems(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path)).collect()
}

#[test]
fn every_correction_has_a_reason_and_changes_something() {
    let published: Value =
        serde_json::from_str(include_str!("../../../tests/data/verda-openapi.json")).unwrap();
    let mut seen = BTreeSet::new();
    for correction in CORRECTIONS.iter() {
        let at = correction["at"].as_str().unwrap();
        assert!(correction["because"].as_str().is_some_and(|why| why.len() > 10), "{at}");
        assert_ne!(published.pointer(at), Some(&correction["set"]), "{at} is right already");
        assert_eq!(DOCUMENT.pointer(at), Some(&correction["set"]), "{at}");
        assert!(seen.insert(at), "{at} twice");
    }
}

/// Finds the path of the document that a request line means.
fn route(line: &str) -> (String, String, String) {
    let (method, rest) = line.split_once(' ').unwrap();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let fits = |known: &&String| {
        let (known, path): (Vec<&str>, Vec<&str>) = (known.split('/').collect(), path.split('/').collect());
        let same =
            |(known, part): (&&str, &&str)| known == part || (known.starts_with('{') && !part.is_empty());
        known.len() == path.len() && known.iter().zip(&path).all(same)
    };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    // A fixed path wins over one with a parameter (`/volumes/trash`).
    let found = paths.keys().filter(fits).min_by_key(|known| known.matches('{').count());
    let path = found.unwrap_or_else(|| panic!("no such path: {line}")).clone();
    (method.to_lowercase(), path, query.to_owned())
}

/// Checks one request as a whole: path, query, headers, body.
fn check(asked: &Asked) -> String {
    let (method, path, query) = route(&asked.line);
    let operation = &DOCUMENT["paths"][&path][&method];
    assert!(operation.is_object(), "{}", asked.line);
    let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap();
        let known = parameters.iter().find(|known| known["name"] == name && known["in"] == "query");
        assert!(known.is_some_and(|known| known["deprecated"] != true), "{name} of {}", asked.line);
    }
    assert!(asked.header("user-agent").is_some_and(|agent| agent.starts_with("gpuprov/")), "{}", asked.line);
    assert!(asked.header("cf-connecting-ip").is_none());
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    match schema.is_null() {
        true => assert_eq!(asked.body, "", "{}", asked.line),
        false => {
            assert_eq!(asked.header("content-type"), Some("application/json"));
            let body: Value = serde_json::from_str(&asked.body).unwrap();
            assert_eq!(problems(&validator(schema), &body), [""; 0], "{} {body}", asked.line);
        }
    }
    assert!(!asked.line.contains(SECRET) && !asked.line.contains("eyJ"), "a secret in an address");
    format!("{method} {path}")
}

#[tokio::test]
async fn every_request_is_in_the_document() {
    let server = server(vec![
        (concat_id("GET /v1/instances/"), vec![good(&ready()), no_machine()]),
        ("GET /v1/volumes", vec![good(&json!([volume()])), good(&json!([]))]),
        ("GET /v1/ssh-keys", vec![good(&json!([key_row(KEY_ID, WHOLE_NAME)])), good(&json!([]))]),
    ])
    .await;
    let cloud = cloud(&server.base);
    let want = Want { spot: Spot::Any, ..want("RTXPRO6000") };
    let offer = cloud.offers(&want).await.unwrap().offers.remove(0);
    cloud.recheck(&OfferKey::decode(&offer.id).unwrap(), &want).await.unwrap();
    cloud.check().await.unwrap();
    let made = cloud.create(&offer, &spec(), &mark(), &Notebook::default()).await.unwrap();
    cloud.inspect(&made.handle).await.unwrap();
    cloud.find(&Which::AnyMarked).await.unwrap();
    for _ in 0..4 {
        if cloud.delete(&made.handle).await.unwrap() == Deletion::Gone {
            break;
        }
    }
    cloud.inspect(&made.handle).await.unwrap();
    let fresh = super::samples::cloud(&server.base);
    fresh.inspect(&made.handle).await.unwrap();
    for resource in &made.handle.side {
        let handle = crate::model::handle::Handle {
            data: resource.data.clone(),
            ..crate::model::handle::Handle::new(&resource.id)
        };
        assert_eq!(fresh.delete(&handle).await.unwrap(), Deletion::Gone);
    }

    let used: BTreeSet<String> = server.asked().iter().map(check).collect();
    assert_eq!(used.len(), 18, "{used:#?}");
    for public in ["instance-types", "volume-types", "oauth2/token"] {
        let asked = server.asked();
        let mut requests = asked.iter().filter(|asked| asked.line.contains(public));
        assert!(requests.all(|asked| asked.header("authorization").is_none()), "{public}");
    }
}

fn concat_id(start: &str) -> &'static str {
    Box::leak(format!("{start}{ID}").into_boxed_str())
}

#[tokio::test]
async fn create_bodies_are_what_the_document_takes() {
    let schema = named("DeployInstancePublicDto");
    let mut count = 0;
    for want in [want("RTXPRO6000,A100:1,A100-80GB:8,V100"), want_cpu(), want_type("1RTXPRO6000.30V.CC")] {
        for disk_gb in [1, 50, 10_240] {
            for offer in offers(&Want { spot: Spot::Any, disk_gb, ..want.clone() }).await {
                let mut body = cloud("http://127.0.0.1:1").preview(&offer, &spec(), &mark()).body;
                body["ssh_key_ids"] = json!([KEY_ID]);
                assert_eq!(problems(&schema, &body), [""; 0], "{body}");
                assert_eq!(body["os_volume"]["size"], disk_gb.max(50));
                assert_eq!(body["is_spot"], offer.spot);
                assert_eq!(body["tags"], body["os_volume"]["tags"]);
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count}");
}

#[tokio::test]
async fn a_wrong_body_is_refused() {
    let schema = named("DeployInstancePublicDto");
    let mut good = cloud("http://127.0.0.1:1").preview(&spot_offer().await, &spec(), &mark()).body;
    good["ssh_key_ids"] = json!([KEY_ID]);
    assert!(schema.is_valid(&good));
    type Change = fn(&mut Value);
    let changes: [Change; 10] = [
        |body| body["pricing"] = json!("DYNAMIC"),
        |body| body["zone"] = json!("FIN-03"),
        |body| body["location_code"] = json!(null),
        |body| body["ssh_key_ids"] = json!([]),
        |body| body["os_volume"]["size"] = json!(40),
        |body| body["os_volume"]["on_spot_discontinue"] = json!("keep"),
        |body| drop(body["os_volume"].as_object_mut().unwrap().remove("on_spot_discontinue")),
        |body| body["is_spot"] = json!(false),
        |body| body["tags"] = json!(vec![json!({"key": "k", "value": "v"}); 11]),
        |body| body["hostname"] = json!("-dev"),
    ];
    for change in changes {
        let mut body = good.clone();
        change(&mut body);
        assert!(!schema.is_valid(&body), "{body}");
    }
}

#[test]
fn our_samples_are_what_verda_could_send() {
    let list = |name: &str, values: Value| {
        let schema = named(name);
        for value in values.as_array().unwrap() {
            assert_eq!(problems(&schema, value), [""; 0], "{name} {value}");
        }
    };
    list("InstanceType", types());
    list("InstanceAvailabilityResponseDto", stock(true));
    list("InstanceAvailabilityResponseDto", stock(false));
    list("Location", locations());
    list("VolumeType", volume_types());
    list("Os", images());
    list("GetInstanceResponsePublicApiDto", json!([starting(), ready()]));
    list("GetVolumePublicResponseDto", json!([volume()]));
    list("GetVolumeInTrashPublicResponseDto", json!([trashed()]));
    list("GetKeysResponseDto", json!([key_row(KEY_ID, "x")]));
    list("GetActivityJournalResponseDto", json!([event("delete", json!({}))]));
}
