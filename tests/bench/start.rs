//! Commands that need no cloud answer at once.

use crate::support::World;
use crate::{Figure, median, ms, timed};

const RUNS: usize = 40;

pub async fn run() -> Vec<Figure> {
    let world = World::new().await;
    world.provision("dev").await;
    let (mut nothing, mut version, mut local) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        nothing.push(timed(world.program("true")).await);
        version.push(timed(world.gpuprov(["--version"])).await);
        local.push(timed(world.gpuprov(["ls", "--local"])).await);
    }
    let nothing = ms(median(nothing));
    vec![
        Figure::plain("`true`, to compare", format!("{nothing:.2} ms")),
        Figure::at_most("`gpuprov --version`, beyond `true`", ms(median(version)) - nothing, 10.0, " ms"),
        Figure::at_most(
            "`gpuprov ls --local` of one machine, beyond `true`",
            ms(median(local)) - nothing,
            20.0,
            " ms",
        ),
    ]
}
