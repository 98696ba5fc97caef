//! Logins with the real ssh at a small server in this process: what ends in `ssh dev` working, or in the right alarm.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use russh::keys::PublicKey;
use russh::server::{self, Auth, ChannelOpenHandle, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::program;
use crate::model::machine::{MachineName, SshAddress};
use crate::ssh::exec::{Client, LoginError};
use crate::ssh::keys::{self, KeyPair, Programs};
use crate::ssh::{Block, SshFiles, known_hosts, probe};

const LONG: Duration = Duration::from_secs(20);

/// One connection. A command answers with itself and then with its input, and ends with 7.
#[derive(Clone)]
struct Handler {
    admits: Option<PublicKey>,
    forwarded: Arc<AtomicUsize>,
    command: Option<ChannelId>,
}

impl server::Handler for Handler {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        let known = self.admits.as_ref().is_some_and(|admits| admits.key_data() == key.public_key.key_data());
        Ok(if known && user == "root" { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        self.command = Some(channel);
        session.channel_success(channel)?;
        session.data(channel, [command, b"\n"].concat())
    }

    async fn data(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        if self.command == Some(channel) { session.data(channel, data.to_vec()) } else { Ok(()) }
    }

    async fn channel_eof(&mut self, channel: ChannelId, session: &mut Session) -> Result<(), russh::Error> {
        if self.command != Some(channel) {
            return Ok(());
        }
        session.exit_status_request(channel, 7)?;
        session.eof(channel)?;
        session.close(channel)
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        self.forwarded.fetch_add(1, Ordering::SeqCst);
        let mut stream =
            TcpStream::connect((host, u16::try_from(port).unwrap())).await.map_err(russh::Error::IO)?;
        reply.accept().await;
        tokio::spawn(async move {
            let _ = tokio::io::copy_bidirectional(&mut channel.into_stream(), &mut stream).await;
        });
        Ok(())
    }
}

/// A server on loopback that ends when it is dropped.
struct Server {
    port: u16,
    forwarded: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Ends it and gives its port free.
    async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

struct World {
    top: tempfile::TempDir,
    files: SshFiles,
    client: Client,
    pair: KeyPair,
    programs: Programs,
    dev: MachineName,
}

impl World {
    /// None where OpenSSH is not installed.
    async fn new(user_config: &str) -> Option<World> {
        let programs = Programs { ssh_keygen: program("ssh-keygen")?, ssh_add: None };
        let top = tempfile::tempdir().unwrap();
        let ssh = top.path().join(".ssh");
        let files = SshFiles::new(
            ssh.join("gpuprov"),
            "abcd1234".parse().unwrap(),
            Some(ssh.join("config")),
            Some(top.path().to_owned()),
        );
        files.check().unwrap();
        std::fs::write(ssh.join("config"), user_config).unwrap();
        let pair = keys::resolve(None, files.dir(), &programs, None).await.unwrap();
        let client = Client { ssh: program("ssh")?, config: files.config_file() };
        Some(World { top, files, client, pair, programs, dev: "dev".parse().unwrap() })
    }

    /// Returns a new host key: its file and its public line.
    async fn host_key(&self, name: &str) -> (PathBuf, String) {
        let folder = self.top.path().join(name);
        let pair = keys::resolve(None, &folder, &self.programs, None).await.unwrap();
        let line: Vec<&str> = pair.public_line.split(' ').take(2).collect();
        (pair.identity_file, line.join(" "))
    }

    async fn serve(&self, host_key: &Path, port: u16, admits: bool) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = Arc::new(server::Config {
            keys: vec![russh::keys::load_secret_key(host_key, None).unwrap()],
            auth_rejection_time: Duration::from_millis(10),
            ..Default::default()
        });
        let forwarded = Arc::new(AtomicUsize::new(0));
        let admits = admits.then(|| PublicKey::from_openssh(&self.pair.public_line).unwrap());
        let handler = Handler { admits, forwarded: forwarded.clone(), command: None };
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (config, handler) = (config.clone(), handler.clone());
                tokio::spawn(async move {
                    if let Ok(session) = server::run_stream(config, stream, handler).await {
                        let _ = session.await;
                    }
                });
            }
        });
        Server { port, forwarded, task }
    }

    fn block(&self, port: u16, alias: &str, known: bool) {
        let block = Block {
            name: self.dev.clone(),
            address: SshAddress::new("127.0.0.1", i64::from(port), "root", true).unwrap(),
            identity_file: self.pair.identity_file.clone(),
            host_key_alias: alias.to_owned(),
            host_key_known: known,
        };
        self.files.write_block(&block).unwrap();
    }

    async fn login(&self) -> Result<(), LoginError> {
        let output = self.client.run("dev", "echo 'a  b'", b"some input", LONG).await?;
        assert_eq!(output.code, Some(7), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "echo 'a  b'\nsome input");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reused_address_works_and_a_changed_key_alarms() {
    // A user's configuration that gets in the way of everything it can.
    let config = "Host *\n  User bob\n  StrictHostKeyChecking ask\n  RequestTTY force\n  RemoteCommand tmux\n  \
                  LocalForward 1 localhost:1\n  ExitOnForwardFailure yes\n  ControlMaster auto\n  ControlPersist 60\n  \
                  ControlPath /nonexistent/%C\n  PermitLocalCommand yes\n  LocalCommand false\n  LogLevel DEBUG3\n";
    let Some(world) = World::new(config).await else { return };
    let ((one, one_line), (two, two_line)) = (world.host_key("one").await, world.host_key("two").await);
    let server = world.serve(&one, 0, true).await;
    let port = server.port;
    world.block(port, "gpuprov-vast-1", false);
    world.login().await.unwrap();
    world.login().await.unwrap();
    // The next machine at the same address.
    server.stop().await;
    let server = world.serve(&two, port, true).await;
    assert_eq!(world.login().await, Err(LoginError::HostKeyChanged), "while it is the same machine");
    world.files.remove(&world.dev).unwrap();
    world.block(port, "gpuprov-vast-2", false);
    world.login().await.unwrap();
    // What the server shows, and what the cloud said.
    if let Some(keyscan) = program("ssh-keyscan") {
        let address = SshAddress::new("127.0.0.1", i64::from(port), "root", true).unwrap();
        assert_eq!(probe::banner(&address, LONG).await, probe::Banner::Ssh);
        let shown = probe::scan(&keyscan, &address, LONG).await.unwrap();
        assert_eq!(shown, std::slice::from_ref(&two_line));
        let print = known_hosts::fingerprint(&two_line).unwrap();
        assert_eq!(known_hosts::matching(&shown, &[print]), shown);
    }
    world.files.clear_known_hosts(&world.dev).unwrap();
    world.block(port, "gpuprov-vast-2", true);
    assert_eq!(world.login().await, Err(LoginError::HostKeyUnknown));
    world.files.set_known_hosts(&world.dev, "gpuprov-vast-2", &[one_line]).unwrap();
    assert_eq!(world.login().await, Err(LoginError::HostKeyChanged));
    world.files.set_known_hosts(&world.dev, "gpuprov-vast-2", &[two_line]).unwrap();
    world.login().await.unwrap();
    server.stop().await;
    assert_eq!(world.login().await, Err(LoginError::Refused));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_not_on_the_machine_is_denied() {
    let Some(world) = World::new("").await else { return };
    let (key, _) = world.host_key("one").await;
    let server = world.serve(&key, 0, false).await;
    world.block(server.port, "gpuprov-vast-1", false);
    let Err(LoginError::PermissionDenied { who, .. }) = world.login().await else { panic!() };
    assert_eq!(who, "root@127.0.0.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_host_of_the_users_configuration_is_used() {
    let Some(world) = World::new("").await else { return };
    let ((one, _), (two, _)) = (world.host_key("one").await, world.host_key("two").await);
    let (jump, machine) = (world.serve(&one, 0, true).await, world.serve(&two, 0, true).await);
    let config = format!(
        "Host jump\n  HostName 127.0.0.1\n  Port {}\n  User root\n  IdentityFile \"{}\"\n  StrictHostKeyChecking no\n  \
         UserKnownHostsFile /dev/null\nHost * !jump\n  ProxyJump jump\n",
        jump.port,
        world.pair.identity_file.display()
    );
    std::fs::write(world.top.path().join(".ssh/config"), config).unwrap();
    world.block(machine.port, "gpuprov-vast-1", false);
    world.login().await.unwrap();
    assert_eq!(jump.forwarded.load(Ordering::SeqCst), 1);
    jump.stop().await;
    assert_eq!(world.login().await, Err(LoginError::Refused), "the jump host is down");
}
