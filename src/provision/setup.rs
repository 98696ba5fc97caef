//! What is done in the first login: environment, the start of the cluster's set-up, a look at the GPUs; and after it the
//! startup script.

use std::fmt::Write;
use std::time::Duration;

use crate::cluster::{Plan, script};
use crate::model::gpu::Gpu;
use crate::model::machine::MachineName;
use crate::model::offer::Offer;
use crate::model::secret::Secret;
use crate::model::words::one_line;
use crate::ssh::exec::{Client, Output};
use crate::state::record::GpuCheck;

/// How long a startup script may run.
const SCRIPT_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// How long the start of the cluster's set-up may take, which only writes files and tells systemd.
const START_LIMIT: Duration = Duration::from_secs(90);

/// The command that the first login runs; what it does comes on its standard input, so that no value stands in a process list.
pub const FIRST_COMMAND: &str = "sh -s";

/// The command that runs a startup script from its standard input as root.
///
/// The path of the log stands in the command, the script's text does not.
const SCRIPT_COMMAND: &str = "sh -c '\
    umask 077; script=$(mktemp) || exit 125; cat >\"$script\" || exit 125; \
    if [ -r ~/.gpuprov/env ]; then . ~/.gpuprov/env; fi; \
    root=; [ \"$(id -u)\" = 0 ] || root=\"sudo -n -E\"; \
    case \"$(head -c 2 \"$script\")\" in \"#!\") chmod 700 \"$script\"; run=$script ;; *) run=\"bash $script\" ;; esac; \
    $root sh -c \"$run >/var/log/gpuprov-startup.log 2>&1 </dev/null\"; code=$?; \
    rm -f \"$script\"; exit $code'";

/// Returns whether a text can be the name of an environment variable.
pub fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the script of the first login: it writes `~/.gpuprov/env`, lets the login files read it, starts the set-up of a
/// cluster, and tells what is there.
///
/// The line goes first in `~/.bashrc`, because the usual one returns early where no terminal is; it says nothing, because scp
/// and rsync must see no output.
pub fn first_script(env: &[(String, Secret)], cluster: Option<&Plan>) -> Secret {
    let mut script = String::from("echo gpuprov:in\n");
    if !env.is_empty() {
        script.push_str("umask 077\nmkdir -p ~/.gpuprov\n{\n");
        for (name, value) in env {
            let _ = writeln!(
                script,
                "printf '%s\\n' {}",
                quote(&format!("export {name}={}", quote(value.expose())))
            );
        }
        script.push_str("} > ~/.gpuprov/env || echo gpuprov:failed:~/.gpuprov/env\n");
        script.push_str(
            "umask 022\nfor file in ~/.bashrc ~/.profile ~/.bash_profile ~/.bash_login; do\n\
             case $file in */.bash_*) [ -e \"$file\" ] || continue ;; esac\n\
             head -n 1 \"$file\" 2>/dev/null | grep -qF '# gpuprov' && continue\n\
             before=$(mktemp) || { echo \"gpuprov:failed:$file\"; continue; }\n\
             [ ! -e \"$file\" ] || cat \"$file\" > \"$before\"\n\
             { echo 'if [ -r ~/.gpuprov/env ]; then . ~/.gpuprov/env; fi # gpuprov'; cat \"$before\"; } > \"$file\" \
             || echo \"gpuprov:failed:$file\"\n\
             rm -f \"$before\"\n\
             done\n",
        );
    }
    if let Some(plan) = cluster {
        script.push_str(&plan.start_script());
    }
    script.push_str(
        "echo \"gpuprov:shell:${SHELL:-}\"\n\
         limit=; command -v timeout >/dev/null 2>&1 && limit='timeout 30'\n\
         $limit nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits </dev/null 2>/dev/null \
         | sed 's/^/gpuprov:gpu:/'\n\
         [ ! -d /proc/driver/nvidia/gpus ] || echo \"gpuprov:driver:$(ls /proc/driver/nvidia/gpus | wc -l)\"\n\
         echo gpuprov:done\n",
    );
    Secret::new(script)
}

/// Returns `text` as one word of a POSIX shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What the first login told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstLook {
    /// Whether the GPUs are as offered.
    pub gpu_check: Option<GpuCheck>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Whether the set-up of the cluster was started, or why not; none if none was to be.
    pub cluster: Option<Result<(), String>>,
}

/// Reads what the script of [`first_script`] told; none if it did not run to its end.
pub fn first_look(output: &Output, offer: &Offer, env_given: bool, cluster: bool) -> Option<FirstLook> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let told: Vec<&str> = stdout.lines().filter_map(|line| line.trim().strip_prefix("gpuprov:")).collect();
    if told.first() != Some(&"in") || told.last() != Some(&"done") {
        return None;
    }
    let mut notes = Vec::new();
    let all = |prefix: &'static str| told.iter().filter_map(move |line| line.strip_prefix(prefix));
    notes
        .extend(all("failed:").map(|file| {
            format!("`{file}` on the machine could not be written: --env is not in every login")
        }));
    if env_given
        && let Some(shell) = all("shell:").next()
        && !shell.ends_with("/bash")
        && !shell.is_empty()
    {
        notes.push(format!(
            "the login shell on the machine is `{shell}`, not bash: --env is not in its logins"
        ));
    }
    let gpu_check = (offer.gpu_count > 0).then(|| {
        let seen: Vec<&str> = all("gpu:").collect();
        let driver = all("driver:").next().and_then(|count| count.trim().parse().ok());
        let (check, note) = compare(&seen, driver, offer);
        notes.extend(note);
        check
    });
    let cluster = cluster.then(|| cluster_start(&told));
    Some(FirstLook { gpu_check, notes, cluster })
}

/// Reads whether the set-up of the cluster was started from what the script told.
fn cluster_start(told: &[&str]) -> Result<(), String> {
    if let Some(why) = told.iter().find_map(|line| line.strip_prefix(script::FAILED)) {
        return Err(one_line(why, 300));
    }
    match told.contains(&script::STARTED) {
        true => Ok(()),
        false => Err("the machine did not say that it was started".to_owned()),
    }
}

/// Starts the set-up of the cluster in a login of its own; `Err` says what went wrong.
pub async fn start_cluster(login: &Client, name: &MachineName, plan: &Plan) -> Result<(), String> {
    let lines = plan.start_script();
    match login.run(name.as_str(), FIRST_COMMAND, lines.as_bytes(), START_LIMIT).await {
        Err(error) => Err(error.to_string()),
        Ok(output) => {
            let stdout = String::from_utf8_lossy(&output.stdout);
            let told = stdout.lines().filter_map(|line| line.trim().strip_prefix("gpuprov:"));
            cluster_start(&told.collect::<Vec<_>>())
        }
    }
}

/// Compares what `nvidia-smi` (lines of name, MiB) and the driver's own list tell with the offer.
fn compare(seen: &[&str], driver: Option<usize>, offer: &Offer) -> (GpuCheck, Option<String>) {
    let cards: Vec<Gpu> = seen.iter().filter_map(|line| card(line)).collect();
    if cards.is_empty() {
        let note = "the GPUs could not be looked at: nvidia-smi told nothing".to_owned();
        return (GpuCheck::Unknown, Some(note));
    }
    let count = usize::try_from(offer.gpu_count).unwrap_or(usize::MAX);
    let offered = offer.gpu.as_deref().unwrap_or_default();
    let told = |what: &str| format!("the machine has {what}, the offer said {offered}:{}", offer.gpu_count);
    if cards.len() != count {
        return (GpuCheck::Differs, Some(told(&format!("{} GPUs", cards.len()))));
    }
    // A host can show fewer cards than it has, but a list shorter than what nvidia-smi shows is a faked nvidia-smi.
    if driver.is_some_and(|driver| driver < count) {
        return (
            GpuCheck::Differs,
            Some(told(&format!("{} GPUs by its driver's own list", driver.unwrap_or_default()))),
        );
    }
    let Some(wanted) = offer.card() else { return (GpuCheck::Unknown, None) };
    for card in &cards {
        if card.known && wanted.known && card.name != wanted.name {
            let shown = format!("{} ({} GB)", card.name, card.vram_gb.unwrap_or_default());
            return (GpuCheck::Differs, Some(told(&shown)));
        }
        if let (Some(has), Some(wants)) = (card.vram_gb, wanted.vram_gb)
            && (has - wants).abs() > wants * 0.1
        {
            return (GpuCheck::Differs, Some(told(&format!("{has:.0} GB per GPU instead of {wants:.0}"))));
        }
    }
    let known = wanted.known && cards.iter().all(|card| card.known);
    (if known { GpuCheck::Ok } else { GpuCheck::Unknown }, None)
}

fn card(line: &str) -> Option<Gpu> {
    let (name, mebibytes) = line.rsplit_once(',')?;
    let mebibytes: f64 = mebibytes.trim().parse().ok()?;
    Some(Gpu::identify(name.trim(), Some(mebibytes / 1024.0)))
}

/// Runs the startup script on the machine as root; `Err` says what went wrong.
pub async fn run_script(login: &Client, name: &MachineName, script: &[u8]) -> Result<(), String> {
    let log = "its output is in /var/log/gpuprov-startup.log on the machine";
    match login.run(name.as_str(), SCRIPT_COMMAND, script, SCRIPT_LIMIT).await {
        Ok(output) => match output.code {
            Some(0) => Ok(()),
            Some(code) => Err(format!("the startup script ended with {code}; {log}")),
            None => Err(format!("the startup script was ended by a signal; {log}")),
        },
        Err(error) => Err(format!("the startup script could not be run to its end: {error}; {log}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::filter::samples::offer;

    fn output(lines: &[&str]) -> Output {
        Output { code: Some(0), stdout: lines.join("\n").into_bytes(), ..Output::default() }
    }

    #[test]
    fn gpus_are_compared_with_the_offer() {
        let cases: [(&[&str], GpuCheck); 6] = [
            (&["in", "gpu:NVIDIA GeForce RTX 4090, 24564", "done"], GpuCheck::Ok),
            (&["in", "gpu:NVIDIA GeForce RTX 3090, 24576", "done"], GpuCheck::Differs),
            (
                &["in", "gpu:NVIDIA GeForce RTX 4090, 24564", "gpu:NVIDIA GeForce RTX 4090, 24564", "done"],
                GpuCheck::Differs,
            ),
            (&["in", "gpu:NVIDIA GeForce RTX 4090, 49140", "done"], GpuCheck::Differs),
            (&["in", "gpu:NVIDIA GeForce RTX 4090, 24564", "driver:0", "done"], GpuCheck::Differs),
            (&["in", "gpu:No devices were found", "done"], GpuCheck::Unknown),
        ];
        for (lines, expected) in cases {
            let lines: Vec<String> = lines.iter().map(|line| format!("gpuprov:{line}")).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let look = first_look(&output(&lines), &offer("z", 1), false, false).unwrap();
            assert_eq!(look.gpu_check, Some(expected), "{lines:?}");
            assert_eq!(look.notes.is_empty(), expected == GpuCheck::Ok, "{lines:?}");
        }
    }

    #[test]
    fn a_login_that_broke_off_is_no_look() {
        for lines in [&[][..], &["gpuprov:in"], &["Welcome!", "gpuprov:in", "gpuprov:shell:/bin/bash"]] {
            assert_eq!(first_look(&output(lines), &offer("z", 1), false, false), None);
        }
    }

    #[test]
    fn a_shell_that_is_not_bash_is_told() {
        let told = output(&[
            "gpuprov:in",
            "gpuprov:shell:/bin/zsh",
            "gpuprov:gpu:NVIDIA GeForce RTX 4090, 24564",
            "gpuprov:done",
        ]);
        let notes = |env| first_look(&told, &offer("z", 1), env, false).unwrap().notes.len();
        assert_eq!((notes(true), notes(false)), (1, 0));
    }

    #[test]
    fn whether_the_cluster_was_started_is_told() {
        let cases: [(&[&str], Result<(), &str>); 3] = [
            (&["in", "cluster:started", "done"], Ok(())),
            (&["in", "cluster:failed:no systemd", "done"], Err("no systemd")),
            (&["in", "done"], Err("the machine did not say that it was started")),
        ];
        for (lines, expected) in cases {
            let lines: Vec<String> = lines.iter().map(|line| format!("gpuprov:{line}")).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let look = |cluster| first_look(&output(&lines), &offer("z", 1), false, cluster).unwrap().cluster;
            assert_eq!(look(true), Some(expected.map_err(str::to_owned)), "{lines:?}");
            assert_eq!(look(false), None);
        }
    }

    #[test]
    fn values_survive_the_shell() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".bashrc"), "case $- in *i*) ;; *) return;; esac\n").unwrap();
        let value = "it's \"two\"\nlines $HOME `x` \\n = a==";
        let script = first_script(&[("TOKEN".to_owned(), Secret::new(value.to_owned()))], None);
        for _ in 0..2 {
            let run = std::process::Command::new("sh")
                .arg("-c")
                .arg(script.expose())
                .env("HOME", home.path())
                .output()
                .unwrap();
            assert!(String::from_utf8_lossy(&run.stdout).ends_with("gpuprov:done\n"));
        }
        let read = std::process::Command::new("bash")
            .args(["-c", ". ~/.bashrc; printf %s \"$TOKEN\""])
            .env("HOME", home.path())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&read.stdout), value);
        let bashrc = std::fs::read_to_string(home.path().join(".bashrc")).unwrap();
        assert_eq!(bashrc.matches("# gpuprov").count(), 1);
        assert!(bashrc.ends_with("case $- in *i*) ;; *) return;; esac\n"));
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(home.path().join(".gpuprov/env")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn names_of_variables() {
        for good in ["A", "_x1", "HF_TOKEN"] {
            assert!(is_variable(good));
        }
        for bad in ["", "1A", "A-B", "A B", "A;B"] {
            assert!(!is_variable(bad));
        }
    }
}
