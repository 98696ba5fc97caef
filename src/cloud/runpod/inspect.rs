//! One look at a pod, and when its logs are worth reading beside it.
//!
//! Logs cost a request and up to seconds, so they are read only while somebody waits for the pod: it was made by this process
//! or was looked at before. A first look, such as that of `ls`, never reads them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::RunPod;
use super::host_keys::{self, Printed};
use super::states::{self, LOOKING, look};
use crate::cloud::{HostKeys, Look, Result};
use crate::model::handle::Handle;
use crate::model::machine::MachineState;
use crate::model::words::one_line;

/// How often the container's log is read for one pod.
const MOST_TRIES: u32 = 3;

/// How long between two readings of the host's log.
const SYSTEM_LOG_EVERY: Duration = Duration::from_secs(10);

/// Looks at a pod once.
pub(super) async fn inspect(cloud: &RunPod, handle: &Handle) -> Result<Look> {
    let Some(pod) = cloud.api.pod(&handle.id, LOOKING).await? else {
        cloud.watch.end(&handle.id);
        return Ok(Look::of(MachineState::Gone));
    };
    let mut look = look(&pod, &cloud.states_frame());
    match cloud.watch.due(&handle.id, &look, Instant::now()) {
        Due::Nothing => {}
        Due::Known(keys) => look.host_keys = HostKeys::Fingerprints(keys),
        Due::HostKeys => {
            let printed = host_keys::read(&cloud.api, &handle.id).await;
            if let Printed::All(keys) = &printed {
                look.host_keys = HostKeys::Fingerprints(keys.clone());
            }
            cloud.watch.learn(&handle.id, printed);
        }
        Due::SystemLog => {
            if let Some(line) = host_keys::trouble(&cloud.api, &handle.id).await {
                let line = one_line(&line, 300);
                look.failed = Some(states::failure(
                    &cloud.setup.account,
                    format!("the container does not start: {line}"),
                ));
            }
        }
    }
    Ok(look)
}

impl RunPod {
    /// Returns what pods are read with: the data centres if they are known already.
    pub(super) fn states_frame(&self) -> states::Frame<'_> {
        states::Frame {
            account: &self.setup.account,
            loopback: self.setup.loopback,
            places: self.places.get().unwrap_or(&self.no_places),
        }
    }
}

/// What the looks of this process have learnt about pods.
#[derive(Debug, Default)]
pub(super) struct Watch {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pods: HashMap<String, Seen>,
    /// The key may not read logs; it is not asked again.
    logs_forbidden: bool,
}

#[derive(Debug)]
struct Seen {
    tries: u32,
    keys: Option<Vec<String>>,
    system_log: Instant,
}

/// What is worth reading now.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    Known(Vec<String>),
    HostKeys,
    SystemLog,
}

impl Watch {
    /// Notes that a pod was made and will be waited for.
    pub(super) fn begin(&self, id: &str) {
        let seen = Seen { tries: 0, keys: None, system_log: Instant::now() };
        self.lock().pods.insert(id.to_owned(), seen);
    }

    /// Forgets a pod.
    pub(super) fn end(&self, id: &str) {
        self.lock().pods.remove(id);
    }

    fn due(&self, id: &str, look: &Look, now: Instant) -> Due {
        let mut state = self.lock();
        let forbidden = state.logs_forbidden;
        let Some(seen) = state.pods.get_mut(id) else {
            drop(state);
            self.begin(id);
            return Due::Nothing;
        };
        match look.state {
            MachineState::Running if !look.ssh.is_empty() => match &seen.keys {
                Some(keys) => Due::Known(keys.clone()),
                None if forbidden || seen.tries >= MOST_TRIES => Due::Nothing,
                None => {
                    seen.tries += 1;
                    Due::HostKeys
                }
            },
            MachineState::Booting if look.failed.is_none() => {
                // A container that is made anew has new keys.
                (seen.tries, seen.keys) = (0, None);
                if forbidden || now.saturating_duration_since(seen.system_log) < SYSTEM_LOG_EVERY {
                    return Due::Nothing;
                }
                seen.system_log = now;
                Due::SystemLog
            }
            _ => Due::Nothing,
        }
    }

    fn learn(&self, id: &str, printed: Printed) {
        let mut state = self.lock();
        match printed {
            Printed::Forbidden => state.logs_forbidden = true,
            Printed::NotYet => {}
            Printed::All(keys) => {
                if let Some(seen) = state.pods.get_mut(id) {
                    seen.keys = Some(keys);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left behind is at worst one reading too many.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::machine::SshAddress;

    fn running() -> Look {
        let ssh = vec![SshAddress::new("203.0.113.7", 22, "root", false).unwrap()];
        Look { ssh, ..Look::of(MachineState::Running) }
    }

    #[test]
    fn a_first_look_reads_no_log() {
        let watch = Watch::default();
        assert_eq!(watch.due("p", &running(), Instant::now()), Due::Nothing);
        assert_eq!(watch.due("p", &running(), Instant::now()), Due::HostKeys);
    }

    #[test]
    fn host_keys_are_asked_for_three_times_and_kept() {
        let watch = Watch::default();
        watch.begin("p");
        for _ in 0..3 {
            assert_eq!(watch.due("p", &running(), Instant::now()), Due::HostKeys);
            watch.learn("p", Printed::NotYet);
        }
        assert_eq!(watch.due("p", &running(), Instant::now()), Due::Nothing);
        watch.begin("q");
        assert_eq!(watch.due("q", &running(), Instant::now()), Due::HostKeys);
        watch.learn("q", Printed::All(vec!["SHA256:x".to_owned()]));
        assert_eq!(watch.due("q", &running(), Instant::now()), Due::Known(vec!["SHA256:x".to_owned()]));
        assert_eq!(watch.due("q", &Look::of(MachineState::Booting), Instant::now()), Due::Nothing);
        assert_eq!(watch.due("q", &running(), Instant::now()), Due::HostKeys);
    }

    #[test]
    fn the_hosts_log_is_read_every_ten_seconds_while_booting() {
        let watch = Watch::default();
        watch.begin("p");
        let (now, booting) = (Instant::now(), Look::of(MachineState::Booting));
        let at = |seconds| now + Duration::from_secs(seconds);
        for (seconds, due) in
            [(1, Due::Nothing), (11, Due::SystemLog), (13, Due::Nothing), (22, Due::SystemLog)]
        {
            assert_eq!(watch.due("p", &booting, at(seconds)), due, "{seconds}");
        }
        watch.learn("p", Printed::Forbidden);
        assert_eq!(watch.due("p", &booting, at(60)), Due::Nothing);
        assert_eq!(watch.due("p", &running(), at(60)), Due::Nothing);
    }
}
