//! INT, TERM and HUP: the first asks for a clean end, the second leaves at once and names what may still cost money.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::failure::Exit;
use crate::cli::output::Output;
use crate::cloud::ErrorKind;
use crate::provision::cancel::{Cancel, Canceller, Exposed};
use crate::provision::failure::{Failure, Kind};

/// Listens for signals for the rest of the process; signals that were ignored at start (`nohup`) stay ignored. `members` makes
/// the command's members of the JSON output of what may still exist.
pub fn listen(
    output: &Arc<Output>,
    members: impl Fn(&[Exposed]) -> Map<String, Value> + Send + 'static,
) -> std::io::Result<Cancel> {
    let (canceller, cancel) = Canceller::new();
    let mut heard = Vec::new();
    for (number, kind) in [
        (nix::libc::SIGINT, SignalKind::interrupt()),
        (nix::libc::SIGTERM, SignalKind::terminate()),
        (nix::libc::SIGHUP, SignalKind::hangup()),
    ] {
        if !is_ignored(number) {
            heard.push(signal(kind)?);
        }
    }
    let output = Arc::clone(output);
    tokio::spawn(async move {
        if heard.is_empty() {
            return;
        }
        first_of(&mut heard).await;
        output.end_live();
        output.progress("stopping");
        canceller.cancel();
        first_of(&mut heard).await;
        output.end_live();
        let exposed = canceller.exposed();
        leave(&output, &exposed, members(&exposed));
    });
    Ok(cancel)
}

async fn first_of(heard: &mut [Signal]) {
    let waits = heard.iter_mut().map(|signal| Box::pin(signal.recv()));
    futures_util::future::select_all(waits).await;
}

/// Ends the process without cleaning up.
fn leave(output: &Output, exposed: &[Exposed], members: Map<String, Value>) {
    let failure = if exposed.is_empty() {
        Failure::new(Kind::Cloud(ErrorKind::Interrupted), "left at once")
    } else {
        let what: Vec<String> = exposed.iter().map(ToString::to_string).collect();
        let what = what.join(", ");
        Failure::new(Kind::LeftRunning, format!("left at once; may still exist and cost money: {what}"))
            .hint("`gpuprov ls` shows it, `gpuprov rm` removes it")
    };
    output.document(members, Some(&failure));
    output.failure(&failure);
    std::process::exit(i32::from(Exit::of(failure.kind).code()));
}

#[expect(unsafe_code, reason = "the standard library cannot tell how a signal was set at start")]
fn is_ignored(number: i32) -> bool {
    // SAFETY: a null new action changes nothing; the old one is written to memory of the right type that lives here.
    unsafe {
        let mut old: nix::libc::sigaction = std::mem::zeroed();
        nix::libc::sigaction(number, std::ptr::null(), &raw mut old) == 0
            && old.sa_sigaction == nix::libc::SIG_IGN
    }
}
