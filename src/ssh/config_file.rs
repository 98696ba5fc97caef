//! Text of ssh configurations: the `Include` line in the user's file, our blocks, the file for `-F`. Nothing here touches a
//! file.
//!
//! ssh takes the first value it meets for most options, so our `Include` must be the first directive: after a `Host *` with
//! `User bob` our user would lose, and after any `Host` line the `Include` would hold for that host alone.

use std::path::Path;

use crate::model::machine::{MachineName, SshAddress};

use super::quote::{self, UnwritablePath};
use super::syntax;

/// What a `Host` block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The machine.
    pub name: MachineName,
    /// Where it answers.
    pub address: SshAddress,
    /// The private key, or a `.pub` whose private half an agent holds.
    pub identity_file: std::path::PathBuf,
    /// The name under which its host key is filed, `gpuprov-<cloud>-<id>`.
    pub host_key_alias: String,
    /// Whether the host key was learnt over the cloud's API: `StrictHostKeyChecking` is then `yes`, else `accept-new`.
    pub host_key_known: bool,
}

impl Block {
    /// Returns the lines. `CheckHostIP no` keeps OpenSSH before 8.5 from filing the address beside the alias;
    /// `UpdateHostKeys no` keeps the known_hosts file at what was pinned or first met, so that a change of the host key during
    /// the machine's life always alarms. Nothing else is set: `ProxyJump` and all other options stay the user's.
    pub(super) fn text(&self, known_hosts: &Path) -> Result<Vec<u8>, UnwritablePath> {
        let checking = if self.host_key_known { "yes" } else { "accept-new" };
        let (name, alias) = (&self.name, &self.host_key_alias);
        let (host, port, user) = (self.address.host(), self.address.port(), self.address.user());
        let mut text =
            format!("Host {name}\n  HostName {host}\n  Port {port}\n  User {user}\n  IdentityFile ")
                .into_bytes();
        text.extend(quote::identity(&self.identity_file)?);
        text.extend_from_slice(b"\n  IdentitiesOnly yes\n  UserKnownHostsFile ");
        text.extend(quote::known_hosts(known_hosts)?);
        text.extend_from_slice(
            format!(
                "\n  HostKeyAlias {alias}\n  StrictHostKeyChecking {checking}\n  CheckHostIP no\n  UpdateHostKeys no\n  \
                 ServerAliveInterval 15\n  ServerAliveCountMax 4\n"
            )
            .as_bytes(),
        );
        Ok(text)
    }
}

/// The first lines of our file of blocks.
const HEAD: &[u8] = b"# Written by gpuprov, which also rewrites it: changes made here are lost.\n";

/// Splits our file of blocks into names and blocks, in their order.
pub(super) fn blocks(text: &[u8]) -> Vec<(MachineName, Vec<u8>)> {
    let mut all: Vec<(MachineName, Vec<u8>)> = Vec::new();
    let mut keep = false;
    for line in text.split_inclusive(|b| *b == b'\n') {
        if let Some(host) = syntax::directive(line).filter(|d| d.keyword == b"host") {
            let name = match host.arguments.as_slice() {
                [name] => std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()),
                _ => None,
            };
            keep = name.is_some();
            all.extend(name.map(|name| (name, Vec::new())));
        }
        if keep
            && !line.trim_ascii().is_empty()
            && let Some((_, block)) = all.last_mut()
        {
            block.extend_from_slice(line);
        }
    }
    all
}

/// Puts blocks together to our file; none if there are none.
pub(super) fn join(blocks: &[(MachineName, Vec<u8>)]) -> Option<Vec<u8>> {
    if blocks.is_empty() {
        return None;
    }
    let mut text = HEAD.to_vec();
    for (_, block) in blocks {
        text.push(b'\n');
        text.extend_from_slice(block);
    }
    Some(text)
}

/// Returns `old` with our `Include` as the first directive; none if it is there already.
///
/// The line goes to the very top, ended as the file's first line is (CRLF or LF). Copies of exactly this line further down
/// go away, so that another program that also insists on the top cannot make the file grow; all other bytes stay. `ours`
/// tells whether an argument of `Include` covers our file.
pub(super) fn with_include(old: &[u8], line: &[u8], ours: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let first = old.split(|b| *b == b'\n').find_map(syntax::directive);
    if first.is_some_and(|d| d.keyword == b"include" && d.arguments.first().is_some_and(|a| ours(a))) {
        return None;
    }
    let crlf = old.iter().position(|b| *b == b'\n').is_some_and(|at| at > 0 && old[at - 1] == b'\r');
    let mut new = [line, if crlf { b"\r\n" } else { b"\n" }].concat();
    for row in old.split_inclusive(|b| *b == b'\n') {
        if row.trim_ascii() != line {
            new.extend_from_slice(row);
        }
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: &[u8] = b"Include \"/h/.ssh/gpuprov/*.conf\"";

    fn ours(argument: &[u8]) -> bool {
        argument == b"/h/.ssh/gpuprov/*.conf"
    }

    fn added(old: &str) -> Option<String> {
        with_include(old.as_bytes(), LINE, ours).map(|new| String::from_utf8(new).unwrap())
    }

    #[test]
    fn the_line_goes_first() {
        let line = "Include \"/h/.ssh/gpuprov/*.conf\"";
        for (old, new) in [
            ("", format!("{line}\n")),
            ("Host *\n  User bob", format!("{line}\nHost *\n  User bob")),
            ("Host *\r\n  User bob\r\n", format!("{line}\r\nHost *\r\n  User bob\r\n")),
            ("# mine\n\nHost x\n", format!("{line}\n# mine\n\nHost x\n")),
            // Inside a block it would hold for that host alone.
            (&format!("Host x\n  {line}\nHost y\n"), format!("{line}\nHost x\nHost y\n")),
            // Behind another file, whose `Host *` would win.
            (&format!("Include other\n{line}\n"), format!("{line}\nInclude other\n")),
            (
                "Include other \"/h/.ssh/gpuprov/*.conf\"\n",
                format!("{line}\nInclude other \"/h/.ssh/gpuprov/*.conf\"\n"),
            ),
            (&format!("# {line}\n"), format!("{line}\n# {line}\n")),
        ] {
            assert_eq!(added(old).as_deref(), Some(new.as_str()), "{old}");
        }
        for there in [
            format!("{line}\n"),
            format!("# mine\n\n  {line}\nHost *\n"),
            "include=/h/.ssh/gpuprov/*.conf".to_owned(),
            "INCLUDE '/h/.ssh/gpuprov/*.conf' other\r\n".to_owned(),
        ] {
            assert_eq!(added(&there), None, "{there}");
        }
    }

    #[test]
    fn blocks_come_back() {
        let text = b"# head\n\nHost a1\n  Port 1\n\nHost x y\n  Port 2\nHost b1\n  Port 3";
        let all = blocks(text);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a1", "b1"]);
        assert_eq!(all[0].1, b"Host a1\n  Port 1\n");
        let joined = join(&all).unwrap();
        assert_eq!(blocks(&joined), all);
        assert_eq!(join(&[]), None);
    }

    proptest! {
        #[test]
        fn any_file_keeps_its_bytes_and_is_changed_once(old in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(new) = with_include(&old, LINE, ours) {
                prop_assert!(new.starts_with(LINE) && new.ends_with(&old));
                prop_assert!(new.len() - old.len() <= LINE.len() + 2);
                prop_assert_eq!(with_include(&new, LINE, ours), None);
            }
        }

        #[test]
        fn likely_files_too(rows in proptest::collection::vec(prop_oneof![
            Just("Host *"), Just("  User bob"), Just(""), Just("# x"), Just("Include other"),
            Just("Include \"/h/.ssh/gpuprov/*.conf\""), Just("  Include \"/h/.ssh/gpuprov/*.conf\""), Just("Match all"),
        ], 0..10), crlf in any::<bool>()) {
            let old = rows.join(if crlf { "\r\n" } else { "\n" }).into_bytes();
            let new = with_include(&old, LINE, ours).unwrap_or_else(|| old.clone());
            let first = new.split(|b| *b == b'\n').find_map(syntax::directive).unwrap();
            prop_assert!(ours(&first.arguments[0]));
            prop_assert_eq!(with_include(&new, LINE, ours), None);
            let others = |text: &[u8]| -> Vec<Vec<u8>> {
                let rows = text.split(|b| *b == b'\n').map(|row| row.trim_ascii().to_vec());
                rows.filter(|row| !row.is_empty() && row != LINE).collect()
            };
            prop_assert_eq!(others(&old), others(&new));
        }
    }
}
