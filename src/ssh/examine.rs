//! Looking at the system's ssh, for diagnosis: which version it is, and what it makes of the configuration.

use std::path::Path;
use std::time::Duration;

use tokio::process::Command;

use super::process::{self, Ended};

/// How long one call may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The oldest OpenSSH that understands our blocks (`StrictHostKeyChecking accept-new`).
pub const OLDEST: (u32, u32) = (7, 6);

/// Returns the words of `ssh -V`, such as `OpenSSH_9.2p1 Debian-2, OpenSSL 3.0`.
pub async fn version(ssh: &Path) -> Result<String, String> {
    match process::run(Command::new(ssh).arg("-V"), &[], LIMIT).await {
        Ended::Done(output) => {
            // It is written to standard error; some builds use the other one.
            let words = if output.stderr.is_empty() { output.stdout } else { output.stderr };
            Ok(String::from_utf8_lossy(&words).trim().to_owned())
        }
        Ended::TooLong => Err("it does not end".to_owned()),
        Ended::NotStarted(error) => Err(error.to_string()),
    }
}

/// Reads the number out of the words of `ssh -V`; none for another program than OpenSSH.
pub fn number(words: &str) -> Option<(u32, u32)> {
    let rest = words.split("OpenSSH_").nth(1)?;
    // Windows' is called `OpenSSH_for_Windows_8.1p1`.
    let digits = rest.find(|c: char| c.is_ascii_digit())?;
    let mut parts = rest[digits..].split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Where ssh would go for a name: `hostname`, `port` and `hostkeyalias` of `ssh -G`.
pub async fn destination(ssh: &Path, config: Option<&Path>, name: &str) -> Result<Vec<String>, String> {
    let mut command = Command::new(ssh);
    if let Some(config) = config {
        command.arg("-F").arg(config);
    }
    command.args(["-G", "--", name]);
    match process::run(&mut command, &[], LIMIT).await {
        Ended::Done(output) if output.code == Some(0) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let wanted = |line: &&str| {
                ["hostname ", "port ", "hostkeyalias "].iter().any(|word| line.starts_with(word))
            };
            Ok(text.lines().filter(wanted).map(str::to_owned).collect())
        }
        Ended::Done(output) => {
            let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(words.lines().last().unwrap_or("it failed without a word").to_owned())
        }
        Ended::TooLong => Err("it does not end".to_owned()),
        Ended::NotStarted(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_out_of_any_spelling() {
        for (words, found) in [
            ("OpenSSH_9.2p1 Debian-2+deb12u3, OpenSSL 3.0.15 3 Sep 2024", Some((9, 2))),
            ("OpenSSH_7.4p1, OpenSSL 1.0.2k-fips  26 Jan 2017", Some((7, 4))),
            ("OpenSSH_10.0p2", Some((10, 0))),
            ("OpenSSH_for_Windows_8.1p1, LibreSSL 3.0.2", Some((8, 1))),
            ("Dropbear v2022.83", None),
            ("OpenSSH_", None),
            ("", None),
        ] {
            assert_eq!(number(words), found, "{words}");
        }
        assert!((7, 4) < OLDEST && (7, 6) >= OLDEST && (10, 0) >= OLDEST);
    }
}
