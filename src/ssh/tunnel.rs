//! A tunnel: one local port that leads to a port on the machine's own loopback.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::exec::{Client, LoginError, OPTIONS};
use crate::model::secret::VARIABLES;

/// A tunnel whose port cannot be had is none.
const FORWARDING: &str = "ExitOnForwardFailure=yes";

/// What the machine runs meanwhile: it says that we are in, and ends when our end of its input does, also when we are killed.
const HOLD: &str = "echo gpuprov:tunnel; exec cat >/dev/null";
/// How long the login may take.
const LIMIT: Duration = Duration::from_secs(40);
/// The most that is kept of ssh's words, in bytes.
const MOST: usize = 8 * 1024;

/// An open tunnel. It ends when the value is dropped, or when this process ends in whatever way.
#[derive(Debug)]
pub struct Tunnel {
    child: Child,
    // Closed to end it.
    _stdin: Option<ChildStdin>,
    words: Arc<Mutex<Vec<u8>>>,
}

impl Client {
    /// Opens a tunnel from `local` on 127.0.0.1 to `remote` on the loopback of the machine called `name`. It returns when the
    /// port is open; whether something listens behind it is seen by the first connection.
    pub async fn tunnel(&self, name: &str, local: u16, remote: u16) -> Result<Tunnel, LoginError> {
        let mut ssh = Command::new(&self.ssh);
        ssh.arg("-F").arg(&self.config);
        for option in OPTIONS.into_iter().chain([FORWARDING]) {
            ssh.args(["-o", option]);
        }
        let forward = format!("127.0.0.1:{local}:127.0.0.1:{remote}");
        ssh.args(["-T", "-L", &forward, name, "--", HOLD]);
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C at the terminal is for the program that uses the tunnel.
        ssh.process_group(0);
        for variable in VARIABLES {
            ssh.env_remove(variable);
        }
        let failed = |error: std::io::Error| LoginError::Program(format!("{}: {error}", self.ssh.display()));
        let mut child = ssh.spawn().map_err(failed)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let words = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&words);
        let reading = tokio::spawn(async move {
            let Some(mut stderr) = stderr else { return };
            let mut chunk = [0; 1024];
            while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let fits = count.min(MOST - kept.len());
                kept.extend_from_slice(&chunk[..fits]);
            }
        });
        let opened = async {
            let mut lines = BufReader::new(stdout?).lines();
            // A machine's own login files may print before.
            while let Ok(Some(line)) = lines.next_line().await {
                if line.trim_end() == "gpuprov:tunnel" {
                    return Some(());
                }
            }
            None
        };
        match tokio::time::timeout(LIMIT, opened).await {
            Ok(Some(())) => Ok(Tunnel { child, _stdin: stdin, words }),
            Ok(None) => {
                let _ = tokio::time::timeout(Duration::from_secs(2), reading).await;
                let words = words.lock().unwrap_or_else(PoisonError::into_inner);
                Err(LoginError::from_stderr(&words))
            }
            Err(_) => Err(LoginError::TooLong(LIMIT)),
        }
    }
}

impl Tunnel {
    /// Waits until the tunnel is down, which it is only when the connection was lost.
    pub async fn down(&mut self) {
        let _ = self.child.wait().await;
    }

    /// Returns ssh's words about connections that it could not make on the other side; empty if there are none.
    pub fn words(&self) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        crate::model::words::one_line(&String::from_utf8_lossy(&words), 300)
    }
}
