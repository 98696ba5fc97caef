//! Switches: who is asked, also while a `provision` waits, and by many processes at once.

use std::time::{Duration, Instant};

use gpuprov::sandbox::FaultKind;
use serde_json::{Value, json};

use crate::support::{World, ended, until};

#[tokio::test(flavor = "multi_thread")]
async fn who_is_off_is_asked_nothing_but_its_machines_stay_in_reach() {
    let mut world = World::new().await;
    world.with_verda();
    world.provision("dev").await;
    assert_eq!(world.run("clouds off runpod").await.code, 0);
    assert_eq!(world.run("clouds off verda --cpu").await.code, 0);
    let before = world.requests();
    let (code, offers) = world.json("offers --gpus RTX4090:1 --cloud runpod").await;
    assert_eq!((code, &offers["error"]["kind"]), (3, &json!("nothing_offered")), "{offers:#}");
    assert!(offers["error"]["hint"].as_str().unwrap().contains("clouds on runpod/default"), "{offers:#}");
    let ran = world.run("provision --gpus RTX4090:1 --cloud runpod").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    let ran = world.run("offers --cpu-only --cloud verda").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    let id = "1:runpod/default:NVIDIA_GeForce_RTX_4090_x1_community:1::o:d50:p346850";
    assert_eq!(world.run(&format!("provision --offer {id}")).await.code, 3);
    assert_eq!(world.requests(), before);
    let (code, gpus) = world.json("offers --gpus H100:1").await;
    assert_eq!((code, &gpus["skipped"][0]["reason"]), (0, &json!("switched_off")), "{gpus:#}");
    // An exact type may be of either kind: those without a GPU are left out alone.
    let (_, types) = world.json("offers --instance-type CPU.4V.16G,1H100.80S.30V --cloud verda").await;
    let counts: Vec<&Value> =
        types["offers"].as_array().unwrap().iter().map(|offer| &offer["gpu_count"]).collect();
    assert!(!counts.contains(&&json!(0)), "{types:#}");

    for words in ["ls dev", "ssh dev true", "clouds check runpod"] {
        let ran = world.run(words).await;
        assert_eq!(ran.code, 0, "{words}: {ran:?}");
    }
    world.remove("dev").await;
    // Again changes nothing and is no entry of the log.
    let entries = world.audit().len();
    assert_eq!(world.run("clouds off runpod/default").await.code, 0);
    assert_eq!(world.audit().len(), entries);
    assert_eq!(world.run("clouds on runpod/default").await.code, 0);
    assert_eq!(world.audit().len(), entries + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_waits_for_an_account_to_come_back() {
    let world = World::new().await;
    assert_eq!(world.run("clouds off runpod").await.code, 0);
    let before = world.requests();
    let child = world.start("provision --gpus RTX4090:1 --name dev --queue 40s");
    let record = world.state().join("machines/dev.json");
    until("it waits", || {
        std::fs::read_to_string(&record).is_ok_and(|text| text.contains("waiting for an offer"))
    })
    .await;
    assert_eq!(world.requests(), before, "nobody is asked");
    let begun = Instant::now();
    assert_eq!(world.run("clouds on runpod --gpu").await.code, 0);
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    assert!(ran.stderr.contains("switched off"), "{ran:?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    world.remove("dev").await;
    // A queue that ends in vain says why.
    assert_eq!(world.run("clouds off runpod").await.code, 0);
    let ran = world.run("provision --gpus RTX4090:1 --name dev --queue 1s").await;
    assert!(ran.code == 3 && ran.stderr.contains("switched off"), "{ran:?}");
    assert!(!record.exists());
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_switched_off_meanwhile_is_not_bought_from() {
    let world = World::new().await;
    // Its answer right before the create takes long; meanwhile it is switched off.
    world.fault("catalog_one", FaultKind::Delay { ms: 3000 });
    let child = world.start("provision --gpus RTX4090:1 --name dev");
    until("the offer is looked at again", || world.asked("catalog_one") > 0).await;
    assert_eq!(world.run("clouds off runpod").await.code, 0);
    let ran = ended(child).await;
    assert_eq!((ran.code, world.creates()), (3, 0), "{ran:?}");
    assert_eq!(world.asked("catalog_one"), 1, "it was asked once more");
    world.assert_empty();
}

/// How often each of two processes switches, one after the other, while two others provision: 500 times together.
const TIMES: usize = 250;

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_that_switch_and_provision_leave_all_files_in_agreement() {
    let world = World::new().await;
    let begun = Instant::now();
    let switching = async |side: &str| {
        for turn in 0..TIMES {
            let word = if turn % 2 == 0 { "off" } else { "on" };
            let ran = world.run(&format!("clouds {word} runpod {side}")).await;
            assert_eq!(ran.code, 0, "{ran:?}");
        }
    };
    let provisioning = async |who: &str| {
        for turn in 0..6 {
            let ran = world.run(&format!("provision --gpus RTX4090:1 --name {who}{turn}")).await;
            assert!(matches!(ran.code, 0 | 3), "{ran:?}");
            assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        }
    };
    tokio::join!(switching("--cpu"), switching("--gpu"), provisioning("a"), provisioning("b"));
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());

    // The log, replayed, gives the switches as they are; each change is one line.
    let (mut state, mut changes) = ([true, true], 0);
    for line in world.audit() {
        let Some(word) = line["action"].as_str().unwrap().strip_prefix("clouds ") else { continue };
        let at = usize::from(line["outcome"] == "cpu");
        assert_ne!(state[at], word == "on", "a change that changes nothing: {line}");
        state[at] = word == "on";
        changes += 1;
    }
    assert_eq!((changes, state), (2 * TIMES, [true, true]));
    let (code, list) = world.json("clouds").await;
    let one = &list["accounts"][0];
    assert_eq!((code, &one["gpu"], &one["cpu"]), (0, &json!(true), &json!(true)), "{list:#}");

    // The registry, the log and the cloud agree on the machines.
    let machines = std::fs::read_dir(world.state().join("machines")).unwrap().flatten();
    let records = machines.filter(|entry| entry.file_name().to_string_lossy().ends_with(".json")).count();
    let bought = world.audit().iter().filter(|line| line["outcome"] == "created").count();
    assert_eq!((records, one["machines"].as_u64()), (world.sandbox.alive().len(), Some(records as u64)));
    assert_eq!(bought, records);
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    world.assert_empty();
}
