//! Google's credentials as `clouds set` is given them, and in parts to be sealed. The names of the parts are a stored format.
//!
//! ```text
//! file, folder                 the text of a credentials file, and where it lay: relative paths in it start there
//! account, provider, subject_* a service account that tokens from outside stand for, by a workload identity provider:
//!     subject_file                 in a file
//!     subject_command              printed by a command, in the form of Google's executable sources
//!     subject_github               of the GitHub Actions job that asks
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::error::AccountsError;
use super::given::{Given, TokenFrom};
use super::kind::UNKNOWN_PARTS;
use super::seal::Parts;
use super::sources::{Look, Place};
use crate::cloud::gcp;
use crate::cloud::gcp::credentials::Credentials;
use crate::cloud::gcp::credentials::external::{External, Format, Source};
use crate::http::client::is_loopback;
use crate::model::secret::Secret;
use crate::state::env;

/// How long a command may take to print a token.
const COMMAND: Duration = Duration::from_secs(30);

/// Where Google is asked unless an account says otherwise.
const OFFICIAL: &str = gcp::DEFAULT_ENDPOINT;

/// Credentials, with what it takes to keep them.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// A credentials file.
    File {
        /// What is in it.
        credentials: Box<Credentials>,
        /// Its text.
        text: Secret,
        /// Where it lay.
        folder: Option<PathBuf>,
    },
    /// No file: a service account that tokens from outside stand for.
    Keyless {
        /// The service account's e-mail address.
        account: String,
        /// The workload identity provider.
        provider: String,
        /// Where the tokens come from.
        from: TokenFrom,
        /// The same, ready to be asked.
        source: Source,
    },
}

impl Held {
    /// Reads a credentials file's text; the error says what is wrong with it.
    pub(super) fn file(look: &Look<'_>, text: Secret, folder: Option<&Path>) -> Result<Self, String> {
        let credentials = Credentials::parse(text.expose(), folder, may_run(look));
        let credentials = credentials.map(Box::new).map_err(|error| error.to_string())?;
        Ok(Held::File { credentials, text, folder: folder.map(Path::to_owned) })
    }

    fn keyless(look: &Look<'_>, account: &str, provider: &str, from: TokenFrom) -> Result<Self, String> {
        let (account, provider) = (account.trim().to_owned(), provider.trim().to_owned());
        let source = match &from {
            TokenFrom::File(path) => Source::File { path: path.clone(), format: Format::Text },
            TokenFrom::Command(_) if !may_run(look) => {
                return Err("takes its tokens from a command; `GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1` allows that"
                    .to_owned());
            }
            TokenFrom::Command(command) => {
                Source::Command { command: command.clone(), timeout: COMMAND, output_file: None }
            }
            TokenFrom::Github => github(look, &provider)?,
        };
        Ok(Held::Keyless { account, provider, from, source })
    }

    /// Returns the credentials for an account that is asked at `endpoint`.
    pub(super) fn credentials(&self, endpoint: &str) -> Credentials {
        match self {
            Held::File { credentials, .. } => (**credentials).clone(),
            Held::Keyless { account, provider, source, .. } => {
                let elsewhere = Some(endpoint).filter(|endpoint| *endpoint != OFFICIAL);
                let external = External::new(provider, account, source.clone(), elsewhere);
                Credentials::Federated(Box::new(external))
            }
        }
    }

    /// Returns the project that they belong to, where they tell.
    pub(super) fn project(&self) -> Option<String> {
        self.credentials(OFFICIAL).project().map(str::to_owned)
    }

    /// Returns what tells them apart for people.
    pub(super) fn hint(&self) -> String {
        self.credentials(OFFICIAL).hint()
    }

    /// Returns all of it that lasts as one secret.
    pub(super) fn whole(&self) -> Secret {
        self.credentials(OFFICIAL).whole()
    }
}

fn may_run(look: &Look<'_>) -> bool {
    look.env.get(&env::GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES) == Some("1")
}

/// The tokens of the GitHub Actions job that this runs in, for the audience that a workload identity provider has unless told
/// otherwise (cloud.google.com/iam/docs/workload-identity-federation-with-deployment-pipelines).
fn github(look: &Look<'_>, provider: &str) -> Result<Source, String> {
    let variables = [&env::ACTIONS_ID_TOKEN_REQUEST_URL, &env::ACTIONS_ID_TOKEN_REQUEST_TOKEN];
    let [Some(url), Some(token)] = variables.map(|variable| look.env.get(variable)) else {
        return Err("takes the tokens of a GitHub Actions job, and ACTIONS_ID_TOKEN_REQUEST_URL is not set: the job needs \
                    `permissions: id-token: write`"
            .to_owned());
    };
    let fits = |url: &Url| url.scheme() == "https" || is_loopback(url);
    let Some(mut url) = Url::parse(url).ok().filter(fits) else {
        return Err(
            "takes the tokens of a GitHub Actions job, and ACTIONS_ID_TOKEN_REQUEST_URL is no https address"
                .to_owned(),
        );
    };
    let provider = provider.trim_start_matches("//iam.googleapis.com/").trim_matches('/');
    url.query_pairs_mut().append_pair("audience", &format!("https://iam.googleapis.com/{provider}"));
    let header = ("Authorization".to_owned(), Secret::new(format!("bearer {}", token.trim())));
    Ok(Source::Address { url: url.into(), headers: vec![header], format: Format::Json("value".to_owned()) })
}

/// Returns the credentials that the flags speak of, and how they were given; none if they speak of none.
pub(super) fn given(look: &Look<'_>, given: &Given) -> Result<Option<(Held, Place)>, AccountsError> {
    let wrong = |why: &str| Err(AccountsError::Given(why.to_owned()));
    if let Some((file, text)) = &given.credentials {
        if given.token.is_some()
            || given.service_account.is_some()
            || given.workload_identity_provider.is_some()
        {
            return wrong("--credentials does not go with --service-account and tokens from outside");
        }
        let folder = file.parent().filter(|folder| folder.is_absolute());
        let held = Held::file(look, text.clone(), folder)
            .map_err(|why| AccountsError::Given(format!("`{}`: {why}", file.display())))?;
        return Ok(Some((held, Place::Told("--credentials"))));
    }
    match (&given.service_account, &given.workload_identity_provider, &given.token) {
        (None, None, None) => Ok(None),
        (Some(account), Some(provider), Some(token)) => {
            let held = Held::keyless(look, account, provider, token.clone())
                .map_err(|why| AccountsError::Given(format!("the account {why}")))?;
            Ok(Some((held, Place::Told("the flags"))))
        }
        _ => wrong(
            "--service-account, --workload-identity-provider and one of --token-file, --token-command and --token-github go \
             together",
        ),
    }
}

/// Takes credentials apart; none if they cannot be kept.
pub(super) fn apart(held: &Held) -> Option<Parts> {
    let text = |text: &str| Secret::new(text.to_owned());
    let mut parts = Parts::new();
    let mut part = |name: &str, part: Secret| parts.insert(name.to_owned(), part);
    match held {
        Held::File { text: file, folder, .. } => {
            part("file", file.clone());
            if let Some(folder) = folder {
                part("folder", text(folder.to_str()?));
            }
        }
        Held::Keyless { account, provider, from, .. } => {
            part("account", text(account));
            part("provider", text(provider));
            match from {
                TokenFrom::File(path) => part("subject_file", text(path.to_str()?)),
                TokenFrom::Command(command) => part("subject_command", text(command)),
                TokenFrom::Github => part("subject_github", text("")),
            };
        }
    }
    Some(parts)
}

/// Puts credentials together again; the error says why not, as it stands after the account.
pub(super) fn together(look: &Look<'_>, parts: &Parts) -> Result<Held, String> {
    let part = |name: &str| parts.get(name).map(Secret::expose);
    if let Some(file) = parts.get("file") {
        let held = Held::file(look, file.clone(), part("folder").map(Path::new));
        return held.map_err(|why| format!("cannot be used: {why}"));
    }
    let (Some(account), Some(provider)) = (part("account"), part("provider")) else {
        return Err(UNKNOWN_PARTS.to_owned());
    };
    let from = match (part("subject_file"), part("subject_command"), part("subject_github")) {
        (Some(path), ..) => TokenFrom::File(path.into()),
        (_, Some(command), _) => TokenFrom::Command(command.to_owned()),
        (.., Some(_)) => TokenFrom::Github,
        _ => return Err(UNKNOWN_PARTS.to_owned()),
    };
    Held::keyless(look, account, provider, from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::config::Config;
    use crate::state::env::Env;
    use crate::state::paths::Paths;

    const PROVIDER: &str = "projects/1/locations/global/workloadIdentityPools/ci/providers/github";
    const ACCOUNT: &str = "gpuprov@my-project-1.iam.gserviceaccount.com";

    fn with_look<T>(variables: &[(&str, &str)], test: impl FnOnce(&Look<'_>) -> T) -> T {
        let env = Env::of(variables.iter().copied().chain([("HOME", "/home/ana")]));
        let paths = Paths::new(&env).unwrap();
        let config = Config::parse("", Path::new("/c.toml")).unwrap();
        test(&Look { env: &env, config: &config, paths: &paths, only_environment: false })
    }

    fn keyless(token: Option<TokenFrom>) -> Given {
        Given {
            service_account: Some(ACCOUNT.to_owned()),
            workload_identity_provider: Some(PROVIDER.to_owned()),
            token,
            ..Given::default()
        }
    }

    #[test]
    fn what_is_taken_apart_is_put_together() {
        let job = [
            ("ACTIONS_ID_TOKEN_REQUEST_URL", "https://x.example/token?api=1"),
            ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "S3CRET"),
            ("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1"),
        ];
        with_look(&job, |look| {
            for from in
                [TokenFrom::File("/t".into()), TokenFrom::Command("/bin/t x".to_owned()), TokenFrom::Github]
            {
                let (held, _) = given(look, &keyless(Some(from))).unwrap().unwrap();
                let parts = apart(&held).unwrap();
                let again = together(look, &parts).unwrap();
                assert_eq!(apart(&again).unwrap(), parts);
                assert_eq!(again.project().as_deref(), Some("my-project-1"));
                assert!(again.hint().contains(ACCOUNT), "{}", again.hint());
                assert!(!format!("{again:?}").contains("S3CRET"), "{again:?}");
                // The job's own token is not kept.
                assert!(!parts.values().any(|part| part.expose().contains("S3CRET")));
            }
            let Source::Address { url, .. } = github(look, PROVIDER).unwrap() else { panic!("no address") };
            assert!(
                url.starts_with(
                    "https://x.example/token?api=1&audience=https%3A%2F%2Fiam.googleapis.com%2Fprojects"
                ),
                "{url}"
            );
        });
        with_look(&[], |look| {
            for from in [TokenFrom::Command("x".to_owned()), TokenFrom::Github] {
                assert!(given(look, &keyless(Some(from))).is_err());
            }
            assert!(given(look, &keyless(None)).is_err());
            assert!(given(look, &Given::default()).unwrap().is_none());
            let login = Secret::trimmed("{\"type\":\"authorized_user\"}");
            let bad = Given { credentials: Some(("/k.json".into(), login)), ..Given::default() };
            let why = given(look, &bad).unwrap_err().to_string();
            assert!(why.contains("user login"), "{why}");
        });
    }
}
