use std::process::Command;
use std::sync::OnceLock;

use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::Value;

use super::*;
use crate::model::secret::Secret;

/// Makes an RSA key with the system's ssh-keygen: PKCS#8 for `-m PKCS8`, PKCS#1 for `-m PEM`.
fn generate(form: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "rsa", "-b", "2048", "-N", "", "-m", form, "-f"])
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    std::fs::read_to_string(path).unwrap()
}

/// A key for all tests of this process.
pub(in crate::cloud::nebius) fn pem() -> &'static str {
    static PEM: OnceLock<String> = OnceLock::new();
    PEM.get_or_init(|| generate("PKCS8"))
}

pub(in crate::cloud::nebius) fn key() -> ServiceKey {
    ServiceKey {
        account: "serviceaccount-e00sa".to_owned(),
        id: "publickey-e00key".to_owned(),
        private: Secret::new(pem().to_owned()),
    }
}

/// Checks the signature and returns header and claims.
pub(in crate::cloud::nebius) fn verified(statement: &str) -> (Value, Value) {
    let (signed, signature) = statement.rsplit_once('.').unwrap();
    let pair = key_pair(pem()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public().as_ref());
    public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let read = |part: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    (read(header), read(claims))
}

#[test]
fn the_statement_is_signed_and_short_lived() {
    let now: Timestamp = "2026-11-30T09:00:00Z".parse().unwrap();
    let (header, claims) = verified(&sign(&key(), now).unwrap());
    assert_eq!(header, json!({"alg": "RS256", "typ": "JWT", "kid": "publickey-e00key"}));
    assert_eq!(
        (&claims["iss"], &claims["sub"]),
        (&json!("serviceaccount-e00sa"), &json!("serviceaccount-e00sa"))
    );
    assert_eq!(claims["aud"], "token-service.iam.new.nebiuscloud.net");
    assert_eq!(claims["exp"].as_i64().unwrap(), now.as_second() + 60);
    assert!(claims["iat"].as_i64().unwrap() <= now.as_second());
}

#[test]
fn both_forms_of_keys_are_read_and_others_named() {
    let old = generate("PEM");
    assert!(old.contains("BEGIN RSA PRIVATE KEY"), "PKCS#1");
    assert!(key_pair(&old).is_ok());
    // As it stands in JSON and YAML: with blanks around, and with other line ends.
    assert!(key_pair(&format!("\n  {}  ", pem().replace('\n', "\r\n"))).is_ok());
    for (odd, part) in [
        ("", "not PEM"),
        ("-----BEGIN PRIVATE KEY-----\n*\n-----END PRIVATE KEY-----", "not PEM"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "not an RSA key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----", "PKCS#8 or PKCS#1"),
        ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----", "encrypted"),
    ] {
        let error = key_pair(odd).err().unwrap();
        assert!(error.contains(part), "{odd}: {error}");
    }
}
