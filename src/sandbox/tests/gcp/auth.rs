//! Who calls: signed tokens, exchanged tokens, federation, rights.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Rig;
use super::{ZONE, body};
use crate::sandbox::{GCP_FIREWALL_PERMISSIONS, GcpGuesses, OidcFlaw};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

async fn status(rig: &Rig, token: &str) -> (u16, Value) {
    let answer = rig.send_google(token, "GET", "", None).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn signed_tokens() {
    let rig = Rig::new().await;
    let now = jiff::Timestamp::now().as_second();
    for (changes, want) in [
        (json!({"scope": SCOPE}), 200),
        (json!({"scope": SCOPE, "aud": null}), 200),
        (json!({"aud": "https://compute.googleapis.com/"}), 200),
        (json!({"scope": SCOPE, "iat": now - 10, "exp": now + 3610}), 200),
        (json!({"scope": SCOPE, "aud": "https://compute.googleapis.com/"}), 401),
        (json!({"aud": "https://oauth2.googleapis.com/token"}), 401),
        (json!({"scope": "https://www.googleapis.com/auth/drive"}), 401),
        (json!({"scope": SCOPE, "iss": "somebody@else.iam.gserviceaccount.com"}), 401),
        (json!({"scope": SCOPE, "iat": now - 4000, "exp": now - 400}), 401),
        (json!({"scope": SCOPE, "exp": now + 7200}), 401),
        (json!({}), 401),
    ] {
        let (found, answer) = status(&rig, &rig.google_signed(&changes)).await;
        assert_eq!(found, want, "{changes}: {answer}");
    }
    let (_, expired) =
        status(&rig, &rig.google_signed(&json!({"scope": SCOPE, "iat": now - 4000, "exp": now - 400}))).await;
    assert_eq!(expired["error"]["details"][0]["reason"], "ACCESS_TOKEN_EXPIRED");
    let (found, nobody) = status(&rig, "").await;
    assert_eq!((found, &nobody["error"]["status"]), (401, &json!("UNAUTHENTICATED")));
    let good = rig.google_token();
    let flipped: String = good
        .chars()
        .rev()
        .enumerate()
        .map(|(at, letter)| if at == 20 { if letter == 'A' { 'B' } else { 'A' } } else { letter })
        .collect();
    let flipped: String = flipped.chars().rev().collect();
    assert_eq!(status(&rig, &flipped).await.0, 401, "another signature");
    assert_eq!(status(&rig, "ya29.c.something").await.0, 401);
    rig.sandbox.gcp().delete_key(rig.sandbox.gcp().project());
    assert_eq!(status(&rig, &good).await.0, 401, "the key was deleted");
    let key: Value = serde_json::from_str(&rig.sandbox.gcp().deleted_key_file()).unwrap();
    assert_eq!(key["private_key_id"], "0".repeat(40));
}

#[tokio::test]
async fn exchanged_tokens() {
    let rig = Rig::new().await;
    let url = format!("{}/oauth2/token", rig.sandbox.gcp().endpoint());
    let ask = |assertion: String| {
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()),
            ("assertion", assertion),
        ];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request =
            rig.client.post(&url).header("content-type", "application/x-www-form-urlencoded").body(body);
        async move {
            let answer = request.send().await.unwrap();
            (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
        }
    };
    let (status_code, given) =
        ask(rig.google_signed(&json!({"scope": SCOPE, "aud": "https://oauth2.googleapis.com/token"}))).await;
    assert_eq!((status_code, &given["token_type"]), (200, &json!("Bearer")), "{given}");
    let token = given["access_token"].as_str().unwrap();
    assert_eq!(status(&rig, token).await.0, 200);
    rig.sandbox.gcp().expire_tokens();
    let (found, answer) = status(&rig, token).await;
    assert_eq!((found, &answer["error"]["details"][0]["reason"]), (401, &json!("ACCESS_TOKEN_EXPIRED")));
    let (found, refused) = ask("a.b.c".to_owned()).await;
    assert_eq!((found, &refused["error_description"]), (400, &json!("Invalid JWT Signature.")));
    let (found, refused) =
        ask(rig.google_signed(&json!({"scope": SCOPE, "aud": "https://other.example.net"}))).await;
    assert_eq!((found, &refused["error"]), (400, &json!("invalid_grant")));
    // Looking is allowed with a smaller scope, changing is not.
    let looks = rig.google_signed(&json!({"scope": "https://www.googleapis.com/auth/compute.readonly"}));
    assert_eq!(status(&rig, &looks).await.0, 200);
    let answer = rig.send_google(&looks, "POST", &format!("{ZONE}/instances"), Some(body(""))).await;
    assert_eq!(answer.status(), 403);
}

#[tokio::test]
async fn federation() {
    let rig = Rig::new().await;
    let gcp = rig.sandbox.gcp();
    let file: Value = serde_json::from_str(&gcp.federation_file("/tmp/token")).unwrap();
    let exchange = async |token: String| {
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange".to_owned()),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token".to_owned()),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt".to_owned()),
            ("subject_token", token),
            ("audience", file["audience"].as_str().unwrap().to_owned()),
            ("scope", "https://www.googleapis.com/auth/iam".to_owned()),
        ];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = rig.client.post(file["token_url"].as_str().unwrap()).body(body);
        let answer =
            request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    for (flaw, want, error) in [
        (OidcFlaw::Expired, 400, "invalid_grant"),
        (OidcFlaw::Audience, 400, "invalid_grant"),
        (OidcFlaw::Signature, 400, "invalid_grant"),
        (OidcFlaw::Issuer, 400, "invalid_grant"),
        (OidcFlaw::Subject, 403, "unauthorized_client"),
    ] {
        let (found, answer) = exchange(gcp.oidc_token(Some(flaw)).unwrap()).await;
        assert_eq!((found, &answer["error"]), (want, &json!(error)), "{flaw:?}");
    }
    let (found, given) = exchange(gcp.oidc_token(None).unwrap()).await;
    assert_eq!(found, 200, "{given}");
    let federated = given["access_token"].as_str().unwrap();
    assert_eq!(status(&rig, federated).await.0, 403, "it is good for one thing");
    let url = file["service_account_impersonation_url"].as_str().unwrap();
    let become_it = async |token: &str| {
        let body = json!({"delegates": null, "scope": [SCOPE], "lifetime": "3600s"});
        let answer = rig.client.post(url).bearer_auth(token).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (found, given) = become_it(federated).await;
    assert_eq!(found, 200, "{given}");
    assert!(given["expireTime"].as_str().unwrap().ends_with('Z'), "{given}");
    assert_eq!(status(&rig, given["accessToken"].as_str().unwrap()).await.0, 200);
    assert_eq!(become_it("nobody").await.0, 401);
    gcp.deny(gcp.project(), &["iam.serviceAccounts.getAccessToken"]);
    let (found, refused) = become_it(federated).await;
    assert_eq!((found, &refused["error"]["status"]), (403, &json!("PERMISSION_DENIED")));
}

#[tokio::test]
async fn rights_and_projects() {
    let rig = Rig::with(|options| options.gcp_guesses = GcpGuesses::default()).await;
    let gcp = rig.sandbox.gcp();
    gcp.deny(gcp.project(), &GCP_FIREWALL_PERMISSIONS);
    let rule = json!({"name": "x", "allowed": [{"IPProtocol": "tcp", "ports": ["80"]}]});
    let (found, refused) = rig.google("POST", "global/firewalls", Some(rule)).await;
    let project = gcp.project();
    assert_eq!((found, &refused["error"]["errors"][0]["reason"]), (403, &json!("forbidden")));
    assert_eq!(
        refused["error"]["message"],
        format!("Required 'compute.firewalls.create' permission for 'projects/{project}/global/firewalls/x'")
    );
    gcp.allow_all(project);
    gcp.deny(project, &["compute.instances.create"]);
    let (found, refused) = rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await;
    assert_eq!(found, 403);
    assert!(refused["error"]["message"].as_str().unwrap().contains("'compute.instances.create' permission"));
    gcp.allow_all(project);
    let other = gcp.add_account();
    let url = format!("{}/compute/v1/projects/{other}", gcp.endpoint());
    let answer = rig.client.get(url).bearer_auth(rig.google_token()).send().await.unwrap();
    assert_eq!(answer.status(), 403, "somebody else's project");
    gcp.set_api(project, false);
    let (found, refused) = rig.google("GET", "", None).await;
    assert_eq!((found, &refused["error"]["details"][0]["reason"]), (403, &json!("SERVICE_DISABLED")));
    gcp.set_api(project, true);
    gcp.set_billing(project, false);
    let (found, refused) = rig.google("POST", &format!("{ZONE}/instances"), Some(body(""))).await;
    assert_eq!((found, &refused["error"]["details"][0]["reason"]), (403, &json!("BILLING_DISABLED")));
    gcp.set_token_life(Duration::from_millis(1));
    assert_eq!(gcp.service_account(), format!("gpuprov@{project}.iam.gserviceaccount.com"));
}
