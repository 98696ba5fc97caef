//! Where machines stand that are an address alone: `127.0.X.Y`, one each, with sshd on one port for the whole sandbox.
//!
//! The port is 22 where that can be had, another one otherwise, which [`Sandbox::vm_ssh_port`](super::Sandbox::vm_ssh_port)
//! tells. Where only 127.0.0.1 exists (macOS without `ifconfig lo0 alias`) there is room for one machine at a time, at all
//! clouds together.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Mutex;

use super::chance::Chance;
use super::lock;
use super::machine::{Machine, Spec};

/// An address where nothing ever listens, for machines that are only shown.
pub(super) const NOWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 255, 254);

/// How many addresses are tried for one machine.
const TRIES: usize = 20;

/// The addresses of one sandbox, shared by its clouds.
#[derive(Debug)]
pub(super) struct Addresses {
    port: u16,
    /// Whether there are more loopback addresses than 127.0.0.1.
    many: bool,
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    /// Addresses of machines that ended; the last is the first to be given away again.
    free: Vec<Ipv4Addr>,
    chance: Chance,
}

impl Book {
    fn address(&mut self) -> Ipv4Addr {
        let dice = self.chance.next();
        let byte = |shift: u32| u8::try_from(1 + (dice >> shift) % 254).unwrap_or(1);
        self.free.pop().unwrap_or(Ipv4Addr::new(127, 0, byte(8), byte(24)))
    }
}

impl Addresses {
    /// Finds out which port can be had, unless one is given, and whether there is more than one address. The seed decides
    /// the addresses.
    pub(super) fn find(port: Option<u16>, seed: Option<u64>) -> io::Result<Addresses> {
        let mut book = Book { free: Vec::new(), chance: Chance::new(seed) };
        let free = |address: Ipv4Addr, port: u16| {
            let listener = TcpListener::bind(SocketAddr::from((address, port))).ok()?;
            listener.local_addr().ok().map(|address| address.port())
        };
        let some = book.address();
        let (many, found) = match port {
            Some(port) => (free(some, 0).is_some(), Some(port)),
            None => match free(some, 22).or_else(|| free(some, 0)) {
                Some(port) => (true, Some(port)),
                None => (false, free(Ipv4Addr::LOCALHOST, 0)),
            },
        };
        let port = found.ok_or_else(|| io::Error::other("no port for machines can be had"))?;
        Ok(Addresses { port, many, book: Mutex::new(book) })
    }

    /// Port of every machine's sshd.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Makes a machine at an address of its own, one that was given back before if there is such.
    pub(super) fn reserve(&self, spec: &Spec, scratch: &Path) -> io::Result<(Ipv4Addr, Machine)> {
        let mut last = io::Error::other("no address of 127.0.0.0/16 can be had");
        for _ in 0..TRIES {
            let address = if self.many { lock(&self.book).address() } else { Ipv4Addr::LOCALHOST };
            match Machine::reserve_at(spec.clone(), scratch, SocketAddr::from((address, self.port))) {
                Ok(machine) => return Ok((address, machine)),
                Err(failed) => last = failed,
            }
        }
        Err(last)
    }

    /// Takes back the address of a machine that has ended.
    pub(super) fn give_back(&self, address: Ipv4Addr) {
        lock(&self.book).free.push(address);
    }
}
