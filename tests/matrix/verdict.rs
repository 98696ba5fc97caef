//! What must hold: right at the end of the command, and after `ls` and `rm` as a user would run them next.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use gpuprov::sandbox::{GcpLeftKind, LedgerEntry, LeftKind, NebiusLeftKind, Recorded};
use serde_json::Value;

use crate::case::{Case, command, shown};
use crate::scenario::{Setup, Verb};
use crate::support::{Ran, World, ended};

/// The ids of the machines that exist, but for the foreign one.
pub fn ids(world: &World) -> BTreeSet<String> {
    world.sandbox.alive().into_iter().map(|entry| entry.id).collect()
}

/// What exists beside machines, and costs money or counts against a quota: disks, in the trash too, keys, firewall rules,
/// and operations that may still make something.
fn disks_and_keys(world: &World) -> Vec<String> {
    let verda = world.sandbox.verda().left();
    let verda = verda.iter().filter(|left| left.kind != LeftKind::Instance).map(ToString::to_string);
    let nebius = world.sandbox.nebius().left();
    let nebius = nebius.iter().filter(|left| left.kind != NebiusLeftKind::Instance).map(ToString::to_string);
    let gcp = world.sandbox.gcp().left();
    let gcp = gcp.iter().filter(|left| left.kind != GcpLeftKind::Instance).map(ToString::to_string);
    verda.chain(nebius).chain(gcp).collect()
}

/// The ledger in one line a machine.
pub fn ledger(world: &World) -> Vec<String> {
    let line = |entry: LedgerEntry| format!("{} {} alive={}", entry.id, entry.name, entry.alive);
    world.sandbox.ledger().into_iter().map(line).collect()
}

/// What holds of any output at any time.
pub fn always(world: &World, ran: &Ran, wrong: &mut Vec<String>) {
    for (what, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        if world.secrets().into_iter().any(|secret| text.contains(secret)) {
            wrong.push(format!("a secret is on {what}"));
        }
        if text.contains("panicked") || text.contains("RUST_BACKTRACE") {
            wrong.push(format!("a panic on {what}"));
        }
    }
    if ran.code == 101 || ran.code == 134 {
        wrong.push(format!("exit {}", ran.code));
    }
}

/// What holds when the command has ended by itself.
fn document_of(ran: &Ran, wrong: &mut Vec<String>) -> Value {
    let document: Value = match serde_json::from_str(&ran.stdout) {
        Ok(document) => document,
        Err(error) => {
            wrong.push(format!("stdout is not one JSON document: {error}"));
            return Value::Null;
        }
    };
    if document["version"] != 1 {
        wrong.push("the document has no version 1".to_owned());
    }
    if (ran.code == 0) != document["error"].is_null() {
        wrong.push(format!("exit {} and error {}", ran.code, document["error"]));
    }
    document
}

/// Judges the command itself.
pub fn judge(
    case: &Case,
    world: &World,
    ran: &Ran,
    before: &BTreeSet<String>,
    requests: &[Recorded],
    wrong: &mut Vec<String>,
) {
    let document = document_of(ran, wrong);
    let now = ids(world);
    match case.plan.verb {
        Verb::Offers | Verb::Ls => {
            if now != *before {
                wrong.push(format!("it changed what exists: {before:?} became {now:?}"));
            }
            for request in
                requests.iter().filter(|request| !case.plan.subject.reads.contains(&request.operation))
            {
                wrong.push(format!("it sent {} {}", request.method, request.path));
            }
            let allowed: &[i32] = &[0, 1, 4];
            if !allowed.contains(&ran.code) {
                wrong.push(format!("exit {} of a question", ran.code));
            }
            let rows = &document[if case.plan.verb == Verb::Ls { "machines" } else { "offers" }];
            let failed = document["failed"].as_array().is_some_and(|failed| !failed.is_empty());
            if ran.code != 0 && !failed {
                wrong.push("it failed and `failed` names no account".to_owned());
            }
            let has_rows = rows.as_array().is_some_and(|rows| !rows.is_empty());
            if case.plan.verb == Verb::Ls && !names(rows).contains("dev") {
                wrong.push("`ls` does not show dev".to_owned());
            }
            if case.plan.verb == Verb::Offers && ran.code == 0 && !has_rows && !failed {
                wrong.push("no offers, and nobody failed".to_owned());
            }
        }
        Verb::Provision => provision(case, world, ran, &document, &now, wrong),
        Verb::Rm => removal(world, ran, &document, &now, wrong),
    }
}

fn names(rows: &Value) -> BTreeSet<String> {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    rows.iter().filter_map(|row| row["name"].as_str()).map(str::to_owned).collect()
}

fn has_record(world: &World) -> bool {
    world.state().join("machines/dev.json").exists()
}

fn provision(
    case: &Case,
    world: &World,
    ran: &Ran,
    document: &Value,
    now: &BTreeSet<String>,
    wrong: &mut Vec<String>,
) {
    let tried = document["tried"].as_array().cloned().unwrap_or_default();
    let outcomes: Vec<&str> = tried.iter().filter_map(|tried| tried["outcome"].as_str()).collect();
    let machine = &document["machines"][0];
    match ran.code {
        0 => {
            if now.len() != 1 {
                wrong.push(format!("exit 0 with {} machines", now.len()));
            }
            if machine["state"] != "running" || machine["id"].as_str().is_none_or(|id| !now.contains(id)) {
                wrong.push(format!(
                    "exit 0 and the machine is {} in state {}",
                    machine["id"], machine["state"]
                ));
            }
            if outcomes.last() != Some(&"created") {
                wrong.push(format!("exit 0 and tried ends with {outcomes:?}"));
            }
        }
        6 => {
            if !has_record(world) {
                wrong.push("exit 6 without a record".to_owned());
            }
            if !ran.stderr.contains("dev") || machine["name"] != "dev" {
                wrong.push("exit 6 does not name the machine".to_owned());
            }
        }
        1 | 3 | 4 | 5 => {
            if !now.is_empty() {
                wrong.push(format!("exit {} and {now:?} exist", ran.code));
            }
            if has_record(world) {
                wrong.push(format!("exit {} and the name stays taken", ran.code));
            }
            if document["machines"].as_array().is_some_and(|machines| !machines.is_empty()) {
                wrong.push(format!("exit {} with a machine in the document", ran.code));
            }
        }
        other => wrong.push(format!("exit {other} of a provision")),
    }
    if ran.code != 6 {
        // A machine at Verda has a disk and a key; where the answer to the key's create was lost, two of one name.
        let left = disks_and_keys(world);
        // A machine at Google or Nebius has its disk.
        let most = match case.plan.subject.name {
            "verda" if ran.code == 0 => 3,
            "gcp" | "nebius" if ran.code == 0 => 1,
            _ => 0,
        };
        if left.len() > most {
            wrong.push(format!("exit {} and {left:?} exist", ran.code));
        }
    }
    let created = outcomes.iter().filter(|outcome| **outcome == "created").count();
    if created != usize::from(ran.code == 0) {
        wrong.push(format!("exit {} and tried says {outcomes:?}", ran.code));
    }
    if ran.code == 5
        && !outcomes.iter().any(|outcome| matches!(*outcome, "not_ready" | "differs" | "unknown"))
    {
        wrong.push(format!("exit 5 and tried says {outcomes:?}"));
    }
    // Whatever existed for a moment is owned up to; a refusal is a word for "nothing was made". At Vast it is not: a refused
    // create may leave a contract there, and the key may be refused after it. The audit log tells that it was removed.
    let refusals_make = case.plan.subject.name == "vast";
    let made = world.sandbox.made().len();
    let owns = |outcome: &&&str| match **outcome {
        "gone" | "dearer" => false,
        "refused" => refusals_make,
        _ => true,
    };
    let owned = outcomes.iter().filter(owns).count();
    if made > owned {
        wrong.push(format!("{made} machines were made, tried says {outcomes:?}"));
    }
    let creates = world
        .sandbox
        .requests()
        .iter()
        .filter(|request| request.operation == case.plan.subject.create)
        .count();
    if creates < made {
        wrong.push(format!("{made} machines out of {creates} creates"));
    }
}

fn removal(world: &World, ran: &Ran, document: &Value, now: &BTreeSet<String>, wrong: &mut Vec<String>) {
    match ran.code {
        0 => {
            if !now.is_empty() {
                wrong.push(format!("exit 0 and {now:?} exist"));
            }
            let left = disks_and_keys(world);
            if !left.is_empty() {
                wrong.push(format!("exit 0 and {left:?} exist"));
            }
            if has_record(world) {
                wrong.push("exit 0 and the record is still there".to_owned());
            }
            if !names(&document["removed"]).contains("dev") {
                wrong.push("exit 0 and `removed` does not name dev".to_owned());
            }
        }
        6 => {
            if document["failed"].as_array().is_none_or(Vec::is_empty) {
                wrong.push("exit 6 and `failed` is empty".to_owned());
            }
        }
        other => wrong.push(format!("exit {other} of a removal")),
    }
    for removed in document["removed"].as_array().cloned().unwrap_or_default() {
        if removed["id"].as_str().is_some_and(|id| now.contains(id)) {
            wrong.push(format!("`removed` names {}, which exists", removed["id"]));
        }
    }
}

/// Looks and cleans up as a user would, and judges what is left.
pub async fn aftermath(
    case: &Case,
    world: &World,
    program: &Path,
    succeeded: bool,
    wrong: &mut Vec<String>,
    trace: &mut Vec<String>,
) {
    // The lag of the list is over.
    world.sandbox.step(Duration::from_secs(1));
    let list = step(world, program, "ls --json", wrong, trace).await;
    if list.0 != 0 {
        wrong.push(format!("afterwards `ls` ends with {}", list.0));
    }
    let rows = list.1["machines"].as_array().cloned().unwrap_or_default();
    let alive = ids(world);
    let mut shown_ids: BTreeSet<String> = BTreeSet::new();
    let mut targets: Vec<String> = Vec::new();
    for row in &rows {
        let recorded = row["recorded"] == true;
        if let (Some(id), true) = (row["id"].as_str(), row["state"] != "gone") {
            shown_ids.insert(id.to_owned());
        }
        match (recorded, row["name"].as_str(), row["account"].as_str(), row["id"].as_str()) {
            (true, Some(name), ..) => targets.push(name.to_owned()),
            (_, _, Some(account), Some(id)) => targets.push(format!("{account}:{id}")),
            _ => wrong.push(format!("nobody could remove {row}")),
        }
    }
    if shown_ids != alive {
        wrong.push(format!("`ls` shows {shown_ids:?}, the cloud has {alive:?}"));
    }
    for row in list.1["left_over"].as_array().cloned().unwrap_or_default() {
        match (row["account"].as_str(), row["id"].as_str()) {
            (Some(account), Some(id)) => targets.push(format!("{account}:{id}")),
            _ => wrong.push(format!("nobody could remove {row}")),
        }
    }
    if succeeded && case.plan.verb == Verb::Provision {
        let ran = ended(command(world, program, "ssh dev true").spawn().unwrap()).await;
        if ran.code != 0 {
            wrong.push(format!("no login: {ran:?}"));
        }
    }
    if !targets.is_empty() {
        let words = format!("rm {} --yes --json", targets.join(" "));
        let removed = step(world, program, &words, wrong, trace).await;
        if removed.0 != 0 {
            wrong.push(format!("`{words}` ends with {}", removed.0));
        }
    }
    let left = ids(world);
    if !left.is_empty() {
        wrong.push(format!("in the end {left:?} exist"));
    }
    let left = disks_and_keys(world);
    if !left.is_empty() {
        wrong.push(format!("in the end {left:?} exist"));
    }
    let (verda, nebius) = (world.sandbox.verda().harmed(), world.sandbox.nebius().harmed());
    let gcp = world.sandbox.gcp().harmed();
    if !verda.is_empty() || !nebius.is_empty() || !gcp.is_empty() {
        wrong.push(format!("{verda:?} {nebius:?} {gcp:?} of somebody else is not as it was"));
    }
    let last = step(world, program, "ls --json", wrong, trace).await;
    if last.0 != 0 || last.1["machines"].as_array().is_none_or(|rows| !rows.is_empty()) {
        wrong.push(format!("in the end `ls` ends with {} and shows {}", last.0, last.1["machines"]));
    }
    traces(case, world, succeeded, wrong);
}

async fn step(
    world: &World,
    program: &Path,
    words: &str,
    wrong: &mut Vec<String>,
    trace: &mut Vec<String>,
) -> (i32, Value) {
    let ran = ended(command(world, program, words).spawn().unwrap()).await;
    trace.push(format!("  $ gpuprov {words}\n{}", shown(&ran)));
    always(world, &ran, wrong);
    (ran.code, document_of(&ran, wrong))
}

/// What is left on disk and in the cloud's books.
fn traces(case: &Case, world: &World, succeeded: bool, wrong: &mut Vec<String>) {
    let strangers = world.sandbox.strangers();
    let ledger = world.sandbox.ledger();
    for stranger in &strangers {
        if !ledger.iter().any(|entry| entry.id == *stranger && entry.alive) {
            wrong.push(format!("{stranger} of somebody else is gone"));
        }
    }
    for request in world.sandbox.requests() {
        if let Some(why) = &request.rejected {
            wrong.push(format!("{} {}: {why}", request.method, request.path));
        }
        if request.path.split('/').any(|part| strangers.contains(&part)) {
            wrong.push(format!("{} {} asks for the foreign machine", request.method, request.path));
        }
    }
    let ours: Vec<&LedgerEntry> =
        ledger.iter().filter(|entry| !strangers.contains(&entry.id.as_str())).collect();
    if case.plan.setup != Setup::Unrecorded {
        for (at, one) in ours.iter().enumerate() {
            for other in &ours[at + 1..] {
                if one.ended_at.is_none_or(|end| end > other.created_at) {
                    wrong.push(format!("{} and {} existed at once", one.id, other.id));
                }
            }
        }
    }
    let audit = std::fs::read_to_string(world.state().join("audit.jsonl")).unwrap_or_default();
    for entry in &ours {
        let claim = (case.plan.subject.claim)(&entry.env).unwrap_or("no claim");
        let removed = audit
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .any(|line| line["action"] == "remove" && line["claim"] == claim && line["outcome"] != "left");
        // Of a machine without a record, a removal that was killed or got no last answer leaves nothing that a later command
        // could write it down from.
        if !removed && (case.plan.setup != Setup::Unrecorded || succeeded) {
            wrong.push(format!("the audit log does not tell that {} was removed", entry.id));
        }
    }
    search(world.home(), world, wrong);
}

/// Looks for the key, and for records and half-written files, in everything below HOME.
fn search(folder: &Path, world: &World, wrong: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            search(&path, world, wrong);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        for secret in world.secrets() {
            if bytes.windows(secret.len()).any(|part| part == secret.as_bytes()) {
                wrong.push(format!("a secret is in {}", path.display()));
            }
        }
        if folder.starts_with(world.home().join(".ssh"))
            && String::from_utf8_lossy(&bytes).contains("Host dev")
        {
            wrong.push(format!("{} still leads to the machine", path.display()));
        }
        let records = folder.ends_with("machines") && folder.starts_with(world.state());
        // What a killed writer had not finished goes with the next command of that name; it is nobody's record.
        if records && !name.ends_with(".lock") && !name.contains(".tmp-") {
            wrong.push(format!("{} is left", path.display()));
        }
    }
}
