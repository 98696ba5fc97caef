//! One SSH connection: who gets in, and what is asked of which channel.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use russh::keys::PublicKey;
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey, run_stream,
};
use russh::{Channel, ChannelId, ChannelOpenFailure, MethodKind, MethodSet, Pty};
use tokio::net::TcpStream;

use super::forward::Reverse;
use super::session::{self, Asked, Terminal, What};
use super::{Door, Inner, sftp};
use crate::sandbox::lock;
use crate::sandbox::scripts::LoginTrouble;

/// Serves one connection until it or the machine ends.
pub(super) fn begin(inner: &Arc<Inner>, door: Door, stream: TcpStream, peer: SocketAddr) {
    if door.trouble == Some(LoginTrouble::ForwardingOff) {
        return;
    }
    let key = lock(&inner.host_key).clone();
    let config = Config {
        methods: MethodSet::from(&[MethodKind::PublicKey][..]),
        auth_rejection_time: Duration::from_millis(20),
        auth_rejection_time_initial: Some(Duration::ZERO),
        max_auth_attempts: 6,
        inactivity_timeout: None,
        nodelay: true,
        keys: vec![key],
        ..Config::default()
    };
    let local = stream.local_addr().unwrap_or(peer);
    let handler = Connection {
        inner: Arc::clone(inner),
        door,
        peer,
        local,
        waiting: HashMap::new(),
        reverse: Reverse::default(),
    };
    let open = Open::new(inner);
    inner.spawn(async move {
        let _open = open;
        // A client that never says hello is let go.
        let started =
            tokio::time::timeout(Duration::from_secs(60), run_stream(Arc::new(config), stream, handler));
        if let Ok(Ok(running)) = started.await {
            let guard = Hangup(running.handle());
            let _ = running.await;
            drop(guard);
        }
    });
}

/// Counts as a connection as long as it lives.
struct Open(Arc<Inner>);

impl Open {
    fn new(inner: &Arc<Inner>) -> Self {
        inner.connections.fetch_add(1, Ordering::SeqCst);
        Open(Arc::clone(inner))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Disconnects the session when the task that serves it is ended with the machine.
struct Hangup(russh::server::Handle);

impl Drop for Hangup {
    fn drop(&mut self) {
        let handle = self.0.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let bye = handle.disconnect(
                    russh::Disconnect::ByApplication,
                    "machine is gone".into(),
                    String::new(),
                );
                let _ = tokio::time::timeout(Duration::from_secs(1), bye).await;
            });
        }
    }
}

/// A session channel on which nothing runs yet.
struct Waiting {
    channel: Channel<Msg>,
    env: Vec<(String, String)>,
    terminal: Option<Terminal>,
}

struct Connection {
    inner: Arc<Inner>,
    door: Door,
    peer: SocketAddr,
    local: SocketAddr,
    waiting: HashMap<ChannelId, Waiting>,
    reverse: Reverse,
}

impl Connection {
    fn judge(&self, user: &str, key: &PublicKey) -> Auth {
        if self.inner.admits(self.door, user, key) { Auth::Accept } else { Auth::reject() }
    }

    fn run(&mut self, id: ChannelId, what: What, session: &mut Session) -> Result<(), russh::Error> {
        let Some(waiting) = self.waiting.remove(&id) else { return session.channel_failure(id) };
        session.channel_success(id)?;
        let asked =
            Asked { what, env: waiting.env, terminal: waiting.terminal, peer: self.peer, local: self.local };
        let handle = session.handle();
        let task = session::run(Arc::clone(&self.inner), waiting.channel, handle, asked);
        self.inner.spawn(task);
        Ok(())
    }
}

impl Handler for Connection {
    type Error = russh::Error;

    async fn authentication_banner(&mut self) -> Result<Option<String>, Self::Error> {
        Ok(self.inner.spec.banner.map(str::to_owned))
    }

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(self.judge(user, offer.public_key))
    }

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        Ok(self.judge(user, key.public_key))
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.waiting.insert(channel.id(), Waiting { channel, env: Vec::new(), terminal: None });
        reply.accept().await;
        Ok(())
    }

    async fn channel_close(&mut self, id: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        self.waiting.remove(&id);
        Ok(())
    }

    async fn pty_request(
        &mut self,
        id: ChannelId,
        term: &str,
        columns: u32,
        rows: u32,
        _width: u32,
        _height: u32,
        _modes: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        match self.waiting.get_mut(&id) {
            Some(waiting) => {
                waiting.terminal = Some(Terminal { term: term.to_owned(), columns, rows });
                session.channel_success(id)
            }
            None => session.channel_failure(id),
        }
    }

    async fn env_request(
        &mut self,
        id: ChannelId,
        name: &str,
        value: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        // Debian's and Ubuntu's sshd_config: AcceptEnv LANG LC_*.
        let accepted = name == "LANG" || name.starts_with("LC_");
        match self.waiting.get_mut(&id).filter(|_| accepted) {
            Some(waiting) => {
                waiting.env.push((name.to_owned(), value.to_owned()));
                session.channel_success(id)
            }
            None => session.channel_failure(id),
        }
    }

    async fn shell_request(&mut self, id: ChannelId, session: &mut Session) -> Result<(), Self::Error> {
        self.run(id, What::Shell, session)
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.run(id, What::Command(data.to_vec()), session)
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        name: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let Some(waiting) = self.waiting.remove(&id).filter(|_| name == "sftp") else {
            return session.channel_failure(id);
        };
        session.channel_success(id)?;
        let home = self.inner.home.clone();
        let handle = session.handle();
        self.inner.spawn(sftp::serve(waiting.channel, handle, home, self.inner.spec.user));
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _from: &str,
        _from_port: u32,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        match self.inner.forward_target(host, port).await {
            None => reply.reject(ChannelOpenFailure::AdministrativelyProhibited).await,
            Some(target) => self.inner.spawn(super::forward::direct(channel, target, reply)),
        }
        Ok(())
    }

    async fn tcpip_forward(
        &mut self,
        address: &str,
        port: &mut u32,
        session: &mut Session,
    ) -> Result<bool, Self::Error> {
        if !self.inner.forwards() {
            return Ok(false);
        }
        Ok(self.reverse.listen(address, port, session.handle()).await)
    }

    async fn cancel_tcpip_forward(
        &mut self,
        address: &str,
        port: u32,
        _session: &mut Session,
    ) -> Result<bool, Self::Error> {
        Ok(self.reverse.cancel(address, port))
    }
}
