//! `gpuprov ssh`, and plain ssh, scp and port forwarding through the files that `provision` writes.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;
use std::time::Duration;

use gpuprov::sandbox::FaultKind;
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{World, ended, finish, finish_with, until};

/// A server on the machine's side that sends back what it gets, once.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
    });
    port
}

fn free() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn connect(port: u16) -> TcpStream {
    for _ in 0..200 {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)).await {
            return stream;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nothing listens at {port}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_codes_and_bytes_pass_through() {
    let world = World::new().await;
    world.provision("dev").await;
    for code in [0, 7, 255] {
        let ran = world.words(&["ssh", "dev", &format!("exit {code}")]).await;
        assert_eq!(ran.code, code, "{ran:?}");
    }
    let ran = world.words(&["ssh", "dev", "--", "echo", "a  b", ";", "echo", "-n", "c"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "a b\nc"), "{ran:?}");
    let ran = world.words(&["ssh", "root@dev", "-T", "echo $USER; echo $0 >&2"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "root\n"), "{ran:?}");
    // What stands before the name is ours, what stands behind it is ssh's, whatever it looks like.
    let noisy = "debug1:";
    for (words, theirs) in [
        (vec!["-v", "ssh", "dev", "true"], false),
        (vec!["ssh", "-v", "dev", "true"], false),
        (vec!["ssh", "dev", "-v", "true"], true),
        (vec!["ssh", "dev", "-v", "-q", "true"], false),
    ] {
        let ran = world.words(&words).await;
        assert_eq!((ran.code, ran.stderr.contains(noisy)), (0, theirs), "{words:?}: {ran:?}");
    }
    let quiet = world.words(&["ssh", "dev", "-q", "-G"]).await;
    assert!(quiet.stdout.contains("loglevel SILENT\n"), "{quiet:?}");
    // A word that begins with a dash is a command behind `--`, as with ssh itself.
    let dashed = world.words(&["ssh", "dev", "--", "-v"]).await;
    assert!(![0, 255].contains(&dashed.code) && !dashed.stderr.contains(noisy), "{dashed:?}");
    let bogus = world.words(&["ssh", "--bogus", "dev"]).await;
    assert!(bogus.code == 255 && bogus.stderr.contains("--bogus"), "{bogus:?}");
    assert_eq!(world.run("ssh").await.code, 255);
    let help = world.run("ssh --help").await;
    assert!(help.code == 0 && help.stdout.contains("Usage:"), "{help:?}");
    let other = world.words(&["ssh", "bob@dev", "-G"]).await;
    assert!(other.stdout.contains("user bob\n"), "{other:?}");
    let big: Vec<u8> = (0_u32..1_000_000).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let ran = finish_with(world.gpuprov(["ssh", "dev", "wc -c; exit 3"]), &big).await;
    assert_eq!((ran.code, ran.stdout.trim()), (3, "1000000"), "{ran:?}");
    let sum = finish_with(world.gpuprov(["ssh", "dev", "sha256sum"]), &big).await;
    let here = finish_with(world.program("sha256sum"), &big).await;
    assert_eq!(sum.stdout, here.stdout);
    // No request goes out for a machine that runs.
    let before = world.sandbox.requests().len();
    assert_eq!(world.run("ssh dev true").await.code, 0);
    assert_eq!(world.sandbox.requests().len(), before);
    world.sandbox.unplug_runpod();
    assert_eq!(world.run("ssh dev true").await.code, 0);
    world.sandbox.plug_runpod().await.unwrap();
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_nobody_knows() {
    let world = World::new().await;
    let ran = world.run("ssh dev true").await;
    assert_eq!(ran.code, 255, "{ran:?}");
    assert!(ran.stderr.contains("there is no machine `dev`"), "{}", ran.stderr);
    let ran = world.words(&["ssh", "-oProxyCommand=x", "true"]).await;
    assert_eq!(ran.code, 255, "{ran:?}");
    assert_eq!(world.run("ssh DEV true").await.code, 255);
    world.sandbox.unplug_runpod();
    let ran = world.run("ssh dev true").await;
    assert_eq!(ran.code, 255, "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_does_not_run_is_looked_at_once() {
    let world = World::new().await;
    world.fault("create_pod", FaultKind::Delay { ms: 1500 });
    let running = world.start("provision --gpus RTX4090 --name dev");
    until("the create", || world.creates() == 1).await;
    let early = world.run("ssh dev true").await;
    assert_eq!(early.code, 255, "{early:?}");
    assert!(early.stderr.contains("has no machine yet"), "{}", early.stderr);
    assert_eq!(ended(running).await.code, 0);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarding_works_both_with_ours_and_with_plain_ssh() {
    let world = World::new().await;
    world.provision("dev").await;
    let config = world.home().join(".ssh/config").display().to_string();
    let (there, here) = (echo().await, free());
    let forward = format!("{here}:127.0.0.1:{there}");
    let mut tunnel = world.gpuprov(["ssh", "dev", "-N", "-L", &forward]).spawn().unwrap();
    let mut stream = connect(here).await;
    stream.write_all(b"hello").await.unwrap();
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"hello");
    // The process is ssh itself: a signal ends it.
    crate::interrupt::signal(&tunnel, Signal::SIGTERM);
    tokio::time::timeout(Duration::from_secs(5), tunnel.wait()).await.unwrap().unwrap();

    // What VS Code Remote does: a script on stdin with a SOCKS proxy beside it.
    let (there, here) = (echo().await, free());
    let mut remote = world.program("ssh");
    remote.args(["-F", &config, "-T", "-D", &here.to_string(), "dev", "bash"]).stdin(Stdio::piped());
    let mut remote = remote.spawn().unwrap();
    let mut stdin = remote.stdin.take().unwrap();
    stdin.write_all(b"echo listening-$((1 + 1))\n").await.unwrap();
    let mut stream = connect(here).await;
    stream.write_all(&[5, 1, 0]).await.unwrap();
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await.unwrap();
    let [high, low] = there.to_be_bytes();
    stream.write_all(&[5, 1, 0, 1, 127, 0, 0, 1, high, low]).await.unwrap();
    let mut answer = [0; 10];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[1], 0);
    stream.write_all(b"socks").await.unwrap();
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"socks");
    drop((stream, stdin));
    let ran = crate::support::ended(remote).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "listening-2\n"), "{ran:?}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_copied_both_ways() {
    let world = World::new().await;
    world.provision("dev").await;
    let config = world.home().join(".ssh/config").display().to_string();
    let big: Vec<u8> = (0_u32..300_000).map(|at| u8::try_from(at % 253).unwrap()).collect();
    std::fs::write(world.home().join("up"), &big).unwrap();
    for words in [["up", "dev:there"], ["dev:there", "down"]] {
        let mut scp = world.program("scp");
        scp.args(["-q", "-F", &config]).args(words);
        let ran = finish(scp).await;
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""), "{ran:?}");
    }
    assert_eq!(std::fs::read(world.home().join("down")).unwrap(), big);
    let found =
        std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|dir| dir.join("rsync").exists());
    if found {
        let mut rsync = world.program("rsync");
        rsync.args(["-e", &format!("ssh -F {config}"), "up", "dev:synced"]);
        let ran = finish(rsync).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    }
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_given_where_there_is_one() {
    let world = World::new().await;
    world.provision("dev").await;
    let mut command = world.program("script");
    let line = format!(
        "{} ssh dev -t -- 'test -t 0 && echo it-is-a-terminal; exit 5'",
        env!("CARGO_BIN_EXE_gpuprov")
    );
    command.args(["-qec", &line, "/dev/null"]);
    let ran = finish(command).await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stdout.contains("it-is-a-terminal"), "{ran:?}");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_configuration_gets_one_line_and_keeps_the_rest() {
    let world = World::new().await;
    let real = world.home().join("dotfiles");
    let theirs = "# mine\r\nHost *\n  User bob\n\n\n";
    std::fs::write(&real, theirs).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir_all(world.home().join(".ssh")).unwrap();
    let config = world.home().join(".ssh/config");
    std::os::unix::fs::symlink(&real, &config).unwrap();
    let made = world.provision("dev").await;
    assert!(made.stderr.contains("delete that line to undo it"), "{}", made.stderr);
    let line = format!("Include \"{}/.ssh/gpuprov/*.conf\"", world.home().display());
    let text = std::fs::read_to_string(&real).unwrap();
    assert_eq!(text.matches(&line).count(), 1);
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap();
    assert_eq!(first.trim(), line);
    assert!(text.ends_with("Host *\n  User bob\n\n\n") && text.contains("# mine\r\n"), "{text:?}");
    assert!(config.is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
    let mut shown = world.program("ssh");
    shown.arg("-F").arg(&config).args(["-G", "dev"]);
    assert!(finish(shown).await.stdout.contains("user root\n"));
    assert_eq!(world.run("ssh dev true").await.code, 0);
    world.remove("dev").await;
    let again = world.provision("dev").await;
    assert!(!again.stderr.contains("delete that line"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), text);
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_configuration_is_left_alone_if_so_set() {
    let world = World::new().await;
    world.config("[ssh]\nmanage_config = false\n");
    let made = world.provision("dev").await;
    assert!(!world.home().join(".ssh/config").exists());
    assert!(made.stderr.contains("ssh -F"), "{}", made.stderr);
    assert_eq!(world.run("ssh dev true").await.code, 0);
    world.remove("dev").await;
    let leftover: Vec<_> = std::fs::read_dir(world.home().join(".ssh/gpuprov"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("id_ed25519") && !name.starts_with('.'))
        .collect();
    assert!(leftover.is_empty(), "{leftover:?}");
}
