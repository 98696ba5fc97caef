//! Offers at Google: shapes, places, limits; and the two price catalogues when they are not what they should be.

use std::time::{Duration, SystemTime};

use gpuprov::sandbox::{GcpPrices, GcpSource};
use serde_json::{Value, json};

use super::*;

fn rows(list: &Value) -> &[Value] {
    list["offers"].as_array().unwrap()
}

async fn offers(world: &World, words: &str) -> Value {
    let (code, list) = world.json(&format!("offers --cloud gcp {words}")).await;
    assert_eq!((code, &list["failed"]), (0, &json!([])), "{words}: {list:#}");
    for row in rows(&list) {
        let parts = row["price_parts"].as_object().unwrap();
        let sum: f64 = parts.values().map(|part| part.as_f64().unwrap()).sum();
        assert!((sum - row["price_per_hour"].as_f64().unwrap()).abs() < 1e-9, "{row:#}");
        assert!(parts["disk"].as_f64().unwrap() > 0.0 && parts["address"].as_f64().unwrap() > 0.0, "{row:#}");
        assert!(row["price_estimated"] == json!(true) && row["price_as_of"].is_string(), "{row:#}");
    }
    list
}

fn warnings(list: &Value) -> String {
    list["warnings"].to_string()
}

/// Makes the copies on disk so many hours old.
fn grow_old(world: &World, hours: i64) {
    let folder = world.home().join(".cache/gpuprov/gcp-prices");
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let mut kept: Value = serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap();
        for field in ["fetched_at", "as_of"] {
            let at: jiff::Timestamp = kept[field].as_str().unwrap().parse().unwrap();
            kept[field] = at.checked_sub(jiff::Span::new().hours(hours)).unwrap().to_string().into();
        }
        std::fs::write(entry.path(), kept.to_string()).unwrap();
        let file = std::fs::File::options().write(true).open(entry.path()).unwrap();
        let age = Duration::from_secs(hours.cast_unsigned() * 3600);
        file.set_modified(SystemTime::now() - age).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shape_where_it_is_sold() {
    let world = world().await;
    let types = |list: &Value| -> Vec<String> {
        let mut types: Vec<String> =
            rows(list).iter().map(|row| row["instance_type"].as_str().unwrap().to_owned()).collect();
        types.sort();
        types.dedup();
        types
    };
    let spot = offers(&world, "--gpus A100-80GB:8 --spot").await;
    assert_eq!(types(&spot), ["a2-ultragpu-8g"]);
    assert!(rows(&spot).iter().all(|row| row["spot"] == json!(true) && row["vram_gb"] == json!(80.0)));
    let newest = offers(&world, "--gpus H200:8,B200:8,H100:1 --spot").await;
    assert_eq!(types(&newest), ["a3-highgpu-1g", "a3-ultragpu-8g", "a4-highgpu-8g"]);
    let demand = offers(&world, "--gpus H200:8,B200:8,H100:1").await;
    assert_eq!(rows(&demand).len(), 0, "{demand:#}");
    assert!(warnings(&demand).contains("as spot only"), "{demand:#}");
    let cpu = offers(&world, "--cpu-only --vcpus 16 --disk 10").await;
    assert!(
        rows(&cpu).iter().all(|row| row["vcpus"].as_f64().unwrap() >= 16.0 && row["disk_gb"] == json!(10))
    );
    assert!(
        ["e2", "n2", "c3"]
            .iter()
            .all(|family| { types(&cpu).iter().any(|ty| ty.starts_with(&format!("{family}-"))) }),
        "{:?}",
        types(&cpu)
    );
    let europe = offers(&world, "--gpus L4:1 --region europe").await;
    assert!(!rows(&europe).is_empty());
    assert!(rows(&europe).iter().all(|row| row["continent"] == json!("europe")));
    let zone = offers(&world, "--gpus T4:1 --zone us-central1-a").await;
    assert_eq!(types(&zone), ["n1-standard-4", "n1-standard-8"]);
    let roomy = offers(&world, "--gpus T4:1 --ram 50 --zone us-central1-a").await;
    assert_eq!(types(&roomy), ["n1-highmem-8", "n1-standard-16"]);
    assert_eq!(types(&offers(&world, "--instance-type n1-highmem-8:2").await), ["n1-highmem-8"]);
    let (code, wrong) = world.json("offers --cloud gcp --zone us-central1-x --gpus L4").await;
    assert_eq!((code, rows(&wrong).len()), (0, 0), "{wrong:#}");
    world.config(&format!(
        "[gcp]\nssh_port = {}\nzones = [\"europe-west4-b\"]\n",
        world.sandbox.vm_ssh_port()
    ));
    let own = offers(&world, "--gpus L4:1").await;
    assert!(!rows(&own).is_empty() && rows(&own).iter().all(|row| row["zone"] == json!("europe-west4-b")));
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_price_on_demand_is_too_good_to_be_true() {
    let world = world().await;
    // The catalogue that is known to be wrong alone.
    world.sandbox.gcp().set_prices(GcpSource::Gpuhunt, GcpPrices::Down);
    for (gpus, least) in [("A100-80GB:1", 4.5), ("H100:8", 75.0), ("A100:1", 3.0)] {
        let list = offers(&world, &format!("--gpus {gpus}")).await;
        assert!(!rows(&list).is_empty());
        for row in rows(&list) {
            assert!(row["price_per_hour"].as_f64().unwrap() > least, "{row:#}");
        }
        assert!(warnings(&list).contains("cannot be right"), "{list:#}");
    }
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalogue_that_is_not_one_is_refused_and_the_last_good_one_used() {
    let world = world().await;
    let prices =
        |list: &Value| -> Vec<Value> { rows(list).iter().map(|row| row["price_per_hour"].clone()).collect() };
    let asks = [("--gpus L4:1", GcpSource::Gpuhunt), ("--cpu-only --vcpus 8", GcpSource::Skypilot)];
    for (words, source) in asks {
        let good = prices(&offers(&world, words).await);
        assert!(!good.is_empty());
        for how in [
            GcpPrices::Down,
            GcpPrices::Missing,
            GcpPrices::Html,
            GcpPrices::Half,
            GcpPrices::Torn,
            GcpPrices::WrongHeader,
            GcpPrices::Empty,
        ] {
            let shown = format!("{words} {how:?}");
            world.sandbox.gcp().set_prices(source, how);
            grow_old(&world, 3);
            let list = offers(&world, words).await;
            assert_eq!(prices(&list), good, "{shown}");
            assert!(warnings(&list).contains("last good copy"), "{shown}: {list:#}");
        }
        world.sandbox.gcp().set_prices(source, GcpPrices::Fine);
        assert!(!warnings(&offers(&world, words).await).contains("copy"));
        // Of more than a week nobody knows whether it still holds: the other one stands in.
        world.sandbox.gcp().set_prices(source, GcpPrices::Down);
        grow_old(&world, 170);
        let list = offers(&world, words).await;
        assert!(!rows(&list).is_empty() && warnings(&list).contains("cannot be had"), "{list:#}");
        world.sandbox.gcp().set_prices(source, GcpPrices::Fine);
    }
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_catalogue_there_is_one_clear_line_and_nothing_is_made() {
    let world = world().await;
    let (_, list) = world.json("offers --gpus L4:1").await;
    let id = rows(&list)[0]["id"].as_str().unwrap().to_owned();
    for source in [GcpSource::Gpuhunt, GcpSource::Skypilot] {
        world.sandbox.gcp().set_prices(source, GcpPrices::Down);
    }
    std::fs::remove_dir_all(world.home().join(".cache/gpuprov/gcp-prices")).unwrap();
    let (code, list) = world.json("offers --gpus L4:1").await;
    assert_eq!((code, rows(&list).len()), (1, 0), "{list:#}");
    let failed = &list["failed"][0];
    assert_eq!((&failed["account"], &failed["kind"]), (&json!("gcp/default"), &json!("unavailable")));
    assert!(failed["message"].as_str().unwrap().contains("catalogue"), "{list:#}");
    let (code, ran) = world.json(&format!("provision --offer {id} --name dev")).await;
    assert_eq!(code, 3, "{ran:#}");
    assert_eq!(world.asked("insert_instance"), 0);
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_zero_leaves_offers_out_with_a_note() {
    let world = world().await;
    let gcp = world.sandbox.gcp();
    let project = gcp.project();
    gcp.set_quota(project, Some("us-central1"), "NVIDIA_L4_GPUS", 0.0);
    let list = offers(&world, "--gpus L4:1").await;
    assert!(!rows(&list).is_empty() && rows(&list).iter().all(|row| row["region"] != json!("us-central1")));
    assert!(warnings(&list).contains("NVIDIA_L4_GPUS 0 in us-central1"), "{list:#}");
    gcp.set_quota(project, None, "GPUS_ALL_REGIONS", 0.0);
    let list = offers(&world, "--gpus L4:1").await;
    assert!(rows(&list).is_empty() && warnings(&list).contains("GPUS_ALL_REGIONS"), "{list:#}");
    assert!(!rows(&offers(&world, "--cpu-only --vcpus 4").await).is_empty());
    let (code, ran) = world.json("provision --gpus L4:1 --name dev").await;
    assert_eq!(code, 3, "{ran:#}");
    assert_eq!(world.asked("insert_instance"), 0);
    // What may not be read is unknown, not zero.
    gcp.deny(project, &["compute.projects.get", "compute.regions.get"]);
    let list = offers(&world, "--gpus L4:1").await;
    assert!(!rows(&list).is_empty() && warnings(&list).contains("quotas are not known"), "{list:#}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogues_are_asked_once_an_hour_and_everything_at_once() {
    let world = world().await;
    always(&world, "get_project", FaultKind::Delay { ms: 300 });
    always(&world, "get_region", FaultKind::Delay { ms: 300 });
    always(&world, "prices_gpuhunt", FaultKind::Delay { ms: 300 });
    always(&world, "prices_skypilot", FaultKind::Delay { ms: 300 });
    for _ in 0..2 {
        let begun = std::time::Instant::now();
        offers(&world, "--gpus L4:1,H200:8 --spot").await;
        assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    }
    assert_eq!((world.asked("prices_gpuhunt"), world.asked("prices_skypilot")), (1, 1));
    assert_eq!((world.asked("get_project"), world.asked("get_region")), (2, 12));
    nothing_is_left(&world);
}
