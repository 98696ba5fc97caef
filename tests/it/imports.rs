//! The shape of the house, held: which part imports which, what only the command line may do, and how long a file may be.

use std::path::{Path, PathBuf};

/// Which of our parts a part may import, itself left out. `docs/design.md` draws it.
const MAY: [(&str, &[&str]); 11] = [
    ("model", &[]),
    ("http", &["model"]),
    ("grpc", &["model", "http"]),
    ("cloud", &["model", "http", "grpc"]),
    ("plan", &["model", "cloud"]),
    ("state", &["model"]),
    ("ssh", &["model"]),
    ("cluster", &["model", "ssh", "state"]),
    ("accounts", &["model", "cloud", "state", "http", "grpc"]),
    ("provision", &["model", "cloud", "plan", "state", "ssh", "cluster"]),
    ("sandbox", &[]),
];

/// What nothing below the command line may do, and the few places that may.
const ONLY_CLI: [(&str, &[&str]); 12] = [
    // Folders of PATH are split and joined here; the variables themselves come from the captured environment.
    ("std::env", &["state/env.rs", "ssh/program.rs"]),
    ("env::var(", &[]),
    ("env::vars(", &[]),
    ("set_current_dir", &[]),
    ("current_dir()", &[]),
    ("println!", &[]),
    ("print!(", &[]),
    ("process::exit", &[]),
    ("is_terminal", &[]),
    ("tokio::signal", &[]),
    ("io::stdout", &[]),
    ("io::stdin", &[]),
];

const LONGEST: usize = 420;

struct Source {
    /// Relative to `src`, with slashes.
    name: String,
    text: String,
}

impl Source {
    /// The part of the house that the file belongs to; none for `lib.rs` and `main.rs`.
    fn part(&self) -> Option<&str> {
        self.name.split_once('/').map(|(part, _)| part)
    }

    /// The lines that are code, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// What follows every `crate::` in the code, `use crate::{a, b}` included, as `a::b...`.
    fn crate_paths(&self) -> Vec<(usize, String)> {
        let mut paths = Vec::new();
        for (line, code) in self.code() {
            for (at, _) in code.match_indices("crate::") {
                let before = code[..at].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                    continue;
                }
                let rest = &code[at + "crate::".len()..];
                match rest.strip_prefix('{') {
                    Some(group) => {
                        let group = group.split('}').next().unwrap_or_default();
                        paths.extend(group.split(',').map(|path| (line, path.trim().to_owned())));
                    }
                    None => paths.push((line, path_of(rest))),
                }
            }
        }
        paths
    }
}

fn path_of(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect()
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                sources.push(Source { name, text: std::fs::read_to_string(&path).unwrap() });
            }
        }
    }
    assert!(sources.len() > 100, "only {} files found", sources.len());
    sources
}

fn report(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn imports_go_down_only() {
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(part) = source.part() else { continue };
        let paths = source.crate_paths();
        for (line, path) in paths {
            let target = path.split("::").next().unwrap_or_default();
            let allowed = match part {
                "cli" => target != "sandbox" || source.name.starts_with("cli/sandbox"),
                _ => {
                    let (_, may) = MAY.iter().find(|(name, _)| *name == part).unwrap_or_else(|| {
                        panic!("`{part}` is a new part: say in `MAY` and docs/design.md what it imports")
                    });
                    target == part || may.contains(&target)
                }
            };
            // Of `model` the layers under the clouds know the secret alone.
            let secret_only = part == "http" && target == "model" && !path.starts_with("model::secret");
            if !allowed || secret_only {
                wrong.push(format!("src/{}:{line}: {part} imports {path}", source.name));
            }
        }
    }
    report("imports against the table", &wrong);
}

#[test]
fn no_chain_of_supers_leaves_its_part() {
    let mut wrong = Vec::new();
    for source in sources() {
        let depth = source.name.trim_end_matches("/mod.rs").split('/').count();
        for (line, code) in source.code() {
            for (at, _) in code.match_indices("super::") {
                let supers = code[at..].split("::").take_while(|word| *word == "super").count();
                if !code[..at].ends_with("::") && supers >= depth && source.part().is_some() {
                    wrong.push(format!("src/{}:{line}: {}", source.name, code.trim()));
                }
            }
        }
    }
    report("paths that climb out of their part", &wrong);
}

#[test]
fn one_cloud_never_knows_another() {
    const CLOUDS: [&str; 5] = ["runpod", "vast", "verda", "gcp", "nebius"];
    let mut wrong = Vec::new();
    for source in sources() {
        for folder in ["cloud", "sandbox"] {
            let Some(own) =
                CLOUDS.iter().find(|cloud| source.name.starts_with(&format!("{folder}/{cloud}/")))
            else {
                continue;
            };
            for other in CLOUDS.iter().filter(|other| *other != own) {
                for (line, code) in source.code() {
                    if code.contains(&format!("{folder}::{other}"))
                        || code.contains(&format!("super::{other}"))
                    {
                        wrong.push(format!("src/{}:{line}: {}", source.name, code.trim()));
                    }
                }
            }
        }
    }
    report("one cloud's folder names another's", &wrong);
}

#[test]
fn only_the_command_line_meets_the_world() {
    let mut wrong = Vec::new();
    for source in sources() {
        let is_test = source.name.ends_with("tests.rs") || source.name.contains("/tests/");
        if is_test || matches!(source.part(), Some("cli") | None) {
            continue;
        }
        for (line, code) in source.code() {
            for (word, except) in ONLY_CLI {
                if code.contains(word) && !except.contains(&source.name.as_str()) {
                    wrong.push(format!("src/{}:{line}: {}", source.name, code.trim()));
                }
            }
            if code.contains("Env::capture") {
                wrong.push(format!("src/{}:{line}: {}", source.name, code.trim()));
            }
        }
    }
    report("below cli there is no environment, terminal, signal or exit", &wrong);
}

#[test]
fn no_file_is_too_long() {
    let long = sources().into_iter().map(|source| (source.text.lines().count(), source.name));
    let long: Vec<String> = long
        .filter(|(lines, _)| *lines > LONGEST)
        .map(|(lines, name)| format!("src/{name}: {lines}"))
        .collect();
    report("files over 420 lines", &long);
}

#[test]
fn the_reader_of_imports_sees_what_it_must() {
    let source = |text: &str| Source { name: "model/x.rs".to_owned(), text: text.to_owned() };
    let paths = |text: &str| source(text).crate_paths().into_iter().map(|(_, path)| path).collect::<Vec<_>>();
    assert_eq!(paths("use crate::cli::output;"), ["cli::output"]);
    assert_eq!(paths("    let x = crate::state::env::HOME;"), ["state::env::HOME"]);
    assert_eq!(paths("use crate::{cli, http};"), ["cli", "http"]);
    assert_eq!(paths("// use crate::cli;\n/// [`crate::cli`]"), Vec::<String>::new());
    assert_eq!(paths("use my_crate::cli;"), Vec::<String>::new());
}
