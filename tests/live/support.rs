//! The real binary with the real environment and a state directory of its own.

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// No machine of these tests may cost more, in USD per hour.
pub(crate) const CAP: &str = "0.50";

/// A state directory and an installation id of its own, so that clean-up finds this test's machines and no others.
pub(crate) struct Live {
    state: TempDir,
    installation: String,
}

impl Live {
    /// Refuses to run unless somebody said so.
    pub(crate) fn new() -> Live {
        let said = std::env::var_os("GPUPROV_LIVE").is_some_and(|value| value == "1");
        assert!(said, "this test rents a real machine; set GPUPROV_LIVE=1 if that is meant");
        let state = TempDir::new().unwrap();
        let installation = format!("live-{}", std::process::id());
        Live { state, installation }
    }

    /// Runs the binary.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_gpuprov"))
            .args(words)
            .env("GPUPROV_STATE_DIR", self.state.path())
            .env("GPUPROV_INSTALLATION", &self.installation)
            .env_remove("GPUPROV_SANDBOX")
            .output()
            .unwrap();
        eprintln!("$ gpuprov {}\n{}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Runs the binary, which must succeed, and returns its stdout.
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "`gpuprov {}` ended with {}", words.join(" "), output.status);
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The marks on the machines are enough to find them, whatever became of the records.
        for _ in 0..3 {
            if self.run(&["rm", "--all", "--yes"]).status.success() {
                return;
            }
        }
        let kept: PathBuf = std::env::temp_dir().join(&self.installation);
        let _ = std::fs::rename(self.state.path(), &kept);
        eprintln!("STILL RUNNING? records are in {}; look at the cloud's console", kept.display());
    }
}
