use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use prost::Message;

use super::super::credentials::ServiceKey;
use super::super::jwt::tests::{key, verified};
use super::super::{Nebius, Settings};
use super::*;
use crate::grpc::canned::{Canned, Reply, message, status};

pub(in crate::cloud::nebius) fn granted(token: &str, seconds: i64) -> Reply {
    message(&CreateTokenResponse {
        access_token: token.to_owned(),
        token_type: "Bearer".to_owned(),
        expires_in: seconds,
        ..Default::default()
    })
}

pub(in crate::cloud::nebius) fn nebius(base: &str, credentials: Credentials, cache: Option<&Path>) -> Nebius {
    let setup = Setup {
        account: "nebius/default".parse().unwrap(),
        endpoint: base.to_owned(),
        loopback: true,
        timeout: Duration::from_secs(5),
        secret_mark: "0123456789abcdef".to_owned(),
        cache: cache.map(Path::to_owned),
        grace: None,
        poll: None,
        boot_timeout: None,
    };
    let settings = Settings { credentials, tenant: None, projects: Vec::new(), ssh_port: 22 };
    Nebius::new(setup, settings, http::Client::new(http::ClientOptions::default()))
}

/// Gives out tokens `t1`, `t2`, ... and takes those that `good` lets through.
async fn service(good: fn(&str) -> bool) -> Canned {
    let given = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    Canned::start(move |asked, _| match asked.path.as_str() {
        "/nebius.iam.v1.TokenExchangeService/Exchange" => {
            let count = given.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            granted(&format!("t{count}"), 43_200)
        }
        _ if asked.header("authorization").is_some_and(good) => Reply::Message(Vec::new()),
        _ => status(16, "token expired"),
    })
    .await
}

#[tokio::test]
async fn a_key_is_exchanged_once_and_kept_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let server = service(|token| token == "Bearer t1").await;
    for _ in 0..2 {
        let one = nebius(&server.base, Credentials::Key(key()), Some(folder.path()));
        one.api.profile().await.unwrap();
        one.api.profile().await.unwrap();
    }
    assert_eq!(
        server.paths(),
        [
            "TokenExchangeService/Exchange",
            "ProfileService/Get",
            "ProfileService/Get",
            "ProfileService/Get",
            "ProfileService/Get"
        ]
        .map(|path| path.to_owned())
    );
    let asked = &server.asked()[0];
    assert_eq!(asked.header("authorization"), None);
    let request: ExchangeTokenRequest = asked.read();
    assert_eq!((request.grant_type.as_str(), request.subject_token_type.as_str()), (GRANT, JWT));
    assert_eq!((request.requested_token_type.as_str(), request.actor_token.as_str()), (ACCESS_TOKEN, ""));
    assert_eq!(verified(&request.subject_token).1["iss"], "serviceaccount-e00sa");
}

#[tokio::test]
async fn another_way_of_logging_in_does_not_get_the_kept_token() {
    let folder = tempfile::tempdir().unwrap();
    let server = service(|_| true).await;
    let first = key();
    let second = ServiceKey { id: "publickey-e00other".to_owned(), ..first.clone() };
    let foreign = |name: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, "eyJ.one.sig").unwrap();
        Credentials::Federated { account: first.account.clone(), source: TokenSource::File(file) }
    };
    let ways = [Credentials::Key(first.clone()), Credentials::Key(second), foreign("a"), foreign("b")];
    for _ in 0..2 {
        for way in &ways {
            nebius(&server.base, way.clone(), Some(folder.path())).api.profile().await.unwrap();
        }
    }
    let exchanged = server.paths().iter().filter(|path| path.ends_with("Exchange")).count();
    assert_eq!(exchanged, ways.len());
    assert!(ways.iter().all(|way| way.way().len() == 16));
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_replaced_once() {
    let server = service(|token| token == "Bearer t2").await;
    let one = nebius(&server.base, Credentials::Key(key()), None);
    one.api.profile().await.unwrap();
    assert_eq!(server.paths().len(), 4, "exchange, refused, exchange, taken");

    let server = service(|_| false).await;
    let one = nebius(&server.base, Credentials::Key(key()), None);
    let error = one.api.profile().await.unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::Auth, Reached::No));
    assert_eq!(server.paths().len(), 4, "not for ever");

    let server = service(|_| false).await;
    let one = nebius(&server.base, Credentials::token("ne1static").unwrap(), None);
    let error = one.api.profile().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
    assert_eq!(server.paths(), ["ProfileService/Get"], "nothing renews it");
    assert!(!format!("{error} {error:?}").contains("ne1static"));
}

#[tokio::test]
async fn a_foreign_token_is_the_actor_and_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("oidc.jwt");
    std::fs::write(&file, "eyJ.one.sig\n").unwrap();
    let server = service(|token| token == "Bearer t2").await;
    let source = TokenSource::File(file.clone());
    let one = nebius(
        &server.base,
        Credentials::Federated { account: "serviceaccount-e00sa".to_owned(), source },
        None,
    );
    one.api.log_in().await.unwrap();
    std::fs::write(&file, "eyJ.two.sig\n").unwrap();
    one.api.profile().await.unwrap();
    let requests: Vec<ExchangeTokenRequest> = server
        .asked()
        .iter()
        .filter(|asked| asked.path.ends_with("/Exchange"))
        .map(|asked| asked.read())
        .collect();
    assert_eq!(
        (requests[0].subject_token.as_str(), requests[0].subject_token_type.as_str()),
        ("serviceaccount-e00sa", SUBJECT_ID)
    );
    assert_eq!(
        (requests[0].actor_token.as_str(), requests[0].actor_token_type.as_str()),
        ("eyJ.one.sig", JWT)
    );
    assert_eq!(requests[1].actor_token, "eyJ.two.sig");

    std::fs::write(&file, "two words").unwrap();
    let error = nebius(
        &server.base,
        Credentials::Federated {
            account: "serviceaccount-e00sa".to_owned(),
            source: TokenSource::File(file),
        },
        None,
    )
    .api
    .log_in()
    .await
    .unwrap_err();
    assert!(
        error.kind == ErrorKind::Auth && error.message.contains("something else than a token"),
        "{error}"
    );
}

#[tokio::test]
async fn a_command_prints_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path.display().to_string()
    };
    let token = printed(&[script("good", "echo eyJ.$1"), "x".to_owned()]).await.unwrap();
    assert_eq!(token.expose(), "eyJ.x");
    for (name, text, part) in [
        ("fails", "echo s3cret; exit 3", "failed"),
        ("empty", "true", "something else"),
        ("words", "echo s3cret s3cret", "something else"),
    ] {
        let error = printed(&[script(name, text)]).await.unwrap_err();
        assert!(error.contains(part) && !error.contains("s3cret"), "{error}");
    }
    assert!(printed(&["/nowhere/x".to_owned()]).await.unwrap_err().contains("cannot be run"));
}

#[tokio::test]
async fn a_login_of_the_cli_is_used_while_it_lasts() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("credentials.yaml");
    let login =
        || Login { cache: cache.clone(), key: "federation/a/b/prod".to_owned(), profile: "prod".to_owned() };
    let write = |left: i64| {
        let until = Timestamp::now().as_second() + left;
        let text = format!("tokens:\n  federation/a/b/prod:\n    token: ne1login\n    expires_at: {until}\n");
        std::fs::write(&cache, text).unwrap();
    };
    let server = service(|token| token == "Bearer ne1login").await;
    write(3600);
    nebius(&server.base, Credentials::Login(login()), Some(folder.path())).api.profile().await.unwrap();
    assert!(!folder.path().join("tokens").exists(), "the CLI keeps it already");
    write(60);
    let error = nebius(&server.base, Credentials::Login(login()), None).api.profile().await.unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::Auth, Reached::No));
    assert!(error.hint.as_ref().unwrap().contains("nebius iam get-access-token --profile prod"), "{error:?}");
    std::fs::remove_file(&cache).unwrap();
    let error = nebius(&server.base, Credentials::Login(login()), None).api.profile().await.unwrap_err();
    assert!(error.message.contains("cannot be read"), "{error}");
}

#[tokio::test]
async fn another_account_is_acted_as() {
    let server = service(|token| token == "Bearer t2").await;
    let credentials = Credentials::Impersonated {
        account: "serviceaccount-e00other".to_owned(),
        by: Box::new(Credentials::Key(key())),
    };
    nebius(&server.base, credentials, None).api.profile().await.unwrap();
    let second: ExchangeTokenRequest = server.asked()[1].read();
    assert_eq!(
        (second.subject_token.as_str(), second.actor_token.as_str()),
        ("serviceaccount-e00other", "t1")
    );
    assert_eq!(second.actor_token_type, ACCESS_TOKEN);
}

#[tokio::test]
async fn a_refused_exchange_is_said_at_once_and_with_a_reason() {
    for code in [3, 7, 5, 16] {
        let server = Canned::with(vec![status(code, "invalid subject token")]).await;
        let one = nebius(&server.base, Credentials::Key(key()), None);
        let error = one.api.instances("project-e00a").await.unwrap_err();
        assert_eq!(
            (error.kind, error.reached, server.paths().len()),
            (ErrorKind::Auth, Reached::No, 1),
            "{code}"
        );
        assert!(error.hint.as_ref().unwrap().contains("auth-public-key"), "{error:?}");
    }
    let server = Canned::with(vec![granted("", 5)]).await;
    let error = nebius(&server.base, Credentials::Key(key()), None).api.log_in().await.unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::Unreadable, Reached::No));
    let server = Canned::with(vec![Reply::Message(vec![255])]).await;
    let error = nebius(&server.base, Credentials::Key(key()), None).api.log_in().await.unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::Unreadable, Reached::No));
}

#[test]
fn requests_and_answers_show_no_token() {
    let request = acting("serviceaccount-x", &Secret::trimmed("s3cret"), JWT);
    assert!(!format!("{request:?}").contains("s3cret") && !request.encode_to_vec().is_empty());
    let answer = CreateTokenResponse { access_token: "s3cret".to_owned(), ..Default::default() };
    assert!(!format!("{answer:?}").contains("s3cret"));
}
