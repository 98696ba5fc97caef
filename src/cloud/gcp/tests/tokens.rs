//! Credentials and tokens.

use std::path::Path;

use serde_json::{Value, json};

use crate::cloud::gcp::credentials::external::{External, Format, Source};
use crate::cloud::gcp::credentials::key::tests::{PEM, file};
use crate::cloud::gcp::credentials::{Credentials, FileError};
use crate::cloud::gcp::samples::*;
use crate::cloud::{Cloud, ErrorKind, Reached};
use crate::http::canned::{Canned, Reply, json as answer};

const STS: &str = "POST /sts/v1/token";
const SERVICE: &str = "gpuprov@lab-1.iam.gserviceaccount.com";

fn federation(base: &str, source: Value) -> Value {
    json!({
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/ci/providers/ci",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": format!("{base}/sts/v1/token"),
        "service_account_impersonation_url":
            format!("{base}/iamcredentials/v1/projects/-/serviceAccounts/{SERVICE}:generateAccessToken"),
        "credential_source": source,
    })
}

/// A token service that takes the token `outside`, and Google behind it.
async fn services() -> Canned {
    Canned::start(|asked, _| {
        let line = asked.line.as_str();
        if line == STS {
            let good = asked.body.contains("subject_token=eyJoutside&")
                && asked.header("content-type") == Some("application/x-www-form-urlencoded");
            return match good {
                true => answer(200, json!({"access_token": "ya29.d.fed", "expires_in": 3599}).to_string()),
                false => {
                    let words = "The audience in ID Token [eyJoutside] does not match the expected audience.";
                    answer(400, json!({"error": "invalid_grant", "error_description": words}).to_string())
                }
            };
        }
        if line.contains(":generateAccessToken") {
            assert_eq!(asked.header("authorization"), Some("Bearer ya29.d.fed"));
            let ends = jiff::Timestamp::now() + std::time::Duration::from_secs(3600);
            return answer(
                200,
                json!({"accessToken": "eyJservice", "expireTime": ends.to_string()}).to_string(),
            );
        }
        if line.starts_with("GET /token") {
            assert_eq!(asked.header("x-key"), Some("k1"));
            return answer(200, r#"{"value": "eyJoutside"}"#);
        }
        shop(asked)
    })
    .await
}

fn account(base: &str, credentials: Credentials) -> crate::cloud::gcp::Gcp {
    cloud_with(base, |_, settings| settings.credentials = credentials)
}

#[tokio::test]
async fn a_key_asks_nobody_and_its_token_is_kept() {
    let server = server(vec![]).await;
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let cloud = cloud_with(&server.base, |setup, _| setup.cache = Some(folder.path().to_owned()));
        cloud.check().await.unwrap();
    }
    let asked = server.asked();
    assert_eq!(calls(&server), ["GET ", "GET "]);
    assert_eq!(
        asked[0].header("authorization"),
        asked[1].header("authorization"),
        "one token for both processes"
    );
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_renewed_once() {
    let stale = || problem(401, "authError", "Request had invalid authentication credentials.");
    let renewed = server(vec![("GET ", vec![stale(), good(&json!({"name": PROJECT}))])]).await;
    cloud(&renewed.base).check().await.unwrap();
    let refused = server(vec![("GET ", vec![stale()])]).await;
    let error = cloud(&refused.base).check().await.unwrap_err();
    assert_eq!((error.kind, refused.lines().len()), (ErrorKind::Auth, 2));
    assert!(error.hint.unwrap().contains("clock"));
}

#[tokio::test]
async fn who_the_credentials_are() {
    let known = server(vec![]).await;
    let identity = cloud(&known.base).check().await.unwrap();
    assert_eq!((identity.provider.as_deref(), identity.hint.as_str()), (Some(PROJECT), SERVICE));
    let unknown =
        server(vec![("GET ", vec![problem(404, "notFound", "The resource 'projects/lab-1' was not found")])])
            .await;
    assert_eq!(cloud(&unknown.base).check().await.unwrap_err().kind, ErrorKind::Forbidden);
    let shown = format!("{:?}", cloud(&known.base));
    assert!(!shown.contains("PRIVATE") && !shown.contains(&PEM[40..60]), "{shown}");
}

#[tokio::test]
async fn a_token_from_outside_is_exchanged_twice() {
    let server = services().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token.jwt"), "eyJoutside\n").unwrap();
    let sources = [
        json!({"file": "token.jwt"}),
        json!({
            "url": format!("{}/token?audience=x", server.base), "headers": {"x-key": "k1"},
            "format": {"type": "json", "subject_token_field_name": "value"},
        }),
        json!({"executable": {"command": format!("cat '{}'", folder.path().join("printed").display())}}),
    ];
    let printed = json!({
        "version": 1, "success": true, "token_type": "urn:ietf:params:oauth:token-type:id_token", "id_token": "eyJoutside",
    });
    std::fs::write(folder.path().join("printed"), printed.to_string()).unwrap();
    for source in sources {
        let text = federation(&server.base, source.clone()).to_string();
        let credentials = Credentials::parse(&text, Some(folder.path()), true).unwrap();
        assert_eq!(credentials.project(), Some("lab-1"));
        account(&server.base, credentials).check().await.unwrap_or_else(|error| panic!("{source}: {error}"));
    }
    let asked = server.asked();
    let sent = asked.iter().find(|asked| asked.line == STS).unwrap();
    for part in [
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange",
        "audience=%2F%2Fiam.googleapis.com%2Fprojects%2F123456789012",
        "scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fiam",
    ] {
        assert!(sent.body.contains(part), "{}", sent.body);
    }
    let body = &asked.iter().find(|asked| asked.line.contains(":generateAccessToken")).unwrap().body;
    assert_eq!(
        serde_json::from_str::<Value>(body).unwrap(),
        json!({"scope": ["https://www.googleapis.com/auth/cloud-platform"], "lifetime": "3600s"})
    );

    // The same without a file.
    let provider = "projects/123456789012/locations/global/workloadIdentityPools/ci/providers/ci";
    let source = Source::File { path: folder.path().join("token.jwt"), format: Format::Text };
    let external = External::new(provider, SERVICE, source, Some(&server.base));
    let credentials = Credentials::Federated(Box::new(external));
    assert_eq!(credentials.hint(), format!("{SERVICE} (federated)"));
    account(&server.base, credentials).check().await.unwrap();
}

#[tokio::test]
async fn what_goes_wrong_with_federation_is_told_without_the_token() {
    let server = services().await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("wrong", "eyJsecretother");
    write(
        "failed",
        r#"{"version": 1, "success": false, "code": "401", "message": "Caller not authorized."}"#,
    );
    write("noise", "eyJsecret");
    let command = |name: &str| json!({"executable": {"command": format!("cat {}", folder.path().join(name).display())}});
    for (source, words) in [
        (json!({"file": "wrong"}), "exchanging the token: The audience in ID Token […] does not match"),
        (json!({"file": "none"}), "the token file"),
        (command("failed"), "Caller not authorized"),
        (command("noise"), "is not the JSON"),
        (json!({"executable": {"command": "/nonexistent/token"}}), "/nonexistent/token"),
        (json!({"executable": {"command": "sleep 60", "timeout_millis": 50}}), "did not end within"),
    ] {
        let text = federation(&server.base, source).to_string();
        let credentials = Credentials::parse(&text, Some(folder.path()), true).unwrap();
        let error = account(&server.base, credentials).check().await.unwrap_err();
        assert_eq!((error.kind, error.reached), (ErrorKind::Auth, Reached::No), "{error}");
        assert!(error.message.contains(words), "{error}");
        assert!(!format!("{error:?}").contains("eyJ"), "{error:?}");
    }

    let denied = Canned::start(|asked, _| match asked.line.as_str() {
        STS => answer(200, json!({"access_token": "ya29.d.fed", "expires_in": 3599}).to_string()),
        _ => {
            let words = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).";
            let detail = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "IAM_PERMISSION_DENIED"});
            let body = json!({"error": {"code": 403, "message": words, "status": "PERMISSION_DENIED", "details": [detail]}});
            answer(403, body.to_string())
        }
    })
    .await;
    write("token", "eyJoutside");
    let text = federation(&denied.base, json!({"file": "token"})).to_string();
    let credentials = Credentials::parse(&text, Some(folder.path()), false).unwrap();
    let error = account(&denied.base, credentials).check().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
    assert!(error.hint.unwrap().contains("roles/iam.workloadIdentityUser"));

    let down = Canned::with(vec![Reply::Close]).await;
    let text = federation(&down.base, json!({"file": "token"})).to_string();
    let credentials = Credentials::parse(&text, Some(folder.path()), false).unwrap();
    let error = account(&down.base, credentials).check().await.unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::Unavailable, Reached::No));
}

#[test]
fn files_that_are_not_used() {
    let parse = |value: Value| Credentials::parse(&value.to_string(), None, false).map(drop);
    let with = |name: &str, value: Value| changed(file(), json!({name: value}));
    assert_eq!(parse(file()), Ok(()));
    assert_eq!(parse(with("type", json!("authorized_user"))), Err(FileError::UserLogin));
    assert!(FileError::UserLogin.to_string().contains("service account"));
    for other in ["impersonated_service_account", "external_account_authorized_user", "gdch_service_account"]
    {
        assert_eq!(parse(with("type", json!(other))), Err(FileError::Type(other.to_owned())));
    }
    for part in ["client_email", "private_key_id", "private_key"] {
        assert_eq!(parse(with(part, json!(null))), Err(FileError::Lacks(part)), "{part}");
    }
    assert_eq!(parse(with("type", json!(7))), Err(FileError::Lacks("type")));
    assert!(matches!(parse(with("universe_domain", json!("x.example"))), Err(FileError::Universe(_))));
    for broken in ["", "[]", "{\"private_key\": \"s3cret\"", "7"] {
        let error = Credentials::parse(broken, None, false).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{broken}");
    }
}

#[test]
fn what_a_federation_file_may_name() {
    let public = "https://sts.googleapis.com/v1/token";
    let of = |changes: Value, allow: bool| {
        let base = federation("http://127.0.0.1:1", json!({"file": "t"}));
        Credentials::parse(&changed(base, changes).to_string(), Some(Path::new("/etc")), allow).map(drop)
    };
    for good in [
        public,
        "https://sts.us-east1.rep.googleapis.com/v1/token",
        "http://127.0.0.1:80/x",
        "http://localhost/x",
    ] {
        assert_eq!(of(json!({"token_url": good}), false), Ok(()), "{good}");
    }
    for bad in [
        "http://sts.googleapis.com/v1/token",
        "https://sts.googleapis.com.example/v1/token",
        "https://evil-googleapis.com/v1/token",
        "https://sts.googleapis.com@evil.example/",
        "https://169.254.169.254/",
        "file:///etc/passwd",
        "sts",
    ] {
        for field in ["token_url", "service_account_impersonation_url"] {
            let refused = of(json!({field: bad}), false).unwrap_err();
            assert!(
                matches!(&refused, FileError::Address { field: named, .. } if *named == field),
                "{bad}: {refused}"
            );
        }
    }
    for (source, good) in [
        (json!({"url": "https://token.example/x"}), true),
        (json!({"url": "http://127.0.0.1:9/x"}), true),
        (json!({"url": "http://169.254.169.254/metadata/identity"}), true),
        (json!({"url": "http://metadata.google.internal/x"}), true),
        (json!({"url": "http://token.example/x"}), false),
        (json!({"url": "http://169.254.169.253/x"}), false),
        (json!({"environment_id": "aws1", "url": "http://169.254.169.254/x"}), false),
        (json!({"file": "x", "format": {"type": "json"}}), false),
        (json!({"file": "x", "format": {"type": "xml"}}), false),
        (json!({}), false),
    ] {
        assert_eq!(of(json!({"credential_source": source}), false).is_ok(), good, "{source}");
    }
    let command = json!({"credential_source": {"executable": {"command": "/bin/token"}}});
    assert_eq!(of(command.clone(), false), Err(FileError::Command));
    assert_eq!(of(command, true), Ok(()));
}

proptest::proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,60}|\\{(\"[a-z_]{0,12}\": ?[\"a-z0-9:/\\{\\}]{0,8},?){0,5}\\}") {
        let _ = Credentials::parse(&text, None, true);
    }
}
