//! The client against a small server on loopback.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::canned::{Canned, Reply, message, status};
use super::error::{Error, Status, Via};
use super::{Call, Client, ClientOptions, Code};
use crate::http::{self, ErrorKind, Retry, Sent};
use crate::model::secret::Secret;

const PATH: &str = "/test.v1.TestService/Do";

fn client() -> Client {
    Client::new(ClientOptions { timeout: Duration::from_secs(10), backoff: Duration::from_millis(1) })
}

fn again(status: &Status) -> Option<Duration> {
    (status.code == Code::Unavailable).then_some(Duration::ZERO)
}

fn read(base: &str) -> Call {
    client().call(base, PATH).again(again)
}

fn create(base: &str) -> Call {
    client().call(base, PATH).retry(Retry::Create).within(Duration::from_secs(2))
}

async fn text(call: Call) -> Result<String, Error> {
    call.send::<String, String>(&"question".to_owned()).await
}

fn unanswered(error: Error) -> http::Error {
    match error {
        Error::Unanswered(error) => error,
        other => panic!("{other}"),
    }
}

fn refused(error: Error) -> Status {
    match error {
        Error::Refused(status) => *status,
        other => panic!("{other}"),
    }
}

fn unreadable(error: Error) -> (String, bool) {
    match error {
        Error::Unreadable { what, done, .. } => (what, done),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_call_carries_agent_token_deadline_and_message() {
    let server = Canned::with(vec![message(&"answer".to_owned())]).await;
    let token = Secret::trimmed("ne1secret");
    let call = read(&server.base).bearer(&token).header("x-idempotency-key", "key-1");
    assert!(!format!("{call:?}").contains("ne1secret"));
    assert_eq!(text(call).await.unwrap(), "answer");
    let asked = &server.asked()[0];
    assert_eq!((asked.path.as_str(), asked.read::<String>().as_str()), (PATH, "question"));
    assert_eq!(asked.header("authorization"), Some("Bearer ne1secret"));
    assert_eq!(asked.header("x-idempotency-key"), Some("key-1"));
    assert_eq!(
        (asked.header("te"), asked.header("content-type")),
        (Some("trailers"), Some("application/grpc"))
    );
    assert!(asked.header("user-agent").unwrap().starts_with("gpuprov/"));
    let limit = asked.header("grpc-timeout").unwrap();
    let ms: u64 = limit.strip_suffix('m').unwrap().parse().unwrap();
    assert!((9000..=10_000).contains(&ms), "{limit}");
}

#[tokio::test]
async fn reads_are_repeated_until_they_work() {
    let page = Reply::Raw(502, "text/html", b"<html>".to_vec(), Vec::new());
    let server = Canned::with(vec![page, Reply::Cut, status(14, "busy"), message(&"x".to_owned())]).await;
    assert_eq!(text(read(&server.base)).await.unwrap(), "x");
    assert_eq!(server.asked().len(), 4);
    let sent: Vec<Vec<u8>> = server.asked().iter().map(|asked| asked.message.clone()).collect();
    assert!(sent.iter().all(|message| *message == sent[0]));

    let server = Canned::with(vec![status(14, "busy")]).await;
    let last = refused(text(read(&server.base)).await.unwrap_err());
    assert_eq!((last.code, last.message.as_str(), last.via), (Code::Unavailable, "busy", Via::Service));
    assert_eq!((server.asked().len(), last.request_id.as_deref()), (4, Some("req-7")));

    let server = Canned::with(vec![status(3, "wrong")]).await;
    assert_eq!(refused(text(read(&server.base)).await.unwrap_err()).code, Code::InvalidArgument);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_create_is_never_repeated_blindly() {
    for reply in [Reply::Cut, Reply::Reset, Reply::Broken] {
        let server = Canned::with(vec![reply.clone()]).await;
        let error = unanswered(text(create(&server.base)).await.unwrap_err());
        assert_eq!((error.sent, error.tries), (Sent::Maybe, 1), "{reply:?}");
        assert!(matches!(error.kind, ErrorKind::Interrupted | ErrorKind::Body), "{reply:?}: {error}");
        assert_eq!(server.asked().len(), 1);
    }
    let server = Canned::with(vec![status(14, "busy")]).await;
    assert_eq!(refused(text(create(&server.base)).await.unwrap_err()).code, Code::Unavailable);
    assert_eq!(server.asked().len(), 1);

    let again = |status: &Status| (status.code == Code::ResourceExhausted).then_some(Duration::ZERO);
    let server = Canned::with(vec![status(8, "slow down"), message(&"made".to_owned())]).await;
    assert_eq!(text(create(&server.base).again(again)).await.unwrap(), "made");
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_hang_ends_at_the_deadline_and_the_next_call_works() {
    let server = Canned::with(vec![Reply::Hang, message(&"x".to_owned())]).await;
    let client = client();
    let started = Instant::now();
    let call = client.call(&server.base, PATH).retry(Retry::Create).within(Duration::from_millis(80));
    let error = unanswered(text(call).await.unwrap_err());
    assert_eq!((error.kind, error.sent), (ErrorKind::Timeout, Sent::Maybe));
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_eq!(text(client.call(&server.base, PATH)).await.unwrap(), "x");

    let server = Canned::with(vec![Reply::Hang, message(&"x".to_owned())]).await;
    let call = client.call(&server.base, PATH).each(Duration::from_millis(80));
    assert_eq!(text(call).await.unwrap(), "x", "each try has its own limit");
}

#[tokio::test]
async fn a_refused_connection_was_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = unanswered(text(create(&base)).await.unwrap_err());
    assert_eq!((error.kind, error.sent, error.tries), (ErrorKind::Connect, Sent::No, 4));
    assert!(error.to_string().contains("efused"), "{error}");
}

#[tokio::test]
async fn what_must_not_be_asked_is_not_asked() {
    for (base, kind) in [
        ("http://api.example", ErrorKind::Plaintext),
        ("http://127.0.0.1.example", ErrorKind::Plaintext),
        ("ftp://127.0.0.1", ErrorKind::Unusable),
        ("nonsense", ErrorKind::Unusable),
    ] {
        let error = unanswered(text(read(base)).await.unwrap_err());
        assert_eq!((error.kind, error.sent), (kind, Sent::No), "{base}");
    }
    let server = Canned::with(vec![message(&"x".to_owned())]).await;
    let error = text(read(&server.base).bearer(&Secret::new("two\nlines".to_owned()))).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("lines"));
    assert_eq!(unanswered(error).kind, ErrorKind::Unusable);
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn answers_that_are_no_grpc_are_errors_that_say_so() {
    let ok = || vec![("grpc-status", "0".to_owned())];
    let grpc = "application/grpc";
    for (reply, part, done) in [
        (Reply::Raw(200, grpc, vec![0, 0, 0, 0, 0], Vec::new()), "without a status", false),
        (Reply::Raw(200, grpc, vec![0, 0, 0, 0, 9, 1], ok()), "ends after 1", true),
        (Reply::Raw(200, grpc, b"{\"a\": 1}".to_vec(), ok()), "no frame", true),
        (Reply::Raw(200, grpc, Vec::new(), ok()), "no message", true),
        (Reply::Raw(200, grpc, vec![0, 0, 0, 0, 2, 255, 255], ok()), "Protobuf", true),
        (Reply::Raw(200, "text/html", b"<html>".to_vec(), Vec::new()), "a web page", false),
        (Reply::Raw(200, "application/json", b"{}".to_vec(), ok()), "JSON", false),
    ] {
        let server = Canned::with(vec![reply.clone()]).await;
        let (what, is_done) = unreadable(text(create(&server.base)).await.unwrap_err());
        assert!(what.contains(part) && is_done == done, "{reply:?}: {what} {is_done}");
    }
    let odd = vec![("grpc-status", "5".to_owned()), ("grpc-status-details-bin", "*no base64*".to_owned())];
    let server = Canned::with(vec![Reply::Raw(200, grpc, Vec::new(), odd)]).await;
    assert_eq!(refused(text(create(&server.base)).await.unwrap_err()).code, Code::NotFound);
    let server = Canned::with(vec![Reply::Raw(307, "", Vec::new(), Vec::new())]).await;
    assert_eq!(refused(text(create(&server.base)).await.unwrap_err()).via, Via::Edge(307));
}

#[tokio::test]
async fn a_connection_that_ends_in_good_order_is_replaced() {
    let server = Canned::with(vec![Reply::Farewell, Reply::Farewell, message(&"x".to_owned())]).await;
    let client = client();
    for expected in ["", "", "x"] {
        let call = client.call(&server.base, PATH).retry(Retry::Create);
        assert_eq!(text(call).await.unwrap(), expected);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(server.asked().len(), 3);
}

/// Answers every connection with `words`.
async fn speaks(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(words).await;
            let mut sink = [0; 1024];
            let _ = tokio::time::timeout(Duration::from_millis(300), stream.read(&mut sink)).await;
        }
    });
    address
}

#[tokio::test]
async fn other_protocols_are_named() {
    let address = speaks(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    let error = unanswered(text(create(&format!("http://{address}"))).await.unwrap_err());
    assert_eq!((error.kind, error.sent), (ErrorKind::Interrupted, Sent::Maybe));
    assert!(error.to_string().contains("does not speak HTTP/2"), "{error}");

    let address = speaks(b"SSH-2.0-x\r\n").await;
    let error = unanswered(text(create(&format!("https://{address}"))).await.unwrap_err());
    assert_eq!((error.kind, error.sent), (ErrorKind::Tls, Sent::No), "{error}");
}
