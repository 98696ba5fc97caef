//! Signed JSON web tokens (RFC 7519, RS256) for the clouds that take them: keys of service accounts, and an OIDC
//! issuer of somebody else's whose tokens a cloud was told to trust.
//!
//! There is one RSA key pair for the whole process, made by `ssh-keygen` when it is first needed. Whose key it plays
//! is said by the `kid` and the `iss` of a token, never by the key alone. Times in tokens are those of the wall
//! clock, also where the sandbox goes by steps.

use std::io;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Map, Value, json};

use super::lock;

/// How far two clocks may be apart, in seconds.
const LEEWAY: i64 = 30;

static SHARED: Mutex<Option<Arc<RsaKey>>> = Mutex::new(None);

/// The key pair.
#[derive(Debug)]
pub(super) struct RsaKey {
    pem: String,
    pair: RsaKeyPair,
}

/// A token whose signature is right: its two JSON parts.
#[derive(Debug)]
pub(super) struct Jwt {
    /// The header: `alg`, `kid`.
    pub(super) header: Map<String, Value>,
    /// The claims: `iss`, `sub`, `aud`, `iat`, `exp`.
    pub(super) claims: Map<String, Value>,
}

impl RsaKey {
    /// The process's key pair; the first call takes a moment.
    ///
    /// # Errors
    ///
    /// When `ssh-keygen` cannot be run.
    pub(super) fn shared() -> io::Result<Arc<RsaKey>> {
        let mut slot = lock(&SHARED);
        if let Some(key) = slot.as_ref() {
            return Ok(Arc::clone(key));
        }
        let key = Arc::new(RsaKey::make()?);
        *slot = Some(Arc::clone(&key));
        Ok(key)
    }

    fn make() -> io::Result<RsaKey> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("key");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "rsa", "-b", "2048", "-m", "PKCS8", "-N", "", "-C", "", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if !made.success() {
            return Err(io::Error::other("ssh-keygen made no RSA key"));
        }
        RsaKey::read(std::fs::read_to_string(&file)?)
    }

    fn read(pem: String) -> io::Result<RsaKey> {
        let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        let der = STANDARD.decode(body).map_err(io::Error::other)?;
        let pair = RsaKeyPair::from_pkcs8(&der).map_err(|rejected| io::Error::other(rejected.to_string()))?;
        Ok(RsaKey { pem, pair })
    }

    /// The private key as PKCS#8 PEM, as it stands in key files.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// A token with these claims.
    pub(super) fn sign(&self, kid: &str, claims: &Value) -> io::Result<String> {
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": kid});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&header), part(claims));
        let mut signature = vec![0; self.pair.public().modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
            .map_err(|_| io::Error::other("the RSA key signs nothing"))?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The parts of a token that this key has signed.
    pub(super) fn verify(&self, token: &str) -> Result<Jwt, &'static str> {
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("token is no JWT of three parts");
        };
        let object = |part: &str| -> Option<Map<String, Value>> {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
        };
        let jwt = Jwt {
            header: object(header).ok_or("token header is unreadable")?,
            claims: object(claims).ok_or("token claims are unreadable")?,
        };
        if jwt.header.get("alg").and_then(Value::as_str) != Some("RS256") {
            return Err("token is not signed with RS256");
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| "token signature is unreadable")?;
        let text = &token[..header.len() + 1 + claims.len()];
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, self.pair.public_key())
            .verify(text.as_bytes(), &signature)
            .map_err(|_| "token signature does not verify")?;
        Ok(jwt)
    }
}

impl Jwt {
    /// A claim or header field that is text, empty when it is absent.
    pub(super) fn claim(&self, name: &str) -> &str {
        self.claims.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The `kid` of the header, empty when it is absent.
    pub(super) fn kid(&self) -> &str {
        self.header.get("kid").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether `aud` is this audience, or a list that has it.
    pub(super) fn is_for(&self, audience: &str) -> bool {
        match self.claims.get("aud") {
            Some(Value::String(one)) => one == audience,
            Some(Value::Array(many)) => many.iter().any(|one| one.as_str() == Some(audience)),
            _ => false,
        }
    }

    /// Whether it is valid now and lives no longer than `longest` seconds.
    pub(super) fn in_time(&self, longest: i64) -> Result<(), &'static str> {
        let time = |name| self.claims.get(name).and_then(Value::as_i64);
        let now = Timestamp::now().as_second();
        let (Some(issued), Some(expires)) = (time("iat"), time("exp")) else {
            return Err("token has no iat or no exp");
        };
        if expires + LEEWAY <= now {
            return Err("token is expired");
        }
        if issued > now + LEEWAY {
            return Err("token is issued in the future");
        }
        if expires - issued > longest {
            return Err("token lives too long");
        }
        Ok(())
    }
}

/// What is wrong with a token of an OIDC issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OidcFlaw {
    /// It expired an hour ago.
    Expired,
    /// It is for somebody else.
    Audience,
    /// Its signature does not verify.
    Signature,
    /// It speaks of another subject.
    Subject,
    /// It is of another issuer.
    Issuer,
}

/// An OIDC issuer outside of the cloud, such as a CI service, with one subject that the cloud knows.
#[derive(Debug, Clone)]
pub(super) struct Issuer {
    /// Its URL, the `iss` of its tokens.
    pub(super) url: String,
    /// The `kid` of its key.
    pub(super) kid: String,
    /// The subject, the `sub` of its tokens.
    pub(super) subject: String,
    /// Who its tokens are for.
    pub(super) audience: String,
}

impl Issuer {
    /// Longest life of a token that is accepted, in seconds.
    const LONGEST: i64 = 24 * 3600;

    /// A token of ten minutes, right but for what `flaw` says.
    ///
    /// # Errors
    ///
    /// When there is no RSA key to be had.
    pub(super) fn token(&self, flaw: Option<OidcFlaw>) -> io::Result<String> {
        let now = Timestamp::now().as_second();
        let issued = if flaw == Some(OidcFlaw::Expired) { now - 4200 } else { now };
        let unless = |bad: OidcFlaw, right: &str, wrong: &str| {
            if flaw == Some(bad) { wrong.to_owned() } else { right.to_owned() }
        };
        let claims = json!({
            "iss": unless(OidcFlaw::Issuer, &self.url, "https://issuer.example.net"),
            "sub": unless(OidcFlaw::Subject, &self.subject, "repo:somebody/else:ref:refs/heads/main"),
            "aud": unless(OidcFlaw::Audience, &self.audience, "https://audience.example.net"),
            "iat": issued, "nbf": issued, "exp": issued + 600,
        });
        let mut token = RsaKey::shared()?.sign(&self.kid, &claims)?;
        if flaw == Some(OidcFlaw::Signature) {
            let end = token.split_off(token.len() - 8);
            token.push_str(if end == "AAAAAAAA" { "BBBBBBBB" } else { "AAAAAAAA" });
        }
        Ok(token)
    }

    /// Judges a token as a cloud does that trusts this issuer and this subject.
    pub(super) fn check(&self, token: &str) -> Result<(), &'static str> {
        let key = RsaKey::shared().map_err(|_| "the sandbox has no RSA key")?;
        let jwt = key.verify(token)?;
        if jwt.kid() != self.kid {
            return Err("token is signed with an unknown key");
        }
        if jwt.claim("iss") != self.url {
            return Err("token is of an unknown issuer");
        }
        jwt.in_time(Self::LONGEST)?;
        if !jwt.is_for(&self.audience) {
            return Err("token is for another audience");
        }
        if jwt.claim("sub") != self.subject {
            return Err("token is of an unknown subject");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer() -> Issuer {
        Issuer {
            url: "https://ci.example.com".into(),
            kid: "ci-1".into(),
            subject: "repo:team/llama:ref:refs/heads/main".into(),
            audience: "https://cloud.example.com".into(),
        }
    }

    #[test]
    fn every_flaw_is_found() {
        let issuer = issuer();
        issuer.check(&issuer.token(None).unwrap()).unwrap();
        for (flaw, word) in [
            (OidcFlaw::Expired, "expired"),
            (OidcFlaw::Audience, "audience"),
            (OidcFlaw::Signature, "signature"),
            (OidcFlaw::Subject, "subject"),
            (OidcFlaw::Issuer, "issuer"),
        ] {
            let refused = issuer.check(&issuer.token(Some(flaw)).unwrap()).unwrap_err();
            assert!(refused.contains(word), "{flaw:?}: {refused}");
        }
        assert!(issuer.check("not.a.token").is_err());
        assert!(issuer.check("x").is_err());
    }

    #[test]
    fn there_is_one_key() {
        let key = RsaKey::shared().unwrap();
        assert!(key.pem().starts_with("-----BEGIN PRIVATE KEY-----"));
        assert_eq!(key.pem(), RsaKey::shared().unwrap().pem());
    }

    #[test]
    fn long_lives_are_refused() {
        let key = RsaKey::shared().unwrap();
        let now = Timestamp::now().as_second();
        let token = key.sign("k", &json!({"iat": now, "exp": now + 4000})).unwrap();
        let jwt = key.verify(&token).unwrap();
        assert!(jwt.in_time(3600).is_err());
        assert!(jwt.in_time(4000).is_ok());
    }
}
