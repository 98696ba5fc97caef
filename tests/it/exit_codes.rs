//! Exit codes of commands that make nothing.

use gpuprov::sandbox::{Fault, FaultKind, When};

use crate::support::World;

fn problem(code: u16, detail: &str) -> FaultKind {
    let body = serde_json::json!({"title": "T", "status": code, "detail": detail}).to_string();
    FaultKind::Status { code, when: When::Before, body: Some(body), content_type: None, headers: Vec::new() }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_answers() {
    let world = World::new().await;
    for (fault, code, kind) in [
        (problem(401, "missing bearer token"), 4, "auth"),
        (problem(403, "Access to the requested resource was denied."), 4, "forbidden"),
        (problem(404, "resource not found"), 1, "not_found"),
        (problem(410, "gone"), 1, "rejected"),
        (problem(418, "tea"), 1, "rejected"),
    ] {
        world.sandbox.clear_faults();
        world.sandbox.add_fault(Fault::on_path("GET", "/v2/", fault).always());
        for command in [
            "offers --gpus RTX4090",
            "provision --gpus RTX4090 --name dev",
            "provision --gpus RTX4090 --dry-run",
        ] {
            let (got, document) = world.json(command).await;
            assert_eq!(
                (got, document["error"]["kind"].as_str()),
                (code, Some(kind)),
                "{command}: {document:#}"
            );
            let failed = &document["failed"][0];
            assert_eq!(
                (failed["account"].as_str(), failed["kind"].as_str()),
                (Some("runpod/default"), Some(kind)),
                "{document:#}"
            );
        }
    }
    assert_eq!(world.creates(), 0);
    world.sandbox.clear_faults();
    assert_eq!(world.run("ls --json").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_accounts_answers() {
    let world = World::new().await;
    let lab = world.sandbox.add_runpod_account();
    world.config(&format!("[account.\"runpod/lab\"]\napi_key = \"{lab}\"\n[account.\"runpod/old\"]\napi_key = \"rpa_not_a_key_any_more\"\n"));
    let (code, document) = world.json("offers --gpus RTX4090").await;
    assert_eq!((code, document["total"].as_u64()), (0, Some(8)), "{document:#}");
    assert_eq!(
        (document["failed"][0]["account"].as_str(), document["failed"][0]["kind"].as_str()),
        (Some("runpod/old"), Some("auth"))
    );
    let warned = document["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .any(|warning| warning["kind"] == "auth" && warning["account"] == "runpod/old");
    assert!(warned, "{document:#}");
    let plain = world.run("offers --gpus RTX4090").await;
    assert!(plain.code == 0 && plain.stderr.contains("warning: runpod/old:"), "{plain:?}");
    assert_eq!(world.run("offers --cloud runpod/old").await.code, 4);
    // One refused, the other out of order: not all were refused.
    world.sandbox.add_fault(
        Fault::on("catalog", problem(404, "no"))
            .always()
            .account(&world.sandbox.runpod_account(&lab).unwrap()),
    );
    let (code, document) = world.json("offers --cloud runpod/old,runpod/lab").await;
    assert_eq!((code, document["failed"].as_array().unwrap().len()), (1, 2), "{document:#}");
    let plain = world.run("offers --cloud runpod/old,runpod/lab").await;
    assert!(
        plain.stderr.contains("warning: runpod/old:") && plain.stderr.contains("runpod/lab"),
        "{plain:?}"
    );
    let made = world.run("provision --gpus RTX4090 --name dev").await;
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_to_be_had() {
    let world = World::new().await;
    for (flags, kind) in [
        ("--gpus B200", "nothing_offered"),
        ("--gpus A100", "nothing_offered"),
        ("--gpus RTX4090 --max-price 0.1", "too_dear"),
        ("--gpus RTX4090 --max-price 0", "too_dear"),
        ("--gpus RTX4090 --vram 80", "nothing_offered"),
        ("--gpus RTX4090:9", "nothing_offered"),
    ] {
        let (code, document) = world.json(&format!("offers {flags}")).await;
        assert_eq!((code, document["total"].as_u64()), (0, Some(0)), "{flags}");
        for more in ["", " --dry-run"] {
            let (code, document) = world.json(&format!("provision {flags}{more}")).await;
            assert_eq!(
                (code, document["error"]["kind"].as_str()),
                (3, Some(kind)),
                "{flags}{more}: {document:#}"
            );
        }
    }
    let empty = world.run("offers --gpus RTX4090 --max-price 0.1").await;
    assert_eq!(empty.stdout, "");
    assert!(
        empty.stderr.contains("without `--max-price`") && empty.stderr.contains("$0.3469/h"),
        "{}",
        empty.stderr
    );
    let plain = world.run("provision --gpus RTX4090 --max-price 0.1 --name dev").await;
    assert!(
        plain.stderr.contains("error: every offer is above") && plain.stderr.contains("\nhint: "),
        "{}",
        plain.stderr
    );
    // Every create refused for capacity is 3, every one found wrong is 1.
    world.sandbox.add_fault(
        Fault::on("create_pod", problem(400, "There are no instances currently available")).always(),
    );
    assert_eq!(world.run("provision --gpus RTX4090 --name dev").await.code, 3);
    world.sandbox.clear_faults();
    world.sandbox.add_fault(Fault::on("create_pod", problem(400, "objectMounts is not defined")).always());
    let (code, document) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, document["error"]["kind"].as_str()), (1, Some("rejected")), "{document:#}");
    world.sandbox.clear_faults();
    world.sandbox.add_fault(Fault::on("create_pod", problem(402, "Insufficient balance")).always());
    let (code, document) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, document["error"]["kind"].as_str()), (3, Some("balance")), "{document:#}");
    world.sandbox.clear_faults();
    world.sandbox.add_fault(Fault::on("create_pod", problem(401, "missing bearer token")).always());
    assert_eq!(world.run("provision --gpus RTX4090 --name dev").await.code, 4);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_before_anything_costs() {
    let mut world = World::new().await;
    world.config("[defaults]\nask_above = 0.3\n");
    let (code, document) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, document["error"]["kind"].as_str()), (2, Some("refused")), "{document:#}");
    assert_eq!(world.run("provision --gpus RTX4090 --dry-run").await.code, 0);
    world.config("");
    let path = world.home().join("empty-path");
    std::fs::create_dir(&path).unwrap();
    let usual = std::env::var_os("PATH").unwrap();
    world.set("PATH", &path);
    let ran = world.run("provision --gpus RTX4090 --name dev").await;
    assert!(ran.code == 2 && ran.stderr.contains("`ssh`"), "{ran:?}");
    world.set("PATH", usual);
    world.write(".ssh/config", "Host dev other\n  HostName example.com\n");
    let (code, document) = world.json("provision --gpus RTX4090 --name dev").await;
    assert_eq!((code, document["error"]["kind"].as_str()), (2, Some("name_taken")), "{document:#}");
    world.write("in-the-way", "a file");
    world.set("GPUPROV_STATE_DIR", world.home().join("in-the-way/state"));
    let ran = world.run("provision --gpus RTX4090 --name other-1").await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(world.creates(), 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn help_and_version() {
    let world = World::new().await;
    for command in [
        "--help",
        "offers --help",
        "provision --help",
        "ssh --help",
        "ls --help",
        "rm --help",
        "sandbox --help",
        "--version",
        "-V",
    ] {
        let ran = world.run(command).await;
        assert!(ran.code == 0 && ran.stderr.is_empty() && !ran.stdout.is_empty(), "{command}: {ran:?}");
        for line in ran.stdout.lines() {
            assert!(line.chars().count() <= 100, "{command}: {line}");
        }
    }
    let provision = world.run("provision --help").await.stdout;
    for flag in [
        "--gpus",
        "--cpu-only",
        "--cloud",
        "--region",
        "--zone",
        "--instance-type",
        "--spot",
        "--secure",
        "--disk",
        "--ram",
        "--vcpus",
        "--vram",
        "--cuda",
        "--max-price",
        "--image",
        "--port",
        "--k8s",
        "--no-k8s",
        "--cloud-timeout",
        "--ssh-key",
        "--env",
        "--env-file",
        "--startup-script",
        "--queue",
        "--boot-timeout",
        "--attempts",
        "--wait",
        "--ttl",
        "--keep-failed",
        "--name",
        "--offer",
        "--yes",
        "--dry-run",
        "--json",
        "--config",
        "--sandbox",
        "--color",
        "--quiet",
        "--verbose",
    ] {
        assert!(
            provision.contains(&format!("{flag} "))
                || provision.contains(&format!("{flag}\n"))
                || provision.contains(&format!("{flag}["))
                || provision.contains(&format!("{flag}...")),
            "{flag}"
        );
    }
    assert_eq!(world.run("").await.code, 2);
    assert_eq!(world.run("nonsense").await.code, 2);
}
