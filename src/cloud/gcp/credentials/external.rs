//! Workload identity federation: a token of the outside world stands for a service account, and no key exists
//! (google.aip.dev/auth/4117).
//!
//! The file says where the token comes from and where it is sent. It may come from somebody else (a repository, a pipeline), so
//! what it names is bounded: tokens go to Google or to this computer only, and a command runs only when the user said so.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use url::{Host, Url};

use super::{FileError, part, universe};
use crate::http::address::is_metadata;
use crate::http::client::is_loopback;
use crate::model::secret::Secret;

/// Where the Security Token Service is.
pub const STS: &str = "https://sts.googleapis.com";

/// Where IAM Credentials is.
pub const IAM_CREDENTIALS: &str = "https://iamcredentials.googleapis.com";

/// The usual type of outside tokens.
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

/// How long a command may take, by default and at most (google.aip.dev/auth/4117).
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST_COMMAND: Duration = Duration::from_secs(120);

/// A federation.
#[derive(Clone)]
pub struct External {
    pub(super) audience: String,
    pub(super) token_type: String,
    pub(super) token_url: String,
    pub(super) impersonation_url: Option<String>,
    pub(super) source: Source,
}

/// Where the token of the outside world comes from.
#[derive(Clone)]
pub enum Source {
    /// A file that somebody keeps fresh.
    File {
        /// Where it is.
        path: PathBuf,
        /// What is in it.
        format: Format,
    },
    /// A local or metadata server, or a token service of the platform.
    Address {
        /// Its address.
        url: String,
        /// Headers that it asks for; they may be secret.
        headers: Vec<(String, Secret)>,
        /// What it answers.
        format: Format,
    },
    /// A command that prints it.
    Command {
        /// The command line.
        command: String,
        /// How long it may take.
        timeout: Duration,
        /// Where it keeps what it printed.
        output_file: Option<PathBuf>,
    },
}

/// How a token is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// The token and nothing else.
    Text,
    /// A JSON object with the token under this name.
    Json(String),
}

/// Shows neither headers nor commands.
impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("External").field("audience", &self.audience).finish_non_exhaustive()
    }
}

/// Shows neither headers nor commands.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::File { .. } => "File",
            Source::Address { .. } => "Address",
            Source::Command { .. } => "Command",
        })
    }
}

impl External {
    /// Returns the federation of a service account with a workload identity provider
    /// (`projects/N/locations/global/workloadIdentityPools/POOL/providers/PROVIDER`), for accounts without a file. Tokens go to
    /// Google, or below `endpoint` where the account has one of its own.
    pub fn new(provider: &str, service_account: &str, source: Source, endpoint: Option<&str>) -> Self {
        let provider = provider.trim().trim_start_matches("//iam.googleapis.com/").trim_matches('/');
        let (sts, iam) = match endpoint {
            None => (STS.to_owned(), IAM_CREDENTIALS.to_owned()),
            Some(base) => (format!("{base}/sts"), format!("{base}/iamcredentials")),
        };
        let account = crate::http::address::segment(service_account.trim()).replace("%40", "@");
        External {
            audience: format!("//iam.googleapis.com/{provider}"),
            token_type: JWT.to_owned(),
            token_url: format!("{sts}/v1/token"),
            impersonation_url: Some(format!(
                "{iam}/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
            )),
            source,
        }
    }

    pub(super) fn read(file: &Value, folder: Option<&Path>, allow_commands: bool) -> Result<Self, FileError> {
        universe(file)?;
        let text = |name: &'static str| part(file, name).map(str::to_owned).ok_or(FileError::Lacks(name));
        let token_url = text("token_url")?;
        google("token_url", &token_url)?;
        let impersonation_url = part(file, "service_account_impersonation_url").map(str::to_owned);
        if let Some(url) = &impersonation_url {
            google("service_account_impersonation_url", url)?;
        }
        Ok(External {
            audience: text("audience")?,
            token_type: text("subject_token_type")?,
            token_url,
            impersonation_url,
            source: source(file.get("credential_source"), folder, allow_commands)?,
        })
    }

    /// Returns the service account's e-mail address.
    pub(super) fn email(&self) -> Option<&str> {
        let (_, rest) = self.impersonation_url.as_deref()?.split_once("/serviceAccounts/")?;
        rest.split_once(':').map(|(email, _)| email).filter(|email| email.contains('@'))
    }

    /// Returns the project in the service account's e-mail address (`NAME@PROJECT.iam.gserviceaccount.com`).
    pub(super) fn project(&self) -> Option<&str> {
        let (_, domain) = self.email()?.split_once('@')?;
        domain.strip_suffix(".iam.gserviceaccount.com").filter(|project| !project.is_empty())
    }

    pub(super) fn hint(&self) -> String {
        match self.email() {
            Some(email) => format!("{email} (federated)"),
            None => format!("federated, provider {}", self.audience.rsplit('/').next().unwrap_or_default()),
        }
    }

    /// Tokens come and go; what lasts is who is asked for whom.
    pub(super) fn whole(&self) -> Secret {
        let account = self.impersonation_url.as_deref().unwrap_or_default();
        Secret::new(format!("{}:{account}", self.audience))
    }
}

/// Refuses an address that Google's tokens may not go to.
fn google(field: &'static str, text: &str) -> Result<(), FileError> {
    let refuse = |why: &str| Err(FileError::Address { field, why: why.to_owned() });
    let Ok(url) = Url::parse(text) else { return refuse("it is no address") };
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("it names a user");
    }
    if is_loopback(&url) && matches!(url.scheme(), "http" | "https") {
        return Ok(());
    }
    let ours = match url.host() {
        Some(Host::Domain(host)) => host == "googleapis.com" || host.ends_with(".googleapis.com"),
        _ => false,
    };
    match (url.scheme(), ours) {
        ("https", true) => Ok(()),
        (_, true) => refuse("it must be https"),
        _ => refuse("it must be an https address of googleapis.com, or one on this computer"),
    }
}

/// Refuses an address that no token may come from.
fn supplier(text: &str) -> Result<(), FileError> {
    let refuse = |why: &str| Err(FileError::Address { field: "credential_source.url", why: why.to_owned() });
    let Ok(url) = Url::parse(text) else { return refuse("it is no address") };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(&url) || is_metadata(&url) => Ok(()),
        _ => refuse("it must be https, or on this computer, or the metadata server"),
    }
}

fn source(source: Option<&Value>, folder: Option<&Path>, allow_commands: bool) -> Result<Source, FileError> {
    let Some(source) = source else { return Err(FileError::Lacks("credential_source")) };
    let whole = |path: &str| folder.map_or_else(|| PathBuf::from(path), |folder| folder.join(path));
    if let Some(path) = part(source, "file") {
        return Ok(Source::File { path: whole(path), format: format(source)? });
    }
    if part(source, "environment_id").is_some() {
        return Err(FileError::Source);
    }
    if let Some(url) = part(source, "url") {
        supplier(url)?;
        let headers = source.get("headers").and_then(Value::as_object).into_iter().flatten();
        let headers = headers
            .filter_map(|(name, value)| Some((name.clone(), Secret::new(value.as_str()?.to_owned()))))
            .collect();
        return Ok(Source::Address { url: url.to_owned(), headers, format: format(source)? });
    }
    let Some(executable) = source.get("executable") else { return Err(FileError::Source) };
    let command = part(executable, "command").ok_or(FileError::Lacks("command"))?.to_owned();
    if !allow_commands {
        return Err(FileError::Command);
    }
    let millis = executable.get("timeout_millis").and_then(Value::as_u64);
    let timeout = millis.map_or(COMMAND_TIMEOUT, Duration::from_millis).min(LONGEST_COMMAND);
    Ok(Source::Command { command, timeout, output_file: part(executable, "output_file").map(whole) })
}

fn format(source: &Value) -> Result<Format, FileError> {
    let Some(format) = source.get("format").filter(|format| !format.is_null()) else {
        return Ok(Format::Text);
    };
    match part(format, "type").unwrap_or("text") {
        "text" => Ok(Format::Text),
        "json" => part(format, "subject_token_field_name")
            .map(|name| Format::Json(name.to_owned()))
            .ok_or(FileError::Lacks("subject_token_field_name")),
        _ => Err(FileError::Source),
    }
}
