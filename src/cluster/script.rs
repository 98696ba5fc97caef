//! The shell text that puts the set-up on a machine and starts it there.

use std::fmt::Write;

use super::pins;
use crate::model::machine::MachineName;

/// What the set-up runs: every step, each of which can be taken up again.
pub const SETUP: &str = include_str!("assets/setup.sh");
/// Starts the unit.
pub const START: &str = include_str!("assets/start.sh");
/// Tells how far it is.
pub const STATUS: &str = include_str!("assets/status.sh");
/// Prints the cluster's own kubeconfig.
pub const KUBECONFIG: &str = include_str!("assets/kubeconfig.sh");

/// The files that lie beside the set-up on the machine, in `/usr/local/lib/gpuprov/k3s`.
pub const FILES: [(&str, &str); 6] = [
    ("setup.sh", SETUP),
    ("firewall.nft", include_str!("assets/firewall.nft")),
    ("firewall.service", include_str!("assets/firewall.service")),
    ("needs-firewall.conf", include_str!("assets/needs-firewall.conf")),
    ("gpuprov-runtime-class.yaml", include_str!("assets/gpuprov-runtime-class.yaml")),
    ("gpuprov-device-plugin.yaml", include_str!("assets/gpuprov-device-plugin.yaml")),
];

/// What a line of the login's output begins with when the unit was started.
pub const STARTED: &str = "cluster:started";
/// What a line of the login's output begins with when it was not; the reason follows.
pub const FAILED: &str = "cluster:failed:";

/// What the cluster of one machine is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The node's name: the machine's.
    pub name: MachineName,
    /// GPUs that pods must be able to ask for; 0 on a machine without any.
    pub gpus: u32,
    /// Whether nothing stands in front of the machine, so that it has to close the cluster's ports itself.
    pub firewall: bool,
}

impl Plan {
    /// Returns the settings that the set-up reads, as assignments of a POSIX shell.
    ///
    /// Nothing in it comes from a cloud: a name is of `a-z`, `0-9` and dashes, the rest is ours.
    pub fn settings(&self) -> String {
        format!(
            "NAME='{}'\nGPUS={}\nFIREWALL={}\nVERSION='{}'\nBINARY_AMD64='{}'\nINSTALLER='{}'\nDOWNLOADS='{}'\nSCRIPT_AT='{}'\n",
            self.name,
            self.gpus,
            u8::from(self.firewall),
            pins::VERSION,
            pins::BINARY_AMD64,
            pins::INSTALLER,
            pins::DOWNLOADS,
            pins::SCRIPT_AT
        )
    }

    /// Returns the lines for `sh` that write the files and start the unit. They end at once, say `gpuprov:` and [`STARTED`] or
    /// [`FAILED`], and do nothing where it runs already.
    pub fn start_script(&self) -> String {
        let mut script = String::from(
            "as_root=; [ \"$(id -u)\" = 0 ] || as_root='sudo -n'\n\
             $as_root sh -s <<'GPUPROV_CLUSTER' || echo gpuprov:cluster:failed:its files could not be written as root\n\
             umask 022\nfolder=${GPUPROV_ROOT:-}/usr/local/lib/gpuprov/k3s\nmkdir -p \"$folder\" || exit\n",
        );
        let settings = self.settings();
        for (name, text) in FILES.into_iter().chain([("settings", settings.as_str())]) {
            // Replaced, not rewritten: a set-up that runs goes on reading the old one.
            let _ = write!(
                script,
                "cat >\"$folder/{name}.new\" <<'GPUPROV_FILE' || exit\n{text}GPUPROV_FILE\nmv -f \"$folder/{name}.new\" \"$folder/{name}\" || exit\n"
            );
        }
        script.push_str(START);
        script.push_str("GPUPROV_CLUSTER\n");
        script
    }
}

/// Returns the lines for `sh` that tell how far the set-up is, as soon as that is no longer what `seen` (a mark of
/// [`super::status::Status`]) stands for, at the latest after `looks` looks of half a second.
pub fn status_script(seen: &str, looks: u32) -> String {
    let seen: String = seen.chars().filter(char::is_ascii_digit).collect();
    format!("seen='{seen}'\nhold={looks}\n{STATUS}")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    fn plan(gpus: u32) -> Plan {
        Plan { name: "dev".parse().unwrap(), gpus, firewall: true }
    }

    #[test]
    fn texts_do_not_end_their_own_quotes() {
        for (name, text) in FILES.into_iter().chain([("start.sh", START)]) {
            assert!(text.ends_with('\n'), "{name}");
            assert!(!text.contains("GPUPROV_FILE") && !text.contains("GPUPROV_CLUSTER"), "{name}");
        }
    }

    #[test]
    fn the_shell_takes_all_of_it() {
        let all = [plan(1).start_script(), status_script("12", 1), KUBECONFIG.to_owned(), SETUP.to_owned()];
        for script in all {
            let mut sh = Command::new("sh").args(["-n", "-s"]).stdin(Stdio::piped()).spawn().unwrap();
            sh.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            assert!(sh.wait().unwrap().success());
        }
    }

    #[test]
    fn a_mark_is_only_digits() {
        assert!(status_script("12'; rm -rf /", 3).starts_with("seen='12'\nhold=3\n"));
    }
}
