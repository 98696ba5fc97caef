//! The ssh keys registered on the account, which may log in beside ours.
//!
//! A pod whose `PUBLIC_KEY` is set gets nothing from the account by itself, so the account's keys are put into it
//! (docs.runpod.io/api-reference-v2, `createPod`, `startSsh`). They are only read: the one call that writes them replaces the
//! whole list.

use super::RunPod;
use crate::cloud::{ErrorKind, Result};
use crate::model::words::one_line;

/// What the account has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AccountKeys {
    /// Lines of `authorized_keys`.
    pub(super) lines: Vec<String>,
    /// Why there are none, if they could not be read.
    pub(super) problem: Option<String>,
}

impl RunPod {
    /// Returns the account's keys, asked for once in a process. Only a key that is not taken at all is an error: restricted
    /// keys often lack this right alone.
    pub(super) async fn account_keys(&self) -> Result<AccountKeys> {
        if !self.settings.account_keys {
            return Ok(AccountKeys::default());
        }
        let asked = self.account_keys.get_or_try_init(async || match self.api.ssh_keys().await {
            Ok(keys) => Ok(AccountKeys { lines: usable(&keys), problem: None }),
            Err(error) if error.kind == ErrorKind::Auth => Err(error),
            Err(error) => Ok(AccountKeys { lines: Vec::new(), problem: Some(error.message.clone()) }),
        });
        asked.await.cloned()
    }
}

/// Returns the lines that are keys: a type that ssh knows and a body. An entry may hold several lines.
fn usable(keys: &[String]) -> Vec<String> {
    let is_key = |line: &&str| {
        let known = ["ssh-", "ecdsa-", "sk-"].iter().any(|start| line.starts_with(start));
        known && line.split_whitespace().count() >= 2
    };
    keys.iter()
        .flat_map(|entry| entry.split(['\r', '\n']))
        .map(str::trim)
        .filter(is_key)
        .map(str::to_owned)
        .collect()
}

/// Returns the value of `PUBLIC_KEY`, ours first, each key once whatever its comment, and how many others are in it.
pub(super) fn merged(ours: &str, others: &[String]) -> (String, usize) {
    let mut lines = vec![ours.trim()];
    for other in others {
        if !lines.iter().any(|line| body(line) == body(other)) {
            lines.push(other);
        }
    }
    (lines.join("\n"), lines.len() - 1)
}

fn body(line: &str) -> (Option<&str>, Option<&str>) {
    let mut words = line.split_whitespace();
    (words.next(), words.next())
}

/// Returns what the user should know about the keys on a machine.
pub(super) fn notes(others: usize, problem: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    match others {
        0 => {}
        1 => notes.push("1 other key, registered on the RunPod account, may log in".to_owned()),
        more => notes.push(format!("{more} other keys, registered on the RunPod account, may log in")),
    }
    if let Some(problem) = problem {
        notes.push(format!(
            "the keys registered on the RunPod account could not be read ({}): only ours may log in",
            one_line(problem, 120)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_first_and_each_key_once() {
        let account = [
            "ssh-ed25519 AAAA2 me@example.com\r\n\r\n",
            "ssh-ed25519 AAAA1 ours-under-another-comment",
            "ssh-ed25519 AAAA2",
            "ecdsa-sha2-nistp256 BBBB\nsk-ssh-ed25519@openssh.com CCCC x",
            "null",
            "ssh-ed25519",
            "",
        ]
        .map(str::to_owned);
        let (value, others) = merged("ssh-ed25519 AAAA1 gpuprov\n", &usable(&account));
        let lines: Vec<&str> = value.lines().collect();
        assert_eq!(
            lines,
            [
                "ssh-ed25519 AAAA1 gpuprov",
                "ssh-ed25519 AAAA2 me@example.com",
                "ecdsa-sha2-nistp256 BBBB",
                "sk-ssh-ed25519@openssh.com CCCC x"
            ]
        );
        assert_eq!(others, 3);
    }

    #[test]
    fn what_is_said_about_them() {
        assert!(notes(0, None).is_empty());
        assert!(notes(1, None)[0].starts_with("1 other key,"));
        assert!(notes(0, Some("access denied"))[0].contains("(access denied): only ours"));
    }
}
