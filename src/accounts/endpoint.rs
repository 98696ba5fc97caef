//! Base URLs: which are taken, and which credentials they may get.
//!
//! An endpoint of somebody's choosing is a place that keys are sent to. So it must be https, or http to this machine itself,
//! and unless it is on loopback it gets only credentials that stand in the same place as itself: a variable alone must not
//! be able to carry off the key in the config file, nor the other way round.

use url::Url;

use super::error::AccountsError;
use super::sources::Place;
use crate::http::client::is_loopback;
use crate::model::account::AccountId;

/// Where a cloud is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The base URL without a slash at the end.
    pub base: String,
    /// Whether it is this machine itself.
    pub loopback: bool,
    /// Where it was given; none for the cloud's own.
    pub given: Option<Place>,
}

impl Endpoint {
    /// Returns the cloud's own endpoint.
    pub fn official(base: &str) -> Self {
        Endpoint { base: base.to_owned(), loopback: false, given: None }
    }

    /// Returns the endpoint that `text` names. `official` is the cloud's own: naming that one changes nothing. A slash at
    /// the end goes, and so does one of `tails`, parts that belong to the paths below the base but are often copied with it.
    pub fn parse(text: &str, given: Place, official: &str, tails: &[&str]) -> Result<Self, AccountsError> {
        let wrong = |why| AccountsError::Endpoint { place: given.to_string(), why };
        let url =
            Url::parse(text.trim()).map_err(|_| wrong("is not a URL such as https://api.example.com"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("must not hold a user name or password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("must not hold `?` or `#`"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(wrong("names no host"));
        }
        let loopback = is_loopback(&url);
        match url.scheme() {
            "https" => {}
            "http" if loopback => {}
            "http" => return Err(wrong("must be https; http is only for loopback addresses")),
            _ => return Err(wrong("must be https")),
        }
        // Only the path is cut: a host may be called like a tail.
        let mut path = url.path().trim_end_matches('/');
        for tail in tails {
            path = path.strip_suffix(tail).unwrap_or(path).trim_end_matches('/');
        }
        let base = format!("{}{path}", url[..url::Position::BeforePath].trim_end_matches('/'));
        if base == official {
            return Ok(Endpoint::official(official));
        }
        Ok(Endpoint { base, loopback, given: Some(given) })
    }

    /// Refuses credentials from another place than the endpoint's own.
    pub fn admit(&self, account: &AccountId, credentials: &Place) -> Result<(), AccountsError> {
        match &self.given {
            Some(given) if !self.loopback && given.group() != credentials.group() => {
                Err(AccountsError::Elsewhere {
                    account: account.clone(),
                    credentials: credentials.to_string(),
                    endpoint: self.base.clone(),
                    given: given.to_string(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns the base URL if it is not the cloud's own: every command says so.
    pub fn elsewhere(&self) -> Option<String> {
        self.given.as_ref().map(|_| self.base.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::env::GPUPROV_RUNPOD_ENDPOINT;

    const OFFICIAL: &str = "https://api.runpod.io";

    fn parse(text: &str) -> Result<Endpoint, AccountsError> {
        Endpoint::parse(text, Place::Variable(GPUPROV_RUNPOD_ENDPOINT.name), OFFICIAL, &["/v2"])
    }

    #[test]
    fn what_is_taken() {
        for (text, base, loopback) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", true),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080", true),
            ("http://127.9.9.9:1/v2", "http://127.9.9.9:1", true),
            ("http://localhost:1/v2/", "http://localhost:1", true),
            ("http://[::1]:1", "http://[::1]:1", true),
            ("https://127.0.0.1:1", "https://127.0.0.1:1", true),
            (" https://Proxy.Example:443/runpod/v2 ", "https://proxy.example/runpod", false),
            ("https://v2", "https://v2", false),
            ("https://v2/v2/v2", "https://v2/v2", false),
            ("https://proxy.example/@a", "https://proxy.example/@a", false),
            ("https://proxy.example:8443", "https://proxy.example:8443", false),
        ] {
            let endpoint = parse(text).unwrap();
            assert_eq!((endpoint.base.as_str(), endpoint.loopback), (base, loopback), "{text}");
            assert_eq!(endpoint.elsewhere().as_deref(), Some(base), "{text}");
        }
        for text in ["https://api.runpod.io", "https://api.runpod.io/", "https://API.runpod.io/v2/"] {
            assert_eq!(parse(text).unwrap(), Endpoint::official(OFFICIAL), "{text}");
        }
    }

    #[test]
    fn what_is_refused_without_being_shown() {
        for text in [
            "",
            "api.s3cret.example",
            "//s3cret.example",
            "http://s3cret.example",
            "http://10.0.0.1",
            "http://127.0.0.1.s3cret.example",
            "http://localhost.s3cret.example",
            "http://0.0.0.0:1",
            "ftp://127.0.0.1",
            "file:///s3cret",
            "unix:/s3cret",
            "https://ana:s3cret@proxy.example",
            "https://s3cret@proxy.example",
            "https://proxy.example?key=s3cret",
            "https://proxy.example#s3cret",
            "https://",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with("the endpoint in GPUPROV_RUNPOD_ENDPOINT "), "{text}: {error}");
            assert!(!error.contains("s3cret"), "{text}: {error}");
        }
    }

    #[test]
    fn which_credentials_go_where() {
        let account: AccountId = "runpod/default".parse().unwrap();
        let variable = || Place::Variable("RUNPOD_API_KEY");
        let table = |name: &str| Place::Table { file: "/c.toml".into(), table: name.to_owned() };
        let own = || Place::OwnFile("/home/ana/.runpod/config.toml".into());
        let admits = |text: &str, given: Place, credentials: Place| {
            Endpoint::parse(text, given, OFFICIAL, &["/v2"]).unwrap().admit(&account, &credentials).is_ok()
        };
        let away = "https://proxy.example";
        assert!(admits(away, Place::Variable("GPUPROV_RUNPOD_ENDPOINT"), variable()));
        assert!(admits(away, table("runpod"), table("runpod")));
        for (given, credentials) in [
            (variable(), table("runpod")),
            (variable(), own()),
            (table("runpod"), variable()),
            (table("runpod"), own()),
            (table("runpod"), table("account.\"runpod/lab\"")),
        ] {
            assert!(!admits(away, given.clone(), credentials.clone()), "{given} {credentials}");
            assert!(admits("http://127.0.0.1:1", given.clone(), credentials.clone()));
            assert!(admits("https://api.runpod.io/v2", given, credentials));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived_and_only_loopback_goes_without_tls(text in "(https?://)?(\\PC{0,40}|[a-z0-9.:/v@\\[\\]]{0,20})") {
            if let Ok(endpoint) = parse(&text) {
                let url = Url::parse(&endpoint.base).unwrap();
                proptest::prop_assert!(url.scheme() == "https" || endpoint.loopback);
                proptest::prop_assert_eq!(is_loopback(&url), endpoint.loopback);
                proptest::prop_assert!(!endpoint.base.ends_with('/') && url.username().is_empty());
                proptest::prop_assert_eq!(parse(&endpoint.base).unwrap().loopback, endpoint.loopback);
            }
        }
    }
}
