//! An emulator on its port, which can be taken off the network and put back.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::net::TcpSocket;

use super::server::{Emulator, Service};
use super::{Shared, lock};

/// A served emulator. Its port stays its own for life.
#[derive(Debug)]
pub(super) struct Plug {
    emulator: Arc<dyn Emulator>,
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Listens to nothing; with it nobody else is given the port while the emulator is away.
    _anchor: TcpSocket,
    service: Mutex<Option<Service>>,
}

impl Plug {
    /// Serves it on a free port of 127.0.0.1.
    pub(super) async fn start(emulator: Arc<dyn Emulator>, shared: Arc<Shared>) -> io::Result<Plug> {
        let anchor = TcpSocket::new_v4()?;
        anchor.set_reuseport(true)?;
        anchor.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = anchor.local_addr()?;
        let service =
            Service::start(Some(address.port()), Arc::clone(&emulator), Arc::clone(&shared)).await?;
        Ok(Plug { emulator, shared, address, _anchor: anchor, service: Mutex::new(Some(service)) })
    }

    /// Scheme, address and port.
    pub(super) fn endpoint(&self) -> String {
        let scheme = if self.shared.options.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The port refuses connections from now on.
    pub(super) fn unplug(&self) {
        drop(lock(&self.service).take());
    }

    /// Puts it back on the port that it had.
    pub(super) async fn plug(&self) -> io::Result<()> {
        let port = Some(self.address.port());
        let service = Service::start(port, Arc::clone(&self.emulator), Arc::clone(&self.shared)).await?;
        *lock(&self.service) = Some(service);
        Ok(())
    }
}
