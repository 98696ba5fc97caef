use tokio::net::TcpListener;

use super::*;

/// Starts a proxy that answers `CONNECT` with `answer` and then sends back what it gets; returns its address and what it read.
async fn proxy(answer: &'static str) -> (String, tokio::sync::oneshot::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let _ = tell.send(String::from_utf8(head).unwrap());
        stream.write_all(answer.as_bytes()).await.unwrap();
        let (mut from, mut to) = stream.split();
        let _ = tokio::io::copy(&mut from, &mut to).await;
    });
    (address, told)
}

async fn through(proxy: &str) -> Result<TcpStream, plain::Error> {
    let matcher = Matcher::builder().all(proxy).build();
    let to: Uri = "https://compute.api.example".parse().unwrap();
    tunnel(&matcher.intercept(&to).unwrap(), &to, "compute.api.example").await
}

#[tokio::test]
async fn a_tunnel_is_asked_for_with_the_proxys_password() {
    let (address, head) = proxy("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n").await;
    let mut stream = through(&format!("http://ana:pass%20word@{address}")).await.unwrap();
    let head = head.await.unwrap();
    assert!(head.starts_with("CONNECT compute.api.example:443 HTTP/1.1\r\n"), "{head}");
    let password = STANDARD.encode("ana:pass word");
    assert!(head.contains(&format!("Proxy-Authorization: Basic {password}\r\n")), "{head}");
    stream.write_all(b"hello").await.unwrap();
    let mut back = [0; 5];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"hello", "nothing of the tunnel is lost");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    for (answer, part) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "status 407"),
        ("HTTP/1.1 502 <html>\r\n\r\n", "status 502"),
        ("SSH-2.0-x\r\n\r\n", "does not answer as a proxy"),
    ] {
        let (address, _) = proxy(answer).await;
        let error = through(&format!("http://ana:s3cret@{address}")).await.unwrap_err();
        assert_eq!((error.kind, error.sent), (ErrorKind::Connect, Sent::No));
        let words = format!("{error} {error:?}");
        assert!(words.contains(part) && words.contains(&address) && !words.contains("s3cret"), "{words}");
    }
    let error = through("https://127.0.0.1:9").await.unwrap_err();
    assert!(error.to_string().contains("plain http"), "{error}");
}
