//! The fault matrix: every call that a command makes, times everything that can go wrong with it, times being killed.
//!
//! ```text
//! cargo test --test matrix                                   a cut of it, the same one every time
//! cargo test --test matrix -- --all                          all of it
//! cargo test --test matrix -- runpod/provision/create_pod    every case whose name begins so; a whole name replays one case
//! cargo test --test matrix -- --all --list                   the names
//! ```
//!
//! The calls are not written down anywhere: each scenario (`scenario.rs`) is run once without faults and what it asks is
//! recorded. Each call then meets each trouble (`trouble.rs`) in a world of its own; what must hold afterwards is in
//! `verdict.rs`. The judge is the cloud's own ledger. A cloud joins by being added to `scenario::SUBJECTS`.

#![allow(unreachable_pub, dead_code, reason = "a test program has no outside")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test without the usual harness is one all the same"
)]

mod case;
mod scenario;
#[path = "../it/support/mod.rs"]
mod support;
mod trouble;
mod verdict;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::case::Case;
use crate::scenario::{Plan, SUBJECTS};

/// Worlds at once. They mostly wait for machines to boot.
const JOBS: usize = 12;

struct Wishes {
    all: bool,
    list: bool,
    jobs: usize,
    filters: Vec<String>,
}

fn wishes() -> Wishes {
    let mut wishes = Wishes { all: false, list: false, jobs: JOBS, filters: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--all" => wishes.all = true,
            "--list" => wishes.list = true,
            "--jobs" => wishes.jobs = words.next().and_then(|jobs| jobs.parse().ok()).unwrap_or(JOBS),
            // Flags of the usual harness reach every test program and mean nothing here.
            flag if flag.starts_with('-') => {}
            filter => wishes.filters.push(filter.to_owned()),
        }
    }
    wishes
}

#[tokio::main]
async fn main() {
    let wishes = wishes();
    let begun = Instant::now();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // A build that goes on meanwhile must not change what is tested halfway through.
    let program = folder.path().join("gpuprov");
    std::fs::copy(env!("CARGO_BIN_EXE_gpuprov"), &program).unwrap();

    let mut plans: Vec<Plan> = SUBJECTS.iter().flat_map(scenario::plans).collect();
    // Only what cases are named of is run without faults first.
    let clouds: Vec<&str> =
        wishes.filters.iter().filter_map(|filter| filter.split_once('/')).map(|(cloud, _)| cloud).collect();
    if !clouds.is_empty() && clouds.len() == wishes.filters.len() {
        plans.retain(|plan| clouds.contains(&plan.subject.name));
    }
    let mut cases = discover(&plans, &program).await;
    // A name with a slash is meant for this program and is looked for among all cases; other words may be for the other ones.
    let named = wishes.filters.iter().any(|filter| filter.contains('/'));
    if !wishes.all && !named {
        cases.retain(Case::in_the_cut);
    }
    if !wishes.filters.is_empty() {
        cases.retain(|case| wishes.filters.iter().any(|filter| case.name.starts_with(filter.as_str())));
    }
    if wishes.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        println!("{} cases", cases.len());
        return;
    }
    let failed = run(cases, &program, wishes.jobs).await;
    println!("time: {:.1} s", begun.elapsed().as_secs_f64());
    drop(folder);
    if failed > 0 {
        std::process::exit(1);
    }
}

/// Runs every scenario once without faults, and makes the cases out of what it asked.
async fn discover(plans: &[Plan], program: &Path) -> Vec<Case> {
    let runs = stream::iter(plans).map(|plan| case::record(plan, program)).buffered(JOBS);
    let runs: Vec<_> = runs.collect().await;
    plans.iter().zip(runs).flat_map(|(plan, recorded)| case::cases(plan, &recorded)).collect()
}

async fn run(cases: Vec<Case>, program: &Path, jobs: usize) -> usize {
    let total = cases.len();
    let slots = Arc::new(Semaphore::new(jobs));
    let mut set = JoinSet::new();
    let mut names = BTreeMap::new();
    for case in cases {
        let (slots, program) = (Arc::clone(&slots), program.to_path_buf());
        let name = case.name.clone();
        let task = set.spawn(async move {
            let _slot = slots.acquire_owned().await.unwrap();
            case::run(&case, &program).await
        });
        names.insert(task.id(), name);
    }
    let (mut failed, mut idle) = (Vec::new(), Vec::new());
    let mut done = 0;
    while let Some(ended) = set.join_next_with_id().await {
        done += 1;
        if done % 200 == 0 {
            println!("{done} of {total}");
        }
        match ended {
            Ok((id, end)) => {
                if !end.played {
                    idle.push(names[&id].clone());
                }
                if !end.wrong.is_empty() {
                    println!("FAILED {}\n{}", names[&id], end.report());
                    failed.push(names[&id].clone());
                }
            }
            Err(error) => {
                println!("FAILED {}\n  the case itself broke: {error}", names[&error.id()]);
                failed.push(names[&error.id()].clone());
            }
        }
    }
    failed.sort();
    for name in &failed {
        println!("failed: cargo test --test matrix -- {name}");
    }
    println!("{total} cases, {} of them never met their call", idle.len());
    println!("{} passed, {} failed", total - failed.len(), failed.len());
    failed.len()
}
