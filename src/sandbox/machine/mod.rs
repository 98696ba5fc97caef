//! A rented machine: an SSH server of its own on loopback, over a scratch directory.
//!
//! It plays a container with the usual Ubuntu root account, or a virtual machine with the user `ubuntu`: own port, own
//! ed25519 host key, own home, one user, exactly the given keys. It is a directory and not a chroot, so three things are arranged:
//!
//! - a command's literal path prefix `/var/log/gpuprov-` is rewritten to the same path below the home, and so
//!   are that prefix and the user's home directory in SFTP, because nothing may write to the real `/var/log`;
//! - `nvidia-smi` is a script in a directory that comes first in PATH; it says that it is the sandbox. `sudo`
//!   is one too: it runs the command as it is;
//! - port forwarding reaches loopback addresses only, so the sandbox is no way into a network.
//!
//! Not played: agent and X11 forwarding, Unix socket forwarding, `eow@openssh.com` (russh does not hand it
//! out, so `ssh NAME yes | head` ends only when the client leaves), chroot, other users.
//!
//! A virtual machine has a systemd beside that, and a cluster can be set up on it: `vm/`.
//!
//! `connection.rs` is the SSH side, `session.rs` runs the processes, `forward.rs` ports, `sftp.rs` files,
//! `home.rs` writes the home, `reap.rs` ends what is left.

mod connection;
mod forward;
mod home;
mod reap;
mod session;
mod sftp;
mod vm;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::{HashAlg, PrivateKey, PublicKey};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use super::lock;
use super::scripts::LoginTrouble;

/// One kind of GPU as `nvidia-smi` reports it.
#[derive(Debug, Clone)]
pub(super) struct Smi {
    /// Name, such as `NVIDIA GeForce RTX 4090`.
    pub(super) name: String,
    /// Total memory in MiB.
    pub(super) mib: u64,
}

/// What a machine is made of.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    /// Host name, also the name of its directory.
    pub(super) host: String,
    /// The only user, `root` or one that may do everything by `sudo`.
    pub(super) user: &'static str,
    /// Text of `authorized_keys`.
    pub(super) authorized: String,
    /// One entry a GPU.
    pub(super) gpus: Vec<Smi>,
    /// Environment of the container's first process, which only interactive shells get.
    pub(super) container_env: Vec<(String, String)>,
    /// What is wrong with the login.
    pub(super) trouble: Option<LoginTrouble>,
    /// A second port that leads to the same machine, such as a proxy's.
    pub(super) second: Option<Door>,
    /// What sshd says before the login.
    pub(super) banner: Option<&'static str>,
    /// Whether port forwarding is allowed.
    pub(super) forwarding: bool,
}

/// One way to a machine's sshd.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Door {
    /// What is wrong with the login there.
    pub(super) trouble: Option<LoginTrouble>,
}

/// A port of a machine that nothing listens on before the boot.
#[derive(Debug)]
struct Port {
    address: SocketAddr,
    door: Door,
    reserved: Mutex<Option<TcpSocket>>,
}

impl Port {
    fn reserve(door: Door, at: SocketAddr) -> io::Result<Port> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(at)?;
        Ok(Port { address: socket.local_addr()?, door, reserved: Mutex::new(Some(socket)) })
    }
}

/// A machine with a reserved port; it answers once it is booted.
#[derive(Debug)]
pub(super) struct Machine {
    inner: Arc<Inner>,
    port: Port,
    second: Option<Port>,
}

#[derive(Debug)]
pub(super) struct Inner {
    spec: Spec,
    home: PathBuf,
    /// The cluster of a virtual machine; containers have none.
    kube: Option<vm::Kube>,
    /// Value of the environment variable that all its processes carry.
    marker: String,
    keys: Mutex<Vec<PublicKey>>,
    host_key: Mutex<PrivateKey>,
    up_since: Mutex<Option<Instant>>,
    groups: reap::Groups,
    /// Whether any process was ever started, so that there is something to look for at the end.
    used: AtomicBool,
    /// Open connections, also those that only forward.
    connections: AtomicUsize,
    tasks: Mutex<Option<JoinSet<()>>>,
}

impl Machine {
    /// Writes the home below `scratch`, makes the host key and takes a port that nothing listens on yet.
    pub(super) fn reserve(spec: Spec, scratch: &Path) -> io::Result<Machine> {
        Self::make(spec, scratch, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false)
    }

    /// The same for a virtual machine, at a given address, which has to be free.
    pub(super) fn reserve_at(spec: Spec, scratch: &Path, at: SocketAddr) -> io::Result<Machine> {
        Self::make(spec, scratch, at, true)
    }

    fn make(spec: Spec, scratch: &Path, at: SocketAddr, is_vm: bool) -> io::Result<Machine> {
        let port = Port::reserve(Door { trouble: spec.trouble }, at)?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let second = spec.second.map(|door| Port::reserve(door, any)).transpose()?;
        let home = home::write(scratch, &spec)?;
        let kube = is_vm.then(|| vm::write(&home, spec.forwarding)).transpose()?;
        let inner = Inner {
            marker: hex(&random::<12>()),
            keys: Mutex::new(public_keys(&spec.authorized)),
            host_key: Mutex::new(new_host_key()),
            up_since: Mutex::new(None),
            groups: reap::Groups::default(),
            used: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            tasks: Mutex::new(Some(JoinSet::new())),
            spec,
            home,
            kube,
        };
        Ok(Machine { inner: Arc::new(inner), port, second })
    }

    /// Starts sshd; a second call does nothing. Must run inside a Tokio runtime.
    pub(super) fn boot(&self) {
        self.open(&self.port);
        self.second.iter().for_each(|port| self.open(port));
    }

    fn open(&self, port: &Port) {
        let Some(socket) = lock(&port.reserved).take() else { return };
        let door = port.door;
        if door.trouble == Some(LoginTrouble::Closed) {
            return;
        }
        let Ok(listener) = socket.listen(64) else { return };
        lock(&self.inner.up_since).get_or_insert_with(Instant::now);
        let inner = Arc::clone(&self.inner);
        self.inner.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => connection::begin(&inner, door, stream, peer),
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        });
    }

    /// Whether sshd was started.
    pub(super) fn booted(&self) -> bool {
        lock(&self.inner.up_since).is_some()
    }

    /// Where sshd is, or will be.
    pub(super) fn address(&self) -> SocketAddr {
        self.port.address
    }

    /// Where the second way in is, or will be.
    pub(super) fn second_address(&self) -> Option<SocketAddr> {
        self.second.as_ref().map(|port| port.address)
    }

    /// Lets exactly these keys in from the next login on.
    pub(super) fn authorize(&self, authorized: &str) {
        let file = self.inner.home.join(".ssh/authorized_keys");
        let _ = std::fs::write(file, format!("{authorized}\n"));
        *lock(&self.inner.keys) = public_keys(authorized);
    }

    /// Fingerprint of the host key, `SHA256:...`.
    pub(super) fn fingerprint(&self) -> String {
        lock(&self.inner.host_key).public_key().fingerprint(HashAlg::Sha256).to_string()
    }

    /// The public host key in base64, as it stands behind its type in a line of `known_hosts`.
    pub(super) fn host_key(&self) -> String {
        let line = lock(&self.inner.host_key).public_key().to_openssh().unwrap_or_default();
        line.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// Shows this host key from the next connection on.
    pub(super) fn set_host_key(&self, key: PrivateKey) {
        *lock(&self.inner.host_key) = key;
    }

    /// Takes another host key from the next connection on.
    pub(super) fn swap_host_key(&self) {
        *lock(&self.inner.host_key) = new_host_key();
    }

    /// Whether anybody is connected, or left something running.
    pub(super) fn busy(&self) -> bool {
        !self.inner.groups.idle() || self.inner.connections.load(Ordering::SeqCst) > 0
    }

    /// Where its home is.
    pub(super) fn home(&self) -> &Path {
        &self.inner.home
    }

    /// Ends sshd, all connections and all processes, and removes the home.
    pub(super) fn stop(&self) {
        self.inner.end();
        let _ = std::fs::remove_dir_all(&self.inner.home);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Inner {
    /// Runs a task that ends with the machine; nothing happens when the machine has ended.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = lock(&self.tasks).as_mut() {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
    }

    fn end(&self) {
        drop(lock(&self.tasks).take());
        self.kube.iter().for_each(vm::Kube::end);
        self.groups.kill();
        if self.used.swap(false, Ordering::SeqCst) {
            reap::kill_marked(&self.marker);
        }
    }

    /// Whether sshd allows forwarding now.
    fn forwards(&self) -> bool {
        self.spec.forwarding || (self.kube.is_some() && vm::forwards(&self.home))
    }

    /// Where a forwarded connection leads; none where it is not allowed. All machines have this computer's loopback, but each
    /// has a cluster of its own.
    async fn forward_target(&self, host: &str, port: u32) -> Option<SocketAddr> {
        let target = forward::target(host, port).filter(|_| self.forwards())?;
        match &self.kube {
            // Nothing listens on port 1: it is refused, as where k3s does not run.
            Some(kube) if port == vm::PORT => {
                Some(kube.address().await.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))))
            }
            _ => Some(target),
        }
    }

    /// Whether this key gets in now.
    fn admits(&self, door: Door, user: &str, key: &PublicKey) -> bool {
        let known = lock(&self.keys).iter().any(|mine| mine.key_data() == key.key_data());
        let late = match door.trouble {
            Some(LoginTrouble::KeyLate { ms }) => {
                let up = lock(&self.up_since).map_or(Duration::ZERO, |since| since.elapsed());
                up < Duration::from_millis(ms)
            }
            Some(LoginTrouble::NoKey) => true,
            _ => false,
        };
        user == self.spec.user && known && !late
    }
}

fn public_keys(authorized: &str) -> Vec<PublicKey> {
    authorized.lines().filter_map(|line| PublicKey::from_openssh(line.trim()).ok()).collect()
}

fn new_host_key() -> PrivateKey {
    PrivateKey::from(Ed25519Keypair::from_seed(&random::<32>()))
}

/// Random bytes of the system; zeros where it has none, which never happens on a running machine.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let _ = SystemRandom::new().fill(&mut bytes);
    bytes
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
