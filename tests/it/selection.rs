//! SELECTION: what each flag lets through, what is refused before anything is asked.

use serde_json::Value;

use crate::support::World;

/// The values of one member of all offers, each once, in the order of the list.
fn members(document: &Value, name: &str) -> Vec<String> {
    let mut seen = Vec::new();
    for offer in document["offers"].as_array().unwrap() {
        let text = offer[name].as_str().map_or_else(|| offer[name].to_string(), str::to_owned);
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}

async fn offers(world: &World, words: &[&str]) -> Value {
    let (code, document) = world.json_args(&[&["offers"], words].concat()).await;
    assert_eq!(code, 0, "{words:?}: {document:#}");
    assert_eq!(document["total"].as_u64().unwrap() as usize, document["offers"].as_array().unwrap().len());
    document
}

#[tokio::test(flavor = "multi_thread")]
async fn gpus_by_any_spelling_and_never_by_half_a_name() {
    let world = World::new().await;
    for (asked, shown) in [
        (vec!["--gpus", "RTX4090"], vec!["RTX4090"]),
        (vec!["--gpu", "rtx 4090:1"], vec!["RTX4090"]),
        (vec!["--gpus=4090"], vec!["RTX4090"]),
        (vec!["--gpus", "NVIDIA GeForce RTX 4090"], vec!["RTX4090"]),
        (vec!["--gpus", "L40"], vec!["L40"]),
        (vec!["--gpus", "L40S"], vec!["L40S"]),
        (vec!["--gpus", "H200"], vec!["H200"]),
        (vec!["--gpus", "RTX A6000"], vec!["A6000"]),
        (vec!["--gpus", "A4000"], vec!["A4000"]),
        (vec!["--gpus", "rtxpro6000"], vec!["RTXPRO6000"]),
        (vec!["--gpus", "H100"], vec!["H100", "H100-94GB"]),
        (vec!["--gpus", "H100-94GB"], vec!["H100-94GB"]),
        (vec!["--gpus", "A100-80GB"], vec!["A100-80GB"]),
        (vec!["--gpus", "A100-78GB"], vec!["A100-80GB"]),
        (vec!["--gpus", "V100-32GB", "--cuda", "12.8"], vec!["V100-32GB"]),
        (vec!["--gpus", "L4,L40S", "--gpus", "A40"], vec!["L4", "A40", "L40S"]),
        (vec!["--gpus", "nvidia r200  nvl144"], vec!["NVIDIA R200 NVL144"]),
        (
            vec!["--gpus", "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb"],
            vec!["NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb"],
        ),
        (vec!["--gpus", "A100"], vec![]),
        (vec!["--gpus", "B200"], vec![]),
        (vec!["--gpus", "RTX4090D"], vec![]),
        (vec!["--gpus", "T4"], vec![]),
        (vec!["--gpus", "RTX4090:7"], vec!["RTX4090"]),
        (vec!["--gpus", "RTX4090:9"], vec![]),
    ] {
        assert_eq!(members(&offers(&world, &asked).await, "gpu"), shown, "{asked:?}");
    }
    let two = offers(&world, &["--gpus", "any:2"]).await;
    assert_eq!(members(&two, "gpu_count"), ["2"]);
    assert!(members(&two, "gpu").len() > 10 && !members(&two, "gpu").contains(&"MI300X".to_owned()));
    let mixed = offers(&world, &["--gpus", "RTX4090:2,H100:8"]).await;
    assert!(mixed["offers"].as_array().unwrap().iter().all(|offer| matches!(
        (offer["gpu"].as_str(), offer["gpu_count"].as_u64()),
        (Some("RTX4090"), Some(2)) | (Some("H100" | "H100-94GB"), Some(8))
    )));
    let note = offers(&world, &["--gpus", "A100,L4"]).await["warnings"].to_string();
    assert!(note.contains("A100-80GB"), "{note}");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn exact_types_with_their_blanks_and_counts() {
    let world = World::new().await;
    for (asked, ids) in [
        ("NVIDIA  A30", vec!["NVIDIA  A30 x1 secure"]),
        ("NVIDIA  A30:2", vec!["NVIDIA  A30 x2 secure"]),
        ("NVIDIA A30", vec![]),
        ("NVIDIA H200:4", vec!["NVIDIA H200 x4 secure"]),
        (
            "NVIDIA GeForce RTX 4090",
            vec!["NVIDIA GeForce RTX 4090 x1 community", "NVIDIA GeForce RTX 4090 x1 secure"],
        ),
        ("NVIDIA GeForce RTX 4090 x2 secure", vec!["NVIDIA GeForce RTX 4090 x2 secure"]),
        ("NVIDIA R200 NVL144", vec!["NVIDIA R200 NVL144 x1 secure"]),
        ("NVIDIA B200", vec![]),
        ("AMD Instinct MI300X OAM", vec![]),
    ] {
        assert_eq!(
            members(&offers(&world, &["--instance-type", asked]).await, "instance_type"),
            ids,
            "{asked}"
        );
    }
    // AMD only by its exact id and with an image of one's own.
    let amd = offers(&world, &["--instance-type", "AMD Instinct MI300X OAM", "--image", "me/rocm:1"]).await;
    assert_eq!(members(&amd, "gpu_count"), ["1"]);
    let slip = world.args(["offers", "--instance-type", "NVIDIA RTX 4091"]).await;
    assert_eq!(slip.code, 2, "{slip:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn places() {
    let world = World::new().await;
    for (flags, zones) in [
        ("--gpus RTX4090 --region EU", vec!["EU-RO-1"]),
        ("--gpus RTX4090 --region europe", vec!["EU-RO-1"]),
        ("--gpus RTX4090 --region north_america", vec!["US-IL-1"]),
        ("--gpus RTX4090 --region North-America", vec!["US-IL-1"]),
        ("--gpus RTX4090 --region US,RO", vec!["EU-RO-1", "US-IL-1"]),
        ("--gpus RTX4090 --region us --region asia", vec!["US-IL-1"]),
        ("--gpus RTX4090 --region JP", vec![]),
        ("--gpus RTX4090 --region antarctica", vec![]),
        ("--gpus H100,H200,RTX5080 --region CA", vec!["CA-MTL-3"]),
        ("--gpus RTX5080,H100 --zone us-ca-2", vec!["US-CA-2"]),
        ("--gpus any --zone US-CA-2,AP-JP-1", vec!["AP-JP-1", "US-CA-2"]),
        ("--gpus RTX3080", vec!["null"]),
        ("--gpus RTX3080 --region US", vec![]),
        ("--gpus RTX3080 --region north_america,europe,asia,oceania", vec![]),
        ("--gpus RTX3080 --zone US-CA-2", vec![]),
    ] {
        let words: Vec<&str> = flags.split(' ').collect();
        let mut found = members(&offers(&world, &words).await, "zone");
        found.sort();
        assert_eq!(found, zones, "{flags}");
    }
    let canada = offers(&world, &["--gpus", "any", "--region", "CA"]).await;
    assert_eq!(
        (members(&canada, "country"), members(&canada, "region")),
        (vec!["CA".into()], vec!["north_america".into()])
    );
    world.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_nobody_knows_are_slips() {
    let world = World::new().await;
    for (flags, message, near) in [
        ("--gpus RTX490", "--gpus: nobody knows `RTX490`", "RTX4090"),
        ("--gpus RTX4090,FOO9", "--gpus: nobody knows `FOO9`", ""),
        ("--gpus RTX6000", "--gpus: nobody knows `RTX6000`", "RTX6000ADA"),
        ("--gpus RTX4090 --region Canadaa", "--region: nobody knows `Canadaa`", "CA"),
        ("--gpus RTX4090 --region ZZ,europe", "--region: nobody knows `ZZ`", ""),
        ("--gpus RTX4090 --region EU-RO-1", "--region: `EU-RO-1` is a zone", "--zone EU-RO-1"),
        ("--gpus RTX4090 --zone EU-RO-7", "--zone: nobody knows `EU-RO-7`", "EU-RO-1"),
        ("--gpus RTX4090 --zone europe", "--zone: `europe` is a region", "--region europe"),
    ] {
        for command in ["offers", "provision --name dev", "provision --dry-run"] {
            let (code, document) = world.json(&format!("{command} {flags}")).await;
            let error = &document["error"];
            assert_eq!((code, error["kind"].as_str()), (2, Some("usage")), "{command} {flags}: {document:#}");
            assert_eq!(error["message"], message, "{command} {flags}");
            assert!(error["hint"].as_str().unwrap_or_default().contains(near), "{command} {flags}: {error}");
        }
    }
    // Known, but not to be had: an empty list is no failure, a machine that cannot be had is one.
    for flags in ["--gpus B200", "--gpus T4", "--gpus RTX4090 --region JP", "--gpus RTX4090 --zone EUR-IS-2"]
    {
        assert_eq!(world.json(&format!("offers {flags}")).await.0, 0, "{flags}");
        let (code, document) = world.json(&format!("provision {flags} --name dev")).await;
        assert_eq!((code, document["error"]["kind"].as_str()), (3, Some("nothing_offered")), "{flags}");
    }
    assert_eq!(world.creates(), 0);
    assert_eq!(world.run("ls").await.stdout, "");
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runpod_cannot_do_is_refused_without_a_request() {
    let world = World::new().await;
    for (flags, reason) in [
        ("--gpus RTX4090 --port 80", "published ports are random"),
        ("--gpus RTX4090 --port 80@203.0.113.0/24", "published ports are random"),
        ("--gpus RTX4090 --spot", "no interruptible pods"),
        ("--gpus RTX4090 --k8s", "no systemd"),
        ("--gpus RTX4090 --k8s --wait k8s", "no systemd"),
        ("--cpu-only", "no GPU-less pods"),
    ] {
        for cloud in ["", " --cloud runpod", " --cloud runpod/default"] {
            for command in ["offers", "provision --name dev", "provision --dry-run"] {
                if command == "offers" && flags.contains("--wait") {
                    continue;
                }
                let (code, document) = world.json(&format!("{command} {flags}{cloud}")).await;
                assert_eq!((code, document["error"]["kind"].as_str()), (2, Some("unsupported")), "{flags}");
                let message = document["error"]["message"].as_str().unwrap();
                assert!(message.contains(reason) && message.contains("runpod/default"), "{message}");
                let skipped = &document["skipped"][0];
                assert_eq!(
                    (skipped["account"].as_str(), skipped["reason"].as_str()),
                    (Some("runpod/default"), Some("unsupported"))
                );
                assert!(skipped["message"].as_str().unwrap().contains(reason), "{skipped}");
            }
            let said = world.run(&format!("provision {flags}{cloud} --name dev")).await;
            assert!(said.code == 2 && said.stdout.is_empty() && said.stderr.contains(reason), "{said:?}");
        }
    }
    assert_eq!(world.requests(), 0, "{:#?}", world.sandbox.requests());
    for spot in ["--spot=any", "--spot=no"] {
        let any = offers(&world, &["--gpus", "RTX4090", spot]).await;
        assert_eq!((members(&any, "spot"), any["total"].as_u64()), (vec!["false".into()], Some(4)), "{spot}");
    }
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_that_do_not_go_together_or_say_nothing() {
    let world = World::new().await;
    for words in [
        vec!["--gpus", "L4", "--cpu-only"],
        vec!["--gpus", "L4", "--instance-type", "NVIDIA L4"],
        vec!["--instance-type", "NVIDIA L4", "--cpu-only"],
        vec!["--gpus", "L4", "--k8s", "--no-k8s"],
        vec!["--gpus", "L4:0"],
        vec!["--gpus", "L4:"],
        vec!["--gpus", "L4:two"],
        vec!["--gpus", ""],
        vec!["--gpus", ","],
        vec!["--gpus", "L4", "--cloud", ""],
        vec!["--gpus", "L4", "--cloud", "aws"],
        vec!["--gpus", "L4", "--cloud", "runpod/UPPER"],
        vec!["--gpus", "L4", "--region", ""],
        vec!["--gpus", "L4", "--zone", ""],
        vec!["--instance-type", " "],
        vec!["--gpus", "L4", "--spot=maybe"],
        vec!["--gpus", "L4", "--spot", "any"],
        vec!["--gpus", "L4", "--disk", "0"],
        vec!["--gpus", "L4", "--disk", "1.5"],
        vec!["--gpus", "L4", "--ram", "-1"],
        vec!["--gpus", "L4", "--cuda", "new"],
        vec!["--gpus", "L4", "--max-price", "cheap"],
        vec!["--gpus", "L4", "--max-price", "-1"],
        vec!["--gpus", "L4", "--image", "two words"],
        vec!["--gpus", "L4", "--port", "0"],
        vec!["--gpus", "L4", "--port", "80@here"],
        vec!["--gpus", "L4", "--cloud-timeout", "soon"],
        vec!["--gpus", "L4", "--color", "blue"],
        vec!["L4"],
    ] {
        for command in ["offers", "provision"] {
            let ran = world.args([&[command], words.as_slice()].concat()).await;
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{command} {words:?}: {ran:?}");
            assert!(ran.stderr.contains("error:"), "{words:?}: {}", ran.stderr);
        }
    }
    for nothing in ["provision", "provision --name dev", "provision --dry-run --region EU"] {
        let ran = world.run(nothing).await;
        assert!(ran.code == 2 && ran.stderr.contains("--gpus"), "{ran:?}");
    }
    assert_eq!(world.run("offers --limit 0").await.code, 2);
    assert_eq!(world.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn wishes_narrow_the_list_and_shape_the_price() {
    let world = World::new().await;
    let secure = offers(&world, &["--gpus", "RTX4090", "--secure"]).await;
    assert_eq!(members(&secure, "secure"), ["true"]);
    let asked: Vec<String> = world.sandbox.requests().into_iter().map(|request| request.query).collect();
    assert!(asked.iter().all(|query| !query.contains("COMMUNITY")), "{asked:?}");

    for (disk, price) in [("50", 0.34685), ("100", 0.353_699), ("1000", 0.476_987)] {
        let list = offers(&world, &["--gpus", "RTX4090", "--disk", disk]).await;
        let first = &list["offers"][0];
        assert_eq!(first["price_per_hour"].as_f64(), Some(price), "{disk}");
        assert_eq!(first["disk_gb"].to_string(), disk);
        let parts = first["price_parts"].as_object().unwrap().values().map(|part| part.as_f64().unwrap());
        assert!((parts.sum::<f64>() - price).abs() < 1e-9, "{first}");
    }
    let capped = offers(&world, &["--gpus", "RTX4090", "--max-price", "0.5"]).await;
    assert_eq!(capped["total"], 2);
    let exact = offers(&world, &["--gpus", "RTX4090", "--max-price", "0.34685"]).await;
    assert_eq!(exact["total"], 2);
    // The disk counts: without it the price would be under the limit.
    assert_eq!(offers(&world, &["--gpus", "RTX4090", "--max-price", "0.345"]).await["total"], 0);
    assert_eq!(
        members(&offers(&world, &["--gpus", "any", "--vram", "141"]).await, "gpu"),
        ["H200", "B300", "NVIDIA R200 NVL144"]
    );
    assert_eq!(
        members(&offers(&world, &["--gpus", "any", "--vram", "145"]).await, "gpu"),
        ["H200", "B300", "NVIDIA R200 NVL144"]
    );
    // RunPod does not tell RAM and vCPUs: its offers are kept, and the wish stands in their ids.
    let roomy = offers(&world, &["--gpus", "RTX4090", "--ram", "500", "--vcpus", "99"]).await;
    assert_eq!(
        (members(&roomy, "ram_gb"), members(&roomy, "vcpus"), roomy["total"].as_u64()),
        (vec!["null".into()], vec!["null".into()], Some(4))
    );
    assert!(roomy["offers"][0]["id"].as_str().unwrap().contains(":r500:v99:"));
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn cuda_picks_the_image_and_tells_what_it_hides() {
    let world = World::new().await;
    let usual = offers(&world, &["--gpus", "RTX4090"]).await;
    let told = usual["warnings"].to_string();
    assert!(told.contains("2 offers are hidden") && told.contains("--cuda 12.8"), "{told}");
    assert_eq!((usual["total"].as_u64(), members(&usual, "cuda")), (Some(4), vec!["12.9".into()]));
    let more = offers(&world, &["--gpus", "RTX4090", "--cuda", "12.8"]).await;
    assert_eq!((more["total"].as_u64(), more["warnings"].as_array().unwrap().len()), (Some(6), 0));
    assert_eq!(members(&more, "cuda"), ["12.8"]);
    assert_eq!(offers(&world, &["--gpus", "RTX4090", "--cuda", "13.2"]).await["total"], 1);
    assert_eq!(offers(&world, &["--gpus", "RTX4090", "--cuda", "14"]).await["total"], 0);
    let own = offers(&world, &["--gpus", "RTX4090", "--image", "me/own:latest"]).await;
    assert_eq!((own["total"].as_u64(), members(&own, "cuda")), (Some(6), vec!["null".into()]));
    let tagged = offers(&world, &["--gpus", "RTX4090", "--image", "me/own:cu130"]).await;
    assert_eq!((tagged["total"].as_u64(), members(&tagged, "cuda")), (Some(4), vec!["13.0".into()]));
    for (cuda, image, floor) in [
        ("12", "cuda1281-ubuntu2204", "12.8"),
        ("12.8", "cuda1281-ubuntu2204", "12.8"),
        ("12.9", "cuda1290-ubuntu2204", "12.9"),
        ("13", "cuda1300-ubuntu2404", "13.0"),
        ("13.2", "cuda1300-ubuntu2404", "13.2"),
    ] {
        let (code, document) = world.json(&format!("provision --dry-run --gpus RTX4090 --cuda {cuda}")).await;
        let body = &document["request"]["body"];
        assert_eq!(code, 0);
        assert!(body["image"].as_str().unwrap().ends_with(image), "{cuda}: {body}");
        assert_eq!(body["gpu"]["minCudaVersion"], floor, "{cuda}");
    }
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn ram_vcpus_disk_and_image_reach_the_create() {
    let world = World::new().await;
    let ran = world
        .run("provision --gpus RTX4090:2 --ram 51 --vcpus 5 --disk 70 --region US --image runpod/base:1.4.1-cuda1281-ubuntu2204 --name dev")
        .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let create =
        world.sandbox.requests().into_iter().find(|request| request.operation == "create_pod").unwrap();
    let body = create.body.unwrap();
    assert_eq!(body["gpu"]["minRamPerGpu"], 26);
    assert_eq!(body["gpu"]["minVcpuCountPerGpu"], 3);
    assert_eq!((body["gpu"]["count"].as_u64(), body["disk"].as_u64()), (Some(2), Some(70)));
    assert_eq!(body["image"], "runpod/base:1.4.1-cuda1281-ubuntu2204");
    assert!(body["dataCenterIds"][0].as_str().unwrap().starts_with("US-"), "{body}");
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}
