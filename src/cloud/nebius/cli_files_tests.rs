use std::path::PathBuf;

use super::super::jwt::tests::pem;
use super::*;

const CONFIG: &str = "\
default: prod
profiles:
  prod:
    endpoint: api.nebius.cloud
    parent-id: project-e00abc
    tenant-id: tenant-e00abc
    auth-type: federation
    federation-endpoint: auth.nebius.com
    federation-id: federation-e00google
  robot:
    auth-type: service account
    service-account-id: serviceaccount-e00abc
    public-key-id: publickey-e00abc
    private-key-file-path: ~/key.pem
  file:
    auth-type: service account
    service-account-credentials-file-path: /home/ana/credentials.json
  ci:
    auth-type: service-account
    service-account-id: serviceaccount-e00abc
    federated-subject-credentials-file-path: /home/ana/oidc.jwt
  token:
    auth-type: federation
    token-file: /home/ana/token
    impersonate-service-account-id: serviceaccount-e00other
  vm:
    token-endpoint: http://169.254.169.254/token
  elsewhere:
    endpoint: api.private.example
    token-file: /home/ana/token
  empty: {}
  keyless:
    auth-type: service account
    service-account-id: serviceaccount-e00abc
";

fn read(file: &str) -> Result<String, String> {
    match file {
        "~/key.pem" => Ok(pem().to_owned()),
        "/home/ana/credentials.json" => Ok(serde_json::json!({"subject-credentials": {
            "private-key": pem(), "kid": "publickey-e00xyz", "iss": "serviceaccount-e00xyz", "sub": "serviceaccount-e00xyz",
        }})
        .to_string()),
        _ => Err("no such file".to_owned()),
    }
}

fn profile(text: &str, named: Option<&str>) -> Result<Option<Profile>, FileError> {
    in_config(text, named, Path::new("/home/ana/.nebius/credentials.yaml"), &read, &|file| {
        PathBuf::from(file)
    })
}

#[test]
fn a_persons_login_is_looked_up_in_the_clis_cache() {
    let found = profile(CONFIG, None).unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.tenant.as_deref()), ("prod", Some("tenant-e00abc")));
    let Credentials::Login(login) = found.credentials else { panic!("{:?}", found.credentials) };
    assert_eq!(login.key, "federation/auth.nebius.com/federation-e00google/prod");
    let cache =
        format!("tokens:\n  {}:\n    token: ne1abc\n    expires_at: 1796028882\n  other: 7\n", login.key);
    let (token, until) = cached_token(&cache, &login.key).unwrap().unwrap();
    assert_eq!((token.expose(), until), ("ne1abc", 1_796_028_882));
    for none in ["", "tokens:", "tokens: 7", "tokens:\n  other:\n    token: x\n    expires_at: 1\n"] {
        assert!(cached_token(none, &login.key).unwrap().is_none(), "{none}");
    }
    let error = cached_token("tokens: [s3cret", &login.key).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
}

#[test]
fn every_way_of_a_service_account_is_read() {
    let robot = profile(CONFIG, Some("robot")).unwrap().unwrap();
    assert!(matches!(robot.credentials, Credentials::Key(key) if key.id == "publickey-e00abc"));
    let file = profile(CONFIG, Some("file")).unwrap().unwrap();
    assert!(matches!(file.credentials, Credentials::Key(key) if key.account == "serviceaccount-e00xyz"));
    let ci = profile(CONFIG, Some("ci")).unwrap().unwrap();
    assert!(matches!(ci.credentials, Credentials::Federated { source: TokenSource::File(path), .. }
        if path == Path::new("/home/ana/oidc.jwt")));
    let token = profile(CONFIG, Some("token")).unwrap().unwrap();
    let Credentials::Impersonated { account, by } = token.credentials else { panic!() };
    assert_eq!(account, "serviceaccount-e00other");
    assert!(matches!(*by, Credentials::TokenFile(_)), "a token file comes before the way to log in");
}

#[test]
fn what_cannot_be_used_is_named() {
    for (named, part) in [
        ("vm", "metadata"),
        ("elsewhere", "GPUPROV_NEBIUS_ENDPOINT"),
        ("empty", "no credentials"),
        ("keyless", "no private key"),
        ("nobody", "no profile `nobody`"),
    ] {
        let error = profile(CONFIG, Some(named)).unwrap_err().to_string();
        assert!(error.contains(part), "{named}: {error}");
    }
    let two = "profiles:\n  a: {token-file: /x}\n  b: {token-file: /y}\n";
    assert!(matches!(profile(two, None), Err(FileError::WhichProfile)));
    assert!(profile("profiles:\n  a: {token-file: /x}\n", None).unwrap().is_some(), "the only one");
    for none in ["", "profiles: {}", "7", "profiles: [1]"] {
        assert!(profile(none, None).unwrap().is_none(), "{none}");
    }
    assert!(matches!(profile("a: [s3cret", None), Err(FileError::Yaml(place)) if !place.contains("s3cret")));
}

proptest::proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,60}|(profiles:|default: a|\n|  a:|    (token-file|auth-type): [a-z&*{\\[]{0,5}){0,8}") {
        let _ = profile(&text, None);
        let _ = profile(&text, Some("a"));
        let _ = cached_token(&text, "a");
    }
}
