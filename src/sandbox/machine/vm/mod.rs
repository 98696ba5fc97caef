//! What a virtual machine has that a container has not: systemd, and a cluster that can be set up on it.
//!
//! Nothing of it is real. `session.sh` plays `systemctl` and `systemd-run` in every login; `unit.sh` plays whatever else a set-up of
//! k3s calls (`apt-get`, `curl`, `nft`, the installer, `k3s kubectl`, ...), and comes first in the PATH of units only, so that a
//! user's own `curl` in a login is the real one. `GPUPROV_ROOT` says where the machine's files are in place of `/`; every call is
//! written to `.sandbox/calls` below it. `kube.rs` is the cluster's interface, with TLS and client certificates.
//!
//! What goes wrong is a file below `.k8s-faults` beside the machines, named as in the scripts, with how often it is played:
//! `bus crashes hangs runtime node coredns gpu-none gpu-fewer installer download tampered apt toolkit nft driver cloud-init slow
//! route disk ufw wireguard`.

mod kube;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub(super) use self::kube::{Kube, PORT};

/// Programs of every login, below the home.
pub(super) const BIN: &str = ".sandbox/vm";
/// Variable with the folder that stands for `/`.
pub(super) const ROOT: &str = "GPUPROV_ROOT";
/// That sshd was told to allow forwarding.
const FORWARDING: &str = ".sandbox/k8s/forwarding";

const SESSION: &str = include_str!("session.sh");
const UNIT: &str = include_str!("unit.sh");
const UNIT_PROGRAMS: [&str; 20] = [
    "apt-get",
    "cloud-init",
    "curl",
    "df",
    "dpkg",
    "ip",
    "journalctl",
    "k3s",
    "k3s-installer",
    "modprobe",
    "nft",
    "nproc",
    "nvidia-smi",
    "sha256sum",
    "sshd",
    "true",
    "ufw",
    "uname",
    "systemctl",
    "systemd-run",
];

/// Waits of a machine that plays: a set-up takes a second or two.
const CONF: &str = "POLL=0.05\nPAUSE=0.05\nWAIT_CLOUD_INIT=30\nWAIT_DRIVER=3\nWAIT_LOCK=1\nWAIT_K3S=3\nWAIT_NODE=3\nWAIT_GPU=3\n";

/// Writes the files of a virtual machine into its home, and returns its cluster, which nobody started yet.
pub(super) fn write(home: &Path, forwarding: bool) -> io::Result<Kube> {
    let unit = Path::new(".sandbox/unit");
    for folder in [
        BIN,
        ".sandbox/unit",
        ".sandbox/k8s",
        "run/systemd/system",
        "sys/fs/cgroup",
        "proc",
        "etc/gpuprov",
        "var/lib",
        "usr/local/bin",
    ] {
        fs::create_dir_all(home.join(folder))?;
    }
    let program = |path: &Path, text: &str| {
        fs::write(home.join(path), text)?;
        fs::set_permissions(home.join(path), fs::Permissions::from_mode(0o755))
    };
    for name in ["systemctl", "systemd-run"] {
        program(&Path::new(BIN).join(name), SESSION)?;
    }
    for name in UNIT_PROGRAMS {
        program(&unit.join(name), if name.starts_with("system") { SESSION } else { UNIT })?;
    }
    fs::write(home.join("sys/fs/cgroup/cgroup.controllers"), "cpu memory\n")?;
    fs::write(home.join("proc/meminfo"), "MemTotal:       65536000 kB\n")?;
    fs::write(home.join("etc/gpuprov/k3s.conf"), CONF)?;
    if forwarding {
        fs::write(home.join(FORWARDING), "")?;
    }
    let (kube, config) = Kube::new(home)?;
    fs::write(home.join(".sandbox/k8s/k3s.yaml"), config)?;
    fs::set_permissions(home.join(".sandbox/k8s/k3s.yaml"), fs::Permissions::from_mode(0o600))?;
    Ok(kube)
}

/// Whether sshd allows forwarding by now.
pub(super) fn forwards(home: &Path) -> bool {
    home.join(FORWARDING).exists()
}
