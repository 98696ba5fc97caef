//! The key of a service account. It signs a token by itself that Google's services take as it is, for an hour; nobody is asked
//! (google.aip.dev/auth/4111). Whether the key still counts shows at the first request.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

use super::{FileError, SCOPE, part, universe};
use crate::http::token::Granted;
use crate::model::secret::Secret;

/// The longest life that Google takes.
const LIFE: Duration = Duration::from_secs(3600);

/// How much a token is dated back, for clocks that are a little ahead.
const BACK: i64 = 10;

/// A clock that is off by more than so many seconds is corrected by that of the last server that answered.
const SKEW: i64 = 5;

/// A service account's key.
#[derive(Clone)]
pub struct Key {
    /// The service account.
    pub email: String,
    /// The project that it belongs to.
    pub project: Option<String>,
    id: String,
    /// PKCS #8, PEM.
    private: Secret,
}

/// Shows no secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("email", &self.email).field("id", &self.id).finish_non_exhaustive()
    }
}

impl Key {
    pub(super) fn read(file: &Value) -> Result<Self, FileError> {
        universe(file)?;
        let text = |name: &'static str| part(file, name).map(str::to_owned).ok_or(FileError::Lacks(name));
        let key = Key {
            email: text("client_email")?,
            id: text("private_key_id")?,
            private: Secret::new(text("private_key")?),
            project: part(file, "project_id").map(str::to_owned),
        };
        key.pair()?;
        Ok(key)
    }

    pub(super) fn whole(&self) -> Secret {
        Secret::new(format!("{}:{}:{}", self.email, self.id, self.private.expose()))
    }

    fn pair(&self) -> Result<RsaKeyPair, FileError> {
        let text = self.private.expose();
        let (_, rest) = text.split_once("-----BEGIN PRIVATE KEY-----").ok_or(FileError::BadKey)?;
        let (body, _) = rest.split_once("-----END PRIVATE KEY-----").ok_or(FileError::BadKey)?;
        let body = Secret::new(body.split_whitespace().collect());
        let der = zeroize::Zeroizing::new(STANDARD.decode(body.expose()).map_err(|_| FileError::BadKey)?);
        RsaKeyPair::from_pkcs8(&der).map_err(|_| FileError::BadKey)
    }

    /// Signs a token that begins at `now`.
    fn sign(&self, now: Timestamp) -> Result<Secret, FileError> {
        let pair = self.pair()?;
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.id});
        let issued = now.as_second() - BACK;
        let expires = now.as_second() + LIFE.as_secs().cast_signed();
        // Either a scope or an audience, never both.
        let claims =
            json!({"iss": self.email, "sub": self.email, "scope": SCOPE, "iat": issued, "exp": expires});
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let text = format!("{}.{}", encode(&header), encode(&claims));
        let mut signature = vec![0; pair.public().modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
            .map_err(|_| FileError::BadKey)?;
        Ok(Secret::new(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

/// Makes a token. `ahead` is by how much Google's clock is ahead of ours, as far as that is known.
pub(in crate::cloud::gcp) fn grant(key: &Key, ahead: Option<SignedDuration>) -> Result<Granted, FileError> {
    let ahead = ahead.filter(|ahead| ahead.abs() > SignedDuration::from_secs(SKEW)).unwrap_or_default();
    let now = Timestamp::now().checked_add(ahead).unwrap_or_else(|_| Timestamp::now());
    Ok(Granted { token: key.sign(now)?, lives: LIFE })
}

#[cfg(test)]
pub(in crate::cloud::gcp) mod tests {
    use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    /// A key made for these tests; it opens nothing.
    pub(in crate::cloud::gcp) const PEM: &str = include_str!("../../../../tests/data/gcp-test-key.pem");

    pub(in crate::cloud::gcp) fn file() -> Value {
        json!({
            "type": "service_account", "project_id": "lab-1", "private_key_id": "0a1b2c3d4e5f", "private_key": PEM,
            "client_email": "gpuprov@lab-1.iam.gserviceaccount.com", "client_id": "1",
            "token_uri": "https://oauth2.googleapis.com/token", "universe_domain": "googleapis.com",
        })
    }

    #[test]
    fn a_token_is_signed_and_says_what_google_wants() {
        let key = Key::read(&file()).unwrap();
        let at = Timestamp::from_second(1_796_000_000).unwrap();
        let token = key.sign(at).unwrap();
        let parts: Vec<&str> = token.expose().split('.').collect();
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
        let header: Value = serde_json::from_slice(&decode(parts[0])).unwrap();
        assert_eq!(header, json!({"alg": "RS256", "typ": "JWT", "kid": "0a1b2c3d4e5f"}));
        let claims: Value = serde_json::from_slice(&decode(parts[1])).unwrap();
        let email = "gpuprov@lab-1.iam.gserviceaccount.com";
        assert_eq!(
            claims,
            json!({"iss": email, "sub": email, "scope": SCOPE, "iat": 1_795_999_990, "exp": 1_796_003_600})
        );
        let pair = key.pair().unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
        public.verify(format!("{}.{}", parts[0], parts[1]).as_bytes(), &decode(parts[2])).unwrap();
    }

    #[test]
    fn a_wrong_clock_is_corrected() {
        let key = Key::read(&file()).unwrap();
        let issued = |ahead: i64| {
            let token = grant(&key, Some(SignedDuration::from_secs(ahead))).unwrap().token;
            let claims = URL_SAFE_NO_PAD.decode(token.expose().split('.').nth(1).unwrap()).unwrap();
            serde_json::from_slice::<Value>(&claims).unwrap()["iat"].as_i64().unwrap()
                - Timestamp::now().as_second()
        };
        assert!((issued(2) + BACK).abs() <= 1);
        assert!((issued(-7200) + 7200 + BACK).abs() <= 1);
    }

    #[test]
    fn keys_that_are_none() {
        let mut broken = file();
        broken["private_key"] = json!("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
        assert_eq!(Key::read(&broken).unwrap_err(), FileError::BadKey);
        broken["private_key"] = json!(PEM.replace("PRIVATE KEY", "RSA PRIVATE KEY"));
        assert_eq!(Key::read(&broken).unwrap_err(), FileError::BadKey);
        let shown = format!("{:?}", Key::read(&file()).unwrap());
        assert!(!shown.contains("MII") && shown.contains("0a1b2c3d4e5f"), "{shown}");
    }
}
