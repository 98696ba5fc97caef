//! The nebius CLI's own files: profiles in `~/.nebius/config.yaml`, tokens of people's logins in `~/.nebius/credentials.yaml`
//! (github.com/nebius/pysdk, `nebius/aio/cli_config.py`; github.com/nebius/gosdk, `auth/file_cache.go`).

use std::path::Path;

use serde_norway::Value;

use super::credentials::{Credentials, FileError, Login, TokenSource, in_key_file, service_key};
use crate::model::secret::Secret;
use crate::model::words::one_line;

/// No file of the CLI's has more bytes.
const MOST_BYTES: usize = 256 * 1024;

/// The domain that a profile may name.
const DOMAIN: &str = "api.nebius.cloud";

/// What a profile says.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// How tokens are got.
    pub credentials: Credentials,
    /// The tenant, where it is named.
    pub tenant: Option<String>,
}

/// Returns the profile of the CLI's `config.yaml`: the one called `named`, else the one that `default` names, else the only
/// one; none if there is none. `cache` is the CLI's `credentials.yaml`; `read` reads a file that the profile names.
pub fn in_config(
    text: &str,
    named: Option<&str>,
    cache: &Path,
    read: &dyn Fn(&str) -> Result<String, String>,
    path: &dyn Fn(&str) -> std::path::PathBuf,
) -> Result<Option<Profile>, FileError> {
    let file = yaml(text)?;
    let profiles: Vec<(String, &Value)> = match file.get("profiles").and_then(Value::as_mapping) {
        Some(profiles) => {
            profiles.iter().filter_map(|(name, profile)| Some((name.as_str()?.to_owned(), profile))).collect()
        }
        None => Vec::new(),
    };
    let default = file.get("default").and_then(Value::as_str);
    let chosen = match (named.or(default), profiles.as_slice()) {
        (Some(name), _) => {
            let known = profiles.iter().find(|(known, _)| known == name);
            Some(known.ok_or_else(|| FileError::NoProfile(one_line(name, 40)))?)
        }
        (None, []) => None,
        (None, [only]) => Some(only),
        (None, _) => return Err(FileError::WhichProfile),
    };
    let Some((name, profile)) = chosen else { return Ok(None) };
    let get = |key: &str| match profile.get(key) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let domain = get("endpoint");
    let domain = domain.trim_start_matches("https://").trim_end_matches('/').trim_end_matches(":443");
    if !domain.is_empty() && !domain.eq_ignore_ascii_case(DOMAIN) {
        return Err(FileError::Content(format!(
            "its profile `{}` names another endpoint than Nebius's; set GPUPROV_NEBIUS_ENDPOINT and NEBIUS_IAM_TOKEN together",
            one_line(name, 40)
        )));
    }
    let mut credentials = credentials(name, &get, cache, read, path)?;
    let acts_as = get("impersonate-service-account-id");
    if !acts_as.is_empty() {
        credentials = Credentials::Impersonated { account: acts_as, by: Box::new(credentials) };
    }
    let tenant = Some(get("tenant-id")).filter(|tenant| !tenant.is_empty());
    Ok(Some(Profile { name: name.clone(), credentials, tenant }))
}

/// Returns a profile's credentials, in the order in which the official SDK looks at its keys.
fn credentials(
    name: &str,
    get: &dyn Fn(&str) -> String,
    cache: &Path,
    read: &dyn Fn(&str) -> Result<String, String>,
    path: &dyn Fn(&str) -> std::path::PathBuf,
) -> Result<Credentials, FileError> {
    let content = |what: String| FileError::Content(format!("its profile `{}` {what}", one_line(name, 40)));
    let other = |file: &str| {
        let file = file.to_owned();
        move |why: String| FileError::Other { file, why }
    };
    let token_file = get("token-file");
    if !token_file.is_empty() {
        return Ok(Credentials::TokenFile(path(&token_file)));
    }
    if !get("token-endpoint").is_empty() {
        return Err(content("takes its token from a machine's metadata, which is not supported".to_owned()));
    }
    match get("auth-type").replace(['-', '_'], " ").to_ascii_lowercase().as_str() {
        "federation" => {
            let (endpoint, id) = (get("federation-endpoint"), get("federation-id"));
            if endpoint.is_empty() || id.is_empty() {
                return Err(content("names no federation".to_owned()));
            }
            let key = format!("federation/{endpoint}/{id}/{name}");
            Ok(Credentials::Login(Login { cache: cache.to_owned(), key, profile: name.to_owned() }))
        }
        "service account" => {
            let file = get("service-account-credentials-file-path");
            if !file.is_empty() {
                let text = read(&file).map_err(other(&file))?;
                return in_key_file(&text).map_err(|error| other(&file)(error.to_string()));
            }
            let account = get("service-account-id");
            let foreign = get("federated-subject-credentials-file-path");
            if !foreign.is_empty() {
                if account.is_empty() {
                    return Err(content("names no service account".to_owned()));
                }
                return Ok(Credentials::Federated { account, source: TokenSource::File(path(&foreign)) });
            }
            let (inline, file) = (get("private-key"), get("private-key-file-path"));
            let private = match (inline.is_empty(), file.is_empty()) {
                (false, _) => inline,
                (true, false) => read(&file).map_err(other(&file))?,
                (true, true) => return Err(content("names no private key".to_owned())),
            };
            service_key(&account, &get("public-key-id"), &private).map(Credentials::Key)
        }
        "" => Err(content("holds no credentials".to_owned())),
        unknown => Err(content(format!("logs in by `{}`, which is not known here", one_line(unknown, 40)))),
    }
}

/// Returns the token that the CLI keeps under `key`, and its end in Unix seconds; none if it keeps none there.
pub(crate) fn cached_token(text: &str, key: &str) -> Result<Option<(Secret, i64)>, FileError> {
    let file = yaml(text)?;
    let Some(entry) = file.get("tokens").and_then(|tokens| tokens.get(key)) else { return Ok(None) };
    let token = entry.get("token").and_then(Value::as_str).map(Secret::trimmed);
    let until = entry.get("expires_at").and_then(Value::as_i64);
    Ok(token.filter(|token| !token.is_empty()).zip(until))
}

fn yaml(text: &str) -> Result<Value, FileError> {
    if text.len() > MOST_BYTES {
        return Err(FileError::Yaml(": it is too large".to_owned()));
    }
    // Only the place: the text of the error could quote the file.
    serde_norway::from_str(text).map_err(|error| {
        let place = error.location();
        FileError::Yaml(
            place.map_or_else(String::new, |place| {
                format!(" (line {}, column {})", place.line(), place.column())
            }),
        )
    })
}

#[cfg(test)]
#[path = "cli_files_tests.rs"]
mod tests;
