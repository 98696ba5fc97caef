//! The pages: their links lead somewhere, and nothing in the repository names the place where it was built.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files of the repository, what builds leave behind left out.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if matches!(name, ".git" | "target" | "node_modules") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files
}

fn pages() -> Vec<(PathBuf, String)> {
    let pages =
        files().into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let pages: Vec<_> = pages.map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap())).collect();
    assert!(pages.len() >= 8, "only {} pages found", pages.len());
    pages
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_anchor(page: &str, wanted: &str) -> bool {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|anchor| anchor == wanted)
}

/// The text without what stands between backticks.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let parts = line.split('`').step_by(2);
            prose.push_str(&parts.collect::<Vec<_>>().join("x"));
        }
        prose.push('\n');
    }
    prose
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for (path, text) in pages() {
        let prose = without_code(&text);
        for (at, _) in prose.match_indices("](") {
            let link = prose[at + 2..].split(')').next().unwrap_or_default();
            if link.contains("://") {
                if !link.starts_with("https://") {
                    wrong.push(format!("{}: {link}", path.display()));
                }
                continue;
            }
            let (file, wanted) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let found = target.exists()
                && (wanted.is_empty()
                    || std::fs::read_to_string(&target).is_ok_and(|page| has_anchor(&page, wanted)));
            if !found {
                wrong.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_is_linked_from_the_readme_or_the_guide() {
    let front: String = ["README.md", "docs/guide.md", "docs/contributing.md", "docs/reference.md"]
        .iter()
        .map(|page| std::fs::read_to_string(root().join(page)).unwrap())
        .collect();
    for (path, _) in pages() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.starts_with(root().join("docs")) {
            assert!(front.contains(&name), "nobody finds {name}");
        }
    }
}

#[test]
fn tests_that_the_table_of_bugs_names_exist() {
    let page = std::fs::read_to_string(root().join("docs/contributing.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| B")).collect();
    assert_eq!(rows.len(), 21);
    let mut wrong = Vec::new();
    for row in rows {
        let last = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default();
        for name in last.split('`').skip(1).step_by(2).filter(|name| name.contains("::")) {
            let (file, test) = match name.strip_prefix("it::").and_then(|rest| rest.rsplit_once("::")) {
                Some((module, test)) => (format!("tests/it/{}.rs", module.replace("::", "/")), Some(test)),
                None => (format!("src/{}.rs", name.replace("::", "/")), None),
            };
            let module = file.replace(".rs", "/mod.rs");
            let text = [file, module].iter().find_map(|path| std::fs::read_to_string(root().join(path)).ok());
            let there =
                text.is_some_and(|text| test.is_none_or(|test| text.contains(&format!("fn {test}("))));
            if !there {
                wrong.push(format!("{name}: {row}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_text_names_the_place_where_it_was_built() {
    // Put together here, so that this file does not name them itself.
    let words = [
        ["/wo", "rk/"].concat(),
        ["/root/.c", "argo"].concat(),
        ["/root/.r", "ustup"].concat(),
        ["crates", ".io"].concat(),
        ["npmjs", ".org"].concat(),
        ["pypi", ".org"].concat(),
        ["pythonhosted", ".org"].concat(),
        ["deb.debian", ".org"].concat(),
        ["proxy.golang", ".org"].concat(),
    ];
    let mut wrong = Vec::new();
    for path in files() {
        // Cargo writes its own lock file, and names its index there.
        if path.file_name().is_some_and(|name| name == "Cargo.lock") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (at, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word.as_str())) {
                wrong.push(format!("{}:{}: {}", path.display(), at + 1, &line[..line.len().min(120)]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
