//! Ends the processes of a machine: those it knows by process group, and those that left their group.

use std::collections::BTreeSet;
use std::sync::Mutex;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::sandbox::lock;

/// Environment variable that every process of a machine carries.
pub(super) const MARKER: &str = "GPUPROV_SANDBOX_MACHINE";

/// Process groups of sessions that still run.
#[derive(Debug, Default)]
pub(super) struct Groups(Mutex<BTreeSet<i32>>);

impl Groups {
    /// Knows a group from now on.
    pub(super) fn enter(&self, leader: i32) {
        lock(&self.0).insert(leader);
    }

    /// Forgets a group whose leader has been waited for; its number may be used again.
    pub(super) fn leave(&self, leader: i32) {
        lock(&self.0).remove(&leader);
    }

    /// Sends a signal to a group that is still known.
    pub(super) fn signal(&self, leader: i32, signal: Signal) {
        if lock(&self.0).contains(&leader) {
            let _ = killpg(Pid::from_raw(leader), signal);
        }
    }

    /// Whether nothing runs.
    pub(super) fn idle(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// Ends all groups at once.
    pub(super) fn kill(&self) {
        for leader in std::mem::take(&mut *lock(&self.0)) {
            let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
        }
    }
}

/// Ends every process whose environment holds the marker. Linux only; bounded to a few rounds, because a
/// process can fork while it is looked for.
pub(super) fn kill_marked(marker: &str) {
    let needle = format!("{MARKER}={marker}");
    for _ in 0..5 {
        let mut found = false;
        for pid in processes() {
            let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { continue };
            if environment.split(|byte| *byte == 0).any(|entry| entry == needle.as_bytes()) {
                found |= kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok() && !zombie(pid);
            }
        }
        if !found {
            return;
        }
    }
}

fn processes() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn zombie(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z') || rest.starts_with('X'))
}
