//! Deleting a machine and making sure that it is gone. Its disk goes with it, and there is nothing else.

use std::time::Duration;

use super::Vast;
use super::client::DELETING;
use super::states::look;
use crate::cloud::{Deletion, ErrorKind, Result};
use crate::model::handle::Handle;
use crate::model::machine::MachineState;

/// A longer wait for its turn is left to whoever asks again: of many machines deleted at once, each gets its turn, and none
/// takes so long that it would count as not answered.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Deletes a machine, then looks whether it is gone.
pub(super) async fn delete(cloud: &Vast, handle: &Handle) -> Result<Deletion> {
    if cloud.api.delete_turn() > LONGEST_WAIT {
        return Ok(Deletion::Pending(
            "waiting for its turn: Vast takes one delete in three seconds".to_owned(),
        ));
    }
    match cloud.api.delete(&handle.id).await {
        Ok(_) => {}
        Err(error) if error.kind == ErrorKind::RateLimited => return Ok(Deletion::Pending(error.message)),
        // It says neither yes nor no; the look decides.
        Err(error) if error.kind == ErrorKind::Unreadable || error.kind == ErrorKind::Conflict => {}
        Err(error) => return Err(error),
    }
    cloud.searches.clear();
    // An answer that does not come is no word that it is on its way: whoever waits has less patience for it.
    let machine = cloud.api.machine(&handle.id, DELETING).await?;
    let look = machine.map(|machine| look(&machine, &cloud.states_frame()));
    match look.filter(|look| look.state != MachineState::Gone) {
        None => {
            cloud.watch.end(&handle.id);
            Ok(Deletion::Gone)
        }
        Some(look) => {
            Ok(Deletion::Pending(format!("Vast still shows it as {}", look.words.unwrap_or_default())))
        }
    }
}
