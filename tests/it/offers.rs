//! `offers`: the list, its order, its table, and ids that can be used later.

use gpuprov::sandbox::{Fault, FaultKind};
use serde_json::Value;

use crate::support::World;

async fn first_id(world: &World, flags: &str) -> String {
    let (_, document) = world.json(&format!("offers {flags}")).await;
    document["offers"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table() {
    let world = World::new().await;
    let ran = world.run("offers --gpus RTX4090 --gpus L40S").await;
    assert_eq!(ran.code, 0);
    assert_eq!(
        ran.stdout,
        "\
$/HOUR  GPU        VRAM  DISK  WHERE     ACCOUNT         KIND
0.3469  RTX4090:1    24    50  EU-RO-1   runpod/default  sandbox hi
0.3469  RTX4090:1    24    50  US-IL-1   runpod/default  sandbox lo
0.6969  RTX4090:1    24    50  EU-RO-1   runpod/default  sandbox secure hi
0.6969  RTX4090:1    24    50  US-IL-1   runpod/default  sandbox secure med
0.8669  L40S:1       48    50  EUR-NO-1  runpod/default  sandbox secure hi
0.8669  L40S:1       48    50  US-TX-3   runpod/default  sandbox secure med
"
    );
    assert!(ran.stderr.contains("answers at http://127.0.0.1:"), "{}", ran.stderr);
    let wide = world.run("offers --gpus any:1 --limit 100").await;
    assert!(wide.stdout.lines().count() > 40);
    for line in wide.stdout.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_five_rows_unless_the_limit_says_otherwise() {
    let world = World::new().await;
    let (_, all) = world.json("offers --gpus any").await;
    let total = all["total"].as_u64().unwrap() as usize;
    assert!(total > 50 && all["offers"].as_array().unwrap().len() == total);
    let table = world.run("offers --gpus any").await;
    assert_eq!(table.stdout.lines().count(), 26);
    assert!(table.stderr.contains(&format!("{} more", total - 25)), "{}", table.stderr);
    let seven = world.run("offers --gpus any --limit 7").await;
    assert_eq!(seven.stdout.lines().count(), 8);
    let whole = world.run("offers --gpus any --limit 1000").await;
    assert!(whole.stdout.lines().count() == total + 1 && !whole.stderr.contains(" more;"));
    let (_, cut) = world.json("offers --gpus any --limit 3").await;
    assert_eq!((cut["offers"].as_array().unwrap().len(), cut["total"].as_u64()), (3, Some(total as u64)));
    assert_eq!(cut["offers"].as_array().unwrap()[..], all["offers"].as_array().unwrap()[..3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_kind_the_cheapest_of_every_model() {
    let world = World::new().await;
    let (code, document) = world.json("offers").await;
    assert_eq!(code, 0);
    let offers = document["offers"].as_array().unwrap();
    let mut models: Vec<&str> = offers.iter().map(|offer| offer["gpu"].as_str().unwrap()).collect();
    let count = models.len();
    models.sort_unstable();
    models.dedup();
    assert_eq!(models.len(), count, "a model twice");
    assert!(count > 25 && offers.iter().all(|offer| offer["gpu_count"] == 1));
    let (_, all) = world.json("offers --gpus any").await;
    for offer in offers {
        let cheapest = all["offers"].as_array().unwrap().iter().find(|other| other["gpu"] == offer["gpu"]);
        assert_eq!(cheapest, Some(offer));
    }
    // Rows without a usable price are counted in a note, never offered.
    assert!(document["warnings"].to_string().contains("3 offers without a usable price"), "{document}");
    assert!(!models.contains(&"A2000"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_is_total() {
    let mut world = World::new().await;
    let lab = world.sandbox.add_runpod_account();
    world.config(&format!("[account.\"runpod/lab\"]\napi_key = \"{lab}\"\n"));
    world.set("GPUPROV_INSTALLATION", "order");
    let (_, one) = world.json("offers --gpus any --gpus any:2").await;
    let (_, two) = world.json("offers --gpus any:2,any:1").await;
    assert_eq!(one["offers"], two["offers"]);
    let key = |offer: &Value| {
        let text = |name: &str| offer[name].as_str().unwrap_or_default().to_owned();
        let price = (offer["price_per_hour"].as_f64().unwrap() * 1e6).round() as i64;
        (price, text("account"), text("zone"), text("instance_type"), text("id"))
    };
    let keys: Vec<_> = one["offers"].as_array().unwrap().iter().map(key).collect();
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(keys.iter().any(|key| key.1 == "runpod/lab") && keys.iter().any(|key| key.1 == "runpod/default"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_id_of_the_catalogue_fits_and_is_read_again() {
    let mut world = World::new().await;
    let name = "a".repeat(30);
    let key = world.sandbox.add_runpod_account();
    world.config(&format!("[account.\"runpod/{name}\"]\napi_key = \"{key}\"\n"));
    world.unset("RUNPOD_API_KEY");
    let gpus: Vec<String> = (1..=8).map(|count| format!("any:{count}")).collect();
    let list = format!("offers --gpus {} --disk 10000 --ram 2000 --vcpus 500 --cuda 12.8", gpus.join(","));
    let (code, document) = world.json(&list).await;
    assert_eq!(code, 0);
    let offers = document["offers"].as_array().unwrap();
    assert!(offers.len() > 300, "{}", offers.len());
    let mut ids: Vec<&str> = offers.iter().map(|offer| offer["id"].as_str().unwrap()).collect();
    for id in &ids {
        assert!(id.len() <= 200, "{} characters: {id}", id.len());
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte)), "{id}");
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), offers.len(), "an id twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_works_later_in_another_home_and_says_it_all() {
    let world = World::new().await;
    let id = first_id(&world, "--gpus RTX4090:2 --disk 80 --region US --ram 60 --secure").await;
    let mut other = World::new().await;
    other.set("GPUPROV_RUNPOD_ENDPOINT", world.sandbox.runpod_endpoint());
    other.set("RUNPOD_API_KEY", world.sandbox.runpod_key().to_owned());
    other.config(
        "[defaults]\nregion = [\"europe\"]\ndisk = 500\ngpus = [\"L4\"]\nspot = true\nmax_price = 9.0\n",
    );
    let made = other.run(&format!("provision --offer {id} --name dev --no-k8s")).await;
    assert_eq!((made.code, made.stdout.as_str()), (0, "dev\n"), "{made:?}");
    let requests = world.sandbox.requests();
    assert!(
        requests.iter().filter(|request| request.operation == "catalog").count() <= 3,
        "only the re-check asks"
    );
    let body =
        requests.iter().find(|request| request.operation == "create_pod").unwrap().body.clone().unwrap();
    assert_eq!((body["gpu"]["count"].as_u64(), body["disk"].as_u64()), (Some(2), Some(80)));
    assert_eq!(
        (body["dataCenterIds"][0].as_str(), body["cloud"].as_str()),
        (Some("US-IL-1"), Some("SECURE"))
    );
    assert_eq!(body["gpu"]["minRamPerGpu"], 30);
    // A machine that was got by its id is known as any other.
    let (_, list) = other.json("ls dev").await;
    let machine = &list["machines"][0];
    assert_eq!(
        (machine["gpu"].as_str(), machine["gpu_count"].as_u64()),
        (Some("RTX4090"), Some(2)),
        "{machine:#}"
    );
    assert_eq!(other.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_dearer_or_gone_makes_nothing() {
    let world = World::new().await;
    let id = first_id(&world, "--gpus RTX4090:1").await;
    world.sandbox.add_fault(Fault::on("catalog_one", FaultKind::PriceFactor { factor: 1.2 }).always());
    let dearer = |flags: &'static str| {
        let command = format!("provision --offer {id} --name dev {flags}");
        let world = &world;
        async move { world.json(&command).await }
    };
    for flags in ["", "--max-price 0.40", "--max-price 0.30"] {
        let (code, document) = dearer(flags).await;
        assert_eq!(
            (code, document["error"]["kind"].as_str()),
            (3, Some("too_dear")),
            "{flags}: {document:#}"
        );
        assert_eq!(document["tried"][0]["outcome"], "dearer", "{flags}");
        assert_eq!(document["machines"], serde_json::json!([]));
    }
    // A default limit is no word for paying more than the id says.
    world.config("[defaults]\nmax_price = 5.0\n");
    assert_eq!(dearer("").await.0, 3);
    let (code, document) = world.json(&format!("provision --dry-run --offer {id}")).await;
    assert_eq!((code, document["error"]["kind"].as_str()), (3, Some("too_dear")));
    assert_eq!(world.creates(), 0);
    world.config("");
    let (code, document) = dearer("--max-price 0.50").await;
    assert_eq!(
        (code, document["machines"][0]["price_per_hour"].as_f64()),
        (0, Some(0.41485)),
        "{document:#}"
    );
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.sandbox.clear_faults();

    world.sandbox.add_fault(Fault::on("catalog_one", FaultKind::StaleOffer).always());
    let (code, document) = dearer("").await;
    assert_eq!((code, document["tried"][0]["outcome"].as_str()), (3, Some("gone")), "{document:#}");
    let (code, _) = world.json(&format!("provision --dry-run --offer {id}")).await;
    assert_eq!(code, 3);
    assert_eq!(world.creates(), 1);
    // A limit in the config below what the id says holds too.
    world.sandbox.clear_faults();
    world.config("[defaults]\nmax_price = 0.2\n");
    assert_eq!(dearer("").await.0, 3);
    assert_eq!(world.creates(), 1);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_are_none_and_flags_that_do_not_go_with_one() {
    let world = World::new().await;
    let id = first_id(&world, "--gpus RTX4090:1").await;
    let asked = world.requests();
    for (bad, says) in [
        ("dev", "is not an offer id"),
        ("1:runpod/default", "is not an offer id"),
        ("", "is not an offer id"),
        ("2:something:else", "newer gpuprov"),
        (&format!("{id}:q1"), "newer gpuprov"),
        (&id.replace("runpod/", "aws/"), "is not an offer id"),
    ] {
        let ran = world.args(["provision", "--name", "dev", "--offer", bad]).await;
        assert!(ran.code == 2 && ran.stderr.contains(says), "{bad}: {ran:?}");
    }
    for flag in [
        "--gpus L4",
        "--gpu L4",
        "--cpu-only",
        "--cloud runpod",
        "--region EU",
        "--zone EU-RO-1",
        "--instance-type x",
        "--spot",
        "--spot=no",
        "--secure",
        "--disk 60",
        "--ram 1",
        "--vcpus 1",
        "--vram 1",
        "--cuda 12.8",
    ] {
        let (code, document) = world.json(&format!("provision --offer {id} {flag}")).await;
        let name = flag.split([' ', '=']).next().unwrap().replace("--gpu ", "--gpus ");
        assert_eq!((code, document["error"]["kind"].as_str()), (2, Some("usage")), "{flag}");
        assert!(
            document["error"]["message"].as_str().unwrap().contains(name.trim_end_matches('s')),
            "{flag}"
        );
    }
    // What the cloud cannot do is refused with an id as well.
    for flag in ["--port 80", "--k8s"] {
        assert_eq!(world.run(&format!("provision --offer {id} {flag}")).await.code, 2, "{flag}");
    }
    let elsewhere = id.replace("runpod/default", "runpod/lab");
    assert_eq!(world.run(&format!("provision --offer {elsewhere} --name dev")).await.code, 4);
    assert_eq!(
        world.run(&format!("provision --offer {} --name dev", id.replace("runpod/", "gcp/"))).await.code,
        4
    );
    assert_eq!(world.requests(), asked);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_is_bought_by_that_name() {
    let world = World::new().await;
    let ran = world.args(["provision", "--gpus", "nvidia r200 nvl144", "--name", "dev"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let ledger = world.sandbox.alive();
    assert_eq!(ledger[0].gpu, "NVIDIA R200 NVL144");
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    let ran = world.args(["provision", "--instance-type", "NVIDIA  A30:2", "--name", "dev"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((world.sandbox.alive()[0].gpu.as_str(), world.sandbox.alive()[0].count), ("NVIDIA  A30", 2));
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_early_is_no_failure() {
    let world = World::new().await;
    let binary = env!("CARGO_BIN_EXE_gpuprov");
    for reader in ["head -1", "true"] {
        let script =
            format!("{binary} offers --gpus any --json | {reader} >/dev/null; echo ${{PIPESTATUS[0]}}");
        let mut shell = world.program("bash");
        shell.args(["-c", &script]);
        let ran = crate::support::finish(shell).await;
        assert_eq!(ran.stdout, "0\n", "{ran:?}");
        assert!(!ran.stderr.contains("panic") && !ran.stderr.contains("roken pipe"), "{ran:?}");
    }
}
