//! Several clouds at once: one list, one that fails and spoils nothing, falling through from one to the next, several accounts
//! of each, and how many requests every command sends.

use std::time::{Duration, Instant};

use gpuprov::sandbox::{Fault, FaultKind, Recorded, VerdaFault, When};
use serde_json::{Value, json};

use crate::support::machines::outcomes;
use crate::support::{World, finish};

/// A world with an account at every cloud.
async fn world() -> World {
    let mut world = World::new().await;
    world.with_vast();
    world.with_verda();
    world
}

fn accounts(rows: &Value) -> Vec<&str> {
    let mut accounts: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["account"].as_str().unwrap()).collect();
    accounts.sort_unstable();
    accounts.dedup();
    accounts
}

/// Fails if the list is not by price alone, or a price is not the sum of its parts with the disk among them.
fn assert_strictly_by_price(list: &Value) {
    let offers = list["offers"].as_array().unwrap();
    let mut last = 0.0;
    for offer in offers {
        let price = offer["price_per_hour"].as_f64().unwrap();
        assert!(price >= last, "{offer} comes after {last}");
        last = price;
        let parts = &offer["price_parts"];
        let sum: f64 = parts.as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
        assert!((sum - price).abs() < 1e-9, "{offer}");
        assert!(parts["disk"].as_f64().unwrap() > 0.0, "no disk in {offer}");
        assert!(offer["disk_gb"].as_f64().unwrap() >= 50.0, "{offer}");
    }
    assert_eq!(list["total"].as_u64().unwrap() as usize, offers.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_list_strictly_by_price() {
    let world = world().await;
    let (code, list) = world.json("offers --gpus H100:1 --limit 100").await;
    assert_eq!((code, &list["failed"]), (0, &json!([])), "{list}");
    assert_eq!(accounts(&list["offers"]), ["runpod/default", "vast/default", "verda/default"]);
    assert_strictly_by_price(&list);
    // The clouds really lie between each other: the list is not one after the other.
    let mut changes: Vec<&str> =
        list["offers"].as_array().unwrap().iter().map(|offer| offer["cloud"].as_str().unwrap()).collect();
    changes.dedup();
    assert!(changes.len() > 3, "{changes:?}");
    // Twice the disk costs more at every cloud.
    let (_, larger) = world.json("offers --gpus H100:1 --limit 100 --disk 100").await;
    assert_strictly_by_price(&larger);
    let disk = |list: &Value, cloud: &str| {
        let offers = list["offers"].as_array().unwrap();
        let offer = offers.iter().find(|offer| offer["cloud"] == cloud).unwrap();
        offer["price_parts"]["disk"].as_f64().unwrap()
    };
    for cloud in ["runpod", "vast", "verda"] {
        assert!(disk(&larger, cloud) > 1.9 * disk(&list, cloud), "{cloud}");
    }
    let (_, spot) = world.json("offers --gpus H100:1 --limit 100 --spot").await;
    assert_eq!(accounts(&spot["offers"]), ["vast/default", "verda/default"]);
    assert_strictly_by_price(&spot);
    world.assert_empty();
}

/// Lets a cloud answer nothing from now on.
fn hang(world: &World, cloud: &str) {
    for method in ["GET", "POST", "PUT"] {
        let fault = Fault::on_path(method, "/", FaultKind::hang(When::Before));
        world.sandbox.add_fault(fault.cloud(cloud).always());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_and_a_cloud_that_hangs_spoil_nothing() {
    for (wrong, hanging, works) in
        [("vast", "verda", "runpod"), ("runpod", "vast", "verda"), ("verda", "runpod", "vast")]
    {
        let mut world = world().await;
        let variable = match wrong {
            "vast" => "VAST_API_KEY",
            "runpod" => "RUNPOD_API_KEY",
            _ => "VERDA_CLIENT_SECRET",
        };
        world.set(variable, "a-Wrong-K3y-0123456789");
        hang(&world, hanging);
        let begun = Instant::now();
        let ran = world.run("offers --gpus H100:1 --cloud-timeout 1s --json").await;
        let took = begun.elapsed();
        let list: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, &list["error"]), (0, &Value::Null), "{list}");
        assert_eq!(accounts(&list["offers"]), [format!("{works}/default")], "{list}");
        let kind = |cloud: &str| {
            let failed = list["failed"].as_array().unwrap();
            let found = failed.iter().find(|failed| failed["account"] == format!("{cloud}/default"));
            found.unwrap_or_else(|| panic!("{cloud} is not named: {list}"))["kind"].clone()
        };
        assert_eq!((kind(wrong), kind(hanging)), (json!("auth"), json!("timeout")), "{list}");
        assert!(took < Duration::from_secs(3), "{hanging}: {took:?}");
        assert!(took > Duration::from_millis(900), "{hanging} did not hang: {took:?}");
        assert!(!format!("{ran:?}").contains("K3y"), "{ran:?}");
        // The table says the same in a line each.
        let table = world.run("offers --gpus H100:1 --cloud-timeout 1s").await;
        for cloud in [wrong, hanging] {
            assert!(table.stderr.contains(&format!("{cloud}/default")), "{table:?}");
        }
        assert_eq!(table.code, 0, "{table:?}");
    }
}

/// What a command asked the clouds, without what came before.
struct Asked<'a> {
    world: &'a World,
    from: usize,
}

impl Asked<'_> {
    fn since(world: &World) -> Asked<'_> {
        Asked { world, from: world.requests() }
    }

    fn requests(&self) -> Vec<Recorded> {
        self.world.sandbox.requests().split_off(self.from)
    }

    /// Fails if a cloud was asked more often, or never.
    fn at_most(&self, cloud: &str, most: usize) {
        let requests = self.requests();
        let asked = requests.iter().filter(|request| request.cloud == cloud);
        let asked: Vec<&str> = asked.map(|request| request.operation).collect();
        assert!((1..=most).contains(&asked.len()), "{} instead of {most}: {asked:?}", asked.len());
    }

    /// The same, and fails if another cloud was asked at all.
    fn alone(&self, cloud: &str, most: usize) {
        let others: Vec<_> = self.requests().into_iter().filter(|request| request.cloud != cloud).collect();
        assert!(others.is_empty(), "{others:?}");
        self.at_most(cloud, most);
    }
}

/// What a machine's life costs in requests, one of each.
struct Life {
    cloud: &'static str,
    words: &'static str,
    offers: usize,
    provision: usize,
    ls: usize,
    rm: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_at_every_cloud_and_what_it_asks() {
    let lives = [
        Life { cloud: "runpod", words: "--gpus RTX4090:1", offers: 5, provision: 14, ls: 1, rm: 5 },
        Life { cloud: "vast", words: "--gpus RTX5090:1", offers: 2, provision: 10, ls: 1, rm: 5 },
        Life { cloud: "vast", words: "--gpus RTX5090:1 --spot", offers: 3, provision: 11, ls: 1, rm: 5 },
        Life { cloud: "verda", words: "--gpus H100:1", offers: 5, provision: 14, ls: 4, rm: 17 },
        Life { cloud: "verda", words: "--gpus H100:1 --spot", offers: 5, provision: 14, ls: 4, rm: 17 },
        Life { cloud: "verda", words: "--cpu-only", offers: 5, provision: 14, ls: 4, rm: 17 },
    ];
    for life in lives {
        let Life { cloud, words, .. } = life;
        let world = world().await;
        // The machines boot within one pause, so that there are few looks.
        let port = world.sandbox.vm_ssh_port();
        world.write(
            ".config/gpuprov/config.toml",
            &format!(
                "[wait]\npoll = \"1s\"\ngrace = \"1s\"\n[defaults]\nk8s = false\n[verda]\nssh_port = {port}\n"
            ),
        );
        let asked = Asked::since(&world);
        let (code, list) = world.json(&format!("offers {words} --cloud {cloud}")).await;
        assert_eq!(code, 0, "{list}");
        asked.alone(cloud, life.offers);

        let _ = std::fs::remove_dir_all(world.home().join(".cache/gpuprov"));
        let asked = Asked::since(&world);
        let (code, ran) = world.json(&format!("provision {words} --name dev --cloud {cloud}")).await;
        assert_eq!((code, outcomes(&ran)), (0, vec!["created"]), "{words}: {ran}");
        asked.alone(cloud, life.provision);
        let machine = &ran["machines"][0];
        assert_eq!(machine["cloud"], cloud);
        assert_eq!(machine["spot"], json!(words.contains("--spot")));
        assert_eq!(machine["price_per_hour"], list["offers"][0]["price_per_hour"], "{words}");

        let asked = Asked::since(&world);
        for program in ["gpuprov", "ssh"] {
            let inside = match program {
                "ssh" => {
                    let mut ssh = world.program("ssh");
                    ssh.args(["-F", world.home().join(".ssh/config").to_str().unwrap(), "dev", "echo in"]);
                    finish(ssh).await
                }
                _ => world.run("ssh dev -- echo in").await,
            };
            assert_eq!((inside.code, inside.stdout.as_str()), (0, "in\n"), "{words}: {program}: {inside:?}");
        }
        assert!(asked.requests().is_empty(), "a login asks no cloud");

        let asked = Asked::since(&world);
        let (code, listed) = world.json("ls").await;
        asked.at_most(cloud, life.ls);
        assert_eq!((code, &listed["failed"]), (0, &json!([])), "{listed}");
        let machines = listed["machines"].as_array().unwrap();
        assert_eq!((machines.len(), &machines[0]["state"]), (1, &json!("running")), "{words}: {listed}");
        assert_eq!(listed["left_over"], json!([]), "{words}: {listed}");

        let asked = Asked::since(&world);
        world.remove("dev").await;
        asked.alone(cloud, life.rm);
        let (_, listed) = world.json("ls").await;
        assert_eq!((&listed["machines"], &listed["left_over"]), (&json!([]), &json!([])), "{words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn falling_through_from_cloud_to_cloud() {
    let types = [
        "--instance-type=RTX PRO 6000 WS:1",
        "--instance-type=NVIDIA A100-SXM4-80GB x1 secure",
        "--instance-type=1RTXPRO6000.30V",
        "--cuda=12.8",
    ];
    // In the second round Verda has none either: only then comes the rest of RunPod's group, which had gone behind.
    for verda_works in [true, false] {
        let world = world().await;
        let (_, list) = world.json_args(&[&["offers"], &types[..]].concat()).await;
        let shown: Vec<&str> =
            list["offers"].as_array().unwrap().iter().map(|offer| offer["id"].as_str().unwrap()).collect();
        let by = |at: usize| list["offers"][at]["cloud"].as_str().unwrap();
        assert_eq!(shown.len(), 5, "{list}");
        assert_eq!([by(0), by(1), by(2), by(3), by(4)], ["vast", "runpod", "runpod", "runpod", "verda"]);
        let _ = std::fs::remove_dir_all(world.home().join(".cache/gpuprov"));

        // The list shows the cheapest one, the look right before the create does not any more.
        world.sandbox.vast().add_fault(Fault::on("search", FaultKind::StaleOffer).nth(2));
        let detail =
            "There are no longer any instances available with the requested specifications.".to_owned();
        world.sandbox.add_fault(Fault::on("create_pod", FaultKind::Refuse { detail }).times(2));
        if !verda_works {
            world.sandbox.verda().add_fault(Fault::on("create_instance", VerdaFault::no_capacity().into()));
        }
        let (code, ran) = world.json_args(&[&["provision", "--name=dev"], &types[..]].concat()).await;
        assert_eq!(code, 0, "{ran}");
        let story = [
            (shown[0], "gone"),
            (shown[1], "refused"),
            (shown[2], "refused"),
            (shown[4], if verda_works { "created" } else { "refused" }),
            (shown[3], "created"),
        ];
        let told: Vec<(&str, &str)> = ran["tried"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tried| (tried["offer"].as_str().unwrap(), tried["outcome"].as_str().unwrap()))
            .collect();
        assert_eq!(told, story[..if verda_works { 4 } else { 5 }], "{ran}");
        let pods = world.sandbox.requests();
        let mut pods = pods.iter().filter(|request| request.operation == "create_pod");
        assert!(pods.all(|pod| pod.body.as_ref().unwrap()["dataCenterIds"].as_array().unwrap().len() == 1));

        let works = if verda_works { "verda" } else { "runpod" };
        assert_eq!(
            (ran["machines"].as_array().unwrap().len(), &ran["machines"][0]["cloud"]),
            (1, &json!(works))
        );
        assert_eq!(world.only().cloud, works);
        assert_eq!(world.made().len(), 1);
        world.remove("dev").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_accounts_of_one_cloud_keep_their_own() {
    let world = world().await;
    let port = world.sandbox.vm_ssh_port();
    let vast = world.sandbox.vast().add_account();
    let (id, secret) = world.sandbox.verda().add_account();
    world.config(&format!(
        "[defaults]\nk8s = false\n[verda]\nssh_port = {port}\n[account.\"vast/lab\"]\napi_key = \"{vast}\"\n\
         [account.\"verda/lab\"]\nclient_id = \"{id}\"\nclient_secret = \"{secret}\"\n"
    ));
    let (code, list) = world.json("offers --gpus H100:1 --limit 200").await;
    assert_eq!(code, 0, "{list}");
    let all = ["runpod/default", "vast/default", "vast/lab", "verda/default", "verda/lab"];
    assert_eq!(accounts(&list["offers"]), all);
    assert_strictly_by_price(&list);

    for (account, gpus) in [
        ("vast/lab", "RTX5090:1"),
        ("vast/default", "RTX5090:1"),
        ("verda/lab", "H100:1"),
        ("verda/default", "H100:1"),
    ] {
        let name = account.replace('/', "-");
        let words = format!("provision --gpus {gpus} --name {name} --cloud {account}");
        let (code, ran) = world.json(&words).await;
        assert_eq!((code, &ran["machines"][0]["account"]), (0, &json!(account)), "{ran}");
        // The cloud's own books say the same of who pays.
        let machine = ran["machines"][0]["id"].as_str().unwrap();
        let entry = world.sandbox.alive().into_iter().find(|entry| entry.id == machine).unwrap();
        let owner = match account {
            "vast/lab" => world.sandbox.vast().account(&vast),
            "vast/default" => world.sandbox.vast().account(world.sandbox.vast().key()),
            "verda/lab" => world.sandbox.verda().account(&id),
            _ => world.sandbox.verda().account(world.sandbox.verda().client_id()),
        };
        assert_eq!(Some(entry.account), owner, "{account}");
    }
    let (_, listed) = world.json("ls").await;
    assert_eq!(accounts(&listed["machines"]), all[1..], "{listed}");
    // Without the records each is found again in its own account alone.
    std::fs::remove_dir_all(world.state().join("machines")).unwrap();
    let (_, listed) = world.json("ls").await;
    assert_eq!(listed["machines"].as_array().unwrap().len(), 4, "{listed}");
    for machine in listed["machines"].as_array().unwrap() {
        let name = machine["account"].as_str().unwrap().replace('/', "-");
        assert_eq!((&machine["name"], &machine["recorded"]), (&json!(name), &json!(false)), "{listed}");
    }
    let ran = world.run("rm --all --yes --cloud vast/lab,verda/lab").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let (_, listed) = world.json("ls").await;
    assert_eq!(accounts(&listed["machines"]), ["vast/default", "verda/default"], "{listed}");
    let ran = world.run("rm --all --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    world.assert_empty();
    for text in [&vast, &secret] {
        assert!(!format!("{ran:?}{listed}").contains(text.as_str()));
    }
}
