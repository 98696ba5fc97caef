//! A loopback server for tests: it speaks gRPC, answers from a function and remembers what was asked.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use futures_util::stream;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use prost::bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::frame::frame;

/// A call as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Its path.
    pub(crate) path: String,
    /// Its metadata.
    pub(crate) headers: HeaderMap,
    /// Its message, without the frame.
    pub(crate) message: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn read<M: Message + Default>(&self) -> M {
        M::decode(self.message.as_slice()).unwrap()
    }
}

/// What the server does.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A message and the status `OK`.
    Message(Vec<u8>),
    /// Another status, with encoded details.
    Status(i32, String, Vec<u8>),
    /// HTTP status, content type, body, trailers.
    Raw(u16, &'static str, Vec<u8>, Vec<(&'static str, String)>),
    /// Never answers.
    Hang,
    /// Resets the stream.
    Reset,
    /// Begins a message and resets the stream.
    Broken,
    /// Closes the connection.
    Cut,
    /// Answers with an empty message and says that this connection takes nothing more.
    Farewell,
}

/// Answers with a message.
pub(crate) fn message(message: &impl Message) -> Reply {
    Reply::Message(message.encode_to_vec())
}

/// Answers with a code and words.
pub(crate) fn status(code: i32, words: &str) -> Reply {
    Reply::Status(code, words.to_owned(), Vec::new())
}

/// A running server; it ends with the test's runtime.
pub(crate) struct Canned {
    /// `http://127.0.0.1:PORT`.
    pub(crate) base: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Canned {
    /// Starts a server that answers by `reply`, which gets the call and how many came before it.
    pub(crate) async fn start(reply: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (reply, log) = (Arc::new(reply), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (reply, log) = (Arc::clone(&reply), Arc::clone(&log));
                let (cut, farewell) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
                let (to_cut, to_end) = (Arc::clone(&cut), Arc::clone(&farewell));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (reply, log) = (Arc::clone(&reply), Arc::clone(&log));
                    let (cut, farewell) = (Arc::clone(&to_cut), Arc::clone(&to_end));
                    async move {
                        let asked = take(request).await;
                        let before = {
                            let mut log = log.lock().unwrap();
                            log.push(asked.clone());
                            log.len() - 1
                        };
                        let reply = reply(&asked, before);
                        match &reply {
                            Reply::Hang => std::future::pending().await,
                            Reply::Reset => return Err("reset"),
                            Reply::Cut => {
                                cut.notify_one();
                                std::future::pending().await
                            }
                            Reply::Farewell => farewell.notify_one(),
                            _ => {}
                        }
                        Ok(response(reply))
                    }
                });
                tokio::spawn(async move {
                    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    let mut connection =
                        std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
                    tokio::select! {
                        _ = connection.as_mut() => return,
                        () = cut.notified() => return,
                        () = farewell.notified() => connection.as_mut().graceful_shutdown(),
                    }
                    let _ = connection.await;
                });
            }
        });
        Canned { base, asked }
    }

    /// Starts a server that answers by a list; the last one stays.
    pub(crate) async fn with(replies: Vec<Reply>) -> Self {
        Canned::start(move |_, before| replies[before.min(replies.len() - 1)].clone()).await
    }

    /// Returns what was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the last words of the paths that were asked so far: service and method.
    pub(crate) fn paths(&self) -> Vec<String> {
        let short = |asked: &Asked| asked.path.rsplit('.').next().unwrap().to_owned();
        self.asked().iter().map(short).collect()
    }
}

async fn take(request: Request<Incoming>) -> Asked {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let path = head.uri.path().to_owned();
    Asked { path, headers: head.headers, message: super::frame::unframe(&body).unwrap().to_vec() }
}

type Body = StreamBody<stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, &'static str>>>>;

fn response(reply: Reply) -> Response<Body> {
    let broken = matches!(reply, Reply::Broken);
    let (http, kind, body, trailers) = match reply {
        Reply::Message(message) => (200, "application/grpc", Some(frame(&message)), ok()),
        Reply::Farewell => (200, "application/grpc", Some(frame(&[])), ok()),
        Reply::Status(code, words, details) => {
            let mut trailers = vec![("grpc-status", code.to_string()), ("grpc-message", words)];
            if !details.is_empty() {
                trailers.push(("grpc-status-details-bin", STANDARD_NO_PAD.encode(details)));
            }
            (200, "application/grpc", None, trailers)
        }
        Reply::Raw(http, kind, body, trailers) => (http, kind, Some(body), trailers),
        Reply::Broken => (200, "application/grpc", Some(vec![0, 0, 0, 0, 9, 1]), Vec::new()),
        Reply::Hang | Reply::Reset | Reply::Cut => unreachable!(),
    };
    let mut frames: Vec<Result<Frame<Bytes>, &'static str>> = Vec::new();
    frames.extend(body.map(|body| Ok(Frame::data(Bytes::from(body)))));
    if broken {
        frames.push(Err("broken"));
    } else if !trailers.is_empty() {
        let trailers: HeaderMap = trailers
            .into_iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        frames.push(Ok(Frame::trailers(trailers)));
    }
    let body = StreamBody::new(stream::iter(frames));
    let answer =
        Response::builder().status(http).header("content-type", kind).header("x-request-id", "req-7");
    answer.body(body).unwrap()
}

fn ok() -> Vec<(&'static str, String)> {
    vec![("grpc-status", "0".to_owned())]
}
