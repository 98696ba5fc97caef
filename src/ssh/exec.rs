//! Logging in with the system's ssh: our own commands, and handing the terminal over.
//!
//! Both use the same file for `-F`, so a login that works for us works for the user, through the same ProxyJump.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

pub use super::login_error::LoginError;
pub use super::process::Output;

use super::process::{self, Ended};
use crate::model::words::one_line;

/// What our own commands set in place of the user's configuration, which is made for people at a terminal: no question, no shared
/// connection (one that outlives its machine would answer for the next one at the same address), nothing run on this side or in
/// place of our command. Each adds what it wants of forwardings.
pub(super) const OPTIONS: [&str; 10] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "LogLevel=ERROR",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ControlMaster=no",
    "ControlPath=none",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "ConnectionAttempts=1",
];

/// A second login would find the ports of the user's forwardings taken.
const NO_FORWARDINGS: &str = "ClearAllForwardings=yes";

/// How long ssh may take to read its configuration, in which `Match exec` may run programs.
const CHECK_LIMIT: Duration = Duration::from_secs(15);

/// The system's ssh with our configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The program.
    pub ssh: PathBuf,
    /// The file for `-F` ([`super::SshFiles::config_file`]).
    pub config: PathBuf,
}

impl Client {
    /// Runs `command`, a line for the remote shell, on the machine called `name` with `stdin` as its input, for at most
    /// `limit` in all. The future can be dropped at any time: ssh is then killed.
    ///
    /// Returns what the command left whatever its exit code, but 255: that is ssh's own failure, and a remote command that
    /// ends so cannot be told from it.
    pub async fn run(
        &self,
        name: &str,
        command: &str,
        stdin: &[u8],
        limit: Duration,
    ) -> Result<Output, LoginError> {
        let mut ssh = Command::new(&self.ssh);
        ssh.arg("-F").arg(&self.config);
        for option in OPTIONS.into_iter().chain([NO_FORWARDINGS]) {
            ssh.args(["-o", option]);
        }
        ssh.args(["-T", name, "--", command]);
        match process::run(&mut ssh, stdin, limit).await {
            Ended::Done(output) => match output.code {
                Some(255) => Err(LoginError::from_stderr(&output.stderr)),
                Some(_) => Ok(output),
                None => Err(LoginError::Other("it was ended by a signal".to_owned())),
            },
            Ended::TooLong => Err(LoginError::TooLong(limit)),
            Ended::NotStarted(error) => Err(LoginError::Program(format!("{}: {error}", self.ssh.display()))),
        }
    }

    /// Replaces this process by `ssh -F FILE [-l USER] NAME WORDS...`; returns only if that fails.
    ///
    /// ssh takes options after the host as well as before it, so words go on as they are: `-L 8888:localhost:8888` is an
    /// option, `nvidia-smi` a command, `-- nvidia-smi` too. The command line wins over our block, so `user` does as well.
    pub fn replace(&self, user: Option<&str>, name: &str, words: &[OsString]) -> io::Error {
        std::process::Command::new(&self.ssh).args(self.arguments(user, name, words)).exec()
    }

    fn arguments(&self, user: Option<&str>, name: &str, words: &[OsString]) -> Vec<OsString> {
        let mut all = vec![OsString::from("-F"), self.config.clone().into_os_string()];
        // Not `USER@NAME`: as an argument of its own a user that starts with a dash is no option.
        all.extend(user.into_iter().flat_map(|user| ["-l".into(), user.into()]));
        all.push(name.into());
        all.extend_from_slice(words);
        all
    }
}

/// Makes sure that ssh takes the configuration `config` for a host called `name`: a word that it does not know, in the user's
/// own file too, would end every login. Returns ssh's words if it does not.
pub async fn check_config(ssh: &Path, config: &Path, name: &str) -> Result<(), String> {
    let mut command = Command::new(ssh);
    command.arg("-F").arg(config).args(["-G", "--", name]);
    match process::run(&mut command, &[], CHECK_LIMIT).await {
        Ended::Done(Output { code: Some(0), .. }) => Ok(()),
        Ended::Done(output) => {
            let words = String::from_utf8_lossy(&output.stderr);
            Err(one_line(words.trim(), 400))
        }
        Ended::TooLong => Err(format!("ssh did not read it within {} s", CHECK_LIMIT.as_secs())),
        Ended::NotStarted(error) => Err(format!("{}: {error}", ssh.display())),
    }
}

/// Returns the agent's socket that ssh would use for a host called `name`: `IdentityAgent` of the configuration (`config`, or
/// ssh's own default), else `from_env`, the value of `SSH_AUTH_SOCK`. Many password managers are agents of the first kind.
pub async fn agent_socket(
    ssh: &Path,
    config: Option<&Path>,
    name: &str,
    from_env: Option<&str>,
) -> Option<String> {
    let from_env = from_env.filter(|socket| !socket.is_empty()).map(str::to_owned);
    let mut command = Command::new(ssh);
    if let Some(config) = config {
        command.arg("-F").arg(config);
    }
    command.args(["-G", "--", name]);
    let Ended::Done(output) = process::run(&mut command, &[], Duration::from_secs(10)).await else {
        return from_env;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find_map(|line| line.strip_prefix("identityagent ")).map(str::trim) {
        Some("none") => None,
        Some(socket) if socket.starts_with('/') => Some(socket.to_owned()),
        // `SSH_AUTH_SOCK`, or a variable that we do not read.
        _ => from_env,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::ssh::tests::program;

    const LONG: Duration = Duration::from_secs(20);

    fn client(folder: &Path, script: &str) -> Client {
        let ssh = folder.join("ssh");
        std::fs::write(&ssh, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
        Client { ssh, config: folder.join("config") }
    }

    #[tokio::test]
    async fn a_run_gives_all_that_is_asked_and_no_more() {
        let top = tempfile::tempdir().unwrap();
        let client = client(top.path(), r#"for a in "$@"; do echo "$a"; done; cat; exit 3"#);
        let output = client.run("dev", "echo 'a b'", b"input", LONG).await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.code, Some(3));
        assert!(text.starts_with("-F\n") && text.contains("\n-o\nBatchMode=yes\n"), "{text}");
        assert!(text.ends_with("-T\ndev\n--\necho 'a b'\ninput"), "{text}");
    }

    #[tokio::test]
    async fn failures_of_ssh_are_told_apart() {
        let top = tempfile::tempdir().unwrap();
        let refused =
            client(top.path(), "echo 'ssh: connect to host h port 1: Connection refused' >&2; exit 255");
        assert_eq!(refused.run("dev", "true", b"x", LONG).await, Err(LoginError::Refused));
        let hangs = client(top.path(), "exec sleep 20");
        let short = Duration::from_millis(200);
        assert_eq!(hangs.run("dev", "true", b"", short).await, Err(LoginError::TooLong(short)));
        let killed = client(top.path(), "kill -9 $$");
        assert!(matches!(killed.run("dev", "true", b"", LONG).await, Err(LoginError::Other(_))));
        let none = Client { ssh: top.path().join("none"), config: top.path().join("c") };
        assert!(matches!(none.run("dev", "true", b"", LONG).await, Err(LoginError::Program(_))));
    }

    #[tokio::test]
    async fn the_real_ssh_takes_our_options_and_says_refused() {
        let Some(ssh) = program("ssh") else { return };
        let top = tempfile::tempdir().unwrap();
        let config = top.path().join("config");
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::fs::write(&config, format!("Host dev\n HostName 127.0.0.1\n Port {free}\n")).unwrap();
        let client = Client { ssh, config };
        assert_eq!(client.run("dev", "true", b"", LONG).await, Err(LoginError::Refused));
    }

    #[test]
    fn words_after_the_name_go_to_ssh_as_they_are() {
        let Some(ssh) = program("ssh") else { return };
        let top = tempfile::tempdir().unwrap();
        let config = top.path().join("config");
        std::fs::write(&config, "Host dev\n HostName 203.0.113.7\n User root\n").unwrap();
        let client = Client { ssh: ssh.clone(), config };
        let shown = |user: Option<&str>, words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let mut arguments = client.arguments(user, "dev", &words);
            arguments.insert(0, "-G".into());
            let output = std::process::Command::new(&ssh).args(arguments).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let forward = shown(None, &["-L", "8888:localhost:8888"]);
        assert!(
            forward.contains("localforward 8888 [localhost]:8888\n") && forward.contains("user root\n"),
            "{forward}"
        );
        assert!(shown(Some("bob"), &[]).contains("user bob\n"));
        // An option after `--` or after a command is the command's own.
        for words in [&["--", "nvidia-smi", "-l", "x"][..], &["nvidia-smi", "-l", "x"]] {
            assert!(shown(None, words).contains("user root\n"), "{words:?}");
        }
    }

    #[tokio::test]
    async fn a_configuration_that_ssh_does_not_take_is_told() {
        let Some(ssh) = program("ssh") else { return };
        let top = tempfile::tempdir().unwrap();
        let config = top.path().join("config");
        std::fs::write(&config, "Host *\n User bob\n").unwrap();
        assert_eq!(check_config(&ssh, &config, "dev").await, Ok(()));
        for bad in [&b"NoSuchOption yes\n"[..], b"\x7fELF\x02\x01\x00\x00\x80\xff\n"] {
            std::fs::write(&config, bad).unwrap();
            let words = check_config(&ssh, &config, "dev").await.unwrap_err();
            assert!(words.contains("config") && !words.contains('\n'), "{words}");
        }
        assert!(check_config(Path::new("/nonexistent"), &config, "dev").await.is_err());
    }

    #[tokio::test]
    async fn the_agent_is_the_one_that_ssh_would_ask() {
        let Some(ssh) = program("ssh") else { return };
        let top = tempfile::tempdir().unwrap();
        let config = top.path().join("config");
        for (text, socket) in [
            ("Host *\n IdentityAgent \"/a b/agent\"\n", Some("/a b/agent")),
            ("Host *\n IdentityAgent none\n", None),
            ("Host *\n IdentityAgent SSH_AUTH_SOCK\n", Some("/env")),
            ("Host other\n IdentityAgent /x\n", Some("/env")),
        ] {
            std::fs::write(&config, text).unwrap();
            assert_eq!(
                agent_socket(&ssh, Some(&config), "dev", Some("/env")).await.as_deref(),
                socket,
                "{text}"
            );
        }
        assert_eq!(agent_socket(Path::new("/nonexistent"), None, "dev", Some("")).await, None);
    }
}
