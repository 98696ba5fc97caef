//! Three clouds at once: `offers` takes as long as the longest chain of questions that need each other's answers; and how many
//! requests every command sends.

use gpuprov::sandbox::{Fault, FaultKind};

use crate::support::World;
use crate::{Figure, median, ms, timed};

/// How long every answer of a cloud takes, in ms.
const ANSWERS: [(&str, u64); 3] = [("runpod", 300), ("vast", 500), ("verda", 800)];
const RUNS: usize = 7;

/// Questions of Google's that are not looks at a machine.
const OF_OFFERS: [&str; 6] =
    ["get_project", "get_region", "get_machine_type", "get_accelerator_type", "get_image", "get_network"];

pub async fn run() -> Vec<Figure> {
    let mut figures = waits().await;
    figures.extend(google().await);
    figures.extend(requests().await);
    figures
}

async fn world() -> World {
    let mut world = World::new().await;
    world.with_vast();
    world.with_verda();
    world
}

fn forget(world: &World) {
    let _ = std::fs::remove_dir_all(world.home().join(".cache/gpuprov"));
}

async fn waits() -> Vec<Figure> {
    let world = world().await;
    for (cloud, ms) in ANSWERS {
        for method in ["GET", "POST", "PUT"] {
            let fault = Fault::on_path(method, "/", FaultKind::Delay { ms });
            world.sandbox.add_fault(fault.cloud(cloud).always());
        }
    }
    let mut figures = Vec::new();
    // Verda's types and stock can only be asked for with a token; the next command has it in its cache.
    for (what, is_first, chain) in [
        ("nothing cached: Verda's token, then its stock (1600 ms)", true, 1600.0),
        ("the next one: Verda's stock (800 ms)", false, 800.0),
    ] {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            if is_first {
                forget(&world);
            }
            times.push(timed(world.gpuprov("offers --gpus H100:1".split_whitespace())).await);
        }
        let what = format!("`offers` of three clouds that answer in 300, 500, 800 ms; {what}");
        figures.push(Figure::at_most(what, ms(median(times)) / chain, 1.1, " x"));
    }
    figures
}

/// Google's chain is one call long: its key signs its own token, and catalogues, project and regions are asked at once.
async fn google() -> Vec<Figure> {
    const ANSWER: u64 = 800;
    let mut world = World::new().await;
    world.without_runpod();
    world.with_gcp();
    for method in ["GET", "POST"] {
        let fault = Fault::on_path(method, "/", FaultKind::Delay { ms: ANSWER });
        world.sandbox.add_fault(fault.cloud("gcp").always());
    }
    let mut figures = Vec::new();
    for (what, is_first) in [("nothing cached", true), ("catalogues cached", false)] {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            if is_first {
                forget(&world);
            }
            times.push(timed(world.gpuprov("offers --gpus L4:1,H200:8 --spot=any".split_whitespace())).await);
        }
        let what = format!("`offers` of Google whose every answer takes {ANSWER} ms; {what}");
        figures.push(Figure::at_most(what, ms(median(times)) / ANSWER as f64, 1.1, " x"));
    }
    figures
}

async fn requests() -> Vec<Figure> {
    let mut figures = Vec::new();
    for (cloud, words) in [
        ("runpod", "--gpus RTX4090:1"),
        ("vast", "--gpus RTX5090:1"),
        ("verda", "--gpus H100:1"),
        ("verda", "--cpu-only"),
        ("gcp", "--gpus L4:1"),
        ("gcp", "--cpu-only"),
    ] {
        let mut world = world().await;
        world.with_gcp();
        let mut counts = Vec::new();
        for command in [
            format!("offers {words} --cloud {cloud}"),
            format!("provision {words} --cloud {cloud} --name dev"),
            "ls".to_owned(),
            "rm dev --yes".to_owned(),
        ] {
            forget(&world);
            let before = world.sandbox.requests().len();
            timed(world.gpuprov(command.split_whitespace())).await;
            let mut asked = world.sandbox.requests().split_off(before);
            asked.retain(|request| request.cloud == cloud);
            let is_look = |operation: &str| operation.starts_with("get_") && !OF_OFFERS.contains(&operation);
            let looks = asked.iter().filter(|request| is_look(request.operation)).count();
            let verb = command.split(' ').next().unwrap();
            counts.push(format!("{verb} {}", asked.len() - looks));
        }
        figures.push(Figure::plain(
            format!("requests without looks, nothing cached: {cloud} {words}"),
            counts.join(", "),
        ));
    }
    figures
}
