//! Running a program with bounded time and output.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::model::secret::VARIABLES;

/// The most that is kept of each stream, in bytes.
const MOST: usize = 256 * 1024;

/// How long streams are read on after the program has ended: something that it left in the background may hold them open.
const LEFT_OPEN: Duration = Duration::from_secs(1);

/// What a program that ended left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The first 256 KB of its standard output.
    pub stdout: Vec<u8>,
    /// The first 256 KB of its standard error.
    pub stderr: Vec<u8>,
    /// Whether there was more of either.
    pub truncated: bool,
}

/// How a run ended.
pub(super) enum Ended {
    /// By itself.
    Done(Output),
    /// Killed after the time limit.
    TooLong,
    /// It never started, or could not be waited for.
    NotStarted(io::Error),
}

/// Runs `command`, feeding it `input` (if there is any) while its output is read, and kills it after `limit` or when the
/// future is dropped. What it writes above the bound is read and dropped, so that it never blocks. It does not inherit the
/// clouds' credentials: what the user's ssh configuration starts (`ProxyCommand`, `Match exec`, an agent) could read them.
pub(super) async fn run(command: &mut Command, input: &[u8], limit: Duration) -> Ended {
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    for name in VARIABLES {
        command.env_remove(name);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ended::NotStarted(error),
    };
    match tokio::time::timeout(limit, talk(&mut child, input)).await {
        Ok(Ok(output)) => Ended::Done(output),
        Ok(Err(error)) => Ended::NotStarted(error),
        Err(_) => {
            let _ = child.kill().await;
            Ended::TooLong
        }
    }
}

async fn talk(child: &mut Child, input: &[u8]) -> io::Result<Output> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program that does not want all of it closes the pipe; its exit code says whether that was right.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
        }
    };
    let (mut out, mut err) = (Kept::default(), Kept::default());
    let mut streams = Box::pin(async { tokio::join!(feed, out.read(stdout), err.read(stderr)) });
    let status = tokio::select! {
        _ = &mut streams => child.wait().await?,
        status = child.wait() => {
            let _ = tokio::time::timeout(LEFT_OPEN, &mut streams).await;
            status?
        }
    };
    drop(streams);
    let truncated = out.more || err.more;
    Ok(Output { code: status.code(), stdout: out.bytes, stderr: err.bytes, truncated })
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    more: bool,
}

impl Kept {
    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut chunk = [0; 16 * 1024];
        // An error means the same as the end: nothing more will come.
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            let fits = count.min(MOST - self.bytes.len());
            self.bytes.extend_from_slice(&chunk[..fits]);
            self.more |= fits < count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sh(script: &str, input: &[u8], limit: Duration) -> Ended {
        run(Command::new("/bin/sh").args(["-c", script]), input, limit).await
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn large_input_and_output_do_not_block() {
        let input = vec![b'x'; 3_000_000];
        let Ended::Done(output) = sh("cat; cat >&2; exit 3", &input, LONG).await else { panic!() };
        assert_eq!((output.code, output.stdout.len(), output.truncated), (Some(3), MOST, true));
        let Ended::Done(output) = sh("exec true", &input, LONG).await else { panic!() };
        assert_eq!((output.code, output.truncated), (Some(0), false));
    }

    #[tokio::test]
    async fn time_is_bounded() {
        let start = std::time::Instant::now();
        assert!(matches!(sh("exec sleep 20", b"", Duration::from_millis(200)).await, Ended::TooLong));
        // A background process that holds the streams.
        let Ended::Done(output) = sh("sleep 5 & echo done", b"", LONG).await else { panic!() };
        assert_eq!(output.stdout, b"done\n");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        let gone = run(&mut Command::new("/nonexistent/x"), b"", LONG).await;
        assert!(matches!(gone, Ended::NotStarted(_)));
    }
}
