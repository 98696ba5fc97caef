//! Removing many machines takes hardly longer than removing one.

use gpuprov::sandbox::{Fault, FaultKind, PodSeed};

use crate::support::World;
use crate::{Figure, ms, timed};

const MANY: usize = 50;
const ANSWER_MS: u64 = 100;

pub async fn run() -> Vec<Figure> {
    let one = remove(1).await;
    let many = remove(MANY).await;
    vec![
        Figure::plain(
            format!("`rm --all` of one machine, every answer taking {ANSWER_MS} ms"),
            format!("{one:.0} ms"),
        ),
        Figure::plain(format!("`rm --all` of {MANY} machines"), format!("{many:.0} ms")),
        Figure::at_most("ratio", many / one, 2.0, " x"),
    ]
}

async fn remove(count: usize) -> f64 {
    let mut world = World::new().await;
    // As over a network.
    world.sandbox.add_fault(Fault::on_path("GET", "/", FaultKind::Delay { ms: ANSWER_MS }).always());
    world.sandbox.add_fault(Fault::on_path("DELETE", "/", FaultKind::Delay { ms: ANSWER_MS }).always());
    world.set("GPUPROV_INSTALLATION", "bench");
    let key = world.sandbox.runpod_key().to_owned();
    for number in 0..count {
        let mark = format!("v1:bench:default:m{number}:{number:016x}::");
        world.sandbox.add_pod(&key, &PodSeed::marked(&format!("m{number}"), &mark)).unwrap();
    }
    let time = timed(world.gpuprov(["rm", "--all", "--yes"])).await;
    world.assert_empty();
    ms(time)
}
