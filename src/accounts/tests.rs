use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::model::account::AccountFilter;
use crate::state::config::Config;
use crate::state::env::Env;
use crate::state::paths::Paths;

const KEY: &str = "rpa_ENVIRONMENT_KEY_aaaa";
const OTHER: &str = "rpa_ANOTHER_S3CRET_bbbb";

pub(super) struct Home {
    folder: TempDir,
    pub(super) only_environment: bool,
}

impl Home {
    pub(super) fn new() -> Self {
        Home { folder: tempfile::tempdir().unwrap(), only_environment: false }
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn own_file(&self, text: &str, mode: u32) {
        self.file(".runpod/config.toml", text, mode);
    }

    pub(super) fn file(&self, path: &str, text: &str, mode: u32) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(super) fn connect(
        &self,
        variables: &[(&str, &str)],
        config: &str,
    ) -> Result<Connected, AccountsError> {
        let home = ("HOME", self.folder.path().to_str().unwrap());
        let env = Env::of(variables.iter().copied().chain([home]));
        let paths = Paths::new(&env).unwrap();
        let config = Config::parse(config, Path::new("/c.toml")).unwrap();
        connect(Connect {
            env: &env,
            config: &config,
            paths: &paths,
            cloud_timeout: Some(Duration::from_secs(1)),
            boot_timeout: None,
            only_environment: self.only_environment,
            named: &[],
            recorded: &[],
            read_only: false,
        })
    }

    /// The accounts and where their credentials come from.
    pub(super) fn sources(&self, variables: &[(&str, &str)], config: &str) -> Vec<(String, String)> {
        let connected = self.connect(variables, config).unwrap();
        connected.accounts.iter().map(|account| (account.id().to_string(), account.source.clone())).collect()
    }
}

pub(super) fn pair(account: &str, source: &str) -> (String, String) {
    (account.to_owned(), source.to_owned())
}

#[test]
fn the_environment_wins_over_the_config_and_that_over_the_clouds_own_file() {
    let home = Home::new();
    let own = format!("apikey = '{OTHER}'");
    let config = format!("[runpod]\napi_key = '{OTHER}'");
    let file = home.folder.path().join(".runpod/config.toml");
    assert_eq!(home.sources(&[], ""), []);
    assert!(!home.folder.path().join(".local").exists(), "nothing is written where there is no account");
    home.own_file(&own, 0o600);
    assert_eq!(home.sources(&[], ""), [pair("runpod/default", &format!("`{}`", file.display()))]);
    assert_eq!(home.sources(&[], &config), [pair("runpod/default", "`[runpod]` in `/c.toml`")]);
    for empty in ["", " "] {
        let variables = [("RUNPOD_API_KEY", empty)];
        assert_eq!(home.sources(&variables, &config), [pair("runpod/default", "`[runpod]` in `/c.toml`")]);
    }
    assert_eq!(home.sources(&[("RUNPOD_API_KEY", KEY)], &config), [pair("runpod/default", "RUNPOD_API_KEY")]);
}

#[test]
fn a_table_with_a_key_is_an_account_of_its_own() {
    let home = Home::new();
    let config = format!(
        "[runpod]\napi_key = 'one'\n[account.\"runpod/lab\"]\napi_key = '{OTHER}'\n\
         [account.\"runpod/idle\"]\nimage = 'x'\n[account.\"runpod/default\"]\nimage = 'y'"
    );
    assert_eq!(
        home.sources(&[("RUNPOD_API_KEY", KEY)], &config),
        [
            pair("runpod/default", "RUNPOD_API_KEY"),
            pair("runpod/lab", "`[account.\"runpod/lab\"]` in `/c.toml`")
        ]
    );
    let connected = home.connect(&[("RUNPOD_API_KEY", KEY)], &config).unwrap();
    assert_eq!(connected.found_not_used.len(), 1);
    assert_eq!(connected.found_not_used[0].account.to_string(), "runpod/idle");
    let marks: Vec<String> =
        connected.accounts.iter().map(|account| account.cloud.identity().secret_mark).collect();
    assert_ne!(marks[0], marks[1]);
    assert_eq!(connected.accounts[1].hint, "…bbbb");
    let again = home.connect(&[("RUNPOD_API_KEY", &format!("{KEY}\n"))], "").unwrap();
    assert_eq!(again.accounts[0].cloud.identity().secret_mark, marks[0]);
}

#[test]
fn files_that_cannot_be_used_are_warned_about_without_their_content() {
    let home = Home::new();
    home.own_file(&format!("apikey = {OTHER}"), 0o600);
    let connected = home.connect(&[], "").unwrap();
    assert_eq!((connected.accounts.len(), connected.warnings.len()), (0, 1));
    assert!(connected.warnings[0].contains("is not used"), "{:?}", connected.warnings);
    home.own_file(&format!("apikey = '{OTHER}'"), 0o644);
    let connected = home.connect(&[], "").unwrap();
    assert_eq!((connected.accounts.len(), connected.warnings.len()), (1, 1));
    assert!(connected.warnings[0].contains("chmod 600"), "{:?}", connected.warnings);
    assert!(!format!("{connected:?}").contains("S3CRET"));
    home.own_file("\u{0}", 0o600);
    fs::write(home.folder.path().join(".runpod/config.toml"), [0xff]).unwrap();
    assert_eq!(home.connect(&[], "").unwrap().warnings.len(), 1);
}

#[test]
fn an_open_config_file_is_warned_about_only_if_it_holds_a_secret() {
    let home = Home::new();
    let env = Env::of([("HOME", home.folder.path())]);
    let paths = Paths::new(&env).unwrap();
    let warnings = |text: &str| {
        let config = Config::parse(text, Path::new("/c.toml")).unwrap();
        let config = Config { readable_by_others: true, ..config };
        let request = Connect {
            env: &env,
            config: &config,
            paths: &paths,
            cloud_timeout: None,
            boot_timeout: None,
            only_environment: false,
            named: &[],
            recorded: &[],
            read_only: false,
        };
        connect(request).unwrap().warnings.len()
    };
    assert_eq!(warnings("[defaults]\ndisk = 1"), 0);
    assert_eq!(warnings("[runpod]\napi_key = 'x'"), 1);
    assert_eq!(warnings("[account.\"vast/lab\"]\napi_key = 'x'"), 1);
}

#[test]
fn another_endpoint_is_told_and_gets_only_credentials_of_its_own_place() {
    let home = Home::new();
    let away = ("GPUPROV_RUNPOD_ENDPOINT", "https://proxy.example/v2");
    let connected = home.connect(&[("RUNPOD_API_KEY", KEY), away], "").unwrap();
    assert_eq!(connected.accounts[0].elsewhere.as_deref(), Some("https://proxy.example"));
    assert_eq!(connected.accounts[0].cloud.identity().endpoint, "https://proxy.example");
    let config = format!("[runpod]\napi_key = '{OTHER}'");
    let error = home.connect(&[away], &config).unwrap_err();
    assert!(matches!(error, AccountsError::Elsewhere { .. }));
    let shown = error.to_string();
    assert!(shown.contains("`[runpod]`") && shown.contains("GPUPROV_RUNPOD_ENDPOINT"), "{shown}");
    home.own_file(&format!("apikey = '{OTHER}'"), 0o600);
    assert!(matches!(home.connect(&[away], ""), Err(AccountsError::Elsewhere { .. })));
    let local = ("GPUPROV_RUNPOD_ENDPOINT", "http://127.0.0.1:9/");
    let connected = home.connect(&[local], "").unwrap();
    assert_eq!(connected.accounts[0].elsewhere.as_deref(), Some("http://127.0.0.1:9"));

    let both = "[runpod]\napi_key = 'k'\nendpoint = 'https://proxy.example'";
    assert_eq!(home.sources(&[], both).len(), 1);
    assert!(home.connect(&[("RUNPOD_API_KEY", KEY)], both).is_err());
    let inherited = "[runpod]\nendpoint = 'https://proxy.example'\n[account.\"runpod/lab\"]\napi_key = 'k'";
    assert!(home.connect(&[], inherited).is_err());
    let official = "[runpod]\nendpoint = 'https://api.runpod.io/v2'";
    assert_eq!(home.connect(&[("RUNPOD_API_KEY", KEY)], official).unwrap().accounts[0].elsewhere, None);
}

#[test]
fn the_sandbox_reads_no_credentials_but_the_environments() {
    let home = Home { only_environment: true, ..Home::new() };
    home.own_file(&format!("apikey = '{OTHER}'"), 0o644);
    let config = format!(
        "[runpod]\napi_key = '{OTHER}'\nendpoint = 'https://proxy.example'\n\
         [account.\"runpod/lab\"]\napi_key = '{OTHER}'\n[vast]\napi_key = '{OTHER}'"
    );
    let none = home.connect(&[], &config).unwrap();
    assert_eq!((none.accounts.len(), none.warnings.len(), none.found_not_used.len()), (0, 0, 0));
    assert_eq!(home.sources(&[("RUNPOD_API_KEY", KEY)], &config), [pair("runpod/default", "RUNPOD_API_KEY")]);
}

#[test]
fn vasts_key_is_looked_for_in_its_order() {
    let home = Home::new();
    let write = |path: &str, text: &str, mode: u32| {
        let path = home.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let source = |variables: &[(&str, &str)], config: &str| {
        let shown = home.sources(variables, config).pop().map(|(_, source)| source);
        shown.map(|source| source.replace(home.folder.path().to_str().unwrap(), "~"))
    };
    assert_eq!(source(&[], ""), None);
    write(".vast_api_key", &format!("{OTHER}\n"), 0o600);
    assert_eq!(source(&[], "").as_deref(), Some("`~/.vast_api_key`"));
    write(".config/vastai/vast_api_key", OTHER, 0o600);
    assert_eq!(source(&[], "").as_deref(), Some("`~/.config/vastai/vast_api_key`"));
    write("xdg/vastai/vast_api_key", OTHER, 0o600);
    let xdg = home.folder.path().join("xdg");
    let xdg = ("XDG_CONFIG_HOME", xdg.to_str().unwrap());
    assert_eq!(source(&[xdg], "").as_deref(), Some("`~/xdg/vastai/vast_api_key`"));
    let config = format!("[vast]\napi_key = '{OTHER}'");
    assert_eq!(source(&[xdg], &config).as_deref(), Some("`[vast]` in `/c.toml`"));
    assert_eq!(source(&[xdg, ("VAST_API_KEY", KEY)], &config).as_deref(), Some("VAST_API_KEY"));

    write(".config/vastai/vast_api_key", "{\"key\": \"x\"}", 0o644);
    let connected = home.connect(&[], "").unwrap();
    assert!(connected.accounts[0].source.contains(".vast_api_key"));
    assert!(connected.warnings[0].contains("not a bare key"), "{:?}", connected.warnings);
    write(".config/vastai/vast_api_key", OTHER, 0o644);
    let connected = home.connect(&[], "").unwrap();
    assert!(connected.warnings[0].contains("chmod 600"), "{:?}", connected.warnings);
    assert!(!format!("{connected:?}").contains(OTHER));
}

#[test]
fn vasts_accounts_have_their_own_settings_and_endpoints() {
    let home = Home::new();
    let config = format!(
        "[vast]\nmin_reliability = 0.9\n[account.\"vast/lab\"]\napi_key = '{OTHER}'\nverified = false"
    );
    let endpoint = ("GPUPROV_VAST_ENDPOINT", "http://127.0.0.1:9/api/v0/");
    let connected = home.connect(&[("VAST_API_KEY", KEY), endpoint], &config).unwrap();
    let ids: Vec<String> = connected.accounts.iter().map(|account| account.id().to_string()).collect();
    assert_eq!(ids, ["vast/default", "vast/lab"]);
    for account in &connected.accounts {
        assert_eq!(account.cloud.identity().endpoint, "http://127.0.0.1:9");
    }
    let shown: Vec<String> =
        connected.accounts.iter().map(|account| format!("{:?}", account.cloud)).collect();
    assert!(shown.iter().all(|shown| !shown.contains(OTHER) && !shown.contains(KEY)), "{shown:?}");
}

#[test]
fn what_cannot_be_used_is_named_and_not_used() {
    let home = Home::new();
    let config = "[account.\"gcp/lab\"]\ncredentials = 'k.json'\n[verda]\nssh_port = 22";
    let connected = home.connect(&[("RUNPOD_API_KEY", KEY), ("NEBIUS_IAM_TOKEN", OTHER)], config).unwrap();
    let found: Vec<(String, &str)> = connected
        .found_not_used
        .iter()
        .map(|found| (found.account.to_string(), found.source.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("gcp/lab".to_owned(), "`[account.\"gcp/lab\"]` in `/c.toml`"),
            ("nebius/default".to_owned(), "NEBIUS_IAM_TOKEN"),
        ]
    );
    let select = |filters: &[&str]| {
        let filters: Vec<AccountFilter> = filters.iter().map(|filter| filter.parse().unwrap()).collect();
        connected.select(&filters).map(|accounts| accounts.len())
    };
    assert_eq!(select(&[]).unwrap(), 1);
    assert_eq!(select(&["runpod", "runpod/default"]).unwrap(), 1);
    let error = select(&["runpod", "gcp"]).unwrap_err();
    assert!(error.to_string().contains("gcp/lab") && error.to_string().contains("k.json"), "{error}");
    assert!(matches!(select(&["runpod/lab"]), Err(AccountsError::NotConnected(_))));
}

#[test]
fn settings_that_the_cloud_does_not_know_are_named_without_their_value() {
    let home = Home::new();
    for tiers in ["tiers = ['S3CRET']", "tiers = []", "tiers = 'secure,'"] {
        let error = home.connect(&[("RUNPOD_API_KEY", KEY)], &format!("[runpod]\n{tiers}")).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("`tiers`") && !shown.contains("S3CRET"), "{shown}");
    }
    assert!(home.connect(&[("RUNPOD_API_KEY", KEY)], "[runpod]\ntiers = 'secure'").is_ok());
    for secret in [KEY, OTHER] {
        let connected = home.connect(&[("RUNPOD_API_KEY", secret)], "").unwrap();
        assert!(!format!("{connected:?}").contains(secret));
    }
}

#[test]
fn without_a_place_for_the_key_of_marks_the_reason_is_told() {
    let home = Home::new();
    fs::write(home.folder.path().join(".local"), "").unwrap();
    let connected = home.connect(&[("RUNPOD_API_KEY", KEY)], "").unwrap();
    let why = connected.unproven.unwrap();
    assert!(why.contains(".local/share/gpuprov"), "{why}");
    assert_eq!((connected.accounts.len(), connected.warnings.len()), (1, 1));
}
