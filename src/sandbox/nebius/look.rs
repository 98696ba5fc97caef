//! Looks at what an account has: instances, disks, addresses, operations, projects, subnets.

use serde_json::{Value, json};

use super::account::{Project, Subnet};
use super::instance::{Instance, Stage};
use super::judge::text;
use super::state::State;
use super::status::{Outcome, Trouble};
use super::{NebiusCloud, Request};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;

/// Items on a page where none are asked for.
const USUAL: usize = 100;
/// Most items on a page.
const MOST: i64 = 1000;

/// One page of a list under its key.
pub(super) fn page(
    request: &Request<'_>,
    state: &State,
    key: &str,
    items: Vec<Value>,
    usual: usize,
) -> Outcome<Value> {
    let asked = request.message.get("page_size").and_then(Value::as_i64).unwrap_or(0);
    if !(0..=MOST).contains(&asked) {
        return Err(Trouble::invalid("page_size", "value must be between 0 and 1000"));
    }
    let asked = usize::try_from(asked).ok().filter(|asked| *asked > 0).unwrap_or(usual);
    let fault = request.call.faults.iter().find_map(|fault| match fault {
        FaultKind::PageSize { size } => Some(*size),
        _ => None,
    });
    let most = [fault, state.page].into_iter().flatten().min().unwrap_or(usize::MAX);
    let size = asked.min(most).max(1);
    let token = text(&request.message, "/page_token");
    let from = match token.strip_prefix("page-") {
        _ if token.is_empty() => Some(0),
        Some(rest) => usize::from_str_radix(rest, 16).ok().map(|mixed| mixed ^ 0x5eed),
        None => None,
    };
    let from = from.filter(|from| *from <= items.len());
    let Some(from) = from else { return Err(Trouble::invalid("page_token", "unknown page token")) };
    let next = from.saturating_add(size);
    let more = next < items.len();
    let shown: Vec<Value> = items.into_iter().skip(from).take(size).collect();
    let token = if more { format!("page-{:x}", next ^ 0x5eed) } else { String::new() };
    Ok(json!({key: shown, "next_page_token": token}))
}

/// A project as the API has it.
fn show_project(project: &Project, tenant: &str) -> Value {
    json!({
        "metadata": {"id": project.id, "parent_id": tenant, "name": project.name},
        "spec": {"region": project.region}, "status": {"project_state": project.state},
    })
}

/// A subnet as the API has it.
fn show_subnet(subnet: &Subnet, project: &str) -> Value {
    let pool = |id: &str, cidr: &str| json!([{"pool_id": format!("vpcpool-{id}"), "cidrs": [cidr]}]);
    let public = if subnet.public { pool("public", "/32") } else { json!([]) };
    json!({
        "metadata": {"id": subnet.id, "parent_id": project, "name": subnet.name},
        "spec": {"network_id": "vpcnetwork-e00n"},
        "status": {
            "state": subnet.state, "ipv4_private_pools": pool("private", "10.0.0.0/16"), "ipv4_public_pools": public,
        },
    })
}

impl NebiusCloud {
    /// An instance as it is now.
    fn show(&self, request: &Request<'_>, state: &State, one: &Instance) -> Value {
        let now = self.shared.clock.now();
        let mut shown = one.show(self.stage(state, one), now, &state.disks_on(&one.id, now));
        let told = request.call.faults.iter().find_map(|fault| match fault {
            FaultKind::StatusWord { word } => Some(word.as_str()),
            _ => None,
        });
        let word = told.unwrap_or_else(|| text(&shown, "/status/state")).to_owned();
        let known = self.table.number("nebius.compute.v1.InstanceStatus.InstanceState", &word).is_some();
        // A word that the enum does not have is a number that it does not have.
        shown["status"]["state"] =
            json!(if known || word.parse::<i32>().is_ok() { word } else { "77".into() });
        shown
    }

    /// Calls that look at one thing or list many.
    pub(super) fn look(&self, request: &Request<'_>, account: &str) -> Outcome {
        let state = lock(&self.state);
        let now = self.shared.clock.now();
        let message = &request.message;
        let id = text(message, "/id");
        let missing = || Trouble::not_found(id);
        let owner = state.account(account).ok_or_else(missing)?;
        match request.operation {
            "get_instance" => {
                let index = state.seen(&self.shared, account, id).ok_or_else(missing)?;
                Ok(self.show(request, &state, &state.instances[index]))
            }
            "get_instance_by_name" => {
                let project = self.project(&state, account, text(message, "/parent_id"))?;
                let name = text(message, "/name");
                let found = state.instances.iter().find(|one| {
                    one.project == project.id
                        && one.name == name
                        && now >= one.hidden_until
                        && self.stage(&state, one) != Stage::Gone
                });
                Ok(self.show(request, &state, found.ok_or_else(|| Trouble::not_found(name))?))
            }
            "list_instances" => {
                let project = self.project(&state, account, text(message, "/parent_id"))?;
                let here = state.instances.iter().filter(|one| {
                    one.project == project.id
                        && now >= one.listed_from
                        && self.stage(&state, one) != Stage::Gone
                });
                let items = here.map(|one| self.show(request, &state, one)).collect();
                page(request, &state, "items", items, USUAL)
            }
            "get_disk" | "get_disk_by_name" => {
                let name = text(message, "/name");
                let found = state.disks.iter().find(|disk| {
                    let named = if id.is_empty() {
                        disk.name == name && disk.project == text(message, "/parent_id")
                    } else {
                        disk.id == id
                    };
                    named && disk.account == account && disk.exists(now) && now >= disk.hidden_until
                });
                Ok(found.ok_or_else(|| Trouble::not_found(if id.is_empty() { name } else { id }))?.show())
            }
            "list_disks" => {
                let project = self.project(&state, account, text(message, "/parent_id"))?;
                let here = state.disks.iter().filter(|disk| {
                    disk.project == project.id && disk.exists(now) && now >= disk.hidden_until
                });
                page(request, &state, "items", here.map(|disk| disk.show()).collect(), USUAL)
            }
            "list_allocations" => {
                let project = self.project(&state, account, text(message, "/parent_id"))?;
                let items = self.addresses(&state, &project.id);
                page(request, &state, "items", items, USUAL)
            }
            "get_operation" => self.operation(&state, account, id),
            "list_operations" => {
                let resource = text(message, "/resource_id");
                let mine = state
                    .operations
                    .iter()
                    .filter(|one| one.account == account && one.resource == resource && !one.lost);
                let mut items: Vec<Value> = mine.map(|one| one.show(&self.shared.clock)).collect();
                items.reverse();
                page(request, &state, "operations", items, USUAL)
            }
            "list_tenants" => {
                let tenant = json!({
                    "metadata": {"id": owner.tenant, "name": owner.label}, "spec": {},
                    "status": {"tenant_state": "ACTIVE"},
                });
                page(request, &state, "items", vec![tenant], 10)
            }
            "get_tenant" if id == owner.tenant => Ok(json!({
                "metadata": {"id": owner.tenant, "name": owner.label}, "spec": {},
                "status": {"tenant_state": "ACTIVE"},
            })),
            "get_tenant" => Err(Trouble::denied(id)),
            "list_projects" => {
                let parent = text(message, "/parent_id");
                if parent != owner.tenant {
                    return Err(Trouble::denied(parent));
                }
                let items = owner.projects.iter().map(|project| show_project(project, parent)).collect();
                page(request, &state, "items", items, 10)
            }
            "get_project" => {
                let project = owner.project(id).ok_or_else(|| Trouble::denied(id))?;
                Ok(show_project(project, &owner.tenant))
            }
            "list_subnets" => {
                let project = self.project(&state, account, text(message, "/parent_id"))?;
                let items = project.subnets.iter().map(|subnet| show_subnet(subnet, &project.id)).collect();
                page(request, &state, "items", items, USUAL)
            }
            _ => {
                let found = owner.projects.iter().find_map(|project| {
                    let subnet = project.subnets.iter().find(|subnet| subnet.id == id)?;
                    Some(show_subnet(subnet, &project.id))
                });
                found.ok_or_else(missing)
            }
        }
    }

    /// The addresses of a project's instances; the public one is there as long as the instance is up.
    fn addresses(&self, state: &State, project: &str) -> Vec<Value> {
        let here = state.instances.iter().filter(|one| one.project == project);
        here.flat_map(|one| {
            let stage = self.stage(state, one);
            let [private, public] = one.allocations();
            let held = json!({"network_interface": {"instance_id": one.id, "name": "eth0"}});
            let up = one.public && matches!(stage, Stage::Starting | Stage::Running);
            let show = |id: String, kind: &str, cidr: String| {
                json!({
                    "metadata": {"id": id, "parent_id": project}, "spec": {kind: {}},
                    "status": {"state": "ASSIGNED", "details": {"allocated_cidr": cidr}, "assignment": held},
                })
            };
            let inner = (stage != Stage::Gone).then(|| show(private, "ipv4_private", one.private_address()));
            let outer = up.then(|| show(public, "ipv4_public", format!("{}/32", one.address)));
            inner.into_iter().chain(outer)
        })
        .collect()
    }
}
