//! The environment: every variable that gpuprov reads, declared once, and the one place where it is read.
//!
//! An empty value counts as unset. A value that is not UTF-8 counts as unset for [`Env::get`]; [`Env::unreadable`] names
//! such variables, so that a command can refuse to start instead of going on without them. Folders are taken byte for byte
//! ([`Env::path`]).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

/// A variable that gpuprov reads.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it does, for the reference.
    pub doc: &'static str,
    /// Whether its value is secret and must not be shown.
    pub secret: bool,
}

macro_rules! variables {
    ($($(#[$secret:ident])? $name:ident: $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub const $name: Variable =
                Variable { name: stringify!($name), doc: $doc, secret: variables!(@ $($secret)?) };
        )*

        /// Every variable that gpuprov reads.
        pub const ALL: &[&Variable] = &[$(&$name),*];
    };
    (@ secret) => { true };
    (@) => { false };
}

variables! {
    GPUPROV_CONFIG: "Config file; `$XDG_CONFIG_HOME/gpuprov/config.toml` if unset, else `~/.config/gpuprov/config.toml`.";
    GPUPROV_STATE_DIR: "What must not be lost: installation id, records of machines, audit log, switches; `$XDG_STATE_HOME/gpuprov` if unset, else `~/.local/state/gpuprov`. Must be given when HOME is not set.";
    GPUPROV_DATA_DIR: "Sealed accounts and their key; `$XDG_DATA_HOME/gpuprov` if unset, else `~/.local/share/gpuprov`.";
    GPUPROV_CACHE_DIR: "Access tokens and price catalogues, may be deleted at any time; `$XDG_CACHE_HOME/gpuprov` if unset, else `~/.cache/gpuprov`.";
    GPUPROV_INSTALLATION: "Installation id, 1 to 40 of a-z, 0-9 and dash, in place of the one in the state directory.";
    GPUPROV_SANDBOX: "`1` is as if every command had `--sandbox`.";
    GPUPROV_LOG: "Filter for gpuprov's own log lines, in the syntax of `RUST_LOG`.";
    GPUPROV_RUNPOD_ENDPOINT: "Another base URL for RunPod: https, or http to a loopback address.";
    GPUPROV_VAST_ENDPOINT: "Another base URL for Vast: https, or http to a loopback address.";
    GPUPROV_VERDA_ENDPOINT: "Another base URL for Verda: https, or http to a loopback address.";
    GPUPROV_GCP_ENDPOINT: "Another base URL for Google Cloud: https, or http to a loopback address.";
    GPUPROV_NEBIUS_ENDPOINT: "Another base URL for Nebius: https, or http to a loopback address.";
    #[secret] RUNPOD_API_KEY: "API key of the account `runpod/default`.";
    #[secret] VAST_API_KEY: "API key of the account `vast/default`.";
    VERDA_CLIENT_ID: "Client id of the account `verda/default`.";
    #[secret] VERDA_CLIENT_SECRET: "Client secret of the account `verda/default`.";
    VERDA_PROFILE: "Profile in `~/.verda/credentials` that the account `verda/default` takes.";
    GOOGLE_APPLICATION_CREDENTIALS: "Credentials file of the account `gcp/default`.";
    GOOGLE_CLOUD_PROJECT: "Project of the account `gcp/default`.";
    GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES: "`1` lets a Google credentials file name a command that gives the token.";
    #[secret] NEBIUS_IAM_TOKEN: "Access token of the account `nebius/default`.";
    NEBIUS_TENANT_ID: "Tenant of the account `nebius/default`.";
    NEBIUS_PROFILE: "Profile of the nebius CLI that the account `nebius/default` takes.";
    ACTIONS_ID_TOKEN_REQUEST_URL: "Where a GitHub Actions job gets tokens that say who it is, for accounts connected with `--token-github`; GitHub sets it.";
    #[secret] ACTIONS_ID_TOKEN_REQUEST_TOKEN: "What the job asks for them with; GitHub sets it.";
    HOME: "The home folder.";
    XDG_CONFIG_HOME: "Where configuration lies; a relative path is ignored.";
    XDG_STATE_HOME: "Where state lies; a relative path is ignored.";
    XDG_DATA_HOME: "Where data lies; a relative path is ignored.";
    XDG_CACHE_HOME: "Where caches lie; a relative path is ignored.";
    SSH_AUTH_SOCK: "The socket of the ssh agent.";
    PATH: "Where `ssh` and `ssh-keygen` are looked for.";
    TERM: "`dumb` turns colour and spinners off.";
    NO_COLOR: "Any value turns colour off.";
    HTTPS_PROXY: "Proxy for requests to the clouds, also in lower case; a loopback address never goes through a proxy.";
    NO_PROXY: "Hosts that are reached without the proxy, also in lower case.";
    SSL_CERT_FILE: "File of root certificates in place of the system's.";
    SSL_CERT_DIR: "Folder of root certificates in place of the system's.";
}

/// A captured environment.
#[derive(Clone, Default)]
pub struct Env(BTreeMap<OsString, OsString>);

impl Env {
    /// Reads the environment of this process. Only `cli` calls it, once.
    pub fn capture() -> Self {
        Env(std::env::vars_os().collect())
    }

    /// Returns an environment of these pairs.
    pub fn of<K: Into<OsString>, V: Into<OsString>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Env(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Returns this environment with `variable` set.
    pub fn with(mut self, variable: &Variable, value: impl Into<OsString>) -> Self {
        self.0.insert(variable.name.into(), value.into());
        self
    }

    /// Returns this environment with `variable` unset.
    pub fn without(mut self, variable: &Variable) -> Self {
        self.0.remove(OsStr::new(variable.name));
        self
    }

    /// Returns the value; none if it is unset, empty or not UTF-8.
    pub fn get(&self, variable: &Variable) -> Option<&str> {
        self.os(variable)?.to_str()
    }

    /// Returns the value as a path; none if it is unset or empty.
    pub fn path(&self, variable: &Variable) -> Option<PathBuf> {
        self.os(variable).map(PathBuf::from)
    }

    /// Whether the variable holds anything but nothing and `0`.
    pub fn is_on(&self, variable: &Variable) -> bool {
        self.os(variable).is_some_and(|value| value != "0")
    }

    /// Returns the value of any variable, also an undeclared one, for `--env NAME`. An empty value is a value here; one that
    /// is not UTF-8 is none.
    pub fn raw(&self, name: &str) -> Option<String> {
        self.0.get(OsStr::new(name))?.to_str().map(str::to_owned)
    }

    /// Returns the declared variables whose values are not UTF-8, folders left out.
    pub fn unreadable(&self) -> Vec<&'static str> {
        const FOLDERS: [&Variable; 10] = [
            &GPUPROV_CONFIG,
            &GPUPROV_STATE_DIR,
            &GPUPROV_DATA_DIR,
            &GPUPROV_CACHE_DIR,
            &HOME,
            &XDG_CONFIG_HOME,
            &XDG_STATE_HOME,
            &XDG_DATA_HOME,
            &XDG_CACHE_HOME,
            &PATH,
        ];
        ALL.iter()
            .filter(|variable| !FOLDERS.contains(variable))
            .filter(|variable| self.os(variable).is_some_and(|value| value.to_str().is_none()))
            .map(|variable| variable.name)
            .collect()
    }

    fn os(&self, variable: &Variable) -> Option<&OsStr> {
        self.0.get(OsStr::new(variable.name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Env({} variables)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn empty_is_unset_and_no_value_is_shown() {
        let env = Env::of([("RUNPOD_API_KEY", "rpa_secret"), ("VAST_API_KEY", ""), ("X", "")]);
        assert_eq!(env.get(&RUNPOD_API_KEY), Some("rpa_secret"));
        assert_eq!(env.get(&VAST_API_KEY), None);
        assert_eq!(env.raw("X").as_deref(), Some(""));
        assert_eq!(env.raw("Y"), None);
        assert!(!format!("{env:?}").contains("rpa_secret"));
        assert!(Env::of([("GPUPROV_SANDBOX", "1")]).is_on(&GPUPROV_SANDBOX));
        assert!(!Env::of([("GPUPROV_SANDBOX", "0")]).is_on(&GPUPROV_SANDBOX));
    }

    #[test]
    fn what_is_not_utf8_is_named_but_folders_are_taken() {
        let odd = OsString::from_vec(vec![b'/', 0xff]);
        let env = Env::of([("RUNPOD_API_KEY", odd.clone()), ("HOME", odd.clone())]);
        assert_eq!(env.get(&RUNPOD_API_KEY), None);
        assert_eq!(env.path(&HOME), Some(PathBuf::from(odd)));
        assert_eq!(env.unreadable(), ["RUNPOD_API_KEY"]);
    }

    #[test]
    fn secret_variables_are_those_that_no_program_inherits() {
        let secret: Vec<&str> =
            ALL.iter().filter(|variable| variable.secret).map(|variable| variable.name).collect();
        assert_eq!(secret, crate::model::secret::VARIABLES);
    }

    #[test]
    fn every_variable_is_declared_once_with_a_sentence() {
        let mut names: Vec<&str> = ALL.iter().map(|variable| variable.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|variable| variable.doc.ends_with('.')));
    }
}
