use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::model::money::Usd;
use crate::model::want::Spot;
use crate::state::env::Env;

const SECRET: &str = "rpa_S3CRETS3CRETS3CRET";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("/etc/c.toml"))
}

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn everything_that_the_contract_shows_is_read() {
    let config = parse(
        r#"
[defaults]
disk = 80
cloud = ["vast", "runpod"]
max_price = 3.0
ask_above = 5
k8s = true
owner = "ana"
installation = "team-ci"
gpus = "H100:2"
cpu_only = false
region = "EU"
zone = ["a", "b"]
instance_type = ["x"]
spot = "any"
secure = true
ram = 64
vcpus = 8
vram = 24
cuda = 12.10
image = "x/y:z"
port = [8080, "9090@10.0.0.0/8"]
env = ["A=1", "B"]
env_file = ".env"
startup_script = "setup.sh"
queue = "2h"
attempts = 2
wait = "ssh"
ttl = 3600
keep_failed = true
[ssh]
key = "~/.ssh/id_ed25519"
manage_config = false
[wait]
cloud_timeout = "15s"
poll = "200ms"
grace = "2s"
boot_timeout = 900
[runpod]
api_key = " rpa_1 "
image = "i"
tiers = ["secure", "community"]
account_keys = true
endpoint = "http://127.0.0.1:1"
[vast]
api_key = "k"
image = "i"
min_reliability = 0.95
verified = true
datacenter = false
endpoint = "e"
[verda]
client_id = "c"
client_secret = "s"
ssh_port = 2222
endpoint = "e"
[gcp]
credentials = "key.json"
project = "p"
zones = ["us-central1-a"]
network = "default"
ssh_port = 0x16
endpoint = "e"
[nebius]
credentials = "c"
tenant = "tenant-1"
projects = ["project-1"]
service_account = "serviceaccount-1"
token_file = "t"
ssh_port = 22
endpoint = "e"
[account."gcp/research"]
zones = "europe-west4-a"
"#,
    )
    .unwrap();
    let defaults = &config.defaults;
    assert_eq!(defaults.disk, Some(80));
    assert_eq!(defaults.gpus.as_deref(), Some(&["H100:2".to_owned()][..]));
    assert_eq!((defaults.spot, defaults.k8s), (Some(Spot::Any), Some(true)));
    assert_eq!(defaults.cuda.unwrap().to_string(), "12.10");
    assert_eq!(defaults.max_price, Some(Usd::from_micros(3_000_000)));
    assert_eq!(defaults.ask_above, Some(Usd::from_micros(5_000_000)));
    assert_eq!(defaults.port.as_deref(), Some(&["8080".to_owned(), "9090@10.0.0.0/8".to_owned()][..]));
    assert_eq!(defaults.env.as_ref().unwrap()[0].expose(), "A=1");
    assert_eq!(defaults.ttl, Some(Duration::from_secs(3600)));
    assert_eq!(config.wait.poll, Some(Duration::from_millis(200)));
    assert_eq!(config.runpod.table.as_ref().unwrap().api_key.as_ref().unwrap().expose(), "rpa_1");
    assert_eq!(config.gcp.table.as_ref().unwrap().ssh_port, Some(22));
    assert_eq!(config.gcp.accounts["research"].zones.as_deref(), Some(&["europe-west4-a".to_owned()][..]));
    assert!(config.has_secret());
    assert_eq!(config.folder(), Path::new("/etc"));
}

#[test]
fn an_empty_file_says_nothing() {
    let config = parse("# nothing\n").unwrap();
    assert_eq!(config.defaults, Defaults::default());
    assert!(!config.has_secret() && !config.runpod.is_named());
}

#[test]
fn mistakes_name_file_line_and_the_nearest_key() {
    for (text, expected) in [
        ("\n[defaults]\ndsk = 50", "line 3: unknown key `dsk` in `[defaults]`; did you mean `disk`?"),
        (
            "[defaults]\nmax-price = 1",
            "line 2: unknown key `max-price` in `[defaults]`; did you mean `max_price`?",
        ),
        ("defaults.dsk = 50", "line 1: unknown key `dsk` in `[defaults]`; did you mean `disk`?"),
        ("runpod = { api_ky = 1 }", "line 1: unknown key `api_ky` in `[runpod]`; did you mean `api_key`?"),
        ("[runpod]\nAPIKEY = \"x\"", "line 2: unknown key `APIKEY` in `[runpod]`; did you mean `api_key`?"),
        ("[runpd]", "line 1: unknown key `runpd`; did you mean `runpod`?"),
        (
            "[defaults]\nboot_timeout = 1",
            "line 2: unknown key in `[defaults]`; the nearest known one is `attempts`",
        ),
        ("[defaults]\ndisk = \"50\"", "line 2: `defaults.disk` must be a whole number of 1 or more"),
        ("[defaults]\ndisk = -1", "line 2: `defaults.disk` must be a whole number of 1 or more"),
        ("[defaults]\nk8s = \"yes\"", "line 2: `defaults.k8s` must be true or false"),
        (
            "[defaults]\nk8s = true\nno_k8s = true",
            "line 3: `defaults.no_k8s` and `k8s` contradict each other",
        ),
        (
            "[defaults]\nowner = \"Ana B\"",
            "line 2: `defaults.owner` must be 1 to 40 of a-z, 0-9 and dash, in quotes",
        ),
        (
            "[defaults]\nport = [80, 0]",
            "line 2: `defaults.port` must be a port such as 8080 or \"8080@203.0.113.0/24\", or a list of ports",
        ),
        ("[defaults]\nspot = \"never\"", "line 2: `defaults.spot` must be true, false, \"any\" or \"no\""),
        (
            "[wait]\npoll = \"soon\"",
            "line 2: `wait.poll` must be a duration, such as \"200ms\", \"90s\", \"15m\", \"2h\", \"1d\" or a whole number of seconds",
        ),
        ("[vast]\nmin_reliability = 95", "line 2: `vast.min_reliability` must be a number from 0 to 1"),
        ("[gcp]\nssh_port = 70000", "line 2: `gcp.ssh_port` must be a port, 1 to 65535"),
        ("runpod = 1", "line 1: `runpod` must be a table"),
        ("[[runpod]]", "line 1: `runpod` must be a table"),
        (
            "[account.\"runpod/lab\"]\nzones = []",
            "line 2: unknown key in `[account.\"runpod/lab\"]`; the nearest known one is `tiers`",
        ),
        (
            "[account.\"runpod/Lab\"]",
            "line 1: a table of `[account]` must be called like an account, such as `[account.\"runpod/lab\"]`",
        ),
        (
            "[account.runpod]",
            "line 1: a table of `[account]` must be called like an account, such as `[account.\"runpod/lab\"]`",
        ),
        ("[account]\n\"vast/x\" = 1", "line 2: `account.\"vast/x\"` must be a table"),
        ("[ssh]\nkey = 1\n[ssh]", "line 3: this key or table is there twice"),
        ("[ssh]\nkey = x", "line 2: text must stand in quotes"),
        ("[ssh", "line 1: this is not TOML"),
        (
            "[defaults]\nx = 1\n[ssh]\nkey = 1",
            "line 2: unknown key in `[defaults]`; the nearest known one is `env`",
        ),
    ] {
        assert_eq!(message(text), format!("config file `/etc/c.toml`, {expected}"), "{text}");
    }
}

#[test]
fn no_mistake_gives_a_secret_away() {
    for text in [
        "[runpod]\napi_key = {S}",
        "[runpod]\napi_key = \"{S}",
        "[runpod]\napi_key = '{S}\"",
        "[runpod]\napi_key = [\"{S}\"]",
        "[runpod]\napi_key = { key = \"{S}\" }",
        "[runpod]\napi_key \"{S}\"",
        "[runpod]\n{S} = \"\"",
        "[runpod]\n{S}",
        "{S}",
        "[{S}]",
        "[account.\"{S}\"]",
        "[account.\"runpod/{S}\"]",
        "[account]\n\"{S}/x\" = 1",
        "[runpod]\napi_key = \"{S}\"\napi_key = \"{S}\"",
        "[runpod]\napi_kye = \"{S}\"",
        "[verda]\nclient_secret = \"a\"\nclient_secret.\"{S}\" = 1",
        "[defaults]\nenv = { KEY = \"{S}\" }",
        "[defaults]\nowner = \"{S}\"",
        "[defaults]\nenv = [1, \"K={S}\"]",
        "[wait]\npoll = \"{S}\"",
        "runpod.api_key.{S} = 1",
    ] {
        let error = parse(&text.replace("{S}", SECRET)).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("S3CRET"), "{text}: {shown}");
    }
    let config =
        parse(&format!("[runpod]\napi_key = \"{SECRET}\"\n[defaults]\nenv = \"K={SECRET}\"")).unwrap();
    assert!(!format!("{config:?}").contains("S3CRET"));
}

#[test]
fn an_accounts_table_lies_over_the_clouds_without_its_credentials() {
    let config = parse(
        "[runpod]\napi_key = \"one\"\nimage = \"base\"\ntiers = \"secure\"\n\
         [account.\"runpod/default\"]\nimage = \"mine\"\n\
         [account.\"runpod/lab\"]\naccount_keys = true\n",
    )
    .unwrap();
    let of = |id: &str| config.runpod.of(&id.parse().unwrap());
    let default = of("runpod/default");
    assert_eq!(default.api_key.unwrap().expose(), "one");
    assert_eq!(default.image.as_deref(), Some("mine"));
    let lab = of("runpod/lab");
    assert_eq!((lab.api_key, lab.account_keys, lab.image.as_deref()), (None, Some(true), Some("base")));
    assert_eq!(of("runpod/other").tiers.unwrap(), ["secure"]);
}

#[test]
fn a_missing_file_is_empty_unless_it_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let paths = Paths::new(&Env::of([("HOME", home)])).unwrap();
    assert!(!Config::load(&paths).unwrap().runpod.is_named());
    let named = Paths { config_file_given: true, ..paths.clone() };
    assert!(matches!(Config::load(&named).unwrap_err().problem, Problem::Unreadable(_)));

    fs::create_dir_all(paths.config_file.parent().unwrap()).unwrap();
    fs::write(&paths.config_file, "[runpod]\napi_key = \"x\"").unwrap();
    for (mode, open) in [(0o600, false), (0o640, true), (0o604, true)] {
        fs::set_permissions(&paths.config_file, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(Config::load(&paths).unwrap().readable_by_others, open);
    }
    fs::write(&paths.config_file, [0xff, 0xfe]).unwrap();
    assert!(Config::load(&paths).is_err());
    fs::write(&paths.config_file, "#".repeat(2 << 20)).unwrap();
    assert_eq!(Config::load(&paths).unwrap_err().problem, Problem::TooLong);
}

#[test]
fn every_key_is_documented_and_stands_in_its_table() {
    let tables: BTreeMap<&str, &[Key]> = [
        ("defaults", Defaults::KEYS),
        ("ssh", SshTable::KEYS),
        ("wait", WaitTable::KEYS),
        ("runpod", RunpodTable::KEYS),
        ("vast", VastTable::KEYS),
        ("verda", VerdaTable::KEYS),
        ("gcp", GcpTable::KEYS),
        ("nebius", NebiusTable::KEYS),
    ]
    .into();
    for (table, keys) in tables {
        for key in keys {
            assert!(key.doc.trim().ends_with('.'), "{table}.{}", key.name);
            assert!(!["ssh_key", "cloud_timeout", "boot_timeout"].contains(&key.name) || table == "wait");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,120}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_value_of_any_key_is_quoted(key in 0..Defaults::KEYS.len(), value in "[A-Z]{6}[0-9]{6}") {
        let text = format!("[defaults]\n{} = {{ x = \"{value}\" }}", Defaults::KEYS[key].name);
        prop_assert!(!message(&text).contains(&value));
    }
}
