//! The client against a small server on loopback.

use std::time::{Duration, Instant};

use serde_json::json;

use super::canned::{Canned, Reply, json as answer};
use super::{Answer, Client, ClientOptions, Error, ErrorKind, Method, Retry, Sent};
use crate::model::secret::Secret;

fn client() -> Client {
    Client::new(ClientOptions { timeout: Duration::from_secs(10), backoff: Duration::from_millis(1) })
}

fn limited(status: u16, retry_after: &str) -> Reply {
    Reply::Answer(status, format!("retry-after: {retry_after}\r\n"), String::new())
}

async fn get(server: &Canned) -> Result<Answer, Error> {
    client().request(Method::GET, &server.base).send().await
}

async fn make(server: &Canned) -> Result<Answer, Error> {
    let request = client().request(Method::POST, &server.base).json(&json!({}));
    request.retry(Retry::Create).within(Duration::from_secs(2)).send().await
}

#[tokio::test]
async fn a_request_carries_agent_key_and_body() {
    let server = Canned::with(vec![answer(201, "{\"id\":7}")]).await;
    let url = format!("{}/v2/pods", server.base);
    let key = Secret::trimmed("rpa_secret");
    let made = client().request(Method::POST, url).bearer(&key).json(&json!({"a": 1})).send().await.unwrap();
    assert_eq!((made.status, made.content_type().as_str()), (201, "application/json"));
    assert!(!format!("{made:?}").contains("id"));
    let asked = &server.asked()[0];
    assert_eq!((asked.line.as_str(), asked.body.as_str()), ("POST /v2/pods", "{\"a\":1}"));
    assert_eq!(asked.header("authorization"), Some("Bearer rpa_secret"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert!(asked.header("user-agent").unwrap().starts_with("gpuprov/"));
}

#[tokio::test]
async fn reads_are_repeated_until_they_work() {
    let server =
        Canned::with(vec![answer(502, "<html>"), Reply::Close, limited(429, "0"), answer(200, "{}")]).await;
    assert_eq!(get(&server).await.unwrap().status, 200);
    assert_eq!(server.lines().len(), 4);
}

#[tokio::test]
async fn the_last_answer_counts_when_tries_are_used_up() {
    let server = Canned::with(vec![answer(503, "")]).await;
    assert_eq!(get(&server).await.unwrap().status, 503);
    assert_eq!(server.lines().len(), 4);
}

#[tokio::test]
async fn a_wait_beyond_the_deadline_is_not_begun() {
    let server = Canned::with(vec![limited(429, "3600")]).await;
    let started = Instant::now();
    let refused = get(&server).await.unwrap();
    assert_eq!((refused.status, refused.retry_after()), (429, Some(Duration::from_secs(3600))));
    assert_eq!(server.lines().len(), 1);
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_create_is_sent_again_after_429_only() {
    let server = Canned::with(vec![limited(429, "0"), answer(500, "{}"), answer(201, "{}")]).await;
    assert_eq!(make(&server).await.unwrap().status, 500);
    assert_eq!(server.lines().len(), 2);
}

#[tokio::test]
async fn a_create_that_was_cut_off_may_have_been_sent() {
    let server = Canned::with(vec![Reply::Close]).await;
    let error = make(&server).await.unwrap_err();
    assert_eq!((error.kind, error.sent, error.tries), (ErrorKind::Interrupted, Sent::Maybe, 1));

    let server =
        Canned::with(vec![Reply::Raw(b"HTTP/1.1 201 X\r\ncontent-length: 50\r\n\r\n{\"id\":".to_vec())])
            .await;
    let error = make(&server).await.unwrap_err();
    assert_eq!((error.kind, error.sent), (ErrorKind::Body, Sent::Maybe));

    let server = Canned::with(vec![Reply::Raw(b"what?\r\n\r\n".to_vec())]).await;
    let error = make(&server).await.unwrap_err();
    assert_eq!((error.kind, error.sent), (ErrorKind::Interrupted, Sent::Maybe));
}

#[tokio::test]
async fn a_hang_ends_at_the_deadline() {
    let server = Canned::with(vec![Reply::Hang]).await;
    let request = client().request(Method::POST, &server.base).within(Duration::from_millis(50));
    let error = request.send().await.unwrap_err();
    assert_eq!((error.kind, error.sent), (ErrorKind::Timeout, Sent::Maybe));
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn a_refused_connection_was_not_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x?token=never-shown", listener.local_addr().unwrap());
    drop(listener);
    let error = client().request(Method::POST, url).retry(Retry::Create).send().await.unwrap_err();
    assert_eq!((error.kind, error.sent, error.tries), (ErrorKind::Connect, Sent::No, 4));
    assert!(!format!("{error} {error:?}").contains("never-shown"));
}

#[tokio::test]
async fn what_must_not_be_asked_is_not_asked() {
    for (url, kind) in [
        ("http://api.example/", ErrorKind::Plaintext),
        ("http://127.0.0.1.example/", ErrorKind::Plaintext),
        ("ftp://127.0.0.1/", ErrorKind::Unusable),
        ("nonsense", ErrorKind::Unusable),
    ] {
        let error = client().request(Method::GET, url).send().await.unwrap_err();
        assert_eq!((error.kind, error.sent), (kind, Sent::No), "{url}");
    }
    let server = Canned::with(vec![answer(200, "{}")]).await;
    let key = Secret::trimmed("two\nlines");
    let error = client().request(Method::GET, &server.base).bearer(&key).send().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unusable);
    assert!(!format!("{error} {error:?}").contains("lines"));
    assert!(server.lines().is_empty());
}

#[tokio::test]
async fn tls_with_something_that_speaks_none_was_not_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"SSH-2.0-x\r\n").await;
        }
    });
    let request = client().request(Method::GET, url).within(Duration::from_secs(2));
    let error = request.send().await.unwrap_err();
    // Without any root store the client itself cannot be made.
    assert!(matches!(error.kind, ErrorKind::Tls | ErrorKind::Connect | ErrorKind::NoRoots), "{error:?}");
    assert_eq!(error.sent, Sent::No);
}

#[tokio::test]
async fn redirects_are_answers() {
    let other = Canned::with(vec![answer(200, "{}")]).await;
    let server =
        Canned::with(vec![Reply::Answer(307, format!("location: {}\r\n", other.base), String::new())]).await;
    assert_eq!(get(&server).await.unwrap().status, 307);
    assert!(other.lines().is_empty());
}

#[tokio::test]
async fn one_pacer_for_each_key() {
    let client = client();
    let pacer = client.pacer("a");
    assert!(std::sync::Arc::ptr_eq(&pacer, &client.clone().pacer("a")));
    assert!(!std::sync::Arc::ptr_eq(&pacer, &client.pacer("b")));
    let limits = "ratelimit-policy: \"minute\";q=60;w=60\r\nratelimit: \"minute\";r=20;t=41\r\n";
    let server = Canned::with(vec![Reply::Answer(200, limits.to_owned(), String::new())]).await;
    client.request(Method::GET, &server.base).paced(&pacer).send().await.unwrap();
    assert!(!pacer.is_roomy());
}

#[tokio::test]
async fn a_stream_is_read_piece_by_piece() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n".to_vec();
    let server = Canned::with(vec![Reply::Raw(head)]).await;
    let mut stream = client().request(Method::GET, &server.base).open().await.unwrap();
    assert_eq!(stream.status, 200);
    assert_eq!(stream.next().await.unwrap().as_deref(), Some(&b"data: 1\n\n"[..]));
    assert_eq!(stream.next().await.unwrap(), None);
}
