//! Runs what a session asks for: a command, or a login shell, with or without a terminal.
//!
//! As sshd does: a command goes to `bash -c`, a shell is a login shell. Bash reads `~/.bashrc` also for
//! `ssh NAME command`, because it sees `SSH_CLIENT` and a `SHLVL` below 2; Ubuntu's own `.bashrc` then
//! returns at once when it is not interactive. The environment is clean but for what sshd itself sets.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Bytes;
use nix::sys::signal::Signal;
use russh::server::{Handle, Msg};
use russh::{Channel, ChannelMsg, ChannelReadHalf, Sig};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::reap::MARKER;
use super::{Inner, home, vm};

/// What is to run.
pub(super) enum What {
    /// A login shell.
    Shell,
    /// A line for `bash -c`.
    Command(Vec<u8>),
}

/// The terminal asked for.
pub(super) struct Terminal {
    pub(super) term: String,
    pub(super) columns: u32,
    pub(super) rows: u32,
}

/// One request to run something.
pub(super) struct Asked {
    pub(super) what: What,
    pub(super) env: Vec<(String, String)>,
    pub(super) terminal: Option<Terminal>,
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
}

/// A started process and the ways in and out of it.
struct Started {
    child: Child,
    leader: i32,
    input: mpsc::Sender<Input>,
    outputs: Vec<JoinHandle<()>>,
}

enum Input {
    Data(Bytes),
    Resize(u16, u16),
}

/// Runs it to its end and reports the exit; ends it with SIGHUP when the client leaves first.
pub(super) async fn run(inner: Arc<Inner>, channel: Channel<Msg>, handle: Handle, asked: Asked) {
    let id = channel.id();
    let (mut messages, writer) = channel.split();
    let out = writer.make_writer();
    let err = writer.make_writer_ext(Some(1));
    let started = match &asked.terminal {
        Some(terminal) => with_terminal(&inner, &asked, terminal, out),
        None => with_pipes(&inner, &asked, out, err),
    };
    let Ok(mut started) = started else {
        let _ = handle.exit_status_request(id, 127).await;
        let _ = handle.eof(id).await;
        let _ = handle.close(id).await;
        return;
    };
    let guard = Group { inner: Arc::clone(&inner), leader: started.leader, outputs: started.outputs };
    let status = follow(&inner, &mut messages, &mut started.child, started.leader, started.input).await;
    let mut guard = guard;
    let Some(status) = status else { return };
    inner.groups.leave(guard.leader);
    guard.leader = 0;
    // What is still in the pipes belongs to the client, and a child left behind may hold them open.
    for output in &mut guard.outputs {
        tokio::select! {
            _ = output => {}
            () = gone(&mut messages) => return,
        }
    }
    match status.code() {
        Some(code) => {
            let _ = handle.exit_status_request(id, u32::try_from(code).unwrap_or(255)).await;
        }
        None => {
            let signal = signal_name(status.signal().unwrap_or(0));
            let core = status.core_dumped();
            let _ = handle.exit_signal_request(id, signal, core, String::new(), String::new()).await;
        }
    }
    let _ = handle.eof(id).await;
    let _ = handle.close(id).await;
}

/// Ends the process group and the copying when the session is over, in whatever way.
struct Group {
    inner: Arc<Inner>,
    leader: i32,
    outputs: Vec<JoinHandle<()>>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.leader != 0 {
            self.inner.groups.signal(self.leader, Signal::SIGHUP);
            self.inner.groups.signal(self.leader, Signal::SIGCONT);
        }
        self.outputs.iter().for_each(JoinHandle::abort);
    }
}

/// Passes messages on until the process ends; nothing when the client left first.
async fn follow(
    inner: &Inner,
    messages: &mut ChannelReadHalf,
    child: &mut Child,
    leader: i32,
    input: mpsc::Sender<Input>,
) -> Option<ExitStatus> {
    let mut input = Some(input);
    loop {
        let message = tokio::select! {
            status = child.wait() => return status.ok(),
            message = messages.wait() => message,
        };
        match message {
            Some(ChannelMsg::Data { data }) => send(&input, Input::Data(data), child).await,
            Some(ChannelMsg::Eof) => input = None,
            Some(ChannelMsg::WindowChange { col_width, row_height, .. }) => {
                send(&input, Input::Resize(short(col_width), short(row_height)), child).await;
            }
            Some(ChannelMsg::Signal { signal }) => {
                if let Some(signal) = signal_number(&signal) {
                    inner.groups.signal(leader, signal);
                }
            }
            Some(ChannelMsg::Close) | None => {
                // Gone: hang up, and give it a moment before it is waited for no longer.
                inner.groups.signal(leader, Signal::SIGHUP);
                inner.groups.signal(leader, Signal::SIGCONT);
                let left = tokio::time::timeout(Duration::from_secs(2), child.wait()).await;
                if left.is_ok() {
                    inner.groups.leave(leader);
                }
                return None;
            }
            Some(_) => {}
        }
    }
}

async fn send(input: &Option<mpsc::Sender<Input>>, what: Input, child: &mut Child) {
    let Some(sender) = input else { return };
    // A process that ended without reading must not block the wait for it.
    tokio::select! {
        _ = sender.send(what) => {}
        _ = child.wait() => {}
    }
}

async fn gone(messages: &mut ChannelReadHalf) {
    while let Some(message) = messages.wait().await {
        if matches!(message, ChannelMsg::Close) {
            return;
        }
    }
}

fn with_pipes(
    inner: &Arc<Inner>,
    asked: &Asked,
    out: impl AsyncWrite + Unpin + Send + 'static,
    err: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<Started> {
    let mut command = std::process::Command::new("bash");
    arguments(&mut command, inner, asked);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut command = tokio::process::Command::from(command);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let leader = enter(inner, &child);
    let (input, mut queue) = mpsc::channel(1024);
    let mut outputs = Vec::new();
    if let Some(mut stdin) = child.stdin.take() {
        tokio::spawn(async move {
            while let Some(Input::Data(data)) = queue.recv().await {
                if stdin.write_all(&data).await.is_err() {
                    return;
                }
            }
        });
    }
    if let Some(stdout) = child.stdout.take() {
        outputs.push(tokio::spawn(copy(stdout, out)));
    }
    if let Some(stderr) = child.stderr.take() {
        outputs.push(tokio::spawn(copy(stderr, err)));
    }
    Ok(Started { child, leader, input, outputs })
}

fn with_terminal(
    inner: &Arc<Inner>,
    asked: &Asked,
    terminal: &Terminal,
    out: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<Started> {
    let broken = |error: pty_process::Error| std::io::Error::other(error.to_string());
    let (pty, pts) = pty_process::open().map_err(broken)?;
    pty.resize(pty_process::Size::new(short(terminal.rows), short(terminal.columns))).map_err(broken)?;
    let mut command = std::process::Command::new("bash");
    arguments(&mut command, inner, asked);
    command.env("TERM", &terminal.term).env("SSH_TTY", "/dev/tty");
    let command = pty_process::Command::from(tokio::process::Command::from(command));
    let child = command.spawn(pts).map_err(broken)?;
    let leader = enter(inner, &child);
    let (read, mut write) = pty.into_split();
    let (input, mut queue) = mpsc::channel(1024);
    tokio::spawn(async move {
        while let Some(input) = queue.recv().await {
            let done = match input {
                Input::Data(data) => write.write_all(&data).await.is_ok(),
                Input::Resize(columns, rows) => write.resize(pty_process::Size::new(rows, columns)).is_ok(),
            };
            if !done {
                return;
            }
        }
        // End of input on a terminal is Ctrl-D.
        let _ = write.write_all(&[4]).await;
    });
    let outputs = vec![tokio::spawn(copy(read, out))];
    Ok(Started { child, leader, input, outputs })
}

fn arguments(command: &mut std::process::Command, inner: &Inner, asked: &Asked) {
    let home = inner.home.to_string_lossy();
    match &asked.what {
        What::Shell => {
            std::os::unix::process::CommandExt::arg0(command, "-bash");
        }
        What::Command(line) => {
            let line = inward(line, home.as_bytes());
            command.arg("-c").arg(OsStr::from_bytes(&line));
        }
    }
    command.env_clear();
    let bin = inner.home.join(home::BIN);
    let mut path = format!("{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", bin.display());
    if inner.kube.is_some() {
        let (vm, own) = (inner.home.join(vm::BIN), inner.home.join("usr/local/bin"));
        path = format!("{}:{}:{path}", vm.display(), own.display());
        command.env(vm::ROOT, &inner.home);
    }
    let (peer, local) = (asked.peer, asked.local);
    command
        .env("PATH", path)
        .env("HOME", &inner.home)
        .env("USER", inner.spec.user)
        .env("LOGNAME", inner.spec.user)
        .env("SHELL", "/bin/bash")
        .env("SSH_CLIENT", format!("{} {} {}", peer.ip(), peer.port(), local.port()))
        .env("SSH_CONNECTION", format!("{} {} {} {}", peer.ip(), peer.port(), local.ip(), local.port()))
        .env(MARKER, &inner.marker)
        .envs(asked.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&inner.home);
}

/// Keeps our product's log file inside the home: see the module doc of `machine`.
fn inward(line: &[u8], home: &[u8]) -> Vec<u8> {
    const OUTSIDE: &[u8] = b"/var/log/gpuprov-";
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while !rest.is_empty() {
        if rest.starts_with(OUTSIDE) && !out.ends_with(home) {
            out.extend_from_slice(home);
            out.extend_from_slice(OUTSIDE);
            rest = &rest[OUTSIDE.len()..];
        } else {
            out.push(rest[0]);
            rest = &rest[1..];
        }
    }
    out
}

fn enter(inner: &Inner, child: &Child) -> i32 {
    inner.used.store(true, Ordering::SeqCst);
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
    if leader != 0 {
        inner.groups.enter(leader);
    }
    leader
}

async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    // A terminal whose process is gone reads as an error; that is its end.
    let _ = tokio::io::copy(&mut from, &mut to).await;
    let _ = to.flush().await;
}

fn short(size: u32) -> u16 {
    u16::try_from(size).unwrap_or(u16::MAX)
}

fn signal_number(signal: &Sig) -> Option<Signal> {
    Some(match signal {
        Sig::ABRT => Signal::SIGABRT,
        Sig::ALRM => Signal::SIGALRM,
        Sig::FPE => Signal::SIGFPE,
        Sig::HUP => Signal::SIGHUP,
        Sig::ILL => Signal::SIGILL,
        Sig::INT => Signal::SIGINT,
        Sig::KILL => Signal::SIGKILL,
        Sig::PIPE => Signal::SIGPIPE,
        Sig::QUIT => Signal::SIGQUIT,
        Sig::SEGV => Signal::SIGSEGV,
        Sig::TERM => Signal::SIGTERM,
        Sig::USR1 => Signal::SIGUSR1,
        Sig::Custom(_) => return None,
    })
}

fn signal_name(number: i32) -> Sig {
    match Signal::try_from(number) {
        Ok(Signal::SIGABRT) => Sig::ABRT,
        Ok(Signal::SIGALRM) => Sig::ALRM,
        Ok(Signal::SIGFPE) => Sig::FPE,
        Ok(Signal::SIGHUP) => Sig::HUP,
        Ok(Signal::SIGILL) => Sig::ILL,
        Ok(Signal::SIGINT) => Sig::INT,
        Ok(Signal::SIGKILL) => Sig::KILL,
        Ok(Signal::SIGPIPE) => Sig::PIPE,
        Ok(Signal::SIGQUIT) => Sig::QUIT,
        Ok(Signal::SIGSEGV) => Sig::SEGV,
        Ok(Signal::SIGUSR1) => Sig::USR1,
        Ok(Signal::SIGTERM) | Err(_) => Sig::TERM,
        Ok(other) => Sig::Custom(other.as_str().trim_start_matches("SIG").to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::inward;

    #[test]
    fn log_path_stays_inside() {
        let home = b"/s/pod1";
        let line = inward(b"tee /var/log/gpuprov-startup.log </var/log/syslog", home);
        assert_eq!(line, b"tee /s/pod1/var/log/gpuprov-startup.log </var/log/syslog");
        assert_eq!(inward(&line, home), line);
    }
}
