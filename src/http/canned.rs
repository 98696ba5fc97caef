//! A loopback server for tests: it answers from a function and remembers what was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// `GET /path?query`.
    pub(crate) line: String,
    /// Header lines, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// What the server does.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Answers with status, extra header lines and body.
    Answer(u16, String, String),
    /// Sends these bytes as they are and closes.
    Raw(Vec<u8>),
    /// Never answers.
    Hang,
    /// Closes at once.
    Close,
}

/// Answers with JSON.
pub(crate) fn json(status: u16, body: impl Into<String>) -> Reply {
    Reply::Answer(status, "content-type: application/json\r\n".to_owned(), body.into())
}

/// A running server; it ends with the test's runtime.
pub(crate) struct Canned {
    /// `http://127.0.0.1:PORT`.
    pub(crate) base: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Canned {
    /// Starts a server that answers by `reply`, which gets the request and how many came before it.
    pub(crate) async fn start(reply: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (reply, log) = (Arc::new(reply), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (reply, log) = (Arc::clone(&reply), Arc::clone(&log));
                tokio::spawn(async move { serve(stream, &*reply, &log).await });
            }
        });
        Canned { base, asked }
    }

    /// Starts a server with one answer for each request in turn, the last one again and again.
    pub(crate) async fn with(replies: Vec<Reply>) -> Self {
        Canned::start(move |_, before| replies[before.min(replies.len() - 1)].clone()).await
    }

    /// Returns what was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the request lines so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    reply: &(impl Fn(&Asked, usize) -> Reply + ?Sized),
    log: &Mutex<Vec<Asked>>,
) {
    loop {
        let Some(asked) = read(&mut stream).await else { return };
        let before = {
            let mut log = log.lock().unwrap();
            log.push(asked.clone());
            log.len() - 1
        };
        match reply(&asked, before) {
            Reply::Answer(status, headers, body) => {
                let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
                if stream.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::Raw(bytes) => {
                let _ = stream.write_all(&bytes).await;
                return;
            }
            Reply::Hang => std::future::pending().await,
            Reply::Close => return,
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    while bytes.len() < end + length {
        let mut piece = vec![0; end + length - bytes.len()];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
    Some(Asked { line, headers, body: String::from_utf8_lossy(&bytes[end..]).into_owned() })
}
