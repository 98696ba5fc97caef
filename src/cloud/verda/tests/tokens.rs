//! Credentials and tokens.

use std::os::unix::fs::MetadataExt;

use serde_json::json;

use crate::cloud::verda::samples::*;
use crate::cloud::{Cloud, ErrorKind, Reached};
use crate::http::canned::{Canned, Reply, json as answer};

const TOKEN: &str = "POST /v1/oauth2/token";

fn granted(token: &str) -> Reply {
    good(
        &json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "x", "scope": "cloud-api-v1"}),
    )
}

fn exchanges(server: &Canned) -> usize {
    server.lines().iter().filter(|line| line.starts_with(TOKEN)).count()
}

#[tokio::test]
async fn one_exchange_serves_all_processes() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let cloud = cloud_with(&server.base, |setup, _| setup.cache = Some(folder.path().to_owned()));
        cloud.offers(&want("any")).await.unwrap();
        cloud.check().await.unwrap();
    }
    assert_eq!(exchanges(&server), 1);
    let body: serde_json::Value =
        serde_json::from_str(&server.asked().iter().find(|asked| asked.line == TOKEN).unwrap().body).unwrap();
    assert_eq!(
        body,
        json!({"grant_type": "client_credentials", "client_id": "6a51jsgnISg6JOyE7wYZh", "client_secret": SECRET})
    );
    let files: Vec<_> = std::fs::read_dir(folder.path().join("tokens")).unwrap().flatten().collect();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].metadata().unwrap().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(files[0].path()).unwrap();
    assert!(!text.contains(SECRET));
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_renewed_once() {
    let expired = || problem(401, "unauthorized_request", "Access token is expired");
    let server = server(vec![
        (TOKEN, vec![granted("eyJone"), granted("eyJtwo")]),
        ("GET /v1/instances", vec![expired(), good(&json!([]))]),
    ])
    .await;
    let cloud = cloud(&server.base);
    cloud.check().await.unwrap();
    let tokens: Vec<_> =
        server.asked().iter().filter_map(|asked| asked.header("authorization").map(str::to_owned)).collect();
    assert_eq!(tokens, ["Bearer eyJone", "Bearer eyJtwo", "Bearer eyJtwo"]);

    let server = super::super::samples::server(vec![("GET /v1/instances", vec![expired()])]).await;
    let error = super::super::samples::cloud(&server.base).check().await.unwrap_err();
    assert_eq!((error.kind, exchanges(&server)), (ErrorKind::Auth, 2));
}

#[tokio::test]
async fn credentials_that_are_not_taken() {
    for (reply, kind) in [
        (
            problem(401, "unauthorized_request", &format!("Invalid client id or client secret {SECRET}")),
            ErrorKind::Auth,
        ),
        (problem(400, "invalid_request", "client_id must be a string"), ErrorKind::Auth),
        (problem(500, "server_error", "x"), ErrorKind::Unavailable),
        (answer(200, "{}"), ErrorKind::Unreadable),
        (answer(200, "<html>"), ErrorKind::Unreadable),
    ] {
        let server = server(vec![(TOKEN, vec![reply])]).await;
        let cloud = cloud(&server.base);
        let error = cloud.offers(&want("any")).await.unwrap_err();
        assert_eq!((error.kind, error.reached), (kind, Reached::No), "{error}");
        assert!(!format!("{error} {error:?}").contains(SECRET));
        if kind == ErrorKind::Auth {
            assert_eq!(exchanges(&server), 1, "asked once, not by every call");
            assert!(error.hint.as_deref().unwrap().contains("console.verda.com"));
        }
    }
}

#[tokio::test]
async fn who_the_credentials_are() {
    let project = json!([event("running", json!({}))]);
    let server = server(vec![(
        "GET /v1/journal",
        vec![good(&project), problem(403, "forbidden_action", "Insufficient scope")],
    )])
    .await;
    let cloud = cloud(&server.base);
    let identity = cloud.check().await.unwrap();
    assert_eq!(identity.provider.as_deref(), Some("9f138172-0000-4000-8000-000000000000"));
    assert_eq!(identity.hint, "…wYZh");
    assert!(identity.is_same(&cloud.identity()));
    assert_eq!(cloud.check().await.unwrap().provider, None, "the journal is beta");
    assert!(!format!("{cloud:?}").contains(SECRET));
}
