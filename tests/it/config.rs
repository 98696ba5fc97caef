//! The config file: defaults, slips, secrets that are never shown.

use crate::support::World;

#[tokio::test(flavor = "multi_thread")]
async fn slips_are_named_with_file_line_and_nearest_key() {
    let world = World::new().await;
    for (text, line, says) in [
        ("[defaults]\nregoin = \"S3CRET\"\n", 5, "region"),
        ("[default]\nregion = \"S3CRET\"\n", 4, "defaults"),
        ("[runpod]\napi-key = \"S3CRET\"\n", 5, "api_key"),
        ("[defaults]\ndisk = \"S3CRET\"\n", 5, "disk"),
        ("[defaults]\nmax_price = \"S3CRET\"\n", 5, "max_price"),
        ("[defaults]\ncuda = \"S3CRET\"\n", 5, "cuda"),
        ("[ssh]\nmanage_config = \"S3CRET\"\n", 5, "manage_config"),
        ("[account.\"aws/S3CRET\"]\napi_key = \"S3CRET\"\n", 4, "account"),
        ("[runpod]\napi_key = S3CRET\n", 5, ""),
        ("[runpod]\napi_key = \"S3CRET\n", 5, ""),
        ("[runpod\napi_key = \"S3CRET\"\n", 4, ""),
        ("rpa_S3CRETS3CRETS3CRET = 1\n", 4, ""),
    ] {
        world.config(text);
        for command in ["offers", "ls", "provision --gpus L4 --name dev", "rm dev --yes"] {
            let ran = world.run(&format!("-vv {command}")).await;
            assert_eq!(ran.code, 2, "{text}: {ran:?}");
            let told = format!("{}{}", ran.stdout, ran.stderr);
            assert!(told.contains("config.toml") && told.contains(&format!("line {line}")), "{text}: {told}");
            assert!(told.contains(says) && !told.contains("S3CRET"), "{text}: {told}");
        }
    }
    assert_eq!(world.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_are_used_and_flags_win() {
    let world = World::new().await;
    world.config(
        "[defaults]\ngpus = [\"RTX4090\"]\nregion = \"EU\"\ndisk = 100\nmax_price = 0.5\ncuda = 12.8\nsecure = false\nimage = \"me/default:1\"\n[runpod]\nimage = \"me/runpod:1\"\n",
    );
    let (_, document) = world.json("offers").await;
    let offers = document["offers"].as_array().unwrap();
    assert!(!offers.is_empty(), "{document:#}");
    for offer in offers {
        assert_eq!(
            (offer["gpu"].as_str(), offer["continent"].as_str(), offer["disk_gb"].as_f64()),
            (Some("RTX4090"), Some("europe"), Some(100.0))
        );
        assert!(offer["price_per_hour"].as_f64().unwrap() <= 0.5 && offer["cuda"] == "12.8");
    }
    let (_, document) =
        world.json("offers --gpus L4 --region US --disk 20 --max-price 9 --secure --cuda 12.9").await;
    assert_eq!(document["total"], 0, "L4 in the US has CUDA 12.8 only");
    let (_, document) = world.json("offers --gpus L4 --region US --disk 20 --max-price 9 --secure").await;
    let offer = &document["offers"][0];
    assert_eq!(
        (offer["gpu"].as_str(), offer["country"].as_str(), offer["disk_gb"].as_f64()),
        (Some("L4"), Some("US"), Some(20.0))
    );
    // An exact type given as a flag takes the place of default GPUs.
    let (_, document) = world.json("offers --instance-type NVIDIA --region US").await;
    assert_eq!(document["error"]["kind"], "usage");
    let (code, document) = world.json("provision --dry-run").await;
    assert_eq!(
        (code, document["request"]["body"]["image"].as_str()),
        (0, Some("me/runpod:1")),
        "{document:#}"
    );
    let (_, document) = world.json("provision --dry-run --image me/flag:1").await;
    assert_eq!(document["request"]["body"]["image"], "me/flag:1");
    world.config("[defaults]\ngpus = [\"RTX4090\"]\nimage = \"me/default:1\"\n");
    let (_, document) = world.json("provision --dry-run").await;
    assert_eq!(document["request"]["body"]["image"], "me/default:1");
    world.config("[defaults]\ncpu_only = true\n");
    assert_eq!(world.json("offers --gpus L4").await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_that_cannot_be_honoured_is_dropped_with_a_note() {
    let world = World::new().await;
    world.config("[defaults]\ncloud = [\"nebius\", \"runpod\", \"gcp/research\"]\nspot = true\nport = [8080]\nk8s = true\n");
    for command in ["offers --gpus RTX4090", "provision --dry-run --gpus RTX4090"] {
        let (code, document) = world.json(command).await;
        assert_eq!((code, document["offers"].as_array().unwrap().len()), (0, 4), "{document:#}");
        let notes = document["warnings"].to_string();
        for word in [
            "`nebius` of `defaults.cloud`",
            "`gcp/research` of `defaults.cloud`",
            "defaults.spot",
            "defaults.port",
        ] {
            assert!(notes.contains(word), "{word}: {notes}");
        }
        assert_eq!(document["skipped"], serde_json::json!([]));
    }
    // As flags the same are refused.
    for (flags, code) in [("--cloud gcp,runpod", 4), ("--spot", 2), ("--port 8080", 2), ("--k8s", 2)] {
        assert_eq!(world.json(&format!("offers --gpus RTX4090 {flags}")).await.0, code, "{flags}");
    }
    world.config("[defaults]\ncloud = [\"nebius\"]\n");
    let (code, document) = world.json("offers").await;
    assert_eq!((code, document["error"]["kind"].as_str()), (4, Some("no_account")), "{document:#}");
    // `defaults.cloud` narrows only offers and provision.
    assert_eq!(world.run("ls").await.code, 0);
    assert_eq!(world.json("offers --cloud runpod --gpus L4").await.0, 0);
    world.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn colour_quiet_and_log_lines() {
    let mut world = World::new().await;
    world.config("[defaults]\nspot = true\n");
    let plain = world.run("offers --gpus FOO9").await;
    assert!(
        !plain.stderr.contains('\u{1b}') && plain.stderr.contains("note:") && plain.stderr.contains("error:")
    );
    let always = world.run("offers --gpus FOO9 --color always").await;
    assert!(always.stderr.contains("\u{1b}["), "{:?}", always.stderr);
    let never = world.run("--color never offers --gpus FOO9").await;
    assert!(!never.stderr.contains('\u{1b}'));
    world.set("NO_COLOR", "1");
    assert!(!world.run("offers --gpus FOO9").await.stderr.contains('\u{1b}'));
    world.unset("NO_COLOR");

    let quiet = world.run("-q offers --gpus RTX4090").await;
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""), "{quiet:?}");
    assert_eq!(quiet.stdout.lines().count(), 5);
    let quiet = world.run("-q offers --gpus FOO9").await;
    assert!(quiet.code == 2 && quiet.stderr.starts_with("error:"), "{quiet:?}");

    let key = world.sandbox.runpod_key().to_owned();
    for flags in ["-v", "-vv", "-vvv"] {
        let loud = world.run(&format!("{flags} provision --gpus RTX4090 --dry-run --env TOKEN=S3CRET")).await;
        let told = format!("{}{}", loud.stdout, loud.stderr);
        assert!(!told.contains(&key) && !told.contains("S3CRET"), "{told}");
    }
    let debug = world.run("-vv offers --gpus RTX4090").await;
    assert!(debug.stderr.contains("/v2/catalog/gpus"), "{}", debug.stderr);
    world.set("GPUPROV_LOG", "trace,hyper=trace,reqwest=trace,hyper_util=trace,rustls=trace");
    let traced = world.run("offers --gpus RTX4090").await;
    assert!(traced.stderr.contains("/v2/catalog/gpus") && !traced.stderr.contains(&key), "{}", traced.stderr);
    assert!(
        !traced.stderr.contains("hyper") && !traced.stderr.to_lowercase().contains("bearer"),
        "{}",
        traced.stderr
    );
    world.unset("GPUPROV_LOG");
    world.set("RUST_LOG", "trace");
    let calm = world.run("offers --gpus RTX4090").await;
    assert!(!calm.stderr.contains("/v2/catalog"), "{}", calm.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_file_elsewhere() {
    let mut world = World::new().await;
    world.write("other.toml", "[defaults]\ndisk = 200\n");
    let (_, document) = world.json("offers --gpus L4 --config other.toml").await;
    assert_eq!(document["offers"][0]["disk_gb"], 200);
    world.set("GPUPROV_CONFIG", world.home().join("other.toml"));
    let (_, document) = world.json("offers --gpus L4").await;
    assert_eq!(document["offers"][0]["disk_gb"], 200);
    world.set("GPUPROV_CONFIG", world.home().join("missing.toml"));
    assert_eq!(world.run("offers").await.code, 2);
    world.unset("GPUPROV_CONFIG");
    world.set("XDG_CONFIG_HOME", world.home().join("xdg"));
    world.write("xdg/gpuprov/config.toml", "[defaults]\ndisk = 300\n");
    let (_, document) = world.json("offers --gpus L4").await;
    assert_eq!(document["offers"][0]["disk_gb"], 300);
    // Nothing is read from the working directory.
    world.set("XDG_CONFIG_HOME", world.home().join("none"));
    world.write("config.toml", "nonsense");
    world.write("gpuprov.toml", "nonsense");
    assert_eq!(world.run("offers --gpus L4").await.code, 0);
}
