//! Every file beside this one is a module of the one test binary; one that is not listed would never run.

#[test]
fn every_file_is_listed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name != "main" {
            assert!(
                main.lines().any(|line| line == format!("mod {name};")),
                "{name} is not listed in main.rs"
            );
        }
    }
}
