//! Where the credentials of Nebius come from.

use std::process::Command;

use super::tests::{Home, pair};
use crate::model::account::AccountFilter;

const TOKEN: (&str, &str) = ("NEBIUS_IAM_TOKEN", "ne1S3CRET-0123456789abcd");

/// Writes a service account's key file.
fn key_file(home: &Home, path: &str, account: &str, mode: u32) {
    let key = home.path("rsa");
    if !key.exists() {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "rsa", "-b", "2048", "-N", "", "-m", "PKCS8", "-f"])
            .arg(&key)
            .status()
            .unwrap();
        assert!(made.success());
    }
    let text = serde_json::json!({"subject-credentials": {
        "alg": "RS256", "private-key": std::fs::read_to_string(key).unwrap(),
        "kid": "publickey-e00abc", "iss": account, "sub": account,
    }});
    home.file(path, &text.to_string(), mode);
}

fn config(home: &Home, file: &str) -> String {
    format!("[nebius]\ncredentials = '{}'\n", home.path(file).display())
}

#[test]
fn the_order_of_sources() {
    let mut home = Home::new();
    let shown = |home: &Home, path: &str| format!("`{}`", home.path(path).display());
    let asked = "[nebius]\nssh_port = 2222\n";
    assert_eq!(home.sources(&[], asked), []);
    key_file(&home, ".nebius/credentials.json", "serviceaccount-e00own", 0o600);
    assert_eq!(home.sources(&[], asked), [pair("nebius/default", &shown(&home, ".nebius/credentials.json"))]);
    home.file(
        ".nebius/config.yaml",
        "profiles:\n  only: {token-file: token, tenant-id: tenant-e00cli}\n",
        0o600,
    );
    let cli = home.connect(&[], asked).unwrap();
    assert_eq!(cli.accounts[0].source, shown(&home, ".nebius/config.yaml"));
    assert_eq!(cli.accounts[0].cloud.identity().provider.as_deref(), Some("tenant-e00cli"));
    key_file(&home, "key.json", "serviceaccount-e00table", 0o600);
    let table = home.connect(&[], &config(&home, "key.json")).unwrap();
    assert_eq!(table.accounts[0].source, "`[nebius]` in `/c.toml`");
    assert_eq!((table.accounts[0].hint.as_str(), table.warnings.len()), ("serviceaccount-e00table", 0));
    let variable =
        home.connect(&[TOKEN, ("NEBIUS_TENANT_ID", "tenant-e00env")], &config(&home, "key.json")).unwrap();
    assert_eq!(
        (variable.accounts[0].source.as_str(), variable.accounts[0].hint.as_str()),
        ("NEBIUS_IAM_TOKEN", "…abcd")
    );
    assert_eq!(variable.accounts[0].cloud.identity().provider.as_deref(), Some("tenant-e00env"));
    assert!(!format!("{variable:?}").contains("S3CRET"));
    home.only_environment = true;
    assert_eq!(home.sources(&[], &config(&home, "key.json")), []);
}

#[test]
fn what_lies_around_is_used_only_when_asked_for() {
    let home = Home::new();
    let connected = home.connect(&[TOKEN], "").unwrap();
    assert_eq!((connected.accounts.len(), connected.found_not_used.len()), (0, 1));
    let found = &connected.found_not_used[0];
    assert_eq!(
        (found.source.as_str(), found.account.to_string().as_str()),
        ("NEBIUS_IAM_TOKEN", "nebius/default")
    );
    let filter: AccountFilter = "nebius".parse().unwrap();
    assert!(connected.select(&[filter]).is_err());
    let endpoint = ("GPUPROV_NEBIUS_ENDPOINT", "http://127.0.0.1:9");
    assert_eq!(home.connect(&[TOKEN, endpoint], "").unwrap().accounts.len(), 1);
}

#[test]
fn a_federated_account_needs_both_parts() {
    let home = Home::new();
    let whole =
        "[account.\"nebius/ci\"]\nservice_account = 'serviceaccount-e00ci'\ntoken_file = '/run/oidc.jwt'\n";
    let connected = home.connect(&[], whole).unwrap();
    assert_eq!(
        (connected.accounts[0].id().to_string().as_str(), connected.accounts[0].hint.as_str()),
        ("nebius/ci", "serviceaccount-e00ci")
    );
    for half in ["service_account = 'x'", "token_file = '/x'", "projects = ['project-e00a']"] {
        let connected = home.connect(&[], &format!("[account.\"nebius/ci\"]\n{half}\n")).unwrap();
        assert_eq!((connected.accounts.len(), connected.found_not_used.len()), (0, 1), "{half}");
    }
}

#[test]
fn what_is_set_up_and_cannot_be_used_is_told_and_nothing_stands_in_for_it() {
    let home = Home::new();
    key_file(&home, ".nebius/credentials.json", "serviceaccount-e00own", 0o600);
    home.file("broken.json", "{\"subject-credentials\": {\"private-key\": \"S3CRET\"}}", 0o600);
    let profiles = "profiles:\n  only: {token-file: token, tenant-id: tenant-e00cli}\n";
    let unused = |variables: &[(&str, &str)], config: &str, part: &str| {
        let connected = home.connect(variables, config).unwrap();
        let found = &connected.found_not_used;
        assert_eq!((connected.accounts.len(), found.len()), (0, 1), "{config}: {found:?}");
        assert!(found[0].why.contains(part), "{config}: {found:?}");
        assert!(!format!("{connected:?}").contains("S3CRET"));
    };
    for text in [profiles, "profiles: [S3CRET"] {
        home.file(".nebius/config.yaml", text, 0o600);
        unused(&[], &config(&home, "broken.json"), "broken.json");
        unused(&[], &config(&home, "nowhere.json"), "nowhere.json");
        unused(&[], "[nebius]\nservice_account = 'serviceaccount-e00ci'\n", "token_file");
        unused(&[], "[nebius]\ntoken_file = '/run/oidc.jwt'\n", "service_account");
        unused(&[("NEBIUS_PROFILE", "other")], "[nebius]\n", "config.yaml");
    }
    unused(&[], "[nebius]\n", "config.yaml");
    std::fs::remove_file(home.path(".nebius/config.yaml")).unwrap();
    unused(&[("NEBIUS_PROFILE", "other")], "[nebius]\n", "config.yaml");
    assert_eq!(home.connect(&[], "[nebius]\n").unwrap().accounts.len(), 1);
    home.file(".nebius/credentials.json", "S3CRET", 0o600);
    unused(&[], "[nebius]\n", "credentials.json");

    key_file(&home, "key.json", "serviceaccount-e00a", 0o644);
    let open = home.connect(&[], &config(&home, "key.json")).unwrap();
    assert_eq!(open.accounts.len(), 1);
    assert!(open.warnings.iter().any(|warning| warning.contains("chmod 600")), "{:?}", open.warnings);
}

#[test]
fn another_endpoint_gets_credentials_of_its_own_place_alone() {
    let home = Home::new();
    let away = ("GPUPROV_NEBIUS_ENDPOINT", "https://relay.example");
    assert_eq!(home.connect(&[TOKEN, away], "").unwrap().accounts.len(), 1);
    key_file(&home, "key.json", "serviceaccount-e00a", 0o600);
    assert!(home.connect(&[away], &config(&home, "key.json")).is_err());
}
