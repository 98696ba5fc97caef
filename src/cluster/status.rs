//! How far the set-up on a machine is, as the machine tells.

use std::time::Duration;

use super::script::status_script;
use crate::model::machine::MachineName;
use crate::model::words::one_line;
use crate::ssh::exec::{Client, LoginError, Output};
use crate::state::record::RecordedCluster;

/// Longest message kept, in characters.
const LONGEST: usize = 600;
/// No set-up has so many steps.
const MOST_STEPS: usize = 100;
/// For one login with a look, beside the time it may hold on.
const LIMIT: Duration = Duration::from_secs(40);

/// The four states of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is to be set up, and nothing was started yet.
    Pending,
    /// The set-up runs.
    Installing,
    /// It can be used, with every GPU.
    Ready,
    /// The set-up ended without that, or the cluster no longer runs.
    Failed,
}

impl State {
    /// Returns the word used in JSON and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Installing => "installing",
            State::Ready => "ready",
            State::Failed => "failed",
        }
    }
}

/// How far the set-up is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// In one word.
    pub state: State,
    /// The step it is at, or ended at.
    pub step: Option<String>,
    /// Its number, from 1; 0 before the first.
    pub at: u32,
    /// How many steps there are; 0 if that is not known yet.
    pub of: u32,
    /// The version of k3s.
    pub version: Option<String>,
    /// What is being done, or what went wrong.
    pub message: String,
    /// What is not as it should be and stopped nothing.
    pub warned: Option<String>,
    /// Every step that was begun so far, as [`Status::shown`] tells it.
    pub begun: Vec<String>,
    /// Stands for all of this, to be told of the next change.
    pub mark: String,
}

impl Status {
    /// Returns it for people, in one line.
    pub fn shown(&self) -> String {
        let place = match (&self.step, self.of) {
            (Some(step), 1..) if self.state != State::Ready => {
                format!("step {} of {} ({step}): ", self.at, self.of)
            }
            _ => String::new(),
        };
        format!("{place}{}", self.message)
    }

    /// Returns it as records keep it.
    pub fn recorded(&self) -> RecordedCluster {
        RecordedCluster {
            state: self.state.as_str().to_owned(),
            version: self.version.clone(),
            message: Some(self.shown()),
        }
    }
}

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// No login.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The login worked, and what it printed is no status.
    #[error("the machine did not tell how far its cluster is")]
    Unreadable,
}

/// Asks the machine called `name`, holding on until something changed since `seen`, for at most `hold`. Returns none where
/// no cluster was ever begun.
pub async fn ask(
    login: &Client,
    name: &MachineName,
    seen: &str,
    hold: Duration,
) -> Result<Option<Status>, StatusError> {
    let looks = u32::try_from(hold.as_millis() / 500).unwrap_or(u32::MAX).max(1);
    let script = status_script(seen, looks);
    let output = login.run(name.as_str(), "sh -s", script.as_bytes(), LIMIT + hold * 3).await?;
    read(&output).ok_or(StatusError::Unreadable)
}

/// Reads what the status script printed; the outer none is no answer, the inner one no cluster.
fn read(output: &Output) -> Option<Option<Status>> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let told: Vec<&str> =
        stdout.lines().filter_map(|line| line.trim_end().strip_prefix("gpuprov:k8s:")).collect();
    if told.first() != Some(&"in") || told.last() != Some(&"done") {
        return None;
    }
    let value = |key: &str| {
        let found = told.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        found.map(|text| one_line(text.trim(), LONGEST)).filter(|text| !text.is_empty())
    };
    let Some(state) = value("state") else { return Some(None) };
    let number = |key| value(key).and_then(|text| text.parse().ok()).unwrap_or(0);
    let is_up = |key| matches!(value(key).as_deref(), Some("active" | "activating" | "reloading"));
    let mut message = value("message").unwrap_or_default();
    let state = match state.as_str() {
        "ready" if is_up("k3s") || is_up("unit") => State::Ready,
        "ready" => {
            let word = value("k3s").unwrap_or_else(|| "unknown".to_owned());
            message = format!("it was ready, but k3s does not run now ({word})");
            State::Failed
        }
        "failed" => State::Failed,
        _ if is_up("unit") => State::Installing,
        // Killed, or the machine started again.
        _ => {
            message = format!("the set-up was cut off while {message}");
            State::Failed
        }
    };
    Some(Some(Status {
        state,
        step: value("step"),
        at: number("at"),
        of: number("of"),
        version: value("version"),
        message,
        warned: value("warned"),
        begun: told
            .iter()
            .filter_map(|line| line.strip_prefix("begun="))
            .take(MOST_STEPS)
            .map(|line| one_line(line, LONGEST))
            .collect(),
        mark: value("mark").unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Option<Option<Status>> {
        let text: String = lines.iter().map(|line| format!("gpuprov:k8s:{line}\n")).collect();
        read(&Output { code: Some(0), stdout: text.into_bytes(), ..Output::default() })
    }

    #[test]
    fn a_state_is_what_the_file_and_the_units_say_together() {
        let cases = [
            ("installing", "active", "inactive", State::Installing),
            ("installing", "activating", "inactive", State::Installing),
            ("installing", "inactive", "active", State::Failed),
            ("a word of tomorrow", "active", "active", State::Installing),
            ("ready", "inactive", "active", State::Ready),
            ("ready", "inactive", "failed", State::Failed),
            ("failed", "inactive", "active", State::Failed),
        ];
        for (state, unit, k3s, expected) in cases {
            let (state, unit, k3s) = (format!("state={state}"), format!("unit={unit}"), format!("k3s={k3s}"));
            let lines = ["in", &state, "step=toolkit", "at=4", "of=10", "message=m", &unit, &k3s, "done"];
            let status = told(&lines).unwrap().unwrap();
            assert_eq!(status.state, expected, "{lines:?}");
        }
    }

    #[test]
    fn no_file_is_no_cluster_and_half_an_answer_is_none() {
        assert_eq!(told(&["in", "", "unit=inactive", "k3s=inactive", "mark=1", "done"]), Some(None));
        assert_eq!(told(&["in", "state=ready"]), None);
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn what_a_machine_prints_is_cut_to_one_line() {
        let long = format!("message={}\u{1b}[31m", "x".repeat(5000));
        let status = told(&["in", "state=failed", &long, "unit=inactive", "k3s=x", "done"]).unwrap().unwrap();
        assert!(status.message.chars().count() <= LONGEST + 3 && !status.message.contains('\u{1b}'));
    }
}
