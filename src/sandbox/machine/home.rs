//! The files of a machine: what a fresh Ubuntu container has in root's home, and the GPU query tool.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::Spec;

/// Directory below the home that comes first in PATH.
pub(super) const BIN: &str = ".sandbox/bin";

/// Ubuntu's `/root/.bashrc` begins like this: nothing below is read by `ssh NAME command`.
const BASHRC: &str = r#"# ~/.bashrc: executed by bash(1) for non-login shells.

# If not running interactively, don't do anything
case $- in
    *i*) ;;
      *) return;;
esac

HISTCONTROL=ignoredups:ignorespace
PS1='\u@\h:\w\$ '
source @HOME@/etc/rp_environment
"#;

const PROFILE: &str = r#"# ~/.profile: executed by Bourne-compatible login shells.
PATH="@BIN@:$PATH"

if [ "$BASH" ]; then
  if [ -f ~/.bashrc ]; then
    . ~/.bashrc
  fi
fi
"#;

const SMI: &str = r#"#!/bin/sh
# nvidia-smi of the gpuprov sandbox: reports the rented GPUs, none of which exist.
gpus='@GPUS@'
format=csv
query=
for arg in "$@"; do
  case "$arg" in
    --query-gpu=*) query=${arg#--query-gpu=} ;;
    --format=*) format=${arg#--format=} ;;
    -L) printf '%s\n' "$gpus" | awk -F'|' '{ printf "GPU %d: %s (UUID: GPU-sandbox-%d)\n", NR-1, $1, NR-1 }'; exit 0 ;;
    -h|--help) echo "NVIDIA System Management Interface -- gpuprov sandbox"; exit 0 ;;
    *) echo "nvidia-smi (gpuprov sandbox): unknown option $arg" >&2; exit 2 ;;
  esac
done
printf '%s\n' "$gpus" | awk -F'|' -v query="$query" -v format="$format" -v driver='580.95.05' '
function cell(field, plain,   value, unit) {
  unit = ""
  if (field == "name" || field == "gpu_name") value = $1
  else if (field == "memory.total") { value = $2; unit = " MiB" }
  else if (field == "memory.used") { value = 1; unit = " MiB" }
  else if (field == "memory.free") { value = $2 - 1; unit = " MiB" }
  else if (field == "utilization.gpu") { value = 0; unit = " %" }
  else if (field == "index") value = NR - 1
  else if (field == "count") value = total
  else if (field == "uuid" || field == "gpu_uuid") value = "GPU-sandbox-" (NR - 1)
  else if (field == "driver_version") value = driver
  else if (field == "compute_cap") value = "8.9"
  else { bad = field; return "" }
  return plain ? value : value unit
}
{ rows[NR] = $0 }
END {
  total = NR
  if (query == "") {
    print "+-----------------------------------------------------------------------------------------+"
    printf "| %-87s |\n", "gpuprov sandbox: these GPUs do not exist"
    printf "| %-87s |\n", "NVIDIA-SMI " driver "      Driver Version: " driver "      CUDA Version: 13.0"
    print "|-----------------------------------------------------------------------------------------|"
    for (i = 1; i <= total; i++) {
      split(rows[i], part, "|")
      printf "| %3d  %-52s %12d MiB / %7d MiB |\n", i - 1, part[1], 1, part[2]
    }
    print "+-----------------------------------------------------------------------------------------+"
    exit 0
  }
  n = split(query, fields, /, */)
  plain = (format ~ /nounits/)
  if (format !~ /noheader/) {
    line = ""
    for (f = 1; f <= n; f++) {
      unit = (fields[f] ~ /^memory/ && !plain) ? " [MiB]" : ""
      line = line (f > 1 ? ", " : "") fields[f] unit
    }
    print line
  }
  for (i = 1; i <= total; i++) {
    $0 = rows[i]; NR = i; line = ""
    for (f = 1; f <= n; f++) line = line (f > 1 ? ", " : "") cell(fields[f], plain)
    if (bad != "") { print "Field \"" bad "\" is not a valid field to query."; exit 2 }
    print line
  }
}'
"#;

const SUDO: &str = r#"#!/bin/sh
# sudo of the gpuprov sandbox: everything is allowed, and nothing changes.
while [ $# -gt 0 ]; do
  case "$1" in
    -u|-g|-C|-D|-h|-p|-R|-T|-U) shift 2 ;;
    --) shift; break ;;
    -*) shift ;;
    *=*) export "$1"; shift ;;
    *) break ;;
  esac
done
[ $# -eq 0 ] || exec "$@"
"#;

/// Writes the home of a machine and returns its absolute path.
pub(super) fn write(scratch: &Path, spec: &Spec) -> io::Result<PathBuf> {
    let home = fs::canonicalize(scratch)?.join(&spec.host);
    let directory = |path: &Path| fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    directory(&home)?;
    for below in [BIN, ".ssh", "etc", "var/log", "tmp"] {
        directory(&home.join(below))?;
    }
    let place = home.to_string_lossy().into_owned();
    let bin = home.join(BIN).to_string_lossy().into_owned();
    fs::write(home.join(".bashrc"), BASHRC.replace("@HOME@", &quote(&place)))?;
    fs::write(home.join(".profile"), PROFILE.replace("@BIN@", &bin))?;
    fs::write(home.join(".ssh/authorized_keys"), format!("{}\n", spec.authorized))?;
    let exports: String =
        spec.container_env.iter().map(|(name, value)| format!("export {name}={}\n", quote(value))).collect();
    fs::write(home.join("etc/rp_environment"), exports)?;
    let gpus: Vec<String> = spec.gpus.iter().map(|gpu| format!("{}|{}", gpu.name, gpu.mib)).collect();
    let tool = home.join(BIN).join("nvidia-smi");
    fs::write(&tool, SMI.replace("@GPUS@", &gpus.join("\n").replace('\'', "")))?;
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755))?;
    // Also for root, who needs none: this computer's own must never be asked, whoever runs the sandbox.
    let tool = home.join(BIN).join("sudo");
    fs::write(&tool, SUDO)?;
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755))?;
    Ok(home)
}

/// One word of a POSIX shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
