//! The signed statement that a service account's key is exchanged for a token with (RFC 7523; github.com/nebius/api, README).

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::json;
use zeroize::Zeroizing;

use super::credentials::ServiceKey;

/// Whom the statement is for (what the official SDK sends).
const AUDIENCE: &str = "token-service.iam.new.nebiuscloud.net";

/// How long it holds, in seconds; it is used at once.
const LIVES: i64 = 60;

/// How far this computer's clock may be ahead, in seconds.
const SKEW: i64 = 5;

/// Returns the statement, signed at `now`. An error says what is wrong with the key and quotes nothing of it.
pub(crate) fn sign(key: &ServiceKey, now: Timestamp) -> Result<String, &'static str> {
    let pair = key_pair(key.private.expose())?;
    let header = json!({"alg": "RS256", "typ": "JWT", "kid": key.id});
    let claims = json!({
        "iss": key.account,
        "sub": key.account,
        "aud": AUDIENCE,
        "iat": now.as_second() - SKEW,
        "exp": now.as_second() + LIVES,
    });
    let encode = |part: &serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| "the private key does not sign")?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Reads a private key: RSA in PEM, as PKCS#8 or PKCS#1.
pub(crate) fn key_pair(pem: &str) -> Result<RsaKeyPair, &'static str> {
    let (kind, der) = decode(pem).ok_or("the private key is not PEM")?;
    let pair = match kind {
        "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&der),
        "RSA PRIVATE KEY" => RsaKeyPair::from_der(&der),
        "ENCRYPTED PRIVATE KEY" => return Err("the private key is encrypted; give it without a password"),
        _ => return Err("the private key is not an RSA key in PEM (PKCS#8 or PKCS#1)"),
    };
    pair.map_err(|_| "the private key is not an RSA key of 2048 to 4096 bits")
}

/// Returns the kind and the bytes of the first PEM block.
fn decode(pem: &str) -> Option<(&str, Zeroizing<Vec<u8>>)> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (kind, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let body: Zeroizing<String> = Zeroizing::new(body.split_whitespace().collect());
    Some((kind, Zeroizing::new(STANDARD.decode(body.as_bytes()).ok()?)))
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
pub(super) mod tests;
