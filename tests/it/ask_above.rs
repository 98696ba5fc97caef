//! `defaults.ask_above`: a dear machine is asked for, once, before anything is created.

use std::time::Duration;

use gpuprov::sandbox::{Fault, FaultKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{LIMIT, World};

/// What a command on a terminal left: its code and what the terminal showed.
struct Shown {
    code: i32,
    text: String,
}

/// Runs the binary on a terminal and types `answer` when it asks.
async fn on_a_terminal(world: &World, words: &str, answer: &[u8]) -> Shown {
    let (mut pty, pts) = pty_process::open().unwrap();
    let command = world.gpuprov(words.split_whitespace());
    let std = command.as_std();
    let mut ours =
        pty_process::Command::new(std.get_program()).env_clear().current_dir(world.home()).kill_on_drop(true);
    for word in std.get_args() {
        ours = ours.arg(word);
    }
    for (name, value) in std.get_envs() {
        ours = ours.env(name, value.unwrap());
    }
    let mut child = ours.env("TERM", "dumb").spawn(pts).unwrap();
    let mut shown = Vec::new();
    let mut asked = false;
    let talk = async {
        let mut piece = [0; 4096];
        // The end of a terminal is an error.
        while let Ok(count @ 1..) = pty.read(&mut piece).await {
            shown.extend_from_slice(&piece[..count]);
            if !asked && String::from_utf8_lossy(&shown).contains("[y/N]") {
                asked = true;
                pty.write_all(answer).await.unwrap();
            }
        }
        child.wait().await.unwrap()
    };
    let status = tokio::time::timeout(LIMIT, talk).await.expect("it did not end");
    Shown { code: status.code().unwrap_or(-1), text: String::from_utf8_lossy(&shown).into_owned() }
}

async fn world() -> World {
    let world = World::new().await;
    world.config("[defaults]\nask_above = 0.3\n");
    world
}

const PROVISION: &str = "provision --gpus RTX4090:1 --name dev";

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_nothing_is_created() {
    let world = world().await;
    let (code, document) = world.json(PROVISION).await;
    assert_eq!((code, &document["error"]["kind"]), (2, &"refused".into()), "{document}");
    assert!(document["error"]["hint"].as_str().unwrap().contains("--yes"), "{document}");
    assert_eq!(world.creates(), 0);
    assert_eq!(world.json("ls --local").await.1["machines"], serde_json::json!([]));
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_the_answer_counts() {
    let world = world().await;
    for no in [&b"n\n"[..], b"\n", b"what\n", b"\x04"] {
        let shown = on_a_terminal(&world, PROVISION, no).await;
        assert_eq!((shown.code, world.creates()), (2, 0), "{}", shown.text);
        assert!(shown.text.contains("take an offer for up to "), "{}", shown.text);
    }
    // Ctrl-C is no answer but an end, at once.
    let shown = on_a_terminal(&world, PROVISION, b"\x03").await;
    assert_eq!((shown.code, world.creates()), (130, 0), "{}", shown.text);
    let shown = on_a_terminal(&world, PROVISION, b"y\n").await;
    assert_eq!((shown.code, world.creates()), (0, 1), "{}", shown.text);
    assert_eq!(shown.text.matches("[y/N]").count(), 1, "{}", shown.text);

    // `rm` asks too, and names the sandbox.
    let shown = on_a_terminal(&world, "rm dev", b"n\n").await;
    assert!(shown.code == 2 && shown.text.contains("sandbox: remove it? [y/N]"), "{}", shown.text);
    let shown = on_a_terminal(&world, "rm dev", b"\x03").await;
    assert_eq!((shown.code, world.sandbox.alive().len()), (6, 1), "{}", shown.text);
    let shown = on_a_terminal(&world, "rm dev", b"yes\n").await;
    assert_eq!(shown.code, 0, "{}", shown.text);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_answer_in_advance() {
    let world = world().await;
    let (_, offers) = world.json("offers --gpus RTX4090:1").await;
    let id = offers["offers"][0]["id"].as_str().unwrap();
    for (name, flags) in [
        ("one", "--gpus RTX4090:1 --yes".to_owned()),
        ("two", "--gpus RTX4090:1 --max-price 2".to_owned()),
        ("three", format!("--offer {id}")),
    ] {
        let ran = world.run(&format!("provision --name {name} {flags}")).await;
        assert_eq!(ran.code, 0, "{flags}: {ran:?}");
    }
    // What is cheap enough needs no answer.
    world.config("[defaults]\nask_above = 50\n");
    world.provision("four").await;
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_rises_above_the_limit_is_not_paid_unasked() {
    let world = World::new().await;
    let (_, offers) = world.json("offers --gpus RTX4090:1").await;
    let dearest =
        offers["offers"].as_array().unwrap().iter().map(|offer| offer["price_per_hour"].as_f64().unwrap());
    let dearest = dearest.fold(0.0, f64::max);
    // All of them may be bought as they are shown, none at ten times the price.
    world.config(&format!("[defaults]\nask_above = {}\n", dearest + 0.1));
    world.sandbox.add_fault(Fault::on("catalog_one", FaultKind::PriceFactor { factor: 10.0 }).always());
    let (code, document) = world.json(PROVISION).await;
    assert_eq!((code, &document["error"]["kind"], world.creates()), (3, &"too_dear".into(), 0), "{document}");
    // The next round of a queue brings dear offers only: they are asked for.
    world.sandbox.add_fault(Fault::on("catalog", FaultKind::PriceFactor { factor: 10.0 }).nth(3).always());
    let ran = tokio::time::timeout(Duration::from_secs(30), world.run(&format!("{PROVISION} --queue 2s")))
        .await
        .unwrap();
    assert!(ran.code == 2 && ran.stderr.contains("needs a yes"), "{ran:?}");
    assert_eq!(world.creates(), 0);
    world.assert_empty();
}
