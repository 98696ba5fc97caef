//! Which network a machine gets: the subnet that Nebius made with the project, unless the user made others.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Nebius;
use super::calls::CREATING;
use super::wire::{Subnet, SubnetState};
use crate::cloud::{ErrorKind, Limit, Reached, Result};
use crate::model::words::one_line;

/// How the subnet that Nebius makes is called at first.
const DEFAULT: &str = "default-subnet";

/// The subnets that were picked, by project: they do not change while a command runs.
#[derive(Debug, Default)]
pub(super) struct Picked(Mutex<HashMap<String, String>>);

impl Picked {
    fn get(&self, project: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(project).cloned()
    }

    fn put(&self, project: &str, subnet: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(project.to_owned(), subnet.to_owned());
    }
}

/// Returns the subnet for machines of a project. None is made: a project without a network was set up so.
pub(super) async fn subnet(cloud: &Nebius, project: &str, region: &str) -> Result<String> {
    if let Some(known) = cloud.subnets.get(project) {
        return Ok(known);
    }
    let listed = cloud.api.subnets(project).await.map_err(|mut error| {
        // A question; nothing was made.
        error.reached = Reached::No;
        error
    })?;
    if let Some(id) = pick(&listed) {
        cloud.subnets.put(project, id);
        return Ok(id.to_owned());
    }
    let project = one_line(project, 60);
    let message = format!("the project {project} has no subnet with public addresses");
    let mut error = cloud.api.asked(CREATING).error(ErrorKind::Rejected, message, Reached::No);
    error.limit = Some(Limit { region: Some(region.to_owned()), ..Limit::default() });
    error.hint = Some(format!(
        "make one: `nebius vpc network create-default --parent-id {project}`, or name another project with `projects` under [nebius]"
    ));
    Err(error)
}

/// Picks the ready one whose name starts as Nebius's own, else the only ready one, else the first ready one with public
/// addresses.
fn pick(listed: &[Subnet]) -> Option<&str> {
    let is_ready = |subnet: &&Subnet| {
        let state = subnet.status.as_ref().map(|status| status.state);
        state.is_some_and(|state| state == SubnetState::Ready as i32)
    };
    let ready: Vec<&Subnet> =
        listed.iter().filter(is_ready).filter(|subnet| !id(subnet).is_empty()).collect();
    let name = |subnet: &&&Subnet| {
        subnet.metadata.as_ref().is_some_and(|metadata| metadata.name.starts_with(DEFAULT))
    };
    let is_public =
        |subnet: &&&Subnet| subnet.status.as_ref().is_some_and(|status| !status.ipv4_public_pools.is_empty());
    let default = ready.iter().find(name);
    let only = ready.first().filter(|_| ready.len() == 1);
    default.or(only).or_else(|| ready.iter().find(is_public)).map(|subnet| id(subnet))
}

fn id(subnet: &Subnet) -> &str {
    subnet.metadata.as_ref().map(|metadata| metadata.id.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::wire::{ResourceMetadata, SubnetStatus, SubnetStatusPool};
    use super::*;

    fn subnet(id: &str, name: &str, state: SubnetState, public: bool) -> Subnet {
        let metadata =
            ResourceMetadata { id: id.to_owned(), name: name.to_owned(), ..ResourceMetadata::default() };
        let pools = if public { vec![SubnetStatusPool::default()] } else { Vec::new() };
        let status =
            SubnetStatus { state: state as i32, ipv4_public_pools: pools, ..SubnetStatus::default() };
        Subnet { metadata: Some(metadata), spec: None, status: Some(status) }
    }

    #[test]
    fn nebius_own_comes_first() {
        use SubnetState::{Creating, Ready};
        let inner = subnet("vpcsubnet-a", "inner", Ready, false);
        let outer = subnet("vpcsubnet-b", "outer", Ready, true);
        let own = subnet("vpcsubnet-c", "default-subnet-x1", Ready, true);
        let young = subnet("vpcsubnet-d", "default-subnet-x2", Creating, true);
        let picked = |listed: &[&Subnet]| {
            let listed: Vec<Subnet> = listed.iter().map(|subnet| (*subnet).clone()).collect();
            pick(&listed).map(str::to_owned)
        };
        assert_eq!(picked(&[&inner, &outer, &own, &young]).as_deref(), Some("vpcsubnet-c"));
        assert_eq!(picked(&[&inner, &outer, &young]).as_deref(), Some("vpcsubnet-b"));
        assert_eq!(picked(&[&inner, &young]).as_deref(), Some("vpcsubnet-a"));
        assert_eq!(picked(&[&young]), None);
        assert_eq!(picked(&[&inner, &inner]), None, "which of them cannot be told, and none is public");
        assert_eq!(picked(&[]), None);
    }
}
