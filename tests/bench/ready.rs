//! How long after a login became possible `provision` returns.

use std::time::{Duration, Instant};

use gpuprov::sandbox::{Fault, FaultKind, LoginTrouble, Script};
use jiff::Timestamp;

use crate::Figure;
use crate::support::World;

/// From a create to a login, another one each time, so that looks fall anywhere.
const BOOTS_MS: [u64; 5] = [1300, 2100, 2900, 3700, 4500];

/// RunPod is looked at so often at first.
const POLL: f64 = 2.0;

pub async fn run() -> Vec<Figure> {
    let mut lags = Vec::new();
    for boot in BOOTS_MS {
        let world =
            World::with(|options| options.boot = (Duration::from_millis(boot), Duration::from_millis(boot)))
                .await;
        lags.push(lag(&world, Duration::from_millis(boot)).await);
    }
    let worst = lags.iter().copied().fold(0.0, f64::max);
    let mean = lags.iter().sum::<f64>() / lags.len() as f64;

    // The address is known, and sshd lets the key in only later.
    let late = Duration::from_millis(4000);
    let boot = Duration::from_millis(300);
    let world = World::with(|options| options.boot = (boot, boot)).await;
    let script = Script::NeverLogin { cause: LoginTrouble::KeyLate { ms: late.as_millis() as u64 } };
    world.sandbox.add_fault(Fault::on("create_pod", FaultKind::Script { script }));
    let known = lag(&world, boot + late).await;
    vec![
        Figure::at_most(
            format!("login possible to `provision` done, worst of {}", BOOTS_MS.len()),
            worst,
            POLL + 0.3,
            " s",
        ),
        Figure::plain("the same, mean", format!("{mean:.2} s")),
        Figure::plain("the same, sshd up and its key 4 s later", format!("{known:.2} s")),
    ]
}

/// Seconds from the moment that a login is possible to the end of `provision`.
async fn lag(world: &World, boot: Duration) -> f64 {
    // The cloud's own pace counts here.
    world.write(".config/gpuprov/config.toml", "");
    let started = (Instant::now(), Timestamp::now());
    world.provision("dev").await;
    let took = started.0.elapsed();
    let foreign = world.sandbox.foreign_pod();
    let created = world.sandbox.ledger().into_iter().find(|entry| entry.id != foreign).unwrap().created_at;
    let possible = created.duration_since(started.1).as_secs_f64() + boot.as_secs_f64();
    took.as_secs_f64() - possible
}
