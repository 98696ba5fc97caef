//! `gpuprov ssh` costs next to nothing over plain ssh with the same configuration.

use crate::support::World;
use crate::{Figure, median, ms, timed};

const RUNS: usize = 30;

pub async fn run() -> Vec<Figure> {
    let world = World::new().await;
    world.provision("dev").await;
    let (_, list) = world.json("ls --local").await;
    let config = list["machines"][0]["ssh"]["config_file"].as_str().unwrap().to_owned();
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        ours.push(timed(world.gpuprov(["ssh", "dev", "true"])).await);
        let mut ssh = world.program("ssh");
        ssh.args(["-F", &config, "dev", "true"]);
        plain.push(timed(ssh).await);
    }
    let (ours, plain) = (ms(median(ours)), ms(median(plain)));
    vec![
        Figure::plain("`ssh -F ... dev true`", format!("{plain:.1} ms")),
        Figure::plain("`gpuprov ssh dev true`", format!("{ours:.1} ms")),
        Figure::at_most("ratio on loopback, where ssh itself is at its quickest", ours / plain, 1.2, " x"),
        // A login over a network takes several round trips; 300 ms is a near one.
        Figure::at_most("ratio for a login of 300 ms", 1.0 + (ours - plain).max(0.0) / 300.0, 1.03, " x"),
    ]
}
