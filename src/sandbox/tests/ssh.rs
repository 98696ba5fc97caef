//! The machines, through the system's own ssh and scp.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::{Rig, body};
use crate::sandbox::{Fault, FaultKind, LoginTrouble, Script};

fn options(key: &Path) -> Vec<String> {
    let key = format!("IdentityFile={}", key.display());
    [
        "StrictHostKeyChecking=no",
        "UserKnownHostsFile=/dev/null",
        "LogLevel=ERROR",
        "BatchMode=yes",
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        "ConnectTimeout=5",
        &key,
    ]
    .iter()
    .flat_map(|option| ["-o".to_owned(), (*option).to_owned()])
    .collect()
}

pub(super) fn ssh(key: &Path, port: u16) -> Command {
    let mut command = Command::new("ssh");
    command.arg("-F/dev/null").args(options(key)).args(["-p", &port.to_string()]).kill_on_drop(true);
    command.stdin(Stdio::null());
    command
}

pub(super) async fn run(command: &mut Command) -> (i32, String, String) {
    let output = tokio::time::timeout(Duration::from_secs(15), command.output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A ready machine that admits one key; its port, its id and the key.
async fn machine(rig: &Rig) -> (u16, String, std::path::PathBuf) {
    let (key, public) = rig.key("id_test", "ed25519").await;
    let pod = rig.create(body(&public)).await;
    let id = pod["id"].as_str().unwrap().to_owned();
    (rig.ready(&id).await, id, key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands() {
    let rig = Rig::new().await;
    let (port, id, key) = machine(&rig).await;
    let home = rig.sandbox.machine_home(&id).unwrap();
    let at = "root@127.0.0.1";
    let query = "nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits";
    let (code, out, err) = run(ssh(&key, port).args([at, query])).await;
    assert_eq!(
        (code, out.as_str()),
        (0, "NVIDIA GeForce RTX 4090, 24564\nNVIDIA GeForce RTX 4090, 24564\n"),
        "{err}"
    );
    let (_, out, _) = run(ssh(&key, port).args([at, "nvidia-smi"])).await;
    assert!(out.contains("sandbox") && out.contains("RTX 4090"), "{out}");
    let (code, out, err) =
        run(ssh(&key, port).args([at, "pwd; echo $HOME $USER; echo bad >&2; exit 7"])).await;
    let place = home.display();
    assert_eq!((code, out, err.as_str()), (7, format!("{place}\n{place} root\n"), "bad\n"));
    assert_eq!(run(ssh(&key, port).args([at, "kill -9 $$"])).await.0, 255);
    // What stands before the early return is read, what stands behind it is not.
    let rc = std::fs::read_to_string(home.join(".bashrc")).unwrap();
    std::fs::write(home.join(".bashrc"), format!("export EARLY=yes\n{rc}export LATE=yes\n")).unwrap();
    let (_, out, _) = run(ssh(&key, port).args([at, "echo $EARLY/$LATE/$RUNPOD_POD_ID/$PUBLIC_KEY"])).await;
    assert_eq!(out, "yes///\n");
    let log = "echo hello > /var/log/gpuprov-startup.log; cat /var/log/gpuprov-startup.log";
    assert_eq!(run(ssh(&key, port).args([at, log])).await.1, "hello\n");
    assert!(home.join("var/log/gpuprov-startup.log").exists());
    // A script on stdin, as editors send it, and then many bytes both ways.
    let mut child = ssh(&key, port)
        .args(["-T", at, "bash"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"read line; echo got $line\nsecond\nwc -c < .bashrc >/dev/null\n")
        .await
        .unwrap();
    assert_eq!(child.wait_with_output().await.unwrap().stdout, b"got second\n");
    let mut child =
        ssh(&key, port).args([at, "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let feed = tokio::spawn(async move { input.write_all(&vec![b'x'; 3 << 20]).await });
    assert_eq!(child.wait_with_output().await.unwrap().stdout.len(), 3 << 20);
    feed.await.unwrap().unwrap();
    // Nobody else gets in.
    let (other, _) = rig.key("id_other", "ed25519").await;
    let (code, _, err) = run(ssh(&other, port).args([at, "true"])).await;
    assert!(code == 255 && err.contains("Permission denied"), "{err}");
    assert_eq!(run(ssh(&key, port).args(["bob@127.0.0.1", "true"])).await.0, 255);
    rig.sandbox.stop().await;
    assert!(!home.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminal() {
    let rig = Rig::new().await;
    let (port, id, key) = machine(&rig).await;
    let mut child = ssh(&key, port)
        .args(["-tt", "root@127.0.0.1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(
            b"shopt -q login_shell && tty | cut -c1-5; echo pod=$RUNPOD_POD_ID; which nvidia-smi; exit 9\n",
        )
        .await
        .unwrap();
    let output =
        tokio::time::timeout(Duration::from_secs(10), child.wait_with_output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(9), "{text}");
    assert!(
        text.contains("/dev/") && text.contains(&format!("pod={id}")) && text.contains(".sandbox/bin"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminal_size_and_interrupt() {
    let rig = Rig::new().await;
    let (port, _, key) = machine(&rig).await;
    let (mut pty, pts) = pty_process::open().unwrap();
    pty.resize(pty_process::Size::new(30, 90)).unwrap();
    let mut command = pty_process::Command::new("ssh").arg("-F/dev/null").args(options(&key));
    command = command.args(["-p", &port.to_string(), "root@127.0.0.1"]).kill_on_drop(true);
    let mut child = command.spawn(pts).unwrap();
    let mut seen = String::new();
    for (input, wanted) in [
        ("echo size $(stty size)\n", "size 30 90"),
        ("", ""),
        ("echo size $(stty size)\n", "size 41 101"),
        ("echo star''ted; sleep 100; echo code $?\n", "started"),
        ("\u{3}", "^C"),
        ("exit 3\n", "logout"),
    ] {
        if input.is_empty() {
            pty.resize(pty_process::Size::new(41, 101)).unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            continue;
        }
        pty.write_all(input.as_bytes()).await.unwrap();
        let (until, mut typed) = (Instant::now() + Duration::from_secs(8), Instant::now());
        while !seen.contains(wanted) && Instant::now() < until {
            // An interrupt takes away what is typed before the shell has heard of it: then it is typed again.
            if wanted == "logout" && typed.elapsed() > Duration::from_secs(1) {
                pty.write_all(input.as_bytes()).await.unwrap();
                typed = Instant::now();
            }
            let mut some = [0_u8; 4096];
            match tokio::time::timeout(Duration::from_millis(200), pty.read(&mut some)).await {
                Ok(Ok(count)) => seen.push_str(&String::from_utf8_lossy(&some[..count])),
                Ok(Err(_)) => break,
                Err(_) => {}
            }
        }
        assert!(seen.contains(wanted), "{wanted}: {seen}");
    }
    let code = tokio::time::timeout(Duration::from_secs(5), child.wait()).await.unwrap().unwrap();
    assert_eq!(code.code(), Some(3), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_logins_at_once() {
    let rig = Rig::new().await;
    let (port, _, key) = machine(&rig).await;
    let mut logins = tokio::task::JoinSet::new();
    for index in 0..16 {
        let mut command = ssh(&key, port);
        logins.spawn(async move {
            let (code, out, err) =
                run(command.args(["root@127.0.0.1", &format!("echo {index}; exit {index}")])).await;
            assert_eq!((code, out), (index, format!("{index}\n")), "{err}");
        });
    }
    while let Some(login) = logins.join_next().await {
        login.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_ports() {
    let rig = Rig::new().await;
    let (port, id, key) = machine(&rig).await;
    let home = rig.sandbox.machine_home(&id).unwrap();
    let source = rig.scratch.path().join("data");
    std::fs::write(&source, vec![7_u8; 300_000]).unwrap();
    for old in [false, true] {
        let mut scp = Command::new("scp");
        scp.arg("-F/dev/null").args(options(&key)).args(["-P", &port.to_string(), "-p"]);
        scp.args(if old { &["-O"][..] } else { &[] });
        let there = scp.arg(&source).arg("root@127.0.0.1:copy");
        let (code, _, err) = run(there).await;
        assert_eq!(code, 0, "{err}");
        assert_eq!(std::fs::read(home.join("copy")).unwrap().len(), 300_000);
        let mut back = Command::new("scp");
        back.arg("-F/dev/null").args(options(&key)).args([
            "-P",
            &port.to_string(),
            "-r",
            "root@127.0.0.1:etc",
        ]);
        assert_eq!(run(back.arg(rig.scratch.path().join(format!("back{old}")))).await.0, 0);
        std::fs::remove_file(home.join("copy")).unwrap();
    }
    assert!(rig.scratch.path().join("backfalse/rp_environment").exists());

    let echo = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = echo.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = echo.accept().await {
            let _ = stream.write_all(b"over here").await;
        }
    });
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (near, far, socks) = (free(), free(), free());
    let _tunnel = ssh(&key, port)
        .args([
            "-N",
            "-L",
            &format!("127.0.0.1:{near}:localhost:{target}"),
            "-D",
            &format!("127.0.0.1:{socks}"),
        ])
        .args([
            "-R",
            &format!("{far}:127.0.0.1:{target}"),
            "-o",
            "ExitOnForwardFailure=yes",
            "root@127.0.0.1",
        ])
        .spawn()
        .unwrap();
    for through in [near, far] {
        let until = Instant::now() + Duration::from_secs(5);
        let mut text = String::new();
        while text.is_empty() && Instant::now() < until {
            if let Ok(mut stream) = tokio::net::TcpStream::connect(("127.0.0.1", through)).await {
                let _ = stream.read_to_string(&mut text).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(text, "over here");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_on_one_connection() {
    let rig = Rig::new().await;
    let (port, _, key) = machine(&rig).await;
    let socket = format!("ControlPath={}", rig.scratch.path().join("cm").display());
    let shared = || {
        let mut command = ssh(&key, port);
        command.args(["-o", &socket, "-o", "ControlMaster=auto", "-o", "ControlPersist=20"]);
        command
    };
    let at = "root@127.0.0.1";
    let ports = async |command: &mut Command| run(command.args([at, "echo ${SSH_CLIENT#* }"])).await.1;
    let first = ports(shared().stderr(Stdio::null())).await;
    let slow = tokio::spawn({
        let mut command = shared();
        async move { run(command.args([at, "sleep 0.5; echo slow"])).await.1 }
    });
    for _ in 0..5 {
        assert_eq!(ports(&mut shared()).await, first, "the same connection");
    }
    assert_eq!(slow.await.unwrap(), "slow\n");
    assert_eq!(run(shared().args(["-O", "exit", at])).await.0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_end_with_the_machine() {
    let rig = Rig::new().await;
    let (port, id, key) = machine(&rig).await;
    let at = "root@127.0.0.1";
    let alive = |pid: i32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    let detach = "nohup setsid sleep 300 >/dev/null 2>&1 & echo $!";
    let (_, out, _) = run(ssh(&key, port).args([at, detach])).await;
    let detached: i32 = out.trim().parse().unwrap();
    let mut watching =
        ssh(&key, port).args([at, "echo $$; exec sleep 300"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0_u8; 16];
    let read = watching.stdout.as_mut().unwrap().read(&mut first).await.unwrap();
    let watched: i32 = String::from_utf8_lossy(&first[..read]).trim().parse().unwrap();
    assert!(alive(detached) && alive(watched));
    let mut open = ssh(&key, port).args(["-N", at]).spawn().unwrap();
    watching.kill().await.unwrap();
    let until = Instant::now() + Duration::from_secs(5);
    while alive(watched) && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!alive(watched), "a client that leaves takes its command with it");
    assert!(alive(detached), "what was detached stays");
    assert_eq!(rig.ask("DELETE", &format!("/v2/pods/{id}"), None).await.0, 204);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!alive(detached));
    tokio::time::timeout(Duration::from_secs(3), open.wait()).await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys() {
    let rig = Rig::new().await;
    let (rsa, rsa_public) = rig.key("id_rsa", "rsa").await;
    let (ecdsa, ecdsa_public) = rig.key("id_ecdsa", "ecdsa").await;
    let pod = rig.create(body(&format!("{rsa_public}\n\n{ecdsa_public}"))).await;
    let id = pod["id"].as_str().unwrap();
    let port = rig.ready(id).await;
    let at = "root@127.0.0.1";
    for key in [&rsa, &ecdsa] {
        let (code, _, err) = run(ssh(key, port).args([at, "true"])).await;
        assert_eq!(code, 0, "{err}");
    }
    let known = format!("UserKnownHostsFile={}", rig.scratch.path().join("known").display());
    let strict = |word: &str| {
        vec!["-o".to_owned(), known.clone(), "-o".into(), format!("StrictHostKeyChecking={word}")]
    };
    let with = |word: &str| {
        let mut command = Command::new("ssh");
        command.arg("-F/dev/null").args(strict(word)).args(options(&rsa)).args([
            "-p",
            &port.to_string(),
            at,
            "true",
        ]);
        command
    };
    assert_eq!(run(&mut with("accept-new")).await.0, 0);
    assert!(rig.sandbox.swap_host_key(id));
    let (code, _, err) = run(&mut with("accept-new")).await;
    assert!(code == 255 && err.contains("IDENTIFICATION HAS CHANGED"), "{err}");

    let late = Script::NeverLogin { cause: LoginTrouble::KeyLate { ms: 2000 } };
    rig.sandbox.add_fault(Fault::on("create_pod", FaultKind::Script { script: late }));
    let pod = rig.create(body(&rsa_public)).await;
    let port = rig.ready(pod["id"].as_str().unwrap()).await;
    assert_eq!(run(ssh(&rsa, port).args([at, "true"])).await.0, 255);
    tokio::time::sleep(Duration::from_millis(2000)).await;
    assert_eq!(run(ssh(&rsa, port).args([at, "true"])).await.0, 0);
    for (script, works) in
        [(Script::NeverLogin { cause: LoginTrouble::NoKey }, false), (Script::NoForwarding, true)]
    {
        rig.sandbox.add_fault(Fault::on("create_pod", FaultKind::Script { script }));
        let pod = rig.create(body(&rsa_public)).await;
        let port = rig.ready(pod["id"].as_str().unwrap()).await;
        assert_eq!(run(ssh(&rsa, port).args([at, "true"])).await.0 == 0, works);
        let through = format!("127.0.0.1:{port}");
        assert_eq!(run(ssh(&rsa, port).args(["-W", &through, at])).await.0, 255);
    }
    let mut nobody = body("x");
    nobody["env"] = serde_json::json!({});
    let pod = rig.create(nobody).await;
    let port = rig.ready(pod["id"].as_str().unwrap()).await;
    assert_eq!(run(ssh(&rsa, port).args([at, "true"])).await.0, 255);
}
