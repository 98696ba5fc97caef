//! Opening ports: one firewall rule for each range of addresses that may come in, for the machine with our tag alone. A rule is
//! made before its machine and goes with it.
//!
//! Rules have no labels: the marks stand in their description, the claim in their name. Whether a machine has rules is told by
//! its tag, so that accounts which never open a port never need the right to look at rules.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{DELETING, Waited};
use super::errors::failed;
use super::marks::{rule, rule_name, tag};
use super::order::{network_link, new_request_id, request_id};
use super::wire::{Allowed, Firewall, last, told};
use super::{Gcp, mend};
use crate::cloud::{Deletion, Error, ErrorKind, Journal, Reached, Result};
use crate::model::mark::Mark;
use crate::model::spec::MachineSpec;

const OPENING: &str = "opening ports";

/// How long a new rule is waited for; one that takes longer comes while the machine boots.
const RULE_WITHIN: Duration = Duration::from_secs(20);

/// How long one answer about a rule's delete is waited for.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Everybody.
const ANYWHERE: &str = "0.0.0.0/0";

/// Makes the rules that a machine needs, and returns their names. When one cannot be made, those before it are deleted.
pub(super) async fn open(
    cloud: &Gcp,
    spec: &MachineSpec,
    mark: &Mark,
    journal: &dyn Journal,
) -> Result<Vec<String>> {
    let mut made = Vec::new();
    for (place, body) in bodies(&cloud.settings.network, spec, mark).into_iter().enumerate() {
        let name = rule_name(mark.claim, place);
        // The name is known before, so that a lost answer leaves nothing that nobody knows.
        if let Err(error) = journal.made(&rule(&name, &cloud.settings.project)) {
            let message = format!("the record could not be written: {error}");
            let error = cloud.api.asked(OPENING).error(ErrorKind::Unavailable, message, Reached::No);
            return Err(cleaned(cloud, &made, made.len(), error).await);
        }
        made.push(name.clone());
        if let Err(error) = one(cloud, &name, &body, mark, place).await {
            return Err(cleaned(cloud, &made, place, error).await);
        }
    }
    Ok(made)
}

async fn one(cloud: &Gcp, name: &str, body: &Value, mark: &Mark, place: usize) -> Result<()> {
    let id = request_id(mark.claim, &format!("rule {place}"));
    let operation = match cloud.api.insert_firewall(&id, body).await {
        Ok(operation) => operation,
        // Its name holds the whole claim: it is the one of a first try whose answer was lost.
        Err(error) if error.kind == ErrorKind::Conflict => return Ok(()),
        Err(mut error) => {
            if error.kind == ErrorKind::Forbidden && error.hint.is_none() {
                error.hint = Some(mend::firewall_right(&cloud.settings.project));
            }
            if error.kind == ErrorKind::NotFound {
                error.kind = ErrorKind::Forbidden;
                error.limit = Some(crate::cloud::Limit::default());
                error.hint = Some(mend::network(&cloud.settings.network, &cloud.settings.project));
            }
            return Err(error);
        }
    };
    let Some(waited) = told(operation.name.as_ref()) else { return Ok(()) };
    let begun = std::time::Instant::now();
    while begun.elapsed() < RULE_WITHIN {
        let left = RULE_WITHIN.saturating_sub(begun.elapsed());
        match cloud.api.wait(None, waited, left, OPENING).await? {
            Waited::Done(done) if done.has_failed() => return Err(failed(&done, &cloud.api.asked(OPENING))),
            Waited::Done(_) | Waited::Unknown => return Ok(()),
            Waited::Running => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
    tracing::debug!(target: "gpuprov::cloud", name, "the firewall rule is still being made");
    Ok(())
}

/// Returns the bodies of the rules: ports by the addresses that may come in.
pub(super) fn bodies(network: &str, spec: &MachineSpec, mark: &Mark) -> Vec<Value> {
    let mut by_range: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
    for port in &spec.ports {
        by_range.entry(port.cidr.as_deref().unwrap_or(ANYWHERE)).or_default().push(port.port);
    }
    let body = |(place, (range, mut ports)): (usize, (&str, Vec<u16>))| {
        ports.sort_unstable();
        ports.dedup();
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        json!({
            "name": rule_name(mark.claim, place),
            "description": mark.to_text(),
            "network": network_link(network),
            "direction": "INGRESS",
            "priority": 1000,
            "sourceRanges": [range],
            "targetTags": [tag(mark.claim)],
            "allowed": [{"IPProtocol": "tcp", "ports": ports}],
        })
    };
    by_range.into_iter().enumerate().map(body).collect()
}

/// Deletes the rules of an attempt of which no machine was made, of which so many certainly exist. If that fails the attempt must
/// not be forgotten, and the error says so.
pub(super) async fn cleaned(
    cloud: &Gcp,
    rules: &[String],
    certain: usize,
    mut error: Box<Error>,
) -> Box<Error> {
    if rules.is_empty() {
        return error;
    }
    // One that may have been asked for and was refused for a right is not there, and may not be looked for.
    let right = certain == 0 && matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Auth);
    match close(cloud, rules).await {
        Ok(Deletion::Gone) => error.reached = Reached::No,
        Ok(Deletion::Pending(_)) => error.reached = Reached::Maybe,
        Err(_) if right && error.reached == Reached::No => {}
        Err(left) => {
            error.message = format!("{}; its firewall rule may be left: {}", error.message, left.message);
            error.reached = Reached::Maybe;
        }
    }
    error
}

/// Deletes rules by their names.
pub(super) async fn close(cloud: &Gcp, rules: &[String]) -> Result<Deletion> {
    for name in rules {
        let deleted =
            cloud.api.delete(&format!("global/firewalls/{name}"), &new_request_id(), DELETING).await;
        let operation = match deleted {
            Ok(Some(operation)) => operation,
            Ok(None) => continue,
            // Whoever may not even look at rules has made none.
            Err(error) if error.kind == ErrorKind::Forbidden => {
                match cloud.api.firewall(name, DELETING).await {
                    Ok(Some(_)) => return Err(error),
                    Ok(None) => continue,
                    Err(unseen) if unseen.kind == ErrorKind::Forbidden => continue,
                    Err(unseen) => return Err(unseen),
                }
            }
            Err(error) if error.kind == ErrorKind::Conflict => {
                return Ok(Deletion::Pending(format!("firewall rule {name}: {}", error.message)));
            }
            Err(error) => return Err(error),
        };
        let Some(waited) = told(operation.name.as_ref()) else { continue };
        match cloud.api.wait(None, waited, GONE_WITHIN, DELETING).await? {
            Waited::Done(done) if done.has_failed() => {
                let error = failed(&done, &cloud.api.asked(DELETING));
                if error.kind != ErrorKind::NotFound {
                    return Err(error);
                }
            }
            Waited::Done(_) | Waited::Unknown => {}
            Waited::Running => {
                return Ok(Deletion::Pending(format!("Google is deleting the firewall rule {name}")));
            }
        }
        match cloud.api.firewall(name, DELETING).await {
            Ok(None) => {}
            Ok(Some(_)) => {
                return Ok(Deletion::Pending(format!("Google still shows the firewall rule {name}")));
            }
            // The right to delete is there without the right to look.
            Err(error) if error.kind == ErrorKind::Forbidden => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Deletion::Gone)
}

/// Looks whether any rule lets ssh in from outside; what to say if surely none does. Nothing is said without the right to look.
pub(super) async fn ssh_is_shut(cloud: &Gcp, tags: &[String]) -> Option<String> {
    let listed = cloud.api.list("global/firewalls", "", "", "looking at the firewall").await.ok()?;
    let rules: Vec<Firewall> = super::wire::things(listed)?;
    let network = last(&cloud.settings.network);
    let port = cloud.settings.ssh_port;
    if rules.iter().any(|rule| lets_in(rule, network, port, tags)) {
        return None;
    }
    let command = mend::ssh_rule(network, &cloud.settings.project, port);
    Some(format!("no firewall rule of the network {network} lets tcp:{port} in: {command}"))
}

fn lets_in(rule: &Firewall, network: &str, port: u16, tags: &[String]) -> bool {
    let targets = rule.target_tags.as_deref().unwrap_or_default();
    told(rule.network.as_ref()).is_none_or(|named| last(named) == network)
        && rule.disabled != Some(true)
        && rule.direction.as_deref() != Some("EGRESS")
        // Our machines have no service account.
        && rule.target_service_accounts.as_ref().is_none_or(Vec::is_empty)
        && is_from_outside(rule)
        && (targets.is_empty() || targets.iter().any(|target| tags.contains(target)))
        && rule.allowed.iter().flatten().any(|allowed| admits(allowed, port))
}

/// Whether anybody outside of the network may come in: `default-allow-internal` opens every port, but to nobody else.
fn is_from_outside(rule: &Firewall) -> bool {
    let ranges = rule.source_ranges.as_deref().unwrap_or_default();
    let tags = rule.source_tags.as_deref().unwrap_or_default();
    let is_public = |range: &String| {
        let address = range.split('/').next().and_then(|address| address.trim().parse::<Ipv4Addr>().ok());
        address.is_none_or(|address| !address.is_private())
    };
    // Neither ranges nor tags is everybody.
    if ranges.is_empty() { tags.is_empty() } else { ranges.iter().any(is_public) }
}

fn admits(allowed: &Allowed, port: u16) -> bool {
    let protocol = allowed.protocol.as_deref().unwrap_or_default();
    let tcp = matches!(protocol.to_ascii_lowercase().as_str(), "tcp" | "6" | "all");
    let ports = allowed.ports.as_deref().unwrap_or_default();
    let within = |range: &String| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bounds = first.trim().parse::<u16>().ok().zip(last.trim().parse::<u16>().ok());
        bounds.is_some_and(|(first, last)| (first..=last).contains(&port))
    };
    tcp && (ports.is_empty() || ports.iter().any(within))
}
