//! `offers` takes as long as the slowest account's own chain of answers.

use gpuprov::sandbox::{Fault, FaultKind};

use crate::support::World;
use crate::{Figure, median, ms, timed};

const ANSWER_MS: u64 = 300;
const RUNS: usize = 9;

pub async fn run() -> Vec<Figure> {
    let world = World::new().await;
    world.sandbox.add_fault(Fault::on_path("GET", "/", FaultKind::Delay { ms: ANSWER_MS }).always());
    let mut figures = Vec::new();
    for words in ["offers --gpus RTX4090:1", "offers"] {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            times.push(timed(world.gpuprov(words.split_whitespace())).await);
        }
        let ratio = ms(median(times)) / ANSWER_MS as f64;
        figures.push(Figure::at_most(
            format!("`gpuprov {words}`: wall / {ANSWER_MS} ms, every answer taking so long"),
            ratio,
            1.1,
            " x",
        ));
    }
    figures
}
