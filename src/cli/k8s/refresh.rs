//! What `ls` asks machines themselves: how far clusters are that were on their way when last heard of.

use std::time::Duration;

use crate::cluster::State;
use crate::cluster::status::ask;
use crate::model::machine::{MachineName, MachineState};
use crate::provision::Context;
use crate::provision::survey::Row;

/// A list does not wait longer for a machine that does not answer.
const LIMIT: Duration = Duration::from_secs(8);

/// Asks the running machines whose cluster is on its way, all at once, and keeps the answers in rows and records. One that does
/// not answer stays as it was known.
pub async fn refresh(context: &Context, rows: &mut [Row]) {
    let looks = rows.iter_mut().map(async |row| {
        let is_on_its_way = row.state == MachineState::Running
            && row.record.as_ref().and_then(|record| record.k8s.as_ref()).is_some_and(|cluster| {
                [State::Pending.as_str(), State::Installing.as_str()].contains(&cluster.state.as_str())
            });
        let Some(name) = row.name.parse::<MachineName>().ok().filter(|_| is_on_its_way) else { return };
        let answer = tokio::time::timeout(LIMIT, ask(&context.login, &name, "", Duration::ZERO)).await;
        if let (Ok(Ok(Some(status))), Some(record)) = (answer, row.record.as_mut()) {
            let cluster = status.recorded();
            super::reach::keep_in(&context.registry, &name, &cluster);
            record.k8s = Some(cluster);
        }
    });
    futures_util::future::join_all(looks).await;
}
