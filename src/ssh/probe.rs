//! Looking from outside whether an SSH server answers, and which host keys it shows.
//!
//! The probe only hurries: a banner says that a login is worth a try now, no banner says nothing (behind a ProxyJump the
//! machine may be reachable all the same). Servers since OpenSSH 9.8 punish an address for connections without a login, one
//! second for each and locked out above fifteen, so stop probing at the first [`Banner::Ssh`].

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::known_hosts;
use super::process::{self, Ended};
use crate::model::machine::SshAddress;
use crate::model::words;

/// The most that is read before the `SSH-` line, in bytes.
const MOST: u64 = 8 * 1024;

/// What a look at the port showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Banner {
    /// An SSH server says its name.
    Ssh,
    /// Nothing listens, or whatever listens hangs up without a word (a forwarder with nothing behind it yet).
    Refused,
    /// No answer within the time.
    Silent,
    /// Something else speaks; its first line.
    NotSsh(String),
    /// The network says it cannot be reached, or the name has no address; in the system's words.
    Unreachable(String),
}

/// Connects and waits for the line with which an SSH server starts, at most `timeout` in all.
pub async fn banner(address: &SshAddress, timeout: Duration) -> Banner {
    let look = async {
        match TcpStream::connect((address.host(), address.port())).await {
            Ok(stream) => first_words(stream).await,
            Err(error) => failed(&error),
        }
    };
    tokio::time::timeout(timeout, look).await.unwrap_or(Banner::Silent)
}

fn failed(error: &std::io::Error) -> Banner {
    use std::io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, TimedOut, UnexpectedEof,
    };
    match error.kind() {
        ConnectionRefused | ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof => {
            Banner::Refused
        }
        TimedOut => Banner::Silent,
        _ => Banner::Unreachable(words::one_line(&error.to_string(), 120)),
    }
}

/// Reads up to a line that starts with `SSH-`; RFC 4253 lets a server send other lines before it.
async fn first_words(stream: impl AsyncRead + Unpin) -> Banner {
    let mut stream = stream.take(MOST);
    let mut got = Vec::new();
    let mut chunk = [0; 512];
    loop {
        match stream.read(&mut chunk).await {
            Ok(0) if got.is_empty() => return Banner::Refused,
            Ok(0) => break,
            Ok(count) => got.extend_from_slice(&chunk[..count]),
            Err(error) if got.is_empty() => return failed(&error),
            Err(_) => break,
        }
        if got.split(|b| *b == b'\n').any(|line| line.starts_with(b"SSH-")) {
            return Banner::Ssh;
        }
    }
    let first = got.split(|b| *b == b'\n').next().unwrap_or_default();
    Banner::NotSsh(words::one_line(&String::from_utf8_lossy(first), 80))
}

/// Why no host key was learnt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// The program did not run.
    #[error("`ssh-keyscan` could not be run: {0}")]
    Program(String),
    /// It did not end in time.
    #[error("no host key was shown in time")]
    TooLong,
    /// The server showed none.
    #[error("no host key was shown")]
    Nothing,
}

/// Returns the host keys that the server shows, each `TYPE BASE64`, by `ssh-keyscan`, at most `timeout` in all.
///
/// Whoever answers can show any key: compare them with what the cloud says ([`known_hosts::matching`]) before writing them.
pub async fn scan(
    ssh_keyscan: &Path,
    address: &SshAddress,
    timeout: Duration,
) -> Result<Vec<String>, ScanError> {
    let seconds = timeout.as_secs().clamp(1, 60).to_string();
    let mut command = Command::new(ssh_keyscan);
    command.args([
        "-p",
        &address.port().to_string(),
        "-T",
        &seconds,
        "-t",
        "ed25519,ecdsa,rsa",
        "--",
        address.host(),
    ]);
    let output = match process::run(&mut command, &[], timeout).await {
        Ended::Done(output) => output,
        Ended::TooLong => return Err(ScanError::TooLong),
        Ended::NotStarted(error) => return Err(ScanError::Program(error.to_string())),
    };
    let keys = keys_of(&String::from_utf8_lossy(&output.stdout));
    if keys.is_empty() { Err(ScanError::Nothing) } else { Ok(keys) }
}

/// Reads lines `HOST TYPE BASE64`.
fn keys_of(text: &str) -> Vec<String> {
    let key = |line: &str| {
        let (_, key) = line.trim().split_once(' ')?;
        let (ty, base64, _) = known_hosts::split(key)?;
        Some(format!("{ty} {base64}"))
    };
    let mut keys: Vec<String> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(key).take(20).collect();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    /// Looks at a listener that writes `pieces` and then hangs up, or holds the line if `hold`.
    async fn look(pieces: &'static [&'static [u8]], hold: bool, timeout: Duration) -> Banner {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for piece in pieces {
                let _ = stream.write_all(piece).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if hold {
                tokio::time::sleep(Duration::from_secs(20)).await;
            }
        });
        let address = SshAddress::new("127.0.0.1", i64::from(port), "root", true).unwrap();
        let banner = banner(&address, timeout).await;
        server.abort();
        banner
    }

    #[tokio::test]
    async fn what_listeners_say() {
        let long = Duration::from_secs(10);
        assert_eq!(look(&[b"SSH-2.0-x\r\n"], true, long).await, Banner::Ssh);
        assert_eq!(look(&[b"wel", b"come\r\nSS", b"H-2.0-x"], true, long).await, Banner::Ssh);
        assert_eq!(look(&[], false, long).await, Banner::Refused);
        assert_eq!(look(&[], true, SHORT).await, Banner::Silent);
        assert_eq!(
            look(&[b"HTTP/1.1 400 Bad\x1b[31m\r\n\r\nx"], false, long).await,
            Banner::NotSsh("HTTP/1.1 400 Bad [31m".to_owned())
        );
        static FLOOD: &[&[u8]] = &[&[b'x'; 64 * 1024]];
        assert!(matches!(look(FLOOD, true, long).await, Banner::NotSsh(_)));
    }

    #[tokio::test]
    async fn nothing_listens() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let address = SshAddress::new("127.0.0.1", i64::from(free), "root", true).unwrap();
        assert_eq!(banner(&address, Duration::from_secs(5)).await, Banner::Refused);
    }

    #[tokio::test]
    async fn a_scan_of_nothing_is_an_error() {
        let Some(program) = crate::ssh::tests::program("ssh-keyscan") else { return };
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let address = SshAddress::new("127.0.0.1", i64::from(free), "root", true).unwrap();
        assert_eq!(scan(&program, &address, Duration::from_secs(5)).await, Err(ScanError::Nothing));
        let gone = scan(Path::new("/nonexistent/ssh-keyscan"), &address, SHORT).await;
        assert!(matches!(gone, Err(ScanError::Program(_))));
    }

    #[test]
    fn scanned_lines_are_read() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHiQa+s6mE2/SwHPdJTYWwH0/PC0h9Xr01nthiDZh7sa";
        let text = format!(
            "# 127.0.0.1:22 SSH-2.0-x\n[127.0.0.1]:2222 {key}\n127.0.0.1 {key}\nhost ssh-rsa AAAA\n\n"
        );
        assert_eq!(keys_of(&text), [key]);
    }
}
