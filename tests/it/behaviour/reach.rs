//! A machine is reached by the system's own ssh.

use std::time::Duration;

use gpuprov::model::machine::SshAddress;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn ssh(key: &std::path::Path, address: &SshAddress) -> tokio::process::Command {
    let mut ssh = tokio::process::Command::new("ssh");
    ssh.args([
        "-F",
        "/dev/null",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "IdentitiesOnly=yes",
    ])
    .args([
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        "LogLevel=ERROR",
        "-o",
        "ExitOnForwardFailure=yes",
        "-i",
    ])
    .arg(key)
    .args(["-p", &address.port().to_string(), "-l", address.user()])
    .kill_on_drop(true);
    ssh
}

pub(super) async fn log_in(key: &std::path::Path, address: &SshAddress) {
    for _ in 0..40 {
        let output = ssh(key, address)
            .args([address.host(), "nvidia-smi -L >/dev/null; echo in"])
            .output()
            .await
            .unwrap();
        if output.status.success() {
            assert_eq!(String::from_utf8_lossy(&output.stdout), "in\n");
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no login");
}

/// `ssh -L`: a byte goes through the machine to a server and comes back.
pub(super) async fn forward(key: &std::path::Path, address: &SshAddress) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap().port();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        stream.write_all(&byte).await.unwrap();
    });
    let local = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let tunnel = ssh(key, address)
        .args(["-N", "-L", &format!("127.0.0.1:{local}:127.0.0.1:{target}"), address.host()])
        .spawn()
        .unwrap();
    for _ in 0..100 {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", local)).await {
            stream.write_all(b"x").await.unwrap();
            let mut byte = [0];
            tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut byte))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(&byte, b"x");
            echo.await.unwrap();
            drop(tunnel);
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no tunnel");
}
