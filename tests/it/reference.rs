//! `docs/reference.md` and the tables of limits in `docs/clouds/` are what the program says of itself.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gpuprov::cloud::capabilities::{Capabilities, Support};

fn page(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1")
}

#[test]
fn the_reference_is_up_to_date() {
    let path = page("docs/reference.md");
    let now = gpuprov::cli::reference::reference();
    if is_update() {
        std::fs::write(&path, &now).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = page.lines().zip(now.lines()).find(|(old, new)| old != new);
    assert!(
        page == now,
        "docs/reference.md is out of date: `UPDATE_DOCS=1 cargo test --test it reference` writes it; first difference: {lines:?}"
    );
}

const BEGIN: &str = "<!-- from the program: begin -->\n";
const END: &str = "<!-- from the program: end -->\n";

fn limits(can: &Capabilities) -> String {
    let word = |support: Support| match support {
        Support::Yes => "yes".to_owned(),
        Support::Note(why) => format!("accepted with a note: {why}"),
        Support::No(why) => format!("refused: {why}"),
    };
    let cluster = match can.cluster {
        Support::No(why) => format!("refused: {why}; the default cluster is left out with a note"),
        other => word(other),
    };
    let mut table = String::from("| limit | |\n|---|---|\n");
    let mut row = |what: &str, how: String| writeln!(table, "| {what} | {how} |").unwrap();
    row("`--spot`", word(can.spot));
    row("`--cpu-only`", word(can.cpu_only));
    row("`--image`", word(can.image));
    row("`--port N`", word(can.ports));
    row("`--port N@CIDR`", word(can.port_cidr));
    row("`--k8s`", cluster);
    row("smallest disk", format!("{} GB", can.min_disk_gb));
    row("from the create to a login, unless `--boot-timeout` says otherwise", time(can.boot_budget));
    if !can.own_image_extra.is_zero() {
        row("the same with `--image`", time(can.boot_budget + can.own_image_extra));
    }
    let looks = match can.poll.first == can.poll.then {
        true => format!("every {}", time(can.poll.then)),
        false => format!(
            "every {} for {}, then every {}",
            time(can.poll.first),
            time(can.poll.first_for),
            time(can.poll.then)
        ),
    };
    row("looks at a machine on its way up", looks);
    row("a create without an answer is looked for", time(can.listing_lag));
    row("\"permission denied\" is waited out", time(can.key_grace));
    table
}

fn time(time: std::time::Duration) -> String {
    match time.as_secs() {
        seconds if seconds > 0 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[test]
fn the_limits_of_every_cloud_are_up_to_date() {
    use gpuprov::cloud::{gcp, nebius, runpod, vast, verda};
    for can in [
        gcp::capabilities(),
        nebius::capabilities(),
        runpod::capabilities(),
        vast::capabilities(),
        verda::capabilities(),
    ] {
        let path = page(&format!("docs/clouds/{}.md", can.cloud));
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) =
            text.split_once(BEGIN).unwrap_or_else(|| panic!("no table in {}", path.display()));
        let (table, after) = rest.split_once(END).unwrap();
        let now = limits(&can);
        if is_update() {
            std::fs::write(&path, format!("{before}{BEGIN}{now}{END}{after}")).unwrap();
            continue;
        }
        assert_eq!(
            table,
            now,
            "{} is out of date: `UPDATE_DOCS=1 cargo test --test it reference` writes it",
            path.display()
        );
    }
}
