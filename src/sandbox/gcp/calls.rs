//! One call of Compute Engine: who may, how often, whether the request is good, then what it does.

use serde_json::Value;

use super::auth::Good;
use super::discovery::{Discovery, Method, Wrong};
use super::errors::{self, fail, invalid};
use super::{GcpCloud, failure, names, rights};
use crate::sandbox::faults::When;
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

/// A request that was let in.
struct Admitted<'a> {
    account: String,
    project: String,
    method: Method<'a>,
    body: Value,
    request: Option<String>,
}

impl GcpCloud {
    /// Who may, how often, whether the request is good, then what.
    pub(super) fn guarded(&self, call: &Call, method: Method<'_>) -> Result<Answer, Box<Answer>> {
        let boxed = |answer: Answer| Err(Box::new(answer));
        let (account, good) =
            self.bearer(call.header("authorization")).map_err(|who| Box::new(errors::stranger(who)))?;
        let changes = call.method != "GET" && !matches!(method.operation, "wait_operation" | "advice");
        if good == Good::Impersonation || (good == Good::Looks && changes) {
            return boxed(errors::scope_insufficient());
        }
        let mut state = lock(&self.state);
        let enforce = self.shared.options.rate_limits;
        let Some(owner) = state.account_mut(&account) else { return boxed(invalid("no such project")) };
        if let Some(text) = owner.windows.count(method.operation, &owner.number).filter(|_| enforce) {
            return boxed(fail(403, "rateLimitExceeded", &text));
        }
        if let Some(instead) = failure(call, When::Before) {
            return boxed(instead);
        }
        if owner.api_off {
            return boxed(errors::api_off(&owner.number));
        }
        if owner.billing_off && changes {
            return boxed(errors::billing_off(&owner.number));
        }
        let project = method.name("project").to_owned();
        let image = method.id.starts_with("images.");
        if project != owner.project && project != owner.number && !image {
            return boxed(errors::forbidden("compute.projects.get", &format!("projects/{project}")));
        }
        let own = owner.project.clone();
        let denied = owner.denied.clone();
        state.tick(&self.shared);
        drop(state);
        let wrong = |(reason, text): Wrong| Box::new(fail(400, reason, &text).rejecting(text));
        let pairs = call.pairs();
        self.discovery.check_query(&method, &pairs).map_err(wrong)?;
        let zone = method.name("zone");
        if !zone.is_empty() && !self.shapes.has_zone(zone) {
            return boxed(fail(
                404,
                "notFound",
                &format!("The resource 'projects/{own}/zones/{zone}' was not found"),
            ));
        }
        let body = read(call, &method)?;
        let named = ["instance", "disk", "firewall"]
            .into_iter()
            .map(|kind| method.name(kind))
            .find(|name| !name.is_empty());
        let name = named.unwrap_or_else(|| body["name"].as_str().unwrap_or_default());
        if let Some((permission, resource)) = rights::needed(&method, &own, name)
            .into_iter()
            .find(|(permission, _)| denied.contains(*permission))
        {
            return boxed(errors::forbidden(permission, &resource));
        }
        self.discovery.check_body(&method, &body).map_err(wrong)?;
        let request = pairs.iter().find(|(name, _)| name == "requestId").map(|(_, value)| value.clone());
        if let Some(id) = &request {
            if !names::is_uuid(id) {
                let text =
                    format!("Invalid value for field 'requestId': '{id}'. Must be a valid non-zero UUID.");
                return boxed(invalid(&text));
            }
            let known = lock(&self.state).operations.iter().find_map(|one| {
                let (known, made_by) = one.request.as_ref()?;
                (known == id && one.account == account).then(|| (one.clone(), made_by.clone()))
            });
            if let Some((operation, made_by)) = known {
                if made_by != format!("{} {}", call.method, call.path) {
                    return boxed(invalid("the same requestId was used for another request"));
                }
                return Ok(Answer::json(200, self.show_operation(&operation)));
            }
        }
        let project = if image { project } else { own };
        Ok(self.carry_out(call, Admitted { account, project, method, body, request }))
    }

    fn carry_out(&self, call: &Call, admitted: Admitted<'_>) -> Answer {
        let Admitted { account, project, method, body, request } = admitted;
        let account = account.as_str();
        let name = |kind: &str| method.name(kind);
        let zone = name("zone");
        let some_zone = Some(zone).filter(|zone| !zone.is_empty());
        match method.operation {
            "insert_instance" => self.insert(call, account, zone, &body, request),
            "get_instance" => self.instance(call, account, zone, name("instance")),
            "list_instances" => {
                self.list_everywhere(call, "instance", self.shown_instances(call, account), account)
            }
            "list_zone_instances" => {
                let here = self.shown_instances(call, account).into_iter().filter(|(place, _)| place == zone);
                let shown = here.map(|(_, shown)| shown).collect();
                self.list(call, "instance", shown, &format!("zones/{zone}/instances"), account)
            }
            "guest_attributes" => self.guest_attributes(call, account, zone, name("instance")),
            "serial_port" => self.serial_port(call, account, zone, name("instance")),
            "delete_instance"
            | "stop_instance"
            | "set_labels"
            | "set_metadata"
            | "set_scheduling"
            | "set_disk_auto_delete" => {
                self.act(call, account, method.id, (zone, name("instance")), &body, request)
            }
            "get_operation" | "wait_operation" => self.operation_of(account, some_zone, name("operation")),
            "list_operations" => self.operations(call, account, zone),
            "get_machine_type" => self.machine_type(call, account, zone, name("machineType")),
            "list_machine_types" | "list_zone_machine_types" => self.machine_types(call, account, some_zone),
            "get_accelerator_type" => self.accelerator_type(call, account, zone, name("acceleratorType")),
            "list_accelerator_types" | "list_zone_accelerator_types" => {
                self.accelerator_types(call, account, some_zone)
            }
            "get_zone" => self.zone(account, zone),
            "list_zones" => self.zones(call, account),
            "get_region" => self.region(call, account, name("region")),
            "list_regions" => self.regions(call, account),
            "get_image" => self.image(&project, name("image")),
            "image_family" => self.image_family(&project, name("family")),
            "list_images" => self.images(call, account, &project),
            "insert_firewall" => self.insert_firewall(call, account, body, request),
            "get_firewall" => self.firewall(account, name("firewall")),
            "list_firewalls" => self.firewalls(call, account),
            "delete_firewall" => self.delete_firewall(call, account, name("firewall"), request),
            "patch_firewall" => self.patch_firewall(call, account, name("firewall"), body, request),
            "get_project" => self.show_project(call, account),
            "get_disk" => self.disk(account, zone, name("disk")),
            "list_disks" => self.list_everywhere(call, "disk", self.shown_disks(account), account),
            "list_zone_disks" => {
                let here = self.shown_disks(account).into_iter().filter(|(place, _)| place == zone);
                self.list(
                    call,
                    "disk",
                    here.map(|(_, shown)| shown).collect(),
                    &format!("zones/{zone}/disks"),
                    account,
                )
            }
            "delete_disk" => self.delete_disk(call, account, zone, name("disk"), request),
            "list_subnetworks" => self.subnetworks(call, account, name("region"), None),
            "get_subnetwork" => self.subnetworks(call, account, name("region"), Some(name("subnetwork"))),
            "get_network" => self.network(account, name("network")),
            _ => self.advice(account, method.id, &body),
        }
    }
}

/// The body of a request, empty where there is none.
fn read(call: &Call, method: &Method<'_>) -> Result<Value, Box<Answer>> {
    if call.body.is_empty() {
        return if Discovery::takes_body(method) {
            Err(Box::new(invalid("Required body is missing")))
        } else {
            Ok(Value::Null)
        };
    }
    let parse = |why: String| Box::new(fail(400, "parseError", &why).rejecting(why));
    if !call.header("content-type").starts_with("application/json") {
        return Err(parse("the body must be application/json".into()));
    }
    serde_json::from_slice(&call.body).map_err(|error| parse(format!("Parse Error: {error}")))
}
