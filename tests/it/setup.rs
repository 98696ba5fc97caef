//! After the first login: environment, startup script, the look at the GPUs.

use std::os::unix::fs::PermissionsExt;

use gpuprov::sandbox::{Fault, FaultKind};
use serde_json::json;

use crate::support::{World, ended, finish_with, until};

const SECRET: &str = "hf_0a1b2c3d4e5f67";

fn every_file(folder: &std::path::Path, look: &mut dyn FnMut(&std::path::Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            every_file(&entry.path(), look);
        } else if kind.is_file() {
            look(&entry.path());
        }
    }
}

/// Whether a process anywhere shows the text among its arguments.
fn in_a_process_list(text: &str) -> bool {
    std::fs::read_dir("/proc").into_iter().flatten().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_in_every_login_and_nowhere_else() {
    let mut world = World::new().await;
    world.set("FROM_HERE", "it's \"two\"\nlines $HOME `x` \\n a==");
    world.write("more.env", &format!("# comment\nexport HF_TOKEN={SECRET}\nQUOTED=\"a b\"\nTOKEN=abc==\n"));
    let words = ["provision", "--gpus", "RTX4090", "--name", "dev", "--json", "-vvv", "--env", "FROM_HERE"];
    let words = [&words[..], &["--env", "A=1=2", "--env", "EMPTY=", "--env-file", "more.env"]].concat();
    let dry = world.words(&[&words[..], &["--dry-run"]].concat()).await;
    assert_eq!(dry.code, 0, "{dry:?}");
    let made = world.words(&words).await;
    assert_eq!(made.code, 0, "{made:?}");
    for text in [&dry.stdout, &dry.stderr, &made.stdout, &made.stderr] {
        assert!(!text.contains(SECRET) && !text.contains("abc==") && !text.contains("lines $HOME"), "{text}");
    }

    let print = "printf '%s|%s|%s|%s|%s|' \"$FROM_HERE\" \"$A\" \"$HF_TOKEN\" \"$QUOTED\" \"$TOKEN\"";
    let expected = format!("it's \"two\"\nlines $HOME `x` \\n a==|1=2|{SECRET}|a b|abc==|");
    let command = world.words(&["ssh", "dev", print]).await;
    assert_eq!((command.code, command.stdout.as_str()), (0, expected.as_str()), "{command:?}");
    let login = world.words(&["ssh", "dev", &format!("bash -lc '{}'", print.replace('\'', "'\\''"))]).await;
    assert_eq!(login.stdout, expected, "{login:?}");
    let config = world.home().join(".ssh/config").display().to_string();
    let mut plain = world.program("ssh");
    plain.args(["-F", &config, "dev", print]);
    assert_eq!(crate::support::finish(plain).await.stdout, expected);
    let mut script = world.program("ssh");
    script.args(["-F", &config, "-T", "dev", "bash"]);
    assert_eq!(finish_with(script, print.as_bytes()).await.stdout, expected);

    let home = world.sandbox.machine_home(&world.only().id).unwrap();
    let mode = std::fs::metadata(home.join(".gpuprov/env")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    std::fs::write(home.join("file"), "inside").unwrap();
    let mut scp = world.program("scp");
    scp.args(["-F", &config, "dev:file", "copied"]);
    let scp = crate::support::finish(scp).await;
    assert_eq!((scp.code, scp.stdout.as_str()), (0, ""), "{scp:?}");
    assert_eq!(std::fs::read_to_string(world.home().join("copied")).unwrap(), "inside");

    // In none of our files either.
    let machines = world.home().join("machines");
    every_file(world.home(), &mut |file| {
        if file.starts_with(&machines) || file.ends_with("more.env") {
            return;
        }
        let text = std::fs::read(file).unwrap();
        let has = text.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert!(!has, "{}", file.display());
    });
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_the_environment_that_make_no_sense() {
    let mut world = World::new().await;
    for word in ["1A=x", "A-B=x", "=x", "NOT_SET_HERE", "PUBLIC_KEY=x", "GPUPROV_MARK=x", "RUNPOD_POD_ID=x"] {
        let ran = world.words(&["provision", "--gpus", "RTX4090", "--name", "dev", "--env", word]).await;
        assert_ne!(ran.code, 0, "{word}: {ran:?}");
    }
    assert_eq!(world.creates(), 0);
    assert_eq!(world.record("dev"), None);
    // What one cloud cannot do is no reason to stop at the others: the account is left out before any request.
    let asked = world.requests();
    let words = ["provision", "--gpus", "RTX4090", "--name", "dev", "--env", "RUNPOD_X=secret"];
    let (code, alone) = world.json_args(&words).await;
    assert_eq!((code, world.requests()), (2, asked), "{alone}");
    assert!(alone["skipped"][0]["message"].as_str().unwrap().starts_with("--env RUNPOD_X: "), "{alone}");
    assert!(!alone.to_string().contains("secret"), "{alone}");
    world.set("GPUPROV_VAST_ENDPOINT", world.sandbox.vast().endpoint());
    world.set("VAST_API_KEY", world.sandbox.vast().key().to_owned());
    let (code, made) = world.json_args(&words).await;
    assert_eq!((code, &made["machines"][0]["account"]), (0, &serde_json::json!("vast/default")), "{made}");
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_startup_script_runs_once_with_the_environment() {
    let world = World::new().await;
    let log = world.home().join("ran").display().to_string();
    world.write("start.sh", &format!("#!/bin/bash\necho \"token $TOKEN\" >> '{log}'\n"));
    let words = ["provision", "--gpus", "RTX4090", "--name", "dev", "--env", "TOKEN=abc=="];
    let from_file = world.words(&[&words[..], &["--startup-script", "start.sh"]].concat()).await;
    assert_eq!(from_file.code, 0, "{from_file:?}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "token abc==\n");
    world.remove("dev").await;

    let stdin = world.gpuprov([&words[..], &["--startup-script", "-"]].concat());
    let script = format!("# no first line\necho \"again $TOKEN\" >> '{log}'; echo to the log\n");
    let from_stdin = finish_with(stdin, script.as_bytes()).await;
    assert_eq!(from_stdin.code, 0, "{from_stdin:?}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "token abc==\nagain abc==\n");
    assert!(!from_stdin.stderr.contains("to the log"));
    let home = world.sandbox.machine_home(&world.only().id).unwrap();
    let told = std::fs::read_to_string(home.join("var/log/gpuprov-startup.log")).unwrap();
    assert_eq!(told, "to the log\n");
    world.remove("dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_startup_script_that_fails_keeps_the_machine() {
    let world = World::new().await;
    world.write("bad.sh", "echo why >&2\nexit 9\n");
    let (code, made) = world.json("provision --gpus RTX4090 --name dev --startup-script bad.sh").await;
    assert_eq!((code, made["error"]["kind"].as_str()), (7, Some("setup_failed")), "{made}");
    let message = made["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("ended with 9") && message.contains("/var/log/gpuprov-startup.log"),
        "{message}"
    );
    assert_eq!(
        (&made["machines"][0]["name"], &made["machines"][0]["state"]),
        (&json!("dev"), &json!("running"))
    );
    assert_eq!(world.run("ssh dev -- true").await.code, 0);
    world.remove("dev").await;
    for (name, text) in [("none.sh", None), ("empty.sh", Some(""))] {
        if let Some(text) = text {
            world.write(name, text);
        }
        let ran =
            world.words(&["provision", "--gpus", "RTX4090", "--name", "dev", "--startup-script", name]).await;
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_startup_script_can_be_stopped_and_shows_no_value() {
    let world = World::new().await;
    let mark = world.home().join("begun");
    world.write("long.sh", &format!("touch '{}'\nsleep 30\n", mark.display()));
    let words = "provision --gpus RTX4090 --name dev --startup-script long.sh --env";
    let running = world.start(&format!("{words} HF_TOKEN={SECRET}x"));
    until("the script", || mark.exists()).await;
    // Our own arguments, given above, are the one place where the shell put it.
    let ours = running.id().unwrap();
    let shown = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        entry.file_name().to_str() != Some(ours.to_string().as_str())
            && String::from_utf8_lossy(&std::fs::read(entry.path().join("cmdline")).unwrap_or_default())
                .contains(SECRET)
    });
    assert_eq!(shown.count(), 0);
    assert!(in_a_process_list(SECRET));
    crate::interrupt::signal(&running, nix::sys::signal::Signal::SIGINT);
    let ran = ended(running).await;
    assert_eq!(ran.code, 130, "{ran:?}");
    world.assert_empty();
    assert_eq!(world.record("dev"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gpus_are_compared_with_the_offer() {
    let slow = std::time::Duration::from_millis(1000);
    let world = World::with(|options| options.boot = (slow, slow)).await;
    let card = "NVIDIA GeForce RTX 4090, 24564\n";
    for (smi, check, words) in [
        (None, "ok", None),
        (Some(card.repeat(2)), "differs", Some("2 GPUs")),
        (Some("NVIDIA GeForce RTX 3090, 24576\n".to_owned()), "differs", Some("RTX3090")),
        (Some("NVIDIA GeForce RTX 4090, 12282\n".to_owned()), "differs", Some("12 GB")),
        (Some(String::new()), "unknown", Some("nvidia-smi told nothing")),
    ] {
        let running = world.start("provision --gpus RTX4090 --name dev --json");
        until("a machine", || world.sandbox.alive().len() == 1).await;
        if let Some(text) = smi {
            let home = world.sandbox.machine_home(&world.only().id).unwrap();
            let tool = format!("#!/bin/sh\nprintf '%s' '{text}'\n");
            std::fs::write(home.join(".sandbox/bin/nvidia-smi"), tool).unwrap();
        }
        let ran = ended(running).await;
        let made: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, made["machines"][0]["gpu_check"].as_str()), (0, Some(check)), "{ran:?}");
        if let Some(words) = words {
            assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        }
        world.remove("dev").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn host_keys_are_verified_and_a_change_alarms() {
    let world = World::new().await;
    world.provision("dev").await;
    let conf = world.run("ssh dev -G").await;
    assert!(conf.stdout.contains("stricthostkeychecking true"), "{conf:?}");
    assert_eq!(world.run("ssh dev -- true").await.code, 0);
    assert!(world.sandbox.swap_host_key(&world.only().id));
    let swapped = world.run("ssh dev -- true").await;
    assert_eq!(swapped.code, 255, "{swapped:?}");
    assert!(swapped.stderr.contains("REMOTE HOST IDENTIFICATION HAS CHANGED"), "{}", swapped.stderr);
    world.remove("dev").await;

    // No log: the first contact is trusted, later ones are compared with it.
    world.sandbox.add_fault(Fault::on("logs", FaultKind::status(403)).always());
    world.provision("dev").await;
    let conf = world.run("ssh dev -G").await;
    assert!(conf.stdout.contains("stricthostkeychecking accept-new"), "{conf:?}");
    assert_eq!(world.run("ssh dev -- true").await.code, 0);
    assert!(world.sandbox.swap_host_key(&world.only().id));
    assert_eq!(world.run("ssh dev -- true").await.code, 255);
    assert!(!world.home().join(".ssh/known_hosts").exists());
    world.remove("dev").await;
}
