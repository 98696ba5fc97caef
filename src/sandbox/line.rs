//! One HTTP connection that can be broken: its switch, and the stream that obeys it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The switch of one connection: thrown, it ends with a TCP reset in place of the next bytes.
#[derive(Debug, Default)]
pub(super) struct Line {
    reset: AtomicBool,
}

impl Line {
    /// Ends the connection with a reset as soon as the server wants to write.
    pub(super) fn reset(&self) {
        self.reset.store(true, Ordering::SeqCst);
    }
}

/// A TCP stream that its [`Line`] can break.
pub(super) struct Breakable {
    stream: TcpStream,
    line: Arc<Line>,
}

impl Breakable {
    /// A stream under this switch.
    pub(super) fn new(stream: TcpStream, line: Arc<Line>) -> Breakable {
        Breakable { stream, line }
    }

    fn broken(&self) -> bool {
        let broken = self.line.reset.load(Ordering::SeqCst);
        if broken {
            let _ = self.stream.set_zero_linger();
        }
        broken
    }
}

impl AsyncRead for Breakable {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.broken() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Breakable {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if self.broken() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.get_mut().stream).poll_write(cx, data)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
