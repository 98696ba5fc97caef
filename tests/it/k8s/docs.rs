//! `docs/k8s.md` shows exactly what is put on machines.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The page with every block that names an asset filled from it.
fn filled(page: &str) -> (String, Vec<String>) {
    let mut text = String::new();
    let mut shown = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some(name) = line.strip_prefix("<!-- asset: ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let fence = lines.next().unwrap();
        assert!(fence.starts_with("```"), "{name}: {fence}");
        let asset = std::fs::read_to_string(root().join("src/cluster/assets").join(name)).unwrap();
        text.push_str(&format!("{fence}\n{asset}```\n"));
        assert!(lines.any(|line| line == "```"), "{name}");
        shown.push(name.to_owned());
    }
    (text, shown)
}

#[test]
fn the_page_shows_the_files_as_they_are() {
    let path = root().join("docs/k8s.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (now, mut shown) = filled(&page);
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &now).unwrap();
    } else {
        assert!(
            page == now,
            "docs/k8s.md is out of date: `UPDATE_DOCS=1 cargo test --test it k8s::docs` writes it"
        );
    }
    let mut assets: Vec<String> = std::fs::read_dir(root().join("src/cluster/assets"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assets.sort();
    shown.sort();
    assert_eq!(shown, assets, "every file is shown once");
    for pin in [
        gpuprov::cluster::pins::VERSION,
        gpuprov::cluster::pins::BINARY_AMD64,
        gpuprov::cluster::pins::INSTALLER,
    ] {
        assert!(page.contains(pin), "{pin}");
    }
}
