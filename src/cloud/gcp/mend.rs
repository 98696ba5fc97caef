//! What the user can do about a refusal: the command or the page that mends it.

use super::errors::Asked;
use super::faults::Fault;
use super::wire::last;
use crate::cloud::ErrorKind;

/// The organisation policies that can be in the way of a machine, and what to do about each.
const POLICIES: [(&str, &str); 4] = [
    (
        "compute.vmExternalIpAccess",
        "the organisation forbids public addresses, and gpuprov reaches machines by theirs; whoever administers it can let the \
         project's machines have one (constraints/compute.vmExternalIpAccess)",
    ),
    (
        "compute.requireOsLogin",
        "the organisation enforces OS Login, which ignores the keys that gpuprov puts on machines; whoever administers it can \
         exempt the project (constraints/compute.requireOsLogin)",
    ),
    (
        "compute.disableGuestAttributesAccess",
        "the organisation forbids guest attributes (constraints/compute.disableGuestAttributesAccess)",
    ),
    (
        "compute.requireShieldedVm",
        "the organisation asks for Shielded VMs with secure boot, with which the GPU driver does not load \
         (constraints/compute.requireShieldedVm)",
    ),
];

/// Returns what can be done about a refusal.
pub(super) fn hint(kind: ErrorKind, fault: &Fault, asked: &Asked<'_>) -> Option<String> {
    let project = asked.project;
    let message = &fault.message;
    let off = ["servicedisabled", "accessnotconfigured"].iter().any(|word| fault.has_word(word));
    if off || message.contains("API has not been used in project") {
        return Some(format!(
            "switch the API on: gcloud services enable compute.googleapis.com --project={project} (it takes a few minutes)"
        ));
    }
    if kind == ErrorKind::Balance {
        return Some(format!(
            "the project has no billing account: \
             https://console.cloud.google.com/billing/linkedaccount?project={project}"
        ));
    }
    if let Some((_, what)) = POLICIES.iter().find(|(constraint, _)| message.contains(constraint)) {
        return Some((*what).to_owned());
    }
    match kind {
        ErrorKind::Auth => Some(
            "the service account or its key may be deleted or disabled; a clock that is wrong does the same \
             (`gpuprov doctor` looks at it)"
                .to_owned(),
        ),
        ErrorKind::Forbidden if message.contains("/networks/") && asked.attempt.is_some() => {
            Some(network(asked.network, project))
        }
        ErrorKind::Forbidden
            if message.contains("compute.firewalls.") || message.contains("networks.updatePolicy") =>
        {
            Some(firewall_right(project))
        }
        ErrorKind::Forbidden => permission(message).map(|permission| {
            format!(
                "the service account lacks {permission}: gcloud projects add-iam-policy-binding {project} \
                 --member=serviceAccount:EMAIL --role=roles/compute.instanceAdmin.v1"
            )
        }),
        _ => None,
    }
}

/// What to do where the network does not exist.
pub(super) fn network(network: &str, project: &str) -> String {
    let network = last(network);
    format!(
        "the project has no network `{network}`: gcloud compute networks create {network} --project={project} \
         --subnet-mode=auto, and let ssh in: {}; or name another one with `network` in [gcp]",
        ssh_rule(network, project, 22)
    )
}

/// What lets ssh in.
pub(super) fn ssh_rule(network: &str, project: &str, port: u16) -> String {
    let network = last(network);
    format!(
        "gcloud compute firewall-rules create {network}-allow-ssh --project={project} --network={network} \
         --allow=tcp:{port}"
    )
}

/// What gives the right to open ports.
pub(super) fn firewall_right(project: &str) -> String {
    format!(
        "`--port` makes a firewall rule, and roles/compute.instanceAdmin.v1 does not hold that right: gcloud projects \
         add-iam-policy-binding {project} --member=serviceAccount:EMAIL --role=roles/compute.securityAdmin"
    )
}

/// Finds the permission in "Required 'compute.instances.create' permission for 'projects/...'".
fn permission(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("equired '")?;
    let (permission, _) = rest.split_once('\'')?;
    permission.contains('.').then_some(permission)
}
