//! The sandbox in the background behind `--sandbox`: the world's own sandbox stands for the user's real account, which must
//! never hear of it.

use std::path::PathBuf;

use crate::support::{LIMIT, Ran, World, ended, finish, until};

/// Ends the daemon of a world whatever becomes of the test.
struct Stop<'a>(&'a World);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        let mut command = self.0.gpuprov(["sandbox", "stop"]);
        let _ = command.as_std_mut().output();
    }
}

fn folder(world: &World) -> PathBuf {
    world.home().join(".cache/gpuprov/sandbox")
}

/// The places of sandboxes that are there.
fn places(world: &World) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder(world)) else { return Vec::new() };
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("sandbox-");
    entries.map(|entry| entry.unwrap().path()).filter(named).collect()
}

/// Our ssh files of sandboxes that are there.
fn ssh_files(world: &World) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(world.home().join(".ssh/gpuprov")) else { return Vec::new() };
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("sandbox-");
    entries.map(|entry| entry.unwrap().path()).filter(named).collect()
}

/// The daemons of this world, by their environment.
fn daemons(world: &World) -> Vec<i32> {
    let ours = format!("GPUPROV_CACHE_DIR={}", world.home().join(".cache/gpuprov").display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_str().unwrap().parse::<i32>() else { continue };
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let is_daemon = read("cmdline").windows(15).any(|words| words == b"sandbox\0daemon\0");
        if is_daemon && read("environ").split(|byte| *byte == 0).any(|pair| pair == ours.as_bytes()) {
            found.push(id);
        }
    }
    found
}

fn good(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

#[tokio::test(flavor = "multi_thread")]
async fn from_provision_to_stop_without_touching_anything_real() {
    let mut world = World::new().await;
    world.set("GPUPROV_INSTALLATION", "real-one");
    world.set("VAST_API_KEY", "vast-secret");
    world.config("[runpod]\nimage = \"ghcr.io/real/image\"\n");
    world.write(".runpod/config.toml", "apikey = \"rpa_real\"\n");
    let _stop = Stop(&world);

    let made = good(world.run("--sandbox provision --gpus RTX4090:1 --name dev").await);
    assert_eq!(made.stdout, "dev\n");
    assert!(made.stderr.contains("started a sandbox in the background"), "{made:?}");
    let smi = good(world.run("--sandbox ssh dev -- nvidia-smi -L").await);
    assert!(smi.stdout.contains("RTX 4090"), "{smi:?}");
    let (code, list) = world.json("--sandbox ls").await;
    assert_eq!(
        (code, &list["machines"][0]["sandbox"], &list["machines"][0]["name"]),
        (0, &true.into(), &"dev".into())
    );
    assert!(list["machines"][0]["installation"].as_str().unwrap().starts_with("sandbox-"), "{list}");
    let removed = good(world.run("--sandbox rm dev --yes").await);
    assert!(
        removed.stderr.lines().any(|line| line.starts_with("to remove") && line.ends_with(" (sandbox)")),
        "{removed:?}"
    );
    assert!(
        removed.stderr.lines().any(|line| line.starts_with("dev is gone") && line.ends_with(" (sandbox)")),
        "{removed:?}"
    );

    let status = good(world.run("sandbox status").await);
    assert!(status.stdout.contains("endpoint: http://127.0.0.1:"), "{status:?}");
    assert_eq!(good(world.run("sandbox stop").await).stdout, "the sandbox is stopped\n");
    assert_eq!(world.run("sandbox status").await.code, 1);
    assert_eq!(good(world.run("sandbox stop").await).stdout, "no sandbox runs in the background\n");

    assert!(places(&world).is_empty() && ssh_files(&world).is_empty() && daemons(&world).is_empty());
    assert!(!world.state().exists() && !world.home().join(".local/share/gpuprov").exists());
    assert_eq!(world.sandbox.requests().len(), 0, "the real account was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_keeps_nothing_of_its_caller() {
    let world = World::new().await;
    let _stop = Stop(&world);
    let mut shell = world.program("bash");
    let line =
        format!("exec 9>held; exec 8</etc/passwd; exec {} --sandbox ls", env!("CARGO_BIN_EXE_gpuprov"));
    shell.arg("-c").arg(line).env("SOME_TOKEN", "s3cret");
    // The pipes of the command come to their end, or this would wait for the daemon.
    good(finish(shell).await);

    let [id] = daemons(&world)[..] else { panic!("not one daemon: {:?}", daemons(&world)) };
    let proc = PathBuf::from(format!("/proc/{id}"));
    let environ = String::from_utf8(std::fs::read(proc.join("environ")).unwrap()).unwrap();
    let names: Vec<&str> =
        environ.split_terminator('\0').map(|pair| pair.split_once('=').unwrap().0).collect();
    let allowed = ["GPUPROV_CACHE_DIR", "GPUPROV_CONFIG", "GPUPROV_STATE_DIR", "HOME", "PATH"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    assert!(!environ.contains("s3cret") && !environ.contains(world.sandbox.runpod_key()));
    let inside = world.home().join(".cache/gpuprov/sandbox");
    for entry in std::fs::read_dir(proc.join("fd")).unwrap() {
        let Ok(to) = std::fs::read_link(entry.unwrap().path()) else { continue };
        let shown = to.to_str().unwrap();
        let own = ["socket:", "anon_inode:", "pipe:", "/dev/null", "/memfd:"]
            .iter()
            .any(|kind| shown.starts_with(kind));
        assert!(own || to.starts_with(&inside), "it holds {shown}");
    }
    // Field 6 of stat, after the name in brackets: the session, which it leads itself.
    let stat = std::fs::read_to_string(proc.join("stat")).unwrap();
    let session: i32 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert_eq!((session, std::fs::read_link(proc.join("cwd")).unwrap()), (id, PathBuf::from("/")));
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_at_once_share_one() {
    let world = World::new().await;
    let _stop = Stop(&world);
    let all = (0..8).map(|_| world.run("--sandbox offers --gpus RTX4090:1 --json"));
    let all = futures_util::future::join_all(all).await;
    assert!(all.iter().all(|ran| ran.code == 0), "{all:#?}");
    assert_eq!(all.iter().filter(|ran| ran.stderr.contains("started a sandbox")).count(), 1);
    assert_eq!((daemons(&world).len(), places(&world).len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_one_left_is_swept_by_the_next() {
    let world = World::new().await;
    let _stop = Stop(&world);
    good(world.run("--sandbox provision --gpus RTX4090:1 --name dev").await);
    let [id] = daemons(&world)[..] else { panic!("not one daemon") };
    let old = places(&world);
    assert_eq!((old.len(), ssh_files(&world).len()), (1, 2));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL).unwrap();
    until("the daemon is dead", || daemons(&world).is_empty()).await;
    assert_eq!(world.run("sandbox status").await.code, 1);
    let list = good(world.run("--sandbox ls").await);
    assert!(list.stderr.contains("started a sandbox") && list.stderr.contains("no machines"), "{list:?}");
    assert!(places(&world).len() == 1 && places(&world) != old && ssh_files(&world).is_empty());
    // Killed once more, with nobody to follow: `stop` sweeps as well.
    let [id] = daemons(&world)[..] else { panic!("not one daemon") };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL).unwrap();
    until("the daemon is dead", || daemons(&world).is_empty()).await;
    good(world.run("sandbox stop").await);
    assert!(places(&world).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_by_itself_when_nobody_asks() {
    let world = World::new().await;
    let _stop = Stop(&world);
    let mut daemon = world.gpuprov(["sandbox", "daemon", "--idle", "3s"]);
    daemon.env("GPUPROV_CACHE_DIR", world.home().join(".cache/gpuprov"));
    let daemon = daemon.spawn().unwrap();
    until("it is ready", || folder(&world).join("daemon.json").exists()).await;
    // Another one is not started beside it, by hand neither.
    assert_eq!(world.run("sandbox daemon --idle 1s").await.code, 2);
    // A command that takes longer than the idle time is never left alone.
    let made = good(world.run("--sandbox provision --gpus RTX4090:1 --name dev").await);
    assert!(!made.stderr.contains("started a sandbox"), "{made:?}");
    // So is a connection to a machine, over which nothing is asked of the cloud.
    good(world.run("--sandbox ssh dev -- sleep 3.5").await);
    let ran = tokio::time::timeout(LIMIT, ended(daemon)).await.unwrap();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(places(&world).is_empty() && ssh_files(&world).is_empty());
    assert!(!folder(&world).join("daemon.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn inside_run_and_serve_no_daemon_is_looked_for() {
    let mut world = World::new().await;
    world.set("GPUPROV_SANDBOX", "1");
    let _stop = Stop(&world);
    let ran = good(world.run("sandbox run -- gpuprov --sandbox offers --gpus RTX4090:1").await);
    assert!(ran.stdout.contains("RTX4090"), "{ran:?}");
    assert!(!folder(&world).join("daemon.json").exists() && daemons(&world).is_empty());
    assert_eq!(world.sandbox.requests().len(), 0);

    let mut serve = world.gpuprov(["sandbox", "serve"]);
    let mut serve = serve.spawn().unwrap();
    let mut text = String::new();
    let mut stdout = tokio::io::BufReader::new(serve.stdout.take().unwrap());
    while !text.contains("control path") {
        let read = tokio::io::AsyncBufReadExt::read_line(&mut stdout, &mut text);
        assert_ne!(tokio::time::timeout(LIMIT, read).await.unwrap().unwrap(), 0, "{text}");
    }
    let mut shell = world.program("bash");
    shell.arg("-c").arg(format!("{text}\nexec {} offers --gpus RTX4090:1", env!("CARGO_BIN_EXE_gpuprov")));
    let ran = good(finish(shell).await);
    assert!(ran.stdout.contains("RTX4090") && daemons(&world).is_empty(), "{ran:?}");
    let id = nix::unistd::Pid::from_raw(i32::try_from(serve.id().unwrap()).unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
    tokio::time::timeout(LIMIT, serve.wait()).await.unwrap().unwrap();
    assert!(places(&world).is_empty());
    assert_eq!(world.sandbox.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_of_ones_own_does_not_go_with_it() {
    let world = World::new().await;
    let (code, document) = world.json("--sandbox --config mine.toml ls").await;
    assert_eq!((code, &document["error"]["kind"]), (2, &"usage".into()));
    assert!(places(&world).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_caller_s_accounts_is_in_reach_inside_run() {
    let mut world = World::new().await;
    // The files would lead to the emulator at worst.
    world.set("GPUPROV_VERDA_ENDPOINT", world.sandbox.verda().endpoint());
    world.set("NEBIUS_IAM_TOKEN", "ne1-real-token");
    world.set("VERDA_PROFILE", "work");
    world.set("GOOGLE_APPLICATION_CREDENTIALS", "/real/key.json");
    world.write(".verda/config.json", "{\"client_id\": \"real-id\", \"client_secret\": \"real-secret\"}");
    world.write(".verda/credentials", "[default]\nclient_id = real-id\nclient_secret = real-secret\n");
    world.write(".runpod/config.toml", "apikey = \"rpa_real\"\n");
    let env = good(world.run("sandbox run -- env").await);
    for real in ["ne1-real-token", "VERDA_PROFILE", "/real/key.json", world.sandbox.runpod_key()] {
        assert!(!env.stdout.contains(real), "{real}: {env:?}");
    }
    // Without the sandbox's own key nothing takes its place.
    let line = "unset VERDA_CLIENT_ID VERDA_CLIENT_SECRET RUNPOD_API_KEY VAST_API_KEY; gpuprov ls --json";
    let ran = world.args(["sandbox", "run", "--", "sh", "-c", line]).await;
    assert!(!ran.stdout.contains("verda") && !ran.stdout.contains("runpod/"), "{ran:?}");
    let outside = world.run("doctor --json").await;
    assert!(outside.stdout.contains("verda"), "the files are such as are read outside: {outside:?}");
}
