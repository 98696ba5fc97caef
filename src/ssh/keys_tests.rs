//! Tests of keys with the real ssh-keygen and ssh-agent.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use super::*;
use crate::ssh::known_hosts;
use crate::ssh::tests::program;

struct World {
    top: tempfile::TempDir,
    programs: Programs,
}

impl World {
    /// None where OpenSSH is not installed.
    fn new() -> Option<World> {
        let programs = Programs { ssh_keygen: program("ssh-keygen")?, ssh_add: Some(program("ssh-add")?) };
        Some(World { top: tempfile::tempdir().unwrap(), programs })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    fn key(&self, name: &str, kind: &str, passphrase: &str) -> PathBuf {
        let path = self.path(name);
        self.keygen(&["-q", "-t", kind, "-N", passphrase, "-C", name, "-f", path.to_str().unwrap()]);
        path
    }

    fn keygen(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new(&self.programs.ssh_keygen).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    async fn resolve(&self, key: &Path, agent: Option<&str>) -> Result<KeyPair, KeyError> {
        resolve(Some(key), &self.path("dir"), &self.programs, agent).await
    }

    async fn error(&self, key: &Path) -> String {
        self.resolve(key, None).await.unwrap_err().to_string()
    }
}

/// An agent that ends with the test.
struct TestAgent {
    process: Child,
    socket: String,
}

impl TestAgent {
    fn start(world: &World) -> TestAgent {
        let socket = world.path("agent.sock");
        let process = std::process::Command::new(program("ssh-agent").unwrap())
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..500 {
            if socket.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        TestAgent { process, socket: socket.to_str().unwrap().to_owned() }
    }

    fn add(&self, world: &World, key: &Path) {
        let program = world.programs.ssh_add.as_ref().unwrap();
        let added = std::process::Command::new(program)
            .args(["-q"])
            .arg(key)
            .env("SSH_AUTH_SOCK", &self.socket)
            .status()
            .unwrap();
        assert!(added.success());
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_private_key_with_or_without_its_pub() {
    let Some(world) = World::new() else { return };
    for kind in ["ed25519", "ecdsa", "rsa"] {
        let key = world.key(kind, kind, "");
        let pair = world.resolve(&key, None).await.unwrap();
        let line = fs::read_to_string(with_pub(&key)).unwrap().trim().to_owned();
        assert_eq!(
            (pair.public_line.as_str(), &pair.identity_file, pair.made, pair.by_agent),
            (line.as_str(), &key, false, false)
        );
        assert_eq!(world.resolve(&with_pub(&key), None).await.unwrap(), pair, "by its .pub");
        // The fingerprint as ssh-keygen tells it.
        let shown = world.keygen(&["-lf", with_pub(&key).to_str().unwrap()]);
        assert_eq!(shown.split(' ').nth(1).map(str::to_owned), known_hosts::fingerprint(&line));
        fs::remove_file(with_pub(&key)).unwrap();
        let derived = world.resolve(&key, None).await.unwrap();
        assert!(public_key::same(&derived.public_line, &line));
        assert!(!with_pub(&key).exists(), "nothing is written");
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_with_the_file_and_the_fix() {
    let Some(world) = World::new() else { return };
    let key = world.key("a", "ed25519", "");
    let other = world.key("b", "ed25519", "");
    fs::copy(with_pub(&other), with_pub(&key)).unwrap();
    let error = world.error(&key).await;
    assert!(error.contains("not of one key") && error.contains("ssh-keygen -y -f"), "{error}");
    for (text, words) in [("", "is empty"), ("null\n", "TYPE BASE64")] {
        fs::write(with_pub(&other), text).unwrap();
        let error = world.error(&other).await;
        assert!(error.contains(words) && error.contains("b.pub"), "{error}");
    }
    fs::remove_file(with_pub(&other)).unwrap();
    chmod(&other, 0o644);
    assert!(world.error(&other).await.contains("chmod 600"));
    fs::write(world.path("garbage"), "garbage").unwrap();
    chmod(&world.path("garbage"), 0o600);
    assert!(matches!(world.resolve(&world.path("garbage"), None).await, Err(KeyError::Unreadable { .. })));
    assert!(world.error(&world.path("none")).await.contains("does not exist"));
    assert!(world.error(&world.path("none.pub")).await.contains("does not exist"));
    assert!(world.error(Path::new("rel")).await.contains("not absolute"));
    assert!(matches!(world.resolve(world.top.path(), None).await, Err(KeyError::Unreadable { .. })));
    assert!(matches!(world.resolve(&world.path("a\"b"), None).await, Err(KeyError::Unwritable(_))));
    let broken = Programs { ssh_keygen: world.path("none"), ssh_add: None };
    fs::remove_file(with_pub(&key)).unwrap();
    let error = resolve(Some(&key), &world.path("dir"), &broken, None).await;
    assert!(matches!(error, Err(KeyError::Program { .. })));
}

#[tokio::test]
async fn a_passphrase_needs_an_agent_that_holds_the_key() {
    let Some(world) = World::new() else { return };
    let agent = TestAgent::start(&world);
    let socket = Some(agent.socket.as_str());
    let key = world.key("k", "ed25519", "");
    agent.add(&world, &key);
    world.keygen(&["-q", "-p", "-P", "", "-N", "long passphrase", "-f", key.to_str().unwrap()]);
    assert!(world.error(&key).await.contains("ssh-add"));
    let pair = world.resolve(&key, socket).await.unwrap();
    assert!(pair.by_agent && pair.identity_file == key);
    // The public half alone.
    let (public, private) = (with_pub(&key), world.path("away"));
    fs::rename(&key, &private).unwrap();
    let pair = world.resolve(&public, socket).await.unwrap();
    assert!(pair.by_agent && pair.identity_file == public);
    assert_eq!(world.resolve(&key, socket).await.unwrap().identity_file, key);
    assert!(matches!(world.resolve(&public, None).await, Err(KeyError::NotInAgent(_))));
    assert!(matches!(world.resolve(&public, Some("/nonexistent")).await, Err(KeyError::NotInAgent(_))));
    // A passphrase, and nothing that says which key it is.
    fs::remove_file(&public).unwrap();
    assert!(matches!(world.resolve(&private, socket).await, Err(KeyError::NoPublic(_))));
    let other = world.key("other", "ed25519", "another passphrase");
    assert!(matches!(world.resolve(&other, socket).await, Err(KeyError::Passphrase(_))));
}

#[tokio::test]
async fn eight_at_once_make_one_pair() {
    let Some(world) = World::new() else { return };
    let dir = world.path("home/.ssh/gpuprov");
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (dir, programs) = (dir.clone(), world.programs.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(resolve(None, &dir, &programs, None)).unwrap()
            })
        })
        .collect();
    let pairs: Vec<KeyPair> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
    assert_eq!(pairs.iter().filter(|pair| pair.made).count(), 1);
    assert!(pairs.iter().all(|pair| pair.public_line == pairs[0].public_line));
    assert!(pairs[0].public_line.ends_with(" gpuprov"));
    assert_eq!(fs::metadata(dir.join("id_ed25519")).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 3, "the pair and the lock");
    // A pair whose public half was lost.
    fs::remove_file(dir.join("id_ed25519.pub")).unwrap();
    let again = resolve(None, &dir, &world.programs, None).await.unwrap();
    assert!(public_key::same(&again.public_line, &pairs[0].public_line) && !again.made);
    assert!(dir.join("id_ed25519.pub").exists());
}
