//! Nebius's credentials as `clouds set` is given them, and in parts to be sealed. The names of the parts are a stored format.
//!
//! ```text
//! token                                a token as it is
//! token_path                           a file with a token
//! key_account, key_id, private_key     a service account's key
//! account, subject_*                   a service account that tokens from outside stand for:
//!     subject_file                         in a file
//!     subject_command                      printed by a command, as a JSON list of its words
//!     subject_github                       of the GitHub Actions job that asks; its text is the audience, or nothing
//! login_cache, login_key, login_profile    a person's login with the nebius CLI
//! acts_as, and one of the others       a service account that these may act as
//! ```

use std::path::PathBuf;

use super::error::AccountsError;
use super::given::{Given, TokenFrom};
use super::kind::UNKNOWN_PARTS;
use super::seal::Parts;
use super::sources::{Look, Place};
use crate::cloud::nebius::credentials::{Credentials, Login, ServiceKey, TokenSource, in_key_file};
use crate::model::secret::Secret;
use crate::state::env;

/// Returns the credentials that the flags speak of, and how they were given; none if they speak of none.
pub(super) fn given(look: &Look<'_>, given: &Given) -> Result<Option<(Credentials, Place)>, AccountsError> {
    let wrong = |why: &str| Err(AccountsError::Given(why.to_owned()));
    if let Some((file, text)) = &given.credentials {
        if given.token.is_some() || given.service_account_id.is_some() {
            return wrong("--credentials does not go with --service-account-id and tokens from outside");
        }
        let key = in_key_file(text.expose())
            .map_err(|error| AccountsError::Given(format!("`{}`: {error}", file.display())))?;
        return Ok(Some((key, Place::Told("--credentials"))));
    }
    let (account, token) = match (&given.service_account_id, &given.token) {
        (None, None) => return Ok(None),
        (None, Some(_)) => {
            return wrong("tokens from outside need --service-account-id, for which they stand");
        }
        (Some(_), None) => {
            return wrong("--service-account-id needs --token-file, --token-command or --token-github");
        }
        (Some(account), Some(token)) => (account.trim().to_owned(), token),
    };
    let source = match token {
        TokenFrom::File(path) => TokenSource::File(path.clone()),
        TokenFrom::Command(_) if !given.allow_command => {
            return wrong(
                "--token-command runs a command whenever a token is needed; --allow-command allows that",
            );
        }
        TokenFrom::Command(command) => {
            TokenSource::Command(["sh", "-c", command].map(str::to_owned).to_vec())
        }
        TokenFrom::Github => github(look, None).map_err(AccountsError::Given)?,
    };
    Ok(Some((Credentials::Federated { account, source }, Place::Told("the flags"))))
}

/// The tokens of the GitHub Actions job that this runs in.
fn github(look: &Look<'_>, audience: Option<String>) -> Result<TokenSource, String> {
    let variables = [&env::ACTIONS_ID_TOKEN_REQUEST_URL, &env::ACTIONS_ID_TOKEN_REQUEST_TOKEN];
    match variables.map(|variable| look.env.get(variable)) {
        [Some(url), Some(token)] => {
            Ok(TokenSource::Github { url: url.to_owned(), token: Secret::trimmed(token), audience })
        }
        _ => Err("takes the tokens of a GitHub Actions job, and ACTIONS_ID_TOKEN_REQUEST_URL is not set: the job needs \
                  `permissions: id-token: write`"
            .to_owned()),
    }
}

/// Takes credentials apart; none if they cannot be kept.
pub(super) fn apart(credentials: &Credentials) -> Option<Parts> {
    let text = |text: &str| Secret::new(text.to_owned());
    let of = |parts: &[(&str, Secret)]| {
        Some(parts.iter().map(|(name, part)| ((*name).to_owned(), part.clone())).collect())
    };
    match credentials {
        Credentials::Token(token) => of(&[("token", token.clone())]),
        Credentials::TokenFile(path) => of(&[("token_path", text(path.to_str()?))]),
        Credentials::Key(ServiceKey { account, id, private }) => {
            of(&[("key_account", text(account)), ("key_id", text(id)), ("private_key", private.clone())])
        }
        Credentials::Federated { account, source } => {
            let (name, part) = match source {
                TokenSource::File(path) => ("subject_file", text(path.to_str()?)),
                TokenSource::Command(words) => {
                    ("subject_command", Secret::new(serde_json::to_string(words).ok()?))
                }
                TokenSource::Github { audience, .. } => {
                    ("subject_github", text(audience.as_deref().unwrap_or_default()))
                }
                // It is over in minutes.
                TokenSource::Given(_) => return None,
            };
            of(&[("account", text(account)), (name, part)])
        }
        Credentials::Login(Login { cache, key, profile }) => of(&[
            ("login_cache", text(cache.to_str()?)),
            ("login_key", text(key)),
            ("login_profile", text(profile)),
        ]),
        Credentials::Impersonated { account, by } => {
            let mut parts = apart(by).filter(|parts| !parts.contains_key("acts_as"))?;
            parts.insert("acts_as".to_owned(), text(account));
            Some(parts)
        }
    }
}

/// Puts credentials together again; the error says why not, as it stands after the account.
pub(super) fn together(look: &Look<'_>, parts: &Parts) -> Result<Credentials, String> {
    let part = |name: &str| parts.get(name).map(|part| part.expose().to_owned());
    if let Some(account) = part("acts_as") {
        let mut by = parts.clone();
        by.remove("acts_as");
        return Ok(Credentials::Impersonated { account, by: Box::new(together(look, &by)?) });
    }
    if let Some(token) = parts.get("token") {
        return Ok(Credentials::Token(token.clone()));
    }
    if let Some(path) = part("token_path") {
        return Ok(Credentials::TokenFile(PathBuf::from(path)));
    }
    if let (Some(account), Some(id), Some(private)) =
        (part("key_account"), part("key_id"), parts.get("private_key"))
    {
        return Ok(Credentials::Key(ServiceKey { account, id, private: private.clone() }));
    }
    if let (Some(cache), Some(key), Some(profile)) =
        (part("login_cache"), part("login_key"), part("login_profile"))
    {
        return Ok(Credentials::Login(Login { cache: PathBuf::from(cache), key, profile }));
    }
    let source = match (part("subject_file"), part("subject_command"), part("subject_github")) {
        (Some(file), ..) => Some(TokenSource::File(PathBuf::from(file))),
        (_, Some(words), _) => serde_json::from_str(&words).ok().map(TokenSource::Command),
        (.., Some(audience)) => Some(github(look, Some(audience).filter(|audience| !audience.is_empty()))?),
        _ => None,
    };
    match part("account").zip(source) {
        Some((account, source)) => Ok(Credentials::Federated { account, source }),
        None => Err(UNKNOWN_PARTS.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::state::config::Config;
    use crate::state::env::Env;
    use crate::state::paths::Paths;

    fn with_look<T>(variables: &[(&str, &str)], test: impl FnOnce(&Look<'_>) -> T) -> T {
        let env = Env::of(variables.iter().copied().chain([("HOME", "/home/ana")]));
        let paths = Paths::new(&env).unwrap();
        let config = Config::parse("", Path::new("/c.toml")).unwrap();
        test(&Look { env: &env, config: &config, paths: &paths, only_environment: false })
    }

    #[test]
    fn what_is_taken_apart_is_put_together() {
        let github = [("ACTIONS_ID_TOKEN_REQUEST_URL", "https://x"), ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "t")];
        let key = ServiceKey {
            account: "serviceaccount-a".to_owned(),
            id: "publickey-b".to_owned(),
            private: Secret::trimmed("PEM"),
        };
        let federated = |source| Credentials::Federated { account: "serviceaccount-f".to_owned(), source };
        let login = Login { cache: "/c".into(), key: "k".to_owned(), profile: "p".to_owned() };
        let all = [
            Credentials::Token(Secret::trimmed("tok")),
            Credentials::TokenFile("/token".into()),
            Credentials::Key(key.clone()),
            federated(TokenSource::File("/subject".into())),
            federated(TokenSource::Command(vec![
                "sh".to_owned(),
                "-c".to_owned(),
                "print \"it\"".to_owned(),
            ])),
            Credentials::Login(login),
            Credentials::Impersonated {
                account: "serviceaccount-i".to_owned(),
                by: Box::new(Credentials::Key(key)),
            },
        ];
        with_look(&github, |look| {
            for credentials in &all {
                let again = together(look, &apart(credentials).unwrap()).unwrap();
                assert_eq!(apart(&again), apart(credentials));
                assert_eq!(again.whole().expose(), credentials.whole().expose());
                assert_eq!(again.hint(), credentials.hint());
            }
            let job = federated(super::github(look, Some("nebius".to_owned())).unwrap());
            let again = together(look, &apart(&job).unwrap()).unwrap();
            assert!(
                matches!(again, Credentials::Federated { source: TokenSource::Github { url, .. }, .. } if url == "https://x")
            );
            assert!(apart(&federated(TokenSource::Given(Secret::trimmed("x")))).is_none());
            assert!(together(look, &Parts::new()).is_err());
            // The job's own token is not kept.
            assert!(!apart(&job).unwrap().values().any(|part| part.expose() == "t"));
            with_look(&[], |outside| {
                let why = together(outside, &apart(&job).unwrap()).unwrap_err();
                assert!(why.contains("id-token: write"), "{why}");
            });
        });
    }

    #[test]
    fn flags_that_do_not_go_together_are_told() {
        with_look(&[], |look| {
            let account = Some("serviceaccount-a".to_owned());
            let file = Some(TokenFrom::File("/t".into()));
            let command = Some(TokenFrom::Command("print".to_owned()));
            let of = |service_account_id: &Option<String>, token: &Option<TokenFrom>, allow_command| Given {
                service_account_id: service_account_id.clone(),
                token: token.clone(),
                allow_command,
                ..Given::default()
            };
            assert!(given(look, &Given::default()).unwrap().is_none());
            assert!(given(look, &of(&account, &file, false)).unwrap().is_some());
            assert!(given(look, &of(&account, &command, true)).unwrap().is_some());
            for bad in [
                of(&account, &None, false),
                of(&None, &file, false),
                of(&account, &command, false),
                of(&account, &Some(TokenFrom::Github), false),
                Given { credentials: Some(("/k".into(), Secret::trimmed("{}"))), ..Given::default() },
            ] {
                assert!(given(look, &bad).is_err(), "{bad:?}");
            }
        });
    }
}
