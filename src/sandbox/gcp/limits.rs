//! Google's rate limits: windows of 60 s a project, for reads, lists, changes and operation looks apart.
//!
//! The groups and the form of the refusal are those of <https://cloud.google.com/compute/api-quota>; the numbers there are
//! per minute and project. They run by real time, also under a step clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);

/// The windows of one project.
#[derive(Debug, Default)]
pub(super) struct Windows(BTreeMap<&'static str, (Instant, u64)>);

/// The group of an operation, and how many of it there may be in a minute.
fn group(operation: &str) -> (&'static str, u64) {
    match operation {
        "get_operation" | "wait_operation" => ("OperationReadRequestsPerMinutePerProject", 1500),
        _ if operation.starts_with("list_") => ("ListRequestsPerMinutePerProject", 1500),
        "insert_instance" | "delete_instance" | "insert_firewall" | "delete_firewall" | "delete_disk"
        | "patch_firewall" | "stop_instance" => ("MutateRequestsPerMinutePerProject", 750),
        _ if operation.starts_with("set_") => ("MutateRequestsPerMinutePerProject", 750),
        _ => ("ReadRequestsPerMinutePerProject", 1500),
    }
}

impl Windows {
    /// Counts one call; the sentence of the refusal when it is one too many.
    pub(super) fn count(&mut self, operation: &str, project: &str) -> Option<String> {
        let now = Instant::now();
        let (name, most) = group(operation);
        let slot = self.0.entry(name).or_insert((now, 0));
        if now.duration_since(slot.0) >= WINDOW {
            *slot = (now, 0);
        }
        slot.1 += 1;
        (slot.1 > most).then(|| {
            format!("Quota exceeded for quota metric 'Queries' and limit '{name}' of service 'compute.googleapis.com' for consumer 'project_number:{project}'.")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minute_runs_out() {
        let mut windows = Windows::default();
        for _ in 0..750 {
            assert_eq!(windows.count("insert_instance", "1"), None);
        }
        assert!(windows.count("delete_instance", "1").is_some_and(|text| text.contains("Mutate")));
        assert_eq!(windows.count("get_instance", "1"), None);
    }
}
