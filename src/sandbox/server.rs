//! The HTTP side that all emulators share: listening, reading a request, recording it, playing faults.
//!
//! It knows no cloud. An [`Emulator`] names the operation and the account of a call and answers it at once
//! (answers never wait for anything, but a call may be held before); the order of edge, body limit, authentication and rate limit is each
//! cloud's own and part of its `answer`. Faults on the wire are played here, before or after the effect.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::Shared;
pub(super) use super::answer::{Answer, Payload};
use super::faults::{CallShape, FaultKind, When};
use super::grpc;
use super::ledger::Recorded;
use super::line::{Breakable, Line};
use super::wire_faults as wire;

/// Largest body that is read at all; a cloud's own limit is lower.
const MOST_BODY: usize = 4 * 1024 * 1024;
/// Longest TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// One emulated service.
pub(super) trait Emulator: std::fmt::Debug + Send + Sync + 'static {
    /// The cloud's name in records.
    fn cloud(&self) -> &'static str;
    /// Name of the operation, for faults and records; `unknown` where no path fits.
    fn operation(&self, method: &str, path: &str) -> &'static str;
    /// Label of the account that the credentials belong to.
    fn account(&self, headers: &HeaderMap) -> Option<String>;
    /// Whether it speaks gRPC, where what goes wrong on the wire has other forms.
    fn grpc(&self) -> bool {
        false
    }
    /// A body as it stands in the records.
    fn recorded(&self, _path: &str, body: &[u8]) -> Option<Value> {
        serde_json::from_slice(body).ok()
    }
    /// How much longer the call is held before it is carried out, after it was held for so long; asked again after that time.
    /// Zero is not at all.
    fn hold(&self, _call: &Call, _held: Duration) -> Duration {
        Duration::ZERO
    }
    /// Carries the call out and answers it.
    fn answer(&self, call: &Call) -> Answer;
    /// The cloud's error form for a status that a fault asks for.
    fn problem(&self, status: u16, detail: &str) -> Answer;
    /// Lets happen what is due: sshd of booted machines, ends of scripts.
    fn tick(&self);
    /// Whether any machine runs something for a client.
    fn busy(&self) -> bool;
    /// Ends every machine.
    fn halt(&self);
    /// Gives the machine with this id another host key; false when there is none.
    fn swap_host_key(&self, id: &str) -> bool;
    /// Home directory of the machine with this id.
    fn home(&self, id: &str) -> Option<PathBuf>;
    /// A call of the control path below the cloud's name; nothing where there is no such call.
    fn control(&self, _method: &str, _parts: &[&str], _body: Value) -> Option<Answer> {
        None
    }
}

/// One request, read in full.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) index: usize,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) account: Option<String>,
    /// Faults of meaning that this call gets; those on the wire are in here too and of no concern.
    pub(super) faults: Vec<FaultKind>,
}

impl Call {
    /// The query's pairs, decoded, in order.
    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    /// A header as text, empty when it is absent or not text.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

/// Splits a path and percent-decodes each part, so an encoded slash stays inside its segment. A slash at the
/// end makes an empty last segment, which no path has.
pub(super) fn segments(path: &str) -> Vec<String> {
    path.split('/').skip(1).map(decode).collect()
}

fn decode(part: &str) -> String {
    let mut out = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = match tail {
            [high, low, ..] if *first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match hex {
            Some((high, low)) => {
                out.push(high * 16 + low);
                rest = &tail[2..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Marks a response that never goes out: its stream is reset, other streams of the connection go on.
#[derive(Debug, Clone, Copy)]
struct Torn;

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stream is reset")
    }
}

impl std::error::Error for Torn {}

/// A listener on loopback and all its connections; dropping it ends them.
#[derive(Debug)]
pub(super) struct Service {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Service {
    /// Serves an emulator on 127.0.0.1, on this port or a free one.
    pub(super) async fn start(
        port: Option<u16>,
        emulator: Arc<dyn Emulator>,
        shared: Arc<Shared>,
    ) -> io::Result<Service> {
        let tls = shared.options.tls.clone().map(TlsAcceptor::from);
        let handler = move |request: Request<hyper::body::Incoming>, line: Arc<Line>| {
            exchange(request, line, Arc::clone(&emulator), Arc::clone(&shared))
        };
        Self::listen(port, tls, handler).await
    }

    /// Serves any function on 127.0.0.1, on this port or a free one.
    pub(super) async fn listen<H, F>(
        port: Option<u16>,
        tls: Option<TlsAcceptor>,
        handler: H,
    ) -> io::Result<Service>
    where
        H: Fn(Request<hyper::body::Incoming>, Arc<Line>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        // Beside the socket that keeps the port, see `plug.rs`.
        socket.set_reuseport(port.is_some())?;
        socket.bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0)).into())?;
        let listener = socket.listen(1024)?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(accept(listener, tls, handler));
        Ok(Service { address, task })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept<H, F>(listener: TcpListener, tls: Option<TlsAcceptor>, handler: H)
where
    H: Fn(Request<hyper::body::Incoming>, Arc<Line>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    // Ends with the task: the set aborts every connection when it is dropped.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            taken = listener.accept() => match taken {
                Ok((stream, _)) => { connections.spawn(serve(stream, tls.clone(), handler.clone())); }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn serve<H, F>(stream: TcpStream, tls: Option<TlsAcceptor>, handler: H)
where
    H: Fn(Request<hyper::body::Incoming>, Arc<Line>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    let line = Arc::new(Line::default());
    let stream = Breakable::new(stream, Arc::clone(&line));
    let service = hyper::service::service_fn(move |request| {
        let answer = handler(request, Arc::clone(&line));
        async move {
            let answer = answer.await;
            // HTTP/2 resets the stream with INTERNAL_ERROR.
            if answer.extensions().get::<Torn>().is_some() { Err(Torn) } else { Ok(answer) }
        }
    });
    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    match tls {
        None => {
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        }
        Some(tls) => {
            // A client that never shakes hands, or does not like the certificate, is let go.
            let shaken = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await;
            if let Ok(Ok(stream)) = shaken {
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            }
        }
    }
}

/// Reads, records, plays what goes wrong, answers.
async fn exchange(
    request: Request<hyper::body::Incoming>,
    line: Arc<Line>,
    emulator: Arc<dyn Emulator>,
    shared: Arc<Shared>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(Body::new(body), MOST_BODY).await else {
        return Answer::text(413, "text/plain", "body too large").into_response();
    };
    let method = head.method.as_str().to_owned();
    let path = head.uri.path().to_owned();
    let query = head.uri.query().unwrap_or("").to_owned();
    let operation = emulator.operation(&method, &path);
    let account = emulator.account(&head.headers);
    let shape = CallShape {
        cloud: emulator.cloud(),
        method: &method,
        path: &path,
        operation,
        account: account.as_deref(),
    };
    let faults = shared.faults.take(&shape);
    let index = shared.records.open(Recorded {
        index: 0,
        cloud: emulator.cloud(),
        operation,
        method: method.clone(),
        path: path.clone(),
        query: query.clone(),
        body: emulator.recorded(&path, &body),
        account: account.clone(),
        status: 0,
        rejected: None,
        faults: faults.iter().map(FaultKind::word).collect(),
        at: Timestamp::now(),
    });
    let call = Call { index, method, path, query, headers: head.headers, body, account, faults };
    let answered = play(&call, emulator.as_ref()).await;
    let (status, rejected) = answered.as_ref().map_or((0, None), |a| (a.status, a.rejected.clone()));
    shared.records.update(index, |record| {
        record.status = status;
        record.rejected = rejected;
    });
    match answered {
        Some(answer) if call.faults.contains(&FaultKind::CutBody) => wire::cut(answer).await,
        Some(answer) => answer.into_response(),
        None => {
            let mut response = Response::new(Body::empty());
            if emulator.grpc() && !call.faults.iter().any(FaultKind::ends_connection) {
                response.extensions_mut().insert(Torn);
            } else {
                line.reset();
            }
            response
        }
    }
}

/// The answer, or nothing when the connection is to be cut.
async fn play(call: &Call, emulator: &dyn Emulator) -> Option<Answer> {
    if let Some(fault) = call.faults.iter().find(|fault| fault.stops_before()) {
        return wire::instead(fault, emulator).await;
    }
    let mut held = Duration::ZERO;
    loop {
        let more = emulator.hold(call, held);
        if more.is_zero() {
            break;
        }
        tokio::time::sleep(more).await;
        held = held.saturating_add(more);
    }
    let mut answer = Some(emulator.answer(call));
    for fault in &call.faults {
        answer = match (fault, answer) {
            (
                FaultKind::Status { when: When::After, .. }
                | FaultKind::Hang { .. }
                | FaultKind::Reset { .. },
                _,
            ) => wire::instead(fault, emulator).await,
            (FaultKind::AppearLater { .. }, Some(answer)) if answer.status < 300 => None,
            (FaultKind::Garbage { body }, Some(answer)) if emulator.grpc() => {
                Some(grpc::garbage(*body, answer))
            }
            (FaultKind::Garbage { body }, Some(answer)) => Some(wire::garbage(*body, answer)),
            (fault, Some(_)) if fault.ends_connection() => None,
            (FaultKind::ExtraFields, Some(answer)) => Some(wire::extra(answer)),
            (FaultKind::Delay { ms }, answer) => {
                tokio::time::sleep(Duration::from_millis((*ms).min(120_000))).await;
                answer
            }
            (_, answer) => answer,
        };
        answer.as_ref()?;
    }
    answer
}

/// An error body in the form of RFC 9457, which several of the clouds use.
pub(super) fn problem_json(title: &str, status: u16, detail: &str) -> Value {
    json!({"title": title, "status": status, "detail": detail})
}
