//! Who may: static tokens, key files, federation.

use base64::Engine;
use serde_json::{Value, json};

use super::Client;
use crate::sandbox::OidcFlaw;
use crate::sandbox::oidc::RsaKey;
use crate::sandbox::tests::Rig;

const EXCHANGE: &str = "/nebius.iam.v1.TokenExchangeService/Exchange";
const PROFILE: &str = "/nebius.iam.v1.ProfileService/Get";

fn exchange(subject: &str, kind: &str) -> Value {
    json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token": subject, "subject_token_type": kind,
    })
}

fn federated(subject: &str, actor: &str) -> Value {
    let mut message = exchange(subject, "urn:nebius:params:oauth:token-type:subject_identifier");
    message["actor_token"] = json!(actor);
    message["actor_token_type"] = json!("urn:ietf:params:oauth:token-type:jwt");
    message
}

/// A JWT as the official clients sign it, with changed claims.
fn jwt(file: &Value, change: impl FnOnce(&mut Value)) -> String {
    let part = |name: &str| file["subject-credentials"][name].as_str().unwrap();
    let now = jiff::Timestamp::now().as_second();
    let mut claims = json!({
        "iss": part("iss"), "sub": part("sub"), "aud": ["token-service.iam.new.nebiuscloud.net"],
        "iat": now, "exp": now + 60,
    });
    change(&mut claims);
    RsaKey::shared().unwrap().sign(part("kid"), &claims).unwrap()
}

async fn anonymous(rig: &Rig) -> Client {
    Client { token: None, ..rig.nebius().await }
}

#[tokio::test]
async fn a_key_file_gets_a_token_that_ends() {
    let rig = Rig::new().await;
    let mut client = anonymous(&rig).await;
    let file: Value = serde_json::from_str(&rig.sandbox.nebius().key_file().unwrap()).unwrap();
    let kind = "urn:ietf:params:oauth:token-type:jwt";
    let got = client.ask(EXCHANGE, exchange(&jwt(&file, |_| {}), kind)).await.unwrap();
    assert_eq!((got["token_type"].as_str(), got["expires_in"].as_i64()), (Some("Bearer"), Some(43_200)));
    let changes: [fn(&mut Value); 5] = [
        |claims| claims["exp"] = json!(1),
        |claims| claims["exp"] = json!(claims["iat"].as_i64().unwrap() + 400),
        |claims| claims["sub"] = json!("serviceaccount-e00other"),
        |claims| claims["aud"] = json!("somebody"),
        |claims| claims["iat"] = Value::Null,
    ];
    for change in changes {
        let refused = client.ask(EXCHANGE, exchange(&jwt(&file, change), kind)).await.unwrap_err();
        assert_eq!(refused.code, 16, "{}", refused.message);
    }
    client.token = Some(got["access_token"].as_str().unwrap().to_owned());
    let who = client.ask(PROFILE, json!({})).await.unwrap();
    let id = &who["service_account_profile"]["info"]["metadata"]["id"];
    assert_eq!(id, rig.sandbox.nebius().service_account());
    rig.sandbox.nebius().expire_tokens();
    assert_eq!(client.ask(PROFILE, json!({})).await.unwrap_err().code, 16);
    // No token stands in the records.
    let sent = &rig.sandbox.requests()[0];
    assert_eq!((sent.operation, sent.status), ("exchange_token", 200));
    assert!(sent.body.as_ref().unwrap().get("subject_token").is_none());
}

#[tokio::test]
async fn federation_takes_the_right_token_only() {
    let rig = Rig::new().await;
    let client = anonymous(&rig).await;
    let nebius = rig.sandbox.nebius();
    let subject = nebius.service_account();
    let right = nebius.oidc_token(None).unwrap();
    client.ask(EXCHANGE, federated(subject, &right)).await.unwrap();
    for flaw in
        [OidcFlaw::Expired, OidcFlaw::Audience, OidcFlaw::Signature, OidcFlaw::Subject, OidcFlaw::Issuer]
    {
        let wrong = nebius.oidc_token(Some(flaw)).unwrap();
        assert_eq!(client.ask(EXCHANGE, federated(subject, &wrong)).await.unwrap_err().code, 16, "{flaw:?}");
    }
    assert_eq!(client.ask(EXCHANGE, federated("serviceaccount-x", &right)).await.unwrap_err().code, 16);
    let mut impersonated = federated(subject, nebius.token());
    impersonated["actor_token_type"] = json!("urn:ietf:params:oauth:token-type:access_token");
    client.ask(EXCHANGE, impersonated).await.unwrap();
    let payload = right.split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap();
    assert!(serde_json::from_slice::<Value>(&claims).unwrap()["exp"].is_i64());
}

#[tokio::test]
async fn accounts_do_not_see_each_other() {
    let rig = Rig::new().await;
    let mut client = rig.nebius().await;
    let who = client.ask(PROFILE, json!({})).await.unwrap();
    assert_eq!(who["user_profile"]["tenants"][0]["tenant_id"], rig.sandbox.nebius().tenant());
    let made = client.create("k-1", &rig.nebius_body("dev", "ssh-ed25519 AAAA")).await.unwrap();
    let id = made["resource_id"].as_str().unwrap();
    let (_, token) = rig.sandbox.nebius().add_account();
    let other = Client { token: Some(token), ..rig.nebius().await };
    assert_eq!(other.get(id).await.unwrap_err().code, 5);
    assert_eq!(other.delete(id).await.unwrap_err().code, 5);
    assert_eq!(other.operation(made["id"].as_str().unwrap()).await.unwrap_err().code, 5);
    let project = json!({"parent_id": rig.sandbox.nebius().project("eu-north1")});
    let refused = other.ask(&format!("{}/List", super::INSTANCES), project).await.unwrap_err();
    assert_eq!((refused.code, refused.detail["code"].as_str()), (7, Some("PermissionDenied")));
    let bad = Client { token: Some("ne1x".into()), ..other };
    assert_eq!(bad.ask(PROFILE, json!({})).await.unwrap_err().code, 16);
}
