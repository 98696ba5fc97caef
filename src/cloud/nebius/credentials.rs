//! How tokens are got, and the JSON file of a service account's key.

use std::fmt;
use std::path::PathBuf;

use ring::digest;
use serde::Deserialize;
use serde_json::Value;

use super::client::is_id;
use super::jwt;
use crate::model::secret::Secret;
use crate::model::words::one_line;

/// How tokens are got.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A token as it is; nothing renews it.
    Token(Secret),
    /// A file with a token, kept fresh by somebody else; read again whenever one is needed.
    TokenFile(PathBuf),
    /// The key of a service account.
    Key(ServiceKey),
    /// A service account that another issuer's token stands for.
    Federated {
        /// The service account's id.
        account: String,
        /// Where that token comes from.
        source: TokenSource,
    },
    /// A person's login with the nebius CLI.
    Login(Login),
    /// A service account that other credentials may act as.
    Impersonated {
        /// The service account's id.
        account: String,
        /// The other credentials.
        by: Box<Credentials>,
    },
}

/// The key of a service account.
#[derive(Clone)]
pub struct ServiceKey {
    /// The service account's id.
    pub account: String,
    /// The id of the public key.
    pub id: String,
    /// The private key: RSA in PEM.
    pub private: Secret,
}

/// Where a token of another issuer comes from (OpenID Connect).
#[derive(Clone)]
pub enum TokenSource {
    /// It is given.
    Given(Secret),
    /// A file that holds it and nothing else; read again for each exchange.
    File(PathBuf),
    /// A program that prints it, with its arguments; run for each exchange.
    Command(Vec<String>),
    /// GitHub's issuer, asked from a job (docs.github.com, actions, OpenID Connect).
    Github {
        /// Where it is asked for (`ACTIONS_ID_TOKEN_REQUEST_URL`).
        url: String,
        /// What it is asked with (`ACTIONS_ID_TOKEN_REQUEST_TOKEN`).
        token: Secret,
        /// Whom it should be for; none: GitHub's own choice.
        audience: Option<String>,
    },
}

/// A person's login with the nebius CLI, which keeps its token in a file.
#[derive(Clone, Debug)]
pub struct Login {
    /// The CLI's `credentials.yaml`.
    pub cache: PathBuf,
    /// What the token is kept under there.
    pub key: String,
    /// The profile.
    pub profile: String,
}

impl Credentials {
    /// Returns a token as credentials; none for an empty one.
    pub fn token(text: &str) -> Option<Self> {
        let token = Secret::trimmed(text);
        (!token.is_empty()).then_some(Credentials::Token(token))
    }

    /// Returns what tells the credentials apart for people.
    pub fn hint(&self) -> String {
        match self {
            Credentials::Token(token) => token.hint(),
            Credentials::TokenFile(path) => path.display().to_string(),
            Credentials::Key(ServiceKey { account, .. })
            | Credentials::Federated { account, .. }
            | Credentials::Impersonated { account, .. } => account.clone(),
            Credentials::Login(login) => format!("profile {}", login.profile),
        }
    }

    /// Returns the long-lived part as one secret, for the identity mark.
    pub fn whole(&self) -> Secret {
        Secret::new(match self {
            Credentials::Token(token) => token.expose().to_owned(),
            Credentials::TokenFile(path) => format!("file:{}", path.display()),
            Credentials::Key(ServiceKey { account, .. }) => format!("account:{account}"),
            Credentials::Federated { account, .. } => format!("account:{account}"),
            Credentials::Login(login) => login.key.clone(),
            Credentials::Impersonated { account, .. } => format!("account:{account}"),
        })
    }

    /// Returns 16 hexadecimal digits that tell ways of logging in as one account apart: a token that one of them got proves
    /// nothing of another.
    pub(crate) fn way(&self) -> String {
        let hash = digest::digest(&digest::SHA256, self.described().as_bytes());
        hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// May hold secrets.
    fn described(&self) -> String {
        match self {
            Credentials::Token(token) => format!("token {}", token.expose()),
            Credentials::TokenFile(path) => format!("file {}", path.display()),
            Credentials::Key(ServiceKey { account, id, .. }) => format!("key {account} {id}"),
            Credentials::Federated { account, source } => {
                format!("federated {account} {}", source.described())
            }
            Credentials::Login(login) => format!("login {} {}", login.cache.display(), login.key),
            Credentials::Impersonated { account, by } => format!("acts as {account} {}", by.described()),
        }
    }

    /// Whether a token that is not taken any more can be replaced.
    pub fn renews(&self) -> bool {
        !matches!(self, Credentials::Token(_))
    }

    /// Whether tokens are exchanged for something, so that they are worth keeping on disk.
    pub(crate) fn exchanges(&self) -> bool {
        !matches!(self, Credentials::Token(_) | Credentials::TokenFile(_) | Credentials::Login(_))
    }
}

impl TokenSource {
    /// May hold secrets.
    fn described(&self) -> String {
        match self {
            TokenSource::Given(token) => format!("given {}", token.expose()),
            TokenSource::File(path) => format!("file {}", path.display()),
            TokenSource::Command(words) => format!("command {words:?}"),
            TokenSource::Github { url, audience, .. } => format!("github {url} {audience:?}"),
        }
    }
}

/// Shows no secret.
impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceKey")
            .field("account", &self.account)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Shows no secret, and of a command its name alone: its arguments may hold one.
impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSource::Given(_) => f.write_str("Given(..)"),
            TokenSource::File(path) => f.debug_tuple("File").field(path).finish(),
            TokenSource::Command(words) => f.debug_tuple("Command").field(&words.first()).finish(),
            TokenSource::Github { .. } => f.write_str("Github(..)"),
        }
    }
}

/// Why a file's credentials are not used. Never quotes a value of the file that may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The JSON file is no JSON object.
    #[error("not a JSON object (line {line}, column {column})")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The YAML file cannot be read.
    #[error("not the YAML that the nebius CLI writes{0}")]
    Yaml(String),
    /// Something is missing or wrong.
    #[error("{0}")]
    Content(String),
    /// Several profiles, none of them the default, and none named.
    #[error("it holds several profiles and no `default`; name one in NEBIUS_PROFILE")]
    WhichProfile,
    /// The named profile is not there.
    #[error("it holds no profile `{0}`")]
    NoProfile(String),
    /// A file that it names.
    #[error("{file}: {why}")]
    Other {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Deserialize)]
struct KeyFile {
    #[serde(rename = "subject-credentials")]
    subject: Option<Subject>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct Subject {
    #[serde(rename = "type")]
    kind: Option<Value>,
    alg: Option<Value>,
    private_key: Option<Value>,
    kid: Option<Value>,
    iss: Option<Value>,
    sub: Option<Value>,
}

/// Returns the key in the text of a service account's credentials file (what `nebius iam auth-public-key generate` writes).
pub fn in_key_file(text: &str) -> Result<Credentials, FileError> {
    let place = |error: serde_json::Error| FileError::Json { line: error.line(), column: error.column() };
    let file: Value = serde_json::from_str(text).map_err(place)?;
    if !file.is_object() {
        return Err(FileError::Json { line: 1, column: 1 });
    }
    let content = |what: &str| FileError::Content(what.to_owned());
    let file: KeyFile = serde_json::from_value(file)
        .map_err(|_| content("its `subject-credentials` are not those of a service account"))?;
    let subject = file.subject.ok_or_else(|| content("it holds no `subject-credentials`"))?;
    let text =
        |value: &Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    if subject.kind.is_some() && !text(&subject.kind).eq_ignore_ascii_case("jwt") {
        return Err(content("its `type` is not JWT"));
    }
    if subject.alg.is_some() && text(&subject.alg) != "RS256" {
        return Err(content("its `alg` is not RS256"));
    }
    let (iss, sub) = (text(&subject.iss), text(&subject.sub));
    if !iss.is_empty() && !sub.is_empty() && iss != sub {
        return Err(content("its `iss` and `sub` differ"));
    }
    let account = if iss.is_empty() { sub } else { iss };
    service_key(&account, &text(&subject.kid), &text(&subject.private_key)).map(Credentials::Key)
}

/// Returns a key that was checked.
pub(crate) fn service_key(account: &str, id: &str, private: &str) -> Result<ServiceKey, FileError> {
    for (name, value) in [("service account id", account), ("public key id", id)] {
        if value.is_empty() {
            return Err(FileError::Content(format!("it names no {name}")));
        }
        if !is_id(value) {
            return Err(FileError::Content(format!("its {name} `{}` is none", one_line(value, 60))));
        }
    }
    jwt::key_pair(private).map_err(|why| FileError::Content(why.to_owned()))?;
    Ok(ServiceKey { account: account.to_owned(), id: id.to_owned(), private: Secret::trimmed(private) })
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
