//! The README's first command does what the README says, and leaves nothing behind.

use std::path::{Path, PathBuf};

use crate::support::{World, finish};

/// The first command without cargo in front of it.
fn first_command() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let line = readme.lines().find_map(|line| line.strip_prefix("cargo run --release -- "));
    line.expect("the README has a first command").to_owned()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Programs that still run with this HOME.
#[cfg(target_os = "linux")]
fn running_in(home: &Path) -> Vec<String> {
    let wanted = format!("HOME={}", home.display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let ours = processes.filter(|process| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    });
    ours.map(|process| std::fs::read_to_string(process.join("cmdline")).unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_command_works_and_leaves_nothing() {
    let mut world = World::new().await;
    // As on a fresh computer: no key, no configuration.
    world.unset("RUNPOD_API_KEY");
    world.unset("GPUPROV_RUNPOD_ENDPOINT");
    std::fs::remove_dir_all(world.home().join(".config")).unwrap();

    let mut shell = world.program("sh");
    shell.args(["-c", &format!("exec '{}' {}", env!("CARGO_BIN_EXE_gpuprov"), first_command())]);
    let ran = finish(shell).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in ["$/HOUR", "\ndev\n", "gpuprov sandbox: these GPUs do not exist", "NVIDIA GeForce RTX 4090"] {
        assert!(ran.stdout.contains(part), "{part} is missing: {}", ran.stdout);
    }
    assert!(ran.stderr.contains("dev is gone; it cost $"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("still running"), "{}", ran.stderr);

    #[cfg(target_os = "linux")]
    assert_eq!(running_in(world.home()), Vec::<String>::new());
    let left: Vec<String> = files_below(world.home())
        .iter()
        .map(|path| path.strip_prefix(world.home()).unwrap().display().to_string())
        .filter(|path| !path.starts_with("machines/"))
        .collect();
    let expected =
        [".ssh/config", ".ssh/gpuprov/.lock", ".ssh/gpuprov/id_ed25519", ".ssh/gpuprov/id_ed25519.pub"];
    assert_eq!(left, expected);
    world.assert_empty();
}
