//! The key and the user's own secrets appear nowhere but where they must be.

use std::collections::BTreeSet;
use std::path::Path;

use gpuprov::sandbox::{Fault, FaultKind, When};

use crate::support::{Ran, World, ended};

/// A value of `--env`, which the machine must get and nobody else.
const VALUE: &str = "hf-wfhsdkfjhsdkjfh3487";

/// Looks for the secrets in every file below a folder, names included; machines' homes and the sandbox are left out.
fn search(folder: &Path, secrets: &[&str], hits: &mut Vec<String>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            search(&path, secrets, hits);
            continue;
        }
        let mut bytes = std::fs::read(&path).unwrap_or_default();
        bytes.extend_from_slice(path.to_str().unwrap().as_bytes());
        for secret in secrets {
            if bytes.windows(secret.len()).any(|part| part == secret.as_bytes()) {
                hits.push(path.display().to_string());
            }
        }
    }
}

/// Processes that have a secret among their arguments, or the key in their environment without being the command itself
/// (which `gpuprov ssh` replaces by the user's own ssh, as if the user had typed it).
fn processes(command: Option<u32>, secrets: &[&str], hits: &mut BTreeSet<String>) {
    let (me, command) = (std::process::id().to_string(), command.map(|id| id.to_string()));
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        if !id.bytes().all(|byte| byte.is_ascii_digit()) || id == me {
            continue;
        }
        let read = |file: &str| {
            let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let (words, environment) = (read("cmdline"), read("environ"));
        let program = words.split(' ').next().unwrap_or_default().to_owned();
        if secrets.iter().any(|secret| words.contains(secret)) {
            hits.insert(format!("arguments of {program}"));
        }
        // Between fork and exec a child still looks like its parent, arguments included.
        let is_command = command.as_ref() == Some(&id);
        if !is_command
            && !program.ends_with("gpuprov")
            && !words.is_empty()
            && environment.contains(secrets[0])
        {
            hits.insert(format!("environment of {words}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_nowhere() {
    let mut world = World::new().await;
    world.set("GPUPROV_LOG", "trace");
    world.set("HF_TOKEN", VALUE);
    world.write("script.sh", "sleep 0.3\n");
    let key = world.sandbox.runpod_key().to_owned();
    let secrets = [key.as_str(), VALUE];
    let mut runs: Vec<(String, Ran)> = Vec::new();
    let mut hits = BTreeSet::new();
    let make = "-vv provision --gpus RTX4090:1 --name dev --env HF_TOKEN --startup-script script.sh --cloud-timeout 1s";
    let lines = [
        "-vv offers --gpus any --json",
        "-vv provision --gpus RTX4090:1 --dry-run --env HF_TOKEN",
        make,
        "-vvv ls",
        "-vv ls --json --all",
        "-vv ssh dev true",
        "-vv rm dev --yes",
    ];
    for line in lines {
        let child = world.start(line);
        let id = child.id();
        let wait = ended(child);
        tokio::pin!(wait);
        let ran = loop {
            tokio::select! {
                ran = &mut wait => break ran,
                () = tokio::time::sleep(std::time::Duration::from_millis(15)) => processes(id, &secrets, &mut hits),
            }
        };
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        runs.push((line.to_owned(), ran));
    }
    // Only the create ever sends the value.
    let sent = |operation| if operation == "create_pod" { VALUE } else { "nothing" };
    // Failures, whose words come from elsewhere: a cloud that repeats what it was sent, in every form of an error.
    let echo = |code, operation| FaultKind::Status {
        code,
        when: When::Before,
        body: Some(format!(
            "{{\"title\":\"Bad\",\"detail\":\"token {key} with {} is odd\"}}",
            sent(operation)
        )),
        content_type: None,
        headers: vec![("x-echo".to_owned(), key.clone())],
    };
    for (operation, line) in [
        ("catalog", "-vv offers --gpus RTX4090 --json"),
        ("create_pod", make),
        ("list_pods", "-vv ls --json"),
    ] {
        for code in [400, 401, 403, 500] {
            world.sandbox.add_fault(Fault::on(operation, echo(code, operation)).always());
            runs.push((format!("{line} ({code})"), world.run(line).await));
            world.sandbox.clear_faults();
            runs.push(("rm".to_owned(), world.run("-vv rm --all --yes").await));
        }
    }
    world.assert_empty();
    for (line, ran) in &runs {
        for secret in secrets {
            assert!(!ran.stdout.contains(secret), "{line}: {}", ran.stdout);
            assert!(!ran.stderr.contains(secret), "{line}: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("panicked"), "{line}: {}", ran.stderr);
    }
    // At this level there is something to be found at all.
    assert!(runs[0].1.stderr.contains("DEBUG"), "{}", runs[0].1.stderr);
    assert!(hits.is_empty(), "{hits:?}");
    let mut files = Vec::new();
    for folder in [".local", ".cache", ".config", ".ssh"] {
        let folder = world.home().join(folder);
        if folder.exists() {
            search(&folder, &secrets, &mut files);
        }
    }
    assert!(files.is_empty(), "{files:?}");
    // The environment of the machine got the value, or the search for it would prove nothing.
    assert!(world.sandbox.ledger().iter().any(|entry| entry.env.values().any(|value| value == VALUE)));
}

#[tokio::test(flavor = "multi_thread")]
async fn connected_keys_are_nowhere_but_sealed() {
    let mut world = World::new().await;
    world.with_vast();
    world.with_verda();
    world.set("GPUPROV_LOG", "trace");
    let (runpod, vast) = (world.sandbox.runpod_key().to_owned(), world.sandbox.vast().key().to_owned());
    let verda = world.sandbox.verda().client_secret().to_owned();
    let wrong = "wrong-S3cret-0123456789abcdef";
    let id = world.sandbox.verda().client_id().to_owned();
    let secrets = [runpod.as_str(), &vast, &verda, wrong];
    for variable in ["RUNPOD_API_KEY", "VAST_API_KEY", "VERDA_CLIENT_ID", "VERDA_CLIENT_SECRET"] {
        world.unset(variable);
    }
    let set_verda = format!("-vv clouds set verda --client-id {id} --client-secret -");
    let (mut runs, mut hits) = (Vec::new(), BTreeSet::new());
    for (line, input, code) in [
        ("-vv clouds set runpod --api-key -", runpod.as_str(), 0),
        ("-vv clouds set vast --api-key - --json", &vast, 0),
        ("-vv clouds set vast --name bad --api-key -", wrong, 4),
        ("-vv clouds set vast --name bad --api-key - --no-check", wrong, 0),
        (&set_verda, &verda, 0),
        ("-vv clouds", "", 0),
        ("-vv clouds check --json", "", 1),
        ("-vv clouds off vast/bad", "", 0),
        ("-vv offers --gpus H100:1 --json", "", 0),
        ("-vv provision --gpus RTX4090:1 --cloud runpod --name dev", "", 0),
        ("-vv rm dev --yes", "", 0),
        ("-vv audit --json", "", 0),
        ("-vv doctor --json", "", 1),
        ("-vv clouds rm vast/bad", "", 0),
    ] {
        let mut command = world.gpuprov(line.split_whitespace());
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, input.as_bytes()).await.unwrap();
        drop(stdin);
        let id = child.id();
        let wait = ended(child);
        tokio::pin!(wait);
        let ran = loop {
            tokio::select! {
                ran = &mut wait => break ran,
                () = tokio::time::sleep(std::time::Duration::from_millis(15)) => processes(id, &secrets, &mut hits),
            }
        };
        assert_eq!(ran.code, code, "{line}: {ran:?}");
        runs.push((line.to_owned(), ran));
    }
    for (line, ran) in &runs {
        for secret in secrets {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{line}: {ran:?}");
        }
    }
    assert!(runs.iter().any(|(_, ran)| ran.stderr.contains("DEBUG")), "{runs:?}");
    assert!(hits.is_empty(), "{hits:?}");
    let mut files = Vec::new();
    search(&world.home().join(".local"), &secrets, &mut files);
    for folder in [".cache", ".config", ".ssh"] {
        if world.home().join(folder).exists() {
            search(&world.home().join(folder), &secrets, &mut files);
        }
    }
    assert!(files.is_empty(), "{files:?}");
    // The sealed accounts were among what was searched.
    assert!(world.home().join(".local/share/gpuprov/accounts/verda/default.json").exists());
    world.assert_empty();
}
