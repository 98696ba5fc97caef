//! Connections: one for each authority, made at the first call to it and again when it was lost.
//!
//! The rules are those of [`crate::http::Client`]: plain http on loopback only, the system's root certificates
//! (`SSL_CERT_FILE` and `SSL_CERT_DIR` as usual), the system's proxy but never for loopback.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{ConnectError, TimeoutExpired};
use tower::{Service, service_fn};
use url::Url;

use crate::http::client::{USER_AGENT, is_loopback};
use crate::http::error::{bad_certificate, deepest, find};
use crate::http::{self as plain, ErrorKind, Sent};

/// How long one connection may take to come about, without TLS and with it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A silent connection is asked whether it is there after so long, and given up after so long without an answer.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));

/// No proxy's answer to `CONNECT` has a longer head.
const MOST_HEAD: usize = 16 * 1024;

/// The system's root certificates, read once for all hosts.
static ROOTS: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
});

/// All connections of a client.
#[derive(Default)]
pub(super) struct Channels {
    proxies: OnceLock<Arc<Matcher>>,
    open: Mutex<HashMap<String, Channel>>,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels").finish_non_exhaustive()
    }
}

impl Channels {
    /// Returns the channel to `base`, which is a scheme and an authority. Nothing is connected yet.
    pub(super) fn get(&self, base: &str, host: &str) -> Result<Channel, plain::Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = open.get(base) {
            return Ok(channel.clone());
        }
        let channel = self.make(base, host)?;
        open.insert(base.to_owned(), channel.clone());
        Ok(channel)
    }

    /// Drops the channel to `base`: the next call gets a new connection. Calls under way keep the old one.
    pub(super) fn forget(&self, base: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(base);
    }

    fn make(&self, base: &str, host: &str) -> Result<Channel, plain::Error> {
        let unusable = |why: String| plain::Error::new(ErrorKind::Unusable, host, why);
        let url = Url::parse(base).map_err(|error| unusable(error.to_string()))?;
        let local = is_loopback(&url);
        match (url.scheme(), local) {
            ("https", _) | ("http", true) => {}
            ("http", false) => return Err(plain::Error::new(ErrorKind::Plaintext, host, "")),
            (other, _) => return Err(unusable(format!("`{other}` is neither https nor http"))),
        }
        let mut endpoint = Endpoint::from_shared(base.to_owned())
            .and_then(|endpoint| endpoint.user_agent(USER_AGENT))
            .map_err(|error| unusable(deepest(&error)))?
            .http2_keep_alive_interval(KEEP_ALIVE.0)
            .keep_alive_timeout(KEEP_ALIVE.1);
        if url.scheme() == "https" {
            if ROOTS.is_empty() {
                return Err(plain::Error::new(ErrorKind::NoRoots, host, "no root certificates were found"));
            }
            let roots = ROOTS.roots.iter().cloned();
            let tls = ClientTlsConfig::new().trust_anchors(roots).timeout(CONNECT_TIMEOUT);
            endpoint = endpoint.tls_config(tls).map_err(|error| unusable(deepest(&error)))?;
        }
        let proxies = match local {
            true => None,
            false => Some(Arc::clone(self.proxies.get_or_init(|| Arc::new(Matcher::from_system())))),
        };
        let host = host.to_owned();
        let connector = service_fn(move |to: Uri| {
            let proxy = proxies.as_ref().and_then(|proxies| proxies.intercept(&to));
            let host = host.clone();
            async move {
                let stream = match proxy {
                    Some(proxy) => tunnel(&proxy, &to, &host).await,
                    None => connect(to, &host).await,
                };
                stream.map(TokioIo::new)
            }
        });
        Ok(endpoint.connect_with_connector_lazy(connector))
    }
}

/// Connects to the host of `to`.
async fn connect(to: Uri, host: &str) -> Result<TcpStream, plain::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connector.call(to)).await;
    let connected =
        connected.map_err(|_| plain::Error::new(ErrorKind::Connect, host, "no answer to the connection"))?;
    connected.map(TokioIo::into_inner).map_err(|error| {
        // The library's words for a name that is not found.
        let kind = if error.to_string().contains("dns") { ErrorKind::Dns } else { ErrorKind::Connect };
        plain::Error::new(kind, host, deepest(&error))
    })
}

/// Connects to the host of `to` through a proxy (`CONNECT`, RFC 9110 section 9.3.6).
async fn tunnel(proxy: &Intercept, to: &Uri, host: &str) -> Result<TcpStream, plain::Error> {
    let refused = |why: String| plain::Error::new(ErrorKind::Connect, host, why);
    // Never the whole address: it may hold a password.
    let named = proxy.uri().authority().map(|at| at.as_str().rsplit('@').next().unwrap_or_default());
    let named = named.unwrap_or("without a name").to_owned();
    if proxy.uri().scheme_str() != Some("http") {
        return Err(refused(format!(
            "the proxy {named} is asked by plain http here, and it is for another protocol"
        )));
    }
    let asked = async {
        let mut stream = connect(proxy.uri().clone(), &named).await?;
        let target = format!("{}:{}", to.host().unwrap_or_default(), to.port_u16().unwrap_or(443));
        let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: {USER_AGENT}\r\n");
        if let Some((name, password)) = proxy.raw_auth() {
            let both = STANDARD.encode(format!("{name}:{password}"));
            head.push_str(&format!("Proxy-Authorization: Basic {both}\r\n"));
        } else if let Some(value) = proxy.basic_auth().and_then(|value| value.to_str().ok()) {
            head.push_str(&format!("Proxy-Authorization: {value}\r\n"));
        }
        head.push_str("\r\n");
        let broken = |error: std::io::Error| refused(format!("the proxy {named}: {error}"));
        stream.write_all(head.as_bytes()).await.map_err(broken)?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the head belongs to the tunnel.
        while !answer.ends_with(b"\r\n\r\n") && answer.len() < MOST_HEAD {
            answer.push(stream.read_u8().await.map_err(broken)?);
        }
        let line = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
        let status = line.split_whitespace().nth(1).filter(|_| line.starts_with("HTTP/1."));
        match status {
            Some(status) if status.starts_with('2') && status.len() == 3 => Ok(stream),
            Some(status) => {
                let status: String = status.chars().take(3).collect();
                Err(refused(format!("the proxy {named} answered with status {status}")))
            }
            None => Err(refused(format!("the proxy {named} does not answer as a proxy"))),
        }
    };
    let late = |_| refused(format!("no answer from the proxy {named}"));
    tokio::time::timeout(CONNECT_TIMEOUT * 2, asked).await.map_err(late)?
}

/// Sorts a failure of the library before there was an answer.
pub(super) fn sort(error: tonic::transport::Error, host: &str) -> plain::Error {
    if let Some(ours) = find::<plain::Error>(&error) {
        let mut known = plain::Error::new(ours.kind, &ours.host, ours.detail.clone());
        known.source = Some(Box::new(error));
        return known;
    }
    let mut sorted = if let Some(tls) = find::<rustls::Error>(&error) {
        let words = bad_certificate(tls, host).unwrap_or_else(|| tls.to_string());
        plain::Error::new(ErrorKind::Tls, host, words)
    } else if let Some(connecting) = find::<ConnectError>(&error) {
        // Of what follows the connection only TLS is left.
        plain::Error::new(ErrorKind::Tls, host, deepest(connecting))
    } else if find::<TimeoutExpired>(&error).is_some() {
        // The library reads our own `grpc-timeout`, too.
        let mut late = plain::Error::new(ErrorKind::Timeout, host, "");
        late.sent = Sent::Maybe;
        late
    } else {
        let mut lost = plain::Error::new(ErrorKind::Interrupted, host, words(&error));
        lost.sent = Sent::Maybe;
        lost
    };
    sorted.source = Some(Box::new(error));
    sorted
}

/// Says what became of a connection. An answer in another protocol ends it with an error about frames.
pub(super) fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let words = deepest(error);
    let speaks_otherwise = ["frame with invalid size", "PROTOCOL_ERROR", "unspecific protocol error"];
    if speaks_otherwise.iter().any(|part| words.contains(part)) {
        return format!("it does not speak HTTP/2 as gRPC needs it ({words})");
    }
    words
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
