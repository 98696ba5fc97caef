//! Deleting a pod and making sure that it is gone. Its disk goes with it, and there is nothing else.

use super::RunPod;
use super::client::DELETING;
use crate::cloud::{Deletion, ErrorKind, Result};
use crate::model::handle::Handle;
use crate::model::words::one_line;

/// Deletes a pod, then looks whether it is gone.
pub(super) async fn delete(cloud: &RunPod, handle: &Handle) -> Result<Deletion> {
    let refused = match cloud.api.delete(&handle.id).await {
        Ok(_) => None,
        Err(error) if error.kind == ErrorKind::Conflict => Some(error),
        Err(error) => return Err(error),
    };
    // An answer that does not come is no word that it is on its way: whoever waits has less patience for it.
    let pod = cloud.api.pod(&handle.id, DELETING).await?;
    let Some(pod) = pod.filter(|pod| pod.status.as_deref() != Some("TERMINATED")) else {
        cloud.watch.end(&handle.id);
        return Ok(Deletion::Gone);
    };
    match refused {
        // Members of a cluster are managed through it and are never ours.
        Some(error) if pod.cluster.is_some() => Err(error),
        Some(error) => Ok(Deletion::Pending(error.message)),
        None => {
            let status = pod.status.as_deref().map(|status| one_line(status, 40)).unwrap_or_default();
            Ok(Deletion::Pending(format!("RunPod still shows it as {status}")))
        }
    }
}
