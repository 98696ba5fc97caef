//! Why a login did not work, from what ssh says.
//!
//! ssh ends with 255 for all its own failures; only its lines tell them apart. Its words are not translated and have been
//! stable; each known one has a row in the tests. At the level `ERROR`, which is what we run it with, ssh says nothing when
//! the server merely hangs up: no words at all are [`LoginError::Closed`].

use std::time::Duration;

use crate::model::words::one_line;

/// Why a login did not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Nothing listens.
    #[error("the connection was refused")]
    Refused,
    /// No answer.
    #[error("the connection timed out")]
    TimedOut,
    /// The network says no.
    #[error("the machine cannot be reached: {0}")]
    Unreachable(String),
    /// The host name has no address (yet).
    #[error("the host name was not found: {0}")]
    NameNotFound(String),
    /// The server hung up: starting, restarting, or tired of us.
    #[error("the connection was closed by the server")]
    Closed,
    /// The key is not taken.
    #[error("permission denied for {who}, which takes {methods}{}", detail.as_deref().map(|d| format!(" ({d})")).unwrap_or_default())]
    PermissionDenied {
        /// `USER@HOST`, with a ProxyJump perhaps the jump host.
        who: String,
        /// What the server takes, in ssh's words: `publickey`, `publickey,password`.
        methods: String,
        /// Why our key was not even offered, if ssh says so: it could not be read, or the agent did not sign.
        detail: Option<String>,
    },
    /// Another host key than the one that is filed.
    #[error("the host key is not the one that was seen before")]
    HostKeyChanged,
    /// No host key is filed, or none of a kind that the server has, and the first contact is not to be trusted.
    #[error("the host key is not known")]
    HostKeyUnknown,
    /// ssh stopped at its configuration or at a file on this computer: trying again does not help.
    #[error("ssh on this computer refuses: {0}")]
    Misconfigured(String),
    /// The login worked or was under way, and the command did not end within its time.
    #[error("it did not end within {}", crate::model::duration::show(*.0))]
    TooLong(Duration),
    /// ssh could not be started.
    #[error("ssh could not be run: {0}")]
    Program(String),
    /// Anything else, in ssh's words.
    #[error("ssh failed: {0}")]
    Other(String),
}

impl LoginError {
    /// Whether the machine may simply not be up yet, so that trying again makes sense. A denied key is not among these: it
    /// has its own grace; nor is [`LoginError::TooLong`], which may mean that a command is still running there.
    pub fn is_not_up_yet(&self) -> bool {
        use LoginError::{Closed, NameNotFound, Refused, TimedOut, Unreachable};
        matches!(self, Refused | TimedOut | Unreachable(_) | NameNotFound(_) | Closed)
    }

    /// Reads the standard error of an ssh that ended with 255.
    pub(super) fn from_stderr(stderr: &[u8]) -> LoginError {
        let text = String::from_utf8_lossy(stderr);
        // A jump host's ssh runs at its own level and tells what is no failure.
        let says = |line: &&str| {
            !(line.is_empty()
                || line.starts_with("Warning: Permanently added ")
                || line.starts_with("Killed by signal "))
        };
        let lines: Vec<&str> = text.lines().map(str::trim).filter(says).collect();
        let has = |needle: &str| lines.iter().any(|line| line.contains(needle));
        if has("REMOTE HOST IDENTIFICATION HAS CHANGED") || has("for host key with fingerprint") {
            return LoginError::HostKeyChanged;
        }
        if has("Host key verification failed.") {
            // `No ED25519 host key is known for X and you have requested strict checking.`, and `REVOKED HOST KEY`.
            return if has("REVOKED") { LoginError::HostKeyChanged } else { LoginError::HostKeyUnknown };
        }
        if let Some(denied) = lines.iter().find_map(|line| denied(line, &lines)) {
            return denied;
        }
        // With a jump host the cause comes first and the consequence (`kex_exchange_identification: ...`) after it.
        match lines.iter().find_map(|line| one(line)) {
            Some(error) => error,
            None if lines.is_empty() => LoginError::Closed,
            None => LoginError::Other(one_line(&lines.join("; "), 300)),
        }
    }
}

/// Reads `root@203.0.113.7: Permission denied (publickey).`
fn denied(line: &str, lines: &[&str]) -> Option<LoginError> {
    let detail = || {
        let why = |line: &&&str| {
            line.starts_with("Load key ")
                || line.starts_with("sign_and_send_pubkey: ")
                || line.contains("agent refused")
        };
        lines.iter().find(why).map(|line| one_line(line, 200))
    };
    if line.contains("Too many authentication failures") {
        let who = line.strip_prefix("Received disconnect from ").unwrap_or("the server").split(' ').next();
        let who = one_line(who.unwrap_or_default(), 80);
        return Some(LoginError::PermissionDenied {
            who,
            methods: "no more tries".to_owned(),
            detail: detail(),
        });
    }
    let (who, rest) = line.split_once(": Permission denied (")?;
    let methods = rest.split(')').next().unwrap_or_default();
    (who.contains('@') && !who.contains(' ')).then(|| LoginError::PermissionDenied {
        who: one_line(who, 120),
        methods: one_line(methods, 80),
        detail: detail(),
    })
}

/// Reads one line by itself.
fn one(line: &str) -> Option<LoginError> {
    let ends = |needles: &[&str]| needles.iter().any(|needle| line.ends_with(needle));
    let has = |needles: &[&str]| needles.iter().any(|needle| line.contains(needle));
    let shown = || one_line(line, 200);
    let misconfigured = [
        "Bad owner or permissions on ",
        "Bad configuration option",
        "bad configuration options",
        "Can't open user config file",
        "unsupported option",
        "No user exists for uid",
        "invalid quotes",
        "Bad stdio forwarding",
    ];
    if has(&misconfigured) {
        return Some(LoginError::Misconfigured(shown()));
    }
    if let Some((_, why)) = line.split_once("Could not resolve hostname ") {
        return Some(LoginError::NameNotFound(one_line(why, 160)));
    }
    // Ours, or a jump host's: `channel 0: open failed: connect failed: ...`.
    if line.starts_with("ssh: connect to host ") || line.contains("open failed: connect failed: ") {
        return Some(if ends(&["Connection refused"]) {
            LoginError::Refused
        } else if ends(&["Connection timed out", "Operation timed out"]) {
            LoginError::TimedOut
        } else if ends(&["Connection reset by peer"]) {
            LoginError::Closed
        } else {
            let why = line.rsplit(": ").next().unwrap_or(line);
            if has(&["Name or service not known", "Temporary failure in name resolution"]) {
                LoginError::NameNotFound(one_line(why, 160))
            } else {
                LoginError::Unreachable(one_line(why, 160))
            }
        });
    }
    if has(&["timed out during banner exchange", "not responding"])
        || (line.starts_with("Connection to ")
            && ends(&["timed out", "Connection timed out", "Operation timed out"]))
    {
        return Some(LoginError::TimedOut);
    }
    let closed = [
        "kex_exchange_identification: ",
        "ssh_exchange_identification: ",
        "banner exchange: ",
        "Connection closed by ",
        "Connection reset by ",
        "closed by remote host",
        "ssh_dispatch_run_fatal: ",
        "client_loop: send disconnect",
        "packet_write_wait: ",
        "Not allowed at this time",
    ];
    closed
        .iter()
        .any(|start| line.starts_with(start) || (line.starts_with("Connection to ") && line.contains(start)))
        .then_some(LoginError::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_line() {
        use LoginError::{Closed, HostKeyChanged, HostKeyUnknown, Refused, TimedOut};
        let unreachable = |why: &str| LoginError::Unreachable(why.to_owned());
        let missing = |why: &str| LoginError::NameNotFound(why.to_owned());
        for (stderr, error) in [
            ("ssh: connect to host 127.0.0.1 port 1: Connection refused\r\n", Refused),
            ("ssh: connect to host 203.0.113.7 port 22: Connection timed out", TimedOut),
            ("ssh: connect to host 203.0.113.7 port 22: Operation timed out", TimedOut),
            ("ssh: connect to host 203.0.113.7 port 22: No route to host", unreachable("No route to host")),
            (
                "ssh: connect to host 2001:db8::1 port 22: Network is unreachable",
                unreachable("Network is unreachable"),
            ),
            ("ssh: connect to host 203.0.113.7 port 22: Connection reset by peer", Closed),
            (
                "Connection timed out during banner exchange\nConnection to 127.0.0.1 port 40004 timed out",
                TimedOut,
            ),
            ("Connection to 203.0.113.7 port 22 timed out", TimedOut),
            ("Timeout, server 203.0.113.7 not responding.", TimedOut),
            (
                "ssh: Could not resolve hostname x.invalid: Name or service not known",
                missing("x.invalid: Name or service not known"),
            ),
            (
                "ssh: Could not resolve hostname x: nodename nor servname provided, or not known",
                missing("x: nodename nor servname provided, or not known"),
            ),
            ("kex_exchange_identification: Connection closed by remote host", Closed),
            ("kex_exchange_identification: read: Connection reset by peer", Closed),
            ("kex_exchange_identification: banner line contains invalid characters", Closed),
            ("ssh_exchange_identification: Connection closed by remote host", Closed),
            ("banner exchange: Connection to 127.0.0.1 port 22: invalid format", Closed),
            ("Connection closed by 203.0.113.7 port 22", Closed),
            ("Connection reset by 203.0.113.7 port 22", Closed),
            ("Connection to 203.0.113.7 closed by remote host.", Closed),
            ("ssh_dispatch_run_fatal: Connection to 203.0.113.7 port 22: Broken pipe", Closed),
            ("client_loop: send disconnect: Broken pipe", Closed),
            ("", Closed),
            (
                "Warning: Permanently added '[h]:1' (ED25519) to the list of known hosts.\r\nKilled by signal 1.",
                Closed,
            ),
            (
                "ssh: connect to host 127.0.0.1 port 1: Connection refused\nkex_exchange_identification: Connection closed by remote host",
                Refused,
            ),
            (
                "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\nkex_exchange_identification: Connection closed by remote host",
                Refused,
            ),
            (
                "channel 0: open failed: connect failed: No route to host\nstdio forwarding failed",
                unreachable("No route to host"),
            ),
            (
                "@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@\nHost key verification failed.",
                HostKeyChanged,
            ),
            (
                "No ED25519 host key is known for gpuprov-vast-1 and you have requested strict checking.\nHost key verification failed.",
                HostKeyUnknown,
            ),
            (
                "@       WARNING: REVOKED HOST KEY DETECTED!               @\nHost key verification failed.",
                HostKeyChanged,
            ),
        ] {
            assert_eq!(LoginError::from_stderr(stderr.as_bytes()), error, "{stderr}");
        }
    }

    #[test]
    fn denied_says_who_and_why() {
        let read = |text: &str| LoginError::from_stderr(text.as_bytes());
        let denied = |who: &str, methods: &str, detail: Option<&str>| LoginError::PermissionDenied {
            who: who.to_owned(),
            methods: methods.to_owned(),
            detail: detail.map(str::to_owned),
        };
        assert_eq!(
            read("root@203.0.113.7: Permission denied (publickey).\r\n"),
            denied("root@203.0.113.7", "publickey", None)
        );
        let refused =
            "sign_and_send_pubkey: signing failed for ED25519 \"/k\" from agent: agent refused operation";
        let text = format!("{refused}\nroot@h: Permission denied (publickey,password).");
        assert_eq!(read(&text), denied("root@h", "publickey,password", Some(refused)));
        let load = "Load key \"/k\": bad permissions";
        assert_eq!(
            read(&format!("{load}\nroot@h: Permission denied (publickey).")),
            denied("root@h", "publickey", Some(load))
        );
        let many = "Received disconnect from 203.0.113.7 port 22:2: Too many authentication failures\nDisconnected from 203.0.113.7 port 22";
        assert_eq!(read(many), denied("203.0.113.7", "no more tries", None));
        let jump = "bob@bastion: Permission denied (publickey).\nkex_exchange_identification: Connection closed by remote host";
        assert_eq!(read(jump), denied("bob@bastion", "publickey", None));
        // A remote program's words are not ssh's.
        assert!(matches!(read("bash: /root/x: Permission denied"), LoginError::Other(_)));
    }

    #[test]
    fn this_computers_own_faults() {
        for text in [
            "Bad owner or permissions on /home/u/.ssh/config",
            "/home/u/.ssh/config: line 3: Bad configuration option: foo\r\n/home/u/.ssh/config: terminating, 1 bad configuration options",
            "Can't open user config file /x: No such file or directory",
            "No user exists for uid 12345",
            "/x line 9: unsupported option \"accept-new\".",
        ] {
            let error = LoginError::from_stderr(text.as_bytes());
            assert!(matches!(error, LoginError::Misconfigured(_)) && !error.is_not_up_yet(), "{text}");
        }
        let other = LoginError::from_stderr(b"Unable to negotiate with 203.0.113.7 port 22: no matching host key type found. Their offer: ssh-dss\x1b[31m");
        assert!(matches!(&other, LoginError::Other(words) if !words.contains('\x1b')));
        assert!(!LoginError::HostKeyChanged.is_not_up_yet() && LoginError::Closed.is_not_up_yet());
    }
}
