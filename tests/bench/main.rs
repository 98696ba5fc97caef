//! How quick it is, as ratios within one run, against the sandbox on this computer: `cargo bench --bench ratios [NAME...]`.
//!
//! Every figure has its bound beside it; the program ends with 1 when one is broken. `docs/benchmarks.md` keeps the figures.

#![allow(unreachable_pub, dead_code, reason = "a benchmark has no outside")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "it may fail, and its output is its point")]

mod clouds;
mod memory;
mod offers;
mod plan;
mod ready;
mod rm;
mod ssh;
mod start;
#[path = "../it/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

/// One figure.
pub struct Figure {
    /// What was measured.
    what: String,
    /// The figure with its unit, for people.
    shown: String,
    /// Its bound, for people.
    bound: String,
    /// Whether it holds.
    holds: bool,
}

impl Figure {
    /// A figure that must not be above `most`.
    pub fn at_most(what: impl Into<String>, value: f64, most: f64, unit: &str) -> Figure {
        let (shown, bound) = (format!("{value:.2}{unit}"), format!("{most}{unit}"));
        Figure { what: what.into(), shown, bound, holds: value <= most }
    }

    /// A figure without a bound.
    pub fn plain(what: impl Into<String>, shown: String) -> Figure {
        Figure { what: what.into(), shown, bound: "-".to_owned(), holds: true }
    }
}

/// The middle of some measurements.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Runs a command to its end and returns how long it took; it must succeed.
pub async fn timed(command: tokio::process::Command) -> Duration {
    let start = Instant::now();
    let ran = support::finish(command).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    start.elapsed()
}

/// Milliseconds.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[tokio::main]
async fn main() {
    // Cargo itself passes `--bench`.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    let mut figures = Vec::new();
    if wanted("start") {
        figures.extend(start::run().await);
    }
    if wanted("offers") {
        figures.extend(offers::run().await);
    }
    if wanted("clouds") {
        figures.extend(clouds::run().await);
    }
    if wanted("ready") {
        figures.extend(ready::run().await);
    }
    if wanted("ssh") {
        figures.extend(ssh::run().await);
    }
    if wanted("rm") {
        figures.extend(rm::run().await);
    }
    if wanted("plan") {
        figures.extend(plan::run());
    }
    if wanted("memory") {
        figures.extend(memory::run().await);
    }
    println!("| figure | measured | bound |\n|---|---|---|");
    for Figure { what, shown, bound, holds } in &figures {
        println!("| {what} | {shown}{} | {bound} |", if *holds { "" } else { " **broken**" });
    }
    if figures.iter().any(|figure| !figure.holds) {
        std::process::exit(1);
    }
}
