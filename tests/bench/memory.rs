//! How big the program is, on disk and in memory.

use std::time::Duration;

use gpuprov::sandbox::{Fault, FaultKind};

use crate::Figure;
use crate::support::{World, ended};

pub async fn run() -> Vec<Figure> {
    let size = std::fs::metadata(env!("CARGO_BIN_EXE_gpuprov")).unwrap().len() as f64 / 1e6;
    let mut figures = vec![Figure::at_most("size of the program", size, 20.0, " MB")];
    let world = World::new().await;
    // Slow answers leave time for looks.
    world.sandbox.add_fault(Fault::on("get_pod", FaultKind::Delay { ms: 100 }).always());
    let child = world.start("provision --gpus RTX4090:1 --name dev");
    let status = format!("/proc/{}/status", child.id().unwrap());
    let mut most = 0.0;
    while let Ok(text) = std::fs::read_to_string(&status) {
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        match peak.and_then(|peak| peak.split_whitespace().next()).and_then(|kb| kb.parse::<f64>().ok()) {
            Some(kb) => most = kb / 1000.0,
            None => break,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ended(child).await.code, 0);
    if most > 0.0 {
        figures.push(Figure::at_most("memory of `provision` at its peak", most, 30.0, " MB"));
    }
    figures
}
