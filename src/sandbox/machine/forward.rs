//! Port forwarding: `-L` and `-D` to loopback addresses, `-R` from a loopback port.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use russh::server::{ChannelOpenHandle, Handle, Msg};
use russh::{Channel, ChannelOpenFailure};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// The loopback address that a client may be connected to, if it asked for one.
pub(super) fn target(host: &str, port: u32) -> Option<SocketAddr> {
    let port = u16::try_from(port).ok()?;
    let ip = if host.eq_ignore_ascii_case("localhost") || host.is_empty() {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    } else {
        host.parse::<IpAddr>().ok()?
    };
    ip.is_loopback().then_some(SocketAddr::new(ip, port))
}

/// Connects and copies both ways until one side ends.
pub(super) async fn direct(channel: Channel<Msg>, target: SocketAddr, reply: ChannelOpenHandle) {
    let connected = tokio::time::timeout(Duration::from_secs(10), TcpStream::connect(target)).await;
    match connected {
        Ok(Ok(mut stream)) => {
            let _ = stream.set_nodelay(true);
            reply.accept().await;
            let mut channel = channel.into_stream();
            let _ = tokio::io::copy_bidirectional(&mut channel, &mut stream).await;
        }
        _ => reply.reject(ChannelOpenFailure::ConnectFailed).await,
    }
}

/// The listeners of one connection's `-R`; they end with it.
#[derive(Debug, Default)]
pub(super) struct Reverse {
    tasks: JoinSet<()>,
    open: HashMap<(String, u32), AbortHandle>,
}

impl Reverse {
    /// Listens on 127.0.0.1 whatever address was asked; a port of 0 is replaced by the one taken.
    pub(super) async fn listen(&mut self, address: &str, port: &mut u32, handle: Handle) -> bool {
        let Ok(wanted) = u16::try_from(*port) else { return false };
        let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).await else { return false };
        let Ok(local) = listener.local_addr() else { return false };
        *port = u32::from(local.port());
        let asked = address.to_owned();
        let taken = *port;
        let task = self.tasks.spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((stream, from)) = listener.accept().await {
                while streams.try_join_next().is_some() {}
                streams.spawn(back(stream, from, asked.clone(), taken, handle.clone()));
            }
        });
        self.open.insert((address.to_owned(), taken), task);
        true
    }

    /// Ends one listener.
    pub(super) fn cancel(&mut self, address: &str, port: u32) -> bool {
        let task = self.open.remove(&(address.to_owned(), port));
        if let Some(task) = &task {
            task.abort();
        }
        task.is_some()
    }
}

async fn back(mut stream: TcpStream, from: SocketAddr, asked: String, port: u32, handle: Handle) {
    let opened =
        handle.channel_open_forwarded_tcpip(asked, port, from.ip().to_string(), u32::from(from.port()));
    if let Ok(channel) = opened.await {
        let mut channel = channel.into_stream();
        let _ = tokio::io::copy_bidirectional(&mut channel, &mut stream).await;
    }
}
