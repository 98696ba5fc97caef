//! Where the credentials of Verda come from.

use super::tests::{Home, pair};
use crate::state::env::Env;

const SECRET: &str = "verda-S3CRET-0123";

fn variables(id: &'static str, secret: &'static str) -> [(&'static str, &'static str); 2] {
    [("VERDA_CLIENT_ID", id), ("VERDA_CLIENT_SECRET", secret)]
}

fn ini(profile: &str) -> String {
    format!("[{profile}]\nverda_client_id = {profile}-id-0123\nverda_client_secret = {SECRET}\n")
}

#[test]
fn the_order_of_sources() {
    let home = Home::new();
    let config = format!("[verda]\nclient_id = 'config-id-0123'\nclient_secret = '{SECRET}'");
    let shown = |home: &Home, path: &str| format!("`{}`", home.path(path).display());
    assert_eq!(home.sources(&[], ""), []);
    home.file(".verda/credentials", &ini("default"), 0o600);
    assert_eq!(home.sources(&[], ""), [pair("verda/default", &shown(&home, ".verda/credentials"))]);
    let json = format!("{{\"client_id\": \"json-id-0123\", \"client_secret\": \"{SECRET}\"}}");
    home.file(".verda/config.json", &json, 0o600);
    assert_eq!(home.sources(&[], ""), [pair("verda/default", &shown(&home, ".verda/config.json"))]);
    assert_eq!(home.sources(&[], &config), [pair("verda/default", "`[verda]` in `/c.toml`")]);
    let both = variables("env-id-0123456", SECRET);
    let connected = home.connect(&both, &config).unwrap();
    assert_eq!(connected.accounts[0].source, "VERDA_CLIENT_SECRET");
    assert_eq!((connected.accounts[0].hint.as_str(), connected.warnings.len()), ("…3456", 0));
    assert!(!format!("{connected:?}").contains("S3CRET"));
}

#[test]
fn half_a_pair_is_told_and_not_used() {
    let home = Home::new();
    home.file(".verda/credentials", &ini("default"), 0o600);
    for half in [variables("env-id-0123", ""), variables(" ", SECRET)] {
        let connected = home.connect(&half, "").unwrap();
        assert!(connected.accounts[0].source.contains("credentials"));
        assert!(connected.warnings[0].contains("is not used"), "{:?}", connected.warnings);
    }
    // Both parts come from one place.
    let split = format!("[verda]\nclient_id = 'x'\n[account.\"verda/lab\"]\nclient_secret = '{SECRET}'");
    let connected = home.connect(&variables("a-id-0123456", SECRET), &split).unwrap();
    assert_eq!(connected.accounts.len(), 1);
    assert_eq!(connected.found_not_used[0].account.to_string(), "verda/lab");
}

#[test]
fn profiles_and_files_that_cannot_be_used() {
    let home = Home::new();
    home.file(".verda/credentials", &format!("{}{}", ini("work"), ini("lab")), 0o644);
    let none = home.connect(&[], "").unwrap();
    assert_eq!((none.accounts.len(), none.warnings.len()), (0, 1));
    assert!(none.warnings[0].contains("VERDA_PROFILE"), "{:?}", none.warnings);
    let lab = home.connect(&[("VERDA_PROFILE", "lab")], "").unwrap();
    assert_eq!((lab.accounts.len(), lab.warnings.len()), (1, 1), "the file is open to others");
    assert!(lab.warnings[0].contains("chmod 600"));
    home.file(".verda/config.json", &format!("{{\"client_secret\": {SECRET}"), 0o600);
    let broken = home.connect(&[("VERDA_PROFILE", "lab")], "").unwrap();
    assert_eq!(broken.accounts.len(), 1, "the next file is taken");
    assert!(!format!("{:?}", broken.warnings).contains("S3CRET"));
    let mut sandbox = home;
    sandbox.only_environment = true;
    assert_eq!(sandbox.connect(&[("VERDA_PROFILE", "lab")], "").unwrap().accounts.len(), 0);
}

#[test]
fn endpoint_and_identity() {
    let home = Home::new();
    let both = variables("env-id-0123456", SECRET);
    let away = ("GPUPROV_VERDA_ENDPOINT", "https://proxy.example/v1/");
    let connected = home.connect(&[both[0], both[1], away], "").unwrap();
    assert_eq!(connected.accounts[0].elsewhere.as_deref(), Some("https://proxy.example"));
    home.file(".verda/credentials", &ini("default"), 0o600);
    assert!(home.connect(&[away], "").is_err());
    let mark = |variables: &[(&str, &str)]| {
        home.connect(variables, "").unwrap().accounts[0].cloud.identity().secret_mark
    };
    let first = mark(&both);
    assert_eq!(mark(&variables("env-id-0123456", "verda-S3CRET-0123")), first);
    assert_ne!(mark(&variables("env-id-0123456", "another")), first);
    assert_ne!(mark(&variables("another-id-0123", SECRET)), first);
    assert!(Env::of(both).get(&crate::state::env::VERDA_PROFILE).is_none());
}
