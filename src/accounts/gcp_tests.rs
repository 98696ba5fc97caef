//! Where the credentials of Google Cloud come from.

use serde_json::json;

use super::tests::{Home, pair};

/// A key made for tests; it opens nothing.
const PEM: &str = include_str!("../../tests/data/gcp-test-key.pem");

fn key(project: &str) -> String {
    json!({
        "type": "service_account", "project_id": project, "private_key_id": "0a1b2c", "private_key": PEM,
        "client_email": format!("gpuprov@{project}.iam.gserviceaccount.com"),
    })
    .to_string()
}

fn login() -> String {
    json!({"type": "authorized_user", "client_id": "x", "client_secret": "S3CRET", "refresh_token": "S3CRET"})
        .to_string()
}

const ADC: &str = ".config/gcloud/application_default_credentials.json";

fn projects(home: &Home, variables: &[(&str, &str)], config: &str) -> Vec<(String, String)> {
    let connected = home.connect(variables, config).unwrap();
    let project = |account: &super::Account| account.cloud.identity().provider.unwrap();
    connected.accounts.iter().map(|account| (account.id().to_string(), project(account))).collect()
}

#[test]
fn the_order_of_sources() {
    let home = Home::new();
    let named = "[gcp]\nnetwork = 'default'";
    assert_eq!(home.sources(&[], named), []);
    home.file(ADC, &key("adc-1"), 0o600);
    assert_eq!(home.sources(&[], ""), [], "it only lies around");
    assert_eq!(home.connect(&[], "").unwrap().found_not_used.len(), 1);
    let adc = home.path(ADC);
    assert_eq!(home.sources(&[], named), [pair("gcp/default", &format!("`{}`", adc.display()))]);
    home.file("table.json", &key("table-1"), 0o600);
    home.file("lab.json", &key("lab-1"), 0o600);
    home.file("env.json", &key("env-1"), 0o600);
    let config = "[gcp]\ncredentials = '~/table.json'\n[account.\"gcp/lab\"]\ncredentials = '~/lab.json'\nzones = ['us-east1-b']";
    assert_eq!(projects(&home, &[], config), [pair("gcp/default", "table-1"), pair("gcp/lab", "lab-1")]);
    let path = home.path("env.json");
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap())];
    assert_eq!(projects(&home, &variables, config), [pair("gcp/default", "env-1"), pair("gcp/lab", "lab-1")]);
    let connected = home.connect(&variables, config).unwrap();
    assert_eq!(connected.accounts[0].hint, "gpuprov@env-1.iam.gserviceaccount.com");
    assert!(!format!("{connected:?}").contains(&PEM[40..60]));

    let mut sandbox = Home::new();
    sandbox.only_environment = true;
    sandbox.file(ADC, &key("adc-1"), 0o600);
    let endpoint = ("GPUPROV_GCP_ENDPOINT", "http://127.0.0.1:1/compute/v1");
    assert_eq!(projects(&sandbox, &[endpoint], config), []);
    let given = [endpoint, variables[0]];
    assert_eq!(projects(&sandbox, &given, config), [pair("gcp/default", "env-1")]);
    assert_eq!(
        sandbox.connect(&given, "").unwrap().accounts[0].elsewhere.as_deref(),
        Some("http://127.0.0.1:1")
    );
}

#[test]
fn the_project() {
    let home = Home::new();
    home.file("key.json", &key("key-1"), 0o600);
    let path = home.path("key.json");
    let file = ("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap());
    let of = |variables: &[(&str, &str)], config: &str| projects(&home, variables, config)[0].1.clone();
    assert_eq!(of(&[file], "[gcp]"), "key-1");
    assert_eq!(of(&[file], "[gcp]\nproject = 'table-1'"), "table-1");
    assert_eq!(of(&[file, ("GOOGLE_CLOUD_PROJECT", "env-1")], "[gcp]\nproject = 'table-1'"), "env-1");
    let connected = home.connect(&[file, ("GOOGLE_CLOUD_PROJECT", "../x")], "[gcp]").unwrap();
    assert!(connected.accounts.is_empty() && connected.found_not_used[0].why.contains("project id"));
    let federation = json!({
        "type": "external_account", "audience": "//iam.googleapis.com/x", "subject_token_type": "jwt",
        "token_url": "https://sts.googleapis.com/v1/token", "credential_source": {"file": "/t"},
    });
    home.file("key.json", &federation.to_string(), 0o600);
    let connected = home.connect(&[file], "[gcp]").unwrap();
    assert!(connected.found_not_used[0].why.contains("GOOGLE_CLOUD_PROJECT"), "{connected:?}");
    assert_eq!(of(&[file, ("GOOGLE_CLOUD_PROJECT", "env-1")], "[gcp]"), "env-1");
}

#[test]
fn what_cannot_be_used_is_told_with_the_reason() {
    let home = Home::new();
    home.file(ADC, &login(), 0o600);
    let connected = home.connect(&[], "[gcp]").unwrap();
    assert_eq!((connected.accounts.len(), connected.warnings.len()), (0, 0));
    let told = &connected.found_not_used[0].why;
    assert!(told.contains("user login") && told.contains("service account"), "{told}");
    let filter = "gcp".parse().unwrap();
    let error = connected.select(&[filter]).unwrap_err().to_string();
    assert!(error.contains("user login") && !error.contains("S3CRET"), "{error}");

    let missing = ("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent/key.json");
    let connected = home.connect(&[missing], "[gcp]").unwrap();
    assert!(connected.found_not_used[0].why.contains("/nonexistent/key.json"));
    let executable = json!({
        "type": "external_account", "audience": "//iam.googleapis.com/x", "subject_token_type": "jwt",
        "token_url": "https://sts.googleapis.com/v1/token", "credential_source": {"executable": {"command": "/bin/t"}},
    });
    home.file("key.json", &executable.to_string(), 0o600);
    let path = home.path("key.json");
    let file = ("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap());
    let project = ("GOOGLE_CLOUD_PROJECT", "lab-1");
    let why = home.connect(&[file, project], "[gcp]").unwrap().found_not_used[0].why.clone();
    assert!(why.contains("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1"), "{why}");
    let allowed = ("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1");
    assert_eq!(home.connect(&[file, project, allowed], "[gcp]").unwrap().accounts.len(), 1);
}

#[test]
fn settings_and_open_files() {
    let home = Home::new();
    home.file(ADC, &key("adc-1"), 0o644);
    let connected = home.connect(&[], "[gcp]\nzones = ['us-central1-a,us-east1-b']").unwrap();
    assert_eq!((connected.accounts.len(), connected.warnings.len()), (1, 1));
    assert!(connected.warnings[0].contains("chmod 600"));
    for config in ["zones = ['Mars']", "network = 'a b'", "network = 'projects/x/networks/y'"] {
        assert!(home.connect(&[], &format!("[gcp]\n{config}")).is_err(), "{config}");
    }
    home.connect(&[], "[gcp]\nnetwork = 'projects/host-1/global/networks/shared'").unwrap();
}
