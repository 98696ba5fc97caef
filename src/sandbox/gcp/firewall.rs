//! Firewall rules: one of each, and the calls about them.
//!
//! Whether a rule lets somebody in is looked at in one case only: a machine to which nothing lets port 22 in has no sshd.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::disk::late;
use super::instance::fingerprint;
use super::names::{is_name, last};
use super::operation::LINKS;
use super::state::{Order, State};
use super::trouble::GcpFault;
use super::{GcpCloud, fail, invalid, not_found};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

/// One rule.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) project: String,
    /// As it was sent.
    pub(super) body: Map<String, Value>,
    pub(super) foreign: bool,
    pub(super) created: Duration,
    /// When it is gone: deleted, or never really made.
    pub(super) ends_at: Option<Duration>,
}

impl Rule {
    /// The rules that every new project's default network has.
    pub(super) fn usual(account: &str, project: &str, created: Duration) -> Vec<Rule> {
        let anywhere = json!(["0.0.0.0/0"]);
        let tcp = |port: &str| json!([{"IPProtocol": "tcp", "ports": [port]}]);
        let inner = json!([{"IPProtocol": "tcp", "ports": ["0-65535"]}, {"IPProtocol": "udp", "ports": ["0-65535"]},
                           {"IPProtocol": "icmp"}]);
        let rules = [
            (
                "default-allow-icmp",
                "Allow ICMP from anywhere",
                anywhere.clone(),
                json!([{"IPProtocol": "icmp"}]),
            ),
            (
                "default-allow-internal",
                "Allow internal traffic on the default network",
                json!(["10.128.0.0/9"]),
                inner,
            ),
            ("default-allow-rdp", "Allow RDP from anywhere", anywhere.clone(), tcp("3389")),
            ("default-allow-ssh", "Allow SSH from anywhere", anywhere, tcp("22")),
        ];
        let rule = |(name, description, ranges, allowed): (&str, &str, Value, Value)| {
            let body = json!({"name": name, "description": description, "network": "global/networks/default",
                              "direction": "INGRESS", "priority": 65534, "sourceRanges": ranges, "allowed": allowed});
            Rule {
                id: String::new(),
                account: account.to_owned(),
                project: project.to_owned(),
                body: body.as_object().cloned().unwrap_or_default(),
                foreign: true,
                created,
                ends_at: None,
            }
        };
        rules.into_iter().map(rule).collect()
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        self.body.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    fn network(&self) -> &str {
        last(self.body.get("network").and_then(Value::as_str).unwrap_or("default"))
    }

    /// Whether it lets TCP port 22 in to machines of this network with these tags.
    fn lets_ssh_in(&self, network: &str, tags: &[String]) -> bool {
        let list = |name: &str| self.body.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let targets = list("targetTags");
        let port = |port: &Value| {
            let text = port.as_str().unwrap_or_default();
            let (low, high) = text.split_once('-').unwrap_or((text, text));
            let numbers = low.parse::<u16>().ok().zip(high.parse::<u16>().ok());
            numbers.is_some_and(|(low, high)| (low..=high).contains(&22))
        };
        self.network() == network
            && self.body.get("direction").is_none_or(|way| way == "INGRESS")
            && self.body.get("disabled").is_none_or(|off| off != true)
            && (targets.is_empty() || tags.iter().any(|tag| targets.iter().any(|target| target == tag)))
            && !self.body.get("sourceRanges").is_some_and(|ranges| ranges == &json!(["10.128.0.0/9"]))
            && list("allowed").iter().any(|allowed| {
                let protocol = allowed["IPProtocol"].as_str().unwrap_or_default();
                let ports = allowed["ports"].as_array();
                matches!(protocol, "tcp" | "all" | "6") && ports.is_none_or(|ports| ports.iter().any(port))
            })
    }

    fn show(&self, cloud: &GcpCloud) -> Value {
        let base = format!("{LINKS}/{}/global", self.project);
        let mut shown = json!({
            "kind": "compute#firewall", "id": self.id, "creationTimestamp": cloud.date(self.created),
            "name": self.name(), "description": "", "priority": 1000, "direction": "INGRESS",
            "disabled": false, "logConfig": {"enable": false},
            "selfLink": format!("{base}/firewalls/{}", self.name()),
        });
        for (name, value) in self.body.iter().filter(|(_, value)| !value.is_null()) {
            shown[name] = value.clone();
        }
        shown["network"] = json!(format!("{base}/networks/{}", self.network()));
        shown
    }
}

impl State {
    /// Whether anything lets port 22 in.
    pub(super) fn lets_ssh_in(&self, account: &str, network: &str, tags: &[String]) -> bool {
        self.rules.iter().any(|rule| rule.account == account && rule.lets_ssh_in(network, tags))
    }
}

/// The sentence that refuses a rule, if any does.
fn wrong(body: &Map<String, Value>) -> Option<String> {
    let list = |name: &str| body.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let (allowed, denied) = (list("allowed"), list("denied"));
    if allowed.is_empty() == denied.is_empty() {
        return Some(
            "Invalid value for field 'resource': must have exactly one of allowed and denied".into(),
        );
    }
    for (index, entry) in allowed.iter().chain(&denied).enumerate() {
        let Some(protocol) = entry["IPProtocol"].as_str() else {
            return Some(format!("Required field 'resource.allowed[{index}].IPProtocol' not specified"));
        };
        let ports = entry["ports"].as_array().cloned().unwrap_or_default();
        if !ports.is_empty() && !matches!(protocol, "tcp" | "udp" | "sctp" | "6" | "17" | "132") {
            return Some(format!(
                "ports may only be specified on rules whose protocol is one of [TCP, UDP, SCTP], not {protocol}"
            ));
        }
        for port in ports {
            let text = port.as_str().unwrap_or_default();
            let (low, high) = text.split_once('-').unwrap_or((text, text));
            let numbers = low.parse::<u16>().ok().zip(high.parse::<u16>().ok());
            if numbers.is_none_or(|(low, high)| low > high) {
                return Some(format!(
                    "Invalid value for field 'resource.allowed[{index}].ports': '{text}'. Must be a port or a range of ports"
                ));
            }
        }
    }
    for range in list("sourceRanges").iter().chain(&list("destinationRanges")) {
        let text = range.as_str().unwrap_or_default();
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        let most = if address.contains(':') { 128 } else { 32 };
        let fits =
            address.parse::<std::net::IpAddr>().is_ok() && bits.parse::<u32>().is_ok_and(|bits| bits <= most);
        if !fits {
            return Some(format!(
                "Invalid value for field 'resource.sourceRanges': '{text}'. Must be a valid IP address range"
            ));
        }
    }
    for tag in list("sourceTags").iter().chain(&list("targetTags")) {
        if !tag.as_str().is_some_and(is_name) {
            return Some(format!(
                "Invalid value for field 'resource.targetTags': {tag}. Must be a match of regex '(?:[a-z](?:[-a-z0-9]{{0,61}}[a-z0-9])?)'"
            ));
        }
    }
    if body.get("priority").and_then(Value::as_i64).is_some_and(|priority| !(0..=65535).contains(&priority)) {
        return Some("Invalid value for field 'resource.priority'. Must be 0 to 65535".into());
    }
    let ingress = body.get("direction").is_none_or(|way| way.is_null() || way == "INGRESS");
    if ingress && !list("destinationRanges").is_empty() && list("sourceRanges").is_empty() {
        return Some("an ingress rule has source ranges".into());
    }
    None
}

impl GcpCloud {
    /// `POST .../firewalls`.
    pub(super) fn insert_firewall(
        &self,
        call: &Call,
        account: &str,
        body: Value,
        request: Option<String>,
    ) -> Answer {
        let body = body.as_object().cloned().unwrap_or_default();
        if let Some(why) = wrong(&body) {
            return invalid(&why);
        }
        let name = body.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut state = lock(&self.state);
        let project = state.project(account);
        if state.rule(account, &name).is_some() {
            let text = format!("The resource 'projects/{project}/global/firewalls/{name}' already exists");
            return fail(409, "alreadyExists", &text);
        }
        let network = last(body.get("network").and_then(Value::as_str).unwrap_or("default")).to_owned();
        if state.account(account).is_none_or(|owner| owner.network(&network).is_none()) {
            return not_found(&format!("global/networks/{network}"), &project);
        }
        let now = self.shared.clock.now();
        let takes = self.shared.options.slow_delete / 2;
        let ends_at = late(&call.faults).map(|_| now + takes);
        let id = state.id();
        state.rules.push(Rule {
            id: id.clone(),
            account: account.to_owned(),
            project,
            body,
            foreign: false,
            created: now,
            ends_at,
        });
        self.rule_operation(&mut state, call, account, "insert", &name, &id, request)
    }

    /// `PATCH .../firewalls/{firewall}`.
    pub(super) fn patch_firewall(
        &self,
        call: &Call,
        account: &str,
        name: &str,
        body: Value,
        request: Option<String>,
    ) -> Answer {
        let mut state = lock(&self.state);
        let Some(index) = state.rule(account, name) else {
            return not_found(&format!("global/firewalls/{name}"), &state.project(account));
        };
        let mut merged = state.rules[index].body.clone();
        merged.extend(body.as_object().cloned().unwrap_or_default());
        if let Some(why) = wrong(&merged) {
            return invalid(&why);
        }
        state.rules[index].body = merged;
        let (id, name) = (state.rules[index].id.clone(), state.rules[index].name().to_owned());
        self.rule_operation(&mut state, call, account, "patch", &name, &id, request)
    }

    /// `DELETE .../firewalls/{firewall}`.
    pub(super) fn delete_firewall(
        &self,
        call: &Call,
        account: &str,
        name: &str,
        request: Option<String>,
    ) -> Answer {
        let mut state = lock(&self.state);
        let Some(index) = state.rule(account, name) else {
            return not_found(&format!("global/firewalls/{name}"), &state.project(account));
        };
        let spared =
            late(&call.faults).is_some() || call.faults.contains(&FaultKind::Gcp(GcpFault::NoEffect));
        let (id, name) = (state.rules[index].id.clone(), state.rules[index].name().to_owned());
        if !spared {
            state.rules[index].ends_at = Some(self.shared.clock.now() + self.shared.options.slow_delete / 2);
        }
        self.rule_operation(&mut state, call, account, "delete", &name, &id, request)
    }

    #[expect(clippy::too_many_arguments, reason = "what an operation says")]
    fn rule_operation(
        &self,
        state: &mut State,
        call: &Call,
        account: &str,
        kind: &str,
        name: &str,
        id: &str,
        request: Option<String>,
    ) -> Answer {
        let order = Order {
            account,
            zone: None,
            kind,
            target: format!("global/firewalls/{name}"),
            target_id: id.to_owned(),
            request: request.map(|id| (id, format!("{} {}", call.method, call.path))),
            takes: self.shared.options.slow_delete / 2,
        };
        let operation = state.order(&self.shared, order, &call.faults);
        Answer::json(200, self.show_operation(&operation))
    }

    /// `GET .../firewalls/{firewall}`.
    pub(super) fn firewall(&self, account: &str, name: &str) -> Answer {
        let state = lock(&self.state);
        match state.rule(account, name) {
            Some(index) => Answer::json(200, state.rules[index].show(self)),
            None => not_found(&format!("global/firewalls/{name}"), &state.project(account)),
        }
    }

    /// `GET .../firewalls`.
    pub(super) fn firewalls(&self, call: &Call, account: &str) -> Answer {
        let shown = {
            let state = lock(&self.state);
            let mine = state.rules.iter().filter(|rule| rule.account == account);
            mine.map(|rule| rule.show(self)).collect()
        };
        self.list(call, "firewall", shown, "global/firewalls", account)
    }

    /// Fingerprint of nothing in particular, for resources that never change.
    pub(super) fn still(of: &str) -> String {
        fingerprint(&json!(of))
    }
}
