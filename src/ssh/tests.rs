//! Tests of the files as a whole, with the real ssh reading them.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[cfg(feature = "sandbox")]
#[path = "login_tests.rs"]
mod login;

use super::*;
use crate::model::machine::SshAddress;

/// Returns a program of the system; none where OpenSSH is not installed, and its tests then pass by.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    super::program::find(&std::env::var_os("PATH")?, name)
}

const HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHiQa+s6mE2/SwHPdJTYWwH0/PC0h9Xr01nthiDZh7sa";

struct Home {
    top: tempfile::TempDir,
    home: PathBuf,
}

impl Home {
    fn new() -> Home {
        Home::called("home")
    }

    fn called(name: &str) -> Home {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().join(name);
        fs::create_dir(&home).unwrap();
        Home { top, home }
    }

    fn files(&self, installation: &str) -> SshFiles {
        let ssh = self.home.join(".ssh");
        let home = Some(self.home.clone());
        SshFiles::new(ssh.join("gpuprov"), installation.parse().unwrap(), Some(ssh.join("config")), home)
    }

    fn config(&self) -> PathBuf {
        self.home.join(".ssh/config")
    }

    fn set_config(&self, text: &str) {
        files::make_folder(&self.home.join(".ssh")).unwrap();
        fs::write(self.config(), text).unwrap();
        chmod(&self.config(), 0o600);
    }

    fn block(&self, text: &str) -> Block {
        Block {
            name: name(text),
            address: SshAddress::new("203.0.113.7", 2222, "root", false).unwrap(),
            identity_file: self.home.join(".ssh/my key%1"),
            host_key_alias: "gpuprov-vast-17".to_owned(),
            host_key_known: false,
        }
    }
}

fn name(text: &str) -> MachineName {
    text.parse().unwrap()
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

/// Returns what ssh makes of a configuration for a host, line by line; none where ssh is missing.
fn effect(config: &Path, host: &str) -> Option<Vec<String>> {
    let output = Command::new(program("ssh")?).args(["-G", "-F"]).arg(config).arg(host).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn ours_wins_over_host_star_and_the_rest_stays_the_users() {
    for folder in ["home", "ho me [x] *'#~"] {
        let home = Home::called(folder);
        let files = home.files("abcd1234");
        home.set_config(
            "Host *\n  User bob\n  Port 7\n  ProxyJump bastion\n  LogLevel VERBOSE\nHost bastion\n  Port 99\n",
        );
        files.check().unwrap();
        let block = home.block("dev");
        assert!(files.write_block(&block).unwrap() && !files.write_block(&block).unwrap());
        assert!(matches!(files.ensure_include().unwrap(), Include::Added { .. }));
        assert_eq!(files.ensure_include().unwrap(), Include::Present);
        for config in [home.config(), files.config_file()] {
            let Some(lines) = effect(&config, "dev") else { return };
            let known_hosts = files.known_hosts(&name("dev"));
            for line in [
                "user root",
                "hostname 203.0.113.7",
                "port 2222",
                "identitiesonly yes",
                "stricthostkeychecking accept-new",
                "hostkeyalias gpuprov-vast-17",
                "updatehostkeys false",
                "serveraliveinterval 15",
                "proxyjump bastion",
                "loglevel VERBOSE",
                &format!("userknownhostsfile {}", known_hosts.display()),
            ] {
                assert!(lines.iter().any(|l| l == line), "{line} in {lines:#?}");
            }
            assert!(lines.iter().any(|line| line.starts_with("identityfile ") && line.contains("/my key%")));
            // Other hosts do not notice.
            let bastion = effect(&config, "bastion").unwrap();
            assert!(bastion.contains(&"user bob".to_owned()) && bastion.contains(&"port 7".to_owned()));
            assert!(!bastion.iter().any(|line| line.contains("gpuprov")));
        }
    }
}

#[test]
fn the_users_file_keeps_its_kind() {
    let home = Home::new();
    let files = home.files("abcd1234");
    // A link into a folder of dot files, CRLF, another mode, bytes that are not UTF-8.
    let dots = home.top.path().join("dots");
    fs::create_dir(&dots).unwrap();
    let old = b"# \xff\xfe\r\nHost *\r\n  User bob";
    fs::write(dots.join("config"), old).unwrap();
    chmod(&dots.join("config"), 0o644);
    files::make_folder(&home.home.join(".ssh")).unwrap();
    std::os::unix::fs::symlink(dots.join("config"), home.config()).unwrap();
    files.write_block(&home.block("dev")).unwrap();
    let Include::Added { path, line } = files.ensure_include().unwrap() else { panic!() };
    assert_eq!(path, home.config());
    assert!(line.starts_with("Include \"/") && line.ends_with("/.ssh/gpuprov/*.conf\""));
    assert!(fs::symlink_metadata(home.config()).unwrap().is_symlink());
    assert_eq!(mode(&dots.join("config")), 0o644);
    assert_eq!(fs::read(dots.join("config")).unwrap(), [line.as_bytes(), b"\r\n", old].concat());
    let Some(lines) = effect(&home.config(), "dev") else { return };
    assert!(lines.contains(&"user root".to_owned()));
}

#[test]
fn a_missing_file_is_made_private() {
    let home = Home::new();
    let files = home.files("abcd1234");
    assert!(matches!(files.ensure_include().unwrap(), Include::Added { .. }));
    assert_eq!((mode(&home.config()), mode(&home.home.join(".ssh"))), (0o600, 0o700));
    files.write_block(&home.block("dev")).unwrap();
    assert_eq!(
        (mode(&files.conf_file()), mode(&files.config_file()), mode(files.dir())),
        (0o600, 0o600, 0o700)
    );
}

#[test]
fn the_line_is_known_in_all_its_forms() {
    for line in [
        "Include ~/.ssh/gpuprov/*.conf",
        "include = \"~/.ssh/gpuprov/*.conf\"",
        "INCLUDE gpuprov/*",
        "Include gpuprov/abcd1234.conf other",
    ] {
        let home = Home::new();
        home.set_config(&format!("# mine\n{line}\n"));
        let files = home.files("abcd1234");
        assert_eq!(files.ensure_include().unwrap(), Include::Present, "{line}");
    }
    for line in
        ["Include gpuprov/other.conf", "Include ~bob/.ssh/gpuprov/*.conf", "Include other gpuprov/*.conf"]
    {
        let home = Home::new();
        home.set_config(&format!("{line}\n"));
        assert!(matches!(home.files("abcd1234").ensure_include().unwrap(), Include::Added { .. }), "{line}");
    }
}

#[test]
fn what_cannot_be_changed_is_an_error_with_the_file() {
    let home = Home::new();
    let files = home.files("abcd1234");
    home.set_config("\u{feff}Host *\n");
    assert!(matches!(files.ensure_include(), Err(IncludeError::ByteOrderMark(_))));
    fs::remove_file(home.config()).unwrap();
    fs::create_dir(home.config()).unwrap();
    assert!(matches!(files.ensure_include(), Err(IncludeError::Io(_))));
    let none = SshFiles::new(files.dir().to_owned(), "abcd1234".parse().unwrap(), None, None);
    assert!(matches!(none.ensure_include(), Err(IncludeError::NoHome)));
    let odd = Home::called("a\"b");
    assert!(matches!(odd.files("abcd1234").ensure_include(), Err(IncludeError::Unwritable(_))));
    assert!(
        odd.files("abcd1234").check().is_err()
            && odd.files("abcd1234").write_block(&odd.block("dev")).is_err()
    );
    if !nix::unistd::getuid().is_root() {
        let home = Home::new();
        home.set_config("Host *\n");
        chmod(&home.config(), 0o400);
        assert!(matches!(home.files("abcd1234").ensure_include(), Err(IncludeError::Io(_))));
        assert_eq!(fs::read(home.config()).unwrap(), b"Host *\n");
    }
}

#[test]
fn blocks_come_change_and_go() {
    let home = Home::new();
    let files = home.files("abcd1234");
    let (one, two) = (home.block("one"), home.block("two"));
    files.write_block(&one).unwrap();
    files.write_block(&two).unwrap();
    assert_eq!(files.blocks().unwrap(), [name("one"), name("two")]);
    let moved = Block {
        address: SshAddress::new("2001:db8::1", 22, "ubuntu", false).unwrap(),
        host_key_known: true,
        ..one
    };
    assert!(files.write_block(&moved).unwrap());
    assert_eq!(files.blocks().unwrap(), [name("one"), name("two")]);
    if let Some(lines) = effect(&files.config_file(), "one") {
        for line in ["hostname 2001:db8::1", "user ubuntu", "stricthostkeychecking true"] {
            assert!(lines.iter().any(|l| l == line), "{line} in {lines:#?}");
        }
    }
    let bad = Block { host_key_alias: "a b".to_owned(), ..two };
    assert!(files.write_block(&bad).is_err());
    files.set_known_hosts(&name("one"), "gpuprov-vast-17", &[HOST_KEY.to_owned()]).unwrap();
    assert_eq!(
        fs::read_to_string(files.known_hosts(&name("one"))).unwrap(),
        format!("gpuprov-vast-17 {HOST_KEY}\n")
    );
    assert!(files.set_known_hosts(&name("one"), "gpuprov-vast-17", &["null".to_owned()]).is_err());
    files.remove(&name("one")).unwrap();
    assert!(!files.known_hosts(&name("one")).exists());
    assert_eq!(files.blocks().unwrap(), [name("two")]);
    files.clear_known_hosts(&name("two")).unwrap();
    files.remove(&name("two")).unwrap();
    files.remove(&name("two")).unwrap();
    assert!(!files.conf_file().exists() && !files.config_file().exists());
    let left: Vec<_> = fs::read_dir(files.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[test]
fn several_at_once_lose_no_block() {
    let home = Home::new();
    let files = home.files("abcd1234");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (files, block) = (files.clone(), home.block(&format!("m{number}")));
            scope.spawn(move || {
                files.write_block(&block).unwrap();
                files.ensure_include().unwrap();
            });
        }
    });
    assert_eq!(files.blocks().unwrap().len(), 8);
    assert_eq!(fs::read_to_string(home.config()).unwrap().lines().count(), 1);
}

#[test]
fn names_that_are_taken() {
    let home = Home::new();
    let files = home.files("abcd1234");
    let ssh = home.home.join(".ssh");
    assert_eq!(files.taken_by(&name("dev")).unwrap(), None, "nothing is there");
    for (line, taken) in [
        ("Host dev", true),
        ("  host=dev", true),
        ("Host \"dev\" x", true),
        ("HOST x dev\r", true),
        ("Host *", false),
        ("Host de? d*", false),
        ("Host !dev *", false),
        ("Host Dev", false),
        ("Host devel", false),
        ("# Host dev", false),
        ("Host x # dev", false),
        ("HostName dev", false),
        ("Match host dev", false),
    ] {
        home.set_config(&format!("Host *\n  User bob\n{line}\n"));
        assert_eq!(files.taken_by(&name("dev")).unwrap().is_some(), taken, "{line}");
    }
    // Its own includes, relative and with ~, patterns, in circles, and too deep is no harm.
    fs::create_dir(ssh.join("conf.d")).unwrap();
    fs::write(ssh.join("conf.d/a.conf"), "Include ~/.ssh/conf.d/*.conf\nInclude ~/.ssh/more\n").unwrap();
    fs::write(ssh.join("more"), "Host deep\n").unwrap();
    home.set_config("Include conf.d/*.conf missing\nInclude gpuprov/*.conf\n");
    assert_eq!(files.taken_by(&name("deep")).unwrap(), Some(ssh.join("more")));
    assert_eq!(files.taken_by(&name("dev")).unwrap(), None);
    // Our own blocks are the registry's affair; those of another installation are not.
    files.write_block(&home.block("dev")).unwrap();
    assert_eq!(files.taken_by(&name("dev")).unwrap(), None);
    let other = home.files("zzzz9999");
    assert_eq!(other.taken_by(&name("dev")).unwrap(), Some(files.conf_file()));
    home.set_config("");
    assert_eq!(other.taken_by(&name("dev")).unwrap(), Some(files.conf_file()));
}

#[test]
fn a_home_that_ssh_does_not_go_by_is_said() {
    let home = Home::new();
    assert_eq!(home.files("abcd1234").plain_ssh_note(), None);
    let ssh = home.home.join(".ssh");
    let elsewhere = |passwd: Option<PathBuf>| {
        SshFiles::new(ssh.join("gpuprov"), "abcd1234".parse().unwrap(), Some(ssh.join("config")), passwd)
    };
    let note = elsewhere(Some("/nonexistent/home".into())).plain_ssh_note().unwrap();
    let config = home.files("abcd1234").config_file();
    assert!(
        note.contains("/nonexistent/home") && note.contains(&format!("ssh -F '{}'", config.display())),
        "{note}"
    );
    assert_eq!(elsewhere(None).plain_ssh_note(), None);
    // The same folder by another name.
    let link = home.top.path().join("link");
    std::os::unix::fs::symlink(&home.home, &link).unwrap();
    assert_eq!(elsewhere(Some(link)).plain_ssh_note(), None);
}

#[test]
fn a_users_file_that_ssh_refuses_does_not_stop_our_own_logins() {
    let home = Home::new();
    let files = home.files("abcd1234");
    home.set_config("Host *\n  User bob\n");
    chmod(&home.config(), 0o666);
    files.write_block(&home.block("dev")).unwrap();
    assert!(files.plain_ssh_note().unwrap().contains("chmod go-w"));
    let Some(lines) = effect(&files.config_file(), "dev") else { return };
    assert!(lines.contains(&"user root".to_owned()));
    // Mended, it counts again.
    chmod(&home.config(), 0o600);
    files.write_block(&home.block("dev")).unwrap();
    assert!(effect(&files.config_file(), "other").unwrap().contains(&"user bob".to_owned()));
}

#[test]
fn root_in_another_users_home_leaves_files_of_that_user() {
    if !nix::unistd::getuid().is_root() {
        return;
    }
    // A file of root's that only root reads, included by the user's configuration, would stop every ssh of the user.
    let home = Home::new();
    std::os::unix::fs::chown(&home.home, Some(12_345), Some(12_345)).unwrap();
    let files = home.files("abcd1234");
    files.write_block(&home.block("dev")).unwrap();
    files.ensure_include().unwrap();
    files.ensure_include().unwrap();
    files.set_known_hosts(&name("dev"), "gpuprov-vast-17", &[HOST_KEY.to_owned()]).unwrap();
    for path in [
        home.config(),
        files.conf_file(),
        files.config_file(),
        files.known_hosts(&name("dev")),
        files.folder(),
    ] {
        assert_eq!(fs::metadata(&path).unwrap().uid(), 12_345, "{}", path.display());
    }
}
